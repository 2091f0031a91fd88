"""Locks, flags, queues and barrier objects within a block: the same lines from the GPU's detector and the emulator."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from emulated_card import emulated_engine
from order_kernels import BROKEN, CORRECT, SOURCE, labelled_pairs
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.compile import CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine
from cuda_lsp.dynamic.runs import Argument, Buffer, Engine, KernelRun, Level
from cuda_lsp.model import LaunchConfig

pytestmark = needs_nvcc
ENGINES = ("emulator", "card", "card backwards")


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    path = tmp_path_factory.mktemp("order") / "kernels.cu"
    path.write_text(SOURCE)
    return compile_module(
        path, SOURCE, CompileOptions(extra=("-arch=sm_90",)), Level.O0, find_toolkit(), path.parent / "cache"
    )


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "gpu"))


def engine(name: str) -> Engine:
    return EmulatorEngine() if name == "emulator" else emulated_engine(find_toolkit(), "backwards" in name)


def raced(module, entry: str, on: str) -> dict[int, set[tuple[int, int]]]:
    """Pairs of lines by block, that is by variant."""
    count = len(CORRECT if entry == "correct" else BROKEN)
    out = Argument("out", bytes(8), ((0, Buffer("out", np.zeros(256 * count, np.uint8), 4)),))
    launch = LaunchConfig((64, 1, 1), (count, 1, 1), 0)
    run = KernelRun(module.ptx, entry, launch, (out,), sites_of(module, entry), deadline=60.0)
    outcome = engine(on).run(run, lambda stage: None)
    assert outcome.failure is None
    assert outcome.not_covered == ()
    pairs: dict[int, set[tuple[int, int]]] = {}
    for race in outcome.races:
        assert race.blocks[0] == race.blocks[1]
        a, b = sorted(line(run, site) for site in race.sites)
        pairs.setdefault(race.blocks[0], set()).add((a, b))
    return pairs


def line(run: KernelRun, number: int) -> int:
    site = run.sites[number].site
    assert site is not None
    return site.range.start.line


@pytest.mark.parametrize("on", ENGINES)
def test_threads_that_hand_over_correctly_are_not_accused(module, on: str) -> None:
    assert raced(module, "correct", on) == {}


@pytest.mark.parametrize("on", ENGINES)
def test_what_breaks_the_chain_is_told_with_its_lines(module, on: str) -> None:
    expected = dict(enumerate(labelled_pairs().values()))
    assert raced(module, "broken", on) == expected
