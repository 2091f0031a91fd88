"""The small commands: ``serve``, ``explain``, ``doctor``, ``clean``, ``schema``, ``completion``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cuda_lsp.cli.common import BROKEN, Failure
from cuda_lsp.model import CODES, Code


@click.command()
@click.option("--log-file", type=click.Path(path_type=Path), help="Write the log there instead of to stderr.")
@click.option("--log-level", type=click.Choice(["error", "warning", "info", "debug"]), default="warning")
@click.option("--stdio", is_flag=True, help="Accepted for editors that pass it; stdio is the transport.")
def serve(log_file: Path | None, log_level: str, stdio: bool) -> None:
    """Speak the Language Server Protocol over stdin and stdout."""
    del stdio
    from cuda_lsp.server import serve as run_server

    sys.exit(run_server(log_file=log_file, log_level=log_level))


@click.command()
@click.argument("code", required=False)
@click.option(
    "--picture",
    "place",
    metavar="FILE:LINE",
    help="Print the race on a line among its barriers as SVG, else the banks of the access there; "
    "now and after a verified repair.",
)
@click.option(
    "--of", type=click.Choice(["intervals", "banks"]), help="Which of the two, where there are both."
)
def explain(code: str | None, place: str | None, of: str | None) -> None:
    """Say what a diagnostic code means, why it matters and how to mend it; or draw what is at a place."""
    if place is not None:
        from cuda_lsp.cli.picture import picture

        click.echo(picture(place, of), nl=False)
        return
    if code is None:
        for info in CODES.values():
            click.echo(f"{info.code.value:24} {info.title}")
        return
    try:
        known = Code(code)
    except ValueError:
        raise Failure(f"no code {code!r}; `cuda-lsp explain` lists them") from None
    from rich.console import Console
    from rich.markdown import Markdown

    from cuda_lsp.report.explain import page

    Console().print(Markdown(page(known)))


@click.command()
def clean() -> None:
    """Empty the cache: results of check, precompiled headers, what dynamic checks have compiled."""
    from cuda_lsp.cache_folder import cache_folder, clean

    try:
        freed = clean()
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror}") from None
    click.echo(f"{cache_folder()}: {freed / 1e6:.1f} MB removed")


@click.command()
def doctor() -> None:
    """Say what works here and what is missing."""
    from rich.console import Console
    from rich.markup import escape

    from cuda_lsp.doctor import examine

    healthy = True
    console = Console(highlight=False)
    for result in examine():
        mark, style = ("✓", "green") if result.works else ("✗", "red") if result.required else ("–", "yellow")
        console.print(f"[{style}]{mark}[/] [bold]{result.name}[/]: {escape(result.message)}", soft_wrap=True)
        healthy = healthy and (result.works or not result.required)
    sys.exit(0 if healthy else BROKEN)


@click.command()
@click.option("--settings", is_flag=True, help="That of cuda-lsp.toml, by which editors complete it.")
def schema(settings: bool) -> None:
    """Print the JSON schema of reports (check --format json)."""
    import json

    from cuda_lsp.report.schema import report_schema
    from cuda_lsp.settings_file import file_schema

    click.echo(json.dumps(file_schema() if settings else report_schema(), indent=1))


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes a shell complete commands and options.

    bash: eval "$(cuda-lsp completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc; fish: cuda-lsp
    completion fish > ~/.config/fish/completions/cuda-lsp.fish
    """
    from click.shell_completion import get_completion_class

    from cuda_lsp.cli import main

    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(main, {}, "cuda-lsp", "_CUDA_LSP_COMPLETE").source())
