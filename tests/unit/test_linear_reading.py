"""Reading text takes time in proportion to it: no pattern of the front end, no reader of host code blows up.

Every compiled pattern of the front end is found by importing its modules. From its own syntax come texts that
repeat what it repeats, behind what leads there, and end as it does not expect: where a pattern has two ways
to share out a text, four times the text takes sixteen times as long.
"""

from __future__ import annotations

import gc
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

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

try:
    from re import _constants as codes
    from re import _parser as parser
except ImportError:  # Python 3.10
    import sre_constants as codes
    import sre_parse as parser

_LENGTHS = (20, 60, 250, 1_000, 4_000, 16_000)
_NEGLIGIBLE = 0.03
"""Seconds of CPU time within which nobody asks how they grew."""
_GROWTH = 10
"""Of the time, for four times the text: between 4, which is in proportion, and 16, which is its square."""
_ENDS = ("\0", "", "\n")


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


def _characters(members: Any) -> list[str]:
    """Some characters of a set."""
    found: list[str] = []
    negated = members and members[0][0] is codes.NEGATE
    for code, value in members:
        if code is codes.LITERAL:
            found.append(chr(value))
        elif code is codes.RANGE:
            found.append(chr(value[0]))
        elif code is codes.CATEGORY:
            found += {codes.CATEGORY_SPACE: [" ", "\n"], codes.CATEGORY_DIGIT: ["1"]}.get(value, ["a"])
    return [c for c in 'a (<[,=*/"\\' if c not in found] if negated else found or ["a"]


def _samples(item: Any) -> list[str]:
    """Texts that one element of a pattern matches, roughly."""
    code, value = item
    if code is codes.LITERAL:
        return [chr(value)]
    if code is codes.NOT_LITERAL:
        return [c for c in ("a", " ", "(") if c != chr(value)]
    if code is codes.ANY:
        return ["a", " ", "/"]
    if code is codes.IN:
        return _characters(value)
    if code is codes.BRANCH:
        return [_sample(branch) for branch in value[1]]
    if code is codes.SUBPATTERN:
        return [_sample(value[-1])]
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        return [text * max(1, value[0]) for text in _samples_of(value[2])]
    return [""]


def _samples_of(items: Any) -> list[str]:
    return _samples(items[0]) if len(items) == 1 else [_sample(items)]


def _sample(items: Any) -> str:
    return "".join(_samples(item)[0] if _samples(item) else "" for item in items)


def _repeats(items: Any, before: str) -> Iterator[tuple[str, list[str]]]:
    """What leads to each repetition of a pattern, and what it may repeat."""
    for item in items:
        code, value = item
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            if value[1] > 1:
                yield before, _samples_of(value[2])
            yield from _repeats(value[2], before)
        elif code is codes.SUBPATTERN:
            yield from _repeats(value[-1], before)
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from _repeats(branch, before)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from _repeats(value[1], before)
        before += (_samples(item) or [""])[0]


def _pumps(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str]]:
    """(beginning, what is repeated) of texts that try a pattern."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = parser.parse(
        source, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    )
    found: dict[tuple[str, str], None] = {}
    for before, bodies in _repeats(tree, ""):
        for body in {*bodies, " "}:
            found |= {(before, body): None, ("", before + body): None, (before, before + body): None}
        found[("", before)] = None
    whole = _sample(tree)
    return iter([*found, ("", whole), ("", whole[:-1])])


def _seconds(work: Callable[[], object]) -> float:
    """CPU time without the garbage collector, whose rounds grow with all that the test process holds."""
    gc.disable()
    begun = time.process_time()
    try:
        work()
        return time.process_time() - begun
    finally:
        gc.enable()


def _blows_up(work: Callable[[int], Callable[[], object]]) -> bool:
    """Whether more text takes out of proportion longer; told with the shortest that shows it."""
    before = _NEGLIGIBLE
    for length in _LENGTHS:
        taken = _seconds(work(length))
        if taken > _GROWTH * max(before, _NEGLIGIBLE / _GROWTH):
            before = max(_seconds(work(length // 4)) for _ in range(3))
            again = (_seconds(work(length)) for _ in range(5))  # other processes disturb some, not all
            if min(taken, *again) > _GROWTH * max(before, 1e-4):
                return True
        before = taken
    return False


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_takes_time_in_proportion_to_the_text(name: str) -> None:
    pattern = PATTERNS[name]
    for begin, body in _pumps(pattern):
        for end in _ENDS if body else ():

            def work(
                length: int, begin: str = begin, body: str = body, end: str = end
            ) -> Callable[[], object]:
                text: Any = begin + body * (length // len(body)) + end
                text = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
                return lambda: sum(1 for _ in pattern.finditer(text))

            assert not _blows_up(work), f"{name} over {begin!r} + {body!r} * n + {end!r}"


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

            assert not _blows_up(work), f"{reader} over {around!r} + {body!r} * n + {space!r} * n"


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

    assert not _blows_up(work)


def test_the_lines_that_a_repair_changed_are_found_among_many_alike() -> None:
    def work(length: int) -> Callable[[], object]:
        old = "\n" * length
        return lambda: difference(old + "a\nb\n" + old, old + "b\na\n" + old)

    assert not _blows_up(work)


def test_the_positions_of_one_long_line() -> None:
    def work(length: int) -> Callable[[], object]:
        source = SourceText(Path("a.cu"), "é" * length)
        return lambda: [source.position(offset) for offset in range(2 * length)]

    assert not _blows_up(work)
