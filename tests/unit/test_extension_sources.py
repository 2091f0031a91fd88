"""The VS Code extension passes its own lint, type check and tests, where its packages are installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

EXTENSION = Path(__file__).resolve().parents[2] / "vscode-extension"


@pytest.mark.parametrize("script", ["lint", "test"])
def test_extension_passes_its_own(script: str) -> None:
    npm = shutil.which("npm")
    if npm is None or not (EXTENSION / "node_modules").is_dir():
        pytest.skip("the extension's packages are not installed: run make extension")
    run = subprocess.run(
        [npm, "run", "--silent", script], cwd=EXTENSION, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stdout + run.stderr
