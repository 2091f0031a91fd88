"""Launches through an object that is made for one: ``LaunchKernel{grid, block, shared, stream}(kernel, n);``.

The class may stand in a header that nobody has: its name says what it does, and the order is CUDA's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.frontend.host.text import HostText, whole_arguments
from cuda_lsp.frontend.host.written_launches import KERNEL, Written

_LAUNCHER = re.compile(
    r"(?<!\w)\w{0,30}(?:[Ll]aunch_?[Kk]ernel|[Kk]ernel_?[Ll]aunch(?:er)?)\w{0,10}\s?(?=[{(])"
)
_MOST = 4
"""Grid, block, bytes of shared memory, stream."""
_LONGEST = 400
"""Characters of these."""


def object_launches(host: HostText) -> Iterator[Written]:
    """Every launch of a named kernel through a temporary object, in order."""
    for match in _LAUNCHER.finditer(host.plain):
        opening = match.end()
        made = host.braces.closing if host.plain[opening] == "{" else host.parentheses
        closing = made.get(opening, -1)
        if not 0 < closing - opening < _LONGEST:
            continue
        called = closing + 1 + host.plain[closing + 1 : closing + 2].isspace()
        end = host.closing(called) if host.plain[called : called + 1] == "(" else -1
        configuration = [part.strip() for part in whole_arguments(host.plain[opening + 1 : closing])]
        given = whole_arguments(host.plain[called + 1 : end]) if end > 0 else []
        kernel = KERNEL.match(given[0]) if given else None
        if kernel is not None and 2 <= len(configuration) <= _MOST:
            yield Written(kernel[1], kernel[2], configuration, given[1:], match.start(), end + 1)
