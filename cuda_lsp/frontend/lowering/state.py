"""The objects of a kernel while it is lowered: its environment, reads and writes of places.

Lowering is optimistic: parameters are taken not to be assigned, locals not to need an address.  When
that proves wrong, ``Restart`` names the declaration and the kernel is lowered again knowing it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from cuda_lsp.frontend.compile_errors import CompileError
from cuda_lsp.frontend.host.launch_facts import NOTHING_PASSED, Passed
from cuda_lsp.frontend.lowering import tables
from cuda_lsp.frontend.lowering.base_classes import hides_bases
from cuda_lsp.frontend.lowering.build import offset_by, pointer_inside, zero
from cuda_lsp.frontend.lowering.kept_pointers import KeptPointers
from cuda_lsp.frontend.lowering.output import Output, Restart, Steps, Untranslatable
from cuda_lsp.frontend.lowering.parameters import (
    assigned_member,
    hidden_field,
    passed_member,
    reread,
    tell_member,
)
from cuda_lsp.frontend.lowering.places import (
    EXPR_TYPES,
    Address,
    DataPlace,
    FunctionValue,
    MemoryPlace,
    MemoryRecord,
    Place,
    RecordPlace,
    RecordValue,
    StaticPlace,
    Value,
    VarPlace,
    field_place,
    is_expr,
    own,
)
from cuda_lsp.frontend.lowering.types import Field, TypeInfo
from cuda_lsp.frontend.tree import Ast, Declaration, Node
from cuda_lsp.ir.program import (
    AddressOf,
    Array,
    Assign,
    Cast,
    Const,
    Copy,
    Expr,
    Load,
    Offset,
    Store,
    Unknown,
    Var,
)
from cuda_lsp.ir.types import INT64, Float, Int, Opaque, Pointer
from cuda_lsp.ir.walk import operands, root_array
from cuda_lsp.model import Site, SourceRange, Space


class Lowering(Output):
    """One attempt at a kernel. ``memory``, ``assigned``: declarations (keys) that earlier ones told of."""

    def __init__(
        self, ast: Ast, home: SourceRange, memory: set[int], assigned: set[int], steps: Steps
    ) -> None:
        super().__init__(ast, home, steps)
        self.memory = memory
        self.assigned = assigned
        self.env: dict[int, Place] = {}  # by declaration
        self.kept_pointers = KeptPointers(self)
        self.temporaries = 0  # objects with destructors that no declaration has taken over
        self.classes: dict[int, TypeInfo] = {}  # of local objects with virtual functions, by their array
        self.tables: dict[int, tuple[int, ...]] = {}  # elements that never change, by the array's id
        self.launched: Passed = NOTHING_PASSED
        self.record_fields: dict[str, tuple[str, ...]] = {}  # of parameters, in order
        self.sharing: dict[int, set[int]] = {}  # declarations that are no copies of a parameter in memory
        self.captured: list[str] = []  # variables of the host that a lambda holds which the kernel was passed
        self.references: dict[tuple[int, int] | None, Value] = {}  # by the local array and the place in it
        self.overlapping: dict[str, str] = {}  # parameters that point into earlier ones, nobody knows where
        self.behind: dict[str, tuple[str, Expr]] = {}  # … and it is known where: in bytes
        self.pieces: dict[str, str] = {}  # … by sizes that the host multiplies
        self.active: list[int] = []  # functions that are being inlined
        self.declaring: set[tuple[int, int]] = set()  # what initial values are made for, by depth of inlining
        self.closures: dict[int, object] = {}
        self.errors: list[CompileError] = []  # of clang, not yet told
        self.met: dict[int, Declaration] = {}  # functions that something asked for
        self.assigned_value: Value = zero(INT64)
        self.nulls: dict[int, int] = {}  # whether an array's pointer is null: the unknown, by the array's id
        self.stable: set[int] = set()  # ids of variables that nothing assigns to after their declaration

    def local(self, name: str, info: TypeInfo, owner: int = 0) -> Place:
        """A new local object without a value."""
        if owner not in self.memory or not owner:
            if info.is_float and not self.keeps_floats:
                return DataPlace(info, owner)
            if info.scalar:
                return VarPlace(info, self.var(name, info.ir), owner)
            if info.kind == "record" and info.scalar_replaceable():
                return RecordPlace(info, {f.key: self._field(name, f, owner) for f in info.fields}, owner)
        key = owner if owner and not self.active else f"local {self.fresh()}"
        array = self.array(key, name, Space.LOCAL, info)
        if info.virtual:
            self.classes[array.id] = info
        return MemoryPlace(info, AddressOf(array, Pointer(max(1, info.size))))

    def _field(self, name: str, field: Field, owner: int) -> Place:
        if field.type.kind == "reference":
            return StaticPlace(field.type, zero(INT64), 0)
        return (
            self.local(f"{name}.{field.name}", field.type, owner)
            if not owner
            else self._owned(name, field, owner)
        )

    def _owned(self, name: str, field: Field, owner: int) -> Place:
        place = self.local(f"{name}.{field.name}", field.type, 0)
        own(place, owner)
        return place

    def member(self, place: Place, field: Field) -> Place:
        """A field of a record."""
        if isinstance(place, RecordPlace):
            found = field_place(place, field.key)
            if found is None:  # of a base class that libclang hides (implicit instantiations)
                found = place.fields[field.key] = self._hidden(place, field)
            if field.type.kind == "reference" and isinstance(found, StaticPlace):
                return self.referred(found.value, field.type)
            return found
        if isinstance(place, MemoryPlace):
            if field.type.kind == "reference":
                own = self._own_reference(place, field)
                if own in self.references:
                    return self.referred(self.references[own], field.type)
                pointer = self.load(offset_by(place.pointer, field.offset), field.type, None)
                return MemoryPlace(field.type.target or field.type, pointer)
            pointer = offset_by(place.pointer, field.offset)
            if self.passed:
                tell_member(self, pointer, field)
            return MemoryPlace(field.type, pointer, field.bitfield)
        if isinstance(place, StaticPlace) and isinstance(place.value, RecordValue):
            return StaticPlace(field.type, place.value.fields[field.key])
        if isinstance(place, DataPlace):
            return DataPlace(field.type, place.owner, place.uniform)
        raise Untranslatable(f"member {field.name}", "of an object that the analysis does not model")

    def _remember_source(self, place: RecordPlace, source: RecordPlace | None) -> None:
        """What a record is made of; one that is overwritten by something else is made of nothing known."""
        if place.source is None and place.owner not in self.assigned and not place.written:
            place.source = source
        elif place.source is not source and place.source is not None:
            if not place.owner or place.owner in self.assigned:
                raise Untranslatable("assignment", "to an object whose base class libclang does not tell of")
            raise Restart(place.owner, memory=False)
        place.written = True

    def _hidden(self, place: RecordPlace, field: Field) -> Place:
        if place.source is place:
            return hidden_field(self, place, field)
        if place.source is not None:
            return self.member(place.source, field)
        found = self.local(field.name, field.type, 0)
        own(found, place.owner)
        return found

    def referred(self, value: Value, info: TypeInfo) -> Place:
        """The object that a reference member, held as a pointer, refers to."""
        if isinstance(value, Address):
            return value.place
        return MemoryPlace(info.target or info, self.pointer(value, "reference"))

    def bind_reference(self, record: Place, field: Field, target: Place) -> None:
        """Make a reference member of a record refer to an object."""
        target = self.pinned(target)
        if isinstance(record, RecordPlace):
            record.fields[field.key] = StaticPlace(field.type, self.address(target))
        elif isinstance(record, MemoryPlace):
            own = self._own_reference(record, field)
            if own is not None:
                self.references[own] = self.address(target)
                return
            pointer = self.pointer(self.address(target))
            where = offset_by(record.pointer, field.offset)
            self.emit(Store(where, pointer, field.type.ir, Site(self.home)))

    def _own_reference(self, record: MemoryPlace, field: Field) -> tuple[int, int] | None:
        """A reference in an object of the thread's own: its constructor alone makes it refer to anything.

        A copy of the object has its own, of which nothing is known.
        """
        base, offset = root_array(record.pointer), tables.offset_in(record.pointer)
        if base is None or base.space is not Space.LOCAL or not isinstance(offset, Const):
            return None
        return base.id, int(offset.value) + field.offset

    def emit_undefined(self, place: VarPlace) -> None:
        """A variable declared without a value loses the one of the loop's last round.

        Through a pointer that was never set nothing is accessed, as through null.
        """
        type, nothing = place.info.ir, "an uninitialised variable"
        value = Const(0, type) if isinstance(type, Pointer) else Unknown(nothing, type, self.fresh())
        self.emit(Assign(place.var, value))

    def pinned(self, place: Place) -> Place:
        """An object a reference is bound to: its address stays when variables in it change later."""
        if not isinstance(place, MemoryPlace) or self._steady(place.pointer):
            return place
        pointer = place.pointer
        base = pointer.pointer if isinstance(pointer, Offset) else pointer
        if not self._steady(base):
            held = self.var("", pointer.type)
            self.emit(Assign(held, pointer))
            return MemoryPlace(place.info, held, place.bitfield)
        assert isinstance(pointer, Offset)
        moved = self.var("", INT64)
        self.emit(Assign(moved, pointer.bytes))
        return MemoryPlace(place.info, Offset(base, moved, pointer.type), place.bitfield)

    def _steady(self, expr: Expr) -> bool:
        """Whether an expression's variables keep their values (parameters, temporaries, set once)."""
        if isinstance(expr, Var):
            return not expr.name or expr.id in self.parameters or expr.id in self.stable
        return all(map(self._steady, operands(expr)))

    def address(self, place: Place) -> Value:
        """``&place``: symbolic when the object has no address."""
        return place.pointer if isinstance(place, MemoryPlace) else Address(place)

    def pointer(self, value: Value, why: str = "pointer") -> Expr:
        """A pointer as an expression; objects whose address is really needed move to memory."""
        if isinstance(value, Address):
            place = value.place
            if isinstance(place, StaticPlace) and isinstance(place.value, Address):
                pass
            owner = place.owner if not isinstance(place, MemoryPlace) else 0
            if owner and owner not in self.memory:
                raise Restart(owner, memory=True)
            return self.spill(place)
        if isinstance(value, EXPR_TYPES):
            return value  # type: ignore[return-value]
        raise Untranslatable(why, "the pointer's value is not modelled")

    def spill(self, place: Place) -> Expr:
        """A copy of a temporary in local memory, and its address."""
        if isinstance(place, MemoryPlace):
            return place.pointer
        array = self.array(f"temporary {self.fresh()}", "", Space.LOCAL, place.info)
        copy = MemoryPlace(place.info, AddressOf(array, Pointer(max(1, place.info.size))))
        self.write(copy, self.read(place, None), None)
        return copy.pointer

    # -------------------------------------------------------------------------------- values

    def read(self, place: Place, node: Node | None) -> Value:
        """The value of an object; ``node`` is the access expression (memory only)."""
        if isinstance(place, VarPlace):
            return Cast(place.var, place.info.ir) if place.address else place.var
        if isinstance(place, DataPlace):
            return Unknown("floating-point value", place.info.ir, self.fresh(), place.uniform, place.loaded)
        if isinstance(place, StaticPlace):
            return place.value
        if isinstance(place, RecordPlace):
            fields = {key: self.read(p, node) for key, p in place.fields.items()}
            return RecordValue(place.info, fields, place.source)
        if place.info.kind == "record":
            return self._read_record(place, node)
        return self.load(place.pointer, place.info, node, place.bitfield)

    def _read_record(self, place: MemoryPlace, node: Node | None) -> Value:
        base = root_array(place.pointer)
        reread(self, place.pointer)
        hidden = hides_bases(place.info) and _of_a_parameter(place.pointer, self.passed)
        if hidden or not place.info.scalar_replaceable():
            return MemoryRecord(place.info, place.pointer, node)
        if node is None or (base is not None and base.space is Space.LOCAL):
            fields = {f.key: self.read(self.member(place, f), node) for f in place.info.fields}
            return RecordValue(place.info, fields)
        if place.info.fields:
            self.emit(
                Load(
                    None,
                    place.pointer,
                    place.info.ir,
                    self.site(node),
                    self._volatile(place),
                    self._readonly(place),
                )
            )
        return self._parts_read(place, node)

    def _parts_read(self, place: MemoryPlace, node: Node) -> Value:
        """The fields of a record that was read at once; of those that are not followed nothing is known."""
        info, reason = place.info, f"value of {self.ast.text(node)}"
        if info.kind == "record":
            parts: dict[int, Value] = {}
            for f in info.fields:
                whole = self._is_followed(f.type) or f.type.kind in ("record", "pointer")
                member = self.member(place, f) if whole else None
                if isinstance(member, MemoryPlace):
                    parts[f.key] = self._parts_read(member, node)
                else:
                    parts[f.key] = self.unknown_record(f.type, reason)
            return RecordValue(info, parts)
        followed = self._is_followed(info)
        if (followed or isinstance(info.ir, Pointer)) and _of_a_parameter(place.pointer, self.passed):
            return self.load(place.pointer, info, node)
        if not followed:
            return self.unknown_record(info, reason)
        var, site = self.var("", info.ir), self.site(node)
        self.data.update({var.id} if isinstance(info.ir, Float) else ())
        volatile, readonly = self._volatile(place), self._readonly(place)
        self.emit(Load(var, place.pointer, info.ir, site, volatile, readonly, part=True))
        return var

    def _is_followed(self, info: TypeInfo) -> bool:
        return isinstance(info.ir, Int) or (isinstance(info.ir, Float) and self.keeps_floats)

    def unknown_record(self, info: TypeInfo, reason: str, inputs: Sequence[Value] = ()) -> Value:
        """A record about which nothing is known (data)."""
        if info.kind != "record":
            return self.unknown(reason, info.ir, inputs)
        return RecordValue(info, {f.key: self.unknown_record(f.type, reason, inputs) for f in info.fields})

    def share_parameter(self, value: MemoryRecord, key: int) -> bool:
        """Whether a record by value may be the parameter itself: until something is written there."""
        base = _of_a_parameter(value.pointer, self.passed)
        if base is not None:
            self.sharing.setdefault(base.id, set()).add(key)
        return base is not None

    def _volatile(self, place: MemoryPlace) -> bool:
        base = root_array(place.pointer)
        return place.info.volatile or (base is not None and base.volatile)

    def _readonly(self, place: MemoryPlace) -> bool:
        base = root_array(place.pointer)
        return base is not None and (base.space is Space.CONSTANT or base.id in self.readonly)

    def load(self, pointer: Expr, info: TypeInfo, node: Node | None, bitfield: bool = False) -> Expr:
        """Emit a read of one scalar and give its value."""
        site = self.site(node) if node is not None else Site(self.home)
        place = MemoryPlace(info, pointer)
        base = root_array(pointer)
        local = base is not None and base.space is Space.LOCAL
        text = self.ast.text(node) if node is not None else (base.name if base else "memory")
        volatile, readonly = self._volatile(place), self._readonly(place)
        passed = None if bitfield else passed_member(self, pointer, info)
        if passed is not None:
            return self.scalar(self.read(passed, None), info)
        if isinstance(info.ir, Pointer) and not local:
            return self.kept_pointers.load(pointer, info, text, site, volatile, readonly, node)
        if isinstance(info.ir, Float) and self.keeps_floats:
            var = self.var("", info.ir)
            self.data.update({var.id} if not local else ())
            self.emit(Load(var, pointer, info.ir, site, volatile, readonly))
            return var
        if isinstance(info.ir, Float | Opaque):
            self.emit(Load(None, pointer, info.ir, site, volatile, readonly))
            return Unknown(f"value of {text}", info.ir, self.fresh(), loaded=not local)
        table = self.tables.get(base.id) if base is not None else None
        offset = tables.offset_in(pointer) if table is not None else None
        if table and offset is not None and base and info.ir == base.element and isinstance(info.ir, Int):
            self.emit(Load(None, pointer, info.ir, site, volatile, readonly))
            place = self.var("", INT64)
            self.emit(Assign(place, offset))
            element = self.var("", info.ir)
            self.emit(Assign(element, tables.element_at(place, table, info.ir)))
            return element
        var = self.var("", info.ir)
        self.emit(Load(var, pointer, info.ir, site, volatile, readonly))
        return self.unknown(f"bit-field {text}", info.ir) if bitfield else var

    def write(self, place: Place, value: Value, node: Node | None) -> None:
        """Assign to an object; ``node`` is the access expression."""
        if isinstance(place, VarPlace):
            if place.constant:
                raise Restart(place.owner, memory=False)
            expr = self.scalar(value, place.info)
            if place.address:
                found = pointer_inside(expr)
                if found is None:
                    raise Untranslatable(
                        "integer that held an address", "what it holds now is not known", node
                    )
                expr = found
            if place.info.is_float and self.loaded(expr):
                self.data.add(place.var.id)
            self.emit(Assign(place.var, expr, self.site(node) if node else None))
        elif isinstance(place, DataPlace):
            if place.constant:
                raise Restart(place.owner, memory=False)
            place.loaded = place.loaded or self.loaded(value)
        elif isinstance(place, StaticPlace):
            if place.owner and place.owner not in self.assigned and isinstance(value, EXPR_TYPES):
                raise Restart(place.owner, memory=False)
            if isinstance(place.value, FunctionValue) and place.owner:  # a pointer to functions that changes
                raise Restart(place.owner, memory=False)
            if not place.owner and place.info.scalar and isinstance(value, EXPR_TYPES):
                raise Untranslatable("assignment", "to an object that the analysis does not model", node)
            place.value = value
        elif isinstance(place, RecordPlace):
            self._write_fields(place, value, node)
        else:
            self._store(place, value, node)

    def _write_fields(self, place: RecordPlace, value: Value, node: Node | None) -> None:
        if isinstance(value, MemoryRecord):
            source, read_at = MemoryPlace(value.info, value.pointer), value.node or node
            value = RecordValue(
                value.info, {f.key: self.read(self.member(source, f), read_at) for f in value.info.fields}
            )
        if not isinstance(value, RecordValue):
            value = self.unknown_record(place.info, "value of a record")
        assert isinstance(value, RecordValue)
        self._remember_source(place, value.source)
        staged: list[tuple[Place, Value]] = []
        for key, target in place.fields.items():
            part = value.fields.get(key)
            if part is None:
                continue
            if isinstance(target, StaticPlace) and target.info.kind == "reference":
                target.value = part
                continue
            if isinstance(part, Var) and len(place.fields) > 1 and part.name:
                copy = self.var("", part.type)  # the source may be this very record, permuted
                self.emit(Assign(copy, part))
                part = copy
            staged.append((target, part))
        for target, part in staged:
            self.write(target, part, node)

    def _store(self, place: MemoryPlace, value: Value, node: Node | None) -> None:
        site = self.site(node) if node is not None else Site(self.home)
        base = root_array(place.pointer)
        local = base is not None and base.space is Space.LOCAL
        if base is not None and base.id in self.sharing:
            first, *others = self.sharing[base.id]
            self.assigned.update(others)  # all of them are copies then
            raise Restart(first, memory=False)
        if base is not None and base.id in self.passed and place.info.scalar and not place.bitfield:
            member = assigned_member(self, place.pointer, place.info)
            if member is not None:
                self.write(member, value, node)
                return
        if isinstance(value, MemoryRecord):
            size = Const(place.info.size, INT64)
            read_at = self.site(value.node) if value.node is not None else None
            self.emit(Copy(place.pointer, value.pointer, size, site, read_at=read_at))
        elif isinstance(value, RecordValue):
            if local:
                for part in place.info.fields:
                    if part.key in value.fields and part.type.kind != "reference":
                        self.write(self.member(place, part), value.fields[part.key], node)
            elif place.info.fields:
                data = self.unknown("a record's value", place.info.ir, list(_leaves(value)))
                parts = tuple(_parts(value))
                self.emit(Store(place.pointer, data, place.info.ir, site, self._volatile(place), parts))
        else:
            if place.info.is_pointer:
                data: Expr = self.pointer(value, "storing a pointer")
                if self.kept_pointers.store(place.pointer, data, site, self._volatile(place), node):
                    return
            elif is_expr(value) and (place.info.scalar or value.type == place.info.ir):
                data = value
            else:  # of a record, or what is left of broken code
                data = self.unknown("value", place.info.ir)
            if place.bitfield:  # of the word: that it is read as well is no access of its own
                data = self.unknown("bit-field", place.info.ir)
            self.emit(Store(place.pointer, data, place.info.ir, site, self._volatile(place)))

    def scramble(self, place: Place) -> None:
        """An object was written by something unknown."""
        if isinstance(place, VarPlace):
            self.write(place, self.unknown("written by a call", place.info.ir), None)
        elif isinstance(place, RecordPlace):
            for part in place.fields.values():
                self.scramble(part)

    def scalar(self, value: Value, info: TypeInfo) -> Expr:
        """A value as an expression of a scalar type."""
        if isinstance(value, EXPR_TYPES):
            return value  # type: ignore[return-value]
        if isinstance(value, Address):
            return self.pointer(value)
        if isinstance(value, RecordValue) and len(value.fields) == 1:
            return self.scalar(next(iter(value.fields.values())), info)
        return self.unknown(f"a value of type {info.name}", info.ir)

    def read_back(self, place: Place) -> Value:
        """The value of an assignment expression: what was just assigned, without reading memory again."""
        if isinstance(place, MemoryPlace) and place.info.scalar:
            value = self.assigned_value
            return value if isinstance(value, EXPR_TYPES) else self.unknown("assigned value", place.info.ir)
        return self.read(place, None)


def _parts(value: RecordValue, start: int = 0) -> Iterator[tuple[int, Expr]]:
    """The numbers in a record, each with its byte in it."""
    for f in value.info.fields:
        part = value.fields.get(f.key)
        if isinstance(part, RecordValue):
            yield from _parts(part, start + f.offset)
        elif is_expr(part) and not f.bitfield:
            yield start + f.offset, part


def _leaves(value: RecordValue) -> Iterator[Value]:
    """The fields, those of records in it included."""
    for part in value.fields.values():
        yield from _leaves(part) if isinstance(part, RecordValue) else (part,)


def _of_a_parameter(pointer: Expr, passed: Container[int]) -> Array | None:
    """The parameter in memory, of those ``passed``, in which this is a place that is known."""
    base = root_array(pointer)
    known = base is not None and base.id in passed and isinstance(tables.offset_in(pointer), Const)
    return base if known else None
