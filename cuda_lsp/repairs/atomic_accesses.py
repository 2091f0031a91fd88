"""Plain reads and stores of places that threads share on purpose, as atomic operations.

A place is shared on purpose where others change it by atomics, where it is one for all threads, or where
data says which it is for one of them (a list of edges, a table of parents). An index that threads compute of
their numbers is none of these: there the index is wrong, and atomics would hide it. Nor are a read and a
store atomic together: where one thread stores what it has read there, it is an update
(``count = count + 1``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from cuda_lsp.model import RACES, Code, FileReport, Finding, SourceRange
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.atomic_calls import call, exists
from cuda_lsp.repairs.candidate import Candidate, Edit
from cuda_lsp.repairs.elements import Names, names_around, subscripts
from cuda_lsp.repairs.insertion import removed
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form, Statement
from cuda_lsp.repairs.updates import written_at

_IS_ATOMIC = re.compile(
    r"\b(?:atomic[A-Z]\w*|__nv_atomic\w*)\s*[<(]|\.\s*(?:fetch_\w+|load|store|exchange|compare_exchange\w*)\s*\("
)
_PLACE = re.compile(r"\*?\s*[A-Za-z_]\w*(?:\s*(?:\[.*\]|\.\s*[A-Za-z_]\w*|->\s*[A-Za-z_]\w*))*", re.DOTALL)
_ASSIGNED = re.compile(r"\s*=(?!=)\s*")
_READ_FIRST = re.compile(
    r"(?:(?:const\s+)?(?:auto|[A-Za-z_]\w*(?:\s+(?:int|long))*)\s+)?([A-Za-z_]\w*)\s*=(?!=)\s*"
)
_SUM = re.compile(r"([A-Za-z_]\w*)\s*([-+&|^])\s*(.+)", re.DOTALL)
_SCOPE = re.compile(r"\bthread_scope_block\b|\b__NV_THREAD_SCOPE_BLOCK\b")
_WIDE = {"thread_scope_block": "thread_scope_device", "__NV_THREAD_SCOPE_BLOCK": "__NV_THREAD_SCOPE_DEVICE"}
_MOST_ACCESSES = 64
"""Of one repair: nobody would look through more."""


def atomic_accesses_of_a_grid(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """The same where no barrier orders all threads."""
    grid = finding.launch.grid if finding.launch is not None else None
    if finding.code is Code.GLOBAL_RACE and grid != (1, 1, 1):
        yield from atomic_accesses(source, report, finding)


def atomic_accesses(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """An update of two statements as one; then each access by itself; then atomics of the whole device."""
    if finding.code not in RACES or not source.here(finding):
        return
    extents = _extents([finding])
    yield from _fetched(source, extents)
    yield from _each(source, extents)
    alike = [f for f in report.findings if f.kind and (f.kernel, f.array) == (finding.kernel, finding.array)]
    every = _extents([f for f in alike if source.here(f)])
    if finding.array is not None and len(every) > len(extents):
        yield from _each(source, every)
    named = _of_same_name(source, extents)
    if len(named) > len(extents):
        yield from _each(source, named)
    yield from _scopes(source, extents)


def _extents(findings: Iterable[Finding]) -> list[SourceRange]:
    """The accesses of races, each once."""
    return list(
        dict.fromkeys(site.range for f in findings for site in (f.site, *(r.site for r in f.related[:1])))
    )


def _of_same_name(source: Source, extents: list[SourceRange]) -> list[SourceRange]:
    """All elements of the array that the function names, where all of these are of one."""
    names = {re.match(r"\w*", source.plain[source.offset(extent.start) :]) for extent in extents}
    told = {match[0] for match in names if match}
    path = source.statements.path(source.offset(extents[0].start))
    if len(told) != 1 or not path:
        return []
    body = source.plain[: path[0].end]
    starts = re.finditer(rf"(?<![\w.])(?<!->){told.pop()}\s*(?=\[)", body[path[0].start :])
    found = [(path[0].start + match.start(), path[0].start + match.end()) for match in starts]
    ends = [(start, _closing(body, bracket)) for start, bracket in found]
    return [
        SourceRange(source.path, source.position(start), source.position(end)) for start, end in ends if end
    ]


def _closing(text: str, at: int) -> int | None:
    """Behind the bracket that closes the one here."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "[") - (text[place] == "]")
        if depth == 0:
            return place + 1
    return None


