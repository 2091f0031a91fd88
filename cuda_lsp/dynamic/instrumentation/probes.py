"""The PTX that goes in front of a memory access or behind a barrier: a detector's fast path.

A probe loads the shadow cell of the word, compares stamps, and calls the slow path (``detector.cu``, which
explains cells and stamps) only when it cannot prove by itself that nothing new happened. Text in, text out:
which instruction gets which probe is decided in ``instrument.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

CELL_BYTES = 32
STAMP_BYTES = 8
_EPOCH = 1 << 16  # of a stamp's high word, in units of its lowest bit
_WARP = 1 << 11
_LANE = 1 << 26  # of the low word
COPY = 1 << 11  # of the low word: an asynchronous copy wrote
ALLOWED = "\tsetp.eq.u32 %clsp_ok, 0, 0;"  # any access
_INLINE_RANGES = 6  # of global memory that a bounds check compares with before it calls


@frozen
class ShadowLayout:
    """Where the detector keeps a block's state, and how fine it looks.

    Behind the kernel's own shared memory (``user_dynamic`` bytes of it dynamic) lie one stamp a thread and,
    unless ``in_global``, one cell a granule of ``1 << granule_shift`` bytes. ``threads``: of a block.
    """

    block: tuple[int, int, int]
    user_dynamic: int
    granule_shift: int = 2
    in_global: bool = False
    atomics: bool = True  # some instruction of the module updates shared memory atomically
    copies: bool = False  # some instruction copies asynchronously into shared memory
    clocks: bool = False  # locks or flags order threads of the block

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def stamps_offset(self) -> int:
        """From the start of dynamic shared memory, bytes."""
        return (self.user_dynamic + 15) // 16 * 16

    @property
    def cells_offset(self) -> int:
        return self.stamps_offset + (self.threads * STAMP_BYTES + 15) // 16 * 16

    def dynamic_bytes(self, static_bytes: int) -> int:
        """Dynamic shared memory that a launch needs, the kernel's own included."""
        user = static_bytes + self.stamps_offset
        cells = -(-user >> self.granule_shift) + 16
        return self.cells_offset + (0 if self.in_global else cells * CELL_BYTES)


def function_registers(layout: ShadowLayout) -> str:
    """Declared once a function: the thread's stamp and where its shadow lies."""
    cells = "b64" if layout.in_global else "b32"
    return (
        "\t.reg .b32 %clsp_lo, %clsp_hi, %clsp_self, %clsp_base, %clsp_lim; .reg .pred %clsp_ok;"
        f" .reg .{cells} %clsp_cells; .reg .b64 %clsp_where, %clsp_at; .reg .b32 %clsp_held;"
    )


def clear_shared(layout: ShadowLayout, names: tuple[str, ...]) -> str:
    """Zeros in the kernel's shared memory: what an instrumented block left there is not what others leave."""
    x, y, _ = layout.block
    lines = [
        "{ .reg .b32 %t, %u, %i, %from, %to, %zero; .reg .pred %p;",
        f"mov.u32 %t, %tid.z; mov.u32 %u, %tid.y; mad.lo.u32 %t, %t, {y}, %u;",
        f"mov.u32 %u, %tid.x; mad.lo.u32 %t, %t, {x}, %u; mov.b32 %zero, 0;",
        f"mov.u32 %from, clsp_dynamic; add.u32 %to, %from, {layout.user_dynamic};",
        *(f"mov.u32 %u, {name}; min.u32 %from, %from, %u;" for name in names),
        "and.b32 %from, %from, -4; mad.lo.u32 %i, %t, 4, %from;",
        "$clsp_zero: setp.ge.u32 %p, %i, %to; @%p bra $clsp_zeroed;",
        f"st.shared.b32 [%i], %zero; add.u32 %i, %i, {4 * layout.threads}; bra $clsp_zero;",
        "$clsp_zeroed: bar.sync 0; }",
    ]
    return "\t" + "\n\t".join(lines)


