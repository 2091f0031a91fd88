"""Launches of functions that other files hand one buffer twice: what their own file cannot tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.handed_twice import hands_on_twice
from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """__global__ void shift(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i + 2];
}
"""
LAUNCH = "shift<<<(n + 255) / 256, 256>>>"
RUN = f"void run(const float* x, float* y, int n) {{ {LAUNCH}(x, y, n); }}\n"
HELPER = f"static void go(const float* x, float* y, int n) {{ {LAUNCH}(x, y, n); }}\n"
THROUGH = "void run(float* x, float* y, int n) { go(x, y, n); }"
ARRAY = "struct Array { float* data; };"
OF_ARRAYS = f"void run(const Array& x, Array& y, int n) {{ {LAUNCH}(x.data, y.data, n); }}\n"
DECLARED = "void run(const float* x, float* y, int n);\n"


def kernel(folder: Path, own: str, **others: str) -> KernelReport:
    """``own`` launches the kernel; of the others' names ``_`` stands for a dot, ``__`` for a folder."""
    (folder / ".git").mkdir(exist_ok=True)
    path = folder / "shift.cu"
    path.write_text(KERNEL + own)
    for name, text in others.items():
        other = folder / name.replace("__", "/").replace("_", ".")
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_text(text)
    (report,) = check_text(path, path.read_text()).kernels
    return report


CALLS = [
    (RUN, DECLARED + "void f(float* a, float* b, int n) { run(ONE, OTHER, n); }", "a", "b"),
    (RUN, DECLARED + "void f(float* a, float* b, int n) {\n  run(ONE, // in\n OTHER, n); }", "a", "b"),
    (RUN, DECLARED + "void f(float* a, float* c, int n) { float* b = ONE; run(a, b, n); }", "a", "c"),
    (RUN, "void f(float* b, int n) { float* a = s->at(n); run((const float*)ONE, OTHER, n); }", "a", "b"),
    (RUN, DECLARED + "void f(S* s, int n) { run(s->ONE, (float*)s->OTHER, n); }", "a", "b"),
    (RUN, DECLARED + "void f(float* a, float* b, int n) { run(ONE, OTHER + 1, n); }", "a", "b"),
    (HELPER + THROUGH, "void f() { run(ONE, OTHER, 9); }", "a", "b"),
    (ARRAY + OF_ARRAYS, "void f(Array& a, Array& b) { run(ONE, OTHER, 9); }", "a", "b"),
]  # fmt: skip


@pytest.mark.parametrize(("own", "caller", "one", "other"), CALLS)
@pytest.mark.parametrize("where", ["main_cu", "app__main_cpp"])
def test_one_buffer_where_another_file_hands_it_on(
    tmp_path: Path, own: str, caller: str, one: str, other: str, where: str
) -> None:
    twice = caller.replace("ONE", one).replace("OTHER", one)
    apart = caller.replace("ONE", one if "= ONE" not in caller else other).replace("OTHER", other)
    assert kernel(tmp_path, own, **{where: twice}).verdict is Verdict.RACY
    assert kernel(tmp_path, own, **{where: apart}).verdict is Verdict.RACE_FREE


@pytest.mark.parametrize(
    "other",
    [
        "void run(const float* x, float* y, int n) {} void f(float* a) { run(a, a, 9); }",  # its own
        "void f(float* a) { run(a, a); }",  # of another function, with fewer arguments
        "void f(float* a, float* b, int n) { run(a, b, n); walk(a, a, n); }",
        "// run(a, a, n)\n",
        "struct S { void f(float* a, float* b) { run(a, b, 9); } };",
    ],
)
def test_calls_of_other_functions_say_nothing(tmp_path: Path, other: str) -> None:
    assert kernel(tmp_path, RUN, main_cpp=other).verdict is Verdict.RACE_FREE


def test_who_defines_a_function_nearer_to_a_call_is_called(tmp_path: Path) -> None:
    here = {"app__main_cpp": "void f(float* a) { run(a, a, 9); }"}
    near = {"app__run_cpp": "void run(const float* x, float* y, int n) { for (;;) {} }"}
    assert kernel(tmp_path, RUN, **here, **near).verdict is Verdict.RACE_FREE
    (tmp_path / "app" / "run.cpp").write_text("")
    assert kernel(tmp_path, RUN, **here).verdict is Verdict.RACY


def test_a_kernel_of_a_header_that_one_file_launches_and_another_calls(tmp_path: Path) -> None:
    """The launch stands in another file than the kernel, the call in a third one."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "shift.cuh").write_text(KERNEL)
    (tmp_path / "run.cu").write_text('#include "shift.cuh"\n' + RUN)
    call = DECLARED + "void f(float* a, float* b, int n) { run(a, OTHER, n); }"
    for other, verdict in (("a", Verdict.RACY), ("b", Verdict.RACE_FREE)):
        (tmp_path / "main.cpp").write_text(call.replace("OTHER", other))
        (report,) = check_text(tmp_path / "shift.cuh", KERNEL).kernels
        assert report.verdict is verdict


def test_a_glance_takes_no_argument_for_another() -> None:
    assert hands_on_twice("run(a, n, a + n)", "run", (0, 2))
    assert not hands_on_twice("run(a, n, b + n, n)", "run", (0, 2))
    assert not hands_on_twice("rerun(a, n, a); run(x.data, 3, y.data)", "run", (0, 2))
    assert not hands_on_twice("run(nullptr, n, nullptr)", "run", (0, 2))
    assert hands_on_twice("b = a + 4; run(reinterpret_cast<char*>(a), 3, (char*)b)", "run", (0, 2))
