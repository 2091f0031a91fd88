"""Put a detector's probes into compiled PTX: which instruction is watched, and how.

A watched entry begins by asking whether its block is checked; if not, it runs a copy of its body that
keeps only the bounds checks of global memory. Functions that are called get a watched copy of their own.
The probes' text is in ``probes.py``, what they call in ``detector/detector.cu``. Where all blocks are
checked, addresses of functions become those of their watched copies; elsewhere what code behind a pointer
does is not followed (named in ``Instrumented.not_covered``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from attrs import define, evolve, field, frozen

from cuda_lsp.dynamic.instrumentation import bank_probe, probes, shadow
from cuda_lsp.dynamic.instrumentation.access_probes import AccessProbes
from cuda_lsp.dynamic.instrumentation.alike import Member, groups_of
from cuda_lsp.dynamic.instrumentation.calm import calm_intervals
from cuda_lsp.dynamic.instrumentation.matrix_probes import MatrixProbes
from cuda_lsp.dynamic.instrumentation.order_probes import OrderProbes
from cuda_lsp.dynamic.instrumentation.preparation import alone, hoisted
from cuda_lsp.dynamic.instrumentation.probe_operands import (
    ProbedAccess,
    address_of,
    predicated,
    zeroed,
)
from cuda_lsp.dynamic.instrumentation.synchronisation import (
    has_partial_order,
    literal_registers,
    participants,
)
from cuda_lsp.dynamic.instrumentation.watch import MAX_SITES, Labels, Watch
from cuda_lsp.dynamic.ptx.functions import callees, has_loops, pointed_to, with_names
from cuda_lsp.dynamic.ptx.module import (
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
from cuda_lsp.dynamic.ptx.opcodes import Role, row_of
from cuda_lsp.dynamic.ptx.writer import write_module
from cuda_lsp.dynamic.runs import PtxSite, SiteKind
from cuda_lsp.model import Space

MAX_COPIES = 512  # of called functions, to tell their callers apart
BEHIND_POINTER = "code behind a function pointer is executed but not watched"
_MARKED = (SiteKind.ACCESS, SiteKind.MATRIX, SiteKind.IMAGE)  # of which it is told whether they were executed
_COPY = "clsp_w"  # begins the names of watched copies


@frozen
class Instrumented:
    """``text``: the module with its probes. ``marks``: the sites of each byte of the executed array.

    ``followers``: sites of which only another one's wavefronts are counted, which are theirs: that one, and
    how many bytes its address lies before theirs.
    """

    text: str
    marks: tuple[tuple[int, ...], ...]
    not_covered: tuple[str, ...]
    probed: int  # accesses that got a race probe
    followers: Mapping[int, tuple[int, int]] = field(factory=dict[int, tuple[int, int]])


def instrument(module: PtxModule, sites: tuple[PtxSite, ...], watch: Watch, detector: str) -> Instrumented:
    """The module with probes for one entry, the detector's PTX in front. Raises KeyError: no such entry."""
    module = hoisted(alone(module, watch.entry))
    rewriter = _Rewriter(module, watch, _by_place(sites), _told_apart(module, sites), sites)
    entry = rewriter.entry(module.entries[watch.entry])
    rewriter.want_pointed(v for v in module.variables.values() if v.initialiser)
    copies = list(rewriter.copies())
    head = Verbatim(_body_of(detector) + "\n.extern .shared .align 16 .b8 clsp_dynamic[];")
    items: list[PtxFunction | PtxVariable | Verbatim] = [head]
    items.extend(evolve(copy, body=None, linkage="", directives=()) for copy in copies)
    for item in module.items:
        if isinstance(item, PtxFunction) and item.name == watch.entry and item.body is not None:
            items.extend((*copies, entry))
        elif isinstance(item, PtxVariable) and item.initialiser:
            items.append(evolve(item, text=rewriter.with_copies(item.text)))
        else:
            items.append(item)
    text = write_module(evolve(module, items=tuple(items)))
    return Instrumented(
        text, tuple(rewriter.marks), tuple(rewriter.not_covered), rewriter.probed, rewriter.followers
    )


