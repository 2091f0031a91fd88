"""What a keystroke has no time for is put off: shown as it was, never as clean, done when nobody types."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import FileReport, KernelReport, Verdict
from cuda_lsp.static import analyze, budgets
from cuda_lsp.static.analyze import Analyzer
from cuda_lsp.static.deadline import yielding
from cuda_lsp.static.pace import Pace

PATH = Path("/nowhere/a.cu")
KERNEL = """__global__ void {name}(int *a) {{
  __shared__ int s[64];
  s[threadIdx.x] = twice(a[threadIdx.x]);
  {barrier}a[threadIdx.x] = s[63 - threadIdx.x];
}}
"""
NAMES = ("racy0", "clean1", "racy2", "clean3", "racy4")
HELPER = "__device__ int twice(int x) { return x * 2; }\n"
TEXT = (
    HELPER
    + "".join(
        KERNEL.format(name=name, barrier="__syncthreads(); " if "clean" in name else "") + "// next\n"
        for name in NAMES
    )
    + f"void go(int *a) {{ {' '.join(f'{name}<<<1, 64>>>(a);' for name in NAMES)} }}\n"
)


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that were executed."""
    names: list[str] = []
    usual = analyze.enumerate_kernel

    def execute(kernel: analyze.Kernel, *rest: object, **more: object) -> analyze.FirstTier:
        names.append(kernel.name)
        return usual(kernel, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(analyze, "enumerate_kernel", execute)
    return names


@pytest.fixture
def analyzer(looked_at: list[str]) -> Iterator[Analyzer]:
    made = Analyzer(Settings(solver=False), quick=True)
    made.update(PATH, TEXT)
    looked_at.clear()
    yield made
    made.shutdown()


def verdicts(report: FileReport) -> dict[str, Verdict]:
    return {kernel.name: kernel.verdict for kernel in report.kernels}


def decided(report: FileReport) -> list[tuple[str, Verdict, int]]:
    return [(k.name, k.verdict, len(k.findings)) for k in report.kernels]


def kernel(report: FileReport, name: str) -> KernelReport:
    (found,) = (k for k in report.kernels if k.name == name)
    return found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("// next", "// next one"),
        ("// next\n__global__ void racy2", "\n\n__global__ void racy2"),
        ("x * 2", "x*2"),
    ],
)
def test_white_space_and_comments_outside_kernels_execute_nothing(
    analyzer: Analyzer, looked_at: list[str], old: str, new: str
) -> None:
    before = analyzer.update(PATH, TEXT)
    text = TEXT.replace(old, new)
    after = analyzer.update(PATH, text)
    assert not looked_at and not analyzer.has_put_off(PATH)
    assert decided(after) == decided(before) and all(k.refined and k.key for k in after.kernels)
    for k in after.kernels:
        assert text.splitlines()[k.range.start.line - 1].startswith(f"__global__ void {k.name}(")
        for finding in k.findings:
            place = finding.site.range
            line = text.splitlines()[place.start.line - 1]
            assert line[place.start.column - 1 : place.end.column - 1].startswith(("s[", "a["))


def test_what_a_finding_quotes_is_what_is_written(analyzer: Analyzer, looked_at: list[str]) -> None:
    text = TEXT.replace("s[63 -", "s[ 63 -", 1)
    after = analyzer.update(PATH, text)
    assert looked_at == ["racy0"]
    assert "s[ 63 - threadIdx.x]" in kernel(after, "racy0").findings[0].message


def test_they_are_executed_in_the_pause(analyzer: Analyzer, looked_at: list[str]) -> None:
    text = TEXT.replace("// next", "// next one")
    told = analyzer.update(PATH, text)
    while analyzer.is_partial(PATH):
        again = analyzer.complete(PATH, text)
        assert again and decided(again) == decided(told) and all(k.refined for k in again.kernels)
    assert sorted(looked_at) == sorted(NAMES)


