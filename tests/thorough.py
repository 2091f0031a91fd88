"""Long series of tests that are alike: every change runs a part of them, ``make thorough`` all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], every: int) -> list[Any]:
    """Parameters of which each ``every``-th is always run, the others by ``pytest -m ''`` only."""
    return [
        case if number % every == 0 else pytest.param(case, marks=pytest.mark.thorough)
        for number, case in enumerate(cases)
    ]
