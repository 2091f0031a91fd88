"""Lines that texts for people speak of move with the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.static.analyze import Analyzer
from cuda_lsp.told_lines import with_lines


@pytest.mark.parametrize(
    ("text", "now"),
    [
        ("thread 3 does not, as line 7 decides", "thread 3 does not, as line 9 decides"),
        ("as lines 4, 7 and 12 decide", "as lines 6, 9 and 14 decide"),
        (
            "line 9: how often the loop runs depends on data",
            "line 11: how often the loop runs depends on data",
        ),
        ("line 3 and the copy of line 5 (`a[5]`)", "line 5 and the copy of line 7 (`a[5]`)"),
        ("the block of the launch on line 9 is not known", "the block of the launch on line 9 is not known"),
        ("thread 3 writes s[7]; `outline 3`", "thread 3 writes s[7]; `outline 3`"),
    ],
)
def test_numbers_of_lines_move_and_no_others(text: str, now: str) -> None:
    assert with_lines(text, lambda line: line + 2) == now


def test_a_line_that_is_gone_stays_as_it_was() -> None:
    assert with_lines("as lines 4 and 5 decide", lambda line: None if line == 4 else line + 1) == (
        "as lines 4 and 6 decide"
    )


@pytest.mark.parametrize(
    "typed", ["\n", "\n\n// said\n", "\n/* said\n */\n", "\nint more(int n) { return n; }\n"]
)
def test_what_is_told_of_a_kernel_further_down_names_its_lines(typed: str) -> None:
    path = Path("k.cu")
    text = """// a half
__global__ void half(float* out, const float* in, int n) {
    __shared__ float s[64];
    int t = threadIdx.x;
    for (int i = 0; i < n; i++) {
        if (t < 32) {
            s[t] = in[t];
            __syncthreads();
        }
    }
    out[t] = s[t];
}
void f(float* o, float* i, int n) { half<<<1, 64>>>(o, i, n); }
"""
    editor = Analyzer(quick=True)
    editor.update(path, text)
    editor.settle(path)
    moved = text.replace("half\n", f"half{typed}", 1)
    editor.update(path, moved)
    edited = editor.settle(path)
    editor.shutdown()
    fresh = Analyzer(quick=True)
    fresh.update(path, moved)
    opened = fresh.settle(path)
    fresh.shutdown()
    assert any("line" in text for text in (*opened.kernels[0].reasons, *(f.message for f in opened.findings)))
    assert edited.kernels[0].reasons == opened.kernels[0].reasons
    assert [f.message for f in edited.findings] == [f.message for f in opened.findings]
