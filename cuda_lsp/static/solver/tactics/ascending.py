"""Stretches between neighbouring offsets (``row[v]`` to ``row[v + 1]``) are apart where these ascend.

That offsets of rows, buckets and segments ascend is what they are for: a kernel that reads two neighbours as
begin and end takes it for granted, and so do we, and tell. Not where the kernel writes the array, asks which
of two neighbours is larger, or comes to an access only if they descend; nor where what it holds only decides
who comes to an access, and is no place itself.
"""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.ir.program import Array
from cuda_lsp.static.offset_arrays import ascending_arrays
from cuda_lsp.static.solver.orders import ascending, places_read
from cuda_lsp.static.solver.tactics.first import linearly, whoever_is_first
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import Access
from cuda_lsp.static.symbolic.terms import Op, Term


def where_offsets_ascend(proofs: tuple[Tactic, ...]) -> Tactic:
    """Tries what linear arithmetic shows, and ``proofs``, with the offsets that the pair reads in order."""

    def in_order(pair: OpenPair) -> Proved | None:
        arrays = ascending_arrays(pair.query.kernel)
        if not arrays:
            return None
        formula = pair.query.complete(t.and_(pair.facts, pair.p.formula), pair.p)
        for array, found in places_read(formula, pair.query):
            if (
                array in arrays
                and _bounds_places(found, pair)
                and all(in_one_row(x, array, pair) for x in found)
                and _may_ascend(pair, array)
            ):
                ordered = evolve(
                    pair.p, guards=t.and_(pair.p.guards, ascending(found), _behind_0(found, pair))
                )
                tactics = (linearly, whoever_is_first(found, proofs), *proofs)
                answer = first_answer(tactics, evolve(pair, p=ordered))
                if isinstance(answer, Proved):
                    return Proved((f"`{array.name}` ascends", *answer.assumptions))
        return None

    return in_order


def _bounds_places(elements: list[Term], pair: OpenPair) -> bool:
    """Whether the elements are places, or bounds of one: what is held against numbers is in no order."""
    atoms = {x for offset in pair.p.offsets for x in atoms_of(offset)}
    for part in t.subterms(pair.p.guards):
        if part.op is Op.LE:
            together = atoms_of(part.args[0])
            atoms |= together if together - set(elements) else set()
    return not atoms.isdisjoint(elements)


def atoms_of(term: Term) -> set[Term]:
    """What a sum is made of, however it is cut, and whichever way its choices go (``v ? row[v - 1] : 0``)."""
    found, pending = set[Term](), [term]
    while pending:
        atoms = {x for product in t.monomials(pending.pop()) for x in product} - found
        pending += (way for x in atoms if x.op is Op.ITE for way in x.args[1:])
        pending += (x.args[0] for x in atoms if x.op is Op.WRAP)
        found |= atoms
    return found


def _behind_0(elements: list[Term], pair: OpenPair) -> Term:
    """That none is below 0, where the kernel has the first stretch begin there: ``v ? row[v - 1] : 0``."""
    read = set(elements)
    choices = (x for offset in pair.p.offsets for x in atoms_of(offset) if x.op is Op.ITE)
    if any(t.ZERO in x.args[1:] and not read.isdisjoint(x.args[1:]) for x in choices):
        return t.and_(*(t.le(t.ZERO, x) for x in elements))
    return t.TRUE


def in_one_row(element: Term, array: Array, pair: OpenPair) -> bool:
    """The places that threads read follow one another: not each batch has offsets of its own.

    Nothing is multiplied by a parameter (``row[batch * (n + 1) + v]``), and no step from thread to thread
    leaves elements out.
    """
    free, reach = pair.query.where.free, float(array.element.size)
    steps: list[tuple[int, float]] = []
    for atoms, factor in t.monomials(element.args[2][0]).items():
        if len(atoms) > 1 and any(x.op is Op.SYMBOL and x.args[0] in free for x in atoms):
            return False
        if len(atoms) == 1:
            steps.append((abs(factor), atoms[0].hi - atoms[0].lo))
    for step, others in sorted(steps):
        if step > reach:
            return False
        reach += step * others
    return True


def _may_ascend(pair: OpenPair, array: Array) -> bool:
    """Each of the two accesses by itself is reached when the array ascends."""
    return all(_reached(access, array, pair) for access in (pair.p.pair.first, pair.p.pair.second))


def _reached(access: Access, array: Array, pair: OpenPair) -> bool:
    query = pair.query
    formula = query.complete(t.and_(query.where.bounds, access.guard), pair.p)
    read = dict(places_read(formula, query))
    return array not in read or not query.refutes(t.and_(formula, ascending(read[array])))
