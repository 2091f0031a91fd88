"""Each test that the table of docs/editors names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/editors/README.md").read_text(encoding="utf-8")
TABLE = PAGE[PAGE.index("| feature | test |") :]


def test_files_and_tests_that_are_named_exist() -> None:
    named = re.findall(r"`((?:[\w-]+/)*[\w.-]+\.(?:py|ts))(?: --\w+)?`((?:[:,]? ?`test_\w+`)*)", TABLE)
    assert len(named) > 25
    for file, tests in named:
        path = ROOT / (file if "/" in file else f"tests/protocol/{file}")
        text = path.read_text(encoding="utf-8")
        for test in re.findall(r"`(test_\w+)`", tests):
            assert f"def {test}(" in text, f"{file} has no {test}"


def test_each_named_test_is_behind_a_file() -> None:
    """So that none is passed over by the test above."""
    row_tests = re.findall(r"`(test_\w+)`", TABLE)
    behind = "".join(re.findall(r"\.py`:((?: ?`test_\w+`,?)+)", TABLE))
    assert sorted(row_tests) == sorted(re.findall(r"`(test_\w+)`", behind))
