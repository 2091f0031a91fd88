"""Polynomials as rows and columns: a pitch that multiplies something of each thread, known or a parameter.

How to take ``pitch*row + column`` apart once a pitch is chosen, and which pitches there are to choose from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from cuda_lsp.ir.program import BDIM, GDIM, Var
from cuda_lsp.static import budgets
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.sizes import side
from cuda_lsp.static.symbolic.terms import Level, Op, Term

_GRID = {axis.value for axis in (*BDIM, *GDIM)}
_QUOTIENTS = (Op.DIV, Op.FLOOR_DIV)
_OUTER_AXES = (
    frozenset({"threadIdx.y", "blockIdx.y", "threadIdx.z", "blockIdx.z"}),
    frozenset({"threadIdx.z", "blockIdx.z"}),
)


def split(term: Term, in_row: Callable[[t.Monomial], bool]) -> tuple[Term, Term]:
    """The monomials that are of the row, and the others."""
    row = {m: c for m, c in t.monomials(term).items() if in_row(m)}
    return t.from_monomials(row), t.sub(term, t.from_monomials(row))


def divide(term: Term, pitch: Term) -> tuple[Term, Term]:
    """``(row, column)`` with ``term == pitch*row + column``."""
    row: dict[t.Monomial, int] = {}
    column: dict[t.Monomial, int] = {}
    for atoms, factor in t.monomials(term).items():
        rest = t.without(atoms, (pitch,))
        if rest is not None:
            row[rest] = factor
        else:
            column[atoms] = factor
    return t.from_monomials(row), t.from_monomials(column)


def vectors(a: Term, b: Term, free: Mapping[str, Var]) -> tuple[Term, Term, int, tuple[Term, ...]] | None:
    """Of ``x / 4`` and ``y / 4``, vectors in rows that are counted in elements: ``x``, ``y`` and 4.

    And the parameters that must not be negative for ``x`` and ``y`` not to be: below 0 a quotient of C is
    that of more numbers.
    """
    found = [_quotient(x) for x in (a, b)]
    if None in found or t.sub(a, b) is t.ZERO:
        return None
    (one, by, times, rest), (other, *same) = (x for x in found if x is not None)
    needed = [_not_negative(x, free) for x in (one, other)]
    if same != [by, times, rest] or None in needed:
        return None
    return one, other, by, tuple(dict.fromkeys(x for each in needed if each is not None for x in each))


def _quotient(term: Term) -> tuple[Term, int, int, Term] | None:
    """What is divided by a number, that number, a factor, and what is added, where that is all."""
    whole = [(m[0], c) for m, c in t.monomials(term).items() if len(m) == 1 and m[0].op in _QUOTIENTS]
    if len(whole) != 1:
        return None
    (atom, times), *_ = whole
    number, by = atom.args
    step = by if isinstance(by, int) else int(by.value) if by.is_const else 0
    rest = t.sub(term, t.from_monomials({(atom,): times}))
    return (number, step, times, rest) if step > 1 and not any(map(side, t.subterms(rest))) else None


def _not_negative(term: Term, free: Mapping[str, Var]) -> list[Term] | None:
    """The parameters that must not be negative for a sum not to be; None: that is not enough."""
    found: list[Term] = []
    for atoms, factor in t.monomials(term).items() if term.lo < 0 else ():
        unknown = [x for x in atoms if x.lo < 0]
        if factor < 0 or not all(x.op is Op.SYMBOL and x.args[0] in free for x in unknown):
            return None
        found += unknown
    return found


def sheared(pitch: Term, row: Term, column: Term) -> tuple[Term, tuple[Term, Term]] | None:
    """Of ``(n + 1)*i + x`` and ``(256 - 2*n)*i + x``, where ``i`` is in the row and in the column.

    The width of rows; row and column.
    """
    times = t.content(row)
    factors = {_factor_of(m, c, times, column) for m, c in t.monomials(row).items() if varies(m)}
    inside = factors.pop() if len(factors) == 1 else None
    if inside is None or inside is t.ZERO:
        return None
    if inside.is_const and inside.value <= -budgets.LEAST_KNOWN_WIDTH * times:
        # a known width less a parameter
        times, inside = -times, t.scale(inside, -1)
    coordinate = reduced(row, times)
    rest = t.sub(column, t.mul(coordinate, inside))
    return t.add(t.scale(pitch, times), inside), (coordinate, rest)


def _factor_of(atoms: t.Monomial, count: int, times: int, column: Term) -> Term | None:
    """What the column has ``atoms`` multiplied with, where the row has them ``count / times`` times."""
    found: dict[t.Monomial, int] = {}
    for monomial, factor in t.monomials(column).items():
        rest = t.without(monomial, atoms)
        if rest is not None and not varies(rest):
            found[rest] = factor * times
    if any(factor % count for factor in found.values()):
        return None
    return t.from_monomials({m: factor // count for m, factor in found.items()})


def constant(a: Term, b: Term) -> tuple[int, tuple[Term, Term], tuple[Term, Term]] | None:
    """A constant pitch: the outer axes' coefficients are multiples of more than any column's."""
    for outer in _OUTER_AXES:

        def is_outer(atoms: t.Monomial, outer: frozenset[str] = outer) -> bool:
            return any(p.op is Op.SYMBOL and p.args[0].split("#")[0] in outer for p in t.subterms(*atoms))

        (row_a, column_a), (row_b, column_b) = split(a, is_outer), split(b, is_outer)
        size = math.gcd(t.content(row_a), t.content(row_b))
        varying = [c for x in (column_a, column_b) for m, c in t.monomials(x).items() if m]
        if size > 1 and varying and max(abs(c) for c in varying) < size:
            return size, _whole_rows(row_a, column_a, size), _whole_rows(row_b, column_b, size)
    return None


def _whole_rows(row: Term, column: Term, size: int) -> tuple[Term, Term]:
    """In units of rows; the constant of a column holds no whole rows: ``(y + 1)*size`` is a row."""
    constant = t.monomials(column).get((), 0)
    rows = (2 * constant + size) // (2 * size)
    return t.add(reduced(row, size), t.const(rows)), t.sub(column, t.const(rows * size))


def reduced(row: Term, size: int) -> Term:
    """``row / size``, which divides every coefficient."""
    return t.from_monomials({m: c // size for m, c in t.monomials(row).items()})


def _of_a_block(atom: Term) -> bool:
    return t.level_of(atom) >= Level.BLOCK


def symbols(a: Term, b: Term, free: Mapping[str, Var], *, uniform: bool) -> list[Term]:
    """Parameters and launch extents that multiply something of each thread, alike in both addresses.

    Where none does so, something of their block, if that tells the two apart. ``uniform``: in one of the two
    it may multiply something that all threads share.
    """

    def factors(of: Callable[[Term], object]) -> Iterator[dict[Term, None]]:
        for term in (a, b):
            products = (m for m in t.monomials(term) if len(m) > 1 and any(map(of, m)))
            named = (x for m in products for x in m if x.op is Op.SYMBOL)
            yield {x: None for x in named if x.args[0] in free or x.args[0] in _GRID}

    def of_both(of: Callable[[Term], object]) -> list[Term]:
        first, second = factors(of)
        return [x for x in first if x in second]

    common, apart = of_both(side), set(t.subterms(t.sub(a, b)))
    if not common:
        common = [x for x in of_both(_of_a_block) if x in apart]
    if not common and uniform:
        either = {x: None for found in factors(_of_a_block) for x in found}
        every = of_both(lambda x: True)
        common = [x for x in either if x in every and x in apart]
    # A block's extent bounds the innermost column, a parameter's rows may hold several blocks; what is left
    # over of a division lies in the innermost rows of its divisor.
    divisors = {part.args[1] for part in t.subterms(a, b) if part.op is Op.REM}
    return sorted(common, key=lambda x: (x.args[0] not in _GRID, x in divisors, x.args[0]))


def component(a: Term, b: Term, free: Mapping[str, Var]) -> Term | None:
    """A structure of arrays, ``i + c*count``: the parameter that tells two components apart."""
    sums = t.monomials(t.sub(a, b))
    named = (m[0] for m in sums if len(m) == 1 and m[0].op is Op.SYMBOL and m[0].args[0] in free)
    return next(named, None)


def beside_the_first_row(a: Term, b: Term, free: Mapping[str, Var]) -> Term | None:
    """The parameter of whose rows one address names the first, ``x``, and the other any, ``y*width + x``."""
    sums = [m for x in (a, b) for m in t.monomials(x) if len(m) == 2 and any(map(side, m))]
    named = {x: None for m in sums for x in m if x.op is Op.SYMBOL and x.args[0] in free}
    rows = [[divide(x, pitch)[0] for x in (a, b)] for pitch in named]
    return next((x for x, both in zip(named, rows, strict=True) if t.ZERO in both), None)


def varies(atoms: t.Monomial) -> bool:
    """Two threads of the grid may have different values of the product."""
    return any(map(_of_a_block, atoms))
