"""Lane exchanges: the scalar form, the NumPy form and the PTX manual agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from extract_kernels import lowered
from hypothesis import given
from hypothesis import strategies as st
from property_settings import examples
from test_schedules import GPU, final_values

from cuda_lsp.ir.exchanges import EXCHANGES, Reach, source_lane, value_of, values_of
from cuda_lsp.ir.types import INT32, UINT32, Int
from cuda_lsp.model import LaunchConfig, Verdict
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.diagnostics.races import find_races
from cuda_lsp.static.execution.enumerate import execute

LANES = range(32)
MODES = {"__shfl_sync": "idx", "__shfl_up_sync": "up", "__shfl_down_sync": "down", "__shfl_xor_sync": "bfly"}
FULL = 0xFFFFFFFF


def ptx_source(mode: str, lane: int, b: int, width: int) -> int:
    """By the letter of the PTX ISA (``shfl.sync``), with the clamp that CUDA's headers pass."""
    c = (32 - width) << 8 | (0 if mode == "up" else 0x1F)
    bval, cval, mask = b & 31, c & 31, c >> 8 & 31
    max_lane = (lane & mask) | (cval & ~mask & 31)
    min_lane = lane & mask
    if mode == "up":
        j = lane - bval
        valid = j >= max_lane
    elif mode == "down":
        j = lane + bval
        valid = j <= max_lane
    elif mode == "bfly":
        j = lane ^ bval
        valid = j <= max_lane
    else:
        j = min_lane | (bval & ~mask & 31)
        valid = j <= max_lane
    return j if valid else lane


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
def test_a_shuffle_reads_the_lane_that_the_ptx_manual_names(name: str, width: int) -> None:
    row = EXCHANGES[name]
    for by in range(-3, 40):
        expected = [ptx_source(MODES[name], lane, by, width) for lane in LANES]
        assert [source_lane(row, lane, by, width) for lane in LANES] == expected
        assert source_lane(row, np.arange(32), np.full(32, by), width).tolist() == expected


def test_a_shuffle_over_a_width_that_is_no_power_of_two_is_not_defined() -> None:
    assert source_lane(EXCHANGES["__shfl_sync"], 3, 1, 12) is None


def test_xor_reads_an_earlier_segment_and_not_a_later_one() -> None:
    row = EXCHANGES["__shfl_xor_sync"]
    assert [source_lane(row, lane, 16, 16) for lane in (3, 15, 16, 31)] == [3, 15, 0, 15]


def operands_of(name: str, mask: object, offers: object, by: object, width: int) -> list[object]:
    row = EXCHANGES[name]
    return [
        *([mask] if row.masked else []),
        *([] if row.offered is None else [offers]),
        *([] if row.source is None else [by, width]),
    ]


NUMBERS = st.one_of(st.integers(-3, 3), st.integers(-(2**31), 2**31 - 1))


