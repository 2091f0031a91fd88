"""Types as host code writes them: what a launch passes, and which types a condition lets through.

Only pointers and constants that are types (``std::bool_constant<false>``) tell a kernel's instance or
overload, numbers are converted. Names that nobody knows may stand for any type, but each for one only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

_CAST = re.compile(
    r"\A\(\s?([\w:\s]+\*[\s*]*(?:const)?)\s?\)\s?[\w(&]|\A(?:reinterpret|static)_cast\s?<([\w:\s]+\*[\s*]*)>\s?\("
)
_SAME = re.compile(
    r"(?:std\s?::\s?)?is_same(?P<value>_v)?\s?<\s?([\w:\s]+),\s?([\w:\s]+)>\s?(?(value)|::\s?value)"
)
_CONSTANT = re.compile(
    r"\A(?:std\s?::\s?)?(?:(true|false)_type|bool_constant\s?<\s?(\w+)\s?>|integral_constant\s?<[\w\s:]+,\s?(-?\w+)\s?>)"
    r"\s?(?:\{\s?\}|\(\s?\))?\Z"
)
_LEFT_OUT = re.compile(
    r"\b(?:const|volatile|__restrict(?:__)?|restrict|struct|typename|register)\b|(?<!\w)\w{1,80}\s?::\s?"
)
_WORD = re.compile(r"(?<![\w.:])[A-Za-z_]\w*")
_VECTOR = re.compile(r"(?:u?char|u?short|u?int|u?long(?:long)?|float|double|half|bf16_|__half)[1-8]")
_NAMES: Mapping[str, str] = {
    **{name: name for name in ("bool", "char", "float", "double", "__half", "__nv_bfloat16", "__half2")},
    "half": "__half", "half2": "__half2", "nv_bfloat16": "__nv_bfloat16", "bfloat16": "__nv_bfloat16",
    "__nv_bfloat162": "__nv_bfloat162", "nv_bfloat162": "__nv_bfloat162",
    "__nv_fp8_e4m3": "__nv_fp8_e4m3", "__nv_fp8_e5m2": "__nv_fp8_e5m2",
    **dict.fromkeys(("signed char", "int8_t"), "signed char"),
    **dict.fromkeys(("unsigned char", "uint8_t", "uchar"), "unsigned char"),
    **dict.fromkeys(("short", "int16_t", "short int"), "short"),
    **dict.fromkeys(("unsigned short", "uint16_t", "ushort"), "unsigned short"),
    **dict.fromkeys(("int", "int32_t", "signed", "signed int"), "int"),
    **dict.fromkeys(("unsigned", "unsigned int", "uint32_t", "uint"), "unsigned"),
    **dict.fromkeys(("long", "long long", "int64_t", "long int", "long long int"), "long"),
    **dict.fromkeys(("unsigned long", "unsigned long long", "uint64_t", "size_t"), "unsigned long"),
}  # fmt: skip
"""Each name of a type → one of its names."""


_KEPT = 4096
"""Answers about types: the launches of a kernel are asked for each of its instances."""


@lru_cache(maxsize=_KEPT)
def known_type(text: str) -> tuple[str, int] | None:
    """What a type is, and to how many levels it points; None: nobody knows its name."""
    plain = " ".join(_LEFT_OUT.sub(" ", text).replace("*", " * ").split())
    name = " ".join(word for word in plain.split() if word != "*")
    found = _NAMES.get(name) or (name if _VECTOR.fullmatch(name) else None)
    return (found, plain.count("*")) if found is not None else None


@lru_cache(maxsize=_KEPT)
def constant_type(text: str) -> int | None:
    """The number that such a type, or an object of it, stands for: ``std::bool_constant<true>{}``."""
    match = _CONSTANT.match(text.strip())
    value = (match[1] or match[2] or match[3]) if match is not None else ""
    if value in ("true", "false"):
        return int(value == "true")
    return int(value) if value.removeprefix("-").isdigit() else None


@lru_cache(maxsize=_KEPT)
def may_be_one(passed: str, taken: str) -> bool:
    """Whether a pointer, or a constant, of one type can be passed where the other is taken."""
    constants = constant_type(passed), constant_type(taken)
    if None not in constants:
        return constants[0] == constants[1]
    one, other = known_type(passed), known_type(taken)
    pointers = one is not None and other is not None and one[1] > 0 and other[1] > 0
    return one == other if pointers else True


def may_be_together(pairs: Iterable[tuple[str, str]]) -> bool:
    """Whether one launch can pass all these types where the others are taken.

    ``T* out, const T* in`` are no ``half*`` and ``int*``, whatever ``T`` is.
    """
    stands_for: dict[str, tuple[str, int]] = {}
    for passed, taken in pairs:
        if not may_be_one(passed, taken):
            return False
        told = _told_of_name(passed, taken)
        if told is not None and stands_for.setdefault(*told) != told[1]:
            return False
    return True


def _told_of_name(passed: str, taken: str) -> tuple[str, tuple[str, int]] | None:
    """What a name that nobody knows stands for where a pointer to it is passed; None: that is not told."""
    name, other, levels = unknown_name(passed), known_type(taken), passed.count("*")
    if name is None or other is None or not 0 < levels <= other[1]:
        return None
    return name, (other[0], other[1] - levels)


@lru_cache(maxsize=_KEPT)
def unknown_name(type: str) -> str | None:
    """The one name that a type is made of, or points to, where nobody knows it."""
    name = _LEFT_OUT.sub(" ", type).replace("*", " ").strip()
    plain = name.isidentifier() and name != "auto" and "::" not in type
    return name if plain and known_type(name) is None else None


def passed_type(argument: str, declared: Callable[[str], str | None]) -> str | None:
    """The type of an argument that is cast to it, or a variable that is ``declared`` so; None: not told."""
    text = argument.strip()
    cast = _CAST.match(text)
    if cast is not None:
        return cast[1] or cast[2]
    if constant_type(text) is not None:
        return text
    return declared(text) if text.isidentifier() else None


def renamed(text: str, types: Mapping[str, str]) -> str:
    """A text with what template parameters stand for."""
    return _WORD.sub(lambda word: types.get(word[0], word[0]), text) if types else text


def settled(condition: str, types: Mapping[str, str]) -> str:
    """A condition with what template parameters stand for, and with questions for types answered."""

    def answered(match: re.Match[str]) -> str:
        one, other = known_type(match[2]), known_type(match[3])
        return match[0] if one is None or other is None else str(int(one == other))

    return _SAME.sub(answered, renamed(condition, types))
