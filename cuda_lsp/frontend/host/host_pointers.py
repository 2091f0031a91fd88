"""Pointer variables of host code that hold a place in another buffer: ``float* p = d + 1; k<<<…>>>(d, p);``.

Read from text, as constants are. A variable stands for its value where the declaration that is visible at the
launch, and the assignments in its scope, give it one. Of one that gets several nobody knows which it has.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

from attrs import frozen

from cuda_lsp.frontend.host.called_pointers import CalledPointers, Filled
from cuda_lsp.frontend.host.cursors import Cursors, at_place, start_of
from cuda_lsp.frontend.host.definitions import pointer_lists
from cuda_lsp.frontend.host.elsewhere import Elsewhere
from cuda_lsp.frontend.host.expressions import BASE, MOVED, WORD, field_of, parts_of_record
from cuda_lsp.frontend.host.host_functions import HostFunction, HostFunctions
from cuda_lsp.frontend.host.overwritten import Overwritten, is_local
from cuda_lsp.frontend.host.pointer_lists import listed_pointers
from cuda_lsp.frontend.host.record_writes import writes_to_record
from cuda_lsp.frontend.host.structures import Field, fields_of
from cuda_lsp.frontend.host.text import HostText, by_name, split_arguments

_NAME = r"[A-Za-z_]\w*"
_DECLARED = re.compile(
    rf"(?<=[;{{}}])\s?(?:(?:const|static|unsigned|struct)\s)*(?!(?:return|delete|throw|else|case)\b){_NAME}"
    rf"(?:::\w+)*(?:\sconst)?\s?(\*[^;{{}}]{{1,400}});|\bauto\s?(\*?\s?{_NAME}\s?=\s?[^;{{}}]{{1,200}});"
)
_DECLARATOR = re.compile(
    rf"\A[*\s]*(?:const\s|__restrict__\s|__restrict\s)?({_NAME})\s?(?:\Z|=\s?(.+)\Z|\((.+)\)\Z)", re.S
)
_ASSIGNED = re.compile(
    rf"(?<![\w.>*&])({_NAME}(?:\s?(?:\.|->)\s?\w+|\[\w+\]){{0,6}})\s?=(?!=)\s?([^;{{}}]{{1,200}});"
)
_CHAINED = re.compile(r"(?<=[\w\]])\s?=(?!=)\s?(?=[\w:*&(])")
_MOVED = re.compile(rf"(?<![\w.>])({_NAME})\s?(?:(?:[-+*/%&|^]|<<|>>)=|\+\+|--)|(?:\+\+|--)\s?({_NAME})\b")
_LESSENED = re.compile(rf"(?<![\w.>])({_NAME})\s?(?:/|>>)=")
_LENT = re.compile(rf"[(,=]\s?&\s?({_NAME})\b(?!\s?[\[.]|\s?->)|[(,]\s?\([^()]*\*\s?\*\s?\)\s?&\s?({_NAME})")
_ALLOCATING = re.compile(r"\w{0,40}[Aa]lloc\w{0,40}\s?(?:<[^<>()]{0,100}>\s?)?\Z")
_LONGEST_NAME = 200
_LENDING = re.compile(rf"\A[\w:]{{1,100}}(?:<[^<>]*>)?\s?\((?:[^()&]*,)?\s?&\s?({_NAME})\s?(?:,[^()]*)?\)\Z")
_OWN = re.compile(rf"\A{_NAME}\(\)\Z")
_WORD = re.compile(_NAME)
_TYPED = re.compile(
    rf"(?<!\w)(?!(?:return|delete|sizeof|case|else)\b)({_NAME})"
    rf"\s?(?:const\s?)?\*\s?(?:const\s|__restrict__\s)?({_NAME})"
)
_SYMBOL = re.compile(
    rf"\b(?:cuda|hip)GetSymbolAddress\s?\((?:\s?\([^()]*\))?\s?&\s?({_NAME})\s?,\s?({_NAME})\s?\)"
)
_RECORD = re.compile(
    rf"\b(?P<type>{_NAME})\s(?P<name>{_NAME})\s?(?:=\s?(?P<made>{_NAME}\s?)?)?\{{(?P<parts>[^{{}};]{{1,1000}})\}}\s?;"
)
_DECLARED_AS = re.compile(rf"(?<!\w)({_NAME})\s({_NAME})\s?(?==(?!=)|;)")
_ANY_ELEMENT = re.compile(r"\A(.+)\[([^\[\]]+)\]\Z|\A(\w+)\.(first|second)\Z")
_OBJECT = rf"(?<![\w.>])({_NAME})(?:\s?<[^<>;{{{{}}}}()]{{{{0,100}}}}>)?\s{{}}\s?[=;({{{{]"
_OWNER = re.compile(rf"\A\s?({_NAME})\s?(?:\.\s?(?:get|data)\s?\(\s?\)\s?)?\Z")
_ALLOCATES = re.compile(r"\A\s?(?:[\w:]{0,80}::\s?)?\w{0,40}[Aa]lloc\w{0,40}\s?(?:<[^<>()]{0,100}>\s?)?\(")
_MOST_ELEMENTS = 32
"""Of an array that a function returns."""
_ELEMENT = re.compile(r"\[(\w+)\]\Z")
_LOOP = re.compile(r"\bfor\s?\([^;{}]{0,400};[^;{}]{0,400};([^;{}]{0,400})\)\s?\Z")
_LONGEST_HEADER = 400
_REFERENCE = re.compile(
    rf"\*\s?(?:const\s?)?&\s?({_NAME})\s?=\s?({_NAME})\s?;|\*\s?\*\s?({_NAME})\s?=\s?&\s?({_NAME})\s?;"
)
_RENAMED = re.compile(rf"[&*](?:(?<=[\w>].)|(?<=[\w>]\s.))\s?({_NAME})\s?=\s?({_NAME})\s?;")
_VIEW = re.compile(
    rf"\A({_NAME})\s?(?:\.|->)\s?(?:(?P<part>narrow|slice|select)|(?P<copy>contiguous|reshape|flatten|to)"
    r"|view|view_as|squeeze|unsqueeze|expand|expand_as|transpose|permute|t|detach)\s?\("
)
_SWAPPED = re.compile(rf"\bswap\s?\(\s?({_NAME})\s?,\s?({_NAME})\s?\)")


@frozen
class Held:
    """What a pointer variable may hold, as text of the host.

    ``moved``: it, or what its value is made of, has changed since. ``lessened``: only sizes in it have, and
    each of these was divided.
    """

    values: tuple[str, ...]
    moved: bool = False
    lessened: bool = False


class HostPointers:
    """The pointer variables of one file."""

    def __init__(
        self,
        text: HostText,
        functions: HostFunctions,
        headers: Sequence[tuple[HostText, HostFunctions]] = (),
    ) -> None:
        self._asked: set[tuple[str, int, bool]] = set()  # in the middle of being told
        self._overwritten: Overwritten | None = None  # not asked before all that changes is known
        self._text = text
        self._functions = functions
        self._called = CalledPointers(text, functions, self, [(own, _told(t)) for t, own in headers])
        self._elsewhere: Elsewhere | None = None  # what calls store is not asked of it
        self._parts: tuple[int, Mapping[str, Sequence[str]]] = 0, {}
        self._named: dict[str, str] = {}  # where cursors stood, by names of their own
        self._structures: dict[str, list[Field] | None] = {}
        self._braces = text.braces
        self._plain = plain = text.plain
        declared: dict[str, list[tuple[int, int]]] = {}
        values: dict[str, list[tuple[int, str]]] = {}
        spans: list[tuple[int, int]] = []
        for match in _DECLARED.finditer(plain):
            spans.append((match.start(), match.end()))
            for name, value in _declarators(match[1] or match[2]):
                declared.setdefault(name, []).append((match.end(), text.braces.end(match.end())))
                if value is not None:
                    values.setdefault(name, []).append((match.end(), value))
        begins = [begin for begin, _ in spans]
        for match in _ASSIGNED.finditer(plain):
            inside = bisect_right(begins, match.start()) - 1
            if inside < 0 or spans[inside][1] <= match.start():
                for name, value in _assigned(match[1], match[2]):
                    values.setdefault(name, []).append((match.end(), value))
        self._declared = declared
        self._values = {name: sorted(found) for name, found in values.items()}
        self._renamed = {(match[1], match[2]) for match in _RENAMED.finditer(plain)}
        self._typed = {(match[2], match[1]) for match in _DECLARED_AS.finditer(plain)}
        self._moved = _places_of(_MOVED, plain)
        self._lessened = _places_of(_LESSENED, plain)
        lists = [match.span() for match in pointer_lists(plain, 0, len(plain))]
        self._lent: Mapping[str, Sequence[int]] = {}
        self._symbols = by_name(_SYMBOL, plain)
        self._records: dict[str, list[re.Match[str]]] = {}
        for match in _RECORD.finditer(plain):
            self._records.setdefault(match["name"], []).append(match)
        self._types: dict[str, set[str]] = {}
        for match in _TYPED.finditer(plain):
            self._types.setdefault(match[2], set()).add(match[1])
        self._swapped: dict[str, list[int]] = {}
        for match in _SWAPPED.finditer(plain):
            for name, other in (match.groups(), match.groups()[::-1]):
                self._swapped.setdefault(name, []).append(match.start())
                self._values.setdefault(name, []).append((match.end(), other))
        for name, found in self._symbols.items():
            self._values.setdefault(name, []).extend((match.end(), match[2]) for match in found)
        self._lead_on(plain)
        self._pass_to_lambdas()
        for name, place, value in listed_pointers(text, functions):
            self._values.setdefault(name, []).append((place, value))
        self._filled = list(self._called.filled())
        for store in self._filled:
            self._values.setdefault(store.target, []).append((store.place, store.value))
        for found in self._values.values():
            found.sort()
        for name, places in functions.lent((functions, *(own for _, own in headers))).items():
            told = [store.lent for store in self._filled if store.target == name]
            moved = [p for p in places if not any(begin <= p < end for begin, end in told)]
            self._moved[name] = sorted({*self._moved.get(name, ()), *moved})
        self._elsewhere = Elsewhere(
            text, functions, self._called.classes, self._stores, self._called.is_of, self
        )
        self._lent = _places_of(_LENT, plain, sorted({*lists, *(store.lent for store in self._filled)}))
        self._cursors = Cursors(text, self._moved)
        self._overwritten = Overwritten(text, functions, self._changes)

    def _lead_on(self, plain: str) -> None:
        """What is stored through a reference (``T*& r = p; r = q;``), or a pointer (``T** r = &p; *r = q;``),
        to a variable is one of its values."""
        for match in _REFERENCE.finditer(plain):
            begin, end, name = match.end(), self._braces.end(match.end()), match[1] or match[3]
            stored = [(p, value) for p, value in self._values.get(name, ()) if begin < p <= end]
            through = re.compile(rf"(?<=[;{{}}])\s?\*\s?{name}\s?=(?!=)\s?([^;{{}}]{{1,200}});")
            stored += [(m.end(), m[1]) for m in through.finditer(plain, begin, end)] if match[3] else []
            self._values.setdefault(match[2] or match[4], []).extend(stored)

    def _pass_to_lambdas(self) -> None:
        """What a lambda with a name is called with, its parameters hold; not those that hide other names."""
        for function in itertools.chain.from_iterable(self._called.lambdas.values()):
            around = self._functions.around(function.begin)
            if around is None:
                continue
            called = re.compile(rf"(?<![\w.>:]){function.name}\s?\(")
            hidden = {own for own, _ in around.parameters}
            for call in called.finditer(self._plain, function.end, around.end):
                closing = self._text.closing(call.end() - 1)
                passed = split_arguments(self._plain[call.end() : closing]) if closing > 0 else []
                for (name, _), value in zip(function.parameters, passed, strict=False):
                    declared = any(begin <= function.begin for begin, _ in self._declared.get(name, ()))
                    if name not in hidden and not declared:
                        self._values.setdefault(name, []).append((function.body + 1, value.strip()))

    def held(self, name: str, at: int, cursors: bool = True) -> Held | None:
        """What the variable may hold at a place; None: nothing is known of it.

        ``cursors``: their steps are followed, which tells something within one execution of a function.
        """
        with self._telling((name, at, cursors)) as begun:
            return None if begun else self._held(name, at, cursors)

    @contextmanager
    def _telling(self, asked: tuple[str, int, bool]) -> Generator[bool]:
        """Whether this is being told already: then it is made of itself, and not known."""
        if asked in self._asked:
            yield True
            return
        self._asked.add(asked)
        try:
            yield False
        finally:
            self._asked.discard(asked)

    def _held(self, name: str, at: int, cursors: bool) -> Held | None:
        if name in self._named:
            return Held((self._named[name],))
        if name.endswith("()"):
            told = [value for value in self._called.returned(name) if value != name] or self._viewed(name, at)
            return Held(tuple(told)) if told else None
        scope = self._scope(name, at)
        first, last = self._in_function(scope, at)
        own = [(p, value) for p, value in self._values.get(name, ()) if first <= p <= last]
        own = [x for x in own if self._scope(name, x[0]) == scope] or own  # not of one that hides it
        own = [(p, value) for p, value in own if p < at or not self._is_of_a_round(name, at, p)]
        gone = self._gone(name, [p for p, _ in own], at)
        own = [(p, value) for p, value in own if p not in gone]
        own, lent = self._lent_beside(name, own, scope, at)
        found = {value: p for p, value in own if p > at or self._text.may_come_to(p, at)}
        found = found or dict.fromkeys(self._of_record(name, at), at)
        found = found or dict.fromkeys(self._of_element(name, at, scope), at)
        if (not found or (lent and not own)) and self._elsewhere is not None:
            found = dict.fromkeys(self._elsewhere.values(name, at), at)
        elif lent and not own:
            return None
        found = {made: p for value, p in found.items() for made in self._returned(value)}
        stood = self._stood(name, at, at) if cursors else None
        if stood is not None:
            return Held((stood,))
        if not found or self._has_own_pointers(name, at):
            return None
        found = {self._as_stored(value, p): p for value, p in found.items()}
        if cursors:
            found = {self._as_stood(value, p, at): p for value, p in found.items()}
        several = (*found, "") if lent or _within(self._swapped.get(name), scope) else tuple(found)
        named = [(word, p) for value, p in found.items() for word in _WORD.findall(value)]
        changes = [(word, place) for word, p in named for place in self._changes(word, p, at)]
        moved = _within(self._moved.get(name), scope)
        lessened = not moved and all(place in self._lessened.get(word, ()) for word, place in changes)
        return Held(several, bool(changes) or moved, bool(changes) and lessened)

    def _viewed(self, getter: str, at: int) -> Sequence[str]:
        """Where a tensor's elements are that was made of another: ``y.data()`` of ``y = x.view(n)``.

        "": or elsewhere, as of ``y = x.contiguous()``.
        """
        name, dot, rest = getter.partition(".")
        made = self.once_held(name, at) if dot and name.isidentifier() else None
        if made is not None and (name, made) in self._renamed:
            return (f"{made}.{rest}",)
        view = _VIEW.match(made) if made is not None else None
        if view is None or view[1] == name:
            return ()
        whole = f"{view[1]}.{rest}"
        return (f"{whole} + {MOVED}",) if view["part"] else (whole, "") if view["copy"] else (whole,)

    def _has_own_pointers(self, name: str, at: int) -> bool:
        """Whether a record, which may be another one's copy, has been given all its pointers anew.

        Each to memory that the function allocates.
        """
        function = self._functions.around(at) if self._parts_of().get(name) else None
        if function is None or not name.isidentifier():
            return False
        made = list(re.finditer(_OBJECT.format(name), self._plain[function.body : at]))
        owners = self._called.classes_named(made[0][1]) if len(made) == 1 else ()
        fields = {f"{name}.{field}" for owner in owners for field in owner.pointers}
        return bool(fields) and all(self._is_allocated(field, at) for field in fields)

    def _is_allocated(self, name: str, at: int) -> bool:
        """Whether what a function stored last, on every way, is memory that it allocates."""
        if self._overwritten is None:
            return False
        sure = [v for p, v in self._values.get(name, ()) if self._overwritten.surely(name, p, at)]
        owner = _OWNER.match(sure[-1]) if sure else None
        given = sure[-1:] if owner is None else [value for _, value in self._values.get(owner[1], ())]
        return bool(given) and all(map(_ALLOCATES.match, given))

    def _gone(self, name: str, stores: Sequence[int], at: int) -> frozenset[int]:
        """Those stores to a function's own variable that others have replaced at a place."""
        declared = self._declared.get(name, ())
        local = is_local(declared, self._functions.around(at), at)
        if len(stores) < 2 or not local or self._overwritten is None:
            return frozenset()
        return self._overwritten.before(name, stores, at)

    def _lent_beside(
        self, name: str, stores: Sequence[tuple[int, str]], scope: tuple[int, int], at: int
    ) -> tuple[Sequence[tuple[int, str]], bool]:
        """Of stores to a variable those that no allocation has replaced since (``cudaMalloc(&p, n)``), and
        whether it may hold what somebody stored to whom it was lent.

        Of a variable that is lent at all, and not a function's own, and of fields no store is told.
        """
        root = re.split(r"[.\-\[]", name, maxsplit=1)[0]
        if not _within(self._lent.get(root), scope):
            return stores, False
        function = self._functions.around(at)
        local = is_local(self._declared.get(name, ()), function, at)
        passed = function is not None and any(name == own for own, _ in function.parameters)
        if root != name or not (local or passed) or self._overwritten is None:
            return (), True
        lends = [p for p in _those_within(self._lent[name], scope) if self._text.may_come_to(p, at)]
        made = [
            p for p in lends if p < at and self._allocates_at(p) and self._overwritten.surely_called(p, at)
        ]
        kept = [(p, value) for p, value in stores if not any(p < lend for lend in made)]
        sure = [p for p, _ in kept if self._overwritten.surely(name, p, at)]
        return kept, not sure or any(max(sure) < lend for lend in lends)

    def _allocates_at(self, lent: int) -> bool:
        """Whether a variable is lent there to who allocates memory for it."""
        head = self._plain[max(0, lent - _LONGEST_NAME) : lent]
        return self._plain[lent] == "(" and _ALLOCATING.search(head) is not None

    def _stood(self, name: str, place: int, at: int) -> str | None:
        """Where a local cursor stood at a place, in words that mean the same at ``at``."""
        function = self._functions.around(at)
        scope = self._scope(name, place)
        steps = self._cursors.steps(name, scope) if _within(self._moved.get(name), scope) else None
        if not steps or _within(self._lent.get(name), scope):
            return None
        block = self._braces.begin(steps[0][0])
        stores = [(p, value) for p, value in self._values.get(name, ()) if scope[0] <= p <= scope[1]]
        if function is None or not (stores or any(name == own for own, _ in function.parameters)):
            return None  # other functions may move it, too
        begun, value = stores[0] if len(stores) == 1 else (scope[0], start_of(name))
        in_block = self._braces.begin(place) == block and (not stores or self._braces.begin(begun) == block)
        if len(stores) > 1 or not in_block or begun > min(place, steps[0][0]):
            return None
        parts = [(begun, value), *((p, by) for p, by in steps if p < place)]
        if any(
            word != name and any(self._changes(word, p, at)) for p, by in parts for word in _WORD.findall(by)
        ):
            return None
        return " + ".join((value, *(f"({by})" for _, by in parts[1:])))

    def _as_stored(self, value: str, place: int) -> str:
        """A variable that stands for several buffers in turn (``t = a; a = b; b = t; t = c; …``), where one
        of its stores is what a place surely sees: a name of its own for what that is."""
        name = value.strip()
        every = self._values.get(name, ()) if name.isidentifier() else ()
        stores = [(p, v) for p, v in every if p < place]
        if len(every) < 2 or not stores or self._overwritten is None:
            return value
        begun, given = stores[-1]
        changes = (self._lent.get(name, ()), self._moved.get(name, ()))
        stays = not any(_those_within(places, (begun + 1, place - 1)) for places in changes)
        if not stays or not self._overwritten.surely(name, begun, place):
            return value
        changed = any(True for word in _WORD.findall(given) for _ in self._changes(word, begun, place))
        named = at_place(name, place)
        self._named[named] = f"{given} + {MOVED}" if changed else given
        return named

    def _as_stood(self, value: str, place: int, at: int) -> str:
        """A value with where its cursors stood; the one that it begins with has a name of its own there."""
        base = BASE.match(value)

        def word(match: re.Match[str]) -> str:
            stood = self._stood(match[0], place, at)
            if stood is None:
                return match[0]
            if base is None or match.start() != base.start(1):
                return f"({stood})"
            named = at_place(match[0], place)
            self._named[named] = stood
            return named

        return WORD.sub(word, value)

    def _returned(self, value: str) -> list[str]:
        """What a call may return: one that is lent a pointer, and is not followed, a place in its buffer."""
        made, call = self._called.returned(value), _LENDING.match(value)
        unknown = made == [value] or all(_OWN.match(text) for text in made)
        if call is None or not unknown or call[1] not in self._declared:
            return made
        return [f"{call[1]} + {MOVED}"]

    def _in_function(self, scope: tuple[int, int], at: int) -> tuple[int, int]:
        """What of a variable's scope is in the function around a place; of what is elsewhere others tell."""
        function = self._functions.around(at) if self._elsewhere is not None else None
        if function is None:
            return scope
        return max(scope[0], function.body), min(scope[1], function.end)

    def _stores(self) -> Iterator[tuple[str, int, str]]:
        """What is assigned: to what, where, and what; by calls only what they alone tell."""
        told = {(store.target, store.place) for store in self._filled if store.written}
        for name, found in self._values.items():
            yield from ((name, place, value) for place, value in found if (name, place) not in told)

    def elements(self, name: str, at: int) -> Iterator[tuple[str | int, str]]:
        """What the first elements of an array hold at a place, by position."""
        for index in range(_MOST_ELEMENTS):
            value = self.only_value(f"{name}[{index}]", at) if f"{name}[{index}]" in self._values else None
            if value is None:
                return
            yield index, value

    def _of_element(self, name: str, at: int, scope: tuple[int, int]) -> Iterator[str]:
        """What an element of an array holds that a loop fills, or a call returns."""
        element = _ANY_ELEMENT.match(name)
        if element is None:
            return
        array, at_index = element[1] or element[3], element[2] or ("01"[element[4] == "second"])
        for key in self._elements.get(array, ()):
            index = _ELEMENT.search(key)
            for place, value in self._values[key] if index is not None else ():
                if scope[0] <= place <= min(scope[1], at) and index is not None:
                    yield re.sub(rf"\b{index[1]}\b", f"({at_index})", value)
        made = self.once_held(array, at) if at_index.isdigit() and array in self._values else None
        record = parts_of_record(made) if made is not None else None
        if record is not None and int(at_index) < len(record[1]):
            yield record[1][int(at_index)][1].strip()

    @cached_property
    def _elements(self) -> Mapping[str, Sequence[str]]:
        """The names of arrays' elements that a variable numbers, by array."""
        found: dict[str, list[str]] = {}
        for key in self._values:
            index = _ELEMENT.search(key)
            if index is not None and not index[1].isdigit():
                found.setdefault(key[: index.start()], []).append(key)
        return found

    @property
    def text(self) -> HostText:
        """The file."""
        return self._text

    @cached_property
    def filled_together(self) -> Sequence[Sequence[Filled]]:
        """What a call stores in several fields of an object, for each call that does."""
        found: dict[tuple[int, int], list[Filled]] = {}
        for store in self._filled:
            if field_of(store.target)[0]:
                found.setdefault(store.lent, []).append(store)
        return [stores for stores in found.values() if len(stores) > 1]

    def is_field_of(self, place: str, at: int, store: Filled) -> bool:
        """Whether a field that a function names may be the one that a call stores to: of that class."""
        (object, field), (other, stored) = field_of(place), field_of(store.target)
        function = self._functions.around(at)
        if field != stored or function is None:
            return False
        if object in ("", "this"):
            owner = self._called.classes.of(function)
            return owner is not None and owner.name == store.owner
        is_of = self._called.is_of
        owners = [store.owner] if store.owner else [c for c in self._called.classes.named if is_of(other, c)]
        return any(is_of(object, owner) for owner in owners)

    def body_of(self, function: HostFunction) -> str:
        """The text of a function."""
        return self._plain[function.body : function.end]

    def changed(self, name: str, at: int) -> tuple[tuple[int, ...], bool]:
        """Where a function's variable had something stored to it before; whether it ever moves."""
        first, last = self._scope(name, at)
        stores = [place for place, _ in self._values.get(name, ())]
        before = [p for places in (stores, self._lent.get(name, ())) for p in places if first <= p <= at]
        return tuple(sorted(before)), _within(self._moved.get(name), (first, last))

    def symbol(self, name: str, at: int) -> str | None:
        """The variable of the device whose address it was last given before a place."""
        found = [match for match in self._symbols.get(name, ()) if match.start() < at]
        return found[-1][2] if found and self._braces.end(found[-1].start()) >= at else None

    def fields(self, name: str, at: int) -> Sequence[tuple[str | int, str]]:
        """What fields of a record may hold at a place: by name, or by position where it is made."""
        with self._telling((f"{name}.", at, False)) as begun:
            return () if begun else tuple(self._fields(name, at))

    def _fields(self, name: str, at: int) -> Iterator[tuple[str | int, str]]:
        made = [m for m in self._records.get(name, ()) if m.end() <= at <= self._braces.end(m.start())]
        if made:
            yield from _parts(f"{{{made[-1]['parts']}}}")
        first, last = self._scope(name, at)
        for place, value in self._values.get(name, ()):
            if first <= place <= min(last, at):
                yield from itertools.chain.from_iterable(map(_parts, self._called.returned(value)))
        for field in self._parts_of().get(name, ()):
            values = self._values[f"{name}.{field}"]
            yield from ((field, v) for p, v in values if first <= p <= min(last, at))

    def _parts_of(self) -> Mapping[str, Sequence[str]]:
        """What is said of parts of a name, ``a`` of ``a.b.c`` and ``a.b``: ``b.c``, ``c``."""
        if self._parts[0] != len(self._values):  # calls and lists still add some
            found: dict[str, list[str]] = {}
            for key in self._values:
                for dot in re.finditer(r"\.", key):
                    found.setdefault(key[: dot.start()], []).append(key[dot.end() :])
            self._parts = len(self._values), found
        return self._parts[1]

    @property
    def called(self) -> CalledPointers:
        """What the functions of the file make of pointers."""
        return self._called

    def returned(self, text: str) -> list[str]:
        """What a call may return, in the caller's words; the text itself where it is no call of this file."""
        return self._called.returned(text)

    def structure(self, type_: str) -> list[str]:
        """The names of a plain structure's fields, in order; of others none."""
        if type_ not in self._structures:
            self._structures[type_] = fields_of(self._text, type_)
        return [name for name, _ in self._structures[type_] or []]

    def fields_by_call(self, name: str, at: int) -> Iterator[str]:
        """The fields of a variable that one call made, and that only its fields' names are used of since."""
        first, last = self._scope(name, at)
        made = [(p, value) for p, value in self._values.get(name, ()) if first <= p <= min(last, at)]
        if len(made) != 1 or any(store.target.startswith(f"{name}.") for store in self._filled):
            return
        (place, value), values = made[0], self._called.returned(made[0][1])
        record = parts_of_record(values[0]) if len(values) == 1 and values[0] != value else None
        if record is None or writes_to_record(self._plain, name, place, at + 1) is None:
            return
        names = self.structure(record[0] or next(self._types_of(name), ""))
        for key, _ in record[1]:
            if isinstance(key, str) or key < len(names):
                yield key if isinstance(key, str) else names[key]

    def only_value(self, name: str, at: int) -> str | None:
        """The one value of a variable at a place, which nothing has changed since."""
        held = self.held(name, at, cursors=False)
        return held.values[0] if held is not None and len(held.values) == 1 and not held.moved else None

    def from_where(self, name: str, at: int) -> str | None:
        """A place in the buffer that the one value of a variable is in, however it moved since.

        What took another's place, and was not moved, stands where that was.
        """
        held = self.held(name, at, cursors=False)
        before = BASE.match(held.values[0]) if held is not None and len(held.values) == 1 else None
        if held is None or before is None or before[1] == name:
            return None
        stays = held.values[0].strip() == before[1] and not self.changed(before[1], at)[1]
        return before[1] if stays and not self.changed(name, at)[1] else f"{before[1]} + {MOVED}"

    def once_held(self, name: str, at: int) -> str | None:
        """The one value that a variable was given, which may have changed since."""
        held = self.held(name, at, cursors=False)
        return held.values[0] if held is not None and len(held.values) == 1 else None

    def _of_record(self, name: str, at: int) -> Iterator[str]:
        """What a field of a record is made of."""
        record, dot, field = name.partition(".")
        if not dot or not record.isidentifier():
            return
        fields = [known for type_ in self._types_of(record) for known in self.structure(type_)]
        for key, value in self.fields(record, at):
            if key == field or (isinstance(key, int) and fields[key : key + 1] == [field]):
                yield value

    def _types_of(self, record: str) -> Iterator[str]:
        """The structures that a variable of this name may be."""
        named = {m["type"] for m in self._records.get(record, ())} | {
            t for n, t in self._typed if n == record
        }
        for value in (v for _, v in self._values.get(record, ()) if "auto" in named):
            named |= {made[0] for text in self.returned(value) if (made := parts_of_record(text)) and made[0]}
        known = [type_ for type_ in named if self.structure(type_)]
        yield from known if len(known) == 1 else []

    def type_of(self, name: str) -> str | None:
        """What it points to, where all declarations of the name agree."""
        found = self._types.get(name, set())
        return next(iter(found)) if len(found) == 1 else None

    def _changes(self, name: str, begin: int, end: int) -> Iterator[int]:
        """Where the variable may change between two places."""
        stores = [place for place, _ in self._values.get(name, ())]
        lists = (stores, self._moved.get(name, ()), self._lent.get(name, ()))
        between = (place for places in lists for place in _those_within(places, (begin + 1, end - 1)))
        return (place for place in between if self._text.may_come_to(place, end))

    def _is_of_a_round(self, name: str, begin: int, end: int) -> bool:
        """Whether it is an element whose number counts the rounds of a loop around both places.

        What one round writes to it behind a place, no other reads there.
        """
        index = _ELEMENT.search(name)
        brace = self._braces.begin(begin) if index is not None else -1
        while index is not None and brace >= 0:
            header = _LOOP.search(self._plain, max(0, brace - _LONGEST_HEADER), brace)
            if header is not None and self._braces.closing.get(brace, -1) >= end:
                return re.search(rf"\+\+\s?{index[1]}\b|\b{index[1]}\s?(?:\+\+|\+=)", header[1]) is not None
            brace = self._braces.begin(brace - 1)
        return False

    def _scope(self, name: str, at: int) -> tuple[int, int]:
        """Where the visible declaration holds; of other names the whole function."""
        for begin, end in reversed(self._declared.get(name, ())):
            if begin <= at <= end:
                return begin, end
        body = brace = self._braces.begin(at)
        while brace >= 0:  # the outermost block that parameters, or a condition, stand before
            if self._plain[max(0, brace - 2) : brace].rstrip()[-1:] == ")":
                body = brace
            brace = self._braces.begin(brace - 1)
        return body, self._braces.closing.get(body, at)


