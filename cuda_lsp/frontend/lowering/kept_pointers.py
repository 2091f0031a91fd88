"""Pointers that are kept in memory: which object one points into that was read from there.

In shared memory the kernel itself writes them. As long as all point into one object, their distance from its
beginning is kept in their stead, as a number. What the host put into tables of pointers is taken to point to
objects of their own, which is told: one stretch of one object for each place of the table. So is what it put
into the fields of one record of the device (``buffers.out``). Other pointers point into an object that may
overlap others from the same memory.
"""

from __future__ import annotations

import re

from attrs import define, field

from cuda_lsp.frontend.lowering import tables
from cuda_lsp.frontend.lowering.build import binary, offset_by
from cuda_lsp.frontend.lowering.output import Output
from cuda_lsp.frontend.lowering.types import TypeInfo
from cuda_lsp.frontend.tree import Node
from cuda_lsp.ir.program import (
    STRETCH,
    AddressOf,
    Array,
    Binary,
    BinaryOp,
    Cast,
    Const,
    Expr,
    Incomplete,
    Load,
    NextStep,
    Offset,
    Store,
    Var,
)
from cuda_lsp.ir.types import BOOL, INT64, Pointer
from cuda_lsp.ir.walk import root_array, written_arrays
from cuda_lsp.model import Site, Space

Number = int | float
_INDEX = re.compile(r"\[\d+\]")
_FIELD = re.compile(r"\A(\w+)(?:\.\w+)+\Z")


