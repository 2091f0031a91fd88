"""What is shown of one place on request: what a barrier orders; banks and barrier intervals as pictures.

The analysis process looks again at the kernel for it, beside its other work.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from attrs import evolve, frozen
from lsprotocol import types as lsp
from pygls.workspace import TextDocument

from cuda_lsp.barrier_intervals import IntervalPicture, meeting_of, race_on
from cuda_lsp.cache_folder import cache_folder
from cuda_lsp.model import FileReport, Position, SourceRange
from cuda_lsp.repairs.search import conflict_free, ordered
from cuda_lsp.repairs.source import Source
from cuda_lsp.server.check_commands import PICTURE_COMMAND
from cuda_lsp.server.hover import pictures
from cuda_lsp.server.positions import contains, to_client, uri_of
from cuda_lsp.server.session import Session
from cuda_lsp.server.trials import Trials
from cuda_lsp.server.verdicts import launch_words

if TYPE_CHECKING:
    from cuda_lsp.static.close_looks import BarrierRole
    from cuda_lsp.wavefronts import WarpPicture

_AT_A_CURSOR_S = 1.0  # that a picture may take of which a hover tells
_BARRIER = re.compile(r"sync|barrier", re.IGNORECASE)  # also a macro


def may_be_barrier(document: TextDocument, position: Position) -> bool:
    """Whether it is worth asking."""
    lines = document.lines
    return position.line <= len(lines) and _BARRIER.search(lines[position.line - 1]) is not None


async def barrier_text(session: Session, report: FileReport, position: Position) -> str | None:
    """Markdown of what the barrier at a position orders; None: there is none."""
    known = [kernel for kernel in report.kernels if kernel.key]
    around = [k for k in known if k.range.path == report.path and contains(k.range, position)]
    launched = tuple((kernel.name, kernel.launches) for kernel in around or known)  # a function's: of any
    looks = await asyncio.to_thread(import_module, "cuda_lsp.static.close_looks")
    work = partial(looks.barrier_role, report.path, launched, position)
    role: BarrierRole | None = await asyncio.to_thread(session.ask, work)
    return _role_text(role) if role is not None else None


async def interval_hints(
    session: Session, report: FileReport, document: TextDocument, lines: tuple[int, int]
) -> list[lsp.InlayHint]:
    """Beside each barrier within ``lines`` (0-based, inclusive): which interval of its block it ends."""
    shown = range(lines[0] + 1, lines[1] + 2)
    kernels = [k for k in report.kernels if k.key and k.range.path == report.path and _meets(k.range, shown)]
    if not kernels:
        return []
    looks = await asyncio.to_thread(import_module, "cuda_lsp.static.close_looks")
    work = partial(looks.interval_ends, report.path, kernels)
    ends: Mapping[SourceRange, int] = await asyncio.to_thread(session.ask, work) or {}
    return [
        lsp.InlayHint(to_client(place, document).end, f"ends interval {number}", padding_left=True)
        for place, number in ends.items()
        if place.start.line in shown
    ]


def _meets(place: SourceRange, lines: range) -> bool:
    return place.start.line < lines.stop and place.end.line >= lines.start


def _role_text(role: BarrierRole) -> str:
    told = dict.fromkeys(map(launch_words, role.launches))
    one = next(iter(told)) if len(told) == 1 else ""
    some, every = (
        one or f"under one or more of {len(told)} launches",
        one or f"under all {len(told)} launches",
    )
    lines = [f"**`{role.barrier.text or 'barrier'}`** ends barrier interval {role.interval} of the block."]
    if role.orders:
        count = f"{role.count} pair{'s' if role.count != 1 else ''}"
        lines += ["", f"It orders {count} of accesses, which race without it ({some}):", ""]
        lines += [
            f"- `{a.text}` (line {a.range.start.line}) and `{b.text}` (line {b.range.start.line})"
            for a, b in role.orders
        ]
        lines += [f"- and {role.count - len(role.orders)} more"] if role.count > len(role.orders) else []
    elif role.decided:
        lines += ["", f"It is redundant: without it no two threads race ({every})."]
    else:
        lines += ["", f"No pair was found that it orders ({every}), but not all of the kernel is decided."]
    return "\n".join(lines)


@frozen
class Table:
    """What a panel of a picture shows, in words; ``lines``: the last column is a line of the document."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: bool = False


