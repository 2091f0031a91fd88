"""Statements that change one place of memory, as they are written: what is changed, how, and by what."""

from __future__ import annotations

import re
from itertools import count

from attrs import frozen

from cuda_lsp.repairs.candidate import Edit

_ASSIGNMENT = re.compile(r"\s*(<<|>>|[-+*/%&|^])?=(?!=)\s*")
_WRITTEN = re.compile(r"([^=;]*)=(?!=)")
_OPERATOR = re.compile(r"(?:<<|>>|[-+*/%&|^])\Z")
_CHANGES = re.compile(r"\+\+|--|\w\s*\(|(?<![=!<>])=(?!=)")
_LONGEST = 1000  # characters of a statement
_NOT_PLAIN = ("//", "/*", '"', "\n#")


@frozen
class Update:
    """``target operator= value``. ``operator`` empty: a plain assignment. ``start``: of the target."""

    start: int
    target: str
    operator: str
    value: str


def update_at(text: str, target: tuple[int, int], end: int) -> Update | None:
    """The assignment to the expression at ``target`` that ends, with its semicolon, at ``end``."""
    operator = _ASSIGNMENT.match(text, target[1])
    if operator is None or any(mark in text[target[0] : end] for mark in _NOT_PLAIN):
        return None
    if operator[1] and _CHANGES.search(text[slice(*target)]):
        return None  # who writes the target twice changes something twice
    value = text[operator.end() : end - 1].strip()
    if not value or has_comma(value) or re.search(r"(?<![=!<>])=(?!=)", value):
        return None
    return Update(target[0], text[slice(*target)], operator[1] or "", value)


def step_at(text: str, target: tuple[int, int], start: int, end: int) -> Update | None:
    """``target++;`` or ``--target;`` as a statement from ``start`` to ``end``."""
    before, after = text[start : target[0]].strip(), text[target[1] : end - 1].strip()
    sign = before or after
    if (before and after) or sign not in ("++", "--"):
        return None
    return Update(target[0], text[slice(*target)], sign[0], "1")


def taken_apart(text: str, target: tuple[int, int], end: int, barrier: str, *, followed: bool) -> Edit | None:
    """The assignment to ``target`` that ends at ``end``, with a barrier between its reads and its write."""
    update = update_at(text, target, end)
    if update is None:
        return None
    value = value_of(update)
    name = unused("sum" if update.operator == "+" else "value", text[target[0] : end])
    last = f" {barrier}" if followed else ""
    pieces = f"{{ const auto {name} = {value}; {barrier} {update.target} = {name};{last} }}"
    return Edit(target[0], end, pieces)


def written_at(text: str, start: int, end: int) -> Update | None:
    """The assignment that a whole statement is."""
    if end - start > _LONGEST:
        return None
    written = _WRITTEN.match(text, start, end)
    if written is None:
        return None
    target = _OPERATOR.sub("", written[1]).rstrip()
    return update_at(text, (start, start + len(target)), end)


def value_of(update: Update) -> str:
    """What is written."""
    return f"{update.target} {update.operator} ({update.value})" if update.operator else update.value


def unused(name: str, statement: str) -> str:
    """A name like this one that a text does not have."""
    names = (f"{name}{n or ''}" for n in count())
    return next(n for n in names if not re.search(rf"\b{n}\b", statement))


def has_comma(expression: str) -> bool:
    """Outside parentheses and brackets."""
    inner = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
    while (shorter := inner.sub("", expression)) != expression:
        expression = shorter
    return "," in expression


_DECLARATION = re.compile(
    r"\s*(?:[A-Za-z_][\w:]*(?:<[^;=<>]*>)?[\s*&]+)+([A-Za-z_]\w*)\s*(?:=(?!=)|;|\[|,|\{|\()"
)
_NO_TYPE = re.compile(r"\s*(?:return|delete|throw|goto|else)\b")


def declared_name(statement: str) -> str | None:
    """The name that a statement declares first; None: it is no declaration, which begins with two names."""
    found = _DECLARATION.match(statement[:_LONGEST])
    return found[1] if found and not _NO_TYPE.match(statement) else None
