"""Tables: small arrays of integers that hold what their declaration says, for ever.

Only ``const`` arrays: the host may copy to any other symbol, in a function or a file that is not read here.
An element is a choice between the numbers by its offset, with which both tiers compute. Others stay data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering.build import binary, select
from cuda_lsp.frontend.lowering.types import TypeInfo
from cuda_lsp.frontend.tree import Ast, Declaration, Node
from cuda_lsp.ir.program import AddressOf, BinaryOp, Const, Expr, Offset, Var
from cuda_lsp.ir.types import BOOL, INT64, Int

_MOST = 64
"""Elements."""


def numbers_of(ast: Ast, declaration: Declaration, info: TypeInfo) -> tuple[int, ...] | None:
    """The elements of an array variable, in the order of memory; None: nobody knows them."""
    element, shape = info.element()
    fixed = (info.const or element.const) and not element.volatile
    if info.kind != "array" or not isinstance(element.ir, Int) or not fixed:
        return None
    count = 1
    for extent in shape:
        count *= extent or 0
    if not 0 < count <= _MOST:
        return None
    root = ast.body(declaration)
    lists = [child for child in root.children if child.kind == K.INIT_LIST]
    if len(lists) != 1:
        return None
    try:
        return tuple(element.ir.wrap(n) for n in _elements(ast, lists[0], shape))
    except ValueError:
        return None


def _elements(ast: Ast, node: Node, shape: Sequence[int | None]) -> Iterator[int]:
    """The numbers of a list, zeros for what it leaves out. Raises ValueError for any other list."""
    inner = 1
    for extent in shape[1:]:
        inner *= extent or 0
    children = [child for child in node.children if child.kind >= 100]
    for child in children:
        if len(shape) > 1:
            if child.kind != K.INIT_LIST:
                raise ValueError("rows are not written as lists")
            yield from _elements(ast, child, shape[1:])
        else:
            found = ast.evaluate(child.cursor)
            if not isinstance(found, int):
                raise ValueError("no number")
            yield found
    yield from (0 for _ in range(((shape[0] or 0) - len(children)) * inner))


def offset_in(pointer: Expr) -> Expr | None:
    """Bytes from the start of the array that a pointer evidently points into."""
    offset: Expr = Const(0, INT64)
    while isinstance(pointer, Offset):
        offset = binary(BinaryOp.ADD, pointer.bytes, offset)
        pointer = pointer.pointer
    return offset if isinstance(pointer, AddressOf) else None


def element_at(place: Var, numbers: Sequence[int], type: Int) -> Expr:
    """The element of a table that begins at a byte."""
    return _choice(place, 0, [Const(n, type) for n in numbers], type)


def _choice(place: Expr, start: int, numbers: Sequence[Const], type: Int) -> Expr:
    if all(number.value == numbers[0].value for number in numbers):
        return numbers[0]
    half = len(numbers) // 2
    middle = (start + half) * type.size
    below = _choice(place, start, numbers[:half], type)
    above = _choice(place, start + half, numbers[half:], type)
    return select(binary(BinaryOp.LT, place, Const(middle, INT64), BOOL), below, above, type)
