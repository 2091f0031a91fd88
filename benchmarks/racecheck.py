"""What compute-sanitizer's racecheck finds, beside what we find: the same kernels, sizes and inputs.

    python benchmarks/racecheck.py [--out DIRECTORY] [--resume]

The six kernels of ``dynamic.py timing``, each as written and with each of its barriers removed, at those
sizes, races in shared memory only (racecheck knows no other). racecheck runs the program as nvcc builds it by
default (O3) and built like our own (O0); we run O0. Writes ``racecheck.json``. Needs a GPU, PyCUDA, nvcc and
compute-sanitizer.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve
from dynamic import CACHE, HERE, built, shared_only
from dynamic_cases import FIXTURES, TIMING, Launch, compiled, line_pairs
from fixture_cases import Case, cases

from benchmarks.card import EMULATED, Kept, begin_again, few, open_engine
from cuda_lsp.dynamic.gpu.engine import GpuEngine
from cuda_lsp.dynamic.runs import Level

_LEVELS = {"O3": (), "O0": ("-Xcicc", "-O0", "-Xptxas", "-O0")}
_SECONDS = 150.0
"""After which a run of racecheck is ended: it takes 60,000 times as long as some of the kernels."""

_ACCESS = re.compile(r"\b(Read|Write) access at .* in (\S+):(\d+)(?: \[(\d+) hazards\])?\s*$")
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
        theirs = {
            case.name: {level: pool.submit(_racecheck, Path(place), launch, case, level) for level in _LEVELS}
            for launch, case in pending
        }
        for launch, case in pending:
            said = {level: future.result() for level, future in theirs[case.name].items()}
            kept.add(case.name, partial(_row, engine, launch, case, said))
            begin_again(engine.usable)
    racy = [row for row in kept.good if row["expected"]]
    for who in ("ours", *_LEVELS):
        rows = [row for row in racy if row[who] is not None]
        found = sum(bool(row[who]) for row in rows)
        pairs = sum(len({*map(tuple, row[who])} & {*map(tuple, row["expected"])}) for row in rows)
        of = sum(len(row["expected"]) for row in rows)
        wrong = sum(len({*map(tuple, row[who] or ())} - {*map(tuple, row["expected"])}) for row in kept.good)
        print(f"{who}: {found} of {len(rows)} racy kernels, {pairs} of {of} line pairs, {wrong} others")


def _row(engine: GpuEngine, launch: Launch, case: Case, said: dict[str, dict[str, Any]]) -> dict[str, Any]:
    lines = _lines_of(launch.kernel, case.text)
    launch = evolve(launch, grid=(2, 1, 1)) if EMULATED else launch
    run = shared_only(compiled(case.path, case.text, Level.O0, CACHE), launch)
    outcome = engine.run(run, lambda stage: None)
    row: dict[str, Any] = {
        "kernel": launch.kernel,
        "expected": sorted({race.lines for race in case.races if race.lines[0] in lines}),
        "ours": sorted(line_pairs(outcome, run)),
        "ms": round(outcome.seconds * 1000, 3),
        "failure": outcome.failure,
    }
    for level, told in said.items():
        row |= {level: told.get("pairs"), f"{level} says": told["says"], f"{level} ms": told.get("ms")}
    return row


def _racecheck(place: Path, launch: Launch, case: Case, level: str) -> dict[str, Any]:
    """Its pairs of lines in one variant (none where it did not end), its summary, the milliseconds."""
    home = place / f"{case.name}-{level}"
    (home / "benchmarks").mkdir(parents=True)
    shutil.copytree(FIXTURES, home / "fixtures")
    (home / "fixtures" / case.path.name).write_text(case.text)
    source, program = home / "benchmarks" / "dynamic_kernels.cu", home / "program"
    shutil.copy(HERE / source.name, source)
    command = ("compute-sanitizer", "--tool", "racecheck", str(program), launch.kernel, "1")
    try:
        built(source, program, "-lineinfo", *_LEVELS[level])
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except (subprocess.SubprocessError, OSError) as error:
        return {"says": f"{type(error).__name__}: {error}"[:200]}
    print(case.name, level, done.stdout[:3000], done.stderr[:500], flush=True)
    summary, best = _SUMMARY.search(done.stdout), re.search(r"^([\d.]+) no error", done.stdout, re.M)
    if summary is None:
        return {"says": done.stdout[-200:]}
    ms = float(best[1]) if best else None
    return {"pairs": sorted(reported(done.stdout, case.path.name)), "says": summary[1], "ms": ms}


def reported(output: str, file: str) -> Pairs:
    """Pairs of lines of one file, ascending: racecheck tells an access and, below it, those it races with."""
    pairs: Pairs = set()
    first: int | None = None
    for line in output.splitlines():
        access = _ACCESS.search(line)
        if "Race reported" in line:
            first = int(access[3]) if access and Path(access[2]).name == file else None
        elif access and first is not None and Path(access[2]).name == file:
            second = int(access[3])
            pairs.add((min(first, second), max(first, second)))
    return pairs


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
