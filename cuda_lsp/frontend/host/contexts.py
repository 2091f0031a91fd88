"""How a launch is come by: what callers pass for the parameters that its extents hang on, and in which round.

A function that launches with what it was given is looked at as each of its callers makes it, through
``_MOST_CALLERS`` functions at most; a launch in a loop over few sizes in each round. What no way tells stays
unknown. Values of a caller count for what a launch is. They count for its arguments too where the way begins
in ``main``: a library's function may be called by others with other arguments.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from attrs import evolve, field, frozen

from cuda_lsp.frontend.host.branches import rounds, values_at, worlds
from cuda_lsp.frontend.host.host_constants import NOTHING_GIVEN, Given, Key
from cuda_lsp.frontend.host.host_file import HostFile
from cuda_lsp.frontend.host.host_functions import Call, HostFunction
from cuda_lsp.frontend.host.indirect_calls import indirect_calls
from cuda_lsp.frontend.host.known_values import size_of, sized_type
from cuda_lsp.frontend.host.passed_types import renamed
from cuda_lsp.frontend.host.text import whole_arguments
from cuda_lsp.model import Extents

_WORD = re.compile(r"(?<![\w.:])[A-Za-z_]\w*")
_MOST_CALLERS = 3
"""Functions that hand a parameter on."""
_MOST_CONTEXTS = 12
"""Of one launch."""
_MOST_CALLS = 60
"""Of one function that are looked at."""

Callers = Callable[[str], Iterable[HostFile]]
"""Other files that may call a function."""


def no_callers(name: str) -> Iterable[HostFile]:
    """There are no other files."""
    del name
    return ()


@frozen
class Context:
    """One way to a place: what is known there on it. ``local``: of it, what no caller is needed for.

    ``place``: the outermost call that it comes through, and in which file; None: none is looked through.
    ``program``: it begins in ``main``. ``types``: what template parameters of the function there stand for.
    """

    given: Given
    local: Given = NOTHING_GIVEN
    place: tuple[HostFile, int, int] | None = None
    program: bool = False
    types: Mapping[str, str] = field(factory=dict[str, str])

    @property
    def tells(self) -> bool:
        """Whether anything is known on it."""
        return bool(self.given.values or self.types)


def local_facts(file: HostFile, at: int, texts: Iterable[str] = ()) -> tuple[Given, ...]:
    """What branches around a place tell: one for each ``case`` that leads there; at least one.

    ``texts``: branches before it that write to what these hang on are told apart.
    """
    values = values_at(file.host, file.constants, at)
    ways = worlds(file.host, file.constants, at, texts)
    every = itertools.product(itertools.product(*values.values()), ways)
    return tuple(
        Given(dict(zip(values, chosen, strict=True)), taken)
        for chosen, taken in itertools.islice(every, _MOST_CONTEXTS)
    )


@frozen
class Texts:
    """Expressions at a place: what is ``needed``, and what is worth knowing besides.

    ``types``: those that may be types, or name some.
    """

    needed: tuple[str, ...]
    wished: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@frozen
class _Wanted:
    """Of a function's parameters: what is needed, what is worth knowing, and names of types."""

    needed: tuple[Key, ...]
    wished: tuple[Key, ...]
    types: tuple[str, ...]


def is_cut(found: Sequence[Context]) -> bool:
    """Whether there may be more ways than were found."""
    return len(found) >= _MOST_CONTEXTS


def changes_for_itself(file: HostFile, at: int, text: str) -> bool:
    """Whether the function around calls itself with another value of what a text at a place is made of."""
    functions = file.constants.functions
    function = functions.around(at)
    if function is None:
        return False
    needed = _passed(function, _missing(file, at, (text,), NOTHING_GIVEN))
    calls = functions.calls(function.name, function.member) if needed else ()
    own = [call for call in calls if function.body < call.begin < function.end]
    passed = ((name, _argument(function, call, name)) for call in own for name, _ in needed)
    return any(text is not None and text.strip() != name for name, text in passed)


