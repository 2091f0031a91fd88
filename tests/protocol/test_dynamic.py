""" "Run dynamic check" through a real client: confirmed, stale after an edit, back after undo, cancelled."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from client import Client

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

RACY = """__global__ void neighbour(int* out) {
    __shared__ int s[65];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[threadIdx.x + 1];
}
void launch(int* out) { neighbour<<<1, 64>>>(out); }
"""
SEEN = "seen on CPU emulator"


@pytest.fixture(params=["utf-8", "utf-16", "utf-32"])
def trusted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    found = Client(tmp_path, request.param, {"trusted": True, "engine": "emulator"}, **cache)
    yield found
    found.close()


def check(client: Client, name: str, kernel: str) -> None:
    arguments = [client.uri(name), kernel]
    client.request(
        "workspace/executeCommand", {"command": "cuda-lsp.runDynamicCheck", "arguments": arguments}, 60
    )


def messages(client: Client, name: str, version: int, text: str, timeout: float = 30.0) -> list[str]:
    """The messages of diagnostics for this version of which one holds ``text``."""

    def wanted(m: dict[str, Any]) -> bool:
        p = m.get("params", {})
        ours = m["method"] == "textDocument/publishDiagnostics" and p["uri"] == client.uri(name)
        return ours and p.get("version") == version and any(text in d["message"] for d in p["diagnostics"])

    return [d["message"] for d in client.wait(wanted, timeout)[1]["params"]["diagnostics"]]


def shown(client: Client) -> list[str]:
    return [m["params"]["message"] for _, m in client.notifications if m["method"] == "window/showMessage"]


@needs_nvcc
def test_a_click_confirms_the_race_and_the_result_belongs_to_the_text(trusted: Client) -> None:
    trusted.open("a.cu", f"// π\n{RACY}")
    trusted.settled("a.cu", 1)
    check(trusted, "a.cu", "neighbour")
    assert messages(trusted, "a.cu", 1, SEEN)
    version = trusted.edit("a.cu", (4, 27), (4, 27), " ")  # another text of the kernel
    assert not any(SEEN in d["message"] for d in trusted.diagnostics("a.cu", version))
    version = trusted.edit("a.cu", (4, 27), (4, 28), "")  # undone
    assert messages(trusted, "a.cu", version, SEEN)


@needs_nvcc
def test_a_result_moves_with_its_kernel(trusted: Client) -> None:
    trusted.open("a.cu", RACY)
    trusted.settled("a.cu", 1)
    check(trusted, "a.cu", "neighbour")
    messages(trusted, "a.cu", 1, SEEN)
    version = trusted.edit("a.cu", (0, 0), (0, 0), "\n\n")
    uri = trusted.uri("a.cu")

    def moved(m: dict[str, Any]) -> bool:
        p = m.get("params", {})
        ours = m["method"] == "textDocument/publishDiagnostics" and p["uri"] == uri
        return ours and p.get("version") == version

    diagnostics = trusted.wait(moved, 20)[1]["params"]["diagnostics"]
    lines = [d["range"]["start"]["line"] for d in diagnostics if SEEN in d["message"]]
    assert lines == [5]


@needs_nvcc
def test_code_that_does_not_compile_gives_one_clear_message(trusted: Client) -> None:
    trusted.open("a.cu", RACY.replace("void launch", "int broken = nowhere;\nvoid launch"))
    trusted.settled("a.cu", 1)
    check(trusted, "a.cu", "neighbour")
    trusted.quiet(0.3)
    assert any("nowhere" in message for message in shown(trusted))


def test_an_untrusted_workspace_runs_nothing(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.open("a.cu", RACY)
    client.settled("a.cu", 1)
    check(client, "a.cu", "neighbour")
    client.quiet(0.2)
    assert any("trust" in message for message in shown(client))
    client.close()


def test_a_kernel_that_is_not_there_is_told(trusted: Client) -> None:
    trusted.open("a.cu", RACY)
    trusted.settled("a.cu", 1)
    check(trusted, "a.cu", "nothing")
    trusted.quiet(0.2)
    assert any("not analysed" in message for message in shown(trusted))


PROGRAM = """int main(int argc, char** argv) {
    int* out;
    cudaMalloc(&out, 256);
    neighbour<<<1, 64>>>(out);
    return cudaDeviceSynchronize();
}
"""


@needs_nvcc
def test_a_click_above_main_runs_the_program_and_annotates_its_kernels(trusted: Client) -> None:
    text = RACY.replace("void launch(int* out) { neighbour<<<1, 64>>>(out); }\n", PROGRAM)
    trusted.open("a.cu", text)
    trusted.settled("a.cu", 1)
    given = {"textDocument": {"uri": trusted.uri("a.cu")}}
    lenses = trusted.request("textDocument/codeLens", given)
    main = next(lens["command"] for lens in lenses if "program" in lens["command"]["title"])
    line = next(lens["range"]["start"]["line"] for lens in lenses if lens["command"] == main)
    assert text.splitlines()[line].startswith("int main")
    given = {"command": main["command"], "arguments": main["arguments"]}
    trusted.request("workspace/executeCommand", given, 60)
    assert messages(trusted, "a.cu", 1, SEEN)
    assert any("exit status 0" in message for message in shown(trusted)), shown(trusted)