@frozen
class Picture:
    """An SVG in the cache folder, and the same in words and tables."""

    title: str
    path: Path
    svg: str
    words: str
    tables: tuple[Table, ...]


async def bank_picture(
    session: Session, report: FileReport, document: TextDocument, line: int, trials: Trials | None = None
) -> Picture | None:
    """The banks of the dearest access on a line (from 1), now and, with ``trials``, after a verified repair.

    None: there is none whose addresses are known.
    """
    there = (k for k in report.kernels if k.range.has_line(line) and k.key)
    kernel = next(there, None)
    if kernel is None:
        return None
    looks = await asyncio.to_thread(import_module, "cuda_lsp.static.close_looks")
    drawing = await asyncio.to_thread(import_module, "cuda_lsp.report.bank_picture")
    ask = partial(asyncio.to_thread, session.ask)
    now: tuple[WarpPicture, ...] | None = await ask(partial(looks.pictures, report.path, kernel, line))
    if not now:
        return None
    source = Source(report.path, document.source)
    text = await trials.used(conflict_free, source, report, kernel, line) if trials else None
    then: tuple[WarpPicture, ...] | None = None
    if text is not None:
        then = await ask(partial(looks.pictures_of_text, report.path, text, kernel.name, line))
    return await _drawn(f"Banks, line {line}", report, drawing, drawing.panels(now, then or ()))


async def interval_picture(
    session: Session, report: FileReport, document: TextDocument, line: int, trials: Trials | None = None
) -> Picture | None:
    """The race on a line (from 1) among the barriers of its block, now and, with ``trials``, after a verified
    repair.

    None: there is no race of two threads that are known.
    """
    race = race_on(report, line)
    meeting = meeting_of(race) if race is not None else None
    if race is None or meeting is None:
        return None
    looks = await asyncio.to_thread(import_module, "cuda_lsp.static.interval_looks")
    drawing = await asyncio.to_thread(import_module, "cuda_lsp.report.interval_picture")
    ask = partial(asyncio.to_thread, session.ask)
    now: IntervalPicture | None = await ask(partial(looks.interval_picture, report.path, meeting))
    if now is None:
        return None
    source = Source(report.path, document.source)
    mended = await trials.used(ordered, source, report, race) if trials else None
    then: IntervalPicture | None = None
    if mended is not None:
        then = await ask(partial(looks.interval_picture_of_text, report.path, *mended))
    return await _drawn(f"Barrier intervals, line {line}", report, drawing, drawing.panels(now, then))


async def links(
    session: Session, report: FileReport, document: TextDocument, position: Position, *, shown: bool
) -> list[str]:
    """Markdown that leads to pictures of the findings at a position.

    ``shown``: the client draws them by a command; for others each is drawn as it is now, to a file.
    """
    found: list[str] = []
    for line, command in pictures(report, position, document.uri):
        target = f"command:{command.command}?{quote(json.dumps(command.arguments))}"
        if not shown:
            draw = bank_picture if command.command == PICTURE_COMMAND else interval_picture
            try:
                drawn = await asyncio.wait_for(draw(session, report, document, line), _AT_A_CURSOR_S)
            except asyncio.TimeoutError:
                continue  # the analysis is busy: the action is offered all the same
            if drawn is None:
                continue
            target = uri_of(drawn.path)
        found.append(f"[{command.title}]({target})")
    return found


async def _drawn(title: str, report: FileReport, drawing: Any, panels: Sequence[tuple[str, Any]]) -> Picture:
    """``drawing``: the module of ``report`` for such panels; the first is of the text as it is."""
    svg: str = drawing.svg(panels)
    path = cache_folder() / "pictures" / f"{report.path.stem} {title.lower()}.svg".replace(" ", "-")
    await asyncio.to_thread(_write, path, svg)
    tables = [Table(name, drawing.COLUMNS, tuple(drawing.table(picture))) for name, picture in panels]
    tables[0] = evolve(tables[0], lines=drawing.COLUMNS[-1] == "line")
    return Picture(title, path, svg, drawing.words_of(panels), tuple(tables))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
