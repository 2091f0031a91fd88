"""Expressions as C text, for messages: as few parentheses as C needs, implicit casts left out."""

from __future__ import annotations

from collections.abc import Callable

from cuda_lsp.ir.ops import BINARY
from cuda_lsp.ir.program import (
    AddressOf,
    Binary,
    Builtin,
    Cast,
    Const,
    Expr,
    Intrinsic,
    Offset,
    Select,
    Unary,
    Unknown,
    Var,
)

_UNARY_PRECEDENCE = 11
_SELECT_PRECEDENCE = 0
_ATOM = 12


def pretty(expression: Expr, names: Callable[[Var], str] | None = None) -> str:
    """``expression`` as C text with as few parentheses as C needs; implicit casts are left out."""
    return _pretty(expression, names or (lambda var: var.name or f"t{var.id}"))[0]


def _pretty(e: Expr, names: Callable[[Var], str]) -> tuple[str, int]:
    """The text and the precedence of its outermost operator."""
    match e:
        case Const():
            return (f"({e.value})" if e.value < 0 else str(e.value)), _ATOM
        case Var():
            return names(e), _ATOM
        case Builtin():
            return e.axis.value, _ATOM
        case Unary():
            return f"{e.op.value}{_inside(e.operand, names, _UNARY_PRECEDENCE)}", _UNARY_PRECEDENCE
        case Binary():
            return _pretty_binary(e, names)
        case Select():
            arms = [_inside(part, names, 1) for part in (e.condition, e.then, e.otherwise)]
            return f"{arms[0]} ? {arms[1]} : {arms[2]}", _SELECT_PRECEDENCE
        case Cast():
            return _pretty(e.operand, names)
        case Intrinsic():
            return f"{e.name}({', '.join(_pretty(o, names)[0] for o in e.operands)})", _ATOM
        case Unknown():
            return "?", _ATOM
        case AddressOf():
            return f"&{e.array.name}", _UNARY_PRECEDENCE
        case Offset():
            return f"{_inside(e.pointer, names, 9)} + {_inside(e.bytes, names, 10)} B", 9


def _pretty_binary(e: Binary, names: Callable[[Var], str]) -> tuple[str, int]:
    precedence = BINARY[e.op].precedence
    if precedence == 0:
        return f"{e.op.value}({_pretty(e.left, names)[0]}, {_pretty(e.right, names)[0]})", _ATOM
    left, right = _inside(e.left, names, precedence), _inside(e.right, names, precedence + 1)
    return f"{left} {e.op.value} {right}", precedence


def _inside(e: Expr, names: Callable[[Var], str], needed: int) -> str:
    text, precedence = _pretty(e, names)
    return text if precedence >= needed else f"({text})"
