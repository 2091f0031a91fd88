"""A program whose kernels are in headers: it runs from each of its files, and headers show what was seen."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from client import PATIENCE, Client

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

pytestmark = pytest.mark.usefixtures("own_cache")

TILES = """template <typename T, int N>
__global__ void turned(T* out, const T* in) {
    __shared__ T tile[N];
    tile[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = tile[N - 1 - threadIdx.x];
}
"""
MAIN = """#include "tiles.cuh"
int main() {
    float *out, *in;
    cudaMalloc(&out, 256);
    cudaMalloc(&in, 256);
    turned<float, 64><<<1, 64>>>(out, in);
    return cudaDeviceSynchronize();
}
"""
SEEN = "seen on CPU emulator"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    (tmp_path / "tiles.cuh").write_text(TILES)
    (tmp_path / "app.cu").write_text(MAIN)
    options = {"trusted": True, "engine": "emulator"}
    found = Client(tmp_path, "utf-16", options)
    yield found
    assert found.close() == 0


def lens(client: Client, name: str) -> dict[str, Any] | None:
    """What the lens that runs the program sends."""
    lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": client.uri(name)}})
    return next((one["command"] for one in lenses if "program" in one["command"]["title"]), None)


def run(client: Client, name: str) -> str:
    """What is told at the end."""
    params = {"command": "cuda-lsp.runProgram", "arguments": [client.uri(name)]}
    client.request("workspace/executeCommand", params, 2 * PATIENCE)
    (told,) = [m["params"] for _, m in client.notifications if m["method"] == "window/showMessage"]
    assert told["type"] == 3, told
    return told["message"]


def shown(client: Client, name: str) -> list[str]:
    """The messages of the last diagnostics of a file."""
    found = [
        m["params"]["diagnostics"]
        for _, m in client.notifications
        if m["method"].endswith("publishDiagnostics") and m["params"]["uri"] == client.uri(name)
    ]
    return [d["message"] for d in found[-1]]


@needs_nvcc
def test_the_file_with_main_runs_it_and_open_headers_show_what_was_seen(client: Client) -> None:
    for name, text in (("app.cu", MAIN), ("tiles.cuh", TILES)):
        client.open(name, text)
        client.settled(name, 1)
    assert lens(client, "app.cu")
    assert "exit status 0: 1 confirmed" in run(client, "app.cu")
    assert any(SEEN in message for message in shown(client, "tiles.cuh"))


@needs_nvcc
def test_what_is_seen_in_a_header_that_is_not_open_is_told(client: Client) -> None:
    client.open("app.cu", MAIN)
    client.settled("app.cu", 1)
    assert "1 confirmed in tiles.cuh" in run(client, "app.cu")


@needs_nvcc
def test_a_header_runs_the_program_that_includes_it(client: Client) -> None:
    client.open("tiles.cuh", TILES)
    client.settled("tiles.cuh", 1)
    assert "exit status 0: 1 confirmed" in run(client, "tiles.cuh")
    assert any(SEEN in message for message in shown(client, "tiles.cuh"))
