"""Broken, hostile and merely odd CUDA, made of our own kernels: one number, one text."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
LONGEST = 200_000  # characters of a text

_TOKEN = re.compile(r"\s+|//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"|\w+|<<<|>>>|&&|\|\||[-+*/%&|^<>=!]=|.", re.DOTALL)

NUMBERS = (
    "0", "1", "-1", "31", "32", "33", "1024", "65536", "2147483647", "2147483648", "4294967295u",
    "9223372036854775807", "99999999999999999999", "1e300", "0x7fffffff", "1ull << 63", "08", "1'000",
    "'\\0'",
)  # fmt: skip
WORDS = (
    "threadIdx.x", "blockIdx.x", "blockDim.y", "gridDim.z", "__syncthreads()", "__syncwarp()", "__shared__",
    "extern", "volatile", "const", "return", "break", "continue", "while", "for", "do", "if", "else",
    "switch",
    "case 1:", "default:", "goto x;", "template <int N>", "struct", "union", "operator", "auto", "decltype",
    "constexpr", "this", "nullptr", "sizeof", "new", "delete", "throw", "try", "asm", "namespace", "using",
    "__global__", "__device__", "__launch_bounds__(64)", "<<<1, 64>>>", "atomicAdd", "__shfl_sync", "printf",
    "#pragma unroll", "#include \"nothing.h\"\n", "\n#if\n", "\n#else\n", "\n#endif\n", "\n#define N N\n",
    "// cuda-lsp: launch block=(64,1,1)\n", "// cuda-lsp: args n=-1\n", "// cuda-lsp: ignore[\n",
    "\\\n", "??/",
)  # fmt: skip
CHARACTERS = "\0\r\f\v\t\x1b\x7f\x85\xa0\u2028\ufeff\u200d\U0001f600ß𝛼\"'\\{}()[]<>;,#/*"


@lru_cache(maxsize=1)
def originals() -> tuple[str, ...]:
    """Our kernels, file by file, and single kernels of the larger files."""
    texts = [path.read_text() for path in sorted(FIXTURES.rglob("*.cu"))]
    parts = [part for text in texts for part in re.split(r"\n(?=//=|__global__|template)", text)]
    return tuple(part for part in parts if "__global__" in part and len(part) < 4000)


def text_of(number: int) -> str:
    """The text with this number; the same on every machine and in every run."""
    chance = random.Random(number)
    pieces = originals()
    text = "\n".join(chance.choice(pieces) for _ in range(chance.choice((1, 1, 1, 2, 3))))
    for _ in range(chance.choice((0, 1, 1, 2, 3, 5, 8))):
        text = chance.choice(_CHANGES)(text, chance)[:LONGEST]
    return text


Change = Callable[[str, random.Random], str]


def _of_tokens(change: Callable[[list[str], int, random.Random], None]) -> Change:
    def changed(text: str, chance: random.Random) -> str:
        tokens = _TOKEN.findall(text)
        if tokens:
            change(tokens, chance.randrange(len(tokens)), chance)
        return "".join(tokens)

    return changed


@_of_tokens
def _without(tokens: list[str], at: int, chance: random.Random) -> None:
    del tokens[at : at + chance.choice((1, 1, 1, 2, 5, 20))]


@_of_tokens
def _doubled(tokens: list[str], at: int, chance: random.Random) -> None:
    piece = tokens[at : at + chance.choice((1, 2, 5, 20))]
    tokens[at:at] = piece * chance.choice((1, 2, 10, 100))


@_of_tokens
def _swapped(tokens: list[str], at: int, chance: random.Random) -> None:
    other = chance.randrange(len(tokens))
    tokens[at], tokens[other] = tokens[other], tokens[at]


@_of_tokens
def _another_word(tokens: list[str], at: int, chance: random.Random) -> None:
    tokens[at] = f" {chance.choice(WORDS)} "


@_of_tokens
def _another_number(tokens: list[str], at: int, chance: random.Random) -> None:
    places = [i for i, token in enumerate(tokens) if token[:1].isdigit()]
    if places:
        tokens[chance.choice(places)] = chance.choice(NUMBERS)


@_of_tokens
def _another_name(tokens: list[str], at: int, chance: random.Random) -> None:
    places = [i for i, token in enumerate(tokens) if token[:1].isalpha()]
    if places:
        tokens[chance.choice(places)] = tokens[chance.choice(places)]


@_of_tokens
def _nested(tokens: list[str], at: int, chance: random.Random) -> None:
    opening, closing = chance.choice((("(", ")"), ("{", "}"), ("[", "]"), ("<", ">"), ("if (1) {", "}")))
    depth = chance.choice((1, 3, 30, 300))
    end = min(len(tokens), at + chance.choice((1, 3, 10)))
    tokens[at:end] = [opening * depth, *tokens[at:end], closing * depth]


@_of_tokens
def _chained(tokens: list[str], at: int, chance: random.Random) -> None:
    sign = chance.choice(("+", "-", "*", "^", "&&", ",", "?1:", "<<", "%"))
    tokens[at] += f"{sign}{tokens[at]}" * chance.choice((1, 10, 100, 1000))


def _spliced(text: str, chance: random.Random) -> str:
    other = chance.choice(originals())
    return text[: chance.randrange(len(text) + 1)] + other[chance.randrange(len(other)) :]


def _cut(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text) + 1)]


def _noise(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + "".join(chance.choices(CHARACTERS, k=chance.choice((1, 2, 8)))) + text[at + 1 :]


def _other_line_ends(text: str, chance: random.Random) -> str:
    return text.replace("\n", chance.choice(("\r", "\r\n", "\n\r", "\\\n")))


_CHANGES: Sequence[Change] = (
    _without, _without, _doubled, _swapped, _another_word, _another_word, _another_number, _another_number,
    _another_name, _another_name, _nested, _chained, _spliced, _cut, _noise, _other_line_ends,
)  # fmt: skip
