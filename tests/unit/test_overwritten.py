"""Stores to pointers of the host that later ones replace on every way to a launch, and those that stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

HOST = """
float* pool;
int total;
void reads(const int sizes[2], float* q);
void reads(const int sizes[2], float* q) {{ use(sizes[0]); }}
void writes(int sizes[2], float* q) {{ sizes[0] = 1; }}
void changes(int& n) {{ n = 2; }}
template <int D> void f(float* d, float* e, int n, int m, int& r) {{
  int sizes[] = {{n, m}};
  float* p = d;
  {body}
}}
"""
LAUNCH = "k<<<1, 32>>>(d, p);"


def shared(body: str) -> set[int]:
    """Arguments of the last launch that point into the buffer of an earlier one."""
    return set(find_launches(Path("a.cu"), HOST.format(body=body))[-1].leads.shared)


@pytest.mark.parametrize(
    "body",
    [
        f"p = e; {LAUNCH}",
        f"p = d + 1; p = e; {LAUNCH}",
        f"p = e; if (n > 1) {{ {LAUNCH} }}",
        f"if (n) {{ p = d + m; }} p = e; for (int i = 0; i < n; i++) {{ {LAUNCH} }}",
        f"for (int i = 0; i < n; i++) {{ p = e; {LAUNCH} }}",
        f"if (n > 1) {{ p = e; }} if (n > 1) {{ {LAUNCH} }}",
        f"if (n > 1) {{ m = 3; p = e; }} use(n); if (n > 1) {{ n = 1; {LAUNCH} }}",
        f"if (D > 1) {{ p = e; }} if (D > 1) {{ {LAUNCH} }}",
        f"if (n > 1) {{ p = e; }} if (n > 1) {LAUNCH} else use();",
        f"if (sizes[D] > 1) {{ p = e; }} reads(sizes, d); if (sizes[D] > 1) {{ sizes[D] = 1; {LAUNCH} }}",
        f"int w = n / m; if (w > 1 && m) {{ p = e; }} if (w > 1 && m) {{ {LAUNCH} }}",
    ],
)
def test_what_is_replaced_on_every_way_is_gone(body: str) -> None:
    assert shared(body) == set()


@pytest.mark.parametrize(
    "body",
    [
        f"if (n > 1) p = e; {LAUNCH}",
        f"if (n > 1) {{ p = e; }} {LAUNCH}",
        f"if (n > 1) {{ p = e; }} if (n > 0) {{ {LAUNCH} }}",
        f"if (n > 1) {{ p = e; }} else {{ {LAUNCH} }}",
        f"if (n > 1) {{ p = e; }} if (n > 1) use(); else {LAUNCH}",
        f"if (n > 1) {{ p = e; }} if (n > 1) use(); {LAUNCH}",
        f"if (n > 1) {{ if (m) {{ p = e; }} }} if (n > 1) {{ {LAUNCH} }}",
        f"if (m) {{ if (n > 1) {{ p = e; }} }} if (n > 1) {{ {LAUNCH} }}",
        f"if (m) use(); else if (n > 1) {{ p = e; }} if (n > 1) {{ {LAUNCH} }}",
        f"if (n > 1) {{ p = e; }} n = m; if (n > 1) {{ {LAUNCH} }}",
        f"if (n > 1) {{ p = e; }} n++; if (n > 1) {{ {LAUNCH} }}",
        f"if (n > 1) {{ p = e; }} scan(&n); if (n > 1) {{ {LAUNCH} }}",
        f"if (n > 1) {{ p = e; }} changes(n); if (n > 1) {{ {LAUNCH} }}",
        f"if (r > 1) {{ p = e; }} use(); if (r > 1) {{ {LAUNCH} }}",  # whose number that is
        f"if (total > 1) {{ p = e; }} use(); if (total > 1) {{ {LAUNCH} }}",
        f"if (next()) {{ p = e; }} if (next()) {{ {LAUNCH} }}",
        f"if (n--) {{ p = e; }} if (n--) {{ {LAUNCH} }}",
        f"if (*d > 1) {{ p = e; }} if (*d > 1) {{ {LAUNCH} }}",
        f"if (sizes[0] > 1) {{ p = e; }} writes(sizes, d); if (sizes[0] > 1) {{ {LAUNCH} }}",
        f"if (sizes[0] > 1) {{ p = e; }} unknown(sizes, d); if (sizes[0] > 1) {{ {LAUNCH} }}",
        f"int* s = sizes; if (sizes[0] > 1) {{ p = e; }} *s = 2; if (sizes[0] > 1) {{ {LAUNCH} }}",
        f"if (sizes[0] > 1) {{ p = e; }} sizes[0] = m; if (sizes[0] > 1) {{ {LAUNCH} }}",
        f"if (n > 1) {{ p = e; }} if (m) {{ p = d; }} if (n > 1) {{ {LAUNCH} }}",
        f"p = e; if (m) {{ p = d; }} {LAUNCH}",
        f"switch (n) {{ case 1: p = e; break; case 2: {LAUNCH} }}",
        f"if (m) goto there; p = e; there: {LAUNCH}",
        f"auto back = [&] {{ p = d; }}; p = e; back(); {LAUNCH}",
        f"for (; n--; p = e) {{ {LAUNCH} }}",
        f"while (n--) {{ {LAUNCH} p = e; }}",
    ],
)
def test_what_may_still_be_held_is_one_buffer(body: str) -> None:
    assert shared(body) == {1}


@pytest.mark.parametrize(
    ("second", "verdict"),
    [("n > 1", Verdict.RACE_FREE), ("n > 0", Verdict.UNDECIDED)],
)
def test_what_a_kernel_is_called_that_a_buffer_of_its_own_is_passed(second: str, verdict: Verdict) -> None:
    text = f"""
__global__ void k(float* out, const float* in) {{ out[threadIdx.x] = in[31 - threadIdx.x]; }}
void f(float* d, float* e, int n) {{
  float* p = d;
  if (n > 1) {{ p = e; }}
  if ({second}) {{ {LAUNCH} }}
}}
"""
    (kernel,) = check_text(Path("a.cu"), text).kernels
    assert kernel.verdict is verdict
