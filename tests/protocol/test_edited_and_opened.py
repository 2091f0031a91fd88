"""Whatever was typed before: the settled editor says of a text what it says where that is opened."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from client import Client, Json
from test_calm import ROWS

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
TEXTS = {
    "rows.cu": ROWS,
    "plain.cu": ROWS.split("template")[0]
    + "void launch(float *o, float *i, int n, int p) {\n  rows<<<4, 256>>>(o, i, n, p);\n}\n",
    **{
        name: (FIXTURES / "demo" / name).read_text() for name in ("divergent.cu", "matmul.cu", "neighbour.cu")
    },
    **{name: (FIXTURES / name).read_text() for name in ("reduce.cu", "histogram.cu")},
}
PLACES = (
    (r"(?<=<<<)[^;]*?\b\d+(?=>>>)", ("2, 64", "1, 32", "3, 128")),  # a launch
    (r"__syncthreads\(\);", ("", "__syncthreads(); ", "/* none */")),
    (r"\b(?:2|32|64|256)\b", ("16", "128", "3")),
    (r"(?<=;)\n", ("\n  int q = 3;\n", " int q = (\n", " /\n", "\n\n", "  // said\n", " /* said\n */\n")),
    (r"threadIdx\.x", ("threadIdx.y", "(threadIdx.x)", "threadIdx.x / 2")),
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    found = Client(tmp_path_factory.mktemp("typed"))
    yield found
    assert found.close() == 0


def settled(client: Client, name: str, version: int) -> tuple[list[str], list[str]]:
    """Diagnostics and verdicts."""
    _, status = client.settled(name, version, 60)
    last = [
        m["params"]["diagnostics"]
        for _, m in client.notifications
        if m["method"].endswith("publishDiagnostics") and m["params"]["uri"] == client.uri(name)
    ][-1]
    return sorted(map(_shown, last)), [
        f"{k['name']} {k['verdict']} {k['reasons']}" for k in status["kernels"]
    ]


def _shown(diagnostic: Json) -> str:
    start = diagnostic["range"]["start"]
    return f"{start['line']}:{start['character']} {diagnostic['severity']} {diagnostic['message']}"


def edit(text: str, choose: random.Random) -> tuple[int, int, str]:
    """What stands between two offsets is replaced."""
    places, instead = choose.choice(PLACES)
    found = list(re.finditer(places, text))
    if not found:
        return edit(text, choose)
    place = choose.choice(found)
    return place.start(), place.end(), choose.choice(instead)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("seed", range(3))
def test_what_was_typed_before_does_not_matter(client: Client, name: str, seed: int) -> None:
    choose, text = random.Random(f"{name} {seed}"), TEXTS[name]
    typed = f"{seed}-{Path(name).name}"
    client.open(typed, text)
    client.settled(typed, 1, 60)
    for number in range(5):
        before, (start, end, instead) = text, edit(text, choose)
        text = text[:start] + instead + text[end:]
        places = [(before.count("\n", 0, at), at - before.rfind("\n", 0, at) - 1) for at in (start, end)]
        version = client.edit(typed, *places, instead)
        if choose.random() < 0.3:
            continue  # the next one comes at once
        edited = settled(client, typed, version)
        fresh = f"fresh-{number}-{typed}"
        client.open(fresh, text)
        opened = settled(client, fresh, 1)
        client.notify("textDocument/didClose", {"textDocument": {"uri": client.uri(fresh)}})
        if not any("not understood" in told or "not analysed" in told for told in opened[0]):
            assert edited == opened, text  # broken text has what was told before, too


def test_a_launch_that_is_edited_is_the_one_that_is_told_of(client: Client) -> None:
    """In a file without templates, where a host function is not read while somebody types in it."""
    text = "__global__ void k(int* a) {\n  __shared__ int s[64];\n  s[threadIdx.x] = a[threadIdx.x];\n"
    text += "  a[threadIdx.x] = s[threadIdx.x ^ 1];\n}\nvoid f(int* a) { k<<<1, 1>>>(a); }\n"
    client.open("launch.cu", text)
    assert "race-free" in settled(client, "launch.cu", 1)[1][0]
    version = client.edit("launch.cu", (5, 24), (5, 25), "64")
    assert "racy" in settled(client, "launch.cu", version)[1][0]
