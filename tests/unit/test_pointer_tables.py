"""Pointers taken from a table of the thread's own, pointers that may be null, where variables point."""

from __future__ import annotations

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.program import AddressOf, Array, Store
from cuda_lsp.ir.walk import walk
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.points_to import points_to
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

SPLIT = """
__global__ void k(float* q, float* k, float* v, const float* in, int n) {{
    float* out[3] = {{{table}}};
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 3 * n; i += gridDim.x * blockDim.x)
        {store} = in[i];
}}
"""


def decided(text: str) -> SolverResult:
    launch = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)
    return refine_kernel(lowered(text), [launch], GpuModel("test", (9, 0)), Budget(kernel=8, query=2))


@pytest.mark.parametrize(
    ("table", "store", "verdict"),
    [
        ("q, k, v", "out[i / n][i % n]", Verdict.RACE_FREE),
        ("q, k, q + n", "out[i / n][i % n]", Verdict.RACE_FREE),
        ("q, k, q", "out[i / n][i % n]", Verdict.RACY),
        ("q, k, v", "out[i % 3][i / 4]", Verdict.RACY),
        ("q, k, v", "out[i / n][i % n / 2]", Verdict.RACY),
        ("q, k, (float*)(size_t)n", "out[i / n][i % n]", Verdict.UNDECIDED),
    ],
)
def test_each_index_takes_its_own_pointer_from_a_table(table: str, store: str, verdict: Verdict) -> None:
    result = decided(SPLIT.format(table=table, store=store))
    assert result.verdict is verdict, result.reasons


def test_an_element_that_nobody_set_points_nowhere_that_is_known() -> None:
    text = SPLIT.format(table="q, k", store="out[i / n][i % n]").replace("{q, k}", "{}")
    text = text.replace(
        "float* out[3] = {};", "float* out[3]; out[0] = q; out[1] = k; if (n > 7) out[2] = q;"
    )
    assert decided(text).verdict is Verdict.UNDECIDED


MAYBE = """
__device__ void put(float* p, float* m, int i, int n) {{ if (i < n) {{ p[i] = 1; {use} }} }}
__global__ void k(float* p, float* m, int n, long s, long r) {{
    put(p + blockIdx.y * s, m ? m + blockIdx.y * {step} : nullptr, blockIdx.x * blockDim.x + threadIdx.x, n);
}}
"""


@pytest.mark.parametrize(
    ("use", "step", "free"),
    [
        ("if (m != nullptr) m[i] = 2;", "r", True),
        ("if (m) m[i] = 2;", "r", True),
        ("if (m) m[i / 2] = 2;", "r", False),
        ("if (m) m[0] = i;", "r", False),
        ("if (m == nullptr) p[0] = i;", "r", False),
        ("if (m) m[i] = 2;", "0", False),
    ],
)
def test_a_pointer_that_may_be_null_is_followed_where_it_is_not(use: str, step: str, free: bool) -> None:
    assert (decided(MAYBE.format(use=use, step=step)).verdict is Verdict.RACE_FREE) is free


@pytest.mark.parametrize(
    ("set_to", "verdict"),
    [
        ("if (n > 3) q = a;", Verdict.RACE_FREE),  # all threads of a block agree
        ("q = a ? a + i : nullptr;", Verdict.RACE_FREE),
        ("if (i % 2) q = a;", Verdict.UNDECIDED),
        ("if (in[i] > 0) q = a;", Verdict.UNDECIDED),
    ],
)
def test_threads_agree_on_a_null_pointer_if_they_set_it_alike(set_to: str, verdict: Verdict) -> None:
    found = decided(f"""
__global__ void k(float* a, const float* in, float* out, int n) {{
    __shared__ float s[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float* q = nullptr;
    {set_to}
    if (q != nullptr) {{
        s[threadIdx.x] = in[i];
        __syncthreads();
        out[i] = s[127 - threadIdx.x];
    }}
}}
""")
    misses = any(f.code.value == "barrier-divergence" for f in found.findings)
    assert misses is (verdict is not Verdict.RACE_FREE), found.findings


def test_contents_stay_where_a_moving_pointer_writes_another_array() -> None:
    """A row's offset read twice is one number: nothing of what ``o`` points to is in ``first``."""
    text = """
__global__ void k(const int* first, {what} o, const float* in, int n) {{
    int row = blockIdx.x;
    if (row >= n) return;
    o += row * blockDim.x;
    for (int j = 0; j < 3; j++) {{
        if (first[row] > j) o[threadIdx.x] = in[j];
        __syncthreads();
        o[blockDim.x - 1 - threadIdx.x] += 1;
        __syncthreads();
    }}
}}
"""
    assert decided(text.format(what="float*")).verdict is Verdict.RACE_FREE


def _store_of(text: str) -> list[frozenset[Array] | None]:
    kernel = lowered(text)
    found = points_to(kernel)
    stores = [s for s in walk(kernel.body) if isinstance(s, Store) and not isinstance(s.pointer, AddressOf)]
    return [found.of(s.pointer) for s in stores]


def _names(found: frozenset[Array] | None) -> set[str] | None:
    return None if found is None else {array.name for array in found}


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("int* p = a; p += n; *p = 1;", {"a"}),
        ("int* p = a; if (n) p = b; p++; *p = 1;", {"a", "b"}),
        ("int* p = 0; for (int i = 0; i < n; i++) p = b + i; *p = 1;", {"b"}),
        ("int* p = a; if (n) p = *c; *p = 1;", {"a", "**c"}),
        ("int* t[2] = {a, b}; int* p = t[n]; p++; *p = 1;", {"a", "b"}),
        ("int* t[2] = {a, b}; t[n & 1] = *c; int* p = t[n]; p++; *p = 1;", {"a", "b", "**c"}),
    ],
)
def test_a_variable_points_wherever_it_is_set_to(body: str, names: set[str] | None) -> None:
    text = f"__global__ void k(int* a, int* b, int** c, int n) {{ {body} }}"
    assert _names(_store_of(text)[-1]) == names
