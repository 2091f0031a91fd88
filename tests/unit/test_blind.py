"""355 kernels whose truth was written first, by somebody who knew nothing of the analysis.

Above a kernel stands ``//= race-free | racy | divergent``, sometimes with ``//= benign`` (same-value stores)
or ``//= when CONDITION`` (it needs data that the launch does not fix) below. ``// @name`` marks a line,
``//~ KIND @name`` beside another line the race between the two, without a name the race of a line with
itself. ``truth.tsv`` has a sentence of reason for each. Asked is what people live by: nothing correct is
accused, nothing broken is called race-free, each pair of lines is a true one, and all but ``OPEN`` are
decided.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fixture_cases import FIXTURES

from cuda_lsp.config import Settings
from cuda_lsp.model import RACES, Code, Finding, KernelReport, Severity, Status, Verdict
from cuda_lsp.static.analyze import check_text

FOLDER = FIXTURES / "blind"
_CERTAIN = (Status.PROVED, Status.CONDITIONAL)
_PAIR = re.compile(r"(\d+)-(\d+)|\b(\d+)\b")
Lines = frozenset[int]

OPEN = frozenset(
    [
        "scan_chained",
        "argmin_pair",
        "bitonic_global_loop",
        "rank_sort",
        "radix_scatter",
        "radix_split_block",
        "lu_step",
        "partition_two_sides",
        "partition_fixed_room",
        "flag_scatter",
        "top4_block",
        "compact_even",
        "compact_nonzero",
        "compact_warp_segments",
        "hash_shared_distinct",
        "relax_edges_push",
        "worklist_flush",
        "lock_block_bins",
        "produce_consume",
        "spsc_ring",
        "spsc_ring_float",
        "cg_append_leader",
        "dv_break",
        "dv_break_first",
        "dv_converge",
    ]
)
"""What is neither accused nor cleared today: twelve broken ones of 181, thirteen of 174 others."""


@frozen
class Truth:
    verdict: str
    reason: str
    pairs: frozenset[Lines]


def truths() -> dict[tuple[str, str], Truth]:
    with (FOLDER / "truth.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return {(row["file"], row["kernel"]): _truth(row) for row in rows}


def _truth(row: dict[str, str]) -> Truth:
    found = _PAIR.findall(row["line_pairs"] or "")
    pairs = frozenset(frozenset(int(n) for n in numbers if n) for numbers in found)
    return Truth(row["verdict"], row["reason"], pairs)


TRUTHS = truths()


def base_name(kernel: str) -> str:
    return kernel.partition("<")[0].rpartition("::")[-1]


def certain(kernel: KernelReport, *codes: Code) -> Iterator[Finding]:
    for finding in kernel.findings:
        if (
            finding.code in codes
            and finding.status in _CERTAIN
            and finding.effective_severity <= Severity.WARNING
        ):
            yield finding


def lines_of(finding: Finding) -> Lines:
    return frozenset(site.range.start.line for site in (finding.site, *(r.site for r in finding.related[:1])))


def test_every_kernel_has_its_truth():
    assert len(TRUTHS) == 355
    assert sum(truth.verdict.startswith("race-free") for truth in TRUTHS.values()) == 174


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.cu")), ids=lambda path: path.stem)
def test_nothing_is_called_what_it_is_not(path: Path):
    report = check_text(path, path.read_text(), Settings(solver_budget=6_000))
    undecided: set[str] = set()
    for kernel in report.kernels:
        name = base_name(kernel.name)
        truth = TRUTHS[path.name, name]
        races = list(certain(kernel, *RACES))
        diverging = list(certain(kernel, Code.BARRIER_DIVERGENCE))
        assert {lines_of(race) for race in races} <= truth.pairs, name
        if truth.verdict.startswith("race-free"):
            assert not races and not diverging, name
            same = any(finding.same_value for finding in kernel.findings)  # told, as information
            decided = kernel.verdict is Verdict.RACE_FREE or same
        elif truth.verdict == "racy":
            assert kernel.verdict is not Verdict.RACE_FREE, name
            decided = bool(races)
        else:
            told = any(finding.code is Code.BARRIER_DIVERGENCE for finding in kernel.findings)
            assert kernel.verdict is not Verdict.RACE_FREE or told, name
            decided = bool(diverging)
        if not decided:
            undecided.add(name)
    assert undecided <= OPEN
