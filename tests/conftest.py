"""How every test runs."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from cuda_lsp import files
from cuda_lsp.frontend.kernel_sources import KernelSource
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.ir.program import Kernel
from cuda_lsp.ir.validate import violations
from cuda_lsp.static import work

sys.path.insert(0, str(Path(__file__).resolve().parent))

from most_resident import Sizes
from series import Series, measured

# One set of generated kernels for a commit, so that whoever breaks a property is told of it, nobody else.
# Search on: HYPOTHESIS_PROFILE=search
settings.register_profile("same", derandomize=True, deadline=None)  # nothing is judged by time
settings.register_profile("search", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Ten thousand tests and all that they import stay: they are not looked through for garbage again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)  # programs and terms that are kept are many, too


def pytest_configure(config: pytest.Config) -> None:
    """No process of the tests may be too large; of long series a part is run."""
    config.pluginmanager.register(Sizes(), "most resident")
    config.pluginmanager.register(Series(measured()), "series")


@pytest.fixture(autouse=True, scope="session")
def _nobody_waits() -> None:
    """As on the command line: a slow machine decides what a fast one does."""
    work.take_time()


@pytest.fixture(scope="session")
def folder_of_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all processes of a run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture
def shared_cache(folder_of_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Detectors are built once for all tests of a run, in a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder_of_run / "gpu"))


@pytest.fixture
def own_cache(folder_of_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled is compiled once for all tests of a run, and not kept with the user's own."""
    monkeypatch.setenv("CUDA_LSP_CACHE", str(folder_of_run / "cache"))


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line in an empty folder, with an empty cache."""
    monkeypatch.setenv("CUDA_LSP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "_instead", {})
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture(autouse=True, scope="session")
def _every_program_is_well_formed() -> Iterator[None]:
    """Whatever a test lowers is validated."""
    lower = Translation.lower

    def validated(
        self: Translation, source: KernelSource, valued: bool = False, computed: bool = False
    ) -> Kernel:
        kernel = lower(self, source, valued, computed)
        assert not (found := violations(kernel)), f"{kernel.name}: {found}"
        return kernel

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translation, "lower", validated)
        yield
