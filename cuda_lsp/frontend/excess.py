"""What of a text asks clang for more than ``budgets`` allow, told from the text: clang has no such limits.

Macros that use each other twice, statements that nest ten thousand deep, blocks of a hundred thousand
statements. What asks for too much is replaced, in the text that clang reads, by a name that nobody declares, and
spaces: nothing else moves, clang complains where it is used (``MARK`` stands in its message), and the kernel that
needs it is undecided while all others are analysed as ever.

What macros become is computed, not tried: the tokens of their replacement, and how often each parameter is in it.
Names that ``##`` puts together are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from attrs import define, field, frozen

from cuda_lsp.frontend import budgets

MARK = "'$'"
"""How clang's messages name what was replaced."""

_TOKEN = re.compile(
    rb"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[A-Za-z_]\w*|\.?\d[\w.']*|[^\s\\]", re.S
)
_DEFINE = re.compile(
    rb"^[ \t]*#[ \t]*define[ \t]+(?P<name>[A-Za-z_]\w*)(?P<parameters>\([^)\n]*\))?"
    rb"(?P<body>(?:[^\n\\]|\\\r?\n|\\.)*)",
    re.M,
)
_CONDITION = re.compile(rb"^[ \t]*#[ \t]*(?:if|elif|include)[^\n]*(?:\\\r?\n[^\n]*)*", re.M)
_PREFIXES = re.compile(rb"(?:[-+!~*&]\s*){%d}" % budgets.MOST_PREFIXES)
_WORD = re.compile(rb"[A-Za-z_]\w*")
_ENDLESS = 1 << 62
_DEEPEST = 200  # macros in each other
_NESTED = 8  # uses in each other from which on a doubling macro counts
_LARGE = 1000  # tokens of a macro whose uses are counted


@frozen
class Excess:
    """``start``, ``end``: bytes of the text that clang must not read."""

    start: int
    end: int
    reason: str


@frozen
class Readable:
    """``data``: the text for clang. ``replaced``: what is missing there; ``macros``: why some are not expanded.

    ``refusal``: why the text cannot be read at all, "" when it can.
    """

    data: bytes
    replaced: tuple[Excess, ...] = ()
    macros: str = ""
    refusal: str = ""

    def reason(self, message: str, offset: int) -> str:
        """What to say in place of clang's ``message`` about byte ``offset``."""
        if MARK not in message:
            return message
        here = next((e.reason for e in self.replaced if e.start <= offset < e.end), self.macros)
        return here or message


def readable(data: bytes, macros: Macros) -> Readable:
    """The text as far as clang may read it; ``macros``: those of the text and of its headers."""
    found = [*_long_statements(data), *_long_blocks(data)]
    reason = _heavy_use(data, macros) if macros.heavy or macros.doubling else ""
    if macros.bombs and any(set(_WORD.findall(line[0])) & macros.bombs.keys() for line in _CONDITION.finditer(data)):
        return Readable(data, refusal=next(iter(macros.bombs.values())))
    text = without_bombs(data, macros)
    for excess in found:
        text = text[: excess.start] + _blank(data[excess.start : excess.end], b"$;") + text[excess.end :]
    told = next(iter(macros.bombs.values()), "")
    return Readable(text, tuple(found), told, reason)


def without_bombs(data: bytes, macros: Macros) -> bytes:
    """The text with the macros that explode defined as what nobody declares."""
    if not macros.bombs:
        return data
    pieces: list[bytes] = []
    done = 0
    for match in _DEFINE.finditer(data):
        if match["name"] in macros.bombs:
            pieces += data[done : match.start("body")], _blank_body(match["body"])
            done = match.end()
    return b"".join((*pieces, data[done:]))


def _blank_body(body: bytes) -> bytes:
    lines = body.split(b"\n")
    blank = [re.sub(rb"[^\\\r]|\\(?!\r?$)", b" ", line) for line in lines]
    first = blank[0]
    blank[0] = b" $" + first[2:] if len(first) > 1 else first
    return b"\n".join(blank)


def _blank(stretch: bytes, mark: bytes) -> bytes:
    rest = bytes(c if c in b"\r\n" else 0x20 for c in stretch[len(mark) :])
    return mark + rest


