"""While a text is proved again, findings of the text before stay where their code went."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve

from cuda_lsp.config import Settings
from cuda_lsp.frontend import clang_unit
from cuda_lsp.frontend.same_code import SameCode
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import Code, FileReport, Finding, Position, SourceRange, Status, Verdict
from cuda_lsp.static import analyze, budgets, carried, stored_values
from cuda_lsp.static.analyze import Analyzer
from cuda_lsp.static.broken_texts import closed
from cuda_lsp.static.carried import Edit
from cuda_lsp.static.diagnostics.incomplete import COMPILE_ERRORS
from cuda_lsp.static.tiers import FirstTier

PATH = Path("k.cu")
TEXT = """// rows of a matrix
__global__ void rows(float* out, const float* in, int n, int pitch) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = in[t];
    out[blockIdx.x * pitch + t % (n * 64)] = s[t];
}
__global__ void other(float* out) {
    out[threadIdx.x / 2] = threadIdx.x;
}
int main() { rows<<<4, 256>>>(a, b, c, d); other<<<1, 64>>>(a); }
"""


@pytest.fixture
def analyzer() -> Iterator[Analyzer]:
    """Of an editor, with the text and all that the solver says of it."""
    made = Analyzer(quick=True)
    made.update(PATH, TEXT)
    made.settle(PATH)
    yield made
    made.shutdown()


def findings(report: FileReport, name: str) -> list[Finding]:
    (kernel,) = (k for k in report.kernels if k.name == name)
    return [f for f in kernel.findings if f.status is Status.CONDITIONAL]


def test_the_solver_alone_finds_it(analyzer: Analyzer) -> None:
    fresh = Analyzer(quick=True)
    first = fresh.update(PATH, TEXT)
    fresh.shutdown()
    assert not findings(first, "rows") and not first.kernels[0].refined
    (found,) = findings(analyzer.update(PATH, TEXT), "rows")
    assert not found.earlier and found.site.range.start.line == 6


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("s[t] = in[t];", "s[t] = in[t] * 2;", 6),
        ("s[t] = in[t];", "s[t] = in[t];\nn = n;", 7),
        ("    int t", "\nn = n;\n    int t", 8),
        ("] = s[t];", "] = s[t] + n;", 6),
    ],
)
def test_a_finding_goes_with_its_code_until_the_solver_has_answered(
    analyzer: Analyzer, old: str, new: str, line: int
) -> None:
    edited = analyzer.update(PATH, TEXT.replace(old, new))
    (found,) = findings(edited, "rows")
    assert found.earlier and found.site.range.start.line == line
    (again,) = findings(analyzer.settle(PATH), "rows")
    assert not again.earlier and again.site.range == found.site.range


def test_many_edits_in_a_row_are_followed(analyzer: Analyzer) -> None:
    text = TEXT
    for old, new in [
        ("int t", "int  t"),
        ("// rows", "\n// rows"),
        ("in[t];", "in[t] + 1;"),
        ("a, b", "a,b"),
    ]:
        text = text.replace(old, new)
        (found,) = findings(analyzer.update(PATH, text), "rows")
        assert text.splitlines()[found.site.range.start.line - 1].endswith("= s[t];")


def test_a_finding_whose_code_was_edited_is_gone(analyzer: Analyzer) -> None:
    assert not findings(analyzer.update(PATH, TEXT.replace("* pitch + t", "* pitch + n + t")), "rows")


@pytest.mark.parametrize(
    ("old", "new", "line", "place"),
    [
        ("s[t] = in[t];", "s[t] = in[t]; ", 6, "out[blockIdx.x * pitch + t % (n * 64)]"),
        ("s[t] = in[t];", "\n\n    s[t]\n = in[t];", 9, "out[blockIdx.x * pitch + t % (n * 64)]"),
        ("s[t] = in[t];", "s[t] = in[t];  // out[0] = n;", 6, "out[blockIdx.x * pitch + t % (n * 64)]"),
        (
            "out[blockIdx.x * pitch",
            "/* here */ out[ blockIdx.x*pitch",
            6,
            "out[ blockIdx.x*pitch + t % (n * 64)]",
        ),
        ("// rows of a matrix", "// rows\n\n", 8, "out[blockIdx.x * pitch + t % (n * 64)]"),
    ],
)
def test_white_space_and_comments_change_nothing_but_places(
    analyzer: Analyzer, old: str, new: str, line: int, place: str
) -> None:
    before = analyzer.update(PATH, TEXT)
    text = TEXT.replace(old, new)
    edited = analyzer.update(PATH, text)
    assert all(kernel.refined for kernel in edited.kernels)
    assert [(k.verdict, k.reasons) for k in edited.kernels] == [
        (k.verdict, k.reasons) for k in before.kernels
    ]
    assert [f.message for f in edited.findings] == [f.message for f in before.findings]
    (found,) = findings(edited, "rows")
    start, end = found.site.range.start, found.site.range.end
    assert not found.earlier and start.line == line
    assert text.splitlines()[line - 1][start.column - 1 : end.column - 1] == place
    assert [f.site.range for f in analyzer.settle(PATH).findings] == [f.site.range for f in edited.findings]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n * 64", "n * 6 4"),
        ("int t", "intt"),
        ("pitch + t", "pitch + + t"),
        ("a + +b", "a ++b"),
        ("#define N 4\n", "#define N  4\n"),
        ("#define N 4 \\\n", "#define N 4 \\ \n"),
        ('p("a b")', 'p("a  b")'),
        ("int a; // b\nint c;", "int a; // b int c;"),
        ("int a; int c;", "int a; /* int c;"),
        ("x;", "x; // cuda-lsp: ignore[shared-race] said"),
        ("y = __LINE__;", "\ny = __LINE__;"),
        ("// cuda-lsp: args n=4\nk();\nl();", "k();\n// cuda-lsp: args n=4\nl();"),
    ],
)
def test_other_tokens_are_other_code(old: str, new: str) -> None:
    assert SameCode.of(PATH, f"{{\n{old}\n}}", f"{{\n{new}\n}}") is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a[i]+=2;", "a[ i ] += 2;"),
        ("/* some\nwords\nhere */", "/* some\nother words\nhere */"),
        ("f(a,b); g();", "f(a, b);\n  // and then\n  g();"),
        ('p("a // b", x);', 'p("a // b",  x);'),
        ("x;\n#define N 4", "x;\n\n#define N 4"),
        ("#define N 4\n", "#define N 4 \n"),
        ("// cuda-lsp: args n=4\nk();", "// cuda-lsp: args n=4 \nk();"),
        ("x;\n// cuda-lsp: args n=4\nk();", "x;\n// note\n\n// cuda-lsp: args n=4\n\nk();"),
    ],
)
def test_the_same_tokens_are_the_same_code(old: str, new: str) -> None:
    assert SameCode.of(PATH, f"{{\n{old}\n}}", f"{{\n{new}\n}}") is not None


BROKEN = """__global__ void both(float* out) {
    __shared__ float s[64];
    s[threadIdx.x * 2 % 64] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x * 2 % 64];
}
void launch(float* o) { both<<<1, 64>>>(o); }
"""


@pytest.mark.parametrize("typed", ["int q = ", "if (", "for (int i = 0", "x", "__syncthre", "{", "foo(1);"])
def test_broken_text_takes_no_finding_away(typed: str) -> None:
    editor = Analyzer(quick=True)
    before = editor.update(PATH, BROKEN)
    editor.settle(PATH)
    assert {f.code for f in before.findings} >= {Code.BANK_CONFLICT, Code.SHARED_RACE}
    text = BROKEN.replace("    __sync", f"    {typed}\n    __sync")
    for report in (editor.update(PATH, text), editor.settle(PATH)):
        kept = {(f.code, f.site.range.start.line) for f in report.findings}
        lines = {(f.code, f.site.range.start.line + (f.site.range.start.line > 3)) for f in before.findings}
        assert lines <= kept
    editor.shutdown()


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the kernels that are executed."""
    names: list[str] = []
    enumerate_kernel = analyze.enumerate_kernel

    def counted(kernel: Kernel, settings: Settings, *, until: float = math.inf) -> FirstTier:
        names.append(kernel.name)
        return enumerate_kernel(kernel, settings, until=until)

    monkeypatch.setattr(analyze, "enumerate_kernel", counted)
    monkeypatch.setattr(budgets, "TYPING_S", 10.0)  # however slow the machine is
    return names


