"""Textures and surfaces of one to three dimensions, also layered: ``tex``, ``suld``, ``sust``.

Source: PTX ISA 9.7.10 "Texture instructions", 9.7.11 "Surface instructions". An object's handle is the
address of a description that the stand-in runtime wrote (``standin/images.cpp``). A kernel that runs on its
own has none: reads give zeros, writes nothing, and the outcome says so; the same holds for cube maps,
mipmaps and gathers. Filtering follows the CUDA programming guide, "Texture fetching": weights have 8 bits
of fraction. Accesses are watched as those to the memory behind the image; a texture does not see what its
own launch wrote before, not even behind a barrier ("Texture and surface memory").
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from cuda_lsp.dynamic.emulator.accesses import Accesses
from cuda_lsp.dynamic.emulator.lanes import distinct

Array = Any
Mask = Any

_MARK = 0x70736C2D61647563
_WRAP, _CLAMP, _MIRROR, _BORDER = range(4)  # cudaTextureAddressMode
_SIGNED, _UNSIGNED, _FLOAT = range(3)  # cudaChannelFormatKind
_DESCRIPTION = np.dtype([
    ("mark", "u8"), ("data", "u8"), ("pitch", "u8"), ("sides", "u4", 3), ("channels", "u4"), ("bits", "u4"),
    ("kind", "u4"), ("modes", "u4", 3), ("linear", "u4"), ("relative", "u4"), ("scaled", "u4"),
    ("border", "f4", 4),
])  # fmt: skip


@frozen(eq=False)
class Image:
    """A bound texture or surface. ``sides``: elements, x first; ``size``: bytes of an element."""

    data: int
    pitch: int
    sides: tuple[int, int, int]
    channels: int
    bits: int
    kind: int
    modes: tuple[int, ...]
    linear: bool
    relative: bool
    scaled: bool
    border: Array

    @property
    def size(self) -> int:
        """Bytes of an element, all channels together."""
        return self.channels * self.bits // 8


@define(eq=False)
class Images:
    """Textures and surfaces of one launch."""

    accesses: Accesses
    known: dict[int, Image | None] = field(factory=dict[int, Any])

    def image(self, handle: int) -> Image | None:
        """What a handle stands for; None: nothing that the runtime made."""
        if handle not in self.known:
            self.known[handle] = self._described(handle)
        return self.known[handle]

    def _described(self, handle: int) -> Image | None:
        memory = self.accesses.memory
        end = handle + _DESCRIPTION.itemsize
        if handle % 8 or end > len(memory.data) or not memory.exists(handle, end):
            return None
        found = memory.data[handle:end].view(_DESCRIPTION)[0]
        if found["mark"] != _MARK:
            return None
        x, y, z = (max(1, int(side)) for side in found["sides"])
        return Image(
            int(found["data"]), int(found["pitch"]), (x, y, z), int(found["channels"]), int(found["bits"]),
            int(found["kind"]), tuple(int(m) for m in found["modes"]), bool(found["linear"]),
            bool(found["relative"]), bool(found["scaled"]), np.array(found["border"]),
        )  # fmt: skip

    def _groups(self, handle: Array, mask: Mask, what: str) -> Iterator[tuple[Image, Array]]:
        """The active threads by the image that they name."""
        handle = np.broadcast_to(np.asarray(handle), (self.accesses.threads,))
        lanes = np.arange(self.accesses.threads) if mask is None else np.flatnonzero(mask)
        for one in distinct(handle[lanes]).tolist():
            image = self.image(one)
            if image is None:
                self.accesses.unbound(what)
            else:
                yield image, lanes[handle[lanes] == one]

    def _of(self, values: Sequence[Array], lanes: Array) -> list[Array]:
        return [np.broadcast_to(np.asarray(v), (self.accesses.threads,))[lanes] for v in values]

    # ---------------------------------------------------------------------------------- textures

    def fetch(
        self, number: int, handle: Array, layer: Array, coordinates: Sequence[Array], kind: str, mask: Mask
    ) -> list[Array]:
        """The four channels of a texel, as registers of a PTX type."""
        found = [np.zeros(self.accesses.threads, np.float64) for _ in range(4)]
        for image, lanes in self._groups(handle, mask, "textures"):
            at = self._of(coordinates, lanes)
            top = (
                np.zeros(len(lanes), np.int64)
                if layer is None
                else self._of([layer], lanes)[0].astype(np.int64)
            )
            touched: list[tuple[Array, Array]] = []
            top = np.clip(top, 0, image.sides[2] - 1)
            values = _texels(self.accesses.memory.data, image, at, top, touched)
            for where, inside in touched:
                self._log(number, where, lanes[inside], inside, image.size, fetched=True)
            for k in range(image.channels):
                found[k][lanes] = values[:, k]
        if kind == "f16":
            return [v.astype(np.float16).view(np.uint16) for v in found]
        if kind == "f32":
            return [v.astype(np.float32) for v in found]
        return [v.astype(np.int64).astype(np.int32 if kind[0] == "s" else np.uint32) for v in found]

    # ---------------------------------------------------------------------------------- surfaces

    def read(
        self, number: int, handle: Array, layer: Array, coordinates: Sequence[Array], size: int, outside: str,
        mask: Mask, count: int,
    ) -> list[Array]:  # fmt: skip
        """``suld.b``: ``count`` values of ``size`` bytes; x counts bytes."""
        found = [np.zeros(self.accesses.threads, f"u{size}") for _ in range(count)]
        for image, lanes in self._groups(handle, mask, "surfaces"):
            where, inside = self._place(number, image, layer, coordinates, lanes, size * count, outside)
            self._log(number, where, lanes[inside], inside, size * count)
            view = self.accesses.memory.views[f"u{size}"]
            for k in range(count):
                found[k][lanes] = np.where(inside, view.take(where // size + k, mode="clip"), 0)
        return found

    def write(
        self, number: int, handle: Array, layer: Array, coordinates: Sequence[Array], size: int, outside: str,
        mask: Mask, values: Sequence[Array],
    ) -> None:  # fmt: skip
        """``sust.b``."""
        for image, lanes in self._groups(handle, mask, "surfaces"):
            where, inside = self._place(number, image, layer, coordinates, lanes, size * len(values), outside)
            self._log(number, where, lanes[inside], inside, size * len(values), write=True)
            view = self.accesses.memory.views[f"u{size}"]
            for k, value in enumerate(self._of(values, lanes)):
                view[where[inside] // size + k] = value[inside]

    def _log(
        self, number: int, where: Array, lanes: Array, inside: Array, size: int, write: bool = False,
        fetched: bool = False,
    ) -> None:  # fmt: skip
        """Tell the detector: ``lanes`` touch ``size`` bytes at those of ``where`` that are ``inside``."""
        address, mask = np.zeros(self.accesses.threads, np.int64), np.zeros(self.accesses.threads, bool)
        address[lanes], mask[lanes] = where[inside], True
        services = self.accesses
        services.executed[number] = True
        if services.detector is not None and services.watched[number]:
            services.detector.access(number, address, mask, size, int(write))
            if fetched:
                services.detector.fetched()

    def _place(
        self, number: int, image: Image, layer: Array, coordinates: Sequence[Array], lanes: Array, size: int,
        outside: str,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Addresses, and which of them are within the image."""
        given = [c.astype(np.int64) for c in self._of(coordinates, lanes)]
        given += [np.zeros(len(lanes), np.int64)] * (2 - len(given))
        if len(given) == 2:
            given += (
                [given[0] * 0] if layer is None else [v.astype(np.int64) for v in self._of([layer], lanes)]
            )
        limits = (image.sides[0] * image.size - size, image.sides[1] - 1, image.sides[2] - 1)
        inside = np.ones(len(lanes), bool)
        for value, limit in zip(given, limits, strict=True):
            inside &= (value >= 0) & (value <= limit)
        if outside == "trap" and not inside.all():
            stopped = np.zeros(self.accesses.threads, bool)
            stopped[lanes[~inside]] = True
            self.accesses.trap(number, stopped, "an access outside a surface")
        x, y, z = (np.clip(v, 0, limit) for v, limit in zip(given, limits, strict=True))
        where = image.data + (z * image.sides[1] + y) * image.pitch + x
        return where, inside if outside == "zero" else np.ones(len(lanes), bool)


