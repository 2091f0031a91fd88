"""Where the scalars and pointers of a kernel's parameters stand: what a run of the kernel must fill.

Offsets are libclang's. Of a union the first pointer counts, or else its first member; bit-fields stay zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from cuda_lsp.frontend.lowering.types import TypeInfo
from cuda_lsp.ir.program import Member, ParameterLayout
from cuda_lsp.ir.types import Pointer

_MOST = 256  # elements of an array that are told apart


def layout_of(name: str, info: TypeInfo) -> ParameterLayout:
    """The members of one parameter, named as ``Kernel.params`` names them."""
    return ParameterLayout(name, max(1, info.size), tuple(_members(name, info, 0)))


def _members(name: str, info: TypeInfo, offset: int) -> Iterator[Member]:
    if info.kind in ("pointer", "reference"):
        pointee = info.target.element()[0].ir if info.target is not None else None
        yield Member(name, offset, Pointer(info.pointee_size), pointee)
    elif info.kind == "scalar":
        yield Member(name, offset, info.ir)
    elif info.kind == "array" and info.target is not None:
        for k in range(min(info.count or 0, _MOST)):
            yield from _members(f"{name}[{k}]", info.target, offset + k * info.target.size)
    elif info.kind == "record":
        fields = [f for f in info.fields if not f.bitfield]
        if info.union:
            fields = sorted(fields, key=lambda f: not f.type.is_pointer)[:1]
        for field in fields:
            yield from _members(f"{name}.{field.name}", field.type, offset + field.offset)


def hidden_at(name: str, info: TypeInfo, offset: int, size: int) -> str | None:
    """The record that has no field in these bytes that libclang tells of, by its name; None: it has some."""
    if info.kind == "array" and info.target is not None and info.target.size:
        k, within = divmod(offset, info.target.size)
        return hidden_at(f"{name}[{k}]", info.target, within, size)
    if info.kind != "record" or info.union:
        return None
    for field in info.fields:
        if field.offset < offset + size and offset < field.offset + max(1, field.type.size):
            return hidden_at(f"{name}.{field.name}", field.type, offset - field.offset, size)
    return name if 0 <= offset <= info.size - size else None
