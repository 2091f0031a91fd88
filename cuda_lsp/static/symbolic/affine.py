"""Pairs decided without a solver, by the arithmetic of their address difference.

The two threads' copies of both accesses are put into one formula (``Problem``); the term algebra
already refutes by residue classes (GCD test), disjoint ranges and contradicting guards while it is
built.  What this room adds is injectivity: an address that is a mixed-radix number of the thread's
coordinates differs between different threads (Banerjee-style independence tests; Wolfe 1996, ch. 7).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from attrs import define, evolve, field, frozen

from cuda_lsp.ir import conflicts
from cuda_lsp.ir.program import BID, STRETCH, TID, Axis
from cuda_lsp.model import WARP_SIZE, Space
from cuda_lsp.static.exact.threads import memory_base
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import Access, Fact
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

    def mapped(self, rewrite: Callable[[Term], Term]) -> Problem:
        """The problem with all its terms rewritten."""
        first, second = self.offsets
        return evolve(
            self, overlap=rewrite(self.overlap), guards=rewrite(self.guards),
            difference=rewrite(self.difference), offsets=(rewrite(first), rewrite(second)),
        )  # fmt: skip


def shared_level(relation: Relation) -> Level:
    """Symbols up to this level are one value for both threads."""
    if not relation.same_block:
        return Level.GRID
    return Level.WARP if relation.within is not None and relation.within <= WARP_SIZE else Level.BLOCK


def copy_of(term: Term, thread: int, shared: Level, memo: dict[Term, Term]) -> Term:
    """The term as thread 1 or 2 sees it: symbols that vary between the two get its number."""
    return t.renamed(term, lambda x: f"{x.args[0]}#{thread}" if x.args[1] > shared else None, memo)


@define(eq=False)
class Copies:
    """What terms are for each of two threads, and where accesses are: each worked out once.

    ``shared`` as in ``copy_of``; ``told``: what holds of all threads; ``invariants`` as in ``Summary``.
    ``rank``: of the block in its cluster, where memory of several of its blocks is meant.
    """

    shared: Level
    told: Term = t.TRUE
    invariants: Mapping[str, Fact] = field(factory=dict[str, Fact])
    rank: Term | None = None
    _memos: dict[int, dict[Term, Term]] = field(factory=lambda: {1: {}, 2: {}})
    _places: dict[Access, Term] = field(factory=dict[Access, Term])
    _guards: dict[Access, Term] = field(factory=dict[Access, Term])

    def of(self, term: Term, thread: int) -> Term:
        """``copy_of`` it."""
        return copy_of(term, thread, self.shared, self._memos[thread])

    def guard(self, access: Access, thread: int) -> Term:
        """When the access is reached, without choices that what is told has made."""
        known = self._guards.get(access)
        if known is None:
            conditions = [t.remaindered(t.chosen(c, self.told)) for c in t.conjuncts(access.guard)]
            conditions += self._kept(access)
            known = self._guards[access] = t.and_(*conditions)
        return self.of(known, thread)

    def _kept(self, access: Access) -> list[Term]:
        """How far variables of loops come that the access has to do with."""
        found: dict[Term, Term] = {}
        left = [access.offset, access.guard] if self.invariants else []
        while left:
            for part in [x for x in t.subterms(left.pop()) if x.op is Op.APPLY and x not in found]:
                fact = self.invariants.get(part.args[0])
                if fact is not None:
                    said = t.substitute(fact.fact, dict(zip(fact.formals, part.args[2], strict=True)))
                    found[part] = t.chosen(said, t.and_(access.guard, self.told))
                    left.append(said)
        return list(found.values())

    def place(self, access: Access, thread: int) -> Term:
        """The access's offset, as simple as its guard makes it, behind what the array begins with."""
        known = self._places.get(access)
        if known is None:
            guard = t.and_(access.guard, self.told)
            offset = access.offset
            if self.rank is not None and access.array.space is Space.SHARED:
                offset = t.add(offset, t.mul(self.rank, t.const(STRETCH)))
            place = t.chosen(t.pinned(offset, guard), guard)
            place = t.remaindered(t.recombined(t.unwrapped(place, guard)))
            known = self._places[access] = t.add(place, t.const(memory_base(access.array)[1]))
        return self.of(known, thread)


