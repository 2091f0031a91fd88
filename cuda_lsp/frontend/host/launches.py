"""What ``kernel<<<grid, block, shared>>>(arguments)`` and ``cudaLaunchKernel`` sites tell, read from text.

Works on any state of the text, host code included. A site whose block extents are not constants gives
no configuration; its constant arguments still count. ``dim3`` variables and integers are followed to
their definition (``host_constants``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import evolve, field, frozen

from cuda_lsp.frontend.blanked import blanked
from cuda_lsp.frontend.host.configured_launches import configured_launches
from cuda_lsp.frontend.host.host_constants import HostConstants, split_arguments
from cuda_lsp.frontend.host.shared_arguments import SharedBuffer, shared_buffers
from cuda_lsp.frontend.host.wrapped_launches import uses_of_functions, uses_of_macros
from cuda_lsp.frontend.host.written_launches import Written, every_launch, matching
from cuda_lsp.model import Dim3, Extents, LaunchConfig, LaunchSource, Position, Site, SourceRange

_API_CALL = re.compile(r"\bcudaLaunch(?:Cooperative)?Kernel\s*\(")
_API_FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*(?:<([^<>()]*)>)?\s*\)*\s*$")


def _not_known(given: Mapping[str, int]) -> Dim3 | None:
    del given
    return None


@frozen
class LaunchSite:
    """One launch in the text. ``block`` None: not constant. ``arguments`` by position, constants only.

    ``extents``: arguments that are the block's extent, whatever that is: position → axis.

    ``template_arguments`` is the text between ``<`` and ``>`` of the kernel's name, None when deduced.
    ``shared``: arguments that point into the buffer of an earlier one, by position.
    """

    kernel: str
    template_arguments: str | None
    block: Dim3 | None
    grid: Dim3 | None
    dynamic_shared: int | None
    arguments: Mapping[int, int] = field(factory=dict[int, int])
    extents: Mapping[int, int] = field(factory=dict[int, int])
    site: Site | None = None
    grid_axes: Extents = (None, None, None)
    block_given: Callable[[Mapping[str, int]], Dim3 | None] = field(default=_not_known, eq=False, repr=False)
    shared: Mapping[int, SharedBuffer] = field(factory=dict[int, SharedBuffer])

    def configuration(
        self, parameters: tuple[str, ...], template_arguments: Sequence[str] = ()
    ) -> LaunchConfig | None:
        """For a kernel with these parameter names; None when the block is not known.

        ``template_arguments``: of the instantiation. ``k<N><<<grid, N>>>`` tells the block of each.
        """
        block = self.block or self.block_given(self._named(template_arguments))
        if block is None:
            return None
        named = {parameters[i]: value for i, value in self.arguments.items() if i < len(parameters)}
        return LaunchConfig(
            block, self.grid, self.dynamic_shared, LaunchSource.FILE, named, self.site, self.grid_axes
        )

    def _named(self, template_arguments: Sequence[str]) -> dict[str, int]:
        """Names that the launch passes as template arguments → their values in an instantiation."""
        written = split_arguments(self.template_arguments or "")
        pairs = zip(written, template_arguments, strict=False)
        return {w.strip(): int(v) for w, v in pairs if w.strip().isidentifier() and v.isdigit()}


def find_launches(path: Path, text: str, headers: Sequence[HostConstants] = ()) -> tuple[LaunchSite, ...]:
    """Every launch site of ``text``, in order. ``headers``: the constants of what it includes."""
    if "<<<" not in text and "cudaLaunch" not in text:
        return ()
    plain = blanked(text)
    constants = HostConstants(plain, headers)
    sites: list[LaunchSite] = []
    launches: list[Written] = []
    for start, launch in every_launch(plain):
        launches.append(launch)
        sites.append(_told(launch, plain, constants, start, _site(path, text, launch.begin, launch.end)))
    sites += (
        _told(use.launch, plain, constants, use.begin, _site(path, text, use.begin, use.end))
        for use in (*uses_of_macros(plain), *uses_of_functions(plain, launches))
    )
    sites += (
        _told(launch, plain, constants, launch.begin, _site(path, text, launch.begin, launch.end))
        for launch in configured_launches(plain)
    )
    for match in _API_CALL.finditer(plain):
        site = _api_launch(path, text, plain, match, constants)
        if site:
            sites.append(site)
    return tuple(sites) + tuple(_through_pointers(sites, plain))


def _through_pointers(sites: Sequence[LaunchSite], plain: str) -> Iterator[LaunchSite]:
    """Launches of ``kernel<<<…>>>`` where ``kernel`` is a variable: of each kernel that it may hold."""
    seen: set[tuple[str, int]] = set()
    for number, site in enumerate(sites):
        name = re.escape(site.kernel)
        value = r"\s*=\s*&?\s*([A-Za-z_]\w*)\s*(?:<[^<>;]*>)?\s*;"
        assigned = rf"(?<![\w.>]){name}{value}"
        declared = rf"\(\s*\*\s*{name}\s*\)\s*\([^;{{}}]*?\){value}"
        for match in (*re.finditer(assigned, plain), *re.finditer(declared, plain)):
            if match[1] != site.kernel and (match[1], number) not in seen:
                seen.add((match[1], number))
                yield evolve(site, kernel=match[1])


def _told(launch: Written, plain: str, constants: HostConstants, at: int, site: Site) -> LaunchSite:
    """What the launch tells, its names looked up at offset ``at``."""
    grid, block, shared = (*launch.configuration, None, None, None)[:3]
    return LaunchSite(
        kernel=launch.kernel,
        template_arguments=_evaluated(launch.template_arguments, plain, at, constants),
        block=constants.extents(block, at) if block is not None else None,
        grid=constants.extents(grid, at) if grid is not None else None,
        dynamic_shared=constants.integer(shared, at) if shared is not None else 0,
        arguments={
            i: value
            for i, argument in enumerate(launch.arguments)
            if (value := constants.integer(argument, at)) is not None
        },
        extents=_block_extents(block, launch.arguments) if block is not None else {},
        site=site,
        block_given=lambda given: constants.extents_given(block, at, given) if given and block else None,
        grid_axes=constants.known_extents(grid, at) if grid is not None else (None, None, None),
        shared=shared_buffers(launch.arguments, lambda text: constants.integer(text, at)),
    )


def _evaluated(arguments: str | None, plain: str, start: int, constants: HostConstants) -> str | None:
    """Template arguments with constants of the host as numbers (``k<WARP_SIZE><<<…>>>``)."""
    if not arguments:
        return arguments
    found: list[str] = []
    for argument in split_arguments(arguments):
        name = argument.strip()
        plainly = name.isidentifier() and not re.search(rf"template\s*<[^;{{}}]*\b{name}\b", plain[:start])
        value = constants.integer(name, start) if plainly else None
        found.append(name if value is None else str(value))
    return ", ".join(found)


def _block_extents(block: str, arguments: Sequence[str]) -> dict[int, int]:
    """``k<<<grid, block>>>(…, block.x)``, ``k<<<grid, threads>>>(…, threads)``: position → axis."""
    name = re.escape(block.strip())
    if not block.strip().isidentifier():
        return {}
    found = ((i, re.fullmatch(rf"{name}(?:\s*\.\s*([xyz]))?", a.strip())) for i, a in enumerate(arguments))
    return {i: "xyz".index(match[1] or "x") for i, match in found if match}


def _api_launch(
    path: Path, text: str, plain: str, match: re.Match[str], constants: HostConstants
) -> LaunchSite | None:
    """``cudaLaunchKernel(function, grid, block, arguments, shared, stream)``: its arguments stay unknown."""
    start, opening = match.start(), match.end() - 1
    closing = matching(plain, opening)
    parts = split_arguments(plain[opening + 1 : closing]) if closing > 0 else []
    function = _API_FUNCTION.search(parts[0]) if parts else None
    if function is None or len(parts) < 3:
        return None
    return LaunchSite(
        kernel=function[1],
        template_arguments=function[2],
        block=constants.extents(parts[2], start),
        grid=constants.extents(parts[1], start),
        dynamic_shared=constants.integer(parts[4], start) if len(parts) > 4 else 0,
        site=_site(path, text, start, closing + 1),
    )


def _site(path: Path, text: str, begin: int, end: int) -> Site:
    return Site(SourceRange(path, _position(text, begin), _position(text, end)), text[begin:end])


def _position(text: str, offset: int) -> Position:
    line_start = text.rfind("\n", 0, offset) + 1
    return Position(text.count("\n", 0, offset) + 1, offset - line_start + 1)
