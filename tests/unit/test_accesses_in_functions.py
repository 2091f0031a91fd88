"""Accesses that a call leads to, in another file or above the kernel: conditions and words of order."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Finding
from cuda_lsp.static.analyze import check_text

PUT = "__device__ inline void put(int* to, int v) { *(int4*)to = make_int4(v, v, v, v); }\n"

KERNEL = """
__global__ void k(int* out, int n) {{
  __shared__ int s[2052];
  int t = threadIdx.x;
  {body}
  __syncthreads();
  out[t] = s[t];
}}
void go(int* out, int n) {{ k<<<1, 512>>>(out, n); }}
"""

WHOLE = "put(s + 4 * t, t);\n  if (t == 0) s[n] = n - s[n];"
TURNED = "if (t == 0) s[n] = 7;\n  put(s + 4 * t, t);"
ROUNDS = (
    "for (int r = 0; r < 3; r++) {\n    s[t + 1] = r;\n    __syncthreads();\n"
    "    out[r + 9 * t] = got(s + t);\n  }"
)
GOT = "__device__ inline int got(const int* from) { return *from; }\n"


def races(text: str, folder: Path) -> list[Finding]:
    report = check_text(folder / "k.cu", text)
    assert not report.errors
    return [f for f in report.findings if f.code.value.endswith("race")]


@pytest.mark.parametrize("lines", [0, 40], ids=["further up", "further down"])
@pytest.mark.parametrize("name", ["a.h", "z.h"])
@pytest.mark.parametrize("body", [WHOLE, TURNED])
def test_in_another_file_it_is_conditional_by_example_and_not_of_rounds(
    tmp_path: Path, name: str, lines: int, body: str
) -> None:
    (tmp_path / name).write_text("\n" * lines + PUT)
    told = races(f'#include "{name}"\n' + KERNEL.format(body=body), tmp_path)
    assert told
    for finding in told:
        assert "for example" in finding.message, "`n` > 1 is not enough: thread 0 owns the first words"
        assert "round" not in finding.message


def test_a_function_that_stands_above_its_kernel_is_called_behind_what_it_meets(tmp_path: Path) -> None:
    told = races(PUT + KERNEL.format(body=TURNED), tmp_path)
    assert told
    assert not any("round" in finding.message for finding in told)


@pytest.mark.parametrize("name", ["a.h", "z.h"])
def test_rounds_of_a_loop_are_told_as_rounds(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(GOT)
    told = races(f'#include "{name}"\n' + KERNEL.format(body=ROUNDS), tmp_path)
    assert [f.message for f in told if "from one loop round to the next" in f.message]
