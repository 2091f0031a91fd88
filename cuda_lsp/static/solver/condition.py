"""When does it happen: a short, readable condition on parameters that a race cannot do without.

Candidates come from the program: comparisons of parameters with one another, with the launch's
extents and with constants of the formula.  One is kept when the race is impossible without it (Z3);
among bounds of one parameter the tightest wins.  It is told as *the* condition when the race also happens for
ordinary values that satisfy it; else the values of the witness are told, as an example.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import define

from cuda_lsp.ir.program import BDIM, GDIM, Axis
from cuda_lsp.static import budgets
from cuda_lsp.static.findings.conditions import (
    BeyondGrid,
    Compared,
    Conditions,
    Example,
    Needs,
    SomeValues,
    parameters_of,
)
from cuda_lsp.static.solver.query import Outcome, Query, is_linear
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.terms import Op, Term

_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip


def condition_of(p: Problem, facts: Term, query: Query, arguments: Mapping[str, int]) -> Conditions:
    """Empty: the race needs no parameter. ``arguments``: for which it happens."""
    formula = query.complete(t.and_(facts, p.formula), p)
    return needed_condition(formula, query, arguments) if query.parameters(formula) else ()


def needed_condition(formula: Term, query: Query, arguments: Mapping[str, int]) -> Conditions:
    """A condition on the parameters in ``formula`` without which it has no model.

    ``arguments``: of a model.
    """
    parameters = sorted(query.parameters(formula), key=lambda part: part.args[0])
    given = {x: arguments[x.args[0]] for x in parameters if x.args[0] in arguments}
    needed = _Needed(formula, query, [given, query.known_model(formula)])

    found: list[Compared] = []
    for i, a in enumerate(parameters):
        for b in parameters[i + 1 :]:
            sign = next((sign for sign, atom in _relations(a, b) if needed(atom)), None)
            if sign is not None:
                found.append(Compared(a.args[0], sign, b.args[0]))
    for parameter in parameters:
        if len(found) < budgets.MOST_CONDITIONS and parameter.args[0] not in parameters_of(found):
            found += _bounds(parameter, formula, query, needed)
    if found:
        beyond = _beyond_grid(formula, query, needed)
        most = found[: budgets.MOST_CONDITIONS]
        return tuple(beyond.get(c.parameter, c) if c.sign in (">", ">=") else c for c in most)
    return (SomeValues(tuple(x.args[0] for x in parameters[: budgets.MOST_CONDITIONS])),)


def _beyond_grid(formula: Term, query: Query, needed: Callable[[Term], bool]) -> Mapping[str, BeyondGrid]:
    """Parameters that are more than an unknown extent of the grid: more than there are blocks to go round.

    Not of an extent that is made of the parameter.
    """
    parts = set(t.subterms(formula))
    extents = [(axis, x) for axis in GDIM if (x := query.where.axes[axis]) in parts and not x.is_const]
    ties = [set(t.subterms(part)) for part in t.conjuncts(formula) if part.op is Op.EQ]
    return {
        x.args[0]: BeyondGrid(x.args[0], axis)
        for x in query.parameters(formula)
        for axis, extent in extents
        if not any({x, extent} <= tie for tie in ties) and needed(t.lt(extent, x))
    }


@define
class _Needed:
    """Whether a race has no model without an ``atom``; each model that is found tells of many atoms.

    Where unknowns are multiplied, models beside those that are known are found sooner, with numbers for all
    parameters, than it is found out that there may be none.
    """

    formula: Term
    query: Query
    models: list[Mapping[Term, int]]
    asked: int = 0
    _linear: bool | None = None

    def __call__(self, atom: Term) -> bool:
        if atom is t.TRUE:
            return False  # which is no condition: of what is true or false, "below 256"
        self.asked += 1
        if self.asked > budgets.MOST_CONDITION_QUERIES or any(_fails(atom, m) for m in self.models):
            return False
        if self._linear is None:
            self._linear = is_linear(self.formula)
        if not self._linear and self._fails_beside(atom):
            return False
        answer = self.query.briefly(t.and_(self.formula, t.not_(atom)))
        if answer.values is not None:
            self.models.append(answer.values)
        return answer.outcome is Outcome.REFUTED

    def _fails_beside(self, atom: Term) -> bool:
        """A model without it has the parameters of one that is known, but for one of them."""
        for numbers in itertools.islice(self._beside(atom), budgets.MODELS_BESIDE):
            given = {x: t.const(n) for x, n in numbers.items()}
            answer = self.query.briefly(t.substitute(self.formula, given))
            if answer.values is not None:
                self.models.append({**answer.values, **numbers})
                return True
        return False

    def _beside(self, atom: Term) -> Iterator[Mapping[Term, int]]:
        """Numbers for all parameters for which the comparison is false, larger ones first."""
        parameters = self.query.parameters(self.formula)
        limits = {part.value for part in t.subterms(atom) if part.is_const}
        limits |= {abs(n) for x in t.subterms(atom) for n in t.monomials(x).values()}
        for model in self.models[:1]:
            known = {x: model.get(x, 1) for x in parameters}
            for x in (x for x in t.subterms(atom) if x in known):
                near = {n + i for n in (*limits, known[x], *known.values()) for i in (-1, 0, 1)}
                for n in sorted((n for n in near if x.lo <= n <= x.hi), reverse=True):
                    if _fails(atom, numbers := {**known, x: n}):
                        yield numbers


def _fails(atom: Term, model: Mapping[Term, int]) -> bool:
    """A model of the race in which the comparison of parameters is false."""
    values = {x: t.const(model[x]) for x in t.subterms(atom) if x in model}
    return t.substitute(atom, values) is t.FALSE


def worded(
    needed: Conditions, p: Problem, facts: Term, arguments: Mapping[str, int], query: Query
) -> Conditions:
    """The condition if it is enough as well, else the ``arguments`` of the witness as an example."""
    formula = query.complete(t.and_(facts, p.formula), p)
    parameters = {part.args[0]: part for part in query.parameters(formula)}
    of_parameters = [c for c in needed if isinstance(c, Compared | BeyondGrid | SomeValues)]
    if not parameters or not of_parameters:
        return needed
    beyond_one = (Compared(c.parameter, ">", 1) if isinstance(c, BeyondGrid) else c for c in of_parameters)
    compared = [c for c in beyond_one if isinstance(c, Compared)]  # there may be one block alone
    if len(compared) == len(of_parameters) and suffice(compared, parameters, formula, query):
        return needed
    example = example_of(formula, {n: p for n, p in parameters.items() if n in arguments}, arguments, query)
    small = _small_grid(formula, parameters, arguments, p, query)
    return (example, *small, *(c for c in needed if c not in of_parameters))


def _small_grid(
    formula: Term, parameters: Mapping[str, Term], arguments: Mapping[str, int], p: Problem, query: Query
) -> Iterator[Needs]:
    """That the grid is small, where the arguments need it: a larger one has at once what blocks loop for."""
    extents = [query.where.axes[axis] for axis in GDIM]
    extents = [x for x in extents if not x.is_const and x in set(t.subterms(formula)) - told_extents(query)]
    if not extents or not p.pair.relation.same_block:
        return
    given = {x: t.const(arguments[name]) for name, x in parameters.items() if name in arguments}

    def happens(blocks: int) -> bool | None:
        return query.satisfiable(t.substitute(formula, given | dict.fromkeys(extents, t.const(blocks))))

    if happens(budgets.OTHER_VALUES[-1]) is False:
        yield Needs.ONE_BLOCK if happens(1) else Needs.FEW_BLOCKS


def told_extents(query: Query) -> frozenset[Term]:
    """Extents of the grid that the source computes from arguments."""
    parts = frozenset(part for c in query.told if c.op is Op.EQ for part in t.subterms(c))
    return parts & frozenset(query.where.axes[axis] for axis in GDIM)


def example_of(
    formula: Term, parameters: Mapping[str, Term], arguments: Mapping[str, int], query: Query
) -> Example:
    """The arguments that have a part in it: without those that may as well have other values."""
    names = sorted(parameters)
    given = {name: arguments[name] for name in names}
    if len(names) > 1:
        beside = [name for name in names if not _decides(name, formula, parameters, given, query)]
        if 0 < len(beside) < len(names) and _for_others(beside, formula, parameters, given, query):
            names = [name for name in names if name not in beside]
    return Example(tuple((name, given[name]) for name in names))


def _decides(
    name: str, formula: Term, parameters: Mapping[str, Term], given: Mapping[str, int], query: Query
) -> bool:
    return not _for_others([name], formula, parameters, given, query)


def _for_others(
    names: Sequence[str],
    formula: Term,
    parameters: Mapping[str, Term],
    given: Mapping[str, int],
    query: Query,
) -> bool:
    """It happens for other values of these parameters, as well, where all others have theirs."""
    for size in budgets.OTHER_VALUES:
        values = {**given, **dict.fromkeys(names, size)}
        fixed = {parameters[name]: t.const(value) for name, value in values.items()}
        if query.satisfiable(t.substitute(formula, fixed)) is not True:
            return False
    return True


def suffice(needed: Sequence[Compared], parameters: Mapping[str, Term], formula: Term, query: Query) -> bool:
    """It happens for the ordinary values that satisfy the condition."""
    tried = 0
    for values in _ordinary(needed, sorted(parameters)):
        if not all(_holds(c, values) for c in needed):
            continue
        fixed = {parameters[name]: t.const(value) for name, value in values.items()}
        if query.satisfiable(t.substitute(formula, fixed)) is not True:
            return False
        tried += 1
        if tried == budgets.MOST_CONDITION_EXAMPLES:
            break
    return tried > 1


def _ordinary(needed: Sequence[Compared], names: Sequence[str]) -> Iterator[Mapping[str, int]]:
    """Values of all parameters: large ones that everything divides, then mixed ones."""
    for size in budgets.LARGE_VALUES:
        yield dict.fromkeys(names, size)
    limits = {n for c in needed if isinstance(c.other, int) for n in (c.other - 1, c.other, c.other + 1)}
    values = sorted({*budgets.ORDINARY_VALUES, *limits})
    for number in range(len(values)):
        yield {name: values[(number * (i + 1) + i) % len(values)] for i, name in enumerate(names)}


def _holds(c: Compared, values: Mapping[str, int]) -> bool:
    left, right = values[c.parameter], values[c.other] if isinstance(c.other, str) else c.other
    return _COMPARE[c.sign](left, right)


def _relations(a: Term, b: Term) -> list[tuple[str, Term]]:
    return [("==", t.eq(a, b)), ("<", t.lt(a, b)), (">", t.lt(b, a)), ("!=", t.not_(t.eq(a, b)))]


def _bounds(
    parameter: Term, formula: Term, query: Query, needed: Callable[[Term], bool]
) -> Iterator[Compared]:
    thresholds = _thresholds(formula, query)

    def compared(sign: str, value: int) -> Compared:
        return Compared(parameter.args[0], sign, value, extent_of(value, query))

    if needed(t.eq(parameter, t.const(thresholds[0]))):  # of the smallest only: "== 0" is the common one
        yield compared("==", thresholds[0])
        return
    bounded = False
    for value in sorted(thresholds, reverse=True):
        sign = ">" if needed(t.lt(t.const(value), parameter)) else ""
        if not sign and value > 1 and needed(t.le(t.const(value), parameter)):
            sign = ">="
        if sign:
            yield compared("==", 1) if (sign, value, parameter.hi) == (">", 0, 1) else compared(sign, value)
            bounded = True
            break
    for value in thresholds:
        if needed(t.lt(parameter, t.const(value))):
            yield compared("<", value)
            return
    if not bounded and needed(t.not_(t.eq(parameter, t.ZERO))):
        yield Compared(parameter.args[0], "!=", 0)


def _thresholds(formula: Term, query: Query) -> list[int]:
    """Numbers worth comparing with: 0, 1, the launch's extents."""
    found = {0, 1}
    for axis in (*BDIM, *GDIM):
        term = query.where.axes[axis]
        if term.is_const and term.value > 1:
            found.add(term.value)
    constants = sorted(
        {part.value for part in t.subterms(formula) if part.is_const and 1 < part.value < budgets.UNBOUNDED}
    )
    return sorted(found | set(constants[: budgets.MOST_THRESHOLDS]))


def extent_of(value: int, query: Query) -> Axis | None:
    """The extent of the launch that the number is."""
    known = ((axis, query.where.axes[axis]) for axis in (*BDIM, *GDIM))
    return next((axis for axis, term in known if term.is_const and term.value == value > 1), None)
