"""What ``check`` keeps between runs is believed only while all that it hangs on is the same."""

from __future__ import annotations

import ast
import faulthandler
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen
from click.testing import CliRunner

from cuda_lsp import cache_folder, files
from cuda_lsp.batch import check, limits, results
from cuda_lsp.batch.analysis import analysed
from cuda_lsp.batch.asked import Analysed, Asked
from cuda_lsp.batch.limits import FileLimits
from cuda_lsp.batch.pool import Pool
from cuda_lsp.cli import main
from cuda_lsp.model import FileReport, Verdict
from cuda_lsp.readings import Reading

ROOT = Path(__file__).resolve().parents[2]
KERNEL = """#include "shape.h"
__global__ void neighbour(int *out) {
  __shared__ int s[SIZE];
  s[threadIdx.x] = 1;
  out[threadIdx.x] = s[SIZE - 1 - threadIdx.x];
}
"""
LAUNCH = "#include <cstdio>\nvoid launch(int *out) { neighbour<<<1, 64>>>(out); }\n"
FAST = Asked(solver=False)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own that has the precompiled header of others."""
    folder = tmp_path / "cache"
    folder.mkdir()
    for shim in cache_folder.cache_folder().glob("shim-*.pch"):
        os.link(shim, folder / shim.name)
    monkeypatch.setenv("CUDA_LSP_CACHE", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose kernel is launched by another file, with a header that is found and one that is not."""
    folder = tmp_path / "project"
    for name, text in {
        ".git/HEAD": "",
        "src/kernel.cu": KERNEL + '#if __has_include("extra.h")\n#include "extra.h"\n#endif\n',
        "src/launch.cu": LAUNCH,
        "late/shape.h": "#define SIZE 64\n",
        "first/other.h": "",
        "build/compile_commands.json": "[]",
        "cuda-lsp.toml": 'include-dirs = ["first", "late"]\n',
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


class Runs:
    """Runs of ``check``, and the files that each had to analyse."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.analysed: list[str] = []

        def pool(readings: Sequence[Reading], *arguments: Any) -> Pool:
            self.analysed = [reading.path.name for reading in readings]
            return Pool(readings, *arguments)

        monkeypatch.setattr(check, "Pool", pool)

    def run(self, *paths: Path, asked: Asked = FAST, cache: bool = True) -> list[FileReport]:
        """The reports of one run, without their times."""
        with check.checking(paths, asked, 2, FileLimits(30), cache=cache) as reports:
            return [evolve(report, seconds=0.0) for report in reports]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(monkeypatch)


def test_a_header_hangs_on_the_unit_in_which_it_was_read(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    header, one, two = tmp_path / "k.h", tmp_path / "one.cu", tmp_path / "two.cu"
    header.write_text("__global__ void k(int* p) { p[INDEX] = 1; }\n")
    for unit in (one, two):
        unit.write_text('#define INDEX threadIdx.x\n#include "k.h"\nvoid go(int* p) { k<<<1, 32>>>(p); }\n')
    files_ = (one, two, header)
    first = runs.run(*files_)
    assert [(r.path, [k.verdict for k in r.kernels]) for r in first[2:]] == [(header, [Verdict.RACE_FREE])]
    assert runs.run(*files_) == first and runs.analysed == []
    two.write_text(two.read_text().replace("threadIdx.x", "threadIdx.x / 2"))
    assert [k.verdict for k in runs.run(*files_)[2].kernels] == [Verdict.RACY]
    assert runs.analysed == ["two.cu"]  # and then the header in it, in the same run


def test_a_result_hangs_on_files_that_name_what_launches_it_and_on_no_others(
    runs: Runs, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    file, other = tmp_path / "k.cu", tmp_path / "other.cpp"
    file.write_text(
        "__global__ void shift(const int* p, int* q) { q[threadIdx.x] = p[threadIdx.x + 1]; }\n"
        "void run(const int* p, int* q) { shift<<<1, 32>>>(p, q); }\n"
    )

    def verdict() -> Verdict:
        (report,) = runs.run(file)
        return report.kernels[0].verdict

    assert verdict() is Verdict.RACE_FREE
    other.write_text("void f(int* a) { walk(a, a); }\n")
    assert verdict() is Verdict.RACE_FREE and not runs.analysed
    other.write_text("void f(int* a) { run(a, a); }\n")
    assert verdict() is Verdict.RACY and runs.analysed == ["k.cu"]
    assert verdict() is Verdict.RACY and not runs.analysed


def test_a_result_hangs_on_what_a_header_includes_that_is_read_before_the_file(
    runs: Runs, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "step.h").write_text("#define STEP 1\n")
    (folder / "names.h").write_text('#include "step.h"\nstruct Place { int at; };\n')
    file = folder / "k.cu"
    file.write_text(
        "__global__ void k(int* p) { Place q; q.at = threadIdx.x / STEP; p[q.at] = threadIdx.x; }\n"
        "void go(int* p) { k<<<1, 32>>>(p); }\n"
    )
    (first,) = runs.run(file)
    assert [k.verdict for k in first.kernels] == [Verdict.RACE_FREE]
    assert any("read behind names.h" in error.message for error in first.errors)
    assert runs.run(file) == [first] and runs.analysed == []
    (folder / "step.h").write_text("#define STEP 2\n")
    assert [k.verdict for k in runs.run(file)[0].kernels] == [Verdict.RACY]


def test_an_unchanged_file_is_not_analysed_again(runs: Runs) -> None:
    paths = [ROOT / "fixtures" / name for name in ("histogram.cu", "transpose.cu", "figure1.cu")]
    first = runs.run(*paths, asked=Asked())
    assert len(runs.analysed) == 3 and any(report.findings for report in first)
    assert runs.run(*paths, asked=Asked()) == first
    assert runs.analysed == []
    assert runs.run(*paths, asked=Asked(), cache=False) == first
    assert len(runs.analysed) == 3


def written(name: str, text: str) -> Callable[[Path], object]:
    """A change of a project."""

    def change(project: Path) -> None:
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)

    return change


CHANGES = {
    "the text": written("src/kernel.cu", KERNEL.replace("= 1", "= 2")),
    "a header": written("late/shape.h", "#define SIZE 32\n"),
    "a header before the one that was read": written("first/shape.h", "#define SIZE 128\n"),
    "a header beside the file": written("src/shape.h", "#define SIZE 96\n"),
    "a header that was not there": written("src/extra.h", "int n;\n"),
    "a header that is gone": lambda project: (project / "late/shape.h").unlink(),
    "the settings": written("cuda-lsp.toml", 'include-dirs = ["late"]\nseverity = { shared-race = "off" }\n'),
    "nearer settings": written("src/cuda-lsp.toml", 'include-dirs = ["../late"]\ndefault-block = [32]\n'),
    "the database": written(
        "build/compile_commands.json",
        '[{"file": "../src/kernel.cu", "directory": ".", "arguments": ["nvcc", "-DSIZE=32"]}]',
    ),
    "a nearer database": written("src/compile_commands.json", "[]"),
    "a launch in another file": written("src/launch.cu", LAUNCH.replace("64>>>", "32>>>")),
    "a new file with launches": written("src/another.cu", LAUNCH.replace("64>>>", "128>>>")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_result_hangs_on_is_looked_at(project: Path, runs: Runs, change: Callable[[Path], object]):
    kernel = project / "src/kernel.cu"
    before = runs.run(kernel)
    assert runs.run(kernel) == before and not runs.analysed
    change(project)
    after = runs.run(kernel)
    assert runs.analysed == ["kernel.cu"]
    assert after == runs.run(kernel, cache=False)


@pytest.mark.parametrize("change", [written("src/notes.txt", "text"), written("late/unrelated.h", "int n;")])
def test_what_it_does_not_hang_on_changes_nothing(
    project: Path, runs: Runs, change: Callable[[Path], object]
):
    runs.run(project / "src/kernel.cu")
    change(project)
    runs.run(project / "src/kernel.cu")
    assert not runs.analysed


def test_a_result_is_of_its_question_its_folder_and_its_program(
    project: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = project / "src/kernel.cu"
    runs.run(kernel)
    for asked in (Asked(), evolve(FAST, overrides={"block_dim": (32, 1, 1)})):
        runs.run(kernel, asked=asked)
        assert runs.analysed == ["kernel.cu"]
    with monkeypatch.context() as patch:
        patch.setattr(results, "__version__", "another")
        runs.run(kernel)
        assert runs.analysed == ["kernel.cu"]
    monkeypatch.chdir(project)
    runs.run(kernel)
    assert runs.analysed == ["kernel.cu"]
    monkeypatch.setenv("CPATH", str(project))
    for _ in range(2):
        runs.run(kernel)
        assert runs.analysed == ["kernel.cu"]


@pytest.mark.parametrize(
    "text",
    [
        "#define HEADER <shape.h>\n#define OF(x) x\n#include OF(HEADER)\n",
        "#define ASK __has_include\n#if ASK(<shape.h>)\n#endif\n",
        "const char *made = __TIME__;\n",
        '#pragma GCC dependency "shape.h"\n',
    ],
)
def test_what_is_not_known_completely_is_not_kept(project: Path, runs: Runs, text: str) -> None:
    kernel = project / "src/kernel.cu"
    kernel.write_text(KERNEL + text)
    for _ in range(2):
        runs.run(kernel)
        assert runs.analysed == ["kernel.cu"]


@pytest.mark.parametrize(
    "text", ['#/**/include "shape.h"\n', '#inc\\\nlude "shape.h"\n', '%: include "shape.h"\n']
)
def test_an_include_is_seen_however_it_is_written(project: Path, runs: Runs, text: str) -> None:
    kernel = project / "src/kernel.cu"
    kernel.write_text(KERNEL.replace('#include "shape.h"\n', text))
    runs.run(kernel)
    (project / "late/shape.h").write_text("#define SIZE 32\n")
    runs.run(kernel)
    assert runs.analysed == ["kernel.cu"]


def test_a_file_that_was_lost_is_tried_again(project: Path, runs: Runs) -> None:
    faulthandler.disable()  # of pytest
    kernel = project / "src/kernel.cu"
    kernel.write_text("#pragma clang __debug crash\n" + KERNEL)
    for _ in range(2):
        (report,) = runs.run(kernel)
        assert runs.analysed == ["kernel.cu"] and report.errors[0].message.startswith("not analysed: ")


# ---------------------------------------------------------------------------------- the entries


def entries(cache: Path) -> list[Path]:
    return [path for path in (cache / "results").rglob("*") if path.is_file()]


class _Attack:
    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.system, ("touch attacked",)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a bit": lambda content: content[:-9] + bytes([content[-9] ^ 4]) + content[-8:],
    "the end": lambda content: content[: len(content) // 2],
    "all of it": lambda content: b"",
    "other data": lambda content: results._content("text"),  # type: ignore[arg-type]
    "code": lambda content: results._content(_Attack()),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_not_believed(
    project: Path, runs: Runs, cache: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[bytes], bytes]
) -> None:
    monkeypatch.chdir(project)
    kernel = project / "src/kernel.cu"
    before = runs.run(kernel)
    (entry,) = entries(cache)
    entry.write_bytes(damage(entry.read_bytes()))
    assert runs.run(kernel) == before and runs.analysed == ["kernel.cu"]
    assert runs.run(kernel) == before and not runs.analysed
    assert not (project / "attacked").exists()


def test_the_oldest_entries_make_room(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = results.Results.of(FAST, FileLimits())
    assert kept is not None
    paths = [tmp_path / f"{name}.cu" for name in range(6)]
    for age, path in enumerate(paths):
        path.write_text("")
        assert kept.known(Reading(path)) is None
        kept.keep(Reading(path), Analysed(FileReport(path), {}))
        os.utime(kept._entry(Reading(path)), (1000 + age, 1000 + age))
    one = entries(cache)[0]
    abandoned = one.with_name("new-abandoned")
    abandoned.write_text("half")
    os.utime(abandoned, (0, 0))
    monkeypatch.setattr(results, "KEPT_RESULTS_BYTES", 3 * one.stat().st_size)
    kept.close()
    assert [kept.known(Reading(path)) is not None for path in paths] == [False] * 4 + [True] * 2
    assert not abandoned.exists()
    assert limits.KEPT_SHARE < 1


def test_several_runs_share_the_results(project: Path, runs: Runs, cache: Path) -> None:
    command = [sys.executable, "-m", "cuda_lsp", "check", "--no-solver", str(project / "src")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert b"shared-race" in said[0] and [process.returncode for process in both] == [1, 1]
    assert len(entries(cache)) == 2  # of two files; nothing half written
    assert all(results._read(entry.read_bytes()) for entry in entries(cache))


def test_a_cache_that_cannot_be_written_is_done_without(
    project: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CUDA_LSP_CACHE", str(tmp_path / "file" / "cache"))
    for _ in range(2):
        (report,) = runs.run(project / "src/kernel.cu")
        assert report.findings and runs.analysed == ["kernel.cu"]


def test_clean_empties_the_cache_and_leaves_what_is_not_ours(project: Path, cache: Path) -> None:
    (cache / "mine.txt").write_text("")
    assert CliRunner().invoke(main, ["check", "--no-solver", str(project)]).exit_code == 1
    assert entries(cache)
    result = CliRunner().invoke(main, ["clean"])
    assert result.exit_code == 0 and "MB removed" in result.output
    assert [path.name for path in cache.iterdir()] == ["mine.txt"]
    (cache / "mine.txt").unlink()
    assert CliRunner().invoke(main, ["clean"]).exit_code == 0 and not cache.exists()


def test_no_cache_writes_nothing(project: Path, cache: Path) -> None:
    assert CliRunner().invoke(main, ["check", "--no-cache", "--no-solver", str(project)]).exit_code == 1
    assert not (cache / "results").exists()


# ------------------------------------------------------------------------- nothing is read unnoted

_ASKS = frozenset({
    "exists", "lexists", "is_file", "is_dir", "isfile", "isdir", "islink", "is_symlink", "iterdir", "listdir",
    "scandir", "glob", "rglob", "realpath", "resolve", "readlink", "getenv", "environ", "read_text",
    "read_bytes", "stat", "lstat", "os.walk", "os.open",
})  # fmt: skip
_OF_OUR_OWN = {
    "frontend/toolchain.py": {"is_file", "glob", "resolve", "read_bytes", "stat"},  # its headers
    "frontend/tree.py": {"resolve"},  # its headers
    "frontend/host/preprocessor.py": {"read_text"},  # our own headers
    "frontend/surroundings/conventions.py": {"read_text"},  # our own headers
}


def asks_of(path: Path) -> set[str]:
    """Functions of a module's code that ask the disk or the environment, but those of ``files``."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            of = node.value.id if isinstance(node.value, ast.Name) else ""
            found |= {node.attr, f"{of}.{node.attr}"} & _ASKS if of != "files" else set[str]()
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            found.add("open")
    return found


def test_the_analysis_asks_the_disk_through_the_one_reader() -> None:
    package = ROOT / "cuda_lsp"
    rooms = [*(package / "frontend").rglob("*.py"), *(package / "static").rglob("*.py")]
    asked = {str(path.relative_to(package)): asks_of(path) for path in [*rooms, package / "settings_file.py"]}
    assert {path: found for path, found in asked.items() if found - _OF_OUR_OWN.get(path, set())} == {}


@frozen
class _Traced:
    asked: set[str]
    read: set[str]


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_clang_asks_for_nothing_that_was_not_noted(project: Path) -> None:
    script = project / "script.py"
    script.write_text(
        "import os, pickle, sys\nfrom pathlib import Path\n"
        "from cuda_lsp.batch.analysis import analysed\nfrom cuda_lsp.batch.asked import Asked\n"
        "from cuda_lsp import files\nfrom cuda_lsp.readings import Reading\n"
        "os.path.exists('/begin')\n"
        "with files.noting() as notes:\n"
        "    analysed(Reading(Path(sys.argv[1])), Asked(solver=False), lambda report: None)\n"
        "os.path.exists('/end')\n"
        "pickle.dump((notes.answers, notes.doubts), open(sys.argv[2], 'wb'))\n"
    )
    (project / "late/nested").mkdir()
    (project / "late/nested/inner.h").write_text('#include <deep.h>\n#include "shape.h"\n')
    (project / "late/deep.h").write_text('#include "extra.h"\n')
    (project / "first/linked.h").symlink_to(project / "late/nested/inner.h")
    kernel = project / "src/kernel.cu"
    kernel.write_text('#include <linked.h>\n#include "nested/inner.h"\n#include <vector>\n' + KERNEL)
    log, kept = project / "log", project / "kept"
    trace = ["strace", "-f", "-s", "4096", "-e", "trace=%file", "-o", str(log)]
    subprocess.run(
        [*trace, sys.executable, str(script), str(kernel), str(kept)],
        check=True, cwd=project, env={**os.environ, "PYTHONPATH": str(ROOT), "LIBCLANG_NOTHREADS": "1"},
    )  # fmt: skip
    answers, doubts = pickle.loads(kept.read_bytes())
    assert not doubts
    traced = traced_below(project, log.read_text(errors="replace"))
    asked = {os.path.normpath(project / path) for _, path in answers}
    read = {os.path.normpath(project / path) for question, path in answers if question == "contents"}
    implied = {str(parent) for path in asked for parent in Path(path).parents}
    assert traced.read and traced.read - read == set()
    assert traced.asked - asked - implied == set()


def traced_below(folder: Path, log: str) -> _Traced:
    """Paths below a folder that calls of the system named; which of them were files that were opened."""
    asked: set[str] = set()
    read: set[str] = set()
    _, _, body = log.partition('"/begin"')
    for line in body.partition('"/end"')[0].splitlines():
        call, quote, rest = line.partition('"')
        path = os.path.normpath(folder / rest.partition('"')[0])
        if not quote or not path.startswith(str(folder)) or "readlink" in call:
            continue
        if path.startswith(str(folder / "lib" / "clang")):  # its own headers, which -nostdinc leaves out
            continue
        asked.add(path)
        if "openat" in call and "ENOENT" not in line and "O_DIRECTORY" not in line:
            read.add(path)
    return _Traced(asked, read)


def test_a_note_is_the_answer_that_is_given_later(project: Path) -> None:
    with files.noting() as notes:
        analysed(Reading(project / "src/kernel.cu"), FAST, lambda report: None)
    assert notes.answers and not files.is_noting()
    assert all(files.answer(question) == answer for question, answer in notes.answers.items())


def test_a_header_too_large_for_one_of_its_readers_is_known_like_any_other(project: Path, runs: Runs) -> None:
    header = project / "late/shape.h"
    text = "#define SIZE 64\n" + "// what host code of this size is not read for\n" * 50_000
    assert len(text) > 2 << 20
    header.write_text(text)
    kernel = project / "src/kernel.cu"
    before = runs.run(kernel)
    assert runs.run(kernel) == before and not runs.analysed
    header.write_text(text.replace("64", "32"))
    runs.run(kernel)
    assert runs.analysed == ["kernel.cu"]
