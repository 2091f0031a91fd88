"""Tests that take long: every change runs a part of each kind, ``make thorough`` all.

A series is one test function with its cases: of one that takes more than ``ALLOWED`` seconds each n-th case
is run. Functions with one or two cases are no series; those of one file that take longer than ``LONG`` each
(they build programs, start processes) are a kind of their own, with ``OF_A_FILE`` seconds. What a case takes
is measured (``tests/data/seconds.json``, made of a whole run's JUnit report), so that whoever adds cases need
not think of it. What is to be held whole, as labelled verdicts are, is named in ``WHOLE``; of what real
editors and clients do nothing but series is left out.

    pytest tests -n 2 --dist loadgroup -m '' --junitxml=all.xml && python tests/series.py all.xml
"""

from __future__ import annotations

import json
import math
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path
from zlib import crc32

import pytest

SECONDS = Path(__file__).parent / "data" / "seconds.json"
ALLOWED = 1.5
"""Seconds of a processor that the cases of one function may take for each change."""

LONG = 3.0
"""Seconds from which on a test that is no series is one of its file's long ones."""

OF_A_FILE = 15.0
"""Seconds that a file's long ones may take for each change."""

MORE = {"test_blind": 60.0, "test_linear_reading": 100.0}
"""As ``ALLOWED``, of files that matter most: kernels whose truth was written first, readers' patterns."""

WHOLE = ("fixtures", "labelled", "linear_patterns", "projects")
"""Files whose every case counts: golden and labelled verdicts."""

_IN_PARTS = ("unit", "gpu")
_ALONE = 2
"""Cases of a function that is no series."""


class Series:
    """A plugin. ``seconds``: what one case takes, by file and function, for those that take long."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Marks what is left to ``make thorough``, before marks choose."""
        series: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in items:
            series[f"{item.path.stem}::{getattr(item, 'originalname', item.name)}"].append(item)
        long: dict[Path, list[tuple[float, pytest.Item]]] = defaultdict(list)
        for name, cases in series.items():
            seconds = self._seconds.get(name, 0)
            if len(cases) > _ALONE:
                allowed = MORE.get(name.partition("::")[0], ALLOWED)
                _leave_out(name, [(seconds, case) for case in cases], allowed)
            elif seconds > LONG and cases[0].path.parent.name in _IN_PARTS:
                long[cases[0].path] += [(seconds, case) for case in cases]
        for path, cases in long.items():
            _leave_out(path.stem, cases, OF_A_FILE)


def _leave_out(name: str, cases: list[tuple[float, pytest.Item]], allowed: float) -> None:
    """Mark all but each n-th, where together they take longer than allowed."""
    every = min(len(cases), math.ceil(sum(seconds for seconds, _ in cases) / allowed))
    for number, (_, case) in enumerate(cases):
        # Of several functions with the same three clients each client is run by some.
        if len(cases) > 1 and every > 1 and number % every != crc32(name.encode()) % every:
            case.add_marker(pytest.mark.thorough)


def measured() -> dict[str, float]:
    """Seconds a case, by ``file::function``."""
    return json.loads(SECONDS.read_text())


def seconds_of(report: Path) -> dict[str, float]:
    """What a JUnit report says of what takes so long that a part of it may be left out."""
    taken: dict[str, list[float]] = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.attrib["classname"].split(".")[-1]
        if case.find("skipped") is None and file.removeprefix("test_") not in WHOLE:
            taken[f"{file}::{case.attrib['name'].split('[')[0]}"].append(float(case.attrib["time"]))
    long = {
        name: sum(s) / len(s)
        for name, s in sorted(taken.items())
        if (sum(s) > ALLOWED if len(s) > _ALONE else sum(s) / len(s) > LONG)
    }
    return {name: round(mean, 2) for name, mean in long.items()}


if __name__ == "__main__":
    SECONDS.write_text(json.dumps(seconds_of(Path(sys.argv[1])), indent=1) + "\n")
