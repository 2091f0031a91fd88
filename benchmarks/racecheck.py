"""What compute-sanitizer's racecheck finds, beside what we find: the same kernels, sizes and inputs.

    python benchmarks/racecheck.py [--out DIRECTORY] [--resume]

The six kernels of ``dynamic.py timing``, each as written and with each of its barriers removed, at those
sizes, races in shared memory only (racecheck knows no other). racecheck runs the program as nvcc builds it by
default (O3) with its own default report; and two blocks of it, built like our own (O0), too, with each hazard
told (of all blocks that takes it minutes). We run O0. Writes ``racecheck.json``. Needs a GPU, PyCUDA, nvcc
and compute-sanitizer.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, evolve, field
from dynamic import CACHE, HERE, built, shared_only
from dynamic_cases import FIXTURES, TIMING, Launch, compiled, line_pairs
from fixture_cases import Case, cases

from benchmarks.card import EMULATED, Kept, begin_again, few, open_engine
from cuda_lsp.dynamic.gpu.engine import GpuEngine
from cuda_lsp.dynamic.runs import Level

_OPTIONS = {"O3": (), "O0": ("-Xcicc", "-O0", "-Xptxas", "-O0")}
_RUNS = (
    ("all blocks", "O3", "0", ()),
    ("2 blocks", "O3", "2", ("--racecheck-report", "hazard", "--print-limit", "300000")),
    ("2 blocks, O0", "O0", "2", ("--racecheck-report", "hazard", "--print-limit", "300000")),
)
"""Runs of racecheck: name, build, blocks (0: all), and options."""
_SECONDS = 120.0

_ACCESS = re.compile(r"\b(?:Read|Write) (?:access|Thread \S+) at .* in (\S+):(\d+)")
_BEST = re.compile(r"([\d.]+) no error$")
_SUMMARY = re.compile(r"RACECHECK SUMMARY: (.*)")

Pairs = set[tuple[int, int]]


def chosen() -> list[tuple[Launch, Case]]:
    """Each timed kernel as written, then without each barrier whose removal concerns it."""
    found: list[tuple[Launch, Case]] = []
    for launch in TIMING:
        lines = _lines_of(launch.kernel, (FIXTURES / f"{launch.file}.cu").read_text())
        for case in cases():
            here = case.removed is None or any(race.lines[0] in lines for race in case.races)
            if case.path.stem == launch.file and here:
                found.append((launch, case))
    return found


def _lines_of(kernel: str, text: str) -> range:
    """The lines of a kernel, from its name to the brace in the first column that closes it."""
    begin = re.search(rf"\b{kernel}\(", text)
    assert begin is not None
    end = text.index("\n}", begin.start())
    return range(text.count("\n", 0, begin.start()) + 1, text.count("\n", 0, end) + 3)


def compare(engine: GpuEngine, kept: Kept) -> None:
    """A row for each case: expected, ours, and racecheck's at each level."""
    pending = few(chosen(), 3)
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(6) as pool:
        theirs = {case.name: pool.submit(_theirs, Path(place), launch, case) for launch, case in pending}
        for launch, case in pending:
            kept.add(case.name, partial(_row, engine, launch, case, theirs[case.name].result()))
            begin_again(engine.usable)
    for who in ("ours", *(name for name, *_ in _RUNS)):
        rows = [(_pairs(row["expected"]), _pairs(row[who])) for row in kept.good if row[who] is not None]
        racy = [(expected, found) for expected, found in rows if expected]
        seen, total = sum(len(e & f) for e, f in racy), sum(len(e) for e, _ in racy)
        told, wrong = sum(bool(f) for _, f in racy), sum(len(f - e) for e, f in rows)
        print(f"{who}: {told} of {len(racy)} racy kernels, {seen} of {total} line pairs, {wrong} others")


def _pairs(rows: list[list[int]]) -> Pairs:
    return {(row[0], row[1]) for row in rows}


def _row(engine: GpuEngine, launch: Launch, case: Case, theirs: dict[str, Any]) -> dict[str, Any]:
    lines = _lines_of(launch.kernel, case.text)
    launch = evolve(launch, grid=(2, 1, 1)) if EMULATED else launch
    run = shared_only(compiled(case.path, case.text, Level.O0, CACHE), launch)
    outcome = engine.run(run, lambda stage: None)
    within = evolve(outcome, races=tuple(r for r in outcome.races if r.blocks[0] == r.blocks[1]))
    return {
        "kernel": launch.kernel,
        "expected": sorted({race.lines for race in case.races if race.lines[0] in lines}),
        "ours": sorted(line_pairs(within, run)),
        "ms": round(outcome.seconds * 1000, 3),
        "failure": outcome.failure,
        **theirs,
    }


def _theirs(place: Path, launch: Launch, case: Case) -> dict[str, Any]:
    """For each run the pairs of lines (none where it did not end), its summary, the milliseconds."""
    programs = {level: place / f"{case.name}-{level}" / "program" for level in _OPTIONS}
    for level, options in _OPTIONS.items():
        _build(programs[level], case, options)
    row: dict[str, Any] = {}
    for name, level, blocks, options in _RUNS:
        command = ("compute-sanitizer", "--tool", "racecheck", *options, str(programs[level]))
        told = _racecheck((*command, launch.kernel, "1", blocks), case.path.name)
        row |= {name: told.pop("pairs", None), f"{name}, racecheck": told}
    return row


def _build(program: Path, case: Case, options: tuple[str, ...]) -> None:
    """The timed kernels with the case's text in place of its fixture."""
    home = program.parent
    (home / "benchmarks").mkdir(parents=True)
    shutil.copytree(FIXTURES, home / "fixtures")
    (home / "fixtures" / case.path.name).write_text(case.text)
    source = home / "benchmarks" / "dynamic_kernels.cu"
    shutil.copy(HERE / source.name, source)
    built(source, program, "-lineinfo", *options)


def _racecheck(command: tuple[str, ...], file: str) -> dict[str, Any]:
    try:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError as error:
        return {"problem": str(error)}
    alarm = threading.Timer(_SECONDS, child.kill)
    alarm.start()
    with child:
        assert child.stdout is not None
        told = Told.read(child.stdout, file)
    alarm.cancel()
    if not told.summary:
        return {"problem": f"ended in {_SECONDS:g} s or before its summary"}
    return {"pairs": sorted(told.pairs), "says": told.summary, "ms": told.ms}


@define
class Told:
    """What racecheck said of one file: pairs of lines, ascending, its summary, the kernel's milliseconds."""

    pairs: Pairs = field(factory=set[tuple[int, int]])
    summary: str = ""
    ms: float | None = None

    @classmethod
    def read(cls, lines: Iterable[str], file: str) -> Told:
        """It tells one access and, below it, those that it races with: hazards one by one, or analysed."""
        told, first, within = cls(), 0, False
        for line in lines:
            if "Race reported" in line or "hazard detected" in line:
                first, within = 0, True
            if (access := _ACCESS.search(line)) and within:
                number = int(access[2]) if Path(access[1]).name == file else 0
                if first and number:
                    told.pairs.add((min(first, number), max(first, number)))
                within = bool(number)
                first = first or number
            elif summary := _SUMMARY.search(line):
                told.summary = summary[1]
            elif best := _BEST.match(line):
                told.ms = float(best[1])
        return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    engine = open_engine()
    head = {"device": engine.device, "date": datetime.date.today().isoformat()}
    path = options.out / "racecheck.json"
    compare(engine, Kept.at(path, "detection", "case", options.resume, **head))


if __name__ == "__main__":
    main()
