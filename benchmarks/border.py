"""What a keystroke pays for the analysis being a process of its own.

The same edits of the same files, one after the other, by the same analysis: in a thread of this process, and
behind the border (``Session``), each from the change to the first report of that text. They take turns, file
by file, so that what else the machine does falls on both. ``server CPU``: the processor time of this process
until the report of the other is there, which is the server's half of the border, on a busy machine too.
``difference``: of each edit, what the own process took more; its median is what the border costs, for edits
of one file take 5 to 50 ms each and the two medians are of different edits.
Run ``.venv/bin/python benchmarks/border.py``; prints a table and writes ``border.json`` beside it.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from generated import large_file  # noqa: E402
from latency import edits, percentile  # noqa: E402

from cuda_lsp.config import Settings  # noqa: E402
from cuda_lsp.model import FileReport  # noqa: E402
from cuda_lsp.server.analysis.documents import Documents, Listener  # noqa: E402
from cuda_lsp.server.analysis.slate import Slate  # noqa: E402
from cuda_lsp.server.session import Session  # noqa: E402

_ROUNDS = int(os.environ.get("ROUNDS", "3"))
_SERVER = "server CPU"
_MORE = "difference"
_BETWEEN = 0.02  # seconds from a report to the next edit
_PATIENCE = 60.0

Change = Callable[[str, Path, str, int], None]


class _Reported(Listener):
    """When there was the first report of each version, in this process's time."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._first: dict[tuple[str, int], float] = {}

    def reported(self, uri: str, report: FileReport) -> None:
        with self._condition:
            self._first.setdefault((uri, report.version or 0), time.perf_counter())
            self._condition.notify_all()

    def closed(self, uri: str) -> None:
        """Nobody asks."""

    def of(self, uri: str, version: int) -> float:
        with self._condition:
            assert self._condition.wait_for(lambda: (uri, version) in self._first, _PATIENCE)
            return self._first[uri, version]


def here() -> tuple[Change, _Reported, Callable[[str], None]]:
    """The analysis in a thread of this process."""
    told = _Reported()
    documents = Documents(Settings(), told, Slate(Slate.file()), 0)
    return lambda u, p, t, v: documents.change(v, u, p, t), told, documents.close


def behind() -> tuple[Change, _Reported, Callable[[str], None]]:
    """The analysis in a process of its own."""
    told = _Reported()
    session = Session(Settings(), lambda uri, report, refined: told.reported(uri, report))
    return session.change, told, session.close


def edited(lines: list[str], start: tuple[int, int], end: tuple[int, int], new: str) -> None:
    """Replace a part of one line."""
    line = lines[start[0]]
    lines[start[0]] = line[: start[1]] + new + line[end[1] :]


def milliseconds(
    side: tuple[Change, _Reported, Callable[[str], None]], name: str, text: str
) -> tuple[list[float], list[float]]:
    """From each edit to its first report: of the clock, and of this process's processor time."""
    change, told, close = side
    uri, path, lines = f"file:///{name}", Path("/") / name, text.split("\n")
    change(uri, path, text, 1)
    told.of(uri, 1)
    time.sleep(1.0)
    found: list[float] = []
    spent: list[float] = []
    for version, (start, end, new, _) in enumerate(edits(text, 2), 2):
        edited(lines, start, end, new)
        now = "\n".join(lines)
        began, before = time.perf_counter(), time.process_time()
        change(uri, path, now, version)
        found.append(1e3 * (told.of(uri, version) - began))
        spent.append(1e3 * (time.process_time() - before))
        time.sleep(_BETWEEN)
    close(uri)
    return found, spent


def main() -> None:
    files = [(path.name, path.read_text()) for path in sorted((ROOT / "fixtures").glob("*.cu"))]
    files += [("lines500.cu", large_file(500)), ("lines3000.cu", large_file(3000))]
    sides = {"in process": here(), "own process": behind()}
    columns = (*sides, _SERVER, _MORE)
    taken: dict[str, dict[str, list[float]]] = {name: {side: [] for side in columns} for name, _ in files}
    for number in range(_ROUNDS):
        for name, text in files:
            rounds: list[list[float]] = []
            for side in sides if number % 2 else reversed(sides):
                named = f"{number}{side.replace(' ', '')}{name}"  # nothing is kept from the round before
                found, spent = milliseconds(sides[side], named, text)
                taken[name][side] += found
                taken[name][_SERVER] += spent if side == "own process" else []
                rounds.append(found if side == "own process" else [-ms for ms in found])
            taken[name][_MORE] += map(sum, zip(*rounds, strict=True))
    rows = {name: _row(of) for name, of in taken.items()}
    rows["all"] = _row({side: [ms for of in taken.values() for ms in of[side]] for side in columns})
    for name, row in rows.items():
        print(f"{name:18}", *(f"{key} {value:8.2f}" for key, value in row.items()))
    machine = {"processors": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()[1]}
    told = json.dumps({"machine": machine, "rows": rows}, indent=1)
    Path(__file__).with_suffix(".json").write_text(told + "\n")
    os._exit(0)


def _row(of: dict[str, list[float]]) -> dict[str, float]:
    values = {f"{side} p50": statistics.median(ms) for side, ms in of.items()}
    values |= {f"{side} p99": percentile(ms, 0.99) for side, ms in of.items()}
    return {**{key: round(value, 2) for key, value in values.items()}, "edits": len(of["in process"])}


if __name__ == "__main__":
    main()
