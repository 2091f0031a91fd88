"""A project may hold a ``pickle.py``, or a folder ``cuda_lsp``: no command and no child runs any of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.children import NEUTRAL_FOLDER, python_command

COMMAND = Path(sys.executable).with_name("cuda-lsp")
OTHERS = (
    "attr", "attrs", "cattrs", "clang", "click", "clsp", "cuda_lsp", "lsprotocol", "numpy", "nvidia",
    "platformdirs", "pycuda", "pygls", "rich", "sitecustomize", "tomli", "usercustomize", "z3",
)  # fmt: skip

NEEDS_SOLVER = """__global__ void k(int *a, int n) {
  int i = threadIdx.x;
  if (i < n) a[i] = a[i + n];
  __shared__ int s[64];
  s[i] = 1;
  if (n > 3) a[i] += s[63 - i];
}
int main() { int *a; cudaMalloc(&a, 1024); k<<<1, 64>>>(a, 64); cudaDeviceSynchronize(); return 0; }
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder whose files shadow the standard library, what we depend on, and ourselves."""
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "ran").touch()
    code = f"open({str(tmp_path / 'ran')!r}, 'a').write(__name__ + ' ')\n"
    for name in {*sys.stdlib_module_names, *OTHERS}:
        (folder / f"{name}.py").write_text(code)
    inner = folder / "cuda_lsp" / "static"
    inner.mkdir(parents=True)
    for package in (inner, inner.parent):
        (package / "__init__.py").write_text(code)
    (folder / "k.cu").write_text(NEEDS_SOLVER)
    return folder


def ran(project: Path) -> str:
    return (project.parent / "ran").read_text()


def run(project: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(project.parent / "cache")}
    return subprocess.run(
        [str(word) for word in command], cwd=project, env=environment, capture_output=True, text=True,
        timeout=300, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_the_trap_snaps(project: Path):
    run(project, sys.executable, "-c", "import pickle, cuda_lsp")
    assert "pickle" in ran(project) and "cuda_lsp" in ran(project)


@pytest.mark.parametrize("arguments", [("check", "--no-solver", "k.cu"), ("doctor",)], ids=" ".join)
def test_libraries_of_the_project_are_not_loaded(project: Path, arguments: tuple[str, ...]):
    """libclang would look for those that it needs in the working folder."""
    for name in ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"):
        (project / name).write_text("no library")
    said = run(project, COMMAND, *arguments)
    assert "file too short" not in said.stdout and "invalid ELF" not in said.stdout
    assert "shared-race" in said.stdout if "check" in arguments else "libclang: /" in said.stdout


def test_a_check_writes_to_its_cache_and_nowhere_else(tmp_path: Path):
    folders = [tmp_path / name for name in ("home", "temporary", "project")]
    for folder in folders:
        folder.mkdir()
    (tmp_path / "project" / "k.cu").write_text(NEEDS_SOLVER)
    before = [(path, path.stat().st_mtime_ns) for folder in folders for path in (folder, *folder.rglob("*"))]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
    environment |= {
        "HOME": str(folders[0]), "TMPDIR": str(folders[1]), "CUDA_LSP_CACHE": str(tmp_path / "cache"),
    }  # fmt: skip
    done = subprocess.run([COMMAND, "check", "."], cwd=folders[2], env=environment, capture_output=True)
    assert b"shared-race" in done.stdout and list((tmp_path / "cache").iterdir())
    after = [(path, path.stat().st_mtime_ns) for folder in folders for path in (folder, *folder.rglob("*"))]
    assert after == before


@pytest.mark.parametrize(
    "arguments",
    [("check", "k.cu"), ("check", "."), ("explain", "shared-race"), ("--help",), ("--version",)],
    ids=" ".join,
)
def test_commands(project: Path, arguments: tuple[str, ...]):
    done = run(project, COMMAND, *arguments)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr
    assert ran(project) == ""


def test_as_a_module_too(project: Path):
    """But for what ``python -m`` itself loads before any code of ours."""
    (project.parent / "loaded.py").write_text("import sys; print(*sys.modules)")
    listed = subprocess.run(
        [sys.executable, "-m", "loaded"], cwd=project.parent, capture_output=True, text=True, check=True
    )
    for name in {"cuda_lsp", *(name.partition(".")[0] for name in listed.stdout.split())}:
        (project / f"{name}.py").unlink(missing_ok=True)
    shutil.rmtree(project / "cuda_lsp")
    done = run(project, sys.executable, "-m", "cuda_lsp", "check", "k.cu")
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr
    assert ran(project) == ""


@needs_nvcc
@pytest.mark.parametrize(
    "arguments",
    [
        ("doctor",),
        ("run", "--engine", "emulator", "k.cu"),
        ("check", "--dynamic", "emulator", "k.cu"),
        ("run", "--engine", "emulator", "--program", "k.cu"),
        ("run", "--engine", "emulator", "k.cu", "--build", "nvcc -o k k.cu", "--run", "./k"),
    ],
    ids=" ".join,
)
def test_commands_that_run_kernels(project: Path, arguments: tuple[str, ...]):
    done = run(project, COMMAND, *arguments)
    assert "Traceback" not in done.stderr and "internal error" not in done.stdout + done.stderr
    assert ran(project) == ""


def test_the_server_when_a_file_is_opened(project: Path):
    with _Conversation(project) as server:
        server.say("initialize", 1, {"processId": None, "rootUri": project.as_uri(), "capabilities": {}})
        server.until(lambda m: m.get("id") == 1)
        server.say("initialized", None, {})
        document = {
            "uri": (project / "k.cu").as_uri(), "languageId": "cuda-cpp", "version": 1, "text": NEEDS_SOLVER,
        }  # fmt: skip
        server.say("textDocument/didOpen", None, {"textDocument": document})
        server.until(lambda m: m.get("method") == "cuda-lsp/fileStatus" and m["params"]["refined"])
        server.say("shutdown", 2, None)
        server.until(lambda m: m.get("id") == 2)
        server.say("exit", None, None)
        assert server.process.wait(30) == 0
    assert ran(project) == ""


class _Conversation:
    """The server as an editor starts it in the project's folder."""

    def __init__(self, project: Path):
        self.process = subprocess.Popen(
            [str(COMMAND), "serve"], cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "XDG_CACHE_HOME": str(project.parent / "cache")},
        )  # fmt: skip

    def __enter__(self) -> _Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def say(self, method: str, number: int | None, params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            message["id"] = number
        text = json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
        self.process.stdin.flush()

    def until(self, wanted: Any) -> None:
        assert self.process.stdout is not None
        while True:
            length = 0
            while line := self.process.stdout.readline().strip():
                length = (
                    int(line.partition(b":")[2]) if line.lower().startswith(b"content-length") else length
                )
            assert length, "the server ended"
            if wanted(json.loads(self.process.stdout.read(length))):
                return


def test_a_child_starts_nowhere_and_searches_where_its_parent_does(tmp_path: Path):
    probe = tmp_path / "probe_child.py"
    probe.write_text(
        "import json, os, sys, cuda_lsp\n"
        "def main(word):\n"
        "    print(json.dumps([os.getcwd(), sys.path, word, cuda_lsp.__file__]))\n"
    )
    code = (
        f"import subprocess, sys; sys.path.append({str(tmp_path)!r}); from cuda_lsp import children as c\n"
        "command = c.python_command('probe_child', 'word')\n"
        "print(subprocess.run(command, cwd=c.NEUTRAL_FOLDER, capture_output=True, text=True).stdout)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    folder, searched, word, package = json.loads(done.stdout)
    import cuda_lsp

    assert folder == NEUTRAL_FOLDER and word == "word"
    assert str(tmp_path) in searched and "" not in searched
    assert package == cuda_lsp.__file__
    assert python_command("m")[0] == sys.executable
