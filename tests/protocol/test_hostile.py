"""What a broken client sends is answered or logged in a line, and the next message is served as before."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from client import Client, Json

RACY = """__global__ void neighbour(int *out) {
  extern __shared__ int s[];
  s[threadIdx.x] = 1;
  out[threadIdx.x] = s[63 - threadIdx.x];
}
void launch(int *out) { neighbour<<<1, 64, 256>>>(out); }
"""
NOBODY: Any = None
"""The id of an answer to what has none."""
START: Json = {"line": 0, "character": 0}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    connected = Client(tmp_path_factory.mktemp("hostile"), options={"trusted": True})
    connected.open("a.cu", RACY)
    connected.diagnostics("a.cu", 1)
    yield connected
    connected.process.kill()


@pytest.fixture
def client(server: Client) -> Iterator[Client]:
    """One server for all; after each it analyses as before, wrote no traceback, and nothing popped up."""
    yield server
    name = f"after{len(server.versions)}.cu"
    server.open(name, RACY)
    assert [d["code"] for d in server.diagnostics(name, 1)] == ["shared-race"]
    server.notify("textDocument/didClose", {"textDocument": {"uri": server.uri(name)}})
    assert "Traceback" not in server.stderr
    popped = [m["params"]["message"] for _, m in server.notifications if m["method"] == "window/showMessage"]
    assert not any("Error in server" in message for message in popped)


def at(line: Any, character: Any = 0) -> Json:
    return {"line": line, "character": character}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/hover", {"position": at(-5, -5)}),
        ("textDocument/hover", {"position": at(10**12, 10**12)}),
        ("textDocument/hover", {"position": None}),
        ("textDocument/hover", {"textDocument": None, "position": START}),
        ("textDocument/hover", None),
        ("textDocument/hover", "words"),
        ("textDocument/codeLens", {"textDocument": 3}),
        (
            "textDocument/codeAction",
            {"range": {"start": at(-1), "end": at(2)}, "context": {"diagnostics": []}},
        ),
        ("textDocument/inlayHint", {"range": {"start": at("x"), "end": None}}),
        ("workspace/executeCommand", {"command": "cuda-lsp.runDynamicCheck", "arguments": []}),
        ("workspace/executeCommand", {"command": "no such"}),
    ],
)
def test_a_request_with_invalid_parameters_gets_an_error(client: Client, method: str, params: Any) -> None:
    document = {"textDocument": {"uri": client.uri("a.cu")}}
    answer = client.answer(client.ask(method, {**document, **params} if isinstance(params, dict) else params))
    assert answer["error"]["code"] == -32602
    assert answer["error"]["message"]


def test_a_request_with_another_method_or_none_gets_an_error(client: Client) -> None:
    assert client.answer(client.ask("no/such", {}))["error"]["code"] == -32601
    number = client.ask("", {})
    assert "error" in client.answer(number)


@pytest.mark.parametrize(
    "arguments", [[None, 3], ["::::", "k"], ["file:///nowhere.cu", "neighbour"], [[], {}]]
)
def test_a_command_about_nothing_gets_an_answer(client: Client, arguments: list[Any]) -> None:
    params = {"command": "cuda-lsp.runDynamicCheck", "arguments": arguments}
    answer = client.answer(client.ask("workspace/executeCommand", params))
    assert "result" in answer or answer["error"]["code"] == -32602


@pytest.mark.parametrize(
    "uri", ["file:///nope.cu", "::::%00", "file:///tmp/a%00b.cu", "untitled:", "", "file://" + "x" * 5000]
)
def test_documents_of_any_name_are_served(client: Client, uri: str) -> None:
    params = {"textDocument": {"uri": uri}, "position": START}
    assert "result" in client.answer(client.ask("textDocument/hover", params))
    document = {"uri": uri, "languageId": "cuda-cpp", "version": 1, "text": RACY}
    client.notify("textDocument/didOpen", {"textDocument": document})
    assert "result" in client.answer(client.ask("textDocument/hover", params))


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/didChange", {"textDocument": None, "contentChanges": None}),
        (
            "textDocument/didChange",
            {
                "textDocument": {"uri": "file:///a.cu", "version": 2},
                "contentChanges": [{"range": {"start": at(-1), "end": at(-1)}, "text": "x"}],
            },
        ),
        (
            "textDocument/didChange",
            {"textDocument": {"uri": "file:///x.cu", "version": 2}, "contentChanges": [{"text": "x"}]},
        ),
        ("textDocument/didClose", {"textDocument": {"uri": "file:///never/opened.cu"}}),
        ("textDocument/didOpen", {"textDocument": {"uri": None, "text": None}}),
        ("workspace/didChangeConfiguration", {"settings": [1, 2]}),
        ("workspace/didChangeConfiguration", {"settings": {"cuda-lsp": {"includeDirs": ["a\0"], "": 4}}}),
        ("workspace/didChangeWatchedFiles", {"changes": None}),
        ("window/workDoneProgress/cancel", {"token": "no such"}),
        ("$/cancelRequest", {"id": "no such"}),
        ("$/unknown", None),
    ],
)
def test_a_notification_with_invalid_parameters_is_left_alone(
    client: Client, method: str, params: Any
) -> None:
    client.notify(method, params)


BODIES = {
    "no JSON": b"{abc}",
    "not UTF-8": b"\xff\xfe\xfd",
    "a list": b"[1, 2, 3]",
    "a number": b"3",
    "nested too deeply": b"[" * 100_000 + b"]" * 100_000,
    "no method": b'{"jsonrpc": "2.0", "params": {}}',
    "an id that is none": b'{"jsonrpc": "2.0", "id": {}, "method": "textDocument/hover"}',
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_no_message_gets_an_error(client: Client, name: str) -> None:
    body = BODIES[name]
    raw(client, b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert client.answer(NOBODY)["error"]["code"] in (-32600, -32700)


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Type: x\r\n\r\n{}",
        b"GARBAGE\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: abc\r\n\r\n",
        b"Content-Length: 99999999999999999999\r\n\r\n{}",
        b"Content-Length: 999999999\r\n\r\n{}",
        b"x" * 100_000 + b"\r\n",
        b"\r\n\r\n\r\n",
    ],
)
def test_after_a_header_without_a_length_the_next_message_is_read(client: Client, head: bytes) -> None:
    raw(client, head)


def test_names_of_headers_are_of_any_case(client: Client) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 77, "method": "no/such"}).encode()
    raw(client, b"content-type: x\r\nCONTENT-LENGTH:%d\r\n\r\n" % len(body) + body)
    assert client.answer(77)["error"]["code"] == -32601


def test_a_response_that_nobody_asked_for_is_left_alone(client: Client) -> None:
    body = b'{"jsonrpc": "2.0", "id": 12345, "result": null}'
    raw(client, b"Content-Length: %d\r\n\r\n" % len(body) + body)


def raw(client: Client, content: bytes) -> None:
    assert client.process.stdin
    client.process.stdin.write(content)
    client.process.stdin.flush()


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_lines_end_as_the_client_says(client: Client, end: str) -> None:
    name = f"ends{len(client.versions)}.cu"
    client.open(name, RACY.replace("\n", end))
    assert [d["range"]["start"]["line"] for d in client.diagnostics(name, 1)] == [3]


@pytest.mark.parametrize("include", ['"{}.h"', "<{}/x.h>"])
def test_a_header_of_any_name_is_looked_for(client: Client, include: str) -> None:
    name = f"include{len(client.versions)}.cu"
    client.open(name, f"#include {include.format('a' * 300)}\n{RACY}")
    assert "shared-race" in [d.get("code") for d in client.diagnostics(name, 1)]


def test_a_server_whose_working_folder_is_gone_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    client = Client(tmp_path)
    client.open("a.cu", RACY)
    assert [d["code"] for d in client.diagnostics("a.cu", 1)] == ["shared-race"]
    assert client.close() == 0
