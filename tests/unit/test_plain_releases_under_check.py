"""A lock given back by a plain store behind a fence: a run that watches everything takes it so too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.config import Settings
from cuda_lsp.confirm import CheckOptions, check_kernels, kernel_jobs
from cuda_lsp.dynamic.job import EngineKind
from cuda_lsp.dynamic.runner import Runner
from cuda_lsp.model import Status
from cuda_lsp.static.analyze import Analyzer

pytestmark = [needs_nvcc, pytest.mark.usefixtures("own_cache")]

KERNEL = """__device__ void give(int* lock) { __threadfence(); *lock = 0; }
__global__ void k(LOCK* lock, int* sum) {
    if (threadIdx.x == 0) {
        while (atomicCAS((int*)lock, 0, 1) != 0) {
        }
        BODY
    }
}
void go(LOCK* lock, int* sum) { k<<<8, 32>>>(lock, sum); }
"""
FENCED = {
    "plain": ("int", "sum[0] += blockIdx.x;\n __threadfence();\n *lock = 0;"),
    "volatile": ("volatile int", "sum[0] += blockIdx.x;\n __threadfence();\n *lock = 0;"),
    "a function": ("int", "sum[0] += blockIdx.x;\n give(lock);"),
    "two words": ("int", "sum[0] += blockIdx.x;\n sum[1] = sum[0];\n __threadfence();\n lock[0] = 0;"),
}  # fmt: skip
BROKEN = {
    "without a fence": ("int", "sum[0] += blockIdx.x;\n *lock = 0;"),
    "used behind": ("int", "int had = sum[0];\n __threadfence();\n *lock = 0;\n sum[0] = had + 1;"),
    "fence of the block": ("int", "sum[0] += blockIdx.x;\n __threadfence_block();\n *lock = 0;"),
}  # fmt: skip


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    made = Runner()
    yield made
    made.close()


def confirmed(shape: tuple[str, str], tmp_path: Path, runner: Runner) -> list[int]:
    """The lines of races that a run of everything confirms."""
    text = KERNEL.replace("LOCK", shape[0]).replace("BODY", shape[1])
    path, analyzer = tmp_path / "k.cu", Analyzer(Settings())
    report = analyzer.update(path, text)
    options = CheckOptions(EngineKind.EMULATOR, watch_all=True)
    checked = check_kernels(report, kernel_jobs(options, (), analyzer, text, report), runner)
    analyzer.shutdown()
    (kernel,) = checked.kernels
    return [f.site.range.start.line for f in kernel.findings if f.kind and f.status is Status.CONFIRMED]


@pytest.mark.parametrize("shape", FENCED.values(), ids=FENCED)
def test_a_plain_store_behind_a_fence_gives_the_lock_back(
    shape: tuple[str, str], tmp_path: Path, runner: Runner
) -> None:
    assert not confirmed(shape, tmp_path, runner)


@pytest.mark.parametrize("shape", BROKEN.values(), ids=BROKEN)
def test_what_the_lock_does_not_keep_apart_still_races(
    shape: tuple[str, str], tmp_path: Path, runner: Runner
) -> None:
    assert confirmed(shape, tmp_path, runner)
