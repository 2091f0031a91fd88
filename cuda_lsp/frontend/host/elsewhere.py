"""What pointers hold that another function of the file set: variables of the file, and fields of objects.

Read from text, and asked of what nothing near a launch tells: ``k<<<…>>>(w->a, w->b)``, ``w->b = d + n`` in
another function. What that function calls its own is told by a name of its own, the same for all
that it stored in one object: so it is seen that two are cut out of one allocation, and how far apart.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

from attrs import evolve, frozen

from cuda_lsp.frontend.host.expressions import MOVED, WORD, declaration
from cuda_lsp.frontend.host.host_classes import HostClass, HostClasses
from cuda_lsp.frontend.host.host_functions import HostFunction, HostFunctions
from cuda_lsp.frontend.host.pointer_lists import ONE_OF_MANY
from cuda_lsp.frontend.host.text import HostText

_FIELD = re.compile(r"\A(?:(.+?)(\.|->))?([A-Za-z_]\w*)(?:\[[^\[\]]*\])?\Z", re.S)
_INDEX = re.compile(r"\[([^\[\]]*)\]")
_NOTHING = re.compile(r"\A(?:NULL|nullptr|0|\{\s?\})\Z|\Anew\b")
_CUT = re.compile(r"[-+\[]")
_OWN = re.compile(r"\A\w{1,100}__\d\w{0,100}\Z")
_LENT = re.compile(r"[(,)]\s?&\s?(?:[A-Za-z_][\w.\[\]>-]*?(?:\.|->))?([A-Za-z_]\w*)\s?(?=[,)])")
_MOVES = re.compile(
    r"(?P<arrow>\.|->)?(?<!\w)(?P<name>[A-Za-z_]\w*)\s?(?:\[[^\[\]]{0,100}\]\s?)?(?:[-+]=|\+\+|--)"
    r"|(?:\+\+|--)\s?(?:[\w.>-]{0,100}(?:\.|->))?(?P<behind>[A-Za-z_]\w*)\b"
)
_LOOP = re.compile(r"\b(?:for|while)\s?\(")
_SWAPPED = re.compile(r"\bswap\s?\(\s?(?:[\w.>-]*(?:\.|->))?(\w+)\s?,\s?(?:[\w.>-]*(?:\.|->))?(\w+)\s?\)")
_MOST_STEPS = 4
_MOST_VALUES = 16


class Known(Protocol):
    """What is known of the variables of a file."""

    def only_value(self, name: str, at: int) -> str | None:
        """The one value of a variable at a place, which nothing has changed since."""
        ...

    def from_where(self, name: str, at: int) -> str | None:
        """A place in the buffer that the one value of a variable is in, however it moved since."""
        ...

    def changed(self, name: str, at: int) -> tuple[tuple[int, ...], bool]:
        """Where a function's variable had something stored to it before; whether it ever moves."""
        ...


@frozen
class _Store:
    """``object``, ``arrow``: what stands before the field's name; "": nothing."""

    object: str
    arrow: str
    place: int
    value: str
    function: HostFunction | None
    indices: tuple[str, ...] = ()


def _of_indices(store: _Store, indices: Sequence[str]) -> _Store | None:
    """What is stored where these indices are asked for; None: it is stored to other elements."""
    if len(indices) != len(store.indices):
        return None
    value, object = store.value, store.object
    for mine, wanted in zip(store.indices, indices, strict=True):
        if mine.isidentifier() and mine != wanted:
            value = re.sub(rf"(?<![\w.]){mine}\b", f"({wanted})", value)
            object = object.replace(f"[{mine}]", f"[{wanted}]")
        elif mine != wanted:
            return None
    return evolve(store, value=value, object=object, indices=tuple(indices))


