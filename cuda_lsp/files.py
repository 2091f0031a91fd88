"""The one reader of files that somebody's project holds: regular files, of bounded size, never waiting.

A project may hold a link to ``/dev/zero``, a pipe that nobody writes to, or a header of a gigabyte. What is
no regular file is refused before it is opened; of a regular one no more is read than it says it has, so that
the kernel's own files (``/proc``), which say that they are empty, are.

A text that is not on disk (of an index, of standard input) can stand in for a file (``instead``). Where the
files of another machine are analysed, copies lie below a folder, and all paths lead there (``below``).
What the analysis of a file is told here can be noted (``noting``): its result holds for as long as each
question gets the same answer.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import field, frozen

_MIB = 1 << 20
SETTINGS_LIMIT = 1 * _MIB
SOURCE_LIMIT = 16 * _MIB
"""Bytes of one source or header: some 400,000 lines."""
_LARGEST_REMEMBERED = 1 << 18
_MOST_REMEMBERED = 32 * _MIB
"""Bytes of one file, and of all, whose contents a process remembers: all that is around a file."""
_SETTLED_NS = 2_000_000_000
"""What changed longer ago has another time when it changes again, also where clocks of disks are coarse."""
DATABASE_LIMIT = 128 * _MIB
"""Bytes of a compilation database: those of the largest projects take some 50 MiB."""


Question = tuple[str, str]
"""What is asked of a path: ``kind``, ``presence``, ``size``, ``contents``, ``target``, ``names SUFFIX …``; or
what another room answers (``answering``), with words behind it."""

ABSENT, REGULAR, FOLDER, OTHER = "absent", "regular", "folder", "other"


@frozen
class Notes:
    """``answers`` to the questions that were asked of the disk.

    ``doubts``: why they may not be all that a result hangs on, or not to be had again.
    """

    answers: dict[Question, str] = field(factory=dict[Question, str])
    doubts: set[str] = field(factory=set[str])

    def note(self, question: Question, answer: str) -> None:
        """An answer; one that was another before is a doubt."""
        if self.answers.setdefault(question, answer) != answer:
            self.doubts.add(f"{question[1]} changed meanwhile")


_notes: Notes | None = None


@contextmanager
def noting() -> Generator[Notes]:
    """While this process (one thread of it) asks, note what is answered."""
    global _notes
    _notes = notes = Notes()
    try:
        yield notes
    finally:
        _notes = None


def is_noting() -> bool:
    """Whether somebody wants to know all that a result hangs on."""
    return _notes is not None


def doubt(reason: str) -> None:
    """Something may be read that no question here was asked about."""
    if _notes is not None:
        _notes.doubts.add(reason)


def answer(question: Question) -> str:
    """What is answered now."""
    (asked, *suffixes), path = question[0].split(), question[1]
    if asked in _others:
        return _others[asked](path, suffixes)
    return _digest_of_names(path, suffixes) if asked == "names" else _ANSWERS[asked](path)


_others: dict[str, Callable[[str, Sequence[str]], str]] = {}


def answering(asked: str, answers: Callable[[str, Sequence[str]], str]) -> None:
    """What answers a question about a path and words; no other question that it asks is noted."""
    _others[asked] = answers


def told(asked: str, path: Path | str, words: Collection[str]) -> str:
    """The answer to such a question."""
    global _notes
    sorted_, notes = sorted(words), _notes
    _notes = None
    try:
        found = _others[asked](str(path), sorted_)
    finally:
        _notes = notes
    return _noted(" ".join((asked, *sorted_)), path, found)


_copies = ""
_overlay: tuple[str, ...] = ()


def below(folder: str, overlay: str) -> None:
    """For the rest of this process all paths that are asked for lead to copies below ``folder``.

    ``overlay``: the file that tells clang the same. Paths are absolute, or mean nothing.
    """
    global _copies, _overlay
    _copies, _overlay = os.path.realpath(folder), ("-ivfsoverlay", overlay)


def clang_flags() -> tuple[str, ...]:
    """What makes clang read what is read here."""
    return _overlay


def _at(path: Path | str) -> str:
    """Where a path leads to."""
    return f"{_copies}{os.sep}{path}" if _copies else str(path)


_instead: dict[str, bytes] = {}


def instead(path: Path | str, data: bytes) -> None:
    """For the rest of this process and of its forks: a file of that name is there and holds ``data``."""
    _instead[os.path.realpath(path)] = data


def _stand_in(path: Path | str) -> bytes | None:
    return _instead.get(os.path.realpath(path)) if _instead and "\0" not in str(path) else None


def _noted(asked: str, path: Path | str, answer: str) -> str:
    if _notes is not None:
        _notes.note((asked, str(path)), answer)
    return answer


def kind(path: Path | str) -> str:
    """What the path leads to, through links that end."""
    return _noted("kind", path, _kind(path))


def _kind(path: Path | str) -> str:
    if _stand_in(path) is not None:
        return REGULAR
    try:
        mode = os.stat(_at(path)).st_mode
    except (OSError, ValueError):  # the latter: a NUL in the name
        return ABSENT
    return REGULAR if stat.S_ISREG(mode) else FOLDER if stat.S_ISDIR(mode) else OTHER


def is_regular(path: Path | str) -> bool:
    """Whether the path leads, through links that end, to a regular file."""
    return kind(path) == REGULAR


def exists(path: Path | str) -> bool:
    """Whether the path leads to anything."""
    return kind(path) != ABSENT


def is_there(path: Path | str) -> bool:
    """Whether there is anything of that name, a link that leads nowhere too."""
    return _noted("presence", path, _presence(path)) != ABSENT


def _presence(path: Path | str) -> str:
    return "present" if _stand_in(path) is not None or os.path.lexists(_at(path)) else ABSENT


def target(path: Path | str) -> str:
    """The path without links; those that go round stay."""
    return _noted("target", path, _target(path))


def _target(path: Path | str) -> str:
    try:
        found = os.path.realpath(_at(path))
        return found.removeprefix(_copies) or os.sep
    except ValueError:  # a NUL in the name
        return str(path)


def size(path: Path | str) -> int:
    """Bytes of a file. Raises OSError."""
    try:
        return int(_noted("size", path, _size(path)))
    except ValueError:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None


def _size(path: Path | str) -> str:
    if (data := _stand_in(path)) is not None:
        return str(len(data))
    try:
        return str(os.stat(_at(path)).st_size)
    except (OSError, ValueError):
        return ABSENT


def stamp(path: Path | str) -> tuple[int, int]:
    """Changes with a file, for what a process remembers of it; not noted. Raises OSError."""
    status = os.stat(_at(path))
    return status.st_mtime_ns, status.st_size


def names(folder: Path | str, suffixes: Collection[str]) -> list[tuple[str, bool]]:
    """Folders in a folder, and what else has one of the suffixes: by name, and whether it is a folder.

    A link to a folder is none. Raises OSError.
    """
    asked = " ".join(("names", *sorted(suffixes)))
    try:
        found = _names(folder, suffixes)
    except OSError:
        _noted(asked, folder, ABSENT)
        raise
    _noted(asked, folder, _digest_of(found))
    return found


def _names(folder: Path | str, suffixes: Collection[str]) -> list[tuple[str, bool]]:
    with os.scandir(_at(folder)) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    return sorted((n, is_folder) for n, is_folder in found if is_folder or os.path.splitext(n)[1] in suffixes)


def _digest_of(found: list[tuple[str, bool]]) -> str:
    return hashlib.sha256(repr(found).encode("utf-8", "surrogatepass")).hexdigest()


def walk(top: Path | str, suffixes: Collection[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """As ``os.walk``: a folder, the names of those in it, which may be thinned out, and of such files."""
    pending = [str(top)]
    while pending:
        folder = pending.pop()
        try:
            found = names(folder, suffixes)
        except OSError:
            continue
        below = [name for name, is_folder in found if is_folder]
        yield folder, below, [name for name, is_folder in found if not is_folder]
        pending += [os.path.join(folder, name) for name in reversed(below)]


def read_bytes(path: Path | str, limit: int = SOURCE_LIMIT) -> bytes:
    """The bytes of a regular file. Raises OSError, whose ``strerror`` is for people."""
    try:
        data = _read(path, limit)
    except OSError as error:
        if error.errno == errno.EFBIG:
            size(path)  # another reader may take more of it
        else:
            _noted("contents", path, ABSENT)
        raise
    if _notes is not None:
        _noted("contents", path, hashlib.sha256(data).hexdigest())
    return data


def _read(path: Path | str, limit: int) -> bytes:
    if (data := _stand_in(path)) is not None:
        _bounded(len(data), path, limit)
        return data
    place = _at(path)
    try:
        status = os.stat(place)
        _checked(status, path, limit)
        if (data := _remembered.of(place, status)) is not None:
            return data
        descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except ValueError as error:
        raise OSError(errno.EINVAL, f"not a file name ({error})", str(path)) from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)  # another file may have taken its place
        data = file.read(_checked(status, path, limit))
    _remembered.keep(place, status, data)
    return data


class _Remembered:
    """Contents of files that were read, by their names, for as long as nothing tells that they changed.

    What changed a moment ago may change again while the clock stands: it is read again.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Stamp, bytes]] = {}  # the oldest first
        self._bytes = 0
        self._lock = threading.Lock()

    def of(self, place: str, status: os.stat_result) -> bytes | None:
        """What was read there, if it is the same file as it was."""
        known = self._known.get(place)
        return known[1] if known is not None and known[0] == _stamp_of(status) else None

    def keep(self, place: str, status: os.stat_result, data: bytes) -> None:
        """What was read there."""
        changed = max(status.st_mtime_ns, status.st_ctime_ns)
        settled = time.time_ns() - changed > _SETTLED_NS
        with self._lock:
            before = self._known.pop(place, None)
            self._bytes -= len(before[1]) if before is not None else 0
            if settled and len(data) == status.st_size <= _LARGEST_REMEMBERED:
                self._known[place] = _stamp_of(status), data
                self._bytes += len(data)
            while self._bytes > _MOST_REMEMBERED:
                self._bytes -= len(self._known.pop(next(iter(self._known)))[1])


