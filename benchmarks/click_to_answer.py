"""From the click on "Run dynamic check" to the annotated editor, through a real client over stdio.

Each racy fixture is checked in a new cache (cold: nvcc runs) and again (the build is cached).
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
    problems = [m for _, m in client.notifications if m["method"] == "window/showMessage"]
    assert not problems, problems
    return arrived - began


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
        with tempfile.TemporaryDirectory() as folder:
            cache = {"XDG_CACHE_HOME": str(Path(folder) / "cache")}
            client = Client(Path(folder), "utf-16", {"trusted": True, "engine": engine}, **cache)
            client.open("a.cu", text)
            client.settled("a.cu", 1, 60)
            name = kernels(text)[0]
            cold = click(client, "a.cu", 1, name)
            again = [click(client, "a.cu", 1, name) for _ in range(3)]
            client.close()
        times = {"cold": round(cold, 2), "cached": round(statistics.median(again), 2)}
        rows.append({"file": stem, "kernel": name, **times})
        print(rows[-1], flush=True)
    result = {"engine": engine, "machine": platform.machine(), "cores": os.cpu_count(), "seconds": rows}
    name = "click.json" if engine == "emulator" else f"click-{engine}.json"
    (options.out / name).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
