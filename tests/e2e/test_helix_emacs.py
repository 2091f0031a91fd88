"""Helix and Emacs with the configuration that their pages in docs/editors give, and the real server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import (
    APP,
    COLUMNS,
    EDITORS,
    FIGURE1,
    HEADER,
    MAIN,
    READ,
    ROOT,
    SERVER,
    SPIN,
    STORE_LINE,
    need,
)
from terminal import TIMEOUT_S, Terminal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

HELIX = EDITORS / "debian13-hx"
EMACS30 = EDITORS / "debian13-emacs-nox/usr"

# Opens the file and waits for a finding; a deadline turns silence into a failure.
EMACS_OPENS = """
(setq eglot-sync-connect t eglot-connect-timeout 60 make-backup-files nil auto-save-default nil)
(setq eglot-confirm-server-initiated-edits nil eglot-confirm-server-edits nil)
(defun until (condition what)
  (with-timeout (60 (princ (concat "waited for " what)) (kill-emacs 1))
    (while (not (funcall condition))
      (when eglot--recent-changes (eglot--signal-textDocument/didChange)) ; nobody is idle in a batch
      (flymake-start)
      (accept-process-output nil 0.05))))
(defun tell (facts)
  (princ (json-encode facts))
  (eglot-shutdown (eglot-current-server) nil 30)
  (kill-emacs 0))
(defun choose (title)
  (let (found)
    (until (lambda ()
             (setq found (seq-find (lambda (action) (string-prefix-p title (plist-get action :title)))
                                   (eglot-code-actions (point) (point))))) title)
    (eglot--read-execute-code-action (list found) (eglot-current-server) (plist-get found :kind))))
