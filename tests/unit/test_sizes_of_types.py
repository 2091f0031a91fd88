"""Launches that hang on the sizes of types which template parameters of the host stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.host_constants import HostConstants
from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.frontend.host.text import HostText
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """template <class T> __global__ void turn(T* out, const T* in, int n) {
    __shared__ T s[1024];
    s[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
"""
HOST = """template <class T> void run(T* out, const T* in, int n) {
    turn<<<9, 512 / (4 / sizeof(T))>>>(out, in, n);
}
"""


def blocks(text: str) -> dict[str, list[tuple[int, int, int]]]:
    """Of each instance: the blocks of its launches."""
    report = check_text(Path("turn.cu"), text)
    assert all(kernel.verdict is Verdict.RACE_FREE for kernel in report.kernels)
    return {
        kernel.name.replace("__cuda_lsp_narrow::", ""): [launch.block for launch in kernel.launches]
        for kernel in report.kernels
    }


@pytest.mark.parametrize(
    "instances",
    [
        "template void run(float* out, const float* in, int n);\n"
        "template void run(__half* out, const __half* in, int n);\n",
        "template void run<float>(float*, const float*, int);\n"
        "template void run<__half>(__half*, const __half*, int);\n",
        "#define MAKE(T) template void run(T* out, const T* in, int n)\nMAKE(float);\nMAKE(__half);\n",
        "#define ONE(T) \\\n    template void run(T* out, \\\n                      const T* in, int n);\n"
        "#define BOTH() ONE(float) ONE(__half)\nBOTH()\n",
        "void both(float* a, __half* b) { run<float>(a, a + 9216, 1); run<__half>(b, b + 9216, 1); }\n",
    ],
    ids=["deduced", "listed", "by a macro", "by a macro of macros", "called"],
)
def test_a_block_follows_the_size_of_the_type(instances: str) -> None:
    assert blocks(KERNEL + HOST + instances) == {"turn<float>": [(512, 1, 1)], "turn<__half>": [(256, 1, 1)]}


def test_a_type_within_another_is_deduced() -> None:
    host = (
        "template <class T, class U> struct Pair { T* out; const U* in; int n; };\n"
        "template <class T, class U> void run(Pair<T, U>& p) {\n"
        "    turn<T><<<9, 128 * sizeof(T) / sizeof(U)>>>(p.out, p.out, p.n);\n}\n"
        "template void run(Pair<float, __half>& p);\n"
    )
    assert blocks(KERNEL + host) == {"turn<float>": [(256, 1, 1)]}


def test_a_function_is_called_for_a_type() -> None:
    host = (
        "template <class T> int each() { return sizeof(float) / sizeof(T); }\n"
        "template <class T> void run(T* out, const T* in, int n) {\n"
        "    turn<<<9, 512 / each<T>()>>>(out, in, n);\n}\n"
        "template void run(float*, const float*, int);\ntemplate void run(__half*, const __half*, int);\n"
    )
    assert blocks(KERNEL + host) == {"turn<float>": [(512, 1, 1)], "turn<__half>": [(256, 1, 1)]}


def test_sizes_and_types_are_told_together() -> None:
    host = (
        "template <class T> void run(T* out, const T* in, int n) {\n"
        "    bool wide = sizeof(T) == 2 && n % 2 == 0;\n    dim3 block(n / (wide ? 2 : 1));\n"
        "    turn<T><<<9, block>>>(out, in, n);\n}\n"
        "template void run(float*, const float*, int);\ntemplate void run(__half*, const __half*, int);\n"
    )
    assert blocks(KERNEL + host) == {
        "turn<float>": [(1024, 1, 1), (256, 1, 1)],
        "turn<__half>": [(512, 1, 1), (128, 1, 1)],
    }


def test_a_type_that_nobody_tells_leaves_the_block_unknown() -> None:
    (site,) = find_launches(Path("turn.cu"), HOST)
    assert site.block is None
    assert not site.sized


def test_an_instance_of_another_function_tells_nothing() -> None:
    other = "template <class T> void walk(T* out);\ntemplate void walk(float* out);\n"
    (site,) = find_launches(Path("turn.cu"), HOST + other)
    assert site.block is None


def test_a_ladder_of_branches_reaches_large_sizes() -> None:
    host = (
        "void run(float* a, int n) {\n    int block = (n + 31) / 32 * 32;\n"
        "    if (block <= 1024) { one<<<8, block>>>(a); }\n"
        "    else if (block <= 8192) { eight<<<8, block / 8>>>(a); }\n"
        "    else if (block <= 32768) { many<<<8, block / 32>>>(a); }\n}\n"
    )
    sites = find_launches(Path("ladder.cu"), host)
    assert [site.kernel for site in sites if site.sized] == ["one", "eight", "many"]


def test_a_long_chain_of_names_is_followed_in_time() -> None:
    lines = ["    int v0 = n;"]
    lines += [
        f"    int v{i} = v{i - 1} < 64 ? v{i - 1} + v{i - 1} - v{i - 1} : v{i - 1} + 0;" for i in range(1, 11)
    ]
    text = "void run(int n) {\n" + "\n".join(lines) + "\n    use(v10);\n}\n"
    host = HostText(text)
    constants, at = HostConstants(host), host.plain.index("use(")
    assert "n" in {name for name, _ in constants.missing("v10", at)}
    assert constants._work < 10_000  # pyright: ignore[reportPrivateUsage]
