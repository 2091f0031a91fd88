"""``// cuda-lsp: assume EXPR``: a C expression over a kernel's parameters and built-ins → an IR condition.

The grammar is C's for integers: literals, parameters by name, ``threadIdx.x`` and its kin, ``warpSize``,
unary ``- ! ~``, and the binary operators with C's precedences. Calls, casts and memory are refused: an
assumption is about launch-time values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from cuda_lsp.ir.program import Axis, Binary, BinaryOp, Builtin, Cast, Const, Expr, Unary, UnaryOp, Var
from cuda_lsp.ir.types import BOOL, INT32, INT64, UINT32, Int, Type

_TOKEN = re.compile(
    r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)|([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)"
    r"|(<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>()])"
)
_SPACE = re.compile(r"\s*")
_LONGEST = 1000  # characters
_LEVELS: Mapping[str, int] = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_UNARY = {"-": UnaryOp.NEG, "~": UnaryOp.INV}
_AXES = {axis.value: axis for axis in Axis}


class BadAssumption(ValueError):
    """The expression is not understood; the message says why."""


def parse_assumptions(
    assumptions: Iterable[tuple[int, str]], parameters: Iterable[Var]
) -> tuple[tuple[Expr, ...], dict[int, str]]:
    """The conditions that (line, text) pairs state; for those not understood, by line, what to tell."""
    named = {var.name: var for var in parameters}
    conditions: list[Expr] = []
    misread: dict[int, str] = {}
    for line, text in assumptions:
        try:
            conditions.append(parse_assumption(text, named))
        except BadAssumption as error:
            misread[line] = f"`assume {text}` is not used: {error}"
    return tuple(conditions), misread


def parse_assumption(text: str, parameters: Mapping[str, Expr]) -> Expr:
    """The condition ``text`` states, of type BOOL. Raises ``BadAssumption``."""
    if len(text) > _LONGEST:
        raise BadAssumption(f"longer than {_LONGEST} characters")
    parser = _Parser(text, parameters)
    try:
        result = parser.binary(1)
    except RecursionError:
        raise BadAssumption("nested too deeply") from None
    if parser.token:
        raise BadAssumption(f"unexpected {parser.token!r}")
    return _truth(result)


def _truth(value: Expr) -> Expr:
    return value if value.type == BOOL else Cast(value, BOOL)


def _promoted(value: Expr) -> Expr:
    kind = value.type
    if not isinstance(kind, Int):
        raise BadAssumption("only integers can be compared")
    return Cast(value, INT32) if kind.boolean or kind.bits < 32 else value


def _common(left: Type, right: Type) -> Int:
    """C's usual arithmetic conversions of two promoted integers."""
    assert isinstance(left, Int)
    assert isinstance(right, Int)
    if left.bits != right.bits:
        return left if left.bits > right.bits else right
    return right if left.signed else left


def _as(value: Expr, kind: Int) -> Expr:
    if value.type == kind:
        return value
    if isinstance(value, Const) and isinstance(value.value, int):
        return Const(kind.wrap(value.value), kind)
    return Cast(value, kind)


class _Parser:
    def __init__(self, text: str, parameters: Mapping[str, Expr]) -> None:
        self.text = text
        self.parameters = parameters
        self.end = 0
        self.match: re.Match[str] | None = None
        self.token = ""
        self.advance()

    def advance(self) -> None:
        space = _SPACE.match(self.text, self.end)
        self.end = space.end() if space else self.end
        if self.end == len(self.text):
            self.match, self.token = None, ""
            return
        self.match = _TOKEN.match(self.text, self.end)
        if not self.match:
            raise BadAssumption(f"unexpected {self.text[self.end :].strip()[:12]!r}")
        self.end = self.match.end()
        self.token = self.match[0]

    def binary(self, level: int) -> Expr:
        left = self.unary()
        while (found := _LEVELS.get(self.token, 0)) >= level:
            operator = self.token
            self.advance()
            left = _combine(operator, left, self.binary(found + 1))
        return left

    def unary(self) -> Expr:
        if self.token == "!":
            self.advance()
            return Unary(UnaryOp.NOT, _truth(self.unary()), BOOL)
        if self.token in _UNARY:
            operator = _UNARY[self.token]
            self.advance()
            operand = _promoted(self.unary())
            return Unary(operator, operand, operand.type)
        if self.token == "+":
            self.advance()
            return _promoted(self.unary())
        return self.primary()

    def primary(self) -> Expr:
        match, token = self.match, self.token
        if match is None:
            raise BadAssumption("the expression ends too early")
        self.advance()
        if token == "(":
            inner = self.binary(1)
            if self.token != ")":
                raise BadAssumption("a ) is missing")
            self.advance()
            return inner
        if match[1]:
            return _literal(int(match[1], 0) if match[1] != "0" else 0, match[2].lower())
        if match[3]:
            return self._name(match[3])
        raise BadAssumption(f"unexpected {token!r}")

    def _name(self, name: str) -> Expr:
        if name in ("true", "false"):
            return Const(int(name == "true"), BOOL)
        axis = _AXES.get(name)
        if axis is not None and axis is not Axis.LANE:
            return Builtin(axis, INT32 if axis is Axis.WARP_SIZE else UINT32)
        var = self.parameters.get(name)
        if var is None:
            known = ", ".join(self.parameters) or "none"
            raise BadAssumption(f"{name!r} is neither a parameter ({known}) nor a built-in variable")
        if not isinstance(var.type, Int):
            raise BadAssumption(f"parameter {name!r} is not an integer")
        return var


def _literal(value: int, suffix: str) -> Const:
    if "u" in suffix:
        return Const(
            value, UINT32 if value <= UINT32.maximum and "l" not in suffix else Int(64, signed=False)
        )
    return Const(value, INT32 if value <= INT32.maximum and "l" not in suffix else INT64)


def _combine(operator: str, left: Expr, right: Expr) -> Expr:
    if operator in ("&&", "||"):
        return Binary(BinaryOp(operator), _truth(left), _truth(right), BOOL)
    left, right = _promoted(left), _promoted(right)
    if operator in ("<<", ">>"):
        assert isinstance(left.type, Int)
        return Binary(BinaryOp(operator), left, _as(right, left.type), left.type)
    kind = _common(left.type, right.type)
    result = BOOL if operator in _COMPARISONS else kind
    return Binary(BinaryOp(operator), _as(left, kind), _as(right, kind), result)