_Stamp = tuple[int, int, int, int, int]


def _stamp_of(status: os.stat_result) -> _Stamp:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev


_remembered = _Remembered()


def _digest_of_contents(path: str) -> str:
    try:
        return hashlib.sha256(_read(path, DATABASE_LIMIT)).hexdigest()
    except OSError:
        return ABSENT


def _digest_of_names(path: str, suffixes: Collection[str]) -> str:
    try:
        return _digest_of(_names(path, suffixes))
    except OSError:
        return ABSENT


def read_text(path: Path | str, limit: int = SOURCE_LIMIT, *, errors: str = "replace") -> str:
    """The text of a regular file, read as UTF-8 with universal line ends.

    Raises OSError, and with ``errors="strict"`` UnicodeDecodeError.
    """
    text = read_bytes(path, limit).decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _checked(status: os.stat_result, path: Path | str, limit: int) -> int:
    """The file's size in bytes. Raises OSError."""
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return _bounded(status.st_size, path, limit)


def _bounded(size: int, path: Path | str, limit: int) -> int:
    if size > limit:
        raise OSError(errno.EFBIG, f"larger than {limit / _MIB:.0f} MiB", str(path))
    return size


_ANSWERS: dict[str, Callable[[str], str]] = {
    "kind": _kind,
    "presence": _presence,
    "size": _size,
    "contents": _digest_of_contents,
    "target": _target,
}
