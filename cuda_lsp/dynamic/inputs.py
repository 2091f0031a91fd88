"""Arguments for a kernel that runs on its own: buffers large enough, contents fit to be used as indices.

Scalars: what the launch or a witness fixes, else the trial's values, else the number of threads (the usual
meaning of ``n``). Contents: what the trial's condition needs, else random integers small enough to be indices
of what the kernel uses them for, and floats between 0 and 1. Everything is seeded. Sizes are what the kernel
is known to need; a buffer that the run shows to be too small grows before anything is called out of bounds.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from cuda_lsp.dynamic.job import ElementKind, Parameter, Piece, Trial
from cuda_lsp.dynamic.runs import Argument, Buffer, RunOutcome
from cuda_lsp.model import LaunchConfig, Space

LARGEST = 1 << 26
"""Bytes a buffer may grow to."""
_FILLED = frozenset(("i1", "i2", "i4", "i8", "f4", "f8"))
_SMALLEST = 1 << 16
_LONGEST_ROW = 4
_DRAWN_AT_ONCE = 1 << 20
_KEPT = 1 << 27  # bytes of buffers that serve again
_last: tuple[tuple[object, ...], tuple[Argument, ...]] | None = None


def with_grid(launch: LaunchConfig, blocks: int = 4) -> LaunchConfig:
    """The launch with every extent known; an unknown grid becomes a few blocks."""
    from attrs import evolve

    grid = launch.grid or (blocks, 1, 1)
    return evolve(launch, grid=grid, dynamic_shared=launch.dynamic_shared or 0)


def unknown_scalar(launch: LaunchConfig) -> int:
    """The usual meaning of a scalar that nothing tells: ``n``, the number of threads."""
    return launch.threads * prod(launch.grid or (1, 1, 1))


def first_sizes(parameters: tuple[Parameter, ...], trial: Trial) -> dict[str, int]:
    """Bytes of each buffer for a first attempt: what the kernel is known to need, else four elements a thread
    or what the scalars suggest."""
    launch = with_grid(trial.launch)
    threads = launch.threads * prod(launch.grid or (1, 1, 1))
    largest = max([threads, *(v for v in trial.scalars.values() if 0 < v < 1 << 22)])
    sizes = {
        piece.name: max(_SMALLEST, 4 * largest * max(piece.element, 1), trial.needs.get(piece.name, 0) + 15)
        for parameter in parameters
        for piece in parameter.pieces
        if piece.pointer
    }
    for name, (first, behind) in trial.placed.items():
        sizes[first] = max(sizes.get(first, 0), behind + sizes.get(name, 0))
    return {name: min(LARGEST, size) for name, size in sizes.items()}


def grown(sizes: Mapping[str, int], outcome: RunOutcome) -> dict[str, int] | None:
    """Larger buffers where accesses fell behind one; None: nothing can be gained."""
    result = dict(sizes)
    for fault in outcome.faults:
        name, offset = fault.place.array, max(fault.place.offset, fault.reach)
        if fault.place.space is Space.GLOBAL and name in result and offset >= result[name] < LARGEST:
            result[name] = min(LARGEST, max(result[name] * 4, 2 * offset))
    return result if result != dict(sizes) else None


def arguments(
    parameters: tuple[Parameter, ...], trial: Trial, sizes: Mapping[str, int], seed: int
) -> tuple[Argument, ...]:
    """Values for every parameter, in order, with buffers that nobody may write to.

    The last ones serve again, in a later check too: drawing numbers takes longer than a small kernel.
    """
    global _last
    launch, last = trial.launch, _last  # launches compare equal whatever their arguments
    key = (parameters, trial, dict(launch.arguments), dict(sizes), seed)
    if last is not None and last[0] == key:
        return last[1]
    random = np.random.default_rng(seed)
    made: dict[str, Buffer] = {}
    drawn = tuple(_argument(parameter, trial, sizes, random, made) for parameter in parameters)
    for buffer in made.values():
        buffer.data.setflags(write=False)
    _last = (key, drawn) if sum(len(buffer.data) for buffer in made.values()) <= _KEPT else None
    return drawn


def _argument(
    parameter: Parameter,
    trial: Trial,
    sizes: Mapping[str, int],
    random: np.random.Generator,
    made: dict[str, Buffer],
) -> Argument:
    """``made``: the buffers so far, by name."""
    value = bytearray(parameter.size)
    pointers: list[tuple[int, Buffer]] = []
    for piece in parameter.pieces:
        if piece.pointer:
            first, behind = trial.placed.get(piece.name, ("", 0))
            buffer = made.get(first) or _buffer(piece, sizes[piece.name], trial, random)
            made[piece.name] = buffer
            pointers.append((piece.offset, buffer))
            if buffer.name == first:
                value[piece.offset : piece.offset + 8] = behind.to_bytes(8, "little")
        else:
            value[piece.offset : piece.offset + piece.size] = _scalar(piece, trial)
    return Argument(parameter.name, bytes(value), tuple(pointers))


def _scalar(piece: Piece, trial: Trial) -> bytes:
    if piece.fraction:
        return struct.pack("<d" if piece.size == 8 else "<f", 0.5)[: piece.size]
    launch = with_grid(trial.launch)
    number = {**trial.scalars, **launch.arguments}.get(piece.name, unknown_scalar(launch))
    return (number & (1 << 8 * piece.size) - 1).to_bytes(piece.size, "little")


def _buffer(piece: Piece, size: int, trial: Trial, random: np.random.Generator) -> Buffer:
    size -= size % 16
    data: Any
    kind = "f" if piece.contents is ElementKind.FLOAT else "i"
    if piece.name in trial.contents and f"{kind}{piece.element}" in _FILLED:
        value = trial.contents[piece.name]
        if kind == "i":
            value = int(value) & (1 << 8 * piece.element) - 1
            kind = "u"
        data = np.full(size // piece.element, value, f"{kind}{piece.element}")
    elif piece.contents is ElementKind.FLOAT and piece.element in (4, 8):
        data = _drawn(size // piece.element, f"f{piece.element}", lambda a, b: random.random(b - a))
    elif piece.contents is ElementKind.INTEGER and piece.element in (1, 2, 4, 8):
        count = size // piece.element
        if piece.ascending:  # the first rows, which the kernel reads, have elements as well
            ends = np.cumsum(random.integers(0, _LONGEST_ROW + 1, count))
            data = np.minimum(ends, piece.limit - 1).astype(f"u{piece.element}")
        else:

            def below(start: int, end: int) -> Any:
                most = np.minimum(np.arange(start, end) + 1, piece.limit) if piece.forest else piece.limit
                return random.integers(0, most, end - start)

            data = _drawn(count, f"u{piece.element}", below)
    else:
        data = np.zeros(size, np.uint8)
    held = data.view(np.uint8)
    for name, offset, number in trial.cells:
        if name == piece.name and 0 <= offset <= size - piece.element:
            held[offset : offset + piece.element] = list(_element(piece, number))
    return Buffer(piece.name, held, max(piece.element, 1))


def _drawn(count: int, kind: str, draw: Callable[[int, int], Any]) -> Any:
    """What ``draw`` makes for ranges of the elements, one after the other: a number drawn has 8 bytes."""
    data = np.empty(count, kind)
    for start in range(0, count, _DRAWN_AT_ONCE):
        end = min(count, start + _DRAWN_AT_ONCE)
        data[start:end] = draw(start, end)
    return data


def _element(piece: Piece, number: int) -> bytes:
    if piece.contents is ElementKind.FLOAT and piece.element in (4, 8):
        return struct.pack("<d" if piece.element == 8 else "<f", number)
    return (number & (1 << 8 * piece.element) - 1).to_bytes(piece.element, "little")
