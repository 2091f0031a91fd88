"""A client that does anything, with a model of its texts: the server answers, and ends as a fresh one would.

    python tests/fuzz/conversations.py --messages 10000 [--seed 1] [--jobs 2] [--seconds 60]

Opens, edits (whole texts, ranges, several at once, nonsense), saves, closes, asks, cancels, in one talk.
Every request is answered, no traceback is written, and after each stretch the diagnostics of every open
file equal those of a server that is only told its last text. Each conversation has a seed, and ends at its
first failure. Prints those, and counts; exits with 1 if there are any.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "protocol"))

from client import Client
from mutation import WORDS, originals, text_of

_FILES = 4
_STRETCH = 200  # messages between comparisons
_TALK = 2_000  # messages of one conversation
_BROKEN = re.compile(r"in kernel '([^'\n]+)', not understood: ")
_GUESSES = ("read as if ", "nothing declares ")
_ASKED = ("hover", "codeLens", "inlayHint", "codeAction", "diagnostic")


class Conversation:
    """One client, its server, and what the client knows of its documents."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.client = Client(folder, self.chance.choice(("utf-8", "utf-16", "utf-32")))
        self.encoding = self.client.capabilities["positionEncoding"]
        self.texts: dict[str, str] = {}
        self.waiting: list[int] = []
        self.sent = 0

    def step(self) -> None:
        """One message."""
        self.sent += 1
        name = f"{self.chance.randrange(_FILES)}.cu"
        if name not in self.texts:
            self.open(name)
        else:
            kinds = (self.edit, self.edit, self.edit, self.edit, self.ask, self.ask, self.rewrite, self.leave)
            self.chance.choice(kinds)(name)

    def open(self, name: str) -> None:
        self.texts[name] = self.chance.choice(originals())
        self.client.open(name, self.texts[name])

    def edit(self, name: str) -> None:
        """Some edits of one message, each in the text that the ones before it left."""
        changes: list[Any] = []
        for _ in range(self.chance.choice((1, 1, 1, 2, 4))):
            text = self.texts[name]
            start = between(text, self.chance.randrange(len(text) + 1))
            end = between(text, min(len(text), start + self.chance.choice((0, 0, 0, 1, 3, 30))))
            new = self.chance.choice(("", " ", "\n", "x", "𝛼", "/*", "*/", *WORDS[:20]))
            span = {"start": self._position(text, start), "end": self._position(text, end)}
            changes.append({"range": span, "text": new})
            self.texts[name] = text[:start] + new + text[end:]
        self._change(name, changes)

    def rewrite(self, name: str) -> None:
        text = text_of(self.chance.randrange(1 << 20)) if self.chance.random() < 0.7 else ""
        self.texts[name] = text.encode("utf-8", "replace").decode()
        self._change(name, [{"text": self.texts[name]}])

    def leave(self, name: str) -> None:
        """Close it, or only say that it was saved."""
        document = {"textDocument": {"uri": self.client.uri(name)}}
        if self.chance.random() < 0.7:
            self.client.notify("textDocument/didSave", document)
        else:
            self.client.notify("textDocument/didClose", document)
            del self.texts[name]

    def ask(self, name: str) -> None:
        """A question at any place, there or not; some are taken back."""
        place = {"line": self.chance.randrange(60), "character": self.chance.randrange(120)}
        params = {
            "textDocument": {"uri": self.client.uri(name)},
            "position": place,
            "range": {"start": place, "end": {"line": place["line"] + 2, "character": 0}},
            "context": {"diagnostics": []},
        }
        method = self.chance.choice(_ASKED[:4])
        number = self.client.ask(f"textDocument/{method}", params)
        self.waiting.append(number)
        if self.chance.random() < 0.1:
            self.client.notify("$/cancelRequest", {"id": number})

    def settle(self) -> dict[str, list[Any]]:
        """Every question answered; the last diagnostics of each open file."""
        for number in self.waiting:
            self.client.answer(number, 120)
        self.waiting.clear()
        found: dict[str, list[Any]] = {}
        for name in self.texts:
            version = self.client.versions[name]
            self.client.settled(name, version, 240)
            found[name] = last_published(self.client, name, version)
        assert "Traceback" not in self.client.stderr, self.client.stderr[-3000:]
        self.client.notifications.clear()
        return found

    def _change(self, name: str, changes: list[Any]) -> None:
        self.client.versions[name] += 1
        document = {"uri": self.client.uri(name), "version": self.client.versions[name]}
        self.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def _position(self, text: str, at: int) -> dict[str, int]:
        """The place before the character ``at``: lines end with LF, CRLF or CR."""
        plain = text[:at].replace("\r\n", "\n").replace("\r", "\n")
        line = plain.rpartition("\n")[2]
        size = {"utf-8": len(line.encode()), "utf-16": len(line.encode("utf-16-le")) // 2}
        return {"line": plain.count("\n"), "character": size.get(self.encoding, len(line))}


def between(text: str, at: int) -> int:
    """The place in a text, or the one before it: none is between CR and LF."""
    return at - 1 if text[:at].endswith("\r") and text[at : at + 1] == "\n" else at


def last_published(client: Client, name: str, version: int) -> list[Any]:
    """Line and message of the findings that were told last of this version, sorted."""
    uri = client.uri(name)
    published = [
        m["params"]["diagnostics"]
        for _, m in client.notifications
        if m["method"] == "textDocument/publishDiagnostics"
        and m["params"]["uri"] == uri
        and m["params"].get("version") == version
    ]
    return sorted((d["range"]["start"]["line"], d["message"]) for d in published[-1])


def broken_lines(text: str, told: Sequence[tuple[int, str]]) -> set[int]:
    """Lines (from 0) of kernels that do not compile: from the name to the next kernel."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    lines: set[int] = set()
    for kernel in {found[1] for _, message in told if (found := _BROKEN.match(message))}:
        for begin in re.finditer(rf"\b{re.escape(kernel.split('<')[0])}\s*\(", plain):
            end = plain.find("__global__", begin.end())
            stop = plain.count("\n") if end < 0 else plain.count("\n", 0, end)
            lines.update(range(plain.count("\n", 0, begin.start()), stop + 1))
    return lines


def converse(folder: Path, seed: int, messages: int) -> int:
    """A whole conversation; how many findings the last texts have. Raises at the first failure."""
    talk = Conversation(folder, seed)
    try:
        while talk.sent < messages:
            for _ in range(min(_STRETCH, messages - talk.sent)):
                talk.step()
            found = talk.settle()
            fresh = Client(folder, talk.encoding)
            for name, text in talk.texts.items():
                fresh.open(name, text)
                fresh.settled(name, 1, 240)
                same = last_published(fresh, name, 1)
                kept = found[name]
                if any(message.startswith(_GUESSES) for _, message in (*same, *kept)):
                    continue  # what is guessed is guessed of the text that a file is opened with
                if any("clang cannot make it out" in message for _, message in same):
                    kept = [told for told in kept if told in same]  # hidden kernels keep what they had
                broken = broken_lines(text, same)  # and so do those that do not compile
                same, kept = (
                    [told for told in side if told[0] not in broken or _BROKEN.match(told[1])]
                    for side in (same, kept)
                )
                where = f"seed {seed}, after message {talk.sent}, {name}"
                assert same == kept, f"{where}:\n{found[name]}\ninstead of\n{same}"
            fresh.process.kill()
        return sum(map(len, found.values()))
    finally:
        talk.client.process.kill()


def _conversation(seed: int, until: float) -> tuple[int, str]:
    """How many messages there were, and what went wrong with them."""
    if time.time() > until:
        return 0, ""
    try:
        with tempfile.TemporaryDirectory() as folder:
            converse(Path(folder), seed, _TALK)
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return _TALK, f"{type(error).__name__}: {error}"
    return _TALK, ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first conversation")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no conversation after so many")
    arguments = parser.parse_args()
    started = time.time()
    seeds = range(arguments.seed, arguments.seed + -(-arguments.messages // _TALK))
    done = failed = 0
    with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as pool:
        talks = {pool.submit(_conversation, seed, started + arguments.seconds): seed for seed in seeds}
        for talk in as_completed(talks):
            messages, problem = talk.result()
            done, failed = done + messages, failed + bool(problem)
            if problem:
                print(f"seed {talks[talk]}: {problem}", flush=True)
    print(f"{done} messages from seed {arguments.seed}, {failed} failed, {time.time() - started:.0f} s")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