def _body_of(ptx: str) -> str:
    return re.sub(r"^[ \t]*\.(version|target|address_size|file|loc)\b.*$", "", ptx, flags=re.M)


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
    sites: tuple[PtxSite, ...]
    marks: list[tuple[int, ...]] = field(factory=list[tuple[int, ...]])
    not_covered: list[str] = field(factory=list[str])
    probed: int = 0
    followers: dict[int, tuple[int, int]] = field(factory=dict[int, tuple[int, int]])
    members: Mapping[int, Member] = field(factory=dict[int, Member])  # of the function at hand
    labels: Labels = field(factory=Labels)
    order: OrderProbes = field(init=False)
    accesses: AccessProbes = field(init=False)
    matrices: MatrixProbes = field(init=False)
    pointed: frozenset[str] = field(init=False)
    path: _Path = ()
    in_entry: bool = True
    wanted: dict[str, tuple[PtxFunction, _Path]] = field(factory=dict[str, tuple[PtxFunction, _Path]])

    def __attrs_post_init__(self) -> None:
        partial = has_partial_order(self.module, self.watch.entry)
        self.order = OrderProbes(self.watch, self.labels, partial)
        self.accesses = AccessProbes(self.watch, self.labels)
        self.matrices = MatrixProbes(self.watch, self.labels)
        self.pointed = pointed_to(self.module)

    # ------------------------------------------------------------------------------- functions

    def entry(self, function: PtxFunction) -> PtxFunction:
        layout, control = self.watch.layout, self.watch.control
        body = function.body or ()
        self._group(function)
        self._find_calm(function)
        statements: list[Statement] = [self._declared()]
        cleared: list[Statement] = []
        if self.watch.names or layout.user_dynamic:
            statements.append(Verbatim(shadow.clear_shared(layout, self.watch.names)))
            cleared.append(Verbatim("\tbar.sync 0;"))
        if self.watch.sampled:
            statements.append(Verbatim(self._sampled_test()))
            unwatched = (*cleared, *self._unwatched(function, body), Verbatim("\tret;"))
            statements.extend((ScopeOpen(), *unwatched, ScopeClose()))
            statements.append(Label("$clsp_watched"))
        watched = self._watched(function, body)
        names = self.watch.names
        if self._keeps_state:
            statements.append(Verbatim(shadow.entry_prologue(layout, control, names)))
        else:
            statements.extend(cleared)
        if self.watch.banks and not self._keeps_state:
            statements.append(Verbatim(shadow.bounds_prologue(layout, names)))
        if self.watch.banks:
            statements.append(Verbatim(bank_probe.prologue(control, layout.block)))
        statements.append(Verbatim(shadow.tell_addresses(control["names"], self.watch.names)))
        statements.extend((ScopeOpen(), *watched, ScopeClose()))
        x, y, z = layout.block
        kept = tuple(
            d for d in function.directives if not d.startswith((".maxntid", ".reqntid", ".minnctapersm"))
        )
        # Says how many registers the assembler may use: what it saves, the blocks wait for one another.
        directives = (*kept, f".maxntid {x}, {y}, {z}", f".minnctapersm {self.watch.resident}")
        if self.watch.cluster != (1, 1, 1) and not any("cluster" in d for d in kept):
            x, y, z = self.watch.cluster
            directives = (*directives, ".explicitcluster", f".reqnctapercluster {x}, {y}, {z}")
        return evolve(function, body=tuple(statements), directives=directives)

    def _declared(self) -> Statement:
        """The registers of a function that probes use."""
        groups = {member.group.number: member.group for member in self.members.values()}.values()
        wide = "b64" if self.watch.layout.in_global else "b32"
        lines = [shadow.function_registers(self.watch.layout), _SEEN]
        lines += [bank_probe.registers()] if self.watch.banks else []
        if groups:
            lines.append(f"\t.reg .pred {', '.join(group.predicate for group in groups)};")
            lines.append(f"\t.reg .{wide} {', '.join(group.cell for group in groups)};")
        return Verbatim("\n".join(lines))

    def _group(self, function: PtxFunction) -> None:
        """Which accesses of a function stand together; of those that count wavefronts only the first does."""

        def watched(index: int) -> tuple[int, PtxSite] | None:
            place = self._place(function.name, index)
            return place if place and self.watch.watches(place[0]) else None

        self.members = groups_of(function.body or (), watched)
        for index, member in self.members.items():
            place = self._place(function.name, index)
            if place and not member.leads and self.watch.banks:
                self.followers[place[0]] = member.group.first, member.delta

    def _find_calm(self, function: PtxFunction | None) -> None:
        """The calm intervals of the entry; what is called may be called in any."""
        self.order.calm.clear()
        self.accesses.calm.clear()
        if function is None or not self.watch.races:
            return

        def in_shared(number: int) -> bool:
            return self.accesses.reaches_shared(number, self.sites[number])

        found = calm_intervals(function, lambda index: self._place(function.name, index), in_shared)
        self.order.calm.update(found.barriers)
        self.accesses.calm.update(found.reads)

    def copies(self) -> Iterator[PtxFunction]:
        """Watched copies of what the entry calls, at any depth."""
        done: set[str] = set()
        while remaining := [name for name in self.wanted if name not in done]:
            for name in remaining:
                done.add(name)
                function, self.path = self.wanted[name]
                yield evolve(self._called(function), name=name, linkage="")  # as it was declared in front

    def _copy_of(self, function: PtxFunction, call: tuple[str, int] | None) -> str:
        """The name of the copy that a call instruction is to call; None: any call."""
        path = (*self.path, call) if call is not None else ()
        recursive = any(caller == function.name for caller, _ in path)
        if function.name not in self.told_apart or recursive or len(self.wanted) >= MAX_COPIES:
            path = ()
        for name, known in self.wanted.items():
            if known == (function, path):
                return name
        name = f"{_COPY}{len(self.wanted)}_{function.name}"
        self.wanted[name] = function, path
        return name

    def want_pointed(self, variables: Iterable[PtxVariable]) -> None:
        """Copies of the functions whose addresses variables hold."""
        for variable in variables:
            self.with_copies(variable.text)

    def with_copies(self, text: str) -> str:
        """Text that takes addresses of functions, with those of their watched copies."""
        if self.watch.sampled or not self._keeps_state:
            return text  # blocks that are not checked may call what a pointer names

        def copy(name: str) -> str:
            return self._copy_of(self.module.functions[name], None) if name in self.pointed else name

        return with_names(text, copy)

    def _place(self, function: str, index: int) -> tuple[int, PtxSite] | None:
        return self.places.get((function, index, self.path)) or self.places.get((function, index, ()))

    def _called(self, function: PtxFunction) -> PtxFunction:
        layout = self.watch.layout
        self.in_entry = False
        self._group(function)
        self._find_calm(None)
        statements: list[Statement] = [self._declared()]
        if self._keeps_state:
            prologue = shadow.function_prologue(layout, self.watch.control, self.watch.names)
            statements.append(Verbatim(prologue))
        elif self.watch.banks:
            statements.append(Verbatim(shadow.bounds_prologue(layout, self.watch.names)))
        if self.watch.banks:
            statements.append(Verbatim(bank_probe.prologue(self.watch.control, layout.block)))
        statements.extend(self._watched(function, function.body or ()))
        return evolve(function, body=tuple(statements))

    @property
    def _keeps_state(self) -> bool:
        return self.watch.races

    def _sampled_test(self) -> str:
        ordinal = shadow.ordinal(self.watch.control)
        return (
            f"\t{{ .reg .b32 %u; .reg .pred %p; {ordinal} setp.ne.u32 %p, %u, -1; @%p bra $clsp_watched; }}"
        )

    def _unwatched(self, function: PtxFunction, body: tuple[Statement, ...]) -> Iterator[Statement]:
        types = _register_types(body)
        for statement in body:
            if isinstance(statement, Instruction):
                place = self._place(function.name, statement.index)
                if place and place[1].kind is SiteKind.ACCESS and place[1].space in (None, Space.GLOBAL):
                    yield from self._access(statement, *place, types, bounds_only=True)
                    continue
                if place and self._ends_launch(place):
                    yield from self._guarded(statement, (self._own_mark(place[0]), Instruction("exit")))
                    continue
            yield statement

    def _watched(self, function: PtxFunction, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        types = _register_types(body)
        constants = literal_registers(function)
        loops = has_loops(function)
        result: list[Statement] = []
        pending: list[int] = []  # sites of this basic block
        mark_at = 0

        def close_block() -> None:
            nonlocal mark_at
            if pending:
                mark = probes.mark_executed(self.watch.control["executed"], len(self.marks), loops)
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
            if place and self.watch.watches(place[0]) and place[1].kind in _MARKED:
                if statement.guard:
                    own_mark.append(self._own_mark(place[0]))
                elif position >= _first_after_declarations(body):
                    pending.append(place[0])
            if row_of(statement).role is Role.CALL and not self._ends_launch(place):
                result.extend(self._call(statement, function.name))
            else:
                result.extend(self._instruction(statement, place, types, constants, own_mark))
            if row_of(statement).ends_block:
                close_block()
        close_block()
        return tuple(result)

    def _own_mark(self, site: int) -> Statement:
        self.marks.append((site,))
        return Verbatim(probes.mark_executed(self.watch.control["executed"], len(self.marks) - 1))

    def _ends_launch(self, place: tuple[int, PtxSite] | None) -> bool:
        """Whether a thread that comes here leaves, instead of taking all that was seen with it."""
        return place is not None and place[1].kind is SiteKind.TRAP and not self.watch.traps

    def _trapped(self, site: int) -> Iterator[Statement]:
        """A trap or a failed assertion: the thread says that it came here, and leaves."""
        yield self._own_mark(site)
        if self._keeps_state and site < MAX_SITES:
            yield Verbatim(probes.waits_at(site))
        yield Instruction("exit")

    # ----------------------------------------------------------------------------- instructions

    def _instruction(
        self,
        instruction: Instruction,
        place: tuple[int, PtxSite] | None,
        types: Mapping[str, str],
        constants: Mapping[str, str],
        mark: list[Statement],
    ) -> Iterator[Statement]:
        mask = participants(instruction, constants)
        row = row_of(instruction)
        if place and self._ends_launch(place):
            yield from self._guarded(instruction, self._trapped(place[0]))
            return
        if mask is not None or (row.role is Role.CLUSTER and "wait" in instruction.modifiers):
            around = self.order.synchronisation(instruction, place[0] if place else None, mask)
            yield from self._guarded(instruction, (*mark, *around))
            return
        if (
            place
            and place[1].kind is SiteKind.ACCESS
            and place[1].space in (None, Space.SHARED, Space.GLOBAL)
        ):
            yield from self._access(instruction, *place, types, mark=mark)
            return
        if place and place[1].kind is SiteKind.MATRIX:
            yield from self._matrix(instruction, *place, types, mark)
            return
        yield from mark
        if instruction.base in ("mov", "cvta") and self.pointed:
            instruction = evolve(instruction, operands=self.with_copies(instruction.operands))
        if self.watch.races and (around := self.order.followed(instruction, types, self.in_entry)):
            yield from self._guarded(instruction, around)
            return
        yield instruction

    def _guarded(self, instruction: Instruction, body: Iterable[Statement]) -> Iterator[Statement]:
        """``body`` under the instruction's guard, as a branch around it."""
        if instruction.guard is None:
            yield from body
            return
        label = "$" + self.labels.new("skip")
        guard = instruction.guard[1:] if instruction.guard.startswith("!") else f"!{instruction.guard}"
        yield Verbatim(f"\t@{guard} bra {label};")
        yield from body
        yield Label(label)

    def _call(self, instruction: Instruction, caller: str) -> Iterator[Statement]:
        """A call to a function that has a body goes to its watched copy."""
        parts = list(instruction.arguments)
        named = [i for i, part in enumerate(parts) if part in self.module.functions]
        for i in named[:1]:
            function = self.module.functions[parts[i]]
            if function.body is not None:
                parts[i] = self._copy_of(function, (caller, instruction.index))
        followed = self._keeps_state and not self.watch.sampled
        if not named and not followed and (sentence := BEHIND_POINTER) not in self.not_covered:
            self.not_covered.append(sentence)
        yield evolve(instruction, operands=", ".join(parts))
        if self.watch.races and self.watch.layout.calls:
            yield Verbatim("\t" + shadow.reload_stamp(self.watch.layout))

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
        access = _probed(instruction, number, site, types)
        member = self.members.get(instruction.index)
        probe = access and self.accesses.probe(access, bounds_only, member)
        if access and not probe and not bounds_only and self.order.hands_over(access):
            probe = probes.ALLOWED
        if not (access and probe):
            yield from mark or ()
            yield instruction
            return
        self.probed += not bounds_only and self.accesses.covers_shared(number, site)
        before, after = ((), ()) if bounds_only else self.order.around(access)
        carried_out = _where_allowed(access)
        yield from self._guarded(instruction, (*(mark or ()), Verbatim(probe), *before, *carried_out, *after))

    def _matrix(
        self,
        instruction: Instruction,
        number: int,
        site: PtxSite,
        types: Mapping[str, str],
        mark: list[Statement],
    ) -> Iterator[Statement]:
        """An access of the whole warp, whose lanes have met."""
        access = _probed(instruction, number, site, types)
        probe = access and self.matrices.probe(access)
        body: list[Statement] = [*mark, *self.order.warp_met("all")]
        if access and probe:
            body += [Verbatim(probe), *_where_allowed(access)]
        else:
            body.append(evolve(instruction, guard=None))
        yield from self._guarded(instruction, body)


# ------------------------------------------------------------------------------------ small readings


def _probed(
    instruction: Instruction, number: int, site: PtxSite, types: Mapping[str, str]
) -> ProbedAccess | None:
    address = address_of(instruction)
    return address and ProbedAccess(instruction, number, site, types, address)


def _where_allowed(access: ProbedAccess) -> Iterator[Statement]:
    """The access where its probe allows it; elsewhere what it would have loaded is zero."""
    yield evolve(access.instruction, guard="%clsp_ok")
    if zero := zeroed(access.instruction, access.types):
        yield Verbatim(predicated(zero))


_SEEN = (
    "\t.reg .pred %clsp_calm; setp.ne.u32 %clsp_calm, 0, 0; .reg .b32 %clsp_seen0, %clsp_seen1;"
    " mov.b32 %clsp_seen0, 0; mov.b32 %clsp_seen1, 0;"
)


def _first_after_declarations(body: tuple[Statement, ...]) -> int:
    for position, statement in enumerate(body):
        if not isinstance(statement, Registers | Declaration):
            return position
    return len(body)


def _register_types(body: tuple[Statement, ...]) -> dict[str, str]:
    return {name: s.type for s in body if isinstance(s, Registers) for name in s.names}
