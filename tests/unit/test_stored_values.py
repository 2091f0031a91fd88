"""Races of stores of one value that nobody computes: floats, what is reduced, what is copied."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from extract_kernels import kernel_text
from hypothesis import given
from hypothesis import strategies as st
from property_settings import examples

from cuda_lsp.config import Settings
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.ir.program import BinaryOp
from cuda_lsp.ir.types import Float
from cuda_lsp.ir.validate import violations
from cuda_lsp.model import Finding, RaceKind, Severity, Verdict
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.execution.equal_values import EqualValues
from cuda_lsp.static.execution.values import Data
from cuda_lsp.static.stored_values import is_open, with_stored_values
from cuda_lsp.static.tiers import enumerate_kernel

HEAD = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
"""


def text_of(body: str, block: int = 128, more: str = "") -> str:
    return f"""{HEAD}
__global__ void k(float* out, const float* in, int n) {{
    __shared__ float s[64];
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int t = threadIdx.x;
    float v = in[blockIdx.x * blockDim.x + t];
    {body}
    out[blockIdx.x * blockDim.x + t] = s[t / 32];
}}
{more}
void run(float* out, const float* in, int n) {{ k<<<16, {block}>>>(out, in, n); }}
"""


def stores(body: str, block: int = 128) -> list[Finding]:
    report = check_text(Path("k.cu"), text_of(body, block))
    assert not report.errors
    return [f for f in report.findings if f.kind and f.code.value == "shared-race"]


REDUCED = {
    "a tile reduces": "v = cg::reduce(warp, v, cg::plus<float>{});",
    "a tile hands round": "v = warp.shfl(v, 3);",
    "a butterfly": "for (int k = 16; k > 0; k /= 2) v += __shfl_xor_sync(0xffffffff, v, k);",
    "a butterfly upwards": "for (int k = 1; k < 32; k *= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, k));",
    "a butterfly of a tile": "for (int k = 16; k > 0; k /= 2) v = fmaxf(warp.shfl_xor(v, k), v);",
    "handed round": "v = __shfl_sync(0xffffffff, v, 0);",
    "down, then handed round": "for (int k = 16; k > 0; k /= 2) v += __shfl_down_sync(0xffffffff, v, k);"
    " v = __shfl_sync(0xffffffff, v, 0);",
    "two values": "float w = in[t / 32]; v = __shfl_sync(0xffffffff, v, 1) * w + 1.0f;",
    "after a loop": "for (int i = t; i < n; i += blockDim.x) v += in[i];"
    " v = cg::reduce(warp, v, cg::plus<float>{});",
    "after many rounds": "for (int i = t; i < 70000000; i += blockDim.x) v += in[i];"
    " v = cg::reduce(warp, v, cg::plus<float>{});",
    "one condition of the warp": "v = __shfl_sync(0xffffffff, v, 0); if (t / 32 == 1) v = v * 2.0f;",
}


@pytest.mark.parametrize("way", REDUCED)
def test_lanes_that_store_what_their_warp_agrees_on_store_one_value(way: str) -> None:
    (found,) = stores(f"{REDUCED[way]} s[t / 32] = v; __syncthreads();")
    assert found.same_value and found.effective_severity is Severity.INFORMATION
    assert "the same value" in found.message


DIFFERENT = {
    "each its own": "",
    "a step is missing": "for (int k = 8; k > 0; k /= 2) v += __shfl_xor_sync(0xffffffff, v, k);",
    "not commutative": "for (int k = 16; k > 0; k /= 2) v = v - __shfl_xor_sync(0xffffffff, v, k);",
    "half a warp": "v = __shfl_sync(0xffffffff, v, 0, 16);",
    "small tiles": "v = cg::reduce(cg::tiled_partition<8>(cg::this_thread_block()), v, cg::plus<float>{});",
    "down": "for (int k = 16; k > 0; k /= 2) v += __shfl_down_sync(0xffffffff, v, k);",
    "a lane adds": "v = __shfl_sync(0xffffffff, v, 0); if (t % 32 == 5) v += 1.0f;",
    "a lane chooses": "v = __shfl_sync(0xffffffff, v, 0) + (t % 2 ? 1.0f : 0.0f);",
    "a lane computes": "v = __shfl_sync(0xffffffff, v, 0) * t;",
    "a mask of each lane": "v = __shfl_sync(1u << (t % 32), v, t % 32);",
    "from a lane each": "v = __shfl_sync(0xffffffff, v, t % 2);",
    "a loop behind": "v = __shfl_sync(0xffffffff, v, 0); for (int i = t; i < n; i += blockDim.x) v += in[i];",
    "a float that decides": "float w = v; v = __shfl_sync(0xffffffff, v, 0); if (w > 1.0f) v = w;",
}


