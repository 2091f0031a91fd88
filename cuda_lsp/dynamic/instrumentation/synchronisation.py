"""Who takes part in a synchronising instruction, as far as its PTX says.

Source: PTX ISA, "Parallel synchronization and communication instructions". A mask or count that is not a
literal (or a register set once to one) may leave somebody out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cuda_lsp.dynamic.instrumentation.functions import reached_from
from cuda_lsp.dynamic.ptx.module import Instruction, PtxFunction, PtxModule


def has_partial_order(module: PtxModule, entry: str) -> bool:
    """Some barrier that the entry may reach may leave threads of the block, or lanes of the warp, out."""
    for function in reached_from(module, entry):
        constants = literal_registers(function)
        for instruction in function.instructions():
            mask = participants(instruction, constants)
            if (mask is not None and mask != "all") or instruction.base == "mbarrier":
                return True
    return False


_WRITE_NO_REGISTER = frozenset({"st", "red", "bar", "barrier", "bra", "ret", "exit", "membar", "fence"})


def literal_registers(function: PtxFunction) -> dict[str, str]:
    """Registers that are written once, with a literal."""
    values: dict[str, str] = {}
    seen: set[str] = set()
    for instruction in function.instructions():
        if instruction.base in _WRITE_NO_REGISTER:
            continue
        target = instruction.operands.partition(",")[0].strip()
        if target in seen:
            values.pop(target, None)
        seen.add(target)
        if instruction.base == "mov" and re.fullmatch(r"\S+, (-?\d+|0x[0-9a-fA-F]+)", instruction.operands):
            values[target] = instruction.arguments[1]
    return values


def _is_full_mask(text: str) -> bool:
    return text in ("-1", "4294967295") or text.lower() == "0xffffffff"


def participants(instruction: Instruction, constants: Mapping[str, str]) -> str | None:
    """``"all"``, or the operand that says who takes part; None: synchronises nobody."""
    words, base = instruction.modifiers, instruction.base
    if base in ("bar", "barrier") and "warp" in words:
        mask = instruction.arguments[0]
    elif base in ("shfl", "vote", "match", "redux") and "sync" in words:
        mask = instruction.arguments[-1]
    elif base in ("bar", "barrier") and "cluster" not in words:
        return "all" if _is_block_barrier(instruction) else "count"
    elif base in ("mma", "movmatrix") or (base == "wmma" and "mma" in words):
        return "all"  # products of registers; lanes of ``ldmatrix`` and the like meet before they access
    else:
        return None
    mask = constants.get(mask, mask)
    return "all" if _is_full_mask(mask) else mask


def _is_block_barrier(instruction: Instruction) -> bool:
    """Waits for every thread of the block: no count is given."""
    if "arrive" in instruction.modifiers:
        return False
    values = 3 if "popc" in instruction.modifiers else 3 if "red" in instruction.modifiers else 1
    return len(instruction.arguments) <= values and (values == 1 or len(instruction.arguments) == 3)


_WIDE = frozenset({"gl", "sys", "gpu", "cluster"})  # scopes that other blocks are in


def is_fence(instruction: Instruction) -> bool:
    """Whether it orders memory accesses of its thread: not those of other proxies."""
    return instruction.base in ("membar", "fence") and not (_WIDE | {"cta"}).isdisjoint(instruction.modifiers)


def fences_blocks(instruction: Instruction) -> bool:
    """Whether it is a fence that other blocks may see."""
    return is_fence(instruction) and "cta" not in instruction.modifiers


def has_order_of_blocks(module: PtxModule, entry: str) -> bool:
    """Whether fences or ordered atomics that the entry may reach order what blocks do."""
    for function in reached_from(module, entry):
        for instruction in function.instructions():
            words = set(instruction.modifiers)
            ordered = words & {"acquire", "release", "acq_rel"} and words & {"gpu", "sys"}
            if ordered or fences_blocks(instruction):
                return True
    return False


def has_order_of_threads(module: PtxModule, entry: str) -> bool:
    """Whether fences with atomics, accesses that order, or mbarriers may order single threads."""
    code = [i for f in reached_from(module, entry) for i in f.instructions()]
    if any(i.base == "mbarrier" for i in code):
        return True
    updates = any(i.base in ("atom", "red") for i in code)
    strong = updates or any(i.base in ("ld", "st") and _STRONG & set(i.modifiers) for i in code)
    return strong and any(is_fence(i) or _ORDERED & set(i.modifiers) for i in code)


_ORDERED = frozenset({"acquire", "release", "acq_rel"})
_STRONG = _ORDERED | {"relaxed"}


def meets_in_clusters(module: PtxModule, entry: str) -> bool:
    """Whether blocks of a cluster wait for one another."""
    code = (i for f in reached_from(module, entry) for i in f.instructions())
    return any(i.base == "barrier" and "cluster" in i.modifiers for i in code)
