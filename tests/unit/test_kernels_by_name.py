"""Launches of kernels that the program compiles when it runs, and looks up by a name in a string."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

LOOKED_UP = """
void f(float* out, int n, Stream stream) {{
    auto blur = kernels::get_kernel("image::blur", {{source}}, Types(float));
    dim3 threads(32, 8);
    dim3 blocks((n + 31) / 32, n);
    {rest}
}}
"""


@pytest.mark.parametrize(
    "rest",
    [
        "Queue queue(blocks, threads, stream); blur(queue, out, n);",
        "Queue queue{blocks, threads}; blur(queue, out, n);",
        "const run::Config c(blocks, threads, stream, 256); blur(c, out, n);",
    ],
)
def test_a_variable_holds_the_kernel_and_an_object_the_launch(rest: str) -> None:
    (site,) = find_launches(Path("a.cpp"), LOOKED_UP.format(rest=rest))
    assert (site.kernel, site.block, site.passed) == ("blur", (32, 8, 1), 2)


@pytest.mark.parametrize(
    "rest",
    [
        "blur(out, n);",  # nothing that was made of a grid and a block
        "Queue queue(stream); blur(queue, out, n);",
        "Queue queue = next(); blur(queue, out, n);",
        "Queue queue(blocks, threads); sharpen(queue, out, n);",
    ],
)
def test_other_calls_launch_nothing(rest: str) -> None:
    assert find_launches(Path("a.cpp"), LOOKED_UP.format(rest=rest)) == ()


def test_the_last_name_that_was_looked_up_counts() -> None:
    rest = 'Queue q(blocks, threads); blur(q, out, n); blur = get_kernel("sharpen<float>"); blur(q, out);'
    sites = find_launches(Path("a.cpp"), LOOKED_UP.format(rest=rest))
    assert [site.kernel for site in sites] == ["blur", "sharpen"]


def test_a_chain_of_calls_is_a_launch() -> None:
    text = 'void f(int n) { program.kernel("blur").instantiate(n).configure(n, 64).launch(out, n); }'
    (site,) = find_launches(Path("a.cpp"), text)
    assert (site.kernel, site.block, site.passed) == ("blur", (64, 1, 1), 2)
    assert find_launches(Path("a.cpp"), text.replace(".configure(n, 64)", "")) == ()


def test_a_name_that_is_no_string_is_none() -> None:
    text = LOOKED_UP.format(rest="Queue queue(blocks, threads); blur(queue, out, n);")
    assert find_launches(Path("a.cpp"), text.replace('"image::blur"', "name")) == ()


def test_a_block_that_is_told_decides_the_kernel() -> None:
    kernel = """
__global__ void blur(float* out, int n) {
    __shared__ float s[256];
    int t = threadIdx.y * blockDim.x + threadIdx.x;
    s[t] = t;
    __syncthreads();
    out[(blockIdx.y * gridDim.x + blockIdx.x) * 256 + t] = s[255 - t];
}
"""
    text = kernel + LOOKED_UP.format(rest="Queue queue(blocks, threads); blur(queue, out, n);")
    (report,) = check_text(Path("a.cu"), text, Settings()).kernels
    assert report.verdict is Verdict.RACE_FREE
    assert report.launches[0].block == (32, 8, 1) and not report.launches[0].assumed
