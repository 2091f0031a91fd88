"""The GPU of this machine."""

from __future__ import annotations

import pytest

from cuda_lsp.dynamic.gpu.engine import GpuEngine, open_engine
from cuda_lsp.dynamic.runs import EngineUnavailable


@pytest.fixture(scope="module")
def card() -> GpuEngine:
    try:
        return open_engine()
    except EngineUnavailable as reason:
        pytest.skip(str(reason))
