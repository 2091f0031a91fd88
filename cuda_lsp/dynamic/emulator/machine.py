"""A small SIMT interpreter of PTX: every thread of the launch at once, NumPy, lowest program counter first.

It covers the integer and float core, shared, global and generic memory, ``bar.sync 0``, full-warp
``bar.warp.sync``, and control flow;
``volatile`` is a plain access. Whatever else a kernel holds is refused by name before it runs
(``Untranslatable``). No calls, shuffles, atomics with a result, or local memory yet. Source: PTX ISA ch. 9.
"""

# NumPy's stubs leave views, reshapes and mixed arithmetic unknown; everything else stays strict.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from attrs import frozen

from cuda_lsp.dynamic.happens_before import AccessLog, RacingPair
from cuda_lsp.dynamic.ptx import Declaration, Instruction, Label, PtxModule, Registers, type_size
from cuda_lsp.dynamic.ptx_operands import (
    FloatOperand,
    IntegerOperand,
    Operand,
    RegisterOperand,
    SymbolOperand,
    parse_address,
    parse_operand,
)
from cuda_lsp.model import Dim3, Mode

Array = np.ndarray[Any, Any]
parse = lru_cache(maxsize=65536)(parse_operand)


class Untranslatable(Exception):
    """The kernel holds instructions that the emulator does not know; the message lists them."""


@frozen
class Fault:
    """An access outside every buffer: instruction index, linear thread, address."""

    site: int
    thread: int
    address: int


@frozen
class RunResult:
    """What a run saw. ``arrays``: the array arguments after it, in order. ``incomplete``: reasons."""

    races: tuple[RacingPair, ...]
    faults: tuple[Fault, ...]
    divergent_barriers: tuple[int, ...]
    incomplete: tuple[str, ...]
    arrays: tuple[Array, ...]


