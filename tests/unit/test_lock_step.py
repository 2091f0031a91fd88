"""Code that relies on lock step within a warp has a code of its own, one finding a kernel, and a repair."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.workspace import PositionCodec, TextDocument

from cuda_lsp.config import Settings
from cuda_lsp.model import Code, FileReport, KernelReport, Severity, Status, Verdict
from cuda_lsp.report.defects import defects
from cuda_lsp.server.actions import Wanted, actions
from cuda_lsp.static.analyze import check_text

PATH = Path("/k.cu")
VOLATILE = """
    __shared__ float s[128];
    unsigned t = threadIdx.x;
    s[t] = in[blockIdx.x * 128 + t];
    __syncthreads();
    if (t < 64) s[t] += s[t + 64];
    __syncthreads();
    if (t < 32) {
        volatile float* v = s;
        v[t] += v[t + 32];
        v[t] += v[t + 16];
        v[t] += v[t + 8];
        v[t] += v[t + 4];
        v[t] += v[t + 2];
        v[t] += v[t + 1];
    }
    if (t == 0) out[blockIdx.x] = s[0];
"""
TWO_STATEMENTS = """
    __shared__ int a[128];
    int t = threadIdx.x;
    a[t] = t;
    out[blockIdx.x * 128 + t] = a[t ^ 1];
    __syncthreads();
"""
PLAIN = VOLATILE.replace("volatile float* v", "float* v")


def text(body: str, threads: int = 128) -> str:
    return (
        f"__global__ void k(float* out, const float* in) {{{body}}}\n"
        f"void f(float* o, float* i) {{ k<<<4, {threads}>>>(o, i); }}\n"
    )


def kernel_of(body: str, threads: int = 128, settings: Settings | None = None) -> KernelReport:
    report = check_text(PATH, text(body, threads), settings or Settings())
    assert not report.errors
    (kernel,) = report.kernels
    return kernel


def codes(kernel: KernelReport) -> set[Code]:
    return {f.code for f in kernel.findings if f.kind}


@pytest.mark.parametrize("body", [VOLATILE, PLAIN])
def test_the_unrolled_tail_of_a_reduction_is_one_warning(body: str) -> None:
    kernel = kernel_of(body)
    assert kernel.verdict is Verdict.RACY and codes(kernel) == {Code.WARP_SYNCHRONOUS}
    (told,) = defects(kernel.findings)
    assert told.effective_severity is Severity.WARNING and told.status is Status.PROVED
    assert "__syncwarp()" in told.message and told.also


def test_the_tail_in_a_function_and_without_unrolling_relies_on_it_too() -> None:
    body = VOLATILE.split("volatile float* v")[0] + (
        "for (int k = 32; k > 0; k >>= 1) s[t] += s[t + k]; } if (t == 0) out[blockIdx.x] = s[0];"
    )
    assert codes(kernel_of(body)) == {Code.WARP_SYNCHRONOUS}


def test_tails_of_two_arrays_are_one_finding() -> None:
    body = """
        __shared__ volatile int a[64], b[64];
        int t = threadIdx.x;
        a[t] = t; b[t] = -t;
        out[blockIdx.x * 64 + t] = a[t ^ 1] + b[t ^ 1];
    """
    kernel = kernel_of(body, 64)
    assert len(kernel.findings) == 2 and len(defects(kernel.findings)) == 1


def test_a_block_of_one_warp_relies_on_it_where_it_says_volatile() -> None:
    body = "__shared__ {} int s[32]; int t = threadIdx.x; s[t] = t; out[t] = s[31 - t];"
    assert codes(kernel_of("if (blockIdx.x) return; " + body.format("volatile"), 32)) == {
        Code.WARP_SYNCHRONOUS
    }
    assert codes(kernel_of("if (blockIdx.x) return; " + body.format(""), 32)) == {Code.SHARED_RACE}


def test_who_orders_lanes_elsewhere_has_forgotten_one_barrier() -> None:
    body = """
        __shared__ int s[64];
        int t = threadIdx.x;
        s[t] = t;
        __syncwarp();
        int a = s[t ^ 1];
        s[t] = a;
        out[blockIdx.x * 64 + t] = a;
    """
    assert codes(kernel_of(body, 64)) == {Code.WARP_RACE}


def test_who_orders_nothing_has_forgotten_a_barrier() -> None:
    body = "__shared__ {} int s[64]; int t = threadIdx.x; s[t] = t; out[blockIdx.x * 64 + t] = s[t ^ 1];"
    assert codes(kernel_of(body.format(""), 64)) == {Code.WARP_RACE}
    assert codes(kernel_of(body.format("volatile"), 64)) == {Code.WARP_SYNCHRONOUS}


def test_stores_of_one_instruction_are_in_no_lock_step() -> None:
    body = "__shared__ volatile int s[64]; int t = threadIdx.x; s[t / 2] = t; out[blockIdx.x * 64 + t] = 0;"
    assert codes(kernel_of(body, 64)) == {Code.SHARED_RACE}


RESET = """
__global__ void k(float* out, const float* in, int width) {
    extern __shared__ int sum[];
    int top = __reduce_max_sync(0xffffffffu, (int)threadIdx.x);
    for (int i = threadIdx.x; i < 4 * width; i += blockDim.x) {
        if (i / width == 0) sum[i % width] = top;
        atomicAdd(&sum[i % width], 1);
    }
}
void f(float* o, float* i, int width) { k<<<4, 64, 4 * width>>>(o, i, width); }
"""


def test_lanes_that_race_do_not_hide_that_warps_do() -> None:
    (kernel,) = check_text(PATH, RESET).kernels
    assert Code.SHARED_RACE in codes(kernel)
    (found,) = [f for f in kernel.findings if f.code is Code.SHARED_RACE]
    assert found.witness is not None
    assert max(x for x, _, _ in found.witness.threads) >= 32
    values = {
        name: value for name, value in found.witness.arguments.items() if f"`{name}` ==" in found.message
    }
    assert values  # what the message says of them is the witness
    assert all(f"`{name}` == {value}" in found.message for name, value in values.items())


def test_threads_of_two_warps_are_in_no_lock_step() -> None:
    assert Code.SHARED_RACE in codes(
        kernel_of(VOLATILE.replace("t < 32", "t < 64").replace("s[128]", "s[256]"))
    )


@pytest.mark.parametrize("body", [VOLATILE, PLAIN])
def test_where_lanes_keep_lock_step_it_is_information_and_not_race_free(body: str) -> None:
    kernel = kernel_of(body, settings=Settings(arch="sm_60"))
    (told,) = defects(kernel.findings)
    assert (told.code, told.effective_severity) == (Code.WARP_SYNCHRONOUS, Severity.INFORMATION)
    assert kernel.verdict is Verdict.UNDECIDED and kernel.reasons


def test_where_lanes_keep_lock_step_other_races_stay_errors() -> None:
    body = "__shared__ int s[64]; int t = threadIdx.x; s[t] = t; out[blockIdx.x * 64 + t] = s[63 - t];"
    kernel = kernel_of(body, 64, Settings(arch="sm_60"))
    assert codes(kernel) == {Code.SHARED_RACE} and kernel.verdict is Verdict.RACY


def test_who_declares_it_hears_nothing_of_it() -> None:
    report = check_text(PATH, "// cuda-lsp: warp-synchronous\n" + text(VOLATILE))
    assert report.kernels[0].verdict is Verdict.RACE_FREE


def test_its_severity_is_a_setting() -> None:
    for severity in (Severity.ERROR, Severity.HINT):
        kernel = kernel_of(VOLATILE, settings=Settings(severity={Code.WARP_SYNCHRONOUS: severity}))
        assert {f.effective_severity for f in kernel.findings} == {severity}


# ------------------------------------------------------------------------------------- the repair


class Blocking:
    """Trials of whole analyses."""

    def first(self, text: str) -> FileReport:
        return check_text(PATH, text, solver=False)

    def finished(self, text: str) -> FileReport:
        return check_text(PATH, text)


def repaired(source: str) -> str | None:
    """The text after the repair of the kernel's first finding, None without one."""
    report = check_text(PATH, source)
    lines = source.splitlines(keepends=True)
    document = TextDocument(
        PATH.as_uri(), source, position_codec=PositionCodec(lsp.PositionEncodingKind.Utf32)
    )
    line = min(f.site.range.start.line for f in report.findings if f.code is Code.WARP_SYNCHRONOUS) - 1
    found = actions(report, document, Wanted(line, line), Blocking())
    offered = [a for a in found if a.title.startswith("Insert __syncwarp")]
    if not offered:
        return None
    (action,) = offered
    assert action.edit is not None and action.edit.changes is not None
    edits = action.edit.changes[document.uri]
    for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        start, end = edit.range.start, edit.range.end
        assert isinstance(edit, lsp.TextEdit) and start.line == end.line
        old = lines[start.line]
        lines[start.line] = old[: start.character] + edit.new_text + old[end.character :]
    return "".join(lines)


