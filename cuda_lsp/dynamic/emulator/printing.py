"""What a kernel prints: ``vprintf`` of one thread, from its format text and its packed arguments.

Arguments lie one after the other, each aligned to its own size: ``int`` 4 bytes, ``double``, pointers and
``long long`` 8. Source: CUDA C++ Programming Guide, "Formatted Output", and what nvcc emits.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

Read = Callable[[int, int], bytes]  # address, bytes

_SPECIFIER = re.compile(r"%([-+ #0]*)(\*|[1-9]\d*)?(?:\.(\*|\d+))?(hh|h|ll|l|z|t|j|L)?([diouxXcsfFeEgGaAp%])")
_LONGEST = 1 << 12


def text_at(read: Read, address: int) -> str:
    """The C string there."""
    raw = bytearray()
    while len(raw) < _LONGEST:
        byte = read(address + len(raw), 1)
        if not byte or byte == b"\0":
            break
        raw += byte
    return raw.decode(errors="replace")


def formatted(read: Read, form: str, arguments: int) -> str:
    """``form`` with the arguments that lie at an address."""
    place = arguments

    def take(kind: str) -> int | float:
        nonlocal place
        size = struct.calcsize(kind)
        place = -(-place // size) * size
        raw = read(place, size)
        place += size
        value: int | float = struct.unpack(f"<{kind}", raw.ljust(size, b"\0"))[0]
        return value

    def one(match: re.Match[str]) -> str:
        flags, width, precision, length, kind = match.groups()
        if kind == "%":
            return "%"
        width = str(take("i")) if width == "*" else width or ""
        precision = str(take("i")) if precision == "*" else precision
        shape = f"%{flags}{width}" + (f".{precision}" if precision is not None else "")
        wide = length in ("ll", "l", "z", "t", "j")
        if kind in "di":
            return f"{shape}d" % take("q" if wide else "i")
        if kind in "ouxX":
            return f"{shape}{'d' if kind == 'u' else kind}" % take("Q" if wide else "I")
        if kind == "c":
            return f"{shape}s" % chr(int(take("i")) & 0xFF)
        if kind == "s":
            return f"{shape}s" % text_at(read, int(take("Q")))
        if kind == "p":
            return f"{shape}s" % hex(int(take("Q")))
        if kind in "aA":
            return float(take("d")).hex()
        return f"{shape}{kind}" % take("d")

    return _SPECIFIER.sub(one, form)
