"""A short part of ``make fuzz``, the same in every run, and every text that failed once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fuzz"))

from mutation import text_of
from sources import SEEDS, Child, failures


def test_a_number_is_one_text():
    assert text_of(4711) == text_of(4711)
    assert len({text_of(number) for number in range(50)}) > 45


@pytest.mark.parametrize("path", sorted(SEEDS.glob("*.cu")), ids=lambda path: path.stem)
def test_what_failed_once_does_not_fail_again(path: Path):
    child = Child()
    try:
        assert child.ask(path.read_bytes().decode("utf-8", "surrogatepass")) is None
    finally:
        child.end()


def test_texts_that_nobody_should_write():
    assert list(failures(range(10_000_000, 10_000_150))) == []
