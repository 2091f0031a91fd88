"""What makes a finding the same one in a later text: what it says of which code, not where that stands.

A fingerprint survives lines that move, other findings that come and go, and another layout of the accesses
themselves. Findings that are the same in all of this are counted in the order of the text.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator

from cuda_lsp.model import Finding

_SIZE = 16  # bytes


def identity(finding: Finding) -> str:
    """Hex digits: its code, kernel, array, kind, and the accesses as they are written."""
    sites = (finding.site, *(related.site for related in finding.related[:1]))
    parts = (
        finding.code.value,
        finding.kernel.partition("<")[0],
        finding.array or "",
        finding.kind.value if finding.kind else "",
        *("".join(site.text.split()) for site in sites),
    )
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[: 2 * _SIZE]


def identified(findings: Iterable[Finding]) -> Iterator[tuple[Finding, str]]:
    """The findings of one file, each with a fingerprint that no other of them has."""
    seen: Counter[str] = Counter()
    for finding in findings:
        known = identity(finding)
        seen[known] += 1
        yield finding, known if seen[known] == 1 else f"{known}/{seen[known]}"
