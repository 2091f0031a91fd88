"""Generated kernels mean the same to the emulator as to a host's compiler, and what differs is noticed."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
from generated_bundle import checked, made, on_emulator
from generated_functions import FUNCTIONS
from generated_kernels import FAMILIES, generate
from generated_runs import compared, hosted, inputs
from toolkit import needs_nvcc

from cuda_lsp.dynamic.emulator.engine import EmulatorEngine
from cuda_lsp.dynamic.runs import Level

COUNT = 2 * len(FAMILIES)


@pytest.fixture(scope="module")
def bundle():
    return made(generate(COUNT), (Level.O0,), lambda line: None)


def results(bundle, name):
    row = next(row for row in bundle["kernels"] if row["name"] == name)
    kinds = {"out": np.uint64, "pool": np.uint32}
    return {k: np.frombuffer(zlib.decompress(row[k]), kind) for k, kind in kinds.items()}


def test_one_seed_draws_the_same_kernels():
    assert generate(8) == generate(8)
    assert generate(8, number=3) != generate(8)


@needs_nvcc
def test_the_emulator_computes_what_a_host_computes(bundle, tmp_path):
    kernels = generate(COUNT)
    host = hosted(kernels, inputs(), tmp_path)
    assert [compared(k.name, k.kinds, results(bundle, k.name), host[k.name]) for k in kernels] == [[]] * COUNT


@needs_nvcc
def test_functions_keep_their_documented_error(bundle):
    report = checked(bundle, on_emulator(EmulatorEngine(keep_results=True)))
    assert report["bit-equal"] == COUNT and not report["different"]
    assert len(report["functions"]) == len(FUNCTIONS)
    for row in report["functions"]:
        assert row["within the documented bound"] == [256, 256, 256], row


@needs_nvcc
def test_one_wrong_bit_is_told(bundle):
    same = on_emulator(EmulatorEngine(keep_results=True))

    def flipped(module, row, arrays):
        after = same(module, row, arrays)
        if row["name"] == "k3":
            after["out"] = after["out"] ^ np.uint64(1)
        return after

    report = checked(bundle, flipped)
    assert report["bit-equal"] == COUNT - 1
    assert all(line.startswith("O0 k3 ") for line in report["different"])
