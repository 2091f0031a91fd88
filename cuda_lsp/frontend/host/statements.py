"""Where statements of host code end, and the parts that they have. Offsets are those of the host text."""

from __future__ import annotations

import re

from attrs import frozen

from cuda_lsp.frontend.host.text import HostText

HEADED = ("if", "for", "while", "switch")
"""Words before a parenthesis and a statement."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_ELSE = re.compile(r"\s?else\b")
_WHILE = re.compile(r"\s?while\s?(?=\()")
_JUMP = re.compile(r"[;({})]")
_END_OF_VALUE = re.compile(r"[;,)({]")


class NoStatement(Exception):
    """What stands there is not read as a statement."""


@frozen
class Statements:
    """The statements of a text. Each question raises NoStatement where brackets do not match."""

    text: HostText

    def word(self, place: int) -> str:
        """The word that begins here; "" for none."""
        found = _WORD.match(self.text.plain, place)
        return found[0] if found else ""

    def skipped(self, place: int) -> int:
        """Where the next statement begins, from here on."""
        plain = self.text.plain
        while place < len(plain) and (plain[place].isspace() or plain[place] == ";"):
            place += 1
        return place

    def end(self, place: int, limit: int) -> int:
        """Behind the statement that begins here."""
        text, name = self.text, self.word(place)
        if text.plain[place] == "{":
            return self.closed(text.braces.closing.get(place)) + 1
        if name in HEADED:
            behind = self.behind_header(place)
            return self._branch_end(behind, limit) if name == "if" else self.end(self.skipped(behind), limit)
        if name in ("do", "try"):
            end = self.end(self.skipped(place + len(name)), limit)
            loop = _WHILE.match(text.plain, end) if name == "do" else None
            return end if loop is None else self.closed(text.parentheses.get(loop.end())) + 1
        return self.semicolon(place, limit)

    def _branch_end(self, behind: int, limit: int) -> int:
        end = self.end(self.skipped(behind), limit)
        other = self.otherwise(end)
        return end if other is None else self.end(other, limit)

    def otherwise(self, end: int) -> int | None:
        """Where the statement behind ``else`` begins, of a branch that ends here; None: it has none."""
        other = _ELSE.match(self.text.plain, end)
        return None if other is None else self.skipped(other.end())

    def behind_header(self, place: int) -> int:
        """Behind the parentheses of what begins here with ``if``, ``for``, ``while`` or ``switch``."""
        opening = self.text.plain.find("(", place, place + 20)
        return self.closed(self.text.parentheses.get(opening)) + 1

    def semicolon(self, place: int, limit: int) -> int:
        """Behind the semicolon that ends what stands here."""
        plain = self.text.plain
        while (match := _JUMP.search(plain, place, limit)) is not None:
            if match[0] == ";":
                return match.end()
            place = self._behind(match)
        raise NoStatement

    def value_end(self, place: int, limit: int) -> int:
        """Where an expression that begins here ends."""
        plain = self.text.plain
        while (match := _END_OF_VALUE.search(plain, place, limit)) is not None:
            if match[0] in ";,)":
                return match.start()
            place = self._behind(match)
        return limit

    def _behind(self, opening: re.Match[str]) -> int:
        if opening[0] not in "({":
            raise NoStatement
        pairs = self.text.parentheses if opening[0] == "(" else self.text.braces.closing
        return self.closed(pairs.get(opening.start())) + 1

    def braces(self, place: int, end: int) -> list[tuple[int, int]]:
        """The outermost braces in a stretch."""
        found: list[tuple[int, int]] = []
        while (place := self.text.plain.find("{", place, end)) >= 0:
            found.append((place, self.closed(self.text.braces.closing.get(place))))
            place = found[-1][1]
        return found

    def line_end(self, place: int) -> int:
        """Where the line ends."""
        end = self.text.plain.find("\n", place)
        return end if end >= 0 else len(self.text.plain)

    @staticmethod
    def closed(place: int | None) -> int:
        """The place of a closing bracket. Raises NoStatement where there is none."""
        if place is None:
            raise NoStatement
        return place
