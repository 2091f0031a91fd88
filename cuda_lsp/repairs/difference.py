"""The edits that make one text of another: whole lines, as few as ``difflib`` finds."""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import accumulate

from cuda_lsp.repairs.candidate import Edit


def difference(old: str, new: str) -> tuple[Edit, ...]:
    """Edits of ``old``, in order and apart."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, before))]
    # What is alike around the change is most of a text: of lines alike, difflib takes the square.
    shorter = min(len(before), len(after))
    head = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    tail = next((i for i in range(shorter - head) if before[-1 - i] != after[-1 - i]), shorter - head)
    changed = SequenceMatcher(
        None, before[head : len(before) - tail], after[head : len(after) - tail], autojunk=False
    )
    return tuple(
        Edit(starts[head + first], starts[head + last], "".join(after[head + low : head + high]))
        for what, first, last, low, high in changed.get_opcodes()
        if what != "equal"
    )
