"""Files that comments and docstrings of the dynamic analysis name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DYNAMIC = ROOT / "cuda_lsp" / "dynamic"
SOURCES = sorted(p for p in DYNAMIC.rglob("*") if p.suffix in (".py", ".cpp", ".c", ".cu", ".cuh"))
NAMED = re.compile(r"`([\w/]+\.(?:py|cpp|cuh|cu|c|md))`")


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(DYNAMIC)))
def test_the_files_that_a_text_names_exist(source: Path) -> None:
    known = [str(path.relative_to(ROOT)) for path in (*SOURCES, *(ROOT / "docs").rglob("*.md"))]
    for name in NAMED.findall(source.read_text()):
        assert any(path == name or path.endswith(f"/{name}") for path in known), name
