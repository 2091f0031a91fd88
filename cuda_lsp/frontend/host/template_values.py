"""Numbers that a function template is instantiated for in a program: what it passes on as arguments.

``template <int n> void run(float* p) { k<<<1, 64>>>(p, n); }`` launches with 4 where ``run<4>(p)`` is all
there is. Unlike a size, which others may pass, a template's argument stands in the text: where each mention
of the function is a call whose argument is known, the last of them in a file with a ``main``, and nothing
else that is compiled includes the function, there are no others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cuda_lsp import files
from cuda_lsp.frontend.host.contexts import Callers
from cuda_lsp.frontend.host.deduced_arguments import deduced
from cuda_lsp.frontend.host.host_constants import NOTHING_GIVEN, Given, Key
from cuda_lsp.frontend.host.host_file import HostFile
from cuda_lsp.frontend.host.host_functions import Call, HostFunction
from cuda_lsp.frontend.host.text import whole_arguments
from cuda_lsp.frontend.surroundings.units import units_of

_WORD = re.compile(r"(?<![\w.:])[A-Za-z_]\w*")
_DECLARES = re.compile(r"[\w>*&]\s?\Z")
_MOST_LEVELS = 3
_MOST_INSTANCES = 8


class TemplateValues:
    """The numbers that template parameters around launches of one file are."""

    def __init__(self, file: HostFile, elsewhere: Callers) -> None:
        self._file = file
        self._elsewhere = elsewhere
        self._programs: set[Path] = set()  # files with a ``main`` that calls lead to

    def of(self, texts: Iterable[str], at: int) -> tuple[Given, ...]:
        """What is known in each instance of the function around, of what the texts hang on; none: nothing."""
        function = self._file.constants.functions.around(at)
        if function is None or not function.template:
            return ()
        missing = (self._file.constants.missing(text, at) for text in texts)
        keys = _parameters(function, frozenset[Key]().union(*missing))
        self._programs = set()
        found = self._instances(self._file, function, keys, _MOST_LEVELS) if keys else None
        if found is None or not self._is_in_these_alone():
            return ()
        return tuple(Given(dict(zip(keys, values, strict=True))) for values in found)

    def _is_in_these_alone(self) -> bool:
        """Whether all that is compiled with the file is what calls were looked for in."""
        return {Path(files.target(unit.path)) for unit in units_of(self._file.path)} <= self._programs

    def _instances(
        self, file: HostFile, function: HostFunction, keys: Sequence[Key], levels: int
    ) -> tuple[tuple[int, ...], ...] | None:
        """The values of these parameters in every instance; None: not all are known."""
        callers = list(_files(file, function, self._elsewhere)) if levels else []
        if not callers or not all(_only_calls(each, function, each is file) for each in callers):
            return None
        found: dict[tuple[int, ...], None] = {}
        for caller in callers:
            for call in caller.constants.functions.calls(function.name, member=True):
                made = self._made(caller, function, call, keys, levels - 1)
                if made is None:
                    return None
                found |= dict.fromkeys(made)
        return tuple(found) if len(found) <= _MOST_INSTANCES else None

    def _made(
        self, caller: HostFile, function: HostFunction, call: Call, keys: Sequence[Key], levels: int
    ) -> list[tuple[int, ...]] | None:
        """The values that one call is made with, in each instance of the function that makes it."""
        told = [_argument(function, caller, call, name) for name, _ in keys]
        texts = [text for text in told if text is not None]
        around = caller.constants.functions.around(call.begin)
        if call.explicit or len(texts) < len(told) or around is None or around.body == function.body:
            return None
        found: list[tuple[int, ...]] = []
        for given in self._given(caller, around, texts, call.begin, levels):
            values = [caller.constants.integer(text, call.begin, given) for text in texts]
            known = [value for value in values if value is not None]
            if len(known) < len(values):
                return None
            found.append(tuple(known))
        return found or None

    def _given(
        self, caller: HostFile, around: HostFunction, texts: Sequence[str], at: int, levels: int
    ) -> Iterator[Given]:
        """What is known where a call stands, in each instance of the function around it."""
        missing = (caller.constants.missing(text, at) for text in texts)
        keys = _parameters(around, frozenset[Key]().union(*missing))
        if not keys:
            words = {word for text in texts for word in _WORD.findall(text)}
            hidden = not words.isdisjoint(around.template)  # a type, or what could not be read
            if not hidden and any(True for _ in caller.constants.functions.named("main")):
                self._programs.add(Path(files.target(caller.path)))
                yield NOTHING_GIVEN
            return
        for values in self._instances(caller, around, keys, levels) or ():
            yield Given(dict(zip(keys, values, strict=True)))


def _parameters(function: HostFunction, missing: Iterable[Key]) -> list[Key]:
    """Those of the missing values that are a function's template parameters."""
    return [
        (name, place)
        for name, place in sorted(missing)
        if name in function.template and function.begin <= place <= function.opening
    ]


def _argument(function: HostFunction, caller: HostFile, call: Call, name: str) -> str | None:
    """What a call lists for a template parameter, or what follows from what it passes."""
    listed = [part.strip() for part in whole_arguments(call.template_arguments or "")]
    index = function.template.index(name)
    text = listed[index] if index < len(listed) else ""
    return text or deduced(function, caller, call, name)


def _files(file: HostFile, function: HostFunction, elsewhere: Callers) -> Iterator[HostFile]:
    """The files that may call a function: none where another one has its name."""
    others = [other for other in elsewhere(function.name) if other.path != file.path]
    functions = [each.constants.functions for each in (file, *others)]
    if sum(1 for each in functions for _ in each.named(function.name)) == 1 and not function.member:
        yield from (file, *others)


def _only_calls(file: HostFile, function: HostFunction, own: bool) -> bool:
    """Whether nothing in a file mentions a function but its definition, declarations and calls."""
    functions, plain = file.constants.functions, file.host.plain
    calls = {call.begin for call in functions.calls(function.name, member=True) if not call.explicit}
    for mention in re.finditer(rf"(?<!\w){re.escape(function.name)}(?!\w)", plain):
        begin = mention.start()
        defines = own and function.begin <= begin < function.opening
        directive = plain.startswith("#", plain.rfind("\n", 0, begin) + 1)
        if not defines and (directive or not (begin in calls or _declares(file, begin))):
            return False
    return True


def _declares(file: HostFile, begin: int) -> bool:
    """Whether a function is declared there: outside of all others, behind a type."""
    plain = file.host.plain
    closing = file.host.closing(plain.find("(", begin))
    declares = _DECLARES.search(plain, max(0, begin - 3), begin) is not None
    behind = plain[closing + 1 : closing + 3].strip() if closing > 0 else ""
    return declares and behind.startswith(";") and file.constants.functions.around(begin) is None
