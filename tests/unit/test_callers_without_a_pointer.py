"""Callers that pass ``nullptr`` for what a launch needs do not come to it, whatever else they pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void add(short* out, const int* in, const float* scale, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (short)(in[i] * scale[0]);
}
"""
LAUNCH = "add<<<(n + 255) / 256, 256>>>(out, (const int*)in, scale, n);"
IN_PLACE = "void in_place(short* out, {more}int n) {{ launch(out, out, {scale}, n); }}"


def verdict(launch: str, scale: str = "nullptr", more: str = "") -> Verdict:
    launched = f"void launch(short* out, const short* in, const float* scale, int n) {{ {launch} }}"
    text = f"{KERNEL} {launched} {IN_PLACE.format(scale=scale, more=more)}"
    (kernel,) = check_text(Path("k.cu"), text).kernels
    return kernel.verdict


NEEDED = [
    f"if (scale != nullptr) {{ {LAUNCH} }}",
    f"if (nullptr != scale) {LAUNCH}",
    f"if (scale) {{ {LAUNCH} }}",
    f"if (scale == NULL) return; {LAUNCH}",
    f"if (!scale) return; {LAUNCH}",
    f"const bool scaled = scale != nullptr; if (scaled) {{ {LAUNCH} }}",
    f"if (n > 0 && scale != nullptr) {{ {LAUNCH} }}",
]


@pytest.mark.parametrize("launch", NEEDED)
def test_who_passes_none_does_not_come_to_the_launch(launch: str) -> None:
    assert verdict(launch) is Verdict.RACE_FREE


@pytest.mark.parametrize("launch", NEEDED)
@pytest.mark.parametrize(("scale", "more"), [("s", "const float* s, "), ("&one", "float one, ")])
def test_who_passes_something_does(launch: str, scale: str, more: str) -> None:
    assert verdict(launch, scale, more) is Verdict.RACY


@pytest.mark.parametrize(
    "launch",
    [
        LAUNCH,
        f"if (n > 5) {{ {LAUNCH} }}",
        f"if (scale == nullptr) {{ {LAUNCH} }}",
        f"if (scale != nullptr || n > 5) {{ {LAUNCH} }}",
        f"if (scale == nullptr) scale = table(n); if (scale != nullptr) {{ {LAUNCH} }}",
        f"if (in != nullptr) {{ {LAUNCH} }}",
        f"if (scale != nullptr) n = 5; {LAUNCH}",
        f"bool scaled = scale != nullptr; if (n > 9) scaled = true; if (scaled) {{ {LAUNCH} }}",
    ],
)
def test_who_passes_none_and_comes_there_all_the_same_counts(launch: str) -> None:
    assert verdict(f"const float* table(int); {launch}") is Verdict.RACY
