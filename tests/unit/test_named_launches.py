"""Launches of kernels that a program compiles when it runs, and that host code names in a string."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches

_SIZES = "dim3 threads(32, 8); dim3 blocks(n / 32, 1);"


def told(body: str) -> list[tuple[str, object, object]]:
    sites = find_launches(Path("a.cpp"), f"void go(float* p, int n) {{ {_SIZES} {body} }}\n")
    return [(site.kernel, site.block, site.passed) for site in sites]


@pytest.mark.parametrize(
    "body",
    [
        'auto f = load("ns::scale", {source}); Queue queue(blocks, threads, stream); f(queue, p, n);',
        'Kernel f = load(module, "scale"); Queue queue{blocks, threads}; f(queue, p, n);',
        'auto f = load("scale"); f(Queue(blocks, threads), p, n);',
        'auto f = load("scale"); f(Queue(dim3(n), dim3(32, 8)), p, n);',
        'program.kernel("scale").instantiate(n).configure(blocks, threads).launch(p, n);',
        'program.kernel("scale").configure(blocks, threads, 0, stream)\n  .launch(p, n);',
    ],
)
def test_a_kernel_named_in_a_string_is_launched(body: str) -> None:
    assert told(body) == [("scale", (32, 8, 1), 2)]


@pytest.mark.parametrize(
    "body",
    [
        'log("scale"); Queue queue(blocks, threads); other(queue, p, n);',  # it leads nowhere
        'auto f = load("scale"); Range range(n, 64); f(range, p, n);',  # no blocks
        'auto f = load("scale"); Queue queue(blocks, threads); f(queue, p, n); f(queue, p, 2);',
        'auto f = load("scale"); Queue queue(blocks, threads); { Queue queue(blocks, blocks); } f(queue, p);',
        '// auto f = load("scale"); Queue queue(blocks, threads); f(queue, p, n);',
        'auto f = load("scale"); Queue queue(threads); f(queue, p, n);',
        'program.kernel("scale").configure(blocks).launch(p, n);',
    ],
)
def test_a_string_alone_launches_nothing(body: str) -> None:
    assert told(body + "\n") == []


def test_each_kernel_has_its_own_launch() -> None:
    body = (
        'auto f = load("one"); auto g = load("two"); Queue a(blocks, threads), b; Queue c(blocks, dim3(64));'
    )
    assert told(f"{body} f(a, p); g(c, p);") == [("one", (32, 8, 1), 1), ("two", (64, 1, 1), 1)]
