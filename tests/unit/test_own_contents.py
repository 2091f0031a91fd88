"""Arrays that a kernel writes where their own contents say: plain unions; and what is kept apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from extract_kernels import lowered

from cuda_lsp.ir.types import INT32
from cuda_lsp.model import RACES, Finding, Severity, Status
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.data_flow import data_flow
from cuda_lsp.static.exact.ordinary_inputs import COUPLES, TREE, Contents, Filling


def certain(body: str) -> list[Finding]:
    kernel = f"__global__ void k(const int* p, const int2* e, int* to, int* out) {{ {body} }}\n"
    host = "void f(int* p, int2* e, int* o, int* s) { k<<<4, 64>>>(p, e, o, s); }\n"
    report = check_text(Path("k.cu"), kernel + host)
    assert not report.errors
    return [
        f
        for f in report.kernels[0].findings
        if f.code in RACES and f.status is not Status.POSSIBLE and f.effective_severity <= Severity.WARNING
    ]


@pytest.mark.parametrize(
    "body",
    [
        "int2 v = e[blockIdx.x * 64 + threadIdx.x]; int a = to[v.x], b = to[v.y]; if (a < b) to[b] = a;",
        "int v = to[threadIdx.x + blockIdx.x * 64]; to[to[v]] = threadIdx.x;",
    ],
)
def test_what_changes_while_it_is_read_keeps_no_threads_apart(body: str) -> None:
    found = certain(body)
    assert found and all(f.condition for f in found)


@pytest.mark.parametrize(
    "body",
    [
        "out[p[blockIdx.x * 64 + threadIdx.x]] = threadIdx.x;",
        "int i = blockIdx.x * 64 + threadIdx.x; if (e[i].x) out[p[i]] = e[i].y;",
        "int i = blockIdx.x * 64 + threadIdx.x; int a = p[i]; while (p[a] != a) a = p[a]; out[i] = a;",
        "int2 v = e[blockIdx.x * 64 + threadIdx.x]; atomicMin(&out[max(v.x, v.y)], min(v.x, v.y));",
        "int i = blockIdx.x * 64 + threadIdx.x; out[i] = to[to[i]];",
        # a list that its own thread shortens in place
        "int i = blockIdx.x * 64 + threadIdx.x, f = p[i], m = 0; for (int k = 0; k < out[i]; ++k) {"
        " int c = to[f + k]; if (c != e[i].x) { if (m != k) to[f + m] = c; ++m; } }",
    ],
)
def test_what_the_host_keeps_apart_is_not_accused(body: str) -> None:
    assert not certain(body)


@pytest.mark.parametrize(("filling", "held"), [(TREE, [1, 2, 3, 4, -1, -1]), (COUPLES, [0, 0, 2, 2, 4, 4])])
def test_arrays_that_lead_from_place_to_place_have_several_ends(filling: Filling, held: list[int]) -> None:
    text = (
        "__global__ void k(int* to, int* out) { int v = out[0]; while (to[v] >= 0) v = to[v]; out[1] = v; }"
    )
    kernel = lowered(text)
    leading = next(array for array in kernel.arrays if array.name == "to")
    contents = Contents(data_flow(kernel), filling, {})
    assert [contents.at(leading, 4 * i, INT32) for i in range(6)] == held
