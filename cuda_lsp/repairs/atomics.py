"""Updates that several threads make of one place (``count += 1``), made atomic."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.model import Code, FileReport, Finding
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.candidate import Candidate, Edit
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form
from cuda_lsp.repairs.updates import Update, step_at, update_at

RACES = (Code.SHARED_RACE, Code.GLOBAL_RACE, Code.WARP_RACE)
_BY_OPERATOR = {"+": "atomicAdd", "-": "atomicSub", "&": "atomicAnd", "|": "atomicOr", "^": "atomicXor"}
_WORDS = frozenset({"int", "unsigned", "unsigned int", "unsigned long long", "uint", "int32_t", "uint32_t"})
_TYPES = {
    "Add": _WORDS | {"float", "double"},
    "Min": _WORDS | {"long long"},
    "Max": _WORDS | {"long long"},
}
"""What CUDA has each of these for, and the others for words."""
_EXTREME = re.compile(r"f?(min|max)f?\s*\((.*)\)\Z", re.DOTALL)


def atomics(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """All updates of the place that take part in a race, as atomic operations."""
    del report
    if finding.code not in RACES or not source.here(finding):
        return
    sites = (finding.site, *(related.site for related in finding.related[:1]))
    edits: dict[int, Edit] = {}
    for extent in dict.fromkeys(site.range for site in sites):
        statement = source.statement_at(extent)
        if statement is None or statement.form is not Form.SIMPLE:
            return
        update = _update(source, statement.start, statement.end)
        atomic = _atomic(update) if update else None
        if update is None or atomic is None or not _exists(source, statement.start, update, atomic):
            return
        edits[statement.start] = Edit(statement.start, statement.end, f"{atomic};")
    lines = ", ".join(str(source.position(at).line) for at in edits)
    yield Candidate(RepairKind.ATOMIC, f"Make the update of line {lines} atomic", tuple(edits.values()))


def _update(source: Source, start: int, end: int) -> Update | None:
    """The update that a whole statement is."""
    text = source.text
    step = re.compile(r"(?:\+\+|--)?\s*([^=;]*?)\s*(?:\+\+|--)?\s*;").fullmatch(text, start, end)
    if step and (found := step_at(text, step.span(1), start, end)):
        return found
    target = re.compile(r"[^=;]*?(?=\s*(?:<<|>>|[-+*/%&|^])?=(?!=))").match(text, start, end)
    return update_at(text, (start, target.end()), end) if target else None


def _atomic(update: Update) -> str | None:
    """``atomicAdd(&x, v)`` for ``x += v``, ``x = x + v`` and the like; None: it is something else."""
    target = update.target.strip()
    if not target or not re.match(r"[*(]*[A-Za-z_]", target) or re.search(r"[\w\]]\s+\w", target):
        return None
    place = target[1:].strip() if target.startswith("*") else f"&{target}"
    if update.operator:
        return _call(update.operator, place, update.value)
    written = re.escape(target)
    left = re.match(rf"{written}\s*([-+&|^])\s*", update.value)
    if left and (left[1] not in "&|" or update.value[left.end() : left.end() + 1] != left[1]):
        value = update.value[left.end() :]
        return _call(left[1], place, value) if _binds(left[1], value) else None
    extreme = _EXTREME.match(update.value)
    if extreme:
        other = re.sub(rf"^\s*{written}\s*,|,\s*{written}\s*$", "", extreme[2], count=1)
        if other != extreme[2]:
            return f"atomic{extreme[1].capitalize()}({place}, {other.strip()})"
    return None


def _exists(source: Source, at: int, update: Update, atomic: str) -> bool:
    """Whether CUDA has the operation for the type that the target is declared with, as this text has it."""
    name = re.match(r"[*(\s]*([A-Za-z_]\w*)\s*(?:\[|\)|\Z)", update.target)
    path = source.statements.path(at)
    if name is None or not path:
        return False
    begin = max(source.plain.rfind(mark, 0, path[0].start) for mark in ";}{") + 1
    declared = re.compile(rf"([A-Za-z_][\w\s]*?)[\s*&]+(?:__restrict__\s+)?{name[1]}\s*[\[;,)=]")
    for found in declared.finditer(source.plain, begin, at):
        words = [word for word in found[1].split() if word not in ("__shared__", "extern", "static")]
        if words not in (["return"], ["else"]):
            of = atomic.removeprefix("atomic").partition("(")[0]
            return " ".join(words) in _TYPES.get(of, _WORDS)
    return False


def _binds(operator: str, value: str) -> bool:
    """Whether ``x operator value`` is ``x`` with all of the value: nothing in it binds less."""
    bare = value
    inner = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
    while (shorter := inner.sub("", bare)) != bare:
        bare = shorter
    return re.search(r"[-+&|^?<>=!]" if operator != "+" else r"[&|^?<>=!]", bare) is None


def _call(operator: str, place: str, value: str) -> str | None:
    function = _BY_OPERATOR.get(operator)
    if function is None:
        return None
    if operator == "-":  # there is none for floats
        return f"atomicAdd({place}, -({value}))"
    return f"{function}({place}, {value})"
