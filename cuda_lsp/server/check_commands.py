"""The commands that run kernels and programs, and what the client is told of them before anything runs."""

from __future__ import annotations

import re

from lsprotocol import types as lsp

from cuda_lsp.main_function import main_line
from cuda_lsp.model import FileReport, KernelReport

COMMAND = "cuda-lsp.runDynamicCheck"
PROGRAM_COMMAND = "cuda-lsp.runProgram"
PROGRAM_WITH_COMMAND = "cuda-lsp.runProgramWith"
"""With arguments for the program, instead of those of the settings."""

VERDICTS_COMMAND = "cuda-lsp.tellInstances"
PICTURE_COMMAND = "cuda-lsp.showBanks"
INTERVALS_COMMAND = "cuda-lsp.showIntervals"
WORKSPACE_COMMAND = "cuda-lsp.checkWorkspace"
SET_LAUNCH = "Set launch configuration"
STALE = "the result of the dynamic check is of another text"
UNTRUSTED = (
    "A dynamic check compiles and runs this file's kernels, so it needs a trusted workspace:"
    ' trust the folder in VS Code, or set "trusted": true in the initialization options'
)
_INCLUDES = re.compile(r"^[ \t]*#[ \t]*include[ \t]+\"", re.MULTILINE)  # kernels may be there


def action_for(kernel: KernelReport, uri: str) -> lsp.Command:
    """What a click on "Run dynamic check" sends."""
    return lsp.Command(title="Run dynamic check", command=COMMAND, arguments=[uri, kernel.name])


def program_action(uri: str) -> lsp.Command:
    """What a click on "Run the program under check" sends."""
    return lsp.Command(title="Run the program under check", command=PROGRAM_COMMAND, arguments=[uri])


def program_line(report: FileReport, text: str, built: bool) -> int | None:
    """The line (from 1) of what runs the program that a file belongs to; None: nobody knows it."""
    line = main_line(text) if report.kernels or _INCLUDES.search(text) else None
    if line is None and built:
        line = min((kernel.range.start.line for kernel in report.kernels), default=None)
    return line


def picture_action(uri: str, line: int) -> lsp.Command:
    """What shows the banks of an access; ``line`` from 1."""
    return lsp.Command(f"Show the banks of line {line}", PICTURE_COMMAND, arguments=[uri, line])


def interval_action(uri: str, line: int) -> lsp.Command:
    """What shows a race among the barriers of its block; ``line`` from 1."""
    return lsp.Command(f"Show the barrier intervals of line {line}", INTERVALS_COMMAND, arguments=[uri, line])


def verdict_action(title: str, uri: str, line: int) -> lsp.Command:
    """What a click on the verdict of a template sends; ``line`` from 1."""
    return lsp.Command(title=title, command=VERDICTS_COMMAND, arguments=[uri, line])
