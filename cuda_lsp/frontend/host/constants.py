"""Integer constants of host code, evaluated from text: what launch arguments and ``#if`` lines are made of.

Host code parsed for the device is full of errors, so launches are read from tokens. Known names are
``#define``s, ``const``/``constexpr`` and enumerators of the file, and locals that are assigned once. A name
that is not known leaves the value open, unless the other operand of ``&&``, ``||`` settles it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

NO_POINTERS = frozenset({"NULL", "nullptr"})
"""Words for a pointer to nothing."""
SIZE_OF = re.compile(r"\bsizeof\s?\([^()]{0,80}\)")

_TOKEN = re.compile(
    r"(0[xX][0-9a-fA-F]+|\d+)[uUlLzZ]*|([A-Za-z_]\w*(?:::\w+)*(?:\s?\.\s?[A-Za-z_]\w*\b(?!\s?\())?)"
    r"|(<<|>>|&&|\|\||[=!<>]=|[-+*/%&|^~!()<>,?:\[\]])"
)
_SPACE = re.compile(r"\s*")
_TYPED = re.compile(r"<[\w:*\s,]{1,80}>(?=\s?\()")
_MEMBER = re.compile(r"<[\w:*\s,]{1,80}>\s?::\s?\w+(?!\s?[\w(:<])")
SIZES: Mapping[str, int] = {
    "char": 1, "bool": 1, "uchar": 1, "short": 2, "ushort": 2, "half": 2, "__half": 2,
    "__nv_bfloat16": 2, "int": 4, "unsigned": 4, "uint": 4, "float": 4, "long": 8, "double": 8,
    "size_t": 8, "int2": 8, "float2": 8,
    "uint2": 8, "double2": 16, "int4": 16, "float4": 16, "uint4": 16, "float3": 12, "int3": 12, "uint3": 12,
    "int64_t": 8, "uint64_t": 8, "int32_t": 4, "uint32_t": 4, "int16_t": 2, "uint16_t": 2, "int8_t": 1,
    "uint8_t": 1,
}  # fmt: skip
_WORDS = (
    "unsigned", "signed", "long", "short", "int", "char", "size_t", "const", "uint", "int32_t", "uint32_t",
    "int64_t", "uint64_t",
)  # fmt: skip


_MOST_READ = 1 << 13
"""Expressions that are kept as they are read: those of some ten files, each asked with many values."""


class NotConstant(Exception):
    """The text is not an integer constant expression of the subset read here."""


class NotRead(NotConstant):
    """The text is no expression that is read here, whatever its names are worth."""


def known_value(value: int | None, name: str) -> int:
    """The value, if there is one. Raises NotConstant."""
    if value is None:
        raise NotConstant(name)
    return value


Lookup = Callable[[str], int]
Returned = Callable[[str, Sequence[int | None]], int]
"""What a function gives for arguments, None for those that are not known. Raises NotConstant.

