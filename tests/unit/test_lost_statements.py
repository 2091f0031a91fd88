"""Statements of which clang keeps nothing, as a class that they use has an error of its own, are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

TEXT = """
template <typename T, unsigned N> struct Walk {{
    T* const at; {number} offset;
    __device__ Walk(T* a, {number} o) : at(a), offset(o) {{}}
    __device__ Walk& operator++() {{ offset += N * gridDim.x; return *this; }}
    __device__ T& operator*() const {{ return *(at + offset); }}
    __device__ bool operator!=(const Walk& o) const {{ return o.offset > offset; }}
}};
template <typename T, unsigned N> struct List {{
    T* const data; const {number} size;
    __device__ List(T* a, {number} n) : data(a), size(n) {{}}
    __device__ Walk<T, N> begin() const {{ return Walk<T, N>(data, blockIdx.x * N + threadIdx.x); }}
    __device__ Walk<T, N> end() const {{ return Walk<T, N>(data, size); }}
}};
#define NOTHING(x)
#define TWICE(x) x; x
#define FOUR_TIMES(x) TWICE(x); TWICE(x)
#define MORE(a, b) ((a) = (a) + (b))
#define UNROLLED _Pragma("unroll")
__device__ int in[64];
__global__ void k(int* out, int n) {{
    {body}
}}
void go(int* out, int n) {{ k<<<4, 32>>>(out, n); }}
"""


def checked(body: str, number: str = "unknown_t") -> KernelReport:
    return check_text(Path("/k.cu"), TEXT.format(body=body, number=number)).kernels[0]


LIST = "List<int, 32> all = List<int, 32>(in, 64);"


@pytest.mark.parametrize(
    "body",
    [
        f"{LIST} for (auto& it : all) out[threadIdx.x] = it;",
        f"{LIST} if (n > 3) for (auto& it : all) out[threadIdx.x] = it;",
        f"{LIST} for (int i = 0; i < n; i++) for (auto& it : all) out[i] = it;",
        f"{LIST} NOTHING(a) ; for (auto& it : all) {{ out[0] = it; }} NOTHING(b)",
    ],
)
def test_a_loop_that_clang_drops_is_not_decided(body: str) -> None:
    assert checked(body).verdict is Verdict.UNDECIDED
    assert checked(body, "unsigned").verdict is not Verdict.RACE_FREE


@pytest.mark.parametrize(
    "body",
    [
        "NOTHING(a); ; NOTHING(b) out[blockIdx.x * 32 + threadIdx.x] = n; // for (;;) out[0] = 1;",
        "[[maybe_unused]] int k = 32 * blockIdx.x; UNROLLED for (; n < 1; n++) out[k + threadIdx.x] = n;",
        "#ifdef UNDEFINED\n for (;;) n++;\n#else\n n += 2;\n#endif\n out[blockIdx.x * 32 + threadIdx.x] = n;",
        "int k = n; ;\n ;if (k > 3) out[blockIdx.x * 32 + threadIdx.x] = n; ; for (;;) break;",
        "int k = 1; TWICE(MORE(k, n)); FOUR_TIMES(MORE(k, n)); out[blockIdx.x * 32 + threadIdx.x] = k;",
        'if (n > 3) { NOTHING(out[3]) } else ; asm volatile ("" :: "r"(n));',
    ],
)
def test_macros_and_what_is_not_compiled_are_no_statements(body: str) -> None:
    assert checked(body).verdict is Verdict.RACE_FREE


def test_it_is_quoted_from_its_beginning() -> None:
    report = checked(f"{LIST} NOTHING(a); using Name = unknown_type<3>; for (auto& it : all) out[0] = it;")
    assert any(reason.startswith("for (auto& it : all) out[0] = it; is not") for reason in report.reasons)
    assert not any("using" in reason and "keeps nothing" in reason for reason in report.reasons)
