"""What the C engine computes without memory, one row an operation, and the C that this is compiled from.

A row is named as generated NumPy says it (``+(u4,u4)``, ``mulhi(i8,i8)``, ``np.where(b1,f4,f4)``): the
lowering asks for a name, and what has no row is left to NumPy. Rows repeat what ``integers``, ``floats`` and
``rounding`` say in NumPy, which remain the definition; tests compare them on every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import frozen

FILES = [Path(__file__).with_name(name) for name in ("types.h", "log.c", "memory.c", "engine.c")]

SIZES = {
    "b1": 1,
    "u1": 1,
    "i1": 1,
    "u2": 2,
    "i2": 2,
    "f2": 2,
    "u4": 4,
    "i4": 4,
    "f4": 4,
    "u8": 8,
    "i8": 8,
    "f8": 8,
}
"""Bytes of each kind, named as NumPy does; ``b1`` is a flag."""

_INTEGERS = ("u2", "i2", "u4", "i4", "u8", "i8")
_WORDS = ("u4", "i4", "u8", "i8")
_FLOATS = ("f4", "f8")
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ROUND = {"rni": "nearbyint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


@frozen
class Operation:
    """``text``: C over ``x``, ``y``, ``z`` (of the kinds ``given``) and ``constant``, an unsigned 64-bit
    number."""

    name: str
    result: str
    given: tuple[str, ...]
    text: str


def _row(word: str, given: tuple[str, ...], result: str, text: str, *more: str) -> Operation:
    return Operation(f"{word}({','.join((*given, *more))})", result, given, text)


def _bits(kind: str) -> int:
    return 8 * SIZES[kind]


def _operators() -> Iterator[Operation]:
    for k in (*_INTEGERS, *_FLOATS):
        for sign in "+-*":
            yield _row(sign, (k, k), k, f"({k})(x {sign} y)")
        yield _row("neg", (k,), k, f"({k})-x")
        for name, sign in _SIGNS.items():
            yield _row(name, (k, k), "b1", f"x {sign} y")
    for k in _FLOATS:
        yield _row("/", (k, k), k, "x / y")
    for k in ("b1", "u1", *_INTEGERS):
        for sign in "&|^":
            yield _row(sign, (k, k), k, f"({k})(x {sign} y)")
        yield _row("~", (k,), k, "!x" if k == "b1" else f"({k})~x")
    for k in _INTEGERS:
        n = _bits(k)
        yield _row("<<", (k, k), k, f"(u8)y < {n} ? ({k})(x << y) : ({k})0")
        beyond = f"({k})(x >> {n - 1})" if k[0] == "i" else f"({k})0"
        yield _row(">>", (k, k), k, f"(u8)y < {n} ? ({k})(x >> y) : {beyond}")
        yield _row("shl", (k, "u4"), k, f"y < {n} ? ({k})(x << y) : ({k})0")
        yield _row("shr", (k, "u4"), k, f"y < {n} ? ({k})(x >> y) : {beyond}")


def _conversions() -> Iterator[Operation]:
    whole = ("u1", "i1", *_INTEGERS)
    for source in ("b1", *whole):
        for target in whole:
            yield _row("astype", (source, target)[:1], target, f"({target})x", target)
    for source in _WORDS:
        for target in _FLOATS:
            yield _row("astype", (source,), target, f"({target})x", target)
            yield _row("from_integer", (source,), target, f"({target})x", f"'{target}'", "'rn'")
    yield _row("astype", ("f4",), "f8", "(f8)x", "f8")
    yield _row("astype", ("f8",), "f4", "(f4)x", "f4")
    for k in SIZES:
        yield _row("np.where", ("b1", k, k), k, "x ? y : z")
    for source in _FLOATS:
        for target in _WORDS:
            for mode, function in _ROUND.items():
                wide = source == "f8"
                text = f"rounded_{target}({function}((f8)x), {int(wide or SIZES[target] == 8)})"
                yield _row("to_integer", (source,), target, text, f"'{target}'", f"'{mode}'", str(wide))


def _integers() -> Iterator[Operation]:
    wider = {"u2": "u4", "i2": "i4", "u4": "u8", "i4": "i8", "u8": "unsigned __int128", "i8": "__int128"}
    for k in _INTEGERS:
        product = f"({wider[k]})x * ({wider[k]})y"
        yield _row("mulhi", (k, k), k, f"({k})(({product}) >> {_bits(k)})")
        if SIZES[k] < 8:
            yield _row("mulwide", (k, k), wider[k], product)
        yield _row("np.minimum", (k, k), k, "x < y ? x : y")
        yield _row("np.maximum", (k, k), k, "x > y ? x : y")
        if k[0] == "i":
            yield _row("np.abs", (k,), k, f"({k})(x < 0 ? -x : x)")
            yield _row("idiv", (k, k), k, f"y == 0 ? ({k})-1 : y == -1 ? ({k})-x : ({k})(x / y)")
            yield _row("irem", (k, k), k, f"y == 0 ? x : y == -1 ? ({k})0 : ({k})(x % y)")
        else:
            yield _row("idiv", (k, k), k, f"y == 0 ? ({k})~({k})0 : ({k})(x / y)")
            yield _row("irem", (k, k), k, f"y == 0 ? x : ({k})(x % y)")
    for k in ("u4", "u8"):
        long, zeros = "ll" if k == "u8" else "", f"__builtin_clz{'ll' if k == 'u8' else ''}(x)"
        yield _row("popc", (k,), "u4", f"(u4)__builtin_popcount{long}(x)")
        yield _row("clz", (k,), "u4", f"x ? (u4){zeros} : {_bits(k)}u")
        yield _row("bfind", (k,), "u4", f"x ? {_bits(k) - 1}u - (u4){zeros} : 0xFFFFFFFFu")
        yield _row("brev", (k,), k, f"({k})(reversed(x) >> {64 - _bits(k)})")
        for minus in (False, True):
            first = "x - y" if minus else "x + y"
            second = "({0}) - z" if minus else "({0}) + z"
            total = second.format(first)
            out = (
                f"x < y || ({k})({first}) < z"
                if minus
                else f"({k})({first}) < x || ({k})({total}) < ({k})({first})"
            )
            yield _row("with_carry", (k, k, "b1"), k, f"({k})({total})", f"{minus}#0")
            yield _row("with_carry", (k, k, "b1"), "b1", out, f"{minus}#1")
    for k in _WORDS:
        signed = int(k[0] == "i")
        yield _row("bfe", (k, "u4", "u4"), k, f"({k})extracted((u8)(i8)x, y, z, {_bits(k)}, {signed})")
    yield _row("prmt", ("u4", "u4", "u4"), "u4", "permuted(x, y, z)")
    yield _row("lop3", ("u4", "u4", "u4"), "u4", "looked_up(x, y, z, (u4)constant)", "#")
    for left in (True, False):
        for wrap in (True, False):
            count = "(z & 31)" if wrap else "(z < 32 ? z : 32)"
            both = "((u8)y << 32 | x)"
            text = f"(u4)({both} << {count} >> 32)" if left else f"(u4)({both} >> {count})"
            yield _row("shf", ("u4", "u4", "u4"), "u4", text, str(left), str(wrap))


def _floats() -> Iterator[Operation]:
    for k in _FLOATS:
        f = "f" if k == "f4" else ""
        yield _row("fma", (k, k, k), k, "fused(x, y, z)" if f else "fma(x, y, z)")
        yield _row("np.abs", (k,), k, f"fabs{f}(x)")
        yield _row("np.sqrt", (k,), k, f"sqrt{f}(x)")
        yield _row("np.copysign", (k, k), k, f"copysign{f}(x, y)")
        yield _row("np.isnan", (k,), "b1", "x != x")
        yield _row("np.isfinite", (k,), "b1", "x - x == x - x")
        yield _row("np.isinf", (k,), "b1", f"fabs{f}(x) == INFINITY")
        yield _row("approximate", (k,), k, f"({k})(1.0 / sqrt((f8)x))", "'rsqrt'")
        yield _row(
            "fmin",
            (k, k),
            k,
            "x == y ? (signbit(x) ? x : y) : x != x ? y : y != y ? x : x < y ? x : y",
            "False",
        )
        yield _row(
            "fmax",
            (k, k),
            k,
            "x == y ? (signbit(y) ? x : y) : x != x ? y : y != y ? x : x > y ? x : y",
            "False",
        )
    yield _row("flush", ("f4",), "f4", "fabsf(x) < 0x1p-126f ? copysignf(0, x) : x")
    yield _row("saturate", ("f4",), "f4", "x > 0 ? (x < 1 ? x : 1.0f) : 0.0f")


ROWS: tuple[Operation, ...] = (*_operators(), *_conversions(), *_integers(), *_floats())
NUMBERS: Mapping[str, int] = {row.name: number for number, row in enumerate(ROWS)}

_SIGNATURE = """typedef void Operation(
    i8 n, void *restrict result, const void *x, const void *y, const void *z, u8 constant);
