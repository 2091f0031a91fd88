"""Variables that change only under a condition that nothing but their own change can end.

``for (…) { if (t < n) { n /= 2; i *= 2; } __syncthreads(); }``: where the condition fails, nothing that it
asks changes, so that it fails in all later rounds. Who passes it in round k passed it in all rounds before,
and has of these variables what k rounds without the ``if`` make of them; of others' nothing is known but that
they do not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from cuda_lsp.ir.program import Var
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import Fact
from cuda_lsp.static.symbolic.invariants import ways
from cuda_lsp.static.symbolic.scene import Scene
from cuda_lsp.static.symbolic.terms import Level, Op, Term
from cuda_lsp.static.symbolic.values import Value

Close = Callable[[Var, Value, Sequence[Var], bool], Value | None]
"""A variable at the start of round k, from what a round makes of it; those that are not known yet; whether it
is none below zero."""


def lasting(
    scene: Scene, k: Term, marks: Mapping[Var, Term], behind: Mapping[Var, Value],
    others: Mapping[Var, Value], close: Close, level: Level,
) -> dict[Var, Value]:  # fmt: skip
    """Those of the variables ``behind`` a round that have a form at round k, while their condition holds.

    ``marks``: what stands for them at the round's start; ``others``: what is known of them without it;
    ``level``: among which threads they agree.
    """
    found: dict[Var, Value] = {}
    for condition, group in _groups(marks, behind).items():
        parts = frozenset(t.subterms(condition))
        asked = {var for var, mark in marks.items() if mark in parts}
        if not asked or not asked <= group.keys() or not _steady(parts, k):
            continue
        forms = _forms(condition, group, marks, behind, close)
        known = {var: value for var in forms if isinstance(value := others[var], Term)}
        if asked <= known.keys():
            found |= _while_it_holds(scene, k, condition, marks, forms, known, level)
    return found


def _groups(marks: Mapping[Var, Term], behind: Mapping[Var, Value]) -> dict[Term, dict[Var, Term]]:
    """By the one condition under which a round changes them: variables, and what it makes of them."""
    found: dict[Term, dict[Var, Term]] = {}
    for var, value in behind.items():
        cases = ways(value, t.TRUE) if isinstance(value, Term) and var in marks else None
        changed = [case for case in cases or () if t.sub(case[1], marks[var]) is not t.ZERO]
        if cases is not None and len(changed) == 1 < len(cases):
            ((condition, then),) = changed
            found.setdefault(condition, {})[var] = then
    return found


def _steady(parts: Iterable[Term], k: Term) -> bool:
    """Apart from the variables a condition of these parts asks the same in all rounds."""
    return all(x is not k and x.op not in (Op.APPLY, Op.TEST) for x in parts)


def _forms(
    condition: Term, group: Mapping[Var, Term], marks: Mapping[Var, Term], behind: Mapping[Var, Value],
    close: Close,
) -> dict[Var, Term]:  # fmt: skip
    """What so many rounds make of variables that each of them changes, the condition holding."""
    limits = [part.args[0] for part in t.conjuncts(condition) if part.op is Op.LE]
    forms: dict[Var, Term] = {}
    progress = True
    while progress:
        progress = False
        for var in [v for v in group if v not in forms]:
            value = t.substitute(group[var], {marks[v]: form for v, form in forms.items()})
            positive = any(t.add(limit, marks[var]).lo >= 0 for limit in limits)  # limit <= 0
            form = close(var, value, [v for v in behind if v not in forms], positive)
            if isinstance(form, Term):
                forms[var], progress = form, True
    return forms


def _while_it_holds(
    scene: Scene, k: Term, condition: Term, marks: Mapping[Var, Term], forms: Mapping[Var, Term],
    others: Mapping[Var, Term], level: Level,
) -> dict[Var, Value]:  # fmt: skip
    """The variables by whether the condition held in all rounds before; notes what that says."""
    name, operands = f"?{scene.number()}", (*scene.iterators, k)
    scene.unknowns[name] = "whether a condition held in all rounds before"
    always = t.eq(t.apply(name, max(level, t.level_of(condition)), operands, 0, 1), t.ZERO)
    values = {var: t.ite(always, forms[var], other) for var, other in others.items()}

    def asked(of: Mapping[Var, Term]) -> Term:
        return t.substitute(condition, {marks[var]: x for var, x in of.items()})

    passes = t.and_(always, asked(forms))
    scene.lasting[asked(values)] = passes
    before = t.or_(t.eq(k, t.ZERO), t.substitute(asked(forms), {k: t.sub(k, t.ONE)}))
    fact = t.and_(t.or_(always, t.not_(asked(others))), t.or_(t.not_(always), before))
    formals = tuple(t.symbol(f"f{i}.{name}", Level.GRID) for i in range(len(operands)))
    scene.invariants[name] = Fact(formals, t.substitute(fact, dict(zip(operands, formals, strict=True))))
    return dict(values)
