"""Comparisons that hold where a kernel is launched: of branches around, early returns, assertions before.

``if (n > 1024) return;``, ``TORCH_CHECK(rows <= cols)`` and ``if (ld >= cols) {`` say what the arguments of
the launch behind them can be. Only comparisons of integers by ``&&``, and denied ones by ``||``, are read; a
name counts as long as nothing writes it between the comparison and the launch. What is compared is written
in terms of the launch: ``#2`` is its third argument (``#u2``: without a sign), ``blockDim.x`` its block,
``gridDim.y`` its grid.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cuda_lsp.frontend.host.branches import conditions_of_loop, parts_of
from cuda_lsp.frontend.host.computed_arguments import component
from cuda_lsp.frontend.host.host_constants import Given, HostConstants
from cuda_lsp.frontend.host.passed_types import settled
from cuda_lsp.frontend.host.text import FURTHEST, LEAVING, HostText, closings, split_arguments

_IF = re.compile(r"\bif\s?(?:constexpr\s?)?\(")
_FOR = re.compile(r"\bfor\s?\(")
_SHIFTED = re.compile(r"\A([A-Za-z_]\w*)\s?([+-])\s?(\d{1,9})\Z")
_SHIFTED_TERM = re.compile(r"\A\((#\d+) ([+-]) (\d+)\)\Z")
_NUMBER = re.compile(r"\A\(?(-?\d+)\)?\Z")
_LIMIT = re.compile(r"\A(#\d+) ([<>]=?|==) \(?(-?\d+)\)?\Z")
_CHECK = re.compile(
    r"(?<=[;{}])\s?((?:\w*_)?(?:[Aa]ssert|ASSERT|CHECK|REQUIRE|ENFORCE)(?:_(?:EQ|NE|LT|LE|GT|GE))?)\s?\("
)
_OF_SUFFIX = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_DENIED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_COMPARISON = re.compile(r"\A([^=<>!&|?]{1,80}?)\s?(==|!=|<=|>=|<|>)\s?([^=<>!&|?]{1,80})\Z")
_MASKED = re.compile(r"\A([A-Za-z_]\w*)\s?&\s?(\d{1,9})\Z")
_REMAINDER = re.compile(r"\A[\w\s+*.]{1,60}%[\w\s.]{1,60}\Z")
_SIDE = re.compile(r"\A-?\s?\d+\Z|\A[\w\s+*/%().]+\Z")  # a difference may wrap on the host
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\s?\.\s?[A-Za-z_]\w*)?")
_CALL = re.compile(r"\w\s?\(|\.\s?\w+\s?\.|\d\.|\)\s?[(.]")
_LEAVES = re.compile(rf"\A{LEAVING}\Z")
_ELSE_BEFORE = re.compile(r"[;}]\s?else\s?\Z")
_FIRST_ELSE = re.compile(r"\s?else\s")
_ENDS = re.compile(r"[;{}]")
_TERM = re.compile(r"#|blockDim|gridDim")
_CHOICE = re.compile(r"\|\||\?")
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
    configuration: Sequence[str],
    arguments: Sequence[str],
) -> tuple[str, ...]:
    """What is ``held`` at a launch, in terms of its arguments, its block and its grid."""
    found: dict[str, None] = {}
    known = _Terms(constants, at, configuration, arguments)
    for text, place in held:
        parts = [known.compared(part, place) for part in one_of(text)]
        if all(part is not None for part in parts) and any(_TERM.search(part or "") for part in parts):
            found[" || ".join(part or "" for part in parts)] = None
    return tuple(found)


def one_of(text: str) -> Sequence[str]:
    """Of what one holds where the text does: of ``!(a == 0 && b == 0)`` it is ``a != 0`` or ``b != 0``."""
    bare = text.strip()
    if "||" in bare:
        return list(parts_of(bare, "||")) or (text,)
    if bare[:2] != "!(" or closings(bare, "()").get(1) != len(bare) - 1 or _CHOICE.search(bare):
        return (text,)
    parts = list(parts_of(bare[2:-1], "&&"))
    return [_opposite(part) for part in parts] if len(parts) > 1 else (text,)


def _opposite(text: str) -> str:
    comparison = _COMPARISON.match(text)
    if comparison is None:
        return f"!({text})"
    return f"{comparison[1]} {_DENIED[comparison[2]]} {comparison[3]}"


def _compared(text: str) -> str:
    """``w % 2`` and ``!(w & 1)`` as the comparisons with 0 that they are; all else as it is."""
    denied, bare = False, text.strip()
    while bare[:1] in ("!", "(") and (bare[0] == "!" or closings(bare, "()").get(0) == len(bare) - 1):
        denied ^= bare[0] == "!"
        bare = bare[1:].strip() if bare[0] == "!" else bare[1:-1].strip()
    masked = _MASKED.match(bare)
    if masked is not None and (int(masked[2]) & (int(masked[2]) + 1)) == 0:
        bare = f"{masked[1]} % {int(masked[2]) + 1}"  # which of these is 0 is the same, whatever the sign
    if not _REMAINDER.match(bare):
        return text
    return f"{bare} {'==' if denied else '!='} 0"


def _moved(left: str, comparison: str, right: str) -> str:
    """``(#1 - 2) < 60`` → ``#1 < 62``."""
    shifted, number = _SHIFTED_TERM.match(left), _NUMBER.match(right)
    if shifted is None or number is None:
        return f"{left} {comparison} {right}"
    by = int(shifted[2] + shifted[3])
    value = int(number[1]) - by
    return f"{shifted[1]} {comparison} {value if value >= 0 else f'({value})'}"


def in_common(told: Sequence[Iterable[str]]) -> tuple[str, ...]:
    """What holds at all of several launches: what is said of each, and the widest of a term's limits."""
    each = [dict.fromkeys(conditions) for conditions in told]
    if not each:
        return ()
    shared = [c for c in each[0] if all(c in others for others in each)]
    limits = [_limits(conditions) for conditions in each]
    for term, upper in limits[0]:
        if all((term, upper) in others for others in limits):
            values = [others[term, upper] for others in limits]
            value = max(values) if upper else min(values)
            number = str(value) if value >= 0 else f"({value})"
            if len(set(values)) > 1:
                shared.append(f"{term} {'<=' if upper else '>='} {number}")
    return tuple(shared)


def _limits(conditions: Iterable[str]) -> dict[tuple[str, bool], int]:
    """The tightest limits of terms, upper (True) and lower ones, that are part of them."""
    found: dict[tuple[str, bool], int] = {}
    for condition in conditions:
        match = _LIMIT.match(condition)
        if match is None:
            continue
        value = int(match[3])
        for upper, least in ((True, "<"), (False, ">")):
            if match[2][0] in (least, "="):
                limit = value + (0 if "=" in match[2] else -1 if upper else 1)
                known = found.get((match[1], upper), limit)
                found[match[1], upper] = min(known, limit) if upper else max(known, limit)
    return found


def excluded(
    held: Iterable[Comparison],
    constants: HostConstants,
    given: Given,
    types: Mapping[str, str] = NO_TYPES,
) -> bool:
    """Whether something ``held`` at a place is false for these values: no way comes there with them.

    Or what has been asked for the branches that are taken on the way. ``types``: what template parameters
    stand for.
    """
    asked = itertools.chain(held, given.taken.asked)
    return any(constants.integer(settled(text, types), place, given) == 0 for text, place in asked)


class _Terms:
    """What names of the host are at one launch."""

    def __init__(
        self, constants: HostConstants, at: int, configuration: Sequence[str], arguments: Sequence[str]
    ) -> None:
        self._constants = constants
        self._at = at
        self._named = {text.strip(): f"#{i}" for i, text in reversed(list(enumerate(arguments)))}
        self._shifted: dict[str, tuple[int, str]] = {}
        for i, match in enumerate(_SHIFTED.match(text.strip()) for text in arguments):
            if match is not None:
                self._shifted.setdefault(match[1], (i, f"{'-' if match[2] == '+' else '+'} {match[3]}"))
        for text, extents in reversed(list(zip(configuration, ("gridDim", "blockDim"), strict=False))):
            self._take(text.strip(), extents)

    def _take(self, text: str, extents: str) -> None:
        """The names that one half of the configuration is made of."""
        if text.isidentifier():
            self._named |= {f"{text}.{axis}": f"{extents}.{axis}" for axis in "xyz"}
            self._named.setdefault(text, f"{extents}.x")
        for i, axis in enumerate("xyz"):
            name, place = component(self._constants, text, i, self._at) or ("", 0)
            key = self._constants.key(name, place) if name.isidentifier() else None
            if key is not None and key == self._constants.key(name, self._at):
                self._named.setdefault(name, f"{extents}.{axis}")

    def compared(self, text: str, place: int) -> str | None:
        """A comparison that stands at ``place``; None: it is none, or hangs on more than the launch tells."""
        match = _COMPARISON.match(_compared(text))
        left, right = (self.of(match[i], place) for i in (1, 3)) if match is not None else (None, None)
        return _moved(left, match[2], right) if match and left is not None and right is not None else None

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
        here, there = (self._constants.counter(name, p) for p in (place, self._at))
        value = self._constants.integer(name, place) if here is None else None
        if value is not None:
            return str(value) if value >= 0 else f"({value})"
        variable, _, axis = name.partition(".")
        if here is None:
            here, there = (self._constants.key(variable, p, axis or None) for p in (place, self._at))
        if here is None or here != there:
            return None
        if name in self._shifted and name not in self._named:
            number, back = self._shifted[name]
            argument = self._constants.argument(number, variable, place)
            return None if argument.startswith("#u") else f"({argument} {back})"
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
            yield from ((part, match.end()) for part in _parts(plain[match.end() : closing]))
    end = at
    for match in reversed(list(_FOR.finditer(plain, max(function.body, at - _LONGEST_STATEMENT), at))):
        closing = host.parentheses.get(match.end() - 1, at)
        if closing < end and _ENDS.search(plain, closing, end) is None:  # a loop of one statement
            yield from _of_loop(host, constants, match.end() - 1, closing)
            end = match.start()
    first = _FIRST_ELSE.match(plain, begin + 1, at)
    if first is not None:
        yield from _denied_by_else(host, constants, first.end())
    inside, brace = at, braces.begin(at)
    while brace >= max(function.body, at - FURTHEST):
        yield from _before(host, constants, brace, inside)
        header = constants.functions.header_of(brace) if brace > function.body else None
        if header is not None and header[0] in _IFS:
            yield from ((part, header[1] + 1) for part in _parts(plain[header[1] + 1 : header[2]]))
            keyword = plain.rfind("if", 0, header[1])
            yield from _denied_by_else(host, constants, keyword)
        elif header is not None and header[0] == "for":
            yield from _of_loop(host, constants, *header[1:])
        else:
            yield from _denied_by_else(host, constants, brace)
        inside, brace = brace, braces.begin(brace - 1)


def _parts(condition: str) -> Sequence[str]:
    """All that holds where the condition does; ``a || b`` is one of it."""
    return list(parts_of(condition, "&&")) or ([condition] if any(parts_of(condition, "||")) else [])


def _of_loop(host: HostText, constants: HostConstants, opening: int, closing: int) -> Iterator[Comparison]:
    yield from ((part, closing) for part in conditions_of_loop(host, constants, opening, closing))


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
        yield _opposite(part), place


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
            yield from ((part, match.end()) for part in _parts(parts[0]))
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
