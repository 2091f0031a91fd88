"""Which text the preprocessor reads, for host code: ``#if`` and its kin, as far as conditions are known.

Clang preprocesses for the device; what the host launches stands under ``#ifndef __CUDA_ARCH__`` too. So the
directives of a unit are walked as its host compiler would, through the files that it includes. A name that
nothing defines is 0, as in C, but for names reserved to compilers, of which only some are known to be absent.
Where a condition stays open, all its branches are doubtful.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from attrs import define, field, frozen

from cuda_lsp.blanked import blanked
from cuda_lsp.frontend.host.constants import NotConstant, evaluate
from cuda_lsp.frontend.toolchain import HEADERS

_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)((?:[^\n\\]|\\.|\\\n)*)", re.M)
_CONDITIONS = frozenset({"if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif"})
_TELLING = _CONDITIONS | {"define", "undef", "include", "pragma"}
_DEFINE = re.compile(r"\A\s*(\w+)(\()?(.*)", re.S)
_NAME = re.compile(r"\A\s*(\w+)")
_INCLUDED = re.compile(r'\A\s*["<]([^">\n]+)[">]')
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_CALL = re.compile(r"\b(?!defined\b)[A-Za-z_]\w*\s*\(")
_RESERVED = re.compile(r"_[A-Z_]")
_ABSENT = re.compile(r"\A__CUDA_ARCH__\Z|\A_WIN(?:32|64)\Z|\A_MSC_VER\Z|HIP|AMD|SYCL|MUSA|HCC")
_MOST_VISITS = 400  # of files by one unit
_MOST_DEPTH = 12  # macros that are other macros

State = bool | None
"""Whether text is read; None: nobody knows."""


@frozen
class Directive:
    """One preprocessor line of a text: ``begin`` and ``end`` are its offsets."""

    word: str
    rest: str
    begin: int
    end: int


def directives(text: str) -> tuple[Directive, ...]:
    """The lines that tell what is read, in order; ``rest`` is without comments."""
    if "#" not in text:
        return ()
    plain = blanked(text)
    found: list[Directive] = []
    for match in _DIRECTIVE.finditer(plain):
        word = match[1]
        if word in _TELLING:
            rest = match[2] if word != "include" else text[match.start(2) : match.end(2)]
            found.append(Directive(word, rest.replace("\\\n", " "), match.start(), match.end()))
    return tuple(found)


@frozen
class Regions:
    """Stretches of a text that are not read, and the branches of which nobody knows whether they are.

    Lines that tell it are not read.
    """

    inactive: tuple[tuple[int, int], ...] = ()
    doubtful: tuple[tuple[int, int], ...] = ()

    def active(self, text: str) -> str:
        """``text`` with what is not read as spaces; line ends stay."""
        pieces: list[str] = []
        done = 0
        for begin, end in self.inactive:
            pieces += text[done:begin], _NOT_END.sub(" ", text[begin:end])
            done = end
        return "".join((*pieces, text[done:])) if pieces else text


EVERYTHING = Regions()
_NOT_END = re.compile(r"[^\n]")


def regions(lines: Sequence[Directive], states: Sequence[State], length: int) -> Regions:
    """Of a text of this length; ``states``: of what stands behind each line."""
    inactive: list[tuple[int, int]] = []
    doubtful: list[tuple[int, int]] = []
    begin, state = 0, True
    for line, after in zip(lines, states, strict=True):
        if line.word in _CONDITIONS:
            _close(state, begin, line.begin, inactive, doubtful)
            if state is not None and after is not None:  # it may stand among a call's arguments
                inactive.append((line.begin, line.end))
            begin, state = line.end, after
    _close(state, begin, length, inactive, doubtful)
    return Regions(tuple(inactive), tuple(doubtful))


def _close(
    state: State, begin: int, end: int, inactive: list[tuple[int, int]], doubtful: list[tuple[int, int]]
) -> None:
    if not state and begin < end:
        (doubtful if state is None else inactive).append((begin, end))


@define
class _Level:
    """One ``#if``: whether its present branch is read, and whether any was before."""

    state: State
    taken: State