@examples(100)
@given(
    st.sampled_from(sorted(set(EXCHANGES) - {"__activemask"})),
    st.lists(NUMBERS, min_size=64, max_size=64),
    st.lists(st.integers(0, 31), min_size=64, max_size=64),
    st.sampled_from([1, 2, 4, 8, 16, 32]),
    st.sets(st.integers(0, 63), min_size=1),
    st.one_of(st.just(0), st.integers(0, FULL)),
    st.sampled_from([33, 64, 40]),
    st.sampled_from([INT32, UINT32]),
)
def test_scalar_and_numpy_forms_agree(
    name: str,
    numbers: list[int],
    by: list[int],
    width: int,
    there: set[int],
    cut: int,
    threads: int,
    type: Int,
) -> None:
    """Two parts of each warp, as ``cut`` says, exchange what they offer; some threads are absent."""
    row = EXCHANGES[name]
    numbers = [type.wrap(n) for n in numbers[:threads]]
    executing = np.array([t in there for t in range(threads)])
    if not executing.any():
        return
    split = row.masked and row.source is None
    masks = [cut if split and cut >> t % 32 & 1 else ~cut & FULL if split else FULL for t in range(threads)]
    offered = np.array(numbers, np.int32 if type is INT32 else np.uint32)
    arrays = operands_of(name, np.array(masks, np.uint32), offered, np.array(by[:threads]), width)
    together = values_of(row, arrays, executing, threads, type)  # type: ignore[arg-type]
    single: list[int | None] = []
    for t in np.flatnonzero(executing).tolist():
        block = row.reach is Reach.BLOCK
        parts = {u: (0 if block else u // 32, masks[u]) for u in range(threads) if executing[u]}
        others = [u for u in parts if parts[u] == parts[t]]
        offers = {u if block else u % 32: numbers[u] for u in others}
        mine = operands_of(name, masks[t], numbers[t], by[t], width)
        single.append(value_of(row, offers, t % 32, mine, type))
    if together is None:
        assert row.source is not None
        assert None in single
    else:
        assert np.asarray(together)[executing].tolist() == single


def test_who_is_not_named_by_its_own_mask_votes_for_nothing_known() -> None:
    row, every = EXCHANGES["__ballot_sync"], np.ones(32, bool)
    assert values_of(row, [0xFFFF, np.ones(32, np.int32)], every, 32, UINT32) is None
    assert value_of(row, dict.fromkeys(LANES, 1), 20, [0xFFFF, 1], UINT32) is None


def test_reductions_and_matches_by_hand() -> None:
    offers = {0: 5, 1: -2, 2: 5, 3: 2**31 - 1}

    def one(name: str, lane: int = 0, type: Int = INT32) -> int:
        return value_of(EXCHANGES[name], offers, lane, [0xF, offers[lane]], type)

    assert one("__reduce_add_sync") == INT32.wrap(2**31 + 7)
    assert (one("__reduce_min_sync"), one("__reduce_max_sync")) == (-2, 2**31 - 1)
    assert (one("__match_any_sync", 2, UINT32), one("__match_any_sync", 1, UINT32)) == (0b101, 0b10)
    assert one("__match_all_sync", 0, UINT32) == 0


def lanes_of(expression: str, count: int = 32) -> list[object]:
    """What an exchange gives the first lanes of a warp in a schedule."""
    return final_values(
        f"""
__global__ void k(int* out) {{
  int t = threadIdx.x, all = 0;
  int v = {expression};
  out[t] = v + all;
  if (out[t] == 12345) out[0] = 0;
}}""",
        "out",
        count,
    )


def test_a_schedule_knows_which_segment_xor_reads():
    assert lanes_of("__shfl_xor_sync(~0u, t, 16, 16)") == [*range(16), *range(16)]


def test_what_lanes_give_without_a_mask_is_not_the_lane_that_is_asked():
    """``__shfl(value, lane, width)``, of CUDA before 9."""
    kernel = lowered("__global__ void k(int* out) { int t = threadIdx.x; out[__shfl(2 * t, 5, 32)] = t; }")
    trace = execute(kernel, LaunchConfig((32, 1, 1), (1, 1, 1)), {}, GPU)
    assert [race.collision.byte for race in find_races(trace) if race.collision] == [10 * 4]


def test_a_schedule_knows_reductions_and_matches():
    assert lanes_of("__reduce_add_sync(~0u, t)", 2) == [496, 496]
    assert lanes_of("__reduce_max_sync(t < 8 ? 0xffu : 0xffffff00u, t)") == [7] * 8 + [31] * 24
    assert lanes_of("__match_any_sync(~0u, t % 8)", 3) == [0x01010101, 0x02020202, 0x04040404]
    assert lanes_of("__match_all_sync(~0u, t / 64, &all)", 1) == [0]  # ~0u, and the predicate is 1
    assert lanes_of("__match_all_sync(~0u, t / 16, &all)", 1) == [0]


def test_who_reads_an_earlier_segment_is_not_accused():
    """Lanes 16 to 31 write 0 to 15, whatever ``n`` is."""
    text = """
__global__ void k(int* out, int n) {
  int t = threadIdx.x;
  int from = __shfl_xor_sync(0xffffffffu, t + n, 16, 16);
  out[t < 16 ? t + 16 : from - n] = t;
}
void go(int* out, int n) { k<<<1, 32>>>(out, n); }"""
    (kernel,) = check_text(Path("/k.cu"), text).kernels
    assert kernel.verdict is not Verdict.RACY


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("tile.any(t == 35)", [0] * 32 + [1] * 32),
        ("tile.all(t < 32)", [1] * 32 + [0] * 32),
        ("tile.match_any(t / 16) >> 16 != 0", [0] * 16 + [1] * 16 + [0] * 16 + [1] * 16),
        ("tile.shfl_up(t, 2)", [0, 1, 0, 1, 2]),
        ("cg::tiled_partition<8>(block).shfl_xor(t, 3)", [3, 2, 1, 0, 7, 6, 5, 4, 11]),
        ("__syncthreads_count(t % 8 == 1)", [8, 8]),
        ("__syncthreads_and(t >= 0) + 2 * __syncthreads_or(t > 64)", [1, 1]),
    ],
)
def test_an_execution_knows_what_threads_tell_one_another(expression: str, first: list[int]):
    text = f"""#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int* out) {{
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<32>(block);
  int t = threadIdx.x;
  int v = {expression};
  out[64 * v + t] = t;
}}"""
    trace = execute(lowered(text), LaunchConfig((64, 1, 1), (1, 1, 1)), {}, GPU)
    (store,) = [a for a in trace.paths[0].accesses if a.array.name == "out"]
    values = (np.broadcast_to(store.offset, 64) // 4 - np.arange(64)) // 64  # type: ignore[operator]
    assert values.tolist()[: len(first)] == first
