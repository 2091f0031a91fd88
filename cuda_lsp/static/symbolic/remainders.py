"""Remainders that kernels write out: ``x - d*(x / d)`` is ``x % d``.

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
            if atom.op not in (Op.DIV, Op.FLOOR_DIV) or factor >= 0:
                continue
            x, d = atom.args[0], atom.args[1] if atom.op is Op.DIV else const(atom.args[1])
            whole = from_monomials({atoms: factor})
            rest = _times_of(whole, mul(atom, d))
            if rest is not None and _is_part(mul(rest, x), term):
                left = remainder(x, d) if atom.op is Op.DIV else floor_mod(x, d.value)
                return add(sub(term, add(whole, mul(rest, x))), mul(rest, left))
    return None


def _is_part(part: Term, term: Term) -> bool:
    """The sum's monomials are some of the term's."""
    sums, own = monomials(term), monomials(part)
    return bool(own) and all(sums.get(m) == c for m, c in own.items())


def _times_of(whole: Term, taken: Term) -> Term | None:
    """``c`` where the whole is ``-c * taken``, a monomial."""
    ((atoms, factor),) = monomials(whole).items()
    if len(monomials(taken)) != 1:
        return None
    ((inner, by),) = monomials(taken).items()
    left = list(atoms)
    for atom in inner:
        if atom not in left:
            return None
        left.remove(atom)
    return scale(from_monomials({tuple(left): 1}), -factor // by) if factor % by == 0 else None
