"""Asynchronous copies and mbarriers: PTX instruction → calls of ``copies.Async``.

Source: PTX ISA 9.7.9.25 "Asynchronous copy" and 9.7.13.15 "mbarrier".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cuda_lsp.dynamic.emulator.addresses import address
from cuda_lsp.dynamic.emulator.emitter import Emitter
from cuda_lsp.dynamic.ptx.flatten import UnknownInstruction
from cuda_lsp.dynamic.ptx.module import Instruction


def emit_copy(e: Emitter, code: Instruction, number: int) -> None:
    """Everything that begins with ``cp.async``."""
    words = {word.partition("__")[0] for word in code.modifiers}
    arguments = code.arguments
    if "bulk" in words:
        return _bulk(e, code, words)
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


def _bulk(e: Emitter, code: Instruction, words: set[str]) -> None:
    """A bulk copy from global to shared memory that reports to an mbarrier; no tensors."""
    if (
        "tensor" in words
        or "complete_tx" not in {w.partition("::")[2].partition("::")[0] for w in words} | words
    ):
        raise UnknownInstruction(code.opcode)
    target, source, size, barrier = code.arguments[:4]
    given = f"{address(e, target, 'shared')}, {address(e, source, 'global')}, {e.read(size, 'u32')}"
    e.lines.append(f"S.asynchronous.bulk({given}, {address(e, barrier, 'shared')}, {e.mask})")


def emit_mbarrier(e: Emitter, code: Instruction, number: int) -> None:
    """Everything that begins with ``mbarrier``."""
    words = {word.partition("__")[0] for word in code.modifiers}
    arguments = list(code.arguments)
    space = _space(words)
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
    return "shared" if any(word.startswith("shared") for word in words) else "generic"


TABLE: Mapping[str, Callable[[Emitter, Instruction, int], None]] = {
    "cp": emit_copy,
    "mbarrier": emit_mbarrier,
}
