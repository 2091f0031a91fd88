""" "Run dynamic check" through a real client: confirmed, stale after an edit, back after undo, cancelled."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Iterator
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
SEEN = "seen on CPU emulator"


@pytest.fixture(params=["utf-8", "utf-16", "utf-32"])
def trusted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    found = Client(tmp_path, request.param, {"trusted": True, "engine": "emulator"})
    yield found
    found.close()


def check(client: Client, name: str, kernel: str) -> None:
    """Returns when all is said: messages and new diagnostics come before the answer."""
    arguments = [client.uri(name), kernel]
    params = {"command": "cuda-lsp.runDynamicCheck", "arguments": arguments}
    client.request("workspace/executeCommand", params, 2 * PATIENCE)


def messages(client: Client, name: str, version: int, text: str) -> list[str]:
    """The messages of diagnostics for this version of which one holds ``text``."""
    return [d["message"] for d in diagnostics(client, name, version, text)]


def diagnostics(client: Client, name: str, version: int, text: str) -> list[dict[str, Any]]:
    """Those for this version of which one holds ``text``."""

    def wanted(m: dict[str, Any]) -> bool:
        p = m.get("params", {})
        ours = m["method"] == "textDocument/publishDiagnostics" and p["uri"] == client.uri(name)
        return ours and p.get("version") == version and any(text in d["message"] for d in p["diagnostics"])

    return client.wait(wanted)[1]["params"]["diagnostics"]


def lens_titles(client: Client, name: str) -> list[str]:
    lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": client.uri(name)}})
    return [lens["command"]["title"] for lens in lenses]


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
    assert "Run dynamic check again (edited since)" in lens_titles(trusted, "a.cu")
    version = trusted.edit("a.cu", (4, 27), (4, 28), "")  # undone
    assert messages(trusted, "a.cu", version, SEEN)
    again = next(title for title in lens_titles(trusted, "a.cu") if title.startswith("Run again"))
    assert re.fullmatch(r"Run again · 1 confirmed on CPU emulator, .* m?s, 1 block, \d\d:\d\d", again)


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

    diagnostics = trusted.wait(moved)[1]["params"]["diagnostics"]
    lines = [d["range"]["start"]["line"] for d in diagnostics if SEEN in d["message"]]
    assert lines == [5]


HELPER = """__device__ int* slot(int* s) { return s + threadIdx.x; }

