"""Typing that no finding should mind, and what a client may see while it goes on.

Spaces, line breaks and comments come and go; statements that nothing uses are typed letter by letter, broken
until they end. The accesses of findings are never edited, so that each of them has to be told of every text;
where white space and comments alone have changed nothing else may be told, and the verdicts stay settled.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from client import Client, Json

_SPACE = re.compile(r"\s+|/\*.*?\*/|//[^\n]*", re.DOTALL)
_COMMENTS = ("// note: s[0] = 1;", "// TODO", "/* aside */")


class Edit(NamedTuple):
    """What stands between two offsets is replaced. ``calm``: the text behind has the tokens of the first."""

    start: int
    end: int
    text: str
    calm: bool


class Seen(NamedTuple):
    """A diagnostic as somebody reads it: white space apart, the texts of its places."""

    code: str
    place: str
    others: tuple[str, ...]
    severity: int
    message: str


Place = tuple[str, str, tuple[str, ...]]


def plain(text: str) -> str:
    """Without white space and comments."""
    return _SPACE.sub("", text)


class Typist:
    """Types in one document of a client and keeps account of what is published. ASCII texts only."""

    def __init__(self, client: Client, name: str, text: str, seed: int) -> None:
        self.client = client
        self.name = name
        self.text = text
        self.random = random.Random(seed)
        self.milliseconds: list[float] = []
        self.processor_ms: list[float] = []  # of the server and its analysis process, until the client knows
        self.complaints: list[str] = []
        client.open(name, text)
        client.settled(name, 1, 120)
        self._texts = {1: (text, True)}
        self._settled = 1
        self._read = 0
        self._told = self._last(1)
        self._findings = self._seen(self._told, text)
        self._places = Counter(place for place in map(_place, self._findings) if place[0])
        self._verdicts = self._status(1)
        self._read = len(client.notifications)

    @property
    def findings(self) -> int:
        """Of the text that nobody has typed in."""
        return sum(self._places.values())

    def type(self, keystrokes: int) -> None:
        """So many edits, each as soon as the first answer to the one before has come, or a little later."""
        edits = self._edits()
        for _ in range(keystrokes):
            self._make(next(edits))
            pause = self.random.choice((0, 0, 0, 0.01, 0.05, 0.2))
            if pause:
                self.client.quiet(pause)
            self._judge()

    def settle(self) -> None:
        """Waits until nothing more is to come of the newest text."""
        if self._settled != max(self._texts):
            self.client.settled(self.name, max(self._texts), 120)
        self._judge()

    # ---------------------------------------------------------------------------------- typing

    def _edits(self) -> Iterator[Edit]:
        while True:
            yield from self.random.choice(
                (self._spaces, self._breaks, self._inside, self._comment, self._statement)
            )()

    def _spaces(self) -> Iterator[Edit]:
        """At the end of a line; gone again."""
        at = self._end_of(self._line(lambda line: not line.lstrip().startswith("#")))
        for many in range(self.random.randint(1, 3)):
            yield Edit(at + many, at + many, " ", True)
        yield Edit(at, at + many + 1, "", True)

    def _breaks(self) -> Iterator[Edit]:
        """An empty line comes, and goes."""
        at = self._end_of(self._line(lambda line: "#" not in line))
        yield Edit(at, at, "\n", True)
        yield Edit(at, at + 1, "", True)

    def _inside(self) -> Iterator[Edit]:
        """A space between two tokens, maybe of an access that a finding is about."""
        number = self._line(
            lambda line: re.search(r"[(\[,] ?\w", line) and "#" not in line and "//" not in line
        )
        begin = self._start_of(number)
        places = [m.end() for m in re.finditer(r"[(\[,]", self.text.split("\n")[number])]
        if places:
            at = begin + self.random.choice(places)
            yield Edit(at, at, " ", True)
            yield Edit(at, at + 1, "", True)

    def _comment(self) -> Iterator[Edit]:
        """Letter by letter at the end of a line, and gone in one go. A lone ``/`` is broken code."""
        at = self._end_of(self._line(lambda line: "#" not in line and "//" not in line))
        typed = " " + self.random.choice(_COMMENTS)
        for many, letter in enumerate(typed, 1):
            open_comment = typed[1:3] == "/*" and many < len(typed)
            yield Edit(at + many - 1, at + many - 1, letter, many == 1 or (many > 2 and not open_comment))
        yield Edit(at, at + len(typed), "", True)

    def _statement(self) -> Iterator[Edit]:
        """A declaration that nobody uses, behind a statement."""
        at = self._end_of(
            self._line(lambda line: line.startswith("  ") and line.endswith(";") and "for" not in line)
        )
        typed = f" int q{self.random.randint(0, 999)} = {self.random.randint(0, 99)};"
        for many, letter in enumerate(typed):
            yield Edit(at + many, at + many, letter, many == 0)
        yield Edit(at, at + len(typed), "", True)

    def _line(self, wanted: object) -> int:
        numbers = [n for n, line in enumerate(self.text.split("\n")) if wanted(line)]  # type: ignore[operator]
        return self.random.choice(numbers)

    def _start_of(self, number: int) -> int:
        return sum(len(line) + 1 for line in self.text.split("\n")[:number])

    def _end_of(self, number: int) -> int:
        return self._start_of(number) + len(self.text.split("\n")[number])

    def _make(self, edit: Edit) -> None:
        start, end = (_position(self.text, place) for place in (edit.start, edit.end))
        self.text = self.text[: edit.start] + edit.text + self.text[edit.end :]
        used = self.client.processor_seconds()
        began = time.perf_counter()
        version = self.client.edit(self.name, start, end, edit.text)
        self._texts[version] = (self.text, edit.calm)
        moment, _ = self.client.published(self.name, version)
        self.milliseconds.append(1e3 * (moment - began))
        self.processor_ms.append(1e3 * (self.client.processor_seconds() - used))

    # --------------------------------------------------------------------------------- judging

    def _judge(self) -> None:
        """Look at all that has come since the last time."""
        uri, notifications = self.client.uri(self.name), self.client.notifications
        for _, message in notifications[self._read :]:
            params = message.get("params", {})
            if isinstance(params, dict) and params.get("uri") == uri:
                if message["method"] == "textDocument/publishDiagnostics":
                    self._judge_diagnostics(params)
                elif message["method"] == "cuda-lsp/fileStatus":
                    self._judge_status(params)
        notifications.clear()
        self._read = 0
        self._texts = {v: known for v, known in self._texts.items() if v >= max(self._texts) - 3}

    def _judge_diagnostics(self, params: Json) -> None:
        if params["version"] not in self._texts:
            return
        text, calm = self._texts[params["version"]]
        seen = self._seen(params["diagnostics"], text)
        told = Counter(map(_place, seen))
        lost = self._places - told
        if lost:
            self._complain(
                params["version"], f"lost {list(lost)}, there is {[k for k in told if k not in self._places]}"
            )
        stale = [
            text for place in told if place[0] for text in (place[1], *place[2]) if not _is_expression(text)
        ]
        if calm and Counter(seen) != Counter(self._findings):
            more, less = Counter(seen) - Counter(self._findings), Counter(self._findings) - Counter(seen)
            self._complain(params["version"], f"new {list(more)} instead of {list(less)}")
        elif stale:
            self._complain(params["version"], f"places that are stale: {stale}")

    def _judge_status(self, params: Json) -> None:
        self._settled = params["version"] if params["refined"] else 0
        known = self._texts.get(params["version"])
        if known is None or not known[1]:
            return
        if not params["refined"]:
            self._complain(params["version"], "proving again what nobody has changed")
        if _verdicts(params) != self._verdicts:
            self._complain(params["version"], f"{_verdicts(params)} and not {self._verdicts}")

    def _complain(self, version: int, what: str) -> None:
        text = self._texts[version][0]
        before = self._texts.get(version - 1, (text, False))[0]
        self.complaints.append(f"{self.name} {version}: {what}; after {_difference(before, text)}")

    def _last(self, version: int) -> list[Json]:
        """The diagnostics that were published last for a version."""
        uri, found = self.client.uri(self.name), []
        for _, message in self.client.notifications:
            p = message.get("params")
            if (
                message["method"].endswith("/publishDiagnostics")
                and p["uri"] == uri
                and p["version"] == version
            ):
                found = p["diagnostics"]
        return found

    def _status(self, version: int) -> str:
        return _verdicts(self.client.settled(self.name, version)[1])

    def _seen(self, diagnostics: list[Json], text: str) -> list[Seen]:
        uri = self.client.uri(self.name)
        lines = text.split("\n")  # the texts have no other line ends

        def at(extent: Json) -> str:
            start, end = extent["start"], extent["end"]
            stretch = lines[start["line"] : end["line"] + 1]
            if not stretch or end["line"] >= len(lines):
                return "behind the text"
            outside = lines[start["line"]][: start["character"]][-1:], stretch[-1][end["character"] :][:1]
            stretch[-1] = stretch[-1][: end["character"]]
            stretch[0] = stretch[0][start["character"] :]
            found = "\n".join(stretch)
            cut = re.fullmatch(r"\w\w", outside[0] + found[:1]) or re.fullmatch(
                r"\w\w", found[-1:] + outside[1]
            )
            return f"{outside[0]}|{found}|{outside[1]}" if cut else plain(found)

        return [
            Seen(
                d.get("code", ""),
                at(d["range"]),
                tuple(
                    at(r["location"]["range"])
                    for r in d.get("relatedInformation") or ()
                    if r["location"]["uri"] == uri
                ),
                d["severity"],
                plain(d["message"]),
            )
            for d in diagnostics
        ]


def _place(seen: Seen) -> Place:
    return seen.code, seen.place, seen.others


def _is_expression(text: str) -> bool:
    """Whether a stretch looks like one: words are not cut, brackets are closed."""
    pairs = all(text.count(opening) == text.count(closing) for opening, closing in ("()", "[]"))
    return pairs and "|" not in text and text != "behind the text"


def _verdicts(status: Json) -> str:
    return json.dumps([(kernel["name"], kernel["verdict"]) for kernel in status["kernels"]])


def _position(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset), offset - text.rfind("\n", 0, offset) - 1


def _difference(before: str, after: str) -> str:
    """The line that was typed in, for people."""
    old, new = before.split("\n"), after.split("\n")
    changed = [f"{n + 1}: {line!r}" for n, line in enumerate(new) if n >= len(old) or old[n] != line]
    return changed[0] if changed else "nothing"
