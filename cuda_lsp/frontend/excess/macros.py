"""What macros become, computed and not tried: thirty of them that use each other twice become 2^30 words.

Counted are the tokens of a macro's replacement, and how often each parameter is in it. Names that ``##`` puts
together are followed where macros use one another, with what they are given there (``pasted.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from attrs import define, field, frozen

from cuda_lsp.frontend import budgets
from cuda_lsp.frontend.excess.pasted import Pastes, arguments_of
from cuda_lsp.frontend.excess.statements import TOKEN, Excess

_DEFINE = re.compile(
    rb"^[ \t]*#[ \t]*define[ \t]+(?P<name>[A-Za-z_]\w*)(?P<parameters>\([^)\n]*\))?"
    rb"(?P<body>(?:[^\n\\]|\\\r?\n|\\.)*)",
    re.M,
)
_WORD = re.compile(rb"[A-Za-z_]\w*")
_BODY = re.compile(rb"[^\\\r\n]|\\(?!\r?$)", re.M)
_ENDLESS = 1 << 62
_DEEPEST = 200  # macros in each other
_NESTED = 8  # uses in each other from which on a doubling macro counts
_LARGE = 1000  # tokens of a macro whose uses are counted


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
        tokens = tuple(t for t in TOKEN.findall(body) if t[:2] not in (b"//", b"/*"))
        known.setdefault(name, []).append(_Macro(names if parameters else None, tokens))
    sizes = _Sizes(known)
    bombs: dict[bytes, str] = {}
    heavy: dict[bytes, int] = {}
    doubling: dict[bytes, int] = {}
    for name in known:
        size = sizes.of(name)
        if size.largest > budgets.MOST_MACRO_TOKENS:
            bombs[name] = _reason(name)
            continue
        if size.tokens > _LARGE:
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
        self._pastes = Pastes({n: [(m.parameters, m.tokens) for m in ms] for n, ms in macros.items()})

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
            if named is None or (tokens[at : at + 1] != (b"(",) and list(tokens[at : at + 1]) != [b"("]):
                continue
            arguments, at = arguments_of(tokens, at + 1)
            for made in self._pastes.names(token, arguments):
                if made in self._macros and made not in self._active:
                    self._active.append(token)
                    total.add(Size(self.of(made).tokens))
                    self._active.pop()
            given = [self._expanded(argument, parameters) for argument in arguments]
            for number, parameter in enumerate(named):
                some = given[number:] if parameter == b"__VA_ARGS__" else given[number : number + 1]
                for argument in some:
                    total.add(argument, max(1, inner.times.get(parameter, 0)))
        return total


def _largest(size: Size) -> int:
    return size.largest


def without_bombs(data: bytes, macros: Macros) -> bytes:
    """The text with the macros that explode defined as a name that nobody declares; no line moves."""
    if not macros.bombs:
        return data
    pieces: list[bytes] = []
    done = 0
    for match in _DEFINE.finditer(data):
        if match["name"] in macros.bombs:
            pieces += data[done : match.start("body")], b" $" + _BODY.sub(b" ", match["body"])[2:]
            done = match.end()
    return b"".join((*pieces, data[done:]))


def heavy_uses(data: bytes, macros: Macros) -> str:
    """Why all uses of large macros together are too much; "" when they are not."""
    total = sum(tokens * data.count(name) for name, tokens in macros.heavy.items())
    if total > 10 * budgets.MOST_MACRO_TOKENS:
        return f"its macros become more than {10 * budgets.MOST_MACRO_TOKENS:,} words and operators"
    return ""


def nested_uses(data: bytes, macros: Macros) -> Iterator[Excess]:
    """Uses of a macro inside uses of it that become too much."""
    start = 0
    for piece in data.split(b";") if macros.doubling else ():
        if piece.count(b"(") >= _NESTED and (use := _nested_use(piece, macros.doubling)):
            name, first = use
            yield Excess(start + first, start + len(piece), f"{_reason(name)} where it is used in itself")
        start += len(piece) + 1


def _nested_use(piece: bytes, doubling: Mapping[bytes, int]) -> tuple[bytes, int] | None:
    """A macro whose uses in each other become too much, and where the outermost stands."""
    open_: list[tuple[int, int]] = []  # what each parenthesis multiplies by, where it is
    before, place = b"", 0
    product = 1
    for match in TOKEN.finditer(piece):
        token = match[0]
        if token == b"(":
            open_.append((doubling.get(before, 1), place))
            product *= open_[-1][0]
            if product > budgets.MOST_MACRO_TOKENS:
                return before, next(at for factor, at in open_ if factor > 1)
        elif token == b")" and open_:
            product //= open_.pop()[0]
        before, place = token, match.start()
    return None
