"""Objects of host code as they are made: by constructors, and by lists in braces."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cuda_lsp.frontend.host.host_classes import Constructor, HostClass
from cuda_lsp.frontend.host.pieces import calls, evaluation, statements
from cuda_lsp.frontend.host.pieces.machine import Frame, Machine, NotUnderstood
from cuda_lsp.frontend.host.pieces.nodes import Node, Type
from cuda_lsp.frontend.host.pieces.syntax import NotRead, arguments
from cuda_lsp.frontend.host.pieces.units import Unit
from cuda_lsp.frontend.host.pieces.values import (
    Address,
    Cell,
    Nobody,
    Object,
    Place,
    Size,
    Value,
    copied,
)
from cuda_lsp.frontend.host.text import whole_arguments


def declared_in(owner: HostClass, unit: Unit) -> str:
    """The text of a class."""
    return unit.text.plain[owner.begin : owner.end].replace(" (", "(")


def constructed(m: Machine, type_: Type, given: Sequence[Node]) -> Value:
    """A new object of a type. Raises NotUnderstood."""
    known = m.class_of(type_)
    if known is None or type_.pointers:
        calls.valued(m, given)
        return Nobody(m.fresh(type_.name))
    unit, owner = known
    if len(given) == 1:
        mark = len(m.changed)
        value = evaluation.evaluated(m, given[0])
        if isinstance(value, Object) and value.type.partition("<")[0] == owner.name:
            return copied(value)
        m.undone(mark)
    made = Cell(Object(m.fresh(owner.name), type_.name), Type(type_.name))
    _begin(m, unit, owner, made)
    own = unit.classes.constructors(owner.name)
    fitting = [c for c in own if c.takes(len(given)) and _suits(m, c, given)]
    if len(fitting) == 1:
        _construct(m, unit, owner, made, fitting[0], given)
    elif own or (given and f"{owner.name}(" in declared_in(owner, unit)):
        raise NotUnderstood(owner.name)
    else:
        _listed(m, unit, owner, made, [(None, node) for node in given])
    return _finished(unit, owner, made)


def _finished(unit: Unit, owner: HostClass, made: Cell) -> Value:
    """An object, which does nothing to others when it ends. Raises NotUnderstood."""
    fields = made.value.fields.values() if isinstance(made.value, Object) else ()
    if unit.is_destroyed(owner) and any(isinstance(cell.value, Address | Nobody) for cell in fields):
        raise NotUnderstood(f"~{owner.name}")
    return made.value


def _suits(m: Machine, constructor: Constructor, given: Sequence[Node]) -> bool:
    mark = len(m.changed)
    values = [evaluation.evaluated(m, node) for node in given]
    m.undone(mark)
    return not any(
        (isinstance(value, Size) and value.value and position in constructor.pointers)
        or (isinstance(value, Place) and position not in constructor.pointers)
        for position, value in enumerate(values)
    )


def _begin(m: Machine, unit: Unit, owner: HostClass, made: Cell) -> None:
    """The values that the class gives its fields."""
    for field, text in unit.defaults(owner):
        m.put(m.field(made, field), m.converted(evaluation.text_value(m, text), m.field(made, field).type))


def _construct(
    m: Machine, unit: Unit, owner: HostClass, made: Cell, constructor: Constructor, given: Sequence[Node]
) -> None:
    plain = unit.text.plain
    frame = Frame(unit, [{}], made, owner)
    if isinstance(made.value, Object):
        frame.templates.update(m.bindings(unit, owner, made.value.type))
    closing = plain.rfind(")", 0, constructor.body)
    opening = _opening_of(unit, owner, constructor, closing)
    declared = whole_arguments(plain[opening + 1 : unit.text.closing(opening)])
    calls.bind(m, frame, declared, given)
    m.frames.append(frame)
    try:
        for field, text in constructor.initialisers:
            if field == owner.name or field not in owner.fields:
                raise NotUnderstood(field)
            _initialise(m, m.field(made, field), text)
        statements.block(m, constructor.body + 1, constructor.end)
    except statements.Returned as leaving:
        raise NotUnderstood(owner.name) from leaving
    finally:
        m.frames.pop()


def _opening_of(unit: Unit, owner: HostClass, constructor: Constructor, before: int) -> int:
    """Where a constructor's parameters begin."""
    for match in reversed(
        list(re.finditer(rf"(?<![\w~.>]){owner.name}\s?\(", unit.text.plain[: before + 1]))
    ):
        if len(whole_arguments(unit.text.plain[match.end() : unit.text.closing(match.end() - 1)])) == len(
            constructor.parameters
        ):
            return match.end() - 1
    raise NotUnderstood(owner.name)


