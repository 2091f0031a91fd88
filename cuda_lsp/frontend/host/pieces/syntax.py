"""Expressions of host code as trees, as far as those that compute pointers and sizes are written.

A word before ``<`` is a template where types and numbers stand up to a ``>`` that a bracket follows. Names of
types are told from variables by how they look, as nobody has read the headers.
"""

from __future__ import annotations

import re
from functools import lru_cache

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

_TOKEN = re.compile(
    r"(?:(?P<number>(?:0[xX][\da-fA-F']+|\d[\d']*(?:\.\d*)?(?:[eE][-+]?\d+)?)\w*)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>->|\+\+|--|<<=|>>=|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|<<|\.\.\.|\S))"
)
_BUILT_IN = re.compile(
    r"\A(?:bool|char|short|int|long|unsigned|signed|float|double|void|auto|size_t|ptrdiff_t|ssize_t"
    r"|half|__half2?|u?int(?:\d+|ptr|max)_t|std::(?:size_t|byte|ptrdiff_t|u?int(?:\d+|ptr)_t)|uchar|uint|byte)\Z"
)
_SIGNED = frozenset({"unsigned", "signed", "long", "short", "int", "char", "double"})
_QUALIFIERS = frozenset(
    {"const", "volatile", "struct", "class", "typename", "static", "constexpr", "inline", "mutable",
     "register", "__restrict__", "__restrict", "restrict", "extern", "thread_local"}
)  # fmt: skip
_IN_TEMPLATE = re.compile(r"\A(?:\w+|::|[*&,<>()]|\.\.\.)\Z")
_PRECEDENCE = {
    sign: level
    for level, signs in enumerate(
        ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %"), start=1
    )
    for sign in signs.split()
}
_ASSIGNMENTS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})
_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast", "dynamic_cast"})
_MOST_TOKENS = 1200
_DEEPEST = 40


class NotRead(Exception):
    """The text is no expression of these."""


@lru_cache(4096)
def expression(text: str) -> Node:
    """The tree of an expression. Raises NotRead."""
    reader = Reader(text)
    node = reader.whole()
    if reader.at != len(reader.tokens):
        raise NotRead(text)
    return node


@lru_cache(1024)
def arguments(text: str) -> tuple[Node, ...]:
    """The trees of expressions between commas. Raises NotRead."""
    reader = Reader(text)
    found = reader.listed(None)
    if reader.at != len(reader.tokens):
        raise NotRead(text)
    return found


