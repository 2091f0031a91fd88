"""Host text: comments, strings and long white space go, and every other character is found again."""

from __future__ import annotations

import random
import re

from cuda_lsp.blanked import blanked
from cuda_lsp.frontend.host.text import HostText

_COMMENT_OR_STRING = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.S)


def random_texts(letters: str, count: int) -> list[str]:
    """Short texts of these letters, the same every time."""
    source = random.Random(7)
    return ["".join(source.choices(letters, k=source.randrange(14))) for _ in range(count)]


def test_comments_and_strings_are_what_a_lexer_says() -> None:
    for text in random_texts('/*"\\\na ', 20_000):
        spaces = _COMMENT_OR_STRING.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
        assert blanked(text) == spaces, repr(text)


def test_what_is_left_is_found_again_in_the_text() -> None:
    for text in random_texts("ab(; \n\t/*", 5_000):
        host = HostText(text)
        assert not re.search(r"\s\s", host.plain)
        for offset, character in enumerate(host.plain):
            if not character.isspace():
                assert text[host.original(offset)] == character
                assert host.reduced(host.original(offset)) == offset


def test_lines_stay_apart() -> None:
    assert HostText("#define N 1  // one\n\n  int x;").plain == "#define N 1\nint x;"


def test_brackets_are_closed_where_they_are() -> None:
    host = HostText("f(a, (b)) { ( }")
    assert (host.closing(1), host.closing(5), host.closing(12)) == (8, 7, -1)
    assert (host.braces.begin(12), host.braces.end(12), host.braces.begin(0)) == (10, 14, -1)
