"""When what is proved of one kernel holds for another: instances of one template that differ in data only.

Two kernels are alike when they are one program but for the names of types and for what is computed of data:
neither addresses nor conditions nor barriers hang on it (``slicing``), and of what is stored only integers
count, by which stores of one value are known. Nor does it count how many bytes an element has where the
kernel touches whole elements only: addresses are numbers of elements then. Most templates are instantiated
for several types of floats.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import define, evolve, field

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Expr, Kernel
from cuda_lsp.ir.types import BOOL, Float, Opaque, Pointer, is_word
from cuda_lsp.ir.walk import assigned, operands, pointers, subexpressions, used, variables
from cuda_lsp.model import LaunchConfig
from cuda_lsp.static.facts import facts_of
from cuda_lsp.static.slicing import Slice
from cuda_lsp.static.structure import Structure

_DATA = "data"


def likeness(kernel: Kernel, launches: Sequence[LaunchConfig]) -> str:
    """A digest that kernels have in common which are alike and are launched alike."""
    facts = facts_of(kernel)
    structure = _Likeness(facts=facts, needed=_needed(facts), whole=_of_whole_elements(facts))
    parts: list[object] = [
        kernel.params, kernel.directives, kernel.bounds, kernel.grid, kernel.arguments, kernel.extents,
        kernel.enumerated, kernel.sums, kernel.granted, kernel.errors,
        [evolve(launch, site=None) for launch in launches],
        [kernel.said_of(launch) for launch in launches], kernel.body,
    ]  # fmt: skip
    structure.text(parts)
    return structure.digest.hexdigest()


def _needed(facts: Slice) -> set[int]:
    """Variables that reach addresses, conditions and barriers, or an integer that is stored."""
    needed = set(facts.relevant)
    while True:
        before = len(needed)
        for s in facts.statements:
            var = assigned(s)
            values: Iterable[Expr] = ()
            if isinstance(s, (ir.Store, ir.Atomic)):
                values = (e for e in _stored(s) if not _is_data(e, facts, s))
            elif var is not None and var.id in needed:
                values = used(s)
            needed |= {v.id for e in values for v in variables(e)}
        if len(needed) == before:
            return needed


def _of_whole_elements(facts: Slice) -> set[Array]:
    """Arrays of data that are accessed, and moved along, by whole elements only."""
    whole = {
        a for a in facts.kernel.arrays
        if isinstance(a.element, (Float, Opaque)) and not (a.surface or a.may_alias or a.dynamic)
    }  # fmt: skip
    mixed: list[set[Array]] = []
    for s in facts.statements:
        size = s.type.size if isinstance(s, (ir.Load, ir.Store, ir.Atomic)) else None
        for pointer in used(s) if size is None else pointers(s):
            roots = facts.roots(pointer)
            alike = size is not None and all(a.element.size == size for a in roots)
            if isinstance(pointer.type, Pointer) and not (roots if alike else isinstance(s, ir.Assign)):
                whole -= roots or whole
        for e in subexpressions(used(s)):
            roots = facts.roots(e)
            if isinstance(e, ir.Offset):
                sizes = {a.element.size for a in roots}
                if len(sizes) != 1 or _elements(e.bytes, *sizes) is None:
                    whole -= roots or whole
            if isinstance(e, (ir.Cast, ir.Binary)) and not _asks_whether_null(e):  # addresses as numbers
                for part in operands(e):
                    if isinstance(part.type, Pointer) and not isinstance(part, ir.Const):
                        whole -= facts.roots(part) or whole
        mixed += [facts.roots(e) for e in subexpressions(used(s)) if isinstance(e.type, Pointer)]
    for _ in mixed:
        before = len(whole)
        for roots in mixed:
            whole -= roots if roots - whole else set[Array]()
        if len(whole) == before:
            break
    return whole


def _asks_whether_null(e: ir.Cast | ir.Binary) -> bool:
    if isinstance(e, ir.Cast):
        return e.type == BOOL
    return e.op in (ir.BinaryOp.EQ, ir.BinaryOp.NE) and isinstance(e.right, ir.Const)


def _elements(bytes: Expr, size: int) -> Expr | None:
    """A distance in elements; None where it is not made of whole ones."""
    if isinstance(bytes, ir.Const):
        return evolve(bytes, value=int(bytes.value) // size) if bytes.value % size == 0 else None
    if not isinstance(bytes, ir.Binary):
        return None
    if bytes.op in (ir.BinaryOp.ADD, ir.BinaryOp.SUB):
        left, right = _elements(bytes.left, size), _elements(bytes.right, size)
        return None if left is None or right is None else evolve(bytes, left=left, right=right)
    right = _elements(bytes.right, size) if bytes.op is ir.BinaryOp.MUL else None
    return evolve(bytes, right=right) if isinstance(right, ir.Const) else None


def _stored(s: ir.Store | ir.Atomic) -> tuple[Expr, ...]:
    return (s.value,) if isinstance(s, ir.Store) else s.operands


def _is_data(e: Expr, facts: Slice, s: ir.Store | ir.Atomic) -> bool:
    modelled = any(a.id in facts.modelled for a in facts.roots(s.pointer))
    return not modelled and isinstance(e.type, (Float, Opaque)) and not isinstance(e, ir.Const)


@define(eq=False)
class _Likeness(Structure):
    """A program but for what is data."""

    facts: Slice = field(kw_only=True)
    needed: set[int] = field(kw_only=True)
    whole: set[Array] = field(kw_only=True)

    def data(self, type: Float | Opaque) -> str:
        return f"{type.__class__.__name__}{type.size}{is_word(type)}"

    def values(self, node: Any) -> dict[str, Any]:
        values = Structure.values(self, node)
        if isinstance(node, (ir.Load, ir.Atomic)) and node.var is not None and node.var.id not in self.needed:
            values["var"] = None
        if isinstance(node, Array):
            values["parts"] = ()
        if isinstance(node, Array) and isinstance(node.element, (Float, Opaque)):
            values["element"] = node.element.size
            values |= dict.fromkeys(("element", "size", "offset"), _DATA) if node in self.whole else {}
        if isinstance(node, (ir.Load, ir.Store)) and self._is_element(node):
            values["type"] = _DATA if self.facts.roots(node.pointer) <= self.whole else node.type.size
        if isinstance(node, ir.Offset) and self.facts.roots(node) and self.facts.roots(node) <= self.whole:
            values["bytes"] = _elements(node.bytes, next(iter(self.facts.roots(node))).element.size)
        if isinstance(node, ir.Store) and _is_data(node.value, self.facts, node):
            values["value"] = _DATA
        if isinstance(node, ir.Atomic):
            values["operands"] = tuple(_DATA if _is_data(e, self.facts, node) else e for e in node.operands)
        return values

    def is_dropped(self, part: object) -> bool:
        """Whether it computes data only."""
        if isinstance(part, ir.Assign):
            return part.var.id not in self.needed
        if isinstance(part, ir.Block) and part.lock is None:
            return all(map(self.is_dropped, part.body))
        if isinstance(part, ir.If):
            return all(map(self.is_dropped, (*part.then, *part.otherwise)))
        return False

    def _is_element(self, s: ir.Load | ir.Store) -> bool:
        """Of data, and no more than one element of the array."""
        arrays = self.facts.roots(s.pointer)
        whole = bool(arrays) and all(s.type.size <= array.element.size for array in arrays)
        return whole and isinstance(s.type, (Float, Opaque))
