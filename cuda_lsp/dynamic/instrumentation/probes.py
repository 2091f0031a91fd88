"""The PTX that tells the detector of barriers, copies, global memory, banks, and where threads are.

Text in, text out: which instruction gets which probe is decided in ``instrument.py``. Probes of shared memory
are in ``shared_probe.py``, the first statements of a function in ``shadow.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuda_lsp.dynamic.instrumentation.shadow import (
    EPOCH,
    OF_WARP,
    ShadowLayout,
    granule_of,
    keep_stamp,
    limit_of,
)

ALLOWED = "\tsetp.eq.u32 %clsp_ok, 0, 0;"  # any access
_INLINE_RANGES = 6  # of global memory that a bounds check compares with before it calls


# --------------------------------------------------------------------------------- synchronisation


def after_block_barrier(layout: ShadowLayout, label: str) -> str:
    """A new epoch; at the 65,536th, forget everything."""
    lines = [
        f"{{ .reg .pred %p; and.b32 %clsp_hi, %clsp_hi, {-OF_WARP & 0xFFFFFFFF};",
        f"add.u32 %clsp_hi, %clsp_hi, {EPOCH}; and.b32 %clsp_lo, %clsp_lo, 0x7fffffff;",
        f"setp.ge.u32 %p, %clsp_hi, {EPOCH}; @%p bra $kept_{label};",
        f"add.u32 %clsp_hi, %clsp_hi, {EPOCH};",
        "{ .reg .b64 %g; .param .b64 p0;",
        "mov.b64 %g, %clsp_cells;"
        if layout.in_global
        else "cvt.u64.u32 %g, %clsp_cells; cvta.shared.u64 %g, %g;",
        "st.param.b64 [p0], %g; call clsp_forget, (p0); }",
        f"$kept_{label}: {keep_stamp(layout)} }}",
    ]
    return "\t" + "\n\t".join(lines)


def next_tick(layout: ShadowLayout) -> str:
    """One tick later, unless the ticks are spent (then the detector says so)."""
    return (
        "\t{ .reg .b32 %t, %c; .reg .pred %p; and.b32 %t, %clsp_hi, 2047; setp.eq.u32 %p, %t, 2047;"
        " selp.b32 %t, 0, 0x80000000, %p; add.cc.u32 %clsp_lo, %clsp_lo, %t; addc.u32 %clsp_hi, %clsp_hi, 0;"
        f" {keep_stamp(layout)} }}"
    )


def _passed(arguments: Sequence[str]) -> tuple[str, str]:
    """Parameters with the arguments of a call in them, and their names."""
    sizes = ["b64" if text == "%clsp_at" else "b32" for text in arguments]
    params = "".join(
        f" .param .{size} p{i}; st.param.{size} [p{i}], {text};"
        for i, (size, text) in enumerate(zip(sizes, arguments, strict=True))
    )
    return params, ", ".join(f"p{i}" for i in range(len(arguments)))


def ticked_by(layout: ShadowLayout, name: str, *arguments: str) -> str:
    """``tick = name(arguments…)``; arguments are words, or ``%clsp_at``."""
    params, names = _passed(arguments)
    return (
        f"\t{{ .reg .b32 %t, %u; .param .b32 r;{params} call (r), {name}, ({names}); ld.param.b32 %t, [r];"
        " shl.b32 %u, %t, 31; and.b32 %clsp_lo, %clsp_lo, 0x7fffffff; or.b32 %clsp_lo, %clsp_lo, %u;"
        f" shr.u32 %t, %t, 1; and.b32 %clsp_hi, %clsp_hi, {-OF_WARP & 0xFFFFFFFF};"
        f" or.b32 %clsp_hi, %clsp_hi, %t; {keep_stamp(layout)} }}"
    )


def called(name: str, *arguments: str) -> str:
    """``name(arguments…)``, words, or ``%clsp_at``."""
    params, names = _passed(arguments)
    return f"\t{{{params} call {name}, ({names}); }}"


def call_with_stamp(name: str, last: str) -> str:
    """``name(low, high, last)``."""
    return called(name, "%clsp_lo", "%clsp_hi", last)


def copy_value() -> str:
    """``%V`` of an asynchronous copy: the bits of its stamp that say its group; ``%v``: the lower of them."""
    return "\t{ .param .b64 r; call (r), clsp_copy_group; ld.param.b64 %V, [r]; cvt.u32.u64 %v, %V; }"


def barrier_number(address: str) -> str:
    """``%a`` (b32): which of the detector's barriers stands for the mbarrier at ``address``."""
    return f"{address} shr.u32 %a, %a, 3; and.b32 %a, %a, 15;"


