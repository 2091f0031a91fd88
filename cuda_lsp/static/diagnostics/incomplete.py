"""Constructs that the front end did not translate, as findings and as reasons against a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cuda_lsp.ir.program import Block, If, Incomplete, Kernel, Loop, Stmt
from cuda_lsp.model import Code, LaunchConfig, Status
from cuda_lsp.static.findings.conditions import OnData
from cuda_lsp.static.findings.diagnosis import Diagnosis


def incomplete_statements(statements: Sequence[Stmt]) -> Iterator[Incomplete]:
    """Every ``Incomplete`` of a body, harmless ones left out, in order of the text."""
    for statement in statements:
        if isinstance(statement, Incomplete):
            if not statement.harmless:
                yield statement
        elif isinstance(statement, If):
            yield from incomplete_statements(statement.then)
            yield from incomplete_statements(statement.otherwise)
        elif isinstance(statement, Loop):
            yield from incomplete_statements(statement.test)
            yield from incomplete_statements(statement.body)
            yield from incomplete_statements(statement.step)
        elif isinstance(statement, Block):
            yield from incomplete_statements(statement.body)


def incomplete_findings(kernel: Kernel, launch: LaunchConfig) -> tuple[Diagnosis, ...]:
    """One ``analysis-incomplete`` a place."""
    found: dict[object, Incomplete] = {}
    for statement in incomplete_statements(kernel.body):
        found.setdefault(statement.site.range, statement)
    return tuple(
        Diagnosis(
            Code.ANALYSIS_INCOMPLETE, Status.POSSIBLE, f"{s.construct} is not analysed: {s.reason}",
            kernel.name, s.site, doubt=OnData(s.reason), launch=launch,
        )
        for s in found.values()
    )  # fmt: skip


def reasons(kernel: Kernel) -> tuple[str, ...]:
    """Why this kernel cannot be called race-free, whatever the engines say."""
    named = (f"{s.construct} is not analysed ({s.reason})" for s in incomplete_statements(kernel.body))
    errors = ("the kernel has compile errors",) if kernel.errors else ()
    return tuple(dict.fromkeys((*named, *errors)))
