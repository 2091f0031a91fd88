"""The server through a real client over stdio, in the three position encodings editors use."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from client import Client, Json

FIGURE_1 = """__global__ void neighbour(int *out) {
  extern __shared__ int s[];
  int id = threadIdx.x, nt = blockDim.x;
  s[id] = id;
  /* größer → 𝛼𝛽 */ out[id] = s[(id + 1) % nt];
}
void launch(int *out) { neighbour<<<1, 64, 256>>>(out); }
"""
UNITS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
WIDTH = {"utf-8": 1, "utf-16": 2, "utf-32": 4}


@pytest.fixture(params=["utf-8", "utf-16", "utf-32"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    connected = Client(tmp_path, request.param)
    assert connected.capabilities["positionEncoding"] == request.param
    yield connected
    if connected.process.poll() is None:
        connected.process.kill()


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Client]:
    connected = Client(tmp_path)
    yield connected
    if connected.process.poll() is None:
        connected.process.kill()


def columns(client: Client, line: str, text: str) -> tuple[int, int]:
    """Where ``text`` stands in ``line``, in the client's units."""
    encoding = client.capabilities["positionEncoding"]
    before, _, _ = line.partition(text)
    first = len(before.encode(UNITS[encoding])) // WIDTH[encoding]
    return first, first + len(text.encode(UNITS[encoding])) // WIDTH[encoding]


PROVED = """__global__ void rows(float *out, const float *in, int n, int pitch) {
  int t = threadIdx.x;
  out[blockIdx.x * pitch + t % (n * 64)] = in[t];
}
void launch(float *p, int n, int m) { rows<<<4, 256>>>(p, p, n, m); }
"""


@pytest.mark.parametrize("typed", [" ", "\n", "  // a note", "\n  in = in + 1;"])
def test_what_the_solver_found_stays_in_sight_while_somebody_types(plain: Client, typed: str) -> None:
    plain.open("a.cu", PROVED)
    plain.settled("a.cu", 1)
    before = codes(plain)[-1]
    assert "global-race" in before
    seen = len(plain.notifications)
    plain.settled("a.cu", plain.edit("a.cu", (1, 22), (1, 22), typed))
    told = codes(plain, seen)
    assert told == [before] * len(told)


def codes(client: Client, seen: int = 0) -> list[list[str]]:
    """Of each set of diagnostics that was published, but the first ``seen`` messages."""
    messages = [message for _, message in client.notifications[seen:]]
    published = [m["params"] for m in messages if m["method"] == "textDocument/publishDiagnostics"]
    return [[diagnostic.get("code") for diagnostic in p["diagnostics"]] for p in published]


def test_race_is_underlined_at_the_exact_expression_in_every_encoding(client: Client) -> None:
    client.open("a.cu", FIGURE_1)
    (race,) = client.diagnostics("a.cu", 1)
    line = FIGURE_1.splitlines()[4]
    first, last = columns(client, line, "s[(id + 1) % nt]")
    assert race["code"] == "shared-race"
    assert race["range"] == {
        "start": {"line": 4, "character": first},
        "end": {"line": 4, "character": last},
    }
    (other,) = race["relatedInformation"]
    assert other["location"]["range"]["start"] == {"line": 3, "character": 2}
    page = Path(url2pathname(urlsplit(race["codeDescription"]["href"]).path))
    assert page.read_text().startswith("# shared-race\n")  # shipped with the server
    assert race["severity"] == 1


def test_codes_lead_to_the_documentation_that_is_set(plain: Client) -> None:
    plain.open("a.cu", FIGURE_1)
    assert plain.diagnostics("a.cu", 1)
    settings = {"cuda-lsp": {"documentation": "https://example.org/docs/"}}
    plain.notify("workspace/didChangeConfiguration", {"settings": settings})
    version = plain.edit("a.cu", (0, 0), (0, 0), "\n")
    (race,) = plain.diagnostics("a.cu", version)
    assert race["codeDescription"]["href"] == "https://example.org/docs/codes/shared-race/"


def test_typing_a_barrier_clears_the_race_and_deleting_it_brings_it_back(client: Client) -> None:
    client.open("a.cu", FIGURE_1)
    assert client.diagnostics("a.cu", 1)
    barrier = "  __syncthreads();\n"
    version = client.edit("a.cu", (4, 0), (4, 0), barrier)
    assert client.diagnostics("a.cu", version) == []
    version = client.edit("a.cu", (4, 0), (5, 0), "")
    (race,) = client.diagnostics("a.cu", version)
    assert race["range"]["start"]["line"] == 4