# ------------------------------------------------------------------------------------------- statements


def _long_statements(data: bytes) -> Iterator[Excess]:
    """Statements of too many tokens, or of too many operators before one operand."""
    start = 0
    for piece in data.split(b";"):
        if len(piece) > budgets.MOST_PREFIXES:
            for first, last, reason in _long_in(piece):
                yield Excess(start + first, start + last, reason)
        start += len(piece) + 1
    if data.count(b"else") > budgets.MOST_TOKENS // 10:
        yield from _long_chains(data)


@lru_cache(maxsize=1024)
def _long_in(piece: bytes) -> tuple[tuple[int, int, str], ...]:
    """The same of a text without semicolons."""
    if len(piece) <= budgets.MOST_TOKENS and not _PREFIXES.search(piece):
        return ()
    found: list[tuple[int, int, str]] = []
    for first, last, tokens, prefixes in _statements(piece):
        if tokens > budgets.MOST_TOKENS:
            found.append((first, last, f"a statement has more than {budgets.MOST_TOKENS:,} words and operators"))
        elif prefixes >= budgets.MOST_PREFIXES:
            found.append((first, last, f"more than {budgets.MOST_PREFIXES:,} operators stand before one operand"))
    return tuple(found)


def _statements(piece: bytes) -> Iterator[tuple[int, int, int, int]]:
    """First and last byte, tokens, and the longest run of prefix operators of each statement."""
    brackets: list[bytes] = []
    first, last, tokens, run, longest = -1, 0, 0, 0, 0
    for match in _TOKEN.finditer(piece):
        token = match[0]
        if token[:2] in (b"//", b"/*"):
            continue
        if token in (b"(", b"[", b"{"):
            brackets.append(token)
        elif token in (b")", b"]", b"}") and brackets:
            brackets.pop()
        if token in (b"{", b"}") or (token == b"," and brackets[-1:] == [b"{"]):
            yield first, last, tokens, longest
            first, tokens, run, longest = -1, 0, 0, 0
            continue
        first = match.start() if first < 0 else first
        last = match.end()
        tokens += 1
        run = run + 1 if token in b"-+!~*&" else 0
        longest = max(longest, run)
    yield first, last, tokens, longest


def _long_chains(data: bytes) -> Iterator[Excess]:
    """``else if`` without end: each nests in the one before."""
    stack: list[int] = []
    first, links = -1, 0
    tokens = [m for m in _TOKEN.finditer(data) if m[0][:2] not in (b"//", b"/*")]
    depth = 0
    chains: dict[int, tuple[int, int]] = {}  # by depth of braces: where it began, its links
    del stack, first, links
    for number, match in enumerate(tokens):
        token = match[0]
        if token == b"{":
            depth += 1
        elif token == b"}":
            chains.pop(depth, None)
            depth -= 1
        if token == b"else":
            began, links = chains.get(depth, (match.start(), 0))
            chains[depth] = (began, links + 1)
        elif token in (b";", b"}") and (number + 1 == len(tokens) or tokens[number + 1][0] != b"else"):
            began, links = chains.pop(depth, (0, 0))
            if links > budgets.MOST_TOKENS // 10:
                reason = f"a chain of conditions has more than {budgets.MOST_TOKENS // 10:,} alternatives"
                yield Excess(began, match.end(), reason)


def _long_blocks(data: bytes) -> Iterator[Excess]:
    """The innermost blocks with too many statements."""
    if data.count(b";") <= budgets.MOST_SEMICOLONS:
        return
    stack: list[tuple[int, int, bool]] = []  # where it began, its semicolons, whether one in it is too long
    for match in _TOKEN.finditer(data):
        token = match[0]
        if token == b"{":
            stack.append((match.end(), 0, False))
        elif token == b";" and stack:
            began, count, found = stack[-1]
            stack[-1] = (began, count + 1, found)
        elif token == b"}" and stack:
            began, count, found = stack.pop()
            if count > budgets.MOST_SEMICOLONS and not found:
                found = True
                yield Excess(
                    began, match.start(), f"a function has more than {budgets.MOST_SEMICOLONS:,} statements"
                )
            if stack:
                outer, others, above = stack[-1]
                stack[-1] = (outer, others + (0 if found else count), above or found)