def _each(source: Source, extents: list[SourceRange]) -> Iterator[Candidate]:
    if len(extents) > _MOST_ACCESSES:
        return
    texts = [source.plain[slice(*source.extent(extent))] for extent in extents]
    atomic = [_IS_ATOMIC.search(text) is not None for text in texts]
    plain = [extent for extent, known in zip(extents, atomic, strict=True) if not known]
    if not plain or not (any(atomic) or any(_is_meant(source, extent) for extent in plain)):
        return
    edits = [_atomic(source, extent) for extent in plain]
    parts = sorted(
        (part for part in edits if part), key=len
    )  # what a store ends with stands behind its reads
    found = tuple(dict.fromkeys(edit for part in parts for edit in part))
    if None in edits or _is_update(source, plain):
        return
    lines = ", ".join(dict.fromkeys(str(extent.start.line) for extent in sorted(plain)))
    yield Candidate(RepairKind.ATOMIC, f"Make the access of line {lines} atomic", found)


def _is_meant(source: Source, extent: SourceRange) -> bool:
    """Whether all threads mean one place, or the one that data names.

    Data that the kernel itself stores elsewhere names no place for good: a position that threads draw with
    ``base = *count; *count = base + 1`` is wrong when the count is, and atomics at it would hide that.
    """
    access = source.extent(extent)
    names = names_around(source, access[0])
    if names is None:
        return False
    origins = names.origins(" , ".join(subscripts(source.plain[slice(*access)])))
    own = re.match(r"\W*(\w*)", source.plain[slice(*access)])
    others = origins.read - {own[1] if own else ""}
    if any(names.stores_to(name) for name in others):
        return False
    return origins.memory or not (origins.ids or origins.calls)


def _atomic(source: Source, extent: SourceRange) -> tuple[Edit, ...] | None:
    """A store as an exchange whose result nobody takes, a read as an addition of nothing."""
    start, end = source.extent(extent)
    statement, target = source.statement_at(extent), source.plain[start:end].strip()
    if statement is None or _PLACE.fullmatch(target) is None:
        return None
    is_store = statement.form is Form.SIMPLE and _ASSIGNED.match(source.plain, end, statement.end)
    starts = not source.plain[statement.start : start].strip(" \n\t(")
    if is_store and starts:
        if not exists(source, statement.start, _named(target), "atomicExch"):
            return None
        head = (
            Edit(start, start + 1, "atomicExch(")
            if target.startswith("*")
            else Edit(start, start, "atomicExch(&")
        )
        return head, Edit(end, is_store.end(), ", "), Edit(statement.end - 1, statement.end - 1, ")")
    behind = source.plain[end : end + 3].lstrip()
    if re.match(r"(?:\+\+|--|[-+*/%&|^]=|=(?!=))", behind) or not exists(
        source, start, _named(target), "atomicAdd"
    ):
        return None
    head = (
        Edit(start, start + 1, "atomicAdd(") if target.startswith("*") else Edit(start, start, "atomicAdd(&")
    )
    return head, Edit(end, end, ", 0)")


def _named(target: str) -> str:
    """A place as ``exists`` knows it: by the name of its array."""
    found = re.match(r"\*?\s*[A-Za-z_]\w*", target)
    around = target.partition("[")[0] + target.rpartition("]")[2] if "[" in target else target
    return found[0] if found and "." not in around and "->" not in around else target


