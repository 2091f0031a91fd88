"""The edits that make one text of another: whole lines, as few as ``difflib`` finds."""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import accumulate

from cuda_lsp.repairs.candidate import Edit


def difference(old: str, new: str) -> tuple[Edit, ...]:
    """Edits of ``old``, in order and apart."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, before))]
    return tuple(
        Edit(starts[first], starts[last], "".join(after[low:high]))
        for what, first, last, low, high in SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        if what != "equal"
    )
