"""Words that threads claim by an atomic and nobody gives back: no locks, and each has one owner.

Where all that writes an array is compare-and-swaps that expect one constant, a word leaves it once and is
never given back; where all is exchanges that put one constant there, who gets back something else was first.
So nobody waits for a word who goes on to another one, or goes on anyway
(``for (e …) if (atomicCAS(&seen[col[e]], 0, 1) == 0) …``).

Plain stores may clear such words: before a thread claims one, or behind a barrier of all who claim (of the
block in shared memory). Who claims waits for no such store, for it comes to that barrier first; a store that
comes too late, beside claims of others, races with them and is told as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import Array, Expr, Stmt
from cuda_lsp.ir.types import Type
from cuda_lsp.ir.walk import children, destinations, inside, stripped
from cuda_lsp.model import Scope, Space
from cuda_lsp.static.slicing import Slice


def claimed_words(facts: Slice) -> tuple[frozenset[Array], Mapping[int, int]]:
    """Arrays of such words; by ``id()`` of claims whose words are cleared again: in how many loops that is.

    A word that is cleared again has one owner in one round of these loops, the claim's outermost ones.
    """
    if facts.wild:
        return frozenset(), {}
    expected: dict[Array, set[_Way | None]] = {}
    stored: set[Array] = set()
    for s in facts.statements:
        for array in _written(facts, s):
            if _clears(s):
                stored.add(array)
            elif not (isinstance(s, ir.Atomic) and s.only_reads):
                expected.setdefault(array, set()).add(_way(s))
    sole = (array for array, ways in expected.items() if len(ways) == 1 and None not in ways)
    claimed = {array for array in sole if array.may_alias is None}
    claimed -= {array for array in stored & claimed if _gives_back(facts, array, _meeting(facts, array))}
    rounds: dict[int, int] = {}
    for array in stored & claimed:
        if _gives_back(facts, array, ()):
            rounds |= dict(_cleared_in(facts, array, facts.kernel.body, 0))
    return frozenset(claimed), rounds


def _meeting(facts: Slice, array: Array) -> tuple[ir.BarrierScope, ...]:
    """The barriers of all who may claim a word of the array."""
    of_block = (ir.BarrierScope.BLOCK,) if array.space is Space.SHARED and array not in facts.reached else ()
    of_cluster = (ir.BarrierScope.CLUSTER,) if array.space is Space.SHARED else ()
    return (*of_block, *of_cluster, ir.BarrierScope.GRID)


def _written(facts: Slice, s: Stmt) -> set[Array]:
    return {array for pointer in destinations(s) for array in facts.roots(pointer)}


def _clears(s: Stmt) -> bool:
    return isinstance(s, ir.Store) and not s.volatile


_Way = tuple[AtomicOp, Expr, Type, Scope]
"""How words are claimed: the constant that is expected, or left; their type; how far the atomic reaches."""


def _way(s: Stmt) -> _Way | None:
    if not isinstance(s, ir.Atomic) or s.op not in (AtomicOp.CAS, AtomicOp.EXCH) or s.elementwise:
        return None
    constant = stripped(s.operands[0])
    return (s.op, constant, s.type, s.scope) if isinstance(constant, ir.Const) else None


def _cleared_in(
    facts: Slice, array: Array, statements: Sequence[Stmt], loops: int
) -> Iterator[tuple[int, int]]:
    """Claims by ``id()``, each with how many of the loops around it clear words as well."""
    for s in statements:
        if isinstance(s, ir.Atomic) and array in _written(facts, s):
            yield id(s), loops
        clears = isinstance(s, ir.Loop) and any(_clears(x) and array in _written(facts, x) for x in inside(s))
        for part in children(s):
            yield from _cleared_in(facts, array, part, loops + clears)


def _gives_back(facts: Slice, array: Array, begin: tuple[ir.BarrierScope, ...]) -> bool:
    """Whether a thread may store behind a claim, without a barrier of these scopes between."""
    order = _Order(facts, array, begin)
    order.after(facts.kernel.body, claimed=False)
    return order.behind


@define(eq=False)
class _Order:
    """Follows the statements of a kernel."""

    facts: Slice
    array: Array
    begin: tuple[ir.BarrierScope, ...]  # barriers that put a store in order
    behind: bool = False  # a store was seen there
    left: dict[int, bool] = field(factory=dict[int, bool])  # by label: who leaves to it may have claimed

    def after(self, statements: Sequence[Stmt], *, claimed: bool) -> bool:
        """Whether who comes to the end of statements may have claimed a word since the last barrier."""
        for s in statements:
            claimed = self._behind(s, claimed)
        return claimed

    def _behind(self, s: Stmt, claimed: bool) -> bool:
        match s:
            case ir.If():
                return self.after(s.then, claimed=claimed) | self.after(s.otherwise, claimed=claimed)
            case ir.Block():
                return self.after(s.body, claimed=claimed) | self.left.pop(s.label, False)
            case ir.Loop():
                for _ in range(2):  # what a round has claimed, the next one may store
                    claimed |= self.after(s.test, claimed=claimed)
                    claimed |= self.after(s.body, claimed=claimed) | self.left.pop(s.continue_label, False)
                    claimed |= self.after(s.step, claimed=claimed)
                return claimed | self.left.pop(s.label, False)
            case ir.Leave():
                self.left[s.label] = self.left.get(s.label, False) | claimed
                return False
            case ir.Barrier():
                ends = s.scope in self.begin and s.phase is ir.BarrierPhase.SYNC and s.assured
                return claimed and not ends
            case _ if self.array in _written(self.facts, s):
                self.behind |= claimed and _clears(s)
                return claimed or not _clears(s)
            case _:
                return claimed
