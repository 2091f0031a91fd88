"""Where a memory instruction points: the text of an address as an expression over whole arrays.

Source: PTX ISA 5.1 "State spaces", 6.4 "Using addresses". All become generic addresses, which are indices of
the arena (``memory.py``), before the machine sees them.
"""

from __future__ import annotations

from cuda_lsp.dynamic.emulator.emitter import Emitter
from cuda_lsp.dynamic.ptx.flatten import Untranslatable
from cuda_lsp.dynamic.ptx.module import Instruction
from cuda_lsp.dynamic.ptx.operands import RegisterOperand, SymbolOperand, parse_address


def space_of(code: Instruction) -> str:
    """The state space an access names, ``cluster`` for shared memory of any block of it; ``generic`` when it
    names none."""
    for word in code.modifiers[1:]:
        if word == "shared__cluster":
            return "cluster"
        space = word.partition("__")[0]
        if space in ("shared", "global", "local", "const", "param"):
            return space
    return "generic"


def address(e: Emitter, text: str, space: str) -> str:
    """An int64 expression for the generic address of ``[…]``."""
    place = parse_address(text)
    offset = place.offset
    match place.base:
        case RegisterOperand(name):
            wide = e.kernel.registers[name] in ("b64", "u64", "s64")
            base = e.local(name)
            expression = f"{base}.view(d_i8)" if wide else f"{base}.astype(d_i8)"
            if offset:
                expression = f"{expression} + {e.read(str(offset), 's64')}"
        case SymbolOperand(name, more):
            if name in e.kernel.params:
                return f"S.param_address({name!r}, {offset + more})"
            variable = e.kernel.variables.get(name)
            if variable is not None and variable.space == "param":
                raise Untranslatable(f"the argument {name} used as memory")
            expression = f"S.symbol({name!r}, {offset + more})"
        case _:
            expression = e.read(str(offset), "s64")
    if space == "cluster":
        return f"S.in_cluster({expression})"
    if space == "shared":
        return f"{expression} + S.shared_base"
    return f"{expression} + S.local_base" if space == "local" else expression
