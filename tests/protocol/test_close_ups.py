"""What a client shows of one place on request: what a barrier orders, the banks of an access as a picture."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as Xml
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from client import Client

pytestmark = pytest.mark.usefixtures("own_cache")

COLUMNS = """__global__ void columns(float *out, const float *in) {
  __shared__ float tile[32][32];
  int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[y * 32 + x];
  __syncthreads();
  __syncthreads();
  out[y * 32 + x] = tile[x][y];
}
void launch(float *o, float *i) { columns<<<1, dim3(32, 32)>>>(o, i); }
"""
ONE = COLUMNS.replace("  __syncthreads();\n  __syncthreads();\n", "  __syncthreads();\n")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    connected = Client(tmp_path)
    yield connected
    if connected.process.poll() is None:
        connected.process.kill()


def hover(client: Client, name: str, line: int) -> str:
    place = {"textDocument": {"uri": client.uri(name)}, "position": {"line": line, "character": 5}}
    return client.request("textDocument/hover", place)["contents"]["value"]


def test_a_barrier_says_which_pairs_it_orders(client: Client) -> None:
    client.open("a.cu", ONE)
    client.settled("a.cu", 1)
    told = hover(client, "a.cu", 4)
    assert "ends barrier interval 1" in told and "It orders 1 pair of accesses" in told
    assert "- `tile[y][x]` (line 4) and `tile[x][y]` (line 6)" in told


def test_a_barrier_that_orders_nothing_is_called_redundant(client: Client) -> None:
    client.open("a.cu", COLUMNS)
    client.settled("a.cu", 1)
    first, second = hover(client, "a.cu", 4), hover(client, "a.cu", 5)
    assert "redundant" in first and "redundant" in second  # either, for the other orders the pair
    assert "interval 1" in first and "interval 2" in second
    client.open("b.cu", ONE.replace("tile[x][y]", "in[x]"))
    client.settled("b.cu", 1)
    assert "redundant" in hover(client, "b.cu", 4)


TURNS = """template <int N> __global__ void turn(int *out, int n) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[(threadIdx.x + N) % 64];
}
void launch(int *o, int n) { turn<0><<<1, 64>>>(o, n); turn<1><<<1, 64>>>(o, n); }
"""
IN_FUNCTION = """__device__ int turned(int *s) {
  s[threadIdx.x] = threadIdx.x;
  SYNC;
  return s[(threadIdx.x + 1) % 64];
}
__global__ void other(int *out) { out[threadIdx.x] = 1; }
__global__ void turn(int *out) { __shared__ int s[64]; out[threadIdx.x] = turned(s); }
void launch(int *o) { other<<<1, 64>>>(o); turn<<<1, 64>>>(o); }
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TURNS, 3),  # the first instance does not need it
        (TURNS.replace("<0>", "<1>").replace("  out", "  if (n < 4) out"), 3),  # nor does a large n
        (TURNS.replace("turn<1><<<1, 64>>>", "turn<0><<<1, 32>>>").replace("N)", "N + blockDim.x / 64)"), 3),
        (IN_FUNCTION.replace("SYNC", "__syncthreads()"), 2),
        ("#define SYNC __syncthreads()\n" + IN_FUNCTION, 3),
    ],
    ids=["instances", "arguments", "launches", "function", "macro"],
)
def test_a_barrier_that_some_kernel_needs_is_not_called_redundant(
    client: Client, text: str, line: int
) -> None:
    client.open("a.cu", text)
    client.settled("a.cu", 1)
    assert "It orders 1 pair of accesses" in hover(client, "a.cu", line)


def test_a_barrier_of_which_not_all_is_known_is_not_called_redundant(client: Client) -> None:
    loop = "  for (int i = 0; i < n; i++) out[threadIdx.x + i * 64] = s[threadIdx.x];"
    client.open("a.cu", TURNS.replace("  out[threadIdx.x] = s[(threadIdx.x + N) % 64];", loop))
    client.settled("a.cu", 1)
    told = hover(client, "a.cu", 3)
    assert "redundant" not in told and "not all of the kernel is decided" in told


def show_banks(client: Client, line: int) -> None:
    arguments = [client.uri("a.cu"), line]
    client.request("workspace/executeCommand", {"command": "cuda-lsp.showBanks", "arguments": arguments})


RACY = ONE.replace("  __syncthreads();\n", "").replace("float *out", "float /* \u00fc \U0001d6fc */ *out")


