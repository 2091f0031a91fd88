"""The two engines side by side: do the GPU and the emulator see the same, and compute the same?

    python benchmarks/engines.py jobs JOBS     # anywhere: fixtures and labelled kernels as check jobs
    python benchmarks/engines.py compare JOBS [SECONDS]  # where a GPU is: writes benchmarks/engines.json

``jobs`` needs the whole package, ``compare`` only its dynamic half. Numbers: generated kernels of integer
operations must agree bit for bit, floating-point ones within the units in the last place that are told.
"""

from __future__ import annotations

import json
import pickle
import random
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

from cuda_lsp.dynamic.check import Engines, check
from cuda_lsp.dynamic.compile import CompileOptions, compile_module
from cuda_lsp.dynamic.job import CheckJob, CheckResult, EngineKind
from cuda_lsp.dynamic.runner import Runner
from cuda_lsp.dynamic.runs import Argument, Buffer, KernelRun, Level
from cuda_lsp.dynamic.sites import sites_of
from cuda_lsp.dynamic.toolkit import find_toolkit
from cuda_lsp.model import LaunchConfig

ROOT = Path(__file__).resolve().parent.parent
THREADS = 64
INTEGER = (
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / ({b} | 1)", "{a} % ({b} | 1)", "{a} ^ {b}", "{a} & {b}",
    "{a} << ({b} & 31)", "{a} >> ({b} & 31)", "(int)((unsigned){a} >> ({b} & 31))", "__popc({a})",
    "__clz({a})", "(int)__brev({a})", "__ffs({a})", "__mulhi({a}, {b})", "(int)__umulhi({a}, {b})",
    "min({a}, {b})", "max({a}, {b})", "abs({a})", "(int)__byte_perm({a}, {b}, 0x3715)",
    "(int)__funnelshift_l({a}, {b}, 7)", "__dp4a((int){a}, (int){b}, 5)", "__shfl_xor_sync(~0u, {a}, 5)",
    "(int)__ballot_sync(~0u, {a} > {b})", "__reduce_add_sync(~0u, {a})", "({a} > {b}) * 77 + ~{b}",
    "(int)(((long long){a} * {b}) >> 9)", "(int)((unsigned long long){a} / ((unsigned){b} | 1u))",
    "(int)__sad({a}, {b}, 3u)", "(short){a} + (signed char){b}", "__mul24({a}, {b})",
)  # fmt: skip
FLOAT = (
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / ({b} + 3.f)", "fmaf({a}, {b}, 0.7f)", "sqrtf(fabsf({a}))",
    "fminf({a}, {b})", "fmaxf({a}, {b})", "floorf({a})", "rintf({a})", "truncf({a})", "(float)(int){a}",
    "__int2float_rn(__float_as_int({a}) >> 9)", "__fmul_rz({a}, {b})", "__fadd_ru({a}, {b})",
    "(float)((double){a} * {b})", "__half2float(__float2half({a}))", "copysignf({a}, {b})",
)  # fmt: skip
APPROXIMATE = (
    "__expf({a} * 0.1f)",
    "__logf(fabsf({a}) + 1.f)",
    "__sinf({a} * 0.1f)",
    "__frsqrt_rn(fabsf({a}) + 1.f)",
)


def expression(chance: random.Random, forms: tuple[str, ...], leaves: list[str], depth: int) -> str:
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(leaves)
    a, b = (expression(chance, forms, leaves, depth - 1) for _ in range(2))
    return "(" + chance.choice(forms).format(a=a, b=b) + ")"


COUNTS = {"integer": 120, "single": 60, "approximate": 8}