@pytest.mark.parametrize("typed", [" i", " int q", " int q = (", " if (", " for (int i = 0; i < "])
def test_half_a_statement_has_nothing_executed_until_nobody_types(
    analyzer: Analyzer, executed: list[str], typed: str
) -> None:
    before = analyzer.update(PATH, TEXT)
    text = TEXT.replace("= in[t];", f"= in[t];{typed}")
    edited = analyzer.update(PATH, text)
    assert not executed
    rows, other = edited.kernels
    assert rows.verdict is before.kernels[0].verdict and other == before.kernels[1]
    assert [f.message for f in edited.findings] == [f.message for f in before.findings]
    assert all(f.earlier for f in rows.findings)
    assert COMPILE_ERRORS in rows.reasons
    assert analyzer.is_partial(PATH) and not analyzer.has_put_off(PATH)
    analyzer.complete(PATH, text)
    assert executed or typed.strip() in (
        "if (",
        "for (int i = 0; i <",
        "int q =",
    )  # clang may lose sight of it
    analyzer.update(PATH, TEXT)
    assert all(not f.earlier for f in analyzer.update(PATH, TEXT).findings)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("= in[t];", "= in[t]; int q = 4;"),
        ("= in[t];", "= in[t]; int q = t * n; q = q + pitch;"),
        ("= in[t];", "= in[t];\n    float q = 2.0f;"),
        ("= in[t];", "= in[t]; if (n > 3) { int q = 3; }"),
        ("// rows of", "__device__ int more(int n) { return n + 1; }\n// rows of"),
        ("{ rows<<<", "{\n  int q = 1; rows<<<"),
        ("int t = threadIdx.x;", "int t = (threadIdx.x);"),
    ],
)
def test_the_same_program_is_not_executed_again_until_nobody_types(
    analyzer: Analyzer, executed: list[str], old: str, new: str
) -> None:
    text = TEXT.replace(old, new)
    edited = analyzer.update(PATH, text)
    assert not executed
    assert all(kernel.refined for kernel in edited.kernels)
    analyzer.complete(PATH, text)
    settled = analyzer.settle(PATH)
    assert [(k.name, k.range, k.verdict, k.reasons, k.launches) for k in edited.kernels] == [
        (k.name, k.range, k.verdict, k.reasons, k.launches) for k in settled.kernels
    ]
    assert [(f.message, f.site, f.related, f.status) for f in edited.findings] == [
        (f.message, f.site, f.related, f.status) for f in settled.findings
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("= in[t];", "= in[t]; int q = 4; t = q;"),
        ("= in[t];", "= in[t]; n = n + 1;"),
        ("= in[t];", "= in[t]; float q = out[0];"),
        ("= in[t];", "= in[t]; __syncthreads();"),
        ("t % (n * 64)", "t % (n * 32)"),
        ("float s[256]", "float s[257]"),
        ("rows<<<4, 256>>>", "rows<<<4, 128>>>"),
        ("rows<<<4, 256>>>(a, b, c, d)", "rows<<<4, 256>>>(a, b, 64, d)"),
        ("// rows of", "// cuda-lsp: args n=4\n// rows of"),
    ],
)
def test_another_program_is_executed(analyzer: Analyzer, executed: list[str], old: str, new: str) -> None:
    analyzer.update(PATH, TEXT.replace(old, new))
    if not executed:  # of a host function nothing was read: the editor asks at once
        assert analyzer.has_put_off(PATH)
        analyzer.update(PATH, TEXT.replace(old, new))
        assert not analyzer.has_put_off(PATH)
    assert executed == ["rows"]


