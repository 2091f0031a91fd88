"""Asynchronous copies and mbarriers: PTX instruction → calls of ``copies.Async``.

Source: PTX ISA 9.7.9.25 "Asynchronous copy" and 9.7.13.15 "mbarrier".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cuda_lsp.dynamic.emulator.addresses import address
from cuda_lsp.dynamic.emulator.emitter import Emitter, numpy_name
from cuda_lsp.dynamic.ptx.flatten import UnknownInstruction, element_types
from cuda_lsp.dynamic.ptx.module import Instruction, type_size
from cuda_lsp.dynamic.ptx.operands import listed

_REDUCTIONS = ("add", "min", "max", "and", "or", "xor", "inc", "dec")


def emit_copy(e: Emitter, code: Instruction, number: int) -> None:
    """Everything that begins with ``cp.async``."""
    words = {word.partition("__")[0] for word in code.modifiers}
    arguments = code.arguments
    if "bulk" in words:
        return _bulk(e, code, number)
    if "mbarrier" in words:
        e.lines.append(f"S.asynchronous.wait(None, {e.mask})")
        if "noinc" in words:
            where = address(e, arguments[0], _space(words))
            e.lines.append(f"S.asynchronous.arrive({where}, {e.read('1', 'u32')}, {e.mask})")
    elif "commit_group" in words:
        e.lines.append(f"S.asynchronous.commit({e.mask})")
    elif "wait_group" in words:
        e.lines.append(f"S.asynchronous.wait({int(arguments[0], 0)}, {e.mask})")
    elif "wait_all" in words:
        e.lines.append(f"S.asynchronous.wait(None, {e.mask})")
    elif "shared" in words:
        target, source = address(e, arguments[0], "shared"), address(e, arguments[1], "global")
        size = int(arguments[2], 0)
        given = e.read(arguments[3], "u32") if len(arguments) > 3 else "None"
        e.lines.append(f"S.asynchronous.copy({number}, {target}, {source}, {size}, {given}, {e.mask})")
    else:
        raise UnknownInstruction(code.opcode)


def _bulk(e: Emitter, code: Instruction, number: int) -> None:
    """A bulk copy into shared memory that reports to an mbarrier there; no tensors."""
    words = code.modifiers
    if words[1:3] != ("async", "bulk") or "mbarrier__complete_tx__bytes" not in words or "tensor" in words:
        raise UnknownInstruction(code.opcode)
    target, source, size, barrier = code.arguments[:4]
    ranks = e.read(code.arguments[4], "u16") if "multicast__cluster" in words else "None"
    spaces = [_space({word}) for word in code.modifiers if word.startswith(("shared", "global"))]
    given = f"{address(e, target, spaces[0])}, {address(e, source, spaces[1])}, {e.read(size, 'u32')}"
    e.lines.append(
        f"S.asynchronous.bulk({number}, {given}, {address(e, barrier, spaces[0])}, {ranks}, {e.mask})"
    )


def emit_store(e: Emitter, code: Instruction, number: int) -> None:
    """``st.async``: a store that reports its bytes to an mbarrier in the memory of the same block."""
    if "shared__cluster" not in code.modifiers:
        raise UnknownInstruction(code.opcode)
    kind, count = element_types(code)
    where, barrier = (address(e, code.arguments[k], "cluster") for k in (0, 2))
    values = [e.read(part, kind) for part in listed(code.arguments[1])]
    given = f"{number}, {where}, {numpy_name(kind)!r}, {e.mask}"
    if count == 1:
        e.lines.append(f"S.store({given}, {values[0]})")
    else:
        e.lines.append(f"S.store_vector({given}, ({', '.join(values)}))")
    _report(e, barrier, count * type_size(kind))


def emit_reduction(e: Emitter, code: Instruction, number: int) -> None:
    """``red.async``: an atomic update that does the same."""
    kind, operation = code.modifiers[-1], next((w for w in code.modifiers if w in _REDUCTIONS), None)
    if "shared__cluster" not in code.modifiers or operation is None:
        raise UnknownInstruction(code.opcode)
    where, barrier = (address(e, code.arguments[k], "cluster") for k in (0, 2))
    value = e.read(code.arguments[1], kind)
    what = f"{operation!r}, {numpy_name(kind)!r}, {e.mask}, {value}, None, False, False, False"
    e.lines.append(f"S.atomic({number}, {where}, {what})")
    _report(e, barrier, type_size(kind))


def _report(e: Emitter, barrier: str, size: int) -> None:
    e.lines.append(f"S.asynchronous.report({barrier}, {size}, {e.mask})")


def emit_mbarrier(e: Emitter, code: Instruction, number: int) -> None:
    """Everything that begins with ``mbarrier``."""
    words = {word.partition("__")[0] for word in code.modifiers}
    arguments = list(code.arguments)
    space = _space(set(code.modifiers))
    if "init" in words:
        count = e.read(arguments[1], "u32")
        e.lines.append(f"S.asynchronous.begin({address(e, arguments[0], space)}, {count}, {e.mask})")
    elif "inval" in words:
        return
    elif "expect_tx" in words and "arrive" not in words:
        size = e.read(arguments[1], "u32")
        e.lines.append(f"S.asynchronous.expect({address(e, arguments[0], space)}, {size}, {e.mask})")
    elif words & {"arrive", "arrive_drop"}:
        target = arguments.pop(0) if not arguments[0].startswith("[") else "_"
        where = address(e, arguments[0], space)
        extra = e.read(arguments[1], "u32") if len(arguments) > 1 else e.read("1", "u32")
        if "expect_tx" in words:
            e.lines.append(f"S.asynchronous.expect({where}, {extra}, {e.mask})")
            extra = e.read("1", "u32")
        drops = "arrive_drop" in words
        e.write(target, f"S.asynchronous.arrive({where}, {extra}, {e.mask}, {drops})", "b64")
    elif "test_wait" in words or "try_wait" in words:
        kind = "u32" if "parity" in words else "b64"
        state, parity = e.read(arguments[2], kind), "parity" in words
        where = address(e, arguments[1], space)
        e.write(arguments[0], f"S.asynchronous.passed({where}, {state}, {parity}, {e.mask})", "pred")
    else:
        raise UnknownInstruction(code.opcode)


def _space(words: set[str]) -> str:
    if "shared__cluster" in words:
        return "cluster"
    return "shared" if any(word.startswith("shared") for word in words) else "generic"


TABLE: Mapping[str, Callable[[Emitter, Instruction, int], None]] = {
    "cp": emit_copy,
    "mbarrier": emit_mbarrier,
}
