"""The two engines side by side: do the GPU and the emulator see the same, and compute the same?

    python benchmarks/engines.py jobs JOBS     # anywhere: fixtures and labelled kernels as check jobs
    python benchmarks/engines.py builds JOBS CACHE   # anywhere with the same nvcc: what is compiled of them
    python benchmarks/engines.py compare JOBS RESULTS [CACHE]  # where a GPU is; goes on with what is missing
    python benchmarks/engines.py kernels BUNDLE [COUNT]  # anywhere: generated kernels and their results
    python benchmarks/engines.py check-kernels BUNDLE RESULTS  # where a GPU is

``jobs`` needs the whole package, ``compare`` only its dynamic half; ``check-kernels`` needs PyCUDA besides.
Without a GPU both can be tried on the emulated card (``card.py``).
"""

from __future__ import annotations

import json
import pickle
import random
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attrs import evolve
from card import EMULATED, CardEngines, Kept, few

from cuda_lsp.dynamic.check import check
from cuda_lsp.dynamic.compilation.compile import compile_module
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine
from cuda_lsp.dynamic.gpu.engine import device_architecture
from cuda_lsp.dynamic.job import CheckJob, CheckResult, EngineKind
from cuda_lsp.dynamic.runner import Runner
from cuda_lsp.dynamic.runs import Level

ROOT = Path(__file__).resolve().parent.parent
_AT_ONCE = 8  # jobs, each in two processes


def lines(result: CheckResult) -> list[set[tuple[int, int]]]:
    """Racing line pairs of each trial."""
    found: list[set[tuple[int, int]]] = []
    for trial in result.results:
        pairs: set[tuple[int, int]] = set()
        for race in trial.races.races:
            ends = [result.sites[k].site for k in race.sites]
            if all(ends):
                a, b = sorted(e.range.start.line for e in ends if e is not None)
                pairs.add((a, b))
        found.append(pairs)
    return found


def wavefronts(result: CheckResult) -> dict[str, tuple[int, int]]:
    costs: dict[str, tuple[int, int]] = {}
    for trial in result.results:
        for seen in trial.banks.banks if trial.banks else ():
            site = result.bank_sites[seen.site]
            costs[f"{site.function}:{site.index}"] = (seen.worst_wavefronts, seen.worst_ideal)
    return costs


def compile_all(jobs: list[CheckJob], levels: tuple[Level, ...], cache: Path) -> None:
    """Fill the cache with every build that the jobs need, several at a time."""
    builds = {(j.path, j.text, j.options, level) for j in jobs for level in levels}
    with ThreadPoolExecutor() as pool:
        made = [pool.submit(compile_module, *build, find_toolkit(), cache) for build in builds]
    failed = [future.exception() for future in made if future.exception()]
    print(f"builds {len(made)}, failed {len(failed)}", *failed[:2], flush=True)


def compare(jobs: list[CheckJob], kept: Kept, cache: Path) -> None:
    """Both engines on the jobs that have no row yet, in order."""
    jobs = list(few(jobs, 2))
    names = [f"{number} {job.path.stem}:{job.kernel}" for number, job in enumerate(jobs)]
    known = {row["kernel"] for row in kept.rows}
    compile_all(
        [job for job, name in zip(jobs, names, strict=True) if name not in known], tuple(Level), cache
    )
    if not EMULATED:
        device_architecture()  # without a device every row would say so
    todo = [(job, name) for job, name in zip(jobs, names, strict=True) if name not in known]
    with ThreadPoolExecutor(1 if EMULATED else _AT_ONCE) as pool:
        found = [
            (name, pool.submit(compared, evolve(job, cache=cache, all_blocks=True))) for job, name in todo
        ]
        for name, row in found:
            kept.add(name, row.result)
    rows = kept.good
    report = {
        "kernels": len(kept.rows),
        "of": len(jobs),
        "same races": sum(row["same races"] for row in rows),
        "same wavefronts": sum(row["same wavefronts"] for row in rows),
    }
    print(json.dumps(report, indent=1))
    kept.head.update(report)
    kept.write()


class _Pair(threading.local):
    """A process for each engine, of one thread: a fault must not end the comparison."""

    def __init__(self) -> None:
        self.gpu, self.emulator = Runner(), Runner()