def problem(pair: Pair, axes: Mapping[Axis, Term], warp_size: int, copies: Copies) -> Problem:
    """The two-thread formula of a pair (without the launch's own constraints)."""
    first, second = pair.first, pair.second
    a, b = copies.place(first, 1), copies.place(second, 2)
    guards = t.and_(copies.guard(first, 1), copies.guard(second, 2))
    for separator in pair.separators:
        guards = t.and_(guards, _not_separated(separator, copies, axes, warp_size))
    guards = t.and_(guards, _other_lock(pair, copies))
    overlap = t.TRUE  # may alias: nothing is known of their distance
    if memory_base(first.array)[0] == memory_base(second.array)[0]:
        sizes = copies.of(first.size, 1), copies.of(second.size, 2)
        same_object, a, b = _in_one_object(a, b)
        guards = t.and_(guards, same_object)
        overlap = touching(a, b, sizes, words=first.word and second.word)
    same = False
    if first.value is not None and second.value is not None and first.mode is second.mode:
        same = first.size is second.size and copies.of(first.value, 1) is copies.of(second.value, 2)
    return Problem(pair, overlap, guards, t.sub(a, b), (a, b), same)


def _other_lock(pair: Pair, copies: Copies) -> Term:
    """No lock is held by both."""
    apart = t.TRUE
    for mine in pair.first.held:
        for theirs in pair.second.held:
            orders = conflicts.lock_orders(mine.scope, theirs.scope, pair.relation.same_block)
            one = mine.array is theirs.array and conflicts.seen_by_both(mine.array, pair.relation.same_block)
            if one and orders:
                same = t.eq(copies.of(mine.offset, 1), copies.of(theirs.offset, 2))
                apart = t.and_(apart, t.not_(same))
    return apart


def _in_one_object(a: Term, b: Term) -> tuple[Term, Term, Term]:
    """That both offsets are in one of the objects that a table of pointers leads to, and where in it."""
    (object_a, inside_a), (object_b, inside_b) = _object_of(a), _object_of(b)
    same = t.eq(object_a, object_b)
    if same is t.TRUE or _leaves_object(inside_a) or _leaves_object(inside_b):
        return t.TRUE, a, b
    return same, inside_a, inside_b


def _object_of(offset: Term) -> tuple[Term, Term]:
    """What chooses an object (``STRETCH``), and where in it."""
    sums = t.monomials(offset)
    chosen = {m: c for m, c in sums.items() if m and c % STRETCH == 0}
    chosen[()] = round(sums.get((), 0) / STRETCH) * STRETCH
    where = t.from_monomials(chosen)
    return where, t.sub(offset, where)


def _leaves_object(inside: Term) -> bool:
    """What is left has to do with other objects, too: a choice between them (``mine ? p : q``)."""
    return any(abs(c) >= STRETCH for x in t.subterms(inside) for c in t.monomials(x).values())


def touching(a: Term, b: Term, sizes: tuple[Term, Term], *, words: bool) -> Term:
    """Accesses of these sizes, at these offsets in bytes, have a byte in common.

    ``words``: both stand at multiples of their size.
    """
    size_a, size_b = sizes
    if size_a is size_b and size_a.is_const and size_a.value > 0:
        size = size_a.value
        if words:
            return t.eq(a, b)
        if all(c % size == 0 for m, c in t.monomials(t.sub(a, b)).items() if m) and _aligned(a, b, size):
            return t.eq(a, b)
    return t.and_(t.lt(a, t.add(b, size_b)), t.lt(b, t.add(a, size_a)))


def _aligned(a: Term, b: Term, size: int) -> bool:
    return t.monomials(t.sub(a, b)).get((), 0) % size == 0