@pytest.mark.parametrize(
    ("typed", "same"),
    [
        (" float q = y;", True),
        (" float q = in[0]; q += x;", False),
        (" x = y;", False),
        (" x += in[t];", False),
    ],
)
def test_floats_that_were_looked_at_are_part_of_the_program(
    executed: list[str], typed: str, same: bool
) -> None:
    text = "__global__ void one(float* out, const float* in, float y) {\n    int t = threadIdx.x;\n"
    text += "    float x = in[0] * y;\n    out[0] = x;\n}\n"
    text += "void f(float* o, float* i) { one<<<1, 64>>>(o, i, 2); }\n"
    edited = text.replace("y;\n", f"y;{typed}\n")
    typing, fresh = Analyzer(quick=True), Analyzer(quick=True)
    typing.update(PATH, text)
    assert typing.settle(PATH).kernels[0].refined
    executed.clear()
    typing.update(PATH, edited)
    assert executed == ([] if same else ["one"])
    fresh.update(PATH, edited)
    assert [(f.message, f.same_value) for f in typing.settle(PATH).findings] == [
        (f.message, f.same_value) for f in fresh.settle(PATH).findings
    ]
    for analyzer in (typing, fresh):
        analyzer.shutdown()


@pytest.mark.parametrize(
    ("place", "typed"),
    [
        ("}\n__global__ void other", "} /\n__global__ void other"),
        ("// rows of a matrix", "/\n// rows of a matrix"),
        ("// rows of a matrix", "// rows of a matrix\n /"),
        ("s[t] = in[t];", "s[t] = in[t]; /"),
        ("s[t] = in[t];", "s[t] = in[t]; /*"),
    ],
)
def test_a_comment_that_is_begun_takes_no_kernel_away(analyzer: Analyzer, place: str, typed: str) -> None:
    before = analyzer.update(PATH, TEXT)
    edited = analyzer.update(PATH, TEXT.replace(place, typed))
    assert [(k.name, k.verdict, k.refined) for k in edited.kernels] == [
        (k.name, k.verdict, k.refined) for k in before.kernels
    ]
    assert [f.message for f in edited.findings] == [f.message for f in before.findings]
    (error,) = edited.errors
    assert "comment" in error.message and error.range
    line, column = error.range.start.line, error.range.start.column
    assert TEXT.replace(place, typed).splitlines()[line - 1][column - 1] == "/"


