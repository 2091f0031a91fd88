"""One question to Z3: can these two accesses meet?  Answers are final, candidates, or unknown.

The integer theory is asked first (bit operators abstracted: a refutation there holds); where bit
operators occur, bit-vectors wide enough for every sub-term decide.  Every query has its time-out and
the kernel its deadline.
"""

from __future__ import annotations

import ctypes
import enum
import math
from collections.abc import Mapping
from typing import Any

from attrs import define, evolve, field, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.model import MAX_BLOCK_THREADS
from cuda_lsp.static import budgets, work
from cuda_lsp.static.exact.memory import Initial
from cuda_lsp.static.exact.replay import Run, TooLong, replay
from cuda_lsp.static.exact.threads import Thread
from cuda_lsp.static.solver.answer import Stats
from cuda_lsp.static.solver.tickets import number_facts
from cuda_lsp.static.solver.watch import WATCH
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem, shared_level
from cuda_lsp.static.symbolic.encode import Z3, Encoder, closure, has_bits, width_for, z3
from cuda_lsp.static.symbolic.events import Summary
from cuda_lsp.static.symbolic.intervals import Sites
from cuda_lsp.static.symbolic.launch import Setting
from cuda_lsp.static.symbolic.reduced import components, reduced
from cuda_lsp.static.symbolic.terms import BIT_OPS, Level, Op, Term


class Outcome(enum.Enum):
    """What Z3 says of a formula: it has no model, it has one, or that takes too long to tell."""

    REFUTED = "refuted"
    MODEL = "model"
    UNKNOWN = "unknown"


@frozen(eq=False)
class Answer:
    """``values``: the model, by symbol or application term (integers; predicates 0 or 1).

    ``cells``: what it says of unknown functions of one operand (memory): (name, operand) → value.
    """

    outcome: Outcome
    values: Mapping[Term, int] | None = None
    cells: Mapping[tuple[str, int], int] = field(factory=dict[tuple[str, int], int])


REFUTED = Answer(Outcome.REFUTED)
UNKNOWN = Answer(Outcome.UNKNOWN)


_CANCELED = "canceled"
"""What Z3 says when it is interrupted."""
_CHOSEN = frozenset({Op.SYMBOL, Op.APPLY})
"""What a model chooses: numbers, and what memory holds."""


