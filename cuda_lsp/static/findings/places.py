"""Where two accesses stand in the text, when calls lead to them: a function stands in a file of its own."""

from __future__ import annotations

from cuda_lsp.model import Site


def stands_below(one: Site, other: Site) -> bool:
    """On a later line than the other, of the function in which the ways to the two part."""
    ways = zip((*one.calls, one.range), (*other.calls, other.range), strict=False)
    here, there = next(((a, b) for a, b in ways if a != b), (one.range, other.range))
    return here.path == there.path and here.start.line > there.start.line
