"""Small projects of several files: what checking the whole folder says of each kernel, and of what is around.

Labels are those of ``test_labelled``; a kernel may stand in any file. ``//! text``: something that is told of
the file in which it stands, or of one of its kernels, says this. Nothing is told of files without a label.
"""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from fixture_cases import FIXTURES
from test_labelled import certain_races, expected_races

from cuda_lsp.batch.asked import Asked
from cuda_lsp.batch.check import checking
from cuda_lsp.frontend.surroundings.units import kernel_files
from cuda_lsp.model import FileReport

PROJECTS = sorted(path.name for path in (FIXTURES / "projects").iterdir())
_LABEL = re.compile(
    r"//= ([\w-]+)[^\n]*\n(?:[^\n]*\n)*?[^\n]*__global__[^(]*?(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\("
)
_TOLD = re.compile(r"//! ([^\n]+)")


Checked = tuple[str, dict[str, FileReport]]


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in PROJECTS], ids=PROJECTS
)
def checked(request: pytest.FixtureRequest) -> Checked:
    """A project and what ``cuda-lsp check FOLDER`` says of it, by the file's path; once for all tests."""
    return request.param, reports_of(request.param)


@cache
def reports_of(name: str) -> dict[str, FileReport]:
    """Of the project ``name``."""
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve() / name
        shutil.copytree(FIXTURES / "projects" / name, root)
        (root / ".git").mkdir()
        with checking(kernel_files(root), Asked()) as reports:
            return {str(report.path.relative_to(root)): report for report in reports}


def labels(name: str) -> list[tuple[str, str, str]]:
    """File, kernel and verdict of every label."""
    root = FIXTURES / "projects" / name
    return [
        (str(path.relative_to(root)), match[2], match[1])
        for path in sorted(root.rglob("*"))
        if path.is_file()
        for match in _LABEL.finditer(path.read_text())
    ]


def test_every_kernel_of_the_project_has_its_verdict(checked: Checked) -> None:
    name, reports = checked
    found = {(file, k.name.split("<")[0]): k for file, report in reports.items() for k in report.kernels}
    assert {(file, kernel): found[file, kernel].verdict.value for file, kernel, _ in labels(name)} == {
        (file, kernel): verdict for file, kernel, verdict in labels(name)
    }
    assert len(found) == len(labels(name))


def test_every_race_is_told_once_and_where_it_stands(checked: Checked) -> None:
    name, reports = checked
    for file, kernel, _ in labels(name):
        text = (FIXTURES / "projects" / name / file).read_text()
        instances = [k for k in reports[file].kernels if k.name.split("<")[0] == kernel]
        expected = set().union(*(expected_races(text, report) for report in instances))
        assert set().union(*(certain_races(report) for report in instances)) == expected, kernel
        for report in instances:
            places = [(f.code, f.kind, f.site.range, f.related[:1]) for f in report.findings if f.kind]
            assert len(places) == len(set(places))


def test_what_is_told_of_a_file_is_what_it_says(checked: Checked) -> None:
    name, reports = checked
    for file, report in reports.items():
        said = [error.message for error in report.errors]
        said += [text for kernel in report.kernels for text in (*kernel.reasons, *kernel.notes)]
        expected = _TOLD.findall((FIXTURES / "projects" / name / file).read_text())
        for text in expected:
            assert any(text in message for message in said), (text, said)
        for error in report.errors:
            assert any(text in error.message for text in expected), (file, error.message)
