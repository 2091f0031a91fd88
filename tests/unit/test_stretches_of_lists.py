"""Stretches that two arrays tell, where they begin and how long they are: taken not to overlap, and told."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

V = "int v = blockIdx.x * blockDim.x + threadIdx.x; if (v >= n) return;"
LENGTHS = "stretches from `first` on, as long as `count` says, do not overlap"
ENDS = "stretches from `first` up to `count` do not overlap"
BACKWARDS = "stretches up to `first`, as long as `count` says, do not overlap"


def checked(body: str) -> KernelReport:
    names = "{0} first, {0} count, float* out, const float* in, int n, int w"
    text = f"""
    __global__ void k({names.format("int*")}) {{ {body} }}
    void go({names.format("int*")}) {{ k<<<64, 128>>>(first, count, out, in, n, w); }}
    """
    (kernel,) = check_text(Path("/k.cu"), text, PATIENT).kernels
    return kernel


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (f"{V} for (int i = 0; i < count[v]; i++) out[first[v] + i] = v;", LENGTHS),
        (f"{V} int b = first[v], e = b + count[v]; for (int i = b; i < e; i++) out[i] = in[i];", LENGTHS),
        ("int v = blockIdx.x; for (int i = threadIdx.x; i < count[v]; i += 128) out[first[v] + i] = in[i];",
         LENGTHS),
        ("int v = blockIdx.x * 4 + threadIdx.x / 32; if (v < n) "
         "for (int i = threadIdx.x % 32; i < count[v]; i += 32) out[first[v] + i] = in[i];", LENGTHS),
        ("int t = blockIdx.x * 128 + threadIdx.x, v = t / w, c = t % w; if (v < n) "
         "for (int i = 0; i < count[v]; i++) out[(first[v] + i) * w + c] = in[c];", LENGTHS),
        ("int v = blockIdx.x; if (threadIdx.x < count[v]) out[first[v] + threadIdx.x] = in[v];", LENGTHS),
        (f"{V} for (int i = first[v]; i < count[v]; i++) out[i] = v;", ENDS),
        (f"{V} int e = first[v], b = e - count[v]; for (int i = b; i < e; i++) out[i] = v;", BACKWARDS),
    ],
)  # fmt: skip
def test_who_reads_begin_and_length_at_one_place_has_a_stretch(body: str, told: str) -> None:
    kernel = checked(body)
    assert kernel.verdict is Verdict.RACE_FREE
    assert told in kernel.assumptions


@pytest.mark.parametrize(
    "body",
    [
        # One element too many; all of it twice as long; half of them one element too early.
        f"{V} for (int i = 0; i <= count[v]; i++) out[first[v] + i] = v;",
        f"{V} for (int i = 0; i < count[v]; i++) out[first[v] + i - (v & 1)] = v;",
        f"{V} for (int i = 0; i < 2 * count[v]; i++) out[first[v] + i] = v;",
        f"{V} for (int i = first[v]; i <= count[v]; i++) out[i] = v;",
        f"{V} int e = first[v], b = e - count[v]; for (int i = b; i <= e; i++) out[i] = v;",
        # It is read in the next one.
        f"{V} for (int i = 0; i < count[v]; i++) out[first[v] + i] = out[first[v] + i + 1];",
        # Two threads have one, or a length of somebody else's.
        f"{V} for (int i = 0; i < count[v / 2]; i++) out[first[v / 2] + i] = v;",
        f"{V} for (int i = 0; i < count[v + 1]; i++) out[first[v] + i] = v;",
        f"{V} int u = (int)in[v]; for (int i = 0; i < count[u]; i++) out[first[u] + i] = v;",
        # Pieces that are added up may overlap.
        f"{V} for (int i = 0; i < count[v]; i++) out[first[v] + i] += in[v];",
        # Each batch has a list of its own, which may all begin at 0.
        "int b = blockIdx.x, v = threadIdx.x; if (v < n) "
        "for (int i = 0; i < count[b * n + v]; i++) out[first[b * n + v] + i] = v;",
        # A place is no stretch, whatever is asked of the other array.
        f"{V} if (count[v] > 0) out[first[v]] = v;",
        f"{V} if (first[v] < count[v]) out[first[v]] = v;",
        f"{V} if (v < count[v]) out[first[v]] = v;",
        f"{V} for (int i = 0; i < count[v]; i++) out[first[v]] = i;",
        # Nor is a row, of which the other array says how much is stored.
        f"{V} for (int i = 0; i < count[v]; i++) if (i < w) out[first[v] * w + i] = v;",
        f"{V} for (int i = 0; i < count[v]; i++) out[(first[v] + 2 * i) * 4] = v;",
        # Nor is it one where nothing but a number says how long it is.
        f"{V} for (int i = 0; i < 4; i++) if (count[v]) out[first[v] + i] = v;",
        # The kernel counts by itself.
        f"{V} count[v]++; for (int i = 0; i < count[v]; i++) out[first[v] + i] = v;",
        f"{V} first[v] = v; for (int i = 0; i < count[v]; i++) out[first[v] + i] = v;",
    ],
)  # fmt: skip
def test_what_meets_in_such_stretches_is_not_called_free(body: str) -> None:
    assert checked(body).verdict is not Verdict.RACE_FREE


def test_an_access_that_needs_them_to_overlap_is_not_called_free() -> None:
    body = f"{V} if (first[v] + count[v] > first[v + 1] && first[v] < first[v + 1] && count[v + 1] > 0) "
    assert checked(body + "for (int i = 0; i < count[v]; i++) out[first[v] + i] = v;").verdict is not (
        Verdict.RACE_FREE
    )
