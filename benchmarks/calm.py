"""Two thousand keystrokes over files that need the solver: what vanishes, what is stale, how long it takes.

Run ``.venv/bin/python benchmarks/calm.py [--keystrokes 2000] [--seed 1] [FILE …]``; by default a text with
rows that the solver decides, and fixtures. Prints a table and complaints, writes ``calm.json`` beside it.
``ms`` are of the clock, from a keystroke to the first publish of its text. ``CPU``: processor time of the
server and its analysis process in that time, which tells on a busy machine what a quiet one would take.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "protocol"), str(ROOT / "benchmarks")]

from client import Client  # noqa: E402
from keystrokes import Typist  # noqa: E402
from latency import percentile  # noqa: E402
from test_calm import ROWS  # noqa: E402

FIXTURES = ("matmul.cu", "stencil.cu", "reduce.cu", "transpose.cu", "histogram.cu", "labelled/matrix.cu")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--keystrokes", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    paths = arguments.files or [ROOT / "fixtures" / name for name in FIXTURES]
    texts = [("rows.cu", ROWS)] if not arguments.files else []
    texts += [(path.name, path.read_text()) for path in paths]
    each = -(-arguments.keystrokes // len(texts))  # at least so many in all
    table = Table(title=f"{each * len(texts)} keystrokes, seed {arguments.seed}")
    for title in (
        "file",
        "findings",
        "keystrokes",
        "median ms",
        "p99 ms",
        "median CPU",
        "p99 CPU",
        "complaints",
    ):
        table.add_column(title, justify="left" if title == "file" else "right")
    rows: list[dict[str, object]] = []
    complaints: list[str] = []
    everything: tuple[list[float], list[float]] = ([], [])
    with tempfile.TemporaryDirectory() as folder:
        client = Client(Path(folder))
        for number, (name, text) in enumerate(texts):
            typist = Typist(client, f"{number}-{name}", text, arguments.seed)
            typist.type(each)
            typist.settle()
            took = typist.milliseconds, typist.processor_ms
            rows.append(row(name, typist.findings, took, typist.complaints))
            complaints += typist.complaints
            for all_of, of in zip(everything, took, strict=True):
                all_of += of
        client.close()
    findings = sum(int(str(r["findings"])) for r in rows)
    rows.append(row("all", findings, everything, complaints))
    for r in rows:
        table.add_row(*map(str, r.values()))
    Console().print(table)
    print("\n".join(complaints))
    result = {"seed": arguments.seed, "load": [round(load, 1) for load in os.getloadavg()], "rows": rows}
    Path(__file__).with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")


def row(
    name: str, findings: int, took: tuple[list[float], list[float]], complaints: list[str]
) -> dict[str, object]:
    milliseconds, processor = took
    return {
        "file": name,
        "findings": findings,
        "keystrokes": len(milliseconds),
        "median ms": round(statistics.median(milliseconds), 1),
        "p99 ms": round(percentile(milliseconds, 0.99), 1),
        "median CPU": round(statistics.median(processor), 1),
        "p99 CPU": round(percentile(processor, 0.99), 1),
        "complaints": len(complaints),
    }


if __name__ == "__main__":
    main()
