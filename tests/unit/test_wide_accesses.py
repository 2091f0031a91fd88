"""Accesses of several elements stand at multiples of their size: two that overlap are at one place."""

from __future__ import annotations

from pathlib import Path

import pytest
from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import Code, KernelReport, LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.solver.solve import SolverResult, refine_kernel

KERNEL = """
struct alignas(4) Four {{ float x, y, z, w; }};
__global__ void k({type}* out, int width, int shift) {{
    int c = {count} * threadIdx.x;
    {type}* row = out + blockIdx.x * width;
    {body}
}}
"""


def decided(body: str, type: str = "float", count: int = 4) -> SolverResult:
    launch = LaunchConfig((128, 1, 1), source=LaunchSource.FILE)
    text = KERNEL.format(body=body, type=type, count=count)
    return refine_kernel(lowered(text), [launch], GpuModel("test", (9, 0)))


@pytest.mark.parametrize(
    ("body", "type", "count"),
    [
        ("if (c < width) *(float4*)&row[c] = make_float4(0, 0, 0, 0);", "float", 4),
        ("for (; c < width; c += 4 * blockDim.x) *(int2*)&row[c] = make_int2(0, 0);", "short", 4),
        ("if (c < width) *(float*)&row[c] = 0;", "short", 2),
        # an instruction is no member of a packed record, whatever it stores to
        ('if (c < width) asm("st.global.u32 [%0], %1;" :: "l"(row + c), "r"(7));', "char", 4),
    ],
)
def test_rows_of_whole_vectors_do_not_overlap(body: str, type: str, count: int) -> None:
    result = decided(body, type, count)
    assert result.verdict is Verdict.RACE_FREE, result.reasons
    assert result.assumptions == ()


@pytest.mark.parametrize(
    ("body", "type", "count"),
    [
        ("if (c <= width) *(float4*)&row[c] = make_float4(0, 0, 0, 0);", "float", 4),  # the next row's first
        ("if (c < width) *(Four*)&row[c] = Four();", "float", 4),  # aligned as a float is
        ("*(float4*)&out[c + blockIdx.x * shift] = make_float4(0, 0, 0, 0);", "float", 4),
        ("if (c < width) { row[c] = 0; row[c + 1] = 0; row[c + 2] = 0; row[c + 3] = 0; }", "float", 4),
        ("if (c < width) *(float4*)&row[c] = make_float4(0, 0, 0, 0); else out[c] = 0;", "float", 4),
        # a record may be packed: a number in an array of bytes need not be aligned
        ("struct __attribute__((packed)) P { char c; int x; }; ((P*)(out + threadIdx.x))->x = 1;", "char", 4),
    ],
)
def test_rows_that_a_vector_may_leave_are_not_proved(body: str, type: str, count: int) -> None:
    result = decided(body, type, count)
    assert result.verdict is not Verdict.RACE_FREE or result.assumptions


def launched(body: str, n: str = "1003", shape: str = "2, 64") -> KernelReport:
    kernel = f"__global__ void k(float* out, const float* in, int n) {{ {body} }}\n"
    text = f"{kernel}void f(float* a, float* b, int m) {{ k<<<{shape}>>>(a, b, {n}); }}\n"
    (report,) = check_text(Path("/k.cu"), text).kernels
    return report


def test_vectors_race_beside_single_elements_that_no_thread_of_theirs_touches() -> None:
    report = launched("""int i = blockIdx.x * blockDim.x + threadIdx.x;
        for (int k = i; k < n / 4; k += gridDim.x) ((float4*)out)[k] = ((const float4*)in)[k];
        if (n / 4 * 4 + i < n) out[n / 4 * 4 + i] = 0;""")
    assert Code.GLOBAL_RACE in {f.code for f in report.findings}, report.reasons


@pytest.mark.parametrize("size", ["-8", "1ull << 63"])
def test_a_copy_of_more_bytes_than_there_are_is_not_called_race_free(size: str) -> None:
    report = launched(f"memcpy(out + blockIdx.x, in, {size});")
    assert report.verdict is Verdict.UNDECIDED
    assert any("more bytes than there are" in reason for reason in report.reasons)


COPYING = "int t = threadIdx.x + blockIdx.x * blockDim.x;"


@pytest.mark.parametrize(
    "copy",
    [
        "memcpy(out + t, in, t < 3 ? -4 : 4);",
        "int m = n - 4 * t; if (m > 4) m = 4; memcpy(out + t, in, m);",
        "if (n < -2) return; memcpy((char*)out + t * n, in, n);",
        "if (t == 0) memcpy(out, in, n - 8);",
    ],
)
def test_a_size_that_is_below_zero_for_some_threads_or_arguments_leaves_a_copy_undecided(copy: str) -> None:
    report = launched(f"{COPYING} {copy}", n="m")
    assert report.verdict is not Verdict.RACE_FREE
    assert any("below zero" in reason for reason in report.reasons), report.reasons


def test_so_it_does_in_blocks_of_one_thread() -> None:
    report = launched("memcpy(out + blockIdx.x, in, blockIdx.x < 1 ? -4 : 4);", shape="64, 1")
    assert report.verdict is Verdict.UNDECIDED, report.reasons


def test_a_guarded_size_and_one_that_is_a_parameter_are_decided() -> None:
    guarded = "int m = n - 4 * t; if (m > 4) m = 4; if (m > 0) memcpy(out + t, in, m);"
    report = launched(f"{COPYING} {guarded}", n="m")
    assert (report.verdict, report.assumptions) == (Verdict.RACE_FREE, ())
    report = launched(f"{COPYING} memcpy(out + t * n, in, n * sizeof(float));", n="m")
    assert (report.verdict, report.assumptions) == (Verdict.RACE_FREE, ("`n` is not negative",))


def test_a_copy_of_nothing_touches_nothing() -> None:
    assert launched("memcpy(out, in, 0); if (threadIdx.x + blockIdx.x == 0) out[0] = 1;").verdict is (
        Verdict.RACE_FREE
    )
