"""What many open files cost, and that closing them gives it back: ``benchmarks/memory.py`` in small."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from client import Client
from resident import family, own_megabytes

FIXTURES = sorted((Path(__file__).resolve().parents[2] / "fixtures").glob("*.cu"))
PAUSE = 2.0  # seconds: longer than the pause of the typing in which the server collects
FILES = 12
MOST_OPEN = 500  # megabytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def at_rest(client: Client) -> float:
    client.quiet(PAUSE)
    return sum(own_megabytes(process) for process in family(client.process.pid))


def opened(client: Client, turn: int) -> float:
    """Megabytes with files open whose kernels no other turn has."""
    for number in range(FILES):
        text = FIXTURES[number % len(FIXTURES)].read_text()
        name = f"{turn}-{number}.cu"
        client.open(name, f"constexpr int number_{turn}_{number} = {number};\n{text}")
        client.settled(name, 1)
    return at_rest(client)


def closed(client: Client, turn: int) -> float:
    for number in range(FILES):
        uri = client.uri(f"{turn}-{number}.cu")
        client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    return at_rest(client)


def test_open_files_cost_little_and_closed_ones_nothing(tmp_path: Path) -> None:
    client = Client(tmp_path)
    try:
        opened(client, 0)
        before = closed(client, 0)  # all that is imported and kept once is there
        most = opened(client, 1)
        assert most < MOST_OPEN
        assert most > before + 5  # what is measured is what the files take
        closed(client, 1)
        opened(client, 2)
        assert closed(client, 2) < before + 0.2 * (most - before) + 3
    finally:
        client.process.kill()
