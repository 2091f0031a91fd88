"""The pre-commit hook and the GitHub Action, in a scratch repository, as their users run them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
RACY = """__global__ void reversed(int *out) {
  __shared__ int s[64];
  s[threadIdx.x] = 1;
  out[threadIdx.x] = s[63 - threadIdx.x];
}
void launch(int *out) { reversed<<<1, 64>>>(out); }
"""
MENDED = RACY.replace("= 1;", "= 1;\n  __syncthreads();")
GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")


def is_a_repository() -> bool:
    """Whether git takes this checkout for one, which an owner of its own or a missing git prevents."""
    if shutil.which("git") is None:
        return False
    return subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(not is_a_repository(), reason="git takes this checkout for no repository")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of somebody else, with a cache of its own and nothing of this environment's Python."""
    for name in ("PYTHONPATH", "GIT_DIR", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CUDA_LSP_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "theirs"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (folder / "kernel.cu").write_text(RACY)
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    return folder


def without_network(said: str) -> None:
    if re.search(r"Could not find a version|Temporary failure in name|Connection", said):
        pytest.skip("packages cannot be installed here: no index is reached")


def test_the_hook_stops_a_commit_with_a_race(repository: Path, tmp_path: Path):
    environment = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "pre-commit")}
    hook = [sys.executable, "-m", "pre_commit", "try-repo", str(ROOT), "cuda-lsp", "--all-files"]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(hook, cwd=repository, env=environment, capture_output=True, text=True)

    stopped = run()
    without_network(stopped.stdout + stopped.stderr)
    assert stopped.returncode == 1 and "shared-race" in stopped.stdout
    (repository / "kernel.cu").write_text(MENDED)
    passed = run()
    assert passed.returncode == 0, passed.stdout + passed.stderr


def test_the_action_annotates_and_writes_a_log(repository: Path, tmp_path: Path):
    steps: list[dict[str, Any]] = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    known = {"github.action_path": str(ROOT), "runner.temp": str(tmp_path), "inputs.paths": "."}
    known |= {"inputs.arguments": "--ignore bank-conflict", "inputs.sarif": "races.sarif"}

    def run(step: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        """As GitHub does: expressions in the environment, ``bash -e -o pipefail`` on the script."""
        told = {k: re.sub(r"\$\{\{ (.*?) \}\}", lambda m: known[m[1]], v) for k, v in step["env"].items()}
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
        return subprocess.run(
            command, cwd=repository, env={**os.environ, **told}, capture_output=True, text=True
        )

    install, check = steps
    installed = run(install)
    without_network(installed.stdout + installed.stderr)
    assert installed.returncode == 0, installed.stderr
    failed = run(check)
    assert failed.returncode == 1
    assert "::error file=kernel.cu,line=4,endLine=4,col=22" in failed.stdout
    (result,) = json.loads((repository / "races.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "shared-race"
    (repository / "kernel.cu").write_text(MENDED)
    assert run(check).returncode == 0
