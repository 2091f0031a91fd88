"""Real Neovim in a real terminal, with the configuration of editors/nvim and the real server.

Debian 12's 0.7 (``start_client``), Debian 13's 0.10 (``vim.lsp.start``), and 0.12 (``vim.lsp.enable``). Keys
go through the terminal; what the editor knows is read through its own remote interface.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from conftest import APP, COLUMNS, EDITORS, FIGURE1, HEADER, MAIN, READ, ROOT, SERVER, SPIN, STORE_LINE, need
from terminal import TIMEOUT_S, Terminal

from cuda_lsp import __version__

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

NEWER = EDITORS / "debian13-neovim"
NEWEST = EDITORS / "neovim12"
INIT = """\
vim.opt.runtimepath:prepend('{plugin}')
vim.o.swapfile = false
vim.o.number = true
vim.o.signcolumn = 'yes'
vim.o.updatetime = 100
vim.o.termguicolors = true
-- long messages wait for no key
if vim.fn.exists('+messagesopt') == 1 then vim.o.messagesopt = 'wait:0,history:500' end
vim.cmd('filetype plugin indent on | syntax on')
if not pcall(vim.cmd, 'colorscheme habamax') then vim.cmd('colorscheme slate') end
vim.diagnostic.config({{ virtual_text = true, severity_sort = true }})
vim.g.progress = vim.empty_dict()
local shown = vim.lsp.handlers['$/progress']
vim.lsp.handlers['$/progress'] = function(error, progress, ...)
  vim.g.progress = {{ token = progress.token, kind = progress.value.kind, message = progress.value.message }}
  if shown then return shown(error, progress, ...) end
