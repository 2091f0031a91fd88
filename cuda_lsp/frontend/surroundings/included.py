"""Which files a text includes, directly and through others, told from the text alone.

libclang tells either what stands before the first declaration or what stands behind it, not both (its list
of inclusions leaves out the one or the other when the former are precompiled). What conditional compilation
leaves out counts as well: a file too many is harmless here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.M)
_MOST_FILES = 200
_MOST_BYTES = 1 << 20


def included_texts(path: Path, text: str, folders: Sequence[str]) -> dict[Path, str]:
    """The files that ``text`` includes, with what they say; ``folders`` are those of the include path."""
    found: dict[Path, str] = {}
    pending = [(path, text)]
    while pending:
        where, content = pending.pop()
        for name in _INCLUDE.findall(content):
            header = resolved(where, name, folders)
            if header is None or header in found or len(found) >= _MOST_FILES:
                continue
            found[header] = _text(header)
            pending.append((header, found[header]))
    return found


def contents_digest(paths: Iterable[Path], seed: bytes) -> bytes:
    """Changes when one of the files does, or ``seed``."""
    sha = hashlib.sha256(seed)
    for path in sorted(paths):
        try:
            sha.update(str(path).encode() + path.read_bytes())
        except OSError:  # gone since it was parsed: as good as a different header
            sha.update(b"unreadable")
    return sha.digest()


def resolved(where: Path, name: str, folders: Sequence[str]) -> Path | None:
    """The file that ``#include "name"`` in ``where`` means; None: there is none."""
    candidates = (Path(folder) / name for folder in (where.parent, *folders))
    return next((candidate.resolve() for candidate in candidates if candidate.is_file()), None)


def _text(header: Path) -> str:
    try:
        if header.stat().st_size > _MOST_BYTES:
            return ""
        return header.read_text(encoding="utf-8", errors="replace")
    except OSError:  # gone since it was seen: it says nothing
        return ""
