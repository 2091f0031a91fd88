"""``if`` and ``for`` that macros write, of which clang does not tell where their parts stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from extract_kernels import constructs, lowered

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

TEXT = """
#define PICK(c, a, b) if (c) a; else b;
#define PICK_BLOCKS(c, a, b) if (c) {{ a; }} else {{ b; }}
#define WHEN(c, a) if (c) {{ a; }}
#define OTHERWISE else
#define FIRST(b) if (n > 3) s = 0; else b;
#define REST(i, n) for (; i < n; i += 32)
#define TWICE(i) for (i = 0; i < 2;)
#define ENDLESS for (;;)
#define STEPS(i) for (int j = 0;; j++)
__global__ void k(int* out, const int* in, int n) {{
  int t = threadIdx.x, s = 1, i = t;
  {body}
}}
void f(int* o, int* i, int n) {{ k<<<1, 64>>>(o, i, n); }}
"""


def verdict(body: str) -> Verdict:
    (kernel,) = check_text(Path("a.cu"), TEXT.format(body=body)).kernels
    return kernel.verdict


@pytest.mark.parametrize(
    "body",
    [
        "PICK(n > 3, s = 0, out[t] = t)",
        "PICK(n > 3, s = 0, out[t] = s)",
        "PICK(t > 3, out[t] = 1, out[t] = 2)",
        "PICK(t == 3, out[0] = 1, s = 2)",
        "PICK_BLOCKS(n > 3, s = 0, out[t] = t)",
        "WHEN(t == 3, out[0] = 1)",
        "if (t == 3) out[0] = 1; OTHERWISE s = 2;",
        "FIRST(out[t] = t)",
        "REST(i, n) s += in[i]; if (t == 3) out[0] = s;",
        "TWICE(i) { i++; } if (i == 2) out[t] = s;",
        "ENDLESS { if (i > 99) break; i += 64; } out[i] = s;",
        "STEPS(i) { if (j > 4) break; s += j; } out[i] = s;",
        "if (s = n; s > 3) out[t] = s;",
    ],
)
def test_threads_that_keep_apart(body: str) -> None:
    assert verdict(body) is Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        "PICK(n > 3, s = 0, out[0] = t)",
        "PICK(t > 3, out[0] = t, s = 0)",
        "PICK_BLOCKS(n > 3, s = 0, out[0] = t)",
        "PICK_BLOCKS(t > 3, out[0] = t, s = 0)",
        "WHEN(t > 3, out[0] = t)",
        "if (t == 3) s = 0; OTHERWISE out[0] = t;",
        "FIRST(out[0] = t)",
        "REST(i, n) s += i; out[0] = t;",  # behind the loop
        "TWICE(i) { i++; } out[0] = t;",
        "if (s = n; s > 3) out[0] = t;",
    ],
)
def test_threads_that_meet(body: str) -> None:
    assert verdict(body) is Verdict.RACY


@pytest.mark.parametrize(
    ("macro", "use"),
    [
        ("if (i++; n > 3) out[0] = 1;", "M"),
        ("if (c) atomicAdd(out, 1); else s = 2;", "M"),  # or what is asked
        ("for (i++; ; ) if (i > 9) break;", "M"),
        ("for (; i--; ) s++;", "M"),
        ("for (i = 0; ; i++) if (i > 9) break;", "M"),
    ],
)
def test_what_may_be_either_is_said(macro: str, use: str) -> None:
    text = f"#define M {macro}\n__global__ void k(int* out, int c, int n) {{ int i = 3, s = 0; {use} }}"
    assert constructs(lowered(text))
