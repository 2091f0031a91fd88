"""Stores to a variable of a function that a later one replaces on every way to a place.

``p = a; p = b;`` leaves ``b``; and ``p = a; if (c) { p = b; } … if (c) { k<<<…>>>(p); }`` passes ``b``: who
is in the second branch has been in the first one, as long as nothing that ``c`` is made of changes between
the two questions. Told of assignments that stand alone in a block around the place, or directly in such a
branch, in functions without labels, lambdas, which may run later than they are written, and directives left.
``c`` is made of the function's own variables: of others calls may change what they hold.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

from cuda_lsp.frontend.host.host_functions import HostFunction, HostFunctions
from cuda_lsp.frontend.host.text import HostText, split_arguments

_BLOCK = re.compile(r"(?:[;{}]|\belse|\bdo|\btry)\s?\Z")
"""Before a block that is run where it stands, and has no parentheses."""
_CONTROLS = frozenset({"if", "constexpr", "for", "while", "switch", "catch"})
_SIMPLE = re.compile(r"\A(?:[\w\s\[\]<>!+/%-]|==|<=|>=|!=|&&|\|\|)+\Z")
_UNCLEAR = re.compile(r"\[[&=\w\s,]*\]\s?(?:\([^()]*\)\s?)?(?:mutable\s?)?\{|#\s?(?:if|el|endif)")
"""Lambdas, and branches of the preprocessor."""
_DECLARED = (
    r"(?<![\w.>])(?!(?:return|else|case|delete|throw|goto)\b)[A-Za-z_][\w:]*"
    r"(?:\s?<[^<>;(){{}}]{{0,200}}>)?\s(?:[A-Za-z_]\w*\s)*{}\s?(\[[^\[\]]*\]\s?)?[=;,]"
)
"""Of a name that is no reference; the group is there for an array."""
_CHANGES = re.compile(r"\+\+|--|<<|>>")
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_IF = re.compile(r"\bif\s?\Z")
_ALONE = re.compile(r"\s?if\s?\(")
_CALLEE = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s?(?:<[^<>;(){}]{0,200}>\s?)?\Z")
_TYPE = r"(?:const\s)?[A-Za-z_][\w:]{0,100}(?:\s?<[^<>;]{0,100}>)?\s?\*\s?"
"""Before the name of a pointer that is declared."""
_MAYBE = re.compile(r"[)?]|&&|\|\||\b(?:else|case|do)\b")
"""Before a call that stands in no other's arguments and no condition, and may not be run."""
_STORED = r"(?<![\w.]){}\s?(?:\[[^\[\]]*\]\s?|(?:\.|->)\s?\w+\s?)*(?:[-+*/%&|^]|<<|>>)?=(?!=)"
_STEPPED = r"(?:\+\+|--|(?<!&)&)\s?{0}\b|(?<![\w.]){0}\s?(?:\[[^\[\]]*\]\s?)*(?:\+\+|--)"
_LONGEST = 300
"""Characters of a call's name with its template arguments."""

Changes = Callable[[str, int, int], Iterator[int]]
"""Where a variable may change between two places."""


@frozen
class _Branch:
    """``if (condition) {``: where the statement begins, its condition, and its braces."""

    begin: int
    condition: str
    asked: int
    brace: int
    end: int


