"""Shared-memory wavefronts of whole kernels: the instrumented run beside Nsight Compute's counters.

    python benchmarks/dynamic_wavefronts.py compare JOBS RESULTS [SECONDS [CACHE]]

JOBS come from ``benchmarks/engines.py jobs``.

Every kernel of the fixtures and of the labelled set that touches shared memory is compiled at O3, run once
instrumented, then once as it is under ``ncu`` with the same arguments. Loads, stores and atomics are compared
apart. RESULTS has ours once they are counted, and ncu's beside them at the end. Needs a GPU, PyCUDA, nvcc and
ncu.
"""

from __future__ import annotations

import csv
import json
import math
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

from attrs import evolve
from card import few, open_engine  # beside this file, as the next
from engines import compile_all

from cuda_lsp.dynamic.compilation.compile import CompileError, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.gpu.device import Start
from cuda_lsp.dynamic.gpu.engine import GpuEngine
from cuda_lsp.dynamic.gpu.memory import DeviceMemory
from cuda_lsp.dynamic.inputs import arguments, first_sizes, grown, with_grid
from cuda_lsp.dynamic.job import CheckJob
from cuda_lsp.dynamic.ptx.reader import read_module
from cuda_lsp.dynamic.ptx.writer import write_module
from cuda_lsp.dynamic.runs import EngineUnavailable, KernelRun, Level, RunOutcome
from cuda_lsp.model import Mode, Space

HERE = Path(__file__).resolve().parent
_SPAWN = multiprocessing.get_context("spawn")
_AT_ONCE = 6
_METRICS = {
    Mode.READ: "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    Mode.WRITE: "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
}


def run_of(job: CheckJob, cache: Path, engine: GpuEngine) -> tuple[KernelRun, RunOutcome]:
    """The kernel at O3 with buffers that are large enough, and its instrumented run."""
    compiled = compile_module(job.path, job.text, job.options, Level.O3, find_toolkit(), cache)
    entries = compiled.entries_of(job.range, job.base_name)
    entry = job.mangled if job.mangled in entries else entries[0]
    trial, sites = job.trials[0], sites_of(compiled, entry)
    launch, sizes = with_grid(trial.launch), first_sizes(job.parameters, trial)
    while True:
        made = arguments(job.parameters, trial, sizes, job.seed)
        run = KernelRun(compiled.ptx, entry, launch, made, sites, races=False, banks=True, deadline=5)
        outcome = engine.run(run, lambda stage: None)
        larger = grown(sizes, outcome)
        if larger is None:
            return run, outcome
        sizes = larger


def launch_plainly(engine: GpuEngine, run: KernelRun) -> None:
    """The kernel as the compiler made it."""
    module = read_module(run.ptx)
    module = module if module.target.startswith("sm_90") else evolve(module, target="sm_90")
    code = engine.card.load(write_module(module), module.target.split(",")[0], False)
    memory = DeviceMemory(engine.card, module, code)
    memory.place_buffers(run.arguments)
    parameters = memory.parameters(run.entry, run.arguments)
    grid, shared = run.launch.grid or (1, 1, 1), run.launch.dynamic_shared or 0
    ended = code.launch(Start(run.entry, grid, run.launch.block, parameters, shared, run.deadline))
    if ended.seconds is None:
        os._exit(0)  # it hangs, and nothing more runs in this process


def measured(runs: list[KernelRun]) -> list[dict[str, int]]:
    """What ncu counts for each launch, in order; nothing for one that did not end."""
    found: list[dict[str, int]] = []
    while len(found) < len(runs):
        with tempfile.NamedTemporaryFile(suffix=".pkl") as file:
            file.write(pickle.dumps(runs[len(found) :]))
            file.flush()
            more = _measured(Path(file.name))
        if not more and not found:
            return []  # ncu does not work here
        found += more
        if len(found) < len(runs) and (not more or more[-1]):
            found.append({})
    return found


