"""``cudaLaunchKernelEx(&config, kernel, arguments…)``: launches whose configuration is an object.

What the object holds is read between its declaration and the launch: an initialiser, or one assignment a
member. Its attributes (clusters, programmatic launches) are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.frontend.host.host_constants import split_arguments
from cuda_lsp.frontend.host.written_launches import KERNEL, Written, matching, whole_arguments

_CALL = re.compile(r"\bcudaLaunchKernelEx(?:C)?\s*\(")
_MEMBERS = ("gridDim", "blockDim", "dynamicSmemBytes")


def configured_launches(plain: str) -> Iterator[Written]:
    """Every launch of this kind in the text, in order."""
    for match in _CALL.finditer(plain):
        closing = matching(plain, match.end() - 1)
        parts = whole_arguments(plain[match.end() : closing]) if closing > 0 else []
        kernel = KERNEL.fullmatch(parts[1]) if len(parts) > 1 else None
        config = re.fullmatch(r"\s*&?\s*(\w+)\s*", parts[0]) if parts else None
        if kernel is None or config is None:
            continue
        configuration = _members(plain[: match.start()], config[1])
        if configuration is not None:
            arguments = [] if match[0].endswith("C(") else parts[2:]
            yield Written(kernel[1], kernel[2], configuration, arguments, match.start(), closing + 1)


def _members(before: str, name: str) -> list[str] | None:
    """Grid, block and shared bytes of the object; None: it is not made here, or not in one way."""
    declared = list(re.finditer(rf"\bcudaLaunchConfig_t\s+{name}\b\s*(?:=\s*)?(?:\{{([^;]*)\}})?", before))
    if not declared:
        return None
    values: dict[str, str] = {}
    given = split_arguments(declared[-1][1] or "")
    for number, part in enumerate(given):
        named = re.fullmatch(r"\s*\.\s*(\w+)\s*=\s*(.*)", part, re.S)
        if named:
            values[named[1]] = named[2]
        elif number < len(_MEMBERS) and part.strip():
            values[_MEMBERS[number]] = part
    rest = before[declared[-1].end() :]
    for member in _MEMBERS:
        assigned = re.findall(rf"(?<![\w.>]){name}\s*\.\s*{member}\s*=(?!=)\s*([^;]+);", rest)
        if len(assigned) > 1 or re.search(rf"(?<![\w.>]){name}\s*\.\s*{member}\s*\.", rest):
            return None
        if assigned:
            values[member] = assigned[0]
    return [values.get(member, "1" if member != "dynamicSmemBytes" else "0") for member in _MEMBERS]
