"""A record that lies in one that is passed, handed on by value: its pointers are the parameter's."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
template <class T> struct Held {{
    T* data;
    size_t pitch;
    __device__ T* row(int y) const {{ return (T*)((char*)data + y * pitch); }}
}};
template <class T> struct Sized : Held<T> {{ int width, height; }};
struct Plain {{ float* data; size_t pitch; int width, height;
    __device__ float* row(int y) const {{ return (float*)((char*)data + y * pitch); }}
}};
using Image = {image};
struct Task {{
    Image from, to; float matrix[3]; float* out;
    __device__ float at(const Image image, int x, int y) const {{ return image.row(y)[x]; }}
    __device__ void put(Image image, int x, int y, float v) const {{ image.row(y)[x] = v; }}
}};
__global__ void k(const Task t, int o) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= t.to.width || y >= t.to.height) return;
    float v = t.at(t.from, x, y + 1) * t.matrix[o];
    {body}
}}
void run(Task t, int o) {{ k<<<dim3(9, 9), 32>>>(t, o); }}
"""


IMAGES = ("Plain", "Sized<float>")


def verdict(body: str, image: str) -> Verdict:
    report = check_text(Path("k.cu"), KERNEL.format(body=body, image=image))
    assert not report.errors
    return report.kernels[0].verdict


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("body", ["t.out[y * t.to.width + x] = v;", "t.put(t.to, x, y, v);"])
def test_what_a_copy_points_to_is_known(body: str, image: str) -> None:
    assert verdict(body, image) is Verdict.RACE_FREE


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize(
    "body",
    [
        "t.put(t.from, x, y, v);",  # where others read the next row
        "t.put(t.to, x / 2, y, v);",
        "t.from.data[y * 32 + x] = v;",
        "Image other = t.to; other.data = t.from.data; t.put(other, x, y, v);",
    ],
)
def test_what_is_stored_through_a_copy_is_stored(body: str, image: str) -> None:
    assert verdict(body, image) is not Verdict.RACE_FREE
