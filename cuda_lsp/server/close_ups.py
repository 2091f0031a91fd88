"""What is shown of one place on request: which pairs a barrier orders, the banks of an access as a picture.

The analysis process looks again at the kernel for it, beside its other work.
"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen
from pygls.workspace import TextDocument

from cuda_lsp.cache_folder import cache_folder
from cuda_lsp.model import FileReport, KernelReport, Position
from cuda_lsp.repairs.search import conflict_free
from cuda_lsp.repairs.source import Source
from cuda_lsp.server.positions import contains
from cuda_lsp.server.session import Session
from cuda_lsp.server.trials import Trials
from cuda_lsp.server.verdicts import launch_words

if TYPE_CHECKING:
    from cuda_lsp.static.close_looks import BarrierRole
    from cuda_lsp.wavefronts import WarpPicture

_BARRIER = re.compile(r"__sync|barrier|\bsync\s*\(")


def may_be_barrier(document: TextDocument, position: Position) -> bool:
    """Whether it is worth asking."""
    lines = document.lines
    return position.line <= len(lines) and _BARRIER.search(lines[position.line - 1]) is not None


async def barrier_text(session: Session, report: FileReport, position: Position) -> str | None:
    """Markdown of what the barrier at a position orders; None: there is none."""
    for kernel in report.kernels:
        if contains(kernel.range, position) and kernel.key:
            looks = await asyncio.to_thread(import_module, "cuda_lsp.static.close_looks")
            work = partial(looks.barrier_role, report.path, kernel, position)
            role: BarrierRole | None = await asyncio.to_thread(session.ask, work)
            return _role_text(role, kernel) if role is not None else None
    return None


def _role_text(role: BarrierRole, kernel: KernelReport) -> str:
    under = launch_words(kernel.launches[0])
    lines = [f"**`{role.barrier.text or 'barrier'}`** ends barrier interval {role.interval} of the block."]
    if role.orders:
        count = f"{role.count} pair{'s' if role.count != 1 else ''}"
        lines += ["", f"It orders {count} of accesses, which race without it ({under}):", ""]
        lines += [
            f"- `{a.text}` (line {a.range.start.line}) and `{b.text}` (line {b.range.start.line})"
            for a, b in role.orders
        ]
        lines += [f"- and {role.count - len(role.orders)} more"] if role.count > len(role.orders) else []
    elif role.decided:
        lines += ["", f"It is redundant: without it no two threads race ({under})."]
    else:
        lines += ["", f"No pair was found that it orders ({under}), but not all of the kernel is decided."]
    return "\n".join(lines)


@frozen
class Picture:
    """An SVG in the cache folder, and the same in words."""

    path: Path
    svg: str
    words: str


async def bank_picture(
    session: Session, report: FileReport, document: TextDocument, line: int, trials: Trials
) -> Picture | None:
    """The banks of the dearest access on a line (from 1), now and after a repair that is verified.

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
    text = await asyncio.to_thread(conflict_free, source, report, kernel, line, trials)
    then: tuple[WarpPicture, ...] | None = None
    if text is not None:
        then = await ask(partial(looks.pictures_of_text, report.path, text, kernel.name, line))
    panels = drawing.panels(now, then or ())
    svg: str = drawing.svg(panels)
    words = "; ".join(f"{title}: {drawing.description(picture)}" for title, picture in panels)
    path = cache_folder() / "pictures" / f"{report.path.stem}-{line}.svg"
    await asyncio.to_thread(_write, path, svg)
    return Picture(path, svg, words)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