# --------------------------------------------------------------------------------------- filtering


def _texels(
    data: Array, image: Image, coordinates: list[Array], layer: Array, touched: list[tuple[Array, Array]]
) -> Array:
    """Filtered values at some coordinates, ``(n, channels)``. ``touched``: gets the addresses read."""
    whole = coordinates[0].dtype.kind != "f"
    if whole or not image.linear:
        places = [
            (c.astype(np.int64) if whole else np.floor(_scaled(image, c, k)).astype(np.int64))
            for k, c in enumerate(coordinates)
        ]
        return _values(data, image, places, layer, whole, touched)
    low: list[Array] = []
    weight: list[Array] = []
    for k, c in enumerate(coordinates):
        shifted = _scaled(image, c, k) - 0.5
        low.append(np.floor(shifted).astype(np.int64))
        weight.append(np.rint((shifted - np.floor(shifted)) * 256) / 256)
    total: Array = 0.0
    for corner in itertools.product((0, 1), repeat=len(low)):
        share = np.prod([w if up else 1 - w for w, up in zip(weight, corner, strict=True)], axis=0)
        places = [at + up for at, up in zip(low, corner, strict=True)]
        total = total + share[:, None] * _values(data, image, places, layer, False, touched)
    return total


def _scaled(image: Image, coordinate: Array, axis: int) -> Array:
    """A coordinate in texels."""
    wide = np.nan_to_num(coordinate.astype(np.float64))
    return np.clip(wide * image.sides[axis] if image.relative else wide, -(2.0**40), 2.0**40)


def _values(
    data: Array, image: Image, places: list[Array], layer: Array, whole: bool,
    touched: list[tuple[Array, Array]],
) -> Array:  # fmt: skip
    """The texels at whole coordinates, after the address modes, ``(n, channels)`` in double precision."""
    inside, fixed = np.ones(len(layer), bool), []
    for k, place in enumerate(places):
        side = image.sides[k]
        mode = _BORDER if whole else image.modes[k]
        if mode in (_WRAP, _MIRROR) and not image.relative:
            mode = _CLAMP
        if mode == _WRAP:
            place = place % side
        elif mode == _MIRROR:
            place = np.where(place % (2 * side) < side, place % side, side - 1 - place % side)
        elif mode == _BORDER:
            inside &= (place >= 0) & (place < side)
        fixed.append(np.clip(place, 0, side - 1))
    x, y = fixed[0], fixed[1] if len(fixed) > 1 else 0
    z = fixed[2] if len(fixed) > 2 else layer
    start = image.data + (z * image.sides[1] + y) * image.pitch + x * image.size
    touched.append((start, inside))
    kind = np.dtype(f"{'iuf'[image.kind]}{image.bits // 8}")
    bytes_ = data[(start[:, None] + np.arange(image.size)).clip(0, len(data) - 1)]
    found = np.ascontiguousarray(bytes_).view(kind).astype(np.float64)
    if image.scaled and image.kind != _FLOAT:
        found = np.maximum(found / float(np.iinfo(kind).max), -1.0)
    border = 0.0 if whole else image.border[: image.channels]
    return np.where(inside[:, None], found, border)