def shown_message(client: Client, command: str, line: int) -> str:
    """What a client is told that has no view for pictures."""
    seen = len(client.notifications)
    client.request("workspace/executeCommand", {"command": command, "arguments": [client.uri("a.cu"), line]})
    _, told = client.wait(lambda m: m["method"] == "window/showMessage", seen=seen)
    return told["params"]["message"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_a_race_is_a_picture_of_two_accesses_and_the_missing_barrier(tmp_path: Path, encoding: str) -> None:
    client = Client(tmp_path, encoding)
    client.open("a.cu", RACY)
    client.settled("a.cu", 1)
    (action,) = [a for a in client.actions("a.cu", 4) if a["title"] == "Show the barrier intervals of line 5"]
    assert action["command"]["arguments"] == [client.uri("a.cu"), 5]
    told = shown_message(client, action["command"]["command"], 5)
    file, words = told.removeprefix("The picture: ").removesuffix(")").split(" (", 1)
    now, then = words.split("after the verified repair: ")
    assert now.count("in barrier interval 1") == 2 and "no barrier between them" in now
    assert "writes tile[y][x] on line 4" in now and "reads tile[x][y] on line 5" in now
    assert "between them: __syncthreads() on line 5" in then and "reads tile[x][y] on line 6" in then
    root = Xml.parse(Path(file)).getroot()
    before, after = [
        [g.attrib["aria-label"] for g in panel.findall("{*}g")] for panel in root.findall("{*}g")
    ]
    missing = before.index("no barrier here: nothing orders the two")
    barrier = after.index("__syncthreads() ends interval 1, line 5")
    for rows, at in ((before, missing), (after, barrier)):
        assert any("writes tile[y][x]" in row for row in rows[:at])
        assert any("reads tile[x][y]" in row for row in rows[at:])
    assert sum("races: " in row for row in before) == 2 and not any("races" in row for row in after)
    assert all(panel.attrib["tabindex"] == "0" for panel in root.findall("{*}g"))
    assert client.close() == 0


def test_a_line_without_a_race_has_no_intervals_to_show(client: Client) -> None:
    client.open("a.cu", ONE)
    client.settled("a.cu", 1)
    assert not any("barrier intervals" in a["title"] for a in client.actions("a.cu", 5))
    assert "no race on line 6" in shown_message(client, "cuda-lsp.showIntervals", 6)


def squares(picture: Xml.Element) -> list[list[str]]:
    """The words of the squares of each panel."""
    panels = picture.findall("{*}g")
    return [[g.attrib["aria-label"] for g in panel.findall("{*}g")] for panel in panels]


def test_the_banks_of_an_access_are_a_picture_before_and_after_the_repair(client: Client) -> None:
    client.open("a.cu", ONE)
    client.settled("a.cu", 1)
    (action,) = [a for a in client.actions("a.cu", 5) if a["title"] == "Show the banks of line 6"]
    params = {"command": action["command"]["command"], "arguments": action["command"]["arguments"]}
    client.request("workspace/executeCommand", params)
    (told,) = [m["params"]["message"] for _, m in client.notifications if m["method"] == "window/showMessage"]
    assert "now: tile[x][y] on line 6, warp 0: wavefronts: 32, ideal 1; bank 0 serves 32 words" in told
    assert "after the verified repair" in told and "32 banks serve 1 word each" in told
    path = Path(told.removeprefix("The picture: ").partition(" (")[0])
    now, then = squares(Xml.parse(path).getroot())
    assert len(now) == len(then) == 32
    assert (
        now[3] == "lane 3: bank 0, word 96, wavefront 4" and then[3] == "lane 3: bank 3, word 99, wavefront 1"
    )
    assert client.close() == 0


def test_a_client_with_a_view_for_pictures_gets_them(tmp_path: Path) -> None:
    client = Client(tmp_path, options={"pictures": True})
    client.open("a.cu", ONE)
    client.settled("a.cu", 1)
    client.request(
        "workspace/executeCommand", {"command": "cuda-lsp.showBanks", "arguments": [client.uri("a.cu"), 4]}
    )
    _, shown = client.wait(lambda m: m["method"] == "cuda-lsp/picture")
    assert shown["params"]["svg"].startswith("<svg ") and "wavefronts: 1" in shown["params"]["words"]
    (table,) = shown["params"]["tables"]
    assert table["columns"] == ["lane", "bank", "word", "wavefront"] and not table["lines"]
    assert table["rows"][3] == ["3", "3", "3", "1"] and len(table["rows"]) == 32
    client.request(
        "workspace/executeCommand", {"command": "cuda-lsp.showBanks", "arguments": [client.uri("a.cu"), 3]}
    )
    _, refused = client.wait(lambda m: m["method"] == "window/showMessage")
    assert "no access to shared memory on line 3" in refused["params"]["message"]
    assert client.close() == 0


def test_the_lines_of_a_race_come_as_a_table_that_leads_to_them(tmp_path: Path) -> None:
    client = Client(tmp_path, options={"pictures": True})
    client.open("a.cu", RACY)
    client.settled("a.cu", 1)
    command = {"command": "cuda-lsp.showIntervals", "arguments": [client.uri("a.cu"), 5]}
    client.request("workspace/executeCommand", command)
    _, shown = client.wait(lambda m: m["method"] == "cuda-lsp/picture")
    assert shown["params"]["uri"] == client.uri("a.cu")
    now, then = shown["params"]["tables"]
    assert now["columns"] == ["interval", "thread", "does", "access", "line"]
    assert [(row[2], row[3], row[4]) for row in now["rows"]] == [
        ("writes, races", "tile[y][x]", "4"),
        ("reads, races", "tile[x][y]", "5"),
    ]
    assert now["lines"] and not then["lines"]  # the mended text is not the document's
    assert [row[0] for row in then["rows"]] == ["1", "1", "2"]
    assert client.close() == 0


REFUSED, FAILED = ({"error": {"code": code, "message": "no display"}} for code in (-32803, -32603))


@pytest.mark.parametrize("opens", [{"success": True}, {"success": False}, REFUSED, FAILED])
def test_a_picture_that_the_client_cannot_show_is_told_as_its_file(
    tmp_path: Path, opens: dict[str, object]
) -> None:
    client = Client(tmp_path, opens=opens)
    client.open("a.cu", ONE)
    client.settled("a.cu", 1)
    show_banks(client, 6)
    shown = client.requests["window/showDocument"]
    assert shown["external"] and shown["uri"].endswith(".svg")
    told = [m["params"]["message"] for _, m in client.notifications if m["method"] == "window/showMessage"]
    if opens == {"success": True}:
        assert not told
    else:
        (text,) = told
        assert Path(text.removeprefix("The picture: ").partition(" (")[0]).as_uri() == shown["uri"]
    assert client.close() == 0


@pytest.mark.parametrize(
    ("kernel", "line", "command", "title"),
    [
        (ONE, 5, "cuda-lsp.showBanks", "Show the banks of line 6"),
        (
            ONE.replace("  __syncthreads();\n", ""),
            4,
            "cuda-lsp.showIntervals",
            "Show the barrier intervals of line 5",
        ),
    ],
)
def test_a_hover_leads_to_the_picture_of_its_finding(
    tmp_path: Path, kernel: str, line: int, command: str, title: str
) -> None:
    place = re.search(r"tile\[x\]", kernel.splitlines()[line])
    assert place
    for options in ({"pictures": True}, {}):
        client = Client(tmp_path, options=options)
        client.open("a.cu", kernel)
        client.settled("a.cu", 1)
        where = {"line": line, "character": place.start()}
        asked = {"textDocument": {"uri": client.uri("a.cu")}, "position": where}
        found: list[str] = []
        for _ in range(60):  # on a busy machine the picture is not there at once
            told = client.request("textDocument/hover", asked)["contents"]["value"]
            found = re.findall(rf"\[{title}\]\(([^)]+)\)", told)
            if found:
                break
        (target,) = found
        if options:
            name, _, arguments = target.partition("?")
            assert name == f"command:{command}" and json.loads(unquote(arguments)) == [
                client.uri("a.cu"),
                line + 1,
            ]
        else:
            assert Xml.parse(url2pathname(urlsplit(target).path)).getroot().tag.endswith("svg")
        assert client.close() == 0


def test_barriers_are_numbered_by_the_interval_that_they_end_when_somebody_asks(client: Client) -> None:
    client.open("a.cu", COLUMNS)
    client.settled("a.cu", 1)
    extent = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
    asked = {"textDocument": {"uri": client.uri("a.cu")}, "range": extent}
    labels = [hint["label"] for hint in client.request("textDocument/inlayHint", asked)]
    assert labels == ["32-way"]
    on = {"settings": {"cuda-lsp": {"intervalHints": True, "inlayHints": False}}}
    client.notify("workspace/didChangeConfiguration", on)
    seen = len(client.notifications)
    client.wait(lambda m: m["method"] == "cuda-lsp/fileStatus" and m["params"]["refined"], seen=seen)
    hints = client.request("textDocument/inlayHint", asked)
    assert [(hint["position"]["line"], hint["label"]) for hint in hints] == [
        (4, "ends interval 1"),
        (5, "ends interval 2"),
    ]
