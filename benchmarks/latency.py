"""Keystroke to squiggle, through a real client over stdio.

Every edit is inside a kernel body: a statement is typed letter by letter, the last letters are taken back, a
barrier is removed and put back. For each: time to the first publish of that version, and to the end of
refinement. Run ``.venv/bin/python benchmarks/latency.py``; prints a table, writes ``latency.json`` beside it.
With folders as arguments: files with kernels of them instead, spread evenly, into ``latency-corpora.json``;
where they lie, among their headers and host code, as people type in them (nothing is written there).
``--every 80``: a letter every 80 ms at least, while what earlier ones started in the background goes on.
``--actions``: after each edit the client asks for the code actions of the kernel's findings, as editors do.
``--big``: 3,000 lines alone, opened as soon as the server is started (cold), and by one that waits for them
(warm), into ``latency-big.json``. Each row also has what passes from opening a file to its first squiggle, to
the last one, and to the end of refinement. The server starts as it does at a user's, from compiled bytecode,
and has a cache of its own. Files of ours are on the disk, in a folder each.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

from attrs import frozen
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "protocol"), str(ROOT / "benchmarks")]

from client import Client  # noqa: E402
from generated import large_file  # noqa: E402

_OPENING = ("opened: first", "all found", "refined")
_WARM_S = 4.0  # seconds in which a server has started all that it starts
TYPED = "  int q = n;"
KERNEL = re.compile(r"__global__[^;{]*\{", re.S)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def edits(text: str, kernels: int) -> list[tuple[tuple[int, int], tuple[int, int], str, bool]]:
    """(start, end, new text, settle): typing in each of up to ``kernels`` kernels, then a barrier."""
    found: list[tuple[tuple[int, int], tuple[int, int], str, bool]] = []
    starts = [text.count("\n", 0, m.end()) for m in KERNEL.finditer(text)]
    step = max(1, len(starts) // kernels)
    for line in starts[::step][:kernels]:
        column = len(text.splitlines()[line])
        for i, letter in enumerate(TYPED):
            found.append(((line, column + i), (line, column + i), letter, False))
        found.append(((line, column), (line, column + len(TYPED)), "", True))
    for number, content in enumerate(text.splitlines()):
        if "__syncthreads();" in content:
            at = content.index("__syncthreads();")
            found.append(((number, at), (number, at + 16), "", True))
            found.append(((number, at), (number, at), "__syncthreads();", True))
            break
    return found


Opened = tuple[float, float, float]
"""Milliseconds to the first squiggle (or the first publish of a file without), to most of them, and all."""


def opened(client: Client, name: str, text: str) -> Opened:
    began = time.perf_counter()
    client.open(name, text)
    settled = client.settled(name, 1, 120)[0]
    publish = "textDocument/publishDiagnostics"
    told = [(at, len(m["params"]["diagnostics"])) for at, m in client.notifications if m["method"] == publish]
    most = max(count for _, count in told)
    moments = [next(at for at, count in told if count >= wanted) for wanted in (min(1, most), most)]
    first, every, end = (1e3 * (at - began) for at in (*moments, settled))
    client.notifications.clear()
    return first, every, end


def measure(
    client: Client, name: str, text: str, kernels: int, every: float, actions: bool
) -> tuple[Opened, list[float], list[float]]:
    """Of opening; milliseconds to the first publish of each edit, to the end of refinement of each pause."""
    opening = opened(client, name, text)
    first: list[float] = []
    refined: list[float] = []
    for start, end, new, settle in edits(text, kernels):
        began = time.perf_counter()
        version = client.edit(name, start, end, new)
        if actions:
            client.ask_actions(name, start[0], start[0] + 8)
        first.append(1e3 * (client.published(name, version)[0] - began))
        if settle:
            refined.append(1e3 * (client.settled(name, version, 60)[0] - began))
        client.notifications.clear()
        time.sleep(max(0.02, began + every - time.perf_counter()))
    return opening, first, refined


@frozen
class Case:
    """A file to type in, ``kernels`` of it. ``path``: where it lies, below a ``root`` that is opened."""

    name: str
    text: str
    kernels: int
    root: Path | None = None
    path: Path | None = None


def of_folders(folders: list[str], count: int) -> list[Case]:
    """Up to ``count`` files with kernels of at most 3,000 lines, one kernel of each to edit."""
    found: list[Case] = []
    for folder in folders:
        root = Path(folder).resolve()
        for path in sorted(root.rglob("*.cu")):
            text = path.read_text("utf-8", "replace")
            if KERNEL.search(text) and text.count("\n") <= 3000:
                found.append(Case(path.name, text, 1, root, path))
    return found[:: max(1, len(found) // count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--every", type=float, default=0.0, help="milliseconds between letters")
    parser.add_argument("--big", action="store_true", help="3,000 lines, by a cold and by a warm server")
    parser.add_argument("--actions", action="store_true", help="ask for code actions after each edit")
    arguments = parser.parse_args()
    every = arguments.every / 1000
    suffix = "-actions.json" if arguments.actions else ".json"
    if arguments.folders:
        target = Path(__file__).with_name(f"latency-corpora{suffix}")
        return report(of_folders(arguments.folders, 60), target, every, arguments.actions)
    if arguments.big:
        cold, warm = (Case(f"3000 lines, {how}", large_file(3000), 6) for how in ("cold", "warm"))
        return report(
            [cold, warm], Path(__file__).with_name("latency-big.json"), every, arguments.actions, alone=True
        )
    files = [Case(path.name, path.read_text(), 2) for path in sorted((ROOT / "fixtures").glob("*.cu"))]
    files += [Case("500 lines", large_file(500), 6), Case("3000 lines", large_file(3000), 6)]
    report(files, Path(__file__).with_name(f"latency{suffix}"), every, arguments.actions)


def report(cases: list[Case], target: Path, every: float, actions: bool, *, alone: bool = False) -> None:
    """Measure, print, write. ``alone``: each file by a server of its own, that waits but for the first."""
    table = Table(title="keystroke latency, ms")
    for title in ("file", *_OPENING, "edits", "first median", "first p99", "refined median", "refined p95"):
        table.add_column(title, justify="left" if title == "file" else "right")
    rows: list[dict[str, object]] = []
    openings: list[Opened] = []
    everything: tuple[list[float], list[float]] = ([], [])
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(ROOT / "cuda_lsp", quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        client, opened_folder = None, None
        for number, case in enumerate(cases):
            root, place = placed(case, Path(folder), number)
            if client is None or alone or root != opened_folder:
                if client is not None:
                    client.close()
                client, opened_folder = Client(root, CUDA_LSP_CACHE=str(Path(folder, "cache"))), root
                time.sleep(0.0 if alone and not number else _WARM_S)
            opening, first, refined = measure(client, place, case.text, case.kernels, every, actions)
            everything[0].extend(first)
            everything[1].extend(refined)
            openings.append(opening)
            rows.append(row(case.name, opening, first, refined))
        if client is not None:
            client.close()
    worst = max(o[0] for o in openings), max(o[1] for o in openings), max(o[2] for o in openings)
    rows.append(row("all", worst, *everything))
    for r in rows:
        table.add_row(*(f"{v:.1f}" if isinstance(v, float) else str(v) for v in r.values()))
    Console().print(table)
    result = {
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "load": [round(load, 1) for load in os.getloadavg()],
        "every ms": 1000 * every,
        "rows": rows,
    }
    target.write_text(json.dumps(result, indent=1) + "\n")


def placed(case: Case, folder: Path, number: int) -> tuple[Path, str]:
    """The folder that is opened, and the file's name below it."""
    if case.root is not None and case.path is not None:
        return case.root, str(case.path.relative_to(case.root))
    place = f"{number}/{case.name.replace(' ', '_').removesuffix('.cu')}.cu"
    saved = folder / place  # of a file that is on no disk clang keeps nothing between readings
    saved.parent.mkdir()
    saved.write_text(case.text)
    return folder, place


def row(name: str, opening: Opened, first: list[float], refined: list[float]) -> dict[str, object]:
    return {
        "file": name,
        **{title: round(value, 1) for title, value in zip(_OPENING, opening, strict=True)},
        "edits": len(first),
        "first median": round(statistics.median(first), 1),
        "first p99": round(percentile(first, 0.99), 1),
        "refined median": round(statistics.median(refined), 1),
        "refined p95": round(percentile(refined, 0.95), 1),
    }


if __name__ == "__main__":
    main()
