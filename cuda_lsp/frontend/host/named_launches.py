"""Launches of kernels that a program compiles when it runs, which host code names in a string.

``auto scale = load("ns::scale", …); Queue queue(grid, block, stream); scale(queue, in, n);``, or in one
statement ``program.kernel("scale").instantiate(n).configure(grid, block).launch(in, n);``. What such an
object is called is anybody's guess; what leads from the string to the call is in the text, both are of type
``dim3``, and their order is CUDA's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.frontend.host.text import FURTHEST, HostText, whole_arguments
from cuda_lsp.frontend.host.written_launches import Written

_NAMED = re.compile(r'([(,{])\s*"(?:[A-Za-z_]\w*::)*([A-Za-z_]\w*)"\s*[,)}]')
_HELD = re.compile(r"[;{}]\s?(?:(?:const\s)?[\w:]{1,80}\s?&?\s)?([A-Za-z_]\w*)\s?=[^=;{}][^;]{0,400}\Z")
_CONFIGURED = re.compile(r"\bconfigure\s?(\()")
_LAUNCHED = re.compile(r"\blaunch\s?(\()")
_CONFIGURATION = 2
"""Grid and block; bytes of shared memory may follow."""


def named_launches(host: HostText) -> Iterator[Written]:
    """Every launch of a kernel that a string names, in order."""
    for match in _NAMED.finditer(host.text) if '"' in host.text else ():
        at = host.reduced(match.start())
        if host.plain[at : at + 1] != match[1]:  # in a comment
            continue
        launch = _chained(host, match[2], at) or _through_variable(host, match[2], at)
        if launch is not None:
            yield launch


def _chained(host: HostText, kernel: str, at: int) -> Written | None:
    """``….configure(grid, block).launch(arguments)`` behind the string, in its statement."""
    end = host.plain.find(";", at, at + FURTHEST)
    configured = _CONFIGURED.search(host.plain, at, max(end, at))
    launched = _LAUNCHED.search(host.plain, configured.end(), end) if configured else None
    configuration = _inside(host, configured.start(1)) if configured else []
    if launched is None or len(configuration) < _CONFIGURATION:
        return None
    return Written(kernel, None, configuration[:3], _inside(host, launched.start(1)), at, end)


def _through_variable(host: HostText, kernel: str, at: int) -> Written | None:
    """The one call of the variable that is made with the string, with an object of grid and block first."""
    held = _HELD.search(host.plain, max(0, at - FURTHEST), at)
    block = host.braces.begin(at)
    if held is None or block < 0:
        return None
    end = min(host.braces.end(at), at + FURTHEST)
    calls = list(re.finditer(rf"(?<![\w.>:]){held[1]}\s?(\()", host.plain[at:end]))
    given = _inside(host, at + calls[0].start(1)) if len(calls) == 1 else []
    configuration = _made_of(host, given[0], at, at + calls[0].start()) if given else None
    before = host.plain[max(0, at - FURTHEST) : at + calls[0].start()] if calls else ""
    if configuration is None or not all(_is_dim3(part, before) for part in configuration):
        return None
    finish = host.closing(at + calls[0].start(1)) + 1
    return Written(kernel, None, configuration, given[1:], at + calls[0].start(), finish)


def _made_of(host: HostText, object: str, begin: int, end: int) -> list[str] | None:
    """Grid and block of an object, by its one declaration in between or written in place."""
    name = object.strip()
    if name.isidentifier():
        made = list(re.finditer(rf"[;{{}}]\s?[A-Za-z_][\w:]*\s{name}\s?([({{])", host.plain[begin:end]))
        opening = begin + made[0].start(1) if len(made) == 1 else -1
        parts = _inside(host, opening) if opening >= 0 else []
    else:
        written = re.match(r"[A-Za-z_][\w:]*\s?[({](.*)[)}]\Z", name, re.S)
        parts = [part.strip() for part in whole_arguments(written[1])] if written else []
    return parts[:_CONFIGURATION] if len(parts) >= _CONFIGURATION else None


def _is_dim3(part: str, before: str) -> bool:
    declared = part.isidentifier() and re.search(rf"\bdim3\s(?:&\s?)?{part}\b", before)
    return bool(declared) or re.match(r"dim3\s?[({]", part) is not None


def _inside(host: HostText, opening: int) -> list[str]:
    closing = host.braces.closing.get(opening, -1) if host.plain[opening] == "{" else host.closing(opening)
    return (
        [part.strip() for part in whole_arguments(host.plain[opening + 1 : closing])] if closing > 0 else []
    )
