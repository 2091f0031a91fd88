"""Measure the GPU check on one GPU: found races, bank wavefronts, and time against native and racecheck.

    python benchmarks/dynamic.py fixtures|timing|banks|all [--out DIRECTORY]

Prints what it finds and writes ``dynamic-<part>.json``, from which ``dynamic.md`` is written. Needs a GPU,
PyCUDA and nvcc; ``timing`` also compute-sanitizer, ``banks`` Nsight Compute (``ncu``).
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [
    str(Path(__file__).resolve().parent.parent),
    str(Path(__file__).resolve().parent.parent / "tests"),
]

from attrs import evolve  # noqa: E402
from fixture_cases import cases  # noqa: E402

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
from cuda_lsp.dynamic.gpu import GpuEngine, open_engine  # noqa: E402
from cuda_lsp.dynamic.runs import Detail, KernelRun, Level, RunOutcome  # noqa: E402

CACHE = Path(tempfile.gettempdir()) / "cuda-lsp-benchmark"
HERE = Path(__file__).resolve().parent


def quiet(stage: str) -> None:
    """Progress that nobody watches."""


# ----------------------------------------------------------------------------------------- fixtures


def check_fixtures(engine: GpuEngine, shape_count: int) -> list[dict[str, Any]]:
    """Every case of every fixture: expected and found line pairs, as is and for random shapes."""
    rows: list[dict[str, Any]] = []
    for case in cases():
        if case.banks != 32 or (case.arguments and dict(case.arguments).get("consecutive")):
            continue
        expected = {race.lines for race in case.races}
        module = compiled(case.path, case.text, Level.O0, CACHE)
        found: set[tuple[int, int]] = set()
        shape_found: set[tuple[int, int]] = set()
        silent_shapes = wrong_shapes = shape_total = 0
        failures: list[str] = []
        for launch in (one for one in LAUNCHES if one.file == case.path.stem):
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
        row = {
            "case": case.name,
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
        rows.append(row)
        good = row["confirmed"] and not row["extra"] and not failures
        print("ok " if good else "BAD", json.dumps(row), flush=True)
    pairs = sum(len(row["expected"]) for row in rows)
    missed = sum(len(row["missing"]) for row in rows)
    print(
        f"cases {len(rows)} confirmed {sum(row['confirmed'] for row in rows)} pairs {pairs} missed {missed}"
    )
    return rows


def _pairs(engine: GpuEngine, run: KernelRun) -> tuple[set[tuple[int, int]], RunOutcome]:
    outcome = engine.run(run, quiet)
    if not engine.usable:
        raise SystemExit(f"{run.entry} {run.launch}: {outcome.failure} {outcome.stuck}")
    return line_pairs(outcome, run), outcome


def _complaints(outcome: RunOutcome) -> list[str]:
    lines = [outcome.failure] if outcome.failure else []
    return lines + [f"fault {fault}" for fault in outcome.faults]


# ------------------------------------------------------------------------------------------- timing


def check_timing(engine: GpuEngine) -> list[dict[str, Any]]:
    """Kernel milliseconds: native, racecheck, and every mode of ours, at O3 (and pairs at O0)."""
    binary = CACHE / "kernels"
    CACHE.mkdir(exist_ok=True)
    subprocess.run(
        ["nvcc", "-O3", "-arch=native", str(HERE / "dynamic_kernels.cu"), "-o", str(binary)], check=True
    )
    rows: list[dict[str, Any]] = []
    for launch in TIMING:
        row: dict[str, Any] = {"kernel": launch.kernel, "native": _native([str(binary), launch.kernel, "50"])}
        sanitizer = ["compute-sanitizer", "--tool", "racecheck", str(binary), launch.kernel, "1"]
        row["racecheck"] = _native(sanitizer)
        for name, make in _MODES.items():
            row[name] = _best(engine, launch, make)
        rows.append(row)
        print(json.dumps(row), flush=True)
    for name in ("racecheck", *_MODES):
        ratios = [row[name] / row["native"] for row in rows if row.get(name)]
        if ratios:
            product = 1.0
            for ratio in ratios:
                product *= ratio
            print(f"{name}: {product ** (1 / len(ratios)):.1f}x native (geometric mean of {len(ratios)})")
    return rows


def _native(command: list[str]) -> float | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return None
    match = re.search(r"^([\d.]+) no error", done.stdout, re.M)
    if not match:
        print(done.stdout[-300:], done.stderr[-300:], flush=True)
    return float(match[1]) if match else None


def _shared_only(module: Any, launch: Launch) -> KernelRun:
    run = request(module, launch)
    numbers = (n for n, site in enumerate(run.sites) if site.space is None or site.space.value != "global")
    return request(module, launch, watch=frozenset(numbers))


def _sampled(module: Any, launch: Launch, detail: Detail) -> KernelRun:
    total = launch.grid[0] * launch.grid[1]
    step = max(1, total // 132)
    return request(module, launch, blocks=tuple(range(0, total, step)), detail=detail)


_MODES: dict[str, Callable[[Any, Launch], KernelRun]] = {
    "pairs": _shared_only,
    "pairs_global": lambda module, launch: request(module, launch),
    "sampled": lambda module, launch: _sampled(module, launch, Detail.PAIRS),
    "pruned": lambda module, launch: request(module, launch, watch=frozenset()),
    "flags": lambda module, launch: evolve(_shared_only(module, launch), detail=Detail.FLAGS),
    "flags_pruned": lambda module, launch: request(module, launch, watch=frozenset(), detail=Detail.FLAGS),
    "banks": lambda module, launch: request(module, launch, races=False, banks=True),
}


def _best(engine: GpuEngine, launch: Launch, make: Callable[[Any, Launch], KernelRun]) -> float | None:
    """Milliseconds of the fastest of several launches, like the native figure; shadows emptied between."""
    path = FIXTURES / f"{launch.file}.cu"
    module = compiled(path, path.read_text(), Level.O3, CACHE)
    outcomes = engine.repeat(make(module, launch), 8)
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


def check_banks(engine: GpuEngine) -> dict[str, Any]:
    """Our wavefronts of every launch of ``dynamic_banks.cu`` beside Nsight Compute's."""
    source = HERE / "dynamic_banks.cu"
    CACHE.mkdir(exist_ok=True)
    binary = CACHE / "banks"
    subprocess.run(["nvcc", "-DMAIN", "-O3", "-arch=native", str(source), "-o", str(binary)], check=True)
    command = ["ncu", "--csv", "--clock-control", "none", "--metrics", ",".join(_METRICS), str(binary)]
    profile = subprocess.run(command, capture_output=True, text=True, timeout=300)
    measured: list[dict[str, int]] = []
    by_launch: dict[str, dict[str, int]] = {}
    rows = [line for line in profile.stdout.splitlines() if line.startswith('"')]
    for row in csv.DictReader(rows):
        value = int(float(row["Metric Value"].replace(",", "")))
        by_launch.setdefault(row["ID"], {})[row["Metric Name"]] = value
    measured = [by_launch[number] for number in sorted(by_launch, key=int)]
    module = compiled(source, source.read_text(), Level.O3, CACHE)
    wrong: list[dict[str, Any]] = []
    count = 0
    for x, y, pitch in _SHAPES:
        for stride in _STRIDES:
            for kernel in _KERNELS:
                launch = Launch(
                    "", kernel, (1, 1, 1), (x, y, 1), _bank_arguments(stride, pitch), shared=16384
                )
                outcome = engine.run(request(module, launch, races=False, banks=True), quiet)
                ours = sum(site.wavefronts for site in outcome.banks)
                theirs = (
                    measured[count][_METRICS[kernel.startswith("store")]] if count < len(measured) else -1
                )
                count += 1
                if ours != theirs:
                    wrong.append({"kernel": kernel, "shape": (x, y, pitch), "stride": stride,
                                  "ours": ours, "ncu": theirs, "failure": outcome.failure})  # fmt: skip
    print(f"bank launches {count}, measured {len(measured)}, different {len(wrong)}", wrong[:8], flush=True)
    if not measured:
        print(profile.stdout[-500:], profile.stderr[-500:])
    return {"launches": count, "measured": len(measured), "different": wrong}


def _bank_arguments(stride: int, pitch: int) -> Any:
    return lambda n, rng: (zeros("out", 1024), integer("stride", stride), integer("pitch", pitch))


# --------------------------------------------------------------------------------------------- main


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("fixtures", "timing", "banks", "all"))
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--shapes", type=int, default=10)
    options = parser.parse_args()
    engine = open_engine()
    results: dict[str, Any] = {"device": engine.device, "date": datetime.date.today().isoformat()}
    started = time.monotonic()
    if options.part in ("fixtures", "all"):
        results["fixtures"] = check_fixtures(engine, options.shapes)
        print(f"{time.monotonic() - started:.0f} s", flush=True)
    if options.part in ("timing", "all"):
        results["timing"] = check_timing(engine)
        print(f"{time.monotonic() - started:.0f} s", flush=True)
    if options.part in ("banks", "all"):
        results["banks"] = check_banks(engine)
        print(f"{time.monotonic() - started:.0f} s", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"dynamic-{options.part}.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
