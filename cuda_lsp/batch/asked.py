"""What a run asks of each file, and what it hears."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from cuda_lsp.config import PATIENT, Settings, SettingsProblem, merge
from cuda_lsp.files import Question
from cuda_lsp.model import FileReport
from cuda_lsp.settings_file import load, load_file

Plan = Callable[..., Any]
"""Makes plain data of the analyzer, which still knows the kernels, the file's text and its report."""


class NoCluster(ValueError):
    """Why the workers of a cluster do not do what is asked; the message is for people."""


@frozen
class Asked:
    """``overrides``: settings that come before those of ``settings_file``, or else of the file's folder.

    ``solver`` False: the first tier only, whatever the settings say. ``noting``: also to hear what the report
    hangs on. ``plan``: what to make of each analysis beside its report.
    """

    overrides: Mapping[str, Any] = field(factory=dict[str, Any])
    settings_file: Path | None = None
    solver: bool = True
    noting: bool = False
    plan: Plan | None = None

    def settings(self, path: Path) -> tuple[Settings, tuple[SettingsProblem, ...]]:
        """A file's settings, and what is wrong with them."""
        loaded, problems = (
            load_file(self.settings_file, PATIENT)
            if self.settings_file
            else load(path.absolute().parent, PATIENT)
        )
        settings, more = merge(loaded.of_file(path), self.overrides, "command line")
        return settings, (*problems, *more)


@frozen
class Analysed:
    """A report. ``answers`` of the disk on which it hangs; None: not all are known, or nobody asked.

    ``planned``: what the plan made of it; None: nobody asked, or it did not come to that. ``cut_short``:
    its process died, failed or did not begin; the report is what was known before.
    """

    report: FileReport
    answers: Mapping[Question, str] | None = None
    planned: Any = None
    cut_short: bool = False
