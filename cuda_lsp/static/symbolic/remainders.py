"""Remainders that kernels write out: ``x - d*(x / d)`` is ``x % d``, ``x + 7*d*(x / d)`` has it in 8 rows.

The inverse of what ``quotients`` puts together: what is left of an index when its rows are taken off is
bounded by their width as a remainder, and by nothing as a difference. C's quotient truncates: the identity
holds for every ``d`` that is not 0, whatever the sign of ``x``.
"""

from __future__ import annotations

from cuda_lsp.static import budgets
from cuda_lsp.static.symbolic.core import Op, Term, add, const, from_monomials, monomials, mul, scale, sub
from cuda_lsp.static.symbolic.integers import floor_mod, remainder
from cuda_lsp.static.symbolic.rewrite import rebuild


def remaindered(term: Term, memo: dict[Term, Term] | None = None) -> Term:
    """The same number with every ``c*x - c*d*(x / d)`` of its sums as ``c*(x % d)``."""
    done = {} if memo is None else memo
    known = done.get(term)
    if known is None:
        parts = tuple(remaindered(part, done) for part in term.parts)
        same = all(x is y for x, y in zip(parts, term.parts, strict=True))
        known = term if same else rebuild(term, parts)
        for _ in range(budgets.MOST_REMAINDERS):
            better = _one_step(known) if known.op is Op.SUM else None
            if better is None:
                break
            known = better
        done[term] = known
    return known


def _one_step(term: Term) -> Term | None:
    sums = monomials(term)
    for atoms, factor in sums.items():
        for atom in atoms:
            if atom.op not in (Op.DIV, Op.FLOOR_DIV):
                continue
            if factor >= 0:
                better = _in_more_rows(term, atoms, atom) if atom.op is Op.DIV else None
                if better is not None:
                    return better
                continue
            x, d = atom.args[0], atom.args[1] if atom.op is Op.DIV else const(atom.args[1])
            whole = from_monomials({atoms: factor})
            rest = _times_of(whole, mul(atom, d))
            if rest is not None and _is_part(mul(rest, x), term):
                left = remainder(x, d) if atom.op is Op.DIV else floor_mod(x, d.value)
                return add(sub(term, add(whole, mul(rest, x))), mul(rest, left))
    return None


def _in_more_rows(term: Term, atoms: tuple[Term, ...], quotient: Term) -> Term | None:
    """``c*x + k*c*d*(x / d)`` as ``c*(x % d) + (k + 1)*c*d*(x / d)``: what is left of ``x`` is bounded so."""
    x, d = quotient.args
    rest = _without(atoms, mul(d, quotient))
    if rest is None or not monomials(x):
        return None
    sums = monomials(term)
    monomial, by = next(iter(monomials(mul(rest, x)).items()))
    times = sums.get(monomial, 0) // by
    once = scale(rest, times)
    if times < 1 or not _is_part(mul(once, x), term):
        return None
    split = add(mul(once, mul(d, quotient)), mul(once, remainder(x, d)))
    return add(sub(term, mul(once, x)), split)


def _without(atoms: tuple[Term, ...], taken: Term) -> Term | None:
    """The product of what is left of these atoms."""
    if len(monomials(taken)) != 1:
        return None
    ((inner, _),) = monomials(taken).items()
    left = list(atoms)
    for atom in inner:
        if atom not in left:
            return None
        left.remove(atom)
    return from_monomials({tuple(left): 1})


def _is_part(part: Term, term: Term) -> bool:
    """The sum's monomials are some of the term's."""
    sums, own = monomials(term), monomials(part)
    return bool(own) and all(sums.get(m) == c for m, c in own.items())


def _times_of(whole: Term, taken: Term) -> Term | None:
    """``c`` where the whole is ``-c * taken``, a monomial."""
    ((atoms, factor),) = monomials(whole).items()
    left = _without(atoms, taken)
    if left is None:
        return None
    by = next(iter(monomials(taken).values()))
    return scale(left, -factor // by) if factor % by == 0 else None
