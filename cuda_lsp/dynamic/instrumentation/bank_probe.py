"""The PTX in front of an access to shared memory whose wavefronts are counted.

What an access costs depends on its lanes and on how far their addresses lie apart, and few such patterns come
again and again: each site keeps those it met (``detector/banks.cuh``), and a warp that shows one of them adds
to its count. Only a new pattern is judged.
"""

from __future__ import annotations

from collections.abc import Mapping

from cuda_lsp.dynamic.instrumentation.shadow import granule_of, limit_of

PATTERNS, PATTERN_BYTES, HIT_COPIES = 8, 144, 128
_SITE_PATTERNS = PATTERNS * PATTERN_BYTES
_SITE_HITS = PATTERNS * HIT_COPIES * 8


def registers() -> str:
    """Declared once a function."""
    return "\t.reg .b32 %clsp_lane; .reg .b64 %clsp_patterns, %clsp_hits;"


def prologue(control: Mapping[str, int], block: tuple[int, int, int]) -> str:
    """First statements of a function: where the patterns are, and this warp's copy of their counts."""
    x, y, _ = block
    return "\n\t".join(
        (
            "\t{ .reg .b32 %t, %u; .reg .b64 %q;",
            "mov.u32 %clsp_lane, %laneid;",
            f"ld.const.u64 %clsp_patterns, [clsp_control+{control['patterns']}];",
            f"ld.const.u64 %clsp_hits, [clsp_control+{control['hits']}];",
            f"mov.u32 %t, %tid.z; mov.u32 %u, %tid.y; mad.lo.u32 %t, %t, {y}, %u;",
            f"mov.u32 %u, %tid.x; mad.lo.u32 %t, %t, {x}, %u; shr.u32 %t, %t, 5;",
            "mov.u32 %u, %ctaid.y; mad.lo.u32 %t, %u, 7, %t; mov.u32 %u, %ctaid.x; mad.lo.u32 %t, %u, 4, %t;",
            f"and.b32 %t, %t, {HIT_COPIES - 1}; mul.wide.u32 %q, %t, {8 * PATTERNS};",
            "add.u64 %clsp_hits, %clsp_hits, %q; }",
        )
    )


def counted(site: int, bytes: int, is_load: bool, label: str) -> str:
    """``%a``: the address. The lanes that come here together are one warp instruction. Sets ``%clsp_ok``."""
    info = site | bytes << 16 | int(is_load) << 24
    return "\n\t".join(
        (
            "\t{ .reg .b32 %m, %l, %h, %w, %x, %y, %s; .reg .b64 %e, %f; .reg .pred %q, %z;",
            f"{granule_of('%w', bytes)} setp.lt.u32 %clsp_ok, %w, {limit_of(bytes)};",
            "activemask.b32 %m; brev.b32 %l, %m; bfind.shiftamt.u32 %l, %l; bfind.u32 %h, %m;",
            f"and.b32 %w, %a, {-max(4, bytes)};",
            "shfl.sync.idx.b32 %x, %w, %l, 31, %m; shfl.sync.idx.b32 %y, %w, %h, 31, %m;",
            "sub.u32 %y, %y, %x; sub.u32 %x, %w, %x; or.b32 %x, %x, 1;",  # a lane of no pattern is 0
            "mul.lo.u32 %s, %m, 0x9E3779B1; mad.lo.u32 %s, %y, 0x85EBCA77, %s; shr.u32 %s, %s, 29;",
            "max.u32 %s, %s, 1;",  # the first place counts accesses without conflicts that fit nowhere else
            f"mad.wide.u32 %e, %s, {PATTERN_BYTES}, %clsp_patterns; mad.wide.u32 %f, %clsp_lane, 4, %e;",
            f"ld.global.b32 %h, [%e+{site * _SITE_PATTERNS}];",
            f"ld.global.b32 %w, [%f+{site * _SITE_PATTERNS + 16}];",
            "setp.eq.u32 %q, %h, %m; setp.eq.and.u32 %q, %w, %x, %q;",
            "and.pred %q, %q, %clsp_ok; vote.sync.all.pred %q, %q, %m;",
            f"@!%q bra $new_{label};",
            "setp.eq.u32 %z, %clsp_lane, %l; mad.wide.u32 %e, %s, 8, %clsp_hits;",
            f"@%z red.global.add.u64 [%e+{site * _SITE_HITS}], 1;",
            f"bra $counted_{label};",
            f"$new_{label}: setp.ne.u32 %z, %h, 0;",
            "vote.sync.ballot.b32 %h, %clsp_ok, %m; setp.eq.u32 %q, %h, %m;",
            f"@!%clsp_ok bra $bad_{label};",
            "{ .param .b32 p0; .param .b32 p1; .param .b32 p2; .param .b32 p3; .param .b32 p4;",
            f"st.param.b32 [p0], %a; selp.b32 %w, {info}, {info | 1 << 31}, %q; st.param.b32 [p1], %w;",
            "selp.b32 %s, 0, %s, %z; st.param.b32 [p2], %h; st.param.b32 [p3], %s; st.param.b32 [p4], %x;",
            "call clsp_new_pattern, (p0, p1, p2, p3, p4); }",
            f"bar.warp.sync %h; bra $counted_{label};",  # the lanes go on together, as they would without us
            f"$bad_{label}: {{ .param .b32 p0; .param .b32 p1; st.param.b32 [p0], %a;",
            f"st.param.b32 [p1], {site}; call clsp_shared_fault, (p0, p1); }}",
            f"$counted_{label}: }}",
        )
    )