``name[]`` gives an array's element, ``sizeof name`` how many bytes it has, ``name<T>`` is called for a type.
"""


def _gives_nothing(name: str, arguments: Sequence[int | None]) -> int:
    del arguments
    raise NotConstant(name)


def evaluate(text: str, lookup: Lookup, returned: Returned = _gives_nothing) -> int:
    """The value of a C integer expression; ``lookup`` resolves names or raises NotConstant.

    Raises NotRead where the text is none, else NotConstant.
    """
    expression = _read(text)
    if expression is None:
        raise NotRead(text)
    value = expression(lookup, returned)
    if value is None:
        raise NotConstant(text)
    return value


def number(text: str) -> int | None:
    """The value of an expression without names; None: it is none."""

    def unknown(name: str) -> int:
        raise NotConstant(name)

    try:
        return evaluate(text, unknown)
    except (NotConstant, ValueError, RecursionError):
        return None


_LEVELS = ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %")  # loosest first
_PRECEDENCE = {operator: level for level, row in enumerate(_LEVELS, 1) for operator in row.split()}


def _divide(a: int, b: int) -> int:
    if b == 0:
        raise NotConstant("division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _places(count: int) -> int:
    if count < 0:
        raise NotConstant("a shift by less than nothing")
    return min(count, 64)


_APPLY: Mapping[str, Callable[[int, int], int]] = {
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "<<": lambda a, b: a << _places(b),
    ">>": lambda a, b: a >> _places(b),
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": lambda a, b: a - b * _divide(a, b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
}


_MOST = 1 << 64
"""More than an integer of C++ can be, which tells that it is too much; a sum of shifts may be anything."""


def _combined(operator: str, a: int | None, b: int | None) -> int | None:
    """The value of ``a operator b``; None: it depends on what is not known."""
    if operator in ("&&", "||"):
        settled = operator == "||"
        truths = [None if value is None else bool(value) for value in (a, b)]
        return int(settled) if settled in truths else None if None in truths else int(not settled)
    if a is None or b is None:
        return None
    value = _APPLY[operator](a, b)
    return value if -_MOST <= value <= _MOST else None


_Expression = Callable[[Lookup, Returned], int | None]
"""What a text says, read once: its value with these names; None: it depends on what is not known."""


@lru_cache(maxsize=_MOST_READ)
def _read(text: str) -> _Expression | None:
    """None: it is no expression that is read here."""
    try:
        parser = _Parser(text)
        expression = parser.conditional()
        return expression if parser.token is None else None
    except (NotRead, ValueError):
        return None


def _number(value: int) -> _Expression:
    return lambda _lookup, _returned: value


def _unknown(_lookup: Lookup, _returned: Returned) -> int | None:
    return None


def _looked_up(name: str) -> _Expression:
    def value(lookup: Lookup, _returned: Returned) -> int | None:
        try:
            return lookup(name)
        except NotConstant:
            return None

    return value


def _given_by(name: str, arguments: Sequence[_Expression]) -> _Expression:
    def value(lookup: Lookup, returned: Returned) -> int | None:
        values = [argument(lookup, returned) for argument in arguments]
        try:
            return returned(name, values)
        except NotConstant:
            return None

    return value


def _chain(first: _Expression, others: Sequence[tuple[str, _Expression]]) -> _Expression:
    """Operators from left to right: as many as there are need no deeper stack."""

    def value(lookup: Lookup, returned: Returned) -> int | None:
        result = first(lookup, returned)
        for operator, other in others:
            result = _combined(operator, result, other(lookup, returned))
        return result

    return value


def _choice(condition: _Expression, first: _Expression, second: _Expression) -> _Expression:
    def value(lookup: Lookup, returned: Returned) -> int | None:
        chosen, one, other = (part(lookup, returned) for part in (condition, first, second))
        if chosen is None:
            return one if one == other else None
        return one if chosen else other

    return value


_PREFIXES: Mapping[str, Callable[[int], int]] = {
    "-": lambda n: -n,
    "+": lambda n: n,
    "~": lambda n: ~n,
    "!": lambda n: int(not n),
}


def _prefixed(operator: str, of: _Expression) -> _Expression:
    apply = _PREFIXES[operator]

    def value(lookup: Lookup, returned: Returned) -> int | None:
        known = of(lookup, returned)
        return None if known is None else apply(known)

    return value


def _least_or_most(choose: Callable[[int, int], int], one: _Expression, other: _Expression) -> _Expression:
    def value(lookup: Lookup, returned: Returned) -> int | None:
        first, second = one(lookup, returned), other(lookup, returned)
        return None if first is None or second is None else choose(first, second)

    return value


class _Parser:
    """Raises NotRead, or ValueError at a number that is none."""

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0
        self.token: str | None = None
        self._next()

    def _next(self) -> None:
        space = _SPACE.match(self.text, self.position)
        start = space.end() if space else self.position
        if start == len(self.text):
            self.token = None
            return
        match = _TOKEN.match(self.text, start)
        if not match:
            raise NotRead(self.text)
        self.token = match[1] or match[2] or match[3]
        self.position = match.end()

    def _expect(self, token: str) -> None:
        if self.token != token:
            raise NotRead(self.text)
        self._next()

    def conditional(self) -> _Expression:
        condition = self._expression(0)
        if self.token != "?":
            return condition
        self._next()
        first = self.conditional()
        self._expect(":")
        return _choice(condition, first, self.conditional())

    def _expression(self, minimum: int) -> _Expression:
        first = self._unary()
        others: list[tuple[str, _Expression]] = []
        while self.token in _PRECEDENCE and _PRECEDENCE[self.token] > minimum:
            operator = self.token
            self._next()
            others.append((operator, self._expression(_PRECEDENCE[operator])))
        return _chain(first, others) if others else first

    def _unary(self) -> _Expression:
        token = self.token
        if token is not None and token in _PREFIXES:
            self._next()
            return _prefixed(token, self._unary())
        return self._primary()

    def _primary(self) -> _Expression:
        token = self.token
        if token is None:
            raise NotRead(self.text)
        self._next()
        if token == "(":
            return self._parenthesis()
        if token == "sizeof":
            return self._sizeof()
        if token in ("static_cast", "min", "max", "std::min", "std::max"):
            return self._call(token)
        if token[0].isdigit():
            decimal = not token.startswith("0") or token[:2].lower() == "0x"
            return _number(int(token, 0) if decimal else int(token, 8))
        if token[0].isalpha() or token[0] == "_":
            return self._named(token)
        raise NotRead(self.text)

    def _named(self, name: str) -> _Expression:
        if name in ("true", "false") or name in NO_POINTERS:
            return _number(int(name == "true"))
        if self.token == "(":
            return self._call_of(name)
        if self.token == "[":
            return self._element(name)
        typed = _TYPED.match(self.text, self.position - 1) if self.token == "<" else None
        if typed is not None:
            self.position = typed.end()
            self._next()
            return self._call_of(name + typed[0])
        member = _MEMBER.match(self.text, self.position - 1) if self.token == "<" else None
        if member is not None:
            self.position = member.end()
            self._next()
            name += member[0]
        return _looked_up(name)

    def _element(self, name: str) -> _Expression:
        self._next()
        index = self.conditional()
        self._expect("]")
        return _given_by(f"{name}[]", (index,))

    def _call_of(self, name: str) -> _Expression:
        """A call of a function, or a cast that looks like one."""
        self._next()
        arguments: list[_Expression] = []
        while self.token != ")":
            arguments.append(self.conditional())
            if self.token == ",":
                self._next()
            elif self.token != ")":
                raise NotRead(self.text)
        self._next()
        if name in _WORDS:
            return arguments[0] if len(arguments) == 1 else _unknown
        return _given_by(name, arguments)

    def _parenthesis(self) -> _Expression:
        if self.token in _WORDS:  # a cast
            while self.token in _WORDS:
                self._next()
            self._expect(")")
            return self._unary()
        value = self.conditional()
        self._expect(")")
        return value

    def _sizeof(self) -> _Expression:
        self._expect("(")
        words: list[str] = []
        while self.token not in (")", None):
            words.append(self.token or "")
            self._next()
        self._expect(")")
        if "*" in words:
            return _number(8)
        wide = next((word for word in words if word in ("long", "short")), None)
        sizes = [
            SIZES[word] for word in ([wide] if wide and "double" not in words else words) if word in SIZES
        ]
        return _number(sizes[-1]) if sizes else _given_by(f"sizeof {''.join(words)}", ())

    def _call(self, name: str) -> _Expression:
        if name == "static_cast" or self.token == "<":  # std::max<int>(a, b)
            while self.token not in (">", None):
                self._next()
            self._expect(">")
        self._expect("(")
        if name == "static_cast":
            value = self.conditional()
            self._expect(")")
            return value
        first = self.conditional()
        self._expect(",")
        second = self.conditional()
        self._expect(")")
        return _least_or_most(min if name.endswith("min") else max, first, second)
