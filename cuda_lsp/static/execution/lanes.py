"""Known values of all lanes, as NumPy arrays: what built-in variables hold, and how unlike dtypes meet."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.ops import dtype_of
from cuda_lsp.ir.types import Int
from cuda_lsp.model import Dim3
from cuda_lsp.static.execution.values import Flags, Lanes, Scalar, Value

_AXIS_INDEX = {axis: i % 3 for i, axis in enumerate(list(ir.Axis)[:12])}


def builtin_values(block: Dim3, grid: Dim3, blocks: tuple[Dim3, ...], warp_size: int) -> dict[ir.Axis, Value]:
    """What each built-in variable holds in these blocks: one number, or ``(blocks * threads,)``."""
    threads = block[0] * block[1] * block[2]
    t = np.arange(threads, dtype=np.uint32)
    tids = (t % block[0], t // block[0] % block[1], t // (block[0] * block[1]))
    values: dict[ir.Axis, Value] = {ir.Axis.WARP_SIZE: warp_size}
    values[ir.Axis.LANE] = np.tile(t % warp_size, len(blocks)).astype(np.uint32)
    for axis, i in _AXIS_INDEX.items():
        if axis.name.startswith("TID"):
            values[axis] = np.tile(tids[i], len(blocks)) if block[i] > 1 else 0
        elif axis.name.startswith("BID"):
            index = np.repeat(np.array([b[i] for b in blocks], np.uint32), threads)
            values[axis] = index if len({b[i] for b in blocks}) > 1 else blocks[0][i]
        else:
            values[axis] = (block if axis.name.startswith("BDIM") else grid)[i]
    return values


def by_lane(flags: Flags) -> Flags:
    """``(lanes,)``: those that are flagged in some round."""
    return np.asarray(np.reshape(flags, (-1, flags.shape[-1])).any(axis=0))


def wide(value: Scalar) -> Scalar:
    """In 64 bits, as offsets are."""
    return value.astype(np.int64, copy=False) if isinstance(value, np.ndarray) else value


def widened(value: Scalar, type: Int) -> Any:
    """Lanes that were merged from plain numbers, as the operation takes them: it must not wrap earlier."""
    if isinstance(value, int):
        return type.wrap(value)
    if not isinstance(value, np.ndarray) or value.dtype == np.bool_:
        return value
    return value.astype(dtype_of(type), copy=False) if value.dtype.itemsize * 8 <= type.bits <= 64 else value


def merged(lanes: Flags, then: int | Lanes, otherwise: int | Lanes) -> Lanes:
    """``then`` in ``lanes``, ``otherwise`` elsewhere, in a dtype that holds both."""
    if isinstance(then, int) and isinstance(otherwise, int):
        wide = _narrowest(then, otherwise)
        return np.where(lanes, wide(then), wide(otherwise))
    kept = then if isinstance(then, np.ndarray) else otherwise
    assert isinstance(kept, np.ndarray)
    typed: np.dtype[Any] = kept.dtype
    number = next((v for v in (then, otherwise) if isinstance(v, int)), 0)
    if typed.kind in "iu" and not np.iinfo(typed).min <= number <= np.iinfo(typed).max:
        typed = np.dtype(np.uint64 if number >= 1 << 63 else np.int64)
    parts = (v if isinstance(v, int) else v.astype(typed, copy=False) for v in (then, otherwise))
    return np.where(lanes, *(np.asarray(part, typed) for part in parts))


def _narrowest(*numbers: int) -> type[np.int32] | type[np.int64] | type[np.uint64]:
    """The lanes that hold all of these."""
    if min(numbers) >= -(1 << 31) and max(numbers) < 1 << 31:
        return np.int32
    return np.int64 if max(numbers) < 1 << 63 else np.uint64