@define(eq=False)
class Query:
    """Asks about one kernel under one setting.

    ``limit``: seconds a query; ``deadline``: of ``work.now``; ``patience``: seconds a replay; ``until``: when
    all replays are over, by that clock.
    """

    kernel: ir.Kernel
    where: Setting
    summary: Summary
    limit: float
    deadline: float
    stats: Stats
    patience: float = math.inf
    until: float = math.inf
    known: dict[Term, Answer] = field(factory=dict[Term, Answer])
    shown: dict[Sites, tuple[Problem, Term, Mapping[str, int]]] = field(
        factory=dict[Sites, tuple[Problem, Term, Mapping[str, int]]]
    )
    """Pairs that race when something holds of the parameters: how the two relate, the witness's arguments."""
    _too_long: dict[object, tuple[float, Run]] = field(factory=dict[object, tuple[float, Run]])
    """Replays that came to no end: how long they ran, and what was seen of them."""
    _any: dict[Term, Answer] = field(factory=dict[Term, Answer])
    _brief: dict[Term, Answer] = field(factory=dict[Term, Answer])
    _linearly: dict[tuple[Term, int], bool] = field(factory=dict[tuple[Term, int], bool])
    _parts: dict[Term, list[Term]] = field(factory=dict[Term, "list[Term]"])
    _of_parts: dict[Term, tuple[Outcome, float]] = field(factory=dict[Term, tuple[Outcome, float]])

    def with_parts(self, parts: Mapping[str, ir.Var]) -> Query:
        """The same query, where parts of parameters, by name, are parameters too."""
        return evolve(self, where=evolve(self.where, free={**self.where.free, **parts}))

    def briefly_replaying(self) -> Query:
        """The same query, whose replays end soon."""
        return evolve(self, patience=budgets.BRIEF_REPLAY_S)

    def replaying_for_one_of(self, pairs: int) -> Query:
        """The same query, whose replays leave to the other pairs what is theirs of the time."""
        now = work.now()
        return evolve(self, until=now + max((self.deadline - now) / pairs, budgets.BRIEF_REPLAY_S))

    def replay(
        self,
        thread: Thread,
        arguments: Mapping[str, int],
        interesting: frozenset[ir.Array],
        memory: Initial | None = None,
        choice: bool | None = None,
    ) -> Run:
        """``exact.replay`` of the kernel, which ends soon after the deadline, or with its patience.

        One that ran too long is not begun again with less than twice the time.
        """
        begun = work.now()
        until = min(self.deadline + budgets.REPLAY_GRACE_S, self.until, begun + self.patience)
        key = thread, frozenset(arguments.items()), interesting, choice
        if memory is None and key in self._too_long:
            spent, run = self._too_long[key]
            if until - begun < 2 * spent:
                raise TooLong(run)
        try:
            return replay(self.kernel, thread, arguments, interesting, memory, choice, until)
        except TooLong as error:
            if memory is None:
                self._too_long[key] = work.now() - begun, error.run
            raise

    def ask(self, p: Problem, facts: Term, *, patiently: bool = False) -> Answer:
        """Whether the pair's formula has a model under ``facts``; prefers small parameters.

        ``patiently``: products of unknowns have the time of other questions.
        """
        formula = self.complete(t.and_(facts, p.formula), p)
        answer = self.solve(formula)
        if patiently and answer.outcome is Outcome.UNKNOWN and not is_linear(formula):
            answer = self.known[formula] = self._solve(formula, self.limit)
        return answer

    def refutes(self, formula: Term) -> bool:
        """The formula is impossible, as one of its parts is; what its linear part shows is seen first."""
        answer = self.known.get(formula) or self._any.get(formula) or self._brief.get(formula)
        if answer is not None and answer.outcome is not Outcome.UNKNOWN:
            return answer.outcome is Outcome.REFUTED
        limit = None if is_linear(formula) else budgets.REFUTATION_S
        return self.refuted_linearly(formula) or self._impossible(self._parts_of(formula), limit)

    def briefly(self, formula: Term) -> Answer:
        """A refutation, or else any model, that is found soon.

        Where products of unknowns have a part in a contradiction, it is found soon or hardly ever.
        """
        if formula is t.FALSE:
            return REFUTED
        answer = self.known.get(formula) or self._any.get(formula) or self._brief.get(formula)
        if answer is None:
            answer = self._any_model(formula, None if is_linear(formula) else budgets.REFUTATION_S)[0]
            (self._brief if answer.outcome is Outcome.UNKNOWN else self._any)[formula] = answer
        return answer

    def known_model(self, formula: Term) -> Mapping[Term, int]:
        """The model that was found when the formula was asked before; else empty."""
        answer = self.known.get(formula) or self._any.get(formula)
        return (answer.values if answer is not None else None) or {}

    def refutes_quickly(self, formula: Term) -> bool:
        """``refutes``, as far as linear arithmetic goes."""
        return self.refutes(formula) if is_linear(formula) else self.refuted_linearly(formula)

    def parameters(self, formula: Term) -> list[Term]:
        """The scalar parameters in the formula that no launch fixes."""
        return [x for x in t.subterms(formula) if x.op is Op.SYMBOL and x.args[0] in self.where.free]

    def sized(self, formula: Term) -> tuple[tuple[Term, ...], Term]:
        """The formula for parameters that are not negative, and those of which it does not say so itself."""
        doubtful = [x for x in self.parameters(formula) if x.lo < 0]
        return tuple(doubtful), t.and_(formula, *(t.le(t.ZERO, x) for x in doubtful))

    def ask_case(self, p: Problem, facts: Term, case: Term) -> bool:
        """The pair is impossible in this case of its formula."""
        return self.refutes(self.complete(t.and_(facts, case), p))

    @property
    def told(self) -> tuple[Term, ...]:
        """What the host and directives say of the kernel, one by one."""
        return t.conjuncts(self.summary.assumptions or t.TRUE)

    def stated(self, p: Problem) -> tuple[Term, ...]:
        """What the source says of parameters alone, where both accesses are reached."""
        demanded = (*t.conjuncts(p.guards), *self.told)
        return tuple(c for c in demanded if t.level_of(c) is Level.GRID)

    def complete(self, formula: Term, p: Problem) -> Term:
        """The pair's formula with the facts about loop exits, tickets and the kernel's assumptions."""
        if self.summary.assumptions is not None:
            formula = t.and_(formula, self.summary.assumptions)
        formula = closure(formula, self.summary, shared_level(p.pair.relation))
        return t.and_(formula, *number_facts(formula, self.summary, p.pair.relation))

    def solve(self, formula: Term) -> Answer:
        """The answer for a complete formula; a formula asked before is not asked again."""
        if formula is t.FALSE:
            return REFUTED
        answer = self.known.get(formula)
        if answer is None and formula in self._any and self._any[formula].outcome is not Outcome.MODEL:
            answer = self.known[formula] = self._any[formula]
        if answer is None:
            answer = self.known[formula] = self._solve(formula)
        return answer

    def refuted_linearly(self, formula: Term, few: int = 0) -> bool:
        """A contradiction that products and quotients of unknowns have no part in, but as unknowns.

        ``few``: as in ``Encoder``.
        """
        if is_linear(formula):
            return False
        return any(self._is_refuted(part, few) for part in self._parts_of(formula))

    def _is_refuted(self, part: Term, few: int) -> bool:
        if (part, few) not in self._linearly:
            answer, _ = self._check(part, Encoder(linear=True, few=few), budgets.LINEAR_SHARE * self.limit)
            self._linearly[part, few] = answer.outcome is Outcome.REFUTED
        return self._linearly[part, few]

    def _parts_of(self, formula: Term) -> list[Term]:
        """Conditions without an unknown in common that are impossible if the formula is.

        Those that one comparison is have no contradiction, and of what is plain Z3 sees all at once.
        """
        known = self._parts.get(formula)
        if known is None:
            found = components(reduced(formula))
            several = [part for part in found if len(t.conjuncts(part)) > 1 or not _is_plain(part)]
            plain = t.and_(*(part for part in several if _is_plain(part)))
            hard = [part for part in several if not _is_plain(part)]
            parts = [plain, *hard[: budgets.MOST_COMPONENTS]] if plain is not t.TRUE else hard
            known = self._parts[formula] = parts[: budgets.MOST_COMPONENTS]
        return known

    def _impossible(self, parts: list[Term], limit: float | None) -> bool:
        """One of these parts of a formula is."""
        return any(self._outcome(part, limit) is Outcome.REFUTED for part in parts)

    def _outcome(self, part: Term, limit: float | None) -> Outcome:
        """What Z3 says of a part by itself; asked again where it had less time."""
        seconds = self.limit if limit is None else limit
        known = self._of_parts.get(part)
        if known is None or (known[0] is Outcome.UNKNOWN and known[1] < seconds):
            known = self._of_parts[part] = self._model_of(part, limit)[0].outcome, seconds
        return known[0]

    def _solve(self, formula: Term, limit: float | None = None) -> Answer:
        answer, width, sure = self._any_model(formula, limit)
        return self._smaller(formula, answer, width) if answer.outcome is Outcome.MODEL and sure else answer

    def _any_model(self, formula: Term, limit: float | None = None) -> tuple[Answer, int | None, bool]:
        """An answer, the width of its integers, and whether a model is more than a candidate.

        Where parts of it are less than the formula, it is asked for a model only if all of them have one.
        """
        if self.refuted_linearly(formula):
            return REFUTED, None, True
        parts = self._parts_of(formula)
        if self._are_less(parts, formula):
            if self._impossible(parts, limit):
                return REFUTED, None, True
            if any(self._outcome(part, limit) is Outcome.UNKNOWN for part in parts):
                return UNKNOWN, None, True
        return self._model_of(formula, limit)

    def _are_less(self, parts: list[Term], formula: Term) -> bool:
        """Equations were put in, or what is hard has nothing to do with each other."""
        if len(parts) != 1:
            return bool(parts)
        said = set(t.conjuncts(formula))
        left_out = t.and_(*(said - set(t.conjuncts(parts[0]))))
        return not said.issuperset(t.conjuncts(parts[0])) or not _is_plain(left_out)

    def _model_of(self, formula: Term, limit: float | None) -> tuple[Answer, int | None, bool]:
        """As ``_any_model``, of all of the formula at once."""
        answer, inexact = self._check(formula, Encoder(), limit)
        if answer.outcome is Outcome.REFUTED or not has_bits(formula):
            return answer, None, not inexact
        width = width_for(formula)
        return self._check(formula, Encoder(width), limit)[0], width, True

    def _smaller(self, formula: Term, answer: Answer, width: int | None) -> Answer:
        """A model with modest parameters, rounds and blocks, and contents if need be, when there is one."""
        for limit in budgets.SMALL_WITNESSES:
            wide = [
                part for part, value in (answer.values or {}).items()
                if part.op in _CHOSEN and not 0 <= value <= limit and part.hi >= MAX_BLOCK_THREADS
            ]  # fmt: skip
            if not wide:
                return answer
            numbers = [part for part in wide if part.op is Op.SYMBOL]
            for chosen in (wide, numbers) if 0 < len(numbers) < len(wide) else (wide,):
                limits = (t.and_(t.le(t.ZERO, part), t.le(part, t.const(limit))) for part in chosen)
                better, _ = self._check(t.and_(formula, *limits), Encoder(width))
                if better.outcome is Outcome.MODEL:
                    return better
        return answer

    def satisfiable(self, formula: Term, *, patiently: bool = False) -> bool | None:
        """Whether the formula has a model; None: not decided. ``patiently``: as in ``ask``."""
        if formula is t.FALSE:
            return False
        answer = self.known.get(formula) or self._any.get(formula)
        if answer is None:
            answer = self._any_model(formula, self.limit if patiently else None)[0]
            self._any[formula] = answer
        return None if answer.outcome is Outcome.UNKNOWN else answer.outcome is Outcome.MODEL

    def possible(self, p: Problem, facts: Term) -> bool | None:
        """Whether the pair's formula has a model under ``facts``; None: not decided."""
        return self.satisfiable(self.complete(t.and_(facts, p.formula), p))

    def _check(self, formula: Term, encoder: Encoder, limit: float | None = None) -> tuple[Answer, bool]:
        if formula is t.FALSE:
            return REFUTED, False
        hard = not (encoder.linear or is_linear(formula))
        usual = min(self.limit, budgets.HARD_QUERY_S) if hard else self.limit
        left = min(limit or usual, self.limit, self.deadline - work.now())
        if left <= budgets.LEAST_QUERY_S:
            return UNKNOWN, False
        self.stats.queries += 1
        try:
            goal = encoder.encode(formula)
        except (RecursionError, ctypes.ArgumentError):  # nested too deeply for Python's stack
            return UNKNOWN, True
        solver = _solver(encoder)
        brief = hard and left < self.limit
        solver.set("rlimit", work.z3_units(left, brief))
        seconds = work.DONE.safety * max(left, budgets.LEAST_WATCH_S)
        solver.set("timeout", int(1000 * work.DONE.patience * seconds))
        solver.add(*encoder.constraints, goal)
        try:
            with WATCH.over(encoder.context, seconds):
                result = solver.check()
            work.DONE.queries += 1
            units = int(solver.statistics().get_key_value("rlimit count"))
            work.DONE.units += units * (work.HARD if hard else 1)
            if result == z3().unsat:
                return REFUTED, encoder.inexact
            if result != z3().sat:
                return UNKNOWN, encoder.inexact
            model = solver.model()
            return Answer(Outcome.MODEL, _values(model, encoder), _cells(model, encoder)), encoder.inexact
        except z3().Z3Exception as error:
            if _CANCELED not in str(error):
                raise
            return UNKNOWN, encoder.inexact  # the time was over as the answer came