def _initialise(m: Machine, cell: Cell, text: str) -> None:
    try:
        parts = arguments(text)
    except NotRead as error:
        raise NotUnderstood(text) from error
    known = m.class_of(cell.type)
    if known is not None and cell.type is not None and not cell.type.pointers and len(parts) != 1:
        m.put(cell, constructed(m, cell.type, parts))
    elif len(parts) == 1:
        _store(m, cell, parts[0])
    elif not parts:
        m.write(cell, None if cell.type is not None and cell.type.pointers else Size({}))
    else:
        raise NotUnderstood(text)


def record(m: Machine, type_: str | None, parts: Sequence[tuple[str | None, Node]]) -> Value:
    """``T{a, b}``. Raises NotUnderstood."""
    known = m.class_of(m.resolved(Type(type_))) if type_ is not None else None
    if known is None or type_ is None:
        made = Cell(Object(m.fresh("record"), ""))
        for position, (field, node) in enumerate(parts):
            m.put(m.field(made, field or f"[{position}]"), copied(evaluation.evaluated(m, node)))
        return made.value
    unit, owner = known
    if unit.classes.constructors(owner.name):
        return constructed(m, Type(type_), [node for _, node in parts])
    made = Cell(Object(m.fresh(owner.name), type_), Type(type_))
    _begin(m, unit, owner, made)
    _listed(m, unit, owner, made, parts)
    return _finished(unit, owner, made)


def _listed(
    m: Machine, unit: Unit, owner: HostClass, made: Cell, parts: Sequence[tuple[str | None, Node]]
) -> None:
    """The fields of a plain structure, by position or by name."""
    names = list(unit.field_types(owner))
    for position, (field, node) in enumerate(parts):
        if field is None and position >= len(names):
            raise NotUnderstood(owner.name)
        cell = m.field(made, field or names[position])
        _store(m, cell, node)


def _store(m: Machine, cell: Cell, node: Node) -> None:
    """What a field begins with; a reference is the address of what it refers to. Raises NotUnderstood."""
    if cell.type is None or not cell.type.reference:
        m.write(cell, copied(evaluation.evaluated(m, node)))
        return
    of = evaluation.cell_of(m, node)
    if of is None:
        raise NotUnderstood("a reference")
    m.put(cell, Address(of))


def record_as(m: Machine, type_: Type, value: Value) -> Value:
    """``T x = {a, b};``: a list in braces as an object of its variable's type. Raises NotUnderstood."""
    known = m.class_of(type_)
    if known is None or type_.pointers or not isinstance(value, Object) or value.type:
        return value
    unit, owner = known
    if unit.classes.constructors(owner.name):
        raise NotUnderstood(owner.name)
    made = Cell(Object(m.fresh(owner.name), type_.name), Type(type_.name))
    _begin(m, unit, owner, made)
    names = list(unit.field_types(owner))
    for name, cell in value.fields.items():
        field = names[int(name[1:-1])] if name.startswith("[") and int(name[1:-1]) < len(names) else name
        of = m.field(made, field)
        if of.type is not None and of.type.reference:
            raise NotUnderstood(owner.name)
        m.write(of, cell.value)
    return _finished(unit, owner, made)
