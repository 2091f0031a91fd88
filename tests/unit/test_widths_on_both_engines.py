"""Atomics of several widths on one word: both engines name the same lines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from both_engines import ENGINES, outcome_on
from toolkit import needs_nvcc
from width_kernels import labelled, pairs_of, run_in

from cuda_lsp.dynamic.runs import KernelRun

pytestmark = [needs_nvcc, pytest.mark.usefixtures("shared_cache")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> KernelRun:
    return run_in(tmp_path_factory.mktemp("widths"))


@pytest.mark.parametrize("on", ENGINES)
def test_atomics_of_different_widths_race_on_one_word(run: KernelRun, on: str) -> None:
    assert pairs_of(run, outcome_on(on, run)) == labelled()
