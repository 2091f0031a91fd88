"""Real VS Code where no server is: one click installs it, offline; the walkthrough ends with a mended race.

``vscode/install.mjs`` plays it. The folder of wheels is what ``pip download`` fetches.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import EDITORS, FIGURE1, ROOT, need
from test_vscode import HERE, NODE, VSIX, packaged

REQUIREMENTS = ROOT / "vscode-extension/server/requirements.txt"
BASE = Path(sys._base_executable)  # pyright: ignore[reportPrivateUsage]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Skips where no index is reached."""
    folder = tmp_path_factory.mktemp("wheels")
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--only-binary",
        ":all:",
        "-d",
        str(folder),
    ]
    done = subprocess.run([*command, "-r", str(REQUIREMENTS)], capture_output=True, text=True)
    if re.search(r"No matching distribution|Connection|No module named pip", done.stderr):
        pytest.skip("packages cannot be fetched here: no index is reached")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, artifacts: Path, wheels: Path) -> dict[str, Any]:
    packaged()
    scratch = tmp_path_factory.mktemp("install")
    file = scratch / "project/figure1.cu"
    file.parent.mkdir()
    file.write_text(FIGURE1)
    programs = scratch / "programs"
    programs.mkdir()
    (programs / f"python3.{sys.version_info.minor}").symlink_to(BASE)
    (scratch / ".profile").write_text(
        f"PATH={shlex.quote(str(programs))}:/usr/bin:/bin\n"
    )  # of the login shell
    machine = scratch / "data/Machine/settings.json"
    machine.parent.mkdir(parents=True)
    machine.write_text(json.dumps({"cuda-lsp.server.wheels": str(wheels)}))
    report, config = scratch / "report.json", scratch / "config.json"
    config.write_text(
        json.dumps(
            {
                "editors": str(EDITORS),
                "chromium": need("chromium", "chromium"),
                "scratch": str(scratch),
                "artifacts": str(artifacts),
                "failed": "vscode-install-failed",
                "vsix": str(VSIX),
                "server": [],
                "wire": os.devnull,
                "file": str(file),
                "environment": {"PATH": f"{programs}:/usr/bin:/bin", "PIP_NO_INDEX": "1"},
                "report": str(report),
            }
        )
    )
    node = need(NODE, "Node.js 24")
    subprocess.run([node, HERE / "vscode/install.mjs", config], check=True, timeout=900)
    seen = json.loads(report.read_text())
    (artifacts / "vscode-install-report.json").write_text(report.read_text())
    assert "error" not in seen, f"{seen['error']}\nsee test-artifacts/vscode-install-failed.png"
    assert seen["outside"] == []
    return seen["install"]


def test_where_no_server_is_an_environment_is_offered(story: dict[str, Any]) -> None:
    assert "environment of its own" in story["asked"] and "Install" in story["asked"]


def test_one_click_installs_it_with_a_progress_that_can_be_cancelled(story: dict[str, Any]) -> None:
    assert "Installing cuda-lsp" in story["progress"] and "Cancel" in story["progress"]
    assert "racy" in story["status"]
    assert any(name.startswith("server-") for name in story["environments"])


def test_another_version_is_replaced_when_somebody_agrees(story: dict[str, Any]) -> None:
    assert "0.0.1 is installed" in story["update"] and "Not Now" in story["update"]
    assert story["updated"] == story["environments"]
    assert "racy" in story["statusUpdated"]


def test_steps_of_the_walkthrough_tick_when_they_are_true(story: dict[str, Any]) -> None:
    assert story["before"] == [False, False, False]
    assert story["installed"] == [True, True, False]  # the race of the open file is seen
    assert "race-free" in story["mended"]
    assert story["after"] == [True, True, True]
