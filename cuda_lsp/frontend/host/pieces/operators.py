"""What operators make of sizes and places."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from cuda_lsp.frontend.host.pieces.machine import Machine, NotUnderstood
from cuda_lsp.frontend.host.pieces.nodes import Type
from cuda_lsp.frontend.host.pieces.syntax import is_built_in
from cuda_lsp.frontend.host.pieces.values import (
    Address,
    Nobody,
    Place,
    Size,
    Value,
    constant,
    moved,
    named,
    number,
)
from cuda_lsp.frontend.host.polynomials import Polynomial, added, multiplied

_BYTES = Type("char")
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}


def binary(m: Machine, sign: str, left: Value, right: Value) -> Value:
    """``left sign right``."""
    if isinstance(left, Place) and sign in ("+", "-"):
        return _stepped(m, left, right, sign)
    if isinstance(right, Place) and sign == "+":
        return _stepped(m, right, left, sign)
    if isinstance(left, Nobody) and sign in ("+", "-") and m.size_of(left.points_to) is not None:
        return _stepped(m, Place(left.name, {}, left.name, left.points_to), right, sign)
    if isinstance(left, Place) and sign in ("&", "/", "%", "*"):
        return _of_address(m, sign, left, right)
    if isinstance(left, Address) or isinstance(right, Address):
        if sign in _COMPARISONS:
            return Nobody(m.fresh("same"))
        raise NotUnderstood(sign)  # who counts on from a variable reaches others
    one, other = size(left), size(right)
    if one is None or other is None:
        return Nobody(m.fresh("value"))
    made = _of_sizes(m, sign, one, other)
    return Nobody(m.fresh("value")) if made is None else Size(made)


def size(value: Value) -> Polynomial | None:
    """A value as a number."""
    if isinstance(value, Nobody):
        return {(value.name,): 1}
    return value.value if isinstance(value, Size) else None


def cast(m: Machine, type_: Type, value: Value) -> Value:
    """``(type)value``."""
    type_ = m.resolved(type_)
    if isinstance(value, Place):
        if type_.pointers:
            return evolve(value, type=type_.pointee)
        return evolve(value, type=_BYTES) if is_built_in(type_.name) else Nobody(m.fresh("cast"))
    if isinstance(value, Nobody) and type_.pointers:
        return Place(value.name, {}, value.name, type_.pointee)
    if isinstance(value, Size) and type_.pointers:
        return m.initial(m.fresh("number"), type_) if value.value else None
    if isinstance(value, Size | Nobody) and not m.is_whole(type_):
        return Nobody(m.fresh("cast"))
    return value


def _stepped(m: Machine, place: Place, by: Value, sign: str) -> Value:
    """A place so many elements further on; the elements between two."""
    unit = m.size_of(place.type)
    if isinstance(by, Place):
        apart = added(place.offset, by.offset, -1)
        elements = divided_evenly(apart, unit) if place.base == by.base and sign == "-" else None
        return Nobody(m.fresh("apart")) if elements is None else Size(elements)
    steps = size(by)
    far = multiplied(steps, unit) if steps is not None and unit is not None else None
    if far is None:
        return Place(m.fresh("somewhere"), {}, place.root, place.type)
    return moved(place, far if sign == "+" else added({}, far, -1))


def divided_evenly(value: Polynomial, by: Polynomial | None) -> Polynomial | None:
    """A polynomial by one product; None: something is left over."""
    if by is None or len(by) != 1:
        return None
    ((names, factor),) = by.items()
    found: Polynomial = {}
    for product, times in value.items():
        rest = list(product)
        for name in names:
            if name not in rest:
                return None
            rest.remove(name)
        if times % factor:
            return None
        found[tuple(rest)] = times // factor
    return found


def _of_address(m: Machine, sign: str, place: Place, right: Value) -> Value:
    """An address that is aligned: ``p & ~15``, ``p / 16 * 16``."""
    by = constant(right.value) if isinstance(right, Size) else None
    if by is None or place.type != _BYTES:
        return Place(m.fresh("somewhere"), {}, place.root, place.type)
    if sign == "&" and by < 0 and -by & (-by - 1) == 0:
        return _aligned(m, place, -by)
    return Place(m.fresh("somewhere"), {}, place.root, place.type)


def _aligned(m: Machine, place: Place, to: int) -> Place:
    if m.alignment.get(place.base, 1) % to == 0:
        times = multiplied(m.quotients.divided(place.offset, to), {(): to})
        return evolve(place, offset=times or {})
    whole = {names: factor for names, factor in place.offset.items() if factor % to == 0}
    rest = {names: factor for names, factor in place.offset.items() if factor % to}
    base = named(f"{place.base}+{tuple(sorted(rest.items()))}&{to}")
    m.alignment[base] = to
    return Place(base, whole, place.root, place.type)


def _of_sizes(m: Machine, sign: str, one: Polynomial, other: Polynomial) -> Polynomial | None:
    known, by = constant(one), constant(other)
    if sign in ("+", "-"):
        return added(one, other, 1 if sign == "+" else -1)
    if sign == "*":
        return multiplied(one, other)
    if sign in _COMPARISONS:
        apart = constant(added(one, other, -1))
        return (
            number(_COMPARISONS[sign](apart, 0)) if apart is not None else _same_each_time(sign, one, other)
        )
    if by is not None:
        made = _by_number(m, sign, one, by)
        if made is not None:
            return made
    if known is not None and by is not None and sign in ("&", "|", "^", "&&", "||"):
        return number(_of_bits(sign, known, by))
    if sign == "&" and known is not None:
        return _of_sizes(m, sign, other, one)
    return _same_each_time(sign, one, other)


def _of_bits(sign: str, one: int, other: int) -> int:
    if sign in ("&&", "||"):
        return int(bool(one and other) if sign == "&&" else bool(one or other))
    return one & other if sign == "&" else one | other if sign == "|" else one ^ other


def _by_number(m: Machine, sign: str, one: Polynomial, by: int) -> Polynomial | None:
    """Shifts, and divisions by what is larger than 0."""
    if sign == "<<" and 0 <= by < 48:
        return multiplied(one, {(): 1 << by})
    if sign == ">>" and 0 <= by < 48:
        return m.quotients.divided(one, 1 << by)
    if sign == "/" and by > 0:
        return m.quotients.divided(one, by)
    if sign == "%" and by > 0:
        return m.quotients.remainder(one, by)
    if sign == "&" and by < 0 and -by & (-by - 1) == 0:
        return multiplied(m.quotients.divided(one, -by), {(): -by})
    if sign == "&" and by >= 0 and by & (by + 1) == 0:
        if one and all(factor < 0 for factor in one.values()):  # up to the next multiple
            up = m.quotients.divided(added({(): by}, one, -1), by + 1)
            times = multiplied(up, {(): by + 1})
            return None if times is None else added(times, one, 1)
        return m.quotients.remainder(one, by + 1)
    return None


def _same_each_time(sign: str, one: Polynomial, other: Polynomial) -> Polynomial:
    """A number that nobody knows, the same for the same operands."""
    return {(named(f"({tuple(sorted(one.items()))}{sign}{tuple(sorted(other.items()))})"),): 1}


def unary(m: Machine, sign: str, value: Value) -> Value:
    """``-n``, ``~n``, ``!n``."""
    known = size(value)
    if known is None:
        return Nobody(m.fresh("value"))
    if sign == "+":
        return Size(known)
    if sign == "-":
        return Size(added({}, known, -1))
    if sign == "~":
        return Size(added({(): -1}, known, -1)) if known else Size({(): -1})
    whole = constant(known)
    return Nobody(m.fresh("value")) if whole is None else Size(number(whole == 0))
