"""Expressions of host code, evaluated: what they are worth, and what they change."""

from __future__ import annotations

import re

from cuda_lsp.frontend.host.pieces import calls, objects
from cuda_lsp.frontend.host.pieces.machine import Machine, NotUnderstood
from cuda_lsp.frontend.host.pieces.nodes import (
    Assigned,
    Binary,
    Called,
    Cast,
    Choice,
    Index,
    LambdaText,
    Made,
    Member,
    Name,
    Node,
    Number,
    Record,
    SizeOf,
    Step,
    Type,
    Unary,
)
from cuda_lsp.frontend.host.pieces.operators import binary, cast, unary
from cuda_lsp.frontend.host.pieces.syntax import NotRead, Reader, expression
from cuda_lsp.frontend.host.pieces.values import (
    Address,
    Cell,
    Lambda,
    Nobody,
    Object,
    Place,
    Size,
    Value,
    constant,
    copied,
    number,
)

_NUMBER = re.compile(r"\A(0[xX][0-9a-fA-F]+|\d+)[uUlLzZ]*\Z")
_WORDS = {"true": 1, "false": 0}
_NOTHING = frozenset({"nullptr", "NULL"})


def evaluated(m: Machine, node: Node) -> Value:
    """What an expression is worth. Raises NotUnderstood."""
    match node:
        case Number(text):
            return _number(m, text)
        case Name(text, _):
            return _named(m, text)
        case Member() | Index() | Unary("*", _):
            cell = cell_of(m, node)
            return cell.value if cell is not None else Nobody(m.fresh("value"))
        case Unary("&", operand):
            return _address(m, operand)
        case Unary(sign, operand):
            return unary(m, sign, _plain(evaluated(m, operand)))
        case Cast(type_, operand):
            return cast(m, type_, evaluated(m, operand))
        case SizeOf(text):
            return _size(m, text)
        case Binary(sign, left, right):
            return _combined(m, sign, left, right)
        case Assigned(sign, left, right):
            return _assigned(m, sign, left, right)
        case Step(sign, operand, behind):
            return _step(m, sign, operand, behind)
        case Choice(condition, first, second):
            return _choice(m, condition, first, second)
        case Record(type_, parts):
            return objects.record(m, type_, parts)
        case Made(type_, arguments):
            return Address(Cell(objects.constructed(m, type_, arguments)))
        case LambdaText(captures, parameters, body):
            return _lambda(m, captures, parameters, body)
        case Called():
            return calls.called(m, node)[0]


def _lambda(m: Machine, captures: str, parameters: str, body: int) -> Value:
    if m.frame.origin < 0:
        raise NotUnderstood("[]")
    listed = [part.strip() for part in captures.split(",") if part.strip()]
    by_copy = "=" in listed
    scopes = [_kept(scope) for scope in m.frame.scopes] if by_copy else [*m.frame.scopes]
    if not by_copy and "&" not in listed:
        scopes = list[dict[str, Cell]]()
    own: dict[str, Cell] = {}
    for part in listed:
        name = part.removeprefix("&").strip()
        cell = m.lookup(name) if name.isidentifier() and name != "this" else None
        if cell is not None:
            own[name] = cell if part.startswith("&") else Cell(copied(cell.value), cell.type)
        elif part not in ("&", "=", "this"):
            raise NotUnderstood(captures)
    copies = by_copy or any(not part.startswith("&") and part != "this" for part in listed)
    scopes = (*scopes, own)
    return Lambda(
        parameters, m.frame.origin + body, scopes, m.frame.this, copies, m.frame.unit, m.frame.owner
    )


def _kept(scope: dict[str, Cell]) -> dict[str, Cell]:
    """The variables as a lambda copies them."""
    return {name: Cell(copied(cell.value), cell.type) for name, cell in scope.items()}


def cell_of(m: Machine, node: Node) -> Cell | None:
    """The variable that an expression names; None: it names none. Raises NotUnderstood."""
    match node:
        case Name("this", _):
            return None
        case Name(text, _):
            return m.lookup(text)
        case Member(of, field, arrow):
            inner = cell_of(m, of) if not arrow else None
            if inner is None:
                value = evaluated(m, of)
                inner = value.cell if isinstance(value, Address) else Cell(value)
            return m.field(inner, field)
        case Unary("*", operand):
            return _behind(m, evaluated(m, operand))
        case Index(array, index):
            return _element(m, array, evaluated(m, index))
        case Called():
            return calls.called(m, node)[1]
        case Cast(_, operand):
            return cell_of(m, operand)
        case _:
            return None


def _behind(m: Machine, value: Value) -> Cell:
    if isinstance(value, Address):
        return value.cell
    if isinstance(value, Place):
        return m.pointed(value)
    raise NotUnderstood("*")


