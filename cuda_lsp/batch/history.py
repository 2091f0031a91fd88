"""What changed since a revision, or is about to be committed, by git.

What is staged is read as it is in the index: the rest of the work is not part of the commit.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from cuda_lsp import files

_PATIENCE_S = 60.0


class NoHistory(ValueError):
    """What git does not tell; the message is for people."""


def changed_since(revision: str, folder: Path) -> list[Path]:
    """Files below ``folder`` that are not what they were in ``revision``, new ones too. Raises NoHistory."""
    if revision.startswith("-"):
        raise NoHistory(f"{revision!r} is no revision")
    _said_by_git(folder, "rev-parse", "--is-inside-work-tree")  # elsewhere ``diff`` compares folders
    since = _names(folder, "diff", "--name-only", "--diff-filter=d", "--relative", "-z", revision, "--")
    new = _names(folder, "ls-files", "--others", "--exclude-standard", "-z")
    return [folder / name for name in dict.fromkeys([*since, *new])]


def staged(folder: Path) -> list[Path]:
    """Files below ``folder`` that the next commit changes; from now on they hold what is staged.

    Raises NoHistory.
    """
    _said_by_git(folder, "rev-parse", "--is-inside-work-tree")
    names = _names(folder, "diff", "--cached", "--name-only", "--diff-filter=d", "--relative", "-z")
    for name in _names(folder, "diff", "--name-only", "--relative", "-z"):
        if name in set(names):  # it holds more than what is staged
            files.instead(folder / name, _said_by_git(folder, "show", f":./{name}"))
    return [folder / name for name in names]


def concerned(candidates: Iterable[Path], changed: Iterable[Path]) -> list[Path]:
    """Those of the files that changed, or that include something that did, as far as names tell."""
    from cuda_lsp.frontend.surroundings.units import includers

    real = {Path(files.target(path)) for path in changed}
    real |= includers(real)
    return [path for path in candidates if Path(files.target(path)) in real]


def _names(folder: Path, *words: str) -> list[str]:
    return [os.fsdecode(name) for name in _said_by_git(folder, *words).split(b"\0") if name]


def _said_by_git(folder: Path, *words: str) -> bytes:
    # A repository's own programs (monitors, filters, external diffs) do not run because it is looked at.
    harmless = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    if words[0] == "diff":
        words = ("diff", "--no-ext-diff", "--no-textconv", *words[1:])
    command = ["git", *harmless, "-C", str(folder), *words]
    try:
        said = subprocess.run(command, capture_output=True, timeout=_PATIENCE_S, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise NoHistory("git is not installed: name the files instead") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoHistory(f"git did not answer: {error}") from None
    if said.returncode:
        reason = said.stderr.decode("utf-8", "replace").strip().splitlines()
        raise NoHistory(reason[-1] if reason else f"git ended with {said.returncode}")
    return said.stdout