@pytest.mark.parametrize("way", DIFFERENT)
def test_lanes_that_may_store_different_values_are_an_error(way: str) -> None:
    found = stores(f"{DIFFERENT[way]} s[t / 32] = v; __syncthreads();")
    assert found and not any(f.same_value for f in found)
    assert all(f.effective_severity is Severity.ERROR for f in found)


INTEGERS = {
    "computed of the warp": "int w = t / 32 + 1; w = w * 3;",
    "counted in a loop": "int w = 1; for (int i = 0; i < 9; i++) w = w * 3 + i;",
    "handed round": "int w = __shfl_sync(0xffffffff, t, 5);",
    "a vote": "int w = __all_sync(0xffffffff, t > 3);",
    "an old vote": "int w = __any(t > 3);",
    "a vote on data": "int w = __popc(__ballot(in[t] > 3.0f)) + 1;",
}


@pytest.mark.parametrize("way", INTEGERS)
def test_lanes_that_store_an_integer_of_their_warp_store_one_value(way: str) -> None:
    (found,) = stores(f"{INTEGERS[way]} s[t / 32] = w; __syncthreads();")
    assert found.same_value and found.effective_severity is Severity.INFORMATION


DIFFERENT_INTEGERS = {
    "computed of half a warp": "int w = t / 16 + 1; w = w * 3;",
    "some lanes' own": "int w = t / 32; if (t == 70) w = 5;",
    "handed round in halves": "int w = __shfl_sync(0xffffffff, t, 0, 16);",
    "a vote, and a lane": "int w = __ballot(in[t] > 3.0f) >> t % 32;",
    "a vote of some": "int w = t % 32 < 16 ? __ballot(in[t] > 3.0f) : 0;",
}


@pytest.mark.parametrize("way", DIFFERENT_INTEGERS)
def test_lanes_that_may_store_different_integers_are_an_error(way: str) -> None:
    found = stores(f"{DIFFERENT_INTEGERS[way]} s[t / 32] = w; __syncthreads();")
    assert found and not any(f.same_value for f in found)
    assert all(f.effective_severity is Severity.ERROR for f in found)


def test_what_each_warp_votes_two_warps_do_not_share() -> None:
    found = stores("int w = __popc(__ballot(in[t] > 3.0f)); s[t / 64] = w; __syncthreads();")
    assert found and not any(f.same_value for f in found)


def test_warps_that_store_each_their_own_are_an_error() -> None:
    found = stores("v = cg::reduce(warp, v, cg::plus<float>{}); s[t / 64] = v; __syncthreads();")
    assert found and not any(f.same_value for f in found)


def test_warps_that_reduce_the_same_store_one_value() -> None:
    found = stores("v = cg::reduce(warp, in[t % 32], cg::plus<float>{}); s[t / 64] = v; __syncthreads();")
    assert [f.same_value for f in found] == [True]


def test_a_warp_that_is_not_whole_agrees_on_nothing() -> None:
    found = stores("v = __shfl_xor_sync(0xffffffff, v, 16); s[t / 32] = v; __syncthreads();", block=48)
    assert found and not any(f.same_value for f in found)


COPIES = """
__global__ void k(float* out, const float* in) {{
    __shared__ float s[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[{to}] = {what};
}}
void run(float* out, const float* in) {{ k<<<4, 64>>>(out, in); }}
"""


