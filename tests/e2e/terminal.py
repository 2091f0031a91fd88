"""A terminal for an editor: tmux of its own, real keystrokes in, the screen out as text and as a picture."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

COLUMNS, ROWS = 108, 24
TIMEOUT_S = 120.0
_HUES = [(255, 107, 104), (118, 210, 117), (235, 203, 100), (106, 159, 255), (198, 120, 221), (86, 194, 214)]
_DARK = TerminalTheme(
    background=(22, 24, 29),
    foreground=(216, 219, 226),
    normal=[(59, 66, 82), *_HUES, (216, 219, 226)],
    bright=[(106, 114, 130), *_HUES, (255, 255, 255)],
)


class Terminal:
    """One program on one screen. Its tmux server is private: closing it ends nobody else's."""

    def __init__(self, command: Sequence[str | Path], environment: Mapping[str, str], folder: Path) -> None:
        self._socket = f"cuda-lsp-{uuid.uuid4().hex[:12]}"
        line = shlex.join(["env", *(f"{k}={v}" for k, v in environment.items()), *map(str, command)])
        self._tmux("new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "-c", str(folder), line)

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-L", self._socket, "-f", os.devnull, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S).stdout

    def press(self, *keys: str) -> None:
        """Keys by tmux's names: ``Enter``, ``Escape``, ``C-d``."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Text as typed, one key after the other."""
        escaped = text[:-1] + r"\;" if text.endswith(";") else text  # a last ";" would end tmux's command
        self._tmux("send-keys", "-l", "--", escaped)

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def wait_for(self, pattern: str) -> str:
        """The screen, once it shows ``pattern``; fails with the screen as it was."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            screen = self.screen()
            if re.search(pattern, screen, re.MULTILINE):
                return screen
            time.sleep(0.03)
        raise AssertionError(f"no {pattern!r} on the screen within {TIMEOUT_S:.0f} s:\n{self.screen()}")

    def photograph(self, path: Path) -> None:
        """The screen with its colours, as SVG, once it no longer changes."""
        seen = ""
        while seen != (seen := self._tmux("capture-pane", "-peN")):
            time.sleep(0.1)
        console = Console(width=COLUMNS, record=True, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
        console.print(Text.from_ansi(seen), no_wrap=True)
        picture = console.export_svg(title=path.stem, theme=_DARK)
        # rich names a font on a server: the viewer's own monospace will do
        path.write_text(re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL), encoding="utf-8")

    def close(self) -> None:
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], capture_output=True, timeout=TIMEOUT_S)