def arithmetic() -> str:
    """Three kernels that evaluate generated expressions, each into a row of its own."""
    chance = random.Random(7)
    bodies: dict[str, list[str]] = {}
    leaves = ["x", "y", "t", "-77", "0x7fffffff", "12345"]
    bodies["integer"] = [expression(chance, INTEGER, leaves, 4) for _ in range(COUNTS["integer"])]
    bodies["single"] = [expression(chance, FLOAT, ["x", "y", "1.25f"], 3) for _ in range(COUNTS["single"])]
    bodies["approximate"] = [APPROXIMATE[k % 4].format(a="xy"[k // 4]) for k in range(COUNTS["approximate"])]
    lines = ["#include <cuda_fp16.h>"]
    for name, trees in bodies.items():
        kind = "int" if name == "integer" else "float"
        scale = "" if kind == "int" else " * 9.f - 4.f"
        lines.append(f"__global__ void {name}({kind}* o, const {kind}* in) {{ int t = threadIdx.x;")
        lines.append(f"  {kind} x = in[t]{scale}, y = in[t + 64]{scale};")
        lines += [f"  o[{k * THREADS} + t] = {tree};" for k, tree in enumerate(trees)]
        lines.append("}")
    return "\n".join(lines) + "\n"


def ulps(a: Any, b: Any) -> int:
    """The largest distance in units in the last place; NaN equals NaN."""
    x, y = (np.asarray(v).view(np.int32).astype(np.int64) for v in (a, b))
    x, y = (np.where(v < 0, -(v & 0x7FFFFFFF), v) for v in (x, y))
    both = np.isnan(a) & np.isnan(b)
    return int(np.where(both, 0, np.abs(x - y)).max())


def compare_arithmetic(engines: Engines) -> dict[str, Any]:
    gpu, cpu = (engines.choose(kind)[0] for kind in (EngineKind.GPU, EngineKind.EMULATOR))
    gpu.keep_results = True  # type: ignore[attr-defined]
    text = arithmetic()
    chance = np.random.default_rng(3)
    worst: dict[str, int] = {}
    different: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arithmetic.cu"
        path.write_text(text)
        for level in Level:
            # Otherwise ptxas fuses what the O0 build leaves apart, and the emulator does not.
            options = CompileOptions(extra=("-fmad=false",))
            module = compile_module(path, text, options, level, find_toolkit(), Path(folder) / "c")
            for entry in module.module.entries:
                kind = next(k for k in ("integer", "single", "approximate") if k in entry)
                data = chance.integers(-(2**31), 2**31, 128).astype(np.int32)
                data[:8] = [0, 1, -1, 2**31 - 1, -(2**31), 31, 32, 255]
                values = data if kind == "integer" else chance.random(128).astype(np.float32)
                size = 4 * THREADS * COUNTS[kind]
                buffers = [Buffer("o", np.zeros(size, np.uint8)), Buffer("in", values.view(np.uint8))]
                run = KernelRun(
                    module.ptx, entry, LaunchConfig((THREADS, 1, 1), (1, 1, 1), 0),
                    tuple(Argument(b.name, bytes(8), ((0, b),)) for b in buffers), sites_of(module, entry),
                )  # fmt: skip
                outcomes = [e.run(run, lambda stage: None) for e in (gpu, cpu)]
                problems = [o.failure for o in outcomes if o.failure]
                if problems:
                    different.append(f"{entry} {level.value}: {problems}")
                    continue
                rows = [o.results["o"].view(np.float32).reshape(-1, THREADS) for o in outcomes]
                for k, (a, b) in enumerate(zip(*rows, strict=True)):
                    bits = a.view(np.int32) != b.view(np.int32)
                    distance = int(bits.sum()) if kind == "integer" else ulps(a, b)
                    worst[kind] = max(worst.get(kind, 0), distance)
                    if distance:
                        different.append(f"{kind} {k} {level.value}: {distance}")
    return {"expressions": COUNTS, "worst": worst, "different": different}


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


def compare(jobs: list[CheckJob], seconds: float) -> None:
    """Both engines on as many of the jobs as the time allows, in order."""
    engines, started, compared = Engines(), time.monotonic(), 0
    report: dict[str, Any] = {"arithmetic": compare_arithmetic(engines)}
    print(json.dumps(report["arithmetic"], indent=1))
    same = banks = 0
    rows: list[str] = []
    cache, runner = Path(tempfile.mkdtemp()), Runner()
    compile_all(jobs, tuple(Level), cache)
    for job in jobs:
        if time.monotonic() - started > seconds:
            break
        compared += 1
        base = evolve(job, cache=cache, all_blocks=True)
        results = [
            runner.run(evolve(base, engine=EngineKind.GPU)),  # a fault must not end the comparison
            check(evolve(base, engine=EngineKind.EMULATOR), engines, lambda stage: None),
        ]
        gpu, cpu = results
        if gpu.problem or cpu.problem:
            rows.append(f"{job.path.stem}:{job.kernel}: {gpu.problem or 'ran'} | {cpu.problem or 'ran'}")
            continue
        failures = [t.races.failure for r in results for t in r.results if t.races.failure]
        if lines(gpu) == lines(cpu):
            same += 1
        else:
            rows.append(f"{job.path.stem}:{job.kernel}: gpu {lines(gpu)} emulator {lines(cpu)} {failures}")
        a, b = wavefronts(gpu), wavefronts(cpu)
        banks += a == b
        if a != b:
            rows.append(f"{job.path.stem}:{job.kernel}: wavefronts gpu {a} emulator {b}")
    report |= {
        "kernels": compared,
        "of": len(jobs),
        "same races": same,
        "same wavefronts": banks,
        "different": rows,
    }
    print(json.dumps({k: v for k, v in report.items() if k != "arithmetic"}, indent=1))
    (ROOT / "benchmarks" / "engines.json").write_text(json.dumps(report, indent=1) + "\n")


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


if __name__ == "__main__":
    command, where = sys.argv[1], Path(sys.argv[2])
    if command == "jobs":
        where.write_bytes(pickle.dumps(make_jobs()))
    else:
        limit = float(sys.argv[3]) if len(sys.argv) > 3 else 1e9
        compare(pickle.loads(where.read_bytes()), limit)
