"""The PTX in front of an access to shared memory: a detector's fast path.

A probe loads the shadow cell of each granule, compares stamps, and calls the slow path
(``detector/shared.cuh``) only when it cannot prove by itself that nothing new happened.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from cuda_lsp.dynamic.instrumentation.shadow import (
    CELL_BYTES,
    COPY,
    EPOCH,
    OF_LANE,
    OF_WARP,
    ShadowLayout,
    scaled,
)


def _is_other(low: str, high: str, result: str) -> str:
    """A stamp, already xor-ed with ours, is of this interval and not of this thread at this tick."""
    return (
        f"setp.ne.u32 {result}, {high}, 0; setp.ge.or.u32 {result}, {low}, {OF_LANE}, {result};"
        f" setp.lt.and.u32 {result}, {high}, {EPOCH}, {result};"
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
            yield f"cvt.u64.u32 %g, %o; {scaled('%g', '%g', shift, 'b64')} add.u64 %c, %g, %clsp_cells;"
        else:
            yield f"{scaled('%o', '%o', shift)} add.u32 %c, %o, %clsp_cells;"

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
        yield f"setp.eq.u32 %q, %ah, 0; setp.lt.and.u32 %q, %al, {OF_LANE}, %q;"
        yield "or.b32 %t, %ah, %bh; xor.b32 %u, %ah, %bh;"
        yield f"setp.lt.u32 %s, %t, {EPOCH}; setp.ge.and.u32 %s, %u, {OF_WARP}, %s;"
        yield f"or.pred %q, %q, %s; @%q bra $known_{label};"
        yield f"setp.lt.u32 %s, %bh, {EPOCH}; setp.ge.and.u32 %s, %bh, {OF_WARP}, %s;"  # of another warp
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
        yield f"setp.lt.and.u32 %q, %u, {OF_WARP}, %s; not.pred %q, %q; and.pred %p, %p, %q;"
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
        yield f"setp.ge.u32 %q, %xl, {OF_LANE}; setp.eq.and.u32 %q, %m, 0, %q;"
        yield f"setp.ne.u32 %s, %xh, 0; setp.eq.and.u32 %s, %m, 0, %s; setp.ge.or.u32 %s, %xh, {EPOCH}, %s;"
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
        """Before a load. ``label``: a stem of branch targets that nothing else has."""
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

    def atomic(self, label: str, of_width: bool = False) -> str:
        """``of_width``: the kernel has atomics of other widths, too."""
        lines = list(self._opening(label))
        inline = self._cells <= 4 and not (self.layout.clocks or of_width)
        for cell in range(self._cells if inline else 0):
            lines += self._atomic_is_known(cell * CELL_BYTES)
            lines.append(f"@%p bra $slow_{label};")
        if inline:
            lines.append(f"bra $done_{label};")
        lines.append(f"$slow_{label}:")
        lines += self._call("clsp_atomic_of_width" if of_width else "clsp_atomic", str(self._cells))
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
                lines.append(f"and.b64 %new, %new, {~((OF_WARP - 1) << 32)}; or.b64 %new, %new, %V;")
            for cell in range(self._cells):
                lines += self._write_cell(cell, f"{label}_{cell}")
        lines.append(f"$done_{label}: }}")
        return "\t" + "\n\t".join(lines)

    def _overwrites_itself(self) -> Iterator[str]:
        """``%lost``: this thread stored here in this interval already, at another site."""
        yield f"xor.b32 %t, %wh, %clsp_hi; xor.b32 %u, %wl, %m; xor.b32 %u, %u, {self.site << 12};"
        yield f"and.b32 %u, %u, {OF_LANE * 32 - (1 << 12)}; setp.lt.u32 %lost, %t, {OF_WARP};"
        yield f"setp.ne.and.u32 %lost, %u, 0, %lost; setp.lt.and.u32 %lost, %u, {OF_LANE}, %lost;"

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