@pytest.mark.parametrize(
    "body",
    [
        VOLATILE,
        PLAIN,
        VOLATILE.replace("v[t] += v[t + 8];", "v[t] = v[t] + v[t + 8]; // eight; left"),
        VOLATILE.split("v[t] += v[t + 32]")[0]
        + "for (int k = 32; k > 0; k >>= 1) s[t] += s[t + k]; } if (t == 0) out[blockIdx.x] = s[0];",
        TWO_STATEMENTS,
        "__shared__ int a[128]; int t = threadIdx.x, sum = 1; a[t] = t; __syncthreads();"
        "if (t < 32) a[t] += a[t + 16] + sum; out[blockIdx.x * 128 + t] = 0;",
    ],
)
def test_the_repair_makes_the_kernel_race_free(body: str) -> None:
    after = repaired(text(body))
    assert after is not None and "__syncwarp();" in after
    report = check_text(PATH, after)
    assert not report.errors and report.kernels[0].verdict is Verdict.RACE_FREE, after


def test_a_barrier_between_two_statements_is_all_that_two_statements_need() -> None:
    assert repaired(text(TWO_STATEMENTS)) == text(TWO_STATEMENTS).replace(
        "a[t] = t;", "a[t] = t; __syncwarp();"
    )


def test_no_repair_is_offered_that_does_not_mend() -> None:
    body = (
        "__shared__ int a[128]; int t = threadIdx.x; a[t] = t; __syncthreads();"
        "if (t < 32) { if (a[t] < a[t ^ 1]) { a[t] = 7; } } out[blockIdx.x * 128 + t] = 0;"
    )
    assert repaired(text(body)) is None
