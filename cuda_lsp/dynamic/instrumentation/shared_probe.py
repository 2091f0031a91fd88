"""The PTX in front of an access to shared memory: a detector's fast path.

A probe loads the shadow cell of each granule, compares stamps, and calls the slow path
(``detector/shared.cuh``) only when it cannot prove by itself that nothing new happened. The parts of a cell
lie in planes of their own, so that lanes that access neighbouring words meet no bank conflicts there either.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from cuda_lsp.dynamic.instrumentation.alike import Member
from cuda_lsp.dynamic.instrumentation.probes import group_bounds
from cuda_lsp.dynamic.instrumentation.shadow import (
    COPY,
    EPOCH,
    OF_LANE,
    OF_WARP,
    STAMP_BYTES,
    ShadowLayout,
    granule_of,
    limit_of,
)

ALONE, LANES, WARPS = 26, 31, 48  # the ends of readers' stamps; see ``detector/shared.cuh``
_WHO_AND_HOW = 0xFC00003F  # the bits of a low word that say the lane, and such a number


def _is_other(low: str, high: str, result: str) -> str:
    """A stamp, already xor-ed with ours, is of this interval and not of this thread at this tick."""
    return (
        f"setp.ne.u32 {result}, {high}, 0; setp.ge.or.u32 {result}, {low}, {OF_LANE}, {result};"
        f" setp.lt.and.u32 {result}, {high}, {EPOCH}, {result};"
    )


def _against_ours(*pairs: str) -> str:
    return " ".join(f"xor.b32 %{p}l, %{p}l, %clsp_lo; xor.b32 %{p}h, %{p}h, %clsp_hi;" for p in pairs)


@frozen
class SharedProbe:
    """One access of ``bytes`` a thread at site ``site``; ``%a`` (b32) holds its address.

    Sets ``%clsp_ok`` to false when the address lies outside the kernel's shared memory. ``member``: of a
    group whose bounds and cells its first access has looked up. ``calm``: a read of which ``%clsp_calm`` says
    whether it is known to race with nothing.
    """

    layout: ShadowLayout
    site: int
    bytes: int
    member: Member | None = None
    calm: bool = False

    @property
    def _cells(self) -> int:
        return max(1, self.bytes >> self.layout.granule_shift)

    @property
    def _space(self) -> str:
        return "global" if self.layout.in_global else "shared"

    def _found(self, to: str) -> str:
        """The cell of the place whose number is in ``%o``."""
        step = STAMP_BYTES * self.bytes >> self.layout.granule_shift
        if not step:  # several places share a cell
            shift = self.layout.granule_shift - self.bytes.bit_length() + 1
            return f"shr.u32 %o, %o, {shift}; {self._mad()} {to}, %o, {STAMP_BYTES}, %clsp_cells;"
        return f"{self._mad()} {to}, %o, {step}, %clsp_cells;"

    def _mad(self) -> str:
        return "mad.wide.u32" if self.layout.in_global else "mad.lo.u32"

    @property
    def _wide(self) -> str:
        return "64" if self.layout.in_global else "32"

    @property
    def _behind(self) -> int:
        """Bytes from ``%c`` to the reader of the first cell."""
        return (self.member.delta >> self.layout.granule_shift) * STAMP_BYTES if self.member else 0

    def _at(self, plane: int, cell: int) -> str:
        return f"[%c+{self._behind + plane * self.layout.plane + cell * STAMP_BYTES}]"

    def _opening(self, label: str) -> Iterator[str]:
        """Bounds and alignment, then where the cells are (``_at``)."""
        if self.member is not None and self.member.leads:
            yield from self._group_opening()
        yield "{ .reg .b32 %o, %m, %n, %al, %ah, %wl, %wh, %xl, %xh, %t, %u;"
        yield ".reg .b64 %g, %h, %old, %new; .reg .pred %p, %q, %s, %won, %copied;"
        yield f".reg .b{self._wide} %c;"
        if self.member is not None:
            predicate = self.member.group.predicate
            yield f"mov.pred %clsp_ok, {predicate};"
            if self.calm:
                yield f"and.pred %q, {predicate}, %clsp_calm; @%q bra $done_{label};"
            yield f"mov.b{self._wide} %c, {self.member.group.cell};"
            yield f"@{predicate} bra $in_{label};"
        yield f"{granule_of('%o', self.bytes)} setp.lt.u32 %clsp_ok, %o, {limit_of(self.bytes)};"
        yield self._found("%c")
        if self._behind:
            yield f"sub.s{self._wide} %c, %c, {self._behind};"
        yield f"@%clsp_ok bra $in_{label};"
        yield "{ .param .b32 p0; .param .b32 p1; st.param.b32 [p0], %a;"
        yield f"st.param.b32 [p1], {self.site}; call clsp_shared_fault, (p0, p1); }}"
        yield f"bra $done_{label};"
        yield f"$in_{label}:"
        if self.calm:
            yield f"@%clsp_calm bra $done_{label};"

    def _group_opening(self) -> Iterator[str]:
        assert self.member is not None
        group = self.member.group
        yield group_bounds(group.predicate, self.bytes, group.low, group.high).strip()
        yield f"{{ .reg .b32 %o; {granule_of('%o', self.bytes)} {self._found(group.cell)} }}"

    def _call(self, name: str, last: str, wide: bool = False, cell: int = 0) -> Iterator[str]:
        at, step = self._behind + cell * STAMP_BYTES, cell << self.layout.granule_shift
        if self.layout.in_global:
            yield f"add.u64 %g, %c, {at};"
        else:
            yield f"add.u32 %n, %c, {at}; cvt.u64.u32 %g, %n; cvta.shared.u64 %g, %g;"
        size = "b64" if wide else "b32"
        yield f"add.u32 %n, %a, {step};"
        yield "{ .param .b32 p0; .param .b64 p1; .param .b32 p2; .param .b32 p3; .param .b32 p4;"
        yield f".param .{size} p5; st.param.b32 [p0], %n; st.param.b64 [p1], %g;"
        yield f"st.param.b32 [p2], {'%m' if name.startswith('clsp_writ') else '%clsp_lo'};"
        yield f"st.param.b32 [p3], %clsp_hi; st.param.b32 [p4], {self.site}; st.param.{size} [p5], {last};"
        yield f"call {name}, (p0, p1, p2, p3, p4, p5); }}"

    def _load(self, pair: str, plane: int, cell: int) -> str:
        return f"ld.volatile.{self._space}.v2.b32 {{%{pair}l, %{pair}h}}, {self._at(plane, cell)};"

    # ------------------------------------------------------------------------------------------ reads

    def _check_writers(self, cell: int) -> Iterator[str]:
        """``%p``: the writer that is loaded is of this interval and of another thread; or an atomic is."""
        yield from self._was_copied()
        yield _against_ours("w")
        yield _is_other("%wl", "%wh", "%p")
        yield from self._or_copied()
        if self.layout.atomics:
            yield self._load("x", 3, cell)
            yield _against_ours("x") + _is_other("%xl", "%xh", "%q") + " or.pred %p, %p, %q;"

    def _read_cell(self, cell: int, label: str, slow: str) -> Iterator[str]:
        """Leave our stamp unless enough readers are known; then look at the writers."""
        yield self._load("a", 0, cell) + self._load("w", 1, cell)
        # How many bits of a reader's stamp do not matter says its end; none of an empty cell.
        yield "and.b32 %t, %al, 63; mov.b32 %n, %al;" + _against_ours("a")
        yield "mov.b64 %h, {%al, %ah}; shr.u64 %h, %h, %t; setp.eq.u64 %q, %h, 0;"
        yield f"@%q bra $known_{label}; setp.ge.u32 %s, %ah, {EPOCH}; @%s bra $first_{label};"
        yield from self._is_second(cell, slow)
        yield f"bra $seen_{label}; $first_{label}:"
        yield from self._is_first(cell)
        yield f"$seen_{label}: {self._load('w', 1, cell)}"
        yield f"$known_{label}:"
        yield from self._check_writers(cell)
        yield f"@%p bra {slow};"

    def _is_second(self, cell: int, slow: str) -> Iterator[str]:
        """Another thread reads here, and nobody knows a second one: we are, if our moment is the same."""
        yield f"setp.ge.u32 %q, %ah, {OF_WARP}; setp.eq.u32 %s, %ah, 0; setp.ge.and.s32 %s, %al, 0, %s;"
        yield f"or.pred %s, %s, %q; setp.eq.and.u32 %s, %t, {ALONE}, %s; @!%s bra {slow};"
        yield f"st.volatile.{self._space}.b64 {self._at(2, cell)}, %new;"
        yield f"selp.b32 %u, {ALONE ^ WARPS}, {ALONE ^ LANES}, %q; xor.b32 %u, %u, %n;"
        yield f"atom.{self._space}.cas.b32 %t, {self._at(0, cell)}, %n, %u;"

    def _is_first(self, cell: int) -> Iterator[str]:
        """Nobody has read here in this interval."""
        space = self._space
        yield "setp.eq.u32 %won, 0, 0;"
        if not self.layout.atomics:
            # Lanes that read one word elect one of them, in the place that atomics would use: the others
            # need no exchange, which the hardware would serialise.
            yield f"st.volatile.{space}.b32 {self._at(3, cell)}, %clsp_lo;"
            yield f"ld.volatile.{space}.b32 %t, {self._at(3, cell)}; setp.eq.u32 %won, %t, %clsp_lo;"
            yield f"@!%won st.volatile.{space}.b64 {self._at(2, cell)}, %new;"
            yield "mov.b64 %old, 0;"
        # Whom we displace becomes the other reader.
        yield f"@%won atom.{space}.exch.b64 %old, {self._at(0, cell)}, %new;"
        yield "mov.b64 {%t, %u}, %old; xor.b32 %u, %u, %clsp_hi;"
        yield f"setp.lt.and.u32 %s, %u, {EPOCH}, %won;"
        yield f"@%s st.volatile.{space}.b64 {self._at(2, cell)}, %old;"

    def read(self, label: str) -> str:
        """Before a load. ``label``: a stem of branch targets that nothing else has."""
        lines = list(self._opening(label))
        if self._cells > 4 or self.layout.clocks:  # who is met, its clock says
            lines += self._call("clsp_read", str(self._cells))
        else:
            lines.append(f"or.b32 %m, %clsp_lo, {self.site << 12 | ALONE}; mov.b64 %new, {{%m, %clsp_hi}};")
            for cell in range(self._cells):
                lines += self._read_cell(cell, f"{label}_{cell}", f"$slow_{label}")
            lines += [f"bra $done_{label};", f"$slow_{label}:"]
            lines += self._call("clsp_read", str(self._cells))
        lines.append(f"$done_{label}: }}")
        return "\t" + "\n\t".join(lines)

    # ---------------------------------------------------------------------------- atomics and writes

    def _readers_are_fine(self, cell: int) -> Iterator[str]:
        """``%p``: this interval's readers of the cell are none, or this thread alone."""
        yield self._load("a", 0, cell)
        yield f"xor.b32 %ah, %ah, %clsp_hi; xor.b32 %al, %al, %clsp_lo; and.b32 %al, %al, {_WHO_AND_HOW};"
        yield f"setp.eq.u32 %p, %al, {ALONE}; setp.eq.and.u32 %p, %ah, 0, %p;"
        yield f"setp.ge.or.u32 %p, %ah, {EPOCH}, %p;"

    def _atomic_is_known(self, cell: int) -> Iterator[str]:
        """``%p``: nothing is new."""
        yield from self._readers_are_fine(cell)
        yield self._load("w", 1, cell) + self._load("x", 3, cell)
        yield "and.b32 %m, %xl, 1024;"
        yield from self._was_copied()
        yield _against_ours("w", "x")
        # The atomic's stamp is ours, or is of this interval and marked as everybody's.
        yield f"setp.lt.u32 %q, %xl, {OF_LANE}; setp.eq.and.u32 %q, %xh, 0, %q; setp.ne.or.u32 %q, %m, 0, %q;"
        yield f"setp.lt.and.u32 %q, %xh, {EPOCH}, %q; and.pred %p, %p, %q;"
        yield _is_other("%wl", "%wh", "%q") + " not.pred %q, %q; and.pred %p, %p, %q;"
        if self.layout.copies:
            yield "not.pred %q, %copied; and.pred %p, %p, %q;"

    def _was_copied(self) -> Iterator[str]:
        """Whether the writer is an asynchronous copy: its stamp alone does not say when it ends."""
        if self.layout.copies:
            yield f"and.b32 %n, %wl, {COPY}; setp.ne.u32 %copied, %n, 0;"

    def _or_copied(self) -> Iterator[str]:
        if self.layout.copies:
            yield "or.pred %p, %p, %copied;"

    def atomic(self, label: str, of_width: bool = False) -> str:
        """``of_width``: the kernel has atomics of other widths, too."""
        lines = list(self._opening(label))
        inline = self._cells <= 4 and not (self.layout.clocks or of_width)
        for cell in range(self._cells if inline else 0):
            lines += self._atomic_is_known(cell)
            lines.append(f"@!%p bra $slow_{label};")
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

    def _write_cell(self, cell: int, label: str) -> Iterator[str]:
        yield f"atom.{self._space}.exch.b64 %old, {self._at(1, cell)}, %new; mov.b64 {{%wl, %wh}}, %old;"
        yield from self._readers_are_fine(cell)
        yield from self._was_copied()
        # Who wrote before is nobody of this interval, or this thread at this very site.
        yield f"xor.b32 %u, %wl, %m; xor.b32 %u, %u, {self.site << 12}; xor.b32 %wh, %wh, %clsp_hi;"
        yield "setp.lt.u32 %q, %u, 1024; setp.eq.and.u32 %q, %wh, 0, %q;"
        yield f"setp.ge.or.u32 %q, %wh, {EPOCH}, %q; and.pred %p, %p, %q;"
        if self.layout.copies:
            yield "not.pred %q, %copied; and.pred %p, %p, %q;"
        if self.layout.atomics:
            yield self._load("x", 3, cell) + _against_ours("x")
            yield _is_other("%xl", "%xh", "%q") + " not.pred %q, %q; and.pred %p, %p, %q;"
        yield f"@%p bra $fine_{label};"
        yield from self._call("clsp_written", "%old", wide=True, cell=cell)
        yield f"$fine_{label}:"