def test_hover_shows_the_witness(client: Client) -> None:
    client.open("a.cu", FIGURE_1)
    (race,) = client.diagnostics("a.cu", 1)
    place = {"textDocument": {"uri": client.uri("a.cu")}, "position": race["range"]["start"]}
    text = client.request("textDocument/hover", place)["contents"]["value"]
    assert re.search(r"^1  \(\d+, 0, 0\) +same   s\[id\] ", text, re.MULTILINE)
    assert "block (64, 1, 1)" in text


def test_repair_is_offered_and_mends_the_race(client: Client) -> None:
    client.open("a.cu", FIGURE_1)
    (race,) = client.diagnostics("a.cu", 1)
    found = client.request(
        "textDocument/codeAction",
        {
            "textDocument": {"uri": client.uri("a.cu")},
            "range": race["range"],
            "context": {"diagnostics": [race]},
        },
    )
    repair = next(action for action in found if action["title"].startswith("Insert __syncthreads();"))
    (edit,) = repair["edit"]["changes"][client.uri("a.cu")]
    start = edit["range"]["start"]
    place = (start["line"], start["character"])
    version = client.edit("a.cu", place, place, edit["newText"])
    assert client.diagnostics("a.cu", version) == []


def test_code_lens_tells_verdict_and_launch(plain: Client) -> None:
    plain.open("a.cu", FIGURE_1)
    plain.diagnostics("a.cu", 1)
    assert lens_titles(plain, "a.cu") == ["racy · block 64, grid 1", "Run dynamic check"]


def lens_titles(client: Client, name: str) -> list[str]:
    lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": client.uri(name)}})
    return [lens["command"]["title"] for lens in lenses]


def hover_at(client: Client, name: str, line: int, character: int) -> str:
    place = {"line": line, "character": character}
    params = {"textDocument": {"uri": client.uri(name)}, "position": place}
    return client.request("textDocument/hover", params)["contents"]["value"]


INSTANCES = """template <int N> __global__ void shift(int *out) {
  __shared__ int s[256];
  s[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = s[(threadIdx.x + N) % 64];
}
void launch(int *out) {
  shift<0><<<1, 64>>>(out);
  shift<1><<<1, 64>>>(out);
  shift<2><<<1, 64>>>(out);
}
"""


def test_a_defect_of_several_instances_is_one_squiggle_and_one_lens(plain: Client) -> None:
    plain.open("a.cu", INSTANCES)
    _, status = plain.settled("a.cu", 1)
    assert sorted(k["verdict"] for k in status["kernels"]) == ["race-free", "racy", "racy"]
    (race,) = codes(plain)[-1]
    assert race == "shared-race"
    text = hover_at(plain, "a.cu", 3, 24)
    assert text.count("shared-race") == 1 and "In `shift<1>`, `shift<2>`." in text
    verdict, run = lens_titles(plain, "a.cu")
    assert verdict == "shift: 1 of 3 race-free, 2 racy · block 64, grid 1" and run == "Run dynamic check"
    lenses = plain.request("textDocument/codeLens", {"textDocument": {"uri": plain.uri("a.cu")}})
    command = lenses[0]["command"]
    params = {"command": command["command"], "arguments": command["arguments"]}
    plain.request("workspace/executeCommand", params)
    (told,) = [m["params"]["message"] for _, m in plain.notifications if m["method"] == "window/showMessage"]
    assert [line.split(" ")[:2] for line in told.splitlines()] == [
        ["shift<0>:", "race-free"], ["shift<1>:", "racy"], ["shift<2>:", "racy"],
    ]  # fmt: skip
    titles = [action["title"] for action in plain.actions("a.cu", 3)]
    assert sum("__syncthreads" in title for title in titles) == 1
    assert sum(title.startswith("Ignore") for title in titles) == 1
    assert sum(title.startswith("Run dynamic check") for title in titles) == 1


@pytest.mark.parametrize("parser", [None, "marked"])
def test_a_witness_is_a_table_only_where_the_client_draws_tables(tmp_path: Path, parser: str | None) -> None:
    client = Client(tmp_path, general={"markdown": {"parser": parser}} if parser else {})
    client.open("a.cu", INSTANCES.replace("shift<0><<<1, 64>>>(out);", ""))
    client.settled("a.cu", 1)
    text = hover_at(client, "a.cu", 3, 24)
    assert ("|---|" in text) == (parser is not None)
    if parser is None:
        assert re.search(r"^   thread +block  access +line$", text, re.MULTILINE)
        assert re.search(r"^1  \(\d+, 0, 0\) +same   s\[threadIdx.x\] +3$", text, re.MULTILINE)
    assert client.close() == 0


