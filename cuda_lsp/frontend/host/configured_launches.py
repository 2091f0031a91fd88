"""``cudaLaunchKernelEx(&config, kernel, arguments…)``: launches whose configuration is an object.

What the object holds is read between its declaration and the launch: an initialiser, or one assignment a
member. Its attributes (clusters, programmatic launches) are not read.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from cuda_lsp.frontend.host.text import HostText, by_name, split_arguments, start_of, whole_arguments
from cuda_lsp.frontend.host.written_launches import KERNEL, Written

_CALL = re.compile(r"\bcudaLaunchKernelEx(?:C)?\s?\(")
_MEMBERS = ("gridDim", "blockDim", "dynamicSmemBytes")
_CONFIG = re.compile(r"\A\s?&?\s?(\w+)\s?\Z")
_DECLARED = re.compile(r"\bcudaLaunchConfig_t\s(\w+)\b\s?(?:=\s?)?")
_NAMED = re.compile(r"\A\s?\.\s?(\w+)\s?=\s?(.*)\Z", re.S)
_MEMBER = re.compile(
    rf"(?<![\w.>])([A-Za-z_]\w*)\s?\.\s?({'|'.join(_MEMBERS)})\s?(?:=(?!=)\s?(?:([^;]{{1,400}});)?|\.)"
)


def configured_launches(host: HostText) -> Iterator[Written]:
    """Every launch of this kind in the text, in order."""
    plain = host.plain
    configurations: _Configurations | None = None
    for match in _CALL.finditer(plain):
        closing = host.closing(match.end() - 1)
        parts = whole_arguments(plain[match.end() : closing]) if closing > 0 else []
        kernel = KERNEL.match(parts[1]) if len(parts) > 1 else None
        config = _CONFIG.match(parts[0]) if parts else None
        if kernel is None or config is None:
            continue
        configurations = configurations or _Configurations(host)
        configuration = configurations.members(config[1], match.start())
        if configuration is not None:
            arguments = [] if match[0].endswith("C(") else parts[2:]
            yield Written(kernel[1], kernel[2], configuration, arguments, match.start(), closing + 1)


class _Configurations:
    """Every configuration object of a text, and what its members are set to."""

    def __init__(self, host: HostText) -> None:
        self._host = host
        self._declared = by_name(_DECLARED, host.plain)
        self._assigned = by_name(_MEMBER, host.plain)

    def members(self, name: str, before: int) -> list[str] | None:
        """Grid, block and shared bytes of the object; None: it is not made here, or not in one way."""
        declared = self._declared.get(name, ())
        index = bisect_left(declared, before, key=start_of)
        if not index:
            return None
        values: dict[str, str] = {}
        made = declared[index - 1]
        initialiser = self._initialiser(made.end())
        if initialiser is None:
            return None
        for number, part in enumerate(split_arguments(initialiser)):
            named = _NAMED.match(part)
            if named:
                values[named[1]] = named[2]
            elif number < len(_MEMBERS) and part.strip():
                values[_MEMBERS[number]] = part
        seen: set[str] = set()
        assigned = self._assigned.get(name, ())
        first, last = (bisect_left(assigned, at, key=start_of) for at in (made.end(), before))
        for match in assigned[first:last]:
            if match[3] is None or match[2] in seen:
                return None
            seen.add(match[2])
            values[match[2]] = match[3]
        return [values.get(member, "1" if member != "dynamicSmemBytes" else "0") for member in _MEMBERS]

    def _initialiser(self, at: int) -> str | None:
        """What stands between the braces at ``at``; "" without braces, None: they are not closed."""
        if self._host.plain[at : at + 1] != "{":
            return ""
        end = self._host.braces.closing.get(at)
        return None if end is None else self._host.plain[at + 1 : end]
