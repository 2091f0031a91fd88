"""The command line and the settled editor say the same of the same text: findings, errors and verdicts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from client import Client, Json

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FILES = (
    *("figure1.cu", "figure2.cu", "histogram.cu", "reduce.cu", "stencil.cu", "transpose.cu"),
    *("demo/divergent.cu", "demo/last_warp.cu", "demo/matmul.cu", "demo/neighbour.cu"),
    *("labelled/assumptions.cu", "labelled/barriers.cu", "labelled/lock_step.cu", "labelled/loops.cu"),
    *("labelled/shared_buffers.cu", "labelled/tables.cu", "labelled/wraps.cu"),
)
SEVERITIES = {"error": 1, "warning": 2, "information": 3, "hint": 4}

Told = tuple[list[tuple[str, int, int]], list[tuple[str, str]]]
"""(code, line, severity) of what is told, and (name, verdict in the editor's words) of kernels."""


@pytest.fixture(scope="module")
def checked() -> dict[str, Json]:
    """What the command line prints of each file."""
    options = ["--format", "json", "--fail-on", "never", "--jobs", "1"]
    command = [sys.executable, "-m", "cuda_lsp", "check", *options, *FILES]
    done = subprocess.run(command, cwd=FIXTURES, capture_output=True, text=True, check=True)
    return {file["path"]: file for file in json.loads(done.stdout)["files"]}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    found = Client(FIXTURES, options={"trusted": True})
    yield found
    assert found.close() == 0


def _line(extent: Json | None) -> int:
    return extent["start"]["line"] if extent else 1


def of_command_line(file: Json) -> Told:
    findings = {(f["code"], _line(f["range"]), SEVERITIES[f["severity"]]) for f in file["findings"]}
    errors = {("", _line(e["range"]), SEVERITIES[e["severity"]]) for e in file["errors"]}
    parting = {f["kernel"] for f in file["findings"] if f["code"] == "barrier-divergence"}
    return sorted(findings | errors), sorted((k["name"], _shown(k, parting)) for k in file["kernels"])


def _shown(kernel: Json, parting: set[str]) -> str:
    """The word of status bar and lens: free of races, and a barrier missed, is not called race-free there."""
    missed = kernel["verdict"] == "race-free" and kernel["name"] in parting
    return "barrier missed" if missed else kernel["verdict"]


def of_editor(client: Client, name: str) -> Told:
    client.open(name, (FIXTURES / name).read_text())
    _, status = client.settled(name, 1, 120)
    last = [
        m["params"]["diagnostics"]
        for _, m in client.notifications
        if m["method"].endswith("publishDiagnostics") and m["params"]["uri"] == client.uri(name)
    ][-1]
    client.notify("textDocument/didClose", {"textDocument": {"uri": client.uri(name)}})
    shown = {(d.get("code", ""), d["range"]["start"]["line"] + 1, d["severity"]) for d in last}
    return sorted(shown), sorted((k["name"], k["verdict"]) for k in status["kernels"])


@pytest.mark.parametrize("name", FILES)
def test_both_say_the_same(client: Client, checked: dict[str, Json], name: str) -> None:
    assert of_editor(client, name) == of_command_line(checked[name])
