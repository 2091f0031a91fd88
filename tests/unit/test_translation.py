# ruff: noqa: E501, RUF005 (sources on one line)
"""A live file: kernels, digests, templates, and any text at all."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kernel_text import kernel_text

from cuda_lsp.frontend import clang_unit
from cuda_lsp.frontend.toolchain import FrontendOptions
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.frontend.tree import Declaration, Node
from cuda_lsp.model import Position
from cuda_lsp.static.analyze import check_text

Open = Callable[..., Translation]


@pytest.fixture
def translate(tmp_path: Path) -> Iterator[Open]:
    opened: list[Translation] = []

    def open_text(text: str, name: str = "a.cu", **options: object) -> Translation:
        opened.append(Translation(tmp_path / name, text, FrontendOptions(**options)))  # type: ignore[arg-type]
        return opened[-1]

    yield open_text
    for translation in opened:
        translation.close()


def names(translation: Translation) -> list[str]:
    return [kernel.name for kernel in translation.kernels()]


TWO = """__device__ float twice(float x) { return 2 * x; }
__global__ void first(float* a) {
    a[threadIdx.x] = twice(a[threadIdx.x]);
}
__global__ void second(float* a) {
    __syncthreads();
}
"""


def digests(translation: Translation) -> dict[str, str]:
    return {kernel.name: kernel.digest for kernel in translation.kernels()}


def test_kernels_are_found_with_their_ranges(translate: Open) -> None:
    first, second = translate(TWO).kernels()
    assert (first.name, first.range.start, first.range.end) == ("first", Position(2, 1), Position(4, 2))
    assert second.name_range.start == Position(5, 17)
    assert first.parameters == ("a",)


def test_an_edit_inside_one_kernel_invalidates_only_that_kernel(translate: Open) -> None:
    translation = translate(TWO)
    before = digests(translation)
    translation.reparse(TWO.replace("__syncthreads();", "__syncthreads(); a[0] = 1;"))
    after = digests(translation)
    assert after["first"] == before["first"]
    assert after["second"] != before["second"]


def test_a_kernel_that_moves_as_a_whole_keeps_its_digest(translate: Open) -> None:
    text = TWO[TWO.index("__global__") :].replace("twice", "")
    translation = translate(text)
    before = translation.kernels()[1]
    translation.reparse(text.replace("= (a", "=\n\n (a"))
    after = translation.kernels()[1]
    assert after.digest == before.digest
    assert after.range == before.range.shifted(2)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2 * x", "3 * x"),  # a called device function
        ("a[threadIdx.x] =", "\n#define twice(x) x\na[threadIdx.x] ="),  # a macro inside another kernel
    ],
)
def test_what_a_kernel_may_depend_on_changes_its_digest(translate: Open, old: str, new: str) -> None:
    text = TWO.replace("__syncthreads();", "a[0] = twice(1);")
    translation = translate(text)
    before = digests(translation)["second"]
    translation.reparse(text.replace(old, new))
    assert digests(translation)["second"] != before


def test_lines_added_between_a_device_function_and_the_kernel_change_its_digest(translate: Open) -> None:
    text = TWO.replace("__syncthreads();", "a[0] = twice(1);")
    translation = translate(text)
    before = digests(translation)["second"]
    translation.reparse(text.replace("(a[threadIdx.x]);", "(\n a[threadIdx.x]);"))
    assert digests(translation)["second"] != before


def test_flags_are_part_of_the_digest(translate: Open) -> None:
    assert digests(translate(TWO)) != digests(translate(TWO, defines=("N=2",)))


TEMPLATE = "template <class T, int BLOCK> __global__ void k(T* a) { __shared__ T s[BLOCK]; s[0] = a[0]; }\n"


def test_instantiations_are_named_by_their_arguments(translate: Open) -> None:
    text = TEMPLATE + "void f(float* a, int* b) { k<float, 32><<<1, 32>>>(a); k<int, 64><<<1, 64>>>(b); }\n"
    assert names(translate(text)) == ["k<float, 32>", "k<int, 64>"]


def test_a_template_without_launch_gets_assumed_arguments(translate: Open) -> None:
    translation = translate(TEMPLATE)
    assert names(translation) == ["k<float, 16>"]
    assert translation.kernels()[0].range.end == Position(1, len(TEMPLATE))


def test_assumed_arguments_go_when_a_launch_appears(translate: Open) -> None:
    translation = translate(TEMPLATE)
    translation.reparse(TEMPLATE + "void f(int* a) { k<int, 64><<<1, 64>>>(a); }\n")
    assert names(translation) == ["k<int, 64>"]


def test_integer_types_are_tried_when_float_does_not_compile(translate: Open) -> None:
    text = "template <class T> __global__ void k(T* a) { a[0] = a[1] % 2; }\n"
    assert names(translate(text)) == ["k<int>"]


def test_instantiations_beyond_the_cap_are_said(translate: Open) -> None:
    launches = "".join(f"k<float, {n}><<<1, 1>>>(a);" for n in range(1, 8))
    translation = translate(TEMPLATE + f"void f(float* a) {{ {launches} }}\n")
    assert len(translation.kernels()) == 4
    assert any("7 instantiations" in error.message for error in translation.diagnostics)


def test_kernels_in_namespaces_and_classes_are_found(translate: Open) -> None:
    text = "namespace a { namespace b { __global__ void k() {} } }\nstruct S { static __global__ void m() {} };\n"
    assert names(translate(text)) == ["k", "m"]


def test_columns_count_code_points(translate: Open) -> None:
    text = "/* ü€𝄞 */ __global__ void k(int* a) { a[0] = zz; }\n"
    translation = translate(text)
    kernel = translation.kernels()[0]
    assert kernel.name_range.start.column == text.index("k(") + 1
    (error,) = translation.diagnostics
    assert error.range is not None
    assert error.range.start.column == text.index("zz") + 1


def test_a_missing_header_of_the_user_is_reported_once_and_the_rest_is_read(translate: Open) -> None:
    text = '#include <vector>\n#include "cuda_runtime.h"\n#include "mine.h"\n#include "mine.h"\n__global__ void k() {}\n'
    translation = translate(text)
    assert names(translation) == ["k"]
    (error,) = translation.diagnostics
    assert "'mine.h' was not found" in error.message
    assert error.range is not None
    assert error.range.start.line == 3


def test_a_header_of_the_user_is_read(translate: Open, tmp_path: Path) -> None:
    (tmp_path / "mine.h").write_text("#define N 8\n")
    translation = translate('#include "mine.h"\n__global__ void k() { __shared__ int s[N]; s[0] = 1; }\n')
    assert translation.diagnostics == ()


def test_a_header_changed_on_disk_counts_after_a_refresh(translate: Open, tmp_path: Path) -> None:
    header = tmp_path / "mine.h"
    header.write_text("#define N 8\n")
    translation = translate('#include "mine.h"\n__global__ void k() { __shared__ int s[N]; s[0] = 1; }\n')
    before = digests(translation)
    header.write_text("#define N 16 // longer\n")
    translation.refresh()
    assert digests(translation) != before


def test_host_code_errors_are_not_reported(translate: Open) -> None:
    assert (
        translate("#include <iostream>\nint main() { foo::bar(); }\n__global__ void k() {}\n").diagnostics
        == ()
    )


def test_an_error_inside_a_kernel_is_reported_and_reaches_the_kernel_program(translate: Open) -> None:
    translation = translate("__global__ void k(int* a) {\n    a[0] = unknown(1);\n}\n")
    assert "unknown" in translation.diagnostics[0].message
    kernel = translation.lower(translation.kernels()[0])
    assert [error.start.line for error in kernel.errors] == [2]


def test_an_error_inside_a_called_function_reaches_the_kernel_program(translate: Open) -> None:
    text = (
        "__device__ int f(int x) {\n    return unknown(x);\n}\n__global__ void k(int* a) { a[0] = f(1); }\n"
    )
    translation = translate(text)
    assert [error.start.line for error in translation.lower(translation.kernels()[0]).errors] == [2]


def test_an_error_inside_a_called_header_function_reaches_only_the_kernels_that_call_it(
    translate: Open, tmp_path: Path
) -> None:
    (tmp_path / "mine.h").write_text(
        "void host() { nothing_known(); }\n__device__ int g(int x) { return unknown(x); }\n"
        "__device__ int f(int x) { return g(x); }\n"
    )
    text = '#include "mine.h"\n__global__ void a(int* p) { p[0] = f(1); }\n'
    translation = translate(text + "__global__ void b(int* p) { p[0] = 1; }\n")
    a, b = (translation.lower(kernel) for kernel in translation.kernels())
    assert [(error.path.name, error.start.line) for error in a.errors] == [("mine.h", 2)]
    assert b.errors == ()


def test_a_fragment_is_read_behind_what_its_includer_says_first(translate: Open, tmp_path: Path) -> None:
    (tmp_path / "main.cu").write_text('#define N 8\ntypedef float real;\n#include "part.cu"\nint main() {}\n')
    translation = translate("__global__ void k(real* a) { a[0] = N; }\n", name="part.cu")
    assert translation.diagnostics == ()
    assert translation.kernels()[0].name_range.start == Position(1, 17)
    translation.reparse("__global__ void k(real* a) { a[0] = N + 1; }\n")
    assert translation.diagnostics == ()


def test_a_fragment_is_read_behind_its_includers_includer(translate: Open, tmp_path: Path) -> None:
    (tmp_path / "main.cu").write_text('#define N 8\n#include "work.cu"\n')
    (tmp_path / "work.cu").write_text('typedef float real;\n#include "./part.cu"\n')
    text = "__global__ void k(real* a) { a[0] = N; }\n"
    (tmp_path / "part.cu").write_text(text)
    assert translate(text, name="part.cu").diagnostics == ()


def test_of_several_includers_the_one_that_helps_is_taken(translate: Open, tmp_path: Path) -> None:
    (tmp_path / "all.h").write_text('#include "part.cu"\n')
    (tmp_path / "main.cu").write_text('typedef float real;\n#include "part.cu"\n')
    assert translate("__global__ void k(real* a) { a[0] = 1; }\n", name="part.cu").diagnostics == ()


def test_a_fragment_may_begin_inside_a_scope_of_its_includer(translate: Open, tmp_path: Path) -> None:
    (tmp_path / "main.cu").write_text('extern "C" {\ntypedef float real;\n#include "part.cu"\n}\n')
    translation = translate("__global__ void k(real* a) { a[0] = 1; }\n", name="part.cu")
    assert [kernel.name for kernel in translation.kernels()] == ["k"]
    assert translation.diagnostics == ()


def test_an_includer_that_hides_the_kernels_is_left_out(translate: Open, tmp_path: Path) -> None:
    (tmp_path / "main.cu").write_text('#define HIDDEN\n#include "part.cu"\n')
    translation = translate("#ifndef HIDDEN\n__global__ void k(real* a) {}\n#endif\n", name="part.cu")
    assert [kernel.name for kernel in translation.kernels()] == ["k"]


def test_an_enumeration_as_template_parameter_is_guessed(translate: Open) -> None:
    translation = translate("enum class Kind { A = 3, B };\ntemplate <Kind k> __global__ void f(int* a) {}\n")
    assert translation.diagnostics == ()
    assert not translation.kernels()[0].dependent


def test_a_template_of_vectors_is_guessed(translate: Open) -> None:
    translation = translate("template <class T> __global__ void f(T* a) { a[0].x = a[1].y; }\n")
    assert translation.diagnostics == ()


def test_an_includer_that_does_not_help_is_left_out(translate: Open, tmp_path: Path) -> None:
    (tmp_path / "main.cu").write_text('int x;\n#include "part.cu"\n')
    translation = translate("__global__ void k(real* a) {}\n", name="part.cu")
    assert "real" in translation.diagnostics[0].message


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void fine() {}\n__global__ void k(float* a {\n}\n",
        "#if 0\n__global__ void k() {}\n#endif\n__global__ void fine() {}\n",
        "template <class T> struct S { static __global__ void k() {} };\n__global__ void fine() {}\n",
        "#if 0\n__global__ void __launch_bounds__(f(256), 2) k() {}\n#endif\n__global__ void fine() {}\n",
        "#if 0\n__global__ __launch_bounds__(256) void k() {}\n#endif\n__global__ void fine() {}\n",
    ],
)
def test_a_kernel_that_is_not_analysed_is_said(translate: Open, text: str) -> None:
    translation = translate(text)
    assert translation.unreadable == ("k",)
    assert any(error.message.startswith("kernel 'k' is not analysed") for error in translation.diagnostics)


def test_prototypes_macros_and_comments_are_no_kernels(translate: Open) -> None:
    text = "__global__ void k(int);\n#define K __global__ void m() {}\n// __global__ void c() {}\n"
    assert translate(text).diagnostics == ()


def test_a_macro_that_glues_names_of_kernels_is_no_kernel_of_the_rest_of_the_name(translate: Open) -> None:
    macro = (
        "#define MAKE(name, what) \\\n__global__ void name##_kernel(float* x) { \\\n*x = what(*x); \\\n}\n"
    )
    assert translate(macro).diagnostics == ()
    made = translate(f"{macro}MAKE(root, sqrtf)\n")
    assert made.unreadable == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "\0\0\0",
        "\ufeff__global__ void k() {}",
        "\udcff\udc80",
        "hello, this is no CUDA",
        "{" * 500,
        "}" * 500,
    ]
    + [
        "__global__",
        "__global__ void",
        "__global__ void k(",
        "template <",
        "#include",
        '#include "',
        "#if\n",
        "/*",
        '"',
    ],
)
def test_any_text_is_survived(translate: Open, text: str) -> None:
    translation = translate(text)
    translation.reparse(text + "\n__global__ void later() {}\n")
    translation.reparse("__global__ void again() {}\n")
    assert names(translation) == ["again"]


def test_ten_thousand_lines(translate: Open) -> None:
    text = "".join(f"__global__ void k{n}(int* a) {{\n" + "    a[0] += 1;\n" * 8 + "}\n" for n in range(1000))
    assert len(translate(text).kernels()) == 1000


def test_launches_and_directives_reach_the_kernel_program(translate: Open) -> None:
    translation = translate(
        "// cuda-lsp: launch block=(64) grid=(2)\n// cuda-lsp: args n=5\n// cuda-lsp: assume n > 3 && n < blockDim.x\n"
        "__global__ void __launch_bounds__(128, 2) k(int* a, int n) { a[n] = 1; }\n"
        "void f(int* a) { k<<<1, 32>>>(a, 9); }\n"
    )
    kernel = translation.lower(translation.kernels()[0])
    assert [launch.block for launch in kernel.launches] == [(64, 1, 1), (32, 1, 1)]
    assert kernel.launches[0].arguments == {"n": 5}
    assert len(kernel.directives.assumptions) == 1
    assert kernel.bounds is not None
    assert (kernel.bounds.max_threads, kernel.bounds.min_blocks) == (128, 2)


def test_arguments_of_a_directive_hold_without_any_launch(translate: Open) -> None:
    translation = translate("// cuda-lsp: args n=5\n__global__ void k(int n) {}\n")
    kernel = translation.lower(translation.kernels()[0])
    assert kernel.launches == ()
    assert kernel.directives.arguments == {"n": 5}


def test_an_assumption_that_is_not_understood_is_reported(translate: Open) -> None:
    translation = translate("// cuda-lsp: assume m > f(3)\n__global__ void k(int n) {}\n")
    translation.lower(translation.kernels()[0])
    assert any("assume m > f(3)" in error.message for error in translation.diagnostics)


def test_what_lowering_leaves_behind_is_freed_and_made_again(translate: Open) -> None:
    translation = translate(TWO)

    def nodes() -> int:
        gc.collect()
        return sum(type(thing) in (Node, Declaration) for thing in gc.get_objects())

    before = nodes()
    kernels = [translation.lower(kernel) for kernel in translation.kernels()]
    assert nodes() > before + 20
    translation.rest()
    assert nodes() == before
    assert [kernel_text(translation.lower(kernel)) for kernel in translation.kernels()] == [
        *map(kernel_text, kernels)
    ]


def test_errors_in_host_functions_are_not_the_kernels(tmp_path: Path) -> None:
    text = """
