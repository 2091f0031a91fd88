"""Every file that clang could read or look for behind some texts, asked of the disk so that it is noted.

clang asks the disk itself, which nobody sees. What it asks follows from the texts: the names behind
``#include``, ``#import``, ``#include_next`` and ``__has_include``, in the folder of the file that says so and
in those of the include path. All of them are asked for, in all of the folders, whatever conditions and
order say: more than clang does. Where a text leaves open what it asks for, that is a doubt.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from cuda_lsp import files

_SPLICE = re.compile(r"(?:\\|\?\?/)[ \t]*\n")
_COMMENT = re.compile(r"/\*(?:.*?\*/|.*\Z)", re.S)
_HASH = r"(?:#|%:|\?\?=)\s*"
_READS = re.compile(rf"^[^\S\n]*{_HASH}(?:include(?:_next)?|import|embed)\b([^\n]*)", re.M)
_PLAIN = re.compile(r'\A[ \t]*["<]([^">\n]+)[">]')
_IS_KNOWN = re.compile(r"(?:ifn?def|defined)[ \t]*(?:\([ \t]*)?__has_\w+")
_ASKS = re.compile(r"__has_(?:include(?:_next)?|embed)\b([ \t]*\([ \t]*[\"<])?")
_OTHER = re.compile(
    rf"__(?:DATE|TIME|TIMESTAMP)__"
    rf"|(?:{_HASH}pragma|_Pragma)(?:(?!{_HASH}pragma|_Pragma)[^\n])*\b(?:dependency|module|include_alias)\b"
)


def note_all(
    roots: Iterable[tuple[Path, str]],
    folders: Sequence[str],
    mentioned: Callable[[str], Iterable[str]],
    most: int,
) -> None:
    """Ask for all that the texts of ``roots`` could include; ``folders``: the include path.

    ``mentioned``: the names in a text; ``most``: files that are read.
    """
    pending = [(str(path.parent), text) for path, text in roots]
    folders = (*dict.fromkeys(folder for folder, _ in pending), *folders)  # a file's folder is on its path
    known: set[tuple[str, str]] = set()
    while pending:
        here, text = pending.pop()
        for name in _names(text, mentioned):
            files.kind(name)  # clang looks in its process's folder whether what was not there has come
            for folder in (here, *folders):
                path = os.path.join(folder, name)
                if files.kind(path) != files.REGULAR:
                    continue
                place = os.path.dirname(path)
                file = files.target(path), files.target(place)
                if file in known:
                    continue
                known.add(file)
                if len(known) > most:
                    files.doubt("too many headers")
                    return
                try:
                    pending.append((place, files.read_text(path)))
                except OSError:
                    files.doubt(f"{path} cannot be read")


def note_forced(header: str) -> None:
    """Ask for what clang would read in place of a header that flags include before the text."""
    for precompiled in (f"{header}.pch", f"{header}.gch"):
        if files.exists(precompiled):
            files.doubt(f"clang reads {precompiled}")


def _names(text: str, mentioned: Callable[[str], Iterable[str]]) -> dict[str, None]:
    """Names that preprocessing a text may look for; a doubt is noted where it may look for others."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    joined = _SPLICE.sub("", lines)
    forms = (lines, joined, _COMMENT.sub(" ", joined))
    names = dict.fromkeys(name for form in forms for name in mentioned(form))
    for form in forms[1:]:
        plain = [_PLAIN.match(operand) for operand in _READS.findall(form)]
        if any(match is None or match[1] not in names for match in plain):
            files.doubt("what #include reads depends on macros")
        if any(not literal for literal in _ASKS.findall(_IS_KNOWN.sub("", form))):
            files.doubt("what __has_include asks for depends on macros")
        if _OTHER.search(form):
            files.doubt("what clang makes of it depends on the time, or on files that no #include names")
    return names
