"""The GPU of this machine, through the library that ``CUDA_LSP_GPU_LIBRARY`` names: run the tests with each.

CUDA_LSP_GPU_LIBRARY=pycuda pytest tests/gpu && CUDA_LSP_GPU_LIBRARY=cuda-bindings pytest tests/gpu
"""

from __future__ import annotations

import pytest

from cuda_lsp.dynamic.gpu.engine import GpuEngine, library, open_engine
from cuda_lsp.dynamic.runs import EngineUnavailable


def pytest_report_header() -> str:
    try:
        return f"GPU through {library()}"
    except EngineUnavailable as reason:
        return f"no GPU: {reason}"


@pytest.fixture(scope="module")
def card() -> GpuEngine:
    try:
        return open_engine()
    except EngineUnavailable as reason:
        pytest.skip(str(reason))
