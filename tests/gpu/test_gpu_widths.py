"""Atomics of several widths on one word, on a real GPU.

The same kernel is checked on an emulated card in ``tests/unit/test_widths_on_both_engines.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc
from width_kernels import labelled, pairs_of, run_in

from cuda_lsp.dynamic.gpu.engine import GpuEngine

pytestmark = needs_nvcc


def test_atomics_of_different_widths_race_on_one_word(card: GpuEngine, tmp_path: Path) -> None:
    run = run_in(tmp_path)
    for _ in range(5):
        outcome = card.run(run, lambda stage: None)
        assert outcome.failure is None
        assert pairs_of(run, outcome) == labelled()
