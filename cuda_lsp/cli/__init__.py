"""The command line: ``cuda-lsp serve · check · run · explain · doctor · clean · …``.

Only argument handling lives here; each command is imported when it is asked for, and heavy rooms inside the
commands, so that ``cuda-lsp --version`` answers at once.
"""

from __future__ import annotations

from importlib import import_module

import click

from cuda_lsp import __version__
from cuda_lsp.imports import importing

_COMMANDS = {
    "check": "Find races and bank conflicts in files, folders, or what changed.",
    "clean": "Empty the cache.",
    "completion": "Print what makes a shell complete commands and options.",
    "doctor": "Say what works here and what is missing.",
    "explain": "Say what a diagnostic code means and how to mend it.",
    "neovim": "Install the plugin for Neovim.",
    "run": "Run kernels or a program instrumented, on the GPU or emulated.",
    "schema": "Print the JSON schema of reports.",
    "serve": "Speak the Language Server Protocol over stdin and stdout.",
}
_ROOMS = {"check": "check", "neovim": "neovim", "run": "run"}  # the others share one


class _Group(click.Group):
    """Commands that are imported when they are used; their help lines are known before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        with importing():
            return getattr(import_module(f"cuda_lsp.cli.{_ROOMS.get(cmd_name, 'others')}"), cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cuda-lsp")
def main() -> None:
    """Find data races and bank conflicts in CUDA kernels."""
