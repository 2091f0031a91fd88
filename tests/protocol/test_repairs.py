"""Repairs as an editor gets them: verified in the background, preferred only then, all at once when asked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from client import Client, Json

# Both tiers are needed for the verdict: the rows of `out` are the solver's affair.
TILES = """__global__ void tiles(float *out, const float *in, int n, int pitch) {
  __shared__ float s[64];
  int t = threadIdx.x;
  float sum = 0;
  for (int r = 0; r < n; r++) {
    s[t] = in[r * 64 + t];
    __syncthreads();
    for (int k = 0; k < 64; k++)
      sum += s[k];
  }
  if (t < pitch) out[blockIdx.x * pitch + t] = sum;
}
void launch(float *o, float *i, int n, int p) { tiles<<<4, 64>>>(o, i, n, p); }
"""
COLUMNS = """__global__ void columns(float *out) {
  __shared__ float a[32][32], b[32][32];
  int x = threadIdx.x, y = threadIdx.y;
  a[x][y] = x;
  b[x][y] = y;
  out[(blockIdx.x * 32 + y) * 32 + x] = a[x][y] + b[x][y];
}
void launch_columns(float *o) { columns<<<4, dim3(32, 32)>>>(o); }
"""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    connected = Client(tmp_path, resolves=True)
    yield connected
    if connected.process.poll() is None:
        connected.process.kill()


def edited(text: str, action: Json) -> str:
    """The text after an action of whole lines or within lines (ASCII)."""
    ((_, edits),) = action["edit"]["changes"].items()
    lines = text.splitlines(keepends=True)

    def offset(place: Json) -> int:
        return sum(map(len, lines[: place["line"]])) + place["character"]

    for edit in sorted(edits, key=lambda e: offset(e["range"]["start"]), reverse=True):
        start, end = offset(edit["range"]["start"]), offset(edit["range"]["end"])
        text = text[:start] + edit["newText"] + text[end:]
    return text


def test_the_barrier_of_a_round_is_verified_by_both_tiers_and_preferred(client: Client) -> None:
    client.open("a.cu", TILES)
    client.settled("a.cu", 1)
    preferred = [action for action in client.actions("a.cu", 8) if action.get("isPreferred")]
    assert [action["title"] for action in preferred] == [
        "Insert __syncthreads(); at the end of the loop on line 5 (1 barrier more a round)"
    ]
    mended = edited(TILES, preferred[0])
    assert mended == TILES.replace("sum += s[k];\n", "sum += s[k];\n    __syncthreads();\n")
    client.open("b.cu", mended)
    _, status = client.settled("b.cu", 1)
    assert [kernel["verdict"] for kernel in status["kernels"]] == ["race-free"]


def test_two_buffers_are_suggested_where_one_barrier_is_then_enough(client: Client) -> None:
    text = TILES.replace("sum += s[k];\n", "sum += s[k];\n    __syncthreads();\n").replace("r < n", "r < 8")
    client.open("a.cu", text)
    client.settled("a.cu", 1)
    line = text[: text.rindex("__syncthreads")].count("\n")
    (action,) = [a for a in client.actions("a.cu", line, "refactor.rewrite") if "Double-buffer" in a["title"]]
    assert action["title"].endswith("(256 bytes of shared memory more) (1 barrier less a round)")
    assert not action.get("isPreferred")
    made = edited(text, action)
    assert "s[2][64]" in made and made.count("__syncthreads") == 1
    assert not any("Double" in a["title"] for a in client.actions("a.cu", line - 4, "refactor.rewrite"))


def test_all_repairs_of_a_file_are_one_action_for_who_asks_for_it(client: Client) -> None:
    client.open("a.cu", TILES + COLUMNS)
    client.settled("a.cu", 1)
    (action,) = client.actions("a.cu", 0, "source.fixAll")
    assert action["kind"] == "source.fixAll.cuda-lsp"
    client.open("b.cu", edited(TILES + COLUMNS, action))
    _, status = client.settled("b.cu", 1)
    assert {kernel["verdict"] for kernel in status["kernels"]} == {"race-free"}
    assert client.actions("b.cu", 0, "source.fixAll") == []
    assert not any(a["kind"].startswith("source.fixAll") for a in client.actions("a.cu", 0))


def test_all_of_a_kind_in_a_kernel_are_mended_when_that_is_chosen(client: Client) -> None:
    client.open("a.cu", COLUMNS)
    client.settled("a.cu", 1)
    title = "Mend every bank-conflict of columns that can be verified"
    (action,) = [a for a in client.actions("a.cu", 3) if a["title"] == title]
    assert "edit" not in action
    chosen = client.request("codeAction/resolve", action)
    assert edited(COLUMNS, chosen) == COLUMNS.replace(
        "a[32][32], b[32][32];", "a[32][32 + 1], b[32][32 + 1];"
    )


def test_files_have_settings_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "cuda-lsp.toml").write_text('[per-file."old/**"]\nignore = ["bank-conflict"]\n')
    client = Client(tmp_path)
    client.open("new.cu", COLUMNS)
    client.open("old/a.cu", COLUMNS)
    told = [{d["code"] for d in client.diagnostics(name, 1)} for name in ("new.cu", "old/a.cu")]
    assert ["bank-conflict" in codes for codes in told] == [True, False]
    assert client.close() == 0
