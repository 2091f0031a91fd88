"""What functions of a file make of pointers that they are handed: ``part(d, n)``, ``carve(d, n, &a, &b)``.

Read from text, in the caller's words: parameters are replaced by arguments, variables of the function by what
they hold, fields of its object by those of the caller's. What else is a function's own, or changes from call
to call, is written like a call, of which nobody knows what it gives: a pointer into a buffer stays one into
that buffer, however far.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Protocol

from attrs import frozen

from cuda_lsp.frontend.host.expressions import (
    MOVED,
    PLAIN,
    WORD,
    bracketed,
    declaration,
    designated,
    leads,
    parts_of_record,
)
from cuda_lsp.frontend.host.host_classes import Constructor, HostClass, HostClasses
from cuda_lsp.frontend.host.host_functions import HostFunction, HostFunctions
from cuda_lsp.frontend.host.lambdas import lambdas_of
from cuda_lsp.frontend.host.text import FURTHEST, HostText, closings, whole_arguments

_NAME = r"[A-Za-z_]\w*"
_CALL = re.compile(rf"\A(?:{_NAME}\s?::\s?)*({_NAME})\s?(?:<[^<>;(){{}}]{{0,200}}>\s?)?\(")
_CHOSEN = re.compile(r"\A(?:std\s?::\s?)?get\s?<\s?(\d)\s?>\s?\(")
_SEVERAL = re.compile(
    r"\A(?:std\s?::\s?)?(?:make_tuple|make_pair)\s?\(|\Astd\s?::\s?(?:tuple|pair)\s?(?:<[^;{}]*>)?\("
)
_RETURN = re.compile(r"\breturn\b\s?([^;]{1,1000});")
_STORE = re.compile(
    rf"(?<=[;{{}}])\s?(?:\*\s?(?P<at>{_NAME})|(?P<record>{_NAME})\s?->\s?(?P<field>{_NAME})"
    rf"|(?P<reference>{_NAME})(?:\s?\.\s?(?P<part>{_NAME}))?"
    rf"|(?P<list>{_NAME})\s?\[\s?(?P<index>\w+)\s?\])\s?=(?!=)\s?(?P<value>[^;{{}}]{{1,200}});"
)
_OBJECT = rf"{_NAME}(?:\s?(?:\.|->)\s?{_NAME}(?!\s?\(|\w)|\s?\[[^\[\]]{{0,100}}\]){{0,6}}"
_MEMBER_CALL = re.compile(
    rf"\A((?:(?:{_NAME}\s?::\s?)+{_NAME}\s?\(\s?\))|{_OBJECT})\s?(\.|->)\s?(?:template\s)?({_NAME})\s?(?:<[^<>;(){{}}]{{0,200}}>\s?)?\("
)
_OPERATED = re.compile(rf"\A({_NAME}(?:(?:\.|->){_NAME})*)\s?(\[|\+)([^\[\];]+\]?)\Z")
_OF_OBJECT = re.compile(rf"(?<![\w.>)\]])({_OBJECT})\s?(\.|->)\s?\Z")
_OWN = re.compile(r"\bthis\s?->\s?")
_ELSEWHERE = re.compile(r"\b[A-Za-z_]\w{0,100}?__\d{1,12}__\d{1,6}\b")
"""What the function that stored it calls its own, in an object that nobody named there."""
_WORD_OR_GETTER = re.compile(rf"(?<![\w.>:])(?P<getter>{_NAME})\s?\(\s?\)|{WORD.pattern}")
_CONSTRUCTED = (
    r"(?<![\w.>]){name}(?:\s?<[^<>;{{}}()]{{0,100}}>)?\s([A-Za-z_]\w*)\s?([({{])"
    r"|(?<![\w.>])([A-Za-z_]\w*)\s?=\s?(?:(new)\s)?(?:[\w:]*(?:make_unique|make_shared)\s?<\s?)?"
    r"{name}(?:\s?<[^<>;{{}}()]{{0,100}}>)?(\s?>)?\s?([({{])"
)
_ANOTHER = re.compile(rf"\s?,\s?({_NAME})\s?[({{]")
_MEMBER_STORE = re.compile(
    rf"(?<=[;{{}})])\s?(?P<this>this\s?->\s?)?(?P<field>{_NAME})\s?=(?!=)\s?(?P<value>[^;{{}}]{{1,200}});"
)
_DEVICE = re.compile(r"__(?:device|global)__")
_HEAD = 200
"""Characters before a function's name in which its attributes stand."""
_MOST_CALLS = 4
"""Functions that call one another."""
_MOST_RETURNS = 8


