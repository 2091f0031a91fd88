"""Put a detector's probes into compiled PTX: which instruction is watched, and how.

A watched entry begins by asking whether its block is checked; if not, it runs a copy of its body that
keeps only the bounds checks of global memory. Functions that are called get a watched copy of their own.
The probes' text is in ``probes.py``, what they call in ``detector/detector.cu``. Not followed: what code
behind a function pointer does (named in ``Instrumented.not_covered``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import define, evolve, field, frozen

from cuda_lsp.dynamic import probes
from cuda_lsp.dynamic.probe_operands import (
    address_of,
    generic_address,
    predicated,
    shared_address,
    value_hash,
    zeroed,
)
from cuda_lsp.dynamic.probes import ShadowLayout, SharedProbe
from cuda_lsp.dynamic.ptx import (
    Declaration,
    Instruction,
    Label,
    PtxFunction,
    PtxModule,
    PtxVariable,
    Registers,
    ScopeClose,
    ScopeOpen,
    Statement,
    Verbatim,
)
from cuda_lsp.dynamic.ptx_operands import AddressOperand
from cuda_lsp.dynamic.ptx_writer import write_module
from cuda_lsp.dynamic.runs import PtxSite, SiteKind
from cuda_lsp.dynamic.synchronisation import callees, has_partial_order, literal_registers, participants
from cuda_lsp.model import Mode, Scope, Space

MAX_SITES = 1 << 14  # what a stamp can name
MAX_COPIES = 512  # of called functions, to tell their callers apart
BEHIND_POINTER = "code behind a function pointer is executed but not watched"
_COPY = "clsp_w"  # begins the names of watched copies
_WIDE = frozenset({"gl", "sys", "gpu", "cluster"})  # scopes of fences that other blocks may see
_KINDS = {Mode.READ: 0, Mode.WRITE: 1, Mode.ATOMIC: 2}


@frozen
class Watch:
    """What to watch in one entry. ``sites``: numbers into the run's list; None: all of them.

    ``sampled``: only some blocks are checked. ``control``: byte offsets of the control block's fields.
    ``ranges``: stretches of global memory that the control block will name, for the bounds checks.
    ``names``: shared variables whose addresses the kernel is to tell. ``order``: follow what fences and
    atomics order between blocks.
    """

    entry: str
    layout: ShadowLayout
    control: Mapping[str, int]
    names: tuple[str, ...] = ()
    sites: frozenset[int] | None = None
    races: bool = True
    global_races: bool = True
    banks: bool = False
    bounds: bool = True
    ranges: int = 0
    sampled: bool = False
    order: bool = False


@frozen
class Instrumented:
    """``text``: the module with its probes. ``marks``: the sites of each byte of the executed array."""

    text: str
    marks: tuple[tuple[int, ...], ...]
    not_covered: tuple[str, ...]
    probed: int  # accesses that got a race probe


def instrument(module: PtxModule, sites: tuple[PtxSite, ...], watch: Watch, detector: str) -> Instrumented:
    """The module with probes for one entry, the detector's PTX in front. Raises KeyError: no such entry."""
    module = _hoisted(module)
    rewriter = _Rewriter(module, watch, _by_place(sites), _told_apart(module, sites))
    entry = rewriter.entry(module.entries[watch.entry])
    copies = list(rewriter.copies())
    head = Verbatim(_body_of(detector) + "\n.extern .shared .align 16 .b8 clsp_dynamic[];")
    items: list[PtxFunction | PtxVariable | Verbatim] = [head]
    items.extend(evolve(copy, body=None, linkage="", directives=()) for copy in copies)
    for item in module.items:
        if isinstance(item, PtxFunction) and item.name == watch.entry and item.body is not None:
            items.extend((*copies, entry))
        else:
            items.append(item)
    text = write_module(evolve(module, items=tuple(items)))
    return Instrumented(text, tuple(rewriter.marks), tuple(rewriter.not_covered), rewriter.probed)


