"""What a launch passes, in the words of those who call the function that it stands in. Read from text.

``void run(float* p, float* q) { k<<<1, 32>>>(p, q); }`` and ``run(d, d + n)``: the two are one buffer there.
Callers in other files are asked where they hand on one thing twice (``handed_twice``).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, partial

from cuda_lsp.frontend.host.constants import NO_POINTERS
from cuda_lsp.frontend.host.expressions import bracketed, declaration, field_of
from cuda_lsp.frontend.host.handed_twice import pointers_of
from cuda_lsp.frontend.host.host_file import HostFile
from cuda_lsp.frontend.host.host_functions import Call, HostFunction, HostFunctions
from cuda_lsp.frontend.host.host_pointers import HostPointers
from cuda_lsp.frontend.host.indirect_calls import indirect_calls

_WORD = re.compile(r"(?<![\w.>])[A-Za-z_]\w*")
_FORWARDED = re.compile(r"(?<![\w.>])(?:std\s?::\s?)?(?:forward\s?<[^<>;]{0,100}>|move)\s?\(\s?(\w+)\s?\)")
_OBJECT = re.compile(r"\A([&*])\s?([A-Za-z_]\w*(?:(?:\.|->)\w+)*)\Z")
"""Whose address is passed, or what is pointed to: of ``&x`` the members are those of ``x``."""
_FIRST = re.compile(r"\A&\s?([A-Za-z_]\w*(?:(?:\.|->)\w+)*)\s?\[\s?0\s?\]\Z")
"""``&x[0]``: where an array begins, of which ``&x[0]`` with a place behind it is an element."""
_PACK = "..."
_MOST_CALLS = 16
_MOST_LEVELS = 3


ComesTo = Callable[[int, Set[str]], bool]
"""Whether somebody comes to a place of a function who passes no pointer for these parameters of it."""


HandingOn = Callable[[HostFunction, Sequence[int]], Iterable[HostFile]]
"""Other files that may call a function with one thing, or what was made of it, at two of its positions."""

Called = tuple[HostFile, tuple[str, ...], int]
"""A call's file, the arguments of a launch in words that mean something there, and where it stands."""


def as_called(
    file: HostFile,
    elsewhere: HandingOn,
    arguments: Sequence[str],
    at: int,
    comes_to: ComesTo,
    levels: int = _MOST_LEVELS,
) -> Iterator[Called]:
    """The arguments as each caller makes them, and where it does; a function's own callers and theirs.

    Of callers that pass ``nullptr`` for what has to be something at the place, nothing is said.
    """
    functions, pointers = file.constants.functions, file.pointers
    function = functions.around(at)
    if function is None or not levels:
        return
    arguments = [_FORWARDED.sub(r"\1", text) for text in arguments]
    names = [name for name, _ in function.parameters]
    kept = [name for name in names if name and pointers.changed(name, at) == ((), False)]
    used = [name for name in kept if any(re.search(rf"(?<![\w.>]){name}\b", text) for text in arguments)]
    if not used:
        return

    @cache
    def own(name: str) -> bool:
        """Whether it is a variable of the function, of which its callers know nothing."""
        return name not in names and declaration(name, pointers.body_of(function)) is not None

    arguments = [_WORD.sub(lambda m: f"{m[0]}()" if own(m[0]) else m[0], text) for text in arguments]
    word = re.compile(rf"(?<![\w.>])({'|'.join(used)})\b(\s?(?:\.|->)\s?(?=\w))?")
    for caller, call in itertools.islice(_every_call(file, function, elsewhere), _MOST_CALLS):
        given = [*call.arguments, *(default for _, default in function.parameters[len(call.arguments) :])]
        passed = dict(zip(names, (_FIRST.sub(r"\1", text.strip()) for text in given), strict=False))
        nothing = {name for name, text in passed.items() if text in NO_POINTERS and name in kept}
        if (nothing and not comes_to(at, nothing)) or (caller is file and not comes_to(call.begin, set())):
            continue
        put = partial(_put, passed)
        unpacked = (
            _unpacked(arguments, names[-1], given[len(names) - 1 :]) if function.has_pack else arguments
        )
        texts = tuple(word.sub(put, text) for text in unpacked)
        yield caller, texts, call.begin
        known = comes_to if caller is file else _anybody
        yield from as_called(caller, elsewhere, texts, call.begin, known, levels - 1)