class Reader:
    """Reads the tokens of a text from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        self.places: list[int] = []
        for match in _TOKEN.finditer(text):
            self.tokens.append(match[match.lastgroup or 0])
            self.places.append(match.start(match.lastgroup or 0))
        if len(self.tokens) > _MOST_TOKENS:
            raise NotRead(text[:40])
        self.at = 0
        self._depth = 0

    def here(self, ahead: int = 0) -> str:
        """The token that comes; "" behind the last."""
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def takes(self, token: str) -> bool:
        """Whether the token comes; it is behind then."""
        if self.here() != token:
            return False
        self.at += 1
        return True

    def needs(self, token: str) -> None:
        """The token comes. Raises NotRead."""
        if not self.takes(token):
            raise NotRead(self.text[:80])

    def whole(self) -> Node:
        """An expression, without commas outside of brackets. Raises NotRead."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NotRead(self.text[:80])
        left, before = self._choice(), self.at
        sign = self._operator()
        if sign in _ASSIGNMENTS:
            left = Assigned(sign, left, self.whole())
        else:
            self.at = before
        self._depth -= 1
        return left

    def _operator(self) -> str:
        """The operator that comes; ``>`` is a token of its own, as templates end with it."""
        if self.takes(">"):
            if self.here() in (">", ">=") and self.places[self.at] == self.places[self.at - 1] + 1:
                self.at += 1
                return ">>" if self.tokens[self.at - 1] == ">" else ">>="
            return ">"
        sign = self.here()
        self.at += bool(sign)
        return sign

    def _choice(self) -> Node:
        condition = self._binary(1)
        if not self.takes("?"):
            return condition
        first = self.whole()
        self.needs(":")
        return Choice(condition, first, self.whole())

    def _binary(self, level: int) -> Node:
        left = self._unary()
        while True:
            before = self.at
            sign = self._operator()
            if _PRECEDENCE.get(sign, 0) < level:
                self.at = before
                return left
            left = Binary(sign, left, self._binary(_PRECEDENCE[sign] + 1))

    def _unary(self) -> Node:
        sign = self.here()
        if sign in ("-", "+", "!", "~", "*", "&"):
            self.at += 1
            return Unary(sign, self._unary())
        if sign in ("++", "--"):
            self.at += 1
            return Step(sign, self._unary(), behind=False)
        if sign == "sizeof":
            return self._size()
        if sign == "new":
            self.at += 1
            return self._made()
        cast = self._cast() if sign == "(" else None
        return Cast(cast, self._unary()) if cast is not None else self._behind(self._first())

    def _size(self) -> Node:
        self.at += 1
        self.needs("(")
        begin, depth = self.at, 1
        while depth:
            token = self.here()
            if not token:
                raise NotRead(self.text[:80])
            depth += (token == "(") - (token == ")")
            self.at += 1
        return SizeOf(" ".join(self.tokens[begin : self.at - 1]))

    def _made(self) -> Node:
        type_ = self.type()
        if type_ is None:
            raise NotRead(self.text[:80])
        if self.takes("("):
            return Made(type_, self.listed(")"))
        return Made(type_, self.listed("}") if self.takes("{") else ())

    def _cast(self) -> Type | None:
        """``(T*)`` before an operand."""
        before = self.at
        self.at += 1
        type_ = self.type()
        known = type_ is not None and (type_.pointers > 0 or type_.reference or is_built_in(type_.name))
        follows = self.here(1)
        operand = follows in ("(", "&", "*", "-", "~") or re.match(r"\w", follows) is not None
        if known and self.here() == ")" and operand:
            self.at += 1
            return type_
        self.at = before
        return None

    def type(self) -> Type | None:
        """The type that comes, if one does; what follows its stars is not looked at."""
        before, constant, words = self.at, False, list[str]()
        while (word := self.here()) in _QUALIFIERS:
            constant = constant or word in ("const", "constexpr")
            self.at += 1
        self.takes("::")
        while re.match(r"[A-Za-z_]", self.here()) and (not words or {*words, self.here()} <= _SIGNED):
            words.append(self._qualified())
        if not words or words[0] in ("return", "sizeof", "new", "delete", "throw", "operator"):
            self.at = before
            return None
        pointers, reference = 0, False
        while self.here() in ("*", "&", "&&", *_QUALIFIERS):
            constant = constant or (self.here() == "const" and not pointers)
            pointers += self.here() == "*"
            reference = reference or self.here() in ("&", "&&")
            self.at += 1
        return Type(" ".join(words), pointers, reference, constant)

    def _qualified(self) -> str:
        """``a::b<T>``."""
        text = self.here()
        self.at += 1
        while True:
            end = self.template_end()
            if end is not None:
                text += "".join(self.tokens[self.at : end])
                self.at = end
            if self.here() != "::" or not re.match(r"[A-Za-z_]", self.here(1)):
                return text
            text += f"::{self.here(1)}"
            self.at += 2

    def template_end(self) -> int | None:
        """Behind the ``>`` of template arguments that begin here."""
        at, depth = self.at, 0
        while at < len(self.tokens) and _IN_TEMPLATE.match(self.tokens[at]):
            depth += (self.tokens[at] == "<") - (self.tokens[at] == ">")
            at += 1
            if depth == 0:
                return at if at > self.at + 1 else None
        return None

    def _first(self) -> Node:
        token = self.here()
        self.at += 1
        if token == "(":
            inner = self.whole()
            while self.takes(","):
                inner = Called(Name(","), (inner, self.whole()))
            self.needs(")")
            return inner
        if token == "[":
            return self._lambda()
        if token == "{":
            return Record(None, self._parts())
        if not token or not re.match(r"\w", token):
            raise NotRead(self.text[:80])
        if token[0].isdigit():
            return Number(token)
        self.at -= 1
        return self._named()

    def _named(self) -> Node:
        before = self.at
        type_ = self.type()
        if type_ is not None and is_built_in(type_.name) and self.here() == "(":
            self.at += 1
            parts = self.listed(")")
            if len(parts) == 1 and not type_.pointers:
                return Cast(type_, parts[0])
            raise NotRead(self.text[:80])
        self.at = before
        name = self.here()
        self.at += 1
        while self.here() == "::" and re.match(r"[A-Za-z_]", self.here(1)):
            name += f"::{self.here(1)}"
            self.at += 2
        template = self._template()
        if name in _CASTS and template:
            inner = Reader(template).type()
            self.needs("(")
            operand = self.whole()
            self.needs(")")
            if inner is None:
                raise NotRead(self.text[:80])
            return Cast(inner, operand)
        if self.here() == "{":
            self.at += 1
            return Record(name, self._parts())
        return Name(name, template)

    def _template(self) -> str:
        """Template arguments before a bracket, as text."""
        end = self.template_end() if self.here() == "<" else None
        if end is None or end >= len(self.tokens) or self.tokens[end] not in ("(", "{", "::"):
            return ""
        text = " ".join(self.tokens[self.at + 1 : end - 1])
        self.at = end
        return text

    def _behind(self, node: Node) -> Node:
        while True:
            token = self.here()
            if token in (".", "->"):
                self.at += 1
                self.takes("template")
                field = self.here()
                if not re.match(r"[A-Za-z_]", field):
                    raise NotRead(self.text[:80])
                self.at += 1
                node = Member(node, field, token == "->", self._template())
            elif token == "[":
                self.at += 1
                index = self.whole()
                self.needs("]")
                node = Index(node, index)
            elif token == "(":
                self.at += 1
                node = Called(node, self.listed(")"))
            elif token in ("++", "--"):
                self.at += 1
                node = Step(token, node, behind=True)
            else:
                return node

    def listed(self, closing: str | None) -> tuple[Node, ...]:
        """Expressions up to a bracket, or to the end. Raises NotRead."""
        found: list[Node] = []
        while self.here() != (closing or ""):
            if self.here() != ",":  # else a string stood there
                found.append(self.whole())
            if not self.takes(","):
                break
        if closing is not None:
            self.needs(closing)
        return tuple(found)

    def _parts(self) -> tuple[tuple[str | None, Node], ...]:
        found: list[tuple[str | None, Node]] = []
        while self.here() != "}":
            field = None
            if self.here() == "." and self.here(2) == "=":
                field = self.here(1)
                self.at += 3
            found.append((field, self.whole()))
            if not self.takes(","):
                break
        self.needs("}")
        return tuple(found)

    def _lambda(self) -> Node:
        captures = self._up_to("[", "]")
        parameters = self._up_to("(", ")") if self.takes("(") else ""
        while self.here() and self.here() != "{":
            self.at += 1
        body = self.places[self.at] if self.here() else -1
        self.needs("{")
        self._up_to("{", "}")
        return LambdaText(captures, parameters, body)

    def _up_to(self, opening: str, closing: str) -> str:
        """The text up to the bracket that closes one which is behind."""
        begin, depth = self.at, 1
        while depth:
            if not self.here():
                raise NotRead(self.text[:80])
            depth += (self.here() == opening) - (self.here() == closing)
            self.at += 1
        end = self.places[self.at - 1]
        return self.text[self.places[begin] : end] if begin < self.at - 1 else ""


def is_built_in(name: str) -> bool:
    """Whether a type is one of numbers, by its name."""
    return all(_BUILT_IN.match(word) for word in name.split())
