"""What one operand of a PTX instruction is: register, number, symbol, address, vector.

Source: PTX ISA, chapters 4.5 "Constants" and 6 "Instruction operands".
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache

from attrs import evolve, frozen

from cuda_lsp.dynamic.ptx.module import split_operands


@frozen
class RegisterOperand:
    """``%r1``, or a special register (``%tid.x``)."""

    name: str


@frozen
class IntegerOperand:
    """A literal, its sign included."""

    value: int


@frozen
class FloatOperand:
    """``0f3F800000`` or ``0d…`` or a decimal literal; ``value`` is exact."""

    value: float
    single: bool


@frozen
class SymbolOperand:
    """A variable, function or label, plus a byte offset."""

    name: str
    offset: int = 0


@frozen
class AddressOperand:
    """``[base+offset]``. ``base`` is a register, a symbol, or None for an absolute address."""

    base: RegisterOperand | SymbolOperand | None
    offset: int = 0


@frozen
class VectorOperand:
    """``{%r1, %r2}``."""

    elements: tuple[Operand, ...]


@frozen
class PairOperand:
    """``%r1|%p1``: value and predicate results."""

    first: Operand
    second: Operand


@frozen
class NegatedOperand:
    """``!%p1``."""

    operand: RegisterOperand


Operand = (
    RegisterOperand
    | IntegerOperand
    | FloatOperand
    | SymbolOperand
    | AddressOperand
    | VectorOperand
    | PairOperand
    | NegatedOperand
)

_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)[uU]?$")
_HEX_FLOAT = re.compile(r"(-?)0([fFdD])([0-9a-fA-F]+)$")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?$")
_SYMBOL = re.compile(r"[A-Za-z_$%][\w$.]*$")
_ADDED = re.compile(r"([+-])\s*(-?\d\w*)$")


def parse_integer(text: str) -> int:
    """A PTX integer literal: decimal, octal (leading 0), hexadecimal or binary, with optional U."""
    digits = text.strip().rstrip("uU")
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return sign * int(digits, 8)
    return sign * int(digits, 0)


@lru_cache(1 << 14)
def parse_operand(text: str) -> Operand:
    """Take one operand apart. Raises ValueError for text that is no operand."""
    text = text.strip()
    if text.startswith("{"):
        return VectorOperand(tuple(parse_operand(part) for part in split_operands(text[1:-1])))
    if text.startswith("["):
        return _address(text[1:-1].strip())
    if text.startswith("!"):
        return NegatedOperand(RegisterOperand(text[1:].strip()))
    if "|" in text:
        first, _, second = text.partition("|")
        return PairOperand(parse_operand(first), parse_operand(second))
    if match := _HEX_FLOAT.match(text):
        return _hex_float(*match.groups())
    if _INTEGER.match(text):
        return IntegerOperand(parse_integer(text))
    if _DECIMAL.match(text):
        return FloatOperand(float(text), single=False)
    if text.startswith("-") and text[1:].strip()[:1].isdigit():  # "- 4", as the preprocessor may leave it
        return IntegerOperand(-parse_integer(text[1:].strip()))
    return _symbol(text)


def parse_address(text: str) -> AddressOperand:
    """``[%rd1+8]`` → base register and offset. Raises ValueError for another operand."""
    operand = parse_operand(text)
    if not isinstance(operand, AddressOperand):
        raise ValueError(f"not an address: {text}")
    return operand


def _hex_float(sign: str, kind: str, digits: str) -> FloatOperand:
    single = kind in "fF"
    raw = bytes.fromhex(digits.zfill(8 if single else 16))
    value: float = struct.unpack(">f" if single else ">d", raw)[0]
    return FloatOperand(-value if sign else value, single)


def _base_and_offset(text: str) -> tuple[str, int]:
    """What a number is added to, and the number; 0 where none is."""
    added = _ADDED.search(text)
    if added is None:
        return text, 0
    offset = parse_integer(added[2])
    return text[: added.start()].rstrip(), -offset if added[1] == "-" else offset


def _symbol(text: str) -> Operand:
    base, offset = _base_and_offset(text) if not text.endswith(")") else (text, 0)
    if base.startswith("generic(") and base.endswith(")"):
        inner = _symbol(base[len("generic(") : -1].strip())
        return evolve(inner, offset=inner.offset + offset) if isinstance(inner, SymbolOperand) else inner
    if base != text and _SYMBOL.match(base):
        return SymbolOperand(base, offset)
    if not _SYMBOL.match(text):
        raise ValueError(f"not a PTX operand: {text!r}")
    return RegisterOperand(text) if text.startswith("%") else SymbolOperand(text)


def _address(text: str) -> AddressOperand:
    base, offset = _base_and_offset(text)
    if _INTEGER.match(base):
        return AddressOperand(None, parse_integer(base) + offset)
    operand = _symbol(base)
    if not isinstance(operand, RegisterOperand | SymbolOperand):
        raise ValueError(f"not a PTX address: [{text}]")
    return AddressOperand(operand, offset)


def listed(text: str) -> list[str]:
    """The parts of a list of registers or arguments, in braces, in parentheses or bare: ``{%r1, %r2}``."""
    return [part.strip() for part in text.strip("{}() ").split(",") if part.strip()]