struct Run { void operator()(int* a); __device__ int pick(int i); };
void Run::operator()(int* a) { unknown_host_call(a); }
__device__ int Run::pick(int i) { return missing + i; }
__global__ void good(int* a) { a[threadIdx.x + blockIdx.x * blockDim.x] = 1; }
__global__ void bad(int* a) { Run r; a[threadIdx.x] = r.pick(1); }
"""
    translation = Translation(tmp_path / "k.cu", text)
    good, bad = (translation.lower(kernel) for kernel in translation.kernels())
    assert not good.errors
    assert bad.errors


def test_overloads_that_name_their_parameters_alike_get_arguments_each(tmp_path: Path) -> None:
    """What a launch's arguments are does not matter to what it writes between angle brackets."""
    text = """#include <missing_clock>
enum class Kind { Relu, Gelu };
template <Kind kind> __global__ void act(int n, float* out) { if (kind == Kind::Gelu) out[threadIdx.x] = 1; }
template <Kind kind> __global__ void act(int n, int* out) { if (kind == Kind::Gelu) out[0] = threadIdx.x; }
void f(float* a, int* b) {
    act<Kind::Gelu><<<1, 64>>>(std::clock::now(), a);
    act<Kind::Gelu><<<1, 64>>>(std::clock::now(), b);
}
"""
    report = check_text(tmp_path / "k.cu", text)
    assert [(kernel.name, kernel.verdict.value) for kernel in report.kernels] == [
        ("act<1>", "race-free"),
        ("act<1>", "racy"),
    ]
    assert not report.errors


ONE = "template <int N> __global__ void k(float* a) {{ {} a[threadIdx.x] = N; }}\n"


@pytest.mark.parametrize(
    ("typed", "again"),
    [
        ("int q", False),  # no arguments make a parser's error good
        ("int q =", False),
        ("static_assert(N != 16);", True),  # others do this
    ],
)
def test_other_arguments_are_tried_for_errors_that_hang_on_them(
    translate: Open, monkeypatch: pytest.MonkeyPatch, typed: str, again: bool
) -> None:
    translation = translate(ONE.format(""))
    before, read, parses = names(translation), clang_unit.read, list[object]()

    def counted(*given: Any) -> Any:
        parses.append(given)
        return read(*given)

    monkeypatch.setattr(clang_unit, "read", counted)
    translation.reparse(ONE.format(typed), focused=True)
    assert (len(parses) > 1) is again
    assert (names(translation) == before) is not again
