"""A short part of ``benchmarks/hostile_runs.py``: what hangs, faults, floods or forks ends with a message."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))  # behind: one is named click
from hostile_cases import cases
from hostile_runs import ORDINARY, Outcome, prepared, run_all, select
from toolkit import needs_nvcc

QUICK = [case for case in select("emulator", quick=True) if case.program][:4] + [
    case for case in select("emulator", quick=True) if not case.program
][:4]


def test_there_are_more_than_a_hundred_for_each_engine():
    names = [case.name for case in cases()]
    assert len(names) == len(set(names))
    for engine in ("emulator", "gpu"):
        assert len(select(engine)) > 170
        assert all(case.expected(engine) for case in select(engine))


@needs_nvcc
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
def test_nothing_is_left_of_what_hangs_faults_floods_or_forks(tmp_path: Path):
    (tmp_path / "ordinary.pkl").write_bytes(pickle.dumps(prepared(ORDINARY)))
    outcomes: list[Outcome] = []
    run_all(
        [prepared(case) for case in QUICK], "emulator", min(2, os.cpu_count() or 1), tmp_path, outcomes.append
    )
    assert len(outcomes) == len(QUICK)
    assert {outcome.name: outcome.failures for outcome in outcomes if outcome.failures} == {}
