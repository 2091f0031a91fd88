"""What an array that each thread has for itself holds, element by element."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field

from cuda_lsp.static.execution.values import Value


@define(eq=False)
class PrivateCells:
    """``values``: by byte offset, how many bytes one store left there, and the value in each lane.

    ``forgotten``: something else may have been stored where nothing is noted; until then nothing was.
    """

    values: dict[int, tuple[int, Value]] = field(factory=dict[int, tuple[int, Value]])
    forgotten: bool = False

    def at(self, offset: int, size: int) -> Value | None:
        """What a store of as many bytes left there; None: that is not known."""
        known = self.values.get(offset)
        return known[1] if known is not None and known[0] == size else None

    def within(self, offset: int, size: int) -> Iterator[Value]:
        """What is known of the bytes from there on, in order."""
        for at, (_, value) in sorted(self.values.items()):
            if offset <= at < offset + size:
                yield value

    def keep(self, offset: int, size: int, value: Value) -> None:
        """Note what is there now."""
        self.give_up(offset, size)
        self.values[offset] = size, value

    def give_up(self, offset: int, size: int) -> None:
        """What other stores left in any of these bytes is not known any more."""
        for at, (width, _) in list(self.values.items()):
            if at < offset + size and offset < at + width and (at, width) != (offset, size):
                del self.values[at]
                self.forgotten = True

    def forget(self) -> None:
        """Something was stored, nobody knows where, or what."""
        self.values.clear()
        self.forgotten = True
