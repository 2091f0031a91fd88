"""``cuLaunchKernel(function, …)``: launches through the driver, of kernels that a string names.

    cuModuleGetFunction(&function, module, "scale");
    cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, nullptr);

The string may hold the name as the linker has it (``_Z5scalePfi``).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from cuda_lsp.frontend.host.graph_nodes import listed_arguments
from cuda_lsp.frontend.host.text import HostText, whole_arguments
from cuda_lsp.frontend.host.written_launches import Written

_LOOKED_UP = re.compile(r"\b(?:cuModuleGetFunction|cuLibraryGetKernel|hipModuleGetFunction)\s?\(")
_LAUNCH = re.compile(r"\b(?:cuLaunch(?:Cooperative)?Kernel|hipModuleLaunch(?:Cooperative)?Kernel)\s?\(")
_STRING = re.compile(r'"(\w{1,400})"')
_MANGLED = re.compile(r"_Z(N?)(?=\d)")
_LENGTH = re.compile(r"\d{1,3}")
_LIST = re.compile(r"\A\s?(?:\([^()]*\)\s?)?&?\s?(\w+)\s?(?:\[\s?0\s?\])?\s?\Z")
_BESIDE_A_NAME = re.compile(r"\A\s?(?:\([^()]*\)\s?)?&?\s?|\s|\bthis\s?->\s?")
_GRID, _BLOCK, _SHARED, _ARGUMENTS = 1, 4, 7, 9
"""Where in a launch its extents, the bytes of shared memory and the list of arguments stand."""


def driver_launches(host: HostText) -> Iterator[Written]:
    """Every launch through the driver whose kernel the text names, in order."""
    launches = list(_LAUNCH.finditer(host.plain))
    named = sorted(_looked_up(host)) if launches else []
    for match in launches:
        closing = host.closing(match.end() - 1)
        parts = [p.strip() for p in whole_arguments(host.plain[match.end() : closing])] if closing > 0 else []
        if len(parts) <= _SHARED:
            continue
        held, before = _variable(parts[0]), named[: bisect_left(named, (match.start(), "", ""))]
        kernel = next((name for _, variable, name in reversed(before) if variable == held), None)
        if kernel is None:
            continue
        grid, block = (f"dim3({', '.join(parts[i : i + 3])})" for i in (_GRID, _BLOCK))
        listed = _LIST.match(parts[_ARGUMENTS]) if len(parts) > _ARGUMENTS else None
        arguments = listed_arguments(host, listed[1], match.start()) if listed is not None else []
        configuration = [grid, block, parts[_SHARED]]
        yield Written(kernel, None, configuration, arguments, match.start(), closing + 1)


def _looked_up(host: HostText) -> Iterator[tuple[int, str, str]]:
    """Where kernels are looked up: the place, the variable, and the kernel's name."""
    for match in _LOOKED_UP.finditer(host.plain):
        closing = host.closing(match.end() - 1)
        parts = whole_arguments(host.plain[match.end() : closing]) if closing > 0 else []
        strings = _STRING.findall(host.text, host.original(match.end() - 1), host.original(max(0, closing)))
        if len(parts) == 3 and len(strings) == 1:
            yield match.start(), _variable(parts[0]), _name(strings[0])


def _variable(text: str) -> str:
    return _BESIDE_A_NAME.sub("", text)


def _name(string: str) -> str:
    """A kernel's name without what the linker adds to it."""
    mangled = _MANGLED.match(string)
    name, at = string, mangled.end() if mangled is not None else len(string)
    while (length := _LENGTH.match(string, at)) is not None:
        at = length.end() + int(length[0])
        name = string[length.end() : at]
        if mangled is not None and not mangled[1]:
            break  # what follows are the types of its parameters
    return name if name.isidentifier() else string
