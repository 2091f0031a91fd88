"""Places that all threads store to, read where an array says: nobody can keep that apart, but a barrier."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import KernelReport, Status, Verdict
from cuda_lsp.static.analyze import check_text


def checked(body: str) -> KernelReport:
    names = "{0} x, {0} y, const int* at, const int* row, const float* w, int n, int pitch"
    text = f"""__global__ void k({names.format("float*")}) {{
        int t = threadIdx.x, b = blockIdx.x, i = b * 128 + t; {body}
    }}
    void go({names.format("float*")}) {{ k<<<64, 128>>>(x, y, at, row, w, n, pitch); }}"""
    (kernel,) = check_text(Path("/k.cu"), text, PATIENT).kernels
    return kernel


def accused(kernel: KernelReport) -> bool:
    certain = (Status.CONDITIONAL, Status.PROVED)
    return any(f.status in certain and f.kind is not None for f in kernel.findings)


OF_ROW = """if (t == 0) y[b] = x[b * pitch + at[b]]; {barrier}
for (int c = t; c < n; c += 128) x[b * pitch + c] *= 2;"""
OF_EDGES = "float s = 0; for (int e = row[i]; e < row[i + 1]; e++) s += w[e] * {of}[at[e]];"


@pytest.mark.parametrize(
    "body",
    [
        OF_ROW.format(barrier=""),
        f"if (i >= n || w[i] == 0.f) return; {OF_EDGES.format(of='x')} x[i] = s / w[i];",
        "if (i < n) x[i] = x[at[i]] + w[i];",
    ],
)
def test_a_place_that_its_thread_stores_to_is_read_by_others(body: str) -> None:
    kernel = checked(body)
    assert kernel.verdict is Verdict.RACY
    assert accused(kernel)


@pytest.mark.parametrize(
    "body",
    [
        # A colour, or a level, says who stores: none that others read.
        f"if (i >= n || row[i] != pitch || w[i] == 0.f) return; {OF_EDGES.format(of='x')} x[i] = s;",
        "if (i < n && row[at[i]] < row[i] && w[i] > 0.f) x[i] = x[at[i]];",
        # What is read may be of what was there before.
        "if (i < n && w[i] > 0.f) x[pitch + i] = x[at[i]];",
        "if (t == 0 && w[b] > 0.f) y[b] = x[at[b]]; "
        "for (int c = t; c < n; c += 128) x[(b + 1) * pitch + c] = 0;",
        # Every second place is nobody's.
        "if (i < n && w[i] > 0.f) x[(2 * i + 1) * pitch] = x[at[i]];",
    ],
)
def test_what_the_host_may_keep_apart_is_not_accused(body: str) -> None:
    assert not accused(checked(body))


@pytest.mark.parametrize(
    "body",
    [
        OF_ROW.format(barrier="__syncthreads();"),
        f"if (i >= n || w[i] == 0.f) return; {OF_EDGES.format(of='x')} y[i] = s / w[i];",
    ],
)
def test_what_a_barrier_or_another_array_keeps_apart_is_free(body: str) -> None:
    assert checked(body).verdict is Verdict.RACE_FREE
