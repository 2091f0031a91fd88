"""What a run asks of each file, and what it hears."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from cuda_lsp.files import Question
from cuda_lsp.model import FileReport


@frozen
class Asked:
    """``overrides``: settings that come before those of ``settings_file``, or else of the file's folder.

    ``solver`` False: the first tier only, whatever the settings say. ``noting``: also to hear what the report
    hangs on.
    """

    overrides: Mapping[str, Any] = field(factory=dict[str, Any])
    settings_file: Path | None = None
    solver: bool = True
    noting: bool = False


@frozen
class Analysed:
    """A report. ``answers`` of the disk on which it hangs; None: not all are known, or nobody asked."""

    report: FileReport
    answers: Mapping[Question, str] | None = None
