"""A text that crashes or hangs the analysis costs that text: the server answers, other files are analysed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from client import Client, Json
from hostile_texts import ENDLESS
from hostile_texts import LARGE as LARGE_MACROS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")

RACY = """__global__ void neighbour(int *out) {
  extern __shared__ int s[];
  s[threadIdx.x] = 1;
  out[threadIdx.x] = s[63 - threadIdx.x];
}
void launch(int *out) { neighbour<<<1, 64, 256>>>(out); }
"""
PATIENCE = 90.0

CRASH, LONG, LARGE = r"crashed.*\(\w", "takes more than 10 s", "takes more than . GB"
TEXTS = {
    "a crash": ("#pragma clang __debug crash\n" + RACY, CRASH),
    "a fatal error": ("#pragma clang __debug llvm_fatal_error\n" + RACY, CRASH),
    "an overflow of a stack": ("#pragma clang __debug overflow_stack\n" + RACY, f"{CRASH}|{LONG}"),
    "calls without end": (ENDLESS + RACY, LONG),
    "a bomb of macros": (LARGE_MACROS + RACY, f"{CRASH}|{LONG}|{LARGE}"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    connected = Client(tmp_path_factory.mktemp("crashes"), options={"trusted": True})
    connected.open("neighbour.cu", RACY)
    connected.settled("neighbour.cu", 1)
    yield connected
    connected.process.kill()


def child(client: Client) -> int:
    """The analysis process of a server."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                if (
                    parent == str(client.process.pid)
                    and b"analysis.child" in (entry / "cmdline").read_bytes()
                ):
                    return int(entry.name)
        time.sleep(0.02)
    raise AssertionError("no analysis process")


def codes(found: list[Json]) -> list[str]:
    return [d["code"] for d in found if "code" in d]


def later(client: Client, name: str, version: int, wanted: Callable[[list[Json]], bool]) -> list[Json]:
    """The first diagnostics of this version that are wanted."""

    def fits(m: Json) -> bool:
        p = m.get("params", {})
        ours = m["method"] == "textDocument/publishDiagnostics" and p["uri"] == client.uri(name)
        return ours and p.get("version") == version and wanted(p["diagnostics"])

    return client.wait(fits, PATIENCE)[1]["params"]["diagnostics"]


@pytest.mark.parametrize("what", TEXTS)
def test_a_text_that_the_analysis_does_not_survive(server: Client, what: str) -> None:
    text, reason = TEXTS[what]
    name = f"{what.replace(' ', '_').replace(',', '')}.cu"
    server.open(name, RACY)
    assert codes(server.diagnostics(name, 1)) == ["shared-race"]
    lines = RACY.count("\n")
    version = server.edit(name, (0, 0), (lines, 0), text)
    # The server answers, and another file is analysed.
    asked = {"textDocument": {"uri": server.uri("neighbour.cu")}, "position": {"line": 0, "character": 16}}
    began = time.monotonic()
    assert server.request("textDocument/hover", asked)
    assert time.monotonic() - began < 5
    told = server.diagnostics(name, version, PATIENCE)
    status = server.settled(name, version, PATIENCE)[1]
    messages = [diagnostic["message"][:500] for diagnostic in told]
    assert re.search(reason, " ".join(messages))
    assert {kernel["verdict"] for kernel in status["kernels"]} <= {"undecided"}
    print(what, time.monotonic() - began, told[0]["message"])
    other = server.edit("neighbour.cu", (0, 0), (0, 0), " ")
    assert codes(server.diagnostics("neighbour.cu", other, PATIENCE)) == ["shared-race"]
    # The next edit brings the findings back.
    count = text.count("\n")
    version = server.edit(name, (0, 0), (count, 0), RACY)
    assert codes(server.diagnostics(name, version, PATIENCE)) == ["shared-race"]
    assert server.process.poll() is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV])
@pytest.mark.parametrize("delay", [0.0, 0.005, 0.02, 0.5])
def test_a_process_that_somebody_ends_costs_time_only(server: Client, number: int, delay: float) -> None:
    before = child(server)
    version = server.edit("neighbour.cu", (0, 0), (0, 0), " ")
    time.sleep(delay)
    os.kill(before, number)
    if number == signal.SIGSEGV and delay < 0.5:  # it may be this text's fault, for all one knows
        version = server.edit("neighbour.cu", (0, 0), (0, 0), " ")
    found = later(server, "neighbour.cu", version, lambda told: "shared-race" in codes(told))
    assert codes(found) == ["shared-race"]
    version = server.edit("neighbour.cu", (0, 0), (0, 0), " ")
    assert codes(server.diagnostics("neighbour.cu", version, PATIENCE)) == ["shared-race"]
    assert child(server) != before


def test_two_files_that_crash_do_not_starve_a_third(server: Client) -> None:
    crash = "#pragma clang __debug crash\n"
    for name in ("one.cu", "two.cu"):
        server.open(name, crash + RACY)
    for _ in range(6):
        for name in ("one.cu", "two.cu"):
            server.edit(name, (0, 0), (0, 0), " ")
        version = server.edit("neighbour.cu", (0, 0), (0, 0), " ")
        assert codes(server.diagnostics("neighbour.cu", version, PATIENCE)) == ["shared-race"]
    for name in ("one.cu", "two.cu"):
        version = server.edit(name, (0, 0), (1, 0), "")
        found = later(server, name, version, lambda told: "shared-race" in codes(told))
        assert codes(found) == ["shared-race"]


def test_nothing_is_left_when_the_server_is_killed(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.open("a.cu", RACY)
    client.settled("a.cu", 1)
    process = child(client)
    session = {process, *children_of(process)}
    assert len(session) > 1
    client.process.kill()
    until = time.monotonic() + 10
    while (left := {p for p in session if alive(p)}) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left


def children_of(process: int) -> list[int]:
    return [
        int(n) for n in Path(f"/proc/{process}/task/{process}/children").read_text().split() if n.isdigit()
    ] + [
        int(n)
        for task in Path(f"/proc/{process}/task").iterdir()
        for n in (task / "children").read_text().split()
    ]


def alive(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False
