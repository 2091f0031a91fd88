"""Probes of one access: a shared and a global part, chosen by the address where the space is not known."""

from __future__ import annotations

from attrs import field, frozen

from cuda_lsp.dynamic.instrumentation import bank_probe, probes
from cuda_lsp.dynamic.instrumentation.alike import LOADS, Member
from cuda_lsp.dynamic.instrumentation.probe_operands import ProbedAccess, value_hash
from cuda_lsp.dynamic.instrumentation.shared_probe import SharedProbe
from cuda_lsp.dynamic.instrumentation.watch import Labels, Watch
from cuda_lsp.dynamic.ptx.opcodes import Role, row_of
from cuda_lsp.dynamic.runs import PtxSite
from cuda_lsp.model import Mode, Scope, Space

_KINDS = {Mode.READ: 0, Mode.WRITE: 1, Mode.ATOMIC: 2, Mode.ATOMIC_READ: 2}
_BLOCK_ATOMIC = 3


@frozen
class AccessProbes:
    """Probes of ``ld``, ``st``, ``atom``, ``red`` and of copies into shared memory."""

    watch: Watch
    labels: Labels
    calm: set[int] = field(factory=set[int])  # reads of the function at hand: see ``calm.py``

    def covers_shared(self, number: int, site: PtxSite) -> bool:
        """Whether a race probe stands before this access to shared memory."""
        watched = self.watch.races and self.watch.watches(number)
        return watched and site.mode is not None and self.reaches_shared(number, site)

    def reaches_shared(self, number: int, site: PtxSite) -> bool:
        return site.space is not Space.GLOBAL and number not in self.watch.in_global

    def probe(self, access: ProbedAccess, bounds_only: bool, member: Member | None = None) -> str | None:
        """The text in front of an access, which sets ``%clsp_ok``; None: it needs none."""
        site = access.site
        watched = self.watch.watches(access.number) and not bounds_only and site.mode is not None
        shared = (
            self._shared_part(access, member) if watched and self.reaches_shared(access.number, site) else ""
        )
        outside = self._global_part(access, watched) if site.space is not Space.SHARED else ""
        if not shared and not outside:
            return None
        label = self.labels.new("at")
        if site.space is Space.SHARED:
            return "\n".join(
                (
                    "\tsetp.eq.u32 %clsp_ok, 0, 0; { .reg .b32 %a, %v; .reg .b64 %V;",
                    access.shared_address,
                    shared,
                    "\t}",
                )
            )
        lines = [
            "\tsetp.eq.u32 %clsp_ok, 0, 0; { .reg .b64 %A, %V; .reg .b32 %a, %v; .reg .pred %p, %q;",
            access.generic_address,
        ]
        if site.space is Space.GLOBAL or access.number in self.watch.in_global:
            return "\n".join((*lines, outside, "\t}"))
        lines.append(f"\tisspacep.shared %p, %A; @!%p bra $else_{label};")
        if shared:
            lines += ["\t{ .reg .b64 %s; cvta.to.shared.u64 %s, %A; cvt.u32.u64 %a, %s; }", shared]
        lines.append(f"\tbra $end_{label};")
        lines.append(f"$else_{label}:")
        if outside:
            lines.append(f"\tisspacep.global %p, %A; @!%p bra $end_{label};")
            lines.append(outside)
        lines.append(f"$end_{label}: }}")
        return "\n".join(lines)

    def _shared_part(self, access: ProbedAccess, member: Member | None) -> str:
        number, site = access.number, access.site
        parts: list[str] = []
        if self.watch.banks:
            parts.append(self._counted(access, member))
        if self.watch.races:
            calm = access.instruction.index in self.calm
            probe = SharedProbe(self.watch.layout, number, site.bytes, member, calm)
            label = self.labels.new("s")
            if site.mode is Mode.READ:
                parts.append(probe.read(label))
            elif site.atomic:
                parts.append(probe.atomic(label, Space.SHARED in self.watch.widths))
            else:
                copies = row_of(access.instruction).role is Role.COPY
                value = probes.copy_value() if copies else value_hash(access.instruction, access.types)
                parts += [value, probe.write(label, copies)]
        return "\n".join(parts)

    def _counted(self, access: ProbedAccess, member: Member | None) -> str:
        """Bounds and wavefronts, which of a group only the first access counts."""
        number, site, label = access.number, access.site, self.labels.new("b")
        if member is not None and not member.leads:
            known = f"\tmov.pred %clsp_ok, {member.group.predicate}; @%clsp_ok bra $all_{label};"
            return "\n".join((known, probes.shared_bounds(number, site.bytes, label), f"$all_{label}:"))
        count = bank_probe.counted(number, site.bytes, site.mode in LOADS, label)
        if member is None:
            return count
        group = member.group
        return f"{probes.group_bounds(group.predicate, site.bytes, group.low, group.high)}\n{count}"

    def _global_part(self, access: ProbedAccess, watched: bool) -> str:
        number, site = access.number, access.site
        races = watched and self.watch.races and self.watch.global_races
        races = races and number not in self.watch.quiet and number not in self.watch.in_shared
        if site.mode is None:
            return ""
        kind = _BLOCK_ATOMIC if site.atomic and site.scope is Scope.BLOCK else _KINDS[site.mode]
        if races:
            of_width = site.atomic and Space.GLOBAL in self.watch.widths
            return probes.global_probe(number, site.bytes, kind, of_width)
        ranges = self.watch.control["ranges"], self.watch.ranges
        home = dict(self.watch.homes).get(number)
        return probes.bounds_probe(number, site.bytes, kind, *ranges, self.labels.new("g"), home)
