"""Addresses of several layouts, one at a time: ``row_major ? i * n + j : j * m + i``.

A choice in an address hides what it is made of from all that reads addresses. Its conditions are taken for
true and for false, those first that both threads share, and the pair is impossible when it is in every case.
Each case is as simple as what the source and the host tell makes it: the grid is as large as the host
computes it, sizes that are multiples of a number are made of so many parts, and nothing is cut to 32 bits, or
to a remainder, that is small enough already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve

from cuda_lsp.ir.program import GDIM
from cuda_lsp.static import budgets
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem, touching
from cuda_lsp.static.symbolic.sizes import SHARED, side
from cuda_lsp.static.symbolic.terms import Level, Op, Term


def in_each(proofs: tuple[Tactic, ...]) -> Tactic:
    """Tries ``proofs``, and before the last of them what linear arithmetic shows, on every case of a pair."""
    tactics = (*proofs[:-1], _linearly, proofs[-1])

    def in_every_case(pair: OpenPair) -> Proved | None:
        if pair.p.overlap is t.TRUE:
            return None
        told = as_told(pair)
        simple = evolve(told, p=_simpler(told.p, told.facts))
        if told is pair and simple.p.overlap is pair.p.overlap and _choice(simple.p) is None:
            return None
        return _in_every_case(simple, tactics, budgets.MOST_LAYOUT_CHOICES)

    return in_every_case


def _linearly(pair: OpenPair) -> Proved | None:
    formula = pair.query.complete(t.and_(pair.facts, pair.p.formula), pair.p)
    return Proved() if pair.query.refutes_quickly(formula) else None


# ------------------------------------------------------------------------------------------ cases


def _in_every_case(
    pair: OpenPair, tactics: tuple[Tactic, ...], most: int, tried: bool = False
) -> Proved | None:
    """``most``: choices that are made one after the other. Those of one thread are the last resort.

    ``tried``: with some of them open there was no proof, nor will there be one with fewer.
    """
    condition = _choice(pair.p) if most > 0 else None
    shared = condition is not None and side(condition) == SHARED
    if condition is None or not (shared or tried):
        answer = first_answer(tactics, pair)
        if isinstance(answer, Proved) or condition is None:
            return answer if isinstance(answer, Proved) else None
    assumptions: dict[str, None] = {}
    for case, made in _cases(pair, condition):
        answer = _in_every_case(case, tactics, most - made, tried=not shared)
        if answer is None:
            return None
        assumptions.update(dict.fromkeys(answer.assumptions))
    return Proved(tuple(assumptions))


def _cases(pair: OpenPair, condition: Term) -> Iterator[tuple[OpenPair, int]]:
    """The pair where the condition holds and where it does not, as far as its guards admit that.

    With how many choices are made.

    Where the other thread chooses by the same, both conditions at once. Of threads that do the same it does
    not matter then which of the two it is that chooses otherwise.
    """
    other = t.renamed(condition, _of_other_thread, {})
    ways = [(condition,), (t.not_(condition),)]
    if other is not condition and other in _conditions(pair.p) and _is_symmetric(pair):
        ways = [(condition, other), (t.not_(condition), t.not_(other)), (condition, t.not_(other))]
    for known in ways:
        made = pair.p.mapped(t.replacing(dict.fromkeys(known, t.TRUE) | {t.not_(x): t.FALSE for x in known}))
        made = _simpler(evolve(made, guards=t.and_(made.guards, *known)), pair.facts)
        if made.formula is not t.FALSE:
            yield evolve(pair, p=made), len(known)


def _is_symmetric(pair: OpenPair) -> bool:
    """It is one question whichever thread is called the first."""
    said = t.and_(pair.facts, pair.p.formula)
    turned = t.renamed(said, _of_other_thread, {})
    return set(t.conjuncts(said)) == set(t.conjuncts(turned))


def _of_other_thread(part: Term) -> str | None:
    name, thread = part.args[0][:-2], part.args[0][-2:]
    return {"#1": f"{name}#2", "#2": f"{name}#1"}.get(thread)


def _conditions(p: Problem) -> list[Term]:
    """Of choices in the address."""
    return [part.args[0] for part in t.subterms(p.overlap) if part.op is Op.ITE]


def _choice(p: Problem) -> Term | None:
    """The condition of a choice in the address; one that both threads share, if there is any."""
    return min(_conditions(p), key=lambda c: (side(c) != SHARED, c.order), default=None)


def _simpler(p: Problem, facts: Term) -> Problem:
    """With values for what the guards let have one only, and without cuts that change nothing."""
    put_in = t.replacing(dict(_values(t.conjuncts(p.guards))))
    where = t.and_(facts, p.guards)
    first, second = (t.recombined(t.unwrapped(t.chosen(put_in(x), where), where)) for x in p.offsets)
    sizes = p.pair.first.size, p.pair.second.size
    if not (sizes[0].is_const and sizes[1].is_const):
        return p
    overlap = touching(first, second, sizes, words=p.pair.first.word and p.pair.second.word)
    return evolve(p, overlap=overlap, difference=t.sub(first, second), offsets=(first, second))


def _values(conditions: Iterable[Term]) -> Iterator[tuple[Term, Term]]:
    """Terms that conditions say to be equal to a number."""
    for condition in conditions:
        if condition.op is Op.EQ:
            sums = dict(t.monomials(condition.args[0]))
            constant = sums.pop((), 0)
            ((atoms, factor),) = sums.items() if len(sums) == 1 else (((), 0),)
            if len(atoms) == 1 and constant % factor == 0:
                yield atoms[0], t.const(-constant // factor)


# ----------------------------------------------------------------------------------- what is told


def as_told(pair: OpenPair) -> OpenPair:
    """The pair in terms of what its grid and its sizes are made of."""
    query = pair.query
    made_of, bounds = extents(query)
    parts = dict(_parts(query))
    if not made_of and not parts:
        return pair
    by_extent, by_parts = t.replacing(made_of), t.replacing(parts)

    def rewritten(term: Term) -> Term:
        return by_parts(by_extent(term))

    facts = rewritten(t.and_(pair.facts, bounds))
    stated = (c for c in query.told if set(parts) & set(t.subterms(c)))
    p = pair.p.mapped(rewritten)
    p = evolve(p, guards=t.and_(p.guards, *map(rewritten, stated)))
    named = {x.args[0]: query.where.free[size.args[0]] for size, whole in parts.items() for x in whole.parts}
    return evolve(pair, p=p, facts=facts, query=query.with_parts(named))


def extents(query: Query) -> tuple[dict[Term, Term], Term]:
    """Extents of the grid by what the host computes them from, and that they are extents."""
    axes = {query.where.axes[axis] for axis in GDIM}
    found: dict[Term, Term] = {}
    for condition in query.told:
        sums = t.monomials(condition.args[0]) if condition.op is Op.EQ else dict[t.Monomial, int]()
        for atom, factor in ((m[0], c) for m, c in sums.items() if len(m) == 1):
            if atom in axes and atom not in found and abs(factor) == 1:
                rest = t.scale(t.sub(condition.args[0], t.scale(atom, factor)), -factor)
                if not axes & set(t.subterms(rest)) and t.level_of(rest) is Level.GRID:
                    found[atom] = rest
    return found, t.and_(*(t.le(t.ONE, extent) for extent in found.values()))


def _parts(query: Query) -> Iterator[tuple[Term, Term]]:
    """Parameters that are asked to be multiples of a number: so many parts of that size."""
    for term, value in _values(query.told):
        if value is not t.ZERO or term.op not in (Op.REM, Op.FLOOR_MOD):
            continue
        size, divisor = term.args
        count = divisor if isinstance(divisor, int) else divisor.value if divisor.is_const else 0
        if count > 1 and size.op is Op.SYMBOL and size.args[0] in query.where.free:
            low, high = -(-size.lo // count), size.hi // count
            yield size, t.scale(t.symbol(f"{size.args[0]}/{count}", size.args[1], low, high), count)
