"""Places that the host has counted: running sums of what a kernel tests, or goes through."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.frontend.host.running_sums import PassedSum
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

SUMS = "`place` holds the running sums of `keep`"
NAMES = "unsigned* keep, unsigned* place, unsigned* other, float* out, float* in, int n"
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
EXCLUSIVE = "cub::DeviceScan::ExclusiveSum(work, bytes, keep, place, n);"
INCLUSIVE = EXCLUSIVE.replace("Ex", "In")
LAUNCH = "k<<<(n + 127) / 128, 128>>>(keep, place, other, out, in, n);"


def checked(body: str, before: str = EXCLUSIVE, launch: str = LAUNCH, names: str = NAMES) -> KernelReport:
    text = f"""
    __global__ void k({names}) {{ {INDEX} {body} }}
    void go({names}, void* work, size_t bytes) {{ {before} {launch} }}
    """
    (kernel,) = check_text(Path("/k.cu"), text, PATIENT).kernels
    return kernel


# ------------------------------------------------------------------------- what kernels do with them


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("if (i < n && keep[i]) out[place[i]] = in[i];", EXCLUSIVE),
        ("if (i < n && keep[i] > 2) { out[place[i]] = in[i]; other[place[i]] = i; }", EXCLUSIVE),
        ("if (i < n && keep[i] != 0) out[place[i] - 1] = in[i];", INCLUSIVE),
        ("if (i < n && keep[i]) { unsigned to = i == 0 ? 0 : place[i - 1]; out[to] = in[i]; }", INCLUSIVE),
        (
            "for (; i < n; i += gridDim.x * blockDim.x)"
            " if (keep[i] && place[i] > 0) out[place[i] - 1] = in[i];",
            INCLUSIVE,
        ),
        # As many as there are.
        ("if (i < n) for (unsigned j = 0; j < keep[i]; j++) out[place[i] + j] = in[i];", EXCLUSIVE),
        ("if (i < n && keep[i] == 1) { out[3 * place[i]] = in[i]; out[3 * place[i] + 2] = 0; }", EXCLUSIVE),
    ],
)
def test_places_of_elements_that_were_counted_differ(body: str, before: str) -> None:
    kernel = checked(body, before)
    assert kernel.verdict is Verdict.RACE_FREE
    assert SUMS in kernel.assumptions


def test_what_is_summed_before_the_array_begins_one_further_on() -> None:
    kernel = checked("if (i < n && keep[i]) out[place[i]] = in[i];", INCLUSIVE.replace("place", "place + 1"))
    assert kernel.verdict is Verdict.RACE_FREE


def test_counts_that_may_be_negative_are_taken_not_to_be() -> None:
    names = NAMES.replace("unsigned*", "int*")
    kernel = checked("if (i < n && keep[i]) out[place[i]] = in[i];", names=names)
    assert kernel.verdict is Verdict.RACE_FREE
    assert {SUMS, "`keep` is not negative"} <= set(kernel.assumptions)


@pytest.mark.parametrize(("place", "free"), [("to", True), ("to / 2", False)])
def test_sums_of_what_the_kernel_does_not_see_ascend(place: str, free: bool) -> None:
    body = f"if (i < n) {{ unsigned to = i ? place[i - 1] : 0; if (to != place[i]) out[{place}] = in[i]; }}"
    kernel = checked(body, INCLUSIVE.replace("keep", "place"))
    assert (kernel.verdict is Verdict.RACE_FREE) is free


@pytest.mark.parametrize(
    ("body", "before"),
    [
        # Elements that are 0 have the place of the next one.
        ("if (i < n) out[place[i]] = in[i];", EXCLUSIVE),
        ("if (i < n && !keep[i]) out[place[i]] = in[i];", EXCLUSIVE),
        # Another element, another array.
        ("if (i + 1 < n && keep[i + 1]) out[place[i]] = in[i];", EXCLUSIVE),
        ("if (i < n && keep[i]) out[place[i]] = in[i];", INCLUSIVE.replace("place, n", "place + 2, n")),
        ("if (i < n && i > 0 && keep[i]) out[place[i - 1]] = in[i];", EXCLUSIVE),
        ("if (i < n && other[i]) out[place[i]] = in[i];", EXCLUSIVE),
        ("if (i < n && keep[i]) out[other[i]] = in[i];", EXCLUSIVE),
        # Two places each, where one was counted.
        ("if (i < n && keep[i]) { out[place[i]] = in[i]; out[place[i] + 1] = 0; }", EXCLUSIVE),
        ("if (i < n) for (unsigned j = 0; j <= keep[i]; j++) out[place[i] + j] = in[i];", EXCLUSIVE),
        ("if (i < n) for (unsigned j = 0; j < 8; j++) if (keep[i]) out[place[i] + j] = in[i];", EXCLUSIVE),
        (
            "for (; i < n; i += gridDim.x * blockDim.x) if (keep[i]) out[place[i] / 2] = in[i];",
            INCLUSIVE,
        ),
        ("for (; i < n; i += blockDim.x) if (keep[i]) out[place[i]] = in[i];", EXCLUSIVE),
        # Cut down.
        ("if (i < n && keep[i]) out[place[i] / 2] = in[i];", EXCLUSIVE),
        ("if (i < n && keep[i]) out[place[i] % 64] = in[i];", EXCLUSIVE),
        # Beyond what was summed.
        ("if (i <= n && keep[i]) out[place[i]] = in[i];", EXCLUSIVE),
        ("if (keep[i]) out[place[i]] = in[i];", EXCLUSIVE),
        ("if (i < n && keep[i]) out[place[i]] = in[i];", EXCLUSIVE.replace("n);", "n - 1);")),
        # The kernel changes them.
        ("if (i < n && keep[i]) { out[place[i]] = in[i]; keep[i] = 0; }", EXCLUSIVE),
        ("if (i < n && keep[i]) { out[place[i]] = in[i]; place[i + 1] = 0; }", EXCLUSIVE),
        # It reads something else there.
        ("if (i < n && ((unsigned char*)keep)[i]) out[place[i]] = in[i];", EXCLUSIVE),
    ],
)
def test_what_sums_do_not_tell_is_not_proved(body: str, before: str) -> None:
    assert checked(body, before).verdict is not Verdict.RACE_FREE


# ----------------------------------------------------------------------------- what the host tells


def told(before: str, launch: str = LAUNCH, around: str = "") -> list[PassedSum | None]:
    """What is told of ``place`` at each launch."""
    text = f"""{around}
    __global__ void k({NAMES}) {{}}
    __global__ void mark(unsigned* keep, int n) {{}}
    void go({NAMES}, void* work, size_t bytes, cudaStream_t s) {{ {before} {launch} }}
    """
    return [site.sums.get(1) for site in find_launches(Path("/k.cu"), text, of={"k"})]


@pytest.mark.parametrize(
    "before",
    [
        EXCLUSIVE,
        f"mark<<<9, 9>>>(keep, n); CHECK({EXCLUSIVE[:-1]}); CHECK(cudaGetLastError());",
        f"cudaError_t e = {EXCLUSIVE}",
        # First it is asked how much memory that takes.
        f"work = NULL; {EXCLUSIVE} cudaMalloc(&work, bytes); {EXCLUSIVE}",
        EXCLUSIVE.replace("n);", "n, s);"),
        f"{EXCLUSIVE} int m; cudaMemcpy(&m, place + n - 1, 4, cudaMemcpyDeviceToHost); if (m == 0) return;",
        f"{EXCLUSIVE} if (n > 9) {{ mark<<<9, 9>>>(keep, n); return; }}",
        f"{EXCLUSIVE} {LAUNCH}",
        f"{EXCLUSIVE} int m; Memory::copyDeviceToHost(&m, place + n - 1, 1); if (m > 0) alloc(&out, m);",
        "thrust::exclusive_scan(keep, keep + n, place);",
        "thrust::exclusive_scan(thrust::device, keep, keep + n, place, 0);",
        "thrust::exclusive_scan(thrust::device_ptr<unsigned>(keep), thrust::device_ptr<unsigned>(keep + n), "
        "thrust::device_pointer_cast(place));",
    ],
)
def test_a_scan_on_the_way_to_a_launch_tells_what_sums_it_passes(before: str) -> None:
    assert told(before)[-1] == PassedSum(0, 0, 5, -1)


def test_a_scan_of_each_round_tells_it_too() -> None:
    loop = (
        f"for (int r = 0; r < 9; r++) {{ mark<<<9, 9>>>(keep, n); {EXCLUSIVE} if (n < 1) {{ n = 4; break; }}"
    )
    assert told(loop, f"{LAUNCH} n = n / 2; }}") == [PassedSum(0, 0, 5, -1)]


def test_how_many_are_summed_and_where_the_sums_begin_is_read() -> None:
    assert told(EXCLUSIVE.replace("n);", "n + 1);")) == [PassedSum(0, 0, 5, 0)]
    assert told(INCLUSIVE) == [PassedSum(0, 1, 5, 0)]
    assert told(INCLUSIVE.replace("place", "place + 1")) == [PassedSum(0, 0, 5, 0)]
    assert told(INCLUSIVE.replace("keep", "place")) == [PassedSum(None, 1, 5, 0)]


SUM_UP = """template <typename M> void sum_up({parameters}) {{
    size_t bytes = 0; {before} cub::DeviceScan::ExclusiveSum(nullptr, bytes, mask, sums, m);
    Memory<char> work(bytes); {scan} {behind} }}"""


def summed(before: str = "", behind: str = "", scan: str = "", call: str = "") -> PassedSum | None:
    """What a call of a function tells that sums its arguments."""
    parameters = "unsigned* sums, M* mask, int m"
    scan = scan or "CHECK(cub::DeviceScan::ExclusiveSum(work.get(), bytes, mask, sums, m));"
    around = SUM_UP.format(parameters=parameters, before=before, scan=scan, behind=behind)
    return told(call or "Tools::sum_up(place, keep, n);", around=around)[-1]


def test_functions_of_the_host_may_make_the_sums() -> None:
    assert summed() == summed(behind="CHECK(cudaGetLastError());") == PassedSum(0, 0, 5, -1)
    assert summed(call="CHECK(sum_up(place + 1, keep, n + 1));") == PassedSum(0, -1, 5, 0)


@pytest.mark.parametrize(
    "changed",
    [
        {"before": "if (m < 9) return;"},
        {"before": "mask = mask + 1;"},
        {"before": "m /= 2;"},
        {"before": "m--;"},
        {"behind": "cudaMemset(sums, 0, 4);"},
        {"behind": "mask[0] = 1;"},
        {"scan": "if (m > 9) cub::DeviceScan::ExclusiveSum(work.get(), bytes, mask, sums, m);"},
        {"scan": "cub::DeviceScan::ExclusiveSum(work.get(), bytes, flags, sums, m);"},
        {"scan": "for (;;) { cub::DeviceScan::ExclusiveSum(work.get(), bytes, mask, sums, m); }"},
        {"behind": "} void sum_up(unsigned* sums, int* mask, int m) {"},
        {"call": "if (n > 3) sum_up(place, keep, n);"},
        {"call": "sum_up(keep, place, n);"},
        {"call": "sums.sum_up(place, keep, n);"},
    ],
)
def test_functions_that_may_do_something_else_tell_nothing(changed: dict[str, str]) -> None:
    assert summed(**changed) is None


CHANGED = "keep, 0, 4);"


@pytest.mark.parametrize(
    "before",
    [
        # Not on every way.
        f"if (n > 9) {EXCLUSIVE}",
        f"if (n > 9) {{ {EXCLUSIVE} }}",
        f"if (n > 9) return; else {EXCLUSIVE}",
        f"for (int r = 0; r < n; r++) CHECK({EXCLUSIVE[:-1]});",
        f"n > 9 ? mark<<<1, 1>>>(keep, n) : {EXCLUSIVE}",
        f"auto later = [&] {{ {EXCLUSIVE} }};",
        f"switch (n) {{ case 1: mark<<<1, 1>>>(keep, n); {EXCLUSIVE} break; case 2:",
        # Nothing is summed yet, something else is, or as something else.
        f"work = nullptr; {EXCLUSIVE}",
        f"void* w{{}}; {EXCLUSIVE.replace('work', 'w')}",
        f"void* w(NULL); {EXCLUSIVE.replace('work', 'w')}",
        EXCLUSIVE.replace("work", "NULL"),
        EXCLUSIVE.replace("n);", "n / 2);"),
        EXCLUSIVE.replace("n);", "m);"),
        EXCLUSIVE.replace("place", "other"),
        EXCLUSIVE.replace("Sum", "Scan").replace("place", "place, cub::Max(), 0"),
        "thrust::exclusive_scan(keep, keep + n, place, 1);",
        "thrust::inclusive_scan(keep, keep + n, place, thrust::maximum<int>());",
        "thrust::exclusive_scan(keep, last, place);",
        # What was summed, or the sums, may be others by now.
        f"{EXCLUSIVE} n++;",
        f"{EXCLUSIVE} keep = other;",
        f"{EXCLUSIVE} std::swap(place, other);",
        f"{EXCLUSIVE} cudaMemset({CHANGED}",
        f"{EXCLUSIVE} cudaMemcpy({CHANGED}",
        f"{EXCLUSIVE} Memory::copyHostToDevice({CHANGED}",
        f"{EXCLUSIVE} Memory::copyDeviceToHost({CHANGED}",
        f"{EXCLUSIVE} mark<<<9, 9>>>(keep, n);",
        f"{EXCLUSIVE} k<<<9, 9>>>(other, place, keep, out, in, n);",
        f"unsigned* flags = keep + 2; {EXCLUSIVE} mark<<<9, 9>>>(flags, n);",
        f"Marks marks{{keep, n}}; {EXCLUSIVE} marks.clear();",
        f"marks.flags = keep; {EXCLUSIVE} marks.clear();",
        f"keep = marks.data(); {EXCLUSIVE} marks.clear();",
        f"{EXCLUSIVE} if (n > 9) {{ mark<<<9, 9>>>(keep, n); }}",
        f"{EXCLUSIVE} if (n > 9) {{ n = 3; }}",
        f"{EXCLUSIVE} for (;;) {{ mark<<<9, 9>>>(keep, n); break; }}",
        f"{EXCLUSIVE} again: cudaMemset({CHANGED} if (n) goto again;",
    ],
)
def test_what_need_not_hold_at_the_launch_is_not_told(before: str) -> None:
    assert told(before, LAUNCH + ("}" if "switch" in before else ""))[-1] is None


@pytest.mark.parametrize(
    "launch",
    [
        f"for (int r = 0; r < 9; r++) {{ {LAUNCH} mark<<<9, 9>>>(keep, n); }}",
        f"for (int r = 0; r < 9; r++) {{ if (r) {{ mark<<<9, 9>>>(keep, n); }} else {{ {LAUNCH} }} }}",
        f"while (n) {{ {LAUNCH} n--; }}",
        f"while (n--) {LAUNCH}",
        LAUNCH.replace("n);", "m);"),
        LAUNCH.replace("place", "place, place"),
    ],
)
def test_nor_what_does_not_hold_each_time(launch: str) -> None:
    assert told(EXCLUSIVE, launch)[-1] is None


def test_variables_that_others_may_change_tell_nothing() -> None:
    around = "unsigned* flags; struct S { unsigned* sums; };"
    for before, launch in (("", LAUNCH.replace("keep", "flags")), ("static unsigned* flags; ", LAUNCH)):
        scan = before + EXCLUSIVE.replace("keep", "flags")
        assert told(scan, launch.replace("keep", "flags"), around) == [None]


def test_all_launches_must_tell_it() -> None:
    body = "if (i < n && keep[i]) out[place[i]] = in[i];"
    assert checked(body, EXCLUSIVE, f"{LAUNCH} {EXCLUSIVE} {LAUNCH}").verdict is Verdict.RACE_FREE
    assert checked(body, "", f"{LAUNCH} {EXCLUSIVE} {LAUNCH}").verdict is not Verdict.RACE_FREE
    directive = "// cuda-lsp: launch block=(128,1,1) grid=(8,1,1)\n"
    text = f"{directive}__global__ void k({NAMES}) {{ {INDEX} {body} }}\n"
    text += f"void go({NAMES}, void* work, size_t bytes) {{ {EXCLUSIVE} {LAUNCH} }}"
    (kernel,) = check_text(Path("/k.cu"), text, PATIENT).kernels
    assert kernel.verdict is not Verdict.RACE_FREE
