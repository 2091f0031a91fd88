"""Constructs that the front end did not translate, as findings and as reasons against a verdict.

And those that it translated as their authors mean them, which the language does not promise.
"""

from __future__ import annotations

from collections.abc import Iterator

from cuda_lsp.ir.program import Assign, Barrier, Incomplete, Intrinsic, Kernel, Var
from cuda_lsp.ir.walk import subexpressions, walk
from cuda_lsp.model import Code, LaunchConfig, Status
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.conditions import OnData
from cuda_lsp.static.findings.diagnosis import Diagnosis

COMPILE_ERRORS = "the kernel has compile errors"


def _incomplete(kernel: Kernel) -> Iterator[Incomplete]:
    """Statements that were not translated, harmless ones left out, in order of the text."""
    return (s for s in walk(kernel.body) if isinstance(s, Incomplete) and not s.harmless)


def incomplete_findings(kernel: Kernel, launch: LaunchConfig) -> tuple[Diagnosis, ...]:
    """One ``analysis-incomplete`` a place."""
    found: dict[object, Incomplete] = {}
    for statement in _incomplete(kernel):
        found.setdefault(statement.site.range, statement)
    return tuple(
        Diagnosis(
            Code.ANALYSIS_INCOMPLETE, Status.POSSIBLE, words.incomplete(s),
            kernel.name, s.site, doubt=OnData(s.reason), launch=launch,
            advised=s.step.value,
        )
        for s in found.values()
    )  # fmt: skip


def reasons(kernel: Kernel) -> tuple[str, ...]:
    """Why this kernel cannot be called race-free, whatever the engines say."""
    named = (s.told for s in _incomplete(kernel))
    errors = (COMPILE_ERRORS,) if kernel.errors else ()
    return tuple(dict.fromkeys((*named, *errors)))


def taken_as_meant(kernel: Kernel) -> tuple[str, ...]:
    """What was translated in good faith.

    Pieces of one buffer lie apart; lanes that come to a barrier of the active ones come together.
    """
    active: set[Var] = set()
    lines: dict[int, str] = {}
    for s in walk(kernel.body):
        told = s.value if isinstance(s, Assign) else s.mask if isinstance(s, Barrier) else None
        parts = () if told is None else subexpressions((told,))
        if not any(p in active or (isinstance(p, Intrinsic) and p.name == "__activemask") for p in parts):
            continue
        if isinstance(s, Assign):
            active.add(s.var)
        elif isinstance(s, Barrier) and not s.implied:
            lines.setdefault(s.site.range.start.line, s.site.text)
    text = "all lanes that come to `{}` (line {}) are active together"
    return (*kernel.granted, *(text.format(barrier, line) for line, barrier in lines.items()))
