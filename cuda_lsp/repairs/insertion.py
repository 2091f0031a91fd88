"""A further statement in a text, laid out as what stands around it is."""

from __future__ import annotations

import re

from cuda_lsp.repairs.candidate import Edit
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form, Statement
from cuda_lsp.repairs.updates import declared_name

_PRAGMA = re.compile(r"\s*#\s*pragma\b")
_STEP = "    "


def before(source: Source, statement: Statement, added: str) -> tuple[Edit, ...]:
    """``added`` before a statement of a block, and before the pragmas that belong to it."""
    if not source.begins_line(statement.start):
        return (Edit(statement.start, statement.start, f"{added} "),)
    line = source.line_start(statement.start)
    while line > 0 and _PRAGMA.match(source.text, above := source.line_start(line - 1)):
        line = above
    return (Edit(line, line, f"{source.indent(statement.start)}{added}{source.newline}"),)


def behind(source: Source, statement: Statement, added: str) -> tuple[Edit, ...]:
    """``added`` behind a statement of a block."""
    if not (source.begins_line(statement.start) and source.ends_line(statement.end)):
        return (Edit(statement.end, statement.end, f" {added}"),)
    indent = source.indent(statement.start)
    return (Edit(statement.end, statement.end, f"{source.newline}{indent}{added}"),)


def at_end(source: Source, body: Statement, added: str) -> tuple[Edit, ...]:
    """``added`` as the last of a loop's or branch's body, which gets braces if it has none."""
    if body.form is not Form.BLOCK:
        return (Edit(body.start, body.start, "{ "), Edit(body.end, body.end, f" {added} }}"))
    closing = body.end - 1
    if source.begins_line(closing):
        line = source.line_start(closing)
        indent = source.indent(body.parts[-1].start) if body.parts else source.indent(closing) + _STEP
        return (Edit(line, line, f"{indent}{added}{source.newline}"),)
    space = "" if source.text[closing - 1].isspace() else " "
    return (Edit(closing, closing, f"{space}{added} "),)


def at_beginning(source: Source, body: Statement, added: str) -> tuple[Edit, ...]:
    """``added`` as the first of a loop's or branch's body, which gets braces if it has none."""
    if body.form is Form.BLOCK and body.parts:
        return before(source, body.parts[0], added)
    if body.form is Form.BLOCK:
        return at_end(source, body, added)
    return (Edit(body.start, body.start, f"{{ {added} "), Edit(body.end, body.end, " }"))


def removed(source: Source, statement: Statement) -> tuple[Edit, ...]:
    """Without a statement of a block, and without its line where nothing else stands on it."""
    if source.begins_line(statement.start) and source.ends_line(statement.end):
        line = source.line_start(statement.start)
        return (Edit(line, source.line_end(statement.end), ""),)
    end = statement.end
    while end < len(source.text) and source.text[end] in " \t":
        end += 1
    return (Edit(statement.start, end, ""),)


def guarded(
    source: Source, statement: Statement, access: tuple[int, int], condition: str
) -> tuple[Edit, ...]:
    """A statement under a condition; of a declaration the value that it reads, which is 0 elsewhere."""
    start, end = statement.start, statement.end
    if declared_name(source.plain[start:end]) is not None:
        return (Edit(access[0], access[0], f"({condition} ? "), Edit(access[1], access[1], " : 0)"))
    if source.statements.path(start)[-2].form is Form.BLOCK:
        return (Edit(start, start, f"if ({condition}) "),)
    return (Edit(start, start, f"{{ if ({condition}) "), Edit(end, end, " }"))  # an ``else`` may follow
