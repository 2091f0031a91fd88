"""Measure the GPU check on one GPU: found races, bank wavefronts, and time against native and racecheck.

    python benchmarks/dynamic.py fixtures|timing|banks [--out DIRECTORY] [--resume]

Prints what it finds and writes ``dynamic-<part>.json``, from which ``dynamic.md`` is written, row by row;
``--resume`` goes on with the rows that are missing. Needs a GPU, PyCUDA and nvcc; ``timing`` also
compute-sanitizer, ``banks`` Nsight Compute (``ncu``).
"""

from __future__ import annotations

import argparse
import csv
import datetime
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path[:0] = [
    str(Path(__file__).resolve().parent.parent),
    str(Path(__file__).resolve().parent.parent / "tests"),
]

from attrs import evolve  # noqa: E402
from fixture_cases import Case, cases  # noqa: E402

from benchmarks.card import EMULATED, Kept, begin_again, few, open_engine  # noqa: E402
from benchmarks.dynamic_cases import (  # noqa: E402
    FIXTURES,
    LAUNCHES,
    TIMING,
    Launch,
    compiled,
    integer,
    line_pairs,
    request,
    shapes,
    zeros,
)
from cuda_lsp.config import Settings  # noqa: E402
from cuda_lsp.confirm import CheckOptions, job_for  # noqa: E402
from cuda_lsp.dynamic.check import watched  # noqa: E402
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit  # noqa: E402
from cuda_lsp.dynamic.gpu.engine import GpuEngine  # noqa: E402
from cuda_lsp.dynamic.runs import Detail, KernelRun, Level, RunOutcome  # noqa: E402
from cuda_lsp.dynamic.sampling import spread_blocks  # noqa: E402
from cuda_lsp.static.analyze import Analyzer  # noqa: E402

CACHE = Path(tempfile.gettempdir()) / "cuda-lsp-benchmark"
HERE = Path(__file__).resolve().parent


def quiet(stage: str) -> None:
    """Progress that nobody watches."""


# ----------------------------------------------------------------------------------------- fixtures


def check_fixtures(engine: GpuEngine, shape_count: int, kept: Kept) -> None:
    """Every case of every fixture: expected and found line pairs, as is and for random shapes."""
    chosen = [
        case
        for case in cases()
        if case.banks == 32 and not (case.arguments and dict(case.arguments).get("consecutive"))
    ]
    for case in few(chosen, 2):
        kept.add(case.name, partial(_fixture, engine, case, shape_count))
        begin_again(engine.usable)
    pairs = sum(len(row["expected"]) for row in kept.good)
    missed = sum(len(row["missing"]) for row in kept.good)
    confirmed = sum(row["confirmed"] and not row["extra"] for row in kept.good)
    print(f"cases {len(kept.rows)} confirmed {confirmed} pairs {pairs} missed {missed}")


def _fixture(engine: GpuEngine, case: Case, shape_count: int) -> dict[str, Any]:
    expected = {race.lines for race in case.races}
    module = compiled(case.path, case.text, Level.O0, CACHE)
    found: set[tuple[int, int]] = set()
    shape_found: set[tuple[int, int]] = set()
    silent_shapes = wrong_shapes = shape_total = 0
    failures: list[str] = []
    for launch in few([one for one in LAUNCHES if one.file == case.path.stem]):
        launch = evolve(launch, grid=(1, 1, 1)) if EMULATED else launch
        pairs, outcome = _pairs(engine, request(module, launch))
        found |= pairs
        failures += _complaints(outcome)
        racy_here = bool(pairs)
        for grid, block in shapes(launch, shape_count, 1):
            seen, outcome = _pairs(engine, request(module, launch, grid, block, seed=shape_total))
            shape_found |= seen
            shape_total += 1
            wrong_shapes += bool(seen - expected)
            silent_shapes += racy_here and not seen
            failures += _complaints(outcome)
    return {
        "expected": sorted(expected),
        "missing": sorted(expected - found),
        "extra": sorted((found | shape_found) - expected),
        "missing_in_shapes": sorted(expected - shape_found),
        "shapes": shape_total,
        "silent_shapes": silent_shapes,
        "wrong_shapes": wrong_shapes,
        "confirmed": bool(found) == bool(expected) and not found - expected,
        "failures": failures[:3],
    }


