"""The banks of shared memory as a picture: lanes by banks, a square a word, the wavefront that serves it.

Colours are a scale that people with any colour vision tell apart (after Okabe and Ito, dark to light by
wavefront), and each square has its wavefront's number; light and dark follow who looks at it. Every square,
and the whole, have their words for screen readers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

from cuda_lsp.report.svg_page import page, panel, short, text, titled
from cuda_lsp.wavefronts import Touch, WarpPicture

_SIDE = 15  # of a square, pixels
_LEFT, _TOP, _BELOW = 64, 74, 46
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#f0e442", "#999999")
_DARK_TEXT = frozenset(("#e69f00", "#56b4e9", "#f0e442", "#cc79a7", "#999999", "#009e73"))
COLUMNS = ("lane", "bank", "word", "wavefront")
_NOTE = "A square: a word that a lane touches, with the number of the wavefront that serves it."
_IDEAL = "Ideal: a 1 in all of them."


def svg(pictures: Sequence[tuple[str, WarpPicture]]) -> str:
    """One picture beside the other, each with its title (``before``, ``after``)."""
    width = sum(_width(picture) for _, picture in pictures)
    height = max(_TOP + picture.lanes * _SIDE + _BELOW for _, picture in pictures)
    parts: list[str] = []
    left = 0
    for title, picture in pictures:
        parts += panel(f"{title}: {description(picture)}", left, 0, _panel(title, picture))
        left += _width(picture)
    return page(f"Banks of {pictures[0][1].access}", words_of(pictures), width, height, parts)


def words_of(pictures: Sequence[tuple[str, WarpPicture]]) -> str:
    """All of them in words."""
    return "; ".join(f"{title}: {description(picture)}" for title, picture in pictures)


def table(picture: WarpPicture) -> list[tuple[str, ...]]:
    """The squares of the picture as words, in columns of ``COLUMNS``."""
    return [(str(t.lane), str(t.bank), str(t.word), str(t.wavefront + 1)) for t in picture.touches]


def panels(now: Sequence[WarpPicture], mended: Sequence[WarpPicture]) -> list[tuple[str, WarpPicture]]:
    """The dearest access of a line (``now``, not empty), and the same of the mended text if it is there."""
    dearest = max(range(len(now)), key=lambda n: now[n].wavefronts - now[n].ideal)
    return titled(now[dearest], mended[dearest : dearest + 1])


def description(picture: WarpPicture) -> str:
    """The picture in words: the cost, and which banks serve most words."""
    words = Counter(bank for bank, _ in {(t.bank, (t.part, t.word)) for t in picture.touches})
    most = max(words.values(), default=0)
    busiest = [bank for bank, count in sorted(words.items()) if count == most]
    alone = len(busiest) == 1
    which = f"bank {busiest[0]} serves" if alone else f"{len(busiest)} banks serve"
    spread = f"{which} {most} word{'s' if most != 1 else ''}"
    used = f"banks in use: {len(words)} of {picture.banks}"
    cost = f"wavefronts: {picture.wavefronts}, ideal {picture.ideal}"
    place = f"{picture.access} on line {picture.line}, warp {picture.warp}"
    return f"{place}: {cost}; {spread}{'' if alone else ' each'}, {used}"


def _width(picture: WarpPicture) -> int:
    return _LEFT + picture.banks * _SIDE + 24


def _panel(title: str, picture: WarpPicture) -> list[str]:
    cost = f"{picture.wavefronts} wavefronts, ideal {picture.ideal}"
    right, bottom = _LEFT + picture.banks * _SIDE, _TOP + picture.lanes * _SIDE
    parts = [
        text(_LEFT, 20, f"{title}: {cost}", 'font-weight="bold" font-size="14"'),
        text(_LEFT, 38, short(picture.access, 66), 'font-family="monospace"'),
        text(_LEFT, 56, f"bank (warp {picture.warp}, line {picture.line})"),
        text(8, _TOP + 11, "lane"),
    ]
    for number in range(picture.banks + 1):
        x = _LEFT + number * _SIDE
        parts.append(f'<line class="rule" x1="{x}" y1="{_TOP}" x2="{x}" y2="{bottom}"/>')
        if number < picture.banks and number % 4 == 0:
            parts.append(f'<text class="ink number" x="{x + _SIDE / 2}" y="{_TOP - 4}">{number}</text>')
    for number in range(picture.lanes + 1):
        y = _TOP + number * _SIDE
        parts.append(f'<line class="rule" x1="{_LEFT}" y1="{y}" x2="{right}" y2="{y}"/>')
        if number < picture.lanes and number % 4 == 0:
            parts.append(f'<text class="ink number" x="{_LEFT - 12}" y="{y + 11}">{number}</text>')
    parts += [_square(touch) for touch in picture.touches]
    return [*parts, text(_LEFT, bottom + 18, _NOTE), text(_LEFT, bottom + 34, _IDEAL)]


def _square(touch: Touch) -> str:
    colour = _COLOURS[touch.wavefront % len(_COLOURS)]
    ink = "#000000" if colour in _DARK_TEXT else "#ffffff"
    x, y = _LEFT + touch.bank * _SIDE, _TOP + touch.lane * _SIDE
    said = f"lane {touch.lane}: bank {touch.bank}, word {touch.word}, wavefront {touch.wavefront + 1}"
    return (
        f'<g role="img" aria-label={quoteattr(said)}><title>{said}</title>'
        f'<rect x="{x + 1}" y="{y + 1}" width="{_SIDE - 2}" height="{_SIDE - 2}" fill="{colour}"/>'
        f'<text class="number" x="{x + _SIDE / 2}" y="{y + 11}" fill="{ink}">{touch.wavefront + 1}</text></g>'
    )