def _window(layout: ShadowLayout, names: tuple[str, ...]) -> Iterator[str]:
    """Where the kernel's shared memory begins, and its bytes. Needs ``%u``."""
    yield "mov.u32 %clsp_base, clsp_dynamic;"
    yield from (f"mov.u32 %u, {name}; min.u32 %clsp_base, %clsp_base, %u;" for name in names)
    yield "and.b32 %clsp_base, %clsp_base, -16;"
    yield f"mov.u32 %u, clsp_dynamic; add.u32 %clsp_lim, %u, {layout.user_dynamic};"
    yield "sub.u32 %clsp_lim, %clsp_lim, %clsp_base;"


def bounds_prologue(layout: ShadowLayout, names: tuple[str, ...]) -> str:
    """First statements where accesses to shared memory are only kept within their bounds."""
    return "\t" + "\n\t".join(("{ .reg .b32 %u;", *_window(layout, names), "}"))


def _places(layout: ShadowLayout, control: Mapping[str, int], names: tuple[str, ...]) -> Iterator[str]:
    x, y, _ = layout.block
    yield "{ .reg .b32 %t, %u; .reg .b64 %q, %s;"
    yield f"mov.u32 %t, %tid.z; mov.u32 %u, %tid.y; mad.lo.u32 %t, %t, {y}, %u;"
    yield f"mov.u32 %u, %tid.x; mad.lo.u32 %t, %t, {x}, %u;"
    yield from _window(layout, names)
    yield "{ .param .b32 r; call.uni (r), clsp_ordinal; ld.param.b32 %u, [r]; }"
    yield f"mad.lo.u32 %clsp_self, %u, {layout.threads}, %t; cvt.u64.u32 %q, %clsp_self; shl.b64 %q, %q, 2;"
    yield f"ld.const.u64 %clsp_where, [clsp_control+{control['where']}];"
    yield "add.u64 %clsp_where, %clsp_where, %q;"
    yield "mov.u32 %clsp_self, clsp_dynamic;"
    if layout.in_global:
        yield f"ld.const.u64 %clsp_cells, [clsp_control+{control['cells']}];"
        yield f"ld.const.u64 %s, [clsp_control+{control['cells_stride']}];"
        yield "cvt.u64.u32 %q, %u; mad.lo.u64 %clsp_cells, %q, %s, %clsp_cells;"
    else:
        yield f"add.u32 %clsp_cells, %clsp_self, {layout.cells_offset};"
    yield f"add.u32 %clsp_self, %clsp_self, {layout.stamps_offset};"
    yield f"mad.lo.u32 %clsp_self, %t, {STAMP_BYTES}, %clsp_self;"


def entry_prologue(layout: ShadowLayout, control: Mapping[str, int], names: tuple[str, ...]) -> str:
    """First statements of a watched block: empty cells, the first stamp, a barrier.

    ``names``: the shared variables, of which the lowest address is where the shadow begins.
    """
    lines = list(_places(layout, control, names))
    yield_ = lines.append
    yield_("and.b32 %u, %t, 31; shl.b32 %clsp_lo, %u, 26;")
    yield_(f"shr.u32 %u, %t, 5; mad.lo.u32 %clsp_hi, %u, {_WARP}, {_EPOCH};")
    yield_("st.shared.v2.b32 [%clsp_self], {%clsp_lo, %clsp_hi};")
    if not layout.in_global:
        shift = 5 - layout.granule_shift
        yield_("{ .reg .b32 %i, %e; .reg .pred %p; mov.b32 %e, 0;")
        yield_(f"add.u32 %u, %clsp_lim, 15; and.b32 %u, %u, -16; {_scaled('%u', '%u', shift)}")
        yield_("add.u32 %u, %u, %clsp_cells; mad.lo.u32 %i, %t, 16, %clsp_cells;")
        yield_("$clsp_clear: setp.ge.u32 %p, %i, %u; @%p bra $clsp_cleared;")
        yield_(f"st.shared.v4.b32 [%i], {{%e, %e, %e, %e}}; add.u32 %i, %i, {16 * layout.threads};")
        yield_("bra $clsp_clear;")
        yield_("$clsp_cleared: }")
    yield_("bar.sync 0; }")
    return "\t" + "\n\t".join(lines)


def function_prologue(layout: ShadowLayout, control: Mapping[str, int], names: tuple[str, ...]) -> str:
    """First statements of a called function: find the caller's state again."""
    return "\t" + "\n\t".join((*_places(layout, control, names), "}", reload_stamp()))


