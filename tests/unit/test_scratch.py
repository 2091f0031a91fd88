"""Nothing is written outside the cache folder, and what a killed compiler leaves there is removed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.cli import main
from cuda_lsp.dynamic.compilation.scratch import compiler_environment, scratch
from cuda_lsp.frontend.translation import Translation

RACY = """
__global__ void k(int* o) {
    __shared__ int s[64];
    s[threadIdx.x] = 1;
    o[threadIdx.x] = s[63 - threadIdx.x];
}
int main() {
    int* o;
    cudaMalloc(&o, 256);
    k<<<1, 64>>>(o);
    return cudaDeviceSynchronize();
}
"""


class Watched:
    """Folders that should stay as they are: whatever is made in one, even for a moment, changes its time."""

    def __init__(self, *folders: Path) -> None:
        for folder in folders:
            folder.mkdir()
        self.folders = folders
        self.before = self.times()

    def times(self) -> list[int]:
        return [folder.stat().st_mtime_ns for folder in self.folders]

    def untouched(self) -> bool:
        return self.times() == self.before


@pytest.fixture
def watched(tmp_path, monkeypatch):
    found = Watched(tmp_path / "home", tmp_path / "temporary")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)  # it is looked up once
    monkeypatch.setenv("CUDA_LSP_CACHE", str(tmp_path / "cache"))
    return found


def test_reading_a_file_again_writes_nothing(watched, tmp_path):
    (tmp_path / "a.h").write_text("#define N 64\n")
    text = '#include "a.h"\n' + RACY
    (tmp_path / "a.cu").write_text(text)  # libclang makes a preamble only for files that exist
    translation = Translation(tmp_path / "a.cu", text)
    translation.reparse(text + "\n")
    assert [kernel.name for kernel in translation.kernels()] == ["k"]
    assert watched.untouched()


@needs_nvcc
@pytest.mark.parametrize("whole", [(), ("--program",)])
def test_a_check_writes_to_the_cache_alone(watched, tmp_path, whole):
    source = tmp_path / "a.cu"
    source.write_text(RACY)
    done = CliRunner().invoke(main, ["run", str(source), "--engine", "emulator", *whole])
    assert "[confirmed]" in done.stdout
    assert watched.untouched()
    assert not list((tmp_path / "cache").rglob("work-*"))


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    left, busy = tmp_path / "work-left", tmp_path / "work-busy"
    for folder in (left, busy):
        folder.mkdir()
        (folder / "a.lgenfe.bc").touch()
    os.utime(left, (0, 0))
    with scratch(tmp_path) as folder:
        assert compiler_environment(folder)["TMPDIR"] == str(folder)
        assert set(tmp_path.iterdir()) == {busy, folder}
    assert set(tmp_path.iterdir()) == {busy}