def test_races_that_a_comment_silences_do_not_leave_the_kernel_racy(plain: Client) -> None:
    ignored = FIGURE_1.replace(
        "s[(id + 1) % nt];", "s[(id + 1) % nt];  // cuda-lsp: ignore[shared-race] known"
    )
    plain.open("a.cu", ignored)
    _, status = plain.settled("a.cu", 1)
    assert [kernel["verdict"] for kernel in status["kernels"]] == ["races ignored"] and status["errors"] == 0
    assert lens_titles(plain, "a.cu")[0].startswith("races ignored · ")


def test_a_kernel_whose_threads_may_miss_a_barrier_is_not_shown_as_clean(plain: Client) -> None:
    text = "__global__ void k(const int* p, int* out) {\n    if (p[threadIdx.x]) __syncthreads();\n}\n"
    plain.open("a.cu", text + "void f(int* p, int* o) { k<<<1, 64>>>(p, o); }\n")
    _, status = plain.settled("a.cu", 1)
    assert [kernel["verdict"] for kernel in status["kernels"]] == ["barrier missed"]
    assert lens_titles(plain, "a.cu")[0].startswith("barrier missed · ")


def test_a_comment_that_silences_nothing_is_told_and_removed(plain: Client) -> None:
    comment = "  // cuda-lsp: ignore[bank-conflict, global-race] once was\n"
    plain.open(
        "a.cu",
        FIGURE_1.replace("  s[id] = id;\n", f"{comment}  s[id] = id;  // cuda-lsp: ignore[warp-race]\n"),
    )
    plain.settled("a.cu", 1)
    plain.quiet(0.2)
    found = [m["params"] for _, m in plain.notifications if m["method"].endswith("publishDiagnostics")]
    idle = [d for d in found[-1]["diagnostics"] if "silence" in d["message"]]
    assert [(d["range"]["start"]["line"], d["severity"], d["tags"]) for d in idle] == [
        (3, 4, [1]),
        (4, 4, [1]),
    ]
    for line in (4, 3):
        (fix,) = [a for a in plain.actions("a.cu", line) if a["title"].startswith("Remove the comment")]
        (edit,) = fix["edit"]["changes"][plain.uri("a.cu")]
        assert edit["newText"] == ""
        start, end = ((p["line"], p["character"]) for p in (edit["range"]["start"], edit["range"]["end"]))
        assert (start, end) == (((4, 13), (4, 45)) if line == 4 else ((3, 0), (4, 0)))


def test_a_comment_that_silences_something_is_left_alone(plain: Client) -> None:
    plain.open("a.cu", FIGURE_1.replace("  s[id] = id;", "  s[id] = id;  // cuda-lsp: ignore[global-race]"))
    plain.open("b.cu", FIGURE_1.replace("/* größer", "// cuda-lsp: ignore[shared-race]\n /* größer"))
    plain.settled("b.cu", 1)
    published = [m["params"] for _, m in plain.notifications if m["method"].endswith("publishDiagnostics")]
    assert not any(
        "silence" in d["message"] for p in published if p["uri"].endswith("b.cu") for d in p["diagnostics"]
    )


def test_launches_that_the_open_files_have_are_offered(plain: Client) -> None:
    plain.open("b.cu", FIGURE_1.replace("<<<1, 64, 256>>>", "<<<8, dim3(16, 4)>>>"))
    plain.settled("b.cu", 1)
    plain.open("a.cu", FIGURE_1.split("void launch")[0])
    plain.settled("a.cu", 1)
    offered = [a for a in plain.actions("a.cu", 1, "refactor") if a["title"].startswith("Set launch")]
    assert [a["title"] for a in offered] == ["Set launch configuration of neighbour: block 16×4, grid 8"]
    (edit,) = offered[0]["edit"]["changes"][plain.uri("a.cu")]
    assert edit["newText"] == "// cuda-lsp: launch block=(16,4,1) grid=(8,1,1)\n"


def test_what_is_no_program_text_is_an_error_on_its_line(plain: Client) -> None:
    plain.open("a.cu", FIGURE_1.replace("s[id] = id;", "s[id] = id"))
    _, status = plain.settled("a.cu", 1)
    published = [m["params"] for _, m in plain.notifications if m["method"].endswith("publishDiagnostics")]
    (error,) = [d for d in published[-1]["diagnostics"] if "expected ';'" in d["message"]]
    assert (error["range"]["start"]["line"], error["severity"]) == (3, 1)
    assert status["errors"] >= 1 and [k["verdict"] for k in status["kernels"]] != ["race-free"]


