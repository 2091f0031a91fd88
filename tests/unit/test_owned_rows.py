"""Rows of a known pitch that memory says how full they are: who owns a row knows what it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import RACES, KernelReport, Status, Verdict
from cuda_lsp.static.analyze import check_text


def checked(body: str, launch: str) -> KernelReport:
    text = f"""__global__ void k(const float* in, const int* len, float* out) {{ {body} }}
    void go(const float* in, const int* len, float* out) {{ k<<<{launch}>>>(in, len, out); }}
    """
    (kernel,) = check_text(Path("/k.cu"), text, PATIENT).kernels
    return kernel


@pytest.mark.parametrize(
    ("body", "launch"),
    [
        ("int s = blockIdx.x; if (threadIdx.x < len[s]) out[s * 64 + threadIdx.x] = 1;", "32, 128"),
        (
            """int s = blockIdx.x * 4 + threadIdx.y;
            for (int j = 0; j < len[s]; ++j) out[(s * 64 + j) * 32 + threadIdx.x] = in[j];""",
            "32, dim3(32, 4)",
        ),
        (
            """int s = blockIdx.x * 4 + threadIdx.y, n = len[s];
            for (int j = 0; n > j; ++j) out[(s * 64 + j) * 32 + threadIdx.x] = in[j];""",
            "32, dim3(32, 4)",
        ),
    ],
)
def test_a_count_above_what_a_row_has_room_for_is_a_doubt(body: str, launch: str) -> None:
    kernel = checked(body, launch)
    assert kernel.verdict is Verdict.UNDECIDED
    assert any("`len` counts more than 64, what a row has room for;" in reason for reason in kernel.reasons)
    assert all(f.status is Status.POSSIBLE for f in kernel.findings if f.code in RACES)


@pytest.mark.parametrize(
    ("body", "launch"),
    [
        # Two blocks have one row.
        ("int s = blockIdx.x / 2; if (threadIdx.x < len[s]) out[s * 64 + threadIdx.x] = 1;", "32, 64"),
        # Two threads have one row and column.
        ("int s = blockIdx.x, i = threadIdx.x; if (i < len[s]) out[s * 64 + i] = threadIdx.y;",
         "9, dim3(128, 2)"),
        # No rows.
        ("int s = blockIdx.x; if (threadIdx.x < len[s]) out[s + threadIdx.x] = s;", "32, 64"),
        # The count is none of a row.
        ("int s = blockIdx.x; if (threadIdx.x < len[0]) out[s * 64 + threadIdx.x] = s;", "32, 128"),
        # A number that the source says is too large.
        ("int s = blockIdx.x; if (threadIdx.x < 65 && in[0] > 0) out[s * 64 + threadIdx.x] = s;", "32, 128"),
        # Columns of 9 that 32 threads have.
        ("int s = blockIdx.x; for (int j = 0; j < len[s]; j++) out[s * 99 + j * 9 + threadIdx.x] = j;",
         "32, 32"),
    ],
)  # fmt: skip
def test_other_rows_that_meet_race(body: str, launch: str) -> None:
    assert checked(body, launch).verdict is Verdict.RACY
