"""What a probe needs of the instruction it stands before, as PTX text: address, value, and how to undo it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from attrs import frozen

from cuda_lsp.dynamic.ptx.module import Instruction, split_operands, type_size
from cuda_lsp.dynamic.ptx.opcodes import Role, results_of, row_of
from cuda_lsp.dynamic.ptx.operands import AddressOperand, RegisterOperand, SymbolOperand, parse_address
from cuda_lsp.dynamic.runs import PtxSite
from cuda_lsp.model import Mode


@frozen
class ProbedAccess:
    """An access that a probe may stand before. ``number``: of its site; ``types``: of the registers there."""

    instruction: Instruction
    number: int
    site: PtxSite
    types: Mapping[str, str]
    address: AddressOperand

    @property
    def shared_address(self) -> str:
        """``%a``: where in shared memory."""
        return shared_address(self.address, self.types)

    @property
    def generic_address(self) -> str:
        """``%A``: where, as the instruction names it."""
        return generic_address(self.address, self.types)


def address_of(instruction: Instruction) -> AddressOperand | None:
    """Its first operand in brackets; None: it has none, or names an image and coordinates there."""
    if row_of(instruction).role is Role.IMAGE:
        return None
    for part in instruction.arguments:
        if part.startswith("["):
            return parse_address(part)
    return None


def _offset_text(address: AddressOperand) -> tuple[str, int]:
    base = address.base
    if isinstance(base, RegisterOperand):
        return base.name, address.offset
    if isinstance(base, SymbolOperand):
        return base.name, address.offset + base.offset
    return str(address.offset), 0


def shared_address(address: AddressOperand, types: Mapping[str, str]) -> str:
    """``%a`` (b32): the address in shared memory. ``types``: of the registers there."""
    name, offset = _offset_text(address)
    wide = type_size(types.get(name, "b32")) == 8
    move = f"cvt.u32.u64 %a, {name};" if wide else f"mov.u32 %a, {name};"
    return f"\t{move} add.u32 %a, %a, {offset};" if offset else f"\t{move}"


def generic_address(address: AddressOperand, types: Mapping[str, str]) -> str:
    """``%A`` (b64): the address, as the instruction names it."""
    name, offset = _offset_text(address)
    narrow = name in types and type_size(types[name]) == 4
    move = f"cvt.u64.u32 %A, {name};" if narrow else f"mov.u64 %A, {name};"
    return f"\t{move} add.s64 %A, %A, {offset};" if offset else f"\t{move}"


def value_hash(instruction: Instruction, types: Mapping[str, str]) -> str:
    """``%v``: 10 bits of what a store stores."""
    value = instruction.arguments[1] if row_of(instruction).mode is Mode.WRITE else ""
    elements = split_operands(value[1:-1]) if value.startswith("{") else (value,)
    lines: list[str] = ["mov.b32 %v, 0;"]
    for element in elements:
        size = type_size(types[element]) if element in types else 0
        if size == 4:
            lines.append(f"{{ .reg .b32 %h; mov.b32 %h, {element}; xor.b32 %v, %v, %h; }}")
        elif size == 8:
            lines.append(f"{{ .reg .b32 %h, %i; mov.b64 {{%h, %i}}, {element}; xor.b32 %v, %v, %h;")
            lines.append("shl.b32 %i, %i, 1; xor.b32 %v, %v, %i; }")
        elif size == 2:
            lines.append(f"{{ .reg .b32 %h; mov.b32 %h, {{{element}, {element}}}; xor.b32 %v, %v, %h; }}")
        else:
            lines.append(f"xor.b32 %v, %v, {zlib.crc32(element.encode())};")
    lines.append("mul.lo.u32 %v, %v, 0x9E3779B1; shr.u32 %v, %v, 22;")
    return "\t" + " ".join(lines)


_ZERO = {"f32": "0f00000000", "f64": "0d0000000000000000"}


def zeroed(instruction: Instruction, types: Mapping[str, str]) -> tuple[str, ...]:
    """Moves of zero into what a load that was not carried out would have filled."""
    results = "".join(results_of(instruction))
    names = split_operands(results.strip("{}"))
    return tuple(
        f"mov.{types[name] if types[name] in _ZERO else f'b{type_size(types[name]) * 8}'} {name},"
        f" {_ZERO.get(types[name], '0')};"
        for name in names
        if name in types and types[name] != "b128"
    )


def predicated(moves: tuple[str, ...]) -> str:
    """Moves that are made where ``%clsp_ok`` is false."""
    return "\t" + " ".join(f"@!%clsp_ok {move}" for move in moves)
