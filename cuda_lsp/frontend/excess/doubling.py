"""What declarations ask for that build on one another: default arguments, and members of records.

A default argument that calls a function stands for its default arguments, too, and clang follows them twice
as often with each level; a record with two members of another has twice its members. Both are counted in the
order of the text, where what is used stands before its user. A text that asks for too much is not read at
all: a declaration without what it asks for would be another one, for the kernels that use it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cuda_lsp.frontend import budgets
from cuda_lsp.frontend.excess.statements import NOT_CODE

_LEVELS = 12  # fewer of anything that doubles are not worth a look
_LONGEST = 20_000
_DEFAULT = rb"=\s*(?:[A-Za-z_]\w*\s*::\s*)*(?P<called>[A-Za-z_]\w*)\s*\([^(){};]*\)(?=\s*[,)])"
_DEFAULTS = re.compile(_DEFAULT)
_CALLS = re.compile(
    NOT_CODE + rb"|(?P<default>" + _DEFAULT + rb")|(?P<word>[A-Za-z_]\w*)|(?P<bracket>[();{}])", re.S
)
_RECORD = re.compile(rb"\b(?:struct|class|union)\b([^;{}()]{0,1000})\{")
_ALIAS = re.compile(rb"\}\s*([A-Za-z_]\w*)\s*;")
_WORD = re.compile(rb"[A-Za-z_]\w*")
_BRACE = re.compile(rb"[{}]")
_ASIDE = re.compile(rb"\[[^\[\]]*\]|<[^<>]*>|=[^,]*|//[^\n]*")


def doubling_defaults(data: bytes) -> str:
    """Why the default arguments of a text are too much; "" when they are not."""
    if len(_DEFAULTS.findall(data)) < _LEVELS:
        return ""
    calls: dict[bytes, int] = {}  # function → calls that its default arguments ask for
    stack: list[bytes] = []
    asked = 0  # by the default arguments of the outermost parenthesis so far
    word = b""
    for match in _CALLS.finditer(data):
        bracket = match["bracket"]
        if bracket == b"(":
            stack.append(word)
        elif bracket == b")" and stack:
            name = stack.pop()
            if not stack and asked:
                calls[name] = max(asked, calls.get(name, 0))
        elif bracket:
            stack.clear()
        elif match["default"] and stack:
            asked += 2 * (1 + calls.get(match["called"], 0))
            if asked > budgets.MOST_DEFAULTS:
                return f"default arguments call one another more than {budgets.MOST_DEFAULTS:,} times"
        word = match["word"] or b""
        asked = asked if stack else 0
    return ""


def doubling_records(data: bytes) -> str:
    """Why a record of a text is too much; "" when none is."""
    if data.count(b"struct") + data.count(b"class") + data.count(b"union") < _LEVELS:
        return ""
    records = list(_RECORD.finditer(data))
    sizes: dict[bytes, int] = {}
    for match in records if len(records) >= _LEVELS else ():
        end = _end_of(data, match.end())
        inside = data[match.end() : end]
        named, _, bases = match[1].partition(b":")
        members = sum(sizes.get(word, 0) for word in set(_WORD.findall(bases)))
        members += sum(_members(piece, sizes) for piece in inside.split(b";"))
        alias = _ALIAS.match(data, end)
        names = [*_WORD.findall(named)[:1], *([alias[1]] if alias else [])]
        if members > budgets.MOST_MEMBERS:
            told = (names or [b"a record"])[0].decode()
            return f"{told} has more than {budgets.MOST_MEMBERS:,} members, those of its members counted"
        for name in names:
            sizes[name] = max(members, sizes.get(name, 0))
    return ""


def _members(piece: bytes, sizes: Mapping[bytes, int]) -> int:
    """How many members a declaration makes: of the records that it names, for each of its names."""
    if not piece.strip() or b"(" in piece:
        return 0
    each = max(1, sum(sizes.get(word, 0) for word in set(_WORD.findall(piece))))
    return each * sum(b"*" not in one and b"&" not in one for one in _ASIDE.sub(b"", piece).split(b","))


def _end_of(data: bytes, opening: int) -> int:
    depth = 1
    for match in _BRACE.finditer(data, opening, opening + _LONGEST):
        depth += 1 if match[0] == b"{" else -1
        if not depth:
            return match.start()
    return min(len(data), opening + _LONGEST)
