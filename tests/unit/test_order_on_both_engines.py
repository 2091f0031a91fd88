"""Locks, flags, queues, barrier objects in a block: both engines name the same lines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from both_engines import ENGINES, outcome_on
from emulated_card import EmulatedCard
from order_kernels import HANDOVERS
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.compile import CompiledModule
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.gpu.launch import Launch
from cuda_lsp.dynamic.instrumentation.detector import assembled
from cuda_lsp.dynamic.ptx.reader import read_module

pytestmark = [needs_nvcc, pytest.mark.usefixtures("shared_cache")]


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> CompiledModule:
    return HANDOVERS.compiled(tmp_path_factory.mktemp("order"))


def raced(module: CompiledModule, entry: str, on: str) -> dict[str, set[tuple[int, int]]]:
    run = HANDOVERS.run_of(module, entry)
    return HANDOVERS.pairs_of(run, outcome_on(on, run))


@pytest.mark.parametrize("on", ENGINES)
def test_threads_that_hand_over_correctly_are_not_accused(module: CompiledModule, on: str) -> None:
    assert raced(module, "correct", on) == {}


@pytest.mark.parametrize("on", ENGINES)
def test_what_breaks_the_chain_is_told_with_its_lines(module: CompiledModule, on: str) -> None:
    assert raced(module, "broken", on) == HANDOVERS.labelled_pairs()


def test_the_assembler_takes_what_follows_them(module: CompiledModule) -> None:
    run = HANDOVERS.run_of(module, "broken")
    launch = Launch(EmulatedCard(), find_toolkit(), run, read_module(run.ptx))
    launch.prepare()
    assert launch.made is not None
    assert assembled(launch.made.text, find_toolkit(), "sm_90")