def _pairs(engine: GpuEngine, run: KernelRun) -> tuple[set[tuple[int, int]], RunOutcome]:
    outcome = engine.run(run, quiet)
    if not engine.usable:
        raise RuntimeError(f"{run.entry} {run.launch}: {outcome.failure} {outcome.stuck}")
    return line_pairs(outcome, run), outcome


def _complaints(outcome: RunOutcome) -> list[str]:
    lines = [outcome.failure] if outcome.failure else []
    return lines + [f"fault {fault}" for fault in outcome.faults]


# ------------------------------------------------------------------------------------------- timing


def check_timing(engine: GpuEngine, kept: Kept) -> None:
    """Kernel milliseconds: native, racecheck, and every mode of ours, at O3 (and pairs at O0)."""
    binary = CACHE / "kernels"
    CACHE.mkdir(exist_ok=True)
    built(HERE / "dynamic_kernels.cu", binary)
    for launch in few(TIMING):
        launch = evolve(launch, grid=(2, 1, 1)) if EMULATED else launch
        kept.add(launch.kernel, partial(_timed, engine, launch, binary))
        begin_again(engine.usable)
    for name in ("racecheck", *_MODES):
        ratios = [row[name] / row["native"] for row in kept.good if row.get(name) and row.get("native")]
        if ratios:
            mean = statistics.geometric_mean(ratios)
            print(f"{name}: {mean:.1f}x native (geometric mean of {len(ratios)})")


def _timed(engine: GpuEngine, launch: Launch, binary: Path) -> dict[str, Any]:
    row: dict[str, Any] = {"native": _native([str(binary), launch.kernel, "50"])}
    row |= {name: _best(engine, launch, make) for name, make in _MODES.items()}
    sanitizer = ["compute-sanitizer", "--tool", "racecheck", str(binary), launch.kernel, "1"]
    return row | {"racecheck": _native(sanitizer)}


def built(source: Path, target: Path, *options: str) -> None:
    """By nvcc. Raises CalledProcessError."""
    architecture = "-arch=sm_90" if EMULATED else "-arch=native"
    nvcc = str(find_toolkit().nvcc)
    subprocess.run([nvcc, *options, "-O3", architecture, str(source), "-o", str(target)], check=True)


def _native(command: list[str]) -> float | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (subprocess.TimeoutExpired, OSError) as error:
        print(f"{command[0]}: {error}", flush=True)
        return None
    match = re.search(r"^([\d.]+) no error", done.stdout, re.M)
    if not match:
        print(done.stdout[-300:], done.stderr[-300:], flush=True)
    return float(match[1]) if match else None


def shared_only(module: Any, launch: Launch) -> KernelRun:
    run = request(module, launch)
    numbers = (n for n, site in enumerate(run.sites) if site.space is None or site.space.value != "global")
    return request(module, launch, watch=frozenset(numbers))


