"""Accesses outside made-up buffers are told and race with nothing; a confirmation says what was guessed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.cli import main

pytestmark = [needs_nvcc, pytest.mark.usefixtures("own_cache")]


def run(folder: Path, text: str) -> dict[str, Any]:
    source = folder / "k.cu"
    source.write_text(text)
    given = ["run", str(source), "--engine", "emulator", "--watch-all", "--format", "json"]
    done = CliRunner().invoke(main, given)
    assert done.stdout, done.output
    return json.loads(done.stdout)["files"][0]


def test_what_runs_far_off_a_buffer_does_not_meet_another(tmp_path):
    found = run(
        tmp_path,
        """
__global__ void far(float* __restrict__ out, float* __restrict__ in, float* __restrict__ last) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 4000; ++k) in[i - k * 500] = k;
    out[i] = last[i] = i;
}
""",
    )
    confirmed = [f for f in found["findings"] if f["status"] == "confirmed"]
    assert [(f["range"]["start"]["line"], f["witness"]["array"]) for f in confirmed] == [(4, "in")]
    (kernel,) = found["kernels"]
    assert any(
        "outside the buffers of the check were not carried out (line 4)" in r for r in kernel["reasons"]
    )


def test_a_confirmation_tells_what_the_threads_did_and_that_the_launch_was_guessed(tmp_path):
    found = run(
        tmp_path,
        """
__global__ void shift(int* p) {
    __shared__ int s[257];
    s[threadIdx.x] = threadIdx.x + 1000;
    p[threadIdx.x] = s[threadIdx.x + 1];
}
""",
    )
    (race,) = (f for f in found["findings"] if f["code"] == "shared-race")
    seen = race["observation"]
    assert seen["told"] in race["message"]
    assert seen["told"].endswith("with a launch that the source does not tell")
    assert seen["values"] is not None
    assert sorted(value.split()[0] for value in seen["values"]) == ["read", "wrote"]
    (wrote,) = (int(v.split()[1]) for v in seen["values"] if v.startswith("wrote"))
    assert 1000 <= wrote < 1256
    assert seen["launch"]["assumed"]
