"""Scalars of parameters in memory that are read through a variable: parameters like any other.

A tensor that is passed by value hands a pointer to its strides on to what indexes it (``View(data, strides
+ 1)``). Where each variable on the way is set once, to a known place of the parameter, what is read there is
a parameter, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.tables import offset_in
from cuda_lsp.ir.program import (
    AddressOf,
    Assign,
    Cast,
    Const,
    Expr,
    Load,
    Offset,
    ParameterLayout,
    Stmt,
    Var,
)
from cuda_lsp.ir.types import Int
from cuda_lsp.ir.walk import assigned, root, walk, with_children


def with_members(low: Lowering, statements: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements, where such reads are assignments of the member; new parameters are put in ``low``."""
    if not low.passed:
        return tuple(statements)
    places = _places(low.passed, statements)
    return _changed(low, statements, places) if places else tuple(statements)


def _places(passed: Mapping[int, ParameterLayout], statements: Sequence[Stmt]) -> dict[Var, Expr]:
    """The variables that point to one place of a parameter, as an offset from its address."""
    times = Counter(var for s in walk(statements) if (var := assigned(s)) is not None)
    found: dict[Var, Expr] = {}
    for s in walk(statements):
        if isinstance(s, Assign) and times[s.var] == 1:
            place = _resolved(s.value, found)
            base = root(place)
            if isinstance(base, AddressOf) and base.array.id in passed and _offset(place) is not None:
                found[s.var] = place
    return found


def _resolved(pointer: Expr, places: Mapping[Var, Expr]) -> Expr:
    """The pointer with what its variable stands for."""
    if isinstance(pointer, Offset):
        return Offset(_resolved(pointer.pointer, places), pointer.bytes, pointer.type)
    if isinstance(pointer, Cast):
        return _resolved(pointer.operand, places)
    return places.get(pointer, pointer) if isinstance(pointer, Var) else pointer


def _offset(place: Expr) -> int | None:
    offset = offset_in(place)
    return int(offset.value) if isinstance(offset, Const) else None


def _changed(low: Lowering, statements: Sequence[Stmt], places: Mapping[Var, Expr]) -> tuple[Stmt, ...]:
    return tuple(_one_changed(low, s, places) for s in statements)


def _one_changed(low: Lowering, s: Stmt, places: Mapping[Var, Expr]) -> Stmt:
    if isinstance(s, Load):
        member = _member(low, s, places)
        return s if member is None or s.var is None else Assign(s.var, member, s.site)
    return with_children(s, lambda part: _changed(low, part, places))


def _member(low: Lowering, s: Load, places: Mapping[Var, Expr]) -> Var | None:
    """The parameter that the read gives, if it is a whole number of one."""
    if not isinstance(root(s.pointer), Var) or not isinstance(s.type, Int):
        return None
    place = _resolved(s.pointer, places)
    base, offset = root(place), _offset(place)
    layout = low.passed.get(base.array.id) if isinstance(base, AddressOf) else None
    if layout is None or offset is None:
        return None
    name = next((m.name for m in layout.members if m.offset == offset and m.type == s.type), None)
    return _parameter(low, name, s.type) if name is not None else None


def _parameter(low: Lowering, name: str, type: Int) -> Var:
    known = next((var for var in low.late_parameters if var.name == name), None)
    if known is None:
        known = low.var(name, type)
        low.parameters.add(known.id)
        low.late_parameters.append(known)
    return known
