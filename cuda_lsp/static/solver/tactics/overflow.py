"""Indices of 32 bits that products of several sizes may overflow: that they do not is taken for granted.

``batch * heads * rows * columns`` overflows for some sizes in every kernel, whose arrays have more elements
then than an index can tell apart; so does ``column * rows`` in a loop over columns. Sums of products of what
is not negative, that is; differences and hashes wrap where they are meant to, and a grid that the source
tells is as large as it is. Where a launch is made for a size, the number is a size still: ``65536 * b`` is
``n * n * b`` for an ``n`` of 256.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from cuda_lsp.ir.program import GDIM
from cuda_lsp.model import LaunchSource
from cuda_lsp.static import budgets
from cuda_lsp.static.solver.query import Query, is_linear
from cuda_lsp.static.solver.tactics import digits, rows, threads
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.rounds import ROUND
from cuda_lsp.static.symbolic.sizes import SHARED, side
from cuda_lsp.static.symbolic.terms import Op, Term
from cuda_lsp.static.symbolic.wraps import UNTOLD_BLOCKS, is_told

_PROOFS = (threads.apart, digits.differ, digits.differ_in_rows, rows.apart)
_TAKEN = "32-bit indices do not overflow"


def none(pair: OpenPair) -> Proved | None:
    """The pair with what such indices are where nothing overflows, proved by what reads addresses."""
    within = _in_range(pair)
    if within is None:
        return None
    answer = first_answer(_PROOFS, evolve(pair, p=within))
    return Proved((_TAKEN, *answer.assumptions)) if isinstance(answer, Proved) else None


def _in_range(pair: OpenPair) -> Problem | None:
    """The pair with what such indices are where nothing overflows; None: it has none, or does not matter."""
    p = pair.p
    parts = list(t.subterms(p.overlap))
    if pair.launch is None or not any(x.op is Op.WRAP for x in parts):
        return None
    if any(x.op is Op.ITE and side(x.args[0]) == SHARED for x in parts):
        return None  # each of its layouts is looked at by itself
    memo: dict[Term, Term] = {}

    def plain(term: Term) -> Term:
        return t.replace(term, lambda part: _index(part, pair), memo)

    within = p.mapped(plain)
    return within if within.overlap is not p.overlap else None


def _index(part: Term, pair: OpenPair) -> Term | None:
    """What a 32-bit number is before it is cut, if only products of several sizes may be too large for it."""
    if part.op is not Op.WRAP or part.args[1] != 32:
        return None
    query = pair.query
    index = t.replace(part.args[0], lambda inner: _index(inner, pair), {})
    fixed, products, chosen = dict[t.Monomial, int](), False, _chosen(query)
    for atoms, factor in t.monomials(index).items():
        if factor < 0 and (times := _times_natural(index, atoms, pair)) is not None:
            products = products or any(_is_size(x, query) or _is_counted(x) for m in times for x in m)
            continue
        inside, rest = _taken_out(factor, [] if any(map(is_told, atoms)) else chosen)
        if not 0 <= rest < budgets.HASH_FACTOR or not all(_is_natural(atom, pair) for atom in atoms):
            return None
        several = inside + sum(_is_size(atom, query) or _is_counted(atom) for atom in atoms) > 1
        several = several and (inside > 0 or any(_is_size(atom, query) for atom in atoms))
        products = products or several
        fixed |= {} if several else {atoms: factor}
    told = all(is_told(x) or x.hi < UNTOLD_BLOCKS for atoms in fixed for x in atoms if not _is_size(x, query))
    known = t.from_monomials({m: c for m, c in fixed.items() if not any(_is_size(x, query) for x in m)})
    return index if products and (known.hi <= part.hi or not told) else None


def _times_natural(index: Term, atoms: t.Monomial, pair: OpenPair) -> Mapping[t.Monomial, int] | None:
    """What its sizes multiply, if that is not negative: ``(n - 1 - k) * w * h``, ``k`` below ``n``."""
    sizes = tuple(x for x in atoms if _is_size(x, pair.query))
    rests = ((t.without(m, sizes), c) for m, c in t.monomials(index).items())
    number = {m: c for m, c in rests if m is not None}
    whole = t.from_monomials(number)
    natural = sizes and is_linear(whole) and pair.excludes(pair.p.guards, t.lt(whole, t.ZERO))
    return number if natural else None


def _chosen(query: Query) -> list[int]:
    """Sizes, largest first, that are numbers because the launch was made for them: others have others."""
    launch = query.where.launch
    if launch is None or launch.source is not LaunchSource.SIZES:
        return []
    others = [x.arguments for x in query.kernel.launches if x.site == launch.site and x.block != launch.block]
    made = launch.arguments.items()
    sizes = {n for name, n in made if n > 1 and any(x.get(name) != n for x in others)}
    return sorted(sizes, reverse=True)


def _taken_out(factor: int, sizes: list[int]) -> tuple[int, int]:
    """How many of the sizes a factor is a product of, and what else it has."""
    count = 0
    for size in sizes:
        while factor > 1 and factor % size == 0:
            factor, count = factor // size, count + 1
    return count, factor


def _is_size(atom: Term, query: Query) -> bool:
    """A parameter, an extent of a grid that nothing tells, or a quotient of such."""
    if atom.op is Op.SYMBOL:
        return atom.args[0] in query.where.free or atom in (query.where.axes[axis] for axis in GDIM)
    if atom.op not in (Op.DIV, Op.FLOOR_DIV):
        return False
    leaves = {x for part in atom.parts for x in t.subterms(part) if not x.parts and not x.is_const}
    return bool(leaves) and all(_is_size(x, query) for x in leaves)


def _is_counted(atom: Term) -> bool:
    """Rounds of a loop are part of it: as large as a size lets it run."""
    return any(x.op is Op.SYMBOL and ROUND.fullmatch(x.args[0]) for x in t.subterms(atom))


def _is_natural(atom: Term, pair: OpenPair) -> bool:
    """Not negative where sizes are not."""
    if atom.lo >= 0 or (atom.op is Op.SYMBOL and _is_size(atom, pair.query)):
        return True
    if atom.op is Op.SUM:
        return all(c >= 0 and all(_is_natural(x, pair) for x in m) for m, c in t.monomials(atom).items())
    if atom.op is Op.ITE:
        return all(_is_natural(x, pair) for x in atom.args[1:])
    if atom.op not in (Op.DIV, Op.REM, Op.FLOOR_DIV):
        return False
    if all(_is_natural(x, pair) for x in atom.parts):
        return True
    number, *divisors = atom.args
    known = all(x.lo > 0 for x in divisors if isinstance(x, Term))
    return known and pair.excludes(pair.p.guards, t.lt(number, t.ZERO))  # (n - 1) / 4 below a guard of n
