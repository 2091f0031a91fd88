"""What is known at a place of host code because of the branches and loops around it.

``if (size == 32)``, ``switch (size) { case 32:`` and ``for (int size = 32; size <= 256; size *= 2)``: at a
launch in there ``size`` has one of these values. Only equalities with constants are read, and loops of few
rounds.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from cuda_lsp.frontend.host.host_constants import HostConstants, Key
from cuda_lsp.frontend.host.known_values import Taken
from cuda_lsp.frontend.host.text import FURTHEST, HostText, closings
from cuda_lsp.model import Extents

_IF = re.compile(r"\bif\s?(?:constexpr\s?)?\(")
_ELSE = re.compile(r"\s?else\b(?:\s?(if\s?(?:constexpr\s?)?\())?")
_SINGLE = re.compile(r"(?!(?:if|for|while|do|switch|try|else)\b)[^;{}]{1,400};")
_LABEL = re.compile(r"\bcase\s([^:;{}]{1,80}):(?!:)|\b(default)\s?:")
_LEAVES = re.compile(r"\b(?:break|return|throw|continue|goto)\b|\b(?:exit|abort)\s?\(")
_EQUAL = re.compile(r"\A([A-Za-z_]\w*(?:\.[xyz])?)\s?==\s?([^=<>!&|?]{1,80})\Z")
_EQUAL_TO = re.compile(r"\A(\w+)\s?==\s?([A-Za-z_]\w*(?:\.[xyz])?)\Z")
_NAME = re.compile(r"\A[A-Za-z_]\w*(?:\.[xyz])?\Z")
_FOR = re.compile(
    r"\A[^=;]*?\b(\w+)\s?=\s?([^;]{1,80});\s?(\w+)\s?([<>]=?|!=)\s?([^;]{1,80});\s?([^;]{1,80})\Z", re.S
)
_STEP = re.compile(
    r"\A\s?(?:(?P<before>\+\+|--)\s?(?P<a>\w+)|(?P<b>\w+)\s?(?P<behind>\+\+|--)"
    r"|(?P<c>\w+)\s?(?P<op>[-+*/]|<<|>>)=\s?(?P<by>\w+)|(?P<d>\w+)\s?=\s?(?P=d)\s?(?P<op2>[-+*/]|<<|>>)\s?(?P<by2>\w+))\s?\Z"
)
_PLAIN_NAME = re.compile(r"(?<![\w.>:])[A-Za-z_]\w*")
_MOST_BRANCHINGS = 2
"""Of the nearest to a place, that ways are told apart by."""
_MOST_WORLDS = 8
_MOST_ROUNDS = 200
_MOST_VALUES = 12
"""Values of a loop's counter that count: launches are told by few."""

Values = Mapping[Key, Sequence[int | Extents]]


@frozen
class _Step:
    operator: str
    by: int

    def after(self, value: int) -> int:
        """The counter's next value."""
        steps: Mapping[str, Callable[[int, int], int]] = {
            "+": lambda a, b: a + b,
            "-": lambda a, b: a - b,
            "*": lambda a, b: a * b,
            "/": lambda a, b: a // b if b > 0 else a,
            "<<": lambda a, b: a << min(b, 32),
            ">>": lambda a, b: a >> min(b, 32),
        }
        return steps[self.operator](value, self.by)


_HOLDS: Mapping[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "!=": lambda a, b: a != b,
}


def values_at(host: HostText, constants: HostConstants, at: int) -> Values:
    """The values that names can have at a place, each by what tells its value there."""
    found: dict[Key, Sequence[int | Extents]] = {}
    for told, place, values in _told(host, constants, at):
        name, _, axis = told.partition(".")
        key = constants.key(name, at)
        if key is not None and key == constants.key(name, place) and key not in found:
            found[key] = _as_extents(constants.known_extents(name, at), axis, values) if axis else values
    return found


def _as_extents(known: Extents, axis: str, values: Iterable[int]) -> Sequence[Extents]:
    """A ``dim3`` of which one extent is told: its others are what they are."""
    x, y, z = known
    made: dict[str, Callable[[int], Extents]] = {
        "x": lambda n: (n, y, z),
        "y": lambda n: (x, n, z),
        "z": lambda n: (x, y, n),
    }
    return [made[axis](value) for value in values]


