"""What a whole repository costs: ``check`` on many files, cold and warm, by some workers (Linux).

    .venv/bin/python benchmarks/scale.py FOLDER [--workers 1 2 4] [--label TEXT] [--dask]

For each number of workers: a run with an empty cache and one behind it, with their clock and processor time,
the peak of all their processes' memory (proportional set sizes, four looks a second) and a digest of all that
they found. ``--dask`` adds a run by a scheduler and two workers on this machine, one of which is killed
midway. Then commands on one small file, and ``--help``, beside ``ruff check`` and ``clang-tidy``, if
installed. Writes ``scale.json`` and ``scale.md`` beside it.

Others may use the machine at the same time: what they took of the processors is told for each run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from attrs import asdict, define

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "protocol")]

from resident import family, megabytes  # noqa: E402

BETWEEN_LOOKS_S = 0.25
REPEATED = 9
SMALL = ROOT / "fixtures" / "figure1.cu"
TOOL = (sys.executable, "-m", "cuda_lsp")


@define
class Cost:
    """Of one run. ``wall``, ``processor``, ``others`` in seconds; the last is what others took of all cores.

    ``peak``: megabytes of all its processes together. ``found``: a digest of its report without times.
    """

    name: str
    workers: int
    wall: float
    processor: float
    others: float
    peak: float
    files: int
    kernels: int
    findings: int
    lost: int
    found: str


class Peak(threading.Thread):
    """Looks at the memory of a process and of all that it started, until told to end."""

    def __init__(self, processes: Sequence[int]) -> None:
        super().__init__(daemon=True)
        self.processes, self.megabytes, self.ended = processes, 0.0, threading.Event()

    def run(self) -> None:
        while not self.ended.wait(BETWEEN_LOOKS_S):
            seen = {member for process in self.processes for member in family(process)}
            self.megabytes = max(self.megabytes, sum(megabytes(member) for member in seen))


def busy() -> float:
    """Seconds that all processors have worked since the machine was started."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    idle, waiting = ticks[3], ticks[4]
    return (sum(ticks) - idle - waiting) / os.sysconf("SC_CLK_TCK")


def measured(
    name: str, workers: int, folder: Path, cache: Path, more: Sequence[str] = (), beside: Sequence[int] = ()
) -> Cost:
    """One run; ``beside``: processes that work for it. Raises RuntimeError when it does not do its work."""
    command = [*TOOL, "check", str(folder), "--format", "json", "--fail-on", "never", "--jobs", str(workers)]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        before, started = busy(), time.perf_counter()
        apart = sum(_processor(process) for process in beside)
        run = subprocess.Popen(
            [*command, *more], stdout=output, stderr=errors, env=os.environ | {"CUDA_LSP_CACHE": str(cache)}
        )
        peak = Peak([run.pid, *beside])
        peak.start()
        _, status, used = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        wall, all_of_it = time.perf_counter() - started, busy() - before
        peak.ended.set()
        output.seek(0)
        errors.seek(0)
        said = output.read()
        if not said:
            raise RuntimeError(f"{name}: {errors.read().decode()}")
    processor = used.ru_utime + used.ru_stime + sum(_processor(process) for process in beside) - apart
    reports: list[dict[str, Any]] = json.loads(said)["files"]
    return Cost(
        name,
        workers,
        wall,
        processor,
        max(0.0, all_of_it - processor),
        peak.megabytes,
        len(reports),
        sum(len(report["kernels"]) for report in reports),
        sum(len(report["findings"]) for report in reports),
        sum(error["message"].startswith("not analysed") for report in reports for error in report["errors"]),
        hashlib.sha256(json.dumps(_without_times(reports), sort_keys=True).encode()).hexdigest()[:16],
    )


def _processor(process: int) -> float:
    """Seconds that a process and those of its children that it has buried have worked; 0: it is gone."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(word) for word in words[11:15]) / os.sysconf("SC_CLK_TCK")


def _without_times(told: Any) -> Any:
    if isinstance(told, dict):
        return {key: _without_times(value) for key, value in told.items() if key != "seconds"}  # type: ignore[misc]
    if isinstance(told, list):
        return [_without_times(value) for value in told]  # type: ignore[misc]
    return told


# ---------------------------------------------------------------------------------------------- dask


@contextmanager
def cluster(folder: Path) -> Generator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers of one process each, below ``folder``: its address, they all."""
    words = ["--scheduler-file", str(folder / "scheduler.json"), "--no-dashboard"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "distributed.cli.dask_scheduler",
                "--port",
                "0",
                "--host",
                "127.0.0.1",
                *words,
            ],
            **quiet,
        )
    ]
    environment = os.environ | {"CUDA_LSP_CACHE": str(folder / "cache")}
    working = ["--nworkers", "1", "--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
    started += [
        subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", *words, *working], env=environment, **quiet
        )
        for _ in range(2)
    ]
    try:
        while not (folder / "scheduler.json").exists():
            time.sleep(0.1)
        yield json.loads((folder / "scheduler.json").read_text())["address"], started
    finally:
        for process in started:
            process.kill()
            process.wait()


def over_dask(folder: Path, cache: Path, wall: float) -> Cost:
    """A run by two workers, one of which is killed after a third of the time that two local ones took."""
    with tempfile.TemporaryDirectory() as place, cluster(Path(place)) as (address, started):
        timer = threading.Timer(wall / 3, started[-1].kill)
        timer.start()
        where = ["--executor", address.replace("tcp://", "dask://"), "--no-cache"]
        cost = measured("dask, a worker killed", 2, folder, cache, where, [one.pid for one in started])
        timer.cancel()
        return cost


# -------------------------------------------------------------------------------------------- one file


