"""The import contracts of ``pyproject.toml`` bite: an arrow that points up breaks each of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
    "importlinter"
]["contracts"]
LAYERED = [contract for contract in CONTRACTS if contract["type"] == "layers"]

pytest.importorskip("importlinter")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package and its contracts, to spoil."""
    shutil.copytree(ROOT / "cuda_lsp", tmp_path / "cuda_lsp", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def broken(copy: Path) -> set[str]:
    """Names of the contracts that do not hold."""
    linter = Path(sys.executable).with_name("lint-imports")
    environment = os.environ | {"PYTHONPATH": str(copy)}
    done = subprocess.run(
        [linter, "--no-cache"], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    return set(re.findall(r"^(.*) BROKEN\b", done.stdout, re.M))


def modules(contract: dict[str, Any], layer: str) -> list[str]:
    """The full names of a layer's modules, in the contract's first container."""
    containers = contract.get("containers") or [""]
    names = [name.strip(" ()") for name in re.split("[|:]", layer)]
    return [f"{containers[0]}.{name}".strip(".") for name in names]


def text_of(copy: Path, module: str) -> Path:
    place = copy.joinpath(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def test_an_arrow_that_points_up_breaks_the_contract(copy: Path) -> None:
    for contract in LAYERED:
        layers = contract["layers"]  # or one, of rooms that do not know each other
        upper, lower = modules(contract, layers[0])[0], modules(contract, layers[-1])[-1]
        with text_of(copy, lower).open("a") as text:
            text.write(f"\nimport {upper}\n")
    assert {contract["name"] for contract in LAYERED} <= broken(copy)


def test_a_new_file_needs_a_place(copy: Path) -> None:
    exhaustive = [contract for contract in LAYERED if contract.get("exhaustive")]
    assert exhaustive
    for contract in exhaustive:
        (copy.joinpath(*contract["containers"][0].split(".")) / "newcomer.py").write_text('"""New."""\n')
    assert broken(copy) == {contract["name"] for contract in exhaustive}
