"""Instructions that exchange values between the lanes of a warp.

Source: PTX ISA 9.7.9.6 "shfl.sync", 9.7.12 "vote", "match", "redux", "activemask". They execute when all
lanes of their mask have arrived; every warp of the launch is served at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cuda_lsp.dynamic.emulator.emitter import Emitter
from cuda_lsp.dynamic.ptx.flatten import UnknownInstruction
from cuda_lsp.dynamic.ptx.module import Instruction
from cuda_lsp.dynamic.ptx.operands import IntegerOperand, PairOperand, parse_operand

Emit = Callable[[Emitter, Instruction, int], None]


def _pair(text: str) -> tuple[object, object | None]:
    operand = parse_operand(text)
    return (operand.first, operand.second) if isinstance(operand, PairOperand) else (operand, None)


def _members(e: Emitter, text: str) -> str:
    """Whom the instruction names, as bits; ``None``: the whole warp."""
    operand = parse_operand(text)
    whole = isinstance(operand, IntegerOperand) and operand.value & 0xFFFFFFFF == 0xFFFFFFFF
    return "None" if whole else e.read(operand, "u32")


def _shuffle(e: Emitter, code: Instruction, number: int) -> None:
    mode = next(w for w in code.modifiers if w in ("up", "down", "bfly", "idx"))
    value = e.read(code.arguments[1], "b32")
    lane, clamp = e.read(code.arguments[2], "u32"), e.read(code.arguments[3], "u32")
    result = e.fresh(f"S.shuffle({mode!r}, {value}, {lane}, {clamp}, {e.mask})")
    first, second = _pair(code.arguments[0])
    e.write(first, f"{result}[0]", "b32")  # type: ignore[arg-type]
    if second is not None:
        e.write(second, f"{result}[1]", "pred")  # type: ignore[arg-type]


def _vote(e: Emitter, code: Instruction, number: int) -> None:
    predicate = e.read(code.arguments[1], "pred")
    mode = next(w for w in code.modifiers if w in ("all", "any", "uni", "ballot"))
    named = _members(e, code.arguments[2])
    call = f"S.vote({mode!r}, {predicate}, {e.mask}, {named})"
    e.write(code.arguments[0], call, "b32" if mode == "ballot" else "pred")


def _match(e: Emitter, code: Instruction, number: int) -> None:
    kind = code.modifiers[-1]
    value = e.read(code.arguments[1], kind)
    everyone = "all" in code.modifiers
    result = e.fresh(f"S.match({value}, {everyone}, {e.mask}, {_members(e, code.arguments[2])})")
    first, second = _pair(code.arguments[0])
    e.write(first, f"{result}[0]", "b32")  # type: ignore[arg-type]
    if second is not None:
        e.write(second, f"{result}[1]", "pred")  # type: ignore[arg-type]


def _redux(e: Emitter, code: Instruction, number: int) -> None:
    kind = code.modifiers[-1]
    operation = next((w for w in code.modifiers if w in ("add", "min", "max", "and", "or", "xor")), None)
    if operation is None or kind[0] == "f":
        raise UnknownInstruction(code.opcode)
    value = e.read(code.arguments[1], kind)
    named = _members(e, code.arguments[2])
    e.write(code.arguments[0], f"S.reduce({operation!r}, {value}, {e.mask}, {named})", kind)


def _activemask(e: Emitter, code: Instruction, number: int) -> None:
    e.write(code.arguments[0], f"S.vote('ballot', np.True_, {e.mask})", "b32")


def _elect(e: Emitter, code: Instruction, number: int) -> None:
    first, second = _pair(code.arguments[0])
    ballot = e.fresh(f"S.vote('ballot', np.True_, {e.mask}, {_members(e, code.arguments[1])})")
    e.write(first, f"clz(brev({ballot}))", "b32")  # type: ignore[arg-type]
    if second is not None:
        e.write(second, f"clz(brev({ballot})) == S.special('%laneid')", "pred")  # type: ignore[arg-type]


TABLE: Mapping[str, Emit] = {
    "shfl": _shuffle, "vote": _vote, "match": _match, "redux": _redux, "activemask": _activemask,
    "elect": _elect,
}  # fmt: skip