def reload_stamp() -> str:
    """After a call: the callee may have passed barriers."""
    return "ld.shared.v2.b32 {%clsp_lo, %clsp_hi}, [%clsp_self];"


def tell_addresses(offset: int, names: tuple[str, ...]) -> str:
    """Write where the dynamic part and the named variables lie to ``u32 names[]``."""
    lines = [
        "{ .reg .b64 %n; .reg .b32 %v, %w; .reg .pred %first;",
        f"ld.const.u64 %n, [clsp_control+{offset}];",
        "mov.u32 %v, %ctaid.x; mov.u32 %w, %ctaid.y; or.b32 %v, %v, %w;",
        "mov.u32 %w, %ctaid.z; or.b32 %v, %v, %w; mov.u32 %w, %tid.x; or.b32 %v, %v, %w;",
        "setp.eq.u32 %first, %v, 0;",
    ]
    for position, name in enumerate(("clsp_dynamic", *names)):
        lines.append(f"mov.u32 %v, {name}; @%first st.global.u32 [%n+{4 * position}], %v;")
    return "\t" + "\n\t".join(lines) + " }"


def _scaled(to: str, register: str, shift: int, type: str = "b32") -> str:
    if shift >= 0:
        return f"shl.{type} {to}, {register}, {shift};"
    return f"shr.{type.replace('b', 'u')} {to}, {register}, {-shift};"


# --------------------------------------------------------------------------------- shared accesses


def _is_other(low: str, high: str, result: str) -> str:
    """A stamp, already xor-ed with ours, is of this interval and not of this thread at this tick."""
    return (
        f"setp.ne.u32 {result}, {high}, 0; setp.ge.or.u32 {result}, {low}, {_LANE}, {result};"
        f" setp.lt.and.u32 {result}, {high}, {_EPOCH}, {result};"
    )


def _against_ours(*pairs: str) -> str:
    return " ".join(
        f"xor.b32 %{p}l, %{p}l, {'%m' if p == 'ours' else '%clsp_lo'}; xor.b32 %{p}h, %{p}h, %clsp_hi;"
        for p in pairs
    )


