"""Pointers that functions of the host make of others, and those in records: one buffer, so far apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launch_site import LaunchSite
from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

FUNCTIONS = """
struct W { float *a, *b; int n; };
float* part(float* base, int n) { return base + n; }
float* half_of(float* base, int n) { int half = n / 2 * n; return base + half; }
float* part_of_part(float* base, int n) { float* p = part(base, n); return p + n; }
float* either(float* d, float* e, int n) { if (n) return d; return e; }
float* fresh(int n) { float* p; cudaMalloc(&p, n); return p; }
W carve(void* base, int n) { float* f = static_cast<float*>(base); return W{f, f + n, n}; }
W carve_by_name(float* base, int n) { W w; w.a = base; w.b = base + n; return w; }
W carve_fresh(int n) { float *p, *q; cudaMalloc(&p, n); cudaMalloc(&q, n); return W{p, q, n}; }
void cut(float* base, int n, float** a, float** b) { *a = base; *b = base + n; }
void cut_references(float* base, int n, float*& a, float*& b) { a = base; b = base + n; }
void cut_record(float* base, int n, W& w) { w.a = base; w.b = base + n; }
void cut_copy(float* base, int n, W w) { w.a = base; w.b = base + n; }
void cut_pointed(float* base, int n, W* w) { w->a = base; w->b = base + n; }
void set(float* p, float* q) { *p = *q; }
void make(float** p, int n) { cudaMalloc(p, n); }
void make_twice(float** p, int n) { float* q = nullptr; if (n) q = (float*)malloc(n); *p = q; }
void touch(W& w);
"""


def site_of(body: str) -> LaunchSite:
    (site,) = find_launches(Path("a.cu"), f"{FUNCTIONS} void f(float* d, float* e, int n) {{ {body} }}")
    return site


@pytest.mark.parametrize(
    ("body", "offset"),
    [
        ("k<<<1, 32>>>(d, part(d, 500));", 500),
        ("k<<<1, 32>>>(d, part(d + 4, 500));", 504),
        ("k<<<1, 32>>>(part(d, n), d, n);", ("*", -1, "#2")),
        ("k<<<1, 32>>>(part(d, n - 2), d, n);", ("+", 2, ("*", -1, "#2"))),
        ("k<<<1, 32>>>(d, part_of_part(d, 8));", 16),
        ("float* p = part(d, 500); k<<<1, 32>>>(d, p);", 500),
        ("auto p = part(d, 500); k<<<1, 32>>>(d, p);", 500),
        ("k<<<1, 32>>>(d, either(d, e, n));", None),
        ("float *a, *b; cut(d, 500, &a, &b); k<<<1, 32>>>(a, b);", 500),
        ("float* a; make_twice(&a, n); k<<<1, 32>>>(a, a + 4);", 4),
        ("float *a, *b; cut_references(d, 500, a, b); k<<<1, 32>>>(a, b);", 500),
        ("k<<<1, 32>>>(d, half_of(d, n));", None),
        ("W w; cut_record(d, 500, w); k<<<1, 32>>>(w.a, w.b);", 500),
        ("W w; cut_pointed(d, 500, &w); k<<<1, 32>>>(w.a, w.b);", 500),
        ("W w{d, d + 500}; k<<<1, 32>>>(w.a, w.b);", 500),
        ("W w = carve(d, 500); k<<<1, 32>>>(w.a, w.b);", 500),
        ("auto w = carve_by_name(d, 500); k<<<1, 32>>>(w.a, w.b);", 500),
        ("k<<<1, 32>>>(d, d - 4 + 1);", -3),  # not d - 5
    ],
)
def test_a_function_of_the_host_hands_a_pointer_on(body: str, offset: object) -> None:
    assert {position: s.offset for position, s in site_of(body).leads.shared.items()} == {1: offset}


@pytest.mark.parametrize(
    "body",
    [
        "k<<<1, 32>>>(part(d, 500), part(e, 500));",
        "k<<<1, 32>>>(fresh(8), fresh(8));",
        "float *a, *b; make(&a, 8); make(&b, 8); k<<<1, 32>>>(a, b);",
        "float* p = fresh(4); float* q = fresh(4); k<<<1, 32>>>(p, q);",
        "float *a, *b, *c, *g; cut(d, 5, &a, &b); cut(e, 5, &c, &g); k<<<1, 32>>>(a, c);",
        "W w{d, e}; k<<<1, 32>>>(w.a, w.b);",
        "W w{d, e}; cut_copy(d, 500, w); k<<<1, 32>>>(w.a, w.b);",
        "float *a = d, *b = e; set(a, b); k<<<1, 32>>>(a, b);",
        "W w = carve_fresh(8); k<<<1, 32>>>(w.a, w.b);",
        "k<<<1, 32>>>(carve_fresh(8));",
        "k<<<1, 32>>>(carve_fresh(8), carve_fresh(8));",
    ],
)
def test_buffers_of_their_own_stay_apart(body: str) -> None:
    site = site_of(body)
    assert not site.leads.shared
    assert not site.leads.shared_fields


@pytest.mark.parametrize(
    ("arguments", "offset"),
    [
        ("(float*)v, (float*)v + 500", 500),
        ("(float*)v, (int*)((float*)v + 500)", 500),
        ("d, (int*)(d + 4)", 4),
        ("(float*)v + 4, (int*)v + 8", 4),
        ("(float*)v, (double*)v + 4", 4),
        ("(float*)v, (double*)((float*)v + 500)", 250),
        ("d + 4, (double*)d", -2),
        ("(float*)v, (char*)v + 4", 4),
        ("(float*)v, (X*)v + 4", 4),
        ("(float*)v, (float*)(d2 + 4)", 8),
    ],
)
def test_a_distance_counts_elements_of_what_the_later_pointer_points_to(
    arguments: str, offset: int | None
) -> None:
    body = f"void* v = d; double* d2 = (double*)d; k<<<1, 32>>>({arguments});"
    assert site_of(body).leads.shared[1].offset == offset


@pytest.mark.parametrize(
    "argument",
    ["carve(d, 500)", "carve_by_name(d, 500)", "W{d, d + 500}", "w", "v"],
)
def test_fields_of_a_record_lie_so_far_apart(argument: str) -> None:
    told = site_of(f"W w = carve(d, 500); W v{{d, d + 500}}; k<<<1, 32>>>({argument});").leads.shared_fields
    assert [(place, s.first, s.offset) for place, s in told.items()] == [((0, "b"), "#0.a", 500)]


def test_an_offset_by_another_field_names_it() -> None:
    told = site_of("k<<<1, 32>>>(W{d, d + n, n});").leads.shared_fields
    assert told[0, "b"].offset == "#0.n"
    assert told[0, "b"].named(["w"]).offset == "w.n"


def test_a_field_may_lie_in_the_buffer_of_an_argument() -> None:
    told = site_of("k<<<1, 32>>>(d, W{d + 8, e});").leads.shared_fields
    assert [(place, s.first, s.offset) for place, s in told.items()] == [((1, "a"), 0, 8)]


@pytest.mark.parametrize(
    "change",
    ["touch(w);", "w = carve(e, 3);", "w.b = d + 7;", "W* p = &w;", "if (n) w.b = e;"],
)
def test_of_a_record_that_changes_the_first_distance_is_not_told(change: str) -> None:
    """Broken twins: what was right when the record was made may not be right at the launch."""
    told = site_of(f"W w = carve(d, 500); {change} k<<<1, 32>>>(w);").leads.shared_fields
    assert all(s.offset != 500 for s in told.values())


KERNEL = """
struct W { float *a, *b; };
W carve(float* base, int n) { return W{base, base + n}; }
__global__ void k(W w, int n) {
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g < n) { w.a[g] = 1.f; w.b[g] = 2.f; }
}
"""


@pytest.mark.parametrize(
    ("launch", "verdict"),
    [
        ("k<<<8, 128>>>(carve(d, 1000), 1000);", Verdict.RACE_FREE),
        ("k<<<8, 128>>>(carve(d, 500), 1000);", Verdict.RACY),
        ("k<<<(n + 127) / 128, 128>>>(carve(d, n), n);", Verdict.RACE_FREE),
        ("k<<<(n + 127) / 128, 128>>>(carve(d, n - 1), n);", Verdict.RACY),
        ("W w = carve(d, 500); k<<<8, 128>>>(w, 1000);", Verdict.RACY),
        ("W w = carve(d, 1000); w.b = d + 3; k<<<8, 128>>>(w, 1000);", Verdict.RACY),
        ("W w = carve(d, 1000); w.b = d + g(); k<<<8, 128>>>(w, 1000);", Verdict.UNDECIDED),
    ],
)
def test_a_buffer_that_is_cut_too_short_is_told(tmp_path: Path, launch: str, verdict: Verdict) -> None:
    (kernel,) = check_text(tmp_path / "k.cu", f"{KERNEL} void f(float* d, int n) {{ {launch} }}").kernels
    assert kernel.verdict is verdict


def test_fields_of_no_use_to_the_kernel_do_not_matter(tmp_path: Path) -> None:
    text = KERNEL.replace("float *a, *b;", "float *a, *b; int* c;").replace(
        "W{base, base + n}", "W{base, base + n, (int*)(base + f())}"
    )
    text += "void g(float* d) { k<<<8, 128>>>(carve(d, 1000), 1000); }"
    (kernel,) = check_text(tmp_path / "k.cu", text).kernels
    assert kernel.verdict is Verdict.RACE_FREE
