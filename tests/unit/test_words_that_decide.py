"""Messages name what decides: contents of lists, sizes of the access at hand, the array behind a helper."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.config import Settings
from cuda_lsp.model import Code, Finding, Status
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.conditions import Compared, Setting
from cuda_lsp.static.findings.words import LONGEST, fitted


def found(text: str, code: Code = Code.GLOBAL_RACE, budget: int = 200) -> list[Finding]:
    (kernel,) = check_text(Path("k.cu"), text, Settings(solver_budget=budget)).kernels
    return [f for f in kernel.findings if f.code is code]


FOLDED = """
__global__ void placed(int* out, const int* sizes, const int* steps, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, r = 0;
    if (i >= m) return;
    for (int k = 0; k < n; ++k) { r += i / sizes[k] * steps[k]; i %= sizes[k]; }
    out[r] = i;
}
void run(int* o, const int* s, const int* t, int n, int m) { placed<<<m / 256 + 1, 256>>>(o, s, t, n, m); }
"""


def test_a_place_that_a_loop_folds_up_hangs_on_the_contents_of_what_it_reads():
    assert {f.reason for f in found(FOLDED, budget=60)} == {"the contents of `sizes` and `steps`"}


LISTS = """
struct Lists { int owner[64]; int piece[64]; };
__global__ void listed(float* out, Lists lists, int most) {
    if (threadIdx.x == 0) out[lists.owner[blockIdx.x] * most + lists.piece[blockIdx.x]] = blockIdx.x;
}
void run(float* out, Lists lists, int most) { listed<<<64, 128>>>(out, lists, most); }
"""


def test_of_a_record_of_several_lists_nobody_says_that_it_holds_a_number_twice():
    (race,) = found(LISTS)
    assert race.reason == "the contents of `lists`"


PAIRS = """
__global__ void pairs(float2* d, int h, int w) {
    int x = 2 * (blockIdx.x * 32 + threadIdx.x);
    if (x >= w) return;
    for (int y = blockIdx.y * 16; y < min(blockIdx.y * 16 + 16, h); ++y)
        *(float2*)((float*)d + y * w + x) = make_float2(1, x);
}
void run(float2* d, int h, int w) { pairs<<<dim3((w + 63) / 64, (h + 15) / 16), 32>>>(d, h, w); }
"""


def test_threads_that_need_more_than_the_limit_say_with_which_value_they_are_seen():
    (race,) = found(PAIRS, budget=650)
    assert race.witness is not None and f"`h` > 1 (here {race.witness.values['h']})" in race.message
    assert race.condition == "`h` > 1"


def test_the_value_next_to_a_limit_is_not_told():
    limit = (Compared("n", ">", 24),)
    assert words.conditions(limit, shown={"n": 25}) == "`n` > 24"
    assert words.conditions(limit, shown={"n": 33}) == "`n` > 24 (here 33)"


def test_an_uncoalesced_access_of_a_helper_names_the_array():
    text = """
    __device__ float first(const float* p) { return p[0]; }
    __global__ void k(float* d, const float* rows, int w) { d[threadIdx.x] = first(rows + threadIdx.x * w); }
    void run(float* out, const float* rows, int w) { k<<<1, 256>>>(out, rows, w); }
    """
    (cost,) = found(text, Code.UNCOALESCED_ACCESS)
    assert "for p[0] (in rows) instead of 4" in cost.message


def test_an_example_leaves_out_sizes_that_the_access_does_not_come_from():
    text = """
    __global__ void k(float* out, const float* in, int wide, int high, int deep, int far) {
        __shared__ float s[640];
        for (int i = threadIdx.x; i < wide * 32; i += blockDim.x) s[i] = in[i];
        __syncthreads();
        if (blockIdx.x < high * deep) out[far * threadIdx.x] = s[threadIdx.x];
    }
    void run(float* o, const float* i, int w, int h, int d, int f) { k<<<h * d, 256>>>(o, i, w, h, d, f); }
    """
    messages = [f.message for f in found(text, Code.SHARED_OUT_OF_BOUNDS)]
    assert messages and not any(name in m for m in messages for name in ("high", "deep", "far", " more"))


def test_one_expression_and_one_block_are_told_once():
    actions = ("writes cell(x, y)", "reads cell(x, y)")
    told = words.race(
        words.RaceKind.WAR,
        "s[2]",
        ("thread 1 of block (0,1)", "thread 0 of block (0,1)"),
        actions,
        {},
        "none",
    )
    assert told == "WAR race on s[2]: in block (0,1) thread 1 writes and thread 0 reads cell(x, y); none"


def test_a_possible_race_of_long_names_is_not_cut_off():
    story = "possible WAR race on *parameters_of_all.weights32[tensor_id]"
    deeds = "one thread writes weights[tensor_id][store_pos] while another reads weights[tensor_id][load_pos]"
    doubt = "the contents of `block_to_tensor` and `block_to_chunk`"
    told = fitted(
        f"{story}: {deeds}; whether they meet depends on {doubt}",
        ("weights[tensor_id][store_pos]", "weights[tensor_id][load_pos]"),
    )
    assert len(told) <= LONGEST and told.endswith(f"; whether two threads meet depends on {doubt}")


def test_a_name_that_is_told_is_no_expression_to_cut():
    name = "converged_in_all_threads_of_it"
    story = f"possible WAW race on {name}: two threads write {name} (the same value)"
    told = fitted(f"{story}; whether they meet depends on the floats of `left`", (name,))
    ends = "two threads write it (the same value); whether they meet depends on the floats of `left`"
    assert told == f"possible WAW race on {name}: {ends}"


def test_a_possible_race_of_one_value_says_so():
    ending = words.ending((), None, race=True, met=False, same=True, under=Setting())
    assert ending == " (both write the same value); whether they meet depends on data"


def test_what_a_threads_own_array_is_made_of_is_named_and_not_its_contents():
    text = """
    __global__ void sliced(char* all, int pitch, int slice, int3 axis, int fixed, int w) {
        int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y, at[3];
        at[axis.x] = x; at[axis.y] = y; at[axis.z] = fixed;
        if (x < w) all[at[2] * slice + at[1] * pitch + at[0]] = x;
    }
    void run(char* all, int p, int s, int3 axis, int f, int w) {
        sliced<<<dim3((w + 31) / 32, 4), dim3(32, 4)>>>(all, p, s, axis, f, w);
    }
    """
    reasons = [f.reason or "" for f in found(text)]
    assert reasons and all("`axis." in reason and "contents" not in reason for reason in reasons)


LINES = """
struct Pixel { short red, green, blue, none; };
__global__ void k(Pixel* all, int pitch) {
    Pixel* at = (Pixel*)((char*)all + threadIdx.y * pitch) + threadIdx.x;
    at->red = threadIdx.x;
}
void run(Pixel* all, int pitch) { k<<<1, dim3(WIDE, 4)>>>(all, pitch); }
"""


def test_a_pitch_is_told_where_the_lanes_of_a_warp_lie_in_several_rows():
    (one_row,) = found(LINES.replace("WIDE", "32"), Code.UNCOALESCED_ACCESS)
    (two_rows,) = found(LINES.replace("WIDE", "16"), Code.UNCOALESCED_ACCESS)
    assert "pitch" not in one_row.message and "pitch" in two_rows.message


def test_a_cost_of_an_assumed_block_names_it_beside_an_example():
    (cost,) = found(LINES.partition("void run")[0], Code.UNCOALESCED_ACCESS)
    assert cost.message.endswith("(blocks of 16x16 are assumed)")


FROM_ONE = """
__global__ void k(float* points, const int* face, const int* place, int n) {
    if (blockIdx.x < n) points[place[25 * (face[blockIdx.x] - 1) + threadIdx.x] - 1] = FACTOR;
}
void run(float* points, const int* face, const int* place, int n) { k<<<n, 25>>>(points, face, place, n); }
"""


def test_no_place_before_an_array_is_told_where_contents_say_which_it_is():
    races = found(FROM_ONE.replace("FACTOR", "threadIdx.x"))
    assert races and not any("[-" in race.message for race in races)


FACES = """
__global__ void faces(float* sums, const int* face, const int* at, const float* d, int n) {
    int f = blockIdx.x, t = threadIdx.x;
    if (f >= n) return;
    int e = face[f] - 1, i = at[2 * (25 * f + t)] - 1, j = at[2 * (25 * f + t) + 1] - 1;
    sums[i + 5 * j + 25 * e] += d[t];
}
void run(float* sums, int* face, int* at, float* d, int n) { faces<<<n, 25>>>(sums, face, at, d, n); }
"""


def test_the_contents_of_an_example_lead_to_a_place_of_the_array():
    (race,) = [f for f in found(FACES, budget=650) if f.status is Status.CONDITIONAL]
    assert race.witness is not None and min(race.witness.index) >= 0


# ------------------------------------------------------------------------- which witness is told

ROWS_OF_BLOCKS = """
__global__ void shift(const float* in, float* out, int columns, int blocks_in_a_row) {
    __shared__ float s[34];
    int row = blockIdx.x / blocks_in_a_row;
    int first = (blockIdx.x - row * blocks_in_a_row) * blockDim.x;
    int width = columns - first < 32 ? columns - first : 32;
    s[threadIdx.x + 1] = in[first + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) s[width + 1] = 0.0f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = s[threadIdx.x + 1];
}
void run(float* a, float* b, int n, int m, int blocks) { shift<<<blocks, 32>>>(a, b, n, m); }
"""


def test_two_threads_of_the_first_block_are_told_where_they_meet_too() -> None:
    (kernel,) = check_text(Path("k.cu"), ROWS_OF_BLOCKS).kernels
    (race,) = (f for f in kernel.findings if f.code is Code.SHARED_RACE)
    assert race.witness is not None and race.witness.blocks is None
    assert race.witness.arguments["columns"] > 0 and race.witness.arguments["blocks_in_a_row"] > 0
    assert "block" not in race.message


STRIDES = """
__global__ void strided(const int* in, int* out, int n) {
    __shared__ int s[64];
    for (int i = blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) {
        s[threadIdx.x] = in[i + threadIdx.x];
        __syncthreads();
        out[i + threadIdx.x] = s[63 - threadIdx.x];
    }
}
void run(int* a, int* b, int n, int blocks) { strided<<<blocks, 64>>>(a, b, n); }
"""


def test_a_race_of_rounds_that_a_larger_grid_does_not_have_says_so() -> None:
    (race,) = found(STRIDES, Code.SHARED_RACE)
    assert race.status is Status.CONDITIONAL
    assert race.message.endswith("when for example `n` == 65 and the grid is one block")
    (whole,) = found(STRIDES.replace("gridDim.x * blockDim.x", "64"), Code.SHARED_RACE)
    assert "grid" not in whole.message


def test_what_a_helper_calls_it_is_told_as_its_name_for_the_array() -> None:
    text = """
__device__ void put(int* to, int v) { to[0] = v; }
__global__ void k(int* out) {
    __shared__ int s[64];
    put(s + threadIdx.x, 1);
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}
void run(int* a) { k<<<1, 64>>>(a); }
"""
    (race,) = found(text, Code.WARP_RACE)
    assert "thread 0 writes it as to[0]" in race.message
