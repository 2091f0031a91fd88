"""Barrier intervals in which nothing writes to shared memory: what is read there races with nothing.

Which barriers such intervals begin at, the control flow says. Threads may wait at different barriers at once,
so the barrier itself asks whether all of them are at one of these; then reads need no more than their bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from cuda_lsp.dynamic.instrumentation.synchronisation import participants
from cuda_lsp.dynamic.ptx.module import Instruction, Label, PtxFunction, Statement, TargetList
from cuda_lsp.dynamic.ptx.opcodes import Role, row_of
from cuda_lsp.dynamic.runs import PtxSite, SiteKind
from cuda_lsp.model import Mode

_Place = Callable[[int], tuple[int, PtxSite] | None]
_KNOWN = (
    Role.VALUE, Role.JUMP, Role.LEAVE, Role.TRAP, Role.ACCESS, Role.FENCE, Role.BARRIER, Role.WARP_BARRIER,
    Role.EXCHANGE, Role.PRODUCT, Role.MATRIX, Role.HINT, Role.IMAGE,
)  # fmt: skip
_IN_A_LOOP = 8  # times that a read there counts


@frozen
class Calm:
    """Instructions of one function: ``barriers`` that begin such intervals, and ``reads`` in these."""

    barriers: frozenset[int] = frozenset()
    reads: frozenset[int] = frozenset()


def calm_intervals(function: PtxFunction, place: _Place, in_shared: Callable[[int], bool]) -> Calm:
    """``in_shared``: whether an access (its site's number) may reach shared memory.

    Nothing where there is little to gain, or something in the function that may write there by itself.
    """
    code = [s for s in function.body or () if isinstance(s, Instruction)]
    if any(row_of(i).role not in _KNOWN for i in code):
        return Calm()
    flow = _Flow.of(function.body or ())
    starts = [k for k, i in enumerate(flow.code) if _is_full(i)]
    barriers, reads = set[int](), dict[int, int]()
    for start in starts:
        reached = flow.interval(start)
        touched = [(k, site) for k in reached if (site := _shared(flow.code[k], place, in_shared))]
        if any(site.mode is None or site.mode.writes for _, site in touched):
            continue
        found = {flow.code[k].index: flow.weight(k) for k, site in touched if site.mode is Mode.READ}
        if found:
            barriers.add(flow.code[start].index)
            reads |= found
    worth = sum(reads.values()) >= len(starts)
    return Calm(frozenset(barriers), frozenset(reads)) if worth else Calm()


def _shared(code: Instruction, place: _Place, in_shared: Callable[[int], bool]) -> PtxSite | None:
    """The site of an access that may reach shared memory."""
    found = place(code.index)
    if found is None or found[1].kind not in (SiteKind.ACCESS, SiteKind.MATRIX):
        return None
    return found[1] if in_shared(found[0]) else None


def _is_full(code: Instruction) -> bool:
    """A barrier of all threads, as ``bar.sync 0``."""
    return (
        row_of(code).role is Role.BARRIER
        and code.guard is None
        and "sync" in code.modifiers
        and participants(code, {}) == "all"
    )


@frozen
class _Flow:
    """Which instruction may follow which, by their place in the function."""

    code: Sequence[Instruction]
    next: Sequence[tuple[int, ...]]

    @classmethod
    def of(cls, body: Sequence[Statement]) -> _Flow:
        code: list[Instruction] = []
        labels: dict[str, int] = {}
        tables: dict[str, tuple[str, ...]] = {}
        for statement in body:
            match statement:
                case Label(name):
                    labels[name] = len(code)
                case TargetList(name, _, targets):
                    tables[name] = targets
                case Instruction():
                    code.append(statement)
                case _:
                    pass
        follows = [tuple(_after(k, i, labels, tables)) for k, i in enumerate(code)]
        return cls(code, [tuple(n for n in after if n < len(code)) for after in follows])

    def interval(self, start: int) -> set[int]:
        """What may be executed between a barrier and the next one of all threads."""
        reached: set[int] = set()
        waiting = list(self.next[start])
        while waiting:
            k = waiting.pop()
            if k in reached or (row_of(self.code[k]).role is Role.BARRIER and _ends(self.code[k])):
                continue
            reached.add(k)
            waiting.extend(self.next[k])
        return reached

    def weight(self, k: int) -> int:
        """How often an access counts: in a loop without barriers more often."""
        return _IN_A_LOOP if k in self.interval(k) else 1


def _ends(code: Instruction) -> bool:
    return code.guard is None and participants(code, {}) == "all"


def _after(
    k: int, code: Instruction, labels: Mapping[str, int], tables: Mapping[str, tuple[str, ...]]
) -> list[int]:
    row = row_of(code)
    goes_on = [k + 1] if code.guard is not None or not row.ends_block else []
    if row.role is not Role.JUMP:
        return goes_on
    names = [code.arguments[-1]] if code.base == "bra" else tables.get(code.arguments[-1], ())
    return [*(labels[name] for name in names if name in labels), *goes_on]
