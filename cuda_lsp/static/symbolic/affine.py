"""Pairs decided without a solver, by the arithmetic of their address difference.

The two threads' copies of both accesses are put into one formula (``Problem``); the term algebra
already refutes by residue classes (GCD test), disjoint ranges and contradicting guards while it is
built.  What this room adds is injectivity: an address that is a mixed-radix number of the thread's
coordinates differs between different threads (Banerjee-style independence tests; Wolfe 1996, ch. 7).
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from cuda_lsp.ir import conflicts
from cuda_lsp.ir.program import BID, TID, Axis
from cuda_lsp.model import WARP_SIZE
from cuda_lsp.static.exact.threads import memory_base
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import Access
from cuda_lsp.static.symbolic.intervals import Pair, Relation, Separator
from cuda_lsp.static.symbolic.terms import Level, Op, Term


@frozen(eq=False)
class Problem:
    """One formula over two threads: satisfiable when the pair races.

    ``difference``: first minus second byte offset. ``guards``: both accesses' guards and separators.
    """

    pair: Pair
    overlap: Term
    guards: Term
    difference: Term
    offsets: tuple[Term, Term]
    same_value: bool

    @property
    def formula(self) -> Term:
        """Satisfiable when the two threads race."""
        return t.and_(self.guards, self.overlap)


def shared_level(relation: Relation) -> Level:
    """Symbols up to this level are one value for both threads."""
    if not relation.same_block:
        return Level.GRID
    return Level.WARP if relation.within is not None and relation.within <= WARP_SIZE else Level.BLOCK


def copy_of(term: Term, thread: int, shared: Level, memo: dict[Term, Term]) -> Term:
    """The term as thread 1 or 2 sees it: symbols that vary between the two get its number."""
    return t.renamed(term, lambda x: f"{x.args[0]}#{thread}" if x.args[1] > shared else None, memo)


def problem(pair: Pair, axes: Mapping[Axis, Term], warp_size: int) -> Problem:
    """The two-thread formula of a pair (without the launch's own constraints)."""
    shared = shared_level(pair.relation)
    one: dict[Term, Term] = {}
    two: dict[Term, Term] = {}
    first, second = pair.first, pair.second
    a = t.add(copy_of(_place(first), 1, shared, one), t.const(memory_base(first.array)[1]))
    b = t.add(copy_of(_place(second), 2, shared, two), t.const(memory_base(second.array)[1]))
    guards = t.and_(copy_of(first.guard, 1, shared, one), copy_of(second.guard, 2, shared, two))
    for separator in pair.separators:
        guards = t.and_(guards, _not_separated(separator, shared, one, two, axes, warp_size))
    guards = t.and_(guards, _other_lock(pair, shared, one, two))
    overlap = _overlap(first, second, a, b, shared, one, two)
    same = False
    if first.value is not None and second.value is not None and first.mode is second.mode:
        same = copy_of(first.value, 1, shared, one) is copy_of(second.value, 2, shared, two)
    return Problem(pair, overlap, guards, t.sub(a, b), (a, b), same)


def _other_lock(pair: Pair, shared: Level, one: dict[Term, Term], two: dict[Term, Term]) -> Term:
    """No lock is held by both."""
    apart = t.TRUE
    for mine in pair.first.held:
        for theirs in pair.second.held:
            orders = conflicts.lock_orders(mine.scope, theirs.scope, pair.relation.same_block)
            if mine.array is theirs.array and orders:
                same = t.eq(copy_of(mine.offset, 1, shared, one), copy_of(theirs.offset, 2, shared, two))
                apart = t.and_(apart, t.not_(same))
    return apart


def _place(access: Access) -> Term:
    """The access's offset, as simple as its guard makes it."""
    return t.recombined(t.unwrapped(t.pinned(access.offset, access.guard), access.guard))


def _overlap(
    first: Access,
    second: Access,
    a: Term,
    b: Term,
    shared: Level,
    one: dict[Term, Term],
    two: dict[Term, Term],
) -> Term:
    if memory_base(first.array)[0] != memory_base(second.array)[0]:
        return t.TRUE  # may alias: nothing is known of their distance
    size_a, size_b = copy_of(first.size, 1, shared, one), copy_of(second.size, 2, shared, two)
    if size_a is size_b and size_a.is_const and size_a.value > 0:
        size = size_a.value
        if first.word and second.word:
            return t.eq(a, b)
        if all(c % size == 0 for m, c in t.monomials(t.sub(a, b)).items() if m) and _aligned(a, b, size):
            return t.eq(a, b)
    return t.and_(t.lt(a, t.add(b, size_b)), t.lt(b, t.add(a, size_a)))


def _aligned(a: Term, b: Term, size: int) -> bool:
    return t.monomials(t.sub(a, b)).get((), 0) % size == 0


def _not_separated(
    s: Separator, shared: Level, one: dict[Term, Term], two: dict[Term, Term],
    axes: Mapping[Axis, Term], warp_size: int,
) -> Term:  # fmt: skip
    g1, g2 = copy_of(s.guard, 1, shared, one), copy_of(s.guard, 2, shared, two)
    if not s.both:
        return t.and_(t.not_(g1), t.not_(g2))
    if s.mask is None:
        return t.not_(t.and_(g1, g2))
    m1, m2 = copy_of(s.mask, 1, shared, one), copy_of(s.mask, 2, shared, two)
    if s.labels:
        return t.not_(t.and_(g1, g2, t.eq(m1, m2)))
    lanes = copy_of(axes[Axis.LANE], 1, shared, one), copy_of(axes[Axis.LANE], 2, shared, two)
    return t.not_(t.and_(g1, g2, *(_inside(lane, m, warp_size) for lane in lanes for m in {m1, m2})))


def _inside(lane: Term, mask: Term, warp_size: int) -> Term:
    """The mask has the lane's bit."""
    if mask.is_const:
        return t.or_(*(t.eq(lane, t.const(i)) for i in range(warp_size) if mask.value >> i & 1))
    return t.eq(t.bit_and(t.shift_right(mask, lane), t.ONE), t.ONE)


def linear_thread(axes: Mapping[Axis, Term]) -> Term:
    """threadIdx in x-fastest linear order."""
    x, y, z = (axes[axis] for axis in TID)
    return t.add(x, t.mul(axes[Axis.BDIM_X], t.add(y, t.mul(axes[Axis.BDIM_Y], z))))


def refuted(p: Problem, axes: Mapping[Axis, Term]) -> bool:
    """True: no two related threads can race here. False: not decided by these tests."""
    if p.formula is t.FALSE:
        return True
    if p.overlap is t.TRUE or p.overlap.op is not Op.EQ:
        return False
    return _injective(p.difference, p.pair.relation, axes)


def _injective(difference: Term, relation: Relation, axes: Mapping[Axis, Term]) -> bool:
    """The difference is a mixed-radix sum of coordinate differences that cover what tells threads apart."""
    sums = dict(t.monomials(difference))
    names = {atoms[0].args[0]: (atoms[0], c) for atoms, c in sums.items() if len(atoms) == 1
             and atoms[0].op is Op.SYMBOL}  # fmt: skip
    if len(names) != len(sums):
        return False
    digits: dict[str, tuple[int, float]] = {}
    for name, (atom, factor) in names.items():
        if not name.endswith("#1"):
            continue
        base = name[:-2]
        other = names.get(f"{base}#2")
        if other is None or other[1] != -factor:
            return False
        digits[base] = (abs(factor), atom.hi - atom.lo)
    if 2 * len(digits) != len(names):
        return False
    reach = 0.0
    for factor, width in sorted(digits.values()):
        if factor <= reach:
            return False
        reach += factor * width
    needed = BID if not relation.same_block else TID
    return all(axes[axis].is_const or axis.value in digits for axis in needed)
