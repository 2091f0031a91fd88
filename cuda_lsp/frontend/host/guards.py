"""Comparisons that hold where a kernel is launched: of branches around, early returns, assertions before.

``if (n > 1024) return;``, ``TORCH_CHECK(rows <= cols)`` and ``if (ld >= cols) {`` say what the arguments of
the launch behind them can be. Only comparisons of integers by ``&&``, and denied ones by ``||``, are read; a
name counts as long as nothing writes it between the comparison and the launch. What is compared is written
in terms of the launch: ``#2`` is its third argument (``#u2``: without a sign), ``blockDim.x`` its block.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cuda_lsp.frontend.host.branches import parts_of
from cuda_lsp.frontend.host.host_constants import Given, HostConstants
from cuda_lsp.frontend.host.passed_types import settled
from cuda_lsp.frontend.host.text import FURTHEST, LEAVING, HostText, split_arguments

_IF = re.compile(r"\bif\s?(?:constexpr\s?)?\(")
_CHECK = re.compile(
    r"(?<=[;{}])\s?((?:\w*_)?(?:[Aa]ssert|ASSERT|CHECK|REQUIRE|ENFORCE)(?:_(?:EQ|NE|LT|LE|GT|GE))?)\s?\("
)
_OF_SUFFIX = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_DENIED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_COMPARISON = re.compile(r"\A([^=<>!&|?]{1,80}?)\s?(==|!=|<=|>=|<|>)\s?([^=<>!&|?]{1,80})\Z")
_SIDE = re.compile(r"\A-?\s?\d+\Z|\A[\w\s+*/%().]+\Z")  # a difference may wrap on the host
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\s?\.\s?[A-Za-z_]\w*)?")
_CALL = re.compile(r"\w\s?\(|\.\s?\w+\s?\.|\d\.|\)\s?[(.]")
_LEAVES = re.compile(rf"\A{LEAVING}\Z")
_ELSE_BEFORE = re.compile(r"[;}]\s?else\s?\Z")
_FIRST_ELSE = re.compile(r"\s?else\s")
_ENDS = re.compile(r"[;{}]")
_TERM = re.compile(r"#|blockDim")
_IFS = ("if", "constexpr")
_LONGEST_ELSE = 10
_LONGEST_STATEMENT = 2000
_MOST = 40
"""Comparisons at one launch."""


NO_TYPES: Mapping[str, str] = {}
Comparison = tuple[str, int]
"""A condition of the host, and where its names are looked up."""


def comparisons(host: HostText, constants: HostConstants, at: int) -> tuple[Comparison, ...]:
    """What holds at a place, the nearest first, as far as branches and checks before it say."""
    return tuple(itertools.islice(_comparisons(host, constants, at), _MOST))


def guards(
    held: Iterable[Comparison],
    constants: HostConstants,
    at: int,
    block: str | None,
    arguments: Sequence[str],
) -> tuple[str, ...]:
    """What is ``held`` at a launch, in terms of its arguments and its block."""
    found: dict[str, None] = {}
    known = _Terms(constants, at, block, arguments)
    for text, place in held:
        match = _COMPARISON.match(text)
        left, right = (known.of(match[i], place) for i in (1, 3)) if match is not None else (None, None)
        if match is not None and left is not None and right is not None and _TERM.search(left + right):
            found[f"{left} {match[2]} {right}"] = None
    return tuple(found)


def excluded(
    held: Iterable[Comparison],
    constants: HostConstants,
    given: Given,
    types: Mapping[str, str] = NO_TYPES,
) -> bool:
    """Whether something ``held`` at a place is false for these values: no way comes there with them.

    ``types``: what template parameters stand for.
    """
    return any(constants.integer(settled(text, types), place, given) == 0 for text, place in held)


class _Terms:
    """What names of the host are at one launch."""

    def __init__(
        self, constants: HostConstants, at: int, block: str | None, arguments: Sequence[str]
    ) -> None:
        self._constants = constants
        self._at = at
        self._named = {text.strip(): f"#{i}" for i, text in reversed(list(enumerate(arguments)))}
        name = (block or "").strip()
        if name.isidentifier():
            self._named |= {f"{name}.{axis}": f"blockDim.{axis}" for axis in "xyz"}
            self._named.setdefault(name, "blockDim.x")

    def of(self, side: str, place: int) -> str | None:
        """One side of a comparison that stands at ``place``; None: it hangs on more than the launch tells."""
        if not _SIDE.match(side) or _CALL.search(side):
            return None
        terms: list[str] = []
        done = 0
        for match in _NAME.finditer(side):
            term = self._term(re.sub(r"\s", "", match[0]), place)
            if term is None:
                return None
            terms += side[done : match.start()], term
            done = match.end()
        return "".join((*terms, side[done:])).strip()

    def _term(self, name: str, place: int) -> str | None:
        value = self._constants.integer(name, place)
        if value is not None:
            return str(value) if value >= 0 else f"({value})"
        variable, _, axis = name.partition(".")
        here, there = (self._constants.key(variable, p, axis or None) for p in (place, self._at))
        if here is None or here != there:
            return None
        record = self._named.get(variable, "") if axis and name not in self._named else ""
        if record.startswith("#"):  # a field is of one type on both sides
            written = self._constants.writes_member(variable, axis, self._at)
            return None if written else f"#u{record[1:]}.{axis}"
        term = self._named.get(name)
        return self._constants.argument(int(term[1:]), variable, place) if term and term[0] == "#" else term


def _comparisons(host: HostText, constants: HostConstants, at: int) -> Iterator[Comparison]:
    plain, braces = host.plain, host.braces
    function = constants.functions.around(at)
    if function is None:
        return
    begin = max(plain.rfind(c, max(function.body, at - FURTHEST), at) for c in ";{}")
    for match in _IF.finditer(plain, begin, at):
        closing = host.parentheses.get(match.end() - 1, at)
        if closing < at:
            yield from ((part, match.end()) for part in parts_of(plain[match.end() : closing], "&&"))
    first = _FIRST_ELSE.match(plain, begin + 1, at)
    if first is not None:
        yield from _denied_by_else(host, constants, first.end())
    inside, brace = at, braces.begin(at)
    while brace >= max(function.body, at - FURTHEST):
        yield from _before(host, constants, brace, inside)
        header = constants.functions.header_of(brace) if brace > function.body else None
        if header is not None and header[0] in _IFS:
            yield from ((part, header[1] + 1) for part in parts_of(plain[header[1] + 1 : header[2]], "&&"))
            keyword = plain.rfind("if", 0, header[1])
            yield from _denied_by_else(host, constants, keyword)
        else:
            yield from _denied_by_else(host, constants, brace)
        inside, brace = brace, braces.begin(brace - 1)


def _denied_by_else(host: HostText, constants: HostConstants, begin: int) -> Iterator[Comparison]:
    """What the ``if``s ask to whose ``else`` belongs what begins here: none of that holds in it."""
    plain = host.plain
    while (other := _ELSE_BEFORE.search(plain, max(0, begin - _LONGEST_ELSE), begin)) is not None:
        end = other.start()
        if plain[end] == "}":
            header = constants.functions.header_of(host.braces.begin(end - 1))
            asked = header[1:] if header is not None and header[0] in _IFS else None
        else:
            asked = _if_of_statement(host, end)
        if asked is None:
            return
        yield from _denied(plain[asked[0] + 1 : asked[1]], asked[0] + 1)
        begin = plain.rfind("if", 0, asked[0])


def _if_of_statement(host: HostText, end: int) -> tuple[int, int] | None:
    """The parentheses of the ``if`` whose statement, without braces, ends here."""
    for match in reversed(list(_IF.finditer(host.plain, max(0, end - _LONGEST_STATEMENT), end))):
        closing = host.closing(match.end() - 1)
        if 0 < closing < end:
            simple = _ENDS.search(host.plain, closing + 1, end) is None
            return (match.end() - 1, closing) if simple else None
    return None


def _denied(condition: str, place: int) -> Iterator[Comparison]:
    """The opposite of a condition."""
    for part in list(parts_of(condition, "||")) or [condition]:
        comparison = _COMPARISON.match(part)
        if comparison is not None:
            yield f"{comparison[1]} {_DENIED[comparison[2]]} {comparison[3]}", place
        else:
            yield f"!({part})", place


def _before(host: HostText, constants: HostConstants, brace: int, at: int) -> Iterator[Comparison]:
    """What the statements of one block say that stand before a place in it."""
    plain, braces = host.plain, host.braces

    def sure(place: int) -> bool:
        return constants.comes_by(place, at)

    first = max(brace, at - FURTHEST)
    for match in _CHECK.finditer(plain, first, at):
        closing = host.closing(match.end() - 1)
        if braces.begin(match.start(1)) != brace or not 0 < closing < at or not sure(match.start(1)):
            continue
        parts = split_arguments(plain[match.end() : closing])
        operator = _OF_SUFFIX.get(match[1].rpartition("_")[2])
        if operator is not None and len(parts) >= 2:
            yield f"{parts[0].strip()} {operator} {parts[1].strip()}", match.end()
        elif operator is None and parts:
            yield from ((part, match.end()) for part in parts_of(parts[0], "&&"))
    for match in _IF.finditer(plain, first, at):
        closing = host.closing(match.end() - 1)
        if braces.begin(match.start()) != brace or not 0 < closing < at or not sure(match.start()):
            continue
        if host.follows("else", match.start()):
            continue  # not every way asks that
        if _leaves(host, closing + 1, at):
            yield from _denied(plain[match.end() : closing], match.end())


def _leaves(host: HostText, begin: int, at: int) -> bool:
    """Whether the statement that begins here, of an ``if``, leaves the function whatever it does before."""
    plain = host.plain
    begin += plain[begin : begin + 1].isspace()
    if plain[begin : begin + 1] == "{":
        end = host.braces.closing.get(begin, at)
        return end < at and host.leaves_at_end(begin, end)
    end = plain.find(";", begin, at)
    return end > 0 and _LEAVES.match(plain[begin : end + 1]) is not None
