"""Probes of what orders accesses: barriers, mbarriers, waits for copies, fences, atomics of other blocks.

The detector keeps clocks (``detector/detector.cu``); here stands which instruction moves which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from cuda_lsp.dynamic.instrumentation import probes
from cuda_lsp.dynamic.instrumentation.probe_operands import ProbedAccess, address_of, shared_address
from cuda_lsp.dynamic.instrumentation.synchronisation import fences_blocks
from cuda_lsp.dynamic.instrumentation.watch import Labels, Watch
from cuda_lsp.dynamic.ptx.module import Instruction, Label, Statement, Verbatim
from cuda_lsp.model import Mode, Scope, Space


@frozen
class OrderProbes:
    """``partial``: some barrier or mask of the kernel leaves threads out."""

    watch: Watch
    labels: Labels
    partial: bool

    def followed(
        self, instruction: Instruction, types: Mapping[str, str], in_entry: bool
    ) -> tuple[Statement, ...]:
        """An instruction that orders others, with what tells the detector; empty: it does not."""
        words = {word.partition("__")[0] for word in instruction.modifiers}
        plain = evolve(instruction, guard=None)
        match instruction.base:
            case "ret" | "exit" if in_entry:
                return Verbatim(probes.leaves()), plain
            case "membar" | "fence" if self.watch.order and fences_blocks(instruction):
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
        if address is None or not (waits or words & {"arrive", "arrive_drop"}):
            return ()
        number = probes.barrier_number(shared_address(address, types))
        call = probes.call_with_stamp("clsp_depart" if waits else "clsp_arrive", "%a")
        told = Verbatim(f"\t{{ .reg .b32 %a; {number.strip()} {call.strip()} }}")
        if not waits:
            return told, Verbatim(probes.next_tick()), plain
        label = "$" + self.labels.new("early")
        skip = Verbatim(f"\t@!{plain.arguments[0]} bra {label};")
        return plain, skip, told, Verbatim(probes.next_tick()), Label(label)

    def synchronisation(
        self,
        instruction: Instruction,
        site: int | None,
        mask: str | None,
    ) -> Iterator[Statement]:
        """A barrier or warp synchronisation. ``mask``: who takes part (``participants``)."""
        plain = evolve(instruction, guard=None)
        if not self.watch.races:
            yield plain
            return
        words = instruction.modifiers
        block_barrier = instruction.base in ("bar", "barrier") and "warp" not in words
        if not block_barrier:
            yield plain
            yield from self.warp_met(mask)
            return
        if site is not None:
            yield Verbatim(probes.waits_at(site))
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
        yield Verbatim(probes.after_block_barrier(self.watch.layout, self.labels.new("bar")))

    def warp_met(self, mask: str | None) -> Iterator[Statement]:
        """The lanes that take part have waited for one another."""
        if not self.watch.races:
            return
        if self.partial:
            yield Verbatim(probes.call_with_stamp("clsp_warp_met", "-1" if mask == "all" else str(mask)))
        yield Verbatim(probes.next_tick())

    def around(self, access: ProbedAccess) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
        """What an access that other blocks may synchronise with says before it is made, and after."""
        instruction, site = access.instruction, access.site
        strong = site.mode is Mode.ATOMIC and site.scope is not Scope.BLOCK
        if not (strong and self.watch.order and self.watch.races) or site.space is Space.SHARED:
            return (), ()
        words = set(instruction.modifiers)
        where = Verbatim(f"\t{{ .reg .b64 %A; {access.generic_address} mov.b64 %clsp_at, %A; }}")
        releases = int(bool(words & {"release", "acq_rel"}))
        tell, learn = probes.with_address("clsp_tell", releases), probes.with_address("clsp_learn")
        tells = (where,) if instruction.base == "ld" else (where, Verbatim(tell))
        return tells, () if instruction.base in ("st", "red") else (Verbatim(learn),)
