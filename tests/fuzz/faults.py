"""A server whose children are killed and stopped, whose disk is full and whose client is slow.

    python tests/fuzz/faults.py --seconds 900 [--first 0] [--only NUMBER]

Each number is one talk: edits, and between them faults, at moments of chance. Afterwards every question is
answered, no traceback was written, the findings of the last texts are those of a server to which nothing
happened, and nothing is left of the server when it leaves. Full and read-only disks need the right to mount
one; without it they are left out, and it is said. Prints counts and the numbers that failed; exits with 1 if
there are any. ``SEEDS`` are the numbers that failed once.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "protocol"))

from campaign import arguments, search
from client import Client
from conversations import last_published
from mutation import originals

from cuda_lsp.children.sweep import descendants

SEEDS: tuple[int, ...] = ()
_FILES = ("a.cu", "b.cu", "c.cu")
_PATIENCE = 240.0
_LARGEST = 1500  # characters of a text: what is asked about is the faults, not the solver


class Talk:
    """A server with a cache of its own, its client, and what the client knows of its documents."""

    def __init__(self, folder: Path, number: int) -> None:
        self.chance = random.Random(number)
        self.folder, self.root, self.cache = folder, folder / "project", folder / "cache"
        self.root.mkdir()
        self.cache.mkdir()
        self.mounted = False
        self.client = Client(self.root, CUDA_LSP_CACHE=str(self.cache))
        self.texts: dict[str, str] = {}
        self.log: list[str] = []

    # ------------------------------------------------------------------------------------ edits

    def edit(self) -> None:
        """Open a file, or give one another text."""
        name = self.chance.choice(_FILES)
        text = self.chance.choice([text for text in originals() if len(text) < _LARGEST])
        if name not in self.texts:
            self.texts[name] = text
            self.client.open(name, text)
        else:
            self.tell(name, text)

    def tell(self, name: str, text: str) -> None:
        self.texts[name] = text
        self.client.versions[name] += 1
        document = {"uri": self.client.uri(name), "version": self.client.versions[name]}
        changes = {"textDocument": document, "contentChanges": [{"text": text}]}
        self.client.notify("textDocument/didChange", changes)

    def ask(self) -> None:
        """A question, whose answer nobody reads before the end."""
        for name in self.texts:
            self.client.ask("textDocument/hover", _at(self.client, name, self.chance))

    # ----------------------------------------------------------------------------------- faults

    def kill(self) -> None:
        """One of the server's processes, at any depth."""
        self._signal(signal.SIGKILL)

    def crash(self) -> None:
        self._signal(signal.SIGSEGV)

    def stop(self) -> None:
        """For ever, as far as the server knows."""
        self._signal(signal.SIGSTOP)

    def pause(self) -> None:
        """The server itself, for a moment."""
        server = self.client.process
        server.send_signal(signal.SIGSTOP)
        time.sleep(self.chance.uniform(0, 1))
        server.send_signal(signal.SIGCONT)

    def kill_all(self) -> None:
        for process in descendants(self.client.process.pid):
            _send(process, signal.SIGKILL)

    def _signal(self, number: int) -> None:
        below = descendants(self.client.process.pid)
        if below:
            _send(self.chance.choice(below), number)

    def lose_cache(self) -> None:
        shutil.rmtree(self.cache, ignore_errors=True)

    def spoil_cache(self) -> None:
        """Files of any content, or cut short."""
        for path in self.cache.rglob("*"):
            if path.is_file() and self.chance.random() < 0.7:
                with contextlib.suppress(OSError):
                    size = path.stat().st_size
                    with path.open("r+b") as file:
                        file.truncate(self.chance.randrange(size + 1))
                        file.seek(0)
                        file.write(self.chance.randbytes(min(64, size)))

    def block_cache(self) -> None:
        """A file where the folder was."""
        self.lose_cache()
        with contextlib.suppress(OSError):
            self.cache.write_text("")

    def fill_disk(self) -> None:
        """No byte is left where the cache lies (ENOSPC)."""
        if self._mount("size=64k"):
            with contextlib.suppress(OSError), (self.cache / "ballast").open("wb") as file:
                while True:
                    file.write(bytes(4096))
                    file.flush()

    def lock_disk(self) -> None:
        """Nothing can be written where the cache lies (EROFS)."""
        self._mount("ro,size=64k")

    def _mount(self, options: str) -> bool:
        if self.mounted or os.geteuid():
            return False
        self.lose_cache()
        with contextlib.suppress(OSError):
            self.cache.unlink()  # a file, where one was put
        self.cache.mkdir(exist_ok=True)
        done = subprocess.run(
            ("mount", "-t", "tmpfs", "-o", options, "none", str(self.cache)), capture_output=True
        )
        self.mounted = done.returncode == 0
        return self.mounted

    def lose_project(self) -> None:
        """The folder that is open goes, and may come again."""
        shutil.rmtree(self.root, ignore_errors=True)
        if self.chance.random() < 0.5:
            self.root.mkdir()

    def save(self) -> None:
        """Files on the disk, so that the server reads some, and settings that change."""
        with contextlib.suppress(OSError):
            for name, text in self.texts.items():
                (self.root / name).write_text(text)
            values = self.chance.choice(("", "solver = true\n", "arch = 3\n", "[", "solver-budget = 900\n"))
            (self.root / "cuda-lsp.toml").write_text(values)
        watched = {"uri": self.client.uri("cuda-lsp.toml"), "type": 2}
        self.client.notify("workspace/didChangeWatchedFiles", {"changes": [watched]})

    def write_slowly(self) -> None:
        """A message in pieces."""
        name = next(iter(self.texts), None)
        stream = self.client.process.stdin
        if name is None or stream is None:
            return
        body = b'{"jsonrpc": "2.0", "method": "$/cuda-lsp-nothing", "params": {}}'
        for piece in (b"Content-", b"Length: %d" % len(body), b"\r\n", b"\r\n", body[:20], body[20:]):
            stream.write(piece)
            stream.flush()
            time.sleep(self.chance.uniform(0, 0.1))

    def flood(self) -> None:
        """More edits than anybody types, while nothing is read."""
        for name in list(self.texts):
            for number in range(60):
                self.tell(name, f"{self.texts[name]}\n// {number}")

    # ---------------------------------------------------------------------------------- the end

    def settle(self) -> dict[str, list[Any]]:
        """After a last edit of each file: its findings. Nothing goes wrong from here on."""
        if self.mounted:
            subprocess.run(("umount", "-l", str(self.cache)), capture_output=True, check=True)
            self.mounted = False
        with contextlib.suppress(OSError):
            (self.root / "cuda-lsp.toml").unlink()
        watched = {"uri": self.client.uri("cuda-lsp.toml"), "type": 3}
        self.client.notify("workspace/didChangeWatchedFiles", {"changes": [watched]})
        found: dict[str, list[Any]] = {}
        for name in self.texts:
            self.tell(name, self.texts[name] + "\n")
        for name in self.texts:
            version = self.client.versions[name]
            self.client.settled(name, version, _PATIENCE)
            found[name] = last_published(self.client, name, version)
            self.client.request("textDocument/hover", _at(self.client, name, self.chance), _PATIENCE)
        assert "Traceback" not in self.client.stderr, self.client.stderr[-3000:]
        return found

    def close(self) -> None:
        """Whatever happened. Raises AssertionError when a process of the server is left."""
        server = self.client.process
        below = descendants(server.pid)
        try:
            self.client.close()
        finally:
            server.kill()
            if self.mounted:
                subprocess.run(("umount", "-l", str(self.cache)), capture_output=True)
        until = time.monotonic() + 10
        while (left := [process for process in below if _runs(process)]) and time.monotonic() < until:
            time.sleep(0.05)
        assert not left, f"processes {left} of the server are left"


