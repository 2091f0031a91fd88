"""What a call makes of a template parameter that it does not list: told by the class of what it passes.

``template <int n> void f(const Grid<n, float>& g)``, called ``Grid<4, float> a; f(a);``: there ``n`` is 4.
"""

from __future__ import annotations

import re

from attrs import frozen

from cuda_lsp.frontend.host.host_file import HostFile
from cuda_lsp.frontend.host.host_functions import Call, HostFunction
from cuda_lsp.frontend.host.text import whole_arguments

_CLASS = r"(?<![\w:])(?P<name>[A-Za-z_][\w:]*)\s?<(?P<arguments>[^<>;(){}]{1,200})>"
_PARAMETER = re.compile(rf"\A\s?(?:const\s)?{_CLASS}\s?(?:const\s)?&?\s?\w*\s?\Z")


@frozen
class _Instance:
    """``name<arguments>``."""

    name: str
    arguments: tuple[str, ...]


def deduced(function: HostFunction, caller: HostFile, call: Call, name: str) -> str | None:
    """The argument for the template parameter, as text that is read at the call; None: not told."""
    for declared, passed in zip(function.declared, call.arguments, strict=False):
        wanted = _PARAMETER.match(declared)
        taken = _instance(wanted) if wanted is not None else None
        given = _declared(caller, passed.strip(), call.begin) if taken and name in taken.arguments else None
        if taken is None or given is None or given.name != taken.name:
            continue
        if len(given.arguments) == len(taken.arguments):  # others have defaults
            return given.arguments[taken.arguments.index(name)]
    return None


def _declared(caller: HostFile, variable: str, at: int) -> _Instance | None:
    """The class of a variable of the function around a place, where it declares one of that name."""
    around = caller.constants.functions.around(at)
    if around is None or not variable.isidentifier():
        return None
    plain, braces = caller.host.plain, caller.host.braces
    declares = re.compile(rf"{_CLASS}\s?(?:const\s)?&?\s?\b{variable}\b\s?[;,={{()]")
    found = list(declares.finditer(plain, around.opening, at))
    ended = [m for m in found if at > braces.closing.get(braces.begin(m.start()), at) > around.body]
    hidden = re.compile(rf"\bauto\b[\s&*]{{0,4}}{variable}\b").search(plain, around.opening, at)
    classes = {_instance(match) for match in found}
    return classes.pop() if len(classes) == 1 and not ended and hidden is None else None


def _instance(match: re.Match[str]) -> _Instance:
    return _Instance(match["name"], tuple(part.strip() for part in whole_arguments(match["arguments"])))
