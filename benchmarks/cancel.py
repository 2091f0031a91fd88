"""How soon a cancelled dynamic check is over: its answer, the end of its processes, the next check's start.

A kernel without end runs on the emulator, is cancelled by ``window/workDoneProgress/cancel``, and is run
again at once, through a real client over stdio. Milliseconds from the cancellation to: the request's answer;
the moment when no process of the run is left; the next run's ``running``, compilation kept in the cache.
Run ``.venv/bin/python benchmarks/cancel.py``; needs nvcc.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "protocol"), str(ROOT / "tests"), str(ROOT / "benchmarks")]

from client import Client  # noqa: E402
from test_cancel import SLOW, by_progress, command, stage, workers  # noqa: E402

_TIMES = int(os.environ.get("TIMES", "30"))
_WORKER = "cuda_lsp.dynamic.worker"
_LONGEST = 10.0  # seconds


class Gone(threading.Thread):
    """Waits until there are no such processes; ``at``: when that was."""

    def __init__(self, processes: Callable[[], list[int]]) -> None:
        super().__init__()
        self._processes = processes
        self.at = 0.0

    def run(self) -> None:
        """Looks every millisecond."""
        alive, until = self._processes(), time.perf_counter() + _LONGEST
        while alive and time.perf_counter() < until:
            time.sleep(0.001)
            alive = [process for process in alive if Path(f"/proc/{process}").exists()]
        self.at = time.perf_counter()


def main() -> None:
    """Prints a table."""
    taken: dict[str, list[float]] = {"answer": [], "processes gone": [], "next check runs": []}
    with tempfile.TemporaryDirectory() as folder:
        options = {"trusted": True, "engine": "emulator"}
        client = Client(Path(folder), "utf-16", options, resolves=True, XDG_CACHE_HOME=f"{folder}/cache")
        client.open("a.cu", SLOW + "void launch(int* out) { slow<<<1, 32>>>(out); }\n")
        client.settled("a.cu", 1)
        request = command(client, "runDynamicCheck", client.uri("a.cu"), "slow")
        stage(client, "running")
        for _ in range(_TIMES):
            time.sleep(0.3)
            gone = Gone(lambda: workers(client, _WORKER))
            began = time.perf_counter()
            by_progress(client, request)
            gone.start()
            client.answer(request, _LONGEST)
            taken["answer"].append(time.perf_counter() - began)
            client.notifications.clear()
            request = command(client, "runDynamicCheck", client.uri("a.cu"), "slow")
            stage(client, "running")
            taken["next check runs"].append(time.perf_counter() - began)
            gone.join()
            taken["processes gone"].append(gone.at - began)
        by_progress(client, request)
        client.answer(request, _LONGEST)
        assert client.close() == 0
    for name, seconds in taken.items():
        worst, median = max(seconds), statistics.median(seconds)
        print(f"{name:18} median {1e3 * median:7.1f} ms   worst {1e3 * worst:7.1f} ms   of {len(seconds)}")


if __name__ == "__main__":
    main()
