"""Races that only a late round of a long loop brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Status, Verdict
from cuda_lsp.static.analyze import check_text


def kernel_of(body: str) -> KernelReport:
    kernel = f"__global__ void k(int* a, int* b) {{ __shared__ int s[256]; int t = threadIdx.x; {body} }}\n"
    report = check_text(Path("k.cu"), f"{kernel}void f(int* a, int* b) {{ k<<<1, 256>>>(a, b); }}\n")
    assert not report.errors
    return report.kernels[0]


@pytest.mark.parametrize(
    "body",
    [
        "for (int i = 0; i < 20000; ++i) a[t * 19999 + i] = t;",
        "for (int i = 0; i < 9000; ++i) { a[i * 256 + t] = i; if (i == 8999) a[i * 256 + t + 1] = t; }",
        "for (int i = 0; i < 10000; ++i) { if (i == 9000) s[t] = i; if (i == 9001) b[t] = s[255 - t]; }",
        "for (int i = 0; i < 700; ++i) { s[t] = i; __syncthreads(); b[t] = s[255 - t];"
        " if (i < 650) __syncthreads(); }",
    ],
)
def test_a_late_round_is_looked_at(body: str) -> None:
    kernel = kernel_of(body)
    assert kernel.verdict is Verdict.RACY
    assert any(f.kind and f.status is Status.PROVED for f in kernel.findings)


@pytest.mark.parametrize(
    "body",
    [
        "for (int i = 0; i < 20000; ++i) a[t * 20000 + i] = t;",
        "for (int i = 0; i < 9000; ++i) a[i * 256 + t] = i;",
    ],
)
def test_a_loop_whose_last_round_stays_apart_is_free(body: str) -> None:
    assert kernel_of(body).verdict is Verdict.RACE_FREE


def test_threads_that_meet_in_different_rounds_do_so_not_at_the_same_time() -> None:
    (found,) = (
        f for f in kernel_of("for (int i = 0; i < 20000; ++i) a[t * 19999 + i] = t;").findings if f.kind
    )
    assert "from one loop round to the next" in found.message


@pytest.mark.parametrize(
    ("behind", "verdict"),
    [
        ("s[t] = v; __syncthreads(); b[t] = s[255 - t];", Verdict.RACE_FREE),
        ("s[t] = v; b[t] = s[255 - t];", Verdict.RACY),
    ],
)
def test_behind_a_loop_of_many_rounds_that_only_computes_all_is_seen(behind: str, verdict: Verdict) -> None:
    loop = "int v = 0; for (int i = t; i < 70000000; i += 256) v += a[i] > 3;"
    assert kernel_of(f"{loop} {behind}").verdict is verdict


def test_where_such_a_loop_has_ended_is_not_guessed() -> None:
    body = "int i = t; while (i < 70000000) i += 256 + (a[i] > 3); s[(i + t) & 255] = t;"
    assert kernel_of(body).verdict is not Verdict.RACE_FREE
    body = "int i = t; for (; i < 70000000; i += 256) b[0] += 0 * a[i]; s[i & 255] = t;"
    assert kernel_of(body).verdict is not Verdict.RACE_FREE
