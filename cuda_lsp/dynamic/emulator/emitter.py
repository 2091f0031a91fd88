"""Writing one basic block as Python over whole arrays: operands in, results out.

Every register is an array with one element per thread, or a NumPy scalar where all threads agree; its
stored type is the unsigned integer (or float) of its width and it is viewed as what an instruction says.
A register that only one block mentions is a plain local of the generated function and needs no mask:
lanes that are not there compute rubbish that nobody reads. All others keep the values of inactive lanes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from attrs import define, field

from cuda_lsp.dynamic.ptx.flatten import FlatInstruction, FlatKernel, Untranslatable
from cuda_lsp.dynamic.ptx.module import type_size
from cuda_lsp.dynamic.ptx.operands import (
    FloatOperand,
    IntegerOperand,
    NegatedOperand,
    Operand,
    RegisterOperand,
    SymbolOperand,
    parse_operand,
)
from cuda_lsp.dynamic.runs import WARP

_LANES = {"%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%laneid", "%warpid"}
_SPECIAL = _LANES | {
    "%ntid.x", "%ntid.y", "%ntid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%nwarpid", "%smid", "%nsmid",
    "%gridid", "%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%lanemask_eq",
    "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt", "%dynamic_smem_size",
    "%total_smem_size", "%envreg0", "%envreg1", "%envreg2", "%reserved_smem_offset_0",
    "%reserved_smem_offset_1", "%is_explicit_cluster", "%cluster_ctarank", "%cluster_nctarank",
    *(f"%{name}.{axis}" for name in ("cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid")
      for axis in "xyz"),
}  # fmt: skip


@lru_cache(1024)
def numpy_name(kind: str) -> str:
    """NumPy's name of a PTX type: ``s32`` → ``i4``, ``b32`` → ``u4``, ``pred`` → ``b1``."""
    if kind == "pred":
        return "b1"
    if kind in ("f16x2", "bf16x2"):
        return "u4"
    if kind in ("bf16", "tf32"):
        return f"u{type_size(kind)}"
    return f"{ {'s': 'i', 'f': 'f'}.get(kind[0], 'u') }{type_size(kind)}"


@lru_cache(1024)
def stored_name(kind: str) -> str:
    """How a register of a PTX type is stored."""
    if kind in ("f32", "f64"):
        return numpy_name(kind)
    return "b1" if kind == "pred" else f"u{type_size(kind)}"


