"""Pointers in one record of the device: fields lead to objects of their own, which is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

TEXT = """
struct Table {{ int* in[8]; int* order[8]; int* out; int* map; }};
union Either {{ int* a; int* b; }};
__device__ Table t;
__constant__ Table c;
__device__ Either e;
__device__ struct Two {{ int* a; int* b; }} two;
__device__ Two many[4];
__global__ void k(int o, int p, int* given, Two* there) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {body}
}}
void run(int o, int p, int* given, Two* there) {{ k<<<4, 32>>>(o, p, given, there); }}
"""


def checked(body: str) -> KernelReport:
    report = check_text(Path("k.cu"), TEXT.format(body=body))
    assert not report.errors
    return report.kernels[0]


@pytest.mark.parametrize(
    ("body", "record"),
    [
        ("two.b[i] = two.a[i + 1];", "two"),
        ("t.out[i] = t.in[o][i + 1];", "t"),
        ("c.out[i] = c.map[i + 1];", "c"),
        ("t.out[i] = t.in[o][t.order[o][i + 1]];", "t"),
        ("int* out = t.out; const int* in = t.map; out[i] = in[i + 1];", "t"),
    ],
)
def test_fields_of_a_record_lead_to_objects_of_their_own_which_is_told(body: str, record: str) -> None:
    kernel = checked(body)
    assert kernel.verdict is Verdict.RACE_FREE
    assert f"the pointers in `{record}` point to objects of their own" in " ".join(kernel.assumptions)


def test_one_field_needs_nothing_to_be_granted() -> None:
    kernel = checked("two.a[i] = i;")
    assert kernel.verdict is Verdict.RACE_FREE
    assert not kernel.assumptions


@pytest.mark.parametrize(
    "body",
    [
        "two.a[i] = two.a[i + 1];",
        "e.a[i] = e.b[i + 1];",  # fields of a union are one place
        "t.in[o][i] = t.in[p][i + 1];",
        "t.in[o][i] = t.in[1][i + 1];",
        "many[1].a[i] = many[o].a[i + 1];",
        "there->a[i] = there->b[i + 1];",
        "t.map = given; t.out[i] = t.map[i + 1];",
        "two.b = two.a; two.b[i] = two.a[i + 1];",
    ],
)
def test_one_pointer_and_pointers_that_may_be_one_are_not_kept_apart(body: str) -> None:
    assert checked(body).verdict is not Verdict.RACE_FREE


HANDED_OUT = """
struct Held {{ char* at[16]; __device__ int* get(int n) {{ return (int*)at[n]; }} }};
__constant__ Held c, d;
__global__ void k(int o, int p) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}
void run(int o, int p) {{ k<<<4, 32>>>(o, p); }}
"""


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("c.get(3)[i] = c.get(3)[i + 1];", Verdict.RACY),
        ("c.get(o)[i] = c.get(o)[i + 1];", Verdict.RACY),
        ("c.get(3)[i] = i; ((int*)c.at[3])[i + 1] = 2;", Verdict.RACY),
        ("c.get(3)[i] = c.get(4)[i + 1];", Verdict.UNDECIDED),
        ("c.get(o)[i] = c.get(p)[i + 1];", Verdict.UNDECIDED),
        ("if (c.get(3)[i] == 7) c.get(4)[2 * i] = i;", Verdict.UNDECIDED),
        ("c.get(3)[i] = d.get(3)[i + 1];", Verdict.RACE_FREE),
    ],
)
def test_places_that_one_text_in_a_function_names_are_several(body: str, verdict: Verdict) -> None:
    report = check_text(Path("k.cu"), HANDED_OUT.format(body=body))
    assert report.kernels[0].verdict is verdict, report.kernels[0].reasons
