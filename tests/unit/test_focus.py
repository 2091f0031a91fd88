"""Reading one kernel after an edit tells what reading the whole file tells."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from kernel_text import kernel_text

from cuda_lsp.frontend import focus
from cuda_lsp.frontend.focus import edit_between
from cuda_lsp.frontend.kernel_sources import KernelSource
from cuda_lsp.frontend.same_code import SameCode
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.ir.program import Kernel

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").glob("*.cu"))
PATH = Path("/nowhere/typed.cu")
TYPED = (
    *"x;{}()[]\"'#\\\n",
    "/*", "*/", "//", "int q = 1;", "__syncthreads();", "}\n{", "f(", "extern __shared__ int z[];",
    "k<<<1, 1>>>();", "\n#pragma unroll\n", "\n#if 0\n", "\n#endif\n", "#define int float\n", 'R"(', "é",
    "undeclared + 1;", "if (", "\\\n", "helper(1);", "auto l = [] { return 1; };", "struct S { int a; };",
    "one<double>();", "'", "1'000",
)  # fmt: skip
MANY = """
#include <cstdio>
#define WIDTH 32
struct Options { int width = 4; bool parse() { return width > 2; } };
__device__ float half_of(float x) { return x / 2; }
template <typename T> __device__ T twice(T x) { return x + x; }
static constexpr int tiles(int n) { return n / 16; }
int helper(int n) { return n + 1; }
auto deduced() { return 3; }
namespace inner {
__global__ void first(float* a, int n) {
    extern __shared__ float all[];
    int i = threadIdx.x;
    all[i] = a[i];
    a[i] = half_of(all[(i + 1) % tiles(512)]);
}
}  // namespace inner
template <typename T, int N> __global__ void one(T* a) {
    __shared__ T s[N];
#pragma unroll
    for (int i = 0; i < N; i++) s[i] = a[i];  // '{'
    a[threadIdx.x] = twice(s[threadIdx.x % N]);
}
template <typename T> void launch(T* p) { one<T, 8><<<1, 64>>>(p); }
__global__ void second(int* a) {
    extern __shared__ int all[];
    all[threadIdx.x] = a[threadIdx.x]; /* } */
    if (threadIdx.x < WIDTH) {
        a[threadIdx.x] = all[threadIdx.x ^ 1];
    }
}
#if WIDTH > 16
__global__ void third(int* a, int n) { a[threadIdx.x] = twice(n); }
#else
__global__ void third(int* a, int n) { a[0] = n; }
#endif
int main() {
    float* p = nullptr;
    // cuda-lsp: launch block=(64)
    inner::first<<<1, 128, 512>>>(p, helper(3));
    launch<float>(p);
    launch<int>((int*)p);
    second<<<2, 256, 1024>>>((int*)p);
    third<<<1, WIDTH>>>((int*)p, deduced());
}
__global__ void last(int* a) {
    a[threadIdx.x] = 1;
}
"""


def told(source: KernelSource) -> tuple[object, ...]:
    """All that is known of a kernel but where libclang keeps it."""
    return (
        source.name, source.range, source.name_range, source.offsets, source.parameters, source.digest,
        source.template_arguments, source.template_parameters, source.template, source.dependent,
        source.scope,
    )  # fmt: skip


def meaning(kernel: Kernel) -> tuple[object, ...]:
    """A kernel program without the identities of its variables."""
    return (
        kernel_text(kernel), set(kernel.errors), kernel.launches, kernel.grid, kernel.arguments,
        kernel.extents, kernel.digest, kernel.bounds, kernel.directives.launch,
        kernel.instantiated_by, kernel.mangled,
    )  # fmt: skip


def compare(focused: Translation, whole: Translation) -> None:
    if any(map(focused.lost_sight_of, focused.kernels())):
        return  # of others clang makes in the whole text what it can
    assert [told(k) for k in focused.kernels()] == [told(k) for k in whole.kernels()]
    assert focused.diagnostics == whole.diagnostics
    assert focused.unreadable == whole.unreadable
    assert focused.launch_sites == whole.launch_sites
    for one, other in zip(focused.kernels(), whole.kernels(), strict=True):
        if focused.reads(one) and not one.dependent:
            assert meaning(focused.lower(one)) == meaning(whole.lower(other))
    assert focused.diagnostics == whole.diagnostics  # lowering may add some


def edited(text: str, choose: random.Random) -> str:
    """A random edit, mostly where kernels are."""
    starts = [i for i in range(len(text)) if text.startswith("__global__", i)]
    start = text.find("{", choose.choice(starts)) if starts and choose.random() < 0.8 else 0
    start = start or choose.randrange(len(text))
    at = min(len(text), start + 1 + choose.randrange(0, 250))
    if choose.random() < 0.4:
        return text[:at] + text[at + choose.randrange(1, 12) :]
    return text[:at] + choose.choice(TYPED) + text[at:]


@pytest.mark.parametrize("path", [*FIXTURES[::6], None], ids=lambda p: p.stem if p else "many")
def test_reading_one_kernel_tells_what_reading_the_file_tells(path: Path | None) -> None:
    reads_as_the_whole(path.read_text() if path else MANY, 4 if path else 40)


def reads_as_the_whole(text: str, rounds: int) -> None:
    choose = random.Random(text)
    focused, whole = Translation(PATH, text), Translation(PATH, text)
    for _ in range(rounds):
        typed = text
        for _ in range(choose.randrange(1, 4)):
            typed = edited(typed, choose)
            focused.reparse(typed, focused=True)
            whole.reparse(typed)
            compare(focused, whole)
        focused.reparse(text, focused=True)
        whole.reparse(text)
        compare(focused, whole)
    focused.complete()
    compare(focused, whole)


SPACE = ("  ", "\n", "\n\n    ", " /* é */ ", "  // said\n", " /* two\nlines */ ")


def respelled(text: str, choose: random.Random) -> str:
    """White space or a comment comes, or goes, somewhere."""
    gaps = [m for m in re.finditer(r"(?<=[;{}]) *\n|(?<=[(,]) *|(?<=[;{}] )", text) if m.start() < m.end()]
    gap = choose.choice(gaps)
    if choose.random() < 0.3:
        return text[: gap.start()] + ("\n" if "\n" in gap[0] else "") + text[gap.end() :]
    at = choose.choice((gap.start(), gap.end()))
    return text[:at] + choose.choice(SPACE) + text[at:]


@pytest.mark.parametrize("path", [*FIXTURES[::4], None], ids=lambda p: p.stem if p else "many")
def test_white_space_that_is_not_read_tells_what_reading_it_tells(path: Path | None) -> None:
    text = path.read_text() if path else MANY
    choose = random.Random(text)
    moved, whole = Translation(PATH, text), Translation(PATH, text)
    taken = 0
    for number in range(8 if path else 60):
        typed = respelled(text, choose)
        same = SameCode.of(PATH, text, typed)
        if same is None or not moved.respell(text, typed, same):
            moved.reparse(typed, focused=True)
        else:
            taken += 1
            assert not any(moved.reads(kernel) for kernel in moved.kernels())
        text = typed
        whole.reparse(text)
        compare(moved, whole)
        if number % 3 == 2:  # somebody types something else behind it
            other = edited(text, choose)
            moved.reparse(other, focused=True)
            whole.reparse(other)
            compare(moved, whole)
            moved.reparse(text, focused=True)
            whole.reparse(text)
            compare(moved, whole)
    assert taken > 2
    moved.complete()
    compare(moved, whole)


@pytest.mark.parametrize(
    ("kernel", "typed"),
    [
        *((kernel, " int q = 1;") for kernel in ("first", "second", "third", "last")),
        ("one", "// of launch()"),  # a broken template loses its instances
    ],
)
def test_letters_inside_one_kernel_read_that_kernel_only(kernel: str, typed: str) -> None:
    translation = Translation(PATH, MANY)
    at = MANY.index("{", MANY.index(f"void {kernel}(")) + 1
    for count in range(2, len(typed)):
        translation.reparse(MANY[:at] + typed[:count] + MANY[at:], focused=True)
        assert translation.is_focused
        assert {k.base_name for k in translation.kernels() if translation.reads(k)} == {kernel}


@pytest.mark.parametrize(
    "typed", ["{", "}", "/*", '"', "\n#if 0\n", "second<<<1, 1>>>();", "one<float, 8>(0);"]
)
def test_what_may_reach_out_of_the_kernel_has_the_whole_file_read(typed: str) -> None:
    translation = Translation(PATH, MANY)
    at = MANY.index("a[threadIdx.x] = 1;")
    translation.reparse(MANY[:at] + typed + MANY[at:], focused=True)
    assert not translation.is_focused


def test_typing_in_a_host_function_leaves_every_kernel_and_moves_the_launches() -> None:
    text = (
        MANY[: MANY.index("template <typename T, int N>")]
        + "int main() {\n    inner::first<<<1, 64>>>(0, 1);\n}\n"
    )
    translation = Translation(PATH, text)
    (before,) = translation.kernels()
    translation.reparse(text.replace("{\n    inner", "{\n    int more;\n    inner"), focused=True)
    assert translation.is_focused
    (kernel,) = translation.kernels()
    assert not translation.reads(kernel)
    assert kernel.digest == before.digest
    (site,) = translation.launch_sites
    assert site.site
    assert site.site.range.start.line == text.count("\n", 0, text.index("first<<<")) + 2


@pytest.mark.parametrize(
    ("typed", "focused"),
    [
        *(
            (typed, True)
            for typed in ("i", "in", "int", "int q", "int q =", "int q = 3", "int q = 3;", "q += 3;")
        ),
        *((typed, False) for typed in ("launch<int>(p);", "helper(1);", "auto q = 3;", "int p = 3;", "{")),
        ("int WIDTH = 3;", False),  # an argument of a launch below
    ],
)
def test_beside_templates_a_plain_statement_of_a_host_function_leaves_every_kernel(
    typed: str, focused: bool
) -> None:
    translation = Translation(PATH, MANY)
    before = {k.name: (k.digest, k.offsets) for k in translation.kernels()}
    at = MANY.index("\n    launch<int>((int*)p);")
    translation.reparse(f"{MANY[:at]} {typed}{MANY[at:]}", focused=True)
    assert translation.is_focused == focused
    if focused:
        after = {k.name: (k.digest, k.offsets) for k in translation.kernels()}
        assert after.keys() == before.keys()
        for name, (digest, (start, _)) in after.items():
            assert digest == before[name][0]
            assert start - before[name][1][0] in (0, len(typed) + 1)
        assert not any(translation.reads(kernel) for kernel in translation.kernels())
        translation.complete()
        broken = not typed.endswith(";")  # of that clang loses what comes next
        assert broken or before.keys() == {k.name for k in translation.kernels()}


def test_an_edit_is_the_one_stretch_that_differs() -> None:
    edit = edit_between(b"ab\ncd", b"ab\n\nxcd")
    assert (edit.start, edit.old_end, edit.new_end, edit.lines) == (3, 3, 5, 1)
    assert edit_between(b"aaa", b"aa").shift == -1
    assert edit_between(b"", b"a").new_end == 1


def test_errors_elsewhere_stay_and_move_with_the_text() -> None:
    broken = MANY.replace("a[threadIdx.x] = 1;", "a[threadIdx.x] = nothing;")
    translation = Translation(PATH, broken)
    (before,) = (e for e in translation.diagnostics if "nothing" in e.message)
    at = broken.index("all[threadIdx.x] = a[")
    translation.reparse(broken[:at] + "\n\n" + broken[at:], focused=True)
    (after,) = (e for e in translation.diagnostics if "nothing" in e.message)
    assert after.message == before.message
    assert after.range and before.range and after.range == before.range.shifted(2)


ALIKE = r"""
#if 0
__global__ void left_out(int* a) { a[1] = 2; }
#endif
__global__ void scale(float* a, float by) { a[threadIdx.x] *= by; }
__global__ void scale(double* a, double by) {
    int i = threadIdx.x + \
        blockIdx.x * 64;
    a[i] *= by;
}
__device__ int scaled(int n) { return 2 * n; }
template <typename T> __global__ void fill(T* a, int n) { a[threadIdx.x] = n; }
template <> __global__ void fill<float>(float* a, int n) { a[threadIdx.x] = scaled(n); }
int main() {
    int* p = nullptr;
    scale<<<1, 64>>>((float*)p, 2);
    scale<<<4, 64>>>((double*)p, 2);
    fill<<<1, 64>>>(p, 2);
    fill<<<1, 64>>>((float*)p, 3);
}
"""


@pytest.mark.parametrize(
    ("old", "new", "focused"),
    [
        ("a[threadIdx.x] *= by;", "a[threadIdx.x] *= by; int q = 3;", True),
        ("a[threadIdx.x] *= by;", "a[threadIdx.x] *= by; q", True),
        ("a[i] *= by;", "\n    a[i ^ 1] *= by;", True),
        ("a[threadIdx.x] = n;", "a[threadIdx.x ^ 1] = n;", True),
        ("= scaled(n);", "= scaled(n) + 1;", True),
        ("a[i] *= by;", "a[i] *= by; }", False),
        ("a[i] *= by;", "a[i] *= by; \\\n", True),
        ("a[i] *= by;", "a[i] *= fil\\\nl;", False),
        ("a[i] *= by;", "a[i] *= by; // \\\n", False),
        ("a[i] *= by;", "} __global__ void more(int* a) { a[0] = 1;", False),
        ("a[threadIdx.x] = n;", "a[0] = n; scale(a, 1);", True),
    ],
)
def test_kernels_of_one_name_and_lines_in_two_parts(old: str, new: str, focused: bool) -> None:
    translation, typed = Translation(PATH, ALIKE), ALIKE.replace(old, new)
    assert translation.unreadable == ("left_out",)
    for text in (typed, ALIKE, typed.replace("} __global__", ";} __global__")):
        translation.reparse(text, focused=True)
        assert translation.is_focused or not focused
        compare(translation, Translation(PATH, text))


def test_braces_that_closed_close_after_an_edit_that_leaves_tokens_around() -> None:
    choose = random.Random(7)
    left = 0
    for _ in range(20_000):
        middle = "".join(
            choose.choice("{}\"'/*\\\n1aR .;x" + 9 * "x ;") for _ in range(choose.randrange(1, 20))
        )
        before = f"{{{middle}}}"
        start = choose.randrange(1, len(before))
        end = choose.randrange(start, len(before))
        typed = choose.choice(("", "a", "1", ".", "x;", " ", "R", "b1 "))
        after = before[:start] + typed + before[end:]
        one, other = before.encode(), after.encode()
        edit = edit_between(one, other)
        if focus._closes(one, 0, len(one)) and focus._leaves_tokens_around(one, other, edit):
            left += 1
            assert focus._closes(other, 0, len(other)), (before, after)
    assert left > 1000


def test_mistakes_of_a_template_that_blank_text_uses_stay_until_the_whole_text_is_read() -> None:
    text = """
