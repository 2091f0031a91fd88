"""Whether all lanes of a warp come to a place of a kernel, as far as its text tells.

``__syncwarp()`` where some of them do not come is undefined, and our analyses do not tell. They come where no
branch or loop around the place hangs on the thread; but for comparisons of ``threadIdx.x`` itself with
multiples of 32.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cuda_lsp.repairs.arrays import constant
from cuda_lsp.repairs.candidate import Edit, Places, edited
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form, Statement

BARRIER = "__syncwarp();"
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_WRITTEN = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<<|>>|[-+*/%&|^])?=(?!=)((?:[^;,()]|\([^()]*\))*)")
_OF_THREADS = re.compile(r"\bthreadIdx\b|\w\s*\(|\[|->|\*\s*[A-Za-z_]\w*\s*(?:[;,)]|\Z)|\blaneid\b")
_PART = re.compile(r"\s*([\w.]+)\s*(<|>=)\s*(\w+)\s*")
_WARP = 32


def come_to_barriers(source: Source, edits: Sequence[Edit]) -> bool:
    """Whether whole warps come to each ``__syncwarp();`` that edits bring in."""
    made = Source(source.path, edited(source.text, edits))
    places = Places(edits)
    barriers = (match.start() for match in re.finditer(re.escape(BARRIER), made.text))
    return all(_come_to(made, at) for at in barriers if places.after(at)[1])


def _come_to(source: Source, offset: int) -> bool:
    path = source.statements.path(offset)
    if not path:
        return False
    body = source.plain[path[0].start : path[0].end]
    return all(_is_of_all(source, s, body, path[0]) for s in path if s.head is not None)


def _is_of_all(source: Source, statement: Statement, body: str, function: Statement) -> bool:
    """Whether the lanes of a warp go through a statement together."""
    assert statement.head is not None
    head = source.plain[slice(*statement.head)].strip()[1:-1]
    within = source.plain[statement.start : statement.end]
    if statement.form is Form.LOOP and re.search(r"\b(?:break|continue|goto)\b", within):
        return False
    if not _varies(source, head, body, function):
        return True
    parts = re.split(r"&&", head)
    return statement.form is Form.IF and all(
        not _varies(source, part, body, function) or _cuts_between_warps(source, part, body) for part in parts
    )


def _varies(source: Source, expression: str, body: str, function: Statement) -> bool:
    """Whether an expression may differ between threads: by what is written to its names anywhere."""
    if not _is_kernel(source, function):
        return True
    pending, seen = [expression], set[str]()
    while pending:
        text = pending.pop()
        if _OF_THREADS.search(text):
            return True
        for name in _NAME.findall(text):
            if name not in seen:
                seen.add(name)
                pending += [value for written, value in _WRITTEN.findall(body) if written == name]
    return False


def _is_kernel(source: Source, function: Statement) -> bool:
    """Whose parameters are the same for all."""
    before = source.plain[: function.start]
    return "__global__" in before[max(before.rfind(";"), before.rfind("}"), before.rfind("{")) + 1 :]


def _cuts_between_warps(source: Source, condition: str, body: str) -> bool:
    compared = _PART.fullmatch(condition)
    if compared is None or "threadIdx.y" in body or "threadIdx.z" in body:
        return False
    name, number = compared[1], constant(source, compared[3])
    values = [value.strip() for written, value in _WRITTEN.findall(body) if written == name]
    is_index = name == "threadIdx.x" or values == ["threadIdx.x"]
    whole = compared[3] == "warpSize" or (number is not None and number % _WARP == 0)
    return is_index and whole