def _measured(runs: Path) -> list[dict[str, int]]:
    command = ["ncu", "--csv", "--clock-control", "none", "--metrics", ",".join(_METRICS.values())]
    command += ["--target-processes", "all"]
    command += [sys.executable, __file__, "launch", str(runs)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    except (subprocess.TimeoutExpired, OSError) as error:
        print(f"ncu: {error}", flush=True)
        return []
    launches: dict[int, dict[str, int]] = {}
    for row in csv.DictReader(line for line in done.stdout.splitlines() if line.startswith('"')):
        value = float(row["Metric Value"].replace(",", ""))
        counted = launches.setdefault(int(row["ID"]), {})
        if not math.isnan(value):  # ncu could not count this launch
            counted[row["Metric Name"]] = int(value)
    if not launches:
        print(done.stdout[-1000:], done.stderr[-1000:])
    return [launches[number] for number in sorted(launches)]


def count(jobs: list[CheckJob], cache: Path, target: Path, deadline: float) -> None:
    """Our counts of every kernel, a pickle each; a kernel that hangs ends this process (and is the last)."""
    engine = open_engine()
    with target.open("ab") as file:
        for number, job in enumerate(jobs):
            if time.monotonic() > deadline:
                return
            try:
                run, outcome = run_of(job, cache, engine)
            except (CompileError, EngineUnavailable, IndexError):
                continue
            pickle.dump((number, run, outcome), file)
            file.flush()
            if not engine.usable:
                os._exit(0)


def counted(
    jobs: list[CheckJob], target: Path, seconds: float, cache: Path
) -> list[tuple[KernelRun, dict[Mode, int]]]:
    """Runs that went well, and their wavefronts by kind of access. ``target``: a scratch file."""
    deadline, found, rest = time.monotonic() + seconds, [], jobs
    while rest and time.monotonic() < deadline:
        target.unlink(missing_ok=True)
        child = _SPAWN.Process(target=count, args=(rest, cache, target, deadline))
        child.start()
        child.join()
        last, hung = len(rest), False
        if not target.exists():
            break
        with target.open("rb") as file:
            while file.peek(1):
                last, run, outcome = pickle.load(file)
                hung = outcome.failure is not None
                generic = any(s.space is None and s.mode for s in run.sites)
                if not (hung or outcome.faults or generic) and outcome.banks:
                    found.append((run, _by_mode(run, outcome)))
        rest = rest[last + 1 :] if hung else []
    return found


def _by_mode(run: KernelRun, outcome: RunOutcome) -> dict[Mode, int]:
    counts = dict.fromkeys(_METRICS, 0)
    for bank in outcome.banks:
        mode = run.sites[bank.site].mode
        if mode in counts and run.sites[bank.site].space is Space.SHARED:
            counts[mode] += bank.wavefronts
    return counts


def compare(jobs: list[CheckJob], target: Path, seconds: float, cache: Path) -> None:
    started, place = time.monotonic(), Path(tempfile.mkdtemp())
    single = {job.kernel: job for job in reversed(jobs) if job.trials and not job.all_blocks}
    jobs = few([evolve(job, trials=job.trials[:1]) for job in single.values()], 2)
    compile_all(jobs, (Level.O3,), cache)
    print(f"compiled after {time.monotonic() - started:.0f} s", flush=True)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        parts = [jobs[k::_AT_ONCE] for k in range(_AT_ONCE)]
        files = [place / f"counts-{k}" for k in range(_AT_ONCE)]
        pairs = [
            pair
            for found in pool.map(counted, parts, files, repeat(seconds), repeat(cache))
            for pair in found
        ]
    print(f"counted after {time.monotonic() - started:.0f} s", flush=True)
    rows = [
        {"kernel": run.entry, **{mode.value: [n, None] for mode, n in ours.items()}} for run, ours in pairs
    ]
    target.write_text(json.dumps(rows, indent=1) + "\n")
    theirs = measured([run for run, _ in pairs])
    for row, told in zip(rows, theirs, strict=False):
        if not told:
            continue
        for mode, metric in _METRICS.items():
            row[mode.value][1] = told.get(metric)
        row["same"] = all(a == b for a, b in (row[mode.value] for mode in _METRICS))
    same = sum(row.get("same", False) for row in rows)
    print(f"kernels {len(rows)} measured {sum(map(bool, theirs))} same {same}")
    for row in rows[: len(theirs)]:
        if not row.get("same", True):
            print(json.dumps(row))
    target.write_text(json.dumps(rows, indent=1) + "\n")


def main() -> None:
    command, path = sys.argv[1], Path(sys.argv[2])
    if command == "launch":
        engine = open_engine()
        for run in pickle.loads(path.read_bytes()):
            launch_plainly(engine, run)
        return
    target, more = Path(sys.argv[3]), sys.argv[4:]
    cache = Path(more[1] if len(more) > 1 else tempfile.mkdtemp())
    compare(pickle.loads(path.read_bytes()), target, float(more[0]) if more else 1e9, cache)


if __name__ == "__main__":
    main()
