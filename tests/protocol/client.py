"""A language client over stdio, as small as the protocol allows, for tests and the latency benchmark."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]

_OF_PROCESS = 2  # clock_getcpuclockid(3): the scheduler's clock of a whole process

PATIENCE = 60.0
"""Seconds for what must come: not how fast the server is, but when it hangs for certain."""


class Client:
    """A server process and the conversation with it. ``encoding``: what the client offers, None: nothing.

    ``resolves``: it asks for the edits of a code action when it is chosen. ``general``: further capabilities.
    ``refreshes``: it pulls diagnostics and is told when there are others. ``hears``: it watches files.
    ``folders``: below the root, a workspace of several; ``configured`` has the settings of each by name.
    ``opens``: its answer when it is asked to show a file; an ``error``: it refuses.
    """

    def __init__(
        self,
        root: Path,
        encoding: str | None = None,
        options: Json | None = None,
        *,
        resolves: bool = False,
        general: Json | None = None,
        refreshes: bool = False,
        hears: bool = False,
        folders: tuple[str, ...] = (),
        opens: Json | None = None,
        **environment: str,
    ):
        import os

        self.process = subprocess.Popen(
            [sys.executable, "-m", "cuda_lsp", "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        self.root = root
        self.messages: queue.Queue[tuple[float, Json | None]] = queue.Queue()
        self.notifications: list[tuple[float, Json]] = []
        self.answers: dict[int, Json] = {}
        self.requests: dict[str, Json] = {}  # of the server's, the last of each kind
        self.requested: list[str] = []  # all of them, by method
        self.errors: list[bytes] = []
        self.versions: dict[str, int] = {}
        self.number = 0
        for target in (self._read, self._read_errors):
            threading.Thread(target=target, daemon=True).start()
        offered: Json = {"general": {"positionEncodings": [encoding]}} if encoding else {}
        offered["window"] = {"workDoneProgress": True}
        self.opens = opens
        if opens is not None:
            offered["window"]["showDocument"] = {"support": True}
        offered["general"] = {**offered.get("general", {}), **(general or {})}
        if resolves:
            offered["textDocument"] = {"codeAction": {"resolveSupport": {"properties": ["edit"]}}}
        self.configured: dict[str, Json] = {}
        several = [{"uri": (root / name).as_uri(), "name": name} for name in folders]
        if folders:
            offered["workspace"] = {"workspaceFolders": True, "configuration": True}
        if refreshes:
            options = {**(options or {}), "diagnostics": "pull"}
            offered["workspace"] = {"diagnostics": {"refreshSupport": True}}
        if hears:
            watching = {"didChangeWatchedFiles": {"dynamicRegistration": True}}
            offered["workspace"] = {**offered.get("workspace", {}), **watching}
        self.capabilities = self.request(
            "initialize",
            {
                "processId": None,
                "rootUri": root.as_uri(),
                **({"workspaceFolders": several} if folders else {}),
                "capabilities": offered,
                "initializationOptions": options or {},
            },
        )["capabilities"]
        self.notify("initialized", {})

    # ------------------------------------------------------------------------------ documents

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()

    def open(self, name: str, text: str) -> None:
        self.versions[name] = 1
        document = {"uri": self.uri(name), "languageId": "cuda-cpp", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def edit(self, name: str, start: tuple[int, int], end: tuple[int, int], text: str) -> int:
        """Replace a range (0-based, client units); returns the new version."""
        self.versions[name] += 1
        extent = {
            "start": {"line": start[0], "character": start[1]},
            "end": {"line": end[0], "character": end[1]},
        }
        document = {"uri": self.uri(name), "version": self.versions[name]}
        changes = [{"range": extent, "text": text}]
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})
        return self.versions[name]

    def ask_actions(self, name: str, first: int, last: int) -> None:
        """Ask for code actions of these lines and leave the answer unread."""
        extent = {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}
        params = {
            "textDocument": {"uri": self.uri(name)},
            "range": extent,
            "context": {"diagnostics": []},
        }
        self.ask("textDocument/codeAction", params)

    def actions(self, name: str, line: int, *only: str) -> list[Json]:
        """The code actions of a line (0-based)."""
        extent = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 1}}
        context: Json = {"diagnostics": [], **({"only": only} if only else {})}
        document = {"uri": self.uri(name)}
        params = {"textDocument": document, "range": extent, "context": context}
        return self.request("textDocument/codeAction", params)

    def diagnostics(self, name: str, version: int, timeout: float = PATIENCE) -> list[Json]:
        """The first diagnostics published for this version."""
        return self.published(name, version, timeout)[1]

    def published(self, name: str, version: int, timeout: float = PATIENCE) -> tuple[float, list[Json]]:
        """When (perf_counter) and what was first published for this version."""
        uri = self.uri(name)

        def wanted(m: Json) -> bool:
            p = m.get("params", {})
            is_ours = m["method"] == "textDocument/publishDiagnostics" and p["uri"] == uri
            return is_ours and p.get("version") == version

        moment, message = self.wait(wanted, timeout)
        return moment, message["params"]["diagnostics"]

    def settled(self, name: str, version: int, timeout: float = PATIENCE) -> tuple[float, Json]:
        """When the solver had finished with this version, and the status it was told with."""
        uri = self.uri(name)

        def wanted(m: Json) -> bool:
            p = m.get("params", {})
            ours = m["method"] == "cuda-lsp/fileStatus" and p["uri"] == uri
            return ours and p["version"] == version and p["refined"]

        moment, message = self.wait(wanted, timeout)
        return moment, message["params"]

    # --------------------------------------------------------------------------------- protocol

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def request(self, method: str, params: Any, timeout: float = PATIENCE) -> Any:
        message = self.answer(self.ask(method, params), timeout)
        if "error" in message:
            raise RuntimeError(message["error"])
        return message["result"]

    def ask(self, method: str, params: Any) -> int:
        """Send a request and leave its answer for later; its number."""
        self.number += 1
        self._send({"id": self.number, "method": method, "params": params})
        return self.number

    def answer(self, number: int, timeout: float = PATIENCE) -> Json:
        """The message that answers a request, whatever it says."""
        deadline = time.monotonic() + timeout
        while number not in self.answers:
            self._keep(*self._next(deadline - time.monotonic()))
        return self.answers.pop(number)

    def wait(self, wanted: Any, timeout: float = PATIENCE, seen: int = 0) -> tuple[float, Json]:
        """The first notification that is wanted, and when it came; the first ``seen`` do not count."""
        deadline = time.monotonic() + timeout
        while True:
            for moment, message in self.notifications[seen:]:
                if wanted(message):
                    return moment, message
            seen = len(self.notifications)
            self._keep(*self._next(deadline - time.monotonic()))

    def quiet(self, seconds: float) -> None:
        """Read whatever comes for a while."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                self._keep(*self._next(left))
            except TimeoutError:
                return

    def close(self, *, shutdown: bool = True) -> int:
        """Leave politely (or not) and return the server's exit status."""
        if shutdown:
            self.request("shutdown", None)
        self.notify("exit", None)
        return self.process.wait(PATIENCE)

    def processor_seconds(self) -> float:
        """Processor time that the server and its analysis process have used so far; Linux only."""
        server = self.process.pid
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        return sum(time.clock_gettime(~int(pid) << 3 | _OF_PROCESS) for pid in (server, *children))

    @property
    def stderr(self) -> str:
        return b"".join(self.errors).decode("utf-8", "replace")

    def asked(self, method: str, timeout: float = PATIENCE) -> Json:
        """The parameters of the last request of this kind that the server has made; waits for one."""
        deadline = time.monotonic() + timeout
        while method not in self.requests:
            self._keep(*self._next(deadline - time.monotonic()))
        return self.requests[method]

    def begun(self, title: str) -> str:
        """The title of a progress that has begun with these words."""

        def wanted(m: Json) -> bool:
            return m["method"] == "$/progress" and m["params"]["value"].get("title", "").startswith(title)

        return self.wait(wanted)[1]["params"]["value"]["title"]

    def _keep(self, moment: float, message: Json) -> None:
        if "id" in message and "method" in message:
            self.requests[message["method"]] = message.get("params") or {}
            self.requested.append(message["method"])
            items = self.requests[message["method"]].get("items", [])
            names = [str(item.get("scopeUri")).rpartition("/")[2] for item in items]
            configured = [self.configured.get(name, {}) for name in names]
            opened = self.opens if self.opens is not None else {"success": True}
            if message["method"] == "window/showDocument" and "error" in opened:
                return self._send({"id": message["id"], **opened})
            results: Json = {"workspace/configuration": configured, "window/showDocument": opened}
            result = results.get(message["method"])
            if message["method"] == "window/showMessageRequest":  # whoever is asked takes the first
                result = message["params"]["actions"][0]
            self._send({"id": message["id"], "result": result})
        elif "method" in message:
            self.notifications.append((moment, message))
        else:
            self.answers[message["id"]] = message
        return None

    def _next(self, timeout: float) -> tuple[float, Json]:
        try:
            moment, message = self.messages.get(timeout=max(0.0, timeout))
        except queue.Empty:
            raise TimeoutError(f"the server said nothing; its log:\n{self.stderr[-2000:]}") from None
        if message is None:
            raise ConnectionError(f"the server left; its log:\n{self.stderr[-2000:]}")
        return moment, message

    def _send(self, message: Json) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream
        while True:
            length = 0
            while line := stream.readline().strip():
                if line.lower().startswith(b"content-length"):
                    length = int(line.split(b":")[1])
            if not length:
                self.messages.put((time.perf_counter(), None))
                return
            self.messages.put((time.perf_counter(), json.loads(stream.read(length))))

    def _read_errors(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.errors.append(line)
