"""The parameters of a kernel: variables, arrays behind pointers, fields of by-value records."""

from __future__ import annotations

from collections.abc import Mapping

from cuda_lsp.frontend.host.shared_arguments import Offset
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering.build import binary, cast, offset_by
from cuda_lsp.frontend.lowering.parameter_layout import layout_of
from cuda_lsp.frontend.lowering.places import (
    DataPlace,
    MemoryPlace,
    Place,
    RecordPlace,
    StaticPlace,
    VarPlace,
)
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import Field, TypeInfo, type_of_declaration
from cuda_lsp.frontend.tree import Declaration, Node
from cuda_lsp.ir.program import (
    AddressOf,
    Array,
    BinaryOp,
    Expr,
    Incomplete,
    ParameterLayout,
    Var,
    const,
)
from cuda_lsp.ir.types import INT64, Int, Pointer
from cuda_lsp.ir.walk import written_arrays
from cuda_lsp.model import Site, SourceRange, Space


def kernel_parameters(low: Lowering, root: Node) -> tuple[list[Var], tuple[ParameterLayout, ...]]:
    """Bind every parameter in the environment; the variables in order, and how they are passed."""
    found: list[Var] = []
    layout: list[ParameterLayout] = []
    places: list[tuple[Declaration, TypeInfo, Place]] = []
    for node in root.children:
        if node.kind != K.PARAMETER:
            continue
        declaration = low.ast.declaration(node.cursor)
        if declaration is None:
            continue
        info = type_of_declaration(low.ast, declaration)
        if info.kind == "array":
            info = TypeInfo("pointer", info.name, Pointer(), 8, 8, target=info.target)
        layout.append(layout_of(declaration.name, info))
        place = _parameter(low, declaration.name, info, found, declaration.key)
        places.append((declaration, info, place))
    for declaration, info, place in places:
        moved = _in_shared_buffer(low, declaration.name, info, place, found)
        low.env[declaration.key] = _owned_copy(low, declaration, info, moved)
    return found, tuple(layout)


def _in_shared_buffer(low: Lowering, name: str, info: TypeInfo, place: Place, found: list[Var]) -> Place:
    """A pointer parameter that every launch points into an earlier one's buffer, so many elements behind."""
    shared = low.shared_buffers.get(name)
    anchor = low.arrays.get(f"parameter {shared.first}") if shared is not None else None
    if shared is None or anchor is None or not isinstance(place, StaticPlace) or not info.is_pointer:
        return place
    size = info.target.size if info.target is not None else 0
    scalars = {v.name: v for v in found if isinstance(v.type, Int)}
    elements = _elements(shared.offset, scalars) if shared.offset is not None else None
    if elements is None or (not size and shared.offset != 0):
        low.overlapping[name] = str(shared.first)
        return place
    low.arrays[f"parameter {name}"] = anchor
    start = offset_by(AddressOf(anchor, info.ir), binary(BinaryOp.MUL, elements, const(max(1, size), INT64)))
    return StaticPlace(info, start, place.owner)


def _elements(offset: Offset, scalars: Mapping[str, Var]) -> Expr | None:
    """An offset in elements as an expression; None: it names something that is no integer parameter."""
    if isinstance(offset, int):
        return const(offset, INT64)
    if isinstance(offset, str):
        var = scalars.get(offset)
        return cast(var, INT64) if var is not None else None
    left, right = (_elements(part, scalars) for part in offset[1:])
    return binary(BinaryOp(offset[0]), left, right) if left is not None and right is not None else None


def overlapping(low: Lowering, home: SourceRange) -> None:
    """Says which parameters may point into one buffer where one of them is written."""
    written = written_arrays(low.out)
    for name, first in low.overlapping.items():
        one, other = (low.arrays.get(f"parameter {p}") for p in (first, name))
        if one is None or other is None or not {one, other, None} & written:
            continue
        what = f"`{first}` and `{name}`"
        reason = "a launch points both into one buffer, and how far apart they are is not known"
        low.emit(Incomplete(what, reason, Site(home)))


def _owned_copy(low: Lowering, declaration: Declaration, info: TypeInfo, place: Place) -> Place:
    """A parameter that the body assigns to, or takes the address of, lives in a local copy."""
    key = declaration.key
    if key not in low.assigned and key not in low.memory:
        return place
    copy = low.local(declaration.name, info, key)
    low.write(copy, low.read(place, None), None)
    return copy


def _parameter(low: Lowering, name: str, info: TypeInfo, found: list[Var], owner: int) -> Place:
    if info.kind == "record" and info.scalar_replaceable():
        fields = {f.key: _parameter(low, f"{name}.{f.name}", f.type, found, owner) for f in info.fields}
        record = RecordPlace(info, fields, owner)
        record.source = record
        low.record_names[id(record)] = name
        return record
    if not info.scalar:
        array = low.array(f"parameter {name}", name, Space.CONSTANT, info)
        return MemoryPlace(info, AddressOf(array, Pointer(max(1, info.size))))
    var = low.var(name, info.ir)
    low.parameters.add(var.id)
    found.append(var)
    if info.is_pointer:
        return StaticPlace(info, AddressOf(_pointee(low, name, info, var), info.ir), owner)
    if info.is_float:
        return DataPlace(info, owner, uniform=True, constant=True)
    return VarPlace(info, var, owner, constant=True)


def hidden_field(low: Lowering, record: RecordPlace, field: Field) -> Place:
    """A field of a parameter's base class that libclang does not tell of (implicit instantiations)."""
    name = f"{low.record_names[id(record)]}.{field.name}"
    return _parameter(low, name, field.type, low.late_parameters, record.owner)


def _pointee(low: Lowering, name: str, info: TypeInfo, var: Var) -> Array:
    target = info.target or info
    element, shape = target.element()
    array = low.array(
        f"parameter {name}",
        name,
        Space.GLOBAL,
        TypeInfo("array", "", element.ir, 0, target=target, count=None, volatile=target.volatile),
        param=var,
    )
    del shape
    if target.const and info.restrict:
        low.readonly.add(array.id)
    return array