_PAIR = _Pair()


def compared(job: CheckJob) -> dict[str, Any]:
    on_gpu, on_cpu = (evolve(job, engine=kind) for kind in (EngineKind.GPU, EngineKind.EMULATOR))
    gpu = check(on_gpu, CardEngines(), lambda stage: None) if EMULATED else _PAIR.gpu.run(on_gpu)
    cpu = _PAIR.emulator.run(on_cpu)
    results = [gpu, cpu]
    if gpu.problem or cpu.problem:
        return {"problem": f"gpu: {gpu.problem or 'ran'}; emulator: {cpu.problem or 'ran'}"}
    same, banks = lines(gpu) == lines(cpu), wavefronts(gpu) == wavefronts(cpu)
    row: dict[str, Any] = {"same races": same, "same wavefronts": banks}
    failures = [t.races.failure for r in results for t in r.results if t.races.failure]
    if not same or failures:
        row |= {"gpu": str(lines(gpu)), "emulator": str(lines(cpu)), "failures": failures}
    if not banks:
        row["wavefronts"] = {"gpu": wavefronts(gpu), "emulator": wavefronts(cpu)}
    return row


def make_jobs() -> list[CheckJob]:
    """Every kernel of the fixtures (also without each barrier) and of the labelled set."""
    sys.path.insert(0, str(ROOT / "tests"))
    from fixture_cases import cases

    from cuda_lsp.config import Settings
    from cuda_lsp.confirm import CheckOptions, job_for
    from cuda_lsp.static.analyze import Analyzer

    texts = [(c.path, c.text) for c in cases() if c.banks == 32]
    labelled = [(p, p.read_text()) for p in sorted((ROOT / "fixtures" / "labelled").glob("*.cu"))]
    fixtures = len(texts)
    texts += labelled
    jobs: list[CheckJob] = []
    first = 0
    for number, (path, text) in enumerate(texts):
        first = len(jobs) if number == fixtures else first
        analyzer = Analyzer(Settings())
        for report in analyzer.update(path, text).kernels:
            kernel = analyzer.kernel(path, report.name)
            if kernel is not None:
                options = CheckOptions(watch_all=True, deadline=20)
                jobs.append(job_for(path, text, kernel, report, Settings(arch="sm_90"), options))
        analyzer.shutdown()
    rest = jobs[first:]
    random.Random(1).shuffle(rest)
    return [*jobs[:first], *rest]


def make_bundle(where: Path, count: int) -> None:
    from generated_bundle import made
    from generated_kernels import generate

    bundle = made(generate(count), tuple(Level), lambda line: print(line, flush=True))
    where.write_bytes(pickle.dumps(bundle, protocol=4))
    print(f"{count} kernels at {len(Level)} levels, {where.stat().st_size >> 10} KiB")


def check_bundle(where: Path, target: Path) -> None:
    from generated_bundle import checked, on_device, on_emulator

    started = time.perf_counter()
    bundle = pickle.loads(where.read_bytes())
    if EMULATED:
        bundle |= {part: few(bundle[part], 3) for part in ("kernels", "functions")}
    report = checked(bundle, on_emulator(EmulatorEngine(keep_results=True)) if EMULATED else on_device())
    report["seconds"] = round(time.perf_counter() - started, 1)
    print(json.dumps({k: v for k, v in report.items() if k != "functions"}, indent=1))
    for row in report["functions"]:
        print(*row.values())
    target.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    command, where, more = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    match command:
        case "jobs":
            where.write_bytes(pickle.dumps(make_jobs()))
        case "builds":
            compile_all(pickle.loads(where.read_bytes()), tuple(Level), Path(more[0]))
        case "compare":
            kept = Kept.at(Path(more[0]), "rows", "kernel", True)
            cache = Path(more[1] if len(more) > 1 else tempfile.mkdtemp())
            compare(pickle.loads(where.read_bytes()), kept, cache)
        case "kernels":
            make_bundle(where, int(more[0]) if more else 160)
        case "check-kernels":
            check_bundle(where, Path(more[0]))
        case _:
            sys.exit(__doc__)
