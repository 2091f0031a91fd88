"""Arguments that the host computes from others: ``int row = heads * size; k<<<m, t>>>(a, row, heads, size);``

Each integer argument, and each extent of grid and block, is a polynomial of what the host knows: parameters
of the function around, results of calls, quotients, powers of two. An argument whose products are made of
those of others, of extents and of numbers is a formula of these, whatever the sizes are that the kernel never
sees. Both sides agree modulo any power of two, so that widths and signs do not matter.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from cuda_lsp.frontend.host.constants import SIZE_OF
from cuda_lsp.frontend.host.host_constants import HostConstants
from cuda_lsp.frontend.host.passed_fields import PassedField
from cuda_lsp.frontend.host.polynomials import Formula, Polynomial, added, multiplied, parsed
from cuda_lsp.frontend.host.terms import Term, product_of, sum_of, with_solved
from cuda_lsp.frontend.host.text import split_arguments

_CAST = re.compile(
    r"\(\s?(?:(?:const|unsigned|signed|long|int)\s?)*(?:int|long|unsigned|size_t|u?int(?:32|64)_t)\s?\)\s?(?=[\w(])"
    r"|\bstatic_cast\s?<\s?(?:(?:unsigned|long)\s)*(?:int|long|unsigned|size_t|u?int(?:32|64)_t)\s?>\s?(?=\()"
    r"|(?<![\w:])(?:int|unsigned|size_t|u?int(?:32|64)_t)(?=\()"
)
_NUMBER = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlLzZ]+\b")
_DIM3 = re.compile(r"\A(?:dim3\s?[({]|\{)(.*)[)}]\Z", re.S)
_NARROW = re.compile(r"\b(?:bool|char|uchar|u?short|u?int(?:8|16)_t|auto|float|double)\b")
_INTEGER = re.compile(r"\b(?:int|long|unsigned|size_t|u?int(?:32|64)_t)\b")
_MOST_STEPS = 6
"""Variables looked through."""
_LONGEST = 400
"""Characters of an expression."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_CALL = re.compile(r"\w\s?\(")
_WIDTH = 32
"""Bits of an int."""


@frozen
class _Divided:
    """``whole / by + more``, as integers are divided."""

    whole: Polynomial
    by: int
    more: int

    @property
    def added(self) -> str:
        """As conditions write it."""
        return f" + {self.more}" if self.more else ""


def computed_arguments(
    constants: HostConstants, configuration: Sequence[str], arguments: Sequence[str], at: int
) -> Mapping[int, Formula]:
    """Positions of arguments that are computed from others; no circles among them.

    Formulas speak of arguments (``#2``) and of extents (``gridDim.y``).
    """
    host = _Host(constants, at)
    values = {i: value for i, text in enumerate(arguments) if (value := host.value(text, at))}
    values = {i: value for i, value in values.items() if any(value)}
    extents = list(_extents(host, configuration, at)) if any(map(_is_made, values.values())) else []
    found: dict[int, Formula] = {}
    for position, value in values.items():
        before = [(i, other) for i, other in values.items() if _rank(i, other) < _rank(position, value)]
        terms = [Term(f"#{i}", *product) for i, other in before if (product := product_of(other))]
        if _is_made(value):
            formula = sum_of(value, terms) or sum_of(value, [*terms, *extents])
        else:
            formula = next((t.name for t in terms if {t.names: t.factor} == value), None)
        if formula is not None:
            found[position] = formula
    return found


def computed_fields(
    constants: HostConstants,
    configuration: Sequence[str],
    arguments: Sequence[str],
    at: int,
    fields: Sequence[PassedField],
) -> Mapping[tuple[int, str], Formula]:
    """Fields of arguments, by position and name, that are computed from arguments and other fields.

    Formulas name fields behind the argument (``#2.rows``).
    """
    host = _Host(constants, at)
    held = ((f, host.value(f.text, f.place)) for f in fields)
    values = {(f.position, f.name): value for f, value in held if value and any(value)}
    plain = ((i, host.value(text, at)) for i, text in enumerate(arguments)) if values else ()
    terms = [Term(f"#{i}", *product) for i, v in plain if v and any(v) and (product := product_of(v))]
    terms += _extents(host, configuration, at) if values else ()
    found: dict[tuple[int, str], Formula] = {}
    for key, value in sorted(values.items(), key=lambda each: _rank(0, each[1])):
        formula = sum_of(value, terms)
        product = product_of(value)
        if formula is not None:
            found[key] = formula
        elif product is not None:
            terms.append(Term(f"#{key[0]}.{key[1]}", *product))
    return found


def distance(
    constants: HostConstants,
    configuration: Sequence[str],
    arguments: Sequence[str],
    at: int,
    apart: Polynomial,
) -> Formula | None:
    """A sum of sizes that the host knows (arguments by position), by what a launch shows the kernel."""
    host = _Host(constants, at)
    value: Polynomial | None = {}
    for names, factor in apart.items():
        times: Polynomial | None = {(): factor}
        for name in names:
            size = host.value(arguments[int(name[1:])] if name.startswith("#") else name, at)
            times = multiplied(times, size) if times is not None and size is not None else None
        value = added(value, times, 1) if value is not None and times is not None else None
    if not value:
        return None
    known = [(f"#{i}", v) for i, text in enumerate(arguments) if (v := host.value(text, at))]
    terms = [Term(name, *product) for name, v in known if (product := product_of(v))]
    return sum_of(value, with_solved([*terms, *_extents(host, configuration, at)], known))


def multiples(constants: HostConstants, arguments: Sequence[str], at: int) -> Iterator[str]:
    """Conditions (``guards``): arguments that the host makes multiples of a number, ``n * 256``."""
    host = _Host(constants, at)
    for position, text in enumerate(arguments):
        value = host.value(text, at) if "*" in text or text.strip().isidentifier() else None
        by = math.gcd(*value.values()) if value and any(value) else 1
        if by > 1:
            yield f"#u{position} % {by} == 0"


def ties(constants: HostConstants, arguments: Sequence[str], at: int) -> frozenset[tuple[int, int]]:
    """Positions of arguments that a call makes of others, nobody here knows how: ``m = round_up(n)``."""
    host, found = _Host(constants, at), set[tuple[int, int]]()
    plain = {i: _CAST.sub("", text).strip(" ()\n\t") for i, text in enumerate(arguments)}
    names = {i: name for i, name in plain.items() if name.isidentifier()}
    for position, name in names.items() if len(names) > 1 else ():
        reached = constants.reached(name, at)
        if reached is None or reached.text is None or not _CALL.search(reached.text):
            continue
        if host.value(reached.text, reached.position) is None:
            words = set(_WORD.findall(reached.text)) - {name}
            kept = {word for word in words if constants.keeps(word, reached.position, at)}
            found |= {(position, other) for other, word in names.items() if word in kept}
    return frozenset(found)


def grids(
    constants: HostConstants, configuration: Sequence[str], arguments: Sequence[str], at: int
) -> Iterator[str]:
    """Conditions (``guards``): extents of the grid that are products and sums of arguments, or such divided.

    Modulo a power of two signs do not matter to products and sums; to what is divided they do (``#1``).
    """
    host = _Host(constants, at)
    known = [(i, host.value(text, at)) for i, text in enumerate(arguments)]
    products = [(i, product) for i, value in known if value and (product := product_of(value))]
    terms = [Term(f"#u{i}", *product) for i, product in products]
    signed = [Term(f"#{i}", *product) for i, product in products]
    for axis in "xyz" if terms and configuration else "":
        value = host.extent(configuration[0], axis, at)
        if value is not None and any(value) and _is_made(value):
            formula = sum_of(value, terms)
            if formula is not None:
                yield f"gridDim.{axis} == {_text(formula)}"
        divided = host.divided(value) if value is not None else None
        formula = sum_of(divided.whole, signed) if divided is not None else None
        if divided is not None and formula is not None:
            yield f"gridDim.{axis} == {_text(formula)} / {divided.by}{divided.added}"
        shared = host.shared_out(value) if value is not None else None
        if shared is not None:
            shown = [*signed, *_extents(host, configuration[1:], at, ("blockDim",))]
            formula, by = (sum_of(part, shown) for part in shared)
            if formula is not None and by is not None:
                yield f"gridDim.{axis} == {_text(formula)} / {_text(by)}"


def quotients(constants: HostConstants, arguments: Sequence[str], at: int) -> Iterator[str]:
    """Conditions (``guards``): arguments that are others divided by a number, ``w, w / 2``."""
    host = _Host(constants, at)
    known = {i: value for i, text in enumerate(arguments) if (value := host.value(text, at))}
    terms = {i: Term(f"#{i}", *product) for i, value in known.items() if (product := product_of(value))}
    for position, value in known.items():
        quotient = host.quotient(value)
        if quotient is not None:
            others = [term for i, term in terms.items() if i != position]
            formula = sum_of(quotient.whole, others)
            if formula is not None and not isinstance(formula, int):
                yield f"#{position} == {_text(formula)} / {quotient.by}{quotient.added}"


def extents_as_written(constants: HostConstants, configuration: Sequence[str], at: int) -> Mapping[str, str]:
    """Extents of grid and block as text that says the same at the launch, by what a kernel calls them."""
    found: dict[str, str] = {}
    for text, name in zip(configuration, ("gridDim", "blockDim"), strict=False):
        for axis in range(3):
            made = component(constants, text, axis, at)
            if made is not None and not constants.writes(set(_WORD.findall(made[0])), made[1], at):
                found[f"{name}.{'xyz'[axis]}"] = made[0]
    return found


def component(constants: HostConstants, text: str, axis: int, at: int) -> tuple[str, int] | None:
    """The text of one extent of a grid or block, and where it stands; None: nobody has written one."""
    for _ in range(_MOST_STEPS):
        text = text.strip()
        made = _DIM3.match(text)
        if made is not None:
            parts = split_arguments(made[1])
            return (parts[axis].strip(), at) if axis < len(parts) else None
        reached = constants.reached(text, at, "xyz"[axis]) if text.isidentifier() else None
        if reached is None or reached.text is None or reached.definition.scalar:
            return (text, at) if axis == 0 else None
        text, component_alone = reached.text, constants.is_component(text, reached.position)
        at = reached.position
        if component_alone:
            return text, at
    return None


def _text(formula: Formula) -> str:
    if isinstance(formula, tuple):
        left, right = map(_text, formula[1:])
        return f"({left} {formula[0]} {right})"
    return str(formula)


def _is_made(value: Polynomial) -> bool:
    """It is more than a name."""
    return len(value) > 1 or any(len(names) > 1 or factor != 1 for names, factor in value.items())


def _rank(position: int, value: Polynomial) -> tuple[int, int, int, int]:
    """What is computed comes behind what it may be computed from."""
    degree, factor = max((len(names), abs(factor)) for names, factor in value.items())
    return degree, len(value), factor, position


def _extents(
    host: _Host, configuration: Sequence[str], at: int, names: Sequence[str] = ("gridDim", "blockDim")
) -> Iterator[Term]:
    for text, name in zip(configuration, names, strict=False):
        for axis in "xyz":
            value = host.extent(text, axis, at)
            product = product_of(value) if value else None
            if product is not None:
                yield Term(f"{name}.{axis}", *product)


def _shifted(value: Polynomial, by: Polynomial) -> Polynomial | None:
    """``value << by``: a product with a power of two, which is the same each time."""
    number = by.get((), 0)
    if not 0 <= number < _WIDTH:
        power = {(f"LShift{tuple(sorted(by.items()))}",): 1}
    else:
        rest = tuple(sorted((names, factor) for names, factor in by.items() if names))
        power = {(f"LShift{rest}",) if rest else (): 1 << number}
    return multiplied(value, power)


class _Host:
    """Polynomials of what the host computes, of variables with the places that tell their values."""

    def __init__(self, constants: HostConstants, at: int) -> None:
        """``at``: where all is evaluated together, so that what changes elsewhere has one value there."""
        self._constants = constants
        self._at = at
        self._quotients: dict[str, tuple[Polynomial, int]] = {}
        self._shared_out: dict[str, tuple[Polynomial, Polynomial]] = {}
        self._narrow: set[str] = set()  # names that may hold fractions

    def value(self, text: str, at: int, steps: int = _MOST_STEPS) -> Polynomial | None:
        """Of an expression at a place; None: it is none of integers, or not understood."""
        number = self._constants.integer(text, at)
        if number is not None:
            return {(): number} if number else {}
        if not steps or len(text) > _LONGEST:
            return None
        text = SIZE_OF.sub(lambda of: self._size(of, at), text)
        tree = parsed(_NUMBER.sub(r"\1", _CAST.sub("", text)))
        try:
            return tree and self._of(tree, at, steps)
        except RecursionError:
            return None

    def _size(self, of: re.Match[str], at: int) -> str:
        """The bytes of a type, as a number if they are known."""
        size = self._constants.integer(of[0], at)
        return of[0] if size is None else str(size)

    def extent(self, text: str, axis: str, at: int, steps: int = _MOST_STEPS) -> Polynomial | None:
        """Of one component of a launch's grid or block."""
        text = text.strip()
        made = _DIM3.match(text)
        if made is not None:
            parts = split_arguments(made[1])
            index = "xyz".index(axis)
            return self.value(parts[index], at, steps) if len(parts) > index else None
        if not text.isidentifier():
            return self.value(text, at, steps) if axis == "x" else None
        reached = self._constants.reached(text, at, axis) if steps else None
        if reached is None or reached.text is None or reached.definition.scalar:
            return self.value(text, at, steps) if axis == "x" and reached is not None else None
        if self._constants.is_component(text, reached.position):
            return self.value(reached.text, reached.position, steps - 1)
        return self.extent(reached.text, axis, reached.position, steps - 1)

    def divided(self, value: Polynomial) -> _Divided | None:
        """A quotient of more than a single size."""
        found = self.quotient(value)
        sizes = [product for product in found.whole if product] if found is not None else []
        return found if len(sizes) > 1 or any(len(p) > 1 for p in sizes) else None

    def quotient(self, value: Polynomial) -> _Divided | None:
        """One quotient by a number, and what is added to it."""
        names, more = [names for names in value if names], value.get((), 0)
        if len(names) != 1 or len(names[0]) != 1 or value[names[0]] != 1 or more < 0:
            return None
        known = self._quotients.get(names[0][0])
        return _Divided(*known, more) if known is not None else None

    def shared_out(self, value: Polynomial) -> tuple[Polynomial, Polynomial] | None:
        """What is divided by a size that is no number, and that size: ``n / threads``."""
        ((names, factor),) = value.items() if len(value) == 1 else (((), 0),)
        return self._shared_out.get(names[0]) if len(names) == 1 and factor == 1 else None

    def _of(self, node: ast.expr, at: int, steps: int) -> Polynomial | None:
        if isinstance(node, ast.Name):
            return self._variable(node.id, at, steps)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            made = self._constants.members(node.value.id, node.attr, at)
            if made is None and node.attr in "xyz" and self._is_dim3(node.value.id, node.attr, at):
                return self.extent(node.value.id, node.attr, at, steps - 1)
            return self.value(*made, steps - 1) if made is not None else None
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return {(): node.value} if node.value else {}
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self._of(node.operand, at, steps)
            return None if inner is None else added({}, inner, -1)
        if isinstance(node, ast.BinOp):
            left, right = self._of(node.left, at, steps), self._of(node.right, at, steps)
            return None if left is None or right is None else self._combined(node.op, left, right)
        return None

    def _combined(self, operator: ast.operator, left: Polynomial, right: Polynomial) -> Polynomial | None:
        if isinstance(operator, ast.Add | ast.Sub):
            return added(left, right, 1 if isinstance(operator, ast.Add) else -1)
        if isinstance(operator, ast.Mult):
            return multiplied(left, right)
        if isinstance(operator, ast.LShift):
            return _shifted(left, right)
        by = right.get((), 0) if len(right) == 1 else 0
        divides = isinstance(operator, ast.Div) and by > 0
        if divides and all(factor % by == 0 for factor in left.values()):
            return {names: factor // by for names, factor in left.items()}
        if isinstance(operator, ast.Div | ast.Mod | ast.RShift):  # whatever it is, it is the same each time
            sides = (sorted(side.items()) for side in (left, right))
            name = f"{type(operator).__name__}{tuple(sides)}"
            if divides:
                self._quotients[name] = (left, by)
            elif isinstance(operator, ast.Div) and self._narrow.isdisjoint(
                x for p in (*left, *right) for x in p
            ):
                self._shared_out[name] = (left, right)
            return {(name,): 1}
        return None

    def _variable(self, name: str, at: int, steps: int) -> Polynomial | None:
        reached = self._constants.reached(name, at)
        if reached is None and (counter := self._constants.counter(name, at)) is not None:
            definition = self._constants.visible(name, at)
            narrow = definition is None or _NARROW.search(self._constants.words_of(definition)) is not None
            return None if narrow else {(f"{name}@{counter[1]}",): 1}
        here = at == self._at or self._constants.keeps(name, at, self._at)
        if reached is None and here and self._is_integer(name, at):
            return {(f"{name}@here",): 1}
        if reached is None:  # a macro, or a constant of a header
            number = self._constants.integer(name, at)
            return None if number is None else {(): number} if number else {}
        narrow = _NARROW.search(self._constants.words_of(reached.definition)) is not None
        if narrow and reached.definition.text is None:
            return None
        inner = None
        if reached.text is not None and not narrow:
            inner = self.value(reached.text, reached.position, steps - 1)
        if inner is None and narrow:
            self._narrow.add(f"{name}@{reached.position}")
        return {(f"{name}@{reached.position}",): 1} if inner is None else inner

    def _is_dim3(self, name: str, axis: str, at: int) -> bool:
        """It was made as ``dim3(…)``, or nothing but this axis of it was set since."""
        reached = self._constants.reached(name, at, axis)
        if reached is None or reached.text is None:
            return False
        return reached.text.startswith("dim3") or self._constants.is_component(name, reached.position)

    def _is_integer(self, name: str, at: int) -> bool:
        """Whether it is a variable of a whole int at least; what it holds nobody need know."""
        definition = self._constants.visible(name, at)
        words = self._constants.words_of(definition) if definition is not None else ""
        return _INTEGER.search(words) is not None and _NARROW.search(words) is None