@pytest.mark.parametrize(
    "text",
    ["int a = b /\n  c;", "int a = b\n/\nc;", "/*\n /\n*/", "x = 1; // and /", "int a = (b) /\n c;", "*/ x"],
)
def test_a_quotient_and_a_comment_are_no_comment_that_is_begun(text: str) -> None:
    assert closed(PATH, text) == (text, [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("// rows of", "// the rows of"),
        ("= in[t];", "= in[t];  // said"),
        ("}\n__global__", "}\n\n__global__"),
    ],
)
def test_white_space_and_comments_are_not_read_while_all_is_decided(
    analyzer: Analyzer, old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clang_unit, "read", None)
    edited = analyzer.update(PATH, TEXT.replace(old, new))
    monkeypatch.undo()
    fresh = Analyzer(quick=True)
    fresh.update(PATH, TEXT.replace(old, new))
    whole = fresh.settle(PATH)
    fresh.shutdown()
    assert [(k.name, k.range, k.verdict, k.launches, k.reasons) for k in edited.kernels] == [
        (k.name, k.range, k.verdict, k.launches, k.reasons) for k in whole.kernels
    ]
    assert [(f.message, f.site, f.related) for f in edited.findings] == [
        (f.message, f.site, f.related) for f in whole.findings
    ]


