"""Diagnostics that are pulled: what the solver finds later is told once, to clients that want to know."""

from __future__ import annotations

from pathlib import Path

from client import Client, Json

REFRESH = "workspace/diagnostic/refresh"
# Its second line is decided by the solver.
SOLVED = """__global__ void shifted(float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  a[i] = a[i + n];
}
void run(float* a, int n, int blocks) { shifted<<<blocks, 128>>>(a, n); }
"""


def pulled(client: Client, previous: str | None = None) -> Json:
    document = {"uri": client.uri("a.cu")}
    params = {"textDocument": document, **({"previousResultId": previous} if previous else {})}
    return client.request("textDocument/diagnostic", params)


def test_a_client_that_pulled_too_early_is_told_once(tmp_path: Path) -> None:
    client = Client(tmp_path, refreshes=True)
    client.open("a.cu", SOLVED)
    early = pulled(client)
    client.settled("a.cu", 1)
    client.quiet(0.3)
    late = pulled(client, early["resultId"])
    assert client.requested.count(REFRESH) == (late["kind"] == "full")
    assert late["kind"] == "full", "the first tier has decided all: the test needs another kernel"
    version = client.edit("a.cu", (0, 0), (0, 0), "\n")
    client.settled("a.cu", version)
    client.quiet(0.3)  # it knows of its own edit, and pulls then
    assert client.requested.count(REFRESH) == 1
    assert client.close() == 0


def test_nobody_is_told_of_what_has_not_changed(tmp_path: Path) -> None:
    client = Client(tmp_path, refreshes=True)
    client.open("a.cu", SOLVED)
    client.settled("a.cu", 1)
    before = pulled(client)
    client.notify("textDocument/didSave", {"textDocument": {"uri": client.uri("a.h")}})
    client.quiet(1.0)
    assert pulled(client, before["resultId"])["kind"] == "unchanged"
    assert REFRESH not in client.requested
    assert client.close() == 0


def test_a_client_that_is_not_told_is_not_asked(tmp_path: Path) -> None:
    client = Client(tmp_path, options={"diagnostics": "pull"})
    client.open("a.cu", SOLVED)
    pulled(client)
    client.settled("a.cu", 1)
    client.quiet(0.3)
    assert REFRESH not in client.requested
    assert client.close() == 0
