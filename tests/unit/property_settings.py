"""How many generated cases a property is tried on: ``CUDA_LSP_EXAMPLES`` sets it for all of them at once."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings


def examples(ordinary: int) -> settings:
    """Settings of a property that ordinarily sees so many cases."""
    return settings(
        max_examples=int(os.environ.get("CUDA_LSP_EXAMPLES", ordinary)),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
