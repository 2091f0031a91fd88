"""When a shared array is left: the closest limit of a size, or an example where no limit is enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import Code
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(float* out, const float* in, const int n, const int m) {
    __shared__ float s[4][16][24];
    int x = threadIdx.x, y = threadIdx.y;
    for (int r = 0; r < 4; r++) s[r][y][x] = in[r * 128 + y * 8 + x];
    __syncthreads();
    float sum = 0;
    BODY
    out[y * 8 + x] = sum;
}
void run(float* a, const float* b, int n, int m) { k<<<1, dim3(8, 16)>>>(a, b, n, m); }
"""


def told(body: str, host: str = "") -> list[str | None]:
    text = KERNEL.replace("BODY", body).replace("{ k<<<", f"{{ {host} k<<<")
    (kernel,) = check_text(Path("k.cu"), text, Settings(solver_budget=6_000)).kernels
    return [f.condition for f in kernel.findings if f.code is Code.SHARED_OUT_OF_BOUNDS]


@pytest.mark.parametrize(
    ("body", "condition"),
    [
        ("for (int r = 0; r < 4; r++) for (int i = 0; i < n; i++) sum += s[r][y][i];", "`n` > 24"),
        ("for (int i = 0; i < n; i++) sum += s[3][15][i];", "`n` > 24"),
        ("for (int i = 0; i < n; i++) sum += s[3][i][x];", "`n` > `blockDim.y` (16)"),
    ],
)
def test_the_closest_limit_of_a_size_is_told(body: str, condition: str) -> None:
    (found,) = told(body)
    assert found == condition


@pytest.mark.parametrize(
    ("body", "example"),
    [
        ("sum += s[3][8][n % 500];", "for example `n` == 192"),
        ("if (n % 4 == 3) for (int i = 0; i < n; i++) sum += s[3][15][i];", "for example `n` == 27"),
        ("if (y + n < 900) sum += s[3][y + n][x];", "for example `n` == 16"),
    ],
)
def test_what_is_not_enough_is_told_as_an_example(body: str, example: str) -> None:
    assert told(body) == [example]


@pytest.mark.parametrize(
    "body",
    [
        "for (int i = 0; i < n && i < 24; i++) sum += s[3][y][i];",
        "if (n <= 24 && n > 0) sum += s[3][y][n - 1];",
    ],
)
def test_what_stays_inside_is_not_told(body: str) -> None:
    assert not told(body)


def test_a_limit_of_the_program_is_told_where_no_size_lies_between() -> None:
    body = "for (int i = 0; i < n; i++) sum += s[3][i][x];"
    assert told(body, "assert(n % 8 == 0);") == ["`n` > `blockDim.y` (16)"]
    body = "for (int i = 0; i < n; i++) sum += s[3][y][i];"
    assert told(body, "assert(n % 16 == 0);") == ["`n` > `blockDim.y` (16)"]
    assert told(body, "assert(n % 4 == 0);") == ["`n` > 24"]
