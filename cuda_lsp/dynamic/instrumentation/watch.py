"""What is watched in one kernel, and how: the plan that all probes follow."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, frozen

from cuda_lsp.dynamic.instrumentation.shadow import ShadowLayout
from cuda_lsp.model import Space

MAX_SITES = 1 << 14  # what a stamp can name


@frozen
class Watch:
    """What to watch in one entry. ``sites``: numbers into the run's list; None: all of them.

    ``sampled``: only some blocks are checked. ``control``: byte offsets of the control block's fields.
    ``ranges``: stretches of global memory that the control block will name, for the bounds checks; ``homes``:
    in which of them sites access. ``names``: shared variables whose addresses the kernel is to tell.
    ``order``: follow what fences and atomics order between blocks. ``resident``: blocks that a multiprocessor
    is to hold at once. ``widths``: where atomics of several widths may update memory. ``cluster``: as of the
    run. ``quiet``: sites that cannot race in global memory. ``in_shared``, ``in_global``: where generic
    addresses of sites lie, unless they miss. ``traps``: they end the launch; else the threads that come there
    leave, and the launch's end tells: a trap takes all that was seen with it.
    """

    entry: str
    layout: ShadowLayout
    control: Mapping[str, int]
    names: tuple[str, ...] = ()
    sites: frozenset[int] | None = None
    races: bool = True
    global_races: bool = True
    banks: bool = False
    ranges: int = 0
    sampled: bool = False
    order: bool = False
    resident: int = 1
    widths: frozenset[Space] = frozenset()
    cluster: tuple[int, int, int] = (1, 1, 1)
    quiet: frozenset[int] = frozenset()
    homes: frozenset[tuple[int, int]] = frozenset()
    in_shared: frozenset[int] = frozenset()
    in_global: frozenset[int] = frozenset()
    traps: bool = False

    def watches(self, site: int) -> bool:
        """Whether races are looked for at a site. Sites beyond ``MAX_SITES`` fit into no stamp."""
        return site < MAX_SITES and (self.sites is None or site in self.sites)


@define
class Labels:
    """Names of branch targets, each used once."""

    made: int = 0

    def new(self, stem: str) -> str:
        """A name that no other label has."""
        self.made += 1
        return f"clsp_{stem}_{self.made}"
