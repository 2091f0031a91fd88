"""Resident memory of a process and of all that it started (Linux)."""

from __future__ import annotations

import re
from pathlib import Path


def family(process: int) -> list[int]:
    """A process and its descendants."""
    found = [process]
    for parent in found:
        try:
            for children in list(Path(f"/proc/{parent}/task").glob("*/children")):
                found += [int(child) for child in children.read_text().split()]
        except OSError:  # it ended while we looked
            continue
    return found


def megabytes(process: int) -> float:
    """Proportional: a page counts once, split among those that share it. 0 when the process is gone."""
    return _told(process, "Pss")


def own_megabytes(process: int) -> float:
    """The same without files and libraries, whose share also depends on who else uses them."""
    return _told(process, "Pss_Anon")


def _told(process: int, what: str) -> float:
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    match = re.search(rf"^{what}:\s+(\d+) kB", text, re.M)
    return int(match[1]) / 1024 if match else 0.0
