"""The functions of host code, and what stands around a place: loops, branches, bodies. Read from text.

A function is a block behind ``name(parameters)``; lambdas and blocks of statements are none, and belong to
the function that they stand in. What a macro opens is not seen.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from attrs import frozen

from cuda_lsp.frontend.host.macro_uses import expansions
from cuda_lsp.frontend.host.text import ELSE, FURTHEST, HostText, whole_arguments

_BEFORE_BODY = re.compile(
    r"\)\s?(?:(?:const|noexcept|override|final|volatile|mutable)\s?)*(?:->\s?[\w:<>,&*\s]{1,200})?\Z"
)
_NAME = re.compile(r"(?<![\w~])([A-Za-z_]\w*)\s?(?:<((?:[^<>;(){}]|<[^<>;(){}]*>){0,200})>\s?)?\Z")
_CALL_OPERATOR = re.compile(r"(?<!\w)(operator)\s?\(\s?\)\s?\Z")
_BEFORE_NAME = re.compile(r"(?:[\w>*&\]]|::)\s?\Z")
_NO_FUNCTION = frozenset({"if", "for", "while", "switch", "catch", "return", "sizeof", "constexpr"})
_PASSES_BY_VALUE = re.compile(r"(?:cuda|cu|hip)[A-Z]|dim3\Z|make_u?int3\Z")
_DECLARED_AS = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s\Z")
_BEFORE_CALLS = frozenset(
    {"return", "else", "do", "throw", "new", "case", "and", "or", "not", "co_return", "co_await", "co_yield"}
)
_BRANCHES = re.compile(r"(?:\belse|\btry|[;{}:])\s?\Z|\A\s?\Z")
_ATTRIBUTE = r"(?:(?<=__attribute__)|(?<=__attribute__\s))\(\((?:[^()]|\([^()]{0,40}\)){0,80}\)\)"
_TEMPLATE = re.compile(
    rf"\btemplate\s?<((?:[^<>;{{}}]|<[^<>;{{}}]*>){{1,400}})>(?:[^;{{}}()]|{_ATTRIBUTE}){{0,200}}\Z"
)
_USE = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s?(?:<((?:[^<>;(){}]|\([^()]*\)){0,400})>\s?)?\(")
_WORD = re.compile(r"[A-Za-z_]\w*")
_INSTANTIATION = re.compile(r"\btemplate\s(?!<)[^;{}()]{1,190}\Z")
_INSTANTIATES = re.compile(r"\btemplate\s(?!<)")
_CLASS = re.compile(r"\b(?:class|struct)\b")
_REFERENCE = re.compile(r"\A(?!\s?const\b)[^=]*[^&=]&\s?\w+\s?(?:=|\Z)")
_HANDLE = re.compile(r"\A\s?(?:struct\s)?\w*(?:[Hh]andle|[Ss]tream|[Ee]vent)_t\s?&")
"""To what a library hands out: no number is one, nor a pointer to data."""
_TOKEN = re.compile(r"\w+|::|[^\w\s]")
_QUALIFIERS = frozenset({"const", "volatile", "typename", "struct", "restrict", "__restrict__", "__restrict"})
_GOTO = re.compile(r"\bgoto\b")
_LOOP = re.compile(r"\b(?:for|while|do)\b")
_LONGEST_HEADER = 4000
_LONGEST_HEAD = 400  # of a class
_MOST_NESTED = 16
"""Functions that end before a place and begin behind the one that it is in: of local classes."""


@frozen
class HostFunction:
    """``opening`` to ``closing``: its parameters. ``body`` to ``end``: its braces. All are offsets.

    ``parameters``: (name, text of the default or "") in order; ``template``: names of template parameters,
    which are declared from ``begin`` on. ``references``: which parameters the function may write to.
    ``declared``: of a template, its parameters as they stand there.
    """

    name: str
    begin: int
    opening: int
    closing: int
    body: int
    end: int
    parameters: tuple[tuple[str, str], ...]
    template: tuple[str, ...] = ()
    member: bool = False
    references: tuple[int, ...] = ()
    declared: tuple[str, ...] = ()

    def takes_as_many(self, other: HostFunction) -> bool:
        """Whether a call may have as many arguments for both."""
        least, most = (_range(function) for function in (self, other))
        return least[0] <= most[1] and most[0] <= least[1]

    @property
    def has_pack(self) -> bool:
        """Whether its last parameter is a pack of them."""
        return bool(self.declared) and "..." in self.declared[-1]

    def takes(self, count: int) -> bool:
        """Whether a call may have so many arguments."""
        least, most = _range(self)
        return least <= count <= most

    def takes_in_all(self, count: int) -> bool:
        """The same, where what a pack is given is counted one by one."""
        return count >= len(self.parameters) - 1 if self.has_pack else self.takes(count)


def _range(function: HostFunction) -> tuple[int, int]:
    return sum(not default for _, default in function.parameters), len(function.parameters)


@frozen
class Call:
    """``name<template_arguments>(arguments)``: offsets of its first character and of what is behind it.

    ``explicit``: no call, but an explicit instantiation, which has no arguments; its parameters are
    ``declared``.
    """

    name: str
    template_arguments: str | None
    arguments: tuple[str, ...]
    begin: int
    end: int
    explicit: bool = False
    declared: tuple[str, ...] = ()

    def deduced(self, function: HostFunction, name: str) -> str | None:
        """What an explicit instantiation makes of a template parameter that it does not list."""
        for mine, theirs in zip(self.declared, function.declared, strict=False):
            found = _typed_as(theirs, name, function.template)
            match = found.match(" ".join(_unqualified(mine))) if found is not None else None
            if match is not None:
                return match["type"].strip()
        return None


def _unqualified(declared: str) -> list[str]:
    """The words and signs of a parameter's declaration."""
    return [token for token in _TOKEN.findall(declared) if token not in _QUALIFIERS]