def with_address(name: str, *last: str) -> str:
    """``name(address, low, high[, last])`` for the address in ``%clsp_at``."""
    return called(name, "%clsp_at", "%clsp_lo", "%clsp_hi", *last)


def held_by(name: str, *arguments: str) -> str:
    """``%clsp_held = name(arguments…)``."""
    params, names = _passed(arguments)
    return f"\t{{ .param .b32 r;{params} call (r), {name}, ({names}); ld.param.b32 %clsp_held, [r]; }}"


def waits_at(site: int) -> str:
    """Before a barrier: where this thread is, should nobody come."""
    return f"\t{{ .reg .b32 %t; and.b32 %t, %clsp_hi, 0xffff0000; or.b32 %t, %t, {site};{_TOLD} }}"


def leaves() -> str:
    """Before a thread ends."""
    return f"\t{{ .reg .b32 %t; mov.b32 %t, -1;{_TOLD} }}"


# A warp that is all there says it once: a word of each thread would cost more than the barrier does.
_TOLD = (
    " .reg .b32 %m; .reg .pred %p, %q; activemask.b32 %m; setp.eq.u32 %p, %m, -1;"
    f" @!%p st.global.u32 [%clsp_where], %t; and.b32 %m, %clsp_lo, {31 << 26};"
    " setp.eq.and.u32 %q, %m, 0, %p; @%q st.global.u32 [%clsp_where+128], %t;"
)


# ---------------------------------------------------------------------------- banks, global memory


def shared_bounds(site: int, bytes: int, label: str) -> str:
    """``%a``: an address in shared memory. Sets ``%clsp_ok``; one that is not good is written down."""
    lines = [
        f"{{ .reg .b32 %o; {granule_of('%o', bytes)} setp.lt.u32 %clsp_ok, %o, {limit_of(bytes)};",
        f"@%clsp_ok bra $fits_{label};",
        "{ .param .b32 p0; .param .b32 p1; st.param.b32 [p0], %a;",
        f"st.param.b32 [p1], {site}; call clsp_shared_fault, (p0, p1); }}",
        f"$fits_{label}: }}",
    ]
    return "\t" + "\n\t".join(lines)


def group_bounds(predicate: str, bytes: int, low: int, high: int) -> str:
    """Whether accesses of ``bytes`` each, ``low`` to ``high`` bytes from ``%a``, all lie in shared memory."""
    first, last = low // bytes, high // bytes - 1
    lines = [
        f"{{ .reg .b32 %o, %t; {granule_of('%o', bytes)} add.u32 %t, %o, {first};",
        f"setp.lt.u32 {predicate}, %t, {limit_of(bytes)}; add.u32 %t, %o, {last};",
        f"setp.lt.and.u32 {predicate}, %t, {limit_of(bytes)}, {predicate}; }}",
    ]
    return "\t" + "\n\t".join(lines)


def bank_probe(site: int, bytes: int, is_load: bool) -> str:
    """``%a``: the address in shared memory of a row of a matrix, which is judged by itself."""
    told = ("%a", str(site | bytes << 16 | int(is_load) << 24), "%clsp_base", "%clsp_lim")
    given, names = _passed(told)
    return f"\t{{ .param .b32 r;{given} call (r), clsp_bank, ({names}); }}"