@frozen
class Store:
    """``*p = value`` or ``p->field = value`` through the parameter at a position, or to a reference."""

    position: int
    field: str | None
    value: str
    place: int
    pointer: bool

    def target(self, argument: str) -> str | None:
        """Which variable of the caller, or which field of one, it is stored to; None: nobody knows."""
        argument = argument.strip()
        if self.field is not None and self.field.startswith("["):
            return f"{argument}{self.field}" if PLAIN.match(argument) else None
        lent = argument.startswith("&")
        name = argument.removeprefix("&").strip()
        if (
            not PLAIN.match(name)
            or (lent and not self.pointer)
            or (self.pointer and not (lent or self.field))
        ):
            return None
        through = "->" if self.pointer and not lent else "."
        return f"{name}{through}{self.field}" if self.field else name


@frozen
class Filled:
    """What a call stores through one of its arguments: into ``target``, behind ``place``.

    ``lent``: where the argument stands. ``written``: the function names the field that it stores to.
    ``owner``: the class whose field it is; "": the text does not tell.
    """

    target: str
    value: str
    place: int
    lent: tuple[int, int]
    written: bool = True
    owner: str = ""


class Holds(Protocol):
    """What variables hold, as text; ``HostPointers`` answers."""

    def only_value(self, name: str, at: int) -> str | None:
        """The one value of a variable at a place."""
        ...

    def from_where(self, name: str, at: int) -> str | None:
        """A place in the buffer that the one value of a variable is in, however it moved since."""
        ...

    def type_of(self, name: str) -> str | None:
        """What a variable points to."""
        ...

    def fields(self, name: str, at: int) -> Iterable[tuple[str | int, str]]:
        """What fields of a record may hold at a place: by name, or by position where it is made."""
        ...

    def elements(self, name: str, at: int) -> Iterator[tuple[str | int, str]]:
        """What the first elements of an array hold at a place, by position."""
        ...


@frozen
class _Callee:
    """What is called: a function, of an object that its caller writes as ``this`` (with what follows it)."""

    parameters: Sequence[tuple[str, str]]
    body: int
    end: int
    owner: HostClass | None = None
    this: str = ""