# ----------------------------------------------------------------------------------------------- macros


@frozen
class _Macro:
    parameters: tuple[bytes, ...] | None
    tokens: tuple[bytes, ...]


@define
class Size:
    """Tokens that a macro becomes, and how often each of its parameters is in them."""

    tokens: int = 0
    times: dict[bytes, int] = field(factory=dict[bytes, int])

    def add(self, other: Size, factor: int = 1) -> None:
        """Take in so many of another."""
        self.tokens = min(_ENDLESS, self.tokens + factor * other.tokens)
        for name, count in other.times.items():
            self.times[name] = min(_ENDLESS, self.times.get(name, 0) + factor * count)

    @property
    def largest(self) -> int:
        """Of both."""
        return max(self.tokens, *self.times.values(), 0)


@frozen
class Macros:
    """``bombs``: name → why it is not expanded. ``heavy``: those that become many tokens, with their number.

    ``doubling``: those that have an argument several times, with how often.
    """

    bombs: Mapping[bytes, str] = field(factory=dict[bytes, str])
    heavy: Mapping[bytes, int] = field(factory=dict[bytes, int])
    doubling: Mapping[bytes, int] = field(factory=dict[bytes, int])


def definitions(data: bytes) -> tuple[tuple[bytes, bytes, bytes], ...]:
    """Name, parameters and replacement of each ``#define``."""
    if b"#" not in data or b"define" not in data:
        return ()
    return tuple((m["name"], m["parameters"] or b"", m["body"]) for m in _DEFINE.finditer(data))


@lru_cache(maxsize=16)
def macros_of(defined: tuple[tuple[bytes, bytes, bytes], ...]) -> Macros:
    """What is to be known of the macros that these lines define."""
    known: dict[bytes, list[_Macro]] = {}
    for name, parameters, body in dict.fromkeys(defined):
        names = tuple(_WORD.findall(parameters)) + ((b"__VA_ARGS__",) if b"..." in parameters else ())
        tokens = tuple(t for t in _TOKEN.findall(body) if t[:2] not in (b"//", b"/*"))
        known.setdefault(name, []).append(_Macro(names if parameters else None, tokens))
    sizes = _Sizes(known)
    bombs: dict[bytes, str] = {}
    heavy: dict[bytes, int] = {}
    doubling: dict[bytes, int] = {}
    for name in known:
        size = sizes.of(name)
        if size.largest > budgets.MOST_MACRO_TOKENS:
            bombs[name] = _reason(name)
        elif size.tokens > _LARGE:
            heavy[name] = size.tokens
        if (times := max(size.times.values(), default=0)) > 1:
            doubling[name] = times
    return Macros(bombs, heavy, doubling)


def _reason(name: bytes) -> str:
    return f"the macro {name.decode()} becomes more than {budgets.MOST_MACRO_TOKENS:,} words and operators"


class _Sizes:
    """Sizes of macros by name; of a name that is defined several times the largest."""

    def __init__(self, macros: Mapping[bytes, Sequence[_Macro]]) -> None:
        self._macros = macros
        self._sizes: dict[bytes, Size] = {}
        self._active: list[bytes] = []

    def of(self, name: bytes) -> Size:
        """Of one macro."""
        known = self._sizes.get(name)
        if known is not None:
            return known
        if len(self._active) > _DEEPEST:
            return Size(_ENDLESS)
        self._active.append(name)
        found = max((self._expanded(m.tokens, m.parameters or ()) for m in self._macros[name]), key=_largest)
        self._active.pop()
        self._sizes[name] = found
        return found

    def _expanded(self, tokens: Sequence[bytes], parameters: Sequence[bytes]) -> Size:
        total = Size()
        at = 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            if token in parameters:
                total.add(Size(0, {token: 1}))
                continue
            total.add(Size(1))
            if token not in self._macros or token in self._active:
                continue
            named = next((m.parameters for m in self._macros[token] if m.parameters is not None), None)
            inner = self.of(token)
            total.add(Size(inner.tokens))
            if named is None or tokens[at : at + 1] != (b"(",) and list(tokens[at : at + 1]) != [b"("]:
                continue
            arguments, at = _arguments(tokens, at + 1)
            given = [self._expanded(argument, parameters) for argument in arguments]
            for number, parameter in enumerate(named):
                some = given[number:] if parameter == b"__VA_ARGS__" else given[number : number + 1]
                for argument in some:
                    total.add(argument, max(1, inner.times.get(parameter, 0)))
        return total


