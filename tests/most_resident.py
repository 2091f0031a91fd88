"""No process of the tests may be larger than 2 GB: the test during which one was fails, under xdist too.

The most that the test process, and any child of it that has ended, ever had resident is asked for after each
test; the system remembers it, so nothing is missed. A child that outlives its test counts where it ends.
What a test marked ``large_children`` starts is other people's, as a compiler that builds for PyTorch.
"""

from __future__ import annotations

import resource
import sys

import pytest

MOST_BYTES = 2 << 30
_UNIT = 1 if sys.platform == "darwin" else 1024
_WHO = {"the test process": resource.RUSAGE_SELF, "a child": resource.RUSAGE_CHILDREN}


class Sizes:
    """A plugin. ``limit``: bytes that nobody may have had resident."""

    def __init__(self, limit: int = MOST_BYTES) -> None:
        self._known = dict.fromkeys(_WHO, limit)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """A test is over, and its fixtures are gone."""
        for name, who in _WHO.items():
            size = resource.getrusage(who).ru_maxrss * _UNIT
            if size > self._known[name]:
                self._known[name] = size  # once
                if item.get_closest_marker("large_children") and name == "a child":
                    continue
                pytest.fail(f"{name} had {size >> 20} MB resident during {item.nodeid}", pytrace=False)
