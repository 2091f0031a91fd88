"""What makefiles would do, read without compiling; what came of runs, as rows and as a page."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from wild_projects import hecbench, read
from wild_runs import RESULTS, TITLE, racecheck_said, report

MAKEFILE = """program = main
$(program): main.o host.o
\tnvcc -O3 -arch=sm_60 main.o host.o -o $@ -lz
main.o: main.cu
\tnvcc -Iinc -DN=4 -arch=sm_60 -O3 -c main.cu -o main.o
host.o: host.cpp
\tg++ -O2 -c host.cpp -o host.o
run: $(program)
\tLEVEL=3 ./$(program) -f \\
\t\tin.txt 100 < input > out.txt
\tdiff out.txt expected
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_a_makefile_tells_sources_options_and_the_call_without_compiling(tmp_path):
    project = tmp_path / "sum-cuda"
    project.mkdir()
    (project / "Makefile").write_text(MAKEFILE)
    (project / "main.cu").write_text("int main() {}\n")
    (project / "host.cpp").write_text("")
    (program,) = hecbench(tmp_path)
    job = program.job
    assert job is not None, program.problem
    assert program.name == "hecbench/sum"
    assert [unit.path.name for unit in job.units] == ["main.cu", "host.cpp"]
    assert job.units[0].options.defines == ("N=4",)
    assert "-lineinfo" in job.units[0].flags
    assert (job.command, job.input) == (("./main", "-f", "in.txt", "100"), str(project / "input"))
    assert "-lz" in job.link
    assert not (project / "main.o").exists()


def test_a_makefile_that_lacks_a_file_says_which(tmp_path):
    project = tmp_path / "sum-cuda"
    project.mkdir()
    (project / "Makefile").write_text("run: main\nmain: ../other/util.h\n\tnvcc main.cu -o main\n")
    (program,) = hecbench(tmp_path)
    assert program.job is None
    assert "other/util.h" in program.problem


def test_folders_of_commands_are_followed(tmp_path):
    programs, calls = read(["cd src && nvcc a.cu -o ../app", "time ./app 3 | tee log"], tmp_path)
    assert [path.name for path in programs] == ["app"]
    assert [(call.arguments, call.folder) for call in calls] == [(("3",), tmp_path)]


SAID = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at k(int *)+0x120 in /p/main.cu:12
=========     and Read access at k(int *)+0x150 in /p/main.cu:14 [124 hazards]
=========
========= Error: Race reported between Write access at k(int *)+0x120 in /p/main.cu:12
=========     and Write access at k(int *)+0x120 in /p/main.cu:12 [4 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)
"""


def test_what_racecheck_says_is_read_by_lines():
    said = racecheck_said(SAID)
    assert said["pairs"] == {"main.cu:12/main.cu:14": 1, "main.cu:12": 1}
    assert said["summary"].startswith("2 hazards")
    assert said["ended"]


def test_the_page_keeps_what_stands_around_its_section(tmp_path):
    kernel = {"name": "k<8>", "own": True, "launches": 9, "checked": 5, "reasons": {}, "failure": None}
    other = {**kernel, "name": "m", "checked": 0, "reasons": {"in a graph": 9}}
    library = {**other, "name": "cub", "own": False}
    race = {"kernel": "k<8>", "places": ["a.cu:3", "a.cu:4"], "same value": False}
    rows = [
        {"name": "s/a", "built": True, "status": 0, "launches": 27, "kernels": [kernel, other, library],
         "races": [race, race], "wall": 3.0},
        {"name": "s/b", "built": False, "problem": "no rule"},
    ]  # fmt: skip
    (tmp_path / RESULTS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = tmp_path / "wild.md"
    page.write_text(f"# Title\n\nbefore\n\n{TITLE}\n\nold\n\n## Later\n\nafter\n")
    report(tmp_path, page)
    text = page.read_text()
    assert "old" not in text
    assert text.startswith("# Title\n\nbefore\n") and text.endswith("## Later\n\nafter\n")
    assert "2 kernels of their sources were launched, 1 (50 %) checked" in text
    assert "- not checked, 1: in a graph" in text
    assert "| s/a | 0 | 2 | 1 | 3.0 | k a.cu:3 and a.cu:4 |  |" in text
    assert "1 pairs of places in 1 of them are more than stores of one value" in text
    report(tmp_path, page)
    assert page.read_text() == text
