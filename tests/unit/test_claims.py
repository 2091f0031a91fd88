"""What is claimed under a launch or template arguments that nobody told, and of stores of one value."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Code, Finding, Severity, Status, Verdict
from cuda_lsp.static.analyze import check_text


def races(text: str) -> list[Finding]:
    report = check_text(Path("k.cu"), text)
    assert not report.errors
    return [f for f in report.findings if f.kind]


def one_race(text: str) -> Finding:
    (found,) = races(text)
    return found


NEIGHBOUR = "__shared__ int s[256]; s[threadIdx.x] = threadIdx.x; out[threadIdx.x] = s[threadIdx.x ^ 1];"


def test_a_race_that_every_plausible_launch_shows_is_conditional_and_no_error() -> None:
    found = one_race(f"__global__ void k(int* out) {{ if (blockIdx.x == 0) {{ {NEIGHBOUR} }} }}")
    assert (found.status, found.effective_severity) == (Status.CONDITIONAL, Severity.WARNING)
    assert found.condition == "blocks are of a usual size, like 256"


def test_the_same_race_under_a_told_launch_is_an_error() -> None:
    found = one_race(f"__global__ void k(int* out) {{ {NEIGHBOUR} }} void f(int* o) {{ k<<<1, 256>>>(o); }}")
    assert (found.status, found.effective_severity) == (Status.PROVED, Severity.ERROR)


def test_guessed_template_arguments_prove_nothing() -> None:
    found = one_race(
        f"template <class T> __global__ void k(T* out) {{ if (blockIdx.x == 0) {{ {NEIGHBOUR} }} }}"
    )
    assert found.status is Status.CONDITIONAL


@pytest.mark.parametrize(("known", "status"), [("3", Status.CONDITIONAL), ("nobody_knows", Status.POSSIBLE)])
def test_guessed_template_arguments_with_which_clang_finds_errors_show_nothing(
    known: str, status: Status
) -> None:
    text = f"__device__ int number() {{ return {known}; }} template <class T> __global__ void k(T* out) {{ "
    text += f"if (blockIdx.x == 0) {{ {NEIGHBOUR} }} __syncthreads(); out[blockIdx.x] = number(); }}"
    report = check_text(Path("k.cu"), text)
    assert {f.status for f in report.findings if f.kind and "s[" in f.message} == {status}


@pytest.mark.parametrize(
    "body",
    [
        "if (blockIdx.x == 0) a[threadIdx.x % 32] = threadIdx.x;",  # a block of one warp
        "if (blockIdx.x == 0 && threadIdx.x >= 128) a[0] = threadIdx.x;",  # a block of four warps
        "a[threadIdx.x] = blockIdx.x;",  # one block
        "if (blockIdx.x == 0) a[threadIdx.x] = threadIdx.y;",  # a row of threads
        "a[blockIdx.x * n + threadIdx.x] = 1; a[blockIdx.x * n + threadIdx.x + n / 2] = 2;",  # n / 2 threads
    ],
)
def test_a_race_that_a_plausible_launch_does_not_show_is_possible(body: str) -> None:
    for found in races(f"__global__ void k(int* a, int n) {{ {body} }}"):
        assert found.status is Status.POSSIBLE, found.message


@pytest.mark.parametrize(
    "store",
    [
        "a[0] = 7;",
        "a[threadIdx.x / 2] = n;",
        "a[threadIdx.x % 8] = threadIdx.x % 8 * 3;",
        "for (int i = threadIdx.x / 2; i < 100; i += 32) a[i] = i;",
    ],
)
def test_stores_of_one_value_are_information(store: str) -> None:
    found = one_race(
        f"__global__ void k(int* a, int n) {{ {store} }} void f(int* a) {{ k<<<1, 64>>>(a, 3); }}"
    )
    assert (found.same_value, found.effective_severity) == (True, Severity.INFORMATION)


@pytest.mark.parametrize(
    "store",
    [
        "a[threadIdx.x % 8] = threadIdx.x / 32;",  # lanes of one warp agree, warps do not
        "a[0] = threadIdx.x == 40;",
        "for (int i = 0; i < 3; ++i) a[0] = i;",
        "for (int i = threadIdx.x / 2; i < 100; i += 32) a[i] = threadIdx.x;",
    ],
)
def test_where_two_threads_store_different_values_these_are_the_witness(store: str) -> None:
    found = one_race(
        f"__global__ void k(int* a, int n) {{ {store} }} void f(int* a) {{ k<<<1, 64>>>(a, 3); }}"
    )
    assert (found.same_value, found.effective_severity) == (False, Severity.ERROR)


@pytest.mark.parametrize(
    "stores",
    [
        "s[t] = 7; ((short*)s)[2 * t + 3] = 7;",  # the upper half of a 7 is 0
        "if (0 < n && n < 8) { s[t] = 7; ((short*)s)[2 * t + n] = 7; }",
        "((double*)s)[t] = 1.0; ((float*)s)[2 * t + 2] = 1.0f;",
    ],
)
def test_one_value_of_two_widths_is_not_the_same_bytes(stores: str) -> None:
    text = f"__global__ void k(int n) {{ __shared__ int s[256]; int t = threadIdx.x; {stores} }}"
    found = one_race(f"{text} void f(int n) {{ k<<<1, 64>>>(n); }}")
    assert not found.same_value
    assert found.effective_severity < Severity.INFORMATION


def test_a_race_of_one_value_still_makes_a_kernel_racy() -> None:
    text = "__global__ void k(int* a) { a[0] = 7; } void f(int* a) { k<<<1, 64>>>(a); }"
    assert check_text(Path("k.cu"), text).kernels[0].verdict is Verdict.RACY


@pytest.mark.parametrize(
    ("body", "condition"),
    [
        ("if (t < n) s[t] = t; if (t >= 2 && t < n) a[t] = s[t - 2];", "for example `n` == 3"),
        ("if (n == 1) { s[t] = t; a[t] = s[t ^ 1]; }", "for example `n` == 1"),
        ("for (int k = 0; k < n; ++k) { s[t] = k; __syncthreads(); a[k * 64 + t] = s[t ^ 1]; }", "`n` > 1"),
        ("if (n > 7) { s[t] = t; a[t] = s[t ^ 1]; }", "for example `n` == 8"),
        ("a[t] = a[t + n] + 1;", "for example `n` == 1"),
        ("if (n > 0) a[n / 1024 * t] = t;", "for example `n` == 64"),  # not for large ones
    ],
)
def test_a_condition_is_enough_or_an_example(body: str, condition: str) -> None:
    shared = "__shared__ int s[64]; int t = threadIdx.x;"
    host = "void f(int* a, int m) { k<<<1, 64>>>(a, m); }"
    text = f"__global__ void k(int* a, int n) {{ {shared} {body} }} {host}"
    assert one_race(text).condition == condition


OUTSIDE = "__global__ void k(int* a) { __shared__ int s[64]; s[threadIdx.x + 64] = 1; a[0] = s[0]; }"


@pytest.mark.parametrize(
    ("launch", "status"),
    [("", Status.POSSIBLE), ("void f(int* a) { k<<<1, 64>>>(a); }", Status.PROVED)],
)
def test_blocks_that_misuse_shared_arrays_are_not_what_an_author_has_in_mind(
    launch: str, status: Status
) -> None:
    found = [f for f in check_text(Path("k.cu"), f"{OUTSIDE} {launch}").findings if "shared-" in f.code.value]
    assert found
    assert {f.status for f in found} == {status}


def test_of_blocks_that_sizes_make_those_count_that_stay_in_shared_arrays() -> None:
    text = """