def test_a_cancellation_that_comes_too_late_is_no_line_in_the_log(plain: Client) -> None:
    plain.open("a.cu", FIGURE_1)
    plain.settled("a.cu", 1)
    plain.request("textDocument/codeLens", {"textDocument": {"uri": plain.uri("a.cu")}})
    plain.notify("$/cancelRequest", {"id": plain.number})
    assert plain.close() == 0
    assert plain.stderr == ""


def test_squiggles_do_not_flicker_while_a_comment_is_typed(plain: Client) -> None:
    plain.open("a.cu", FIGURE_1)
    plain.diagnostics("a.cu", 1)
    plain.notifications.clear()
    for i, letter in enumerate("// note"):
        version = plain.edit("a.cu", (3, 13 + i), (3, 13 + i), letter)
    plain.diagnostics("a.cu", version)
    plain.quiet(0.3)
    sent = [m["params"] for _, m in plain.notifications if m["method"] == "textDocument/publishDiagnostics"]
    assert sent
    # A lone "/" on the way to "//" is broken code; the kernel must not look clean because of it.
    assert all(p["diagnostics"] for p in sent)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0\1\2\xff binary \0",
        "once upon a time\n",
        '#include "missing.h"\n' + FIGURE_1,
        "__global__ void k(int *a) { a[threadIdx.x",
        "\f\v\x85\u2028" + FIGURE_1,
        FIGURE_1 + "// filler\n" * 10_000,
    ],
    ids=["empty", "binary", "prose", "missing include", "half typed", "odd line ends", "10,000 lines"],
)
def test_any_text_leaves_the_server_alive(plain: Client, text: str) -> None:
    plain.open("a.cu", text)
    found = plain.diagnostics("a.cu", 1)
    assert not any("Traceback" in d["message"] or "internal error" in d["message"] for d in found)
    plain.open("b.cu", FIGURE_1)
    assert [d["code"] for d in plain.diagnostics("b.cu", 1)] == ["shared-race"]
    assert plain.close() == 0
    assert "Traceback" not in plain.stderr


def test_edits_behind_a_form_feed_land_where_the_client_means(plain: Client) -> None:
    plain.open("a.cu", "// a\fb\n" + FIGURE_1)
    assert plain.diagnostics("a.cu", 1)
    version = plain.edit("a.cu", (5, 0), (5, 0), "  __syncthreads();\n")
    assert plain.diagnostics("a.cu", version) == []


def test_letters_that_a_client_sends_in_another_order_are_the_word_that_was_typed(plain: Client) -> None:
    plain.open("a.cu", FIGURE_1)
    assert plain.diagnostics("a.cu", 1)
    word = "__syncthreads();"
    for number in (3, 9, 0, 15, 1, 2, 14, 4, 8, 5, 7, 6, 13, 10, 12, 11):
        place = {"line": 3, "character": 13 + number}
        changes = [{"range": {"start": place, "end": place}, "text": word[number]}]
        document = {"uri": plain.uri("a.cu"), "version": 2 + number}
        plain.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})
    plain.wait(lambda m: m.get("params", {}).get("diagnostics") == [] and m["params"].get("version") == 17)
    plain.quiet(0.5)
    assert codes(plain)[-1] == []


def test_exit_without_shutdown_is_an_error(plain: Client) -> None:
    assert plain.close(shutdown=False) == 1


def test_shutdown_while_the_solver_works_leaves_at_once(plain: Client) -> None:
    plain.open("a.cu", FIGURE_1.replace("<<<1, 64, 256>>>", "<<<1, n>>>").replace("% nt", "* id * id % nt"))
    assert plain.close() == 0


def test_pulled_diagnostics_are_not_pushed_as_well(tmp_path: Path) -> None:
    client = Client(tmp_path, options={"diagnostics": "pull"})
    assert client.capabilities["diagnosticProvider"]
    client.open("a.cu", FIGURE_1)
    client.settled("a.cu", 1)  # a pull waits for some seconds only
    document = {"textDocument": {"uri": client.uri("a.cu")}}
    first = client.request("textDocument/diagnostic", document)
    assert [d["code"] for d in first["items"]] == ["shared-race"]
    again = client.request("textDocument/diagnostic", {**document, "previousResultId": first["resultId"]})
    assert again["kind"] == "unchanged"
    assert not any(m["method"] == "textDocument/publishDiagnostics" for _, m in client.notifications)
    assert client.close() == 0


