"""Helix and Emacs with the configuration that their pages in docs/editors give, and the real server."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import EDITORS, FIGURE1, READ, ROOT, SERVER, STORE_LINE, need
from terminal import TIMEOUT_S, Terminal

HELIX = EDITORS / "debian13-hx"

# Opens the file and waits for a finding; a deadline turns silence into a failure.
EMACS_OPENS = """
(setq eglot-sync-connect t eglot-connect-timeout 60 make-backup-files nil auto-save-default nil)
(setq eglot-confirm-server-initiated-edits nil)
(defun until (condition what)
  (with-timeout (60 (princ (concat "waited for " what)) (kill-emacs 1))
    (while (not (funcall condition))
      (when eglot--recent-changes (eglot--signal-textDocument/didChange)) ; nobody is idle in a batch
      (flymake-start)
      (accept-process-output nil 0.05))))
(defun tell (facts)
  (princ (json-encode facts))
  (eglot-shutdown (eglot-current-server))
  (kill-emacs 0))
(defun choose (title)
  (let (found)
    (until (lambda ()
             (setq found (seq-find (lambda (action) (string-prefix-p title (plist-get action :title)))
                                   (eglot-code-actions (point) (point))))) title)
    (eglot--read-execute-code-action (list found) (eglot-current-server) (plist-get found :kind))))
(find-file (getenv "FIGURE1"))
(call-interactively #'eglot)
(unless flymake-mode (flymake-mode 1))
(until #'flymake-diagnostics "a finding")
(defvar found (car (flymake-diagnostics)))
(goto-char (flymake-diagnostic-beg found))
"""

EMACS_REPORT = """
(tell `((line . ,(line-number-at-pos (flymake-diagnostic-beg found)))
  (text . ,(buffer-substring-no-properties (flymake-diagnostic-beg found) (flymake-diagnostic-end found)))
  (message . ,(flymake-diagnostic-text found))))
"""

EMACS_HOVERS = """
(defvar said nil)
(eglot-hover-eldoc-function (lambda (text &rest _) (setq said text)))
(until (lambda () said) "a hover")
(tell `((hover . ,(substring-no-properties said))))
"""

EMACS_CHOOSES = """
(choose (getenv "ACTION"))
(until (lambda () (not (flymake-diagnostics))) "no finding")
(tell `((text . ,(buffer-substring-no-properties (point-min) (point-max)))))
"""

EMACS_TYPES = """
(goto-char (point-min)) (forward-line (string-to-number (getenv "BEFORE")))
(insert "    __syncthreads();\n")
(until (lambda () (not (flymake-diagnostics))) "no finding")
(forward-line -1) (kill-whole-line)
(until #'flymake-diagnostics "the finding again")
(setq found (car (flymake-diagnostics)))
(tell `((line . ,(line-number-at-pos (flymake-diagnostic-beg found)))))
"""


def snippet(page: str, language: str) -> str:
    """The first block of code in this language on a page of docs/editors."""
    text = (ROOT / "docs/editors" / page).read_text(encoding="utf-8")
    found = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found, f"{page} has no {language} block"
    return found[1]


@pytest.fixture
def helix(tmp_path: Path) -> Iterator[tuple[Terminal, Path]]:
    """Helix with the documented configuration, and the file that it has open."""
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
    yield terminal, file
    terminal.close()


def written(terminal: Terminal, file: Path, text: str) -> str:
    """The file once it holds this text: what is changed is written as a person does it."""
    deadline = time.monotonic() + TIMEOUT_S
    while text not in file.read_text():
        assert time.monotonic() < deadline, terminal.screen()
        terminal.press("Escape")
        terminal.type(":w")
        terminal.press("Enter")
        time.sleep(0.5)
    return file.read_text()


def test_helix_shows_the_race_with_the_documented_configuration(
    helix: tuple[Terminal, Path], artifacts: Path
) -> None:
    terminal, _ = helix
    terminal.wait_for(r"●")  # the sign in the gutter
    terminal.type("]d")
    terminal.wait_for(r"(?i)race")
    terminal.type(" k")
    terminal.wait_for(r"block \(64, 1, 1\)")  # the witness: the file says "thread", too
    terminal.photograph(artifacts / "helix-1-race.svg")


def test_helix_mends_the_race_by_the_repair_of_its_menu(helix: tuple[Terminal, Path]) -> None:
    terminal, file = helix
    terminal.wait_for(r"●")
    terminal.type("]d")
    terminal.type(" a")
    terminal.wait_for(r"Insert __syncthreads\(\);")  # the preferred one is the first
    terminal.press("Enter")
    assert READ in written(terminal, file, "__syncthreads();")
    terminal.wait_for(r"(?s)\A(?!.*●)")  # the sign has gone


def test_helix_takes_the_finding_away_while_the_barrier_is_typed(helix: tuple[Terminal, Path]) -> None:
    terminal, _ = helix
    terminal.wait_for(r"●")
    terminal.type(f"{STORE_LINE}ggo__syncthreads();")
    terminal.press("Escape")
    terminal.wait_for(r"(?s)\A(?!.*●)")
    terminal.type("xd")
    terminal.wait_for(r"●")


def emacs(folder: Path, story: str, **environment: str) -> dict[str, Any]:
    """What a story tells of Figure 1 in Emacs with the documented configuration."""
    program = need("emacs", "Emacs")
    file = folder / "figure1.cu"
    file.write_text(FIGURE1)
    command = " ".join(json.dumps(word) for word in SERVER)
    documented = snippet("emacs.md", "elisp")
    configured = documented.replace('"cuda-lsp" "serve"', command)
    assert configured != documented
    script = folder / "story.el"
    script.write_text(
        f"(require 'package)(package-initialize)(require 'json)\n{configured}{EMACS_OPENS}{story}"
    )
    known = {"FIGURE1": str(file), "HOME": str(folder), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    run = subprocess.run(
        [program, "--batch", "-l", script],
        capture_output=True,
        text=True,
        timeout=180,
        env=known | environment,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(run.stdout[run.stdout.index("{") :])


def test_emacs_reports_the_race_with_the_documented_configuration(tmp_path: Path) -> None:
    found = emacs(tmp_path, EMACS_REPORT)
    assert (found["line"], found["text"]) == (STORE_LINE + 1, READ)
    assert "race" in found["message"]


def test_emacs_shows_the_witness_of_the_access_at_point(tmp_path: Path) -> None:
    said = emacs(tmp_path, EMACS_HOVERS)["hover"]
    assert "thread" in said and "s[" in said


def test_emacs_mends_the_race_by_the_repair_that_is_chosen(tmp_path: Path) -> None:
    text = emacs(tmp_path, EMACS_CHOOSES, ACTION="Insert __syncthreads();")["text"]
    lines = [line.strip() for line in text.splitlines()]
    assert lines.index("__syncthreads();") == lines.index("s[id] = id;") + 1


def test_emacs_silences_a_finding_by_its_action(tmp_path: Path) -> None:
    text = emacs(tmp_path, EMACS_CHOOSES, ACTION="Ignore shared-race here")["text"]
    assert "// cuda-lsp: ignore[shared-race] reason" in text


def test_emacs_takes_the_finding_away_while_the_barrier_is_there(tmp_path: Path) -> None:
    assert emacs(tmp_path, EMACS_TYPES, BEFORE=str(STORE_LINE))["line"] == STORE_LINE + 1