@define
class Emitter:
    """Lines of one generated function. ``constants`` are its globals."""

    kernel: FlatKernel
    shared: Mapping[str, int]  # registers that outlive the block → their number
    constants: dict[str, Any]
    lines: list[str] = field(factory=list[str])
    loaded: set[str] = field(factory=set[str])
    changed: set[str] = field(factory=set[str])
    names: dict[str, str] = field(factory=dict[str, str])
    guard: str | None = None
    mask: str = "m"
    counter: int = 0

    # ------------------------------------------------------------------------------- operands

    def read(self, operand: Operand | str, kind: str) -> str:
        """An expression for the operand's value as a PTX type."""
        operand = parse_operand(operand) if isinstance(operand, str) else operand
        match operand:
            case RegisterOperand(name):
                return self._register(name, kind)
            case NegatedOperand(register):
                return f"~{self._register(register.name, kind)}"
            case IntegerOperand(value):
                return self._integer(value, kind)
            case FloatOperand(value):
                return self.constant(np.dtype(numpy_name(kind)).type(value))
            case SymbolOperand(name, offset):
                return self._symbol(name, offset, kind)
            case _:
                raise Untranslatable(f"the operand {operand}")

    def _register(self, name: str, kind: str) -> str:
        if name in self.kernel.registers:
            stored, wanted = stored_name(self.kernel.registers[name]), numpy_name(kind)
            python = self.local(name)
            if stored == wanted:
                return python
            if stored == "b1" or wanted == "b1":
                raise Untranslatable(f"a predicate read as {kind}")
            if int(stored[1:]) == int(wanted[1:]):
                return f"{python}.view(d_{wanted})"
            return f"{python}.astype(d_u{wanted[1:]}).view(d_{wanted})"
        if name in _SPECIAL:
            wanted = numpy_name(kind)
            return f"S.special({name!r}).astype(d_{wanted})"
        if name == "WARP_SZ":
            return self._integer(WARP, kind)
        raise Untranslatable(f"the special register {name}")

    def local(self, name: str) -> str:
        """The Python name of a register, loaded first if it lives outside the block."""
        python = self.names.get(name)
        if python is None:
            python = self.names[name] = f"r{len(self.names)}"
        if name not in self.loaded:
            self.loaded.add(name)
            if name in self.shared:
                self.lines.append(f"{python} = R[{self.shared[name]}]")
            else:
                self.lines.append(f"{python} = z_{stored_name(self.kernel.registers[name])}")
        return python

    def _integer(self, value: int, kind: str) -> str:
        name = numpy_name(kind)
        if name == "b1":
            return self.constant(np.bool_(value != 0))
        if name[0] == "f":
            return self.constant(np.dtype(name).type(value))
        size = int(name[1:])
        bits: Any = np.array(value & (1 << 8 * size) - 1, f"u{size}")
        return self.constant(bits.view(name)[()])

    def _symbol(self, name: str, offset: int, kind: str) -> str:
        if name == "WARP_SZ":
            return self._integer(WARP, kind)
        variable = self.kernel.variables.get(name)
        wanted = numpy_name(kind)
        if name in self.kernel.params:
            return f"S.param_address({name!r}, {offset}).astype(d_{wanted})"
        if variable is not None and variable.space == "param":
            raise Untranslatable(f"the address of the argument {name}")
        return f"S.symbol({name!r}, {offset}).astype(d_{wanted})"

    def constant(self, value: Any) -> str:
        """A name for a constant of the generated module."""
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def fresh(self, expression: str) -> str:
        """A temporary that holds ``expression``."""
        self.counter += 1
        name = f"t{self.counter}"
        self.lines.append(f"{name} = {expression}")
        return name

    def constant_shift(self, expression: str, bits: int, size: int) -> str:
        """``expression`` shifted right by a constant number of bits."""
        return f"{expression} >> {self.constant(np.dtype(f'u{size}').type(bits))}" if bits else expression

    # -------------------------------------------------------------------------------- results

    def write(self, target: Operand | str, expression: str, kind: str) -> None:
        """Assign a value of a PTX type to a register, widening it by its sign."""
        operand = parse_operand(target) if isinstance(target, str) else target
        if not isinstance(operand, RegisterOperand):
            if isinstance(operand, SymbolOperand) and operand.name == "_":
                self.lines.append(expression)
                return
            raise Untranslatable(f"a result written to {target}")
        name = operand.name
        if name not in self.kernel.registers:
            raise Untranslatable(f"a result written to {name}")
        stored, given = stored_name(self.kernel.registers[name]), numpy_name(kind)
        if stored != given:
            size, width = int(given[1:]), int(stored[1:])
            if size == width:
                expression = f"({expression}).view(d_{stored})"
            elif size < width and stored[0] == "u":
                kind_of = "i" if given[0] == "i" else "u"
                raw = f"({expression})" if given[0] != "f" else f"({expression}).view(d_u{size})"
                expression = f"{raw}.astype(d_{kind_of}{width}).view(d_{stored})"
            else:
                raise Untranslatable(f"a {kind} result written to a {self.kernel.registers[name]} register")
        if self.guard is None and name not in self.shared:
            self.names.setdefault(name, f"r{len(self.names)}")
            self.loaded.add(name)
            self.lines.append(f"{self.names[name]} = {expression}")
            return
        python = self.local(name)
        self.changed.add(name)
        self.lines.append(f"{python} = keep({self.mask}, {expression}, {python})")

    def under(self, flat: FlatInstruction) -> None:
        """What follows is the next instruction: takes over its guard."""
        guard = flat.code.guard
        self.guard, self.mask = None, "m"
        if guard:
            condition = self.read(guard, "pred") if not guard.startswith("!") else f"~{self.local(guard[1:])}"
            self.guard = condition
            self.mask = self.fresh(f"both(m, {condition}, S)")

    def finish(self) -> list[str]:
        """The lines, with the registers that outlive the block stored."""
        stores = [
            f"R[{self.shared[name]}] = {self.names[name]}"
            for name in sorted(self.changed)
            if name in self.shared
        ]
        return [*self.lines, *stores]