def test_places_in_a_header_stay_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "put.cuh").write_text("__device__ inline void put(int* s) {\n  s[threadIdx.x / 2] = 1;\n}\n")
    text = '#include "put.cuh"\n__global__ void k(int* out) {\n  put(out);\n  out[threadIdx.x] = 2;\n}\n'
    text += "void launch(int* o) { k<<<1, 64>>>(o); }\n"
    path = tmp_path / "k.cu"
    editor = Analyzer(quick=True)
    editor.update(path, text)
    editor.settle(path)
    for typed in ("\n\n\n", "int q;\n"):
        report = editor.update(path, text.replace("__global__", f"{typed}__global__"))
        sites = [s for f in report.findings for s in (f.site, *(r.site for r in f.related))]
        there = [s.range.start.line for s in sites if s.range.path.name == "put.cuh"]
        assert there and set(there) == {2}
    editor.shutdown()


def test_what_executing_decides_anew_is_gone_at_once(analyzer: Analyzer) -> None:
    edited = analyzer.update(PATH, TEXT.replace("threadIdx.x / 2", "threadIdx.x"))
    assert edited.kernels[1].findings == ()


def test_an_answer_that_finds_nothing_ends_it(analyzer: Analyzer) -> None:
    mended = TEXT.replace("int t = threadIdx.x;", "int t = threadIdx.x; n = 4;")
    analyzer.update(PATH, mended)
    assert findings(analyzer.settle(PATH), "rows") == []
    assert findings(analyzer.update(PATH, mended + "\n"), "rows") == []


def test_an_ignored_line_stays_silent(analyzer: Analyzer) -> None:
    ignored = TEXT.replace("= s[t];", "= s[t];  // cuda-lsp: ignore[global-race]")
    assert findings(analyzer.update(PATH, ignored), "rows") == []


def stretch(line: int, column: int, length: int) -> SourceRange:
    return SourceRange(PATH, Position(line, column), Position(line, column + length))


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        ("ab", "xab", (1, 1, 2), (1, 2, 2)),
        ("ab", "ab\n", (1, 1, 2), (1, 1, 2)),
        ("ab", "\nab", (1, 1, 2), (2, 1, 2)),
        ("a\nb c", "a b c", (2, 3, 1), (1, 5, 1)),
        ("a\nb", "a\nxb", (1, 1, 1), (1, 1, 1)),
        ("abc", "abxc", (1, 1, 3), None),
        ("abc", "ab", (1, 3, 1), None),
    ],
)
def test_a_stretch_moves_with_an_edit(
    old: str, new: str, before: tuple[int, int, int], after: tuple[int, int, int] | None
) -> None:
    assert Edit.between(PATH, old, new).moved(stretch(*before)) == (stretch(*after) if after else None)


def test_a_kernel_that_broken_text_hides_keeps_its_findings(analyzer: Analyzer) -> None:
    assert findings(analyzer.update(PATH, TEXT.replace("// rows of a matrix", "class {")), "rows")


@pytest.mark.parametrize("hidden", ["class { __global__ void rows(float* a) { }", TEXT.split("    int t")[0]])
def test_what_is_kept_of_a_hidden_kernel_stands_within_the_text(analyzer: Analyzer, hidden: str) -> None:
    analyzer.update(PATH, TEXT.replace("__global__ void rows", "__global__\nvoid rows"))
    for kernel in analyzer.update(PATH, hidden).kernels:
        assert 1 <= kernel.range.start.line <= kernel.range.end.line <= hidden.count("\n") + 1