def _sampled(module: Any, launch: Launch, detail: Detail) -> KernelRun:
    total = launch.grid[0] * launch.grid[1]
    step = max(1, total // 132)
    return request(module, launch, blocks=tuple(range(0, total, step)), detail=detail)


def _default(module: Any, launch: Launch) -> KernelRun:
    """What a click runs: a sample of the blocks, and of them the accesses that are not proved."""
    path = FIXTURES / f"{launch.file}.cu"
    text, analyzer, settings = path.read_text(), Analyzer(Settings()), Settings()
    (report,) = (k for k in analyzer.check(path, text).kernels if k.name.split("<")[0] == launch.kernel)
    kernel = analyzer.kernel(path, report.name)
    assert kernel is not None
    job = job_for(path, text, kernel, report, settings, CheckOptions())
    run = request(module, launch, blocks=spread_blocks(launch.grid[0] * launch.grid[1]))
    return evolve(run, watch=watched(job, run.sites))


_MODES: dict[str, Callable[[Any, Launch], KernelRun]] = {
    "pairs": shared_only,
    "pairs_global": lambda module, launch: request(module, launch),
    "default": _default,
    "sampled": lambda module, launch: _sampled(module, launch, Detail.PAIRS),
    "pruned": lambda module, launch: request(module, launch, watch=frozenset()),
    "flags": lambda module, launch: evolve(shared_only(module, launch), detail=Detail.FLAGS),
    "flags_pruned": lambda module, launch: request(module, launch, watch=frozenset(), detail=Detail.FLAGS),
    "banks": lambda module, launch: request(module, launch, races=False, banks=True),
}


def _best(engine: GpuEngine, launch: Launch, make: Callable[[Any, Launch], KernelRun]) -> float | None:
    """Milliseconds of the fastest of several launches, like the native figure; shadows emptied between."""
    path = FIXTURES / f"{launch.file}.cu"
    module = compiled(path, path.read_text(), Level.O3, CACHE)
    run = make(module, launch)
    outcomes = [engine.run(run, quiet)] if EMULATED else engine.repeat(run, 8)
    problems = [line for outcome in outcomes for line in _complaints(outcome)]
    if problems or any(outcome.races for outcome in outcomes):
        print(launch.kernel, problems[:2], outcomes[0].races[:1], flush=True)
    return min(outcome.seconds for outcome in outcomes) * 1000


# -------------------------------------------------------------------------------------------- banks

_STRIDES = (0, 1, 2, 3, 4, 8, 16, 17, 32, 33)
_SHAPES = ((32, 1, 0), (16, 8, 16), (8, 4, 33), (20, 3, 20))  # block x, block y, pitch
_KERNELS = tuple(
    f"{op}_{size}" for size in ("byte", "half", "word", "two", "four") for op in ("load", "store")
)
_METRICS = (
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
)


def check_banks(engine: GpuEngine, kept: Kept) -> None:
    """Our wavefronts of every launch of ``dynamic_banks.cu`` beside Nsight Compute's."""
    source = HERE / "dynamic_banks.cu"
    CACHE.mkdir(exist_ok=True)
    binary = CACHE / "banks"
    built(source, binary, "-DMAIN")
    measured = [] if EMULATED else _profiled(binary)
    module = compiled(source, source.read_text(), Level.O3, CACHE)
    launches = [(kernel, shape, stride) for shape in _SHAPES for stride in _STRIDES for kernel in _KERNELS]
    for number, (kernel, shape, stride) in enumerate(few(launches, 3)):
        x, y, pitch = shape
        launch = Launch("", kernel, (1, 1, 1), (x, y, 1), _bank_arguments(stride, pitch), shared=16384)
        told = measured[number] if number < len(measured) else {}
        name = f"{kernel} {x}x{y} pitch {pitch} stride {stride}"
        kept.add(name, partial(_counted, engine, request(module, launch, races=False, banks=True), told))
        begin_again(engine.usable)
    different = [row for row in kept.good if row["ncu"] is not None and row["ours"] != row["ncu"]]
    print(
        f"bank launches {len(kept.rows)}, measured {len(measured)}, different {len(different)}", different[:8]
    )


def _counted(engine: GpuEngine, run: KernelRun, told: dict[str, int]) -> dict[str, Any]:
    outcome = engine.run(run, quiet)
    return {
        "ours": sum(site.wavefronts for site in outcome.banks),
        "ncu": told.get(_METRICS["store" in run.entry]),
        "failure": outcome.failure,
    }


def _profiled(binary: Path) -> list[dict[str, int]]:
    """What ncu counts for each launch of a program, in order."""
    command = ["ncu", "--csv", "--clock-control", "none", "--metrics", ",".join(_METRICS), str(binary)]
    try:
        profile = subprocess.run(command, capture_output=True, text=True, timeout=200)
    except (subprocess.TimeoutExpired, OSError) as error:
        print(f"ncu: {error}", flush=True)
        return []
    by_launch: dict[str, dict[str, int]] = {}
    for row in csv.DictReader(line for line in profile.stdout.splitlines() if line.startswith('"')):
        value = int(float(row["Metric Value"].replace(",", "")))
        by_launch.setdefault(row["ID"], {})[row["Metric Name"]] = value
    if not by_launch:
        print(profile.stdout[-500:], profile.stderr[-500:], flush=True)
    return [by_launch[number] for number in sorted(by_launch, key=int)]


def _bank_arguments(stride: int, pitch: int) -> Any:
    return lambda n, rng: (zeros("out", 1024), integer("stride", stride), integer("pitch", pitch))


# --------------------------------------------------------------------------------------------- main


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("fixtures", "timing", "banks"))
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--shapes", type=int, default=1 if EMULATED else 10)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    engine, started = open_engine(), time.monotonic()
    head = {"device": engine.device, "date": datetime.date.today().isoformat()}
    path, part = options.out / f"dynamic-{options.part}.json", options.part
    kept = Kept.at(path, part, {"fixtures": "case"}.get(part, "kernel"), options.resume, **head)
    match part:
        case "fixtures":
            check_fixtures(engine, options.shapes, kept)
        case "timing":
            check_timing(engine, kept)
        case _:
            check_banks(engine, kept)
    print(f"{time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
