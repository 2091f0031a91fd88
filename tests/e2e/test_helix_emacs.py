"""Helix and Emacs with the configuration that their pages in docs/editors give, and the real server."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from conftest import EDITORS, FIGURE1, READ, ROOT, SERVER, STORE_LINE, need
from terminal import Terminal

HELIX = EDITORS / "debian13-hx"

# Says where the first finding is, then ends; a deadline turns silence into a failure.
EMACS_REPORT = """
(setq eglot-sync-connect t eglot-connect-timeout 60 make-backup-files nil auto-save-default nil)
(find-file (getenv "FIGURE1"))
(call-interactively #'eglot)
(unless flymake-mode (flymake-mode 1))
(with-timeout (60 (princ "no finding") (kill-emacs 1))
  (while (null (flymake-diagnostics)) (flymake-start) (accept-process-output nil 0.05)))
(let ((found (car (flymake-diagnostics))))
  (princ (json-encode `((line . ,(line-number-at-pos (flymake-diagnostic-beg found)))
    (text . ,(buffer-substring-no-properties (flymake-diagnostic-beg found) (flymake-diagnostic-end found)))
    (message . ,(flymake-diagnostic-text found))))))
(eglot-shutdown (eglot-current-server))
(kill-emacs 0)
"""


def snippet(page: str, language: str) -> str:
    """The first block of code in this language on a page of docs/editors."""
    text = (ROOT / "docs/editors" / page).read_text(encoding="utf-8")
    found = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found, f"{page} has no {language} block"
    return found[1]


def test_helix_shows_the_race_with_the_documented_configuration(tmp_path: Path, artifacts: Path) -> None:
    need("tmux", "tmux")
    program = need(HELIX / "usr/bin/hx", "Helix")
    config = tmp_path / "helix"
    config.mkdir()
    documented = snippet("helix.md", "toml")
    command, *arguments = SERVER
    configured = documented.replace(
        '"cuda-lsp"\nargs = ["serve"]', f'"{command}"\nargs = {json.dumps(arguments)}'
    )
    assert configured != documented
    (config / "languages.toml").write_text(configured)
    file = tmp_path / "figure1.cu"
    file.write_text(FIGURE1)
    environment = {
        "HELIX_RUNTIME": str(HELIX / "usr/lib/helix/runtime"),
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path),
        "TERM": "screen-256color",
        "COLORTERM": "truecolor",
        "LC_ALL": "C.UTF-8",
    }
    terminal = Terminal([program, file], environment, tmp_path)
    try:
        terminal.wait_for(r"●")  # the sign in the gutter
        terminal.type("]d")
        terminal.wait_for(r"(?i)race")
        terminal.type(" k")
        terminal.wait_for(r"block \(64, 1, 1\)")  # the witness: the file says "thread", too
        terminal.photograph(artifacts / "helix-1-race.svg")
    finally:
        terminal.close()


def test_emacs_reports_the_race_with_the_documented_configuration(tmp_path: Path) -> None:
    program = need("emacs", "Emacs")
    file = tmp_path / "figure1.cu"
    file.write_text(FIGURE1)
    command = " ".join(json.dumps(word) for word in SERVER)
    documented = snippet("emacs.md", "elisp")
    configured = documented.replace('"cuda-lsp" "serve"', command)
    assert configured != documented
    script = tmp_path / "report.el"
    script.write_text("(require 'package)(package-initialize)(require 'json)\n" + configured + EMACS_REPORT)
    environment = {"FIGURE1": str(file), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    run = subprocess.run(
        [program, "--batch", "-l", script], capture_output=True, text=True, timeout=180, env=environment
    )
    assert run.returncode == 0, run.stdout + run.stderr
    found = json.loads(run.stdout[run.stdout.index("{") :])
    assert (found["line"], found["text"]) == (STORE_LINE + 1, READ)
    assert "race" in found["message"]
