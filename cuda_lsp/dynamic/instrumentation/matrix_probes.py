"""Probes of accesses that a warp makes together: ``ldmatrix``, ``stmatrix``, ``wmma.load``, ``wmma.store``.

Source: PTX ISA 9.7.14 "Warp-level matrix instructions". The lanes have met when the access begins, and it is
carried out if all of it lies in memory that exists. The detector goes through rows and tiles
(``detector/detector.cu``); here stands what it is told of an instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import frozen

from cuda_lsp.dynamic.instrumentation import probes
from cuda_lsp.dynamic.instrumentation.probe_operands import ProbedAccess
from cuda_lsp.dynamic.instrumentation.watch import Labels, Watch
from cuda_lsp.dynamic.ptx.module import ELEMENT_BITS, Instruction
from cuda_lsp.dynamic.ptx.opcodes import row_named, row_of
from cuda_lsp.dynamic.runs import PtxSite, SiteKind
from cuda_lsp.model import Mode, Space

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_IN_SHARED, _IN_GLOBAL = 1 << 25, 1 << 26  # of what the detector is told: races are looked for there


def narrowest_part(site: PtxSite) -> int:
    """Bytes of the narrowest piece of memory that the detector judges at a matrix access."""
    return 2 if ".trans" in site.opcode and row_named(site.opcode).base != "wmma" else 4


@frozen
class MatrixProbes:
    """Probes of ``ldmatrix``, ``stmatrix``, ``wmma.load`` and ``wmma.store``."""

    watch: Watch
    labels: Labels

    def probe(self, access: ProbedAccess) -> str | None:
        """The text in front of an access, which sets ``%clsp_ok``; None: it needs none."""
        site, watched = access.site, self.watch.watches(access.number)
        if site.kind is not SiteKind.MATRIX or not (watched or site.space is not Space.SHARED):
            return None
        lines = ["setp.eq.u32 %clsp_ok, 0, 0; { .reg .b64 %A, %g; .reg .b32 %a, %p, %r;"]
        if row_of(access.instruction).base == "wmma":
            lines += self._tile(access) if self.watch.races else ()
        elif watched:
            lines += self._rows(access)
        return "\t" + "\n\t".join((*lines, "}"))

    def _cells(self) -> str:
        if self.watch.layout.in_global:
            return "mov.b64 %g, %clsp_cells;"
        return "cvt.u64.u32 %g, %clsp_cells; cvta.shared.u64 %g, %g;"

    def _asked(self, name: str, first: tuple[str, str], told: int, *more: str) -> Iterator[str]:
        """``%clsp_ok = name(first, cells, base, limit, low, high, told, more…)``."""
        given = (first, ("b64", "%g"), *(("b32", f"%clsp_{r}") for r in ("base", "lim", "lo", "hi")))
        given = (*given, ("b32", str(told)), *(("b32", text) for text in more))
        yield self._cells()
        yield "{ .param .b32 r; " + " ".join(
            f".param .{kind} p{i}; st.param.{kind} [p{i}], {text};" for i, (kind, text) in enumerate(given)
        )
        yield f"call (r), {name}, ({', '.join(f'p{i}' for i in range(len(given)))});"
        yield "ld.param.b32 %r, [r]; setp.ne.u32 %clsp_ok, %r, 0; }"

    def _rows(self, access: ProbedAccess) -> Iterator[str]:
        instruction, number, site = access.instruction, access.number, access.site
        count = next(int(w[1:]) for w in instruction.modifiers if w in ("x1", "x2", "x4"))
        if site.space is Space.SHARED:
            yield access.shared_address.strip()
        else:
            yield access.generic_address.strip() + " cvta.to.shared.u64 %A, %A; cvt.u32.u64 %a, %A;"
        if self.watch.banks:
            label = "$" + self.labels.new("rows")
            yield f"{{ .reg .pred %q; mov.u32 %r, %laneid; setp.lt.u32 %q, %r, {8 * count};"
            yield f"@!%q bra {label};"
            yield probes.bank_probe(number, 16, False).strip()  # lanes do not merge their parts
            yield f"{label}: }}"
        if self.watch.races:
            told = number | _kind(site) << 16 | count << 20 | ("trans" in instruction.modifiers) << 24
            yield from self._asked("clsp_rows", ("b32", "%a"), told)

    def _tile(self, access: ProbedAccess) -> Iterator[str]:
        instruction, number, site = access.instruction, access.number, access.site
        rows, columns = _tile_shape(instruction)
        bits = ELEMENT_BITS[instruction.modifiers[-1]]
        yield access.generic_address.strip()
        if site.space is Space.SHARED:
            yield "cvta.shared.u64 %A, %A;"
        arguments = instruction.arguments
        yield f"mov.u32 %p, {arguments[2] if len(arguments) > 2 else columns};"
        yield f"mul.lo.u32 %p, %p, {bits}; shr.u32 %p, %p, 3;"
        watched = _IN_SHARED | (_IN_GLOBAL if self.watch.global_races else 0)
        told = number | _kind(site) << 16 | (watched if self.watch.watches(number) else 0)
        yield from self._asked("clsp_tile", ("b64", "%A"), told, "%p", str(rows | columns * bits // 8 << 8))


def _kind(site: PtxSite) -> int:
    return int(site.mode is Mode.WRITE)


def _tile_shape(instruction: Instruction) -> tuple[int, int]:
    """Stretches of neighbouring elements, and elements of each: rows, or columns of a matrix by columns."""
    words = instruction.modifiers
    shape = next(match for word in words if (match := _SHAPE.fullmatch(word)))
    m, n, k = (int(size) for size in shape.groups())
    role = next(word for word in words if word in ("a", "b", "c", "d"))
    rows, columns = {"a": (m, k), "b": (k, n)}.get(role, (m, n))
    return (rows, columns) if "row" in words else (columns, rows)