class CalledPointers:
    """The functions that one file knows, as far as they hand pointers on.

    ``headers``: the functions of what it includes, and who tells what they do.
    """

    def __init__(
        self,
        text: HostText,
        functions: HostFunctions,
        holds: Holds,
        headers: Sequence[tuple[HostFunctions, Callable[[], CalledPointers]]] = (),
    ) -> None:
        self._plain = text.plain
        self._text = text
        self._functions = functions
        self._holds = holds
        self._known = ((functions, lambda: self), *headers)
        self.classes = HostClasses(text, functions)
        self.lambdas = lambdas_of(text)
        self._returned: dict[tuple[str, int], list[str]] = {}
        self._of_class: dict[tuple[str, str], bool] = {}

    def returned(self, text: str, calls: int = _MOST_CALLS) -> list[str]:
        """What a call may return, in the caller's words; the text itself where it is no call of these."""
        asked = text.strip(), calls
        if asked not in self._returned:
            self._returned[asked] = self._return(*asked)
        return list(self._returned[asked])

    def _return(self, text: str, calls: int) -> list[str]:
        chosen = _CHOSEN.match(text)
        if chosen is not None and calls and _closed(text, chosen.end() - 1):
            made = [parts_of_record(value) for value in self.returned(text[chosen.end() : -1], calls - 1)]
            index = int(chosen[1])
            return [m[1][index][1].strip() for m in made if m is not None and index < len(m[1])] or [text]
        several = _SEVERAL.match(text)
        if several is not None and _closed(text, several.end() - 1):
            return [f"{{{text[several.end() : -1]}}}"]
        written = self._expanded(text) if calls else None
        if written is not None:
            return self.returned(written, calls - 1)
        operated = list(self._operated(text)) if calls else []
        if operated:
            return [value for said in operated for value in self.returned(said, calls - 1)]
        values = (v for said in self._by_call(text) for v in self.returned(said, calls - 1)) if calls else ()
        return list(itertools.islice(dict.fromkeys(values), _MOST_RETURNS)) or [text]

    def _by_call(self, text: str) -> Iterator[str]:
        """What the functions that a text calls return."""
        for pattern in (_CALL, _MEMBER_CALL):
            found = pattern.match(text)
            if found is None or not _closed(text, found.end() - 1):
                continue
            arguments = [a.strip() for a in whole_arguments(text[found.end() : -1])]
            if pattern is _CALL:
                callees = self._called(found[1], arguments)
            else:
                callees = iter(self._members(found[1], found[2], found[3], arguments))
            for told, callee in callees:
                yield from told.values(callee, arguments)
            return

    def _expanded(self, text: str) -> str | None:
        """What a macro of the file that is called like a function makes of an argument; None: it is none."""
        used = _CALL.match(text) if self._text.macros else None
        known = self._text.macros.get(used[1], ()) if used is not None else ()
        if (
            used is None
            or len(known) != 1
            or known[0].parameters is None
            or not _closed(text, used.end() - 1)
        ):
            return None
        return known[0].expanded(whole_arguments(text[used.end() : -1])).strip() or None

    def _operated(self, text: str) -> Iterator[str]:
        """What an operator of an object's class makes: ``a[n]``, ``a + n``."""
        used = _OPERATED.match(text) if self._operators else None
        for told, (sign, owner, made) in self._operators if used is not None else ():
            if used is not None and sign == used[2] and made.takes(1) and self.is_of(used[1], owner.name):
                argument = used[3].removesuffix("]") if sign == "[" else used[3]
                callee = _Callee(made.parameters, made.body, made.end, owner, f"{used[1]}.")
                yield from told.values(callee, [argument.strip()])

    @cached_property
    def _operators(self) -> Sequence[tuple[CalledPointers, tuple[str, HostClass, Constructor]]]:
        """The operators of all classes that are known."""
        telling = (told() for functions, told in self._known if functions.mention("operator"))
        return [(told, operator) for told in telling for operator in told.classes.operators]

    def _called(self, name: str, arguments: Sequence[str]) -> Iterator[tuple[CalledPointers, _Callee]]:
        """What a call without an object is of: a lambda of the file, else functions."""
        if name in self.lambdas:
            yield from ((self, _of(own)) for own in self.lambdas[name] if own.takes(len(arguments)))
            return
        for functions, told in self._known:
            for function in functions.named(name):
                if not function.member and function.takes(len(arguments)):
                    yield told(), _of(function)

    def _members(
        self, object: str, arrow: str, name: str, arguments: Sequence[str]
    ) -> list[tuple[CalledPointers, _Callee]]:
        """What a call of an object's function is of; nothing where that may be several classes'."""
        known = [
            (told(), function)
            for functions, told in self._known
            for function in functions.named(name)
            if function.member and function.takes(len(arguments))
        ]
        owned = [(t, f, o) for t, f in known if (o := t.classes.of(f)) is not None]
        typed = [each for each in owned if self.is_of(object, each[2].name)]
        chosen = typed or (owned if len({o.name for _, _, o in owned}) == 1 else [])
        named = re.sub(r"\W+", "_", object) if "(" in object else object  # of a class that has one object
        this = "" if object == "this" else f"{named}{arrow}"
        return [(t, _of(f, o, this)) for t, f, o in chosen]

    def is_of(self, object: str, name: str) -> bool:
        """Whether the file declares something of an object's name to be of a class."""
        last = re.split(r"\.|->", object)[-1].split("[")[0].strip()
        if (last, name) not in self._of_class:
            self._of_class[last, name] = self._declares(last, name)
        return self._of_class[last, name]

    def classes_named(self, name: str) -> list[HostClass]:
        """The classes of a name, one a text."""
        told = [told().classes.named for functions, told in self._known if functions.mention(name)]
        return [classes[name] for classes in told if name in classes]

    def _declares(self, last: str, name: str) -> bool:
        typed = rf"\b{name}(?:\s?<[^<>;{{}}]{{0,100}}>)?\s?(?:const\s?)?(?:[*&]|>|\s)\s?{last}\b"
        made = rf"\b{last}\s?=\s?(?:new\s)?(?:[\w:]+<\s?)?{name}\b"
        return re.compile(f"{typed}|{made}").search(self._plain) is not None

    def values(self, callee: _Callee, arguments: Sequence[str]) -> Iterator[str]:
        """What a function of this file returns, in its caller's words."""
        for match in _RETURN.finditer(self._plain, callee.body, callee.end):
            value, place = match[1].strip(), match.start()
            fields = list(self._holds.fields(value, place)) if value.isidentifier() else []
            fields = fields or (list(self._holds.elements(value, place)) if value.isidentifier() else [])
            if fields:
                value = "{" + ", ".join(designated(*field) for field in fields) + "}"
            yield self._said(value, callee, arguments, place)

    def filled(self) -> Iterator[Filled]:
        """What the calls of the file store through their arguments, and in their objects."""
        for functions, told in self._known:
            for name in self._functions.used():
                for function in functions.named(name):
                    if function.member:
                        yield from self._filled_members(function, told)
                    elif function.parameters:
                        yield from self._filled_by(function, told)
        for function in itertools.chain.from_iterable(self.lambdas.values()):
            yield from self._filled_by(function, lambda: self)
        for _, told in self._known:
            yield from self._constructed(told)

    def _filled_by(self, function: HostFunction, told: Callable[[], CalledPointers]) -> Iterator[Filled]:
        stores = list(told().stores(function))
        for call in self._functions.calls(function.name) if stores else ():
            arguments = [a.strip() for a in call.arguments]
            if not function.takes(len(arguments)) or call.begin <= function.closing < call.end:
                continue
            for store in stores:
                target = store.target(arguments[store.position] if store.position < len(arguments) else "")
                if target is not None:
                    said = told()._said(store.value, _of(function), arguments, store.place)
                    yield Filled(target, said, call.end, (call.begin, call.end), store.field is not None)

    def _filled_members(self, function: HostFunction, told: Callable[[], CalledPointers]) -> Iterator[Filled]:
        """What the calls of a member function make of their object's fields."""
        owner = told().classes.of(function)
        if owner is None or not owner.pointers:
            return
        stores = list(told().member_stores(owner, function.body, function.end, function.parameters))
        for call in self._functions.calls(function.name, member=True) if stores else ():
            object = _OF_OBJECT.search(self._plain, max(0, call.begin - _HEAD), call.begin)
            if object is None or not function.takes(len(call.arguments)):
                continue
            arguments = [a.strip() for a in call.arguments]
            chosen = self._members(object[1], object[2], function.name, arguments)
            callees = [c for _, c in chosen if c.body == function.body and c.owner == owner]
            for callee, store in itertools.product(callees, stores):
                said = told()._said(store.value, callee, arguments, store.place)
                span = call.begin, call.end
                yield Filled(f"{callee.this}{store.field}", said, call.end, span, owner=owner.name)

    def _constructed(self, told: Callable[[], CalledPointers]) -> Iterator[Filled]:
        """What constructors make of the fields of the file's variables."""
        classes = told().classes
        for name, owner in classes.named.items():
            made = classes.constructors(name) if owner.pointers else ()
            for call in self._functions.calls(name) if made else ():  # of an object without a name
                arguments = [a.strip() for a in call.arguments]
                for constructor in (c for c in made if self._suits(c, arguments)):
                    span = call.begin, call.end
                    yield from _made_by(told(), constructor, owner, f"{name}().", arguments, span)
            for match in re.compile(_CONSTRUCTED.format(name=name)).finditer(self._plain) if made else ():
                object = f"{match[1] or match[3]}{'->' if match[4] or match[5] else '.'}"
                at, begin = match.start(), match.end() - 1
                while (end := _closing_of(self._text, begin)) > 0:
                    arguments = [a.strip() for a in whole_arguments(self._plain[begin + 1 : end])]
                    for constructor in made:
                        if self._suits(constructor, arguments):
                            yield from _made_by(told(), constructor, owner, object, arguments, (at, end + 1))
                    another = _ANOTHER.match(self._plain, end + 1)
                    if another is None:
                        break
                    object, at, begin = f"{another[1]}.", another.start(1), another.end() - 1

    def constructs(
        self, constructor: Constructor, owner: HostClass, object: str, arguments: Sequence[str]
    ) -> Iterator[tuple[str, str]]:
        """What a constructor of this file makes of the pointers of an object, by field."""
        callee = _Callee(constructor.parameters, constructor.body, constructor.end, owner, object)
        first = constructor.body + 1
        stores = [(f, text, first) for f, text in constructor.initialisers if f in owner.pointers]
        inside = self.member_stores(owner, constructor.body, constructor.end, constructor.parameters)
        stores += [(s.field or "", s.value, s.place) for s in inside]
        for field, text, place in stores:
            yield field, self._said(text, callee, arguments, place)

    def _suits(self, constructor: Constructor, arguments: Sequence[str]) -> bool:
        """Whether it is the constructor of these arguments, as far as these tell that they are pointers."""
        if not constructor.takes(len(arguments)):
            return False
        for position, argument in enumerate(arguments):
            pointer = position in constructor.pointers
            known = argument.isidentifier() and self._holds.type_of(argument) is not None
            if (argument.isdigit() and pointer) or (known and not pointer):
                return False
        return True

    def member_stores(
        self, owner: HostClass, begin: int, end: int, parameters: Sequence[tuple[str, str]]
    ) -> Iterator[Store]:
        """What a member function stores in the pointers of its object."""
        names = {name for name, _ in parameters}
        for match in _MEMBER_STORE.finditer(self._plain, begin, end):
            if match["field"] in owner.pointers and (match["this"] or match["field"] not in names):
                yield Store(0, match["field"], match["value"].strip(), match.start(), pointer=False)

    def stores(self, function: HostFunction) -> Iterator[Store]:
        """What a function of the host stores through its parameters."""
        names = [name for name, _ in function.parameters]
        if self._is_device(function):
            return
        for match in _STORE.finditer(self._plain, function.body, function.end):
            reference = match["reference"]
            name = reference or match["at"] or match["record"] or match["list"]
            if name not in names or (reference and names.index(name) not in function.references):
                continue  # a copy of the function's own
            field = match["field"] or match["part"]
            value = match["value"].strip()
            index = f"[{match['index']}]" if match["list"] else None
            yield Store(names.index(name), index or field, value, match.start(), not reference)

    def _is_device(self, function: HostFunction) -> bool:
        """Whether it is no function of the host."""
        first = max(0, function.opening - _HEAD)
        first = max(first, *(self._plain.rfind(c, first, function.opening) for c in ";}"))
        head = self._plain[first : function.opening]
        return _DEVICE.search(head) is not None and "__host__" not in head

    def _said(self, text: str, callee: _Callee, arguments: Sequence[str], place: int) -> str:
        """An expression of a function as its caller would write it."""
        given = [*arguments, *(default for _, default in callee.parameters[len(arguments) :])]
        known = dict(zip((name for name, _ in callee.parameters), given, strict=False))
        own = self._plain[callee.body : callee.end]
        owner = callee.owner
        fields = owner.fields if owner is not None else ()
        getters = owner.getters if owner is not None else ()

        def word(match: re.Match[str], steps: int = _MOST_CALLS) -> str:
            name, first = match[0], leads(match)
            if name in known:
                return bracketed(known[name], first)
            value = self._holds.only_value(name, place) if steps else None
            if value is None and steps:
                value = self._holds.from_where(name, place)
            if value is not None and value != name:
                inner = WORD.sub(lambda m: word(m, steps - 1), _OWN.sub("", value.strip()))
                if callee.this and owner and name in fields and self._is_of_each(name, inner, owner, place):
                    return self._of_object(name, owner, callee.this, first)
                return bracketed(inner, first)
            declared = declaration(name, own)
            if declared is not None:
                return f"{name}__{callee.body}" if declared["static"] else f"{name}()"
            if owner is not None and name in fields:
                return self._of_object(name, owner, callee.this, first)
            return name

        def said(match: re.Match[str]) -> str:
            getter = match["getter"]
            if getter is None:
                return word(match)
            return f"{callee.this}{match[0]}" if getter in getters else match[0]

        return _WORD_OR_GETTER.sub(said, _OWN.sub("", text))

    def _is_of_each(self, field: str, value: str, owner: HostClass, place: int) -> bool:
        """Whether a field holds what another function calls its own, and no other field a part of that.

        Each object has its own then, and its caller may know which.
        """
        own = set(_ELSEWHERE.findall(value))
        if not own or field in owner.statics:
            return False
        holds = self._holds
        others = (
            holds.only_value(other, place) or holds.from_where(other, place) or ""
            for other in owner.pointers - {field}
        )
        return all(own.isdisjoint(_ELSEWHERE.findall(other)) for other in others)

    def _of_object(self, field: str, owner: HostClass, this: str, leads: bool) -> str:
        """A field of the object that a function is called of, or one that all objects share."""
        this = "" if field in owner.statics else this
        if not self.classes.changes(owner, field):
            return f"{this}{field}"
        return bracketed(f"{this}{field} + {MOVED}", leads) if field in owner.pointers else f"{field}()"


def _made_by(
    told: CalledPointers,
    constructor: Constructor,
    owner: HostClass,
    object: str,
    arguments: Sequence[str],
    span: tuple[int, int],
) -> Iterator[Filled]:
    """What a constructor stores in the object that it makes in a stretch of the text."""
    for field, said in told.constructs(constructor, owner, object, arguments):
        yield Filled(f"{object}{field}", said, span[1], span, owner=owner.name)


def _of(function: HostFunction, owner: HostClass | None = None, this: str = "") -> _Callee:
    return _Callee(function.parameters, function.body, function.end, owner, this)


def _closed(text: str, opening: int) -> bool:
    """Whether the parenthesis at a place is closed by the last character."""
    return closings(text, "()").get(opening) == len(text) - 1


def _closing_of(text: HostText, opening: int) -> int:
    """Where a bracket is closed; -1: far, or nowhere."""
    closed = text.closing(opening) if text.plain[opening] == "(" else text.braces.closing.get(opening, -1)
    return closed if closed - opening < FURTHEST else -1
