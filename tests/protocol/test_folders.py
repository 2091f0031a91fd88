"""Folders with settings of their own: several of a workspace, and those below with a settings file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from client import Client, Json

pytestmark = pytest.mark.usefixtures("own_cache")

RACY = """__global__ void neighbour(int *out) {
  __shared__ int s[65];
  s[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = s[threadIdx.x + 1];
}
void launch(int *out) { neighbour<<<1, 64>>>(out); }
"""
QUIET = 'severity = { shared-race = "hint" }\n'


def severities(found: list[Json]) -> list[int]:
    return [d["severity"] for d in found if d.get("code") == "shared-race"]


def last_severities(client: Client, name: str, wanted: list[int]) -> list[int]:
    """Those of the first diagnostics of a file that are as wanted."""
    uri = client.uri(name)

    def is_it(m: Json) -> bool:
        ours = m["method"].endswith("publishDiagnostics") and m["params"]["uri"] == uri
        return ours and severities(m["params"]["diagnostics"]) == wanted

    return severities(client.wait(is_it)[1]["params"]["diagnostics"])


def test_each_folder_of_a_workspace_has_its_own_settings(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
    (tmp_path / "two/cuda-lsp.toml").write_text(QUIET)
    client = Client(tmp_path, folders=("one", "two", "three"))
    client.configured["three"] = {"severity": {"shared-race": "information"}}
    for name in ("one", "two", "three"):
        client.open(f"{name}/a.cu", RACY)
    assert last_severities(client, "one/a.cu", [1]) == [1]
    assert last_severities(client, "two/a.cu", [4]) == [4]
    assert last_severities(client, "three/a.cu", [3]) == [3]
    client.configured["one"] = {"severity": {"shared-race": "warning"}}
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    assert last_severities(client, "one/a.cu", [2]) == [2]
    assert client.close() == 0


def test_a_settings_file_below_the_folder_counts_for_what_is_below_it(tmp_path: Path) -> None:
    (tmp_path / "deep/down").mkdir(parents=True)
    (tmp_path / "deep/cuda-lsp.toml").write_text(QUIET)
    client = Client(tmp_path)
    client.open("a.cu", RACY)
    assert severities(client.diagnostics("a.cu", 1)) == [1]
    client.open("deep/down/b.cu", RACY)
    assert last_severities(client, "deep/down/b.cu", [4]) == [4]
    client.notifications.clear()
    version = client.edit("a.cu", (0, 0), (0, 0), "\n")
    assert severities(client.diagnostics("a.cu", version)) == [1]
    (tmp_path / "deep/down/cuda-lsp.toml").write_text(QUIET.replace("hint", "information"))
    change = {"uri": client.uri("deep/down/cuda-lsp.toml"), "type": 1}
    client.notify("workspace/didChangeWatchedFiles", {"changes": [change]})
    assert last_severities(client, "deep/down/b.cu", [3]) == [3]
    assert client.close() == 0


def test_settings_are_read_again_when_a_file_is_saved(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.open("a.cu", RACY)
    assert severities(client.diagnostics("a.cu", 1)) == [1]
    (tmp_path / "cuda-lsp.toml").write_text(QUIET)
    client.notify("textDocument/didSave", {"textDocument": {"uri": client.uri("a.cu")}})
    assert last_severities(client, "a.cu", [4]) == [4]
    assert client.close() == 0


def test_a_workspace_is_checked_on_request_and_files_that_nobody_has_open_are_told(tmp_path: Path) -> None:
    for name in ("a.cu", "b.cu", "deep/c.cu"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(RACY)
    client = Client(tmp_path, options={"trusted": True})
    client.open("a.cu", RACY.replace("+ 1", ""))  # mended here, not yet on the disk
    client.settled("a.cu", 1)
    client.request("workspace/executeCommand", {"command": "cuda-lsp.checkWorkspace", "arguments": []}, 120)
    assert client.begun("Checking").startswith("Checking the CUDA files")
    found = [m["params"] for _, m in client.notifications if m["method"].endswith("publishDiagnostics")]
    told = {Path(p["uri"]).name: [d["code"] for d in p["diagnostics"]] for p in found}
    both = ["shared-race", "shared-uninitialised"]
    assert told == {"a.cu": [], "b.cu": both, "c.cu": both}
    race = next(p for p in found if p["uri"].endswith("c.cu"))["diagnostics"][0]
    assert (race["range"]["start"], race["severity"]) == ({"line": 3, "character": 21}, 1)
    assert race["relatedInformation"][0]["location"]["range"]["start"]["line"] == 2
    (said,) = [m["params"]["message"] for _, m in client.notifications if m["method"] == "window/showMessage"]
    assert said == "3 files, 3 kernels: 3 racy, 0 undecided, 0 race-free; 6 findings"
    client.notifications.clear()
    (tmp_path / "b.cu").write_text(RACY.replace("+ 1", ""))
    client.request("workspace/executeCommand", {"command": "cuda-lsp.checkWorkspace", "arguments": []}, 120)
    gone = [m["params"] for _, m in client.notifications if m["method"].endswith("publishDiagnostics")]
    assert [p["diagnostics"] for p in gone if p["uri"].endswith("b.cu")] == [[]]
    assert client.close() == 0


def test_launches_that_a_check_of_the_workspace_found_are_offered(tmp_path: Path) -> None:
    for name, block in {"a.cu": "dim3(16, 4)", "b.cu": "dim3(16, 4)", "c.cu": "64"}.items():
        (tmp_path / name).write_text(RACY.replace("64>>>", f"{block}>>>"))
    client = Client(tmp_path, options={"trusted": True})
    client.open("new.cu", RACY.split("void launch")[0].replace("neighbour", "lonely"))
    client.settled("new.cu", 1)
    client.request("workspace/executeCommand", {"command": "cuda-lsp.checkWorkspace", "arguments": []}, 120)
    titles = [a["title"].split(": ")[1] for a in client.actions("new.cu", 1, "refactor")]
    assert titles == ["block 16×4, grid 1", "block 64, grid 1"]  # the commonest first
    assert client.close() == 0


def test_a_check_of_the_workspace_is_cancelled(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number}.cu").write_text(RACY.replace("neighbour", f"neighbour{number}"))
    client = Client(tmp_path, options={"trusted": True})
    asked = client.ask("workspace/executeCommand", {"command": "cuda-lsp.checkWorkspace", "arguments": []})
    client.begun("Checking")
    token = next(m["params"]["token"] for _, m in client.notifications if m["method"] == "$/progress")
    client.notify("window/workDoneProgress/cancel", {"token": token})
    client.answer(asked)
    assert not any(m["method"] == "window/showMessage" for _, m in client.notifications)
    assert client.close() == 0


def test_a_workspace_that_nobody_trusts_is_not_checked(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(RACY)
    client = Client(tmp_path)
    client.request("workspace/executeCommand", {"command": "cuda-lsp.checkWorkspace", "arguments": []})
    (said,) = [m["params"]["message"] for _, m in client.notifications if m["method"] == "window/showMessage"]
    assert "trusted" in said
    assert client.close() == 0


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_a_file_that_nobody_has_open_is_told_as_if_it_were(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.cu").write_text(RACY.replace("  out[", "  /* \u00fcber \U0001d6fc */ out["))
    (tmp_path / "broken.cu").write_text(RACY.replace("+ 1];", "+ /* \u00fc */ 1 oops;"))
    client = Client(tmp_path, encoding, options={"trusted": True})
    client.request("workspace/executeCommand", {"command": "cuda-lsp.checkWorkspace", "arguments": []}, 120)
    found = [m["params"] for _, m in client.notifications if m["method"].endswith("publishDiagnostics")]
    closed = {Path(p["uri"]).name: p["diagnostics"] for p in found}
    assert {d["severity"] for d in closed["broken.cu"]} == {1}  # what does not compile is an error here too
    for name in ("a.cu", "broken.cu"):
        client.open(name, (tmp_path / name).read_text())
        assert told(closed[name]) == told(client.diagnostics(name, 1))
    assert client.close() == 0


def told(found: list[Json]) -> list[Json]:
    """Diagnostics without what only open documents have."""
    kept = ("range", "severity", "code", "message", "relatedInformation")
    return sorted(({key: d.get(key) for key in kept} for d in found), key=str)
