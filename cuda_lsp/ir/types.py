"""Types of the kernel program: what a value is, and how many bytes it takes in memory.

C's usual arithmetic conversions are explicit ``Cast`` nodes in the program, so both operands of an
arithmetic operation always have one type and its width and signedness decide wraparound.
"""

from __future__ import annotations

import re
from ctypes import c_float

from attrs import frozen


@frozen
class Int:
    """A C integer (``bool`` is ``Int(8, False, boolean=True)``; enums and chars are integers)."""

    bits: int
    signed: bool = True
    boolean: bool = False

    @property
    def size(self) -> int:
        """Bytes."""
        return self.bits // 8

    @property
    def minimum(self) -> int:
        """The least number."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def maximum(self) -> int:
        """The greatest number."""
        if self.boolean:
            return 1
        return (1 << (self.bits - self.signed)) - 1

    def wrap(self, value: int) -> int:
        """``value`` reduced to this type as the hardware does it (two's complement)."""
        if self.boolean:
            return int(value != 0)
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if self.signed and value >> (self.bits - 1) else value

    def __str__(self) -> str:
        return "bool" if self.boolean else f"{'' if self.signed else 'u'}int{self.bits}"


@frozen
class Float:
    """A floating-point number: its value is data, computed by nobody but who runs a kernel on numbers."""

    bits: int

    @property
    def size(self) -> int:
        return self.bits // 8

    def rounded(self, value: float) -> float:
        """``value`` as the type holds it. 16 bits have two formats: those numbers are left as they are."""
        return c_float(value).value if self.bits == 32 else value

    def __str__(self) -> str:
        return f"float{self.bits}"


@frozen
class Pointer:
    """An address. Byte offsets are explicit (``Offset``), so the pointee is only for messages."""

    pointee_size: int = 1
    size: int = 8

    def __str__(self) -> str:
        return f"ptr[{self.pointee_size}]"


@frozen
class Opaque:
    """A record, vector or other value that is only moved about. ``size`` in bytes."""

    name: str
    size: int

    def __str__(self) -> str:
        return self.name


Type = Int | Float | Pointer | Opaque

_VECTOR = re.compile(r"u?(char|short|int|long|longlong|float|double)[124]|v[24]\..*")
"""CUDA's vectors that are aligned as a whole, and those of PTX. Records may be aligned as their members."""
_WORDS = (2, 4, 8, 16)


def is_word(type: Type) -> bool:
    """An access is one of the machine's, whose address has to be a multiple of its size."""
    whole = not isinstance(type, Opaque) or _VECTOR.fullmatch(type.name) is not None
    return whole and type.size in _WORDS


BOOL = Int(8, signed=False, boolean=True)
INT32 = Int(32)
UINT32 = Int(32, signed=False)
INT64 = Int(64)
FLOAT32 = Float(32)