__device__ void put(int* s) {
    s[threadIdx.x] = threadIdx.x;
}
__global__ void neighbour(int* out) {
    __shared__ int s[65];
    put(s);
    out[threadIdx.x] = *(slot(s) + 1);
    if (threadIdx.x == 0) printf("hello %d\\n", 7);
}
void launch(int* out) { neighbour<<<1, 64>>>(out); }
"""


def places(client: Client, name: str, version: int) -> list[tuple[int, int]]:
    """Lines (from 0) of the seen race and of its other access in the diagnostics of this version."""
    uri = client.uri(name)
    found: list[tuple[int, int]] = []
    for _, message in client.notifications:
        p = message.get("params", {})
        if message["method"].endswith("/publishDiagnostics") and (p["uri"], p["version"]) == (uri, version):
            seen = [d for d in p["diagnostics"] if SEEN in d["message"]]
            others = [d["relatedInformation"][0]["location"] for d in seen]
            found = [
                (d["range"]["start"]["line"], other["range"]["start"]["line"])
                for d, other in zip(seen, others, strict=True)
            ]
    return found


@needs_nvcc
def test_places_in_device_functions_follow_their_own_lines(trusted: Client) -> None:
    trusted.open("a.cu", f"#include <cstdio>\n{HELPER}")
    trusted.settled("a.cu", 1)
    check(trusted, "a.cu", "neighbour")
    messages(trusted, "a.cu", 1, SEEN)
    assert places(trusted, "a.cu", 1) == [(9, 4)]
    assert any(
        m["method"] == "window/logMessage" and "hello 7" in m["params"]["message"]
        for _, m in trusted.notifications
    )
    version = trusted.edit("a.cu", (6, 0), (6, 0), "\n\n")  # between the function and the kernel
    messages(trusted, "a.cu", version, SEEN)
    assert places(trusted, "a.cu", version) == [(11, 4)]
    version = trusted.edit("a.cu", (3, 0), (3, 0), "\n")  # above the function
    messages(trusted, "a.cu", version, SEEN)
    assert places(trusted, "a.cu", version) == [(12, 5)]


@needs_nvcc
def test_a_result_belongs_to_the_headers_too(trusted: Client, tmp_path: Path) -> None:
    header = tmp_path / "far.h"
    header.write_text("#define FAR 1\n")
    trusted.open("a.cu", '#include "far.h"\n' + RACY.replace("x + 1]", "x + FAR]"))
    trusted.settled("a.cu", 1)
    check(trusted, "a.cu", "neighbour")
    assert messages(trusted, "a.cu", 1, SEEN)

    def save(text: str, *, seen: bool) -> None:
        """Waits until what is published has, or has not, a result."""

        def wanted(m: dict[str, Any]) -> bool:
            found = m["params"]["diagnostics"] if m["method"].endswith("/publishDiagnostics") else None
            return found is not None and any(SEEN in d["message"] for d in found) is seen

        header.write_text(text)
        before = len(trusted.notifications)
        trusted.notify("textDocument/didSave", {"textDocument": {"uri": trusted.uri("far.h")}})
        trusted.wait(wanted, seen=before)

    save("#define FAR 0\n", seen=False)
    save("#define FAR 1\n", seen=True)


@needs_nvcc
def test_diagnostics_that_are_pulled_hold_what_was_seen(tmp_path: Path) -> None:
    options = {"trusted": True, "engine": "emulator", "diagnostics": "pull"}
    client = Client(tmp_path, "utf-16", options)
    client.open("a.cu", RACY)
    client.settled("a.cu", 1)
    check(client, "a.cu", "neighbour")
    pulled = client.request("textDocument/diagnostic", {"textDocument": {"uri": client.uri("a.cu")}})
    assert any(SEEN in d["message"] for d in pulled["items"])
    client.close()


SLOW = """__global__ void slow(int* out) {
    volatile int* o = out;
    while (o[0] != 1234567) { }
}
void launch(int* out) { slow<<<1, 32>>>(out); }
"""


@needs_nvcc
def test_a_check_that_waits_is_cancelled_at_once_and_one_that_runs_too(trusted: Client) -> None:
    trusted.open("a.cu", SLOW)
    trusted.settled("a.cu", 1)
    params = {"command": "cuda-lsp.runDynamicCheck", "arguments": [trusted.uri("a.cu"), "slow"]}
    numbers = [
        trusted.ask("workspace/executeCommand", params) for _ in range(8)
    ]  # more than there are threads
    trusted.quiet(0.5)
    for number in reversed(numbers):
        trusted.notify("$/cancelRequest", {"id": number})
    assert trusted.request("textDocument/codeLens", {"textDocument": {"uri": trusted.uri("a.cu")}})
    # Run to their deadlines one after the other, eight such checks would take minutes.
    assert all("error" in trusted.answer(number) for number in numbers)


@needs_nvcc
def test_code_that_does_not_compile_gives_one_clear_message(trusted: Client) -> None:
    trusted.open("a.cu", RACY.replace("void launch", "int broken = nowhere;\nvoid launch"))
    trusted.settled("a.cu", 1)
    check(trusted, "a.cu", "neighbour")
    assert any("nowhere" in message for message in shown(trusted))
    (found,) = [d for d in diagnostics(trusted, "a.cu", 1, "nowhere") if "nowhere" in d["message"]]
    assert found["range"]["start"] == {"line": 5, "character": 13} and found["severity"] == 1
    trusted.edit("a.cu", (5, 0), (6, 0), "")
    trusted.settled("a.cu", 2)
    assert not any("nowhere" in message for message in messages(trusted, "a.cu", 2, ""))


@needs_nvcc
def test_an_error_in_a_header_is_a_link_to_it(trusted: Client, tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("// first line\ninline int broken = nowhere;\n")
    trusted.open("a.cu", '#include "a.h"\n' + RACY)
    trusted.settled("a.cu", 1)
    check(trusted, "a.cu", "neighbour")
    (found,) = [d for d in diagnostics(trusted, "a.cu", 1, "nvcc") if "nvcc" in d["message"]]
    assert found["message"].startswith("a.h:2: nvcc:") and found["range"]["start"]["line"] == 0
    (there,) = found["relatedInformation"]
    assert there["location"]["uri"].endswith("/a.h") and there["location"]["range"]["start"]["line"] == 1


def test_an_untrusted_workspace_runs_nothing(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.open("a.cu", RACY)
    client.settled("a.cu", 1)
    check(client, "a.cu", "neighbour")
    assert any("trust" in message for message in shown(client))
    client.close()


def children_of(client: Client) -> list[str]:
    """The command lines of the processes that the server has started."""
    lines: list[str] = []
    for process in family(client.process.pid)[1:]:
        with contextlib.suppress(OSError):  # it has ended
            lines.append(Path(f"/proc/{process}/cmdline").read_text())
    return lines


WORKER = "cuda_lsp.dynamic.worker"


@needs_nvcc
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_click_is_prepared_for_when_nobody_types(trusted: Client) -> None:
    trusted.open("a.cu", RACY)
    trusted.settled("a.cu", 1)
    end = time.monotonic() + PATIENCE
    while not any(WORKER in line for line in children_of(trusted)):
        assert time.monotonic() < end
        time.sleep(0.1)
    check(trusted, "a.cu", "neighbour")
    assert messages(trusted, "a.cu", 1, SEEN)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_is_prepared_in_an_untrusted_workspace(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.open("a.cu", RACY)
    client.settled("a.cu", 1)
    time.sleep(4)
    assert not any(WORKER in line for line in children_of(client))
    client.close()


def test_a_kernel_that_is_not_there_is_told(trusted: Client) -> None:
    trusted.open("a.cu", RACY)
    trusted.settled("a.cu", 1)
    check(trusted, "a.cu", "nothing")
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
    trusted.request("workspace/executeCommand", given, 2 * PATIENCE)
    assert messages(trusted, "a.cu", 1, SEEN)
    assert any("exit status 0" in message for message in shown(trusted)), shown(trusted)


@needs_nvcc
def test_a_program_with_a_build_command_runs_from_any_of_its_files(trusted: Client, tmp_path: Path) -> None:
    kernel = RACY.replace("neighbour<<<1, 64>>>(out); }", "neighbour<<<1, 64>>>(out); }\n")
    (tmp_path / "kernel.cu").write_text(kernel)
    (tmp_path / "main.cu").write_text(
        "void launch(int*);\n" + PROGRAM.replace("neighbour<<<1, 64>>>", "launch")
    )
    command = "PATH=$PATH:/usr/local/cuda/bin; cd sub && nvcc ../kernel.cu ../main.cu -o app"
    (tmp_path / "sub").mkdir()
    (tmp_path / "cuda-lsp.toml").write_text(f"build-command = '{command}'\nrun-command = 'sub/app'\n")
    trusted.notify("workspace/didChangeConfiguration", {"settings": None})
    trusted.request("textDocument/codeLens", {"textDocument": {"uri": trusted.uri("kernel.cu")}})  # in order
    trusted.open("kernel.cu", kernel)
    trusted.settled("kernel.cu", 1)
    lenses = trusted.request("textDocument/codeLens", {"textDocument": {"uri": trusted.uri("kernel.cu")}})
    run = next(lens["command"] for lens in lenses if "program" in lens["command"]["title"])
    given = {"command": run["command"], "arguments": run["arguments"]}
    trusted.request("workspace/executeCommand", given, 3 * PATIENCE)
    assert messages(trusted, "kernel.cu", 1, SEEN)
    assert any("exit status 0" in message for message in shown(trusted)), shown(trusted)


# ------------------------------------------------------------------------- what the user is told of a run

GUESSED = """template <int N> __global__ void tile(int* out) {
    __shared__ int s[65];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[threadIdx.x + N];
}
"""


def hint_labels(client: Client, name: str, lines: int) -> list[str]:
    extent = {"start": {"line": 0, "character": 0}, "end": {"line": lines, "character": 0}}
    params = {"textDocument": {"uri": client.uri(name)}, "range": extent}
    return [hint["label"] for hint in client.request("textDocument/inlayHint", params)]


@pytest.fixture
def linked(tmp_path: Path) -> Iterator[Client]:
    """A client that shows buttons beside messages."""
    options = {"trusted": True, "engine": "emulator", "messageActions": True}
    found = Client(tmp_path, "utf-16", options)
    yield found
    found.close()


@needs_nvcc
def test_a_run_ends_with_its_outcome_and_a_link_to_the_line(linked: Client) -> None:
    linked.open("a.cu", RACY)
    linked.settled("a.cu", 1)
    check(linked, "a.cu", "neighbour")
    asked = linked.asked("window/showMessageRequest")
    assert re.match(r"neighbour: 1 confirmed on CPU emulator, .* m?s, 1 block", asked["message"])
    assert [action["title"] for action in asked["actions"]] == ["Show Line 4"]
    shown_there = linked.asked("window/showDocument")  # the client chose the first action
    assert shown_there["uri"] == linked.uri("a.cu") and shown_there["selection"]["start"]["line"] == 3
    assert "confirmed" in hint_labels(linked, "a.cu", 9)


@needs_nvcc
def test_a_line_stands_for_the_kernel_that_it_is_on(trusted: Client) -> None:
    trusted.open("a.cu", RACY)
    trusted.settled("a.cu", 1)
    params = {"command": "cuda-lsp.runDynamicCheck", "arguments": [trusted.uri("a.cu"), 2]}
    trusted.request("workspace/executeCommand", params, 2 * PATIENCE)
    assert any(text.startswith("neighbour: 1 confirmed") for text in shown(trusted))


@needs_nvcc
def test_what_is_guessed_is_said_before_the_run_and_in_its_result(linked: Client) -> None:
    linked.open("a.cu", GUESSED)
    linked.settled("a.cu", 1)
    assert any(title == "Run dynamic check (guessed launch)" for title in lens_titles(linked, "a.cu"))
    check(linked, "a.cu", re.search(r"tile<\d+>", str(linked.notifications))[0])  # type: ignore[index]
    begun = linked.begun("Dynamic check")
    assert "guessed: its template arguments" in begun and "launch (block" in begun
    assert "Guessed: its template arguments" in linked.asked("window/showMessageRequest")["message"]


TILES = """template <typename T, int N>
__global__ void turned(T* out, const T* in) {
    __shared__ T tile[N];
    tile[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = tile[N - 1 - threadIdx.x];
}
"""


@needs_nvcc
def test_a_template_of_a_header_runs_as_the_file_that_includes_it_asks_for_it(
    linked: Client, tmp_path: Path
) -> None:
    (tmp_path / "tiles.h").write_text(TILES)
    (tmp_path / "use.cu").write_text(
        '#include "tiles.h"\nvoid go(float* o, float* i) { turned<float, 64><<<1, 64>>>(o, i); }\n'
    )
    linked.open("tiles.h", TILES)
    linked.settled("tiles.h", 1)
    check(linked, "tiles.h", "turned<float, 64>")
    assert messages(linked, "tiles.h", 1, SEEN)
    outcome = linked.asked("window/showMessageRequest")["message"]
    assert outcome.startswith("turned<float, 64>: 1 confirmed on CPU emulator") and "Guessed" not in outcome


@needs_nvcc
def test_a_loop_without_end_is_a_diagnostic_on_its_line(trusted: Client) -> None:
    text = SLOW.replace("o[0] != 1234567", "true").replace("{ }", "{ o[1] = 3; }")
    trusted.open("a.cu", text)
    trusted.settled("a.cu", 1)
    check(trusted, "a.cu", "slow")
    (found,) = [d for d in diagnostics(trusted, "a.cu", 1, "come to its end") if "come to" in d["message"]]
    assert found["range"]["start"]["line"] in (0, 2) and found["severity"] in (1, 2)
    assert any("ended early" in title for title in lens_titles(trusted, "a.cu"))


@needs_nvcc
def test_a_fault_is_a_diagnostic_on_its_line(trusted: Client) -> None:
    text = RACY.replace("int s[65];", "int s[65];\n    *(int*)((char*)s + out[0] % 2 + 1) = 1;")
    trusted.open("a.cu", text)
    trusted.settled("a.cu", 1)
    check(trusted, "a.cu", "neighbour")
    (found,) = [d for d in diagnostics(trusted, "a.cu", 1, "is not aligned") if "aligned" in d["message"]]
    assert found["range"]["start"]["line"] == 2 and SEEN in found["message"]


@needs_nvcc
def test_what_was_not_observed_fades(trusted: Client) -> None:
    text = RACY.replace("int* out)", "int* out, const int* where)", 1).replace(
        "s[threadIdx.x + 1]", "s[where[0]]"
    )
    text = text.replace(
        "(int* out) { neighbour<<<1, 64>>>(out)", "(int* out) { neighbour<<<1, 1>>>(out, out)"
    )
    text = text.replace("s[threadIdx.x] = threadIdx.x;", "if (where[threadIdx.x] == 3) s[threadIdx.x] = 1;")
    text = text.replace("<<<1, 1>>>", "<<<1, 64>>>")
    trusted.open("a.cu", text)
    trusted.settled("a.cu", 1)
    before = [d["code"] for d in trusted.diagnostics("a.cu", 1) if d.get("severity", 4) < 4]
    check(trusted, "a.cu", "neighbour")
    last = [
        m["params"]["diagnostics"]
        for _, m in trusted.notifications
        if m["method"].endswith("publishDiagnostics")
    ]
    unseen = [d for d in last[-1] if "not seen on" in d["message"]]
    assert before
    assert all(d["tags"] == [1] and d["severity"] == 4 for d in unseen)


@needs_nvcc
def test_a_program_that_wants_arguments_says_so_and_takes_them(trusted: Client) -> None:
    main = PROGRAM.replace(
        "    int* out;", '    if (argc < 2) { puts("usage: a N"); return 2; }\n    int* out;'
    )
    text = "#include <cstdio>\n" + RACY.replace(
        "void launch(int* out) { neighbour<<<1, 64>>>(out); }\n", main
    )
    trusted.open("a.cu", text)
    trusted.settled("a.cu", 1)
    run = {"command": "cuda-lsp.runProgram", "arguments": [trusted.uri("a.cu")]}
    trusted.request("workspace/executeCommand", run, 2 * PATIENCE)
    assert any("usage: a N" in text and "need arguments" in text for text in shown(trusted)), shown(trusted)
    run = {"command": "cuda-lsp.runProgramWith", "arguments": [trusted.uri("a.cu"), ["5"]]}
    trusted.request("workspace/executeCommand", run, 2 * PATIENCE)
    assert any("exit status 0" in text and "1 confirmed" in text for text in shown(trusted)), shown(trusted)
    printed = [m["params"] for _, m in trusted.notifications if m["method"] == "cuda-lsp/programOutput"]
    assert printed and printed[0]["text"] == "usage: a N\n"


@needs_nvcc
def test_without_a_gpu_a_program_runs_on_the_emulator_and_that_is_information(tmp_path: Path) -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "-1"}
    client = Client(tmp_path, "utf-16", {"trusted": True}, **environment)
    client.open("a.cu", RACY.replace("void launch(int* out) { neighbour<<<1, 64>>>(out); }\n", PROGRAM))
    client.settled("a.cu", 1)
    run = {"command": "cuda-lsp.runProgram", "arguments": [client.uri("a.cu")]}
    client.request("workspace/executeCommand", run, 2 * PATIENCE)
    (told,) = [m["params"] for _, m in client.notifications if m["method"] == "window/showMessage"]
    assert told["type"] == 3, told
    assert "exit status 0" in told["message"] and "1 confirmed" in told["message"]
    assert "on the CPU: " in told["message"]  # and why, with what there is to do
    assert client.close() == 0
