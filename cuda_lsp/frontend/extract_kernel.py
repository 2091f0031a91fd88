"""The parameters of a kernel: variables, arrays behind pointers, fields of by-value records."""

from __future__ import annotations

from cuda_lsp.frontend import cursor_kinds as K
from cuda_lsp.frontend.extract_places import DataPlace, MemoryPlace, Place, RecordPlace, StaticPlace, VarPlace
from cuda_lsp.frontend.extract_state import Lowering
from cuda_lsp.frontend.extract_types import TypeInfo, type_of_declaration
from cuda_lsp.frontend.tree import Declaration, Node
from cuda_lsp.ir.program import AddressOf, Array, Var
from cuda_lsp.ir.types import Pointer
from cuda_lsp.model import Space


def kernel_parameters(low: Lowering, root: Node) -> list[Var]:
    """Bind every parameter in the environment; the variables in order of declaration."""
    found: list[Var] = []
    for node in root.children:
        if node.kind != K.PARAMETER:
            continue
        declaration = low.ast.declaration(node.cursor)
        if declaration is None:
            continue
        info = type_of_declaration(low.ast, declaration)
        if info.kind == "array":
            info = TypeInfo("pointer", info.name, Pointer(), 8, 8, target=info.target)
        place = _parameter(low, declaration.name, info, found, declaration.key)
        low.env[declaration.key] = _owned_copy(low, declaration, info, place)
    return found


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
        return RecordPlace(info, fields, owner)
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


def _pointee(low: Lowering, name: str, info: TypeInfo, var: Var) -> Array:
    known = low.arrays.get(f"parameter {low.same.get(name)}")
    if known is not None:
        return known
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