def _at(client: Client, name: str, chance: random.Random) -> dict[str, Any]:
    place = {"line": chance.randrange(30), "character": chance.randrange(40)}
    return {"textDocument": {"uri": client.uri(name)}, "position": place}


def _send(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


_FAULTS: tuple[Callable[[Talk], None], ...] = (
    Talk.kill, Talk.kill, Talk.kill, Talk.crash, Talk.stop, Talk.pause, Talk.kill_all, Talk.lose_cache,
    Talk.spoil_cache, Talk.block_cache, Talk.fill_disk, Talk.lock_disk, Talk.lose_project, Talk.save,
    Talk.save, Talk.write_slowly, Talk.flood,
)  # fmt: skip


def fresh_findings(talk: Talk) -> dict[str, list[Any]]:
    """What a server tells of the last texts to which nothing happened, in the same folder."""
    cache = talk.folder / "cache of the other"
    client = Client(talk.root, CUDA_LSP_CACHE=str(cache))
    try:
        for name, text in talk.texts.items():
            client.open(name, text)
        for name in talk.texts:
            client.settled(name, 1, _PATIENCE)
        return {name: last_published(client, name, 1) for name in talk.texts}
    finally:
        client.process.kill()


def tried(number: int, most: int = 6) -> str | None:
    """What went wrong in one talk; None: nothing."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        talk = Talk(Path(name), number)
        try:
            _suffer(talk, most)
            found = talk.settle()
            wanted = fresh_findings(talk)
            assert found == wanted, f"{found}\ninstead of\n{wanted}"
            talk.close()
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            talk.client.process.kill()
            if talk.mounted:
                subprocess.run(("umount", "-l", str(talk.cache)), capture_output=True)
            return f"{', '.join(talk.log)}: {type(error).__name__}: {error}"
    return None


def _suffer(talk: Talk, most: int) -> None:
    talk.edit()
    for _ in range(talk.chance.randrange(1, most)):
        for _ in range(talk.chance.randrange(3)):
            talk.edit()
            talk.ask()
        time.sleep(talk.chance.choice((0, 0.01, 0.1, 0.5, 1.5)))
        fault = talk.chance.choice(_FAULTS)
        talk.log.append(fault.__name__)
        fault(talk)


def failures(numbers: Iterable[int], most: int = 6) -> Iterator[tuple[int, str]]:
    """The talks that fail, and how."""
    for number in numbers:
        problem = tried(number, most)
        if problem is not None:
            yield number, problem


def main() -> None:
    given = arguments(__doc__)
    if os.geteuid():
        print("full and read-only disks are left out: only the superuser can mount one")
    search(given, "talks", failures, 3000)


if __name__ == "__main__":
    main()
