"""Who takes part in a synchronising instruction, as far as its PTX says.

Source: PTX ISA, "Parallel synchronization and communication instructions". A mask or count that is not a
literal (or a register set once to one) may leave somebody out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cuda_lsp.dynamic.ptx.functions import reached_from
from cuda_lsp.dynamic.ptx.module import Instruction, PtxFunction, PtxModule
from cuda_lsp.dynamic.ptx.opcodes import (
    ORDERED,
    STRONG,
    Role,
    fences_blocks,
    is_fence,
    results_of,
    row_of,
)
from cuda_lsp.dynamic.ptx.remembered import remembered
from cuda_lsp.model import Mode

_REGISTER = re.compile(r"%[\w$]+")


@remembered
def has_partial_order(module: PtxModule, entry: str) -> bool:
    """Some barrier that the entry may reach may leave threads of the block, or lanes of the warp, out."""
    for function in reached_from(module, entry):
        constants = literal_registers(function)
        for instruction in function.instructions():
            mask = participants(instruction, constants)
            if (mask is not None and mask != "all") or row_of(instruction).role is Role.MBARRIER:
                return True
    return False


def literal_registers(function: PtxFunction) -> dict[str, str]:
    """Registers that are written once, with a literal: name → the literal."""
    values: dict[str, str] = {}
    seen: set[str] = set()
    for instruction in function.instructions():
        for register in _REGISTER.findall(" ".join(results_of(instruction))):
            if register in seen:
                values.pop(register, None)
            elif instruction.base == "mov" and _LITERAL.fullmatch(instruction.arguments[-1]):
                values[register] = instruction.arguments[-1]
            seen.add(register)
    return values


_LITERAL = re.compile(r"-?\d+|0x[0-9a-fA-F]+")


def _is_full_mask(text: str) -> bool:
    return text in ("-1", "4294967295") or text.lower() == "0xffffffff"


def participants(instruction: Instruction, constants: Mapping[str, str]) -> str | None:
    """``"all"``, or the operand that says who takes part; None: synchronises nobody.

    ``constants``: registers that hold a literal. Lanes of ``ldmatrix`` and the like meet before they access:
    who puts probes there sees to it.
    """
    match row_of(instruction).role:
        case Role.EXCHANGE | Role.WARP_BARRIER:
            mask = instruction.arguments[-1]
            mask = constants.get(mask, mask)
            return "all" if _is_full_mask(mask) else mask
        case Role.BARRIER:
            return "all" if _is_block_barrier(instruction) else "count"
        case Role.PRODUCT:
            return "all"
        case _:
            return None


def _is_block_barrier(instruction: Instruction) -> bool:
    """Waits for every thread of the block: no count is given."""
    if "arrive" in instruction.modifiers:
        return False
    count = len(instruction.arguments)  # with a result, and a predicate to reduce
    return count == 3 if "red" in instruction.modifiers else count <= 1


def has_order_of_blocks(module: PtxModule, entry: str) -> bool:
    """Whether fences or ordered accesses that the entry may reach order what blocks do."""
    return any(
        fences_blocks(i) or (_is_ordered(i) and "cta" not in i.modifiers)
        for function in reached_from(module, entry)
        for i in function.instructions()
    )


def _is_ordered(instruction: Instruction) -> bool:
    return row_of(instruction).role is Role.ACCESS and not ORDERED.isdisjoint(instruction.modifiers)


def has_order_of_threads(module: PtxModule, entry: str) -> bool:
    """Whether fences with atomics, accesses that order, or mbarriers may order single threads."""
    code = [i for f in reached_from(module, entry) for i in f.instructions()]
    if any(row_of(i).role is Role.MBARRIER for i in code):
        return True
    strong = any(_is_strong(i) for i in code)
    return strong and any(is_fence(i) or _is_ordered(i) for i in code)


def _is_strong(instruction: Instruction) -> bool:
    row = row_of(instruction)
    atomic = row.mode is Mode.ATOMIC or not STRONG.isdisjoint(instruction.modifiers)
    return row.role is Role.ACCESS and atomic


def meets_in_clusters(module: PtxModule, entry: str) -> bool:
    """Whether blocks of a cluster wait for one another."""
    code = (i for f in reached_from(module, entry) for i in f.instructions())
    return any(row_of(i).role is Role.CLUSTER for i in code)
