"""The precompiled shim and its cache."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuda_lsp.frontend import toolchain
from cuda_lsp.frontend.toolchain import FrontendOptions, shim_flags
from cuda_lsp.frontend.translation import Translation


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "cache"
    monkeypatch.setenv("CUDA_LSP_CACHE", str(folder))
    toolchain.precompiled_shim.cache_clear()
    yield folder
    toolchain.precompiled_shim.cache_clear()


def test_the_shim_is_precompiled_once_per_set_of_flags(cache: Path) -> None:
    flags = shim_flags(FrontendOptions())
    assert flags[0] == "-include-pch"
    written = Path(flags[1]).stat().st_mtime_ns
    toolchain.precompiled_shim.cache_clear()
    assert shim_flags(FrontendOptions()) == flags
    assert Path(flags[1]).stat().st_mtime_ns == written
    assert shim_flags(FrontendOptions(std="c++20")) != flags
    assert len(list(cache.iterdir())) == 2  # nothing half-written is left behind


def test_macros_and_folders_share_one_precompiled_shim(cache: Path) -> None:
    assert shim_flags(FrontendOptions(defines=("N=1",), include_dirs=("/x",))) == shim_flags(
        FrontendOptions()
    )


@pytest.mark.parametrize("spoil", ["file", "damaged"])
def test_an_unusable_cache_only_costs_time(cache: Path, tmp_path: Path, spoil: str) -> None:
    if spoil == "file":
        cache.write_text("a file where the folder should be")
    else:
        path = Path(shim_flags(FrontendOptions())[1])
        path.write_bytes(b"not a precompiled header")
        toolchain.precompiled_shim.cache_clear()
    translation = Translation(tmp_path / "a.cu", "__global__ void k() { __syncthreads(); }")
    assert [kernel.name for kernel in translation.kernels()] == ["k"]


@pytest.mark.usefixtures("cache")
def test_a_precompiled_shim_that_clang_refuses_only_costs_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "shim_is_damaged", lambda flags, unit: "-include-pch" in flags)
    translation = Translation(tmp_path / "a.cu", "__global__ void k() { __syncthreads(); }")
    assert [kernel.name for kernel in translation.kernels()] == ["k"]


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the room cannot be reserved here")
def test_a_full_disk_falls_back_to_the_header(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert shim_flags(FrontendOptions())[0] == "-include"
    assert not list(cache.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_cache_falls_back_to_the_header(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o500)
    assert shim_flags(FrontendOptions())[0] == "-include"


@pytest.mark.parametrize("arch", ["sm_50", "sm_75", "sm_90a", "sm_100", "sm_120", "nonsense"])
def test_every_architecture_parses(tmp_path: Path, arch: str) -> None:
    translation = Translation(tmp_path / "a.cu", "__global__ void k() {}", FrontendOptions(arch=arch))
    assert len(translation.kernels()) == 1


@pytest.mark.parametrize("std", ["c++11", "c++14", "c++17", "c++20", "c++23"])
def test_the_shim_is_valid_in_every_standard(tmp_path: Path, std: str) -> None:
    translation = Translation(
        tmp_path / "a.cu", "__global__ void k(float* a) { a[0] = sinf(1); }", FrontendOptions(std=std)
    )
    assert translation.diagnostics == ()


def test_options_that_clang_rejects_are_told(tmp_path: Path) -> None:
    translation = Translation(tmp_path / "a.cu", "__global__ void k() {}", FrontendOptions(std="c++999"))
    assert translation.kernels() != () or translation.diagnostics != ()
