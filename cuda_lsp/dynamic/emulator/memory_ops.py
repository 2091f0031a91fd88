"""Loads, stores, atomics and address arithmetic: PTX instruction → calls of ``Services``.

Source: PTX ISA 9.7.9 "Data movement", 9.7.13 "Atomics". Addresses become generic addresses (indices of the
arena) before the machine sees them. Strong accesses (``relaxed``, ``acquire``, ``release``; chapter 8) do not
race with one another and order threads as atomics do; ``volatile`` ones are plain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cuda_lsp.dynamic.emulator import async_ops, image_ops, matrix_ops
from cuda_lsp.dynamic.emulator.addresses import address, space_of
from cuda_lsp.dynamic.emulator.emitter import Emitter, numpy_name
from cuda_lsp.dynamic.emulator.runtime_calls import emit_call
from cuda_lsp.dynamic.ptx.flatten import TOO_DEEP, UnknownInstruction, element_types
from cuda_lsp.dynamic.ptx.module import Instruction
from cuda_lsp.dynamic.ptx.opcodes import STRONG, Role, bases, fences_blocks, is_fence, results_of
from cuda_lsp.dynamic.ptx.operands import SymbolOperand, listed, parse_address
from cuda_lsp.dynamic.runs import TRAPPED

Emit = Callable[[Emitter, Instruction, int], None]

OPERATIONS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")


def strength(code: Instruction) -> str:
    """Arguments of a load or store that say how strong it is; "" for a plain one."""
    words = set(code.modifiers)
    if not words & STRONG:
        return ""
    return f", {3 if 'cta' in words else 2}, {'release' in words}"


def _load(e: Emitter, code: Instruction, number: int) -> None:
    kind, count = element_types(code)
    space = space_of(code)
    place = parse_address(code.arguments[1])
    name = numpy_name(kind)
    if space == "param" and isinstance(place.base, SymbolOperand) and place.base.name in e.kernel.params:
        targets = listed(code.arguments[0])
        for k, target in enumerate(targets):
            at = place.offset + place.base.offset + k * int(name[1:])
            e.write(target, f"S.argument({place.base.name!r}, {at}, d_{name})", kind)
        return
    where = address(e, code.arguments[1], "generic" if space in ("param", "const", "global") else space)
    if count == 1:
        return e.write(
            code.arguments[0], f"S.load({number}, {where}, {name!r}, {e.mask}{strength(code)})", kind
        )
    values = e.fresh(f"S.load_vector({number}, {where}, {name!r}, {count}, {e.mask})")
    for k, target in enumerate(listed(code.arguments[0])):
        if target != "_":
            e.write(target, f"{values}[{k}]", kind)


def _store(e: Emitter, code: Instruction, number: int) -> None:
    if "async" in code.modifiers:
        return async_ops.emit_store(e, code, number)
    kind, count = element_types(code)
    where = address(e, code.arguments[0], space_of(code))
    values = [e.read(part, kind if kind[0] != "f" or kind == "f32" or kind == "f64" else "b16")
              for part in listed(code.arguments[1])]  # fmt: skip
    name = numpy_name(kind)
    if count == 1:
        e.lines.append(f"S.store({number}, {where}, {name!r}, {e.mask}, {values[0]}{strength(code)})")
    else:
        e.lines.append(f"S.store_vector({number}, {where}, {name!r}, {e.mask}, ({', '.join(values)}))")


def _atomic(e: Emitter, code: Instruction, number: int) -> None:
    words = code.modifiers
    if "async" in words:
        return async_ops.emit_reduction(e, code, number)
    kind = words[-1]
    operation = next((w for w in words if w in OPERATIONS), None)
    vector = any(w in ("v2", "v4", "v8") for w in words)
    if operation is None or vector or kind in ("f16", "bf16", "f16x2", "bf16x2", "b128"):
        raise UnknownInstruction(code.opcode)
    returns = bool(results_of(code))
    arguments = code.arguments[1:] if returns else code.arguments
    where = address(e, arguments[0], space_of(code))
    values = [e.read(a, kind) for a in arguments[1:3]]
    second = values[1] if len(values) > 1 else "None"
    what = (
        f"{operation!r}, {numpy_name(kind)!r}, {e.mask}, {values[0]}, {second}, {returns}, {'cta' in words}, "
        f"{bool({'release', 'acq_rel'} & set(words))}"
    )
    call = f"S.atomic({number}, {where}, {what})"
    if not returns or code.arguments[0] == "_":
        e.lines.append(call)
    else:
        e.write(code.arguments[0], call, kind)


def _cvta(e: Emitter, code: Instruction, number: int) -> None:
    words, kind = code.modifiers, code.modifiers[-1]
    value, space = e.read(code.arguments[1], kind), space_of(code)
    base = {"shared": "S.shared_base", "local": "S.local_base"}.get(space)
    if space == "cluster" or (space == "shared" and e.kernel.reaches_peers):
        value = f"S.{'from' if 'to' in words else 'in'}_cluster({value}).astype(d_{numpy_name(kind)})"
    elif base is not None:
        value = f"{value} {'-' if 'to' in words else '+'} {base}.astype(d_u8)"
    e.write(code.arguments[0], value, kind)


def _isspacep(e: Emitter, code: Instruction, number: int) -> None:
    value, space = e.read(code.arguments[1], "s64"), space_of(code)
    if space == "cluster" or (space == "shared" and e.kernel.reaches_peers):
        e.write(code.arguments[0], f"S.of_cluster({value}, {space == 'shared'})", "pred")
    else:
        e.write(code.arguments[0], f"S.in_space({code.modifiers[1].partition('__')[0]!r}, {value})", "pred")


def _mapped(e: Emitter, code: Instruction, number: int) -> None:
    """``mapa``: the same place in the shared memory of another block of the cluster."""
    kind, rank = code.modifiers[-1], e.read(code.arguments[2], "u32")
    if space_of(code) == "cluster":
        place = f"S.from_cluster(S.peer(S.in_cluster({e.read(code.arguments[1], kind)}), {rank}), True)"
    else:
        place = f"S.peer({e.read(code.arguments[1], 's64')}, {rank})"
    e.write(code.arguments[0], f"{place}.astype(d_{numpy_name(kind)})", kind)


def _rank(e: Emitter, code: Instruction, number: int) -> None:
    """``getctarank``: whose shared memory an address lies in."""
    value = e.read(code.arguments[1], code.modifiers[-1])
    place = f"S.in_cluster({value})" if space_of(code) == "cluster" else value
    e.write(code.arguments[0], f"S.rank({place})", "u32")


def _policy(e: Emitter, code: Instruction, number: int) -> None:
    """How long a cache is to keep what an access touches: a number that means nothing else."""
    e.write(code.arguments[0], e.read("0", "b64"), "b64")


def _fence(e: Emitter, code: Instruction, number: int) -> None:
    if is_fence(code):
        e.lines.append(f"S.fence({e.mask}, {fences_blocks(code)})")


def _sleep(e: Emitter, code: Instruction, number: int) -> None:
    e.lines.append(f"S.rest({e.mask})")


def _nothing(e: Emitter, code: Instruction, number: int) -> None:
    """Hints and waits that change nothing here."""


def _trap(e: Emitter, code: Instruction, number: int) -> None:
    why = TRAPPED
    if code.opcode == TOO_DEEP:
        name, deepest = code.arguments
        why = f"recursion of {name} deeper than {deepest} calls, which the emulator does not follow"
    e.lines.append(f"S.trap({number}, {e.mask}, {why!r})")


TABLE: Mapping[str, Emit] = {
    **dict.fromkeys(bases(Role.HINT), _nothing),
    **dict.fromkeys(bases(Role.PRODUCT, Role.MATRIX), matrix_ops.emit),
    **dict.fromkeys([*bases(Role.IMAGE), "txq", "suq"], image_ops.emit),
    **async_ops.TABLE,
    "ld": _load, "ldu": _load, "st": _store, "atom": _atomic, "red": _atomic, "cvta": _cvta,
    "isspacep": _isspacep, "mapa": _mapped, "getctarank": _rank, "createpolicy": _policy, "membar": _fence,
    "fence": _fence, "nanosleep": _sleep, "discard": _nothing, "call": emit_call, "trap": _trap,
}  # fmt: skip
