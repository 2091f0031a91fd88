"""Shared indices outside their array, and shared memory read before it is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_notation import TID, Notation

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import Code, LaunchConfig, Status
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.diagnostics.bounds import bounds_findings, uninitialised_findings
from cuda_lsp.static.execution.enumerate import execute


def run(kernel, threads=64):
    return execute(kernel, LaunchConfig((threads, 1, 1), (1, 1, 1)), {}, GpuModel("sm_80", (8, 0)))


def test_an_index_one_past_the_end_is_named() -> None:
    n = Notation()
    s = n.shared("s", 64)
    (finding,) = bounds_findings(run(n.kernel(n.write(s, TID + 1))))
    assert finding.code is Code.SHARED_OUT_OF_BOUNDS
    assert "s[64]" in finding.message and "thread 63" in finding.message


def test_an_index_inside_a_guard_is_fine() -> None:
    n = Notation()
    s = n.shared("s", 64)
    assert not bounds_findings(run(n.kernel(n.when(TID < 63, n.write(s, TID + 1)))))


def test_a_negative_index_is_out_of_bounds() -> None:
    n = Notation()
    s = n.shared("s", 64)
    assert bounds_findings(run(n.kernel(n.write(s, TID - 1))))


def test_a_read_of_what_nobody_wrote_is_named() -> None:
    n = Notation()
    s = n.shared("s", 128)
    (finding,) = uninitialised_findings(run(n.kernel(n.write(s, TID), n.sync(), n.read(s, TID + 10))))
    assert "s[64]" in finding.message


def test_what_was_written_may_be_read() -> None:
    n = Notation()
    s = n.shared("s", 128)
    assert not uninitialised_findings(run(n.kernel(n.write(s, TID), n.sync(), n.read(s, 63 - TID))))


def bit_fields(body: str) -> list[str]:
    before = "struct F { unsigned a : 4; unsigned b : 12; };\n"
    text = f"{before}__global__ void k(int* out) {{ int t = threadIdx.x; __shared__ F s[64]; {body} }}\n"
    report = check_text(Path("k.cu"), f"{text}void f(int* o) {{ k<<<1, 64>>>(o); }}\n")
    return [f.message for f in report.findings if f.code is Code.SHARED_UNINITIALISED]


@pytest.mark.parametrize(
    "body",
    [
        "s[t].a = t; __syncthreads(); out[t] = s[63 - t].a;",
        "s[t].a = 1; s[t].b = t; __syncthreads(); out[t] = s[t ^ 1].b;",
        "if (t == 0) s[0].b = 3; __syncthreads(); out[t] = s[0].b;",
        "s[t].b = t; s[t].b += 1; out[t] = s[t].b;",
    ],
)
def test_a_store_to_a_bit_field_reads_nothing_that_nobody_wrote(body: str) -> None:
    assert not bit_fields(body)


def test_a_bit_field_that_nobody_wrote_is_told() -> None:
    (told,) = bit_fields("out[t] = s[t].a;")
    assert "s[t].a" in told


def test_what_a_pointer_reads_that_data_may_have_turned_elsewhere_is_not_surely_unwritten() -> None:
    body = """__shared__ float a[64], b[64]; float* p = a; p[t] = 1; __syncthreads();
              if (in[0]) p = b; out[t] = p[63 - t];"""
    text = f"__global__ void k(const int* in, float* out) {{ int t = threadIdx.x; {body} }}\n"
    report = check_text(Path("k.cu"), f"{text}void f(int* i, float* o) {{ k<<<1, 64>>>(i, o); }}\n")
    assert not [f for f in report.findings if f.status is Status.PROVED]


@pytest.mark.parametrize(
    "body",
    [
        "memcpy(&s[t], &in[t], t == 63 ? 8 : 4);",
        "if (t == 0) memcpy(s, in, n);",
        "if (t == 0) memcpy(s, in, in[0]);",
        "int* parts[2] = {s, s + 32}; parts[in[0]][t % 32] = 1;",
        "int* parts[2] = {s, s + 32}; atomicAdd(parts[in[0]], 1);",
    ],
    ids=["bytes by thread", "bytes of an argument", "bytes that are data", "part that is data", "atomic"],
)
def test_where_bytes_are_written_that_nobody_knows_none_is_surely_unwritten(body: str) -> None:
    body = f"int t = threadIdx.x; __shared__ int s[66]; {body} __syncthreads(); out[t] = s[63 - t];"
    text = f"__global__ void k(const int* in, int* out, int n) {{ {body} }}\n"
    report = check_text(Path("k.cu"), f"{text}void f(int* i, int* o, int n) {{ k<<<1, 64>>>(i, o, n); }}\n")
    assert not [f for f in report.findings if f.code is Code.SHARED_UNINITIALISED]


def test_a_store_to_memory_of_the_grid_does_not_hide_what_nobody_wrote() -> None:
    body = "int t = threadIdx.x; __shared__ int s[64]; memcpy(out, in, n); out[t] = s[t];"
    text = f"__global__ void k(const int* in, int* out, int n) {{ {body} }}\n"
    report = check_text(Path("k.cu"), f"{text}void f(int* i, int* o, int n) {{ k<<<1, 64>>>(i, o, n); }}\n")
    assert [f for f in report.findings if f.code is Code.SHARED_UNINITIALISED]


FALLING = """
__global__ void fall(float* out, float top) {
    __shared__ float s[64];
    if (threadIdx.x == 0) {
        FIRST
        for (int i = 1; i < 32; i++) {
            s[i] = s[i - 1] * 0.5f;
            s[i - 1] += 1;
        }
    }
    __syncthreads();
    if (threadIdx.x < 32) out[32 * blockIdx.x + threadIdx.x] = s[threadIdx.x];
}
void f(float* o) { fall<<<4, 64>>>(o, 8); }
"""


@pytest.mark.parametrize(("first", "told"), [("s[0] = top;", []), ("", ["s[0]"])])
def test_an_earlier_round_of_a_loop_may_have_written(first: str, told: list[str]) -> None:
    report = check_text(Path("k.cu"), FALLING.replace("FIRST", first))
    found = [f.message for f in report.findings if f.code is Code.SHARED_UNINITIALISED]
    assert len(found) == len(told)
    assert all(f"no thread has written {name}" in message for name, message in zip(told, found, strict=True))


@pytest.mark.parametrize("above", ["i + 1", "31 - i"])
def test_what_a_later_round_writes_was_not_written(above: str) -> None:
    loop = f"for (int i = 0; i < 16; i++) {{ out[t + 64 * i] = s[{above}]; s[i] = t; }}"
    text = f"__global__ void k(int* out) {{ int t = threadIdx.x; __shared__ int s[64]; if (t == 0) {loop} }}"
    report = check_text(Path("k.cu"), f"{text}\nvoid f(int* o) {{ k<<<1, 64>>>(o); }}\n")
    assert [f.code for f in report.findings] == [Code.SHARED_UNINITIALISED]


FILLED = """
template <int M> __global__ void k(float* t, const float* x, int n) {{
  __shared__ float s[2 * M + 1];
  if (threadIdx.x == 0) {{
    for (int i = 0; i < 2 * n; i++) s[i] = x[i];
    {last}
  }}
  __syncthreads();
  for (int e = threadIdx.x; e < 2 * M + 1; e += 64) t[e] = s[e];
}}
template <int M> void launch(float* t, const float* x, int n) {{ k<M><<<1, 64>>>(t, x, n); }}
void go(float* t, const float* x, int n) {{ if (n > 16) launch<32>(t, x, n); }}
"""


def test_what_a_loop_of_unknown_length_fills_is_not_known_to_be_unwritten() -> None:
    report = check_text(Path("k.cu"), FILLED.format(last="s[2 * M] = x[3];"))
    assert not any(f.code is Code.SHARED_UNINITIALISED and f.status is Status.PROVED for f in report.findings)


def test_what_no_loop_fills_is_told_beside_one_of_unknown_length() -> None:
    other = "__shared__ float u[64]; u[0] = 1; t[threadIdx.x] = u[threadIdx.x];"
    text = FILLED.replace("  __syncthreads();\n", f"  {other}\n".replace("{", "{{") + "  __syncthreads();\n")
    report = check_text(Path("k.cu"), text.format(last=""))
    assert "u[" in "".join(f.message for f in report.findings if f.code is Code.SHARED_UNINITIALISED)


def test_memory_that_assembly_declares_may_be_what_a_dynamic_array_lies_over() -> None:
    text = """
    __global__ void k(float* out) {
        DECLARES extern __shared__ float s[];
        s[threadIdx.x] = 1; out[threadIdx.x] = s[threadIdx.x];
    }
    void f(float* out) { k<<<1, 64>>>(out); }
    """
    plain, declared = (
        {f.code for f in check_text(Path("k.cu"), text.replace("DECLARES", asm)).kernels[0].findings}
        for asm in ("", 'asm(".shared .align 16 .b32 share[64];" ::);')
    )
    assert Code.SHARED_OUT_OF_BOUNDS in plain
    assert declared == {Code.ANALYSIS_INCOMPLETE}