@pytest.mark.parametrize(
    ("to", "what", "same"),
    [
        ("i / 2", "in[i / 2]", True),
        ("i % 60", "in[i % 60] * 2.0f", True),
        ("i / 2", "in[i]", False),
        ("i / 2", "in[i / 4] + in[i / 2]", True),
        ("threadIdx.x", "in[threadIdx.x]", True),  # every block the same
        ("threadIdx.x", "s[threadIdx.x]", False),  # each block has an array of its own
        ("threadIdx.x", "in[blockIdx.x]", False),
    ],
)
def test_copies_of_one_element_are_of_one_value(to: str, what: str, same: bool) -> None:
    report = check_text(Path("k.cu"), COPIES.format(to=to, what=what))
    found = [f for f in report.findings if f.code.value == "global-race"]
    assert found and all(f.same_value is same for f in found)


def test_what_the_solver_finds_is_of_one_value_too() -> None:
    body = "if (n > 8) { v = cg::reduce(warp, v, cg::plus<float>{}); s[t / 32] = v; } __syncthreads();"
    assert [(f.same_value, f.effective_severity) for f in stores(body)] == [(True, Severity.INFORMATION)]


def test_a_look_that_is_cut_leaves_the_answer_and_is_made_again() -> None:
    translation = Translation(Path("k.cu"), text_of("v = warp.shfl(v, 0); s[t / 32] = v; __syncthreads();"))
    (source,) = translation.kernels()
    kernel, followed = translation.lower(source), translation.lower(source, valued=True)
    first = enumerate_kernel(kernel, Settings())
    assert is_open(first, kernel) and with_stored_values(first, kernel, Settings()) is first
    object.__setattr__(kernel, "followed", followed)
    cut = with_stored_values(first, kernel, Settings(), until=0.0)
    assert cut.cut and cut.findings == first.findings
    assert not cut.report.refined and cut.report.verdict is Verdict.UNDECIDED
    assert not any(f.kind is RaceKind.WAW for f in cut.report.findings)  # nobody is accused meanwhile


def test_followed_kernels_are_well_formed_and_forget_what_loops_add_up() -> None:
    body = "for (int i = t; i < n; i += 128) v += in[i]; s[t / 32] = v;"
    translation = Translation(Path("k.cu"), text_of(body))
    kernel = translation.lower(translation.kernels()[0], valued=True)
    assert not violations(kernel)
    assert "v = v +" not in kernel_text(kernel)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("__shfl_xor_sync"), st.sampled_from([1, 2, 3, 4, 8, 16, 31])),
        st.tuples(st.sampled_from(["__shfl_sync", "__shfl_up_sync", "__shfl_down_sync"]), st.integers(0, 31)),
        st.tuples(st.just("reduce"), st.sampled_from([4, 8, 16, 32])),
    ),
    max_size=6,
)


