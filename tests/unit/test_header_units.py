"""Headers: read in the unit that includes them, one kernel at a keystroke, and what several units say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from cuda_lsp import files
from cuda_lsp.config import Settings
from cuda_lsp.frontend.host import host_code
from cuda_lsp.frontend.host.launch_site import LaunchSite
from cuda_lsp.frontend.surroundings.guessed import Guessed
from cuda_lsp.frontend.surroundings.units import kernel_files, units_of
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.model import (
    FileReport,
    KernelReport,
    LaunchConfig,
    LaunchSource,
    Position,
    SourceRange,
    ToolError,
    Verdict,
)
from cuda_lsp.readings import Reading, Readings
from cuda_lsp.static import budgets
from cuda_lsp.static.analyze import Analyzer, check_text

KERNELS = """__global__ void turned(real* p) {
    __shared__ real s[TILE];
    s[threadIdx.x] = p[threadIdx.x];
    p[threadIdx.x] = s[TILE - 1 - threadIdx.x];
}
template <typename T> __global__ void each(T* p) { p[threadIdx.x] = 1; }
__global__ void last(real* p) { p[blockIdx.x * blockDim.x + threadIdx.x] = 0; }
"""
MAIN = """#include "first.h"
typedef float real;
#define TILE 64
namespace inside {
#include "kernels.h"
}
using namespace inside;
void go(real* p) { turned<<<1, TILE>>>(p); each<float><<<1, 32>>>(p); last<<<4, 64>>>(p); }
"""


def write(folder: Path, **texts: str) -> Path:
    (folder / ".git").mkdir(exist_ok=True)
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Analyzer, Path]]:
    monkeypatch.setattr(budgets, "TYPING_S", 60.0)  # nothing is cut, however busy the machine is
    monkeypatch.setattr(budgets, "OPENING_S", 60.0)
    write(tmp_path, main_cu=MAIN, kernels_h=KERNELS, first_h="#pragma once\n")
    analyzer = Analyzer(Settings(solver=False), quick=True)
    analyzer.update(tmp_path / "kernels.h", KERNELS)
    yield analyzer, tmp_path / "kernels.h"
    analyzer.shutdown()


def verdicts(report: FileReport) -> dict[str, Verdict]:
    return {kernel.name: kernel.verdict for kernel in report.kernels}


def test_a_header_is_read_through_its_includer(editor: tuple[Analyzer, Path]) -> None:
    analyzer, path = editor
    report = analyzer.update(path, KERNELS)
    assert verdicts(report) == {
        "turned": Verdict.RACY,
        "each<float>": Verdict.RACE_FREE,
        "last": Verdict.RACE_FREE,
    }
    assert report.errors == ()
    assert {f.site.range.path for f in report.findings} == {path}
    assert [f.site.range.start.line for f in report.findings if f.kind] == [4]
    assert [k.launches[0].source for k in report.kernels[:2]] == [LaunchSource.WORKSPACE] * 2


def test_a_keystroke_in_a_header_reads_one_kernel_and_no_file(
    editor: tuple[Analyzer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    analyzer, path = editor
    text = KERNELS.replace("= 1", "= 2")
    analyzer.update(path, text)

    def no_disk(*_: object) -> None:
        raise AssertionError("the disk is asked while somebody types")

    # What clang itself asks of the disk is not seen here.
    ways = ((files, "read_bytes"), (files, "kind"), (files, "target"), (os, "stat"))
    asked = [(module, name, getattr(module, name)) for module, name in ways]
    for module, name in ways:
        monkeypatch.setattr(module, name, no_disk)
    mended = text.replace("    p[thread", "    __syncthreads();\n    p[thread", 1)
    report = analyzer.update(path, mended)
    for module, name, was in asked:
        monkeypatch.setattr(module, name, was)
    assert verdicts(report)["turned"] is Verdict.RACE_FREE, report.kernels[0].reasons
    assert analyzer._documents[path].translation.is_focused
    whole = analyzer.complete(path, mended)
    assert whole is not None and verdicts(whole) == verdicts(report)


def test_what_the_unit_says_is_read_again_when_it_changes(editor: tuple[Analyzer, Path]) -> None:
    analyzer, path = editor
    (path.parent / "main.cu").write_text(MAIN.replace("typedef float real", "typedef float other"))
    analyzer.refresh(path)
    report = analyzer.update(path, KERNELS)
    assert any("unknown type name 'real'" in error.message for error in report.errors)


def test_a_header_reads_the_flags_of_its_unit(tmp_path: Path) -> None:
    commands = '[{"directory": ".", "file": "b.cu", "command": "nvcc b.cu"},'
    commands += ' {"directory": ".", "file": "a.cu", "command": "nvcc -DTILE=32 a.cu"}]'
    write(tmp_path, a_cu='#include "k.h"\n', b_cu="", k_h="__global__ void k(int* p) { p[TILE] = 1; }\n")
    (tmp_path / "compile_commands.json").write_text(commands)
    translation = Translation(tmp_path / "k.h", (tmp_path / "k.h").read_text())
    assert translation.options.defines == ("TILE=32",)
    assert translation.diagnostics == ()


def test_units_of_cuda_come_first_then_the_nearest(tmp_path: Path) -> None:
    write(
        tmp_path,
        k__k_h="",
        k__host_cpp='#include "k.h"\n',
        far__a_cu='#include "../k/all.h"\n',
        k__all_h='#include "k.h"\n',
        k__near_cu="#include <k/k.h>\n",
        other__k_h="",
        other__own_cu='#include "k.h"\n',
    )
    units = [unit.path.name for unit in units_of(tmp_path / "k/k.h")]
    assert units == ["near.cu", "a.cu", "host.cpp"]


def test_files_with_kernels_are_found_whatever_they_are_called(tmp_path: Path) -> None:
    kernel = "__global__ void k() {}\n"
    write(
        tmp_path,
        a_cu="",
        b_inl=kernel,
        c_hpp=kernel,
        d_h="// __global__ is a word\n",
        e_cpp=kernel,
        f_txt=kernel,
    )
    assert [path.name for path in kernel_files(tmp_path)] == ["a.cu", "b.inl", "c.hpp", "e.cpp"]


def test_a_unit_of_which_nothing_comes_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = '#if NEVER\n#include "kernels.h"\n#endif\n'
    folder = write(tmp_path, kernels_h="__global__ void k(nowhere* p) { p[threadIdx.x] = 1; }\n", a_cu=unit)
    read: list[str] = []
    with_guess = Translation.read_with

    def noted(translation: Translation, guessed: Guessed) -> None:
        read.extend([guessed.unit.path.name] if guessed.unit is not None else [])
        with_guess(translation, guessed)

    monkeypatch.setattr(Translation, "read_with", noted)
    path = folder / "kernels.h"
    translation = Translation(path, path.read_text())
    assert read == ["a.cu"] and [k.base_name for k in translation.kernels()] == ["k"]
    translation.close()


def test_launches_of_other_kernels_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        tmp_path,
        mine_h="__global__ void mine(float* p) { p[threadIdx.x] = 1; }\n",
        others_h="__global__ void other(float* p) {}\ninline void go(float* p) { other<<<1, 64>>>(p); }\n",
        users_h="#define LAUNCH(k, p) k<<<1, 96>>>(p)\ninline void use(float* p) { LAUNCH(mine, p); }\n",
        a_cu='#include "mine.h"\n#include "others.h"\n#include "users.h"\n',
    )
    read: list[str] = []
    find = host_code.find_launches

    def noted(path: Path, *rest: Any) -> tuple[LaunchSite, ...]:
        read.append(path.name)
        return find(path, *rest)

    monkeypatch.setattr(host_code, "find_launches", noted)
    path = tmp_path / "mine.h"
    translation = Translation(path, path.read_text(), unit=tmp_path / "a.cu")
    assert [site.block for site in translation.sites_elsewhere["mine"]] == [(96, 1, 1)]
    assert set(read) == {"users.h"}
    translation.close()


# ---------------------------------------------------------------------- several readings of one header


def reading(path: Path, verdict: Verdict, block: int = 32, *, name: str = "k") -> FileReport:
    place = SourceRange(path, Position(1, 1), Position(2, 1))
    return FileReport(path, (KernelReport(name, place, verdict, launches=(LaunchConfig((block, 1, 1)),)),))


def read_all(verdicts: dict[str, Verdict]) -> list[FileReport]:
    header = Path("/p/k.h")
    units = [Path(f"/p/{name}.cu") for name in verdicts]
    readings = Readings([*units, header], [header])
    while wave := readings.wave():
        for job in wave:
            if job.unit is None:
                readings.take(job, FileReport(job.path, kernel_headers=(header,)))
            else:
                readings.take(job, reading(header, verdicts[job.unit.stem]))
    return readings.reports()


def test_what_all_units_say_is_told_once() -> None:
    *_, header = read_all({"a": Verdict.RACE_FREE, "b": Verdict.RACE_FREE})
    assert [(k.name, k.verdict, k.notes) for k in header.kernels] == [("k", Verdict.RACE_FREE, ())]


def test_what_units_say_differently_is_told_with_their_names() -> None:
    *_, header = read_all({"a": Verdict.RACE_FREE, "b": Verdict.RACY, "c": Verdict.RACE_FREE})
    (kernel,) = header.kernels
    assert kernel.verdict is Verdict.RACY
    assert kernel.notes == ("race-free as included by a.cu, c.cu", "racy as included by b.cu")


def test_a_header_of_many_units_is_read_in_some_and_says_so() -> None:
    *_, header = read_all(dict.fromkeys("abcdef", Verdict.RACE_FREE))
    assert [error.message for error in header.errors] == ["read in 4 of the 6 files that include it"]


def open_later(first: FileReport) -> list[frozenset[int]]:
    """What readings of a header in three units are told, of which the first says this."""
    header = first.path
    readings, told = Readings([Path(f"/p/{name}.cu") for name in "abc"], []), list[frozenset[int]]()
    while wave := readings.wave():
        for job in wave:
            told += [job.left_open] if job.unit else []
            other = FileReport(job.path, kernel_headers=(header,)) if job.unit is None else first
            readings.take(job, other)
    return told


def test_later_readings_know_what_stays_open_whatever_they_say() -> None:
    header = Path("/p/k.h")
    assert open_later(reading(header, Verdict.UNDECIDED)) == [frozenset(), {1}, {1}]
    assert open_later(reading(header, Verdict.RACE_FREE)) == [frozenset()] * 3


def test_a_template_that_a_unit_does_not_instantiate_is_not_left_open_by_it() -> None:
    report = reading(Path("/p/k.h"), Verdict.UNDECIDED)
    (kernel,) = report.kernels
    assert open_later(evolve(report, kernels=(evolve(kernel, launches=()),))) == [frozenset()] * 3


def test_a_file_of_which_no_unit_makes_kernels_is_read_alone() -> None:
    header = Path("/p/k.h")
    readings = Readings([Path("/p/a.cu"), header], [header])
    seen: list[Reading] = []
    while wave := readings.wave():
        for job in wave:
            seen.append(job)
            readings.take(job, FileReport(job.path, kernel_headers=(header,) if job.path != header else ()))
    assert seen == [Reading(Path("/p/a.cu")), Reading(header, Path("/p/a.cu")), Reading(header)]


def test_a_template_that_the_first_units_do_not_instantiate_is_looked_for_in_more() -> None:
    header, units = Path("/p/k.h"), [Path(f"/p/{name}.cu") for name in "abcdefghij"]
    readings = Readings([*units, header], [header])
    while wave := readings.wave():
        for job in wave:
            if job.unit is None:
                readings.take(job, FileReport(job.path, kernel_headers=(header,)))
            elif job.unit.stem == "f":
                readings.take(job, reading(header, Verdict.RACE_FREE, name="k<int>"))
            else:
                unclear = reading(header, Verdict.UNDECIDED)
                readings.take(job, evolve(unclear, errors=(ToolError("never instantiated", kernel="k"),)))
    *_, report = readings.reports()
    assert verdicts(report) == {"k<int>": Verdict.RACE_FREE}
    assert [error.message for error in report.errors] == ["read in 8 of the 10 files that include it"]


def test_a_header_of_which_all_is_made_out_is_read_no_more() -> None:
    *_, header = read_all(dict.fromkeys("abcdefghij", Verdict.UNDECIDED))
    assert [error.message for error in header.errors] == ["read in 4 of the 10 files that include it"]


def read_instances(*, guessed: bool, beside: Verdict) -> FileReport:
    """Of a header in two units: the first has a racy ``k<16>``, the second instantiates ``k<64>``."""
    header, units = Path("/p/k.h"), [Path("/p/a.cu"), Path("/p/b.cu")]
    (made,) = reading(header, Verdict.RACY, name="k<16>").kernels
    readings = Readings([*units, header], [header])
    while wave := readings.wave():
        for job in wave:
            if job.unit is None:
                readings.take(job, FileReport(job.path, kernel_headers=(header,)))
            elif job.unit.stem == "a":
                readings.take(job, FileReport(header, kernels=(evolve(made, guessed=guessed),)))
            else:
                readings.take(job, reading(header, beside, name="k<64>"))
    return readings.reports()[-1]


@pytest.mark.parametrize("beside", list(Verdict))
def test_a_guessed_instance_has_no_say_where_a_unit_tells_the_real_one(beside: Verdict) -> None:
    assert verdicts(read_instances(guessed=True, beside=beside)) == {"k<64>": beside}


def test_an_instance_that_a_unit_tells_has_its_say_beside_others() -> None:
    report = read_instances(guessed=False, beside=Verdict.RACE_FREE)
    assert verdicts(report) == {"k<16>": Verdict.RACY, "k<64>": Verdict.RACE_FREE}


@pytest.mark.parametrize(
    ("around", "guessed"),
    [
        ("", True),
        ("template <int N> void f(int* p) { each<N><<<1, N>>>(p); }", True),
        ("void f(int* p) { each<64><<<1, 64>>>(p); }", False),
        ("template __global__ void each<64>(int*);", False),
    ],
)
def test_what_nothing_tells_of_a_template_is_a_guess(around: str, guessed: bool) -> None:
    text = f"template <int N> __global__ void each(int* p) {{ p[threadIdx.x + N] = 1; }}\n{around}"
    (kernel,) = check_text(Path("k.cu"), text).kernels
    assert kernel.guessed is guessed
