"""Sizes that a kernel's own layout divides evenly, and races that need one that does not.

``base + C / 8`` carves memory for a ``C`` of whole vectors of eight; where ``C`` is none, a row reaches
into the next. The host owes the kernel that much, so such a race is told as a doubt about ``C``. Not where
the kernel itself looks after what is left over, as loops over tails do (``for (j = n / 4 * 4; j < n; j++)``).

Asked with ``8 * whole`` in the parameter's place: there quotients come out even, and what is left is
refuted by its digits or by the solver, or needs no odd size at all. So with rows of ``C`` floats that are
read four at once: where ``C`` is no multiple of four, the GPU takes none of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import evolve

from cuda_lsp.static import budgets
from cuda_lsp.static.findings.conditions import Uneven
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.digits import digits_of
from cuda_lsp.static.symbolic.events import accesses
from cuda_lsp.static.symbolic.rounds import ROUND
from cuda_lsp.static.symbolic.sizes import side
from cuda_lsp.static.symbolic.terms import Level, Op, Term

_REMAINDERS = (Op.FLOOR_MOD, Op.REM)
_CUTS = (*_REMAINDERS, Op.FLOOR_DIV, Op.DIV)


def grain_of(p: Problem, facts: Term, query: Query) -> Uneven | None:
    """What would keep the two accesses apart, by the smallest number (`C` a multiple of 8); else None."""
    for uneven, even, related, with_part in evened(p, facts, query):
        if _apart(even, related, with_part):
            return uneven
    return None


def of_whole_blocks(p: Problem, facts: Term, query: Query) -> Iterator[tuple[Uneven, Problem, Term, Query]]:
    """As ``evened``, by what the host divides sizes by for its grid (`(n + 127) / 128`)."""
    for parameter in sorted(query.parameters(p.formula), key=lambda part: part.args[0]):
        divisors = sorted({d for told in query.told for d in _divisors(parameter, told)})
        for divisor in divisors[: budgets.MOST_DIVISORS]:
            even = _evenly(p, facts, parameter, divisor, query, least=0)
            yield Uneven(parameter.args[0], divisor), *even


def evened(p: Problem, facts: Term, query: Query) -> Iterator[tuple[Uneven, Problem, Term, Query]]:
    """The pair where one parameter is a multiple of a number, for all that the layout divides by one."""
    for parameter in sorted(query.parameters(p.formula), key=lambda part: part.args[0]):
        for divisor in _owed(parameter, p):
            yield Uneven(parameter.args[0], divisor), *_evenly(p, facts, parameter, divisor, query)


def aligned(p: Problem, facts: Term, query: Query) -> Iterator[tuple[Uneven, Problem, Term, Query]]:
    """As ``evened``, for sizes that the kernel accesses rows of in vectors: the GPU takes no others."""
    return (case for case in evened(p, facts, query) if _is_refused_else(case[0], p, query))


def _is_refused_else(uneven: Uneven, p: Problem, query: Query) -> bool:
    """Where it is no such multiple, some access of several elements at once stands where the GPU takes none.

    One that is reached under no other condition on arguments than the pair.
    """
    said = set(query.stated(p))
    reached = (access for access in accesses(query.summary.events) if access.word and access.size.is_const)
    return any(
        access.size.value % (factor * uneven.divisor) == 0 and _of_arguments(access.guard) <= said
        for access in reached
        for atoms, factor in t.monomials(access.offset).items()
        if factor > 0 and any(x.op is Op.SYMBOL and x.args[0] == uneven.parameter for x in atoms)
    )


def _of_arguments(guard: Term) -> set[Term]:
    """Its conditions that are of no thread, no block and no round."""
    alike = (c for c in t.conjuncts(guard) if t.level_of(c) is Level.GRID)
    return {c for c in alike if not any(map(_is_counter, t.subterms(c)))}


def _is_counter(part: Term) -> bool:
    return part.op is Op.SYMBOL and ROUND.fullmatch(part.args[0]) is not None


def step_of(parameter: Term, p: Problem) -> int:
    """Of what a size is a multiple where the layout divides it evenly, whatever it divides it by."""
    return math.lcm(*_owed(parameter, p))


def _owed(parameter: Term, p: Problem) -> list[int]:
    """The smallest numbers of which a parameter has to be a multiple, and whose rest nobody looks after."""
    found = _divisors(parameter, p.formula) | _vectors(parameter, p) | _steps(parameter, p)
    divisors = sorted(found)[: budgets.MOST_DIVISORS]
    return [divisor for divisor in divisors if not _tends_to_rest(parameter, divisor, p.formula)]


def _divisors(parameter: Term, formula: Term) -> set[int]:
    """Constants above one by which something with the parameter in it is divided."""
    found: set[int] = set()
    for part in t.subterms(formula):
        if part.op in (Op.FLOOR_DIV, Op.FLOOR_MOD):
            divisor = part.args[1]
        elif part.op in (Op.DIV, Op.REM) and part.args[1].is_const:
            divisor = part.args[1].value
        else:
            continue
        if divisor > 1 and parameter in t.subterms(part.parts[0]):
            found.add(divisor)
    return found


def _vectors(parameter: Term, p: Problem) -> set[int]:
    """Of what it has to be a multiple so that accesses of several elements at once are aligned."""
    found: set[int] = set()
    for access, offset in zip((p.pair.first, p.pair.second), p.offsets, strict=True):
        size = access.size.value if access.size.is_const else 0
        factors = {factor for atoms, factor in t.monomials(offset).items() if parameter in atoms}
        found |= {size // factor for factor in factors if 0 < factor < size and size % factor == 0}
    return found


def _steps(parameter: Term, p: Problem) -> set[int]:
    """Of what it has to be a multiple so that steps within it end with it: ``8*i + j`` where ``8*i < w``."""
    found: set[int] = set()
    bounds = [guard.args[0] for guard in t.conjuncts(p.guards) if guard.op is Op.LE]
    none = {x for x in bounds if x.lo >= 0}  # at most 0: of the one round that there is
    for sums in map(t.monomials, bounds):
        step = {m: c for m, c in sums.items() if m and m != (parameter,) and none.isdisjoint(m)}
        if sums.get((parameter,)) == -1 and step and min(step.values()) > 1:
            found |= {math.gcd(*step.values())} if any(_goes_on(step, x) for x in p.offsets) else set()
    return found - {1}


def _goes_on(step: Mapping[t.Monomial, int], offset: Term) -> bool:
    """The address has the step in it, and goes on within it: by a digit of the thread's or a loop's that
    counts there, or by a number (``8*i + 4``)."""
    parts = t.monomials(offset)
    if not all(parts.get(m, 0) and parts[m] % c == 0 for m, c in step.items()):
        return False
    others = (m[0] for m in parts if len(m) == 1 and m not in step)
    whole = math.gcd(*(parts[m] for m in step))
    return 0 < parts.get((), 0) < whole or any(side(x) and 0 < x.hi < math.inf for x in others)


def _tends_to_rest(parameter: Term, divisor: int, formula: Term) -> bool:
    """It compares the parameter with the whole part of it, or asks for the remainder."""
    for part in t.subterms(formula):
        if part.op in (Op.LE, Op.EQ):
            sums = t.monomials(part.args[0])
            whole = -divisor * sums.get((parameter,), 0)
            for atoms, factor in sums.items():
                cut = atoms[0] if len(atoms) == 1 else None
                if cut is None or cut.op not in _CUTS or cut.args[0] is not parameter:
                    continue
                by = cut.args[1] if isinstance(cut.args[1], int) else cut.args[1].value
                if by == divisor and (cut.op in _REMAINDERS or factor == whole != 0):
                    return True
    return False


def _evenly(
    p: Problem, facts: Term, parameter: Term, divisor: int, query: Query, least: int | None = None
) -> tuple[Problem, Term, Query]:
    name = f"{parameter.args[0]}/{divisor}"
    lowest = parameter.lo // divisor if least is None else least
    whole = t.symbol(name, parameter.args[1], lowest, parameter.hi // divisor)
    even = t.replacing({parameter: t.scale(whole, divisor)})
    told = (even(c) for c in query.told if parameter in t.subterms(c))  # holds of the whole parts as well
    made = p.mapped(even)
    made = evolve(made, guards=t.and_(made.guards, *told))
    return made, even(facts), query.with_parts({name: query.where.free[parameter.args[0]]})


def _apart(p: Problem, facts: Term, query: Query) -> bool:
    digits = digits_of(p, facts, query.where.axes, query.where.free)
    if digits is not None and digits.refuted:
        return True
    formula = query.complete(t.and_(facts, p.formula), p)
    return query.refutes(formula)