def test_other_code_outside_kernels_executes_the_nearest_and_puts_off_the_others(
    analyzer: Analyzer, looked_at: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = analyzer.update(PATH, TEXT)
    monkeypatch.setattr(budgets, "TYPING_S", 0.0)
    monkeypatch.setattr(budgets, "EARLY_S", 0.0)
    text = TEXT.replace("x * 2", "x * 3")
    told = analyzer.update(PATH, text)
    assert looked_at == ["racy0"] and analyzer.has_put_off(PATH)
    assert [len(k.findings) for k in told.kernels] == [len(k.findings) for k in before.kernels]
    for name in NAMES[1:]:
        waiting = kernel(told, name)
        assert waiting.verdict is Verdict.UNDECIDED and not waiting.refined and waiting.reasons
        assert not waiting.key and waiting.launches and all(f.earlier for f in waiting.findings)
    monkeypatch.setattr(budgets, "TYPING_S", 60.0)
    for _ in range(2 * len(NAMES)):
        if analyzer.has_put_off(PATH):
            told = analyzer.update(PATH, text)
    assert looked_at == list(NAMES)
    assert decided(told) == decided(before) and all(k.refined for k in told.kernels)


def test_what_is_put_off_keeps_its_findings_through_many_keystrokes(
    analyzer: Analyzer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = analyzer.update(PATH, TEXT)
    monkeypatch.setattr(budgets, "TYPING_S", 0.0)
    text = TEXT
    for letter in " int q = 3;":
        text = text.replace("{ return", f"{letter}{{ return", 1) if letter == " " else text
        at = text.index("return x")
        text = text[:at] + letter + text[at:]
        told = analyzer.update(PATH, text)
        for name in ("racy2", "racy4"):
            assert len(kernel(told, name).findings) == len(kernel(before, name).findings)
        assert Verdict.RACE_FREE not in {
            kernel(told, n).verdict for n in NAMES[2:] if not kernel(told, n).refined
        }


def test_kernels_of_one_name_keep_their_own_verdicts(looked_at: list[str]) -> None:
    pair = [KERNEL.format(name="k", barrier=barrier) for barrier in ("", "__syncthreads(); ")]
    text = HELPER + "".join(f"namespace {n} {{\n{k}}}\n" for n, k in zip("xy", pair, strict=True))
    text += "void go(int *a) { x::k<<<1, 64>>>(a); y::k<<<1, 64>>>(a); }\n"
    made = Analyzer(Settings(solver=False), quick=True)
    before = made.update(PATH, text)
    assert [k.verdict for k in before.kernels] == [Verdict.RACY, Verdict.RACE_FREE]
    looked_at.clear()
    after = made.update(PATH, f"// said\n{text}")
    assert decided(after) == decided(before) and not looked_at
    made.shutdown()


def test_who_is_wanted_elsewhere_keeps_nothing_of_what_was_begun(
    analyzer: Analyzer, looked_at: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "TYPING_S", 0.0)
    text = TEXT.replace("x * 2", "x * 3")
    analyzer.update(PATH, text)
    monkeypatch.undo()
    with yielding(lambda: True):
        told = analyzer.update(PATH, text)
    assert analyzer.has_put_off(PATH) and Verdict.RACE_FREE not in verdicts(told).values()
    assert verdicts(analyzer.update(PATH, text))["clean3"] is Verdict.RACE_FREE
    with yielding(lambda: True):
        assert analyzer.tried(PATH, TEXT.replace("x * 2", "x * 4")) is None


def test_who_asks_for_a_kernel_that_is_put_off_waits_for_it(looked_at: list[str]) -> None:
    asked = threading.Event()
    made = Analyzer(Settings(solver=False), quick=True, learnt=lambda path: asked.set())
    made.update(PATH, TEXT)
    text = TEXT.replace("// next", "// next one")
    made.update(PATH, text)
    found: list[analyze.Kernel | None] = []
    waiting = threading.Thread(target=lambda: found.append(made.kernel(PATH, "racy4")))
    waiting.start()
    assert asked.wait(20)
    while made.is_partial(PATH):
        made.update(PATH, text)
    waiting.join(20)
    assert found[0] and found[0].range.start.line == TEXT[: TEXT.index("racy4(")].count("\n") + 1
    made.shutdown()


def test_the_kernels_nearest_to_the_edit_come_first() -> None:
    pace = Pace.of_keystroke(TEXT, TEXT.replace("void racy2", "void  racy2"))
    assert pace.line == TEXT[: TEXT.index("void racy2")].count("\n") + 1
    assert pace.begins(0) and pace.keeps(0, cut=True) and not pace.keeps(1, cut=True)


WIDTHS = """template <int N> __global__ void widths(int *a) {
  __shared__ int s[64];
  s[threadIdx.x] = a[threadIdx.x];
  BARRIER
  a[threadIdx.x] = s[threadIdx.x / N];
}
void go(int *a) { widths<1><<<1, 64>>>(a); widths<2><<<1, 64>>>(a); }
"""


@pytest.mark.parametrize("barrier", ["", "__syncthreads();"])
def test_instances_that_a_letter_does_not_read_are_never_clean_before_they_are_looked_at(
    looked_at: list[str], barrier: str
):
    text, analyzer = WIDTHS.replace("BARRIER", barrier), Analyzer(Settings(solver=False), quick=True)
    analyzer.update(PATH, text.replace("/ N", "/ (N + 1)"))
    looked_at.clear()
    typed = analyzer.update(PATH, text)
    assert looked_at == ["widths<1>"]
    assert verdicts(typed) == {"widths<1>": Verdict.RACE_FREE, "widths<2>": Verdict.UNDECIDED}
    assert not kernel(typed, "widths<2>").refined
    assert not analyzer.has_put_off(PATH)  # that would read the whole text while somebody types
    assert analyzer.is_partial(PATH)
    settled = analyzer.complete(PATH, text)
    fresh = Analyzer(Settings(solver=False)).update(PATH, text)
    assert settled is not None and decided(settled) == decided(fresh)
    assert verdicts(settled)["widths<2>"] is (Verdict.RACE_FREE if barrier else Verdict.RACY)
    analyzer.shutdown()


def test_who_asks_for_an_instance_that_no_letter_reads_gets_it(looked_at: list[str]):
    text, learnt = WIDTHS.replace("BARRIER", ""), threading.Event()
    analyzer = Analyzer(Settings(solver=False), quick=True, learnt=lambda path: learnt.set())
    analyzer.update(PATH, text.replace("/ N", "/ (N + 1)"))
    analyzer.update(PATH, text)
    asking = threading.Thread(target=analyzer.kernel, args=(PATH, "widths<2>"))
    asking.start()
    assert learnt.wait(5)
    assert verdicts(analyzer.update(PATH, text))["widths<2>"] is Verdict.RACY
    asking.join(5)
    assert not asking.is_alive()
    analyzer.shutdown()


def test_who_types_while_a_file_is_opened_waits_for_one_kernel(looked_at: list[str]):
    analyzer, told = Analyzer(Settings(solver=False), quick=True), list[FileReport]()
    with yielding(lambda: bool(looked_at)):
        opened = analyzer.update(PATH, TEXT, said=told.append)
    assert len(looked_at) <= 2
    assert all(k.verdict is not Verdict.RACE_FREE for report in (*told, opened) for k in report.kernels)
    assert len(opened.kernels) == len(NAMES)
    assert analyzer.has_put_off(PATH)
    report = analyzer.update(PATH, TEXT)
    assert decided(report) == decided(Analyzer(Settings(solver=False)).update(PATH, TEXT))
    analyzer.shutdown()