__global__ void k(float* out, const float* in, int n) {
    __shared__ float s[512];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
void f(float* o, const float* i, int n) { k<<<4, n>>>(o, i, n); }
"""
    (kernel,) = check_text(Path("k.cu"), text).kernels
    assert kernel.verdict is Verdict.RACE_FREE
    assert not [f for f in kernel.findings if f.status is not Status.PROVED]
    assert {launch.threads for launch in kernel.launches} == {256}


@pytest.mark.parametrize(
    ("header", "launch", "status"),
    [
        ("template <int N>", "", Status.POSSIBLE),
        ("template <class T>", "", Status.CONDITIONAL),
        ("template <int N>", "void f(int* o) { k<16><<<1, 256>>>(o); }", Status.PROVED),
    ],
)
def test_numbers_of_a_template_and_a_launch_that_nobody_tells_are_too_little(
    header: str, launch: str, status: Status
) -> None:
    found = one_race(
        f"{header} __global__ void k(int* out) {{ if (blockIdx.x == 0) {{ {NEIGHBOUR} }} }} {launch}"
    )
    assert found.status is status


def told_of(store: str) -> list[tuple[bool, Status]]:
    text = (
        f"__global__ void k(int* out, const int* in, int n) {{ int t = threadIdx.x; {store} }}\n"
        "void f(int* o, int* i, int n) { k<<<1, 64>>>(o, i, n); }"
    )
    return [(f.same_value, f.status) for f in check_text(Path("k.cu"), text).findings if f.kind]


@pytest.mark.parametrize(
    "store",
    [
        "int row = t % n; out[row] = in[row];",
        "int row = t % n; int x = in[3 * row + 1]; out[2 * row] = x;",
        "int row = min(t, n); out[row] = in[row];",
    ],
)
def test_what_threads_copy_from_one_place_to_one_place_is_one_value(store: str) -> None:
    found = told_of(store)
    assert found
    assert all(same for same, _ in found)


@pytest.mark.parametrize(
    "store",
    [
        "int row = t % n; out[row] = in[t];",
        "int row = t % n; out[row] = in[row] * t;",
        "int row = t % n; out[row] = out[row + 1];",  # which others write
        "float* v = (float*)out; v[t % n] = t % 2 ? 1.5f : 1.25f;",
        "int row = t % n; out[row / 2] = in[row];",
    ],
)
def test_what_may_be_two_values_accuses(store: str) -> None:
    found = told_of(store)
    assert any(not same and status is Status.CONDITIONAL for same, status in found)


ROWS_OF_VECTORS = """
__global__ void k(short* out, const short* in, int columns) {
    int at = threadIdx.y * columns + threadIdx.x * 8;
    if (threadIdx.x * 8 < columns) *(int4*)(out + at) = *(const int4*)(in + at);
}
void run(short* out, const short* in, int rows, int columns) {
    int threads = (columns + 7) / 8;
    if (threads == 1) k<<<1, dim3(threads, rows)>>>(out, in, columns);
}
"""


def test_sizes_that_misalign_vectors_are_no_sizes_of_the_program() -> None:
    report = check_text(Path("k.cu"), ROWS_OF_VECTORS)
    (kernel,) = report.kernels
    assert kernel.verdict is not Verdict.RACY
    assert not [f for f in report.findings if f.effective_severity <= Severity.WARNING]


def test_a_race_of_sizes_that_align_vectors_is_told() -> None:
    report = check_text(
        Path("k.cu"), ROWS_OF_VECTORS.replace("threadIdx.y * columns", "threadIdx.y / 2 * columns")
    )
    (kernel,) = report.kernels
    assert kernel.verdict is Verdict.RACY


ROWS = """
template <int W> __global__ void rows(float* out, int n) {
    __shared__ float s[W * 4];
    for (int j = 0; j < n; j++) s[j * W + threadIdx.x] = out[threadIdx.x] + j;
    float sum = 0;
    for (int j = 0; j < n; j++) sum += s[j * W + threadIdx.x];
    out[threadIdx.x] = sum;
}
"""


@pytest.mark.parametrize(
    ("launch", "verdict"),
    [
        ("template <int W> void go(float* o, int n, int t) { rows<W><<<1, t>>>(o, n); }", Verdict.UNDECIDED),
        ("void go(float* o, int n, int t) { rows<16><<<1, t>>>(o, n); }", Verdict.RACY),
    ],
)
def test_sizes_make_no_blocks_for_guessed_numbers(launch: str, verdict: Verdict) -> None:
    (kernel,) = check_text(Path("k.cu"), ROWS + launch).kernels
    assert kernel.name == "rows<16>"
    assert kernel.verdict is verdict
    assert any(f.status is Status.CONDITIONAL for f in kernel.findings) is (verdict is Verdict.RACY)


@pytest.mark.parametrize(
    ("around", "arguments", "verdict"),
    [
        ("template <int W> ", "true, W", Verdict.UNDECIDED),
        ("template <bool ON> ", "ON, 16", Verdict.RACY),
        ("", "true, 16", Verdict.RACY),
    ],
)
def test_a_launch_that_tells_some_arguments_tells_no_numbers_of_others(
    around: str, arguments: str, verdict: Verdict
) -> None:
    kernel = ROWS.replace("template <int W>", "template <bool ON, int W>").replace(
        "out[threadIdx.x] +", "ON +"
    )
    launch = f"{around}void go(float* o, int n, int t) {{ rows<{arguments}><<<1, t>>>(o, n); }}"
    (report,) = check_text(Path("k.cu"), kernel + launch).kernels
    assert report.name == "rows<true, 16>"
    assert report.verdict is verdict, report.reasons


@pytest.mark.parametrize(
    ("asked", "told"), [("", False), ("template __global__ void k<64, 4096>(int*);", True)]
)
def test_what_guessed_numbers_make_too_large_is_not_told(asked: str, told: bool) -> None:
    text = f"""
template <int N, int ROWS> __global__ void k(int* p) {{
    __shared__ int s[N][ROWS][64];
    s[threadIdx.x % N][0][0] = p[0];
}}
template <int N, int ROWS> void f(int* p) {{ k<N, ROWS><<<1, 1>>>(p); }}
{asked}
"""
    found = {f.code for f in check_text(Path("k.cu"), text).findings}
    assert (Code.LAUNCH_LIMIT in found) is told


@pytest.mark.parametrize(("stored", "accuses"), [("s[0]", False), ("s[threadIdx.x]", True)])
def test_what_is_stored_is_looked_at_beside_code_that_is_broken(stored: str, accuses: bool) -> None:
    text = f"""
__global__ void k(float* out, const float* in) {{
    __shared__ float s[32];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    for (int i = 0; i < nobody_knows(threadIdx.x); i++) {{}}
    out[blockIdx.x] = {stored};
}}
void go(float* o, const float* i) {{ k<<<4, 32>>>(o, i); }}
"""
    report = check_text(Path("k.cu"), text)
    assert report.errors
    (found,) = (f for f in report.findings if f.kind)
    assert found.same_value is not accuses
    assert (found.effective_severity is Severity.INFORMATION) is not accuses


OWN_ROWS = """
template <int N> __global__ void rows(float* a, int height, int cols, int pitch) {
    if (cols < pitch - 64) return;
    for (int y = blockIdx.x; y < height; y += gridDim.x)
        for (int x = threadIdx.x; x < cols / N; x += N) a[y * pitch + x * N] = y;
}
"""


@pytest.mark.parametrize(
    ("launch", "verdict"),
    [
        (
            "template <int N> void f(float* a, int h, int c, int p) { rows<N><<<1, N>>>(a, h, c, p); }",
            "undecided",
        ),
        ("void f(float* a, int h, int c, int p) { rows<16><<<1, 16>>>(a, h, c, p); }", "racy"),
    ],
)
def test_sizes_of_an_example_need_not_fit_guessed_numbers(launch: str, verdict: str) -> None:
    (kernel,) = check_text(Path("k.cu"), OWN_ROWS + launch).kernels
    assert kernel.name == "rows<16>"
    assert kernel.verdict.value == verdict
    if verdict == "undecided":
        (reason,) = kernel.reasons
        assert "the template arguments, which nothing in the file tells; a launch" in reason
        assert any(
            "depends on the template's arguments, which are guessed" in f.message for f in kernel.findings
        )


@pytest.mark.parametrize(("asked", "told"), [("", False), ("template void f<16>(int*);", True)])
def test_blocks_that_guessed_numbers_make_are_not_too_large(asked: str, told: bool) -> None:
    text = f"""
template <int N> __global__ void k(int* p) {{ p[threadIdx.x + N * (threadIdx.y + N * threadIdx.z)] = N; }}
template <int N> void f(int* p) {{ dim3 block(N, N, N); k<N><<<1, block>>>(p); }}
{asked}
"""
    found = {f.code for f in check_text(Path("k.cu"), text).findings}
    assert (Code.LAUNCH_LIMIT in found) is told


PIECES = """__global__ void k(const int* in, int* out, int n) {
  __shared__ int s[1024];
  for (int j = 0; j < 4; j++) if (blockIdx.x * 1024 + j * 256 + threadIdx.x < n)
    s[j * 256 + threadIdx.x] = in[blockIdx.x * 1024 + j * 256 + threadIdx.x];
  __syncthreads();
  int sum = 0;
  for (int j = 0; j < 4; j++) sum += s[4 * threadIdx.x + j];
  __syncthreads();
  for (int j = 0; j < 4; j++) s[4 * threadIdx.x + j] = sum;
  BARRIER
  for (int j = 0; j < 4; j++) if (blockIdx.x * 1024 + j * 256 + threadIdx.x < n)
    out[blockIdx.x * 1024 + j * 256 + threadIdx.x] = s[j * 256 + threadIdx.x];
}"""


@pytest.mark.parametrize(
    ("barrier", "verdict"), [("__syncthreads();", Verdict.RACE_FREE), ("", Verdict.RACY)]
)
def test_a_block_that_leaves_an_array_of_which_threads_take_several_elements_is_not_meant(
    barrier: str, verdict: Verdict
) -> None:
    (report,) = check_text(Path("k.cu"), PIECES.replace("BARRIER", barrier)).kernels
    assert (report.verdict, {launch.block for launch in report.launches}) == (verdict, {(256, 1, 1)})