def test_two_texts_are_compared_once_however_many_kernels_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each keystroke in a file of a hundred kernels, before the solver has come to any of them."""
    text = "".join(TEXT.split("__global__ void other")[0].replace("rows", f"rows{n}") for n in range(9))
    many = Analyzer(Settings(solver=False), quick=True)
    many.update(PATH, text)
    compared: list[int] = []
    differing = carried.differing

    def counted(before: str, after: str) -> tuple[int, int, int]:
        compared.append(len(after))
        return differing(before, after)

    monkeypatch.setattr(carried, "differing", counted)
    for _ in range(3):
        text = text.replace("s[t];", "s[t] ;", 1)
        assert all(not kernel.refined for kernel in many.update(PATH, text).kernels)
    many.shutdown()
    assert len(compared) <= 3


@pytest.mark.parametrize("typed", ["", " ", "\n// note\n"])
def test_a_changed_header_has_the_same_text_proved_again(tmp_path: Path, typed: str) -> None:
    header = tmp_path / "columns.h"
    header.write_text("#define COLUMNS (n * 64)\n")
    text = '#include "columns.h"\n' + TEXT.replace("(n * 64)", "COLUMNS")
    path = tmp_path / "k.cu"
    editor = Analyzer(quick=True)
    editor.update(path, text)
    assert all(kernel.refined for kernel in editor.settle(path).kernels)
    header.write_text("#define COLUMNS (n * 32)\n")
    editor.refresh(path)
    edited = editor.update(path, text.replace("= in[t];", f"= in[t];{typed}"))
    assert not edited.kernels[0].refined
    again = editor.update(path, text.replace("= in[t];", f"= in[t];{typed} "))
    assert not again.kernels[0].refined
    editor.shutdown()


def test_a_statement_that_was_begun_and_taken_back_leaves_what_was_decided(analyzer: Analyzer) -> None:
    """Although its letters were decided too, in pauses, and the first reports are kept no more."""
    before = analyzer.update(PATH, TEXT)
    for typed in ("n = n;", "n = n;n = n;", "n = n;n = n;n = n;"):
        analyzer.update(PATH, TEXT.replace("= in[t];", f"= in[t];{typed}"))
        analyzer.settle(PATH)
    edited = analyzer.update(PATH, TEXT.replace("= in[t];", "= in[t]; "))
    assert all(kernel.refined for kernel in edited.kernels)
    assert [f.message for f in edited.findings] == [f.message for f in before.findings]


def test_what_was_decided_stays_so_while_the_solver_looks_again(analyzer: Analyzer) -> None:
    """A report is made several times of a text: whenever something is heard of one of its kernels."""
    text = TEXT.replace("= in[t];", "= in[t]; ")
    for _ in range(3):
        assert all(kernel.refined for kernel in analyzer.update(PATH, text).kernels)


def test_a_racy_kernel_does_not_take_the_verdict_of_another_of_its_name() -> None:
    head = "__global__ void k(int* out, int n, int pitch) {"
    racy = "  out[blockIdx.x * pitch + threadIdx.x % (n * 64)] = 1;"
    free = "  int i = blockIdx.x * 256 + threadIdx.x;\n  if (i < n) out[i] = i;"
    text = "".join(f"namespace {n} {{\n{head}\n{body}\n}}\n}}\n" for n, body in (("x", racy), ("y", free)))
    text += "void f(int* o, int n, int p) { x::k<<<4, 256>>>(o, n, p); y::k<<<4, 256>>>(o, n, p); }\n"
    editor = Analyzer(quick=True)
    editor.update(PATH, text)
    settled = [(k.verdict, len(k.findings)) for k in editor.settle(PATH).kernels]
    assert settled == [(Verdict.RACY, 1), (Verdict.RACE_FREE, 0)]
    for typed in (f"\n{text}", text.replace("  out[", "   out[")):
        assert [(k.verdict, len(k.findings)) for k in editor.update(PATH, typed).kernels] == settled
    editor.shutdown()


@pytest.mark.parametrize("settled", [True, False])
def test_the_call_that_leads_to_a_finding_goes_with_its_code(
    settled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "TYPING_S", 10.0)  # where nothing is known of a text before, this one tells
    text = TEXT.replace(
        "// rows of a matrix", "__device__ void put(float* p, float v) { p[threadIdx.x * 2] = v; }"
    )
    text = text.replace("s[256]", "s[512]").replace("s[t] = in[t];", "put(s, in[t]);")
    analyzer = Analyzer(quick=True)
    analyzer.update(PATH, text)
    if settled:
        analyzer.settle(PATH)

    def calls(text: str) -> list[list[int]]:
        (rows, _) = analyzer.update(PATH, text).kernels
        found = [f for f in rows.findings if f.code is Code.BANK_CONFLICT]
        return [[f.site.range.start.line, *(c.start.line for c in f.site.calls)] for f in found]

    assert calls(text) == [[1, 5]]
    assert calls(text.replace("int t =", "\nint t =")) == [[1, 6]]
    assert calls("\n" + text) == [[2, 6]]
    assert calls("\n" + text.replace("int t =", "\nint t =")) == [[2, 7]]
    analyzer.shutdown()


def test_what_may_be_of_one_value_is_no_error_until_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second look at the values of floats that came too late left an error for ever."""
    text = "__global__ void one(float* out, const float* in) {\n    out[blockIdx.x] = in[0] * 2;\n}\n"
    text += "void f(float* o, float* i) { one<<<1, 64>>>(o, i); }\n"
    editor = Analyzer(quick=True)
    kernel = editor.update(PATH, text).kernels[0]
    assert [f.same_value for f in kernel.findings] == [True]
    again = stored_values.enumerate_kernel

    def late(kernel: Kernel, settings: Settings, *, until: float = math.inf) -> FirstTier:
        first = again(kernel, settings, until=until)
        return evolve(first, cut=until < math.inf)

    monkeypatch.setattr(stored_values, "enumerate_kernel", late)
    typed = text.replace("* 2", "* 3")
    kernel = editor.update(PATH, typed).kernels[0]
    assert not [f for f in kernel.findings if not f.earlier] and not kernel.refined
    assert kernel.verdict is Verdict.UNDECIDED
    editor.refine(PATH, lambda report: None)
    (key,) = [
        key for key, known in editor._reports.items() if "* 3" in known.kernel.digest or known.first.cut
    ]  # pyright: ignore[reportPrivateUsage]
    editor.finish([key])
    assert [f.same_value for f in editor.update(PATH, typed).findings] == [True]
    editor.shutdown()