def global_probe(site: int, bytes: int, kind: int, of_width: bool = False) -> str:
    """``%A`` (b64): the address. Sets ``%clsp_ok``. ``kind``: 0 read, 1 write, 2 atomic, 3 of block scope.

    ``of_width``: an atomic, and the kernel has others of other widths.
    """
    name = "clsp_global_of_width" if of_width else "clsp_global"
    return (
        "\t{ .reg .b32 %r; .param .b64 p0; .param .b32 p1; .param .b32 p2; .param .b32 p3; .param .b32 r;"
        " st.param.b64 [p0], %A; st.param.b32 [p1], %clsp_lo; st.param.b32 [p2], %clsp_hi;"
        f" st.param.b32 [p3], {site | bytes << 16 | kind << 24}; call (r), {name}, (p0, p1, p2, p3);"
        " ld.param.b32 %r, [r]; setp.ne.u32 %clsp_ok, %r, 0; }"
    )


def bounds_probe(
    site: int, bytes: int, kind: int, offset: int, ranges: int, label: str, home: int | None = None
) -> str:
    """As ``global_probe``, without looking for races. ``offset``: of the ranges in the control block.

    ``home``: the range that is meant; only if it is missed others are looked at.
    """
    lines = ["{ .reg .b64 %d, %n; .reg .b32 %r; .reg .pred %p;"]
    tried = range(min(ranges, _INLINE_RANGES)) if home is None else (home,)
    for number in tried:
        at = offset + 24 * number
        lines.append(
            f"ld.const.u64 %n, [clsp_control+{at}]; sub.s64 %d, %A, %n; add.s64 %d, %d, {bytes - 1};"
        )
        lines.append(f"ld.const.u64 %n, [clsp_control+{at + 8}];")
        combine = "setp.lt.u64 %p, %d, %n;" if number == tried[0] else "setp.lt.or.u64 %p, %d, %n, %p;"
        lines.append(combine)
    if ranges and bytes > 1:
        lines.append(f"cvt.u32.u64 %r, %A; and.b32 %r, %r, {bytes - 1}; setp.eq.and.u32 %p, %r, 0, %p;")
    if ranges:
        lines.append(f"@%p bra $inside_{label};")
    lines.append("{ .param .b64 p0; .param .b32 p1; .param .b32 r; st.param.b64 [p0], %A;")
    lines.append(f"st.param.b32 [p1], {site | bytes << 16 | kind << 24}; call (r), clsp_bounds, (p0, p1);")
    lines.append("ld.param.b32 %r, [r]; setp.ne.u32 %clsp_ok, %r, 0; }")
    lines.append(f"$inside_{label}: }}")
    return "\t" + "\n\t".join(lines)


MOST_REMEMBERED = 64  # marks that a thread need not look up again


def mark_executed(offset: int, number: int, remembered: bool = False) -> str:
    """A basic block was entered; ``offset`` of the byte array's pointer in the control block.

    ``remembered``: the thread may come here again, and has a bit that says so.
    """
    told = (
        f" ld.const.u64 %e, [clsp_control+{offset}]; ld.global.u8 %one, [%e+{number}];"
        f" setp.eq.u16 %new, %one, 0; mov.b16 %one, 1; @%new st.global.u8 [%e+{number}], %one;"
    )
    declared = "\t{ .reg .b64 %e; .reg .b16 %one; .reg .pred %new;"
    if not remembered or number >= MOST_REMEMBERED:
        return f"{declared}{told} }}"
    seen, bit, label = f"%clsp_seen{number // 32}", 1 << number % 32, f"$clsp_been_{number}"
    return (
        f"{declared} .reg .b32 %b; and.b32 %b, {seen}, {bit}; setp.ne.u32 %new, %b, 0; @%new bra {label};"
        f" or.b32 {seen}, {seen}, {bit};{told}\n{label}: }}"
    )
