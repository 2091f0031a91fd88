"""Members of parameters with arrays in them that a kernel assigns to: what is read is what was put there."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

TEXT = """
struct View {{ long sizes[4]; long strides[4]; int* data; }};
__device__ void move(View& view, int n) {{ view.data += n; }}
__device__ int step(View view) {{ return view.strides[0] + view.strides[1]; }}
__global__ void k(View out, View in, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {body}
}}
void run(View out, View in, int n) {{ k<<<n, 256>>>(out, in, n); }}
"""


def verdict(body: str) -> Verdict:
    report = check_text(Path("k.cu"), TEXT.format(body=body))
    assert not report.errors
    return report.kernels[0].verdict


@pytest.mark.parametrize(
    "body",
    [
        "out.data += 4; out.data[i] = n;",
        "out.data += i; out.data[i] = n;",
        "move(out, n); out.data[i] = in.data[i];",
        "View* view = &out; view->data += n; out.data[i] = n;",
        "out.strides[0] = 2; out.data[i * out.strides[0]] = n;",
        "if (n > 4) out.data += n; out.data[i] = n;",
    ],
)
def test_what_is_moved_for_all_threads_alike_stays_apart(body: str) -> None:
    assert verdict(body) is Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        "out.data -= i % 2; out.data[i] = n;",
        "out.data[i] = n; out.data -= i % 2; out.data[i] = n;",
        "move(out, -(i % 2)); out.data[i] = n;",
        "View* view = &out; view->data -= i % 2; out.data[i] = n;",
        "out.strides[0] = 0; out.data[i * out.strides[0]] = n;",
        "for (int k = 0; k < n; k++) { out.data[i] = n; out.data += 1; }",
    ],
)
def test_what_is_moved_onto_another_thread_s_place_is_seen(body: str) -> None:
    assert verdict(body) is Verdict.RACY


@pytest.mark.parametrize(
    "body",
    [
        "View* view = n > 2 ? &out : &in; view->data -= i % 2; out.data[i] = n;",
        "for (int k = 0; k < n; k++) out.strides[k] = 0; out.data[i * out.strides[0]] = n;",
        "out.strides[0] = -out.strides[1]; out.data[i * step(out)] = n;",
        "out.data -= i % 2; View copy = out; copy.data[i] = n;",
        "out.data -= i % 2; View copy; copy = out; copy.data[i] = n;",
    ],
)
def test_what_is_not_followed_is_not_taken_for_what_was_passed(body: str) -> None:
    assert verdict(body) is not Verdict.RACE_FREE
