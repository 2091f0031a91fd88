"""The text of an ``asm`` statement: its template and constraints, and the operands of instructions."""

from __future__ import annotations

import re

from attrs import frozen

from cuda_lsp.frontend.lowering.places import Value
from cuda_lsp.ir.program import Const
from cuda_lsp.ir.types import UINT32, Float, Int, Opaque, Type

_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)("?)', re.S)
_RAW = re.compile(r'R"([^()\\\s]*)\((.*?)\)\1"', re.S)
_VECTOR = re.compile(r"\{([^{};]*)\}")
_BETWEEN_PARTS = re.compile(r"[\[\]{},]")


@frozen
class Assembly:
    """One ``asm`` statement: template, operands in order (outputs first), how many are outputs.

    ``spelled``: the template is there to be read; a macro may write it, or all of the statement.
    """

    template: str
    constraints: tuple[str, ...]
    outputs: int
    spelled: bool = True


def parse(text: str) -> Assembly:
    """Split the source of an ``asm`` statement at its colons."""
    start = text.find("(")
    sections: list[list[str]] = [[]]
    depth, at, spelled = 0, start + 1, True
    while at < len(text):
        char = text[at]
        if char == '"':
            match = _STRING.match(text, at)
            if match is None or not match.group(2):
                break
            if depth == 0:
                sections[-1].append(match.group(1))
            at = match.end()
            continue
        raw = _RAW.match(text, at)
        if raw is not None:
            sections[-1].append(raw.group(2))
            at = raw.end()
            continue
        if len(sections) == 1 and (char.isalnum() or char == "_"):
            spelled = False
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
            if depth < 0:
                break
        elif char == ":" and depth == 0:
            colons = 2 if text[at : at + 2] == "::" else 1
            sections.extend([] for _ in range(colons))
            at += colons
            continue
        at += 1
    sections += [[] for _ in range(3 - len(sections))]
    template = "".join(sections[0]).replace("\\n", "\n").replace("\\t", " ").replace("%%", "%")
    outputs = sections[1]
    return Assembly(template, (*outputs, *sections[2]), len(outputs), spelled and bool(sections[0]))


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
