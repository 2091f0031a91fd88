"""Reading text takes time in proportion to it: no pattern of the front end, no reader of host code blows up.

Every compiled pattern of the front end is found by importing its modules; ``linear_time`` makes its texts.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from linear_time import blows_up, found_everywhere, outgrows

import cuda_lsp.frontend as frontend
from cuda_lsp.blanked import blanked
from cuda_lsp.frontend.directives import parse_directives
from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.frontend.host.workspace import Workspace
from cuda_lsp.frontend.kernel_sources import KernelSources
from cuda_lsp.frontend.source_text import SourceText
from cuda_lsp.frontend.surroundings.conventions import conventions_of, switches_of
from cuda_lsp.frontend.unread_kernels import unread_kernels
from cuda_lsp.repairs.atomic_calls import atomic_extreme
from cuda_lsp.repairs.difference import difference
from cuda_lsp.repairs.updates import Update


def _compiled() -> dict[str, re.Pattern[Any]]:
    found: dict[int, tuple[str, re.Pattern[Any]]] = {}
    for module in pkgutil.walk_packages(frontend.__path__, "cuda_lsp.frontend."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, re.Pattern):
                found.setdefault(
                    id(value), (f"{module.name.removeprefix('cuda_lsp.frontend.')}.{name}", value)
                )
    return dict(found.values())


PATTERNS = _compiled()


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_takes_time_in_proportion_to_the_text(name: str) -> None:
    assert outgrows(PATTERNS[name], found_everywhere) is None


# What fills host code and is never finished, each the beginning of something that a reader looks for.
_HOST = (
    *("/*", '"\\"', "((", "{", "}", "\\\n", "a->", "a[", "(a+b)*", "const ", "f(", "x = &y, ", "n = k; "),
    *("k<<<", "k<<<1, 2>>>(", "k<<<n, m>>>(n); ", "f(k) k<<<1,2>>>(); ", "auto f = [", "(*f)(", "template <"),
    *("int n = ", "int n = 1; ", "int n, ", "enum { a = ", "dim3 b; ", "dim3 b(", "dim3 {", "b.x = 1; "),
    *("#if 1\n", "#define n 1\n", "#define A(x) A(x) A(x)\n", "A(", "#define L(k) k<<<1, 2>>>()\n", "L(k); "),
    *("cudaLaunchKernel(", "cudaLaunchKernelEx(&c, k); ", "cudaLaunchConfig_t c; ", "c.gridDim = 1; "),
    *("__global__ ", "__global__ k(", "__global__ void __launch_bounds__(", "c10::a "),
    *("// cuda-lsp: launch block=(", "// cuda-lsp: ignore[", "//--blockDim=["),
)
_READERS: dict[str, Callable[[str], object]] = {
    "blanked": blanked,
    "launches": lambda text: find_launches(Path("a.cu"), text),
    "unread kernels": lambda text: unread_kernels(text, KernelSources()),
    "directives": lambda text: parse_directives(Path("a.cu"), text),
    "conventions": lambda text: (conventions_of(text), switches_of([text])),
}


@pytest.mark.parametrize("reader", _READERS)
@pytest.mark.parametrize("around", ["", "k<<<n, n>>>(", "#define M(k) k<<<1, 2>>>(n)\nM("])
def test_host_code_is_read_in_proportion_to_its_length(reader: str, around: str) -> None:
    read = _READERS[reader]
    for body in _HOST:
        for space in ("", " "):

            def work(length: int, body: str = body, space: str = space) -> Callable[[], object]:
                text = around + body * (length // len(body)) + space * length + "k<<<n, b>>>(n);"
                return lambda: read(text)

            assert not blows_up(work), f"{reader} over {around!r} + {body!r} * n + {space!r} * n"


@pytest.mark.parametrize("length", [400, 2_000, 40_000])
def test_a_long_comment_inside_a_declaration_takes_no_time(tmp_path: Path, length: int) -> None:
    comment = f"/*{'-' * length}*/"
    declared = f"const int n {comment} = {comment} 256 {comment}; dim3 b(n, {comment} 2);"
    text = f"int main() {{ {declared} k<<<4, b>>>(); }}"
    begun = time.process_time()
    (site,) = find_launches(Path("a.cu"), text)
    assert time.process_time() - begun < 0.5
    assert (site.block, site.site and site.site.text) == ((256, 2, 1), "k<<<4, b>>>()")


def test_a_neighbours_long_comment_does_not_hang_the_file(tmp_path: Path) -> None:
    kernel = "__global__ void k(int* p) { p[threadIdx.x] = 1; }"
    (tmp_path / "a.cu").write_text(kernel)
    unfinished = f"int x /*{'-' * 2_000}*/ = f(/*{'-' * 2_000}*/ {{ int y = "
    (tmp_path / "b.cu").write_text(f"{unfinished}\nvoid run() {{ k<<<1, 64>>>(nullptr); }}")
    begun = time.process_time()
    found = Workspace().launches(tmp_path / "a.cu", ["k"])
    assert time.process_time() - begun < 0.5
    assert [site.block for site in found["k"]] == [(64, 1, 1)]


@pytest.mark.parametrize("pump", [" ", "\n", "x ", "(x", "< "], ids=repr)
def test_what_a_repair_reads_of_a_condition_takes_time_in_proportion(pump: str) -> None:
    update = Update(0, "m[0]", "", "x")

    def work(length: int) -> Callable[[], object]:
        condition = pump * (length // len(pump)) + "x"
        return lambda: atomic_extreme(update, condition)

    assert not blows_up(work)


def test_the_lines_that_a_repair_changed_are_found_among_many_alike() -> None:
    def work(length: int) -> Callable[[], object]:
        old = "\n" * length
        return lambda: difference(old + "a\nb\n" + old, old + "b\na\n" + old)

    assert not blows_up(work)


def test_the_positions_of_one_long_line() -> None:
    def work(length: int) -> Callable[[], object]:
        source = SourceText(Path("a.cu"), "é" * length)
        return lambda: [source.position(offset) for offset in range(2 * length)]

    assert not blows_up(work)
