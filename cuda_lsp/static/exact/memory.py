"""Memory of an execution: exact integers by object and byte, with what it held when the kernel started.

An object with first contents that is accessed in several sizes is not known at all. Atomics as in the CUDA
C++ Programming Guide.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import ClassVar

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
class Held:
    """What one object holds, by byte; one and the same as long as the memory is."""

    cells: dict[int, tuple[int, Value]] = field(factory=dict[int, tuple[int, Value]])  # size in bytes, value
    size: int = 0  # bytes of an access; 0: nobody came yet
    lost: bool = False  # there were several sizes
    initially: set[int] = field(factory=set[int])
    """Cells that nobody wrote since the kernel started."""
    began: dict[int, Value] = field(factory=dict[int, Value])
    """What cells held at first that nothing but atomics has written."""

    def is_regular(self, offset: int, size: int) -> bool:
        """Notes an access; whether all so far were of one size, and in line."""
        if self.size != size or offset % size:
            self.lost |= self.size not in (0, size) or bool(offset % size)
            self.size = self.size or size
        return not self.lost


@define(eq=False)
class Memory:
    """Values by object and byte. ``initial``: what nobody wrote yet; without it only what was written is
    known.

    What is written over in part is not known. Of an object with first contents, accesses in several sizes or
    out of line lose everything.
    """

    initial: Initial | None = None
    objects: dict[Hashable, Held] = field(factory=dict[Hashable, Held])
    read: dict[tuple[Array, int, Type], Value] = field(factory=dict[tuple[Array, int, Type], Value])
    """First contents that some thread wanted to know."""
    keeps: ClassVar = True  # what is written

    @property
    def asked(self) -> frozenset[Array]:
        """Whose first contents some thread wanted to know."""
        return frozenset(array for array, _, _ in self.read)

    def held(self, base: Hashable) -> Held:
        """What an object holds."""
        return self.objects.setdefault(base, Held())

    def load(self, object: Held, array: Array, offset: int, type: Type) -> Value:
        """What ``type.size`` bytes hold."""
        size, cells = type.size or 1, object.cells
        if self.initial is not None:
            if not object.is_regular(offset, size):
                return None
            if offset not in cells:
                first = self.read[array, offset, type] = self.initial(array, offset, type)
                cells[offset] = size, first
                object.initially.add(offset)
        width, value = cells.get(offset, (0, None))
        return read_as(value, type) if width == size else None

    def store(self, object: Held, offset: int, size: int, value: Value) -> None:
        """``size`` bytes are written; ``value`` None: nobody knows with what."""
        size, cells = size or 1, object.cells
        if not object.is_regular(offset, size):
            if self.initial is not None:
                return
            for start in [x for x in cells if x < offset + size and offset < x + cells[x][0]]:
                del cells[start]
        cells[offset] = size, value
        object.initially.discard(offset)
        object.began.pop(offset, None)

    def update(
        self, object: Held, array: Array, offset: int, type: Type, new: Callable[[Value], Value]
    ) -> Value:
        """An atomic leaves ``new`` of what it finds and returns, None where nobody knows."""
        old = self.load(object, array, offset, type)
        began = old if offset in object.initially else object.began.get(offset)
        self.store(object, offset, type.size, new(old))
        if began is not None:
            object.began[offset] = began
        return old

    def forget(self, object: Held) -> None:
        """Nobody knows what the object holds."""
        object.lost |= self.initial is not None
        object.cells.clear()


@define(eq=False)
class Given(Memory):
    """Memory as a thread alone knows it: ``initial`` says what it holds, whoever writes; atomics find
    anything."""

    keeps: ClassVar = False

    def load(self, object: Held, array: Array, offset: int, type: Type) -> Value:
        """What it is said to hold."""
        return read_as(self.initial(array, offset, type) if self.initial is not None else None, type)

    def store(self, object: Held, offset: int, size: int, value: Value) -> None:
        """Nothing: another thread may write there as well."""

    def update(
        self, object: Held, array: Array, offset: int, type: Type, new: Callable[[Value], Value]
    ) -> Value:
        """Nobody knows who was there before."""
        return None

    def forget(self, object: Held) -> None:
        """Nothing is known but what is said."""