@define
class Preprocessor:
    """The walk through one unit. ``text_of``: what an ``#include`` of a file means, None: nothing known.

    ``states``: by file, of what stands behind each of its directives, where the unit first came by.
    """

    text_of: Callable[[Path, str], tuple[Path, Sequence[Directive]] | None]
    macros: dict[str, str | None] = field(factory=dict[str, str | None])  # None: with parameters
    unsure: set[str] = field(factory=set[str])
    states: dict[Path, tuple[State, ...]] = field(factory=dict[Path, tuple[State, ...]])
    _once: set[Path] = field(factory=set[Path])
    _begun: set[Path] = field(factory=set[Path])
    _visits: int = 0

    def define(self, definitions: Iterable[str], undefined: Iterable[str] = ()) -> None:
        """Take ``NAME=VALUE`` of the command line, and what CUDA's compiler defines."""
        self.macros |= _predefined()
        for text in definitions:
            name, equals, value = text.partition("=")
            self.macros[name.partition("(")[0]] = (value if equals else "1") if "(" not in name else None
        for name in undefined:
            self.macros.pop(name, None)

    def walk(self, path: Path, lines: Sequence[Directive], around: State = True) -> None:
        """Read one file's lines, and what they include."""
        self._visits += 1
        again = path in self._begun  # also within itself, in a circle of headers
        self._begun.add(path)
        levels: list[_Level] = []
        states: list[State] = []
        state = around
        for number, line in enumerate(lines):
            if line.word in _CONDITIONS:
                guard = number + 1 < len(lines) and _is_guard(line, lines[number + 1])
                self._condition(line, levels, guard)
                state = _all((around, *(level.state for level in levels)))
            elif state is not False:
                self._other(path, line, state)
            states.append(state)
        if not again:
            self.states[path] = tuple(states)

    def _condition(self, line: Directive, levels: list[_Level], guard: bool) -> None:
        word = line.word
        if word.startswith("if"):
            holds = True if guard and not self._is_defined(line) else self._holds(word, line.rest)
            levels.append(_Level(holds, holds))
        elif word == "endif":
            if levels:
                levels.pop()
        elif levels:
            level = levels[-1]
            holds = True if word == "else" else self._holds(word.removeprefix("el"), line.rest)
            level.state = _all((holds, _not(level.taken)))
            level.taken = _not(_all((_not(holds), _not(level.taken))))

    def _is_defined(self, line: Directive) -> bool:
        name = _NAME.match(line.rest)
        return name is not None and name[1] in self.macros

    def _other(self, path: Path, line: Directive, state: State) -> None:
        if line.word == "include":
            self._include(path, line, state)
        elif line.word == "pragma":
            if line.rest.strip() == "once":
                self._once.add(path)
        elif (match := _DEFINE.match(line.rest)) is not None:
            name = match[1]
            if state is None:
                self.unsure.add(name)
            elif line.word == "define":
                self.macros[name] = None if match[2] else match[3].strip()
                self.unsure.discard(name)
            else:
                self.macros.pop(name, None)
                self.unsure.discard(name)

    def _include(self, path: Path, line: Directive, state: State) -> None:
        name = _INCLUDED.match(line.rest)
        found = self.text_of(path, name[1]) if name else None
        if found is not None and found[0] not in self._once and self._visits < _MOST_VISITS:
            self.walk(*found, state)

    # ----------------------------------------------------------------------------------- conditions

    def _holds(self, word: str, rest: str) -> State:
        if word in ("ifdef", "ifndef"):
            name = _NAME.match(rest)
            known = self._known(name[1]) if name else None
            return known if known is None or word == "ifdef" else not known
        text = _DEFINED.sub(lambda m: _word(self._known(m[1] or m[2])), rest)
        if _CALL.search(text):  # of a macro with parameters, or __has_include
            return None
        try:
            return bool(evaluate(text, lambda name: self._value(name, _MOST_DEPTH)))
        except (NotConstant, ValueError, RecursionError):
            return None

    def _known(self, name: str) -> State:
        """Whether a macro is defined."""
        if name in self.unsure:
            return None
        if name in self.macros:
            return True
        return None if _RESERVED.match(name) and not _ABSENT.search(name) else False

    def _value(self, name: str, depth: int) -> int:
        known = self._known(name)
        if known is False:
            return 0
        text = self.macros.get(name)
        if known is None or text is None or not depth:
            raise NotConstant(name)
        return evaluate(text, lambda inner: self._value(inner, depth - 1))


def _is_guard(line: Directive, following: Directive) -> bool:
    """``#ifndef NAME`` and ``#define NAME``: what protects a header from being read twice."""
    if line.word != "ifndef" or following.word != "define":
        return False
    names = [_NAME.match(each.rest) for each in (line, following)]
    return all(names) and len({name[1] for name in names if name}) == 1


def _all(states: Iterable[State]) -> State:
    found = list(states)
    return False if False in found else None if None in found else True


def _not(state: State) -> State:
    return None if state is None else not state


def _word(known: State) -> str:
    return {True: " 1 ", False: " 0 ", None: " __unknown__ "}[known]


@cache
def _predefined() -> Mapping[str, str | None]:
    """What our declarations of CUDA define as numbers, so that both readings agree."""
    text = (HEADERS / "qualifiers.h").read_text(encoding="utf-8")
    return dict(_numbers(directives(text)))


def _numbers(lines: Iterable[Directive]) -> Iterator[tuple[str, str]]:
    for line in lines:
        match = _DEFINE.match(line.rest) if line.word == "define" else None
        if match and not match[2] and match[3].strip().isdigit():
            yield match[1], match[3].strip()