def _typed_as(declared: str, name: str, template: Sequence[str]) -> re.Pattern[str] | None:
    """How such a parameter looks where ``type`` stands for the template parameter ``name``; None: nowhere."""
    tokens = _unqualified(declared)
    named = tokens[:-1] if len(tokens) > 1 and tokens[-1].isidentifier() else tokens
    if name not in named:
        return None
    place = named.index(name)
    any_type = r"[\w: ]+?"
    words = [any_type if token in template else re.escape(token) for token in named]
    words[place] = f"(?P<type>{any_type})"
    return re.compile(rf"{' '.join(words)}(?: \w+)?\Z")


_PROTOTYPE = re.compile(
    r"(?<![\w:<>])(?!(?:return|else|new|delete|throw)\b)\w[\w:<>]{0,80}[\s*&]{1,4}"
    r"(?:\w{1,80}\s?::\s?){0,4}(\w{1,80})\s?\(([^(){};]{0,800})\)\s?(?:const|noexcept|override)?\s?;"
)
"""A function that is declared: what it is called, and its parameters."""


class HostFunctions:
    """The functions of one text, and the calls in it."""

    def __init__(self, host: HostText) -> None:
        self._host = host
        self._lent: tuple[tuple[HostFunctions, ...], Mapping[str, Sequence[int]]] | None = None

    @cached_property
    def _functions(self) -> Sequence[HostFunction]:
        """In the order of their bodies."""
        plain, closing = self._host.plain, self._host.braces.closing
        found = (self._function(m.start(), closing) for m in re.finditer(r"\{", plain))
        return [function for function in found if function is not None]

    @cached_property
    def _bodies(self) -> list[int]:
        return [function.body for function in self._functions]

    @cached_property
    def _openings(self) -> Mapping[int, int]:
        """Where each ``)`` was opened."""
        return {closed: opened for opened, closed in self._host.parentheses.items()}

    def _function(self, body: int, closings: Mapping[int, int]) -> HostFunction | None:
        plain, end = self._host.plain, closings.get(body)
        before = _BEFORE_BODY.search(plain, max(0, body - 300), body)
        opening = self._openings.get(before.start()) if before is not None else None
        if end is None or before is None or opening is None or before.start() - opening > _LONGEST_HEADER:
            return None
        name = _NAME.search(plain, max(0, opening - 200), opening) or _CALL_OPERATOR.search(
            plain, max(0, opening - 20), opening
        )
        if name is None or name[1] in _NO_FUNCTION:
            return None
        if not _BEFORE_NAME.search(plain, max(0, name.start() - 200), name.start()):
            return None
        inside = plain[opening + 1 : before.start()]
        template = _TEMPLATE.search(plain, max(0, name.start() - 800), name.start())
        return HostFunction(
            name[1],
            template.start() if template else name.start(),
            opening,
            before.start(),
            body,
            end,
            tuple(parameter_of(part) for part in whole_arguments(inside)),
            tuple(parameter_of(part)[0] for part in whole_arguments(template[1])) if template else (),
            self._is_member(name.start()),
            references_of(whole_arguments(inside)),
            tuple(whole_arguments(inside)) if template else (),
        )

    def _is_member(self, position: int) -> bool:
        plain, brace = self._host.plain, self._host.braces.begin(position)
        if plain[max(0, position - 3) : position].rstrip().endswith("::"):
            return True
        first = max(0, brace - _LONGEST_HEAD)
        head = plain[max(plain.rfind(c, first, max(0, brace)) for c in ";{}") + 1 : max(0, brace)]
        return _CLASS.search(head) is not None

    def around(self, position: int) -> HostFunction | None:
        """The innermost function whose body holds the position."""
        index = bisect_right(self._bodies, position)
        for function in reversed(self._functions[max(0, index - _MOST_NESTED) : index]):
            if position <= function.end:
                return function
        return None

    def is_parameter(self, name: str, position: int) -> bool:
        """Whether a name is a parameter of the function around, whatever else is called so."""
        function = self.around(position)
        return function is not None and any(name == own for own, _ in function.parameters)

    def named(self, name: str) -> Iterator[HostFunction]:
        """The functions of this name."""
        return iter(self._by_name.get(name, ()))

    def every(self) -> Sequence[HostFunction]:
        """All functions, in the order of their bodies."""
        return self._functions

    def mention(self, word: str) -> bool:
        """Whether a word stands in the text."""
        return word in self._host.plain

    def used(self) -> Iterable[str]:
        """The names that stand before parentheses."""
        return self._uses.keys()

    def lent(self, known: Iterable[HostFunctions]) -> Mapping[str, Sequence[int]]:
        """Where variables are passed to functions (of these texts) that may write to them, by name.

        Constants and pointers of a file ask for the same texts.
        """
        texts = tuple(known)
        if self._lent is None or self._lent[0] != texts:
            self._lent = texts, self._passed_to(texts)
        return self._lent[1]

    def _passed_to(self, known: Sequence[HostFunctions]) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = {}
        for name, references, declared_at in (each for functions in known for each in functions.written_to):
            for begin, opening, _ in self._uses.get(name, ()):
                arguments = self._handed(begin, opening) if opening != declared_at else []
                for text in (arguments[i].strip() for i in references if i < len(arguments)):
                    if text.isidentifier():
                        found.setdefault(text, []).append(begin)
        return found

    def lent_to_strangers(
        self, known: Iterable[HostFunctions], names: Collection[str]
    ) -> Iterator[tuple[str, int]]:
        """Calls that hand one of ``names`` to a function that none of these texts declares: it, and where."""
        declared = frozenset[str]().union(*(functions._declared for functions in known))
        for name, uses in self._uses.items() if names else ():
            if name in declared or name in _NO_FUNCTION or _PASSES_BY_VALUE.match(name):
                continue
            for begin, opening, _ in uses:
                handed = (argument.strip() for argument in self._handed(begin, opening))
                yield from ((text, begin) for text in handed if text in names)

    def _handed(self, begin: int, opening: int) -> list[str]:
        """The arguments of what looks like a call, and is one."""
        closing = self._host.closing(opening)
        if closing < 0 or self._declares(begin):
            return []
        return whole_arguments(self._host.plain[opening + 1 : closing])

    @cached_property
    def _declared(self) -> frozenset[str]:
        """Functions with a text, prototypes, and macros."""
        prototypes = (match[1] for match in _PROTOTYPE.finditer(self._host.plain))
        return frozenset((*self._by_name, *prototypes, *self._host.macros))

    @cached_property
    def written_to(self) -> Sequence[tuple[str, tuple[int, ...], int]]:
        """Functions that may write to parameters, also such that are only declared, and where each opens."""
        found = [(f.name, f.references, f.opening) for f in self._functions if f.references]
        for prototype in _PROTOTYPE.finditer(self._host.plain):
            references = references_of(whole_arguments(prototype[2]))
            if references and prototype[1] not in _NO_FUNCTION:
                found.append((prototype[1], references, prototype.start(2) - 1))
        return found

    def _declares(self, begin: int) -> bool:
        """``dim3 block(n)``: a variable that is called like a function."""
        before = _DECLARED_AS.search(self._host.plain, max(0, begin - 40), begin)
        return before is not None and before[1] not in _BEFORE_CALLS

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[HostFunction]]:
        found: dict[str, list[HostFunction]] = {}
        for function in self._functions:
            found.setdefault(function.name, []).append(function)
        return found

    @cached_property
    def _uses(self) -> Mapping[str, Sequence[tuple[int, int, str | None]]]:
        found: dict[str, list[tuple[int, int, str | None]]] = {}
        for match in _USE.finditer(self._host.plain):
            found.setdefault(match[1], []).append((match.start(), match.end() - 1, match[2]))
        return found

    def calls(self, name: str, member: bool = False) -> Iterator[Call]:
        """The calls of a function inside of bodies, in order, and its explicit instantiations.

        A declaration inside of a body looks like a call.

        ``member``: also those of an object's.
        """
        plain = self._host.plain
        for begin, opening, template in self._uses.get(name, ()):
            closing = self._host.closing(opening)
            if not member and plain[max(0, begin - 2) : begin].rstrip().endswith((".", ">")):
                continue
            if closing < 0:
                continue
            explicit = _INSTANTIATION.search(plain, max(0, begin - 200), begin) is not None
            if explicit or self.around(begin) is not None:
                inside = tuple(whole_arguments(plain[opening + 1 : closing]))
                arguments, declared = ((), inside) if explicit else (inside, ())
                yield Call(name, template, arguments, begin, closing + 1, explicit, declared)
        yield from self._made_by_macros.get(name, ())

    @cached_property
    def _made_by_macros(self) -> Mapping[str, Sequence[Call]]:
        """Explicit instantiations where macros are used that make them."""
        found: dict[str, list[Call]] = {}
        for use in expansions(self._host, _INSTANTIATES):
            host = HostText(f"; {use.text}")
            for match in _USE.finditer(host.plain):
                closing = host.closing(match.end() - 1)
                begin = match.start()
                if closing > 0 and _INSTANTIATION.search(host.plain, max(0, begin - 200), begin):
                    declared = tuple(whole_arguments(host.plain[match.end() : closing]))
                    call = Call(match[1], match[2], (), use.begin, use.end, explicit=True, declared=declared)
                    found.setdefault(match[1], []).append(call)
        return found

    def runs_once(self, begin: int, position: int) -> bool:
        """Whether ``position`` is in no loop and no lambda that ``begin``, before it, is not in.

        ``begin`` stands in a block around ``position``, or is a parameter of the function.
        """
        plain, braces = self._host.plain, self._host.braces
        last = max(begin, *(plain.rfind(c, begin, position) for c in "{}"))
        if _LOOP.search(plain, last, position):
            return False  # a loop without braces
        function, brace = self.around(position), braces.begin(position)
        if function is not None and _GOTO.search(plain, position, min(function.end, position + FURTHEST)):
            return False
        while brace > max(begin, function.body if function else -1):
            if not self.is_branch(brace):
                return False
            brace = braces.begin(brace - 1)
        return True

    def jumps(self, function: HostFunction) -> bool:
        """Whether a function has a ``goto``."""
        return _GOTO.search(self._host.plain, function.body, function.end) is not None

    def in_another_branch(self, position: int, use: int) -> bool:
        """Whether a place before another stands in a branch of an ``if`` whose ``else`` the other is in."""
        plain, braces = self._host.plain, self._host.braces
        brace = braces.begin(position)
        while (outer := braces.begin(brace - 1)) >= 0 and braces.closing.get(outer, use) < use:
            brace = outer
        end = braces.closing.get(brace, -1) if brace >= 0 else -1
        while 0 <= end < use and (other := ELSE.match(plain, end + 1)) is not None:
            closing = self._host.parentheses.get(other.end() - 1, -1) if other[1] else other.end() - 2
            begin = plain.find("{", closing, closing + 3) if closing > 0 else -1
            if use < (end := braces.closing.get(begin, -1)):
                return begin < use
        return False

    def is_branch(self, brace: int) -> bool:
        """Whether a block is that of an ``if``, ``else`` or ``switch``, or a plain one."""
        header = self.header_of(brace)
        if header is None:
            return _BRANCHES.search(self._host.plain[max(0, brace - 8) : brace]) is not None
        return header[0] in ("if", "switch", "constexpr")

    def header_of(self, brace: int) -> tuple[str, int, int] | None:
        """``if (…) {``: the word before a block, and its parentheses; None: there are none."""
        plain = self._host.plain
        closing = len(plain[max(0, brace - 3) : brace].rstrip()) + max(0, brace - 3) - 1
        opening = self._openings.get(closing)
        if opening is None:
            return None
        words = _WORD.findall(plain[max(0, opening - 40) : opening])
        return (words[-1] if words else "", opening, closing)


def references_of(declared: Sequence[str]) -> tuple[int, ...]:
    """Which parameters, as they are declared, a function may write to."""
    return tuple(i for i, part in enumerate(declared) if _REFERENCE.search(part) and not _HANDLE.match(part))


def parameter_of(text: str) -> tuple[str, str]:
    """The name and the default of a parameter: ``const int n = 64`` → ``n``, ``64``."""
    declared, _, default = text.partition("=")
    pointer = re.search(r"\(\s?[*&]+\s?(\w+)\s?\)", declared)
    words = _WORD.findall(declared.split("[")[0])
    return (pointer[1] if pointer else words[-1] if words else ""), default.strip()
