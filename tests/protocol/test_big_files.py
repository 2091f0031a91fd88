"""Files of thousands of lines: told of in parts when they are opened, first what somebody looks at."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from client import Client, Json
from generated import large_file

TEXT = large_file(3000)
LAST = TEXT.count("\n")


def test_what_is_visible_comes_first_and_nothing_that_is_told_goes_again(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.open("a.cu", TEXT)
    extent = {"start": {"line": LAST - 60, "character": 0}, "end": {"line": LAST, "character": 0}}
    client.request("textDocument/inlayHint", {"textDocument": {"uri": client.uri("a.cu")}, "range": extent})
    client.settled("a.cu", 1, 240)
    told = [lines(m) for _, m in client.notifications if m["method"].endswith("publishDiagnostics")]
    first, last = told[0], told[-1]
    assert 0 < len(first) < len(last) / 2
    assert max(first) == max(last) and min(first) > min(last)  # from the end of the file upwards
    for before, after in pairwise(told):
        assert set(before) <= set(after)
    states = [m["params"] for _, m in client.notifications if m["method"] == "cuda-lsp/fileStatus"]
    assert {len(state["kernels"]) for state in states} == {len(states[-1]["kernels"])}
    assert not states[0]["refined"] and states[-1]["refined"]
    waiting = [k for k in states[0]["kernels"] if k["reasons"] == ["its analysis has just begun"]]
    assert waiting and all(kernel["verdict"] == "undecided" for kernel in waiting)
    assert client.close() == 0


def lines(message: Json) -> list[int]:
    """Where findings are."""
    return sorted(d["range"]["start"]["line"] for d in message["params"]["diagnostics"])