def test_bad_settings_are_told_once_and_the_rest_holds(tmp_path: Path) -> None:
    client = Client(tmp_path, options={"settings": {"defaultBlok": [3], "severity": {"shared-race": "hint"}}})
    client.open("a.cu", FIGURE_1)
    (race,) = client.diagnostics("a.cu", 1)
    assert race["severity"] == 4
    shown = [m["params"]["message"] for _, m in client.notifications if m["method"] == "window/showMessage"]
    assert len(shown) == 1
    assert "defaultBlok" in shown[0]
    assert client.close() == 0


SETTINGS = """severity = { shared-race = "hint" }
defines = ["LIMIT=1"]
solver-workers = 300
"""
NEEDS_DEFINE = f"__global__ void plain() {{}}\n#ifdef LIMIT\n{FIGURE_1}#endif\n"  # not all under the macro


def told(client: Client, name: str, seen: int = 0) -> list[tuple[int, int, str]]:
    """Line, severity and text of what is told of a settings file."""
    uri = client.uri(name)

    def wanted(m: Json) -> bool:
        return m["method"] == "textDocument/publishDiagnostics" and m["params"]["uri"] == uri

    found = client.wait(wanted, seen=seen)[1]["params"]["diagnostics"]
    return [(d["range"]["start"]["line"], d["severity"], d["message"]) for d in found]


@pytest.mark.parametrize("trusted", [False, True])
def test_only_a_trusted_folder_names_paths_and_flags(tmp_path: Path, trusted: bool) -> None:
    (tmp_path / "cuda-lsp.toml").write_text(SETTINGS)
    client = Client(tmp_path, options={"trusted": trusted})
    refused = [line for line, severity, _ in told(client, "cuda-lsp.toml") if severity == 3]
    assert refused == ([2] if trusted else [1, 2])
    client.open("a.cu", NEEDS_DEFINE)
    found = client.diagnostics("a.cu", 1)
    assert [d["severity"] for d in found if "code" in d] == ([4] if trusted else [])
    assert client.close() == 0


@pytest.mark.parametrize("trusted", [False, True])
def test_only_a_trusted_folder_has_a_compilation_database(tmp_path: Path, trusted: bool) -> None:
    command = {"directory": str(tmp_path), "file": "a.cu", "command": "nvcc -DLIMIT=1 -c a.cu"}
    (tmp_path / "compile_commands.json").write_text(json.dumps([command]))
    client = Client(tmp_path, options={"trusted": trusted})
    client.open("a.cu", NEEDS_DEFINE)
    codes = [d["code"] for d in client.diagnostics("a.cu", 1) if "code" in d]
    assert codes == (["shared-race"] if trusted else [])
    assert client.close() == 0


@pytest.mark.parametrize(
    "content", ["arch = \n", "x = " + "[" * 10_000, 'std = "\\u0000"\n', "banks = " + "9" * 5000]
)
def test_a_malformed_settings_file_is_told_on_its_line_and_kernels_are_analysed(
    tmp_path: Path, content: str
) -> None:
    file = tmp_path / "cuda-lsp.toml"
    file.write_text(f"# settings\n{content}")
    client = Client(tmp_path, options={"trusted": True})
    assert [severity for _, severity, _ in told(client, file.name)] == [2]
    client.open("a.cu", FIGURE_1)
    assert [d["code"] for d in client.diagnostics("a.cu", 1)] == ["shared-race"]
    seen = len(client.notifications)
    file.write_text("# settings\n")
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": client.uri(file.name), "type": 2}]})
    assert told(client, file.name, seen) == []
    assert client.close() == 0


def test_file_names_with_spaces_commas_and_letters_beyond_ascii_are_served(plain: Client) -> None:
    plain.open("größe 3,000.cu", FIGURE_1)
    assert [d["code"] for d in plain.diagnostics("größe 3,000.cu", 1)] == ["shared-race"]
    assert plain.close() == 0


def test_files_with_such_names_are_edited(plain: Client) -> None:
    name = "mein Kern, größer #1.cu"
    plain.open(name, FIGURE_1)
    assert len(plain.diagnostics(name, 1)) == 1
    version = plain.edit(name, (4, 0), (4, 0), "  __syncthreads();\n")
    assert plain.diagnostics(name, version) == []
    assert plain.close() == 0 and "is not open" not in plain.stderr
