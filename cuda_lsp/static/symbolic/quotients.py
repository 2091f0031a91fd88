"""Numbers put together again from quotient and remainder: ``d*(x / d) + x % d`` is ``x``.

Kernels take an index apart into coordinates and compute an address from these; where the address has the
index's own layout the two cancel, also for divisors that nobody knows (C's quotient truncates: the identity
holds for every ``d`` that is not 0).  Layouts that differ are the business of ``digits``, which reads
remainders: ``x - d*(x / d)`` is written as the one that it is.
"""

from __future__ import annotations

from cuda_lsp.static import budgets
from cuda_lsp.static.symbolic.core import Op, Term, add, const, from_monomials, monomials, mul, sub
from cuda_lsp.static.symbolic.integers import divide, floor_div, floor_mod, remainder


def recombined(term: Term) -> Term:
    """The same number with every ``c*d*(x / d) + c*(x % d)`` of the sum as ``c*x``."""
    for _ in range(budgets.MOST_REMAINDERS):
        better = _one_step(term)
        if better is None:
            break
        term = better
    return term


def difference(a: Term, b: Term) -> Term:
    """``a - b``, a remainder where ``b`` is ``d*(a / d)``."""
    for atom in {atom for atoms in monomials(b) for atom in atoms}:
        if atom.op in (Op.DIV, Op.FLOOR_DIV) and atom.args[0] is a:
            known = atom.op is Op.FLOOR_DIV
            divisor = const(atom.args[1]) if known else atom.args[1]
            if mul(divisor, atom) is b:
                return floor_mod(a, atom.args[1]) if known else remainder(a, divisor)
    return sub(a, b)


def _one_step(term: Term) -> Term | None:
    sums = monomials(term)
    for atoms, factor in sums.items():
        for i, atom in enumerate(atoms):
            if atom.op not in (Op.REM, Op.FLOOR_MOD):
                continue
            x = atom.args[0]
            if atom.op is Op.REM:
                divisor, quotient = atom.args[1], divide(x, atom.args[1])
            else:
                divisor, quotient = const(atom.args[1]), floor_div(x, atom.args[1])
            rest = from_monomials({atoms[:i] + atoms[i + 1 :]: factor})
            whole = mul(rest, mul(divisor, quotient))
            if monomials(whole) and all(sums.get(m) == c for m, c in monomials(whole).items()):
                remainder = from_monomials({atoms: factor})
                return add(sub(term, add(remainder, whole)), mul(rest, x))
    return None
