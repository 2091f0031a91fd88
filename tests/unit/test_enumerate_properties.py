"""Generated kernels: enumeration agrees with running every pair of threads on plain integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from kernel_notation import listing
from test_solve_properties import EXAMPLES, GPU, LAUNCH, brute_force, kernels, lines

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, Status
from cuda_lsp.static.diagnostics.banks import bank_reports
from cuda_lsp.static.diagnostics.races import race_findings
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.execution.values import Data


def check(kernel, arguments: dict[str, int]) -> None:
    trace = execute(kernel, LAUNCH, arguments, GPU)
    findings = race_findings(trace)
    found = {lines(f) for f in findings if f.status is Status.PROVED}
    text = f"{trace.undecided} {[f.message for f in findings]}\n{listing(kernel.body)}"
    expected = brute_force(kernel, arguments)
    assert found <= expected, text
    if not trace.undecided:
        assert found == expected, text


@EXAMPLES
@given(kernels())
def test_enumeration_and_exhaustive_replay_name_the_same_lines(kernel):
    check(kernel, {})


@EXAMPLES
@given(kernels(jumps=True))
def test_they_agree_on_kernels_with_jumps(kernel):
    check(kernel, {})


@EXAMPLES
@given(kernels(free=True))
def test_they_agree_for_values_of_a_parameter(kernel):
    for n in (-3, 0, 1, 2, 5, 8, 64):
        check(kernel, {"n": n})


WARP = GpuModel("small", (9, 0), banks=8, warp_size=8)


def naive_wavefronts(access, warp: int) -> int:
    """Worst wavefronts of one warp over the rounds of ``access`` (4 bytes a lane), counted by hand."""
    worst = 0
    lanes = range(warp * WARP.warp_size, (warp + 1) * WARP.warp_size)
    shape = access.may.shape
    for round in np.ndindex(shape[:-1]):
        words: dict[int, set[int]] = {}
        for lane in lanes:
            if access.may[(*round, lane)]:
                word = int(np.broadcast_to(access.offset, shape)[(*round, lane)]) // 4
                if word >= 0:
                    words.setdefault(word % WARP.banks, set()).add(word)
        worst = max(worst, max(map(len, words.values()), default=0))
    return worst


@EXAMPLES
@given(kernels())
def test_reported_wavefronts_are_the_worst_warp_counted_by_hand(kernel):
    trace = execute(kernel, LaunchConfig((16, 1, 1), (1, 1, 1)), {}, WARP)
    reported = {(b.site.range, b.mode): b.report for b in bank_reports(trace)}
    counted: dict[object, int] = {}
    for access in trace.paths[0].accesses:
        if isinstance(access.offset, Data):  # what a loop left in a variable: not counted
            continue
        key = (access.site.range, access.mode)
        counted[key] = max([counted.get(key, 0)] + [naive_wavefronts(access, warp) for warp in (0, 1)])
    ways = {key: report.ways for key, report in reported.items()}
    assert ways == {key: max(n, 1) for key, n in counted.items()}


@EXAMPLES
@given(kernels())
def test_between_two_places_alone_the_same_is_found(kernel):
    for finding in race_findings(execute(kernel, LAUNCH, {}, GPU)):
        places = {finding.site.range, *(r.site.range for r in finding.related[:1])}
        alone = race_findings(
            execute(kernel, LAUNCH, {}, GPU), among=lambda access, at=places: access.site.range in at
        )
        (same,) = (f for f in alone if f.key == finding.key)
        assert (same.kind, same.status, same.witness) == (finding.kind, finding.status, finding.witness)