struct Plain {};
template <typename T> __device__ int size_of(T x) { return x.size; }
__global__ void first(int* a) { a[0] = size_of(Plain()); }
__global__ void second(int* a) { a[threadIdx.x] = 1; }
__global__ void third(int* a, Plain p) { a[threadIdx.x] = 2; }
"""
    translation = Translation(PATH, text)
    before = [e.message for e in translation.diagnostics]
    assert [bool(translation.complaints(k)) for k in translation.kernels()] == [True, False, False]
    typed = text.replace("= 1;", "= 1; int q = 3;")
    translation.reparse(typed, focused=True)
    assert translation.is_focused and [e.message for e in translation.diagnostics] == before
    assert [bool(translation.complaints(k)) for k in translation.kernels()] == [True, False, False]
    typed = typed.replace("= 2;", "= size_of(p);")
    translation.reparse(typed, focused=True)
    assert [bool(translation.complaints(k)) for k in translation.kernels()] == [True, False, True]
    compare(translation, Translation(PATH, typed))
    mended = text.replace("size_of(Plain())", "3")
    translation.reparse(text)
    translation.reparse(mended, focused=True)
    assert not any(map(translation.complaints, translation.kernels()))


ONE = """
template <typename T> __global__ void one(T* a, const T* b) {
    int i0 = threadIdx.x;
    a[i0] = b[i0];
}
template <typename T> __global__ void other(T* a) { a[threadIdx.x] = 1; }
void launch(float* a, int* b) {
    one<float><<<1, 64>>>(a, a);
    one<int><<<1, 64>>>(b, b);
    other<int><<<1, 64>>>(b);
}
"""


def test_a_template_that_a_mistake_takes_its_instances_from_is_read_alone_and_decides_nothing() -> None:
    translation, whole = Translation(PATH, ONE), Translation(PATH, ONE)
    at = ONE.index("{") + 1
    instances = [k.name for k in translation.kernels()]
    for typed in (" w", " wi"):  # an unknown type, which is no mistake of syntax
        translation.reparse(ONE[:at] + typed + ONE[at:], focused=True)
        assert translation.is_focused and [k.name for k in translation.kernels()] == instances
        lost = [k.name for k in translation.kernels() if translation.lost_sight_of(k)]
        assert lost == ["one<float>", "one<int>"] and not any(map(translation.reads, translation.kernels()))
        assert any(f"'{typed.strip()}'" in error.message for error in translation.diagnostics)
    for typed in (" int w = 8;", " a[0] = 1;"):  # it is back, as it says now
        text = ONE[:at] + typed + ONE[at:]
        translation.reparse(text, focused=True)
        whole.reparse(text)
        assert translation.is_focused and not any(map(translation.lost_sight_of, translation.kernels()))
        compare(translation, whole)


def test_a_template_without_instances_for_another_reason_has_the_whole_file_read() -> None:
    translation = Translation(PATH, ONE)
    typed = ONE.replace("one<float><<<1, 64>>>(a, a);", "").replace("one<int><<<1, 64>>>(b, b);", "")
    translation.reparse(typed, focused=True)
    assert not translation.is_focused
    assert not any(map(translation.lost_sight_of, translation.kernels()))


ASKED = """
enum Mode { Plain, Doubled };
namespace deep { struct Own { float x; }; struct { int x; } nameless; }
namespace { struct Hidden { float x; }; }
namespace deep {
template <typename T, int N, bool B> __global__ void numbers(T* a) {
    __shared__ T s[N];
    s[threadIdx.x] = a[threadIdx.x];
    a[threadIdx.x] = s[threadIdx.x + (B ? 1 : 0)];
}
}  // namespace deep
template <typename T, Mode M> __global__ void modes(T* a) {
    a[threadIdx.x / (M == Doubled ? 2 : 1)] = T();
}
template <typename T> __global__ void classes(T* a) { a[threadIdx.x].x = 1; }
template <typename T> __global__ void two(T* a) { a[threadIdx.x] = T(); }
template <typename T> __global__ void two(T* a, int n) { a[threadIdx.x / 2] = n; }
template <int N> __global__ void ladder(int* a) { a[threadIdx.x % N] = 1; }
template <typename T> struct Runs { static void run(T* a) { two<T><<<1, 64>>>(a); } };
void launch(float* a, double* b, int* c, void* d) {
#ifdef QUICK
    deep::numbers<float, 32, true><<<1, 32>>>(a);
#else
    deep::numbers<float, 64, true><<<1, 64>>>(a);
    deep::numbers<double, 64, false><<<1, 64>>>(b);
#endif
    modes<float, Plain><<<1, 64>>>(a);
    modes<float, Doubled><<<1, 64>>>(a);
    classes<deep::Own><<<1, 64>>>((deep::Own*)d);
    classes<Hidden><<<1, 64>>>((Hidden*)d);
    Runs<int>::run(c);
    two<float><<<1, 64>>>(a, 3);
    ladder<1><<<1, 64>>>(c); ladder<2><<<1, 64>>>(c); ladder<4><<<1, 64>>>(c); ladder<8><<<1, 64>>>(c);
    ladder<16><<<1, 64>>>(c); ladder<32><<<1, 64>>>(c);
}
"""


def test_instances_that_are_asked_for_by_name_are_those_of_the_whole_text() -> None:
    reads_as_the_whole(ASKED, 8)


@pytest.mark.parametrize("kernel", ["numbers", "modes", "classes", "two", "ladder"])
def test_typing_in_a_template_is_told_as_reading_the_whole_text_tells_it(kernel: str) -> None:
    focused = Translation(PATH, ASKED)
    at = ASKED.index("{", ASKED.index(f"void {kernel}(")) + 1
    for number, typed in enumerate(
        (" int q;", " int q = 1;", " i", " int", " int q = 1; q++;", " a[0] = T();")
    ):
        text = ASKED[:at] + typed + ASKED[at:]
        focused.reparse(text, focused=True)
        assert focused.is_focused or not number  # before it was known that names do not tell the instances
        compare(focused, Translation(PATH, text))


def test_host_code_under_conditions_that_end_in_it_is_left_out() -> None:
    at = ASKED.index("{", ASKED.index("void numbers(")) + 1
    for text, left_out in (
        (ASKED, True),
        (ASKED.replace("#ifdef QUICK\n", "#define QUICK\n#ifdef QUICK\n"), False),
    ):
        translation = Translation(PATH, text)
        around, typed = translation._surroundings, text[:at] + " int q;" + text[at:]
        assert around is not None
        found = focus.focus_on(
            around, translation._sources, text.encode(), typed.encode(), lambda name: name == "numbers"
        )
        assert found is not None and (b"QUICK" in found.text) != left_out and b"struct Runs" in found.text
        assert found.instance == f"deep::numbers<float, {64 if left_out else 32}, true>"


CHOSEN = """
namespace deep { enum class Mode { Plain, Doubled }; }
template <typename T, deep::Mode M, int N> __global__ void chosen(T* a) {
#if N > 1
    a[threadIdx.x] = 0;
#endif
    a[threadIdx.x / (M == deep::Mode::Doubled ? N : 1)] = T();
}
__global__ void other(int* a) {
#ifdef QUICK
    a[0] = 1;
#else
    a[threadIdx.x] = 1;
#endif
}
template <typename T> void launch(T* a) {
#ifndef QUICK
    chosen<T, deep::Mode::Plain, 1><<<1, 64>>>(a);
#endif
    chosen<T, deep::Mode::Doubled, 2><<<1, 64>>>(a);
    other<<<1, 64>>>((int*)a);
}
template <typename T> auto sized(T* a) { return sizeof(*a); }
template void launch<float>(float*);
void go(int* a) { launch(a); sized(a); }
"""


def test_of_several_instances_one_is_read_where_it_can_be_asked_for() -> None:
    focused = Translation(PATH, CHOSEN)
    at = CHOSEN.index("    a[threadIdx.x / (")
    for typed in (" int q;", " i", " int", " int q = 1;", " a[0] = T();"):
        text = CHOSEN[:at] + typed + CHOSEN[at:]
        focused.reparse(text, focused=True)
        assert focused.is_focused
        read = [k.name for k in focused.kernels() if focused.reads(k)]
        assert read == ([] if typed in (" i", " int") else ["chosen<float, 0, 1>"])
        compare(focused, Translation(PATH, text))
    with pytest.raises(RuntimeError):
        focused.lower(next(k for k in focused.kernels() if k.name == "chosen<float, 1, 2>"))
    focused.complete()
    assert all(map(focused.reads, focused.kernels()))


@pytest.mark.parametrize(
    ("old", "new", "alone"),
    [
        ("    a[0] = 1;\n#else", "    a[2] = 1;\n#else", True),
        ("    a[threadIdx.x] = 1;\n#endif", "    a[threadIdx.x] = n;\n#endif", True),
        ("#ifdef QUICK\n    a[0]", "#ifndef QUICK\n    a[0]", False),
        ("#if N > 1\n    a", "#if N > 1\n#define QUICK\n    a", False),
        ("    a[0] = 1;\n#else", "    a[0] = 1;\n//#else", False),
        ("    a[0] = 1;\n#else", "    a[0] = 1; }\n#else", False),
    ],
)
def test_conditions_that_end_in_a_kernel_stay_in_it(old: str, new: str, alone: bool) -> None:
    focused, typed = Translation(PATH, CHOSEN), CHOSEN.replace(old, new)
    focused.reparse(typed, focused=True)
    assert focused.is_focused == alone and typed != CHOSEN
    compare(focused, Translation(PATH, typed))


def test_templates_that_ask_for_instances_are_left_out_and_those_that_tell_types_are_not() -> None:
    translation = Translation(PATH, CHOSEN)
    around, typed = translation._surroundings, CHOSEN.replace(" = T();", " = T(1);")
    assert around is not None
    texts = (CHOSEN.encode(), typed.encode())
    for by_name in (True, False):
        found = focus.focus_on(around, translation._sources, *texts, lambda name, told=by_name: told)
        assert found is not None and b"return sizeof" in found.text
        assert (b"chosen<T, deep::Mode::Doubled, 2>" in found.text) != by_name


def test_a_mistake_that_a_header_shares_is_the_kernels(tmp_path: Path) -> None:
    header = "template <typename T, int N> __device__ void fill(T* a) { static_assert(N > 1); a[N - 1] = N; }"
    (tmp_path / "fill.cuh").write_text(f"{header}\n")
    text = """#include "fill.cuh"
template <typename T> __global__ void one(T* a) { constexpr int size = 8; fill<T, size>(a); }
__global__ void other(int* a) { a[threadIdx.x] = 1; }
void launch(float* a, int* b) { one<float><<<1, 64>>>(a); other<<<1, 64>>>(b); }
"""
    translation = Translation(tmp_path / "k.cu", text)
    typed = text.replace("size = 8;", "size = 0; oops;")
    translation.reparse(typed, focused=True)
    assert translation.is_focused
    assert [k.name for k in translation.kernels() if translation.lost_sight_of(k)] == ["one<float>"]
    assert any("'oops'" in error.message for error in translation.diagnostics)
    translation.reparse(text, focused=True)
    compare(translation, Translation(tmp_path / "k.cu", text))
