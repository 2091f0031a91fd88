"""Last blocks, barriers of grids, chains, locks between blocks: both engines name the same lines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from block_kernels import compiled, labelled_pairs, pairs_of, run_of
from emulated_card import emulated_engine
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.compile import CompiledModule
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine

pytestmark = needs_nvcc
ENGINES = ("emulator", "card", "card backwards")


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> CompiledModule:
    return compiled(tmp_path_factory.mktemp("blocks"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "gpu"))


def raced(module: CompiledModule, entry: str, on: str) -> dict[str, set[tuple[int, int]]]:
    engine = EmulatorEngine() if on == "emulator" else emulated_engine(find_toolkit(), "backwards" in on)
    run = run_of(module, entry)
    outcome = engine.run(run, lambda stage: None)
    assert (outcome.failure, outcome.not_covered) == (None, ())
    return pairs_of(run, outcome)


@pytest.mark.parametrize("on", ENGINES)
def test_blocks_that_hand_over_correctly_are_not_accused(module: CompiledModule, on: str) -> None:
    assert raced(module, "correct", on) == {}


@pytest.mark.parametrize("on", ENGINES)
def test_what_breaks_the_chain_of_blocks_is_told_with_its_lines(module: CompiledModule, on: str) -> None:
    assert raced(module, "broken", on) == labelled_pairs()
