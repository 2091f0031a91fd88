"""The hook that fails a run of the tests when one of its processes was too large."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
CONFTEST = """
from most_resident import Sizes
def pytest_configure(config):
    config.pluginmanager.register(Sizes({limit} << 20))
"""
SUITE = """
import subprocess, sys
def test_small():
    pass
def test_large_child():
    subprocess.run([sys.executable, "-c", "b'x' * ({megabytes} << 20)"], check=True)
def test_behind_it():
    pass
"""


def run(folder: Path, limit: int, megabytes: int) -> subprocess.CompletedProcess[str]:
    """``limit``, ``megabytes``: beyond what this process takes, which its children are said to have had."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    limit, megabytes = own + limit, own + megabytes if megabytes > limit else megabytes
    (folder / "conftest.py").write_text(CONFTEST.format(limit=limit))
    (folder / "test_suite.py").write_text(SUITE.format(megabytes=megabytes))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        cwd=folder,
    )


def test_a_child_that_was_too_large_fails_the_run_and_its_test_is_named(tmp_path: Path):
    done = run(tmp_path, 40, 100)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    told = [line for line in done.stdout.splitlines() if line.startswith("a child had")]
    assert len(told) == 1, done.stdout
    assert told[0].endswith("test_suite.py::test_large_child")


def test_a_run_of_small_processes_passes(tmp_path: Path):
    done = run(tmp_path, 400, 1)
    assert done.returncode == pytest.ExitCode.OK, done.stdout
