"""Repairs: what is done to which finding, and that only what the finished analysis bears out is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT, Settings
from cuda_lsp.model import Code, Severity, Verdict
from cuda_lsp.repair import RepairKind
from tests.mending import mended, races

DEMO = Path(__file__).parents[2] / "fixtures" / "demo"


def kernel(body: str, threads: int = 64, parameters: str = "int* out, const int* in, int n") -> str:
    names = ", ".join(part.split("*")[-1].split()[-1] for part in parameters.split(","))
    return (
        f"__global__ void k({parameters}) {{\n{body}\n}}\n"
        f"void f({parameters}) {{ k<<<4, {threads}>>>({names}); }}\n"
    )


def after(text: str, **options: object) -> str:
    """What all repairs make of a text."""
    return mended(text, **options).text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "kind", "line"),
    [
        (
            "divergent",
            RepairKind.LIFTED_BARRIER,
            "    }\n    __syncthreads();\n    if (tid < 64) {\n        s_out",
        ),
        ("last_warp", RepairKind.LOCK_STEP, "__syncwarp(); s[tid] = sum; __syncwarp(); }"),
        ("matmul", RepairKind.BARRIER, "bs[k][tx];\n        __syncthreads();\n    }\n"),
        ("neighbour", RepairKind.BARRIER, "s[id] = id;\n    __syncthreads();\n    out"),
        ("transpose", RepairKind.PADDING, "tile[TILE][TILE + 1];"),
    ],
)
def test_each_file_of_the_demo_has_its_right_repair(name: str, kind: RepairKind, line: str) -> None:
    found = mended((DEMO / f"{name}.cu").read_text())
    assert [repair.kind for repair in found.repairs] == [kind]
    assert line in found.text
    assert not found.report.findings and found.report.kernels[0].verdict is Verdict.RACE_FREE


# ------------------------------------------------------------------------------------- barriers

TILES = """
    __shared__ int s[64];
    int t = threadIdx.x, sum = 0;
    for (int r = 0; r < n; r++) {
        s[t] = in[r * 64 + t];
%s        for (int j = 0; j < 64; j++)
            sum += s[j];
    }
    out[blockIdx.x * 64 + t] = sum;"""


def test_a_round_of_tiles_gets_both_its_barriers_and_the_inner_loop_none() -> None:
    found = after(kernel(TILES % ""))
    assert found == kernel(
        TILES.replace("sum += s[j];", "sum += s[j];\n        __syncthreads();") % "        __syncthreads();\n"
    )


def test_a_body_without_braces_gets_them() -> None:
    body = """
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = in[t];
    for (int k = 64; k > 0; k /= 2)
        if (t < k) s[t] += s[t + k];
    if (t == 0) out[blockIdx.x] = s[0];"""
    found = mended(kernel(body, 128))
    assert not races(found.report) and found.report.kernels[0].verdict is Verdict.RACE_FREE
    assert "{ if (t < k) s[t] += s[t + k]; __syncthreads(); }" in found.text


def test_a_statement_that_reads_what_others_write_in_it_is_taken_apart() -> None:
    body = "__shared__ int s[65]; int t = threadIdx.x; s[t] = t; __syncthreads();\ns[t] = s[t + 1];"
    found = mended(kernel(body))
    assert "const auto value = s[t + 1]; __syncthreads(); s[t] = value;" in found.text
    assert not races(found.report)


def test_lanes_are_not_ordered_where_only_some_of_them_come() -> None:
    body = """
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    for (int k = 32; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
    }
    if (t == 0) out[blockIdx.x] = s[0];"""
    found = mended(kernel(body))
    assert found.text == kernel(body.replace("s[t + k];\n", "s[t + k];\n        __syncwarp();\n"))
    assert found.report.kernels[0].verdict is Verdict.RACE_FREE


def test_a_scan_in_place_is_taken_apart_outside_of_its_branch() -> None:
    body = """
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    for (int k = 1; k < 64; k *= 2) {
        if (t >= k) s[t] += s[t - k];
        __syncthreads();
    }
    out[blockIdx.x * 64 + t] = s[t];"""
    found = mended(kernel(body))
    update = "const auto value = taken ? s[t] + (s[t - k]) : 0; __syncthreads(); if (taken) s[t] = value; }"
    assert f"{{ const bool taken = t >= k; {update}" in found.text
    assert found.report.kernels[0].verdict is Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("copy", "committed"),
    [("__pipeline_commit();", ""), ("", "__pipeline_commit(); ")],
    ids=["wait", "commit"],
)
def test_a_copy_that_nobody_waited_for_is_waited_for_before_the_barrier(copy: str, committed: str) -> None:
    body = f"""
    __shared__ int s[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &in[t], sizeof(int)); {copy}
    __syncthreads();
    out[blockIdx.x * 64 + t] = s[63 - t];"""
    text = "#include <cuda_pipeline.h>\n" + kernel(body)
    found = mended(text)
    wait = f"    {committed}__pipeline_wait_prior(0);\n    __syncthreads();\n"
    assert found.text == text.replace("    __syncthreads();\n", wait)
    assert found.report.kernels[0].verdict is Verdict.RACE_FREE


def test_a_copy_of_a_group_is_waited_for_by_it() -> None:
    body = """
    namespace cg = cooperative_groups;
    __shared__ int s[64];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, s, in, sizeof(s));
    out[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];"""
    head = "#include <cooperative_groups.h>\n#include <cooperative_groups/memcpy_async.h>\n"
    found = mended(head + kernel(body))
    assert "    cg::wait(block); __syncthreads();\n    out[" in found.text
    assert not races(found.report)


def test_a_barrier_is_put_before_the_pragma_of_a_loop() -> None:
    body = """
    __shared__ int s[64];
    int t = threadIdx.x, sum = 0;
    s[t] = t;
    #pragma unroll
    for (int j = 0; j < 64; j++) sum += s[j];
    out[blockIdx.x * 64 + t] = sum;"""
    assert "s[t] = t;\n    __syncthreads();\n    #pragma unroll\n    for" in after(kernel(body))


def test_accesses_in_a_function_are_ordered_where_it_is_called() -> None:
    body = """
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = t;
    out[blockIdx.x * 64 + t] = next(s, t);"""
    text = "__device__ int next(const int* s, int t) { return s[(t + 1) % 64]; }\n" + kernel(body)
    assert "s[t] = t;\n    __syncthreads();\n    out" in after(text)


def test_lines_end_as_the_others_do() -> None:
    text = kernel(TILES % "").replace("\n", "\r\n")
    found = after(text)
    assert found.count("\n") == found.count("\r\n") == text.count("\n") + 2


def test_a_race_in_a_branch_that_not_all_enter_gets_its_barrier_outside() -> None:
    body = """
    __shared__ int s[129];
    int t = threadIdx.x;
    s[t] = t;
    __syncthreads();
    if (t < in[0]) {
        s[t] = 1 + t;
        out[blockIdx.x * 128 + t] = s[t + 1];
    }"""
    found = mended(kernel(body, 128))
    assert "const bool taken = t < in[0];\n    if (taken) {\n        s[t] = 1 + t;\n    }\n" in found.text
    assert "    }\n    __syncthreads();\n    if (taken) {\n        out[" in found.text
    assert not races(found.report)


def test_what_the_analysis_cannot_follow_is_not_called_verified() -> None:
    body = """
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = t;
    out[blockIdx.x * 64 + t] = s[63 - t];
    while (unknown(out)) { }"""
    found = mended("__device__ bool unknown(int*);\n" + kernel(body))
    before = {k.reasons for k in found.report.kernels}
    assert all(f.code is not Code.BARRIER_DIVERGENCE for f in found.report.findings), before


def test_blocks_are_not_ordered_by_a_barrier_of_theirs() -> None:
    found = mended(kernel("out[threadIdx.x] = blockIdx.x;"), kinds=frozenset({RepairKind.BARRIER}))
    assert races(found.report) and not found.repairs


# --------------------------------------------------------------------------------------- atomics


@pytest.mark.parametrize(
    ("update", "atomic"),
    [
        ("count[0]++;", "atomicAdd(&count[0], 1);"),
        ("++*count;", "atomicAdd(count, 1);"),
        ("*count += in[t];", "atomicAdd(count, in[t]);"),
        ("count[0] -= 2;", "atomicAdd(&count[0], -(2));"),
        ("count[0] = count[0] + in[t] * 2;", "atomicAdd(&count[0], in[t] * 2);"),
        ("count[0] |= 1 << t;", "atomicOr(&count[0], 1 << t);"),
        ("count[0] = max(count[0], in[t]);", "atomicMax(&count[0], in[t]);"),
        ("if (in[t] > *count) *count = in[t];", "atomicMax(count, in[t]);"),
        ("if (t > 3 && count[0] > t) count[0] = t;", "if (t > 3) atomicMin(&count[0], t);"),
        ("int slot = (*count)++;", "int slot = atomicAdd(count, 1);"),
        ("int slot = 2 * count[0]--;", "int slot = 2 * atomicAdd(&count[0], -(1));"),
        ("if (in[t] == 6) *count = 1;", "if (in[t] == 6) atomicExch(count, 1);"),
        ("atomicAdd_block(count, t);", "atomicAdd(count, t);"),
    ],
)
def test_an_update_that_many_make_becomes_atomic(update: str, atomic: str) -> None:
    text = kernel(f"    int t = threadIdx.x;\n    {update}", parameters="int* count, const int* in")
    found = mended(text)
    assert found.text == text.replace(update, atomic)
    assert found.report.kernels[0].verdict is Verdict.RACE_FREE


def test_a_histogram_that_a_warp_keeps_in_lock_step_counts_atomically() -> None:
    body = """
    __shared__ int h[2][64];
    int t = threadIdx.x;
    h[t / 32][t % 32] = 0; h[t / 32][t % 32 + 32] = 0;
    __syncthreads();
    h[t / 32][in[t] & 63] += 1;
    __syncthreads();
    out[blockIdx.x * 64 + t] = h[0][t] + h[1][t];"""
    found = mended(kernel(body))
    assert "atomicAdd(&h[t / 32][in[t] & 63], 1);" in found.text and not races(found.report)


@pytest.mark.parametrize(
    "update",
    [
        "count[0] = count[0] - in[t] - 1;",  # the rest is not one value
        "count[0] *= 2;",
        "int old = ++count[0]; in2[old] = t;",
        "if (in[t] > count[0]) count[0] = in[t]; else t = 0;",
    ],
)
def test_what_is_no_plain_update_stays(update: str) -> None:
    text = kernel(f"int t = threadIdx.x; {update}", parameters="int* count, const int* in, int* in2")
    assert update.partition(";")[0] in after(text)


def test_there_is_no_atomic_for_bytes() -> None:
    text = kernel("count[0] += 1;", parameters="char* count")
    assert after(text) == text


# ---------------------------------------------------------------------------------- bank conflicts

COLUMN = """
    __shared__ float tile[32][32];
    int x = threadIdx.x % 32, y = threadIdx.x / 32;
    tile[y][x] = in[threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 1024 + threadIdx.x] = tile[x][y];"""
FLOATS = "float* out, const float* in"


def test_rows_that_a_pointer_walks_over_are_not_padded() -> None:
    for use in ("float* p = tile[0];", "float* p = &tile[0][0];"):
        text = kernel(COLUMN + use + " out[0] = p[40];", 1024, FLOATS)
        assert "32 + 1" not in after(text) and "^" not in after(text)


@pytest.mark.parametrize(
    "use",
    [
        "tile[0][threadIdx.x] = in[threadIdx.x];",  # all rows, by one
        "SAVE(threadIdx.x);",
    ],
)
def test_rows_that_are_reached_in_other_ways_are_not_padded(use: str) -> None:
    macro = "#define SAVE(i) (&tile[0][0])[i] = in[i]\n"
    text = macro + kernel(COLUMN.replace("tile[y][x] = in[threadIdx.x];", use), 1024, FLOATS)
    found = mended(text)
    assert any(f.code is Code.BANK_CONFLICT for f in found.report.findings) and found.text == text


def test_columns_are_permuted_where_a_pad_has_no_room() -> None:
    text = kernel("__shared__ float most[11264]; most[threadIdx.x] = 1;" + COLUMN, 1024, FLOATS)
    found = mended(text)
    assert [repair.kind for repair in found.repairs] == [RepairKind.SWIZZLE]
    assert "tile[x][(y) ^ ((x) % 32)]" in found.text and "tile[y][(x) ^ ((y) % 32)]" in found.text
    assert not found.report.findings


def test_a_padded_array_says_what_it_saves_and_costs() -> None:
    (repair,) = mended(kernel(COLUMN, 1024, FLOATS)).repairs
    assert repair.title == "Pad the rows of tile by 1 (32 → 1 wavefronts, 128 bytes more)"


# -------------------------------------------------------------------------- barriers that are there


def test_a_condition_that_changes_is_kept_when_a_barrier_is_lifted_out() -> None:
    body = """
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = t;
    __syncthreads();
    if (t < 32) {
        s[t] += s[t + 32];
        t = 63 - t;
        __syncthreads();
        out[blockIdx.x * 64 + t] = s[63 - t];
    }"""
    found = mended(kernel(body), settings=PATIENT)
    assert "const bool taken = t < 32;\n    if (taken) {" in found.text
    assert "    }\n    __syncthreads();\n    if (taken) {" in found.text
    assert not found.report.findings


def test_a_barrier_at_the_end_of_a_branch_is_put_behind_it() -> None:
    body = """
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 32) {
        s[t] = t;
        __syncthreads();
    }
    out[blockIdx.x * 64 + t] = s[t % 32];"""
    assert "s[t] = t;\n    }\n    __syncthreads();\n    out" in after(kernel(body))


def test_a_number_that_what_follows_needs_is_declared_before_the_branch() -> None:
    body = """
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = t;
    if (t < 32) {
        int mine = s[t];
        __syncthreads();
        out[blockIdx.x * 64 + t] = mine;
    }"""
    found = mended(kernel(body))
    assert "int mine = 0;\n    if (t < 32) {\n        mine = s[t];\n    }\n    __syncthreads();" in found.text
    assert not found.report.findings


def test_a_barrier_is_not_lifted_away_from_a_variable_that_what_follows_needs() -> None:
    body = """
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = t;
    if (t < 32) {
        int& mine = s[t];
        __syncthreads();
        out[blockIdx.x * 64 + t] = mine;
    }"""
    assert after(kernel(body)) == kernel(body)


def test_a_barrier_of_an_else_if_is_not_lifted_out() -> None:
    body = """
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = t;
    __syncthreads();
    if (t < 32) {
        s[t] = 0;
    } else if (t < 64) {
        s[t] += s[t + 64];
        __syncthreads();
        out[blockIdx.x * 128 + t] = s[95 - t];
    }"""
    assert after(kernel(body, 128)) == kernel(body, 128)


def test_what_has_an_effect_is_not_written_twice() -> None:
    body = "__shared__ int s[65]; int t = threadIdx.x, i = t; s[t] = t; __syncthreads();\ns[i++] += s[t + 1];"
    found = mended(kernel(body))
    assert races(found.report) and found.text == kernel(body)


REDUNDANT = Settings(severity={Code.REDUNDANT_BARRIER: Severity.INFORMATION})


def test_a_barrier_that_orders_nothing_is_removed_with_its_line() -> None:
    body = "    int t = threadIdx.x;\n    __syncthreads();\n    out[blockIdx.x * 64 + t] = t;"
    assert after(kernel(body), settings=REDUNDANT) == kernel(body.replace("    __syncthreads();\n", ""))


def test_of_two_barriers_that_can_each_do_without_the_other_one_stays() -> None:
    body = """
    __shared__ int s[64];
    s[threadIdx.x] = 1;
    __syncthreads();
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];"""
    assert after(kernel(body), settings=REDUNDANT).count("__syncthreads();") == 1


def test_a_barrier_that_is_all_of_a_branch_is_not_taken_from_it() -> None:
    body = "int t = threadIdx.x;\n    if (n > 3)\n        __syncthreads();\n    out[blockIdx.x * 64 + t] = t;"
    found = mended(kernel(body), settings=REDUNDANT)
    assert [f.code for f in found.report.findings] == [Code.REDUNDANT_BARRIER] and found.text == kernel(body)


# ----------------------------------------------------------------------------------------- guards


def test_an_else_stays_with_its_branch() -> None:
    body = "__shared__ int s[64]; int t = threadIdx.x;\n    if (n > 3) s[t + 1] = t; else s[t] = 2;"
    found = mended(kernel(body))
    assert "if (n > 3) { if (t + 1 < 64) s[t + 1] = t; } else s[t] = 2;" in found.text


@pytest.mark.parametrize(
    ("access", "guarded"),
    [
        ("s[t + 1] = t;", "if (t + 1 < 64) s[t + 1] = t;"),
        ("int a = s[t + 1]; out[blockIdx.x * 64 + t] = a;", "int a = (t + 1 < 64 ? s[t + 1] : 0);"),
        ("s[t - 1] = t;", "if (t - 1 >= 0) s[t - 1] = t;"),
    ],
)
def test_an_access_behind_the_end_is_guarded_and_that_is_no_safe_repair(access: str, guarded: str) -> None:
    text = kernel(f"    __shared__ int s[64]; int t = threadIdx.x; s[t] = t; __syncthreads();\n    {access}")
    found = mended(text)
    assert guarded in found.text
    assert [r.keeps_meaning for r in found.repairs if r.kind is RepairKind.GUARD] == [False]
    assert all(f.code is not Code.SHARED_OUT_OF_BOUNDS for f in found.report.findings)
