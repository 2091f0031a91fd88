"""Integers and truth values that are made of floating-point ones: why nobody knows them, for people."""

from __future__ import annotations

from typing import TypeVar, cast

from attrs import evolve

from cuda_lsp.frontend.lowering.places import Value
from cuda_lsp.frontend.tree import Ast, Node
from cuda_lsp.ir.program import Binary, BinaryOp, Select, Unknown

COMPARISON = "floating-point comparison"
CONDITION = "floating-point condition"
UNTYPED = "condition of unknown type"
INTEGER = "integer from floating point"
_ALL = (COMPARISON, CONDITION, UNTYPED, INTEGER)
_MOST_TEXT = 40
_Made = TypeVar("_Made", bound=Value)


def is_floating(value: Unknown) -> bool:
    return any(reason in value.reason for reason in _ALL)


def as_written(value: _Made, node: Node, ast: Ast) -> _Made:
    """The value of an expression, which one that floating-point numbers make unknown names."""
    if isinstance(value, Select):
        parts = (as_written(part, node, ast) for part in (value.then, value.otherwise))
        return cast("_Made", evolve(value, **dict(zip(("then", "otherwise"), parts, strict=True))))
    if isinstance(value, Binary) and value.op in (BinaryOp.MIN, BinaryOp.MAX):
        return cast("_Made", evolve(value, left=as_written(value.left, node, ast)))
    if not isinstance(value, Unknown) or value.reason not in _ALL:
        return value
    return cast("_Made", evolve(value, reason=f"the {value.reason} `{brief(ast.text(node))}`"))


def brief(text: str) -> str:
    """Both ends of a long text."""
    half = _MOST_TEXT // 2
    return text if len(text) <= _MOST_TEXT else f"{text[: half - 1]}…{text[-half:]}"
