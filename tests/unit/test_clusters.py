"""Clusters in the static analysis: what is said of blocks that reach one another's memory is so."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_clusters_on_emulator import CASES, HEAD, KERNEL

from cuda_lsp.model import RACES, Code, FileReport, KernelReport, Status, Verdict
from cuda_lsp.static.analyze import check_text

HAND_WRITTEN = ("ARRIVE", "far(", "near(")  # instructions
NAMES = [name for name, case in CASES.items() if not any(word in case.body for word in HAND_WRITTEN)]
LEFT_OPEN = {
    "block_leaves_while_others_read",
    "what_the_other_block_stored_decides",
    "numbers_of_one_block_as_places_of_another",
}
OF_ANY_GRID = [
    "exchange",
    "rounds",
    "stores_to_the_other_block",
    "halves_of_one_block_s_memory",
    "neighbours_store_one_place_further",
    "memory_of_all_ranks",
    "either_block_s_memory",
    "exchange_behind_a_block_barrier",
    "own_memory_overwritten_too_early",
    "rounds_without_the_trailing_barrier",
    "one_half_of_one_block_s_memory",
    "neighbours_read_one_place_further",
    "memory_of_all_ranks_while_it_changes",
    "either_block_s_memory_twice",
]
"""Those that the solver has to decide, or the first blocks show."""
GROUPS = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
PRELUDE = """__shared__ int s[64]; auto c = cg::this_cluster(); int t = threadIdx.x;
    int g = (blockIdx.y * gridDim.x + blockIdx.x) * 64 + t;"""


def checked(grid: str, names: list[str]) -> dict[str, KernelReport]:
    kernels = [(KERNEL % (name, CASES[name].body)).replace('extern "C" ', "") for name in names]
    hosts = [f"void f_{name}(int* p, int n) {{ {name}<<<{grid}, 64>>>(p); }}\n" for name in names]
    report = check_text(Path("k.cu"), HEAD + "".join(kernels + hosts))
    return {kernel.name: kernel for kernel in report.kernels}


def report_of(body: str, *, dims: str = "2, 1, 1", grid: str = "4", more: str = "") -> FileReport:
    attribute = f"__cluster_dims__({dims})" if dims else ""
    text = (
        f"{GROUPS}__global__ void {attribute} k(int* out, const int* in, int n) {{ {PRELUDE}\n{body}\n}}\n"
        f"void f(int* p, const int* q, int n, dim3 grid) {{ k<<<{grid}, 64>>>(p, q, n); }}\n{more}"
    )
    return check_text(Path("k.cu"), text)


def kernel_of(body: str, *, dims: str = "2, 1, 1", grid: str = "4") -> KernelReport:
    (kernel,) = report_of(body, dims=dims, grid=grid).kernels
    return kernel


@pytest.fixture(scope="module")
def reports() -> dict[str, KernelReport]:
    return checked("4", NAMES)


@pytest.fixture(scope="module")
def reports_of_any_grid() -> dict[str, KernelReport]:
    return checked("n", OF_ANY_GRID)


def is_true(kernel: KernelReport, name: str) -> bool:
    """Whether it is decided, and as the emulator sees it."""
    case = CASES[name]
    certain = [f for f in kernel.findings if f.code in RACES and f.status is not Status.POSSIBLE]
    assert case.races or not certain
    assert (kernel.verdict is Verdict.RACY) == bool(certain)
    assert not (case.races or case.ends) or kernel.verdict is not Verdict.RACE_FREE
    return kernel.verdict is not Verdict.UNDECIDED


@pytest.mark.parametrize("name", NAMES)
def test_what_the_emulator_sees_is_told(reports: dict[str, KernelReport], name: str) -> None:
    assert is_true(reports[name], name) == (name not in LEFT_OPEN)


@pytest.mark.parametrize("name", OF_ANY_GRID)
def test_grids_of_any_size_consist_of_clusters(
    reports_of_any_grid: dict[str, KernelReport], name: str
) -> None:
    assert is_true(reports_of_any_grid[name], name)


def test_a_race_names_both_blocks_and_what_is_missing() -> None:
    kernel = kernel_of(
        "s[t] = g; __syncthreads(); out[g] = c.map_shared_rank(s, c.block_rank() ^ 1)[t]; c.sync();"
    )
    (race,) = kernel.findings
    assert race.code is Code.SHARED_RACE
    assert race.witness is not None
    assert race.witness.blocks is not None
    assert set(race.witness.blocks) == {(0, 0, 0), (1, 0, 0)}
    assert "no cluster.sync() orders them" in race.message


@pytest.mark.parametrize(("dims", "across"), [("2, 2, 1", 2), ("1, 2, 1", 1), ("4", 3)])
@pytest.mark.parametrize(
    ("between", "verdict"), [("c.sync();", Verdict.RACE_FREE), ("__syncthreads();", Verdict.RACY)]
)
def test_clusters_have_any_shape(dims: str, across: int, between: str, verdict: Verdict) -> None:
    body = f"""s[t] = g; c.sync(); int v = c.map_shared_rank(s, c.block_rank() ^ {across})[63 - t];
    {between} s[t] = v; c.sync(); out[g] = v;"""
    assert kernel_of(body, dims=dims, grid="grid").verdict is verdict


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("out[g] = c.map_shared_rank(s, 1)[t]; c.sync();", "before it"),
        ("c.sync(); out[g] = c.map_shared_rank(s, 1)[t];", "behind it"),
        ("c.sync(); if (n) { out[g] = c.map_shared_rank(s, 1)[t]; c.sync(); } out[g] = 1;", ""),
        ("c.sync(); for (int i = 0; i < n; ++i) out[g] = c.map_shared_rank(s, 1)[t];", "behind it"),
        ("c.sync(); int v = 0; for (int i = 0; i < n; ++i) { v += c.map_shared_rank(s, 1)[t]; if (v) return;"
         " c.sync(); } out[g] = v;", "behind it"),
        ("if (g >= n) return; c.sync(); int v = c.map_shared_rank(s, 1)[t]; c.sync(); out[g] = v;", "early"),
        ("c.sync(); int* p = c.map_shared_rank(s, 1); out[g] = p[t];", "behind it"),
        ("c.sync(); auto token = c.barrier_arrive(); out[g] = c.map_shared_rank(s, 1)[t];"
         " c.barrier_wait(std::move(token));", "behind it"),
    ],
)  # fmt: skip
def test_blocks_must_be_there_while_others_use_their_memory(body: str, what: str) -> None:
    kernel = kernel_of(body)
    assert (kernel.verdict is Verdict.RACE_FREE) == (not what)
    assert any(what in reason for reason in kernel.reasons) or not what


def test_how_many_blocks_a_cluster_has_must_be_told() -> None:
    body = "s[t] = g; c.sync(); int v = c.map_shared_rank(s, c.block_rank() ^ 1)[t]; c.sync(); out[g] = v;"
    assert kernel_of(body, dims="").verdict is Verdict.UNDECIDED
    assert kernel_of(body, grid="3").reasons == (
        "its grid does not consist of whole clusters, so that it is not launched",
    )


def test_a_rank_that_is_not_there_is_outside_shared_memory() -> None:
    kernel = kernel_of("s[t] = g; c.sync(); int v = c.map_shared_rank(s, 2)[t]; c.sync(); out[g] = v;")
    (found,) = kernel.findings
    assert found.code is Code.SHARED_OUT_OF_BOUNDS
    assert "no block of that rank" in found.message


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("s[t] = g; if (blockIdx.x % 2) c.sync(); out[g] = s[t];", True),
        ("s[t] = g; if (blockIdx.x / 2 % 2) c.sync(); out[g] = s[t];", False),
        ("s[t] = g; if (t < 32) c.sync(); out[g] = s[t];", True),
    ],
)
@pytest.mark.parametrize("grid", ["4", "grid"])
def test_all_blocks_of_a_cluster_come_to_its_barriers(body: str, told: bool, grid: str) -> None:
    found = kernel_of(body, grid=grid).findings
    assert any(f.code is Code.BARRIER_DIVERGENCE and f.status is not Status.POSSIBLE for f in found) == told


@pytest.mark.parametrize(
    ("before", "verdict"), [("s[t] = g; BARRIER", Verdict.RACE_FREE), ("BARRIER s[t] = g;", Verdict.RACY)]
)
def test_cuda_s_own_functions(before: str, verdict: Verdict) -> None:
    barrier = "__cluster_barrier_arrive(); __cluster_barrier_wait();"
    far = "((int*)__cluster_map_shared_rank(s, __clusterRelativeBlockRank() ^ 1))"
    body = f"{before} int v = {far}[t]; BARRIER out[g] = v;".replace("BARRIER", barrier)
    assert kernel_of(body, grid="n").verdict is verdict


def test_a_pointer_that_changes_between_blocks_is_not_followed() -> None:
    body = """int *p = s, *q = c.map_shared_rank(s, c.block_rank() ^ 1);
    for (int k = 0; k < n; ++k) { c.sync(); p[t] = k; int* x = p; p = q; q = x; }
    c.sync(); out[g] = s[t];"""
    kernel = kernel_of(body, grid="n")
    assert kernel.verdict is Verdict.UNDECIDED
    assert "which block's memory `p` points to" in kernel.reasons


def test_data_may_lead_to_any_block() -> None:
    body = "s[t] = 0; BARRIER atomicAdd(c.map_shared_rank(&s[in[g] & 63], in[g] >> 6 & 1), 1); c.sync();"
    assert kernel_of(body.replace("BARRIER", "c.sync();"), grid="n").verdict is Verdict.RACE_FREE
    broken = kernel_of(body.replace("BARRIER", "__syncthreads();"), grid="n")
    assert broken.verdict is Verdict.RACY
    assert {f.status for f in broken.findings if f.code in RACES} == {Status.CONDITIONAL}
