"""Races of one defect are told as one finding, and messages stay short."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Code, FileReport, Status
from cuda_lsp.report.defects import defects, places_of
from cuda_lsp.report.document import document
from cuda_lsp.source_names import called
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.findings import words


def report(body: str) -> FileReport:
    text = f"__global__ void k(int* out, int n) {{\n{body}\n}}\nvoid f(int* o) {{ k<<<2, 256>>>(o, 9); }}\n"
    return check_text(Path("k.cu"), text)


MISSING_BARRIER = """
    __shared__ int s[258];
    int t = threadIdx.x;
    s[t] = t;
    if (t < 2) s[256 + t] = n;
    out[blockIdx.x * 256 + t] = s[t + 1] - s[t + 2];
"""


def test_one_missing_barrier_is_one_finding_with_every_place_related() -> None:
    found = report(MISSING_BARRIER)
    assert len(found.findings) > 2
    (leader,) = defects(found.findings)
    assert len(leader.also) == len(found.findings) - 1
    lines = {leader.site.range.start.line, *(r.site.range.start.line for r in leader.related)}
    assert lines == {5, 6, 7}


def test_the_worst_pair_leads() -> None:
    found = report("int i = threadIdx.x; out[0] = 1; if (i) out[0] = i;")
    (leader,) = defects(found.findings)
    assert leader.status is Status.PROVED and not leader.same_value
    assert any(other.same_value for other in leader.also)


def test_two_barriers_missing_at_different_places_are_two_findings() -> None:
    found = report(
        "__shared__ int s[256]; int t = threadIdx.x; s[t] = t; int a = s[t ^ 65]; __syncthreads();\n"
        "s[t] = a; int b = s[t ^ 66]; out[blockIdx.x * 256 + t] = b;"
    )
    assert len(defects(found.findings)) == 2


HALVED = """
    __shared__ int s[64], r[64];
    int t = threadIdx.x;
    if (t < 32) s[t] = r[t] = 0;
    __syncthreads();
    if (t < 32) out[t] = s[t + {first}] + s[t + {second}] + {other}[t + 16];
"""


@pytest.mark.parametrize(("other", "count"), [("s", 1), ("r", 2)])
def test_reads_of_what_nobody_wrote_are_one_finding_of_each_array(other: str, count: int) -> None:
    told = report(HALVED.format(first=32, second=8, other=other)).findings
    unwritten = [f for f in told if f.code is Code.SHARED_UNINITIALISED]
    assert len(unwritten) == 3
    found = [f for f in defects(told) if f.code is Code.SHARED_UNINITIALISED]
    assert len(found) == count
    assert {r.message for f in found for r in f.related} == {"also read: proved"}


PARTED = "__shared__ int s[256]; int t = threadIdx.x;{first}\n{barrier}s[t] = t; {second} out[t] = s[t ^ 1];"


def test_barriers_that_one_return_parts_threads_at_are_one_finding() -> None:
    barriers = "__syncthreads();\n__syncthreads();\n"
    found = report(
        PARTED.format(first="if (t + n > 99) return;", barrier=barriers, second="__syncthreads();")
    )
    (leader,) = defects([f for f in found.findings if f.code is Code.BARRIER_DIVERGENCE])
    assert [r.message for r in leader.related] == ["also missed: conditional"] * 2
    assert leader.site.range.start.line == 3


def test_barriers_that_threads_miss_for_two_reasons_are_two_findings() -> None:
    first = "if (t < 9) __syncthreads();"
    found = report(PARTED.format(first=first, barrier="", second="if (t > 40) __syncthreads();"))
    missed = [f for f in found.findings if f.code is Code.BARRIER_DIVERGENCE]
    assert len(missed) == len(defects(missed)) == 2


def test_arrays_and_blocks_are_kept_apart() -> None:
    found = report(
        "__shared__ int s[256]; int t = threadIdx.x; s[t] = t; out[0] = t; out[1] = s[t ^ 1] + blockIdx.x;"
    )
    assert {f.array for f in defects(found.findings)} == {"s", "out"}


def test_every_pair_is_in_the_document() -> None:
    found = report(MISSING_BARRIER)
    (written,) = document([found])["files"][0]["findings"]
    assert len(written["also"]) == len(found.findings) - 1
    assert all(other["kind"] and other["related"] for other in written["also"])


def test_what_two_threads_both_do_is_quoted_once() -> None:
    (found,) = report("out[threadIdx.x / 2] = threadIdx.x + blockIdx.x;").findings
    assert found.message.count("out[threadIdx.x / 2]") == 1


@pytest.mark.parametrize("factor", [1, 4, 12])
def test_messages_are_short_whatever_they_quote(factor: int) -> None:
    index = " + ".join(["threadIdx.x / 2 * blockDim.y"] * factor)
    for found in report(f"out[{index}] = threadIdx.x; n = out[{index} + 1]; out[n] = 3;").findings:
        assert len(found.message) < 160


def test_expressions_are_shortened_in_their_middle() -> None:
    text = "table[" + "x" * 200 + "]"
    fitted = words.fitted(f"race: thread 0 writes {text}; no barrier orders them", [text])
    assert len(fitted) < 160 and "table[x" in fitted and "x]; no barrier orders them" in fitted


CUT = """
    extern __shared__ int smem[];
    int *s_in = smem, *s_out = smem + 64;
    int t = threadIdx.x;
    s_in[t] = t;
    s_out[t] = n;
    out[t] = s_out[t ^ 33] + s_in[t];
