"""Arguments of a launch that point into one buffer, and how far apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.frontend.host.shared_arguments import SharedBuffer
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import Analyzer


def shared(arguments: str) -> dict[int, tuple[object, object]]:
    text = f"void f() {{ const int N = 64; k<<<1, 32>>>({arguments}); }}"
    (site,) = find_launches(Path("a.cu"), text)
    return {position: (s.first, s.offset) for position, s in site.shared.items()}


@pytest.mark.parametrize(
    ("arguments", "offset"),
    [
        ("d, d", 0),
        ("d, (float*)d", 0),
        ("d, reinterpret_cast<const int*>(d)", 0),
        ("d, d + 1", 1),
        ("d + 4, d", -4),
        ("d, d - N", -64),
        ("&d[2], &d[2 * N]", 126),
        ("p->data, p->data + 8", 8),
        ("d + r * w, d + (r - 1) * w + N * w", None),
    ],
)
def test_offsets_of_constants(arguments: str, offset: int | None) -> None:
    assert shared(arguments) == {1: (0, offset)}


def test_an_offset_of_other_arguments_names_them_by_position() -> None:
    assert shared("d, d + n, n") == {1: (0, "#2")}
    assert shared("d, d + 2 * n * m + 1, n, m") == {1: (0, ("+", 1, ("*", ("*", 2, "#2"), "#3")))}


def test_what_the_host_alone_knows_may_cancel() -> None:
    assert shared("d + r * w, d + (r - 1) * w, w")[1] == (0, ("*", -1, "#2"))
    assert shared("d + f(), d + f()") == {1: (0, 0)}
    assert shared("d + f(), d + f() + 1") == {1: (0, None)}


@pytest.mark.parametrize("arguments", ["d, e", "buf[cur], buf[1 - cur]", "a.x, a.y", "d, 0", "NULL, NULL"])
def test_different_places_are_different_buffers(arguments: str) -> None:
    assert shared(arguments) == {}


def test_parameters_are_named_once_the_kernel_is_known() -> None:
    by_position = SharedBuffer(0, ("*", 2, "#2"))
    assert by_position.named(["out", "in", "n"]) == SharedBuffer("out", ("*", 2, "n"))


def test_an_offset_by_an_argument_that_the_kernel_does_not_take_is_unknown() -> None:
    assert SharedBuffer(0, ("*", 2, "#2")).named(["out", "in"]) == SharedBuffer("out", None)


KERNEL = """
__global__ void k(float* out, const float* in) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}}
int main() {{ float *d, *e; k<<<2, 64>>>({arguments}); }}
"""


def test_an_edited_launch_is_seen_by_the_kernel(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    analyzer = Analyzer()
    verdicts: list[Verdict] = []
    for arguments in ("d, e", "d, d + 1", "d, d + 128"):
        path.write_text(text := KERNEL.format(arguments=arguments))
        analyzer.update(path, text)
        verdicts.append(analyzer.settle(path).kernels[0].verdict)
    analyzer.shutdown()
    assert verdicts == [Verdict.RACE_FREE, Verdict.RACY, Verdict.RACE_FREE]
