"""Initialising objects: lists element by element, the rest zeroed as C++ does."""

from __future__ import annotations

from cuda_lsp.frontend.lowering import conversions, expressions, lvalues
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering.build import zero
from cuda_lsp.frontend.lowering.places import (
    MemoryRecord,
    Place,
    Value,
)
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import TypeInfo, type_of
from cuda_lsp.frontend.tree import Node
from cuda_lsp.ir.types import Pointer


def initialise(low: Lowering, target: Place, node: Node) -> None:
    """Initialise an object from an initialiser expression, element by element for lists."""
    info = target.info
    while (
        node.kind in (K.UNEXPOSED, K.PAREN)
        and len(node.children) == 1
        and node.children[0].kind
        in (
            K.INIT_LIST,
            K.UNEXPOSED,
        )
    ):
        if type_of(low.ast, node.children[0]).kind != info.kind:
            break
        node = node.children[0]
    if (
        node.kind in (K.FUNCTIONAL_CAST, K.COMPOUND_LITERAL)
        and node.children
        and node.children[-1].kind == K.INIT_LIST
    ):
        node = node.children[-1]
    if node.kind != K.INIT_LIST:
        if info.kind == "array":
            _initialise_array(low, target, node)
            return
        low.write(target, _scalar(low, node, info), None)
        return
    children = [c for c in node.children if c.kind >= 100]
    if info.scalar:
        low.write(
            target,
            _scalar(low, children[0], info) if children else zero(info.ir),
            None,
        )
    elif info.kind == "array" and info.target is not None:
        for index, child in enumerate(children):
            initialise(low, lvalues.indexed(target, index), child)
        _fill_zero(low, target, len(children))
    elif info.is_record:
        if len(children) == 1 and type_of(low.ast, children[0]).name == info.name:
            initialise(low, target, children[0])
            return
        for field, child in zip(info.fields, children, strict=False):
            part = low.member(target, field)
            initialise(low, part, child)
        for field in info.fields[len(children) :]:
            zero_out(low, low.member(target, field))


def _scalar(low: Lowering, node: Node, info: TypeInfo) -> Value:
    """The value of an element; libclang shows no decay of an array that initialises a pointer member."""
    if isinstance(info.ir, Pointer) and type_of(low.ast, node).kind == "array" and node.kind != K.STRING:
        return low.pointer(low.address(lvalues.place(low, node)))
    return conversions.convert(low, expressions.value(low, node), info)


def zero_out(low: Lowering, target: Place) -> None:
    """Give an object, with all its fields and elements, the value zero."""
    info = target.info
    if info.scalar:
        low.write(target, zero(info.ir), None)
    elif info.is_record:
        for field in info.fields:
            zero_out(low, low.member(target, field))
    elif info.kind == "array":
        _fill_zero(low, target, 0)


def _fill_zero(low: Lowering, target: Place, start: int) -> None:
    """Zero the rest of a small local array; a large one keeps what evaluators call unknown data."""
    count = target.info.count or 0
    if count - start <= 64:
        for index in range(start, count):
            zero_out(low, lvalues.indexed(target, index))


def _initialise_array(low: Lowering, target: Place, node: Node) -> None:
    if node.kind == K.STRING:
        return
    if node.kind == K.CALL:  # default construction of elements
        return
    source = low.pointer(low.address(lvalues.place(low, node)))
    low.write(target, MemoryRecord(target.info, source, node), None)