class Elsewhere:
    """``stores``: (name, place, value) of all that is assigned. ``is_of``: whether it is a class's object."""

    def __init__(
        self,
        text: HostText,
        functions: HostFunctions,
        classes: HostClasses,
        stores: Callable[[], Iterator[tuple[str, int, str]]],
        is_of: Callable[[str, str], bool],
        known: Known,
    ) -> None:
        self._text = text
        self._plain = text.plain
        self._functions = functions
        self._classes = classes
        self._stores = stores
        self._is_of = is_of
        self._known = known
        self._moved: dict[str, bool] = {}
        self._own_names: dict[tuple[str, int], bool] = {}

    def values(self, name: str, at: int) -> list[str]:
        """What it may hold, in names that mean the same wherever they are asked for; "": and more.

        Of what has an allocation of its own, or takes turns with others, only cuts out of another one count,
        and what a function leaves it at that has a name everywhere.
        """
        parts, around = _FIELD.match(name), self._functions.around(at)
        if parts is None or around is None or (not parts[1] and self._is_own(name, around)):
            return []
        object, field = parts[1] or "", parts[3]
        kept = itertools.islice(self._by_field.get(field, ()), _MOST_VALUES)
        numbered = (_of_indices(store, _INDEX.findall(name)) for store in kept)
        stores = [s for s in numbered if s is not None and self._may_be(s, field, object, around)]
        told = [self._told(s, object, parts[2] or "") for s in stores]
        moved = f" + {MOVED}" if self._moves(field) else ""
        values = list(dict.fromkeys(f"{value}{moved}" for value in told if value != name))
        if len(values) == 1 and (field not in self._lent or ONE_OF_MANY in values[0]):
            return [*values, ""] if field in self._swapped else values
        left = {value for value, store in zip(told, stores, strict=True) if self._stays(store)}
        cut = [value for value in values if _CUT.search(value) or _OWN.match(value) or value in left]
        return [*cut, ""] if cut else []

    @cached_property
    def _by_field(self) -> Mapping[str, Sequence[_Store]]:
        found: dict[str, list[_Store]] = {}
        for name, place, value in self._stores():
            parts = _FIELD.match(name)
            if parts is not None and not _NOTHING.match(value.strip()):
                function = self._functions.around(place) or self._constructor_around(place)
                indices = tuple(_INDEX.findall(name))
                store = _Store(parts[1] or "", parts[2] or "", place, value.strip(), function, indices)
                found.setdefault(parts[3], []).append(store)
        for function, initialisers in self._constructors:
            owner = self._classes.named[function.name]
            for field, value in initialisers:
                if field in owner.pointers and value and not _NOTHING.match(value):
                    found.setdefault(field, []).append(_Store("", "", function.body + 1, value, function))
        return found

    def _stays(self, store: _Store) -> bool:
        """Whether a function leaves two of the names that others know alike: it stores to neither again."""
        source, function = _FIELD.match(store.value), store.function
        if source is None or function is None or source[3] in self._swapped:
            return False
        if self._is_own(source[1] or source[3], function):
            return False
        others = (s for s in self._by_field.get(source[3], ()) if s.function == function)
        return source[3] not in self._lent_in(function, store.place) and not any(
            other.place > store.place for other in others
        )

    def _lent_in(self, function: HostFunction, begin: int) -> frozenset[str]:
        """What a function lends to others behind a place."""
        return frozenset(match[1] for match in _LENT.finditer(self._plain, begin, function.end))

    @cached_property
    def _constructors(self) -> Sequence[tuple[HostFunction, Sequence[tuple[str, str]]]]:
        """The constructors of classes that have pointers, as functions, and what they begin with."""
        return [
            (
                HostFunction(
                    name, made.body, made.body, made.body, made.body, made.end, made.parameters, member=True
                ),
                made.initialisers,
            )
            for name, owner in self._classes.named.items()
            if owner.pointers
            for made in self._classes.constructors(name)
        ]

    def _constructor_around(self, place: int) -> HostFunction | None:
        return next((f for f, _ in self._constructors if f.body <= place <= f.end), None)

    @cached_property
    def _lent(self) -> frozenset[str]:
        return frozenset(match[1] for match in _LENT.finditer(self._plain))

    @cached_property
    def _swapped(self) -> frozenset[str]:
        return frozenset(name for match in _SWAPPED.finditer(self._plain) for name in match.groups())

    def _moves(self, field: str) -> bool:
        """Whether anything moves such a field, or variable of the file."""
        if field not in self._moved:
            self._moved[field] = any(self._is_meant(m, field) for m in self._all_moves.get(field, ()))
        return self._moved[field]

    @cached_property
    def _all_moves(self) -> Mapping[str, Sequence[re.Match[str]]]:
        found: dict[str, list[re.Match[str]]] = {}
        for match in _MOVES.finditer(self._plain):
            found.setdefault(match["name"] or match["behind"], []).append(match)
        return found

    def _is_meant(self, match: re.Match[str], field: str) -> bool:
        function = self._functions.around(match.start())
        return match["arrow"] is not None or function is None or not self._is_own(field, function)

    def _may_be(self, store: _Store, field: str, object: str, around: HostFunction) -> bool:
        """Whether what is stored there may be what is asked for."""
        if store.object:
            return bool(object) or self._owner(around) is not None
        owner = self._owner(store.function) if store.function is not None else None
        if store.function is not None and self._is_own(field, store.function):
            return False
        if owner is None or field not in owner.fields:
            return not object  # a variable of the file
        return (
            self._is_of(object, owner.name) if object and object != "this" else self._owner(around) == owner
        )

    def _owner(self, function: HostFunction) -> HostClass | None:
        if not function.member:
            return None
        if function.name in self._classes.named:
            return self._classes.named[function.name]  # a constructor
        return self._classes.of(function)

    def _is_own(self, name: str, function: HostFunction) -> bool:
        """Whether it is a function's parameter, or a variable that it declares."""
        if any(name == parameter for parameter, _ in function.parameters):
            return True
        key = name, function.body
        if key not in self._own_names:
            own = self._plain[function.body : function.end]
            self._own_names[key] = declaration(name, own) is not None
        return self._own_names[key]

    def _told(self, store: _Store, object: str, arrow: str) -> str:
        """A value in names that mean the same everywhere."""
        text, function = store.value.replace("this->", ""), store.function
        if store.object and (object or store.object != "this"):
            mine = re.compile(rf"(?<![\w.>]){re.escape(store.object)}(?:\.|->)")
            text = mine.sub(lambda _: f"{object}{arrow}", text)
        if function is None:
            return text
        owner = self._owner(function) if not store.object and object else None
        root = re.split(r"\W", object)[0]
        whose = _INDEX.sub("", object)

        def word(match: re.Match[str], place: int, steps: int) -> str:
            name = match[0]
            if name == root and store.object:
                return name
            if self._is_own(name, function):
                return self._own(name, function, store, whose, place, steps, word)
            return f"{object}{arrow}{name}" if owner is not None and name in owner.fields else name

        return WORD.sub(lambda match: word(match, store.place, _MOST_STEPS), text)

    def _own(
        self,
        name: str,
        function: HostFunction,
        store: _Store,
        whose: str,
        place: int,
        steps: int,
        word: Callable[[re.Match[str], int, int], str],
    ) -> str:
        """What a function calls its own: what it is made of, or a name that nobody else has."""
        value = self._known.only_value(name, place) if steps else None
        if value is None and steps:
            value = self._known.from_where(name, place)
        if value is not None and value != name:
            inner = WORD.sub(lambda m: word(m, place, steps - 1), value)
            return inner if re.fullmatch(r"[\w.>-]+", inner) else f"({inner})"
        index = next((i for i, (p, _) in enumerate(function.parameters) if p == name), None)
        calls = list(itertools.islice(self._functions.calls(function.name, member=True), 2))
        if index is not None and len(calls) == 1 and index < len(calls[0].arguments):
            given = calls[0].arguments[index].strip()
            if given.isdigit():
                return given
        times, moves = self._known.changed(name, place)
        if times and not self._opens_loop(times[-1], place):  # each round may have given it another value
            whose += "_".join(store.indices)
        whose = re.sub(r"\W+", "_", whose)
        own = f"{name}__{function.body}_{whose}_{len(times)}"
        return f"{own} + {MOVED}" if moves else own

    def _opens_loop(self, begin: int, end: int) -> bool:
        """Whether a place is in a loop that an earlier one is not in."""
        for match in _LOOP.finditer(self._plain, begin, end):
            body = self._text.closing(match.end() - 1) + 1
            body += self._plain[body : body + 1].isspace()
            last = self._text.braces.closing.get(body, -1)
            last = last if self._plain[body : body + 1] == "{" else self._plain.find(";", body) + 1
            if body > 0 and last >= end:
                return True
        return False