@examples(200)
@given(STEPS, st.lists(st.integers(0, 3), min_size=64, max_size=64), st.booleans())
def test_lanes_with_one_number_have_one_value(
    steps: list[tuple[str, int]], start: list[int], adds: bool
) -> None:
    """Beside the numbers, the values themselves, computed for numbers that look arbitrary."""
    from cuda_lsp.ir.exchanges import EXCHANGES, TILE_REDUCTION, source_lane

    lanes, full = np.arange(64), 0xFFFFFFFF
    data = Data(0, "", made=(("load", 1, Float(32), None), (np.array(start),)))
    value = np.array([hash((n, "x")) % 1009 for n in start], dtype=object)
    for serial, (name, by) in enumerate(steps, 1):
        if name == "reduce":
            data = Data(serial, "", made=(TILE_REDUCTION, (data, by)))
            value = np.array([sum(value[lane // by * by : lane // by * by + by]) for lane in lanes], object)
            continue
        other = Data(100 + serial, "", made=(name, (full, data, by, 32)))
        source = lanes - lanes % 32 + source_lane(EXCHANGES[name], lanes % 32, np.full(64, by), 32)
        read = value[source]
        if adds:
            data = Data(serial, "", made=((BinaryOp.ADD, Float(32)), (data, other)))
            value = value + read
        else:
            data, value = other, read
    numbers = EqualValues(64, 64).of(data)
    for number in set(numbers.tolist()):
        assert len(set(value[numbers == number])) == 1


def test_what_is_computed_in_thousands_of_steps_is_taken_to_differ() -> None:
    made = Data(0, "", made=(("load", 1, Float(32), None), (7,)))
    assert len(set(EqualValues(64, 64).of(made).tolist())) == 1
    for serial in range(1, 5000):
        made = Data(serial, "", made=((BinaryOp.ADD, Float(32)), (made, 1)))
    assert len(set(EqualValues(64, 64).of(made).tolist())) == 64


# --------------------------------------------------------------------------- between blocks


ALIKE_IN_A_BLOCK = {
    "read": "out[blockIdx.x / 2] = in[blockIdx.x];",
    "reduced": "if (t == 0) s[0] = v; __syncthreads(); out[blockIdx.x / 2] = s[0];",
    "guarded": "if (i < n) out[blockIdx.x / 2] = in[blockIdx.x];",
}
GRIDS = {"told": "16", "of any number": "n", "as many as it takes": "(n + 127) / 128"}


def between(body: str, grid: str) -> list[Finding]:
    text = f"""
__global__ void k(float* out, const float* in, int n) {{
    __shared__ float s[64];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    float v = in[i];
    {body}
}}
void run(float* out, const float* in, int n) {{ k<<<{grid}, 128>>>(out, in, n); }}
"""
    report = check_text(Path("k.cu"), text)
    return [f for f in report.findings if f.kind and f.code.value == "global-race"]


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
@pytest.mark.parametrize("body", ALIKE_IN_A_BLOCK.values(), ids=ALIKE_IN_A_BLOCK)
def test_what_a_block_agrees_on_differs_from_what_the_next_one_stores(body: str, grid: str):
    (race,) = between(body, grid)
    assert race.effective_severity <= Severity.WARNING
    assert not race.same_value
    assert race.witness
    assert race.witness.blocks is not None  # two threads of one block store one value


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
@pytest.mark.parametrize("body", ["out[0] = in[n - 1];", "if (i < n) out[0] = in[n - 1];"])
def test_what_all_threads_store_is_of_one_value_for_the_solver_too(body: str, grid: str):
    (race,) = between(body, grid)
    assert race.same_value


@pytest.mark.parametrize("value", ["in[i]", "in[t / 64]", "v", "in[n - 1] * t"])
def test_a_value_for_each_thread_stays_one_of_two_threads_of_a_block(value: str):
    (race,) = between(f"if (i < n) out[blockIdx.x] = {value};", "(n + 127) / 128")
    assert not race.same_value
    assert race.witness
    assert race.witness.blocks is None


TILE = """__global__ void k(const float* in, float* out, int m) {
    __shared__ float s[2][128];
    int tx = threadIdx.x, ty = threadIdx.y, i = tx + blockIdx.x * 128;
    for (int d = 0; d < 2; d++)
        for (int j = 0; j < 4; j++) s[d][tx + j * 32] = in[d * m + i + PLACE];
    __syncthreads();
    out[(blockIdx.x * 8 + ty) * 32 + tx] = s[0][tx + 3] + s[1][tx + 5];
}
void f(const float* a, float* o, int m) { k<<<m / 128, dim3(32, 8)>>>(a, o, m); }
"""


@pytest.mark.parametrize(
    ("place", "same"), [("j * 32", True), ("j * m", True), ("j * 32 + ty", False), ("j * ty", False)]
)
def test_rows_of_threads_that_copy_one_tile_store_one_value_a_round(place: str, same: bool) -> None:
    report = check_text(Path("k.cu"), TILE.replace("PLACE", place))
    (found,) = [f for f in report.findings if f.kind and f.code.value == "shared-race"]
    assert found.same_value is same


ROWS_OF_THREADS = """
struct Packed {{ int4 bits; }};
__device__ Packed load(const float* at) {{ return Packed{{*reinterpret_cast<const int4*>(at)}}; }}
__global__ void k(float* out, const float* in) {{
    __shared__ float s[256];
    __shared__ float4 v[64];
    __shared__ Packed p[64];
    int x = threadIdx.x, z = threadIdx.z;
    {body}
}}
void run(float* out, const float* in) {{ k<<<1, dim3(32, 1, 2)>>>(out, in); }}
"""


@pytest.mark.parametrize(
    ("body", "severity"),
    [
        ("v[x] = reinterpret_cast<const float4*>(in)[x];", Severity.INFORMATION),
        ("v[x] = reinterpret_cast<const float4*>(in)[x + z];", Severity.ERROR),
        ("p[x] = load(in + 4 * x);", Severity.INFORMATION),
        ("p[x] = load(in + 4 * x + 4 * z);", Severity.ERROR),
        ("v[x] = make_float4(in[x], in[x + 1], 0, 1);", Severity.INFORMATION),
        ("v[x] = make_float4(in[x], in[x + z], 0, 1);", Severity.ERROR),
        ("for (int c = x + z; c < 256; c += 32) s[c] = in[c];", Severity.INFORMATION),
        ("for (int c = x + z; c < 256; c += 32) s[c] = in[c + z];", Severity.ERROR),
    ],
)
def test_copies_of_one_place_are_of_one_value_records_and_other_rounds_included(
    body: str, severity: Severity
):
    text = ROWS_OF_THREADS.format(body=body)
    (kernel,) = check_text(Path("k.cu"), text, Settings(solver_budget=0)).kernels
    assert {f.effective_severity for f in kernel.findings if f.kind is not None} == {severity}


def test_copies_of_what_the_kernel_writes_may_differ():
    text = ROWS_OF_THREADS.format(body="for (int c = x + z; c < 256; c += 32) { s[c] = out[c]; out[c] = z; }")
    (kernel,) = check_text(Path("k.cu"), text, Settings(solver_budget=0)).kernels
    assert Severity.ERROR in {f.effective_severity for f in kernel.findings if f.array == "s"}


@pytest.mark.parametrize(
    ("value", "severity"),
    [
        ("in[threadIdx.x / n]", Severity.WARNING),
        ("numbers[threadIdx.x / n]", Severity.WARNING),
        ("threadIdx.x / n", Severity.WARNING),
        ("in[threadIdx.x * n]", Severity.WARNING),
        ("in[threadIdx.x]", Severity.ERROR),
        ("in[n]", Severity.INFORMATION),
        ("numbers[n]", Severity.INFORMATION),
    ],
)
def test_an_argument_that_decides_whether_values_differ_is_a_condition(value: str, severity: Severity):
    text = f"""
    __global__ void k(float* out, const float* in, const int* numbers, int n) {{ out[0] = {value}; }}
    void run(float* out, float* in, int* numbers, int n) {{ k<<<1, 64>>>(out, in, numbers, n); }}
    """
    (kernel,) = check_text(Path("k.cu"), text, Settings(solver_budget=0)).kernels
    (found,) = (f for f in kernel.findings if f.kind is not None)
    assert found.effective_severity is severity
    assert (found.condition is not None) == (severity is Severity.WARNING)


@pytest.mark.parametrize(
    ("exchange", "alike"),
    [
        ("for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);", True),
        ("for (int o = 16; o; o >>= 1) v = max(v, __shfl_xor_sync(~0u, v, o));", True),
        ("for (int o = 16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o);", False),
        ("for (int o = 16; o > 1; o >>= 1) v += __shfl_xor_sync(~0u, v, o);", False),
        ("for (int o = 16; o; o >>= 1) v -= __shfl_xor_sync(~0u, v, o);", False),
    ],
)
def test_integers_that_lanes_exchange_are_of_one_value_too(exchange: str, alike: bool) -> None:
    kernel = f"""__global__ void k(const int* x, int* sum) {{
    int i = blockIdx.x * 128 + threadIdx.x, v = x[i];
    {exchange}
    sum[i / 32] = v;
}}
"""
    report = check_text(Path("k.cu"), kernel + "void f(int* x, int* s) { k<<<8, 128>>>(x, s); }\n")
    (store,) = (f for f in report.findings if f.kind is not None)
    assert store.same_value is alike
    assert store.effective_severity is (Severity.INFORMATION if alike else Severity.ERROR)


@pytest.mark.parametrize(
    ("stored", "same"), [("~0ull", True), ("1ull << 63", True), ("~0ull - threadIdx.x", False)]
)
def test_numbers_of_64_bits_without_a_sign_are_compared_like_others(stored: str, same: bool) -> None:
    text = f"__global__ void k(unsigned long long* out) {{ out[threadIdx.x / 2] = {stored}; }}"
    report = check_text(Path("k.cu"), f"{text} void f(unsigned long long* o) {{ k<<<1, 64>>>(o); }}")
    assert not report.errors
    assert {found.same_value for found in report.findings if found.kind} == {same}
