"""Launches of which nobody reads the block: no verdict rests on the block that the kernel counts on."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.tiers import enumerate_kernel

TEXT = """
struct Config {{ int warps; int threads() const {{ return warps * 32; }} }};
template <class K, class... A> void start(K k, int blocks, int threads, A... args) {{
    k<<<blocks, threads>>>(args...);
}}
{template}__global__ void {bounds}k(float* x, const float* gain, int n) {{
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    {body}
}}
void run(float* x, const float* gain, int n, const Config& c) {{
    {launch}
}}
"""
SCALE = "if (i < n) x[i] *= gain[blockIdx.x];"
PLAIN = "k<<<(n + 127) / 128, c.threads()>>>(x, gain, n);"


def left_open(body: str, launch: str, bounds: str = "", template: str = "") -> tuple[str, ...]:
    text = TEXT.format(body=body, launch=launch, bounds=bounds, template=template)
    translation = Translation(Path("k.cu"), text)
    (source,) = translation.kernels()
    return enumerate_kernel(translation.lower(source), Settings()).unseen


@pytest.mark.parametrize(
    "launch",
    [
        PLAIN,
        "k<<<64, c.threads()>>>(x, gain, n);",
        "k<<<n / 128, dim3(c.threads())>>>(x, gain, n);",
        "k<<<n / 128, 128>>>(x, gain, n); k<<<n / 128, c.threads()>>>(x, gain, n);",
        "start(k, n / 128, c.threads(), x, gain, n);",
        "auto p = k; p<<<n / 128, c.threads()>>>(x, gain, n);",
        "void* a[] = {&x, &gain, &n}; cudaLaunchKernel((void*)k, dim3(64), dim3(c.threads()), a, 0, 0);",
    ],
)
def test_a_block_that_is_not_read_may_be_larger_than_the_kernel_counts_on(launch: str) -> None:
    (reason,) = left_open(SCALE, launch)
    assert "the block of the launch on line" in reason and "is not known" in reason


def test_nor_is_that_of_an_instance_whose_numbers_indices_count_on() -> None:
    text = TEXT.format(body=SCALE, launch=PLAIN.replace("k<", "k<128><"), bounds="", template="")
    text = text.replace("__global__", "template <int N> __global__").replace(
        "blockIdx.x * 128", "blockIdx.x * N"
    )
    translation = Translation(Path("k.cu"), text)
    (source,) = translation.kernels()
    assert enumerate_kernel(translation.lower(source), Settings()).unseen


@pytest.mark.parametrize(
    ("body", "launch", "bounds"),
    [
        (SCALE, "k<<<(n + 127) / 128, 128>>>(x, gain, n);", ""),
        (SCALE, "", ""),  # nobody launches it: all is assumed, and shown as that
        (SCALE, PLAIN, "__launch_bounds__(128) "),
        ("if (t < 128 && i < n) x[i] *= gain[blockIdx.x];", PLAIN, ""),
        ("if (t == 0) x[blockIdx.x] = gain[i];", PLAIN, ""),
        ("assert(blockDim.x == 128); " + SCALE, PLAIN, ""),
        ("__shared__ float s[128]; s[t] = gain[i]; x[i] = s[t];", PLAIN, ""),  # larger ones leave the array
        ("i = blockIdx.x * blockDim.x + t; " + SCALE, PLAIN, ""),
    ],
)
def test_kernels_that_larger_blocks_do_not_harm_are_decided(body: str, launch: str, bounds: str) -> None:
    assert left_open(body, launch, bounds) == ()


def test_such_a_kernel_is_not_called_race_free() -> None:
    text = TEXT.format(body="x[i] *= gain[blockIdx.x];", launch=PLAIN, bounds="", template="")
    (kernel,) = check_text(Path("k.cu"), text).kernels
    assert kernel.verdict is Verdict.UNDECIDED
    assert any("is not known" in reason for reason in kernel.reasons)


COLUMNS = "__global__ void k(float* d) { d[blockIdx.x] = d[blockIdx.x] + threadIdx.x; }\n"
ONE = "void f(float* d) { k<<<4, 1>>>(d); }\n"


def test_a_launch_whose_block_follows_a_size_stands_beside_one_that_is_told() -> None:
    (report,) = check_text(
        Path("k.cu"), COLUMNS + ONE + "void g(float* d, int n) { k<<<4, n>>>(d); }"
    ).kernels
    assert report.verdict is Verdict.UNDECIDED
    assert report.reasons == (
        "the block of the launch on line 3 is not known, and some may race; `// cuda-lsp: launch` would tell",
    )
    (report,) = check_text(Path("k.cu"), COLUMNS + ONE).kernels
    assert report.verdict is Verdict.RACE_FREE


def test_who_calls_itself_with_another_block_launches_others_too() -> None:
    host = "void f(float* d, int t) { k<<<4, t>>>(d); if (t < 64) f(d, T); }\nvoid g(float* d) { f(d, 1); }"
    (report,) = check_text(Path("k.cu"), COLUMNS + host.replace("T", "t * 2")).kernels
    assert report.verdict is Verdict.UNDECIDED
    (report,) = check_text(Path("k.cu"), COLUMNS + host.replace("T", "t")).kernels
    assert report.verdict is Verdict.RACE_FREE


def test_larger_blocks_that_only_sizes_make_and_do_no_harm_change_nothing() -> None:
    kernel = "__global__ void k(float* d) { d[blockIdx.x * blockDim.x + threadIdx.x] = 1; }\n"
    host = "void f(float* d, int n) { k<<<4, 64>>>(d); k<<<4, n>>>(d); }"
    (report,) = check_text(Path("k.cu"), kernel + host).kernels
    assert report.verdict is Verdict.RACE_FREE


def test_a_caller_in_another_file_that_does_not_tell_stands_beside_one_that_does(tmp_path: Path) -> None:
    run = "void run(float* d, int t) { k<<<4, t>>>(d); }\n"
    (tmp_path / "k.cu").write_text(COLUMNS + run)
    (tmp_path / "a.cpp").write_text("void run(float*, int);\nvoid f(float* d) { run(d, 1); }\n")
    other = tmp_path / "b.cpp"
    for passed, verdict in (("n", Verdict.UNDECIDED), ("1", Verdict.RACE_FREE), ("2", Verdict.RACY)):
        other.write_text(f"void run(float*, int);\nvoid g(float* d, int n) {{ run(d, {passed}); }}\n")
        (report,) = check_text(tmp_path / "k.cu", COLUMNS + run).kernels
        assert report.verdict is verdict
        if passed == "n":
            assert report.reasons == (
                "the block of the launch on line 2 of b.cpp is not known, and some may race;"
                " `// cuda-lsp: launch` would tell",
            )
