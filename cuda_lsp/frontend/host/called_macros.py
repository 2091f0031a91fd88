"""Macros that are called like functions: ``#define CEIL_DIV(m, n) (((m) + (n) - 1) / (n))``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cuda_lsp.frontend.host.constants import Lookup, NotConstant, Returned, evaluate
from cuda_lsp.model import WARP_SIZE

_DEFINE = re.compile(r"^[ \t]?#[ \t]?define[ \t](\w+)\(([\w, ]{0,80})\)[ \t]([^\n]{1,120})$", re.M)
_CEIL_DIVISION = re.compile(
    r"(?:\w{0,30}_)?(?:(?:aten|i)?(?:ceil_?div|div_?up|div_?ceil)|divideup|cdiv)", re.I
)
_WARP_SIZE = re.compile(r"(?:get_?)?warp_?size(?:_?(?:of_?)?(?:current_?)?device)?", re.I)
_NEXT_POWER = re.compile(r"(?:round_?up_?(?:to_?)?)?next_?pow(?:er)?_?(?:of_?)?(?:2|two)", re.I)

Macro = tuple[str, str]
"""Parameters, with commas between, and the text."""


def called_macros(plain: str) -> dict[str, set[Macro]]:
    """All that a text defines, by name."""
    found: dict[str, set[Macro]] = {}
    for match in _DEFINE.finditer(plain):
        found.setdefault(match[1], set()).add((match[2], match[3].strip()))
    return found


def expanded(macro: Macro, values: Sequence[int | None], lookup: Lookup, returned: Returned) -> int:
    """What its text gives, where parentheses keep its arguments, and itself, together. Raises NotConstant."""
    names, body = [name.strip() for name in macro[0].split(",")], macro[1]
    named = dict(zip(names, values, strict=False))
    uses = re.findall(r"(.?)(?<!\w)(?:" + "|".join(map(re.escape, names)) + r")\b\s?(.?)", body)
    if len(names) != len(values) or any(use != ("(", ")") for use in uses) or not is_one_parenthesis(body):
        raise NotConstant(body)

    def of(name: str) -> int:
        if name not in named:
            return lookup(name)
        value = named[name]
        if value is None:
            raise NotConstant(name)
        return value

    return evaluate(body, of, returned)


def by_its_name(name: str, values: Sequence[int | None]) -> int:
    """What a call gives of a function that nobody can read, by its usual name. Raises NotConstant."""
    if len(values) == 2 and _CEIL_DIVISION.fullmatch(name):
        number, by = values
        if number is not None and by is not None and number >= 0 and by > 0:
            return -(-number // by)
    if len(values) == 1 and _NEXT_POWER.fullmatch(name) and values[0] is not None and values[0] > 0:
        return 1 << (values[0] - 1).bit_length()
    if len(values) <= 1 and _WARP_SIZE.fullmatch(name):
        return WARP_SIZE
    raise NotConstant(name)


def is_one_parenthesis(text: str) -> bool:
    """Whether the first parenthesis of a text closes at its end."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth <= 0:
            return place == len(text) - 1 and letter == ")"
    return False
