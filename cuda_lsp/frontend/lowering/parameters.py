"""Where one parameter of a kernel is: a variable, an array behind a pointer, or one place a field."""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.frontend.lowering.enumerators import among, values_of
from cuda_lsp.frontend.lowering.output import MemberAssigned, Output, Restart, Untranslatable
from cuda_lsp.frontend.lowering.parameter_layout import hidden_at, layout_of
from cuda_lsp.frontend.lowering.places import (
    DataPlace,
    MemoryPlace,
    Place,
    RecordPlace,
    StaticPlace,
    VarPlace,
)
from cuda_lsp.frontend.lowering.tables import offset_in
from cuda_lsp.frontend.lowering.types import Field, TypeInfo
from cuda_lsp.ir.program import AddressOf, Array, Assume, Const, Expr, Var
from cuda_lsp.ir.types import Int, Pointer
from cuda_lsp.ir.walk import root_array
from cuda_lsp.model import Site, Space


def place_of_parameter(low: Output, name: str, info: TypeInfo, found: list[Var], owner: int) -> Place:
    """Where a parameter, or a field of one, is; the variables that hold its scalars are put in ``found``."""
    if info.is_record:
        low.passed_records[name] = info
    if info.kind == "record" and info.scalar_replaceable():
        fields = {
            f.key: place_of_parameter(low, f"{name}.{f.name}", f.type, found, owner) for f in info.fields
        }
        record = RecordPlace(info, fields, owner)
        record.source = record
        low.record_names[id(record)] = name
        return record
    if not info.scalar:
        array = low.array(f"parameter {name}", name, Space.CONSTANT, info)
        low.passed[array.id], low.owners[array.id] = layout_of(name, info), owner
        low.passed_types[array.id] = info
        return MemoryPlace(info, AddressOf(array, Pointer(max(1, info.size))))
    var = low.var(name, info.ir)
    low.parameters.add(var.id)
    found.append(var)
    if info.is_pointer:
        return StaticPlace(info, AddressOf(_pointee(low, name, info, var), info.ir), owner)
    if info.is_float and not low.valued:
        return DataPlace(info, owner, uniform=True, constant=True)
    values = values_of(low.ast, info)
    if values:
        low.enumerated[name] = values
        low.emit(Assume(among(var, values), Site(low.home)))
    return VarPlace(info, var, owner, constant=True)


def hidden_field(low: Output, record: RecordPlace, field: Field) -> Place:
    """A field of a parameter's base class that libclang does not tell of (implicit instantiations)."""
    name = f"{low.record_names[id(record)]}.{field.name}"
    if name in low.hidden_names or any(f.name == field.name for f in record.info.fields):
        raise Untranslatable(f"member {field.name}", "of a class that has two members of this name")
    low.hidden_names.add(name)
    return place_of_parameter(low, name, field.type, low.late_parameters, record.owner)


def tell_member(low: Output, pointer: Expr, field: Field) -> None:
    """A field of a base class that libclang does not tell of is one of a parameter in memory, too.

    Its place is where no field is that libclang tells of. Raises Restart where the kernel assigns to it.
    """
    base, offset = root_array(pointer), offset_in(pointer)
    layout = low.passed.get(base.id) if base is not None else None
    if base is None or layout is None or not isinstance(offset, Const) or field.bitfield:
        return
    if not field.type.scalar or _member_at(low, pointer, field.type) is not None:
        return
    at = int(offset.value)
    holder = hidden_at(layout.name, low.passed_types[base.id], at, field.type.size)
    if holder is None:
        return
    (member,) = layout_of(f"{holder}.{field.name}", field.type).members
    if any(m.name == member.name for m in layout.members):
        raise Untranslatable(f"member {field.name}", "of a class that has two members of this name")
    if member.name in low.own_members:
        raise Restart(low.owners[base.id], memory=False)
    members = (*layout.members, evolve(member, offset=at))
    low.passed[base.id] = evolve(layout, members=members)


def passed_member(low: Output, pointer: Expr, info: TypeInfo) -> Place | None:
    """The scalar of a parameter in memory at a place that is known: a parameter like any other.

    Not the pointers of an array, of which others may be chosen while the kernel runs (``kept_pointers``).
    """
    name = _member_at(low, pointer, info)
    if name is None:
        reread(low, pointer)
        base = root_array(pointer)
        own = base is not None and (base.id in low.passed or base.space is Space.LOCAL)
        if low.short_loops and own and isinstance(info.ir, Int) and not isinstance(offset_in(pointer), Const):
            low.walked.add(low.short_loops[-1])
        return None
    if name not in low.members:
        low.members[name] = place_of_parameter(low, name, info, low.late_parameters, 0)
    return low.members[name]


def assigned_member(low: Output, pointer: Expr, info: TypeInfo) -> Place | None:
    """The variable that a scalar of a parameter in memory is, to which the kernel assigns.

    None: the place is in no parameter. Raises MemberAssigned where that was not known yet, and Restart where
    something else is written than one scalar: the parameter lives in a local copy then.
    """
    base = root_array(pointer)
    if base is None or base.id not in low.passed:
        return None
    name = _member_at(low, pointer, info)
    if name is None:
        raise Restart(low.owners[base.id], memory=False)
    if name not in low.own_members:
        raise MemberAssigned(name, info)
    return low.members[name]


def reread(low: Output, pointer: Expr) -> None:
    """What is read of a parameter in memory, as more than one scalar or at a place that is not known.

    Raises Restart where the kernel assigns to scalars of it, which its memory does not show.
    """
    base = root_array(pointer)
    layout = low.passed.get(base.id) if base is not None else None
    if base is not None and layout is not None:
        own = (m.name for m in layout.members if m.name in low.own_members)
        if any(name in low.members for name in own):
            raise Restart(low.owners[base.id], memory=False)


def _member_at(low: Output, pointer: Expr, info: TypeInfo) -> str | None:
    """The scalar of a parameter in memory at a place that is known, by its name."""
    base, offset = root_array(pointer), offset_in(pointer)
    layout = low.passed.get(base.id) if base is not None else None
    if layout is None or not isinstance(offset, Const):
        return None
    here = (m.name for m in layout.members if m.offset == offset.value and m.type == info.ir)
    name = next(here, None)
    return None if name is not None and info.is_pointer and name.endswith("]") else name


def _pointee(low: Output, name: str, info: TypeInfo, var: Var) -> Array:
    target = info.target or info
    element, _ = target.element()
    array = low.array(
        f"parameter {name}",
        name,
        Space.GLOBAL,
        TypeInfo("array", "", element.ir, 0, target=target, count=None, volatile=target.volatile),
        param=var,
    )
    if target.const and info.restrict:
        low.readonly.add(array.id)
    return array