def _not_separated(s: Separator, copies: Copies, axes: Mapping[Axis, Term], warp_size: int) -> Term:
    g1, g2 = copies.of(s.guard, 1), copies.of(s.guard, 2)
    if not s.both:
        return t.and_(t.not_(g1), t.not_(g2))
    if s.mask is None:
        return t.not_(t.and_(g1, g2))
    m1, m2 = copies.of(s.mask, 1), copies.of(s.mask, 2)
    if s.labels:
        return t.not_(t.and_(g1, g2, t.eq(m1, m2)))
    lanes = copies.of(axes[Axis.LANE], 1), copies.of(axes[Axis.LANE], 2)
    return t.not_(t.and_(g1, g2, *(names_lane(m, lane, warp_size) for lane in lanes for m in {m1, m2})))


def names_lane(mask: Term, lane: Term, warp_size: int) -> Term:
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
    if p.formula is t.FALSE or _of_one_thread(p, axes):
        return True
    if p.overlap is t.TRUE or p.overlap.op is not Op.EQ:
        return False
    if _injective(p.difference, p.pair.relation, axes):
        return True
    below = _below_multiples(p.overlap.args[0], p.guards)
    return any(rest is None or _injective(rest, p.pair.relation, axes) for rest in below)


def _of_one_thread(p: Problem, axes: Mapping[Axis, Term]) -> bool:
    """Both accesses are the business of one thread, ``threadIdx.x == 0``, of the block (or of one block)."""
    told_apart = [axes[axis] for axis in (TID if p.pair.relation.same_block else BID)]
    names = [x.args[0] for x in told_apart if not x.is_const]
    only = {x.args[0]: value for x, value in _only_values(p.guards) if x.op is Op.SYMBOL}
    return all(only.get(f"{name}#1", -1) == only.get(f"{name}#2", -2) for name in names)


def _only_values(guards: Term) -> Iterator[tuple[Term, int]]:
    """Terms that a condition lets have one value only: ``x == 3``, ``x <= 0`` where ``x`` is not negative."""
    for part in t.conjuncts(guards):
        if part.op not in (Op.EQ, Op.LE):
            continue
        sums = t.monomials(part.args[0])
        varying = [(m[0], c) for m, c in sums.items() if len(m) == 1]
        if len(varying) == 1 and len(sums) <= 2 and (len(sums) == 1 or () in sums):
            ((atom, factor),), constant = varying, sums.get((), 0)
            value = -constant // factor
            least = part.op is Op.LE and factor > 0 and atom.lo == value
            if least or (part.op is Op.EQ and value * factor == -constant):
                yield atom, value


def _below_multiples(difference: Term, guards: Term) -> Iterator[Term | None]:
    """What is 0 as well where the difference is: what it has besides multiples of one of its factors.

    ``1024*(k - l) + x - y`` is 0 where ``x - y`` is a multiple of 1024, and of those it may reach 0 alone.
    None: it reaches none (``x - y + 512``), as far as it goes where the ``guards`` hold.
    """
    sums = t.monomials(difference)
    constant = sums.get((), 0)
    for factor in sorted({abs(c) for m, c in sums.items() if m} - {1}):
        rest = {m: c for m, c in sums.items() if m and c % factor}
        low, high = t.interval_of(rest, {})
        if not (math.isfinite(low) and math.isfinite(high)):
            continue
        first = -(-(int(low) + constant) // factor) * factor
        if first <= high + constant and constant % factor:  # else it reaches 0, whatever the guards say
            low, high = t.interval_of(rest, _limits(guards, rest))
            first = -(-(int(low) + constant) // factor) * factor
        if first > high + constant:
            yield None
        elif first + factor > high + constant:
            yield t.add(t.from_monomials(rest), t.const(constant - first))


def _limits(guards: Term, sums: Iterable[t.Monomial]) -> dict[Term, tuple[float, float]]:
    """Intervals of what the sum is made of, where conditions compare that with numbers."""
    known = {atom: (atom.lo, atom.hi) for atoms in sums for atom in atoms}
    for condition in t.conjuncts(guards):
        about = condition.args[0].parts if condition.op is Op.LE else ()
        if len(about) == 1 and about[0] in known:
            (low, high), told = known[about[0]], t.bounds_of(condition).get(about[0], known[about[0]])
            known[about[0]] = max(low, told[0]), min(high, told[1])
    return known


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
