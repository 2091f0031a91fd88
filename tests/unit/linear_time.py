"""Whether work takes time in proportion to its text, and texts that a pattern may take longer for.

From a pattern's own syntax come texts that repeat what it repeats, behind what leads there, and end as it
does not expect: where a pattern has two ways to share out a text, four times the text takes sixteen times as
long.
"""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

try:
    from re import _constants as codes
    from re import _parser as parser
except ImportError:  # Python 3.10
    import sre_constants as codes
    import sre_parse as parser

_LENGTHS = (20, 60, 250, 1_000, 4_000, 16_000)
_NEGLIGIBLE = 0.03
"""Seconds of CPU time within which nobody asks how they grew."""
_GROWTH = 10
"""Of the time, for four times the text: between 4, which is in proportion, and 16, which is its square."""
_ROUNDS = 6
"""That agree before anything is told: a machine that others use is slow for some of them, not for all."""


def _characters(members: Any) -> list[str]:
    """Some characters of a set."""
    found: list[str] = []
    negated = members and members[0][0] is codes.NEGATE
    for code, value in members:
        if code is codes.LITERAL:
            found.append(chr(value))
        elif code is codes.RANGE:
            found.append(chr(value[0]))
        elif code is codes.CATEGORY:
            found += {codes.CATEGORY_SPACE: [" ", "\n"], codes.CATEGORY_DIGIT: ["1"]}.get(value, ["a"])
    return [c for c in 'a (<[,=*/"\\' if c not in found] if negated else found or ["a"]


def _samples(item: Any) -> list[str]:
    """Texts that one element of a pattern matches, roughly."""
    code, value = item
    if code is codes.LITERAL:
        return [chr(value)]
    if code is codes.NOT_LITERAL:
        return [c for c in ("a", " ", "(") if c != chr(value)]
    if code is codes.ANY:
        return ["a", " ", "/"]
    if code is codes.IN:
        return _characters(value)
    if code is codes.BRANCH:
        return [_sample(branch) for branch in value[1]]
    if code is codes.SUBPATTERN:
        return [_sample(value[-1])]
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        return [text * max(1, value[0]) for text in _samples_of(value[2])]
    return [""]


def _samples_of(items: Any) -> list[str]:
    return _samples(items[0]) if len(items) == 1 else [_sample(items)]


def _sample(items: Any) -> str:
    return "".join(_samples(item)[0] if _samples(item) else "" for item in items)


def _repeats(items: Any, before: str) -> Iterator[tuple[str, list[str]]]:
    """What leads to each repetition of a pattern, and what it may repeat."""
    for item in items:
        code, value = item
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            if value[1] > 1:
                yield before, _samples_of(value[2])
            yield from _repeats(value[2], before)
        elif code is codes.SUBPATTERN:
            yield from _repeats(value[-1], before)
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from _repeats(branch, before)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from _repeats(value[1], before)
        before += (_samples(item) or [""])[0]


def pumps(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str]]:
    """(beginning, what is repeated) of texts that try a pattern."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = parser.parse(
        source, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    )
    found: dict[tuple[str, str], None] = {}
    for before, bodies in _repeats(tree, ""):
        for body in {*bodies, " "}:
            found |= {(before, body): None, ("", before + body): None, (before, before + body): None}
        found[("", before)] = None
    whole = _sample(tree)
    return iter([*found, ("", whole), ("", whole[:-1])])


def _seconds(work: Callable[[], object]) -> float:
    """CPU time without the garbage collector, whose rounds grow with all that the test process holds."""
    gc.disable()
    begun = time.process_time()
    try:
        work()
        return time.process_time() - begun
    finally:
        gc.enable()


def _grows(work: Callable[[int], Callable[[], object]], length: int) -> bool:
    """Whether this text takes out of proportion longer than a quarter of it, measured beside each other."""
    before = max(_seconds(work(length // 4)) for _ in range(3))
    return min(_seconds(work(length)) for _ in range(2)) > _GROWTH * max(before, 1e-4)


def blows_up(work: Callable[[int], Callable[[], object]]) -> bool:
    """Whether more text takes out of proportion longer; told with the shortest that shows it."""
    before = _NEGLIGIBLE
    for length in _LENGTHS:
        taken = _seconds(work(length))
        if taken > _GROWTH * max(before, _NEGLIGIBLE / _GROWTH) and all(
            _grows(work, length) for _ in range(_ROUNDS)
        ):
            return True
        if taken * (_LENGTHS[-1] / length) ** 3 < _NEGLIGIBLE:
            return False  # were it the cube of the text, nobody would ask of the longest
        before = taken
    return False


def outgrows(pattern: re.Pattern[Any], use: Callable[[re.Pattern[Any], Any], object]) -> str | None:
    """A text for which this use of a pattern takes out of proportion long; None: there is none among ours."""
    for begin, body in pumps(pattern):
        for end in ("\0", "", "\n") if body else ():

            def work(
                length: int, begin: str = begin, body: str = body, end: str = end
            ) -> Callable[[], object]:
                text: Any = begin + body * (length // len(body)) + end
                text = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
                return lambda: use(pattern, text)

            if blows_up(work):
                return f"{begin!r} + {body!r} * n + {end!r}"
    return None


def found_everywhere(pattern: re.Pattern[Any], text: Any) -> int:
    """How often a pattern is found, which tries it at every place."""
    return sum(1 for _ in pattern.finditer(text))
