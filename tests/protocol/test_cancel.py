"""What takes long is cancelled by its progress or its request: its processes end, what comes next runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from client import PATIENCE, Client
from resident import family

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

pytestmark = pytest.mark.usefixtures("own_cache")

RACY = """__global__ void neighbour(int* out) {
    __shared__ int s[65];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[threadIdx.x + 1];
}
void launch(int* out) { neighbour<<<1, 64>>>(out); }
"""
SLOW = """__global__ void slow(int* out) {
    volatile int* o = out;
    while (o[0] != 1234567) { }
}
"""
HANGING = """#include <cstdlib>
#include <unistd.h>
int main() {
    if (system("setsid sleep 987 &")) return 1;
    int* out;
    cudaMalloc(&out, 256);
    slow<<<1, 32>>>(out);
    for (;;) sleep(1);
}
"""
SOON = 2.0  # seconds on a busy machine; what is cancelled here takes ten and more by itself

Cancel = Callable[[Client, int], None]


def by_progress(client: Client, request: int) -> None:
    del request
    token = next(
        m["params"]["token"] for _, m in reversed(client.notifications) if m["method"] == "$/progress"
    )
    client.notify("window/workDoneProgress/cancel", {"token": token})


def by_request(client: Client, request: int) -> None:
    client.notify("$/cancelRequest", {"id": request})


either_way = pytest.mark.parametrize("cancel", [by_progress, by_request])


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    options = {"trusted": True, "engine": "emulator"}
    found = Client(tmp_path, "utf-16", options, resolves=True)
    yield found
    assert found.close() == 0


def command(client: Client, name: str, *arguments: Any) -> int:
    return client.ask("workspace/executeCommand", {"command": f"cuda-lsp.{name}", "arguments": arguments})


def values(client: Client, kind: str) -> list[dict[str, Any]]:
    shown = [m["params"]["value"] for _, m in client.notifications if m["method"] == "$/progress"]
    return [value for value in shown if value["kind"] == kind]


def stage(client: Client, text: str) -> None:
    """Waits until the progress says so."""

    def wanted(m: dict[str, Any]) -> bool:
        return m["method"] == "$/progress" and text in m["params"]["value"].get("message", "")

    client.wait(wanted)


def named(name: str) -> list[int]:
    """Processes whose command line has these words."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if name.encode() in path.read_bytes().replace(b"\0", b" "):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def workers(client: Client, name: str) -> list[int]:
    return [process for process in family(client.process.pid) if process in named(name)]


def ended(running: Callable[[], list[int]]) -> bool:
    until = time.monotonic() + SOON
    while running() and time.monotonic() < until:
        time.sleep(0.02)
    return not running()


def cancelled(client: Client, request: int, cancel: Cancel, begun: int = 1) -> None:
    """The answer comes soon, the progress has ended, and nobody is told an outcome."""
    client.notifications[:] = [n for n in client.notifications if n[1]["method"] == "$/progress"]
    cancel(client, request)
    client.answer(request, SOON)
    client.quiet(0.1)
    assert len(values(client, "begin")) == begun == len(values(client, "end"))
    assert values(client, "end")[-1]["message"] == "cancelled"
    assert not any(m["method"] == "window/showMessage" for _, m in client.notifications)


def still_checks(client: Client) -> None:
    """Another check has its result."""
    client.open("next.cu", RACY)
    client.settled("next.cu", 1)
    client.answer(command(client, "runDynamicCheck", client.uri("next.cu"), "neighbour"), 2 * PATIENCE)
    shown = [m["params"]["message"] for _, m in client.notifications if m["method"] == "window/showMessage"]
    assert any(text.startswith("neighbour: 1 confirmed") for text in shown), shown


@needs_nvcc
@either_way
def test_a_check_ends_with_its_processes(client: Client, cancel: Cancel) -> None:
    client.open("a.cu", SLOW + "void launch(int* out) { slow<<<1, 32>>>(out); }\n")
    client.settled("a.cu", 1)
    request = command(client, "runDynamicCheck", client.uri("a.cu"), "slow")
    stage(client, "running")
    assert workers(client, "cuda_lsp.dynamic.worker")
    cancelled(client, request, cancel)
    assert ended(lambda: workers(client, "cuda_lsp.dynamic.worker"))
    still_checks(client)