def _hoisted(module: PtxModule) -> PtxModule:
    """The module with all its shared variables, and what functions keep in global memory, in front."""
    front: list[PtxFunction | PtxVariable | Verbatim] = []
    items: list[PtxFunction | PtxVariable | Verbatim] = []
    for item in module.items:
        if isinstance(item, PtxVariable) and item.space == "shared":
            front.append(item)
            continue
        if (
            isinstance(item, PtxVariable) and item.space == "global" and not item.linkage
        ):  # ranges are asked for
            item = evolve(item, linkage="visible", text=f".visible {item.text}")
        if isinstance(item, PtxFunction) and item.body is not None:
            moved = [*item.variables("shared"), *item.variables("global")]
            front.extend(moved)
            kept = (s for s in item.body if not (isinstance(s, Declaration) and s.variable in moved))
            item = item.with_body(tuple(kept))
        items.append(item)
    return evolve(module, items=(*front, *items))


def finest_granule(sites: tuple[PtxSite, ...], spaces: tuple[Space | None, ...]) -> int:
    """log2 of the narrowest access to these spaces (at most 16 bytes): no access covers part of a granule."""
    widths = [s.bytes for s in sites if s.kind is SiteKind.ACCESS and s.space in spaces and s.bytes]
    narrowest = min(widths, default=4)
    return min(4, max(0, narrowest.bit_length() - 1))


def shared_variables(module: PtxModule, entry: str) -> tuple[PtxVariable, ...]:
    """Those with a size that the entry or a function it may call names."""
    functions = [module.functions[entry], *(f for f in module.functions.values() if not f.entry)]
    text = " ".join(i.operands for f in functions for i in f.instructions())
    named = set(re.findall(r"[\w$]+", text))
    own = [v for f in functions for v in f.variables("shared")]
    shared = [v for v in module.variables.values() if v.space == "shared"]
    return tuple(v for v in (*own, *shared) if v.name in named and v.size)


def _body_of(ptx: str) -> str:
    return re.sub(r"^\s*\.(version|target|address_size|file|loc)\b.*$", "", ptx, flags=re.M)


_Path = tuple[tuple[str, int], ...]  # call instructions, outermost first
_Places = Mapping[tuple[str, int, _Path], tuple[int, PtxSite]]


def _by_place(sites: tuple[PtxSite, ...]) -> _Places:
    return {(site.function, site.index, site.via): (number, site) for number, site in enumerate(sites)}


def _told_apart(module: PtxModule, sites: tuple[PtxSite, ...]) -> frozenset[str]:
    """Functions whose sites depend on who calls them, and those on the way there."""
    needed = {site.function for site in sites if site.via}
    while True:
        callers = {f.name for f in module.functions.values() if needed & set(callees(f))}
        if callers <= needed:
            return frozenset(needed)
        needed |= callers


# ------------------------------------------------------------------------------------- the rewriter


