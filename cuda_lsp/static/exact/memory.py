"""Memory of an execution: exact integers by object and byte, with what it held when the kernel started.

An object that is accessed in several sizes is not known at all. Atomics as in the CUDA C++ Programming Guide.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from attrs import define, field

from cuda_lsp.ir.program import Array
from cuda_lsp.ir.types import Int, Pointer, Type
from cuda_lsp.static.exact.values import Value

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


def updated(op: str, old: Value, operands: Sequence[Value], type: Type) -> Value:
    """What an atomic leaves where it found ``old``; None: nobody knows."""
    known = [v for v in operands if isinstance(v, int)]
    if op in ("exch", "store"):
        return type.wrap(known[0]) if known and isinstance(type, Int) else None
    if not isinstance(old, int) or not isinstance(type, Int) or len(known) != len(operands):
        return None
    if op == "load" or not known:
        return old if op == "load" else None
    a = known[0]
    match op:
        case "add":
            new = old + a
        case "sub":
            new = old - a
        case "min":
            new = min(old, a)
        case "max":
            new = max(old, a)
        case "inc":
            new = 0 if old >= a else old + 1
        case "dec":
            new = a if old == 0 or old > a else old - 1
        case "and":
            new = old & a
        case "or":
            new = old | a
        case "xor":
            new = old ^ a
        case "cas":
            new = known[1] if old == a and len(known) > 1 else old
        case _:
            return None
    return type.wrap(new)
