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


PARTS = """__device__ int twice(int n) {
  return 2 * n;
}
struct Sum { __device__ int operator()(int a, int b) { return a + b; } };
__host__ __device__ int blocks(int n) { return n / 64; }
__global__ void k(int *a, int n) { a[threadIdx.x] = twice(n); }
__global__ void deep(int *a, int n) {
  int few = 32;
  if (threadIdx.x == 0) k<<<1, 32>>>(a, few);
}
void f(int *a) {
  k<<<4, 64>>>(a, 3);
  deep<<<1, blocks(4096)>>>(a, 3);
}
"""


@pytest.mark.parametrize(
    ("old", "new"), [("2 * n;", "3 * n;"), ("return a + b", "return b + a"), ("twice(n); }", "n; }")]
)
def test_what_the_device_alone_computes_reads_no_launch(read: list[str], old: str, new: str) -> None:
    translation = Translation(Path("/nowhere/a.cu"), PARTS)
    before = translation.launch_sites
    read.clear()
    translation.reparse(PARTS.replace(old, new))
    assert translation.launch_sites == before and not read
    translation.reparse(PARTS.replace(old, f"\n{new}"))
    fresh = Translation(Path("/nowhere/a.cu"), PARTS.replace(old, f"\n{new}"))
    assert translation.launch_sites == fresh.launch_sites != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n / 64", "n / 32"),
        ("k<<<1, 32>>>", "k<<<1, 16>>>"),
        ("few = 32", "few = 16"),
        ("return 2", "#define blocks(n) 128\n  return 2"),
        ("__device__ int twice", "__host__ __device__ int twice"),
    ],
)
@pytest.mark.parametrize("focused", [False, True])
def test_what_launches_or_may_tell_of_one_is_read(read: list[str], focused: bool, old: str, new: str) -> None:
    translation = Translation(Path("/nowhere/a.cu"), PARTS)
    assert len(translation.launch_sites) == 3
    read.clear()
    translation.reparse(PARTS.replace(old, new), focused=focused)
    fresh = Translation(Path("/nowhere/a.cu"), PARTS.replace(old, new))
    assert translation.launch_sites == fresh.launch_sites
    assert len(read) == 2
