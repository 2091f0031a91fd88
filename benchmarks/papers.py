"""The papers' tables again, on kernels of the same kind: what is found, and what looking for it costs.

    python benchmarks/papers.py [--out DIRECTORY] [--resume]

Scan and binomial options are the fixtures without one barrier, the others stand in ``papers.cu``. Each is
timed at O3 as it is and in both levels of detail, all blocks checked, nothing pruned; statement pairs come
from a run at O0. Writes ``papers.json``, of which the tables of ``dynamic.md`` are made.
Needs a GPU, PyCUDA and nvcc.
"""

from __future__ import annotations

import argparse
import re
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, frozen
from card import EMULATED, Kept, begin_again, few, open_engine
from dynamic_cases import (
    FIXTURES,
    Builder,
    Dim3,
    Launch,
    compiled,
    floats,
    integer,
    line_pairs,
    pointer,
    real,
    request,
    zeros,
)

from cuda_lsp.dynamic.gpu.device import Start
from cuda_lsp.dynamic.gpu.engine import GpuEngine
from cuda_lsp.dynamic.gpu.memory import DeviceMemory
from cuda_lsp.dynamic.ptx.reader import read_module
from cuda_lsp.dynamic.ptx.writer import write_module
from cuda_lsp.dynamic.runs import Detail, KernelRun, Level

HERE = Path(__file__).resolve().parent
CACHE = Path("/tmp") / "cuda-lsp-papers"
ROWS, BLOCKS = (1 << 12, 2) if EMULATED else (1 << 20, 2048)


@frozen
class Case:
    """``file``: whose kernel; ``without``: the barrier comment whose line loses its barrier."""

    name: str
    file: Path
    kernel: str
    block: Dim3
    blocks: int
    arguments: Builder
    shared: int = 0
    without: str = ""

    @property
    def text(self) -> str:
        text = self.file.read_text()
        if not self.without:
            return text
        changed = re.sub(rf"__syncthreads\(\);(?=\s*// {self.without}:)", ";               ", text)
        assert changed != text
        return changed


def _sparse(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    rows = n * 8
    lengths = rng.integers(4, 64, rows)
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    columns = rng.integers(0, rows, int(starts[-1])).astype(np.int32)
    return (
        zeros("y", rows), pointer("starts", starts), pointer("columns", columns),
        floats("values", int(starts[-1]), rng), floats("x", rows, rng), integer("rows", rows),
        integer("last", 48),
    )  # fmt: skip


def _clusters(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    cluster = pointer("cluster", rng.integers(0, 64, ROWS).astype(np.int32))
    return zeros("sums", 64), cluster, floats("values", ROWS, rng), integer("rows", ROWS)


PAPERS = HERE / "papers.cu"
CASES = (
    Case("co-cluster", PAPERS, "co_cluster", (256, 1, 1), BLOCKS, _clusters),
    Case("em", PAPERS, "maximise", (384, 1, 1), BLOCKS,
         lambda n, rng: (zeros("weights", n), floats("points", n * 384, rng))),
    Case("scan", FIXTURES / "scan.cu", "scan", (128, 1, 1), BLOCKS,
         lambda n, rng: (zeros("out", 256), floats("in", 256, rng), integer("n", 256)), 1024, "barrier B"),
    Case("bo", FIXTURES / "binomial.cu", "binomial", (128, 1, 1), BLOCKS,
         lambda n, rng: (
             zeros("price", n), floats("terminal", n * 128, rng), real("up", 0.5), real("down", 0.5),
         ), 0, "barrier B"),
    Case("spmv", PAPERS, "sparse_product", (256, 1, 1), BLOCKS, _sparse),
)  # fmt: skip


def native(engine: GpuEngine, run: KernelRun) -> float:
    """Milliseconds of the fastest of fifty launches of the kernel as it is."""
    card = engine.card
    module = evolve(read_module(run.ptx), target="sm_90")
    code = card.load(write_module(module), "sm_90", False)
    memory = DeviceMemory(card, module, code)
    memory.place_buffers(run.arguments)
    start = Start(
        run.entry,
        run.launch.grid or (1, 1, 1),
        run.launch.block,
        memory.parameters(run.entry, run.arguments),
        run.launch.dynamic_shared or 0,
        run.deadline,
    )
    return min(code.launch(start).seconds or float("inf") for _ in range(1 if EMULATED else 50)) * 1000


def measured(engine: GpuEngine, case: Case) -> dict[str, Any]:
    shape = Launch(
        case.name, case.kernel, (case.blocks, 1, 1), case.block, case.arguments, shared=case.shared
    )
    plain = compiled(case.file, case.text, Level.O0, CACHE)
    run = request(plain, shape)
    run = evolve(run, watch=_shared(run))
    outcome = engine.run(run, lambda stage: None)
    flags = engine.run(evolve(run, detail=Detail.FLAGS), lambda stage: None)
    fast = request(compiled(case.file, case.text, Level.O3, CACHE), shape)
    fast = evolve(fast, watch=_shared(fast))
    alone = native(engine, fast)
    row: dict[str, Any] = {
        "statement pairs": len(outcome.races),
        "line pairs": sorted(line_pairs(outcome, run)),
        "words": max((race.words for race in outcome.races), default=0),
        "thread pairs": max((race.pairs for race in outcome.races), default=0),
        "flagged words": len({(flag.block, flag.place.offset) for flag in flags.flags}),
        "native ms": alone,
    }
    for detail in Detail:
        one = evolve(fast, detail=detail)
        outcomes = [engine.run(one, lambda stage: None)] if EMULATED else engine.repeat(one, 5)
        row[f"{detail.value} x"] = min(o.seconds for o in outcomes) * 1000 / alone
    return row


def _shared(run: KernelRun) -> frozenset[int]:
    return frozenset(n for n, s in enumerate(run.sites) if s.space is None or s.space.value == "shared")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    engine, started = open_engine(), time.monotonic()
    kept = Kept.at(options.out / "papers.json", "kernels", "case", options.resume, device=engine.device)
    for case in few(CASES, 3):
        kept.add(case.name, partial(measured, engine, case))
        begin_again(engine.usable)
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
