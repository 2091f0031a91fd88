"""Tiles that are parts of tiles: their number is one of the larger tile, not of the block."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Code, Verdict
from cuda_lsp.static.analyze import check_text

NUMBERED_IN_A_WARP = {
    "as it is": "cg::tiled_partition<8>(warp)",
    "of half a warp": "cg::tiled_partition<8>(cg::tiled_partition<16>(warp))",
}


def checked(tile: str, use: str, before: str = ""):
    text = f"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
{before}
__global__ void k(const float* x, float* out) {{
    __shared__ float part[64];
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto tile = {tile};
    {use}
    block.sync();
    out[blockIdx.x * 256 + threadIdx.x] = part[threadIdx.x % 32];
}}
void run(const float* x, float* out) {{ k<<<12, 256>>>(x, out); }}
"""
    report = check_text(Path("k.cu"), text)
    assert not report.errors
    (kernel,) = report.kernels
    return kernel


STORE = "if (tile.thread_rank() == 0) part[tile.meta_group_rank()] = x[threadIdx.x];"


@pytest.mark.parametrize("tile", NUMBERED_IN_A_WARP.values(), ids=NUMBERED_IN_A_WARP)
def test_tiles_of_two_warps_have_one_number(tile: str):
    kernel = checked(tile, STORE)
    assert kernel.verdict is Verdict.RACY
    assert Code.SHARED_RACE in {finding.code for finding in kernel.findings}


def test_tiles_of_the_block_have_numbers_of_their_own():
    assert checked("cg::tiled_partition<8>(block)", STORE).verdict is Verdict.RACE_FREE


def test_with_the_number_of_the_larger_tile_they_are_told_apart():
    store = STORE.replace("tile.meta_group_rank()", "warp.meta_group_rank() * 4 + tile.meta_group_rank()")
    assert checked("cg::tiled_partition<8>(warp)", store).verdict is Verdict.RACE_FREE


def test_the_number_of_tiles_is_that_in_the_larger_one():
    store = STORE.replace(
        "meta_group_rank()", "meta_group_rank() + warp.meta_group_rank() * tile.meta_group_size()"
    )
    assert checked("cg::tiled_partition<8>(warp)", store).verdict is Verdict.RACE_FREE


def test_a_parameter_that_has_lost_its_parent_has_the_number_of_what_is_passed():
    before = (
        "__device__ void store(cg::thread_block_tile<8> t, float* p, float v)"
        " { if (t.thread_rank() == 0) p[t.meta_group_rank()] = v; }"
    )
    use = "store(tile, part, x[threadIdx.x]);"
    assert checked("cg::tiled_partition<8>(block)", use, before).verdict is Verdict.RACE_FREE
    assert checked("cg::tiled_partition<8>(warp)", use, before).verdict is Verdict.RACY