def worlds(host: HostText, constants: HostConstants, at: int, texts: Iterable[str]) -> Sequence[Taken]:
    """The ways through the ``if``s before a place in which names that some texts hang on are written."""
    function = constants.functions.around(at)
    names = {word for text in texts for word in _PLAIN_NAME.findall(text)}
    if function is None or not names:
        return (Taken(),)
    begin = max(function.body, at - FURTHEST)
    made_of = (constants.reached(name, at) for name in tuple(names))
    names |= {word for value in made_of if value for word in _PLAIN_NAME.findall(value.text or "")}
    chains = [_branches(host, match) for match in _IF.finditer(host.plain, begin, at)]
    concerning = [
        chain
        for chain in chains
        if chain
        and chain[-1].end < at <= host.braces.end(chain[0].begin - 1)
        and any(constants.writes(names, branch.begin, branch.end) for branch in chain)
    ]
    options = [list(_options(host, chain)) for chain in concerning[-_MOST_BRANCHINGS:]]
    made = (functools.reduce(Taken.and_those, chosen, Taken()) for chosen in itertools.product(*options))
    return tuple(itertools.islice(made, _MOST_WORLDS))


@frozen
class _Branch:
    """From the brace, or the character before a single statement, to the last character.

    ``condition``: what is asked for it after those before it, and where; None: nothing.
    """

    begin: int
    end: int
    condition: tuple[str, int] | None = None


def _branches(host: HostText, match: re.Match[str]) -> list[_Branch]:
    """The bodies of ``if (…) {…} else if (…) {…} else {…}``, an empty one for what no branch takes."""
    plain, found = host.plain, list[_Branch]()
    if host.follows("else", match.start()):
        return found
    opening = match.end() - 1
    while True:
        closing = host.parentheses.get(opening, -1)
        body = _body(host, closing + 1) if closing > 0 else None
        if body is None:
            return []
        found.append(_Branch(*body, (plain[opening + 1 : closing], opening)))
        following = _ELSE.match(plain, body[1] + 1)
        if following is None:
            return [*found, _Branch(body[1], body[1])]
        if following[1] is None:
            last = _body(host, following.end())
            return [*found, _Branch(*last)] if last is not None else []
        opening = following.end() - 1


def _body(host: HostText, place: int) -> tuple[int, int] | None:
    """A block, or a single statement that is no other ``if`` or loop."""
    plain = host.plain
    first = place + plain[place : place + 1].isspace()
    if plain[first : first + 1] == "{":
        end = host.braces.closing.get(first, -1)
        return (first, end) if end > 0 else None
    single = _SINGLE.match(plain, first)
    return (first - 1, single.end() - 1) if single is not None else None


def _options(host: HostText, chain: Sequence[_Branch]) -> Iterator[Taken]:
    """One for each branch that does not leave the function."""
    failed: list[tuple[str, int]] = []
    for branch in chain:
        asked = tuple(failed)
        if branch.condition is not None:
            text, place = branch.condition
            asked = (*asked, branch.condition)
            failed.append((f"!({text})", place))
        if not _leaves(host, branch.begin, branch.end):
            braces = frozenset({branch.begin + (host.plain[branch.begin] != "{")})
            skipped = tuple((other.begin, other.end) for other in chain if other is not branch)
            yield Taken(braces, skipped, asked)


def _leaves(host: HostText, begin: int, end: int) -> bool:
    """Whether a branch leaves the function, or a loop, at its end."""
    if begin == end or host.plain[begin] == "{":
        return host.leaves_at_end(begin, end)
    return _LEAVES.match(host.plain, begin + 1) is not None


def _told(host: HostText, constants: HostConstants, at: int) -> Iterator[tuple[str, int, Sequence[int]]]:
    """Names, where they were compared, and the values that they have from there on; innermost first."""
    plain, braces = host.plain, host.braces
    function = constants.functions.around(at)
    outermost = function.body if function else 0
    outermost = max(outermost, at - FURTHEST)
    begin = max(plain.rfind(c, outermost, at) for c in ";{}")
    for match in _IF.finditer(plain, max(begin, outermost), at):
        closing = host.parentheses.get(match.end() - 1, at)
        if closing < at:
            yield from _compared(plain, constants, match.end(), closing)
    brace, inside = braces.begin(at), at
    while brace > outermost:
        header = constants.functions.header_of(brace)
        if header is not None and header[0] in ("if", "constexpr"):
            yield from _compared(plain, constants, header[1] + 1, header[2])
        elif header is not None and header[0] == "switch":
            name = plain[header[1] + 1 : header[2]].strip()
            values = _cases(host, constants, brace, inside)
            if _NAME.match(name) and values:
                yield name, header[1], values
        inside, brace = brace, braces.begin(brace - 1)


