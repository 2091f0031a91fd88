"""A statement lifted out of the branch that it stands in, for a barrier that all threads are to reach.

``if (c) { A; barrier; B }`` becomes ``if (c) { A } barrier; if (c) { B }``. What the condition hangs on may
change in ``A`` or be memory: then its value is kept in a variable.
"""

from __future__ import annotations

import re

from cuda_lsp.repairs.candidate import Edit
from cuda_lsp.repairs.insertion import before, behind, removed
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form, Statement
from cuda_lsp.repairs.updates import declared_name, has_comma, unused

_PURE = re.compile(r"[\w\s.+\-%<>=!&|()/]*\Z")
_NUMBER = re.compile(
    r"\s*(?:const\s+)?(float|double|bool|char|unsigned(?:\s+int)?|int|long(?:\s+long)?)\s+(\w+)\s*="
)
_CALL = re.compile(r"\b[A-Za-z_]\w*\s*\(")
_CHANGED = r"(?:\+\+|--)\s*{name}\b|\b{name}\s*(?:\+\+|--|(?:<<|>>|[-+*/%&|^])?=(?!=))"


def lifted(source: Source, start: int) -> tuple[Edit, ...] | None:
    """Edits that bring the statement at ``start`` out of the innermost branch around it."""
    path = source.statements.path(start)
    if len(path) < 3 or path[-1].form is not Form.SIMPLE:
        return None
    statement, block = path[-1], path[-2]
    branch = block if block.form is Form.IF else path[-3]
    if branch.form is not Form.IF or branch.head is None or len(branch.parts) != 1:
        return None
    if path[path.index(branch) - 1].form is not Form.BLOCK:
        return None  # of ``else if``: what follows it would be for others too
    barrier = source.text[statement.start : statement.end]
    if block is branch:  # without braces
        return (Edit(branch.start, branch.end, barrier),)
    number = block.parts.index(statement)
    first, rest = block.parts[:number], block.parts[number + 1 :]
    if not rest:
        return (*removed(source, statement), *behind(source, branch, barrier))
    if not first:
        return (*removed(source, statement), *before(source, branch, barrier))
    return _split(source, branch, statement, (first[0].start, statement.start), (statement.end, rest[-1].end))


def _split(
    source: Source, branch: Statement, barrier: Statement, first: tuple[int, int], rest: tuple[int, int]
) -> tuple[Edit, ...] | None:
    """The branch twice, with the barrier between."""
    assert branch.head is not None
    one, other = source.plain[slice(*first)], source.plain[slice(*rest)]
    edits = _declared_before(source, branch, first, other)
    if edits is None:
        return None
    condition = source.text[branch.head[0] + 1 : branch.head[1] - 1]
    if not _stays(condition, one):
        name = unused("taken", source.plain)
        edits = (
            *edits,
            *before(source, branch, f"const bool {name} = {condition.strip()};"),
            Edit(branch.head[0] + 1, branch.head[1] - 1, name),
        )
        condition = name
    text = source.text[barrier.start : barrier.end]
    if not (source.begins_line(barrier.start) and source.ends_line(barrier.end)):
        return (*edits, Edit(barrier.start, barrier.end, f"}} {text} if ({condition}) {{"))
    indent, newline = source.indent(branch.start), source.newline
    lines = f"{indent}}}{newline}{indent}{text}{newline}{indent}if ({condition}) {{"
    return (*edits, Edit(source.line_start(barrier.start), barrier.end, lines))


def _declared_before(
    source: Source, branch: Statement, first: tuple[int, int], other: str
) -> tuple[Edit, ...] | None:
    """What the first part declares and the other uses, declared before the branch; None: it cannot be."""
    edits: tuple[Edit, ...] = ()
    at = first[0]
    for piece in re.split(r"(?<=[;{}])", source.plain[slice(*first)]):
        name = declared_name(piece)
        if name and re.search(rf"\b{name}\b", other):
            number = _NUMBER.match(piece)
            path = source.statements.path(branch.start)
            outside = source.plain[path[0].start : branch.start] + source.plain[branch.end : path[0].end]
            if number is None or number[2] != name or has_comma(piece) or re.search(rf"\b{name}\b", outside):
                return None
            edits += before(source, branch, f"{number[1]} {name} = 0;")
            edits += (Edit(at + number.start(1), at + number.start(2), ""),)
        at += len(piece)
    return edits


def _stays(condition: str, statements: str) -> bool:
    """Whether a condition is the same after these statements, as far as it is plain to see."""
    if _PURE.match(condition) is None or _CALL.search(condition):
        return False
    names = set(re.findall(r"[A-Za-z_]\w*", condition))
    return not any(re.search(_CHANGED.format(name=re.escape(name)), statements) for name in names)