LACKING = TEXT.replace("int t =", "Lost<int> lost = find(n); int t =")  # clang complains from the beginning


@pytest.fixture
def lacking() -> Iterator[Analyzer]:
    """Of an editor, with a text that lacks a header, and all that is found of it."""
    made = Analyzer(quick=True)
    made.update(PATH, LACKING)
    made.settle(PATH)
    yield made
    made.shutdown()


@pytest.mark.parametrize("typed", [" i", " int q", " int q = n", " int q = n;", "  // s"])
def test_a_kernel_that_lacks_something_is_not_executed_while_nothing_else_is_known_of_it(
    lacking: Analyzer, executed: list[str], typed: str
) -> None:
    before = lacking.update(PATH, LACKING)
    edited = lacking.update(PATH, LACKING.replace("s[t] = in[t];", f"s[t] = in[t];{typed}"))
    assert executed == []
    assert [(k.name, k.verdict) for k in edited.kernels] == [(k.name, k.verdict) for k in before.kernels]
    assert [(f.code, f.site.range) for f in edited.findings] == [
        (f.code, f.site.range) for f in before.findings
    ]


@pytest.mark.parametrize(
    ("old", "new", "races"),
    [
        ("= in[t];", "= in[t]; out[0] = s[t ^ 1];", True),
        ("s[t] = in[t];", "s[t] = s[t + 1];", True),
        ("s[t] = in[t];", "s[t] = in[t + 1];", False),
        ("Lost<int> lost = find(n);", "", False),
        ("Lost<int> lost = find(n);", "out[1] = s[threadIdx.x ^ 1];", True),
    ],
)
def test_a_kernel_that_lacks_no_more_than_before_is_executed(
    lacking: Analyzer, executed: list[str], old: str, new: str, races: bool
) -> None:
    edited, fresh = lacking.update(PATH, LACKING.replace(old, new)), Analyzer(quick=True)
    assert executed == ["rows"]
    whole = fresh.update(PATH, LACKING.replace(old, new))
    fresh.shutdown()
    told, known = ({f.site.range for f in r.findings if f.code is Code.SHARED_RACE} for r in (edited, whole))
    assert told == known and bool(told) == races
    again = lacking.update(PATH, LACKING)
    assert not any(f.code is Code.SHARED_RACE for f in again.findings)
