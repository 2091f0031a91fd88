"""Small vectors and matrices of GLM, whose headers are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import FileReport, Verdict
from cuda_lsp.static.analyze import check_text

LOOK = """#include <glm/glm.hpp>
#include <glm/gtc/type_ptr.hpp>
using vec3 = glm::vec<3, float>;
__device__ glm::mat3 spread(const vec3 s, const glm::quat q) {{
    glm::mat3 turned = glm::mat3_cast(q) * glm::mat3(s[0], 0, 0, 0, s[1], 0, 0, 0, s[2]);
    return turned * glm::transpose(turned);
}}
__global__ void look(const float* at, const float* turns, glm::vec2* to, glm::mat3* spreads, int n) {{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    vec3 p = glm::make_vec3(at + 3 * i);
    glm::vec4 q = glm::normalize(glm::vec4(p, 1.0f));
    spreads[i] = spread(p, glm::make_quat(turns + 4 * i));
    spreads[i][0][2] += 0.5f;
    to[{place}] = glm::vec2(p.x, p.y) * 0.5f / q.w + glm::max(glm::vec2(0.0f), glm::dot(p, p));
    {more}
}}
void go(const float* at, const float* turns, glm::vec2* to, glm::mat3* spreads, int n) {{
    look<<<(n + 127) / 128, 128>>>(at, turns, to, spreads, n);
}}
"""
MARK = """#include <glm/glm.hpp>
__global__ void mark(float* image, int width, int height) {{
    glm::ivec2 p = glm::ivec2(blockIdx.x, blockIdx.y) * 16 + glm::ivec2(threadIdx.x, threadIdx.y);
    {step}
    if (glm::any(glm::greaterThanEqual(p, glm::ivec2(width, height)))) return;
    image[p.y * width + p.x] = 1.0f;
}}
void go(float* image, int w, int h) {{
    mark<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(image, w, h);
}}
"""


def checked(text: str) -> FileReport:
    return check_text(Path("look.cu"), text, Settings())


@pytest.mark.parametrize(
    ("place", "more", "wanted"),
    [
        ("i", "", Verdict.RACE_FREE),
        ("i / 2", "", Verdict.RACY),
        ("i", "if (i + 1 < n) to[i] += to[i + 1];", Verdict.RACY),
        ("i", "if (i > 0) spreads[i] = glm::transpose(spreads[0]);", Verdict.RACY),
    ],
)
def test_vectors_and_matrices_lie_in_memory_as_they_are_declared(
    place: str, more: str, wanted: Verdict
) -> None:
    (told,) = checked(LOOK.format(place=place, more=more)).kernels
    assert told.verdict is wanted
    assert all(finding.site.range.path == Path("look.cu") for finding in told.findings)


@pytest.mark.parametrize(
    ("step", "wanted"),
    [("", Verdict.RACE_FREE), ("p += glm::ivec2(1, 0);", Verdict.RACE_FREE), ("p /= 2;", Verdict.RACY)],
)
def test_vectors_of_numbers_are_computed(step: str, wanted: Verdict) -> None:
    (told,) = checked(MARK.format(step=step)).kernels
    assert told.verdict is wanted


def test_a_library_that_is_there_is_not_declared_again(tmp_path: Path) -> None:
    """What is declared by convention beside it helps as before."""
    (tmp_path / "glm").mkdir()
    (tmp_path / "glm/glm.hpp").write_text("namespace glm { struct vec3 { float x, y, z; }; }\n")
    text = """#include <glm/glm.hpp>
    __global__ void clear(glm::vec3* p, int n) { CUDA_KERNEL_LOOP(i, n) { p[i].x = p[i].y = p[i].z = 0; } }
    void go(glm::vec3* p, int n) { clear<<<8, 128>>>(p, n); }
    """
    path = tmp_path / "clear.cu"
    path.write_text(text)
    (told,) = check_text(path, text, Settings()).kernels
    assert told.verdict is Verdict.RACE_FREE


@pytest.mark.parametrize(("barrier", "wanted"), [("__syncthreads();", Verdict.RACE_FREE), ("", Verdict.RACY)])
def test_macros_of_cutlass_say_what_they_say(barrier: str, wanted: Verdict) -> None:
    text = f"""CUTLASS_DEVICE int other(int i) {{ return 31 - i; }}
    __global__ void turn(int* p) {{
        __shared__ int s[32];
        s[threadIdx.x] = p[threadIdx.x];
        {barrier}
        int sum = 0;
        CUTLASS_PRAGMA_UNROLL
        for (int i = 0; i < 2; ++i) sum += s[other(threadIdx.x)];
        p[threadIdx.x] = sum;
    }}
    void go(int* p) {{ turn<<<1, 32>>>(p); }}
    """
    (told,) = checked(text).kernels
    assert told.verdict is wanted
