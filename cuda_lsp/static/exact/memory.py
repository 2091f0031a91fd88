"""Memory of an execution: exact integers by object and byte, with what it held when the kernel started.

An object with first contents that is accessed in several sizes is not known at all. Atomics as in the CUDA
C++ Programming Guide.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from attrs import define, field

from cuda_lsp.ir.program import Array
from cuda_lsp.ir.types import Int, Pointer, Type
from cuda_lsp.static.exact.values import Value

Initial = Callable[[Array, int, Type], int | float | None]
"""What memory holds when the kernel starts: array, byte, type. None: nobody knows."""


def read_as(value: Value, type: Type) -> Value:
    """What memory holds as a value of the type."""
    if isinstance(type, Int):
        return type.wrap(value) if isinstance(value, int) else None
    return value if isinstance(value, tuple if isinstance(type, Pointer) else float) else None


@define(eq=False)
class Memory:
    """Values by object and byte. ``initial``: what nobody wrote yet; without it only what was written is
    known.

    What is written over in part is not known. Of an object with first contents, accesses in several sizes or
    out of line lose everything.
    """

    initial: Initial | None = None
    cells: dict[Hashable, dict[int, tuple[int, Value]]] = field(
        factory=dict[Hashable, dict[int, tuple[int, Value]]]
    )  # size in bytes, value
    sizes: dict[Hashable, int] = field(factory=dict[Hashable, int])
    lost: set[Hashable] = field(factory=set[Hashable])
    initially: set[tuple[Hashable, int]] = field(factory=set[tuple[Hashable, int]])
    """Cells that nobody wrote since the kernel started."""
    began: dict[tuple[Hashable, int], Value] = field(factory=dict[tuple[Hashable, int], Value])
    """What cells held at first that nothing but atomics has written."""
    asked: set[Array] = field(factory=set[Array])  # whose first contents some thread wanted to know

    def _regular(self, base: Hashable, offset: int, size: int) -> bool:
        if self.sizes.setdefault(base, size) != size or offset % size:
            self.lost.add(base)
        return base not in self.lost

    def load(self, base: Hashable, array: Array, offset: int, type: Type) -> Value:
        """What ``type.size`` bytes hold."""
        size = max(type.size, 1)
        cells = self.cells.setdefault(base, {})
        if self.initial is not None:
            if not self._regular(base, offset, size):
                return None
            if offset not in cells:
                cells[offset] = size, self.initial(array, offset, type)
                self.initially.add((base, offset))
                self.asked.add(array)
        width, value = cells.get(offset, (0, None))
        return read_as(value, type) if width == size else None

    def store(self, base: Hashable, offset: int, size: int, value: Value) -> None:
        """``size`` bytes are written; ``value`` None: nobody knows with what."""
        size = max(size, 1)
        cells = self.cells.setdefault(base, {})
        if not self._regular(base, offset, size):
            if self.initial is not None:
                return
            for start in [x for x in cells if x < offset + size and offset < x + cells[x][0]]:
                del cells[start]
        cells[offset] = size, value
        self.initially.discard((base, offset))
        self.began.pop((base, offset), None)

    def update(
        self, base: Hashable, array: Array, offset: int, type: Type, new: Callable[[Value], Value]
    ) -> Value:
        """An atomic leaves ``new`` of what it finds and returns, None where nobody knows."""
        cell, old = (base, offset), self.load(base, array, offset, type)
        began = old if cell in self.initially else self.began.get(cell)
        self.store(base, offset, type.size, new(old))
        if began is not None:
            self.began[cell] = began
        return old

    def forget(self, base: Hashable) -> None:
        """Nobody knows what the object holds."""
        if self.initial is not None:
            self.lost.add(base)
        self.cells.pop(base, None)


@define(eq=False)
class Given(Memory):
    """Memory as a thread alone knows it: ``initial`` says what it holds, whoever writes; atomics find
    anything."""

    def load(self, base: Hashable, array: Array, offset: int, type: Type) -> Value:
        """What it is said to hold."""
        return read_as(self.initial(array, offset, type) if self.initial is not None else None, type)

    def store(self, base: Hashable, offset: int, size: int, value: Value) -> None:
        """Nothing: another thread may write there as well."""

    def update(
        self, base: Hashable, array: Array, offset: int, type: Type, new: Callable[[Value], Value]
    ) -> Value:
        """Nobody knows who was there before."""
        return None

    def forget(self, base: Hashable) -> None:
        """Nothing is known but what is said."""