def _is_update(source: Source, extents: list[SourceRange]) -> bool:
    """Whether a store's value comes from a read of the same place: both would be atomic, and not together.

    So is a store under a condition of the same place, or behind a loop that seeks it by what it holds, but of
    a value that all threads store there.
    """
    for extent in extents:
        start, end = source.extent(extent)
        statement, names = source.statement_at(extent), names_around(source, start)
        if statement is None or names is None or not _ASSIGNED.match(source.plain, end, statement.end):
            continue
        target = "".join(source.plain[start:end].split())
        value = source.plain[end : statement.end]
        if _comes_from(names, value, target):
            return True
        origins = names.origins(value)
        if (origins.ids or origins.memory or origins.calls) and any(
            _comes_from(names, source.plain[slice(*head)], target) for head in _deciding(source, start)
        ):
            return True
    return False


def _deciding(source: Source, at: int) -> Iterator[tuple[int, int]]:
    """Conditions that hold where a statement begins: of each ``if`` around it, of loops before it the end."""
    for around in source.statements.path(at):
        if around.form is Form.IF and around.head is not None:
            yield around.head
        before = (s for s in around.parts if s.end <= at and around.form is Form.BLOCK)
        yield from (s.head for s in before if s.form is Form.LOOP and s.head is not None)


def _comes_from(names: Names, value: str, target: str) -> bool:
    """Whether a place is read for a value, other than to find an element."""
    pending, seen = [value], set[str]()
    while pending:
        text = pending.pop()
        if target in _accesses("".join(text.split())):
            return True
        for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*", _without_subscripts(text)):
            if name not in seen:
                seen.add(name)
                pending += names.values(name)
    return False


def _without_subscripts(text: str) -> str:
    while (shorter := re.sub(r"\[[^\[\]]*\]", "", text)) != text:
        text = shorter
    return text


def _accesses(text: str) -> set[str]:
    """The elements that an expression names outside of brackets, and what pointers of it lead to."""
    found, begin, depth = set[str](), 0, 0
    for at, letter in enumerate(text):
        depth += letter == "["
        if depth == 0 and text[at - 1 : at] == "]" and (letter.isalnum() or letter == "_"):
            begin = at
        elif depth == 0 and not (letter.isalnum() or letter in "_.]*"):
            begin = at + 1
        elif letter == "]":
            depth -= 1
            if depth == 0:
                found.add(text[begin : at + 1])
    return found | set(re.findall(r"(?<![\w)\]])\*\w+|\b[A-Za-z_]\w*(?![\w(\[])", text))


def _fetched(source: Source, extents: list[SourceRange]) -> Iterator[Candidate]:
    """``int old = *count; *count = old + 1;`` as one atomic addition, which gives the value before."""
    for extent in extents:
        store = source.statement_at(extent)
        path = source.statements.path(source.offset(extent.start))
        if store is None or store.form is not Form.SIMPLE or len(path) < 2 or path[-2].form is not Form.BLOCK:
            continue
        update = written_at(source.text, store.start, store.end)
        summed = _SUM.fullmatch(update.value) if update is not None and not update.operator else None
        number = path[-2].parts.index(store)
        if update is None or summed is None or number == 0:
            continue
        read = path[-2].parts[number - 1]
        declared = _READ_FIRST.match(source.plain, read.start, read.end)
        if declared is None or declared[1] != summed[1] or declared[1] in re.findall(r"\w+", summed[3]):
            continue
        if source.plain[declared.end() : read.end - 1].strip() != update.target.strip():
            continue
        atomic = call(summed[2], update.target.strip(), summed[3].strip())
        if atomic is None or not exists(source, store.start, update.target, atomic):
            continue
        edits = (Edit(declared.end(), read.end - 1, atomic), *removed(source, store))
        yield Candidate(RepairKind.ATOMIC, f"Make the update of line {extent.start.line} atomic", edits)


def _scopes(source: Source, extents: list[SourceRange]) -> Iterator[Candidate]:
    """Atomics that only a block's threads see as such, for the whole device."""
    path = source.statements.path(source.offset(extents[0].start))
    function: Statement | None = path[0] if path else None
    if function is None:
        return
    edits = tuple(
        Edit(match.start(), match.end(), _WIDE[match[0]])
        for match in _SCOPE.finditer(source.plain, function.start, function.end)
    )
    if edits:
        yield Candidate(RepairKind.ATOMIC, "Make the atomics those of the whole device", edits)