_BINARY: Mapping[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "min": np.fmin, "max": np.fmax,
}  # fmt: skip
_COMPARE: Mapping[str, Callable[..., Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
_OTHERS = frozenset(
    "mov ld st bra ret exit bar cvta cvt mul mad div rem setp selp shl shr neg not".split()  # noqa: SIM905
)
_REFUSED = frozenset(
    "sat ftz hi rz rm rp rni rzi rmi rpi approx full local const".split()  # noqa: SIM905
) | {"cc", "acquire", "release", "relaxed", "mmio"}
_WIDTH = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}


def dtype_of(name: str) -> np.dtype[Any]:
    """The NumPy type of a PTX type (``s32`` → int32, ``b32`` → uint32)."""
    if name == "pred":
        return np.dtype(bool)
    return np.dtype({"s": "i", "f": "f"}.get(name[0], "u") + str(type_size(name)))


def unsupported(instruction: Instruction) -> str | None:
    """The opcode when the emulator does not know it, else None."""
    words = instruction.modifiers
    known = instruction.base in _BINARY or instruction.base in _OTHERS
    floats = {"f16", "bf16", "f16x2", "bf16x2"}
    bad = not known or any(word in _REFUSED for word in words[1:]) or floats & set(words)
    if instruction.base == "bar":
        bad = (instruction.opcode, instruction.operands) not in (("bar.sync", "0"), ("bar.warp.sync", "-1"))
    if instruction.base == "mov":
        bad = bad or "{" in instruction.operands
    if instruction.base == "mad":
        bad = bad or words[-1][0] == "f"
    if instruction.base == "cvt":
        bad = bad or (words[-2][0] != "f" and words[-1][0] == "f")
    if instruction.base == "setp":
        bad = bad or words[1] not in _COMPARE or len(words) != 3 or (words[1] == "ne" and words[2][0] == "f")
    return instruction.opcode if bad else None


def _divide(base: str, x: Any, y: Any) -> Any:
    """Integer division towards zero; a zero divisor gives all ones (PTX leaves it open)."""
    divisor = np.where(y == 0, np.ones_like(y), y)
    rest = np.fmod(x, divisor)
    result = (x - rest) // divisor if base == "div" else rest
    return np.where(y == 0, np.invert(np.zeros_like(result)), result)


class Emulator:
    """Runs kernels of one module."""

    def __init__(self, module: PtxModule) -> None:
        self.module = module

    def launch(
        self,
        kernel: str,
        grid: Dim3,
        block: Dim3,
        arguments: Sequence[Array | int | float],
        dynamic_shared: int = 0,
        max_steps: int = 1_000_000,
    ) -> RunResult:
        """Run every block and judge races. Array arguments are copied in.

        Raises Untranslatable, and KeyError for an unknown kernel.
        """
        run = _Run(self.module, kernel, grid, block, arguments, dynamic_shared)
        run.execute(max_steps)
        return run.result()


class _Run:
    """State of one launch: registers ``(threads,)``, one flat memory whose indices are the addresses."""

    def __init__(
        self,
        module: PtxModule,
        kernel: str,
        grid: Dim3,
        block: Dim3,
        arguments: Sequence[Array | int | float],
        dynamic_shared: int,
    ) -> None:
        function = module.entries[kernel]
        self.code = [s for s in function.body or () if isinstance(s, Instruction)]
        refused = sorted({name for i in self.code if (name := unsupported(i))})
        if any(v.space != "shared" for v in module.variables.values()):
            refused.append("module variables")
        if refused:
            raise Untranslatable(f"the emulator cannot run {kernel}: {', '.join(refused)}")
        self.per_block = int(np.prod(block))
        self.blocks = int(np.prod(grid))
        n = self.threads = self.per_block * self.blocks
        self.thread = np.arange(n)
        self.block = self.thread // self.per_block
        self.registers: dict[str, Array] = {}
        self.labels: dict[str, int] = {}
        self.shared: dict[str, int] = {}
        self.site = 0
        self.log, self.faults, self.incomplete = AccessLog(), list[Fault](), list[str]()
        self.divergent: set[int] = set()
        self.barrier_tick, self.warp_tick = np.zeros(n, np.int64), np.zeros(n, np.int64)
        index, size = 0, 0
        declared = [v for v in module.variables.values() if v.space == "shared"]
        for statement in function.body or ():
            match statement:
                case Instruction():
                    index += 1
                case Label(name):
                    self.labels[name] = index
                case Registers(type_name, names):
                    kind = "?" if type_name == "pred" else _WIDTH[type_size(type_name)]
                    self.registers.update({name: np.zeros(n, kind) for name in names})
                case Declaration(variable) if variable.space == "shared":
                    declared.append(variable)
                case _:
                    pass
        for variable in sorted(declared, key=lambda v: v.count is None):  # dynamic shared memory last
            size = -(-size // variable.alignment) * variable.alignment
            self.shared[variable.name] = size
            size += variable.size
        self._lay_out_memory(function.params, arguments, size + dynamic_shared)
        self._special(grid, block)

    def _lay_out_memory(self, params: Sequence[Any], arguments: Sequence[Any], shared: int) -> None:
        if len(params) != len(arguments):
            raise ValueError(f"the kernel takes {len(params)} arguments, not {len(arguments)}")
        self.params: dict[str, Any] = {}
        self.buffers: list[tuple[int, Array]] = []
        top = 4096
        for param, argument in zip(params, arguments, strict=True):
            self.params[param.name] = argument
            if isinstance(argument, np.ndarray):
                self.params[param.name] = top
                self.buffers.append((top, argument))
                top += -(-argument.nbytes // 256) * 256 + 4096
        stride = -(-shared // 256) * 256 + 4096
        self.shared_base = top + self.block * stride
        self.shared_start = top
        self.memory = np.zeros(top + self.blocks * stride, np.uint8)
        self.valid = np.zeros(len(self.memory), bool)
        for start, array in self.buffers:
            self.memory[start : start + array.nbytes] = np.ascontiguousarray(array).view(np.uint8).ravel()
            self.valid[start : start + array.nbytes] = True
        for b in range(self.blocks):
            self.valid[top + b * stride : top + b * stride + shared] = True

    def _special(self, grid: Dim3, block: Dim3) -> None:
        local, number = self.thread % self.per_block, self.block
        for axis, g, b in zip("xyz", grid, block, strict=True):
            self.registers[f"%tid.{axis}"] = (local % b).astype(np.uint32)
            self.registers[f"%ctaid.{axis}"] = (number % g).astype(np.uint32)
            self.registers[f"%ntid.{axis}"] = np.full(self.threads, b, np.uint32)
            self.registers[f"%nctaid.{axis}"] = np.full(self.threads, g, np.uint32)
            local, number = local // b, number // g
        self.registers["%laneid"] = (self.thread % self.per_block % 32).astype(np.uint32)

    # ------------------------------------------------------------------------------ operands

    def value(self, operand: Operand | str, type_name: str) -> Any:
        """``(threads,)`` array, or scalar, of the operand read as a PTX type."""
        operand = parse(operand) if isinstance(operand, str) else operand
        kind = dtype_of(type_name)
        match operand:
            case RegisterOperand(name):
                register = self.registers[name]
                if type_name != "pred" and register.itemsize != kind.itemsize:
                    register = register.astype(_WIDTH[kind.itemsize])
                return register.view(kind)
            case IntegerOperand(number):
                if kind.kind == "f":
                    return kind.type(number)
                return np.array([number & (1 << 8 * kind.itemsize) - 1], _WIDTH[kind.itemsize]).view(kind)[0]
            case FloatOperand(number):
                return kind.type(number)
            case SymbolOperand(name, offset) if name in self.shared:
                return kind.type(self.shared[name] + offset)
            case _:
                raise Untranslatable(f"the emulator cannot read the operand {operand}")

    def put(self, name: str, values: Any, mask: Array) -> None:
        """Write a result; narrower values extend by their sign."""
        register = self.registers[name]
        values = np.broadcast_to(np.asarray(values), (self.threads,))
        if values.dtype.itemsize < register.itemsize:
            values = values.astype(f"{values.dtype.kind}{register.itemsize}")
        np.copyto(register, np.ascontiguousarray(values).view(register.dtype), where=mask)

    # ------------------------------------------------------------------------------ schedule

    def execute(self, max_steps: int) -> None:
        n = self.threads
        pc, alive, waiting = np.zeros(n, np.int64), np.ones(n, bool), np.zeros(n, bool)
        with np.errstate(all="ignore"):
            for _ in range(max_steps):
                ready = alive & ~waiting
                if not ready.any():
                    if not alive.any():
                        return
                    self._release(pc, alive, waiting)
                    continue
                self.site = int(pc[ready].min())
                if self.site >= len(self.code):
                    alive &= pc < len(self.code)
                    continue
                group = ready & (pc == self.site)
                self._step(self.code[self.site], group, pc, alive, waiting)
        self.incomplete.append(f"the launch did not end within {max_steps} steps")

    def _release(self, pc: Array, alive: Array, waiting: Array) -> None:
        """Every live thread waits: each block's barrier opens. Threads that left are reported."""
        for b in range(self.blocks):
            mine = slice(b * self.per_block, (b + 1) * self.per_block)
            places = np.unique(pc[mine][alive[mine]])
            if len(places) > 1 or (len(places) and not alive[mine].all()):
                self.divergent.update(int(p) - 1 for p in places)
            self.barrier_tick[mine] += 1
        waiting[:] = False

    def _step(self, code: Instruction, group: Array, pc: Array, alive: Array, waiting: Array) -> None:
        mask = group
        if code.guard:
            guard = self.registers[code.guard.lstrip("!")]
            mask = group & (~guard if code.guard.startswith("!") else guard)
        pc[group] += 1
        match code.base:
            case "bra":
                pc[mask] = self.labels[code.operands]
            case "ret" | "exit":
                alive &= ~mask
            case "bar" if "warp" in code.opcode:
                self._warp_sync(mask, alive)
            case "bar":
                waiting |= mask
            case "ld" | "st":
                self._memory(code, mask)
            case _:
                self._compute(code, mask)

    def _warp_sync(self, mask: Array, alive: Array) -> None:
        """Full warps only: lanes that arrive without the others are not taken as ordered."""
        warp = self.block * 32 + self.thread % self.per_block // 32
        missing = np.bincount(warp, weights=alive & ~mask)[warp] > 0
        if (missing & mask).any():
            self.incomplete.append(f"instruction {self.site}: a warp synchronisation without all its lanes")
        self.warp_tick[mask & ~missing] += 1

    # ---------------------------------------------------------------------------- instructions

    def _compute(self, code: Instruction, mask: Array) -> None:
        words, args = code.modifiers, code.arguments
        kind, base = words[-1], code.base
        x = [self.value(a, kind) for a in args[1:]] if base not in ("selp", "shl", "shr", "cvta") else []
        if base in _BINARY:
            result = _BINARY[base](x[0], x[1])
        elif base in ("mul", "mad"):
            wide = f"{kind[0]}{2 * type_size(kind) * 8}" if "wide" in words else kind
            result = np.multiply(x[0], x[1], dtype=dtype_of(wide))
            result = result + self.value(args[3], wide) if base == "mad" else result
        elif base in ("div", "rem"):
            result = x[0] / x[1] if kind[0] == "f" else _divide(base, x[0], x[1])
        elif base == "setp":
            result = _COMPARE[words[1]](x[0], x[1])
        elif base == "selp":
            first, second = self.value(args[1], kind), self.value(args[2], kind)
            result = np.where(self.value(args[3], "pred"), first, second)
        elif base in ("shl", "shr"):
            result = self._shift(base, self.value(args[1], kind), self.value(args[2], "u32"), kind)
        elif base == "cvt":
            result = np.asarray(x[0]).astype(dtype_of(words[-2]))
        elif base == "cvta":
            move = self.shared_base.astype(np.uint64) if "shared" in words else np.uint64(0)
            result = self.value(args[1], "u64")
            result = result - move if "to" in words else result + move
        elif base == "not":
            result = np.invert(x[0])
        else:
            result = np.negative(x[0]) if base == "neg" else x[0]
        self.put(args[0], result, mask)

    def _shift(self, base: str, value: Any, amount: Any, kind: str) -> Any:
        """Shifts clamp at the register width (PTX ISA 9.7.8)."""
        width = type_size(kind) * 8
        count = np.minimum(amount, width - 1).astype(dtype_of(kind))
        shifted = (np.left_shift if base == "shl" else np.right_shift)(value, count)
        if base == "shr" and kind[0] == "s":
            return shifted
        return np.where(amount >= width, np.zeros_like(shifted), shifted)

    def _memory(self, code: Instruction, mask: Array) -> None:
        words, args = code.modifiers, code.arguments
        load, kind = code.base == "ld", words[-1]
        target, register = (args[1], args[0]) if load else (args[0], args[1])
        place = parse_address(target)
        if "param" in words:
            assert isinstance(place.base, SymbolOperand)
            bits = np.asarray(self.params[place.base.name])
            self.put(register, bits.astype(dtype_of(kind) if kind[0] != "b" else bits.dtype), mask)
            return
        wide = not isinstance(place.base, RegisterOperand) or self.registers[place.base.name].itemsize == 8
        base = self.value(place.base or IntegerOperand(0), "u64" if wide else "u32")
        address = np.broadcast_to(base, (self.threads,)).astype(np.int64) + place.offset
        if "shared" in words:
            address = address + self.shared_base
        size, kind_of = type_size(kind), dtype_of(kind)
        names = register.strip("{}").split(",")
        for offset, name in enumerate(part.strip() for part in names):
            lanes = self._checked(address + offset * size, size, mask, Mode.READ if load else Mode.WRITE)
            at = (address[lanes] + offset * size)[:, None] + np.arange(size)
            if load:
                values = np.zeros(self.threads, kind_of)
                values[lanes] = self.memory[at].view(kind_of).ravel()
                self.put(name, values, mask)
            else:
                values = np.broadcast_to(self.value(name, kind), (self.threads,))[lanes]
                self.memory[at] = np.ascontiguousarray(values).view(np.uint8).reshape(-1, size)

    def _checked(self, address: Array, size: int, mask: Array, mode: Mode) -> Array:
        """Lanes whose access lies in a buffer and is aligned; the others become faults."""
        inside = (address >= 0) & (address <= len(self.memory) - size) & (address % size == 0)
        safe = np.where(inside, address, 0)
        inside &= self.valid[safe] & self.valid[safe + size - 1]
        self.faults.extend(
            Fault(self.site, int(t), int(address[t])) for t in np.flatnonzero(mask & ~inside)[:16]
        )
        lanes = np.flatnonzero(mask & inside)
        self.log.add(
            self.site, mode, size, address[lanes], lanes, self.barrier_tick[lanes], self.warp_tick[lanes]
        )
        return lanes

    def result(self) -> RunResult:
        arrays = tuple(
            self.memory[start : start + a.nbytes].copy().view(a.dtype).reshape(a.shape)
            for start, a in self.buffers
        )
        races = self.log.races(self.per_block, across_blocks=True)
        return RunResult(
            races, tuple(self.faults), tuple(sorted(self.divergent)), tuple(self.incomplete), arrays
        )
