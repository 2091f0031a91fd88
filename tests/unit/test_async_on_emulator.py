"""Asynchronous copies and mbarriers on the emulator: what they order, and what a missing wait leaves open."""

from __future__ import annotations

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
// cuda-lsp: launch block=64 grid=1
"""

COPY = """__global__ void k(const int* in, int* out) {
    __shared__ int s[2][64];
    for (int k = 0; k < 2; ++k) {
        __pipeline_memcpy_async(&s[k][threadIdx.x], &in[64 * k + threadIdx.x], 4);
        __pipeline_commit();
    }
    WAIT
    __syncthreads();
    out[threadIdx.x] = s[READ][63 - threadIdx.x];
}"""

GROUP = """__global__ void k(const int* in, int* out) {
    __shared__ int s[64];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, s, in, sizeof(int) * 64);
    WAIT
    out[threadIdx.x] = s[63 - threadIdx.x];
}"""

BARRIER = """__global__ void k(const int* in, int* out) {
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


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("CUDA_LSP_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_waits_order_and_nothing_else_does(name: str, architecture: str, tmp_path: Path) -> None:
    text, words, racy = CASES[name]
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    source = tmp_path / "kernel.cu"
    source.write_text(HEAD + text)
    command = ["run", str(source), "--engine", "emulator", "--watch-all", "--arch", architecture]
    done = CliRunner().invoke(main, command)
    assert ("shared-race [confirmed]" in done.stdout) == racy, done.stdout
    assert "shared-uninitialised" not in done.stdout
    assert "cannot run" not in done.stdout
