"""Which words a warp's lanes touch, wavefront by wavefront, and the picture of it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as Xml
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from property_settings import examples

from cuda_lsp.cli import main
from cuda_lsp.report.bank_picture import description, svg
from cuda_lsp.wavefronts import WarpPicture, touched_words, warp_wavefronts

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


@examples(80)
@given(
    st.lists(st.integers(0, 4095), min_size=32, max_size=32),
    st.lists(st.booleans(), min_size=32, max_size=32),
    st.sampled_from([1, 4, 8, 16]),
    st.booleans(),
)
def test_the_words_of_a_picture_cost_what_the_rule_says(
    places: list[int], lanes: list[bool], size: int, load: bool
) -> None:
    addresses, active = np.array([places]) * size, np.array([lanes])
    cost = warp_wavefronts(addresses, active, size, load=load)
    touches = touched_words(addresses, active, size, load=load)
    parts = {t.part for t in touches}
    assert (
        sum(1 + max(t.wavefront for t in touches if t.part == part) for part in parts) == cost.wavefronts[0]
    )
    assert {t.lane for t in touches} == {n for n, is_active in enumerate(lanes) if is_active}
    served = {(t.part, t.wavefront, t.bank, t.word) for t in touches}
    assert len({(part, wavefront, bank) for part, wavefront, bank, _ in served}) == len(served)
    counts = np.bincount([bank for bank, _, _ in {(t.bank, t.part, t.word) for t in touches}], minlength=32)
    assert counts.tolist() == cost.histogram[0].tolist()


def test_text_of_the_source_is_no_markup() -> None:
    touches = touched_words(np.arange(32)[None] * 4, np.ones((1, 32), bool), 4, load=True)
    picture = WarpPicture('s[a<b && "x" ? 1 : 2]', 3, 0, 32, 32, 1, 1, touches)
    root = Xml.fromstring(svg([("now <b>", picture)]))
    assert any("now <b>" in (text.text or "") for text in root.findall(".//{*}text"))
    assert root.attrib["role"] == "group" and root.find("{*}desc").text == f"now <b>: {description(picture)}"  # type: ignore[union-attr]


def test_the_command_line_prints_the_picture_now_and_after_the_repair() -> None:
    place = f"{FIXTURES / 'demo/transpose.cu'}:12"
    result = CliRunner().invoke(main, ["explain", "--picture", place])
    assert result.exit_code == 0
    texts = [text.text or "" for text in Xml.fromstring(result.output).findall(".//{*}text")]
    titles = [text for text in texts if "wavefronts," in text]
    assert titles == ["now: 32 wavefronts, ideal 1", "after the verified repair: 1 wavefronts, ideal 1"]
    assert "prefers-color-scheme: dark" in result.output
    # No two neighbouring wavefronts look alike, and none is told by its colour alone.
    colours = re.findall(r'fill="(#\w+)"/>', result.output)[:32]
    assert all(a != b for a, b in pairwise(colours))


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("transpose.cu", "FILE:LINE"),
        (f"{FIXTURES / 'demo/transpose.cu'}:1", "no kernel"),
        (f"{FIXTURES / 'demo/transpose.cu'}:9", "no access to shared memory"),
        ("nowhere.cu:3", "nowhere.cu"),
    ],
)
def test_what_has_no_picture_is_told(place: str, said: str) -> None:
    result = CliRunner().invoke(main, ["explain", "--picture", place])
    assert result.exit_code == 2 and said in result.output
