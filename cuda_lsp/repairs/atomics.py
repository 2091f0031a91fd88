"""What several threads do to one place (``count += 1``), made atomic, and for all who do it.

Statements that are an update, whole; conditional maxima and minima; ``slot = count++`` in an expression;
stores of one and the same value (flags); atomics of a block's scope where other blocks come, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from cuda_lsp.model import RACES, FileReport, Finding
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.atomic_calls import atomic_call, atomic_extreme, call, exists
from cuda_lsp.repairs.candidate import Candidate, Edit
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form, Statement
from cuda_lsp.repairs.updates import Update, step_at, written_at

_LONGEST = 1000  # characters of a statement
_STEP_BEHIND = re.compile(r"\s*(?:\)+\s*)?(\+\+|--)")
_STEP = re.compile(r"(?:\+\+|--)?\s*(?:([^\s=;+-](?:\s*[^\s=;+-])*)\s*)?(?:(?:\+\+|--)\s*)?;")
_OF_BLOCK = re.compile(r"\b(atomic[A-Z]\w*)_block\s*\(")
_CONSTANT = re.compile(r"-?(?:\d[\w.]*|true|false)")


def atomics(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """All accesses that take part in a race, as atomic operations."""
    del report
    if finding.code not in RACES or not source.here(finding):
        return
    ways: tuple[Callable[[Source, Statement, int], Edit | None], ...] = (_whole, _maximum, _step, _wider)
    for way in ways:
        yield from _made_atomic(source, finding, way)


def flags(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """Stores of one and the same value: so much for something harmless need not be meant."""
    del report
    if finding.code in RACES and source.here(finding) and finding.same_value:
        yield from _made_atomic(source, finding, _flag, keeps=False)


def _made_atomic(
    source: Source,
    finding: Finding,
    way: Callable[[Source, Statement, int], Edit | None],
    *,
    keeps: bool = True,
) -> Iterator[Candidate]:
    """Both accesses changed in the same way."""
    sites = (finding.site, *(related.site for related in finding.related[:1]))
    edits: dict[int, Edit] = {}
    for extent in dict.fromkeys(site.range for site in sites):
        statement = source.statement_at(extent)
        edit = way(source, statement, source.offset(extent.start)) if statement is not None else None
        if edit is None:
            return
        edits[edit.start] = edit
    lines = ", ".join(dict.fromkeys(str(source.position(at).line) for at in sorted(edits)))
    title = f"Make the update of line {lines} atomic"
    yield Candidate(RepairKind.ATOMIC, title, tuple(edits.values()), keeps_meaning=keeps)


def _whole(source: Source, statement: Statement, at: int) -> Edit | None:
    """``x += v;``, ``x++;``, ``x = x + v;``, ``x = max(x, v);``."""
    del at
    if statement.form is not Form.SIMPLE:
        return None
    update = _update(source, statement.start, statement.end)
    atomic = atomic_call(update) if update else None
    if update is None or atomic is None or not exists(source, statement.start, update.target, atomic):
        return None
    return Edit(statement.start, statement.end, f"{atomic};")


def _update(source: Source, start: int, end: int) -> Update | None:
    """The update that a whole statement is."""
    if end - start > _LONGEST:
        return None
    step = _STEP.fullmatch(source.text, start, end)
    if step and step[1] and (found := step_at(source.text, step.span(1), start, end)):
        return found
    return written_at(source.text, start, end)


def _maximum(source: Source, statement: Statement, at: int) -> Edit | None:
    """``if (… && v > x) x = v;``, seen from either of its accesses."""
    path = source.statements.path(at)
    branch = next((s for s in reversed(path) if s.form is Form.IF), None)
    if branch is None or branch.head is None or len(branch.parts) != 1:
        return None
    body = branch.parts[0]
    body = body.parts[0] if body.form is Form.BLOCK and len(body.parts) == 1 else body
    update = written_at(source.text, body.start, body.end) if body.form is Form.SIMPLE else None
    if update is None or update.operator:
        return None
    condition = source.text[branch.head[0] + 1 : branch.head[1] - 1]
    first, joint, last = condition.rpartition("&&")
    atomic = atomic_extreme(update, last)
    if atomic is None or not exists(source, body.start, update.target, atomic):
        return None
    if not joint:
        return Edit(branch.start, branch.end, f"{atomic};")
    return Edit(branch.start, branch.end, f"if ({first.strip()}) {atomic};")


def _step(source: Source, statement: Statement, at: int) -> Edit | None:
    """``x++`` or ``(*x)++`` in an expression, whose value is the one before."""
    opened = re.compile(r"[(\s]*").match(source.plain, at, statement.end)
    at = opened.end() if opened else at
    access = re.compile(r"(?:\*\s*)?[A-Za-z_]\w*(?:\s*\[[^\[\]]*\])*").match(source.plain, at, statement.end)
    behind = _STEP_BEHIND.match(source.plain, access.end(), statement.end) if access else None
    if access is None or behind is None:
        return None
    closed = source.plain[access.end() : behind.start(1)].count(")")
    start = at
    for _ in range(closed):
        start = source.plain.rfind("(", statement.start, start)
        if start < 0 or source.plain[start + 1 : at].strip(" ("):
            return None
    target = source.text[at : access.end()]
    atomic = call(behind[1][0], target, "1")
    if atomic is None or not exists(source, statement.start, target, atomic):
        return None
    return Edit(start, behind.end(), atomic)


def _wider(source: Source, statement: Statement, at: int) -> Edit | None:
    """``atomicAdd_block(…)`` for the whole device."""
    found = _OF_BLOCK.search(source.plain, statement.start, statement.end)
    if found is None or not statement.start <= at < statement.end:
        return None
    return Edit(found.end(1), found.end(1) + len("_block"), "")


def _flag(source: Source, statement: Statement, at: int) -> Edit | None:
    """``*found = 1;`` of many threads."""
    del at
    update = (
        written_at(source.text, statement.start, statement.end) if statement.form is Form.SIMPLE else None
    )
    if update is None or update.operator or not _CONSTANT.fullmatch(update.value):
        return None
    atomic = call("=", update.target, update.value)
    if atomic is None or not exists(source, statement.start, update.target, atomic):
        return None
    return Edit(statement.start, statement.end, f"{atomic};")
