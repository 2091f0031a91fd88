"""Generated kernels: enumeration agrees with running every pair of threads on plain integers."""

from __future__ import annotations

from hypothesis import given
from kernel_notation import listing
from test_solve_properties import EXAMPLES, GPU, LAUNCH, brute_force, kernels, lines

from cuda_lsp.model import Status
from cuda_lsp.static.enumerate import execute
from cuda_lsp.static.races import race_findings


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
