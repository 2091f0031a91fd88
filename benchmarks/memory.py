"""Resident memory with 20 open files, through a real client over stdio: the server and its solver processes.

    .venv/bin/python benchmarks/memory.py FOLDER [--files 20]

Opens the largest files with kernels of the folder, types in each, waits until the solver has finished with
them, and reads ``/proc`` (Linux). Prints the peak and the final sum of resident megabytes.
"""

from __future__ import annotations

import argparse
import re
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "protocol"), str(ROOT / "benchmarks")]

from client import Client  # noqa: E402
from corpora import sources  # noqa: E402


def family(process: int) -> list[int]:
    """A process and its descendants."""
    found = [process]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in children.read_text().split()]
    return found


def resident(process: int) -> float:
    """Megabytes; shared pages count once, split among those that share them; 0 when it is gone."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    match = re.search(r"^Pss:\s+(\d+) kB", text, re.M)
    return int(match[1]) / 1024 if match else 0.0


class Peak(threading.Thread):
    """Watches the family's memory twice a second."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process, self.peak, self.last = process, 0.0, 0.0
        self.parts, self.at_peak = [0.0], [0.0]

    def run(self) -> None:
        while True:
            self.look()
            time.sleep(0.5)

    def look(self) -> None:
        try:
            self.parts = [resident(p) for p in family(self.process)]
        except OSError:  # a process ended while we looked
            return
        self.last = sum(self.parts)
        if self.last > self.peak:
            self.peak, self.at_peak = self.last, self.parts


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=20)
    arguments = parser.parse_args()
    root = arguments.folder.resolve()
    files = [path for path in sources(root) if path.suffix == ".cu"]
    chosen = sorted(files, key=lambda path: path.stat().st_size, reverse=True)[: arguments.files]
    client = Client(root)
    watch = Peak(client.process.pid)
    watch.start()
    names = [str(path.relative_to(root)) for path in chosen]
    started = time.monotonic()
    for name, path in zip(names, chosen, strict=True):
        text = path.read_text("utf-8", "replace")
        client.open(name, text)
        for letter in "// typed":
            client.edit(name, (0, 0), (0, 0), letter)
        client.settled(name, client.versions[name], 120)
    client.quiet(3)
    watch.look()
    peak, rest = (", ".join(f"{part:.0f}" for part in parts) for parts in (watch.at_peak, watch.parts))
    print(f"{len(names)} files in {time.monotonic() - started:.0f} s")
    print(f"peak {watch.peak:.0f} MB ({peak}), at rest {watch.last:.0f} MB ({rest})")
    client.close()


if __name__ == "__main__":
    main()
