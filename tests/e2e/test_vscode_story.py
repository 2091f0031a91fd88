"""A story in real VS Code: an empty profile, a project of several files, a race in a template of a header.

It is seen, looked at among its barriers, confirmed by a run, mended and gone; then the prompts for a launch
and for a program's arguments, and what the program prints. ``vscode/story.mjs`` plays it.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import EDITORS, SERVER, need
from test_vscode import HERE, NODE, VSIX, packaged

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import has_nvcc, needs_nvcc

NOTHING_SEEN = "proved race-free"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, artifacts: Path) -> dict[str, Any]:
    packaged()
    scratch = tmp_path_factory.mktemp("story")
    shutil.copytree(HERE / "project", scratch / "project")
    programs = scratch / "programs"
    programs.mkdir()
    wire, report = scratch / "wire", scratch / "report.json"
    wire.touch()
    # What the editor sends goes through tee, so that the story knows when a click has come through.
    server = programs / "cuda-lsp"
    server.write_text(f"#!/bin/sh\ntee -a {shlex.quote(str(wire))} | {shlex.join(SERVER)}\n")
    server.chmod(0o755)
    (scratch / ".profile").write_text(f"PATH={shlex.quote(str(programs))}:$PATH\n")  # of the login shell
    config = scratch / "config.json"
    config.write_text(
        json.dumps(
            {
                "editors": str(EDITORS),
                "chromium": need("chromium", "chromium"),
                "scratch": str(scratch),
                "artifacts": str(artifacts),
                "failed": "vscode-story-failed",
                "vsix": str(VSIX),
                "server": [],
                "wire": str(wire),
                "folder": str(scratch / "project"),
                "runs": has_nvcc(),
                "patience": 120000,
                "nothing": NOTHING_SEEN,
                "report": str(report),
            }
        )
    )
    node = need(NODE, "Node.js 24")
    subprocess.run([node, HERE / "vscode/story.mjs", config], check=True, timeout=900)
    seen = json.loads(report.read_text())
    (artifacts / "vscode-story-report.json").write_text(report.read_text())
    assert "error" not in seen, f"{seen['error']}\nsee test-artifacts/vscode-story-failed.png"
    assert seen["outside"] == []
    return seen["story"]


def test_a_header_with_a_kernel_is_cuda_and_its_race_is_seen(story: dict[str, Any]) -> None:
    assert story["language"] == "CUDA C++"
    assert "racy" in story["lens"] and "racy" in story["status"]
    assert "thread" in story["hover"] and "tile[" in story["hover"]


def test_the_race_is_shown_among_its_barriers(story: dict[str, Any]) -> None:
    said = story["intervals"]
    assert "Barrier intervals, line 9" in said
    assert "no barrier between them" in said and "after the verified repair" in said


def test_a_click_and_the_keyboard_lead_from_the_picture_to_the_lines(story: dict[str, Any]) -> None:
    assert story["clicked"].startswith("Ln 8,")
    assert story["keyed"].startswith("Ln 9,")


@needs_nvcc
def test_the_race_is_confirmed_by_a_run(story: dict[str, Any]) -> None:
    assert "turned" in story["confirmed"] and "1 confirmed on" in story["confirmed"]


def test_the_quick_fix_mends_it(story: dict[str, Any]) -> None:
    assert "in[first + t];\n    __syncthreads();\n    out[first + t]" in story["mended"]
    assert "race-free" in story["statusMended"]


@needs_nvcc
def test_a_run_of_the_mended_kernel_sees_nothing(story: dict[str, Any]) -> None:
    assert "turned" in story["after"] and NOTHING_SEEN in story["after"]


def test_the_launch_of_a_kernel_is_asked_for_and_written(story: dict[str, Any]) -> None:
    assert "guessed" in story["guessed"]
    assert any("Other extents" in row for row in story["offered"])
    assert "// cuda-lsp: launch block=(32,32)\n__global__ void columns" in story["launch"]
    assert "guessed" not in story["lensLaunch"]


def test_the_banks_are_a_picture_and_a_table_that_the_keyboard_opens(story: dict[str, Any]) -> None:
    assert "wavefronts: 32, ideal 1" in story["banks"] and "after the verified repair" in story["banks"]
    assert story["bankRows"] == 32


def test_the_ways_of_a_conflict_stand_beside_its_access(story: dict[str, Any]) -> None:
    assert re.search(r"tile\[threadIdx\.x\]\[threadIdx\.y\]\s*32-way", story["hint"])


def test_a_finding_is_silenced_by_its_action(story: dict[str, Any]) -> None:
    comment, access = story["silenced"].splitlines()[6:8]
    assert comment.strip() == "// cuda-lsp: ignore[bank-conflict] reason"
    assert access.strip().endswith("tile[threadIdx.x][threadIdx.y];")


@needs_nvcc
def test_the_program_gets_the_arguments_that_were_typed_and_prints_in_a_terminal(
    story: dict[str, Any],
) -> None:
    assert "argument 1: two words" in story["terminal"] and "argument 2: 7" in story["terminal"]
    assert story["remembered"] == '"two words" 7'
