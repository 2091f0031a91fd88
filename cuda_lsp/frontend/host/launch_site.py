"""One launch in the text of a host: what is known of it there, and what that makes of a kernel's launch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cached_property

from attrs import evolve, field, frozen

from cuda_lsp.frontend.host.known_values import UNKNOWN, all_known
from cuda_lsp.frontend.host.pointed import Pointed
from cuda_lsp.frontend.host.polynomials import Formula
from cuda_lsp.frontend.host.running_sums import PassedSum
from cuda_lsp.frontend.host.shared_arguments import SharedBuffer
from cuda_lsp.frontend.host.sized_launches import NO_FIELDS, SizedLaunch
from cuda_lsp.frontend.host.text import whole_arguments
from cuda_lsp.model import Dim3, Extents, LaunchConfig, LaunchSource, Site

_CONVERTED = re.compile(r"\A(?:int|unsigned|long|short|char|size_t)\s?\(\s?(\w+)\s?\)\Z|\A([A-Za-z_]\w*)\Z")
"""A name as a template argument, plainly or as an object that is converted: ``int(tile)``."""


def _not_known(given: Mapping[str, int]) -> Dim3 | None:
    del given
    return None


def _none_known(given: Mapping[str, int]) -> tuple[SizedLaunch, ...]:
    del given
    return ()


@frozen
class Buffers:
    """Where the pointers that a launch passes lead, by position; of records by that and the field's name.

    ``shared``: into the buffer of an earlier one. ``shared_fields``: the same of those in records.
    ``told_fields``: those in records of which the text tells what they hold. ``perhaps``: two that come from
    one thing, as far as anybody knows, in a way that is not followed.
    """

    shared: Mapping[int, SharedBuffer] = field(factory=dict[int, SharedBuffer])
    shared_fields: Mapping[tuple[int, str], SharedBuffer] = field(factory=dict[tuple[int, str], SharedBuffer])
    told_fields: Set[tuple[int, str]] = frozenset()
    perhaps: frozenset[tuple[int, int]] = frozenset()


@frozen
class Called:
    """A launch of a kernel, the text that makes it, and its ``buffers`` as it is called from other files."""

    kernel: str
    site: Site
    buffers: Buffers


@frozen
class LaunchSite:
    """One launch in the text. ``block`` None: not constant. ``arguments`` by position, constants only.

    ``extents``: arguments that are the block's extent, whatever that is: position → axis.

    ``template_arguments`` is the text between ``<`` and ``>`` of the kernel's name, None when deduced.
    ``buffers``: gives ``leads``, which takes longest, and is not always asked for.
    ``conditions``: comparisons that hold where it stands (``guards``).
    ``left_out``: by the preprocessor, as far as is known: another build may make it.
    ``sized``: where the block is not known, launches that it makes for some sizes.
    ``computed``: arguments that are computed from others, by position. ``pointed``: what they may point to.
    ``types``: of arguments, as far as they are told. ``passed``: how many there are, None: nobody knows.
    ``fields``: constants in records, by position and name; ``computed_fields``: others, as ``computed``.
    ``made_axes``: of the grid (1: y, 2: z), along which it has an extent that is not known.
    ``sized_given``: ``sized`` where some names have values.
    ``definitions``: macros with which the kernel is compiled when the program runs, as the host writes them.
    ``scope``: what stands before the kernel's name, ``a::b::``. ``sums``: arguments that hold running sums.
    ``written``: where the launch stands, if ``site`` is where a caller comes to it.
    ``ties``: arguments that a call makes of others, and these. ``hands_on``: several pointers come from who
    calls the function around, whom other files may hold. ``held_blocks``: where the block is a field of a
    record, all that the file makes such a field.
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
    buffers: Callable[[], Buffers] = field(default=Buffers, eq=False, repr=False)
    block_axes: Extents = (None, None, None)
    left_out: bool = False
    conditions: tuple[str, ...] = ()
    sized: tuple[SizedLaunch, ...] = ()
    sized_given: Callable[[Mapping[str, int]], tuple[SizedLaunch, ...]] = field(
        default=_none_known, eq=False, repr=False
    )
    computed: Mapping[int, Formula] = field(factory=dict[int, Formula])
    pointed: tuple[Pointed, ...] = ()
    types: Mapping[int, str] = field(factory=dict[int, str])
    passed: int | None = None
    fields: Mapping[tuple[int, str], int] = field(factory=dict[tuple[int, str], int])
    computed_fields: Mapping[tuple[int, str], Formula] = field(factory=dict[tuple[int, str], Formula])
    made_axes: frozenset[int] = frozenset()
    definitions: Mapping[str, str] = field(factory=dict[str, str])
    scope: str = ""
    sums: Mapping[int, PassedSum] = field(factory=dict[int, PassedSum])
    written: Site | None = None
    ties: frozenset[tuple[int, int]] = frozenset()
    hands_on: bool = field(default=False, eq=False)
    held_blocks: tuple[Dim3, ...] = ()

    @cached_property
    def leads(self) -> Buffers:
        """Where its pointers lead."""
        return self.buffers()

    @cached_property
    def facts(self) -> str:
        """What the analysis of its kernel takes from it, to be compared; its place does not count."""
        told = (
            self.template_arguments,
            self.block,
            self.grid,
            self.grid_axes,
            self.block_axes,
            self.left_out,
            *sorted(self.made_axes),
            self.dynamic_shared,
            *self.arguments.items(),
            *self.extents.items(),
            *self.leads.shared.items(),
            *self.conditions,
            *self.sized,
            *self.fields.items(),
            *self.computed.items(),
            *self.computed_fields.items(),
            *self.leads.shared_fields.items(),
            *sorted(self.leads.told_fields),
            *sorted(self.leads.perhaps),
            *self.pointed,
            *self.types.items(),
            self.passed,
            *self.held_blocks,
            *self.sums.items(),
        )
        return repr(told)

    def compiled_with(self, macros: Mapping[str, int]) -> LaunchSite:
        """Where macros have these values in the kernel: what the host defines them by tells its block."""
        written = ((text.strip(), macros.get(name)) for name, text in self.definitions.items())
        named = {text: value for text, value in written if text.isidentifier() and value is not None}
        block = self.block_given(named) if named and self.block is None else None
        return self if block is None else self._made_of(block)

    def with_block_along(self, axes: Set[int]) -> LaunchSite:
        """For a kernel whose threads ask where they are along these axes.

        Of the blocks that a record may hold the one that has several threads along each, and along no other.
        """
        fit = [block for block in self.held_blocks if {i for i in range(3) if block[i] > 1} == axes]
        return self._made_of(fit[0]) if len(fit) == 1 and not self.sized else self

    def _made_of(self, block: Dim3) -> LaunchSite:
        sized = (SizedLaunch(block, UNKNOWN, None),)

        def given(_: Mapping[str, int]) -> tuple[SizedLaunch, ...]:
            return sized  # template arguments make no other block

        return evolve(self, sized=sized, sized_given=given)

    def named_constants(
        self,
        parameters: Sequence[str],
        arguments: Mapping[int, int],
        more: Mapping[tuple[int, str], int] = NO_FIELDS,
    ) -> dict[str, int]:
        """Constant ``arguments``, and fields of records (``more`` besides), by a kernel's names for them."""
        named = {parameters[i]: value for i, value in arguments.items() if i < len(parameters)}
        known = {**self.fields, **more}
        fields = ((i, name, value) for (i, name), value in known.items() if i < len(parameters))
        return named | {f"{parameters[i]}.{name}": value for i, name, value in fields}

    def by_sizes(
        self, parameters: Sequence[str], template_arguments: Sequence[str] = ()
    ) -> Iterator[LaunchConfig]:
        """Some of the launches that it makes, for a kernel with these parameter names.

        ``template_arguments``: of the instantiation, which may tell some of the sizes.
        """
        named = self._named(template_arguments) if self.sized else {}
        for made in self.sized_given(named) if named else self.sized:
            if not made.is_of(template_arguments):
                continue
            every = {**self.arguments, **made.arguments}
            named = self.named_constants(parameters, every, made.fields)
            axes = zip(self.grid_axes, made.grid_axes, strict=True)
            x, y, z = (known if known is not None else size for known, size in axes)
            shared = self.dynamic_shared if self.dynamic_shared is not None else made.dynamic_shared
            source = LaunchSource.LEFT_OUT if self.left_out else LaunchSource.SIZES
            grid = all_known((x, y, z))
            made_axes = frozenset(i for i in self.made_axes if (x, y, z)[i] is None)
            yield LaunchConfig(made.block, grid, shared, source, named, self.site, (x, y, z), made_axes)

    def configuration(
        self, parameters: tuple[str, ...], template_arguments: Sequence[str] = ()
    ) -> LaunchConfig | None:
        """For a kernel with these parameter names; None when the block is not known.

        ``template_arguments``: of the instantiation. ``k<N><<<grid, N>>>`` tells the block of each.
        """
        block = self.block or self.block_given(self._named(template_arguments))
        if block is None:
            return None
        named = self.named_constants(parameters, self.arguments)
        source = LaunchSource.LEFT_OUT if self.left_out else LaunchSource.FILE
        return LaunchConfig(
            block,
            self.grid,
            self.dynamic_shared,
            source,
            named,
            self.site,
            self.grid_axes,
            self.made_axes,
        )

    def _named(self, template_arguments: Sequence[str]) -> dict[str, int]:
        """Names that the launch passes as template arguments → their values in an instantiation."""
        written = whole_arguments(self.template_arguments or "")
        pairs = zip((_CONVERTED.match(w.strip()) for w in written), template_arguments, strict=False)
        return {w[1] or w[2]: int(v) for w, v in pairs if w is not None and v.isdigit()}