def _told(text: HostText) -> Callable[[], CalledPointers]:
    """Who tells what the functions of a header do: made when one is called, once for all who include it."""
    return lambda: text.kept(_called_alone)


def _called_alone(text: HostText) -> CalledPointers:
    return HostPointers(text, text.kept(HostFunctions)).called


def _parts(text: str) -> list[tuple[str | int, str]]:
    made = parts_of_record(text)
    return made[1] if made is not None else []


def _declarators(text: str) -> Iterator[tuple[str, str | None]]:
    for part in split_arguments(text):
        match = _DECLARATOR.match(part.strip())
        if match is not None:
            yield match[1], match[2] or match[3]


def _assigned(name: str, value: str) -> Iterator[tuple[str, str]]:
    """What an assignment gives to whom: of ``a = b = c`` both the last."""
    *others, last = _CHAINED.split(value)
    for target in (name, *others):
        yield target.replace(" ", ""), last


def _within(places: Sequence[int] | None, scope: tuple[int, int]) -> bool:
    return bool(places) and bool(_those_within(places, scope))


def _those_within(places: Sequence[int], scope: tuple[int, int]) -> Sequence[int]:
    return places[bisect_left(places, scope[0]) : bisect_right(places, scope[1])]


def _places_of(
    pattern: re.Pattern[str], plain: str, but: Sequence[tuple[int, int]] = ()
) -> dict[str, list[int]]:
    """Where a file changes each name; ``but``: stretches that are not looked at."""
    found: dict[str, list[int]] = {}
    for match in pattern.finditer(plain):
        index = bisect_right(but, match.start(), key=lambda span: span[0]) - 1
        if index >= 0 and match.start() < but[index][1]:
            continue
        for name in filter(None, match.groups()):
            found.setdefault(name, []).append(match.start())
    return found
