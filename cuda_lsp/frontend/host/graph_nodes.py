"""Launches that nodes of a graph make, and arguments that arrays of pointers list.

``params.func = (void*)kernel; params.blockDim = dim3(64); … cudaGraphAddKernelNode(&node, …, &params);``:
what the record holds is read between its declaration, or its use before, and the call; one assignment for a
member.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.frontend.host.definitions import pointer_lists
from cuda_lsp.frontend.host.text import FURTHEST, HostText, split_arguments
from cuda_lsp.frontend.host.written_launches import KERNEL, Written

_CALL = re.compile(r"\bcudaGraph(?:Add|Exec)?KernelNode(?:SetParams)?\s?\(")
_RECORD = re.compile(r"\A\s?&\s?(\w+)\s?\Z")
_CAST = re.compile(r"\A\s?\(\s?(?:const\s)?void\s?\*{1,2}\s?\)\s?")
_POINTED = re.compile(r"\A(?:\(\s?(?:const\s)?void\s?\*\s?\)\s?)?&\s?(.+)\Z", re.S)


def listed_arguments(host: HostText, name: str, before: int) -> list[str]:
    """``void* args[] = {&a, &n};``: what the arguments are that an array points to; none: nobody knows."""
    lists = [m for m in pointer_lists(host.plain, before - FURTHEST, before) if m[1] == name.strip()]
    if not lists or host.braces.end(lists[-1].start()) < before:
        return []
    parts = split_arguments(lists[-1][2])
    if parts and not parts[-1].strip():  # C++ lets a list end in a comma
        parts.pop()
    pointers = [_POINTED.match(part.strip()) for part in parts]
    return [pointer[1].strip() if pointer else "" for pointer in pointers]


def graph_launches(host: HostText) -> Iterator[Written]:
    """The launches of kernel nodes, in order."""
    last: dict[str, int] = {}
    for match in _CALL.finditer(host.plain):
        closing = host.closing(match.end() - 1)
        parts = split_arguments(host.plain[match.end() : closing]) if closing > 0 else []
        record = _RECORD.match(parts[-1]) if parts else None
        if record is not None:
            launch = _of(host, record[1], last.get(record[1], 0), match.start(), closing + 1)
            last[record[1]] = closing
            if launch is not None:
                yield launch


def _of(host: HostText, record: str, begin: int, call: int, end: int) -> Written | None:
    members = _members(host, record, begin, call)
    kernel = KERNEL.match(_CAST.sub("", members.get("func") or ""))
    grid, block = members.get("gridDim"), members.get("blockDim")
    if kernel is None or not grid or not block:
        return None
    listed = _CAST.sub("", members.get("kernelParams") or "").strip()
    arguments = listed_arguments(host, listed, call)
    configuration = [grid, block, members.get("sharedMemBytes") or "0"]
    return Written(kernel[1], kernel[2], configuration, arguments, call, end)


def _members(host: HostText, record: str, begin: int, call: int) -> dict[str, str | None]:
    """What is assigned in the call's function since ``begin``, by member; None: more than once."""
    found: dict[str, str | None] = {}
    first = max(begin, call - FURTHEST, host.plain.rfind(f"cudaKernelNodeParams {record}", 0, call))
    for match in re.finditer(
        rf"(?<![\w.>]){record}\s?\.\s?(\w+)\s?=\s?([^;]{{1,400}});", host.plain[first:call]
    ):
        inside = host.braces.end(first + match.start()) >= call  # not in a branch
        found[match[1]] = match[2] if match[1] not in found and inside else None
    return found
