"""Registers that inline assembly names with one sign, as nvcc takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.special_registers import escaped
from cuda_lsp.frontend.translation import Translation

_LANE = '__device__ unsigned lane() { unsigned n; asm("mov.u32 %0, %laneid;" : "=r"(n)); return n; }\n'
_KERNEL = "__global__ void k(int* p) { p[lane()] = 1; }\n"


def program(path: Path, text: str) -> str:
    translation = Translation(path, text)
    (kernel,) = translation.kernels()
    return repr(translation.lower(kernel).body)


def test_a_register_with_one_sign_is_the_one_with_two() -> None:
    two = program(Path("a.cu"), _LANE.replace(" %laneid", "%%laneid") + _KERNEL)
    assert "Incomplete" not in two
    assert program(Path("a.cu"), _LANE + _KERNEL) == two


def test_headers_are_read_so_too(tmp_path: Path) -> None:
    (tmp_path / "lane.h").write_text(_LANE)
    text = program(tmp_path / "a.cu", '#include "lane.h"\n' + _KERNEL)
    assert "Incomplete" not in text and "LANE" in text


def test_what_is_no_register_stays_an_error() -> None:
    assert "invalid % escape" in program(Path("a.cu"), _LANE.replace("laneid", "lazy") + _KERNEL)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("mov.u32 %0, %laneid;", "mov.u32 %0,%%laneid;"),
        ("mov.u32 %0, %%laneid;", "mov.u32 %0, %%laneid;"),
        ("add %0, %tid.x, %lanes;", "add %0,%%tid.x, %lanes;"),
        ("a %identity b", "a %identity b"),
    ],
)
def test_nothing_moves(text: str, read: str) -> None:
    assert escaped(text) == read
    assert len(read) == len(text)
