"""A short part of ``make fuzz``, the same in every run, and every text that failed once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fuzz"))

import conversations
import faults
import settings
from mutation import text_of
from sources import SEEDS, Child, failures


def test_a_number_is_one_text():
    assert text_of(4711) == text_of(4711)
    assert len({text_of(number) for number in range(50)}) > 45


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    """One that is started again where a text is its end."""
    one = Child()
    yield one
    one.end()


@pytest.mark.xdist_group("seeds")
@pytest.mark.parametrize("path", sorted(SEEDS.glob("*.cu")), ids=lambda path: path.stem)
def test_what_failed_once_does_not_fail_again(child: Child, path: Path):
    assert child.ask(path.read_bytes().decode("utf-8", "surrogatepass")) is None


def test_texts_that_nobody_should_write():
    assert list(failures(range(10_000_000, 10_000_150))) == []


def test_settings_databases_and_directives_that_nobody_should_write():
    assert list(settings.failures([*settings.SEEDS, *range(20_000_000, 20_000_150)])) == []


@pytest.mark.skipif(sys.platform != "linux", reason="it looks for the server's processes in /proc")
@pytest.mark.parametrize("number", [*faults.SEEDS, 30_000_001])
def test_a_server_whose_children_and_disk_fail(number: int):
    assert faults.tried(number, most=4) is None


def test_a_client_that_does_anything_ends_as_a_fresh_one_would(tmp_path: Path):
    assert conversations.converse(tmp_path, seed=40_000_001, messages=120) > 0  # findings that were compared
