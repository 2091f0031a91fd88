"""One record that launches pass twice, or with one of its pointers: both lead to one buffer."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

RECORDS = """
struct View { float* data; int n; };
struct Wide { float* data; int n[3]; };
struct Pair { View in; View out; };
template <class T> struct Base { T* data; };
template <class T> struct Typed : Base<T> { int n; };
"""
STORE = "if (i < a.n) a.data[i] = b.data[{}];"
CASES = {
    "two records": ("View a, View b", STORE, "View v, View w", "", "v, w", True),
    "one record": ("View a, View b", STORE, "View v", "", "v, v", False),
    "a copy": ("View a, View b", STORE, "View v", "View w = v; ", "v, w", False),
    "one record in memory": ("Wide a, Wide b", STORE.replace("a.n", "a.n[0]"), "Wide v", "", "v, v", False),
    "with a hidden base": ("Typed<float> a, Typed<float> b", STORE, "Typed<float> v", "", "v, v", False),
    "with its pointer": ("View a, float* b", STORE.replace("b.data", "b"), "View v", "", "v, v.data", False),
    "another": ("View a, float* b", STORE.replace("b.data", "b"), "View v, View w", "", "v, w.data", True),
    "fields": (
        "Pair a", STORE.replace("b.", "a.in.").replace("a.data", "a.out.data").replace("a.n", "a.in.n"),
        "View v", "Pair p; p.in = v; p.out = v; ", "p", False,
    ),
    "a field and the record": (
        "Pair a, View b", STORE.replace("a.", "a.out."), "Pair p, View v", "p.out = v; ", "p, v", False,
    ),
}  # fmt: skip


def verdict_of(case: str, index: str) -> Verdict:
    parameters, body, given, host, arguments, _ = CASES[case]
    kernel = f"__global__ void k({parameters}) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}\n"
    launch = f"void f({given}) {{ {host}k<<<8, 256>>>({arguments}); }}\n"
    report = check_text(Path("k.cu"), RECORDS + kernel.replace("{}", index) + launch)
    assert not report.errors, report.errors
    return report.kernels[-1].verdict


@pytest.mark.parametrize("case", CASES)
def test_a_neighbour_is_another_threads_where_both_records_are_one(case: str) -> None:
    free = CASES[case][-1]
    assert (verdict_of(case, "i + 1") is Verdict.RACE_FREE) is free


@pytest.mark.parametrize("case", ["two records", "one record", "a copy", "fields"])
def test_each_thread_may_have_its_own_element_of_one_record(case: str) -> None:
    assert verdict_of(case, "i") is Verdict.RACE_FREE