def _element(m: Machine, array: Node, index: Value) -> Cell:
    of = cell_of(m, array)
    value = of.value if of is not None else evaluated(m, array)
    if isinstance(value, Place):
        place = binary(m, "+", value, index)
        if not isinstance(place, Place):
            raise NotUnderstood("[]")
        return m.pointed(place)
    at = constant(index.value) if isinstance(index, Size) else None
    own = isinstance(value, Object) and value.type in ("", "[]")
    if of is None or at is None or not (own or isinstance(value, Nobody)):
        raise NotUnderstood("[]")
    element = m.field(of, f"[{at}]")
    if element.type is None and of.type is not None and isinstance(value, Object) and value.type == "[]":
        element.type = of.type
        element.value = _begun(m, value, f"{value.name}[{at}]", of.type)
    return element


def _begun(m: Machine, array: Object, name: str, type_: Type) -> Value:
    """What an element holds that nothing is known to be stored to."""
    if type_.pointers and array.root is not None:
        return Place(name, {}, array.root, type_.pointee)
    return m.initial(name, type_) if array.begun or not type_.pointers else None


def _number(m: Machine, text: str) -> Value:
    match = _NUMBER.match(text.replace("'", ""))
    if match is None:
        return Nobody(m.fresh("number"))
    octal = len(match[1]) > 1 and match[1][0] == "0" and match[1].isdigit()
    return Size(number(int(match[1], 8 if octal else 0)))


def _named(m: Machine, name: str) -> Value:
    if name in _WORDS:
        return Size(number(_WORDS[name]))
    if name in _NOTHING:
        return None
    if name == "this":
        if m.frame.this is None:
            raise NotUnderstood(name)
        return Address(m.frame.this)
    cell = m.lookup(name)
    if cell is not None and not isinstance(cell.value, Nobody):
        return cell.value
    known = m.integer(name) if cell is None else None
    if known is not None:
        return Size(number(known))
    return cell.value if cell is not None else Nobody(name)


def _address(m: Machine, operand: Node) -> Value:
    if isinstance(operand, Index):
        value = evaluated(m, operand.array)
        if isinstance(value, Place):
            return binary(m, "+", value, evaluated(m, operand.index))
    cell = cell_of(m, operand)
    return Address(cell) if cell is not None else Nobody(m.fresh("address"))


def _size(m: Machine, text: str) -> Value:
    type_ = Reader(text).type()
    known = m.lookup(text) if text.isidentifier() else None
    plain = known is not None and known.type is not None  # declared; a name alone may be a template's type
    if type_ is not None and not plain:
        bytes_ = m.size_of(type_)
        return Size(bytes_) if bytes_ is not None else Nobody(m.fresh("size"))
    try:
        value = expression(text)
    except NotRead:
        return Nobody(m.fresh("size"))
    if isinstance(value, Unary) and value.sign == "*":  # sizeof(*p)
        pointer = evaluated(m, value.operand)
        if isinstance(pointer, Place) and (bytes_ := m.size_of(pointer.type)) is not None:
            return Size(bytes_)
    return Nobody(m.fresh("size"))


def _plain(value: Value) -> Value:
    """A value whose operators are C's. Raises NotUnderstood."""
    if isinstance(value, Object) and value.type:
        raise NotUnderstood("an operator of a class")
    return value


def _combined(m: Machine, sign: str, left: Node, right: Node) -> Value:
    one = _plain(evaluated(m, left))
    mark = len(m.changed)
    other = _plain(evaluated(m, right))
    if len(m.changed) > mark and (sign in ("&&", "||") or not isinstance(left, Number)):
        raise NotUnderstood(sign)  # it may be the first to be evaluated, or not be evaluated at all
    return binary(m, sign, one, other)


def _assigned(m: Machine, sign: str, left: Node, right: Node) -> Value:
    value = evaluated(m, right)
    cell = cell_of(m, left)
    if cell is None:
        raise NotUnderstood(sign)
    if sign != "=":
        value = binary(m, sign[:-1], _plain(cell.value), _plain(value))
    m.write(cell, copied(value))
    return cell.value


def _step(m: Machine, sign: str, operand: Node, behind: bool) -> Value:
    cell = cell_of(m, operand)
    if cell is None:
        raise NotUnderstood(sign)
    before = _plain(cell.value)
    m.write(cell, binary(m, sign[0], before, Size(number(1))))
    return before if behind else cell.value


def _choice(m: Machine, condition: Node, first: Node, second: Node) -> Value:
    asked = evaluated(m, condition)
    known = constant(asked.value) if isinstance(asked, Size) else None
    if known is not None:
        return evaluated(m, first if known else second)
    before = len(m.changed)
    one = evaluated(m, first)
    other = evaluated(m, second)
    if len(m.changed) != before:
        raise NotUnderstood("?")
    return m.joined(one, other)


def text_value(m: Machine, text: str) -> Value:
    """What an expression is worth that stands nowhere. Raises NotUnderstood."""
    try:
        return evaluated(m, expression(text))
    except NotRead as error:
        raise NotUnderstood(text) from error