"""


def test_arrays_are_called_by_the_names_of_the_source() -> None:
    body = (
        f"__global__ void k(int* out, int n) {{\n{CUT}\n}}\nvoid f(int* o) {{ k<<<2, 64, 512>>>(o, 9); }}\n"
    )
    found = [f for f in check_text(Path("k.cu"), body).findings if f.array == "smem"]
    (race,) = found
    assert race.message.startswith("RAW race on s_out (smem[")
    assert race.witness and race.witness.array == "smem"


@pytest.mark.parametrize(
    ("accesses", "said"),
    [
        (("s[t]", "s[t + 1]"), "s[3]"),
        (("a[t]", "a[0]"), "a (s[3])"),
        (("a[t]", "b[0]"), "s[3]"),
        (("*p", "a[t]"), "s[3]"),
        (("(a)[t]", "&a[1]"), "a (s[3])"),
    ],
)
def test_a_name_counts_where_both_accesses_use_it(accesses: tuple[str, str], said: str) -> None:
    assert called("s[3]", "s", accesses) == said


INSTANCES = """template <int N> __global__ void shift(int *out) {
  __shared__ float s[32][32];
  s[threadIdx.x][threadIdx.y] = N;
  out[threadIdx.x] = s[0][threadIdx.x] > N;
}
void f(int *o) { shift<1><<<1, dim3(32, 32)>>>(o); shift<2><<<1, dim3(32, 32)>>>(o); }
"""


def test_what_several_instances_have_is_one_finding_of_each_place() -> None:
    found = check_text(Path("k.cu"), INSTANCES)
    told = defects(found.findings)
    assert len({(f.code, f.site.range) for f in told}) == len(told) < len(found.findings)
    both = {"shift<1>", "shift<2>"}
    assert all({leader.kernel, *(f.kernel for f in leader.also)} == both for leader in told)


FUNCTION = """__device__ void put(int *s, int *out) {
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[threadIdx.x + 1];
}
__global__ void one(int *out) { __shared__ int s[65]; put(s, out); }
__global__ void two(int *out) { __shared__ int t[65]; put(t, out); out[threadIdx.x] += 1; }
__global__ void three(int *out) {
    __shared__ int s[65];
    put(s, out);
    __shared__ int u[64];
    u[threadIdx.x ^ 1] = 2;
    out[threadIdx.x] += u[threadIdx.x];
}
void launch(int *o) { one<<<1, 64>>>(o); two<<<1, 64>>>(o); three<<<1, 64>>>(o); }
"""


def test_what_a_function_does_in_several_kernels_is_one_finding_of_its_places() -> None:
    told = defects(check_text(Path("k.cu"), FUNCTION).findings)
    in_function = [f for f in told if {p.start.line for p in places_of(f)} <= {2, 3}]
    assert [f.code for f in in_function] == [Code.SHARED_RACE, Code.SHARED_UNINITIALISED]
    for leader in in_function:
        assert {leader.kernel, *(f.kernel for f in leader.also)} == {"one", "two", "three"}
        others = {"one", "two", "three"} - {leader.kernel}
        (named,) = [r.message for r in leader.related if r.message.startswith("also in")]
        assert named == f"also in {' and '.join(sorted(others, key=['one', 'two', 'three'].index))}"


def test_what_only_one_of_the_kernels_does_is_its_own() -> None:
    told = defects(check_text(Path("k.cu"), FUNCTION).findings)
    own = [f for f in told if 11 in {p.start.line for p in places_of(f)}]
    assert {f.kernel for f in own} == {"three"}
