"""Strides that double or halve from barrier to barrier: each round of a block by itself."""

from __future__ import annotations

import itertools
import random

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

KERNEL = """
__global__ void k(unsigned* out, const unsigned* in, unsigned n) {{
    __shared__ unsigned s[{elements}];
    unsigned t = threadIdx.x;
    s[t] = in[t]; s[t + {block}] = in[t + {block}];
    {body}
    __syncthreads();
    out[blockIdx.x * blockDim.x + t] = s[t];
}}
"""
SWAP = "unsigned x = s[p], y = s[q]; if (x > y) { s[p] = y; s[q] = x; }"
TOLD = "// cuda-lsp: assume n <= 512\n"


def decided(body: str, block: int = 256, seconds: float = 1.5, told: str = "") -> SolverResult:
    launch = LaunchConfig((block, 1, 1), source=LaunchSource.FILE)
    kernel = lowered(told + KERNEL.format(body=body, block=block, elements=2 * block))
    return refine_kernel(kernel, [launch], GpuModel("test", (9, 0)), Budget(seconds))


def halved(pair: str, begin: str = "256") -> str:
    return f"for (unsigned d = {begin}; d > 0; d >>= 1) {{ __syncthreads(); {pair} {SWAP} }}"


def nested(pair: str, most: str = "n", wait: str = "__syncthreads();") -> str:
    inner = f"for (unsigned d = w / 2; d > 0; d >>= 1) {{ {wait} {pair} {SWAP} }}"
    return f"for (unsigned w = 2; w < {most}; w <<= 1) {inner}"


BUTTERFLY = "unsigned p = 2 * t - (t & (d - 1)), q = p + d;"


@pytest.mark.parametrize(
    "body",
    [
        halved(BUTTERFLY),
        nested(BUTTERFLY, "512"),
        nested(BUTTERFLY),
        halved("unsigned p = (t / d) * 2 * d + t % d, q = p + d; if (d < 1) continue;", "64"),
        "for (unsigned d = 1; d < 512; d *= 2) { __syncthreads(); "
        f"unsigned p = 2 * t - t % d, q = p + d; {SWAP} }}",
    ],
)
def test_pairs_of_every_stride_are_their_threads_own(body: str) -> None:
    result = decided(body, told=TOLD)
    assert result.verdict is Verdict.RACE_FREE, result.reasons


@pytest.mark.parametrize(
    "body",
    [
        halved("unsigned p = 2 * t - (t & d), q = p + d;"),
        halved("unsigned p = 2 * t - (t & (d - 1)), q = p + d / 2;"),
        halved("unsigned p = t - (t & (d - 1)), q = p + d;"),
        halved(BUTTERFLY, "384"),
        nested(BUTTERFLY, wait=""),
        nested("unsigned p = 2 * t - (t & (w - 1)), q = p + d;", "512"),
        nested("unsigned p = 2 * t - (t & (d - 1)), q = p + w;", "512"),
        f"for (unsigned d = 3; d < 512; d *= 2) {{ __syncthreads(); {BUTTERFLY} {SWAP} }}",
        f"for (unsigned d = 1; d < 512; d *= 2) {{ {BUTTERFLY} {SWAP} __syncwarp(); }}",
    ],
)
def test_pairs_that_meet_in_some_round_are_not(body: str) -> None:
    assert decided(body, told=TOLD).verdict is not Verdict.RACE_FREE


PARTS = ("t", "2*t", "d", "t&(d-1)", "t%d", "t/d", "t/d*d", "t/d*2*d", "t^d", "(t&1)*d")


@pytest.mark.parametrize("seed", range(8))
def test_what_meets_in_a_round_is_never_proved(seed: int) -> None:
    """Stores of random addresses, against all threads of a small block in each round."""
    choose = random.Random(seed)
    for _ in range(6):
        chosen = choose.sample(PARTS, choose.choice((1, 2, 3)))
        address = " + ".join(f"({part})" for part in chosen)
        guard = choose.choice(("t < d", "(t & d) == 0", "t % d == 0", "1"))
        rises, limit = choose.random() < 0.5, choose.choice((8, 12, 16))
        begin = choose.choice((1, 2, 3)) if rises else limit
        loop = (
            f"for (unsigned d = {begin}; d < {limit}; d *= 2)" if rises
            else f"for (unsigned d = {begin}; d > 0; d /= 2)"
        )  # fmt: skip
        body = f"__syncthreads(); {loop} {{ if ({guard}) s[{address}] = t; __syncthreads(); }}"
        result = decided(body, 16, 0.4)
        if result.verdict is Verdict.RACE_FREE:
            assert not _meet(address, guard, begin, limit if rises else 0), (address, guard, loop)


def _meet(address: str, guard: str, begin: int, limit: int) -> bool:
    strides = [begin << i for i in range(9) if begin << i < limit] if limit else [
        begin >> i for i in range(9) if begin >> i
    ]  # fmt: skip
    seen: dict[tuple[int, int], int] = {}
    for d, t in itertools.product(strides, range(16)):
        here = {"t": t, "d": d}
        if eval(guard, {}, here):
            place = eval(address.replace("/", "//"), {}, here)
            if seen.setdefault((d, place), t) != t:
                return True
    return False
