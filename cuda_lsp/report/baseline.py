"""Findings that a project knows of: only what came since is told.

A baseline is a JSON file with the fingerprints (``identity``) of the findings of each file, and how many
there are of each; paths are relative to its folder. Findings are matched as code moves: within their file,
and those of files that are gone (renamed, split) in any other.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from attrs import define, evolve, field

from cuda_lsp import __version__, files
from cuda_lsp.model import FileReport, Finding
from cuda_lsp.report.identity import identity

SCHEMA = 1


class BadBaseline(ValueError):
    """A file that is no baseline of ours; the message is for people."""


@define
class Baseline:
    """The known findings, each of which excuses as many as it was seen times."""

    folder: Path
    known: dict[str, Counter[str]] = field(factory=dict[str, Counter[str]])
    _gone: Counter[str] | None = None  # of files that are not there any more
    hidden: int = 0
    """Findings that ``new`` has left out so far."""

    @staticmethod
    def read(path: Path) -> Baseline:
        """Raises BadBaseline."""
        try:
            content = json.loads(files.read_text(path, files.DATABASE_LIMIT))
        except OSError as error:
            raise BadBaseline(f"{path}: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise BadBaseline(f"{path} is no baseline: {error}") from None
        if not isinstance(content, dict) or cast("Mapping[str, Any]", content).get("schema") != SCHEMA:
            raise BadBaseline(f"{path} is no baseline of schema {SCHEMA}: write it again")
        return Baseline(path.absolute().parent, _counted(path, cast("Mapping[str, Any]", content)))

    def new(self, reports: Iterable[FileReport]) -> Iterator[FileReport]:
        """The reports without the findings that are known."""
        for report in reports:
            here = self.known.get(_name(report.path, self.folder), Counter())
            kernels = tuple(evolve(k, findings=self._new(k.findings, here)) for k in report.kernels)
            yield evolve(report, kernels=kernels)

    def _new(self, findings: Iterable[Finding], here: Counter[str]) -> tuple[Finding, ...]:
        return tuple(finding for finding in findings if not self._excused(identity(finding), here))

    def _excused(self, known: str, here: Counter[str]) -> bool:
        for counted in (here, self._of_missing()):
            if counted[known] > 0:
                counted[known] -= 1
                self.hidden += 1
                return True
        return False

    def _of_missing(self) -> Counter[str]:
        if self._gone is None:
            missing = (c for name, c in self.known.items() if not files.is_there(self.folder / name))
            self._gone = sum(missing, Counter[str]())
        return self._gone


def _counted(path: Path, content: Mapping[str, Any]) -> dict[str, Counter[str]]:
    try:
        return {
            str(name): Counter({str(key): int(count) for key, count in counts.items()})
            for name, counts in content["findings"].items()
        }
    except (KeyError, AttributeError, TypeError, ValueError):
        raise BadBaseline(f"{path} is no baseline: its findings are not readable") from None


def baseline(reports: Iterable[FileReport], path: Path) -> str:
    """The text of a baseline that lies at ``path`` and knows every finding of these reports."""
    folder = path.absolute().parent
    found = {_name(r.path, folder): Counter(map(identity, r.findings)) for r in reports if r.findings}
    content = {
        "schema": SCHEMA,
        "tool": {"name": "cuda-lsp", "version": __version__},
        "findings": {name: dict(sorted(counts.items())) for name, counts in sorted(found.items())},
    }
    return json.dumps(content, indent=1) + "\n"


def _name(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.absolute(), folder)).as_posix()
