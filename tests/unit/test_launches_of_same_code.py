"""Launches are not read anew where white space and comments alone have changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.around import Around
from cuda_lsp.frontend.translation import Translation

TEXT = """__global__ void k(int *a, int n) { a[threadIdx.x] = n; }
// launched here
void f(int *a) {
  int n = 3;
  k<<<4, 64>>>(a, n);
}
"""


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    usual = Around.launches

    def launches(self: Around, text: str, names: tuple[str, ...] | None = None) -> object:
        texts.append(text)
        return usual(self, text, names)

    monkeypatch.setattr(Around, "launches", launches)
    return texts


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("// launched here", "// launched here, too\n", 6),
        ("int n = 3;", "int n = 3;  // three", 5),
        ("void f", "\n\nvoid f", 7),
    ],
)
def test_comments_read_no_launch(read: list[str], old: str, new: str, line: int) -> None:
    translation = Translation(Path("/nowhere/a.cu"), TEXT)
    (before,) = translation.launch_sites
    read.clear()
    translation.reparse(TEXT.replace(old, new))
    (after,) = translation.launch_sites
    assert not read and after.arguments == before.arguments == {1: 3}
    assert after.site and after.site.range.start.line == line
    translation.reparse(TEXT.replace(old, f"/{new}"))
    translation.reparse(TEXT)
    assert translation.launch_sites == (before,)


@pytest.mark.parametrize(
    ("old", "new"), [("<<<4, 64>>>", "<<< 4, 64 >>>"), ("n = 3", "n = 4"), ("4, 64", "4, 32")]
)
def test_other_code_and_launches_that_are_respelled_are_read(read: list[str], old: str, new: str) -> None:
    translation = Translation(Path("/nowhere/a.cu"), TEXT)
    assert translation.launch_sites
    read.clear()
    translation.reparse(TEXT.replace(old, new))
    (after,) = translation.launch_sites
    assert read and after.site and (after.site.text.startswith("k<<<"))


def test_a_text_that_was_broken_in_between_is_known(read: list[str]) -> None:
    translation = Translation(Path("/nowhere/a.cu"), TEXT)
    assert translation.launch_sites
    translation.reparse(TEXT.replace("// launched", "/ launched"))
    assert translation.launch_sites is not None
    read.clear()
    translation.reparse(TEXT.replace("// launched", "//  launched"))
    assert translation.launch_sites and not read


def test_a_header_that_changed_has_them_read(read: list[str]) -> None:
    translation = Translation(Path("/nowhere/a.cu"), TEXT)
    assert translation.launch_sites
    read.clear()
    translation.refresh()
    assert translation.launch_sites and read
