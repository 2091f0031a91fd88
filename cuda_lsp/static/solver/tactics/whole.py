"""Arrays of integers that a kernel only reads, by whole elements, and which of these a formula names."""

from __future__ import annotations

from functools import lru_cache

from cuda_lsp.ir.program import Array, Kernel, Load
from cuda_lsp.ir.types import Int
from cuda_lsp.ir.walk import walk
from cuda_lsp.static import budgets
from cuda_lsp.static.facts import facts_of
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.encode import base_name
from cuda_lsp.static.symbolic.scene import memory_name
from cuda_lsp.static.symbolic.terms import Op, Term


@lru_cache(maxsize=budgets.KEPT_FACTS)  # as ``facts_of``
def read_only(kernel: Kernel) -> frozenset[Array]:
    """Arrays of integers that are never written, and read by whole elements."""
    facts = facts_of(kernel)
    found = {a for a in kernel.arrays if isinstance(a.element, Int) and a not in facts.written}
    for s in walk(kernel.body):
        if isinstance(s, Load):
            roots = facts.roots(s.pointer)
            found -= {a for a in roots if len(roots) > 1 or s.type != a.element}
    return frozenset(found)


def elements_read(formula: Term, array: Array) -> list[Term]:
    """What the array holds at the places that a formula names, if these are whole elements."""
    name = memory_name(array)
    found = [x for x in t.subterms(formula) if x.op is Op.APPLY and base_name(x.args[0]) == name]
    whole = all(len(x.args[2]) == 1 and _index(x, array) is not None for x in found)
    return found if whole else []


def index_of(element: Term, array: Array) -> Term:
    """Which element of the array it is, of those that ``elements_read`` finds."""
    index = _index(element, array)
    assert index is not None
    return index


def _index(element: Term, array: Array) -> Term | None:
    size, place = array.element.size, t.monomials(element.args[2][0])
    if any(factor % size for factor in place.values()):
        return None
    return t.from_monomials({atoms: factor // size for atoms, factor in place.items()})
