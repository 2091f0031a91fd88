"""How every test runs."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# One set of generated kernels for a commit, so that whoever breaks a property is told of it, nobody else.
# Search on: HYPOTHESIS_PROFILE=search
settings.register_profile("same", derandomize=True, deadline=None)  # nothing is judged by time
settings.register_profile("search", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture
def shared_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Detectors are built once for all tests of a run, in a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "gpu"))