end
"""
SETUP = "require('cuda_lsp').setup({{ cmd = vim.fn.json_decode('{command}'), trusted = {trusted} }})\n"
ENABLED = """\
vim.lsp.config('cuda_lsp', {{
  cmd = vim.fn.json_decode('{command}'), init_options = {{ trusted = {trusted} }},
}})
vim.lsp.enable('cuda_lsp')
"""
DIAGNOSTICS = """\
map(luaeval("vim.diagnostic.get(0)"), {_, d -> {"line": d.lnum + 1, "col": d.col, "end": d.end_col, \
"severity": d.severity, "message": d.message, "source": get(d, "source", ""), \
"code": get(d, "code", ""), "lsp": get(get(d, "user_data", {}), "lsp", {})}})"""

# The text of floating windows.
FLOATS = """\
map(filter(nvim_list_wins(), {_, w -> get(nvim_win_get_config(w), "relative", "") != ""}), \
{_, w -> join(nvim_buf_get_lines(nvim_win_get_buf(w), 0, -1, v:false), "\\n")})"""

Diagnostic = dict[str, Any]
_AGAIN_S = 5.0  # after which what a keystroke asked for is asked for again


class Neovim:
    """One running Neovim with Figure 1 open."""

    def __init__(
        self,
        program: str,
        runtime: Path | None,
        folder: Path,
        configuration: str | None = None,
        *,
        trusted: bool = True,
    ) -> None:
        self.file = folder / "figure1.cu"
        self.file.write_text(FIGURE1)
        init = folder / "init.lua"
        ours = INIT.format(plugin=ROOT / "editors/nvim")
        ours += (ENABLED if runtime and NEWEST in runtime.parents else SETUP).format(
            command=json.dumps(SERVER), trusted=str(trusted).lower()
        )
        init.write_text(ours if configuration is None else configuration)
        self._pipe = (
            Path(tempfile.mkdtemp()) / "nvim"
        )  # a socket's path holds 107 bytes: pytest's may not fit
        self._program = program
        self._environment = {
            "LC_ALL": "C.UTF-8",
            "TERM": "screen-256color",
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            **{f"XDG_{kind}_HOME": str(folder) for kind in ("CONFIG", "DATA", "STATE", "CACHE")},
            **({"VIMRUNTIME": str(runtime)} if runtime else {}),
        }
        command = [program, "-u", init, "-i", "NONE", "--listen", self._pipe, self.file]
        self.terminal = Terminal(command, self._environment, folder)
        self.until(self._pipe.exists, "Neovim to listen")

    def evaluate(self, expression: str) -> Any:
        command = [self._program, "--server", str(self._pipe), "--remote-expr", f"json_encode({expression})"]
        environment = {**os.environ, **self._environment}
        answer = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment)
        # 0.7 answers on the error stream
        said = answer.stdout.strip() or answer.stderr.strip()
        assert answer.returncode == 0, said
        return json.loads(said)

    def diagnostics(self) -> list[Diagnostic]:
        return [d for d in self.evaluate(DIAGNOSTICS) if d["source"] == "cuda-lsp"]

    def wait_for_diagnostics(self, wanted: bool) -> list[Diagnostic]:
        return self.wait_for(lambda d: bool(d) is wanted, "a finding" if wanted else "no finding")

    def wait_for(self, condition: Callable[[list[Diagnostic]], bool], what: str) -> list[Diagnostic]:
        """The diagnostics that first met the condition: asked for again they may be others."""
        found: list[Diagnostic] = []

        def met() -> bool:
            found[:] = self.diagnostics()
            return condition(found)

        self.until(met, what)
        return found

    def choose(self, line: int, action: str) -> None:
        """Pick a code action from the menu, as a person does: again while the file is not read yet."""
        self.terminal.type(f":call cursor({line}, 1)\r")
        nothing, screen, tries = "No code actions available", "", 0
        while nothing in screen or not tries:
            assert tries < 20, screen
            self.terminal.type(f":echo 'try {tries}'\r")
            self.terminal.wait_for(rf"^try {tries}")
            self.terminal.type(":lua vim.lsp.buf.code_action()\r")
            screen, tries = self.terminal.wait_for(rf"\d+: {action}|{nothing}"), tries + 1
        found = re.search(rf"(\d+): {action}", screen)
        assert found
        self.terminal.type(found[1])
        self.terminal.press("Enter")

    def hover(self, line: int, column: int, *words: str) -> None:
        """Ask for the hover there, as a person does: again until it shows these words."""
        self.terminal.type(f":call cursor({line}, {column})\r")
        asked = -_AGAIN_S

        def shown() -> bool:
            nonlocal asked
            said = "\n".join(self.evaluate(FLOATS))
            if all(word in said for word in words):
                return True
            if not said and time.monotonic() - asked > _AGAIN_S:
                asked = time.monotonic()
                self.terminal.type(":lua vim.lsp.buf.hover()\r")
            return False

        self.until(shown, f"a hover with {words}")

    def told(self, pattern: str) -> str:
        """What a message says, once one has the pattern."""
        said: list[str] = []

        def met() -> bool:
            said[:] = [self.evaluate('execute("messages")')]
            return re.search(pattern, said[0]) is not None

        self.until(met, f"a message with {pattern}")
        return said[0]

    def open(self, name: str, text: str) -> None:
        """Edit another file."""
        (self.file.parent / name).write_text(text)
        self.terminal.type(f":e {name}\r")
        self.until(lambda: self.evaluate('expand("%:t")') == name, name)

    def lines(self) -> list[str]:
        return self.evaluate('getline(1, "$")')

    def wait_for_line(self, number: int, text: str) -> None:
        self.until(lambda: self.lines()[number - 1 : number] == [text], f"line {number}: {text!r}")

    def until(self, condition: Any, what: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {TIMEOUT_S:.0f} s for {what}:\n{self.terminal.screen()}")
            time.sleep(0.03)


@pytest.fixture(params=["0.7", "0.10", "0.12"])
def program(request: pytest.FixtureRequest) -> tuple[str, Path | None]:
    need("tmux", "tmux")
    if request.param == "0.7":
        return need("nvim", "Neovim"), None
    there, why = (NEWER, "Neovim 0.10") if request.param == "0.10" else (NEWEST, "Neovim 0.12")
    return need(there / "usr/bin/nvim", why), there / "usr/share/nvim/runtime"


@pytest.fixture
def neovim(program: tuple[str, Path | None], tmp_path: Path) -> Iterator[Neovim]:
    editor = Neovim(*program, tmp_path)
    yield editor
    editor.terminal.close()


def test_one_line_installs_the_plugin_and_no_configuration_is_needed(
    program: tuple[str, Path | None], tmp_path: Path
) -> None:
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "cuda_lsp", "neovim"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert "installed" in said
    editor = Neovim(*program, tmp_path, configuration="vim.o.swapfile = false\n")
    try:
        (race,) = editor.wait_for_diagnostics(True)
        assert race["line"] == STORE_LINE + 1
        editor.terminal.type(":checkhealth cuda_lsp\r")
        editor.terminal.wait_for(rf"cuda-lsp, version {re.escape(__version__)}")
        editor.terminal.type(":qa!\r")
    finally:
        editor.terminal.close()
    subprocess.run([*command, "--remove"], env=environment, capture_output=True, check=True)
    assert not (tmp_path / "nvim/site/pack/cuda-lsp/start/cuda-lsp").exists()


def test_barrier_typed_and_deleted_moves_the_race(
    neovim: Neovim, artifacts: Path, request: pytest.FixtureRequest
) -> None:
    version = "nvim-" + request.node.callspec.params["program"]
    terminal = neovim.terminal

    (race,) = neovim.wait_for_diagnostics(True)
    assert race["code"] == "shared-race" or race["lsp"].get("code") == "shared-race"
    assert race["severity"] == 1
    assert race["line"] == STORE_LINE + 1
    assert neovim.lines()[STORE_LINE][race["col"] : race["end"]] == READ
    terminal.wait_for(r"E .*out\[id\]")
    terminal.photograph(artifacts / f"{version}-1-race.svg")

    neovim.hover(STORE_LINE + 1, race["col"] + 1, "thread", "s[")
    terminal.photograph(artifacts / f"{version}-2-witness.svg")

    terminal.type(f":{STORE_LINE}\r")
    terminal.type("o__syncthreads();")
    terminal.press("Escape")
    neovim.wait_for_line(STORE_LINE + 1, "    __syncthreads();")
    neovim.wait_for_diagnostics(False)
    terminal.wait_for(r"__syncthreads\(\);")
    terminal.photograph(artifacts / f"{version}-3-repaired.svg")

    terminal.type("dd")
    neovim.wait_for_line(STORE_LINE + 1, f"    out[id] = {READ};")
    (back,) = neovim.wait_for_diagnostics(True)
    assert (back["line"], back["col"]) == (race["line"], race["col"])
    terminal.type(":qa!\r")


def test_the_repair_that_is_chosen_mends_the_race(neovim: Neovim) -> None:
    neovim.wait_for_diagnostics(True)
    neovim.choose(STORE_LINE + 1, r"Insert __syncthreads\(\);")
    neovim.wait_for_line(STORE_LINE + 1, "    __syncthreads();")
    neovim.wait_for_diagnostics(False)
    neovim.terminal.type(":qa!\r")


def test_a_finding_is_silenced_by_its_action(neovim: Neovim) -> None:
    neovim.wait_for_diagnostics(True)
    neovim.choose(STORE_LINE + 1, "Ignore shared-race here")
    neovim.wait_for_diagnostics(False)
    assert any("// cuda-lsp: ignore[shared-race] reason" in line for line in neovim.lines())
    neovim.terminal.type(":qa!\r")


LENSES = """map(luaeval("vim.lsp.codelens.get(0)"), {_, l -> get(get(l, "command", {}), "title", "")})"""


def test_the_lens_above_the_kernel_tells_its_verdict(neovim: Neovim) -> None:
    neovim.wait_for_diagnostics(True)
    titles: list[str] = []

    def told() -> bool:
        neovim.terminal.type(":lua vim.lsp.codelens.refresh()\r")
        time.sleep(0.3)
        titles[:] = neovim.evaluate(LENSES)
        return any("racy" in title for title in titles)

    neovim.until(told, f"a lens with the verdict: {titles}")
    assert any("Run dynamic check" in title for title in titles)
    neovim.terminal.type(":qa!\r")


def test_a_header_that_holds_kernels_is_cuda(neovim: Neovim) -> None:
    folder = neovim.file.parent
    (folder / "kernels.h").write_text(HEADER)
    (folder / "plain.h").write_text(HEADER.partition("\n")[0] + "\nint f();\n")
    (folder / "use.cu").write_text('#include "kernels.h"\nvoid go(int* o) { turned<int><<<1, 64>>>(o); }\n')
    neovim.wait_for_diagnostics(True)
    for name, filetype in (("plain.h", "cpp"), ("kernels.h", "cuda")):
        neovim.terminal.type(f":e {name}\r")
        neovim.until(lambda name=name: neovim.evaluate('expand("%:t")') == name, name)
        assert neovim.evaluate("&filetype") == filetype
    neovim.wait_for(lambda found: [d["line"] for d in found] == [6], "the race of the header")
    neovim.terminal.type(":qa!\r")


@needs_nvcc
def test_a_check_confirms_the_race_where_it_is(
    neovim: Neovim, artifacts: Path, request: pytest.FixtureRequest
) -> None:
    (race,) = neovim.wait_for_diagnostics(True)
    neovim.choose(3, "Run dynamic check")
    seen = neovim.wait_for(lambda found: any("seen on" in d["message"] for d in found), "a confirmed race")
    (confirmed,) = seen
    assert (confirmed["line"], confirmed["col"]) == (STORE_LINE + 1, race["col"])
    neovim.hover(STORE_LINE + 1, race["col"] + 1, "confirmed")
    neovim.terminal.photograph(artifacts / f"nvim-{request.node.callspec.params['program']}-4-confirmed.svg")
    neovim.terminal.type(":qa!\r")


@needs_nvcc
def test_a_running_check_is_cancelled(neovim: Neovim) -> None:
    neovim.wait_for_diagnostics(True)
    neovim.open("slow.cu", SPIN)
    neovim.choose(1, "Run dynamic check")
    neovim.until(lambda: neovim.evaluate("g:progress").get("message") == "running", "the kernel to run")
    neovim.terminal.type(":CudaLsp cancel\r")
    neovim.until(lambda: neovim.evaluate("g:progress").get("kind") == "end", "the end of the check")
    assert neovim.evaluate("g:progress")["message"] == "cancelled"  # and not ended by its deadline
    neovim.terminal.type(":qa!\r")


def test_nothing_runs_where_nobody_trusts_it(program: tuple[str, Path | None], tmp_path: Path) -> None:
    editor = Neovim(*program, tmp_path, trusted=False)
    try:
        (race,) = editor.wait_for_diagnostics(True)  # it is analysed all the same
        editor.terminal.type(f":{race['line']} | CudaLsp check\r")
        editor.told("needs a trusted workspace")
        editor.terminal.type("\r:qa!\r")
    finally:
        editor.terminal.close()


@pytest.mark.parametrize(
    ("answers", "written"),
    [(("1",), "block=(64,1,1)"), (("2", "16, 16"), "block=(16,16)")],
)
def test_the_launch_of_a_kernel_is_asked_for_and_written(
    neovim: Neovim, answers: tuple[str, ...], written: str
) -> None:
    neovim.wait_for_diagnostics(True)  # of a kernel whose launch is offered
    neovim.open("columns.cu", COLUMNS)
    neovim.wait_for_diagnostics(True)
    neovim.choose(1, "Set launch configuration of columns…")
    asked = [r"^2: Other extents…", "Threads of a block"]
    for question, answer in zip(asked, answers, strict=False):
        neovim.terminal.wait_for(question)
        neovim.terminal.type(answer)
        neovim.terminal.press("Enter")
    neovim.until(lambda: f"// cuda-lsp: launch {written}" in neovim.lines()[0], "the directive")
    assert neovim.lines()[1:] == COLUMNS.splitlines()
    neovim.terminal.type(":qa!\r")


def test_conflicts_are_told_beside_their_accesses(neovim: Neovim, artifacts: Path) -> None:
    if neovim.evaluate('has("nvim-0.10")') == 0:
        pytest.skip("Neovim has inlay hints from 0.10")
    neovim.open("columns.cu", COLUMNS)
    neovim.wait_for_diagnostics(True)
    neovim.terminal.type(":lua vim.lsp.inlay_hint.enable(true)\r")
    neovim.terminal.wait_for(r"tile\[threadIdx\.x\]\[threadIdx\.y\] 32-way")
    neovim.terminal.photograph(artifacts / "nvim-5-hints.svg")
    neovim.terminal.type(":qa!\r")


@pytest.mark.parametrize(
    ("line", "what", "title"), [(5, "banks", "banks"), (8, "intervals", "barrier-intervals")]
)
@pytest.mark.parametrize("opens", [True, False], ids=["opened", "named"])
def test_a_picture_is_a_file_that_is_opened_or_named(
    neovim: Neovim, line: int, what: str, title: str, opens: bool
) -> None:
    """By the program of the desktop, from 0.10; told where there is none."""
    folder = neovim.file.parent
    (folder / "bin").mkdir()
    (folder / "bin/xdg-open").write_text(f"#!/bin/sh\necho $1 >{folder}/opened\nexit {int(not opens)}\n")
    (folder / "bin/xdg-open").chmod(0o755)
    name = "figure1.cu"
    if what == "banks":
        name = "columns.cu"
        neovim.open(name, COLUMNS)
    neovim.wait_for_diagnostics(True)
    neovim.terminal.type(f":{line} | CudaLsp {what}\r")
    if opens and neovim.evaluate('has("nvim-0.10")'):
        neovim.until((folder / "opened").exists, "the picture to be opened")
        neovim.until(lambda: (folder / "opened").read_text().endswith(".svg\n"), "its name")
        picture = urlsplit((folder / "opened").read_text().strip()).path
    else:
        said = neovim.told(r"The picture: [^.]+\.svg")
        picture = re.sub(r"\n", "", said[said.index("The picture: ") + 13 :]).partition(".svg")[0] + ".svg"
    assert Path(unquote(picture)).name.replace(" ", "-").startswith(f"{name.partition('.')[0]}-{title}")
    assert "<svg" in Path(unquote(picture)).read_text()
    neovim.terminal.type("\r:qa!\r")


@needs_nvcc
@pytest.mark.parametrize("by", ["command", "action"])
def test_the_program_runs_with_its_arguments_and_what_it_prints_is_seen(neovim: Neovim, by: str) -> None:
    neovim.open("app.cu", APP)
    neovim.wait_for_diagnostics(True)
    if by == "command":
        neovim.terminal.type(r":CudaLsp program two\ words 7" + "\r")
    else:
        neovim.choose(1 + APP.splitlines().index(MAIN), "Run the program under check")
    (race,) = neovim.wait_for(lambda found: any("seen on" in d["message"] for d in found), "a confirmed race")
    assert race["line"] == STORE_LINE + 1
    printed = 'getbufline("cuda-lsp://program", 1, "$")'
    given = ["argument 1: two words", "argument 2: 7"] if by == "command" else []
    neovim.until(lambda: neovim.evaluate(printed) == ["== app.cu", "it runs", *given], "what it prints")
    neovim.terminal.wait_for(r"\bit runs$")
    neovim.terminal.type(":qa!\r")


def test_a_settings_file_counts_as_soon_as_it_is_written(neovim: Neovim) -> None:
    (race,) = neovim.wait_for_diagnostics(True)
    assert race["severity"] == 1
    neovim.open("cuda-lsp.toml", 'severity = { shared-race = "hint" }\n')
    neovim.terminal.type(":w | b figure1.cu\r")
    neovim.wait_for(lambda found: [d["severity"] for d in found] == [4], "the other severity")
    neovim.terminal.type(":qa!\r")


def test_the_status_line_has_the_verdict_also_after_a_restart(neovim: Neovim) -> None:
    status = """luaeval("require('cuda_lsp').status()")"""
    processes = """luaeval("#require('cuda_lsp.client').all()")"""
    ids = """luaeval("vim.tbl_map(function(c) return c.id end, require('cuda_lsp.client').all())")"""
    neovim.until(lambda: neovim.evaluate(status) == "1 kernel racy", "the verdict")
    before = neovim.evaluate(ids)
    neovim.terminal.type(":CudaLsp restart\r")
    neovim.until(lambda: neovim.evaluate(processes) == 1 and neovim.evaluate(ids) != before, "a new server")
    neovim.wait_for_diagnostics(True)
    neovim.terminal.type(f":{STORE_LINE}\ro__syncthreads();")
    neovim.terminal.press("Escape")
    neovim.until(lambda: neovim.evaluate(status) == "race-free", "the other verdict")
    neovim.terminal.type(":qa!\r")


@pytest.mark.parametrize(
    ("command", "told"),
    [(SERVER, __version__), (["/nowhere/cuda-lsp", "serve"], "is not executable: pip install it")],
)
def test_checkhealth_tells_whether_the_server_starts(tmp_path: Path, command: list[str], told: str) -> None:
    init, report = tmp_path / "init.lua", tmp_path / "health.txt"
    cmd = json.dumps(command)
    init.write_text(
        f"vim.opt.runtimepath:prepend('{ROOT / 'editors/nvim'}')\n"
        f"require('cuda_lsp').setup({{ cmd = vim.fn.json_decode('{cmd}') }})\n"
    )
    steps = ["-c", "checkhealth cuda_lsp", "-c", f"silent write! {report}", "-c", "qa!"]
    subprocess.run(
        [need("nvim", "Neovim"), "--headless", "-u", str(init), *steps], check=True, timeout=TIMEOUT_S
    )
    text = report.read_text()
    assert told in text and ("ERROR" in text) == (told != __version__)
