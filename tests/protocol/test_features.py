"""What editors show beside squiggles: hints, the hover of a conflict, what diagnostics carry, comments."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from client import Client, Json

DEMO = Path(__file__).parents[2] / "fixtures/demo"
LOADS = "/* größer → \U0001d6fc */ out[y * 32 + x] = tile[x][y];"
COLUMNS = f"""__global__ void columns(float *out, const float *in) {{
  __shared__ float tile[32][32];
  int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[y * 32 + x];
  {LOADS}
}}
void launch(float *o, float *i) {{ columns<<<1, dim3(32, 32)>>>(o, i); }}
"""
UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


@pytest.fixture(params=["utf-8", "utf-16", "utf-32"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    connected = Client(tmp_path, request.param)
    connected.open("a.cu", COLUMNS)
    connected.settled("a.cu", 1)
    yield connected
    if connected.process.poll() is None:
        connected.process.kill()


def column(client: Client, text: str) -> int:
    """Where ``text`` ends in the line of the loads, in the client's units."""
    encoding, width = UNITS[client.capabilities["positionEncoding"]]
    line = f"  {LOADS}"
    return len(line[: line.index(text) + len(text)].encode(encoding)) // width


def hints(client: Client) -> list[Json]:
    extent = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
    params = {"textDocument": {"uri": client.uri("a.cu")}, "range": extent}
    return client.request("textDocument/inlayHint", params)


def lenses(client: Client) -> list[Json]:
    return client.request("textDocument/codeLens", {"textDocument": {"uri": client.uri("a.cu")}})


def test_the_ways_of_a_conflict_stand_behind_its_access(client: Client) -> None:
    (hint,) = hints(client)
    assert hint["label"] == "32-way" and hint["tooltip"] == "32 wavefronts, ideal 1"
    assert hint["position"] == {"line": 4, "character": column(client, "tile[x][y]")}


