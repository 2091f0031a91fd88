"""Which lanes execute a statement, surely and possibly.

The two differ below conditions that depend on data, and after jumps under such conditions.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from cuda_lsp.static.values import Data, Flags


@frozen(eq=False)
class Mask:
    """Executing lanes; ``guards`` as in ``Access``; ``last_of``: below a "drew the last ticket" test."""

    must: Flags
    may: Flags
    guards: tuple[tuple[int, bool], ...] = ()
    last_of: int | None = None
    doubt: Data | None = None  # the unknown condition below which must and may differ

    @property
    def sure(self) -> bool:
        return self.must is self.may


def without(mask: Mask, gone: list[Mask]) -> Mask | None:
    """``mask`` without the lanes that have left; None when none remains."""
    must, may = mask.must, mask.may
    for left in gone:
        may = may & ~left.must
        must = must & ~left.may
    if not may.any():
        return None
    return Mask(may if np.array_equal(must, may) else must, may, mask.guards, mask.last_of, mask.doubt)
