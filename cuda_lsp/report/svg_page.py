"""What pictures have in common: a page of SVG, light or dark as its reader is, that says itself in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar
from xml.sax.saxutils import escape, quoteattr

P = TypeVar("P")
STYLE = """
svg { color-scheme: light dark; font: 11px system-ui, sans-serif }
.page { fill: #ffffff } .ink { fill: #1b1f23 } .rule { stroke: #d0d7de }
@media (prefers-color-scheme: dark) {
  .page { fill: #1b1f23 } .ink { fill: #e6edf3 } .rule { stroke: #3d444d }
}
.number { font-size: 8px; text-anchor: middle }
[tabindex]:focus { outline: 2px solid #0072b2; outline-offset: -2px }
"""


def page(title: str, words: str, width: int, height: int, parts: Iterable[str]) -> str:
    """``parts``: what is drawn. ``words``: all of it, for who does not see it."""
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="group" aria-labelledby="title words">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="words">{escape(words)}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
        *parts,
        "</svg>\n",
    ])  # fmt: skip


def titled(now: P, mended: Iterable[P]) -> list[tuple[str, P]]:
    """A picture of the text as it is, and one of the mended text if there is any, each with its title."""
    return [("now", now), *(("after the verified repair", picture) for picture in mended)]


def panel(said: str, left: int, top: int, parts: Iterable[str]) -> list[str]:
    """One picture of a page, at its place, as something that takes the focus and says itself."""
    attributes = f'role="group" tabindex="0" aria-label={quoteattr(said)}'
    return [f'<g {attributes} transform="translate({left} {top})">', *parts, "</g>"]


def text(x: float, y: float, content: str, style: str = "") -> str:
    """A line in the colour of the page's ink."""
    return f'<text class="ink" x="{x}" y="{y}" {style}>{escape(content)}</text>'


def short(content: str, most: int) -> str:
    """The first of its characters."""
    return content if len(content) <= most else f"{content[: most - 1]}…"
