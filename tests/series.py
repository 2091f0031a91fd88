"""Long series of tests that are alike: every change runs a part of each, ``make thorough`` all.

A series is one test function with its cases. What a case takes is measured (``tests/data/seconds.json``, made
of a whole run's JUnit report), so that whoever adds cases need not think of it: of a series that takes more
than ``ALLOWED`` seconds each n-th case is run, the others are marked ``thorough``. A function with one or two
cases is no series; what is to be held whole, as labelled verdicts are, is named in ``WHOLE``.

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
ALLOWED = 2.5
"""Seconds of a processor that the cases of one function may take for each change."""

MORE = {"test_blind": 60.0}
"""The same of files that matter most: kernels whose truth was written first."""

WHOLE = ("fixtures", "labelled", "linear_patterns", "linear_reading", "projects")
"""Files whose every case counts: golden and labelled verdicts, patterns that a text could make slow."""


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
        for name, cases in series.items():
            allowed = MORE.get(name.partition("::")[0], ALLOWED)
            every = min(len(cases), math.ceil(len(cases) * self._seconds.get(name, 0) / allowed))
            for number, case in enumerate(cases):
                # Of several functions with the same three clients each client is run by some.
                if len(cases) > 2 and every > 1 and number % every != crc32(name.encode()) % every:
                    case.add_marker(pytest.mark.thorough)


def measured() -> dict[str, float]:
    """Seconds a case, by ``file::function``."""
    return json.loads(SECONDS.read_text())


def seconds_of(report: Path) -> dict[str, float]:
    """What a JUnit report says of series that take longer than ``ALLOWED``."""
    taken: dict[str, list[float]] = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.attrib["classname"].split(".")[-1]
        if case.find("skipped") is None and file.removeprefix("test_") not in WHOLE:
            taken[f"{file}::{case.attrib['name'].split('[')[0]}"].append(float(case.attrib["time"]))
    long = {name: sum(s) / len(s) for name, s in sorted(taken.items()) if sum(s) > ALLOWED and len(s) > 2}
    return {name: round(mean, 2) for name, mean in long.items()}


if __name__ == "__main__":
    SECONDS.write_text(json.dumps(seconds_of(Path(sys.argv[1])), indent=1) + "\n")
