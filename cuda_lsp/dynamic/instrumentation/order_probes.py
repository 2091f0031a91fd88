"""Probes of what orders accesses: barriers, mbarriers, waits for copies, fences, atomics of other blocks.

The detector keeps clocks (``detector/detector.cu``); here stands which instruction moves which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve, field, frozen

from cuda_lsp.dynamic.instrumentation import probes
from cuda_lsp.dynamic.instrumentation.probe_operands import (
    ProbedAccess,
    address_of,
    generic_address,
    shared_address,
)
from cuda_lsp.dynamic.instrumentation.shadow import ShadowLayout
from cuda_lsp.dynamic.instrumentation.watch import Labels, Watch
from cuda_lsp.dynamic.ptx.module import Instruction, Label, Statement, Verbatim
from cuda_lsp.dynamic.ptx.opcodes import Role, fences_blocks, is_fence, results_of, row_of
from cuda_lsp.dynamic.ptx.operands import AddressOperand
from cuda_lsp.model import Mode, Scope, Space


@frozen
class OrderProbes:
    """``partial``: some barrier or mask of the kernel leaves threads out."""

    watch: Watch
    labels: Labels
    partial: bool
    calm: set[int] = field(factory=set[int])  # barriers of the function at hand: see ``calm.py``

    def followed(
        self, instruction: Instruction, types: Mapping[str, str], in_entry: bool
    ) -> tuple[Statement, ...]:
        """An instruction that orders others, with what tells the detector; empty: it does not."""
        words = {word.partition("__")[0] for word in instruction.modifiers}
        plain = evolve(instruction, guard=None)
        match row_of(instruction).role:
            case Role.LEAVE if in_entry:
                return Verbatim(probes.leaves()), plain
            case Role.FENCE if fenced := self._fenced(instruction):
                return *fenced, plain
            case Role.COPY_WAIT:
                return self._awaited(plain, words, types)
            case Role.MBARRIER:
                return self._met(plain, words, types)
            case _:
                return ()

    def _fenced(self, instruction: Instruction) -> tuple[Statement, ...]:
        if not (self.watch.layout.clocks and is_fence(instruction)):
            return ()
        blocks = self.watch.order and fences_blocks(instruction)
        names = ("clsp_thread_fenced", *("clsp_fenced",) * blocks)
        return tuple(Verbatim(probes.called(name)) for name in names)

    def _awaited(
        self, plain: Instruction, words: set[str], types: Mapping[str, str]
    ) -> tuple[Statement, ...]:
        """Commits and waits of asynchronous copies; one that an mbarrier waits for is taken to be there."""
        if "mbarrier" in words:
            done = Verbatim(probes.call_with_stamp("clsp_awaited", "-1"))
            return (done, *self._met(plain, words, types)) if "noinc" in words else (plain, done)
        if "commit_group" in words:
            return plain, Verbatim(probes.called("clsp_committed"))
        if words & {"wait_group", "wait_all"}:
            allowed = "-1" if "wait_all" in words else plain.arguments[0]
            return plain, Verbatim(probes.call_with_stamp("clsp_awaited", allowed))
        return ()

    def _met(self, plain: Instruction, words: set[str], types: Mapping[str, str]) -> tuple[Statement, ...]:
        """Arriving at an mbarrier tells what was done before; a wait that succeeds learns it."""
        waits, address = words & {"test_wait", "try_wait"}, address_of(plain)
        if address is None or not (waits or words & {"arrive", "arrive_drop"}):
            return ()
        if self.watch.layout.clocks:
            at = Verbatim(_generic(address, types, "shared" in words))
            told = at, Verbatim(_learns() if waits else _tells(self.watch.layout, True))
        else:
            number = probes.barrier_number(shared_address(address, types))
            called = "\n".join(s.text for s in (self._departs("%a") if waits else self._arrives("%a")))
            told = (Verbatim(f"\t{{ .reg .b32 %a; {number.strip()}\n{called} }}"),)
        if not waits:
            return *told, plain
        label = "$" + self.labels.new("early")
        skip = Verbatim(f"\t@!{plain.arguments[0]} bra {label};")
        return plain, skip, *told, Label(label)

    def _arrives(self, number: str) -> tuple[Verbatim, ...]:
        """Before a thread comes to a barrier that not all threads need to pass."""
        if self.watch.layout.clocks:
            return (Verbatim(probes.ticked_by(self.watch.layout, "clsp_thread_arrives", *_STAMP, number)),)
        return Verbatim(probes.call_with_stamp("clsp_arrive", number)), self._next_tick()

    def _departs(self, number: str) -> tuple[Verbatim, ...]:
        if self.watch.layout.clocks:
            return (Verbatim(probes.call_with_stamp("clsp_thread_departs", number)),)
        return Verbatim(probes.call_with_stamp("clsp_depart", number)), self._next_tick()

    def _next_tick(self) -> Verbatim:
        return Verbatim(probes.next_tick(self.watch.layout))

    def synchronisation(
        self,
        instruction: Instruction,
        site: int | None,
        mask: str | None,
    ) -> Iterator[Statement]:
        """A barrier or warp synchronisation. ``mask``: who takes part (``participants``)."""
        plain, words = evolve(instruction, guard=None), instruction.modifiers
        if not self.watch.races:
            yield from self._together(instruction, mask)
            yield plain
            return
        if row_of(instruction).role not in (Role.BARRIER, Role.CLUSTER):
            yield plain
            yield from self.warp_met(mask)
            return
        if site is not None:
            yield Verbatim(probes.waits_at(site))
        if mask == "count":
            name = instruction.arguments[
                2 if "red" in words and "popc" in words else 1 if "red" in words else 0
            ]
            yield from self._arrives(name)
            yield plain
            if "arrive" not in words:
                yield from self._departs(name)
            return
        yield from self._together(instruction, mask)
        yield from self._asking(plain)
        yield Verbatim(probes.after_block_barrier(self.watch.layout, self.labels.new("bar")))

    def _asking(self, barrier: Instruction) -> Iterator[Statement]:
        """A barrier; where some begin calm intervals, it asks whether all threads are at one of these."""
        if not self.calm:
            yield barrier
        elif "sync" in barrier.modifiers and row_of(barrier).role is Role.BARRIER:
            begins = "eq" if barrier.index in self.calm else "ne"
            aligned = ".aligned" if "aligned" in barrier.modifiers else ""
            yield Verbatim(f"\tsetp.{begins}.u32 %clsp_calm, 0, 0;")
            opcode = f"{barrier.base}.red{aligned}.and.pred"
            yield evolve(barrier, opcode=opcode, operands=f"%clsp_calm, {barrier.operands}, %clsp_calm")
        else:
            yield barrier
            yield Verbatim("\tsetp.ne.u32 %clsp_calm, 0, 0;")

    @staticmethod
    def _together(barrier: Instruction, mask: str | None) -> Iterator[Verbatim]:
        """Before a barrier that takes the lanes of a warp one by one: they meet, for probes keep them apart.

        What ptxas 13.0 makes of it lets lanes that come apart through too early (seen on an H200).
        """
        one_by_one = row_of(barrier).name == "barrier" and "aligned" not in barrier.modifiers
        if mask == "all" and one_by_one:
            yield Verbatim("\tbar.warp.sync -1;")

    def warp_met(self, mask: str | None) -> Iterator[Statement]:
        """The lanes that take part have waited for one another."""
        if not self.watch.races:
            return
        lanes = "-1" if mask == "all" else str(mask)
        if self.watch.layout.clocks:
            yield Verbatim(probes.ticked_by(self.watch.layout, "clsp_lanes_met", *_STAMP, lanes))
            return
        if self.partial:
            yield Verbatim(probes.call_with_stamp("clsp_warp_met", lanes))
        yield self._next_tick()

    def hands_over(self, access: ProbedAccess) -> bool:
        """Whether threads of the block may synchronise through this access."""
        return access.site.atomic and self.watch.races and self.watch.layout.clocks

    def around(self, access: ProbedAccess) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
        """What an access that threads or blocks may synchronise with says before it is made, and after."""
        instruction, site = access.instruction, access.site
        if not self.hands_over(access):
            return (), ()
        blocks = self.watch.order and site.space is not Space.SHARED and site.scope is not Scope.BLOCK
        releases = bool({"release", "acq_rel"} & set(instruction.modifiers))
        where = Verbatim(_generic(access.address, access.types, site.space is Space.SHARED))
        tells, learns = (Verbatim(_tells(self.watch.layout, releases)),), (Verbatim(_learns()),)
        if blocks:
            learns = (Verbatim(probes.with_address("clsp_learn", "%clsp_held")), *learns)
        if site.mode is Mode.ATOMIC_READ:
            return (where, *(Verbatim(_NOT_HELD),) * blocks), learns
        quiet = Label("$" + self.labels.new("quiet"))
        updates = bool(results_of(instruction))  # and learns something of others
        peeked = without_change(access, quiet.name) if updates else ()
        behind = (*((quiet,) if peeked else ()), *learns) if updates else ()
        if not blocks:
            return (where, *peeked, *tells), behind
        holds, lets_go = self._holding(releases)
        return (where, *holds[:2], *peeked, *holds[2:], *tells), (*lets_go, *behind)

    def _holding(self, releases: bool) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
        """What goes around an access that tells other blocks: it is made alone, in turn with others there.

        Who has to wait goes around the loop, never past its end: lanes that wait for each other there would
        wait for one that they keep out. The first two statements are where it tries again.
        """
        again, busy, done = (Label("$" + self.labels.new(stem)) for stem in ("again", "busy", "done"))
        hold = Verbatim(probes.held_by("clsp_hold", "%clsp_at", str(int(releases))))
        tell = Verbatim(probes.with_address("clsp_tell", "%clsp_held"))
        let_go = Verbatim(probes.held_by("clsp_let_go", "%clsp_at", "%clsp_held"))
        rests = Verbatim(f"{probes.called('clsp_rest')} bra {again.name};")
        before = again, Verbatim(_NOT_HELD), hold, _where_held("eq", busy), tell
        return before, (let_go, busy, _where_held("ne", done), rests, done)


def _where_held(compared: str, label: Label) -> Verbatim:
    """A branch: ``eq``: where the object is busy; ``ne``: where the access is made."""
    return Verbatim(f"\t{{ .reg .pred %p; setp.{compared}.u32 %p, %clsp_held, 0; @%p bra {label.name}; }}")


_NOT_HELD = "\tmov.b32 %clsp_held, -1;"
_STAMP = ("%clsp_lo", "%clsp_hi")


def _tells(layout: ShadowLayout, releases: bool) -> str:
    """``releases``: without a fence, too."""
    return probes.ticked_by(layout, "clsp_hand_over", "%clsp_at", *_STAMP, str(int(releases)))


def _learns() -> str:
    return probes.with_address("clsp_take_over")


def _generic(address: AddressOperand, types: Mapping[str, str], shared: bool) -> str:
    """``%clsp_at``: the address, generic. ``shared``: it is one of shared memory."""
    if not shared:
        return f"\t{{ .reg .b64 %A; {generic_address(address, types)} mov.b64 %clsp_at, %A; }}"
    return (
        f"\t{{ .reg .b32 %a; {shared_address(address, types)} cvt.u64.u32 %clsp_at, %a;"
        " cvta.shared.u64 %clsp_at, %clsp_at; }"
    )


def without_change(access: ProbedAccess, label: str) -> tuple[Statement, ...]:
    """Look first: an exchange that would change nothing is made as a load, and goes on at ``label``.

    That is one of the orders in which the hardware may do it, and tells nobody anything: threads that wait
    for a lock would else release at every try. Adding nothing is the other way to look at a flag.
    """
    code = access.instruction
    kind = code.modifiers[-1]
    if kind not in ("b32", "b64", "u32", "u64", "s32", "s64"):
        return ()
    bits, words = kind[1:], set(code.modifiers)
    result, given = code.arguments[0], code.arguments[2]
    if words & {"add", "or"}:
        same = f"setp.eq.b{bits} %p, {given}, 0;"
    elif words & {"cas", "exch"}:
        same = f"setp.{'ne' if 'cas' in words else 'eq'}.b{bits} %p, %v, {given};"
    else:
        return ()
    kept = "" if result == "_" else f" mov.b{bits} {result}, %v;"
    go = label + "_go"
    return (
        Verbatim(f"\t{{ .reg .b{bits} %v; .reg .pred %p; @!%clsp_ok bra {go};"),
        Verbatim(f"\t@%clsp_ok ld.volatile.b{bits} %v, [%clsp_at]; {same} @!%p bra {go};{kept} bra {label};"),
        Verbatim(f"{go}: }}"),
    )