class Ways:
    """The ways to launches through what calls them, in one file and ``elsewhere``."""

    def __init__(self, elsewhere: Callers) -> None:
        self._elsewhere = elsewhere
        self._known: dict[object, tuple[Context, ...]] = {}

    def to(self, file: HostFile, at: int, texts: Texts) -> tuple[Context, ...]:
        """The ways to a place on which more is known of what the texts hang on."""
        found = (c for c in self._to(file, at, texts, _MOST_CALLERS) if c.tells)
        return tuple(itertools.islice(found, _MOST_CONTEXTS))

    def untold(self, file: HostFile, at: int, texts: Texts) -> Iterator[Context]:
        """Those on which nothing more is known."""
        return (c for c in self._to(file, at, texts, _MOST_CALLERS) if not c.tells)

    def _to(self, file: HostFile, at: int, texts: Texts, depth: int) -> Iterator[Context]:
        function = file.constants.functions.around(at)
        for facts in local_facts(file, at, texts.needed):
            for given in _rounds(file, facts, _missing(file, at, texts.needed, facts)):
                needed = _missing(file, at, texts.needed, given)
                needed |= _sizes_of_types(file, at, texts.needed, given) if needed else frozenset()
                passed = _passed(function, needed) if function is not None and depth else ()
                types = _named_types(function, texts.types, passed) if function and depth else ()
                if function is None or not (passed or types):
                    yield Context(given, given, None, function is not None and function.name == "main")
                    continue
                wished = _passed(function, _missing(file, at, texts.wished, given))
                for way in self._into(file, function, _Wanted(passed, wished, types), depth):
                    yield evolve(way, given=given.and_those(way.given), local=given)

    def _into(
        self, file: HostFile, function: HostFunction, wanted: _Wanted, depth: int
    ) -> tuple[Context, ...]:
        """The ways to a function's body."""
        key = (file.path, function.body, wanted, depth)
        if key not in self._known:
            found = self._through_calls(file, function, wanted, depth)
            self._known[key] = tuple(itertools.islice(found, _MOST_CONTEXTS))
        return self._known[key]

    def _through_calls(
        self, file: HostFile, function: HostFunction, wanted: _Wanted, depth: int
    ) -> Iterator[Context]:
        calls = list(_calls(file, function, self._elsewhere))
        if not calls:
            yield Context(NOTHING_GIVEN, NOTHING_GIVEN)
        for caller, call in calls:
            keys = dict.fromkeys((*wanted.needed, *wanted.wished))
            given = {key: _argument(function, call, key[0]) for key in keys}
            passed = {key: text for key, text in given.items() if text is not None}
            named = {name: _argument(function, call, name) for name in wanted.types}
            types = {name: text.strip() for name, text in named.items() if text is not None}
            needed = tuple(passed[key] for key in wanted.needed if key in passed)
            texts = Texts(needed, tuple(passed.values()), tuple(types.values()))
            for way in self._to(caller, call.begin, texts, depth - 1) if needed or types else ():
                values = {key: _value(caller, text, call.begin, way.given) for key, text in passed.items()}
                known = {key: value for key, value in values.items() if value is not None}
                place = way.place or (caller, call.begin, call.end)
                stand_for = {name: renamed(text, way.types) for name, text in types.items()}
                yield Context(Given(known), NOTHING_GIVEN, place, way.program, stand_for)


def _rounds(file: HostFile, facts: Given, missing: frozenset[Key]) -> Iterator[Given]:
    """The rounds of the loops around whose counters are missing."""
    counters = {key: values for key in sorted(missing) if (values := rounds(file.host, file.constants, key))}
    for chosen in itertools.islice(itertools.product(*counters.values()), _MOST_CONTEXTS):
        yield facts.and_those(Given(dict(zip(counters, chosen, strict=True))))


def _missing(file: HostFile, at: int, texts: Iterable[str], given: Given) -> frozenset[Key]:
    """What some texts at a place hang on that is not known."""
    return frozenset[Key]().union(*(file.constants.missing(text, at, given) for text in texts))


def _sizes_of_types(file: HostFile, at: int, texts: Iterable[str], given: Given) -> frozenset[Key]:
    """Of all that the texts are made of, whatever branches tell: who tries other values needs them."""
    missing = _missing(file, at, texts, Given({}, given.taken))
    return frozenset(key for key in missing if sized_type(key[0]) is not None)


def _named_types(function: HostFunction, texts: Iterable[str], keys: Iterable[Key]) -> tuple[str, ...]:
    """The template parameters of a function that some texts name, or whose sizes are needed."""
    words = {word for text in texts for word in _WORD.findall(text)}
    words |= {type for name, _ in keys if (type := sized_type(name)) is not None}
    return tuple(name for name in function.template if name in words)


def _passed(function: HostFunction, missing: frozenset[Key]) -> tuple[Key, ...]:
    """Those of the missing values that callers of the function pass, as arguments or template arguments."""
    names = {name for name, _ in function.parameters} | set(function.template)
    names |= set(map(size_of, function.template))
    return tuple(
        (name, position)
        for name, position in sorted(missing)
        if name in names and function.begin <= position <= function.closing
    )


def _calls(file: HostFile, function: HostFunction, elsewhere: Callers) -> Iterator[tuple[HostFile, Call]]:
    """The calls of a function that cannot be of another one of that name."""
    if sum(other.takes_as_many(function) for other in file.constants.functions.named(function.name)) > 1:
        return
    for caller in itertools.chain((file,), elsewhere(function.name)):
        functions = caller.constants.functions
        if caller is not file and any(functions.named(function.name)):
            continue
        direct = functions.calls(function.name, function.member)
        every = itertools.chain(direct, indirect_calls(caller.host, functions, function))
        for call in itertools.islice(every, _MOST_CALLS):
            around = functions.around(call.begin)
            if caller is not file or around is None or around.body != function.body:
                yield caller, call


def _argument(function: HostFunction, call: Call, name: str) -> str | None:
    """What a call gives for a parameter, or its default; of the size of a type, how that is written there."""
    type = sized_type(name)
    if type is not None:
        passed = _argument(function, call, type)
        return f"sizeof({passed.strip()})" if passed is not None else None
    if name in function.template:
        given = whole_arguments(call.template_arguments or "")
        index = function.template.index(name)
        listed = index < len(given) and given[index].strip()
        return given[index] if listed else call.deduced(function, name)
    if call.explicit:
        return None
    names = [parameter for parameter, _ in function.parameters]
    index = names.index(name)
    if len(call.arguments) > len(names):
        return None
    return call.arguments[index] if index < len(call.arguments) else function.parameters[index][1] or None


def _value(file: HostFile, text: str, at: int, given: Given) -> int | Extents | None:
    value = file.constants.integer(text, at, given)
    if value is not None:
        return value
    extents = file.constants.known_extents(text, at, given)
    known = [n for n in extents if n is not None]
    alone = all(n == 1 for n in known) and not file.constants.is_dim(text.strip(), at)  # a number, 1 by 1
    return extents if known and not alone else None
