"""Tests that compile for the device need nvcc; where there is none they say so."""

import pytest

from cuda_lsp.dynamic.compilation.toolkit import ToolkitMissing, find_toolkit


def _missing() -> str | None:
    try:
        find_toolkit()
    except ToolkitMissing as problem:
        return str(problem)
    return None


def has_nvcc() -> bool:
    return _missing() is None


needs_nvcc = pytest.mark.skipif(_missing() is not None, reason=str(_missing()))
