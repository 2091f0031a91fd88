"""cuRAND's Mersenne Twister: a block's threads draw from one state together, and wait for one another."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Code, KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

PARAMETERS = "curandStateMtgp32* s, const curandStateMtgp32* from, float* o, int n"


def report_of(body: str) -> KernelReport:
    text = (
        "#include <curand_kernel.h>\n"
        f"__global__ void k({PARAMETERS}) {{ {body} }}\n"
        "void run(curandStateMtgp32* s, float* o, int n) { k<<<64, 256>>>(s, s + 64, o, n); }\n"
    )
    report = check_text(Path("k.cu"), text)
    assert not report.errors
    return report.kernels[0]


@pytest.mark.parametrize(
    "body",
    [
        "o[blockIdx.x * 256 + threadIdx.x] = curand_uniform(&s[blockIdx.x]);",
        "for (int i = 0; i < n; ++i) o[i * 16384 + blockIdx.x * 256 + threadIdx.x] = curand(s + blockIdx.x);",
        "if (threadIdx.x == 0) s[blockIdx.x] = from[blockIdx.x]; __syncthreads(); curand(&s[blockIdx.x]);",
    ],
)
def test_a_block_may_draw_from_one_state(body: str) -> None:
    assert report_of(body).verdict is Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        "o[blockIdx.x * 256 + threadIdx.x] = curand_uniform(&s[blockIdx.x / 2]);",
        "if (threadIdx.x == 0) s[blockIdx.x] = from[blockIdx.x]; curand(&s[blockIdx.x]);",
    ],
)
def test_two_blocks_may_not_nor_who_sets_it_meanwhile(body: str) -> None:
    assert report_of(body).verdict is Verdict.RACY


def test_who_does_not_draw_is_waited_for() -> None:
    found = report_of("if (threadIdx.x < 100) o[threadIdx.x] = curand_uniform(&s[blockIdx.x]);").findings
    assert Code.BARRIER_DIVERGENCE in {f.code for f in found}