@define
class KeptPointers:
    """``targets``: by the memory (id of its array) what the pointers kept there point into.

    ``read``, ``written``: memory of which pointers were read as if the kernel wrote none there, or written as
    if it read none. ``stretches``: tables of which each place has an object of its own. ``fields``: by record
    of the device, where pointers were read from it, None for what is no field alone. ``chosen``: what those
    point into that are read where only a run tells, with the place, by the parameter that holds them.
    ``bits``: pointers that were read from shared memory (by ``id()``), and the numbers that these are.
    """

    low: Output
    targets: dict[int, Array] = field(factory=dict[int, Array])
    read: set[int] = field(factory=set[int])
    written: set[int] = field(factory=set[int])
    stretches: dict[int, str] = field(factory=dict[int, str])
    fields: dict[str, set[Number | None]] = field(factory=dict[str, "set[Number | None]"])
    chosen: list[tuple[int, Expr | None, Array]] = field(factory=list["tuple[int, Expr | None, Array]"])
    bits: dict[int, tuple[Expr, Var]] = field(factory=dict[int, tuple[Expr, Var]])

    def store(self, place: Expr, pointer: Expr, site: Site, volatile: bool, node: Node | None) -> bool:
        """Keep a pointer in shared memory as a number, if it can be; False: that is not done."""
        memory, target, distance = root_array(place), root_array(pointer), tables.offset_in(pointer)
        if memory is None or memory.space is Space.LOCAL:
            return False
        followed = memory.space is Space.SHARED and memory.id not in self.read
        if followed and target and distance and self.targets.setdefault(memory.id, target) is target:
            self.low.emit(Store(place, distance, INT64, site, volatile))
            return True
        self._write_unfollowed(memory, node)
        return False

    def _write_unfollowed(self, memory: Array, node: Node | None) -> None:
        self.written.add(memory.id)
        if node is not None and (memory.id in self.read or memory.id in self.targets):
            self._say(memory, node)

    def load(
        self, place: Expr, info: TypeInfo, text: str, site: Site, volatile: bool, readonly: bool,
        node: Node | None,
    ) -> Expr:  # fmt: skip
        """Emit the read of a pointer, and give it."""
        memory = root_array(place)
        target = self.targets.get(memory.id) if memory is not None else None
        if target is not None:
            distance = self.low.var("", INT64)
            self.low.emit(Load(distance, place, INT64, site, volatile))
            return Offset(AddressOf(target), distance, info.ir if isinstance(info.ir, Pointer) else Pointer())
        shared = memory is not None and memory.space is Space.SHARED
        bits = self.low.var("", INT64) if shared else None
        self.low.emit(Load(bits, place, INT64 if shared else info.ir, site, volatile, readonly))
        if memory is not None:
            self.read.add(memory.id)
            if memory.id in self.written and node is not None:
                self._say(memory, node)
        pointee = self._pointee(place, info, text)
        if bits is not None:
            self.bits[id(pointee)] = pointee, bits
        return pointee

    def null(self, pointer: Expr) -> Expr | None:
        """Whether a pointer that was read from shared memory is null, as what was read tells; None: it was
        read elsewhere, or is kept in a variable."""
        _, bits = self.bits.get(id(pointer), (pointer, None))
        return None if bits is None else binary(BinaryOp.EQ, bits, Const(0, INT64), BOOL)

    def _say(self, memory: Array, node: Node) -> None:
        reason = f"where those in `{memory.name}` point is not known"
        self.low.incomplete("pointer kept in memory", reason, node, step=NextStep.PROGRAM)

    def _pointee(self, place: Expr, info: TypeInfo, text: str) -> Expr:
        """An object that may overlap its neighbours', unless each place of a table has its own."""
        target, base, low = info.target or info, root_array(place), self.low
        size = max(1, target.size)
        every = TypeInfo("array", "", target.ir, 0, target=target, count=None)
        group, name = f"pointers in {base.name if base else 'memory'}", base.id if base else 0
        index = tables.offset_in(place)
        steady = low.uniform(place)
        if steady and index is not None and _is_table(base) and not low.same_in_grid(place):
            assert base is not None
            self.stretches[base.id] = base.name
            key = f"pointees {target.name} {name}"
            whole = low.array(key, f"*{base.name}", Space.GLOBAL, every, may_alias=group)
            self._note_choice(base, index, whole)
            moved = binary(BinaryOp.MUL, index, Const(STRETCH, INT64))
            return offset_by(AddressOf(whole, Pointer(size)), moved)
        if base is not None and _is_of_device(base) and base.id not in low.passed:
            at = index.value if isinstance(index, Const) and _is_field(base, text) else None
            self.fields.setdefault(base.name, set()).add(at)
            group = group if at is None else f"pointer at {at} of {base.name}"  # fields of a union are one
        one = steady and low.same_in_grid(place)
        # In a function the text of several places is one: ``at[n]`` of ``get(0)`` and of ``get(1)``.
        where = index if one and index is not None else text
        key = f"pointee {where} {target.name} {name}"
        address = AddressOf(low.array(key, f"*{text}", Space.GLOBAL, every, may_alias=group), Pointer(size))
        self._note_choice(base, index, address.array)
        if one:
            return address
        moved = low.unknown(f"where `{text}` points, which is read from memory", INT64, varies=True)
        return Offset(address, moved, address.type)

    def _note_choice(self, base: Array | None, index: Expr | None, target: Array) -> None:
        if base is not None and base.id in self.low.passed and not isinstance(index, Const):
            self.chosen.append((base.id, index, target))

    def say_choices(self) -> None:
        """Says where a pointer of a parameter is named (``p[0].x``) and may be chosen, too (``p[i].x``), and
        one of these writes."""
        low, written = self.low, written_arrays(self.low.out)
        for memory, index, target in self.chosen:
            members = low.passed[memory].members
            first = _at_zero(index)
            table = next((_table(m.name) for m in members if m.offset == first), None)
            for member in members:
                array = low.arrays.get(f"parameter {member.name}")
                read = array is not None and "[" in member.name and member.name in low.members
                if (
                    read
                    and table in (None, _table(member.name))
                    and not written.isdisjoint({array, target, None})
                ):
                    reason = f"where `{target.name.removeprefix('*')}` points is not known"
                    low.emit(Incomplete(f"`{member.name}`", reason, Site(low.home), step=NextStep.PROGRAM))

    def granted(self) -> list[str]:
        """What is taken for granted of tables, for people."""
        several = (name for name, fields in self.fields.items() if len(fields) > 1)
        names = dict.fromkeys((*self.stretches.values(), *several))
        return [f"the pointers in `{name}` point to objects of their own" for name in names]


def _is_table(base: Array | None) -> bool:
    """The host filled it: it is no object that another pointer from memory points to."""
    return base is not None and base.space is not Space.SHARED and base.may_alias is None


def _is_of_device(base: Array) -> bool:
    """A variable of the device, which the host fills."""
    return base.space in (Space.GLOBAL, Space.CONSTANT) and base.may_alias is None and base.param is None


def _is_field(base: Array, text: str) -> bool:
    """A field of the record itself: no element, and not reached through another pointer or a reference."""
    found = _FIELD.match(text)
    return found is not None and found[1] == base.name


def _table(name: str) -> str:
    """The member of each element that a member of one element is."""
    return _INDEX.sub("[]", name)


def _at_zero(index: Expr | None) -> Number | None:
    """A sum of numbers and multiples, where all that is multiplied is 0; None: it is something else."""
    match index:
        case Const():
            return index.value
        case Binary(op=BinaryOp.ADD):
            left, right = _at_zero(index.left), _at_zero(index.right)
            return left + right if left is not None and right is not None else None
        case Binary(op=BinaryOp.MUL):
            return 0 if isinstance(index.right, Const) or isinstance(index.left, Const) else None
        case Cast():
            return _at_zero(index.operand)
        case _:
            return None
