"""What executions have in common: they take another way from some unknown condition on, and are alike before.

An execution is determined by the outcomes that it chose, so that accesses made before two of them part are
the same ones, by their sequence. What was found among them is found once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from attrs import define, field

from cuda_lsp.static.execution.trace import Access, Path

Found = TypeVar("Found")


@define(eq=False)
class BeforeParting(Generic[Found]):
    """What was found among accesses of one block, by what was chosen before the last of them."""

    _known: dict[object, tuple[Found, ...]] = field(factory=dict[object, "tuple[Found, ...]"])

    def of(
        self, path: Path, block: int, accesses: Sequence[Access], look: Callable[[], Iterable[Found]]
    ) -> tuple[Found, ...]:
        """What ``look`` finds, or found when it was asked of an execution that was alike until then."""
        if not _settled(path, accesses):
            return tuple(look())
        choices = max(a.decided for a in accesses)
        outcomes = tuple(outcome for outcome, _ in path.choices[:choices])
        key = (block, accesses[0].array.id, outcomes, tuple(a.sequence for a in accesses))
        if key not in self._known:
            self._known[key] = tuple(look())
        return self._known[key]


def _settled(path: Path, accesses: Iterable[Access]) -> bool:
    """Nothing that happens later has a say in what these accesses are, and in what orders them."""
    if path.orders or path.tickets or path.locks or path.blurred is not None:
        return False
    return all(a.drawn is None and not a.held and not a.copied for a in accesses)