def _largest(size: Size) -> int:
    return size.largest


def _arguments(tokens: Sequence[bytes], at: int) -> tuple[list[Sequence[bytes]], int]:
    """The arguments of a use whose parenthesis is behind ``at``, and where it ends."""
    found: list[Sequence[bytes]] = []
    depth, start = 0, at
    while at < len(tokens):
        token = tokens[at]
        if token == b")" and not depth:
            break
        if token == b"," and not depth:
            found.append(tokens[start:at])
            start = at + 1
        depth += (token == b"(") - (token == b")")
        at += 1
    return [*found, tokens[start:at]], at + 1


def _heavy_use(data: bytes, macros: Macros) -> str:
    """Why all uses of large macros together, or uses in uses, are too much; "" when they are not."""
    total = 0
    for name, tokens in macros.heavy.items():
        total += tokens * data.count(name)
        if total > 10 * budgets.MOST_MACRO_TOKENS:
            return f"its macros become more than {10 * budgets.MOST_MACRO_TOKENS:,} words and operators"
    if macros.doubling:
        for piece in data.split(b";"):
            if piece.count(b"(") >= _NESTED and (name := _nested_use(piece, macros.doubling)):
                return f"{_reason(name)} where it is used in itself"
    return ""


def _nested_use(piece: bytes, doubling: Mapping[bytes, int]) -> bytes:
    """A macro whose uses in each other become too much."""
    open_: list[int] = []  # what each parenthesis multiplies by
    before = b""
    product = 1
    for token in _TOKEN.findall(piece):
        if token == b"(":
            factor = doubling.get(before, 1)
            open_.append(factor)
            product *= factor
            if product > budgets.MOST_MACRO_TOKENS:
                return before
        elif token == b")" and open_:
            product //= open_.pop()
        before = token
    return b""


# --------------------------------------------------------------------------------------------- templates

_TEMPLATE = re.compile(
    rb"\btemplate\s*<[^;{}]{0,400}?>\s*(?:(?:struct|class|union|using|constexpr|inline|static|__device__|"
    rb"__host__|__forceinline__|__inline__|auto|void|int|bool|unsigned|float|double|size_t|const|typename)\s+)+"
    rb"(?P<name>[A-Za-z_]\w*)"
)


def branches(data: bytes) -> bool:
    """Whether some template may name two instances of itself, or of one that names it."""
    if data.count(b"template") < 1:
        return False
    return _branches(tuple(_template_texts(data)))


def _template_texts(data: bytes) -> Iterable[tuple[bytes, bytes]]:
    matches = list(_TEMPLATE.finditer(data))
    for number, match in enumerate(matches):
        end = matches[number + 1].start() if number + 1 < len(matches) else min(len(data), match.end() + 20_000)
        yield match["name"], data[match.end() : end]


@lru_cache(maxsize=64)
def _branches(texts: tuple[tuple[bytes, bytes], ...]) -> bool:
    names = {name for name, _ in texts}
    uses: dict[bytes, dict[bytes, set[bytes]]] = {name: {} for name in names}
    for name, text in texts:
        for match in re.finditer(rb"\b([A-Za-z_]\w*)\s*<([^;{}]{1,200}?)>", text):
            if match[1] in names:
                uses[name].setdefault(match[1], set()).add(match[2])
    for name in names:
        for other, arguments in uses[name].items():
            if len(arguments) > 1 and (other == name or name in _reached(other, uses)):
                return True
    return False


def _reached(name: bytes, uses: Mapping[bytes, Mapping[bytes, object]]) -> set[bytes]:
    found: set[bytes] = set()
    pending = [name]
    while pending:
        for other in uses.get(pending.pop(), ()):
            if other not in found:
                found.add(other)
                pending.append(other)
    return found
