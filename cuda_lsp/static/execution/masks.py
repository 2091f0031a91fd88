"""Which lanes execute a statement, surely and possibly.

The two differ below conditions that depend on data, and after jumps under such conditions.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from cuda_lsp.static.execution.values import Data, Drawn, Flags


@frozen(eq=False)
class Mask:
    """Executing lanes; ``guards``, ``drawn`` and ``given`` as in ``Access``."""

    must: Flags
    may: Flags
    guards: tuple[tuple[int, bool], ...] = ()
    drawn: Drawn | None = None
    doubt: Data | None = None  # the unknown condition below which must and may differ
    given: Flags | None = None

    @property
    def sure(self) -> bool:
        """The lanes that may execute it surely do."""
        return self.must is self.may


def without(mask: Mask, gone: list[Mask]) -> Mask | None:
    """``mask`` without the lanes that have left; None when none remains."""
    must, may, given = mask.must, mask.may, mask.given
    for left in gone:
        may = may & ~left.must
        must = must & ~left.may
        given = None if given is None else given & ~left.may
    if not may.any():
        return None
    return Mask(may if np.array_equal(must, may) else must, may, mask.guards, mask.drawn, mask.doubt, given)
