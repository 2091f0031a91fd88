"""One token per line: how PTX gets exact source columns.

The device compiler records lines, not columns (``-lineinfo``). So between the preprocessor and the compiler
the user's text is rewritten to one token a line, numbered across all files; every ``.loc`` line is then the
number of a token, and the table says where that stands. Toolkit and system headers stay as they are.
What a macro's own text makes stands where the macro is used; its arguments stand where they are written. A
macro of a system header (``assert``) has markers around what it makes: its line is put together again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from attrs import frozen

_TOKEN = re.compile(
    r"""\s+
    |//[^\n]*|/\*.*?(?:\*/|\Z)
    |(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?(?:\)(?P=mark)"|\Z)
    |(?:u8|[uUL])?"(?:\\.|[^"\\])*(?:"\w*|\Z)
    |(?:u8|[uUL])?'(?:\\.|[^'\\])+(?:'|\Z)
    |\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*
    |[A-Za-z_$\x80-\U0010ffff][\w$]*
    |<<<|>>>|<<=|>>=|<=>|->\*|\.\.\.|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|%=|&=|\|=|\^=|\#\#
    |.""",
    re.X | re.S,
)
_RAW = re.compile(r'R"([^()\\\s]{0,16})\(')
_MARKER = re.compile(r'#\s+(\d+)\s+"((?:[^"\\]|\\.)*)"((?:\s+\d)*)')
_WORD, _NAME = re.compile(r"[\w.\"']"), re.compile(r"[A-Za-z_$]")
_CLOSING = frozenset(")];}")
_FIRST = 1


@frozen
class Token:
    """One token of the user's text; ``column`` is 1-based, in code points. ``exact``: it stands there so.

    Else a macro made it, whose use ends before column ``end``.
    """

    path: Path
    line: int
    column: int
    text: str
    exact: bool = True
    end: int = 0

    @property
    def stop(self) -> int:
        """The column behind it, or behind the macro's use."""
        return self.end or self.column + len(self.text)


@frozen(eq=False)
class TokenTable:
    """Tokens by the number that ``.loc`` gives; number 1 is the first."""

    tokens: Sequence[Token]
    files: frozenset[Path] = frozenset()  # the user's files that were read, also those without tokens

    def __getitem__(self, number: int) -> Token | None:
        index = number - _FIRST
        return self.tokens[index] if 0 <= index < len(self.tokens) else None

    def __len__(self) -> int:
        return len(self.tokens)


class _Rewriter:
    def __init__(self, system: tuple[str, ...]) -> None:
        self.system = system
        self.out: list[str] = []
        self.tokens: list[Token] = []
        self.sources: dict[str, list[str]] = {}
        self.paths: dict[str, Path] = {}

    def rewrite(self, text: str) -> tuple[str, TokenTable]:
        lines = text.split("\n")
        name, line, user, marked = "", 0, False, False
        k = 0
        while k < len(lines):
            row = lines[k]
            k += 1
            match = _MARKER.match(row) if row.startswith("#") else None
            if match:
                line, name = int(match[1]), match[2]
                user = self._is_user(name, match[3])
                if user:
                    self._path(name)
                marked = False
                if not user:
                    self.out.append(row)
                continue
            if not user:
                self.out.append(row)
            elif row.lstrip().startswith("#"):
                self._mark(name)
                self.out.append(row)
                self.tokens.append(Token(self._path(name), line, 1, row.strip()))
                marked = False
            elif row.strip():
                row, k = self._whole_line(name, line, row, lines, k)
                joined = self._whole_raw_strings(row, lines, k)
                if not marked:
                    self._mark(name)
                self._split(name, line, joined)
                extra = joined.count("\n")
                k += extra
                line += extra
                marked = extra == 0
            line += 1
        return "\n".join(self.out), TokenTable(self.tokens, frozenset(self.paths.values()))

    def _is_user(self, name: str, flags: str) -> bool:
        """Whether the user's text follows: a system header's macro within it is as good."""
        return not name.startswith(("<", *self.system)) and ("3" not in flags.split() or name in self.paths)

    def _whole_line(
        self, name: str, line: int, row: str, lines: Sequence[str], following: int
    ) -> tuple[str, int]:
        """The row, joined with those behind it that markers say are of the same line; what follows them."""
        while following + 1 < len(lines):
            marker = _MARKER.match(lines[following])
            more = lines[following + 1]
            if marker is None or (int(marker[1]), marker[2]) != (line, name) or more.startswith("#"):
                break
            row, following = f"{row} {more.lstrip()}", following + 2
        return row, following

    def _path(self, name: str) -> Path:
        if name not in self.paths:
            self.paths[name] = Path(name.replace("\\\\", "\\").replace('\\"', '"'))
        return self.paths[name]

    def _mark(self, name: str) -> None:
        self.out.append(f'# {len(self.tokens) + _FIRST} "{name}"')

    def _whole_raw_strings(self, row: str, lines: Sequence[str], following: int) -> str:
        """The row, joined with those that a raw string continues on."""
        at = 0
        while (opened := _RAW.search(row, at)) is not None:
            closing = f'){opened[1]}"'
            if (at := row.find(closing, opened.end())) < 0:
                rest = range(following, len(lines))
                last = next((number for number in rest if closing in lines[number]), len(lines) - 1)
                row = "\n".join((row, *lines[following : last + 1]))
                following = last + 1
                at = row.find(closing, opened.end())
                if at < 0:
                    break
            at += len(closing)
        return row

    def _split(self, name: str, line: int, row: str) -> None:
        path = self._path(name)
        texts = [match[0] for match in _TOKEN.finditer(row) if not match[0].isspace()]
        columns = _columns(texts, self._line(name, line))
        for text, (column, exact, end) in zip(texts, columns, strict=True):
            self.tokens.append(Token(path, line, column, text, exact, end))
            self.out.append(text)
            if "\n" in text:
                self._mark(name)

    def _line(self, name: str, line: int) -> str:
        lines = self.sources.get(name)
        if lines is None:
            try:
                lines = self._path(name).read_text(errors="replace").split("\n")
            except OSError:  # generated, or an unsaved buffer: columns come from the preprocessed text
                lines = []
            self.sources[name] = lines
        return lines[line - 1] if 0 < line <= len(lines) else ""

    def give(self, path: Path, text: str) -> None:
        """The text of a file as the editor has it."""
        self.sources[str(path)] = text.split("\n")


def _columns(texts: Sequence[str], source: str) -> list[tuple[int, bool, int]]:
    """Where the tokens of a preprocessed line stand in the source line; macros make the two differ.

    For each its column, whether it stands there so, and if not, where the use of the macro ends.
    """
    found = [(m[0], m.start() + 1) for m in _TOKEN.finditer(source) if not _is_blank(m[0])]
    written, columns = [text for text, _ in found], [column for _, column in found]
    if written[: len(texts)] == list(texts):
        return [(column, True, 0) for column in columns[: len(texts)]]
    partners = _partners(texts, written)
    taken = set(partners.values())
    uses = {k: _use(written, k) for k, text in enumerate(written) if k not in taken and _NAME.match(text)}
    _extend(partners, texts, written, {k for use in uses.values() for k in use})
    following = _following(partners, len(texts), len(written))
    places: list[tuple[int, bool, int]] = []
    before, column = -1, 1
    for k, text in enumerate(texts):
        if k in partners:
            before = partners[k]
            column = columns[before]
            places.append((column, True, 0))
            continue
        # What opens belongs to the use that the next argument stands in, what closes to that of the last one.
        limit = before if text in _CLOSING else following[k]
        use = next((uses[u] for u in reversed(uses) if u <= limit), None)
        end = columns[use[-1]] + len(written[use[-1]]) if use else 0
        places.append((columns[use[0]] if use else column, False, end))
    return places


def _partners(texts: Sequence[str], written: Sequence[str]) -> dict[int, int]:
    """Words of the preprocessed line that stand in the source line."""
    ours, theirs = ([k for k, text in enumerate(line) if _WORD.match(text)] for line in (texts, written))
    matcher = SequenceMatcher(None, [written[k] for k in theirs], [texts[k] for k in ours], autojunk=False)
    return {
        ours[block.b + k]: theirs[block.a + k]
        for block in matcher.get_matching_blocks()
        for k in range(block.size)
    }


def _extend(partners: dict[int, int], texts: Sequence[str], written: Sequence[str], used: set[int]) -> None:
    """Punctuation beside a word stands beside it in the source, unless it is part of a macro's use."""
    free = set(range(len(written))) - used - set(partners.values())
    for step, numbers in ((1, range(len(texts))), (-1, range(len(texts) - 1, -1, -1))):
        for k in numbers:
            place = partners.get(k - step, -2) + step
            if k not in partners and place in free and texts[k] == written[place]:
                partners[k] = place
                free.remove(place)


def _use(written: Sequence[str], name: int) -> list[int]:
    """Of a macro's use its name and what separates its arguments: the last one ends it."""
    if written[name + 1 : name + 2] != ["("]:
        return [name]
    depth, found = 0, [name]
    for k in range(name + 1, len(written)):
        depth += {"(": 1, ")": -1}.get(written[k], 0)
        if depth == (written[k] != ")") and written[k] in ("(", ")", ","):
            found.append(k)
        if depth == 0:
            break
    return found


def _following(partners: Mapping[int, int], count: int, end: int) -> list[int]:
    """For each token the place in the source of the next one that has a place there."""
    found = [end] * count
    for k in range(count - 1, -1, -1):
        found[k] = end = partners.get(k, end)
    return found


def _is_blank(text: str) -> bool:
    return text.isspace() or text.startswith(("//", "/*"))


def rewriter_for(system: Sequence[str], path: Path, text: str) -> _Rewriter:
    """What gives each token a line, and knows the unsaved ``text`` of ``path``.

    ``system``: path prefixes whose text stays as it is. ``#pragma`` lines stay whole; a raw string keeps its
    line breaks and takes one number.
    """
    rewriter = _Rewriter(tuple(system))
    rewriter.give(path, text)
    return rewriter
