"""Named barriers that threads come to at several places: each counts who comes, wherever that is."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Code, KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

WAIT = 'asm volatile("bar.sync 1, 64;" ::: "memory");'


def kernel_of(body: str) -> KernelReport:
    text = (
        "__device__ void meet(int id, int n) {"
        ' asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory"); }\n'
        f"__global__ void k(int* out, int n) {{ __shared__ int s[64]; int t = threadIdx.x, a = 0; {body} }}\n"
        "void f(int* p) { k<<<1, 64>>>(p, 10); }\n"
    )
    report = check_text(Path("k.cu"), text)
    assert not report.errors
    return report.kernels[0]


def diverges(kernel: KernelReport) -> bool:
    return any(f.code is Code.BARRIER_DIVERGENCE for f in kernel.findings)


@pytest.mark.parametrize("wait", [WAIT, "meet(1, 64);", "__barrier_sync_count(1, 64);"])
@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("if (t < 32) { s[t] = t; WAIT } else { WAIT out[t] = s[63 - t]; }", Verdict.RACE_FREE),
        ("if (t < 32) { WAIT s[t] = t; } else { WAIT out[t] = s[63 - t]; }", Verdict.RACY),
        ("if (t < 32) for (int i = 0; i < n; ++i) { s[t] = i; WAIT }"
         " else { for (int i = 0; i < n; ++i) { WAIT a += s[63 - t]; } out[t] = a; }", Verdict.RACY),
        ("if (t < 32) for (int i = 0; i < n; ++i) { s[t] = i; WAIT WAIT }"
         " else { for (int i = 0; i < n; ++i) { WAIT a += s[63 - t]; WAIT } out[t] = a; }",
         Verdict.RACE_FREE),
        ("s[t] = t; WAIT a = s[63 - t]; WAIT s[t] = a; WAIT out[t] = s[t ^ 1];", Verdict.RACE_FREE),
    ],
)  # fmt: skip
def test_sides_that_part_meet_at_barriers_of_their_own(body: str, verdict: Verdict, wait: str) -> None:
    kernel = kernel_of(body.replace("WAIT", wait))
    assert kernel.verdict is verdict
    assert not diverges(kernel)


def test_who_does_not_come_to_the_only_place_misses_the_barrier() -> None:
    assert diverges(kernel_of(f"if (t < 32) {{ s[t] = t; {WAIT} out[t] = s[31 - t]; }}"))


def test_sides_that_wait_at_barriers_of_two_numbers_order_nothing() -> None:
    other = WAIT.replace("sync 1", "sync 2")
    kernel = kernel_of(f"if (t < 32) {{ s[t] = t; {WAIT} }} else {{ {other} out[t] = s[63 - t]; }}")
    assert kernel.verdict is not Verdict.RACE_FREE