@frozen
class SharedProbe:
    """One access of ``bytes`` a thread at site ``site``; ``%a`` (b32) holds its address.

    Sets ``%clsp_ok`` to false when the address lies outside the kernel's shared memory.
    """

    layout: ShadowLayout
    site: int
    bytes: int

    @property
    def _cells(self) -> int:
        return max(1, self.bytes >> self.layout.granule_shift)

    @property
    def _space(self) -> str:
        return "global" if self.layout.in_global else "shared"

    def _opening(self, label: str) -> Iterator[str]:
        """Bounds and alignment, then the address of the first cell in ``%c``."""
        yield "{ .reg .b32 %o, %m, %n, %al, %ah, %bl, %bh, %wl, %wh, %xl, %xh, %t, %u;"
        yield ".reg .b64 %g, %old, %new; .reg .pred %p, %q, %s, %lost, %copied;"
        yield f".reg .{'b64' if self.layout.in_global else 'b32'} %c;"
        yield "sub.u32 %o, %a, %clsp_base; setp.lt.u32 %clsp_ok, %o, %clsp_lim;"
        if self.bytes > 1:
            yield f"and.b32 %t, %a, {self.bytes - 1}; setp.eq.and.u32 %clsp_ok, %t, 0, %clsp_ok;"
        yield f"@%clsp_ok bra $in_{label};"
        yield "{ .param .b32 p0; .param .b32 p1; st.param.b32 [p0], %a;"
        yield f"st.param.b32 [p1], {self.site}; call clsp_shared_fault, (p0, p1); }}"
        yield f"bra $done_{label};"
        yield f"$in_{label}:"
        shift = 5 - self.layout.granule_shift
        if self.layout.granule_shift:
            yield f"and.b32 %o, %o, {-(1 << self.layout.granule_shift)};"
        if self.layout.in_global:
            yield f"cvt.u64.u32 %g, %o; {_scaled('%g', '%g', shift, 'b64')} add.u64 %c, %g, %clsp_cells;"
        else:
            yield f"{_scaled('%o', '%o', shift)} add.u32 %c, %o, %clsp_cells;"

    def _call(self, name: str, last: str, wide: bool = False) -> Iterator[str]:
        if self.layout.in_global:
            yield "mov.b64 %g, %c;"
        else:
            yield "cvt.u64.u32 %g, %c; cvta.shared.u64 %g, %g;"
        size = "b64" if wide else "b32"
        yield "{ .param .b32 p0; .param .b64 p1; .param .b32 p2; .param .b32 p3; .param .b32 p4;"
        yield f".param .{size} p5; st.param.b32 [p0], %a; st.param.b64 [p1], %g;"
        yield f"st.param.b32 [p2], {'%m' if name.startswith('clsp_writ') else '%clsp_lo'};"
        yield f"st.param.b32 [p3], %clsp_hi; st.param.b32 [p4], {self.site}; st.param.{size} [p5], {last};"
        yield f"call {name}, (p0, p1, p2, p3, p4, p5); }}"

    def _read_cell(self, cell: int, label: str) -> Iterator[str]:
        """Leave our stamp unless enough readers are known; then look at the writers."""
        at = cell * CELL_BYTES
        space = self._space
        yield f"ld.volatile.{space}.v4.b32 {{%al, %ah, %bl, %bh}}, [%c+{at}];"
        yield _against_ours("a", "b")
        # Known: the reader is this thread; or the two readers belong to two warps.
        yield f"setp.eq.u32 %q, %ah, 0; setp.lt.and.u32 %q, %al, {_LANE}, %q;"
        yield "or.b32 %t, %ah, %bh; xor.b32 %u, %ah, %bh;"
        yield f"setp.lt.u32 %s, %t, {_EPOCH}; setp.ge.and.u32 %s, %u, {_WARP}, %s;"
        yield f"or.pred %q, %q, %s; @%q bra $known_{label};"
        yield f"setp.lt.u32 %s, %bh, {_EPOCH}; setp.ge.and.u32 %s, %bh, {_WARP}, %s;"  # of another warp
        winner = ""
        if not self.layout.atomics:
            # Lanes that read one word elect one of them, in the place that atomics would use: the others
            # need no exchange, which the hardware would serialise.
            winner = "@!%lost "
            yield f"st.volatile.{space}.b32 [%c+{at + 24}], %clsp_lo;"
            yield f"ld.volatile.{space}.b32 %t, [%c+{at + 24}];"
            yield "setp.ne.u32 %lost, %t, %clsp_lo; not.pred %q, %s; and.pred %q, %q, %lost;"
            yield f"@%q st.volatile.{space}.b64 [%c+{at + 8}], %new;"
            yield "mov.b64 %old, 0;"
        # Whom we displace becomes the other reader, unless that one is of another warp already.
        yield f"{winner}atom.{space}.exch.b64 %old, [%c+{at}], %new;"
        yield "mov.b64 {%t, %u}, %old; xor.b32 %t, %t, %clsp_lo; xor.b32 %u, %u, %clsp_hi;"
        yield _is_other("%t", "%u", "%p")
        yield f"setp.lt.and.u32 %q, %u, {_WARP}, %s; not.pred %q, %q; and.pred %p, %p, %q;"
        yield f"@%p st.volatile.{space}.b64 [%c+{at + 8}], %old;"
        yield f"$known_{label}:"
        lanes = "v4.b32 {%wl, %wh, %xl, %xh}" if self.layout.atomics else "v2.b32 {%wl, %wh}"
        yield f"ld.volatile.{space}.{lanes}, [%c+{at + 16}];"
        yield from self._was_copied()
        yield _against_ours("w")
        yield _is_other("%wl", "%wh", "%p")
        yield from self._or_copied()
        if self.layout.atomics:
            yield _against_ours("x") + _is_other("%xl", "%xh", "%q") + " or.pred %p, %p, %q;"

    def _atomic_is_known(self, offset: int) -> Iterator[str]:
        yield f"ld.volatile.{self._space}.v4.b32 {{%al, %ah, %bl, %bh}}, [%c+{offset}];"
        yield f"ld.volatile.{self._space}.v4.b32 {{%wl, %wh, %xl, %xh}}, [%c+{offset + 16}];"
        yield "and.b32 %m, %xl, 1024;"
        yield from self._was_copied()
        yield _against_ours("a", "b", "w", "x")
        # The atomic's stamp is ours, or is of this interval and marked as everybody's.
        yield f"setp.ge.u32 %q, %xl, {_LANE}; setp.eq.and.u32 %q, %m, 0, %q;"
        yield f"setp.ne.u32 %s, %xh, 0; setp.eq.and.u32 %s, %m, 0, %s; setp.ge.or.u32 %s, %xh, {_EPOCH}, %s;"
        yield "or.pred %p, %q, %s;"
        yield from self._or_copied()
        for pair in "abw":
            yield _is_other(f"%{pair}l", f"%{pair}h", "%q") + " or.pred %p, %p, %q;"

    def _was_copied(self) -> Iterator[str]:
        """Whether the writer is an asynchronous copy: its stamp alone does not say when it ends."""
        if self.layout.copies:
            yield f"and.b32 %n, %wl, {COPY}; setp.ne.u32 %copied, %n, 0;"

    def _or_copied(self) -> Iterator[str]:
        if self.layout.copies:
            yield "or.pred %p, %p, %copied;"

    def read(self, label: str) -> str:
        lines = list(self._opening(label))
        if self._cells > 4 or self.layout.clocks:  # who is met, its clock says
            lines += self._call("clsp_read", str(self._cells))
        else:
            lines.append(f"or.b32 %m, %clsp_lo, {self.site << 12}; mov.b64 %new, {{%m, %clsp_hi}};")
            for cell in range(self._cells):
                lines += self._read_cell(cell, f"{label}_{cell}")
                lines.append(f"@%p bra $slow_{label};")
            lines += [f"bra $done_{label};", f"$slow_{label}:"]
            lines += self._call("clsp_has_read", str(self._cells))
        lines.append(f"$done_{label}: }}")
        return "\t" + "\n\t".join(lines)

    def atomic(self, label: str) -> str:
        lines = list(self._opening(label))
        inline = self._cells <= 4 and not self.layout.clocks
        for cell in range(self._cells if inline else 0):
            lines += self._atomic_is_known(cell * CELL_BYTES)
            lines.append(f"@%p bra $slow_{label};")
        if inline:
            lines.append(f"bra $done_{label};")
        lines.append(f"$slow_{label}:")
        lines += self._call("clsp_atomic", str(self._cells))
        lines.append(f"$done_{label}: }}")
        return "\t" + "\n\t".join(lines)

    def write(self, label: str, copies: bool) -> str:
        """``%v`` (b32) holds 10 bits of a hash of the value; of a copy the b64 ``%V`` its group."""
        lines = [*self._opening(label), "or.b32 %m, %clsp_lo, %v;"]
        if self._cells > 4:
            lines += self._call("clsp_write", str(self._cells))
        else:
            lines.append(f"or.b32 %t, %m, {self.site << 12}; mov.b64 %new, {{%t, %clsp_hi}};")
            if copies:
                lines.append(f"and.b64 %new, %new, {~((_WARP - 1) << 32)}; or.b64 %new, %new, %V;")
            for cell in range(self._cells):
                lines += self._write_cell(cell, f"{label}_{cell}")
        lines.append(f"$done_{label}: }}")
        return "\t" + "\n\t".join(lines)

    def _overwrites_itself(self) -> Iterator[str]:
        """``%lost``: this thread stored here in this interval already, at another site."""
        yield f"xor.b32 %t, %wh, %clsp_hi; xor.b32 %u, %wl, %m; xor.b32 %u, %u, {self.site << 12};"
        yield f"and.b32 %u, %u, {_LANE * 32 - (1 << 12)}; setp.lt.u32 %lost, %t, {_WARP};"
        yield f"setp.ne.and.u32 %lost, %u, 0, %lost; setp.lt.and.u32 %lost, %u, {_LANE}, %lost;"

    def _write_cell(self, cell: int, label: str) -> Iterator[str]:
        if cell:
            size = "u64" if self.layout.in_global else "u32"
            yield f"add.{size} %c, %c, {CELL_BYTES}; add.u32 %a, %a, {1 << self.layout.granule_shift};"
        yield f"atom.{self._space}.exch.b64 %old, [%c+16], %new; mov.b64 {{%wl, %wh}}, %old;"
        yield f"ld.volatile.{self._space}.v4.b32 {{%al, %ah, %bl, %bh}}, [%c];"
        yield from self._overwrites_itself()
        yield from self._was_copied()
        pairs = "abw"
        if self.layout.atomics:
            yield f"ld.volatile.{self._space}.v2.b32 {{%xl, %xh}}, [%c+24];"
            pairs += "x"
        yield _against_ours(*pairs)
        yield _is_other("%wl", "%wh", "%p") + " or.pred %p, %p, %lost;"
        yield from self._or_copied()
        for pair in pairs.replace("w", ""):
            yield _is_other(f"%{pair}l", f"%{pair}h", "%q") + " or.pred %p, %p, %q;"
        yield f"@!%p bra $fine_{label};"
        yield from self._call("clsp_written", "%old", wide=True)
        yield f"$fine_{label}:"


