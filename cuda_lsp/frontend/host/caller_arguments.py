"""What a launch passes, in the words of those who call the function that it stands in. Read from text.

``void run(float* p, float* q) { k<<<1, 32>>>(p, q); }`` and ``run(d, d + n)``: the two are one buffer there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cache, partial

from cuda_lsp.frontend.host.constants import NO_POINTERS
from cuda_lsp.frontend.host.expressions import bracketed, declaration
from cuda_lsp.frontend.host.host_functions import HostFunctions
from cuda_lsp.frontend.host.host_pointers import HostPointers

_WORD = re.compile(r"(?<![\w.>])[A-Za-z_]\w*")
_MOST_CALLS = 16
_MOST_LEVELS = 3


ComesTo = Callable[[int, Set[str]], bool]
"""Whether somebody comes to a place of a function who passes no pointer for these parameters of it."""


def as_called(
    functions: HostFunctions,
    pointers: HostPointers,
    arguments: Sequence[str],
    at: int,
    comes_to: ComesTo,
    levels: int = _MOST_LEVELS,
) -> Iterator[tuple[tuple[str, ...], int]]:
    """The arguments as each caller makes them, and where it does; a function's own callers and theirs.

    Of callers that pass ``nullptr`` for what has to be something at the place, nothing is said.
    """
    function = functions.around(at)
    if function is None or not levels:
        return
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
    word = re.compile(rf"(?<![\w.>])(?:{'|'.join(used)})\b")
    for call in [*functions.calls(function.name, member=True)][:_MOST_CALLS]:
        if (
            call.explicit
            or not function.takes(len(call.arguments))
            or call.begin <= function.closing < call.end
        ):
            continue
        if function.body <= call.begin <= function.end:
            continue  # it calls itself
        given = [*call.arguments, *(default for _, default in function.parameters[len(call.arguments) :])]
        passed = dict(zip(names, (text.strip() for text in given), strict=False))
        nothing = {name for name, text in passed.items() if text in NO_POINTERS and name in kept}
        if nothing and not comes_to(at, nothing):
            continue
        put = partial(_put, passed)
        texts = tuple(word.sub(put, text) for text in arguments)
        yield texts, call.begin
        yield from as_called(functions, pointers, texts, call.begin, comes_to, levels - 1)


def _put(known: Mapping[str, str], match: re.Match[str]) -> str:
    text = known[match[0]]
    leads = not match.string[: match.start()].strip()
    alone = leads and not match.string[match.end() :].strip()
    return text if alone else bracketed(text, leads)