@define
class _Rewriter:
    module: PtxModule
    watch: Watch
    places: _Places
    told_apart: frozenset[str]
    marks: list[tuple[int, ...]] = field(factory=list[tuple[int, ...]])
    not_covered: list[str] = field(factory=list[str])
    probed: int = 0
    labels: int = 0
    partial: bool = False
    path: _Path = ()
    in_entry: bool = True
    wanted: dict[str, tuple[PtxFunction, _Path]] = field(factory=dict[str, tuple[PtxFunction, _Path]])

    def __attrs_post_init__(self) -> None:
        self.partial = has_partial_order(self.module, self.watch.entry)

    # ------------------------------------------------------------------------------- functions

    def entry(self, function: PtxFunction) -> PtxFunction:
        layout, control = self.watch.layout, self.watch.control
        body = function.body or ()
        declared = Verbatim(probes.function_registers(layout))
        statements: list[Statement] = [declared]
        if self.watch.sampled:
            statements.append(Verbatim(self._sampled_test()))
            statements.extend(
                (ScopeOpen(), *self._unwatched(function, body), Verbatim("\tret;"), ScopeClose())
            )
            statements.append(Label("$clsp_watched"))
        watched = self._watched(function, body)
        if self._keeps_state:
            statements.append(Verbatim(probes.entry_prologue(layout, control, self.watch.names)))
        statements.append(Verbatim(probes.tell_addresses(control["names"], self.watch.names)))
        statements.extend((ScopeOpen(), *watched, ScopeClose()))
        x, y, z = layout.block
        kept = tuple(
            d for d in function.directives if not d.startswith((".maxntid", ".reqntid", ".minnctapersm"))
        )
        directives = (*kept, f".maxntid {x}, {y}, {z}")
        return evolve(function, body=tuple(statements), directives=directives)

    def copies(self) -> Iterator[PtxFunction]:
        """Watched copies of what the entry calls, at any depth."""
        done: set[str] = set()
        while remaining := [name for name in self.wanted if name not in done]:
            for name in remaining:
                done.add(name)
                function, self.path = self.wanted[name]
                yield evolve(self._called(function), name=name)

    def _copy_of(self, function: PtxFunction, call: tuple[str, int]) -> str:
        """The name of the copy that a call instruction is to call."""
        path = (*self.path, call)
        recursive = any(caller == function.name for caller, _ in path)
        if function.name not in self.told_apart or recursive or len(self.wanted) >= MAX_COPIES:
            path = ()
        for name, known in self.wanted.items():
            if known == (function, path):
                return name
        name = f"{_COPY}{len(self.wanted)}_{function.name}"
        self.wanted[name] = function, path
        return name

    def _place(self, function: str, index: int) -> tuple[int, PtxSite] | None:
        return self.places.get((function, index, self.path)) or self.places.get((function, index, ()))

    def _called(self, function: PtxFunction) -> PtxFunction:
        layout = self.watch.layout
        self.in_entry = False
        statements: list[Statement] = [Verbatim(probes.function_registers(layout))]
        if self._keeps_state:
            prologue = probes.function_prologue(layout, self.watch.control, self.watch.names)
            statements.append(Verbatim(prologue))
        statements.extend(self._watched(function, function.body or ()))
        return evolve(function, body=tuple(statements))

    @property
    def _keeps_state(self) -> bool:
        return self.watch.races

    def _sampled_test(self) -> str:
        return (
            "\t{ .reg .b32 %u; .reg .pred %p; { .param .b32 r; call.uni (r), clsp_ordinal;"
            " ld.param.b32 %u, [r]; } setp.ne.u32 %p, %u, -1; @%p bra $clsp_watched; }"
        )

    def _unwatched(self, function: PtxFunction, body: tuple[Statement, ...]) -> Iterator[Statement]:
        types = _register_types(body)
        for statement in body:
            if isinstance(statement, Instruction) and self.watch.bounds:
                place = self._place(function.name, statement.index)
                if place and place[1].kind is SiteKind.ACCESS and place[1].space in (None, Space.GLOBAL):
                    yield from self._access(statement, *place, types, bounds_only=True)
                    continue
            yield statement

    def _watched(self, function: PtxFunction, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        types = _register_types(body)
        constants = literal_registers(function)
        result: list[Statement] = []
        pending: list[int] = []  # sites of this basic block
        mark_at = 0

        def close_block() -> None:
            nonlocal mark_at
            if pending:
                mark = probes.mark_executed(self.watch.control["executed"], len(self.marks))
                result.insert(mark_at, Verbatim(mark))
                self.marks.append(tuple(pending))
                pending.clear()
            mark_at = len(result)

        mark_at = _first_after_declarations(body)
        for position, statement in enumerate(body):
            if isinstance(statement, Label):
                close_block()
                result.append(statement)
                mark_at = len(result)
                continue
            if not isinstance(statement, Instruction):
                result.append(statement)
                continue
            place = self._place(function.name, statement.index)
            own_mark: list[Statement] = []
            if place and self._in_watch(place[0]):
                if statement.guard:
                    own_mark.append(self._own_mark(place[0]))
                elif position >= _first_after_declarations(body):
                    pending.append(place[0])
            if statement.base == "call":
                result.extend(self._call(statement, function.name))
            else:
                result.extend(self._instruction(statement, place, types, constants, own_mark))
            if statement.base in ("bra", "brx", "ret", "exit", "trap"):
                close_block()
        close_block()
        return tuple(result)

    def _own_mark(self, site: int) -> Statement:
        self.marks.append((site,))
        return Verbatim(probes.mark_executed(self.watch.control["executed"], len(self.marks) - 1))

    def _in_watch(self, site: int) -> bool:
        return site < MAX_SITES and (self.watch.sites is None or site in self.watch.sites)

    # ----------------------------------------------------------------------------- instructions

    def _instruction(
        self,
        instruction: Instruction,
        place: tuple[int, PtxSite] | None,
        types: Mapping[str, str],
        constants: Mapping[str, str],
        mark: list[Statement],
    ) -> Iterator[Statement]:
        synchronises = participants(instruction, constants)
        if synchronises is not None or (instruction.base == "barrier" and "wait" in instruction.modifiers):
            yield from self._guarded(
                instruction, self._synchronisation(instruction, place, synchronises, mark)
            )
            return
        if (
            place
            and place[1].kind is SiteKind.ACCESS
            and place[1].space in (None, Space.SHARED, Space.GLOBAL)
        ):
            yield from self._access(instruction, *place, types, mark=mark)
            return
        yield from mark
        if self.watch.races and (around := self._followed(instruction, types)):
            yield from self._guarded(instruction, iter(around))
            return
        yield instruction

    def _followed(self, instruction: Instruction, types: Mapping[str, str]) -> tuple[Statement, ...]:
        """An instruction that orders others, with what tells the detector; empty: it does not."""
        words = {word.partition("__")[0] for word in instruction.modifiers}
        plain = evolve(instruction, guard=None)
        match instruction.base:
            case "ret" | "exit" if self.in_entry:
                return Verbatim(probes.leaves()), plain
            case "membar" | "fence" if self.watch.order and words & _WIDE:
                return Verbatim(probes.called("clsp_fenced")), plain
            case "cp" if "async" in words and "bulk" not in words:
                return self._awaited(plain, words, types)
            case "mbarrier":
                return self._met(plain, words, types)
            case _:
                return ()

    def _awaited(
        self, plain: Instruction, words: set[str], types: Mapping[str, str]
    ) -> tuple[Statement, ...]:
        """Commits and waits of asynchronous copies; one that an mbarrier waits for is taken to be there."""
        if "mbarrier" in words:
            done = Verbatim(probes.call_with_stamp("clsp_awaited", "-1"))
            return plain, done, *(self._met(plain, words, types)[:-1] if "noinc" in words else ())
        if "commit_group" in words:
            return plain, Verbatim(probes.called("clsp_committed"))
        if words & {"wait_group", "wait_all"}:
            allowed = "-1" if "wait_all" in words else plain.arguments[0]
            return plain, Verbatim(probes.call_with_stamp("clsp_awaited", allowed))
        return ()

    def _met(self, plain: Instruction, words: set[str], types: Mapping[str, str]) -> tuple[Statement, ...]:
        """Arriving at an mbarrier tells what was done before; a wait that succeeds learns it."""
        waits, address = words & {"test_wait", "try_wait"}, address_of(plain)
        if address is None or not (waits or "arrive" in words):
            return ()
        number = probes.barrier_number(shared_address(address, types))
        call = probes.call_with_stamp("clsp_depart" if waits else "clsp_arrive", "%a")
        told = Verbatim(f"\t{{ .reg .b32 %a; {number.strip()} {call.strip()} }}")
        if not waits:
            return told, Verbatim(probes.next_tick()), plain
        label = self._label("early")
        skip = Verbatim(f"\t@!{plain.arguments[0]} bra {label};")
        return plain, skip, told, Verbatim(probes.next_tick()), Label(label)

    def _guarded(self, instruction: Instruction, body: Iterator[Statement]) -> Iterator[Statement]:
        """``body`` under the instruction's guard, as a branch around it."""
        if instruction.guard is None:
            yield from body
            return
        label = self._label("skip")
        guard = instruction.guard[1:] if instruction.guard.startswith("!") else f"!{instruction.guard}"
        yield Verbatim(f"\t@{guard} bra {label};")
        yield from body
        yield Label(label)

    def _label(self, stem: str) -> str:
        self.labels += 1
        return f"$clsp_{stem}_{self.labels}"

    def _call(self, instruction: Instruction, caller: str) -> Iterator[Statement]:
        """A call to a function that has a body goes to its watched copy."""
        parts = list(instruction.arguments)
        named = [i for i, part in enumerate(parts) if part in self.module.functions]
        for i in named[:1]:
            function = self.module.functions[parts[i]]
            if function.body is not None:
                parts[i] = self._copy_of(function, (caller, instruction.index))
        if not named and (sentence := BEHIND_POINTER) not in self.not_covered:
            self.not_covered.append(sentence)
        yield evolve(instruction, operands=", ".join(parts))
        if self.watch.races:
            yield Verbatim("\t" + probes.reload_stamp())

    def _synchronisation(
        self,
        instruction: Instruction,
        place: tuple[int, PtxSite] | None,
        mask: str | None,
        mark: list[Statement],
    ) -> Iterator[Statement]:
        yield from mark
        plain = evolve(instruction, guard=None)
        if not self.watch.races:
            yield plain
            return
        words = instruction.modifiers
        block_barrier = instruction.base in ("bar", "barrier") and "warp" not in words
        if not block_barrier:
            yield plain
            if self.partial:
                yield Verbatim(probes.call_with_stamp("clsp_warp_met", "-1" if mask == "all" else str(mask)))
            yield Verbatim(probes.next_tick())
            return
        if place:
            yield Verbatim(probes.waits_at(place[0]))
        if mask == "count":
            name = instruction.arguments[
                2 if "red" in words and "popc" in words else 1 if "red" in words else 0
            ]
            yield Verbatim(probes.call_with_stamp("clsp_arrive", name))
            yield plain
            if "arrive" not in words:
                yield Verbatim(probes.call_with_stamp("clsp_depart", name))
            yield Verbatim(probes.next_tick())
            return
        yield plain
        yield Verbatim(probes.after_block_barrier(self.watch.layout, self._label("bar")[1:]))

    # --------------------------------------------------------------------------------- accesses

    def _access(
        self,
        instruction: Instruction,
        number: int,
        site: PtxSite,
        types: Mapping[str, str],
        bounds_only: bool = False,
        mark: list[Statement] | None = None,
    ) -> Iterator[Statement]:
        address = address_of(instruction)
        probe = (
            None if address is None else self._probe(instruction, number, site, types, address, bounds_only)
        )
        if address is None or probe is None:
            yield from mark or ()
            yield instruction
            return

        tells, learns = ((), ()) if bounds_only else self._ordering(instruction, site, types, address)

        def body() -> Iterator[Statement]:
            yield from mark or ()
            yield Verbatim(probe)
            yield from tells
            yield evolve(instruction, guard="%clsp_ok")
            if zero := zeroed(instruction, types):
                yield Verbatim(predicated(zero))
            yield from learns

        yield from self._guarded(instruction, body())

    def _ordering(
        self, instruction: Instruction, site: PtxSite, types: Mapping[str, str], address: AddressOperand
    ) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
        """What an access that other blocks may synchronise with says before it is made, and after."""
        strong = site.mode is Mode.ATOMIC and site.scope is not Scope.BLOCK
        if not (strong and self.watch.order and self.watch.races) or site.space is Space.SHARED:
            return (), ()
        words = set(instruction.modifiers)
        where = Verbatim(f"\t{{ .reg .b64 %A; {generic_address(address, types)} mov.b64 %clsp_at, %A; }}")
        releases = int(bool(words & {"release", "acq_rel"}))
        tell, learn = probes.with_address("clsp_tell", releases), probes.with_address("clsp_learn")
        tells = (where,) if instruction.base == "ld" else (where, Verbatim(tell))
        return tells, () if instruction.base in ("st", "red") else (Verbatim(learn),)

    def _probe(
        self,
        instruction: Instruction,
        number: int,
        site: PtxSite,
        types: Mapping[str, str],
        address: AddressOperand,
        bounds_only: bool,
    ) -> str | None:
        watched = self._in_watch(number) and not bounds_only and site.mode is not None
        shared = (
            self._shared_part(instruction, number, site, types)
            if watched and site.space is not Space.GLOBAL
            else ""
        )
        outside = self._global_part(number, site, watched) if site.space is not Space.SHARED else ""
        if not shared and not outside:
            return None
        label = self._label("at")[1:]
        if site.space is Space.SHARED:
            return "\n".join(
                (
                    "\tsetp.eq.u32 %clsp_ok, 0, 0; { .reg .b32 %a, %v;",
                    shared_address(address, types),
                    shared,
                    "\t}",
                )
            )
        lines = [
            "\tsetp.eq.u32 %clsp_ok, 0, 0; { .reg .b64 %A; .reg .b32 %a, %v; .reg .pred %p, %q;",
            generic_address(address, types),
        ]
        if site.space is Space.GLOBAL:
            return "\n".join((*lines, outside, "\t}"))
        lines.append(f"\tisspacep.shared %p, %A; @!%p bra $else_{label};")
        if shared:
            lines += ["\t{ .reg .b64 %s; cvta.to.shared.u64 %s, %A; cvt.u32.u64 %a, %s; }", shared]
        lines.append(f"\tbra $end_{label};")
        lines.append(f"$else_{label}:")
        if outside:
            lines.append(f"\tisspacep.global %p, %A; @!%p bra $end_{label};")
            lines.append(outside)
        lines.append(f"$end_{label}: }}")
        return "\n".join(lines)

    def _shared_part(
        self, instruction: Instruction, number: int, site: PtxSite, types: Mapping[str, str]
    ) -> str:
        parts: list[str] = []
        if self.watch.banks:
            parts.append(probes.bank_probe(number, site.bytes, site.mode is Mode.READ))
        if self.watch.races:
            self.probed += 1
            probe = SharedProbe(self.watch.layout, number, site.bytes)
            label = self._label("s")[1:]
            if site.mode is Mode.READ:
                parts.append(probe.read(label))
            elif site.mode is Mode.ATOMIC:
                parts.append(probe.atomic(label))
            else:
                copies = instruction.base == "cp"
                value = probes.copy_value() if copies else value_hash(instruction, types)
                parts += [value, probe.write(label)]
        return "\n".join(parts)

    def _global_part(self, number: int, site: PtxSite, watched: bool) -> str:
        races = watched and self.watch.races and self.watch.global_races
        if not races and not self.watch.bounds:
            return ""
        if site.mode is None:
            return ""
        kind = 3 if site.mode is Mode.ATOMIC and site.scope is Scope.BLOCK else _KINDS[site.mode]
        if races:
            return probes.global_probe(number, site.bytes, kind)
        ranges = self.watch.control["ranges"], self.watch.ranges
        return probes.bounds_probe(number, site.bytes, kind, *ranges, self._label("g")[1:])


# ------------------------------------------------------------------------------------ small readings


def _first_after_declarations(body: tuple[Statement, ...]) -> int:
    for position, statement in enumerate(body):
        if not isinstance(statement, Registers | Declaration):
            return position
    return len(body)


def _register_types(body: tuple[Statement, ...]) -> dict[str, str]:
    return {name: s.type for s in body if isinstance(s, Registers) for name in s.names}
