"""The fields of plain structures of host code, in their order. Read from text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.frontend.host.text import HostText, split_arguments

_NAME = r"[A-Za-z_]\w*"
_DECLARED = re.compile(rf"\A[\s*&]*({_NAME})\s?(\[[^\[\]]*\])?\s?(?:=[^=]*)?\Z")
_FUNCTION = re.compile(r"\)\s?(?:(?:const|noexcept|override|final)\s?){0,3}\Z")
_OTHER_WORDS = re.compile(r"\b(?:private|protected|public|static|using|typedef|union|struct|enum)\b|#")
_LONGEST = 2000
"""Characters of a structure that is read."""
Field = tuple[str, bool]
"""The name, and whether it is an array."""


def fields_of(text: HostText, type_: str) -> list[Field] | None:
    """The fields of a structure in their order; None where it is more than they."""
    heads = list(re.compile(rf"\bstruct\s{type_}\s?([:{{])").finditer(text.plain))
    opening = heads[0].end() - 1 if len(heads) == 1 and heads[0][1] == "{" else -1
    closing = text.braces.closing.get(opening, -1)
    if not 0 <= opening < closing < opening + _LONGEST:
        return None
    found: list[Field] = []
    for piece, has_body in _statements(text, opening + 1, closing):
        if _OTHER_WORDS.search(piece) or re.search(rf"\b{type_}\s?\(", piece):
            return None
        if has_body and _FUNCTION.search(piece):
            continue
        first, *others = split_arguments(piece)
        _, _, last = re.sub(r"=.*", "", first, flags=re.S).strip().rpartition(" ")
        for declarator in (last, *others) if piece.strip() else ():
            name = _DECLARED.match(declarator)
            if name is None:
                return None
            found.append((name[1], name[2] is not None))
    return found


def _statements(text: HostText, begin: int, end: int) -> Iterator[tuple[str, bool]]:
    """The statements of a structure, and whether a body in braces follows, which is left out."""
    start = at = begin
    while at < end:
        if text.plain[at] in "{;":
            yield text.plain[start:at], text.plain[at] == "{"
            at = text.braces.closing.get(at, at)
            start = at + 1
        at += 1
