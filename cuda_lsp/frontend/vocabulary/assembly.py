"""The text of an ``asm`` statement: its template and constraints, and the operands of instructions."""

from __future__ import annotations

import re
from collections.abc import Callable

from attrs import frozen

from cuda_lsp.blanked import blanked
from cuda_lsp.frontend.lowering.places import Value
from cuda_lsp.frontend.vocabulary.written_out import (
    Definitions,
    NotWritten,
    enclosed,
    tokens,
    use_of_macro,
    written_out,
)
from cuda_lsp.ir.program import Const
from cuda_lsp.ir.types import UINT32, Float, Int, Opaque, Type

_HEAD = re.compile(
    r"\b(?:asm|__asm__|__asm)\b(?:\s*\b(?:volatile|__volatile__|__volatile|inline|__inline__|goto)\b)*\s*"
)
_VECTOR = re.compile(r"\{([^{};]*)\}")
_BETWEEN_PARTS = re.compile(r"[\[\]{},]")


@frozen
class Assembly:
    """One ``asm`` statement: template, operands in order (outputs first), how many are outputs."""

    template: str
    constraints: tuple[str, ...]
    outputs: int


def statement(text: str, macros: Callable[[], Definitions]) -> Assembly | None:
    """The ``asm`` that stands where ``text`` begins, or that a macro there makes; None: it is not known."""
    try:
        head = _HEAD.match(text)
        if head is None:
            return _made(text, macros())
        whole = head[0] + enclosed(text[head.end() :])
        found = parse(whole)
        return parse(written_out(whole, macros())) if found is None else found
    except NotWritten:
        return None


def _made(text: str, macros: Definitions) -> Assembly | None:
    """What the use of a macro that the text begins with makes, where that is one statement."""
    use = use_of_macro(text, macros)
    made = written_out(use, macros)
    if _HEAD.fullmatch(made.strip()):  # of the statement it is the beginning only
        made += written_out(enclosed(text[len(use) :]), macros)
    heads = list(_HEAD.finditer(blanked(made)))
    return parse(made[heads[0].start() :]) if len(heads) == 1 else None


def parse(text: str) -> Assembly | None:
    """Split the source of an ``asm`` statement at its colons; None: its template is not all strings."""
    sections: list[list[str]] = [[]]
    depth = 0
    for token in tokens(text[text.find("(") + 1 :]):
        string = _string(token)
        if string is not None and depth == 0:
            sections[-1].append(string)
        elif token in "([":
            depth += 1
        elif token in ")]":
            depth -= 1
            if depth < 0:
                break
        elif token == ":" and depth == 0:
            sections.append([])
        elif len(sections) == 1 and not token.isspace():
            return None
    sections += [[] for _ in range(3 - len(sections))]
    template = "".join(sections[0]).replace("%%", "%")
    outputs = sections[1]
    return Assembly(template, (*outputs, *sections[2]), len(outputs))


def _string(token: str) -> str | None:
    """What a token holds that is a string, as PTX reads it."""
    if token.startswith('R"'):
        return token[token.index("(") + 1 : token.rindex(")")]
    if not token.startswith('"') or len(token) < 2:
        return None
    return token[1:-1].replace("\\n", "\n").replace("\\t", " ")


def protect(template: str) -> str:
    """Braces of register vectors are no blocks: written as angle brackets while lines are split."""
    return _VECTOR.sub(lambda m: f"<{m[1]}>" if "%" in m[1] else m[0], template)


def parts_of(operands: str) -> list[str]:
    """The operands of an instruction; those in brackets are one."""
    parts: list[str] = []
    depth = first = 0
    for match in _BETWEEN_PARTS.finditer(operands):
        if match[0] in "[{":
            depth += 1
        elif match[0] in "]}":
            depth = max(0, depth - 1)
        elif not depth:
            parts.append(operands[first : match.start()].strip())
            first = match.end()
    return [*parts, operands[first:].strip()]


def index_of(text: str) -> int | None:
    """Which operand of the statement is meant (``%3``); None: a register or a number."""
    match = re.fullmatch(r"%(\d+)", text.strip())
    return int(match.group(1)) if match is not None else None


def operand(text: str, assembly: Assembly, values: list[Value]) -> Value | None:
    """What an operand stands for, of the statement's inputs and of numbers."""
    index = index_of(text)
    if index is None:
        value = number(text)
        return None if value is None else Const(value, UINT32)
    given = index - assembly.outputs
    return values[given] if 0 <= given < len(values) else None


def number(text: str) -> int | None:
    """An integer as PTX writes it."""
    try:
        return int(text.strip(), 0)
    except ValueError:
        return None


def width(name: str) -> Type:
    """The type that an instruction's suffixes say, vectors included."""
    bits, kind = 32, "b"
    for suffix in name.split("."):
        match = re.fullmatch(r"([busf])(8|16|32|64|128)", suffix)
        if match is not None:
            kind, bits = match.group(1), int(match.group(2))
    lanes = 4 if ".v4" in name else 2 if ".v2" in name else 1
    if lanes > 1 or bits > 64:
        return Opaque(f"v{lanes}.{kind}{bits}", lanes * bits // 8)
    return Float(bits) if kind == "f" else Int(bits, kind == "s")