def test_hints_and_lenses_are_turned_off_while_the_server_runs(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.open("a.cu", COLUMNS)
    client.settled("a.cu", 1)
    assert hints(client) and lenses(client)
    off = {"settings": {"cuda-lsp": {"inlayHints": False, "codeLens": False}}}
    client.notify("workspace/didChangeConfiguration", off)
    seen = len(client.notifications)
    client.wait(lambda m: m["method"] == "cuda-lsp/fileStatus" and m["params"]["refined"], seen=seen)
    assert hints(client) == [] and lenses(client) == []
    assert client.close() == 0


def test_the_hover_of_a_conflict_has_its_banks_and_its_cost(client: Client) -> None:
    place = {"line": 4, "character": column(client, "tile[x][y]") - 1}
    params = {"textDocument": {"uri": client.uri("a.cu")}, "position": place}
    told = client.request("textDocument/hover", params)["contents"]["value"]
    assert "**bank-conflict**" in told and "32 wavefronts" in told and "█" in told


def test_a_diagnostic_carries_its_finding_its_page_and_the_other_place(client: Client) -> None:
    found = [m["params"] for _, m in client.notifications if m["method"].endswith("publishDiagnostics")][-1]
    race = next(d for d in found["diagnostics"] if d["code"] == "shared-race")
    assert race["data"] == {"code": "shared-race", "kernel": "columns", "status": "proved"}
    assert race["codeDescription"]["href"].endswith("shared-race.md") and race["severity"] == 1
    end = column(client, "tile[x][y]")
    assert race["range"]["end"] == {"line": 4, "character": end}
    (other,) = race["relatedInformation"][:1]
    assert other["location"]["range"]["start"] == {"line": 3, "character": 2}


def test_the_comment_of_an_action_silences_what_it_names_and_nothing_else(client: Client) -> None:
    (action,) = [a for a in client.actions("a.cu", 4) if a["title"] == "Ignore bank-conflict here"]
    (edit,) = action["edit"]["changes"][client.uri("a.cu")]
    assert edit["newText"] == "  // cuda-lsp: ignore[bank-conflict] reason\n"
    start, end = (
        (edit["range"][side]["line"], edit["range"][side]["character"]) for side in ("start", "end")
    )
    version = client.edit("a.cu", start, end, edit["newText"])
    client.settled("a.cu", version)
    found = [m["params"] for _, m in client.notifications if m["method"].endswith("publishDiagnostics")][-1]
    codes = {d["code"] for d in found["diagnostics"]}
    assert "shared-race" in codes and "bank-conflict" not in codes


FUNCTION = """__device__ void put(int *s, int *out) {
  s[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = s[threadIdx.x + 1];
}
__global__ void one(int *out) { __shared__ int s[65]; put(s, out); }
__global__ void two(int *out) { __shared__ int s[65]; put(s, out); }
__global__ void three(int *out) { __shared__ int t[65]; put(t, out); }
void launch(int *o) { one<<<1, 64>>>(o); two<<<1, 64>>>(o); three<<<1, 64>>>(o); }
"""


def test_what_a_function_does_in_several_kernels_is_one_squiggle(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.open("a.cu", FUNCTION)
    client.settled("a.cu", 1)
    version = client.edit("a.cu", (5, 68), (5, 68), "out[0] += 0; ")  # in one of the kernels alone
    client.settled("a.cu", version)
    last = [m["params"] for _, m in client.notifications if m["method"].endswith("publishDiagnostics")][-1]
    found = [d for d in last["diagnostics"] if d["range"]["start"]["line"] == 2]
    assert last["version"] == version
    assert sorted(d["code"] for d in found) == ["shared-race", "shared-uninitialised"]
    race = next(d for d in found if d["code"] == "shared-race")
    assert any(r["message"].startswith("also in ") for r in race["relatedInformation"])
    assert client.close() == 0


CALLS = """template <int N> __device__ void put(int *s) { s[threadIdx.x] = N; }
template <typename T, int N> __global__ void tile(T *out) {
  __shared__ int s[128];
  put<N>(s);
  if (N > 2) __syncthreads();
  out[threadIdx.x] = s[(threadIdx.x + N - 1) % 64];
}
__global__ void plain(int *out) { put<1>(out); }
void launch(float *a, int *b) {
  tile<float, 1><<<1, 64>>>(a);
  tile<int, 2><<<1, 64>>>(b);
  tile<int, 3><<<1, 64>>>(b);
  tile<int, 4><<<1, 64>>>(b);
  plain<<<1, 64>>>(b);
}
"""


def test_a_kernel_has_one_verdict_however_many_instances_and_functions_it_has(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.open("a.cu", CALLS)
    client.settled("a.cu", 1)
    shown = [(lens["range"]["start"]["line"], lens["command"]["title"]) for lens in lenses(client)]
    assert shown == [
        (1, "tile: 3 of 4 race-free, 1 racy · block 64, grid 1"),
        (1, "Run dynamic check"),
        (7, "race-free · block 64, grid 1"),
        (7, "Run dynamic check"),
    ]
    assert client.close() == 0


PROGRAM = """__global__ void one(int* p) { p[0] = 1; }

int main() {
  one<<<1, 1>>>(nullptr);
}
"""


def test_the_program_is_run_by_an_action_where_its_lens_stands(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.open("a.cu", PROGRAM)
    client.settled("a.cu", 1)
    runs = {"command": "cuda-lsp.runProgram", "arguments": [client.uri("a.cu")]}
    asked = [a["command"] for a in client.actions("a.cu", 2) if a["kind"] == "source"]
    assert [{key: command[key] for key in runs} for command in asked] == [runs]
    assert not any("program" in action["title"] for action in client.actions("a.cu", 0))
    assert client.close() == 0


@pytest.mark.parametrize("name", ["divergent", "last_warp", "matmul", "neighbour", "transpose"])
def test_nothing_is_offered_twice_and_one_repair_comes_first(tmp_path: Path, name: str) -> None:
    text = (DEMO / f"{name}.cu").read_text()
    client = Client(tmp_path)
    client.open("a.cu", text)
    client.settled("a.cu", 1)
    offered = [client.actions("a.cu", line) for line in range(text.count("\n"))]
    titles = [[action["title"] for action in of_line] for of_line in offered]
    assert all(len(set(each)) == len(each) for each in titles)
    assert all(sum(title.startswith("Ignore") for title in each) <= 1 for each in titles)
    assert any(action.get("isPreferred") for of_line in offered for action in of_line)
    assert all(sum(bool(action.get("isPreferred")) for action in of_line) <= 1 for of_line in offered)
    assert client.close() == 0
