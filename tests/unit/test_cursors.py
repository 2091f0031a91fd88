"""Cursors that the host moves on through one allocation: where they stood tells how far parts lie apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.frontend.host.shared_arguments import SharedBuffer
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text


def _apart(body: str) -> SharedBuffer | None:
    text = f"float *pool; void f(float *w, int n, int m) {{ {body} k<<<8, 256>>>(a, b, n, m); }}"
    return find_launches(Path("/x/a.cu"), text)[-1].leads.shared.get(1)


@pytest.mark.parametrize(
    ("body", "offset"),
    [
        ("float *p = w; float *a = p; p += n; float *b = p;", "#2"),
        ("float *p = w; float *a = p; p += n; p += m; float *b = p; p += n;", ("+", "#2", "#3")),
        ("float *a = w; w += n; float *b = w;", "#2"),
        ("size_t o = 0; float *a = w + o; o += n; float *b = w + o;", "#2"),
        ("size_t o = 64; float *a = w + o; o += n; float *b = w + o;", "#2"),
        ("float *p = w, *b = p; p += n; float *a = p;", ("*", -1, "#2")),
        ("float *p = w; float *a = p; p += n; p -= m; float *b = p;", ("+", "#2", ("*", -1, "#3"))),
        ("float *a = pool; pool += n; float *b = pool;", "#2"),
    ],
)
def test_steps_are_added_up(body: str, offset: object) -> None:
    shared = _apart(body)
    assert shared is not None and shared.offset == offset


@pytest.mark.parametrize(
    "body",
    [
        "float *p = w; float *a = p; if (m) p += n; float *b = p;",
        "float *p = w; float *a = p; for (int i = 0; i < 4; i++) { p += n; } float *b = p;",
        "float *p = w; float *a = p; p += n; n = 4; float *b = p;",
        "float *p = w; float *a = p; p += n; next(&p); float *b = p;",
        "float *a = pool; pool += n; other_file(); float *b = pool;",
        "float *p = w; float *a = p; p += n, p = w; float *b = p;",
    ],
)
def test_what_is_no_series_of_steps_is_not_known(body: str) -> None:
    assert _apart(body) is not None and _apart(body).offset is None  # type: ignore[union-attr]


SUMS = """__global__ void k(const float *a, float *b, int n, int m) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) b[i] = a[n - 1 - i];
}
void f(float *w, int n, int m) {
  float *p = w; float *a = p; p += STEP; float *b = p;
  k<<<(n + 255) / 256, 256>>>(a, b, n, m);
}
"""


def test_pieces_that_are_large_enough_do_not_meet() -> None:
    [kernel] = check_text(Path("/x/a.cu"), SUMS.replace("STEP", "n")).kernels
    assert kernel.verdict is Verdict.RACE_FREE


@pytest.mark.parametrize("step", ["1", "m", "n - 2"])
def test_pieces_that_are_too_small_are_not_race_free(step: str) -> None:
    [kernel] = check_text(Path("/x/a.cu"), SUMS.replace("STEP", step)).kernels
    assert kernel.verdict is not Verdict.RACE_FREE


FUNCTIONS = """float *take(float *&p, size_t m) { float *r = p; p += m; return r; }
float *drawn(float **p, size_t m) { float *r = *p; *p += m; return r; }
void step(float *&p, size_t m) { p += m; }
float *behind(float *&p, size_t m) { p += m; return p - m; }
float *made(int n) { float *p; cudaMalloc(&p, n * 4); return p; }
"""


@pytest.mark.parametrize(
    ("body", "offset"),
    [
        ("float *p = w; float *a = take(p, n); float *b = take(p, n);", "#2"),
        ("float *p = w; float *a = drawn(&p, n); float *b = drawn(&p, n);", "#2"),
        ("float *p = w; float *a = p; step(p, n); float *b = p;", "#2"),
        ("float *p = w; float *a = behind(p, n); float *b = behind(p, m);", "#2"),
        ("float *p = w; float *a = other_file(&p, n); float *b = other_file(&p, n);", None),
    ],
)
def test_a_cursor_that_a_function_moves_is_one_buffer(body: str, offset: object) -> None:
    text = f"{FUNCTIONS}void f(float *w, int n, int m) {{ {body} k<<<8, 256>>>(a, b, n, m); }}"
    shared = find_launches(Path("/x/a.cu"), text)[-1].leads.shared.get(1)
    assert shared is not None and shared.offset == offset and not shared.pieces


def test_what_functions_allocate_are_buffers_of_their_own() -> None:
    body = "int failed; float *a = made(n), *b = made(n), *c = other_file(&failed), *d = other_file(&failed);"
    text = f"{FUNCTIONS}void f(int n) {{ {body} k<<<8, 256>>>(a, b, c, d); }}"
    assert not find_launches(Path("/x/a.cu"), text)[-1].leads.shared
