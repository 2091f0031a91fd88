"""Known integer contents of shared and local arrays, where addresses or conditions depend on them.

A shared array is a table of elements with a known flag; an element written with an unknown value but
by one statement for the whole block (a broadcast flag, a ticket) keeps that value as a term.  Accesses of
another width than the element's forget everything: exact or unknown, never wrong.
"""

from __future__ import annotations

import numpy as np
from attrs import define, field

from cuda_lsp.ir.ops import dtype_of
from cuda_lsp.ir.types import Int, Type
from cuda_lsp.static import budgets
from cuda_lsp.static.execution.values import Data, Flags, Lanes, Scalar, Value


@define(eq=False)
class SharedContents:
    """``values`` and ``known``: ``(blocks, elements)``; ``terms``: element → one unknown value."""

    element: Type
    values: Lanes
    known: Flags
    terms: dict[int, Data] = field(factory=dict[int, Data])

    @staticmethod
    def empty(element: Type, size: int | None, blocks: int) -> SharedContents:
        """Contents of which nothing is known. ``size``: bytes of the array, None: not known."""
        n = min(
            budgets.MOST_SHARED_ELEMENTS,
            budgets.UNTOLD_SHARED_ELEMENTS if size is None else max(size // max(element.size, 1), 1),
        )
        return SharedContents(element, np.zeros((blocks, n), np.int64), np.zeros((blocks, n), bool))

    def forget(self) -> None:
        """Nothing is known any more."""
        self.known[:] = False
        self.terms.clear()

    def store(self, offset: Scalar, value: Value, type: Type, must: Flags, may: Flags) -> None:
        """``value`` at ``offset`` bytes, in lanes that surely (``must``) or possibly (``may``) store it."""
        if isinstance(offset, Data) or type.size != self.element.size:
            self.forget()
            return
        index = np.broadcast_to(np.asarray(offset) // type.size, may.shape)
        blocks, elements = self.known.shape
        block = np.broadcast_to(self._block_of_lane(may), may.shape)
        inside = may & (index >= 0) & (index < elements)
        for gone in [e for e in self.terms if (index[inside] == e).any()]:
            del self.terms[gone]
        self.known[block[inside], index[inside]] = False
        sure = inside & must
        if isinstance(value, Data):
            if isinstance(offset, int) and sure.any() and int(sure.sum()) <= blocks:
                self.terms[offset // type.size] = value
        elif isinstance(value, (int, np.ndarray)):
            values = np.broadcast_to(np.asarray(value).astype(np.int64), may.shape)
            self.values[block[sure], index[sure]] = values[sure]
            self.known[block[sure], index[sure]] = True

    def load(self, offset: Scalar, type: Type, may: Flags) -> int | Lanes | Data | None:
        """What the lanes read, None when not all of it is known."""
        if isinstance(offset, Data) or not isinstance(type, Int) or type.size != self.element.size:
            return None
        elements = self.known.shape[1]
        if isinstance(offset, int):
            return self._load_one(offset // type.size, type, may)
        index = np.asarray(offset) // type.size
        inside = (index >= 0) & (index < elements)
        at = np.where(inside, index, 0)
        block = self._block_of_lane(may)
        known = self.known[block, at] & inside
        if not (known | ~may).all():
            return None
        return self.values[block, at].astype(dtype_of(type))

    def _block_of_lane(self, may: Flags) -> Lanes:
        blocks = len(self.known)
        return np.asarray(np.repeat(np.arange(blocks), may.shape[-1] // blocks))

    def _load_one(self, element: int, type: Int, may: Flags) -> int | Lanes | Data | None:
        blocks, elements = self.known.shape
        if element in self.terms:
            return self.terms[element]
        if not 0 <= element < elements or not self.known[:, element].all():
            return None
        cells = self.values[:, element]
        if (cells == cells[0]).all():
            return type.wrap(int(cells[0]))
        return np.repeat(cells, may.shape[-1] // blocks).astype(dtype_of(type))