def _compared(
    plain: str, constants: HostConstants, begin: int, end: int
) -> Iterator[tuple[str, int, Sequence[int]]]:
    """What a condition makes equal to constants."""
    for part in parts_of(plain[begin:end], "&&"):
        match, turned = _EQUAL.match(part), _EQUAL_TO.match(part)
        pairs = [(m[i], m[3 - i]) for m, i in ((match, 1), (turned, 2)) if m is not None]
        for name, other in pairs:
            value = constants.integer(other, begin) if _NAME.match(name) else None
            if value is not None:
                yield name, begin, (value,)


def parts_of(condition: str, joint: str) -> Iterator[str]:
    """What is joined by ``&&`` (or ``||``) in a condition, as far as nothing else joins it."""
    text = condition.strip()
    closed = closings(text, "()")
    while text.startswith("(") and closed.get(0) == len(text) - 1:
        text = text[1:-1].strip()
        closed = closings(text, "()")

    def outside(pattern: str) -> list[int]:
        found = (match.start() for match in re.finditer(pattern, text))
        return [place for place in found if not any(begin < place < end for begin, end in closed.items())]

    joints = outside(re.escape(joint))
    if outside(r"\|\||\?" if joint == "&&" else r"&&|\?"):
        return
    if not joints:
        yield text
        return
    for begin, end in zip((0, *(j + 2 for j in joints)), (*joints, len(text)), strict=True):
        yield from parts_of(text[begin:end], joint)


def _cases(host: HostText, constants: HostConstants, brace: int, at: int) -> Sequence[int]:
    """The values for which a ``switch`` with this brace comes to a place in it; none: nobody knows."""
    plain, braces = host.plain, host.braces
    first = max(brace, at - FURTHEST)
    labels = [m for m in _LABEL.finditer(plain, first, at) if braces.begin(m.start()) == brace]
    values: list[int] = []
    end = at
    for label in reversed(labels):
        if end != at and _LEAVES.search(plain, label.end(), end):
            break
        value = constants.integer(label[1], label.start()) if label[1] else None
        if value is None:
            return ()
        values.append(value)
        end = label.start()
    return values[::-1]


def rounds(host: HostText, constants: HostConstants, key: Key) -> Sequence[int]:
    """The values of a loop's counter, which is declared at ``key``; none: they are not known."""
    name, position = key
    opening, closing = host.for_header(position) or (-1, -1)
    header = _FOR.match(host.plain[opening + 1 : closing]) if closing > 0 else None
    if header is None or header[1] != name or header[3] != name:
        return ()
    step = _step(constants, name, header[6], opening)
    value, limit = (constants.integer(header[i], opening) for i in (2, 5))
    if step is None or value is None or limit is None:
        return ()
    found: list[int] = []
    for _ in range(_MOST_ROUNDS):
        if not _HOLDS[header[4]](value, limit):
            break
        found.append(value)
        value = step.after(value)
    if len(found) <= _MOST_VALUES:
        return found
    return (*found[: _MOST_VALUES - 1], found[-1])


def conditions_of_loop(host: HostText, constants: HostConstants, opening: int, closing: int) -> Iterator[str]:
    """What holds in the rounds of the loop with this header: what it asks, and from where it counts."""
    text = host.plain[opening + 1 : closing]
    _, *asked = text.split(";")
    if len(asked) != 2:
        return
    yield from parts_of(asked[0], "&&")
    header = _FOR.match(text)
    step = _step(constants, header[1], header[6], opening) if header is not None else None
    if header is None or step is None or header[1] != header[3]:
        return
    if step.operator in "+-" and step.by > 0:
        yield f"{header[1]} {'>=' if step.operator == '+' else '<='} {header[2]}"
    elif step.operator in ("*", "<<") and step.by > 0 and (constants.integer(header[2], opening) or -1) > 0:
        yield f"{header[1]} >= {header[2]}"


def _step(constants: HostConstants, name: str, text: str, at: int) -> _Step | None:
    match = _STEP.match(text)
    if match is None or name not in (match["a"], match["b"], match["c"], match["d"]):
        return None
    counted = match["before"] or match["behind"]
    if counted:
        return _Step(counted[0], 1)
    by = constants.integer(match["by"] or match["by2"], at)
    return _Step(match["op"] or match["op2"], by) if by is not None else None
