"""Blocks that enumerations in classes say: each class has its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import LaunchConfig
from cuda_lsp.static.analyze import check_text

CLASSES = """namespace work {
struct Blur { enum { THREADS = 64, ROWS = 2 }; };
struct Sharpen { enum Extents { THREADS = 192, ROWS = THREADS / 64 }; };
struct Other { enum class Kind { THREADS = 32 }; };
template <class T> struct Sum { enum { THREADS = 512, STRIDE = THREADS }; T* data; };
template <class T> struct Product { enum { THREADS = 256 }; };
}
__global__ void k(float* a) { a[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
"""


def launch_of(host: str, block: str) -> LaunchConfig:
    text = f"{CLASSES}void f(float* a) {{ {host} k<<<4, {block}>>>(a); }}\n"
    return check_text(Path("k.cu"), text, Settings(solver=False)).kernels[-1].launches[0]


@pytest.mark.parametrize(
    ("host", "block", "extents"),
    [
        ("", "work::Blur::THREADS", (64, 1, 1)),
        ("", "dim3(work::Sharpen::THREADS, work::Sharpen::ROWS)", (192, 3, 1)),
        ("using namespace work; int block = Sharpen::THREADS;", "block", (192, 1, 1)),
        ("using S = work::Sum<float>;", "S::STRIDE", (512, 1, 1)),
        ("", "work::Product<int>::THREADS", (256, 1, 1)),
    ],
)
def test_an_enumerator_is_its_classes(host: str, block: str, extents: tuple[int, int, int]) -> None:
    launch = launch_of(host, block)
    assert launch.block == extents and not launch.assumed


@pytest.mark.parametrize("block", ["work::Missing::THREADS", "work::Other::THREADS"])
def test_a_class_that_has_none_says_nothing(block: str) -> None:
    assert launch_of("", block).assumed