def _solver(encoder: Encoder) -> Any:
    """Of Z3, for the formula's theory.

    What Z3 chooses for integers is a row of tactics that the clock on the wall ends one after the other: a
    busy machine would get other answers. Its core by itself answers more, and sooner: of 1,164 questions of
    kernels of public projects 51 that were open, in two thirds of the time; eight it leaves open. Gröbner
    bases are ten times as slow as the units that they count, and decide nothing more.
    """
    if encoder.width is not None:
        return z3().Solver(ctx=encoder.context)
    core = z3().SimpleSolver(ctx=encoder.context)
    core.set("smt.arith.nl.grobner", False)
    return core


_NONLINEAR = frozenset({*BIT_OPS, Op.DIV, Op.REM, Op.POWER, Op.WRAP, Op.INTRINSIC})


_PLAIN = frozenset(
    {Op.LE, Op.EQ, Op.NOT, Op.AND, Op.OR, Op.SUM, Op.SYMBOL, Op.CONST, Op.TRUE, Op.APPLY, Op.TEST}
)


def _is_plain(term: Term) -> bool:
    """Comparisons of sums of unknowns, which take no search through numbers."""
    parts = list(t.subterms(term))
    return all(x.op in _PLAIN for x in parts) and is_linear(term)


def is_linear(term: Term) -> bool:
    """Sums of symbols only, with quotients by constants."""
    for part in t.subterms(term):
        if part.op in _NONLINEAR or (part.op is Op.SUM and any(len(m) > 1 for m in t.monomials(part))):
            return False
    return True


def _values(model: Any, encoder: Encoder) -> dict[Term, int]:
    values: dict[Term, int] = {}
    for term, variable in encoder.names.items():
        values[term] = _integer(model.eval(variable, model_completion=True), encoder)
    return values


def _cells(model: Any, encoder: Encoder) -> dict[tuple[str, int], int]:
    cells: dict[tuple[str, int], int] = {}
    for term, variable in encoder.names.items():
        if term.op is Op.APPLY and len(term.args[2]) == 1:
            operand = encoder.encode(term.args[2][0])
            where = _integer(model.eval(operand, model_completion=True), encoder)
            cells[term.args[0], where] = _integer(model.eval(variable, model_completion=True), encoder)
    return cells


def _integer(value: Z3, encoder: Encoder) -> int:
    if z3().is_bool(value):
        return int(z3().is_true(value))
    return value.as_long() if encoder.width is None else value.as_signed_long()
