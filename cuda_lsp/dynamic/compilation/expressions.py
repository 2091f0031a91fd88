"""From a token to the expression that accesses memory: brackets resolved on the token list.

The device compiler names, for a load or store, the last token of the subscript it evaluated (the ``1`` of
``s[i + 1]``), of a dereferenced pointer, or of the variable itself. Several accesses may share that token
(``out[idx[i]] = x``: both the load and the store say ``i``): innermost first, and a store belongs to what is
assigned. Measured with nvcc 13.0 at O0 and O3 on one-token-per-line text.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from cuda_lsp.dynamic.compilation.tokens import Token
from cuda_lsp.model import Position, Site, SourceRange

_ASSIGN = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"})
_BUILT_IN = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim"})
_CONDITIONS = frozenset({"if", "while", "for", "switch"})
_BOUNDARY = frozenset({";", "{", "}"})
_OPEN, _CLOSE = {")": "(", "]": "["}, {"(": ")", "[": "]"}
_REACH = 2000  # tokens looked at in either direction


@frozen
class Stretch:
    """Tokens ``first`` to ``last`` of the table (inclusive); ``assigned``: it is written to."""

    first: int
    last: int
    assigned: bool = False


class Expressions:
    """Access expressions around tokens of one table."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens

    def around(self, index: int) -> list[Stretch]:
        """Subscripts and dereferences around token ``index``, innermost first; else its own name."""
        found: list[Stretch] = []
        position = index
        for _ in range(32):
            opened = self._enclosing(position)
            if opened is None:
                break
            closed = self._partner(opened)
            if closed is None:
                break
            if self._text(opened) == "[":
                found.append(self._stretch(self._primary(opened - 1), self._members(closed)))
            elif self._dereferenced(opened):
                found.append(self._stretch(opened - 1, closed))
            position = opened
        if found and not self._is_own(index):
            return found
        own = self._own(index)
        return [own, *found] if self._is_own(index) and found else found or [own]

    def assigned_in(self, index: int) -> Stretch | None:
        """What the statement around token ``index`` assigns to, when it is an assignment."""
        equals = self._equals(index, -1) or self._equals(index, 1)
        if equals is None:
            return None
        first = self._primary(equals - 1)
        while self._text(first - 1) == ")" and self._text(self._before(first - 1) - 1) not in _CONDITIONS:
            first = self._before(first - 1)
        if self._text(first - 1) == "*":
            first -= 1
        return Stretch(first, equals - 1, True)

    def _equals(self, index: int, step: int) -> int | None:
        """The nearest assignment operator in that direction, outside of inner brackets."""
        depth = 0
        for k in range(index, index + step * 200, step):
            text = self._text(k)
            if text in _BOUNDARY:
                return None
            if text in _OPEN or text in _CLOSE:
                depth += 1 if (text in _CLOSE) == (step > 0) else -1
            elif text in _ASSIGN and depth <= 0 and text not in ("++", "--"):
                return k
        return None

    def call(self, index: int) -> Stretch:
        """The call whose name is token ``index``."""
        opened = index + 1
        while self._text(opened) in ("<", ">", ",") or (
            self._text(opened) != "(" and opened - index < 12 and self._text(opened) not in _BOUNDARY
        ):
            opened += 1
        closed = self._partner(opened) if self._text(opened) == "(" else None
        return Stretch(index, closed if closed is not None else index)

    def site(self, stretch: Stretch, calls: tuple[SourceRange, ...] = ()) -> Site:
        """The stretch as a source range with its text."""
        first, last = self.tokens[stretch.first], self.tokens[stretch.last]
        start, end = Position(first.line, first.column), Position(last.line, last.stop)
        if end <= start or last.path != first.path or not (first.exact or last.exact):
            end = Position(first.line, first.stop)
        return Site(SourceRange(first.path, start, end), self._spelled(stretch), calls)

    # -------------------------------------------------------------------------------- helpers

    def _text(self, index: int) -> str:
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ";"

    def _enclosing(self, index: int) -> int | None:
        """The nearest unmatched opening bracket before ``index`` in its statement."""
        depth = 0
        for k in range(index - 1, max(-1, index - _REACH), -1):
            text = self._text(k)
            if text in _OPEN:
                depth += 1
            elif text in _CLOSE:
                if depth == 0:
                    return k
                depth -= 1
            elif text in _BOUNDARY and depth == 0:
                return None
        return None

    def _partner(self, opened: int) -> int | None:
        depth = 0
        for k in range(opened, min(len(self.tokens), opened + _REACH)):
            text = self._text(k)
            if text in _CLOSE:
                depth += 1
            elif text in _OPEN:
                depth -= 1
                if depth == 0:
                    return k
        return None

    def _before(self, closed: int) -> int:
        """The opening partner of a closing bracket."""
        depth = 0
        for k in range(closed, max(-1, closed - _REACH), -1):
            text = self._text(k)
            if text in _OPEN:
                depth += 1
            elif text in _CLOSE:
                depth -= 1
                if depth == 0:
                    return k
        return closed

    def _primary(self, last: int) -> int:
        """Where the postfix expression that ends at ``last`` begins."""
        k = last
        while True:
            if self._text(k) in _OPEN:
                k = self._before(k)
                if self._text(k - 1) == ">":  # a cast's or template's arguments
                    k = self._angle(k - 1)
                if self._text(k - 1) in _OPEN or _is_name(self._text(k - 1)):
                    k -= 1
                    continue
            if self._text(k - 1) in (".", "->", "::"):
                k -= 2
                continue
            return k

    def _angle(self, closed: int) -> int:
        depth = 0
        for k in range(closed, max(-1, closed - 64), -1):
            depth += {">": 1, "<": -1}.get(self._text(k), 0)
            if depth == 0:
                return k
        return closed

    def _members(self, last: int) -> int:
        while self._text(last + 1) in (".", "->") and _is_name(self._text(last + 2)):
            if self._text(last + 3) == "(":
                return last
            last += 2
        return last

    def _dereferenced(self, opened: int) -> bool:
        return self._is_star(opened - 1)

    def _is_star(self, index: int) -> bool:
        """The token is ``*`` that dereferences, not a product."""
        if self._text(index) != "*":
            return False
        before = self._text(index - 1)
        if before == ")":  # of a condition, or of an operand
            return self._text(self._before(index - 1) - 1) in _CONDITIONS
        return not _is_operand(before)

    def _is_own(self, index: int) -> bool:
        """The token names an object by itself: ``*p``, ``p->x``, ``q.x`` of something not built in."""
        if not _is_name(self._text(index)):
            return False
        if self._text(index) in _BUILT_IN:
            return False
        return self._is_star(index - 1) or self._text(index + 1) in (".", "->")

    def _own(self, index: int) -> Stretch:
        first = index
        if self._is_star(index - 1):
            first = index - 1
        last = self._members(index)
        if self._text(last + 1) == "[" and first == index:
            closed = self._partner(last + 1)
            last = closed if closed is not None else last
        return self._stretch(self._primary(first) if first == index else first, last)

    def _stretch(self, first: int, last: int) -> Stretch:
        before, after = first - 1, last + 1
        while self._text(before) == "(" and self._text(after) == ")":
            before, after = before - 1, after + 1
        assigned = self._text(after) in _ASSIGN or self._text(before) in ("++", "--")
        return Stretch(first, last, assigned)

    def _spelled(self, stretch: Stretch) -> str:
        text = ""
        previous: Token | None = None
        for token in self.tokens[stretch.first : stretch.last + 1]:
            if previous is not None:
                apart = token.line != previous.line or token.column > previous.column + len(previous.text)
                text += " " if apart else ""
            text += token.text
            previous = token
        return text


def _is_name(text: str) -> bool:
    return (text[:1].isalpha() or text[:1] == "_") and text not in ("return", "else", "case", "sizeof")


def _is_operand(text: str) -> bool:
    return _is_name(text) or text[:1].isdigit() or text in (")", "]")
