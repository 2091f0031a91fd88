"""From the click on "Run dynamic check" to the annotated editor, through a real client over stdio.

Each fixture is checked in a new cache, so that nvcc runs: right after its analysis (``at once``), and some
seconds later, in which the server has made ready (``cold``); then again, the build being cached.
``python benchmarks/click_to_answer.py [emulator|gpu [COUNT]] [--out DIRECTORY]`` prints a table and writes
``click.json`` or ``click-gpu.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "protocol"), str(ROOT / "benchmarks")]

from client import Client  # noqa: E402

_LOOKS = 8.0  # seconds
FILES = tuple(sorted(path.stem for path in (ROOT / "fixtures").glob("*.cu")))


def click(client: Client, name: str, version: int, kernel: str) -> float:
    """Seconds from the command to the diagnostics that the result brings."""
    client.notifications.clear()
    began = time.perf_counter()
    arguments = [client.uri(name), kernel]
    client.request(
        "workspace/executeCommand", {"command": "cuda-lsp.runDynamicCheck", "arguments": arguments}, 120
    )
    arrived = client.published(name, version)[0]
    shown = [m["params"] for _, m in client.notifications if m["method"] == "window/showMessage"]
    problems = [one for one in shown if one["type"] < 3]  # the outcome is information
    assert not problems, problems
    return arrived - began


def clicks(text: str, kernel: str, engine: str, wait: float, count: int) -> list[float]:
    """Seconds of clicks, one by one, in a new server and cache; the first ``wait`` s after the analysis."""
    with tempfile.TemporaryDirectory() as folder:
        cache = {"XDG_CACHE_HOME": str(Path(folder) / "cache")}
        client = Client(Path(folder), "utf-16", {"trusted": True, "engine": engine}, **cache)
        client.open("a.cu", text)
        client.settled("a.cu", 1, 60)
        time.sleep(wait)
        took = [click(client, "a.cu", 1, kernel) for _ in range(count)]
        client.close()
    return took


def kernels(text: str) -> list[str]:
    return re.findall(r"__global__\s+void\s+(\w+)\s*\(", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", nargs="?", choices=("emulator", "gpu"), default="emulator")
    parser.add_argument("count", nargs="?", type=int, help="of fixtures; all without it")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    engine = options.engine
    rows: list[dict[str, object]] = []
    for stem in FILES[: options.count]:
        text = (ROOT / "fixtures" / f"{stem}.cu").read_text()
        name = kernels(text)[0]
        at_once, *_ = clicks(text, name, engine, 0, 1)
        cold, *again = clicks(text, name, engine, _LOOKS, 4)
        times = {"at once": at_once, "cold": cold, "cached": statistics.median(again)}
        times = {what: round(seconds, 2) for what, seconds in times.items()}
        rows.append({"file": stem, "kernel": name, **times})
        print(rows[-1], flush=True)
    result = {"engine": engine, "machine": platform.machine(), "cores": os.cpu_count(), "seconds": rows}
    name = "click.json" if engine == "emulator" else f"click-{engine}.json"
    (options.out / name).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
