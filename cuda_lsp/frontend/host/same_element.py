"""Elements of one array of pointers that a launch passes: ``k<<<…>>>(buf[s % 2], buf[(s + 2) % 2])``.

Whether two indices are one number is tried out, for small values of the names in them: buffers that take
turns are told by remainders, differences and bits, which a few values tell apart.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Mapping

from cuda_lsp.frontend.host.polynomials import parsed

_ELEMENT = re.compile(r"\A([^\[\]]+)\[([^\[\]]+)\]\Z")
_VALUES = range(8)
_MOST_NAMES = 2


def is_one_element(one: str, other: str) -> bool | None:
    """Whether two places are one element of an array; None: now and then. Other places are not."""
    first, second = _ELEMENT.match(one), _ELEMENT.match(other)
    if first is None or second is None or first[1] != second[1]:
        return False
    index, another = parsed(first[2]), parsed(second[2])
    if index is None or another is None:
        return False
    names = _names(index)
    if names != _names(another) or not 1 <= len(names) <= _MOST_NAMES:
        return False  # of names that the two do not share it is not known how they go together
    every = itertools.product(_VALUES, repeat=len(names))
    settings = [dict(zip(sorted(names), values, strict=True)) for values in every]
    try:
        pairs = [(_value(index, at), _value(another, at)) for at in settings]
    except (KeyError, ZeroDivisionError):
        return False
    alike = {i == j for i, j in pairs if i >= 0 and j >= 0}
    return next(iter(alike)) if len(alike) == 1 else None


def _names(index: ast.expr) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(index) if isinstance(node, ast.Name))


def _value(index: ast.expr, at: Mapping[str, int]) -> int:
    """Raises KeyError for what is more than integers and their operations."""
    match index:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return at[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _operation(op, _value(left, at), _value(right, at))
        case _:
            raise KeyError(type(index))


def _operation(op: ast.operator, left: int, right: int) -> int:
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():
            return int(left / right)
        case ast.Mod():
            return left - right * int(left / right)
        case ast.BitAnd():
            return left & right
        case ast.BitOr():
            return left | right
        case ast.BitXor():
            return left ^ right
        case _:
            raise KeyError(type(op))