# --------------------------------------------------------------------------------- synchronisation


def after_block_barrier(layout: ShadowLayout, label: str) -> str:
    """A new epoch; at the 65,536th, forget everything."""
    lines = [
        f"{{ .reg .pred %p; and.b32 %clsp_hi, %clsp_hi, {-_WARP & 0xFFFFFFFF};",
        f"add.u32 %clsp_hi, %clsp_hi, {_EPOCH}; and.b32 %clsp_lo, %clsp_lo, 0x7fffffff;",
        f"setp.ge.u32 %p, %clsp_hi, {_EPOCH}; @%p bra $kept_{label};",
        f"add.u32 %clsp_hi, %clsp_hi, {_EPOCH};",
        "{ .reg .b64 %g; .reg .b32 %n; .param .b64 p0; .param .b32 p1;",
        "mov.b64 %g, %clsp_cells;"
        if layout.in_global
        else "cvt.u64.u32 %g, %clsp_cells; cvta.shared.u64 %g, %g;",
        f"add.u32 %n, %clsp_lim, {(1 << layout.granule_shift) - 1}; shr.u32 %n, %n, {layout.granule_shift};",
        "st.param.b64 [p0], %g; st.param.b32 [p1], %n; call clsp_forget, (p0, p1); }",
        f"$kept_{label}: st.shared.v2.b32 [%clsp_self], {{%clsp_lo, %clsp_hi}}; }}",
    ]
    return "\t" + "\n\t".join(lines)


