"""A whole workspace that is pulled: what is the same is not sent again, and who waits can cancel it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from client import Client, Json
from test_cancel import by_progress, by_request, either_way, workers

RACY = """__global__ void neighbour(int *out) {
  __shared__ int s[65];
  s[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = s[threadIdx.x + 1];
}
void launch(int *out) { neighbour<<<1, 64>>>(out); }
"""
MENDED = RACY.replace("+ 1", "")
FOUND = ["shared-race", "shared-uninitialised"]


def connected(folder: Path, *, trusted: bool = True, hears: bool = False) -> Client:
    options = {"trusted": trusted}
    cache = str(folder.parent / f"{folder.name} cache")
    return Client(folder, "utf-16", options, refreshes=True, hears=hears, XDG_CACHE_HOME=cache)


def asking(reports: list[Json] = [], **more: Any) -> Json:  # noqa: B006 - is only read
    known = [{"uri": r["uri"], "value": r["resultId"]} for r in reports if "resultId" in r]
    return {"identifier": "cuda-lsp", "previousResultIds": known, **more}


def pulled(client: Client, before: list[Json] = [], **more: Any) -> list[Json]:  # noqa: B006
    return client.request("workspace/diagnostic", asking(before, **more), 120)["items"]


def by_name(reports: list[Json]) -> dict[str, Any]:
    """The codes of each file; ``unchanged`` where that is said."""
    return {
        Path(r["uri"]).name: [d["code"] for d in r["items"]] if r["kind"] == "full" else r["kind"]
        for r in reports
    }


def progress(client: Client, kind: str) -> list[Json]:
    shown = [m["params"] for _, m in client.notifications if m["method"] == "$/progress"]
    return [p for p in shown if p["value"]["kind"] == kind]


def test_all_files_are_pulled_and_what_is_the_same_is_not_sent_again(tmp_path: Path) -> None:
    for name in ("a.cu", "b.cu", "deep/c.cu"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(RACY)
    client = connected(tmp_path)
    assert client.capabilities["diagnosticProvider"]["workspaceDiagnostics"]
    client.open("a.cu", MENDED)  # not yet on the disk
    first = pulled(client)
    assert by_name(first) == {"a.cu": [], "b.cu": FOUND, "c.cu": FOUND}
    assert {Path(r["uri"]).name: r["version"] for r in first} == {"a.cu": 1, "b.cu": None, "c.cu": None}
    assert len(progress(client, "begin")) == len(progress(client, "end")) == 1
    second = pulled(client, first)
    assert by_name(second) == dict.fromkeys(("a.cu", "b.cu", "c.cu"), "unchanged")
    client.settled("a.cu", client.edit("a.cu", (3, 34), (3, 34), " + 1"))
    (tmp_path / "b.cu").write_text(MENDED)
    (tmp_path / "deep/c.cu").unlink()
    third = pulled(client, second)
    assert by_name(third) == {"a.cu": FOUND, "b.cu": [], "c.cu": []}
    assert [Path(r["uri"]).name for r in third if "resultId" not in r] == ["c.cu"]  # it is gone
    assert by_name(pulled(client, third)) == {"a.cu": "unchanged", "b.cu": "unchanged"}
    assert client.close() == 0


def test_who_hears_of_files_is_answered_at_once_until_one_changes(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(RACY)
    client = connected(tmp_path, hears=True)
    first = pulled(client)
    assert by_name(pulled(client, first)) == {"a.cu": "unchanged"}
    assert len(progress(client, "begin")) == 1
    (tmp_path / "a.cu").write_text(MENDED)
    changes = [{"uri": client.uri("a.cu"), "type": 2}]
    client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
    assert by_name(pulled(client, first)) == {"a.cu": []}
    assert len(progress(client, "begin")) == 2
    assert client.close() == 0


def test_the_progress_is_the_one_that_the_client_names(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(RACY)
    client = connected(tmp_path)
    pulled(client, workDoneToken=7)
    assert [p["token"] for kind in ("begin", "end") for p in progress(client, kind)] == [7, 7]
    assert "window/workDoneProgress/create" not in client.requested
    assert client.close() == 0


@either_way
def test_a_pull_is_cancelled_with_its_processes(tmp_path: Path, cancel: Any) -> None:
    for number in range(40):
        (tmp_path / f"{number}.cu").write_text(RACY.replace("neighbour", f"neighbour{number}"))
    client = connected(tmp_path)
    asked = client.ask("workspace/diagnostic", asking())
    client.begun("Checking")
    cancel(client, asked)
    error = client.answer(asked, 5)["error"]
    if cancel is by_progress:
        assert (error["code"], error["data"]) == (-32802, {"retriggerRequest": False})
    else:
        assert cancel is by_request and error["code"] == -32800
    client.quiet(0.3)
    assert progress(client, "end")[-1]["value"]["message"] == "cancelled"
    assert workers(client, "cuda_lsp.cli.child") == []
    assert client.close() == 0
    assert client.stderr == ""


def test_of_a_workspace_that_nobody_trusts_open_files_are_told_alone(tmp_path: Path) -> None:
    for name in ("a.cu", "b.cu"):
        (tmp_path / name).write_text(RACY)
    client = connected(tmp_path, trusted=False)
    client.open("a.cu", RACY)
    assert by_name(pulled(client)) == {"a.cu": FOUND}
    assert progress(client, "begin") == []
    assert client.close() == 0


@pytest.mark.parametrize("pulls", [True, False])
def test_the_command_publishes_nothing_for_who_pulls(tmp_path: Path, pulls: bool) -> None:
    (tmp_path / "a.cu").write_text(RACY)
    client = connected(tmp_path)
    if pulls:
        pulled(client)
    client.request("workspace/executeCommand", {"command": "cuda-lsp.checkWorkspace", "arguments": []}, 120)
    client.quiet(0.2)
    found = [m["params"] for _, m in client.notifications if m["method"].endswith("publishDiagnostics")]
    assert [[d["code"] for d in p["diagnostics"]] for p in found] == ([] if pulls else [FOUND])
    assert client.requested.count("workspace/diagnostic/refresh") == int(pulls)
    assert client.close() == 0
