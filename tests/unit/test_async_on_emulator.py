"""Asynchronous copies and mbarriers on the emulator: what they order, and what a missing wait leaves open."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.cli import main

pytestmark = needs_nvcc

HEAD = """
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
"""
LAUNCH = "// cuda-lsp: launch block=64 grid=1\n"

COPY = """__global__ void NAME(const int* in, int* out) {
    __shared__ int s[2][64];
    for (int k = 0; k < 2; ++k) {
        __pipeline_memcpy_async(&s[k][threadIdx.x], &in[64 * k + threadIdx.x], 4);
        __pipeline_commit();
    }
    WAIT
    __syncthreads();
    out[threadIdx.x] = s[READ][63 - threadIdx.x];
}"""

GROUP = """__global__ void NAME(const int* in, int* out) {
    __shared__ int s[64];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, s, in, sizeof(int) * 64);
    WAIT
    out[threadIdx.x] = s[63 - threadIdx.x];
}"""

BARRIER = """__global__ void NAME(const int* in, int* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ int s[64];
    if (threadIdx.x == 0) init(&bar, 64);
    __syncthreads();
    BEFORE
    auto token = bar.arrive();
    BETWEEN
    WAIT
    out[threadIdx.x] = s[63 - threadIdx.x];
}"""

STORE = "s[threadIdx.x] = in[threadIdx.x];"
CASES = {
    "copies waited for": (COPY, {"WAIT": "__pipeline_wait_prior(0);", "READ": "1"}, False),
    "copies not waited for": (COPY, {"WAIT": "", "READ": "1"}, True),
    "the older group waited for": (COPY, {"WAIT": "__pipeline_wait_prior(1);", "READ": "0"}, False),
    "the newer group not waited for": (COPY, {"WAIT": "__pipeline_wait_prior(1);", "READ": "1"}, True),
    "waited for behind the barrier": (
        COPY.replace("WAIT\n    __syncthreads();", "__syncthreads();\n    WAIT"),
        {"WAIT": "__pipeline_wait_prior(0);", "READ": "1"}, True,
    ),
    "a group's copy waited for": (GROUP, {"WAIT": "cg::wait(block);"}, False),
    "a group's copy and only a barrier": (GROUP, {"WAIT": "block.sync();"}, True),
    "stored before arriving": (
        BARRIER, {"BEFORE": STORE, "BETWEEN": "", "WAIT": "bar.wait(std::move(token));"}, False
    ),
    "stored after arriving": (
        BARRIER, {"BEFORE": "", "BETWEEN": STORE, "WAIT": "bar.wait(std::move(token));"}, True
    ),
    "arrived and not waited": (BARRIER, {"BEFORE": STORE, "BETWEEN": "", "WAIT": "(void)token;"}, True),
}  # fmt: skip


def written() -> tuple[str, dict[str, range]]:
    """All cases in one text, which is compiled once, and the lines of each."""
    text, lines = HEAD, {}
    for name, (kernel, words, _) in CASES.items():
        for word, meaning in {**words, "NAME": re.sub(r"\W", "_", name)}.items():
            kernel = kernel.replace(word, meaning)
        first = text.count("\n") + 1
        text += f"{LAUNCH}{kernel}\n"
        lines[name] = range(first, text.count("\n") + 1)
    return text, lines


@pytest.fixture(scope="module", params=["sm_80", "sm_90"])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What a run under check says of each case."""
    text, lines = written()
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "kernel.cu").write_text(text)
    command = [
        "run",
        str(folder / "kernel.cu"),
        "--engine",
        "emulator",
        "--watch-all",
        "--arch",
        request.param,
    ]
    done = CliRunner().invoke(main, command, env={"CUDA_LSP_CACHE": str(folder / "cache")})
    assert "cannot run" not in done.output, done.output
    said = [(int(match[1]), match[0]) for match in re.finditer(r"kernel\.cu:(\d+):\d+: .*", done.stdout)]
    assert said, done.output
    return {name: [what for line, what in said if line in its] for name, its in lines.items()}


@pytest.mark.parametrize("name", CASES)
def test_waits_order_and_nothing_else_does(name: str, told: dict[str, list[str]]) -> None:
    assert any("shared-race [confirmed]" in what for what in told[name]) == CASES[name][2], told
    assert not any("shared-uninitialised" in what for what in told[name])