def next_tick() -> str:
    """One tick later, unless the ticks are spent (then the detector says so)."""
    return (
        "\t{ .reg .b32 %t, %c; .reg .pred %p; and.b32 %t, %clsp_hi, 2047; setp.eq.u32 %p, %t, 2047;"
        " selp.b32 %t, 0, 0x80000000, %p; add.cc.u32 %clsp_lo, %clsp_lo, %t; addc.u32 %clsp_hi, %clsp_hi, 0;"
        " st.shared.v2.b32 [%clsp_self], {%clsp_lo, %clsp_hi}; }"
    )


def _passed(arguments: Sequence[str]) -> tuple[str, str]:
    """Parameters with the arguments of a call in them, and their names."""
    sizes = ["b64" if text == "%clsp_at" else "b32" for text in arguments]
    params = "".join(
        f" .param .{size} p{i}; st.param.{size} [p{i}], {text};"
        for i, (size, text) in enumerate(zip(sizes, arguments, strict=True))
    )
    return params, ", ".join(f"p{i}" for i in range(len(arguments)))


def ticked_by(name: str, *arguments: str) -> str:
    """``tick = name(arguments…)``; arguments are words, or ``%clsp_at``."""
    params, names = _passed(arguments)
    return (
        f"\t{{ .reg .b32 %t, %u; .param .b32 r;{params} call (r), {name}, ({names}); ld.param.b32 %t, [r];"
        " shl.b32 %u, %t, 31; and.b32 %clsp_lo, %clsp_lo, 0x7fffffff; or.b32 %clsp_lo, %clsp_lo, %u;"
        f" shr.u32 %t, %t, 1; and.b32 %clsp_hi, %clsp_hi, {-_WARP & 0xFFFFFFFF};"
        " or.b32 %clsp_hi, %clsp_hi, %t; st.shared.v2.b32 [%clsp_self], {%clsp_lo, %clsp_hi}; }"
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
    return (
        "\t{ .reg .b32 %t; and.b32 %t, %clsp_hi, 0xffff0000;"
        f" or.b32 %t, %t, {site}; st.global.u32 [%clsp_where], %t; }}"
    )


def leaves() -> str:
    """Before a thread ends."""
    return "\t{ .reg .b32 %t; mov.b32 %t, -1; st.global.u32 [%clsp_where], %t; }"


# ---------------------------------------------------------------------------- banks, global memory


def bank_probe(site: int, bytes: int, is_load: bool, rows: bool = False) -> str:
    """``%a``: the address in shared memory. Sets ``%clsp_ok``, unless lanes name ``rows`` of a matrix."""
    told = ("%a", str(site | bytes << 16 | int(is_load) << 24), "%clsp_base", "%clsp_lim")
    given, names = _passed(told)
    allowed = "" if rows else " ld.param.b32 %r, [r]; setp.ne.u32 %clsp_ok, %r, 0;"
    return f"\t{{ .reg .b32 %r; .param .b32 r;{given} call (r), clsp_bank, ({names});{allowed} }}"


def global_probe(site: int, bytes: int, kind: int) -> str:
    """``%A`` (b64): the address. Sets ``%clsp_ok``. ``kind``: 0 read, 1 write, 2 atomic, 3 of block scope."""
    return (
        "\t{ .reg .b32 %r; .param .b64 p0; .param .b32 p1; .param .b32 p2; .param .b32 p3; .param .b32 r;"
        " st.param.b64 [p0], %A; st.param.b32 [p1], %clsp_lo; st.param.b32 [p2], %clsp_hi;"
        f" st.param.b32 [p3], {site | bytes << 16 | kind << 24}; call (r), clsp_global, (p0, p1, p2, p3);"
        " ld.param.b32 %r, [r]; setp.ne.u32 %clsp_ok, %r, 0; }"
    )


def bounds_probe(site: int, bytes: int, kind: int, offset: int, ranges: int, label: str) -> str:
    """As ``global_probe``, without looking for races. ``offset``: of the ranges in the control block."""
    lines = ["{ .reg .b64 %d, %n; .reg .b32 %r; .reg .pred %p;"]
    for number in range(min(ranges, _INLINE_RANGES)):
        at = offset + 24 * number
        lines.append(
            f"ld.const.u64 %n, [clsp_control+{at}]; sub.s64 %d, %A, %n; add.s64 %d, %d, {bytes - 1};"
        )
        lines.append(f"ld.const.u64 %n, [clsp_control+{at + 8}];")
        combine = "setp.lt.u64 %p, %d, %n;" if not number else "setp.lt.or.u64 %p, %d, %n, %p;"
        lines.append(combine)
    if ranges and bytes > 1:
        lines.append(f"and.b64 %d, %A, {bytes - 1}; setp.eq.and.u64 %p, %d, 0, %p;")
    if ranges:
        lines.append(f"@%p bra $inside_{label};")
    lines.append("{ .param .b64 p0; .param .b32 p1; .param .b32 r; st.param.b64 [p0], %A;")
    lines.append(f"st.param.b32 [p1], {site | bytes << 16 | kind << 24}; call (r), clsp_bounds, (p0, p1);")
    lines.append("ld.param.b32 %r, [r]; setp.ne.u32 %clsp_ok, %r, 0; }")
    lines.append(f"$inside_{label}: }}")
    return "\t" + "\n\t".join(lines)


def mark_executed(offset: int, number: int) -> str:
    """A basic block was entered; ``offset`` of the byte array's pointer in the control block."""
    return (
        "\t{ .reg .b64 %e; .reg .b16 %one; .reg .pred %new;"
        f" ld.const.u64 %e, [clsp_control+{offset}]; ld.global.u8 %one, [%e+{number}];"
        f" setp.eq.u16 %new, %one, 0; mov.b16 %one, 1; @%new st.global.u8 [%e+{number}], %one; }}"
    )
