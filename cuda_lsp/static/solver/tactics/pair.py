"""What a tactic gets and what it gives: one pair of accesses that is not decided, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, evolve, field, frozen

from cuda_lsp.model import LaunchConfig
from cuda_lsp.static.findings.conditions import Doubt
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.solver.query import Query
from cuda_lsp.static.solver.rows.pitch import Pitch
from cuda_lsp.static.solver.rows.stated import speaks_against_sizes
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.affine import Problem
from cuda_lsp.static.symbolic.intervals import Sites
from cuda_lsp.static.symbolic.terms import Term


@frozen
class Proved:
    """The two accesses cannot race. ``assumptions``: what that takes for granted, for people."""

    assumptions: tuple[str, ...] = ()


@frozen
class Shown:
    """They race, or may, as the finding says. ``assumptions``: as of ``Proved``."""

    finding: Diagnosis
    assumptions: tuple[str, ...] = ()


@frozen
class GaveUp:
    """No tactic further down is worth its work. ``why`` the pair is not decided."""

    why: Doubt


Answer = Proved | Shown | GaveUp


@define(eq=False)
class Group:
    """Pairs that differ in conditions on data only, and in names of counters.

    ``first``: the first of them, with those of its conditions that all have; ``rename``: its counters as all
    of them are called. ``answers``: for all, by the tactics that were asked for it; ``meet``: whether they do
    in a row.
    """

    first: Problem
    rename: Callable[[Term], Term]
    members: int = 0
    answers: dict[tuple[Tactic, ...], Proved | None] = field(
        factory=dict["tuple[Tactic, ...]", "Proved | None"]
    )
    meet: bool | None = None


@define(eq=False)
class OpenPair:
    """A pair under one setting, with what tactics so far have found out about it.

    ``facts``: how its two threads relate. ``launch`` None: every launch of the target is meant; nothing but
    proofs is wanted then, and of sizes nothing is taken for granted. ``among``: how many pairs are open;
    ``waiting``: how many of them, with this one, the round has not come to.
    ``known``: what is told of its places already. ``meets``: the two accesses meet wherever both are
    reached. ``broken``: rows that the program itself makes overlap.
    ``met``: a race that happens under the launch, which is only assumed.
    """

    p: Problem
    facts: Term
    query: Query
    launch: LaunchConfig | None
    among: int = 0
    waiting: int = 1
    known: Diagnosis | None = None
    meets: bool = False
    broken: Pitch | None = None
    group: Group | None = None
    met: Diagnosis | None = None

    @property
    def sites(self) -> Sites:
        """Where the two accesses stand, first in the text first."""
        return self.p.pair.sites

    def excludes(self, *parts: Term) -> bool:
        """These are impossible beside what relates the two threads, as far as linear arithmetic goes."""
        formula = t.and_(self.facts, *parts)
        return self.query.refutes_quickly(self.query.complete(formula, self.p))


Tactic = Callable[[OpenPair], Answer | None]
"""Tries to decide a pair; None: it has nothing to say."""


def first_answer(tactics: tuple[Tactic, ...], pair: OpenPair) -> Answer | None:
    """What the first tactic says that has something to say."""
    return next((answer for tactic in tactics if (answer := tactic(pair)) is not None), None)


def where_positive(pair: OpenPair, terms: tuple[Term, ...], proofs: tuple[Tactic, ...]) -> Proved | None:
    """What ``proofs`` show where these are positive; None where the source speaks against it."""
    if not terms or speaks_against_sizes(pair.p, pair.facts, terms, 1, pair.query):
        return None
    positive = t.and_(pair.p.guards, *(t.le(t.ONE, x) for x in terms))
    answer = first_answer(proofs, evolve(pair, p=evolve(pair.p, guards=positive)))
    return answer if isinstance(answer, Proved) else None