@frozen
class Overwritten:
    """``changes``: see there."""

    text: HostText
    functions: HostFunctions
    changes: Changes

    def before(self, name: str, stores: Sequence[int], at: int) -> frozenset[int]:
        """Those of the places behind stores to a function's variable that are replaced at a place."""
        function = self._clear_function(at)
        if function is None:
            return frozenset()
        own = [place for place in stores if function.body < place < at and self._runs(place, function)]
        last = next((p for p in sorted(own, reverse=True) if self._surely(name, p, at)), None)
        return frozenset(place for place in own if last is not None and place < last)

    def surely(self, name: str, place: int, at: int) -> bool:
        """Whether an assignment to a variable, or a field of one, is on every way to a later place."""
        function = self._clear_function(at)
        if function is None:
            return False
        return function.body < place < at and self._runs(place, function) and self._surely(name, place, at)

    def surely_called(self, place: int, at: int) -> bool:
        """Whether a call, whose arguments a place is among, is on every way to a later one."""
        function = self._clear_function(at)
        if function is None or not (function.body < place < at and self._runs(place, function)):
            return False
        begin = self._begin(place)
        whole = _MAYBE.search(self.text.plain, begin, place) is None
        return whole and self._alone(begin) and self._encloses(self.text.braces.begin(place), at)

    def _clear_function(self, at: int) -> HostFunction | None:
        """The function around a place, if up to there its statements run in the order of the text."""
        function = self.functions.around(at)
        if function is None or _UNCLEAR.search(self.text.plain, function.body, at) is not None:
            return None
        return None if self.functions.jumps(function) else function

    def _runs(self, place: int, function: HostFunction) -> bool:
        """Whether what stands at a place of a function runs where it is written, and not as a lambda."""
        if self.functions.around(place) is not function:
            return False
        brace = self.text.braces.begin(place - 1)
        while brace > function.body:
            header = self.functions.header_of(brace)
            named = header is not None and header[0] in _CONTROLS
            if not named and _BLOCK.search(self.text.plain, max(0, brace - 8), brace) is None:
                return False
            brace = self.text.braces.begin(brace - 1)
        return brace == function.body

    def _surely(self, name: str, place: int, at: int) -> bool:
        """Whether an assignment, which ends at a place, is on every way to a later one."""
        begin = self._begin(place)
        stored = re.match(rf"\s?(?:{_TYPE})?{re.escape(name)}\s?=(?!=)", self.text.plain[begin:place])
        if stored is None or not self._alone(begin):
            return False
        brace = self.text.braces.begin(place - 1)
        if self._encloses(brace, at):
            return True
        first = self._branch(brace)
        return first is not None and any(
            second.condition == first.condition
            and first.end < second.begin
            and self._encloses(self.text.braces.begin(first.begin), second.begin)
            and self._stays(first, second)
            for second in self._branches_around(at)
        )

    def _begin(self, end: int) -> int:
        return max(self.text.plain.rfind(c, 0, end - 1) for c in ";{}") + 1

    def _alone(self, begin: int) -> bool:
        """Whether a statement of a block begins there: not in the head of a loop, nor in a ``switch``."""
        plain, brace = self.text.plain, self.text.braces.begin(begin)
        header = self.functions.header_of(brace) if brace >= 0 else None
        inside = plain[brace + 1 : begin]
        return (header is None or header[0] != "switch") and inside.count("(") == inside.count(")")

    def _encloses(self, brace: int, at: int) -> bool:
        return brace >= 0 and self.text.braces.closing.get(brace, -1) >= at

    def _branch(self, brace: int) -> _Branch | None:
        """The branch of an ``if`` that stands alone with this brace."""
        header = self.functions.header_of(brace)
        if header is None or header[0] != "if":
            return None
        word = _IF.search(self.text.plain, max(0, header[1] - 4), header[1])
        begin = self._begin(header[1] + 1)
        if word is None or self.text.plain[begin : word.start()].strip() or not self._alone(begin):
            return None
        condition = "".join(self.text.plain[header[1] + 1 : header[2]].split())
        end = self.text.braces.closing.get(brace, -1)
        return _Branch(begin, condition, header[1], brace, end) if end > 0 else None

    def _branches_around(self, at: int) -> Iterator[_Branch]:
        begin = self._begin(at)
        alone = _ALONE.match(self.text.plain, begin)
        closing = self.text.parentheses.get(alone.end() - 1, at) if alone is not None else at
        if alone is not None and closing < at:
            condition = "".join(self.text.plain[alone.end() : closing].split())
            yield _Branch(begin, condition, alone.end() - 1, closing, at)
        brace = self.text.braces.begin(at)
        while brace >= 0:
            found = self._branch(brace)
            if found is not None:
                yield found
            brace = self.text.braces.begin(brace - 1)

    def _stays(self, first: _Branch, second: _Branch) -> bool:
        """Whether both ask the same, and get the same answer."""
        text = self.text.plain[first.asked + 1 : first.brace].rstrip(" \n)")
        if _SIMPLE.match(text) is None or _CHANGES.search(text):
            return False
        return all(self._same(name, first.asked, second.asked) for name in set(_WORD.findall(text)))

    def _same(self, name: str, begin: int, end: int) -> bool:
        """Whether nothing changes a function's own variable, or its elements, between two places."""
        plain, word, function = self.text.plain, re.escape(name), self.functions.around(begin)
        if function is None or next(iter(self.changes(name, begin, end)), None) is not None:
            return False
        between = plain[begin:end]
        if re.search(_STORED.format(word), between) or re.search(_STEPPED.format(word), between):
            return False
        if re.search(rf"(?<![\w.]){word}\s?\[", between) is None:
            return self._is_own(name, function, begin)
        declared = re.search(_DECLARED.format(word), plain[function.body : begin])
        if declared is None or declared[1] is None:
            return False
        behind = function.body + declared.end()
        bare = re.compile(rf"(?<![\w.]){word}\b(?!\s?\[)").finditer(plain, behind, end)
        return all(self._only_read(match.start()) for match in bare)

    def _is_own(self, name: str, function: HostFunction, at: int) -> bool:
        """Whether it is a variable or parameter of the function, and no reference, or one of its template."""
        names = [parameter for parameter, _ in function.parameters]
        if name in function.template:
            return True
        if name in names:
            return names.index(name) not in function.references
        return re.search(_DECLARED.format(re.escape(name)), self.text.plain[function.body : at]) is not None

    def _only_read(self, place: int) -> bool:
        """Whether an array there is an argument of functions of the text that cannot write to it."""
        openings = [o for o, c in self.text.parentheses.items() if o < place < c]
        opening = max(openings, default=-1)
        callee = _CALLEE.search(self.text.plain, max(0, opening - _LONGEST), max(0, opening))
        if callee is None:
            return False
        position = len(split_arguments(self.text.plain[opening + 1 : place] + "_")) - 1
        called = list(self.functions.named(callee[1]))
        return bool(called) and all(self._takes_constant(function, position) for function in called)

    def _takes_constant(self, function: HostFunction, position: int) -> bool:
        declared = split_arguments(self.text.plain[function.opening + 1 : function.closing])
        if position >= len(declared):
            return False
        return declared[position].strip().startswith("const ") and declared[position].count("*") <= 1


def is_local(declared: Sequence[tuple[int, int]], function: HostFunction | None, at: int) -> bool:
    """Whether a variable whose scopes these are is declared in a function, where it is seen at a place."""
    if function is None:
        return False
    scopes = declared[: bisect_left(declared, (at, -1))]
    return any(function.body < begin <= at <= end for begin, end in scopes)
