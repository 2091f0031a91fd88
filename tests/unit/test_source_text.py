"""Byte offsets as positions in code points."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cuda_lsp.frontend.source_text import SourceText
from cuda_lsp.model import Position


@given(st.text(alphabet="a\n\r\té€😀\u200d\ud800", max_size=40))
def test_a_position_counts_code_points_of_its_line(text: str) -> None:
    source = SourceText(Path("k.cu"), text)
    read = source.data.decode()
    for n in range(len(read) + 1):
        before = read[:n]
        line = before.rpartition("\n")[2]
        assert source.position(len(before.encode())) == Position(before.count("\n") + 1, len(line) + 1)


def test_an_offset_within_a_character_counts_the_character() -> None:
    assert SourceText(Path("k.cu"), "a😀b").position(3) == Position(1, 3)