(defvar told "" "All that was said.")
(defun keep (form &rest words)
  (when form (setq told (concat told (apply #'format form words) "\n"))))
(advice-add 'eglot--message :before #'keep)
(defun await (pattern) (until (lambda () (string-match pattern told)) pattern))
(defun await-finding (pattern)
  (until (lambda () (seq-some (lambda (d) (string-match-p pattern (flymake-diagnostic-text d)))
                              (flymake-diagnostics))) pattern))
(defun text () (buffer-substring-no-properties (point-min) (point-max)))
(find-file (getenv "FILE"))
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

EMACS_RUNS = """
(choose "Run dynamic check")
(await-finding "seen on")
(await "neighbour: 1 confirmed on")
(setq found (car (flymake-diagnostics)))
(tell `((line . ,(line-number-at-pos (flymake-diagnostic-beg found)))))
"""

EMACS_ASKS = """
(choose (getenv "ACTION"))
(await (getenv "PATTERN"))
(tell `((told . ,(match-string 0 told))))
"""

EMACS_CANCELS = """
(defvar last-progress nil)
(cl-defmethod eglot-handle-notification
  :before (_server (_method (eql $/progress)) &key value &allow-other-keys)
  (setq last-progress value))
(find-file (getenv "SLOW"))
(choose "Run dynamic check")
(until (lambda () (equal (plist-get last-progress :message) "running")) "the kernel to run")
(cuda-lsp-cancel)
(until (lambda () (equal (plist-get last-progress :kind) "end")) "the end of the check")
(tell `((message . ,(plist-get last-progress :message))))
"""

EMACS_SETS_THE_LAUNCH = """
(goto-char (point-min))
(choose "Set launch configuration of columns: ")
(until (lambda () (string-match-p "launch block" (text))) "the directive")
(tell `((text . ,(text))))
"""

EMACS_RUNS_THE_PROGRAM = """
(goto-char (point-min)) (search-forward "int main")
(if (getenv "ARGUMENTS")
    (cuda-lsp-run-program (getenv "ARGUMENTS"))
  (choose "Run the program under check"))
(await-finding "seen on")
(until (lambda () (get-buffer "*cuda-lsp program*")) "what it prints")
(tell `((printed . ,(with-current-buffer "*cuda-lsp program*" (text)))))
"""

EMACS_DRAWS = """
(choose (getenv "ACTION"))
(defun shown () (seq-find (lambda (file) (string-suffix-p ".svg" file))
                          (delq nil (mapcar #'buffer-file-name (buffer-list)))))
(defun named () (and (string-match "The picture: \\\\(.*\\\\.svg\\\\)" told) (match-string 1 told)))
(until (lambda () (or (shown) (named))) "the picture")
(tell `((shown . ,(shown)) (named . ,(named))))
"""

EMACS_HINTS = """
(unless eglot-inlay-hints-mode (eglot-inlay-hints-mode 1))
(defun hints ()
  (delq nil (mapcar (lambda (o) (and (overlay-get o 'eglot--inlay-hint)
                                     (concat (overlay-get o 'before-string) (overlay-get o 'after-string))))
                    (overlays-in (point-min) (point-max)))))
(until (lambda () (eglot--update-hints-1 (point-min) (point-max)) (hints)) "a hint")
(tell `((hints . ,(apply #'concat (hints)))))
"""

EMACS_OBEYS_THE_FILE = """
(write-region "severity = { shared-race = \\"off\\" }\\n" nil (expand-file-name "cuda-lsp.toml"))
(set-buffer-modified-p t) (save-buffer)
(until (lambda () (not (flymake-diagnostics))) "no finding")
(tell `((gone . t)))
"""

EMACS_MODE = """
(tell `((mode . ,(symbol-name major-mode)) (line . ,(line-number-at-pos (flymake-diagnostic-beg found)))))
"""


def snippet(page: str, language: str, mark: str = "") -> str:
    """The first block of code in this language, with this mark in it, on a page of docs/editors."""
    text = (ROOT / "docs/editors" / page).read_text(encoding="utf-8")
    found = [block for block in re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL) if mark in block]
    assert found, f"{page} has no {language} block with {mark}"
    return found[0]


@cache
def _cache_home() -> str:
    """One for all, whose path is short: the status line is."""
    return tempfile.mkdtemp()


class Helix:
    """Helix with the documented configuration, and a file open in it."""

    def __init__(self, folder: Path, name: str, text: str, *, local: str = "") -> None:
        """``local``: the project's own configuration."""
        need("tmux", "tmux")
        program = need(HELIX / "usr/bin/hx", "Helix")
        config = folder / "helix"
        config.mkdir()
        documented = snippet("helix.md", "toml")
        command, *arguments = SERVER
        configured = documented.replace(
            '"cuda-lsp"\nargs = ["serve"]', f'"{command}"\nargs = {json.dumps(arguments)}'
        )
        assert configured != documented
        (config / "languages.toml").write_text(configured)
        (config / "config.toml").write_text(snippet("helix.md", "toml", "[editor]"))
        project = folder / "project"
        (project / ".helix").mkdir(parents=True)
        (project / ".helix/languages.toml").write_text(local)
        self.file = project / name
        self.file.write_text(text)
        environment = {
            "HELIX_RUNTIME": str(HELIX / "usr/lib/helix/runtime"),
            "XDG_CONFIG_HOME": str(folder),
            "XDG_CACHE_HOME": _cache_home(),
            "TERM": "screen-256color",
            "COLORTERM": "truecolor",
            "LC_ALL": "C.UTF-8",
        }
        self.terminal = Terminal([program, self.file], environment, project)

    def choose(self, line: int, title: str) -> None:
        """Pick a code action of a line from the menu, as a person does: again while there are none."""
        for _ in range(40):
            self.terminal.press("Escape")
            self.terminal.type(f"{line}gg a")
            screen = self.terminal.wait_for(rf"{_ITEM}|[Nn]o code actions")
            while screen != (screen := self.terminal.screen()):
                time.sleep(0.3)
            if re.search(title, screen):
                break
            time.sleep(0.5)
        rows = screen.splitlines()
        (row,) = [number for number, text in enumerate(rows) if re.search(title, text)]
        column = re.search(title, rows[row]).start()
        last = row  # what stands below is known; from the first item the way up leads to the last
        while re.match(_ITEM, rows[last + 1][column:]):
            last += 1
        for key in ["Up"] * (last - row + 1) + ["Enter"]:
            self.terminal.press(key)
            time.sleep(0.05)


_ITEM = r"(Ignore|Set launch|Show|Run) "


@pytest.fixture
def helix(tmp_path: Path) -> Iterator[tuple[Terminal, Path]]:
    editor = Helix(tmp_path, "figure1.cu", FIGURE1)
    yield editor.terminal, editor.file
    editor.terminal.close()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Helix]]:
    """Helix with another file; ``local``: the project's own configuration."""
    editors: list[Helix] = []

    def start(name: str, text: str, local: str = "") -> Helix:
        editors.append(Helix(tmp_path, name, text, local=local))
        return editors[-1]

    yield start
    for editor in editors:
        editor.terminal.close()


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


def test_helix_silences_a_finding_by_its_action(opened: Callable[..., Helix]) -> None:
    editor = opened("figure1.cu", FIGURE1)
    editor.terminal.wait_for(r"●")
    editor.choose(STORE_LINE + 1, "Ignore shared-race here")
    assert READ in written(editor.terminal, editor.file, "// cuda-lsp: ignore[shared-race] reason")
    editor.terminal.wait_for(r"(?s)\A(?!.*●)")


def test_helix_tells_conflicts_beside_their_accesses(opened: Callable[..., Helix], artifacts: Path) -> None:
    editor = opened("columns.cu", COLUMNS)
    editor.terminal.wait_for(r"●")
    editor.terminal.type("j")  # Helix asks when a key has been pressed
    editor.terminal.wait_for(r"tile\[threadIdx\.x\]\[threadIdx\.y\] 32-way")
    editor.terminal.photograph(artifacts / "helix-2-hints.svg")


def test_helix_writes_the_launch_that_is_offered(opened: Callable[..., Helix]) -> None:
    editor = opened("columns.cu", COLUMNS)
    editor.terminal.wait_for(r"●")
    editor.choose(1, "Set launch configuration of columns: ")
    text = written(editor.terminal, editor.file, "// cuda-lsp: launch block=(")
    assert text.splitlines()[1:] == COLUMNS.splitlines()


def trusting() -> str:
    return snippet("helix.md", "toml", "trusted = true")


@needs_nvcc
def test_helix_confirms_the_race_by_a_run(opened: Callable[..., Helix], artifacts: Path) -> None:
    editor = opened("figure1.cu", FIGURE1, trusting())
    editor.terminal.wait_for(r"●")
    editor.choose(3, "Run dynamic check")
    editor.terminal.wait_for(r"neighbour: 1 confirmed on")
    editor.terminal.type(f"{STORE_LINE}gg]d k")
    editor.terminal.wait_for("confirmed")
    editor.terminal.photograph(artifacts / "helix-3-confirmed.svg")


def test_helix_runs_nothing_that_nobody_trusts(opened: Callable[..., Helix]) -> None:
    editor = opened("figure1.cu", FIGURE1)
    editor.terminal.wait_for(r"●")
    editor.choose(3, "Run dynamic check")
    editor.terminal.wait_for("needs a trusted workspace")


@needs_nvcc
def test_helix_runs_the_program_by_an_action(opened: Callable[..., Helix]) -> None:
    editor = opened("app.cu", APP, trusting())
    editor.terminal.wait_for(r"●")
    editor.choose(1 + APP.splitlines().index(MAIN), "Run the program under check")
    editor.terminal.wait_for(r"app.cu: .*exit status 0|app.cu: 1 launch")


@pytest.mark.parametrize(
    ("name", "text", "line", "title"),
    [
        ("columns.cu", COLUMNS, 5, "Show the banks"),
        ("figure1.cu", FIGURE1, STORE_LINE + 1, "Show the barrier intervals"),
    ],
)
def test_helix_is_told_the_file_of_a_picture(
    opened: Callable[..., Helix], name: str, text: str, line: int, title: str
) -> None:
    editor = opened(name, text)
    editor.terminal.wait_for(r"●")
    editor.choose(line, title)
    told = editor.terminal.wait_for(r"^The picture: /.*\.svg")
    assert "<svg" in Path(re.findall(r"^The picture: (/.*\.svg)", told, re.M)[0]).read_text()


def test_helix_heeds_the_settings_file_at_once(opened: Callable[..., Helix]) -> None:
    editor = opened("figure1.cu", FIGURE1)
    editor.terminal.wait_for(r"●")
    (editor.file.parent / "cuda-lsp.toml").write_text('severity = { shared-race = "off" }\n')
    editor.terminal.type(":w!")
    editor.terminal.press("Enter")
    editor.terminal.wait_for(r"(?s)\A(?!.*●)")


def test_helix_takes_headers_for_cuda_where_the_project_says_so(opened: Callable[..., Helix]) -> None:
    local = snippet("helix.md", "toml", '"cuh", "h"]')
    editor = opened("kernels.h", HEADER.replace("template <typename T>\n", "").replace("T", "int"), local)
    editor.terminal.wait_for(r"●")


Story = Callable[..., dict[str, Any]]


@pytest.fixture(params=["28", "30"])
def emacs(request: pytest.FixtureRequest, tmp_path: Path) -> Story:
    """What a story tells of a file in Emacs with the documented configuration."""
    there: dict[str, str] = {}
    program = [need("emacs", "Emacs")]
    if request.param == "30":
        program = [need(EMACS30 / "bin/emacs-nox", "Emacs 30")]
        (kept,) = EMACS30.glob("libexec/emacs/*/*/*.pdmp")
        program += ["--dump-file", str(kept)]
        (shared,) = EMACS30.glob("share/emacs/3*")
        there = {
            "EMACSLOADPATH": f"{shared}/lisp",
            "EMACSDATA": f"{shared}/etc",
            "EMACSPATH": str(kept.parent),
        }

    def tells(
        story: str,
        name: str = "figure1.cu",
        text: str = FIGURE1,
        *,
        trusted: bool = False,
        **environment: str,
    ) -> dict[str, Any]:
        file = tmp_path / name
        file.write_text(text)
        command = " ".join(json.dumps(word) for word in SERVER)
        blocks = [snippet("emacs.md", "elisp", mark) for mark in ("(require", "programOutput", "magic-mode")]
        if trusted:
            blocks.insert(1, snippet("emacs.md", "elisp", ":trusted"))
        documented = "".join(blocks)
        configured = documented.replace('"cuda-lsp" "serve"', command)
        assert configured.count(command) == 1 + trusted
        script = tmp_path / "story.el"
        script.write_text(
            f"(require 'package)(package-initialize)(require 'json)\n{configured}{EMACS_OPENS}{story}"
        )
        known = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "FILE": str(file)}
        run = subprocess.run(
            [*program, "--batch", "-l", script],
            capture_output=True,
            text=True,
            timeout=180,
            env=known | there | environment,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return json.loads(run.stdout[run.stdout.index("{") :])

    return tells


def test_emacs_reports_the_race_with_the_documented_configuration(emacs: Story) -> None:
    found = emacs(EMACS_REPORT)
    assert (found["line"], found["text"]) == (STORE_LINE + 1, READ)
    assert "race" in found["message"]


def test_emacs_shows_the_witness_of_the_access_at_point(emacs: Story) -> None:
    said = emacs(EMACS_HOVERS)["hover"]
    assert "thread" in said and "s[" in said


def test_emacs_mends_the_race_by_the_repair_that_is_chosen(emacs: Story) -> None:
    text = emacs(EMACS_CHOOSES, ACTION="Insert __syncthreads();")["text"]
    lines = [line.strip() for line in text.splitlines()]
    assert lines.index("__syncthreads();") == lines.index("s[id] = id;") + 1


def test_emacs_silences_a_finding_by_its_action(emacs: Story) -> None:
    text = emacs(EMACS_CHOOSES, ACTION="Ignore shared-race here")["text"]
    assert "// cuda-lsp: ignore[shared-race] reason" in text


def test_emacs_takes_the_finding_away_while_the_barrier_is_there(emacs: Story) -> None:
    assert emacs(EMACS_TYPES, BEFORE=str(STORE_LINE))["line"] == STORE_LINE + 1


@needs_nvcc
def test_emacs_confirms_the_race_by_a_run(emacs: Story) -> None:
    assert emacs(EMACS_RUNS, trusted=True)["line"] == STORE_LINE + 1


def test_emacs_runs_nothing_that_nobody_trusts(emacs: Story) -> None:
    said = emacs(EMACS_ASKS, ACTION="Run dynamic check", PATTERN="needs a trusted workspace")
    assert said["told"]


@needs_nvcc
def test_emacs_cancels_a_check(emacs: Story, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params["emacs"] == "28":
        pytest.skip("eglot shows progress from 1.10 on")
    (tmp_path / "slow.cu").write_text(SPIN)
    assert emacs(EMACS_CANCELS, trusted=True, SLOW=str(tmp_path / "slow.cu"))["message"] == "cancelled"


def test_emacs_writes_the_launch_that_is_offered(emacs: Story) -> None:
    first, *others = emacs(EMACS_SETS_THE_LAUNCH, "columns.cu", COLUMNS)["text"].splitlines()
    assert re.fullmatch(r"// cuda-lsp: launch block=\(\d+,\d+,\d+\)", first)
    assert others == COLUMNS.splitlines()


@needs_nvcc
@pytest.mark.parametrize("given", [{}, {"ARGUMENTS": '"two words" 7'}], ids=["action", "command"])
def test_emacs_runs_the_program_and_shows_what_it_prints(emacs: Story, given: dict[str, str]) -> None:
    printed = emacs(EMACS_RUNS_THE_PROGRAM, "app.cu", APP, trusted=True, **given)["printed"]
    arguments = ["argument 1: two words", "argument 2: 7"] if given else []
    assert printed.splitlines() == ["== app.cu", "it runs", *arguments]


@pytest.mark.parametrize(
    ("name", "text", "action"),
    [("columns.cu", COLUMNS, "Show the banks"), ("figure1.cu", FIGURE1, "Show the barrier intervals")],
)
def test_emacs_shows_or_names_the_file_of_a_picture(
    emacs: Story, request: pytest.FixtureRequest, name: str, text: str, action: str
) -> None:
    picture = emacs(EMACS_DRAWS, name, text, ACTION=action)
    how = "named" if request.node.callspec.params["emacs"] == "28" else "shown"
    assert "<svg" in Path(picture[how]).read_text()


def test_emacs_tells_conflicts_beside_their_accesses(emacs: Story, request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params["emacs"] == "28":
        pytest.skip("eglot has inlay hints from 1.13 on")
    assert emacs(EMACS_HINTS, "columns.cu", COLUMNS)["hints"].strip() == "32-way"


def test_emacs_heeds_the_settings_file_at_once(emacs: Story) -> None:
    assert emacs(EMACS_OBEYS_THE_FILE)["gone"]


def test_emacs_takes_a_header_that_holds_kernels_for_cuda(emacs: Story) -> None:
    long = "// line\n" * 900 + HEADER.replace("template <typename T>\n", "").replace("T", "int")
    assert emacs(EMACS_MODE, "kernels.h", f"#pragma once\n{long}") == {
        "mode": "cuda-mode",
        "line": 906,
    }
