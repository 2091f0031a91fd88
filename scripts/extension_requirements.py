"""Pins what the VS Code extension installs beside the server: versions and digests, for every Python.

    python scripts/extension_requirements.py

Asks the index (through ``uv pip compile``) for what ``pyproject.toml`` needs, and writes
``vscode-extension/server/requirements.txt``, which the extension is packaged with.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "vscode-extension/server/requirements.txt"
HEAD = "# Made by scripts/extension_requirements.py: what the server's environment is made of.\n"
LOWEST = "3.10"


def main() -> None:
    """Raises CalledProcessError when the index is not reached, or has nothing that fits."""
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes",
        "--no-header", "--no-annotate", f"--python-version={LOWEST}", ROOT / "pyproject.toml",
    ]  # fmt: skip
    pinned = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    REQUIREMENTS.write_text(HEAD + pinned, encoding="utf-8")


if __name__ == "__main__":
    main()
