"""Packages the VS Code extension as the same bytes wherever and whenever it is done.

    python scripts/package_extension.py [OUTPUT.vsix]

Run by ``npm run package`` behind the bundling. What the package holds is gathered in a folder, with the same
modes and times; ``CUDA_LSP_REPOSITORY=https://…`` names the repository in it and makes links absolute. The
server's own wheel travels with it where ``hatchling`` is at hand; else the extension takes it from an index.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

EXTENSION = Path(__file__).resolve().parents[1] / "vscode-extension"
PARTS = (
    ".vscodeignore", "CHANGELOG.md", "LICENSE", "README.md", "THIRD_PARTY.md",
    "dist/extension.js", "media", "server",
)  # fmt: skip
EPOCH = "1767225600"
"""Seconds: the time of all files, where SOURCE_DATE_EPOCH gives no other (zip knows none before 1980)."""


def package(output: Path, repository: str = "") -> None:
    """Raises CalledProcessError when vsce refuses it, OSError when something is missing."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in PARTS:
            source, target = EXTENSION / part, folder / part
            target.parent.mkdir(exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copyfile(source, target)
        wheel(folder / "server")
        (folder / "package.json").write_text(json.dumps(manifest(repository), indent=2, ensure_ascii=False))
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        links = ["--no-rewrite-relative-links"]
        if repository:
            links = [f"--baseContentUrl={repository}/blob/HEAD/vscode-extension"]
            links += [f"--baseImagesUrl={repository}/raw/HEAD/vscode-extension"]
        subprocess.run(
            [EXTENSION / "node_modules/.bin/vsce", "package", "--no-dependencies",
             "--allow-missing-repository", *links, "--out", output.absolute()],
            cwd=folder, check=True, umask=0o022,
            env={**os.environ, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", EPOCH), "TZ": "UTC"},
        )  # fmt: skip


def wheel(folder: Path) -> None:
    """The server of this checkout, for the environment that the extension makes."""
    root = EXTENSION.parent
    for python in filter(os.path.exists, (sys.executable, root / ".venv/bin/python")):
        if subprocess.run([python, "-c", "import hatchling"], capture_output=True).returncode == 0:
            command = [python, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
            told = {**os.environ, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", EPOCH)}
            subprocess.run(command, cwd=root, env=told, check=True, capture_output=True)
            return
    print("packaged without the server's wheel: hatchling is not installed", file=sys.stderr)


def manifest(repository: str) -> dict[str, object]:
    """``package.json`` as it is published: nothing to run, and where it comes from."""
    told = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    del told["scripts"], told["devDependencies"]
    if repository:
        told["repository"] = {"type": "git", "url": repository, "directory": "vscode-extension"}
        told["bugs"] = {"url": f"{repository}/issues"}
        told["homepage"] = f"{repository}#readme"
    return told


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else EXTENSION / "cuda-lsp.vsix"
    package(place, os.environ.get("CUDA_LSP_REPOSITORY", "").rstrip("/"))