def one_file(cache: Path) -> dict[str, tuple[float, float]]:
    """Commands on one small file: the medians of their clock and processor time in seconds."""
    check = [*TOOL, "check", "--fail-on", "never", str(SMALL)]
    commands = {
        "cuda-lsp --help": [*TOOL, "--help"],
        f"cuda-lsp check {SMALL.name}, warm": check,
        f"cuda-lsp check {SMALL.name}, --no-cache": [*check, "--no-cache"],
    }
    if ruff := _program("ruff"):
        commands["ruff check scale.py, --no-cache"] = [ruff, "check", "--no-cache", str(Path(__file__))]
    if tidy := _program("clang-tidy"):
        shim = ROOT / "cuda_lsp" / "frontend" / "headers" / "cuda_lsp_shim.h"
        flags = ["-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "-nostdinc", "-w"]
        commands[f"clang-tidy {SMALL.name}, bugprone-*"] = [
            tidy, "--quiet", "--checks=bugprone-*", str(SMALL), "--", *flags, "-include", str(shim),
        ]  # fmt: skip
    return {name: _medians(command, cache) for name, command in commands.items()}


def _program(name: str) -> str | None:
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name)


def _medians(command: Sequence[str], cache: Path) -> tuple[float, float]:
    walls: list[float] = []
    processors: list[float] = []
    for _ in range(REPEATED + 1):  # the first warms
        started = time.perf_counter()
        run = subprocess.Popen(
            command,
            env=os.environ | {"CUDA_LSP_CACHE": str(cache)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        walls.append(time.perf_counter() - started)
        processors.append(used.ru_utime + used.ru_stime)
    return statistics.median(walls[1:]), statistics.median(processors[1:])


# -------------------------------------------------------------------------------------------- the page


def bars(costs: Sequence[Cost], commands: dict[str, tuple[float, float]]) -> list[tuple[str, str, bool]]:
    """What is asked for, what was measured, and whether it holds."""
    by = {(cost.name, cost.workers): cost for cost in costs}
    said: list[tuple[str, str, bool]] = []
    if ("cold", 2) in by:
        cold, warm = by["cold", 2], by["warm", 2]
        rate, faster = cold.files / cold.wall, cold.wall / warm.wall
        said.append(("two workers, cold: at least 1 file a second", f"{rate:.2f}", rate >= 1))
        said.append(("a second run is at least 50 times as fast", f"{faster:.0f}", faster >= 50))
    if ("cold", 1) in by and ("cold", 2) in by:
        gain = by["cold", 1].wall / by["cold", 2].wall
        said.append(("two workers are at least 1.8 times as fast as one", f"{gain:.2f}", gain >= 1.8))
    peak = max((cost.peak for cost in costs if cost.workers <= 2), default=0.0)
    said.append(("at most 2 GB in all processes of up to two workers", f"{peak:.0f} MB", peak <= 2000))
    same = len({cost.found for cost in costs}) == 1
    said.append(("every run finds the same", "yes" if same else "no", same))
    for name, limit in (("cuda-lsp --help", 0.1), (f"cuda-lsp check {SMALL.name}, warm", 0.25)):
        wall = commands[name][0]
        said.append((f"`{name}` in {limit} s", f"{wall:.3f} s", wall <= limit))
    return said


def page(label: str, costs: Sequence[Cost], commands: dict[str, tuple[float, float]]) -> str:
    """``scale.md``."""
    lines = [
        "# What a repository costs",
        "",
        f"Made by `benchmarks/scale.py`, {date.today().isoformat()}: {label}. "
        f"{os.cpu_count()} processors. *Others* is what everything else on the",
        "machine took of them in the same time; memory is the sum of proportional set sizes of all processes",
        "of a run.",
        "",
        "| run | workers | clock s | processor s | others s | files/s | peak MB | files | kernels | findings "
        "| lost | digest |",
        "| --- " * 12 + "|",
    ]
    lines += [
        f"| {c.name} | {c.workers} | {c.wall:.1f} | {c.processor:.1f} | {c.others:.0f} "
        f"| {c.files / c.wall:.2f} | {c.peak:.0f} | {c.files} "
        f"| {c.kernels} | {c.findings} | {c.lost} | {c.found} |"
        for c in costs
    ]
    lines += ["", "| bar | measured | |", "| --- | --- | --- |"]
    lines += [
        f"| {asked} | {told} | {'holds' if holds else 'missed'} |"
        for asked, told, holds in bars(costs, commands)
    ]
    lines += [
        "",
        f"Median of {REPEATED} runs:",
        "",
        "| command | clock s | processor s |",
        "| --- | --- | --- |",
    ]
    lines += [f"| {name} | {wall:.3f} | {used:.3f} |" for name, (wall, used) in commands.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--label", default="all programs of the folder")
    parser.add_argument("--dask", action="store_true", help="also by a cluster whose worker dies")
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    costs: list[Cost] = []
    with tempfile.TemporaryDirectory() as scratch:
        for workers in given.workers:
            cache = Path(scratch) / f"cache-{workers}"
            costs += [measured(name, workers, given.folder, cache) for name in ("cold", "warm")]
            print(costs[-2], costs[-1], sep="\n", flush=True)
        if given.dask:
            costs.append(over_dask(given.folder, Path(scratch) / "cache-dask", costs[-2].wall))
        commands = one_file(Path(scratch) / "cache-1")
    kept = {"costs": [asdict(cost) for cost in costs], "commands": commands}
    target = Path(__file__)
    target.with_suffix(".json").write_text(json.dumps(kept, indent=1) + "\n")
    target.with_suffix(".md").write_text(page(given.label, costs, commands))
    print(target.with_suffix(".md").read_text())


if __name__ == "__main__":
    main()
