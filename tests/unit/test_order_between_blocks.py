"""Last blocks, barriers of grids, chains, locks between blocks: both engines name the same lines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from block_kernels import HANDOVERS
from both_engines import ENGINES, outcome_on
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.compile import CompiledModule

pytestmark = [needs_nvcc, pytest.mark.usefixtures("shared_cache")]


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> CompiledModule:
    return HANDOVERS.compiled(tmp_path_factory.mktemp("blocks"))


def raced(module: CompiledModule, entry: str, on: str) -> dict[str, set[tuple[int, int]]]:
    run = HANDOVERS.run_of(module, entry)
    return HANDOVERS.pairs_of(run, outcome_on(on, run))


@pytest.mark.parametrize("on", ENGINES)
def test_blocks_that_hand_over_correctly_are_not_accused(module: CompiledModule, on: str) -> None:
    assert raced(module, "correct", on) == {}


@pytest.mark.parametrize("on", ENGINES)
def test_what_breaks_the_chain_of_blocks_is_told_with_its_lines(module: CompiledModule, on: str) -> None:
    assert raced(module, "broken", on) == HANDOVERS.labelled_pairs()
