"""``cuda-lsp neovim``: the plugin put where Neovim loads it from by itself, with this very server."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import click

from cuda_lsp.cli.common import Failure

_START = """\
-- Made by `cuda-lsp neovim`. `vim.g.cuda_lsp_manual = true` in init.lua leaves the rest to your own setup().
if not vim.g.cuda_lsp_manual then
  require('cuda_lsp').setup({{ cmd = vim.fn.json_decode({command}) }})
end
"""


@click.command()
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder that packages are kept in; by default Neovim's own (~/.local/share/nvim/site).",
)
@click.option("--remove", is_flag=True, help="Take it away again.")
def neovim(folder: Path | None, remove: bool) -> None:
    """Install the plugin for Neovim: it starts this server for CUDA files. Run it again after an update."""
    target = (folder or _site()) / "pack/cuda-lsp/start/cuda-lsp"
    try:
        shutil.rmtree(target, ignore_errors=True)
        if not remove:
            shutil.copytree(_plugin(), target)
            (target / "plugin").mkdir()
            command = json.dumps(json.dumps([sys.executable, "-m", "cuda_lsp", "serve"]))
            (target / "plugin/cuda_lsp.lua").write_text(_START.format(command=command), encoding="utf-8")
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror}") from None
    click.echo(
        f"{target}: {'removed' if remove else 'installed; :checkhealth cuda_lsp says whether it works'}"
    )


def _site() -> Path:
    """What is on Neovim's ``packpath``."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "nvim-data/site"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "nvim/site"


def _plugin() -> Path:
    """In an installed package beside this file; in a checkout ``editors/nvim``."""
    here = Path(__file__).resolve().parent
    for folder in (here / "nvim", here.parents[1] / "editors/nvim"):
        if folder.is_dir():
            return folder
    raise Failure("the plugin is missing: reinstall cuda-lsp")
