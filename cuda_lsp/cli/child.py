"""The command line in a process that the server starts (``children.python_command``)."""

from __future__ import annotations

import cuda_lsp.cli as command_line


def main(*arguments: str) -> None:
    """Run a command with its options; does not return."""
    command_line.main(list(arguments), prog_name="cuda-lsp")