@needs_nvcc
@either_way
def test_a_program_ends_with_all_that_it_started(client: Client, cancel: Cancel) -> None:
    long = "sleep 987" if cancel is by_progress else "sleep 988"  # both may run at once
    client.open("a.cu", SLOW + HANGING.replace("sleep 987", long))
    client.settled("a.cu", 1)
    request = command(client, "runProgram", client.uri("a.cu"))
    until = time.monotonic() + PATIENCE
    while not named(long) and time.monotonic() < until:
        client.quiet(0.1)
    cancelled(client, request, cancel)
    assert ended(lambda: workers(client, "cuda_lsp.dynamic.worker"))
    assert ended(lambda: named(long))
    still_checks(client)


@needs_nvcc
@either_way
def test_the_build_of_a_program_ends_too(client: Client, cancel: Cancel, tmp_path: Path) -> None:
    long = "sleep 986" if cancel is by_progress else "sleep 985"  # both may run at once
    (tmp_path / "cuda-lsp.toml").write_text(f'build-command = "{long}"\nrun-command = "./app"\n')
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    client.open("a.cu", RACY)
    client.settled("a.cu", 1)
    request = command(client, "runProgram", client.uri("a.cu"))
    until = time.monotonic() + PATIENCE
    while not named(long) and time.monotonic() < until:
        client.quiet(0.1)
    cancelled(client, request, cancel)
    assert ended(lambda: named(long))


@either_way
def test_a_check_of_the_workspace_ends(client: Client, cancel: Cancel, tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number}.cu").write_text(RACY.replace("neighbour", f"neighbour{number}"))
    request = command(client, "checkWorkspace")
    client.begun("Checking")
    cancelled(client, request, cancel)
    assert ended(lambda: workers(client, "cuda_lsp.cli.child"))
    (tmp_path / "cuda-lsp.toml").write_text("")
    for path in tmp_path.glob("[1-9]*.cu"):
        path.unlink()
    client.answer(command(client, "checkWorkspace"), 2 * PATIENCE)
    shown = [m["params"]["message"] for _, m in client.notifications if m["method"] == "window/showMessage"]
    assert shown and shown[-1].startswith("1 files")


def many() -> str:
    """A kernel of twelve arrays, each read without a barrier: twelve findings, each with repairs to try."""
    array = "    __shared__ float s{0}[128];  s{0}[threadIdx.x] = in[{0}];  "
    line = array + "out[threadIdx.x] += s{0}[threadIdx.x + {0}];\n"
    lines = "".join(line.format(number) for number in range(1, 13))
    head = "__global__ void swap(float* out, const float* in) {\n"
    return f"{head}{lines}}}\nvoid launch(float* out, float* in) {{ swap<<<1, 64>>>(out, in); }}\n"


@either_way
def test_mending_all_of_a_kind_shows_its_progress_and_ends(client: Client, cancel: Cancel) -> None:
    client.open("a.cu", many())
    client.settled("a.cu", 1)
    offered = client.actions("a.cu", 1)
    (every,) = [action for action in offered if action["title"].startswith("Mend every shared-race")]
    request = client.ask("codeAction/resolve", every)
    client.begun("Mend every shared-race")
    cancelled(client, request, cancel)
    assert client.actions("a.cu", 3)  # at once: nobody is in the way


@needs_nvcc
def test_a_client_that_waits_for_answers_is_answered_before_a_check_ends(tmp_path: Path) -> None:
    options = {"trusted": True, "engine": "emulator", "answersAtOnce": True}
    client = Client(tmp_path, options=options)
    client.open("a.cu", SLOW + "void launch(int* out) { slow<<<1, 32>>>(out); }\n")
    client.settled("a.cu", 1)
    client.answer(command(client, "runDynamicCheck", client.uri("a.cu"), "slow"))
    assert not values(client, "end")
    stage(client, "running")
    by_progress(client, 0)
    stage(client, "cancelled")
    assert client.close() == 0
