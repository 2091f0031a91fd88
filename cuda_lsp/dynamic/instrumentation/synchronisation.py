"""Who takes part in a synchronising instruction, as far as its PTX says.

Source: PTX ISA, "Parallel synchronization and communication instructions". A mask or count that is not a
literal (or a register set once to one) may leave somebody out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from cuda_lsp.dynamic.ptx.module import Instruction, PtxFunction, PtxModule


def reached_from(module: PtxModule, entry: str) -> list[PtxFunction]:
    """The entry and the functions that it may call, also by an address that its code takes."""
    reached = [module.functions[entry]]
    for function in reached:
        names = sorted({*callees(function), *addressed(function)} & set(module.functions))
        reached.extend(f for name in names if (f := module.functions[name]) not in reached)
    return reached


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


def callees(function: PtxFunction) -> Iterator[str]:
    for instruction in function.instructions():
        if instruction.base == "call":
            yield from instruction.arguments


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
    strong = [i for i in code if i.base in ("atom", "red", "ld", "st")]
    strong = [i for i in strong if i.base in ("atom", "red") or _STRONG & set(i.modifiers)]
    return bool(strong) and any(is_fence(i) or _ORDERED & set(i.modifiers) for i in (*strong, *code))


_ORDERED = frozenset({"acquire", "release", "acq_rel"})
_STRONG = _ORDERED | {"relaxed"}


def meets_in_clusters(module: PtxModule, entry: str) -> bool:
    """Whether blocks of a cluster wait for one another."""
    code = (i for f in reached_from(module, entry) for i in f.instructions())
    return any(i.base == "barrier" and "cluster" in i.modifiers for i in code)


_DEVICE_LAUNCH = re.compile(r"cuda(CDP2)?(LaunchDevice|GetParameterBuffer)")


def launches_kernels(module: PtxModule, entry: str) -> bool:
    """Whether the kernel, or what it may call, launches kernels itself."""
    calls = (i for f in reached_from(module, entry) for i in f.instructions() if i.base == "call")
    return any(_DEVICE_LAUNCH.match(part) for call in calls for part in call.arguments)


def calls_stored_pointers(module: PtxModule, entry: str) -> bool:
    """Whether the kernel calls functions by addresses that variables, or other code, may keep in memory."""
    reached = reached_from(module, entry)
    calls = (i for f in reached for i in f.instructions() if i.base == "call")
    if all(any(part in module.functions for part in call.arguments) for call in calls):
        return False
    names = {f.name for f in reached}
    elsewhere = (addressed(f) for f in module.functions.values() if f.name not in names)
    words = {*_held(module), *(word for taken in elsewhere for word in taken)}
    return any(f.body is not None and not f.entry for n, f in module.functions.items() if n in words)


def keeps_functions(module: PtxModule, entry: str) -> bool:
    """Whether the kernel may leave addresses of functions in memory: of tables (a class's virtual ones)
    that it names, or of functions that it stores.

    Who finds them there, in another module, would come to this one.
    """
    functions = {n for n, f in module.functions.items() if f.body is not None}
    held = {v.name: set(_NAME.findall(v.initialiser or "")) for v in module.variables.values()}
    tables: set[str] = set()
    for _ in range(2):  # tables, and what points to tables
        tables |= {name for name, words in held.items() if words & (functions | tables)}
    reached = reached_from(module, entry)
    return any(addressed(f) & tables or _stores_one(f, functions) for f in reached)


def _stores_one(function: PtxFunction, names: set[str]) -> bool:
    code = list(function.instructions())
    taken = {i.arguments[0] for i in code if i.base in ("mov", "cvta") and names & set(i.arguments[1:])}
    stores = (i for i in code if i.base == "st" and "param" not in i.modifiers)
    return any(taken & set(i.arguments[1:]) for i in stores)


_NAME = re.compile(r"(?<![%.\w$])[\w$]+")  # not of a register


def addressed(function: PtxFunction) -> set[str]:
    """Names whose address the function's code may take."""
    moves = (i.operands for i in function.instructions() if i.base in ("mov", "cvta"))
    return {word for text in moves for word in _NAME.findall(text)}


def _held(module: PtxModule) -> set[str]:
    """Names that variables hold at first."""
    return {word for v in module.variables.values() for word in _NAME.findall(v.initialiser or "")}


def pointed_to(module: PtxModule) -> frozenset[str]:
    """Functions with a body whose address is taken: in code, or by what a variable holds at first."""
    words = _held(module).union(*map(addressed, module.functions.values()))
    return frozenset(
        n for n, f in module.functions.items() if n in words and f.body is not None and not f.entry
    )


def with_names(text: str, changed: Callable[[str], str]) -> str:
    """Operands with every name changed, registers as they are."""
    return _NAME.sub(lambda match: changed(match[0]), text)