"""
_HELPERS = r"""
static u8 reversed(u8 x) {
    x = (x >> 1 & 0x5555555555555555u) | (x & 0x5555555555555555u) << 1;
    x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
    x = (x >> 4 & 0x0F0F0F0F0F0F0F0Fu) | (x & 0x0F0F0F0F0F0F0F0Fu) << 4;
    return __builtin_bswap64(x);
}
static u8 ones(i8 count) { return count <= 0 ? 0 : count >= 64 ? ~(u8)0 : ((u8)1 << count) - 1; }
static u8 extracted(u8 x, u4 start, u4 length, i4 width, int is_signed) {
    i8 first = start & 255, count = length & 255, left = width > first ? width - first : 0;
    u8 raw = x & ones(width), present = ones(count < left ? count : left);
    u8 field = raw >> (first < 63 ? first : 63) & present;
    i8 top = first + count - 1;
    top = top < 0 ? 0 : top > width - 1 ? width - 1 : top;
    return is_signed && count > 0 && raw >> top & 1 ? field | ~present : field;
}
static u4 permuted(u4 a, u4 b, u4 selector) {
    u8 both = (u8)b << 32 | a;
    u4 result = 0;
    for (int k = 0; k < 4; k++) {
        u4 nibble = selector >> 4 * k & 15, byte = (u4)(both >> 8 * (nibble & 7)) & 255;
        result |= (nibble & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * k;
    }
    return result;
}
static u4 looked_up(u4 a, u4 b, u4 c, u4 table) {
    u4 result = 0;
    for (int row = 0; row < 8; row++)
        if (table >> row & 1) result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
    return result;
}
/* x * y + z in double precision rounds twice only where it lies between two numbers of single precision */
static f4 fused(f4 x, f4 y, f4 z) {
    f8 total = (f8)x * y + z;
    u8 bits;
    memcpy(&bits, &total, 8);
    if ((bits & 0x1FFFFFFFu) == 0x10000000u || (bits << 1) - 1 < (u8)897 << 53) return fmaf(x, y, z);
    return (f4)total;
}
"""
_ROUNDED = """
static {k} rounded_{k}(f8 v, int wide) {{
    if (v != v) return wide ? ({k})((u8)1 << {top}) : 0;
    return v <= {low} ? ({k})({least}) : v >= {high} ? ({k})({most}) : ({k})v;
}}
"""


def source() -> str:
    """The C of the whole engine."""
    helpers = _HELPERS + "".join(
        _ROUNDED.format(
            k=k, top=_bits(k) - 1, low="0.0" if k[0] == "u" else f"-0x1p{_bits(k) - 1}",
            high=f"0x1p{_bits(k) - (k[0] == 'i')}",
            least="0" if k[0] == "u" else f"(u{k[1]})1 << {_bits(k) - 1}",
            most=f"(u{k[1]})-1" if k[0] == "u" else f"((u{k[1]})1 << {_bits(k) - 1}) - 1",
        )
        for k in _WORDS
    )  # fmt: skip
    functions = "".join(_function(number, row) for number, row in enumerate(ROWS))
    names = ", ".join(f"operation_{number}" for number in range(len(ROWS)))
    sizes = ", ".join("{" + ", ".join(map(str, (SIZES[row.result], *_widths(row)))) + "}" for row in ROWS)
    tables = (
        "typedef struct { u1 result, x, y, z; } Widths;\n"
        f"static const Widths widths[] = {{{sizes}}};\n"
        f"static Operation *const operations[] = {{{names}}};\n"
    )
    scalar = "".join(_function(n, r, of) for n, r in enumerate(ROWS) if _takes_scalars(r) for of in "xy")
    rows = ", ".join(
        f"{{operation_{n}x, operation_{n}y}}" if _takes_scalars(r) else "{0, 0}" for n, r in enumerate(ROWS)
    )
    tables += f"{scalar}static Operation *const with_scalar[][2] = {{{rows}}};\n"
    types, log, memory, engine = (file.read_text() for file in FILES)
    return types + log + memory + _SIGNATURE + helpers + functions + tables + engine


def _widths(row: Operation) -> tuple[int, ...]:
    found = tuple(SIZES[kind] for kind in row.given)
    return (*found, *(0,) * (3 - len(found)))


def _takes_scalars(row: Operation) -> bool:
    """Whether it is compiled for one operand that all threads agree on, too: where that is common."""
    return (
        len(row.given) == 2
        and set(row.given) <= {*_WORDS, *_FLOATS}
        and row.name[0:3] not in ("np.", "idi", "ire")
    )


def _function(number: int, row: Operation, scalar: str = "") -> str:
    """``scalar``: the operand of which there is one for all."""
    kinds = tuple(zip("xyz", row.given, strict=False))
    before = "".join(f"{k} {n} = *(const {k} *){n}s; " for n, k in kinds if n == scalar)
    reads = "".join(f"{k} {n} = ((const {k} *){n}s)[i]; " for n, k in kinds if n != scalar)
    parameters = "i8 n, void *restrict result, const void *xs, const void *ys, const void *zs, u8 constant"
    return (
        f"static void operation_{number}{scalar}({parameters}) {{\n    {before}\n"
        f"    for (i8 i = 0; i < n; i++) {{ {reads}"
        f"(({row.result} *)result)[i] = ({row.result})({row.text}); }}\n}}\n"
    )
