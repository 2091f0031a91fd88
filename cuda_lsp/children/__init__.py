"""Python processes of our own: started so that nothing of the folder that somebody opened is imported.

``python -c`` and ``python -m`` put the working folder first on the module path: a ``pickle.py`` in the
project would run as soon as an editor opens a file of it. ``child.py`` is run by its path instead, in a
folder that is nobody's project, with the module path of this process. Nothing is set in the environment,
which the builds and programs of users inherit.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

NEUTRAL_FOLDER = os.sep
"""Where such a process starts."""

_SCRIPT = Path(__file__).with_name("child.py")


def working_folder() -> str:
    """Where this process works, for a child that is told relative paths; neutral when that folder is gone."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return NEUTRAL_FOLDER


def python_command(module: str, *arguments: str) -> list[str]:
    """The command that runs ``main(*arguments)`` of a module; to be started in ``NEUTRAL_FOLDER``."""
    searched = os.pathsep.join(folder for folder in sys.path if folder)
    return [sys.executable, str(_SCRIPT), searched, module, *arguments]
