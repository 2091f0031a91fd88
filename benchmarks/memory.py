"""Resident memory of the server and of all its children, through a real client over stdio (Linux).

    .venv/bin/python benchmarks/memory.py [FOLDER …] [--edits 3000] [--files 50]

Three questions, of the fixtures and of the files with kernels below the folders. **Soak**: edits over several
files, statements typed and taken back, barriers removed and put back, with the solver at work; the sum after
the first thousand edits and at the end. **Open**: the sum with many open files, at its peak and at rest.
**Closed**: the sum when they are closed again, and before the first was open. Prints a table and writes
``memory.json`` beside it. Sums are proportional set sizes: pages that processes share count once; for the
soak without files and libraries, whose share hangs on who else uses them.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "protocol"), str(ROOT / "benchmarks")]

from client import Client  # noqa: E402
from resident import family, megabytes, own_megabytes  # noqa: E402

KERNEL = re.compile(r"__global__[^;{]*\{", re.S)
FIRST = 1000  # edits after which memory may not grow
_SOAKED = 6  # files
REST = 3.0  # seconds of silence: longer than the pause after which the server collects


class Watch(threading.Thread):
    """The family's memory, four times a second."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process, self.peak = process, 0.0

    def run(self) -> None:
        while True:
            self.peak = max(self.peak, sum(megabytes(p) for p in family(self.process)))
            time.sleep(0.25)


class Session:
    """A server, its client, and its memory."""

    def __init__(self, root: Path) -> None:
        self.client = Client(root)
        self.watch = Watch(self.client.process.pid)
        self.watch.start()

    def at_rest(self, of: Callable[[int], float] = megabytes) -> tuple[float, list[int]]:
        """The sum, and the parts, when nothing has happened for a while."""
        self.client.quiet(REST)
        self.client.notifications.clear()
        gc.collect()
        looks: list[list[float]] = []
        for _ in range(4):  # a solver that is still at work has a process more
            looks.append([of(p) for p in family(self.client.process.pid)])
            time.sleep(1.0)
        parts = min(looks, key=sum)
        return sum(parts), [round(part) for part in parts]

    def close(self, name: str) -> None:
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": self.client.uri(name)}})


def sources(folders: list[Path], count: int) -> list[tuple[str, str]]:
    """The fixtures and as many files with kernels of the folders as are missing, spread evenly."""
    own = sorted((ROOT / "fixtures").glob("*.cu"))
    others = [p for folder in folders for p in sorted(folder.rglob("*.cu"))]
    others = [p for p in others if KERNEL.search(p.read_text("utf-8", "replace"))]
    wanted = max(0, count - len(own))
    step = max(1, len(others) // wanted) if wanted else 1
    chosen = [*own, *(others[::step][:wanted])][:count]
    return [(f"{n}-{p.name}", p.read_text("utf-8", "replace")) for n, p in enumerate(chosen)]


def opened_and_closed(files: list[tuple[str, str]]) -> dict[str, Any]:
    """Memory before, with all files open, and with none again, twice over."""
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(folder))
        session.client.open("first.cu", "__global__ void k(int *a) { a[threadIdx.x] = 1; }\n")
        session.client.settled("first.cu", 1)
        before, parts = session.at_rest()
        rows: dict[str, Any] = {"files": len(files), "before": before, "parts before": parts}
        for turn in ("", " again"):
            for name, text in files:
                session.client.open(name, text)
                session.client.settled(name, 1, 120)
                session.client.notifications.clear()
            rows[f"open{turn}"], rows[f"parts open{turn}"] = session.at_rest()
            for name, _ in files:
                session.close(name)
            rows[f"closed{turn}"], rows[f"parts closed{turn}"] = session.at_rest()
        rows["peak"] = session.watch.peak
        session.client.close()
    return rows


def soaked(files: list[tuple[str, str]], count: int) -> dict[str, Any]:
    """Memory after each tenth of so many edits of the files in turn."""
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(folder))
        for name, text in files:
            session.client.open(name, text)
            session.client.settled(name, 1, 120)
        marks: list[tuple[int, float]] = []
        done = 0
        stride = max(FIRST, count // 10)
        started = time.monotonic()
        while done < count:
            for name, text in files:
                done += _edited(session.client, name, text, done)
                session.client.notifications.clear()
            if done >= (stride * len(marks) if marks else FIRST) + (FIRST if marks else 0) or done >= count:
                marks.append((done, session.at_rest(own_megabytes)[0]))
                print(f"{done} edits, {time.monotonic() - started:.0f} s: {marks[-1][1]:.0f} MB", flush=True)
        _, parts = session.at_rest()
        session.client.close()
    later = max(size for _, size in marks[1:]) if len(marks) > 1 else marks[0][1]
    return {
        "edits": done,
        "sums": [[n, round(size)] for n, size in marks],
        "growth": later / marks[0][1] - 1,
        "peak": session.watch.peak,
        "parts": parts,
    }


def _edited(client: Client, name: str, text: str, seed: int) -> int:
    """A statement typed into a kernel and taken back, a barrier removed and put back; how many edits."""
    lines = text.splitlines()
    starts = [text.count("\n", 0, match.end()) for match in KERNEL.finditer(text)]
    line = starts[seed // 7 % len(starts)]
    column = len(lines[line])
    typed = f"  int q{seed} = {seed};"  # a text that there was not before
    for i, letter in enumerate(typed):
        client.published(name, client.edit(name, (line, column + i), (line, column + i), letter))
    version = client.edit(name, (line, column), (line, column + len(typed)), "")
    barriers = [n for n, content in enumerate(lines) if "__syncthreads();" in content]
    done = len(typed) + 1
    if barriers:
        number = barriers[seed // 7 % len(barriers)]
        at = lines[number].index("__syncthreads();")
        version = client.edit(name, (number, at), (number, at + 16), f"/* {seed} */")
        client.settled(name, version, 120)
        version = client.edit(name, (number, at), (number, at + len(f"/* {seed} */")), "__syncthreads();")
        done += 2
    client.settled(name, version, 120)
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--edits", type=int, default=3000)
    parser.add_argument("--files", type=int, default=50)
    arguments = parser.parse_args()
    folders = [folder.resolve() for folder in arguments.folders]
    result: dict[str, Any] = {"load": [round(load, 1) for load in os.getloadavg()]}
    if arguments.files:
        result["open and closed"] = opened_and_closed(sources(folders, arguments.files))
    if arguments.edits:
        result["soak"] = soaked(sources([], _SOAKED), arguments.edits)
    table = Table(title="resident memory of the server and its children, MB")
    table.add_column("of")
    table.add_column("what", justify="right")
    for part in ("open and closed", "soak"):
        for key, value in result.get(part, {}).items():
            table.add_row(f"{part}: {key}", f"{value:.2f}" if isinstance(value, float) else str(value))
    Console().print(table)
    target = Path(__file__).with_name("memory.json")
    known = json.loads(target.read_text()) if target.exists() else {}
    target.write_text(json.dumps({**known, **result}, indent=1) + "\n")


if __name__ == "__main__":
    main()
