"""Variables that change only while a condition holds that nothing but their own change can end."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(int* out, const int* in, int lim, int rounds) {
    int t = threadIdx.x, at = 8 * t, step = 1, n = lim;
    extern __shared__ int s[];
    for (int i = 0; i < rounds; ++i) {
        %s
    }
}
void run(int* out, int* in, int lim, int rounds) { k<<<1, 128, 4096>>>(out, in, lim, rounds); }
"""

OWN = [
    "if (at < lim) { out[at - i] = i; at += 1; }",
    "if (lim > at) { at++; out[at - i] = i; }",
    "if (at < lim && t < 100) { out[at - i] = i; at += 1; }",
    "if (at >= lim) continue; out[at - i] = i; at += 1;",
    "if (at != lim) { out[at - i] = i; at += 1; } __syncthreads();",
    "if (at < lim) { if (t < 64) out[at - i] = i; at += 1; }",
    "if (t < n) { s[2 * step * t] += s[2 * step * t + step]; n >>= 1; step <<= 1; } __syncthreads();",
    "if (t < n) { s[2 * step * t] += s[2 * step * t + step]; n /= 2; step *= 2; } __syncthreads();",
]
OTHERS = [
    "out[at - i] = i; if (at < lim) at += 1;",  # also where it does not change any more
    "if (at < lim) { at += 1; } out[at - i] = i;",
    "if (at < n) { out[at - i] = i; at += 1; } n = i & 1 ? lim : 0;",  # what it asks changes beside it
    "if (at < n) { out[at - i] = i; at += 1; } else n += lim;",
    "if (at < n) { out[at - i] = i; at += 1; } n = lim + i;",
    "if (in[i * 128 + t]) { out[at - i] = i; at += 1; }",
    "if (at < in[i * 128 + t]) { out[at - i] = i; at += 1; }",
    "if ((i + t) & 1) { out[at - i] = i; at += 1; }",
    "if (at < lim || i > 5) { out[at - i] = i; at += 1; }",
    "if (at < lim) { out[at - i] = i; at += 1; } else at -= 1;",
    "if (at < lim) { out[at - i] = i; at += 1; } if (i == 3) at = 0;",
    "if (at < lim) { out[at - i] = i; at += 1; } if (at == lim) at -= 7;",
    "if (at > lim) { out[at - i] = i; at += 1; } else if (i & 1) at += 3;",
    "if (t < n) { s[2 * step * t] += s[2 * step * t + step]; n >>= 1; step <<= 1; }",  # no barrier
    "if (t < n) { s[step * t] += s[2 * step * t + step]; n >>= 1; step <<= 1; } __syncthreads();",
    "if (t <= n) { s[2 * step * t] += s[2 * step * t + 2 * step]; n >>= 1; step <<= 1; } __syncthreads();",
]


def verdict(body: str) -> Verdict:
    return check_text(Path("k.cu"), KERNEL % body, Settings(solver_budget=4_000)).kernels[0].verdict


@pytest.mark.parametrize("body", OWN)
def test_who_passes_passed_in_all_rounds_before(body: str) -> None:
    assert verdict(body) is Verdict.RACE_FREE


@pytest.mark.parametrize("body", OTHERS)
def test_what_others_can_end_or_begin_again_is_not_followed(body: str) -> None:
    assert verdict(body) is not Verdict.RACE_FREE
