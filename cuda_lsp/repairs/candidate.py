"""A change of a text that may mend a finding, as data: offsets in code points, a title, and what it is.

Nothing here says whether it mends anything: ``verify`` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import field, frozen

from cuda_lsp.repair import RepairKind


@frozen(order=True)
class Edit:
    """``text`` in the place of what stands from ``start`` to ``end``: offsets in code points."""

    start: int
    end: int
    text: str


def _in_order(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    return tuple(sorted(edits, key=lambda edit: (edit.start, edit.end)))


@frozen
class Candidate:
    """Edits of one text, in order and apart, for people called ``title``.

    ``keeps_meaning`` False: the program does something else afterwards also where nothing was wrong, or may.
    """

    kind: RepairKind
    title: str
    edits: tuple[Edit, ...] = field(converter=_in_order)
    keeps_meaning: bool = True


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The text with the edits made."""
    for edit in reversed(_in_order(edits)):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


class Places:
    """Which offset of the edited text was which before. What was written or written over is one place."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = _in_order(edits)

    def now(self, offset: int) -> int:
        """Where in the edited text is what was at an offset before; not for what is written over."""
        behind = (edit for edit in self._edits if edit.end <= offset)
        return offset + sum(len(edit.text) - (edit.end - edit.start) for edit in behind)

    def before(self, offset: int) -> tuple[int, bool]:
        """An offset of the text as it was; whether it is written over."""
        for edit in self._edits:
            if edit.start <= offset < edit.end:
                return edit.start, True
        return offset, False

    def after(self, offset: int) -> tuple[int, bool]:
        """An offset of the edited text, as ``before`` tells the place where it came from."""
        shift = 0
        for edit in self._edits:
            start = edit.start + shift
            if offset < start:
                break
            if offset < start + len(edit.text):
                return edit.start, True
            shift += len(edit.text) - (edit.end - edit.start)
        return offset - shift, False
