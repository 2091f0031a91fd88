"""Generated kernels compute the same on a GPU as on the emulator. Skipped where there is no device."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
from generated_bundle import checked, made, on_device
from generated_kernels import FAMILIES, generate

from cuda_lsp.dynamic.gpu.engine import open_engine
from cuda_lsp.dynamic.runs import EngineUnavailable, Level


@pytest.fixture(scope="module")
def report():
    try:
        open_engine()
    except EngineUnavailable as reason:
        pytest.skip(str(reason))
    pytest.importorskip("pycuda.driver", reason="the plain kernels are launched through PyCUDA")
    return checked(made(generate(3 * len(FAMILIES)), (Level.O3,), lambda line: None), on_device())


def test_kernels_are_bit_equal(report):
    assert report["different"] == []


def test_functions_keep_their_documented_error(report):
    for row in report["functions"]:
        ours, theirs, count = row["within the documented bound"]
        assert ours == theirs == count, row
