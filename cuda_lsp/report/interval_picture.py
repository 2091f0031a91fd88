"""A race as a picture: two threads side by side, time downwards, barriers across, and where one is missing.

What races has a thick frame and the word for it, so that nothing hangs on colours; each row has its words for
screen readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from cuda_lsp.barrier_intervals import Interval, IntervalPicture, Step
from cuda_lsp.model import Mode, Site
from cuda_lsp.report.svg_page import page, panel, short, text, titled

_LEFT, _TOP, _COLUMN, _GAP, _ROW, _BOX, _BELOW = 70, 84, 250, 16, 38, 28, 30
_WIDTH = _LEFT + 2 * _COLUMN + _GAP + 24
_RACE, _BARRIER, _ORDER = "#d55e00", "#0072b2", "#009e73"
_DOES = {Mode.READ: "reads", Mode.WRITE: "writes", Mode.ATOMIC: "updates", Mode.ATOMIC_READ: "loads"}
_MISSING = "no barrier here: nothing orders the two"
_AT_ONCE = "one statement, which both execute at the same time: no barrier could order the two"
_BLOCKS = "threads of two blocks: no barrier of a block orders them"

Panel = tuple[str, IntervalPicture]
Row = tuple[str, ...]
COLUMNS: Row = ("interval", "thread", "does", "access", "line")


def svg(panels: Sequence[Panel]) -> str:
    """One picture below the other, each with its title (``now``, …): views beside code are narrow."""
    height = 0
    parts: list[str] = []
    for title, picture in panels:
        parts += panel(f"{title}: {description(picture)}", 0, height, _panel(title, picture))
        height += _TOP + _ROW * _rows(picture) + _BELOW
    title = f"Barrier intervals of {panels[0][1].element}"
    return page(title, words_of(panels), _WIDTH, height, parts)


def panels(now: IntervalPicture, mended: IntervalPicture | None) -> list[Panel]:
    """Both with their titles."""
    return titled(now, [] if mended is None else [mended])


def words_of(panels: Sequence[Panel]) -> str:
    """All of them in words."""
    return "; ".join(f"{title}: {description(picture)}" for title, picture in panels)


def description(picture: IntervalPicture) -> str:
    """The two accesses, and what is or is not between them."""
    met = [
        f"{_who(picture, n)} {_does(step)} {step.site.text} on line {step.site.range.start.line}"
        f" in barrier interval {interval.number}"
        for n in (0, 1)
        for interval in picture.intervals
        for step in interval.steps
        if step.racing[n]
    ]
    between = [i.ends for i in picture.intervals[:-1] if i.ends is not None]
    ordered = ", ".join(
        f"{barrier.text or 'a barrier'} on line {barrier.range.start.line}" for barrier in between
    )
    how = f"between them: {ordered}" if picture.ordered else _why(picture)
    return f"{', '.join(met)}, both {picture.element}; {how}"


def table(picture: IntervalPicture) -> list[Row]:
    """The rows of the picture as words, in columns of ``COLUMNS``."""
    rows: list[Row] = []
    for interval in picture.intervals:
        for step in interval.steps:
            who = " and ".join(_who(picture, n) for n in (0, 1) if step.executed[n])
            race = f"{_does(step)}, races" if any(step.racing) and not picture.ordered else _does(step)
            rows.append((str(interval.number), who, race, step.site.text, str(step.site.range.start.line)))
        if interval.ends is not None:
            barrier = interval.ends
            rows.append((str(interval.number), "all", "barrier", barrier.text, str(barrier.range.start.line)))
    return rows


def _why(picture: IntervalPicture) -> str:
    if picture.blocks is not None and picture.blocks[0] != picture.blocks[1]:
        return _BLOCKS
    return _AT_ONCE if picture.at_once else "no barrier between them"


def _does(step: Step) -> str:
    return _DOES[step.mode] if step.mode is not None else "accesses"


def _who(picture: IntervalPicture, number: int) -> str:
    of = f" of block ({', '.join(map(str, picture.blocks[number]))})" if picture.blocks else ""
    return f"thread ({', '.join(map(str, picture.threads[number]))}){of}"


# --------------------------------------------------------------------------------------- drawing


def _rows(picture: IntervalPicture) -> int:
    """Of steps, of what is left out, of barriers before, between and behind, and of the missing one."""
    steps = sum(len(interval.steps) + bool(interval.left_out) for interval in picture.intervals)
    return steps + len(picture.intervals) + 2


def _panel(title: str, picture: IntervalPicture) -> list[str]:
    verdict = "a barrier orders the two" if picture.ordered else "a race"
    parts = [
        text(
            _LEFT,
            20,
            f"{title}: {verdict} on {short(picture.element, 40)}",
            'font-weight="bold" font-size="14"',
        ),
        text(_LEFT, 38, f"{picture.kernel}; time runs downwards, line numbers at the left"),
        *(
            text(_LEFT + n * (_COLUMN + _GAP), 62, short(_who(picture, n), 44), 'font-weight="bold"')
            for n in (0, 1)
        ),
    ]
    y = _TOP
    parts += _barrier(y, picture.begins, "the kernel begins" if picture.whole else "…")
    y += _ROW
    said = False
    raced: list[tuple[int, int]] = []  # column and row of what races
    for interval in picture.intervals:
        for step in interval.steps:
            if raced and any(step.racing) and not picture.ordered and not said:
                parts += _missing(y, _MISSING if _why(picture) != _BLOCKS else _BLOCKS)
                y, said = y + _ROW, True
            parts += _step(y, picture, step)
            raced += [(n, y) for n in (0, 1) if step.racing[n]]
            y += _ROW
        parts += _rest(y, interval)
        y += _ROW * bool(interval.left_out)
        if picture.at_once and not said:
            parts += _missing(y, _AT_ONCE)
            y, said = y + _ROW, True
        parts += _barrier(y, interval.ends, "the kernel ends" if picture.whole else "…", interval.number)
        y += _ROW
    return [*parts, *_connection(raced, picture.ordered)]


def _step(y: int, picture: IntervalPicture, step: Step) -> Iterator[str]:
    line = step.site.range.start.line
    yield text(_LEFT - 44, y + 18, str(line))
    for n in (0, 1):
        if not step.executed[n]:
            continue
        races = step.racing[n]
        mark = "races: " if races and not picture.ordered else ""
        said = f"{_who(picture, n)}, line {line}: {mark}{_does(step)} {step.site.text}"
        x = _LEFT + n * (_COLUMN + _GAP)
        colour = _ORDER if picture.ordered else _RACE
        frame = f'stroke="{colour}" stroke-width="3"' if races else 'stroke="#808080" stroke-dasharray="2 2"'
        yield f'<g role="img" aria-label={quoteattr(said)}><title>{escape(said)}</title>'
        yield f'<rect x="{x}" y="{y}" width="{_COLUMN}" height="{_BOX}" rx="4" fill="none" {frame}/>'
        yield text(
            x + 8, y + 18, short(f"{mark}{_does(step)} {step.site.text}", 40), 'font-family="monospace"'
        )
        yield "</g>"


def _barrier(y: int, barrier: Site | None, otherwise: str, number: int | None = None) -> Iterator[str]:
    width = 2 * _COLUMN + _GAP
    if barrier is None:
        yield f'<line class="rule" x1="{_LEFT}" y1="{y + 20}" x2="{_LEFT + width}" y2="{y + 20}"/>'
        yield text(_LEFT + 8, y + 15, otherwise)
        return
    line = barrier.range.start.line
    name = short(barrier.text or "barrier", 40)
    ends = f" ends interval {number}" if number is not None else ""
    yield f'<g role="img" aria-label={quoteattr(f"{name}{ends}, line {line}")}>'
    yield text(_LEFT - 44, y + 18, str(line))
    yield f'<rect x="{_LEFT}" y="{y + 4}" width="{width}" height="20" rx="3" fill="{_BARRIER}"/>'
    yield f'<text x="{_LEFT + 8}" y="{y + 18}" fill="#ffffff">{escape(f"{name}{ends}")}</text></g>'


def _missing(y: int, said: str) -> Iterator[str]:
    width = 2 * _COLUMN + _GAP
    yield f'<g role="img" aria-label={quoteattr(said)}>'
    yield (
        f'<rect x="{_LEFT}" y="{y + 4}" width="{width}" height="20" rx="3" fill="none" stroke="{_RACE}" '
        'stroke-width="2" stroke-dasharray="7 4"/>'
    )
    yield f"{text(_LEFT + 8, y + 18, said)}</g>"


def _rest(y: int, interval: Interval) -> Iterator[str]:
    if interval.left_out:
        yield text(
            _LEFT + 8, y + 18, f"… and {interval.left_out} more accesses of the array in this interval"
        )


def _connection(raced: Sequence[tuple[int, int]], ordered: bool) -> Iterator[str]:
    """A line from one of the two accesses to the other, between the columns."""
    if len(raced) == 2:
        (_, one), (_, other) = raced
        x, colour = _LEFT + _COLUMN + _GAP // 2, _ORDER if ordered else _RACE
        ends = [f"M {x - _GAP // 2} {y + _BOX // 2} H {x + _GAP // 2}" for y in (one, other)]
        way = f"M {x} {one + _BOX // 2} V {other + _BOX // 2}"
        yield f'<path d="{" ".join((*ends, way))}" fill="none" stroke="{colour}" stroke-width="3"/>'
