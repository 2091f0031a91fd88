"""What a kernel asks of its buffers, and the runs that are made of it."""

from __future__ import annotations

import sys
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cuda_lsp.batch.analysis import analysed
from cuda_lsp.batch.asked import Asked, Plan
from cuda_lsp.confirm import CheckOptions, kernel_jobs
from cuda_lsp.dynamic.inputs import LARGEST, arguments, first_sizes
from cuda_lsp.dynamic.job import CheckJob, ElementKind, Parameter, Piece, Trial
from cuda_lsp.model import FileReport, LaunchConfig
from cuda_lsp.readings import Reading
from cuda_lsp.static.analyze import Analyzer
from cuda_lsp.static.run_needs import contents_for


def job(folder: Path, text: str) -> CheckJob:
    """The job of the only kernel of a text."""
    source = folder / "a.cu"
    source.write_text(text)
    (found,) = planned(source, partial(kernel_jobs, CheckOptions(), ()))
    return found


def planned(source: Path, plan: Plan) -> Any:
    """What a plan makes of a file."""
    return analysed(Reading(source), Asked(plan=plan), lambda report: None).planned


def test_buffers_are_as_large_as_the_last_block_reaches(tmp_path):
    made = job(
        tmp_path,
        "__global__ void far(int* out, const float* in) {"
        " out[(blockIdx.x * 256 + threadIdx.x) * 1000] = in[threadIdx.x + 100000]; }\n"
        "void launch(int* o, float* i) { far<<<64, 256>>>(o, i); }\n",
    )
    trial = made.trials[0]
    assert trial.needs == {"out": (64 * 256 - 1) * 4000 + 4, "in": (100000 + 256) * 4}
    sizes = first_sizes(made.parameters, trial)
    assert sizes["out"] >= trial.needs["out"]
    assert sizes["in"] >= trial.needs["in"]


@pytest.mark.parametrize(
    ("index", "limit"),
    [("x[i]", 16), ("2 * x[i]", 8), ("x[i] & 15", 64), ("x[x[i]] + 1", 16), ("(x[i] << 2) + 3", 4)],
)
def test_values_stay_below_what_they_index(tmp_path, index, limit):
    made = job(
        tmp_path,
        f"__global__ void hist(const int* x) {{ __shared__ int h[16]; int i = threadIdx.x;"
        f" int k = {index}; atomicAdd(&h[k], 1); }}\nvoid launch(int* x) {{ hist<<<1, 64>>>(x); }}\n",
    )
    (piece,) = made.parameters[0].pieces
    assert piece.limit == limit
    (argument,) = arguments(made.parameters, made.trials[0], first_sizes(made.parameters, made.trials[0]), 1)
    values = argument.pointers[0][1].data.view(np.int32)
    assert set(values.tolist()) == set(range(limit))


RACE = """__global__ void k(int* out, const int* x, const unsigned char* m, int n) {{
    __shared__ int s[256];
    int t = threadIdx.x;
    {before}
    s[t] = t;
    {after}
    out[t] = s[255 - t];
}}
void launch(int* o, int* x, unsigned char* m, int n) {{ k<<<1, 256>>>(o, x, m, n); }}
"""


@pytest.mark.parametrize(
    ("end", "ascending"),
    [("row[v + 1]", True), ("*(row + v + 1)", True), ("row[v + 2]", False), ("row[v] + 4", False)],
)
def test_offsets_of_rows_ascend(tmp_path, end, ascending):
    made = job(
        tmp_path,
        "__global__ void twice(const int* row, float* w, int n) { int v = blockIdx.x * 64 + threadIdx.x;"
        f" if (v < n) for (int e = row[v]; e < {end}; e++) w[e] *= 2; }}\n"
        "void launch(int* r, float* w, int n) { twice<<<8, 64>>>(r, w, n); }\n",
    )
    (piece,) = made.parameters[0].pieces
    assert piece.ascending is ascending
    found = arguments(made.parameters, made.trials[0], first_sizes(made.parameters, made.trials[0]), 1)
    values = found[0].pointers[0][1].data.view(np.int32)
    assert bool((np.diff(values) >= 0).all()) is ascending
    assert len(set(values[:64].tolist())) > 16  # the rows that are read are not all empty


def test_a_forest_leads_down_and_counters_start_at_zero(tmp_path):
    made = job(
        tmp_path,
        "__global__ void unite(int* parent, int* joined, int n) {"
        " int v = blockIdx.x * 64 + threadIdx.x;"
        " if (v < n && atomicCAS(&parent[parent[v]], v, v - 1) == v) atomicAdd(joined, 1); }\n"
        "void launch(int* p, int* j, int n) { unite<<<8, 64>>>(p, j, n); }\n",
    )
    found = arguments(made.parameters, made.trials[0], first_sizes(made.parameters, made.trials[0]), 1)
    parent, joined = (found[k].pointers[0][1].data.view(np.int32) for k in (0, 1))
    assert (parent <= np.arange(len(parent))).all() and len(set(parent.tolist())) > 16
    assert not joined.any()


def test_the_contents_of_a_solvers_witness_are_used(tmp_path):
    made = job(tmp_path, RACE.format(before="", after="if (x[5] != 1234567) __syncthreads();"))
    under = made.trials[1]
    assert "1234567" in under.why
    assert ("x", 20, 1234567) in under.cells
    x = arguments(made.parameters, under, first_sizes(made.parameters, under), 0)[1].pointers[0][1].data
    assert x.view(np.int32)[5] == 1234567


def test_arguments_of_a_condition_are_used(tmp_path):
    made = job(tmp_path, RACE.format(before="if (n != 77) return;", after=""))
    assert made.trials[1].scalars["n"] == 77