def _anybody(at: int, nothing: Set[str]) -> bool:
    """Of places in other files nothing is known."""
    del at, nothing
    return True


def _every_call(
    file: HostFile, function: HostFunction, elsewhere: HandingOn
) -> Iterator[tuple[HostFile, Call]]:
    """Those of a function in its file, and those of other files that hand on one thing twice."""
    yield from ((file, call) for call in _calls(file, function, function.body))
    if function.member:
        return  # another class may have one of that name
    positions = pointers_of(file.host, function)
    for caller in elsewhere(function, positions) if len(positions) > 1 else ():
        if caller.path != file.path and not any(caller.constants.functions.named(function.name)):
            yield from ((caller, call) for call in _calls(caller, function))


def _calls(file: HostFile, function: HostFunction, body: int | None = None) -> Iterator[Call]:
    """Those that others make of it, with as many arguments as it takes; ``body``: its own, if it is here."""
    functions = file.constants.functions
    direct = functions.calls(function.name, member=True)
    every = itertools.chain(direct, indirect_calls(file.host, functions, function))
    for call in itertools.islice(every, _MOST_CALLS):
        mine = body is not None and (
            call.begin <= function.closing < call.end or body <= call.begin <= function.end
        )
        if function.takes_in_all(len(call.arguments)) and not (call.explicit or mine):
            yield call


def _unpacked(arguments: Sequence[str], pack: str, given: Sequence[str]) -> Iterator[str]:
    """``f(p)...`` once for each of the arguments that a pack of parameters is given."""
    mine = re.compile(rf"(?<![\w.>]){pack}\b")
    for text in arguments:
        if text.rstrip().endswith(_PACK) and mine.search(text):
            once = text.rstrip().removesuffix(_PACK)
            alone = once.strip() == pack
            for part in given:
                value = part.strip() if alone else f"({part.strip()})"
                yield mine.sub(lambda _, value=value: value, once)
        else:
            yield text


def as_set(
    functions: HostFunctions, pointers: HostPointers, arguments: Sequence[str], at: int
) -> Iterator[tuple[tuple[str, ...], int]]:
    """The arguments that are fields as each call that sets several of them does, a constructor's too.

    Nothing is said there of the others: they are written as calls of which nobody knows what they give.
    """
    function = functions.around(at)
    if function is None:
        return
    own = {name for name, _ in function.parameters}
    body = pointers.body_of(function)
    fields = {
        position: text
        for position, text in enumerate(map(str.strip, arguments))
        if field_of(text)[0] or (text.isidentifier() and text not in own and declaration(text, body) is None)
    }
    objects = itertools.groupby(
        sorted(fields, key=lambda i: _object(fields[i])), lambda i: _object(fields[i])
    )
    for places in [list(together) for _, together in objects]:
        for stores in pointers.filled_together if len(places) > 1 else ():
            told = {
                position: store.value
                for position in places
                for store in stores
                if pointers.is_field_of(fields[position], at, store)
            }
            if len(told) > 1:
                yield tuple(told.get(i, f"other{i}()") for i in range(len(arguments))), stores[0].place


def _object(field: str) -> str:
    """Whose field it is: one call fills one object, and says nothing of another one of its class."""
    object = field_of(field)[0]
    return "" if object == "this" else object


def _put(known: Mapping[str, str], match: re.Match[str]) -> str:
    text, member = known[match[1]], match[2] or ""
    whole = _OBJECT.match(text) if member else None
    if whole is not None and (whole[1] == "&") == ("->" in member):
        return f"{whole[2]}." if whole[1] == "&" else f"{whole[2]}->"
    leads = not match.string[: match.start()].strip()
    alone = leads and not match.string[match.end() :].strip()
    return text if alone else f"{bracketed(text, leads)}{member}"
