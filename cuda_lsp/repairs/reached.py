"""Whether any thread of a launch meets a condition at a place, as far as arithmetic of its numbers tells.

A guard that nobody passes takes the access out of the program: that is no repair of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from cuda_lsp.model import LaunchConfig
from cuda_lsp.repairs.arrays import constant
from cuda_lsp.repairs.elements import Names, names_around
from cuda_lsp.repairs.expressions import Expression, bare, parsed
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form

_COMPARED = re.compile(r"([^<>=!&|?:;]{1,200}?)\s{0,9}(<=|>=|==|!=|<|>)\s{0,9}([^<>=!&|?:;]{1,200})")
_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__, "==": int.__eq__, "!=": int.__ne__,
}  # fmt: skip
_APPLY: Mapping[str, Callable[[int, int], int]] = {
    "+": int.__add__, "-": int.__sub__, "*": int.__mul__, "&": int.__and__, "|": int.__or__, "^": int.__xor__,
    "<<": lambda a, b: a << min(b, 64), ">>": lambda a, b: a >> min(b, 64),
    "/": lambda a, b: a // b if b else 0, "%": lambda a, b: a % b if b else 0,
}  # fmt: skip
_LARGEST_GRID = 2  # blocks of an axis that are looked at

_MOST_THREADS = 4096

Ids = Mapping[str, int]
_Comparison = tuple[Expression, str, Expression]


def may_be_met(source: Source, offset: int, condition: str, launch: LaunchConfig | None) -> bool:
    """False: for each thread the condition, or one of those around the place, is known not to hold."""
    names = names_around(source, offset)
    if launch is None or names is None:
        return True
    wanted = [(condition, True), *_around(source, offset)]
    parts = [
        (known, holds)
        for text, holds in wanted
        for part in (text.split("&&") if holds else [text])
        if (known := _compared(names, part)) is not None
    ]
    threads = islice(_threads(launch), _MOST_THREADS)
    return any(all(_holds(names, part, ids) in (None, holds) for part, holds in parts) for ids in threads)


def _around(source: Source, offset: int) -> Iterator[tuple[str, bool]]:
    """The conditions of the branches around a place, and whether they hold there."""
    for statement in source.statements.path(offset):
        if statement.form is Form.IF and statement.head is not None:
            text = source.plain[slice(*statement.head)][1:-1]
            number = next((n for n, part in enumerate(statement.parts) if part.around(offset)), None)
            if number is not None:
                yield text, number == 0


def _threads(launch: LaunchConfig) -> Iterator[Ids]:
    width, height, depth = launch.block
    grid = [min(extent, _LARGEST_GRID) for extent in launch.least_grid]
    sizes = {f"blockDim.{axis}": extent for axis, extent in zip("xyz", launch.block, strict=True)}
    if launch.grid is not None:
        sizes |= {f"gridDim.{axis}": extent for axis, extent in zip("xyz", launch.grid, strict=True)}
    for block in range(grid[0] * grid[1] * grid[2]):
        at = {"blockIdx.x": block % grid[0], "blockIdx.y": block // grid[0] % grid[1]}
        at |= {"blockIdx.z": block // grid[0] // grid[1], **sizes}
        for thread in range(width * height * depth):
            place = {"threadIdx.x": thread % width, "threadIdx.y": thread // width % height}
            yield {**at, **place, "threadIdx.z": thread // width // height}


def _compared(names: Names, condition: str) -> _Comparison | None:
    """None: it is something else."""
    text = names.resolved(bare(condition))
    compared = _COMPARED.fullmatch(text)
    if compared is not None:
        return parsed(compared[1]), compared[2], parsed(compared[3])
    return (parsed(text), "!=", Expression("0")) if re.fullmatch(r"[^<>=!?:;,]*", text) else None


def _holds(names: Names, condition: _Comparison, ids: Ids) -> bool | None:
    """None: nobody knows."""
    left, right = (_value(names, side, ids) for side in (condition[0], condition[2]))
    return None if left is None or right is None else _COMPARE[condition[1]](left, right)


def _value(names: Names, expression: Expression, ids: Ids) -> int | None:
    if not expression.operator:
        text = expression.text.replace(" ", "")
        return ids[text] if text in ids else constant(names.source, re.sub(r"(?<=\d)[uUlL]+$", "", text))
    left, right = (_value(names, part, ids) for part in expression.parts)
    return None if left is None or right is None else _APPLY[expression.operator](left, right)
