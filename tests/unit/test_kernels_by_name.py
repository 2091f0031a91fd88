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


@pytest.mark.parametrize(
    ("lookup", "arguments"),
    [
        ('get_kernel("k<float, 16>")', "float, 16"),
        ('get_kernel("n::k", {source}, TemplateArgs(TemplateTypename<T>(), TemplateArg(width)))', "T, width"),
        (
            'get_kernel("k", source, run::template_list{TypeOf<float2>{}, 4, Value(n + 1)})',
            "float2, 4, n + 1",
        ),
        ('get_kernel("k", {source}, {{Define(width)}})', None),
    ],
)
def test_template_arguments_are_told_where_the_kernel_is_looked_up(
    lookup: str, arguments: str | None
) -> None:
    text = f"template <typename T> void f(T* p, int width, int n) {{ auto k = {lookup};"
    (site,) = find_launches(Path("a.cpp"), f"{text} Queue q(dim3(n), dim3(32, width)); k(q, p); }}")
    assert (site.kernel, site.template_arguments) == ("k", arguments)


@pytest.mark.parametrize(
    ("step", "arguments"),
    [("instantiate<T, 4>()", "T, 4"), ("instantiate(TypeOf<T>(), 8)", "T, 8"), ("compile(4)", None)],
)
def test_template_arguments_are_told_by_a_step_of_the_chain(step: str, arguments: str | None) -> None:
    text = f'void f(int n) {{ program.kernel("k").{step}.configure(n, 64).launch(n); }}'
    (site,) = find_launches(Path("a.cpp"), text)
    assert site.template_arguments == arguments


LANES = """
template <typename T, int Y>
__global__ void fold(T* out, const T* in) {{
    __shared__ T s[Y * 32];
    int t = threadIdx.y * 32 + threadIdx.x;
    s[t] = in[t];
    {barrier}
    if (threadIdx.y == 0) {{
        T sum = 0;
        for (int y = 0; y < Y; y++) sum += s[y * 32 + threadIdx.x];
        out[threadIdx.x] = sum;
    }}
}}
"""
HOST = """
template <typename T> void launch(T* out, const T* in, int rows) {
    auto fold = get_kernel("deep::fold", {{source}}, TemplateArgs(TypeName<T>(), TemplateArg(rows)));
    Queue queue(dim3(1), dim3(32, rows), stream);
    fold(queue, out, in);
}
void run(float* out, const float* in) { launch<float>(out, in, 8); launch<double>(out2, in2, 4); }
"""


@pytest.mark.parametrize(("barrier", "verdict"), [("__syncthreads();", "race-free"), ("", "racy")])
def test_a_template_argument_and_the_block_are_of_one_launch(
    tmp_path: Path, barrier: str, verdict: str
) -> None:
    """In two files: the kernel's has no launch."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "launch.hpp").write_text(HOST)
    path = tmp_path / "fold.cuh"
    path.write_text(LANES.format(barrier=barrier))
    report = check_text(path, path.read_text(), Settings())
    assert {k.name: k.verdict.value for k in report.kernels} == {
        "fold<float, 8>": verdict,
        "fold<double, 4>": verdict,
    }
    assert {k.launches[0].block for k in report.kernels} == {(32, 8, 1), (32, 4, 1)}


@pytest.mark.parametrize(
    "options",
    [
        "{{DefineValue(ROWS), DefineKeyValue(WIDTH, threads_x)}}",
        '{"-DROWS=" + std::to_string(ROWS), "-D WIDTH=" + to_string(threads_x)}',
    ],
)
def test_macros_that_a_lookup_defines_are_told(options: str) -> None:
    text = f'void f(float* p, int threads_x) {{ auto k = get_kernel("k", {{source}}, {options});'
    (site,) = find_launches(
        Path("a.cpp"), f"{text} Queue q(dim3(n), dim3(threads_x, 256 / threads_x)); k(q, p); }}"
    )
    assert site.definitions == {"ROWS": "ROWS", "WIDTH": "threads_x"}
    (made,) = site.compiled_with({"WIDTH": 32}).sized
    assert made.block == (32, 8, 1)


SHIFTED = """
__global__ void shifted(float* out) {{
    __shared__ float s[8][2 * WIDTH + 1];
    float* row = s[threadIdx.y];
    row[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    int at = 0;
    for (int by = 1; by < WIDTH; by *= 2) {{
        float v = threadIdx.x >= by ? row[at + threadIdx.x - by] : 0;
        at = WIDTH - at;
        row[at + threadIdx.x] = v;
        {barrier}
    }}
    out[(blockIdx.x * 8 + threadIdx.y) * WIDTH + threadIdx.x] = row[at + threadIdx.x];
}}
"""
WIDE = """
const int WIDTH = 32;
void run(float* out, int n) {
    int wide = n < 64 ? 32 : 64;
    auto shifted = get_kernel("shifted", {{source}}, {{DefineKeyValue(WIDTH, wide)}});
    Queue queue(dim3(n), dim3(wide, 256 / wide), stream);
    shifted(queue, out);
}
"""


@pytest.mark.parametrize(("barrier", "verdict"), [("__syncthreads();", "race-free"), ("", "racy")])
def test_the_block_fits_the_macros_that_the_kernel_is_read_with(
    tmp_path: Path, barrier: str, verdict: str
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "run.hpp").write_text(WIDE)
    path = tmp_path / "shifted.cuh"
    path.write_text(SHIFTED.format(barrier=barrier).replace("out[threadIdx.x];", "threadIdx.x;", 1))
    (kernel,) = check_text(path, path.read_text(), Settings()).kernels
    assert [(launch.block, launch.source.value) for launch in kernel.launches] == [
        ((32, 8, 1), "launch in the source, for some sizes")
    ]
    assert kernel.verdict.value == verdict


@pytest.mark.parametrize(("barrier", "verdict"), [("__syncthreads();", "race-free"), ("", "racy")])
def test_so_it_does_where_template_arguments_are_told_as_well(
    tmp_path: Path, barrier: str, verdict: str
) -> None:
    (tmp_path / ".git").mkdir()
    listed = "{{source}}, TemplateArgs(TemplateArg(OP)), "
    host = WIDE.replace("{{source}}, ", listed).replace("void run", "template <int OP>\nvoid run")
    (tmp_path / "run.hpp").write_text(host + "void both(float* out, int n) { run<3>(out, n); }\n")
    path = tmp_path / "shifted.cuh"
    kernel = SHIFTED.format(barrier=barrier).replace("out[threadIdx.x];", "OP * threadIdx.x;", 1)
    path.write_text(kernel.replace("__global__", "template <int OP>\n__global__"))
    (report,) = check_text(path, path.read_text(), Settings()).kernels
    assert {launch.block for launch in report.launches} == {(32, 8, 1)}
    assert (report.name, report.verdict.value) == ("shifted<3>", verdict)
    assert bool(report.findings) == (not barrier)
