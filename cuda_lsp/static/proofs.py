"""The second tier for who hands its questions on: a fifth of all imports, done when it is asked."""

from __future__ import annotations

from collections.abc import Sequence

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import LaunchConfig
from cuda_lsp.static.solver.answer import Budget, SolverResult


def proof(kernel: Kernel, launches: Sequence[LaunchConfig], gpu: GpuModel, budget: Budget) -> SolverResult:
    """What the second tier says of a kernel."""
    from cuda_lsp.static.second_tier import refine_with_second_opinion

    return refine_with_second_opinion(kernel, launches, gpu, budget)
