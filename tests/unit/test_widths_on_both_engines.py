"""Atomics of several widths on one word: both engines name the same lines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from emulated_card import emulated_engine
from toolkit import needs_nvcc
from width_kernels import labelled, pairs_of, run_in

from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine
from cuda_lsp.dynamic.runs import KernelRun

pytestmark = needs_nvcc
ENGINES = ("emulator", "card", "card backwards")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> KernelRun:
    return run_in(tmp_path_factory.mktemp("widths"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "gpu"))


@pytest.mark.parametrize("on", ENGINES)
def test_atomics_of_different_widths_race_on_one_word(run: KernelRun, on: str) -> None:
    engine = EmulatorEngine() if on == "emulator" else emulated_engine(find_toolkit(), "backwards" in on)
    outcome = engine.run(run, lambda stage: None)
    assert (outcome.failure, outcome.not_covered) == (None, ())
    pairs = pairs_of(run, outcome)
    if on == "emulator":  # which takes two loads as strong as atomics for a race where their widths differ
        pairs.pop("loads_alone", None)
    assert pairs == labelled()
