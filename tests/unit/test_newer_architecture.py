"""A file that uses clusters runs, though the architecture that nobody chose has none; and says so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.cli import main

pytestmark = [needs_nvcc, pytest.mark.usefixtures("own_cache")]

CLUSTERS = """
#include <cooperative_groups.h>
__global__ void __cluster_dims__(2, 1, 1) paired(int* out) { out[blockIdx.x * 32 + threadIdx.x] = 1; }
__global__ void __cluster_dims__(2, 1, 1) waits(int* out) {
    cooperative_groups::this_cluster().sync();
    out[blockIdx.x * 32 + threadIdx.x] = 1;
}
__global__ void plain(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = 1;
    out[threadIdx.x] = s[31 - threadIdx.x] + BROKEN;
}
void go(int* out) {
    paired<<<4, 32>>>(out);
    plain<<<1, 32>>>(out);
}
"""


def checked(tmp_path: Path, broken: str) -> str:
    (tmp_path / "a.cu").write_text(CLUSTERS.replace("BROKEN", broken))
    return CliRunner().invoke(main, ["check", str(tmp_path / "a.cu"), "--dynamic", "emulator", "-v"]).output


def test_clusters_are_compiled_for_what_has_them(tmp_path: Path) -> None:
    told = checked(tmp_path, "0")
    assert "compiled for sm_90: the file uses what sm_80 lacks" in told
    assert "[confirmed]" in told
    assert "does not compile" not in told


def test_what_is_wrong_besides_is_told(tmp_path: Path) -> None:
    told = checked(tmp_path, "__nobody()")
    assert "__nobody" in told
    assert "compiled for sm_90" not in told