def test_pointers_into_one_buffer_are_passed_as_the_source_passes_them(tmp_path):
    made = job(
        tmp_path,
        "__global__ void k(int* a, int* b, int n) { a[threadIdx.x] = b[threadIdx.x] + n; }\n"
        "void launch(int* d, int n) { k<<<1, 64>>>(d, d + 2 * n, n); }\n",
    )
    trial = made.trials[0]
    behind = 8 * trial.scalars.get("n", 64)
    assert trial.placed == {"b": ("a", behind)}
    a, b, _ = arguments(made.parameters, trial, first_sizes(made.parameters, trial), 0)
    assert a.pointers[0][1] is b.pointers[0][1]
    assert int.from_bytes(a.address(0, 1024), "little") == 1024
    assert int.from_bytes(b.address(0, 1024), "little") == 1024 + behind


def test_without_a_witness_one_value_is_sought_for_the_conditions_in_front(tmp_path):
    source = tmp_path / "a.cu"
    source.write_text(RACE.format(before="if (x[0] <= 5000 || m[3] + 1 != 201) return;", after=""))

    def contents(analyzer: Analyzer, text: str, report: FileReport) -> dict[str, float]:
        (finding, *_) = report.kernels[0].findings
        kernel = analyzer.kernel(source, "k")
        assert kernel is not None
        launch = LaunchConfig((256, 1, 1), (1, 1, 1))
        return contents_for(kernel, evolve(finding, witness=None), launch, {})

    assert planned(source, contents) == {"x": 5001, "m": 200}


def test_what_only_a_possible_race_needs_is_not_made_up(tmp_path):
    made = job(
        tmp_path,
        "__global__ void scatter(int* out, const int* index) { int k = index[threadIdx.x];"
        " if (k >= 0) out[k] = threadIdx.x; }\nvoid launch(int* o, int* i) { scatter<<<1, 64>>>(o, i); }\n",
    )
    assert not any(trial.cells or trial.contents for trial in made.trials)


def test_lanes_merged_from_numbers_are_as_wide_as_what_is_done_with_them(tmp_path):
    made = job(
        tmp_path,
        "__global__ void k(int* out, const size_t n) { size_t k = 1024; if (threadIdx.x < 8) k = 512;"
        " out[(k << 25) >> 23] = 1; }\nvoid launch(int* o) { k<<<1, 64>>>(o, 9); }\n",
    )
    assert made.trials[0].needs == {"out": (1024 << 2) * 4 + 4}


@pytest.mark.parametrize(
    ("contents", "element", "forest"),
    [(ElementKind.INTEGER, 1, False), (ElementKind.INTEGER, 4, True), (ElementKind.FLOAT, 4, False)],
)
def test_contents_of_a_large_buffer_take_little_more_than_it(contents, element, forest):
    size = LARGEST // 2
    piece = Piece("p", 0, 8, True, element, contents, forest=forest)
    trial = Trial(LaunchConfig((32, 1, 1), (1, 1, 1)))
    tracemalloc.start()
    try:
        (made,) = arguments((Parameter("p", (piece,), 8),), trial, {"p": size}, 7)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1.7 * size
    random, count = np.random.default_rng(7), size // element  # the same as if they were drawn at once
    if contents is ElementKind.FLOAT:
        expected = random.random(count).astype("f4")
    else:
        below = np.minimum(np.arange(count) + 1, piece.limit) if forest else piece.limit
        expected = random.integers(0, below, count).astype(f"u{element}")
    assert (made.pointers[0][1].data == expected.view(np.uint8)).all()


def branches(numbers: range) -> str:
    """A kernel with a race under each of so many conditions."""
    parts = "".join(
        f"    if (n == {k}) {{ __shared__ int s{k}[64]; s{k}[t] = t; p[b + t] = s{k}[63 - t]; }}\n"
        for k in numbers
    )
    return (
        f"__global__ void k(int* p, int n) {{\n    int t = threadIdx.x, b = blockIdx.x * 64;\n{parts}}}\n"
        "void f(int* p, int n) { k<<<2, 64>>>(p, n); }\n"
    )


def test_conditions_beyond_the_eighth_run_are_told(tmp_path: Path) -> None:
    made = job(tmp_path, branches(range(2001, 2013)))
    shown = [pair for trial in made.trials for pair in trial.shows or ()]
    assert len(made.trials) == 8
    assert len(shown) == 7
    assert set(made.untried.values()) == {"8 runs are made at most"}
    assert {*shown, *made.untried} == set(made.suspects)


def test_an_argument_that_is_too_large_to_be_tried_is_told(tmp_path: Path) -> None:
    made = job(tmp_path, branches(range(100_000_000, 100_000_001)))
    (why,) = made.untried.values()
    assert why == "it needs `n` == 100000000, and arguments are 16,777,216 at most"


def test_buffers_serve_again_for_the_same_launch_alone():
    pointer = Parameter("p", (Piece("p", 0, 8, pointer=True),), 8)
    parameters = (Parameter("n", (Piece("n", 0, 4),), 4), pointer)
    launch = LaunchConfig((32, 1, 1), (1, 1, 1), 0, arguments={"n": 5})
    first = arguments(parameters, Trial(launch), {"p": 1024}, 0)
    assert arguments(parameters, Trial(launch), {"p": 1024}, 0) is first
    with pytest.raises(ValueError, match="read-only"):
        first[1].pointers[0][1].data[0] = 1
    other = arguments(parameters, Trial(evolve(launch, arguments={"n": 6})), {"p": 1024}, 0)
    assert (first[0].value[0], other[0].value[0]) == (5, 6)
    assert arguments(parameters, Trial(launch), {"p": 1024}, 1) is not first
