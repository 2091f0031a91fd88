"""What a file says after a reading of one kernel: that kernel anew, all else as it was, moved with the text.

The checks here decide whether the reading may be believed: clang must see the kernel end where its brace is,
find the same instantiations of it, and complain of the same mistakes in all text that both readings saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import evolve

from cuda_lsp.frontend.focus import Edit, Focus
from cuda_lsp.frontend.host.launch_site import LaunchSite
from cuda_lsp.frontend.kernel_sources import KernelSource, KernelSources
from cuda_lsp.frontend.parse_problems import Problems
from cuda_lsp.frontend.same_code import SameCode
from cuda_lsp.frontend.source_text import SourceText


def merged_sources(sources: KernelSources, focus: Focus, found: KernelSources) -> KernelSources | None:
    """The kernels of the file, that in focus from ``found``; None: they are not those expected.

    Instances that were not read stand where that one is.
    """
    old = [k for k in sources.kernels if k.offsets == focus.was and focus.only in ("", k.name)]
    new = [k for k in found.kernels if k.offsets == focus.offsets and focus.only in ("", k.name)]
    if [(k.name, k.dependent) for k in old] != [(k.name, k.dependent) for k in new]:
        return None
    templates = {k.offsets: k for k in found.templates}
    if any(k.offsets == focus.was and focus.offsets not in templates for k in sources.templates):
        return None
    renewed = {id(k): now for k, now in zip(old, new, strict=True)}

    def again(kernel: KernelSource) -> KernelSource:
        if kernel.offsets != focus.was:
            return _moved(kernel, focus)
        here = new[0]
        unread = evolve(kernel, offsets=here.offsets, range=here.range, name_range=here.name_range)
        return renewed.get(id(kernel), unread)

    return KernelSources(
        tuple(map(again, sources.kernels)),
        tuple(
            templates[focus.offsets] if k.offsets == focus.was else _moved(k, focus)
            for k in sources.templates
        ),
        tuple(
            (templates.get(focus.offsets, new[0]) if k.offsets == focus.was else _moved(k, focus), count)
            for k, count in sources.skipped
        ),
        tuple((name, *_stretch((start, end), focus)) for name, start, end in sources.device_functions),
        more=sources.more,
    )


def moved_sources(sources: KernelSources, focus: Focus) -> KernelSources:
    """The kernels of the file after an edit inside a host function."""
    return KernelSources(
        tuple(_moved(k, focus) for k in sources.kernels),
        tuple(_moved(k, focus) for k in sources.templates),
        tuple((_moved(k, focus), count) for k, count in sources.skipped),
        tuple((name, *_stretch((start, end), focus)) for name, start, end in sources.device_functions),
        more=sources.more,
    )


def respelled_sources(sources: KernelSources, edit: Edit, same: SameCode) -> KernelSources | None:
    """The kernels of the file after an ``edit`` of white space and comments; None: one is not found again."""

    def stretch(start: int, end: int) -> tuple[int, int]:
        return edit.moved(start), end if end <= edit.start else edit.moved(end)

    def again(kernel: KernelSource) -> KernelSource | None:
        if kernel.offsets[1] <= edit.start:
            return kernel
        whole, name = same.moved(kernel.range), same.moved(kernel.name_range)
        if whole is None or name is None:
            return None
        return evolve(kernel, offsets=stretch(*kernel.offsets), range=whole, name_range=name)

    kernels, templates = ([again(k) for k in each] for each in (sources.kernels, sources.templates))
    skipped = [(again(k), count) for k, count in sources.skipped]
    if None in kernels or None in templates or any(k is None for k, _ in skipped):
        return None
    return evolve(
        sources,
        kernels=tuple(k for k in kernels if k),
        templates=tuple(k for k in templates if k),
        skipped=tuple((k, count) for k, count in skipped if k),
        device_functions=tuple((name, *stretch(*at)) for name, *at in sources.device_functions),
        bodies=(),
    )


def half_typed_sources(sources: KernelSources, focus: Focus, source: SourceText) -> KernelSources:
    """The kernels of the file ``source`` when clang did not see where the one in focus ends."""
    moved, here = moved_sources(sources, focus), source.range(*focus.offsets)

    def grown(old: KernelSource, new: KernelSource) -> KernelSource:
        return evolve(new, offsets=focus.offsets, range=here) if old.offsets == focus.was else new

    return evolve(
        moved,
        kernels=tuple(map(grown, sources.kernels, moved.kernels)),
        templates=tuple(map(grown, sources.templates, moved.templates)),
        skipped=tuple(
            (grown(old, new), count)
            for (old, _), (new, count) in zip(sources.skipped, moved.skipped, strict=True)
        ),
    )


def moved_problems(before: Problems, focus: Focus, last: int) -> Problems:
    """The mistakes of the file but those inside the edited function, which ended on line ``last``."""
    return problems_behind(before, focus.edit, focus.was, last)


def problems_behind(before: Problems, edit: Edit, was: tuple[int, int], last: int) -> Problems:
    """The mistakes of the file but those inside a stretch that was edited, which ended on line ``last``."""
    main = (
        evolve(p, offset=edit.moved(p.offset), line=p.line + (edit.lines if p.offset >= edit.old_end else 0))
        for p in before.main
        if not was[0] <= p.offset < was[1]
    )
    missing = ((name, line + edit.lines if line > last else line) for name, line in before.missing)
    return Problems(tuple(main), before.headers, tuple(missing), before.unfound)


def _moved(kernel: KernelSource, focus: Focus) -> KernelSource:
    if kernel.offsets[0] < focus.edit.start or not (focus.edit.shift or focus.edit.lines):
        return kernel
    lines = focus.edit.lines
    return evolve(
        kernel,
        offsets=_stretch(kernel.offsets, focus),
        range=kernel.range.shifted(lines) if lines else kernel.range,
        name_range=kernel.name_range.shifted(lines) if lines else kernel.name_range,
    )


def _stretch(offsets: tuple[int, int], focus: Focus) -> tuple[int, int]:
    return focus.edit.moved(offsets[0]), focus.edit.moved(offsets[1])


def has_no_instance_left(sources: KernelSources, focus: Focus, found: KernelSources) -> bool:
    """Whether clang instantiates the template in focus no more, of which it made instances before."""
    old = [k for k in sources.kernels if k.offsets == focus.was]
    new = [k for k in found.kernels if k.offsets == focus.offsets]
    return any(not k.dependent for k in old) and bool(new) and all(k.dependent for k in new)


def half_typed_problems(
    before: Problems, focus: Focus, last: int, found: Problems, *, gone: bool = False
) -> Problems | None:
    """The mistakes of the file when those of the kernel in focus, of ``found``, hide where it ends.

    ``gone``: or its instances, which any mistake takes from a template, or a header's sense, which is passed
    what it needs from there. None: nothing there is broken.
    """
    own = [p for p in found.main if focus.offsets[0] <= p.offset < focus.offsets[1]]
    if not any(p.syntax or gone for p in own):
        return None
    others = moved_problems(before, focus, last)
    return evolve(others, main=tuple(sorted((*others.main, *own), key=lambda p: p.offset)))


def merged_problems(before: Problems, focus: Focus, found: Problems) -> Problems | None:
    """The mistakes of the file, those of the kernel in focus from ``found``; None: there are others now.

    Those of types that are not found stay until the whole text is read: of templates that blank text uses.
    """
    outside = moved_problems(before, focus, 0).main
    seen = {p for p in outside if not any(start <= p.offset < end for start, end in focus.blank)}
    own = [p for p in found.main if focus.offsets[0] <= p.offset < focus.offsets[1]]
    others = {p for p in found.main if p.offset < len(focus.text)} - set(own)  # and not where we ask for it
    if not others <= seen or any(p.syntax for p in seen - others):
        return None
    if not set(found.headers) <= set(before.headers):
        return None
    first = next((i for i, p in enumerate(outside) if p.offset >= focus.offsets[1]), len(outside))
    return Problems((*outside[:first], *own, *outside[first:]), before.headers, found.missing, before.unfound)


def moved_sites(sites: Sequence[LaunchSite], lines: int, behind: int, path: Path) -> tuple[LaunchSite, ...]:
    """Launch sites of the file ``path`` after ``lines`` were added on or before line ``behind``."""
    return tuple(
        evolve(s, site=evolve(s.site, range=s.site.range.shifted(lines)))
        if lines and s.site and s.site.range.path == path and s.site.range.start.line > behind
        else s
        for s in sites
    )


def resited(sites: Sequence[LaunchSite], same: SameCode) -> tuple[LaunchSite, ...] | None:
    """Launch sites in a text with the same code; None: one is written in another way."""
    found: list[LaunchSite] = []
    for s in sites:
        place = same.moved(s.site.range) if s.site else None
        if s.site and (place is None or same.respelled(s.site.range)):
            return None
        found.append(evolve(s, site=evolve(s.site, range=place)) if s.site and place else s)
    return tuple(found)
