"""Which lanes execute a statement, surely and possibly.

The two differ below conditions that depend on data, and after jumps under such conditions.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from cuda_lsp.static.execution.alignment import by_warps
from cuda_lsp.static.execution.values import Data, Drawn, Flags


@frozen(eq=False)
class Mask:
    """Executing lanes; ``guards``, ``drawn`` and ``given`` as in ``Access``.

    ``split``: of one warp some that may execute it may do so without the others. Else, and where all surely
    do, a warp comes with all of its lanes that may, or with none.
    """

    must: Flags
    may: Flags
    guards: tuple[tuple[int, bool], ...] = ()
    drawn: Drawn | None = None
    doubt: Data | None = None  # the unknown condition below which must and may differ
    given: Flags | None = None
    split: bool = False

    @property
    def sure(self) -> bool:
        """The lanes that may execute it surely do."""
        return self.must is self.may


def without(mask: Mask, gone: list[Mask], threads: int) -> Mask | None:
    """``mask`` without the lanes that have left; None when none remains. ``threads``: of a block."""
    must, may, given, split = mask.must, mask.may, mask.given, mask.split
    for left in gone:
        split = split or left.split or not _whole(left, may, threads)
        may = may & ~left.must
        must = must & ~left.may
        given = None if given is None else given & ~left.may
    if not may.any():
        return None
    if np.array_equal(must, may):
        must, split = may, False
    return Mask(must, may, mask.guards, mask.drawn, mask.doubt, given, split)


def together(one: Mask, other: Mask, threads: int) -> Mask:
    """The lanes of both. A warp in which both have the same ones, or one of them none, stays whole."""
    may = one.may | other.may
    if one.sure and other.sure:
        return Mask(may, may)
    whole = may.ndim == 1 and all(not m.split and by_warps(m.may, may, threads) for m in (one, other))
    return Mask(one.must | other.must, may, split=not whole)


def _whole(left: Mask, among: Flags, threads: int) -> bool:
    """Whether who has left is sure, or of each warp all ``among`` these may have left, or none."""
    if left.sure:
        return True
    return among.ndim == 1 and all(by_warps(lanes, among, threads) for lanes in (left.must, left.may))
