"""Memory of an execution: exact integers by object and byte, with what it held when the kernel started.

An object that is accessed in several sizes is not known at all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from attrs import define, field

from cuda_lsp.ir.program import Array
from cuda_lsp.ir.types import Int, Pointer, Type
from cuda_lsp.static.schedules.exact_values import Value

Initial = Callable[[Array, int, Type], int | None]
"""What global memory holds when the kernel starts: array, byte, type."""


@define(eq=False)
class Memory:
    """Bytes of one space by object; each object is read in one size, or not known at all."""

    initial: Initial | None = None
    cells: dict[Hashable, dict[int, Value]] = field(factory=dict[Hashable, dict[int, Value]])
    sizes: dict[Hashable, int] = field(factory=dict[Hashable, int])
    lost: set[Hashable] = field(factory=set[Hashable])
    initially: set[tuple[Hashable, int]] = field(factory=set[tuple[Hashable, int]])
    """Cells that nobody wrote since the kernel started."""
    asked: set[Array] = field(factory=set[Array])  # whose first contents some thread wanted to know

    def _regular(self, base: Hashable, offset: int, size: int) -> bool:
        if self.sizes.setdefault(base, size) != size or offset % size:
            self.lost.add(base)
        return base not in self.lost

    def load(self, base: Hashable, array: Array, offset: int, type: Type) -> Value:
        if not self._regular(base, offset, max(type.size, 1)):
            return None
        cells = self.cells.setdefault(base, {})
        if offset not in cells and self.initial is not None:
            cells[offset] = self.initial(array, offset, type)
            self.initially.add((base, offset))
            self.asked.add(array)
        value = cells.get(offset)
        return type.wrap(value) if isinstance(value, int) and isinstance(type, Int) else (
            value if isinstance(type, Pointer) else None
        )  # fmt: skip

    def store(self, base: Hashable, offset: int, size: int, value: Value) -> None:
        if self._regular(base, offset, max(size, 1)):
            self.cells.setdefault(base, {})[offset] = value
            self.initially.discard((base, offset))

    def forget(self, base: Hashable) -> None:
        self.lost.add(base)
