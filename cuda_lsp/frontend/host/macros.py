"""The macros that a text defines, and what a use of one expands to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from attrs import frozen

DIRECTIVE = re.compile(r"^[ \t]?#[^\n\\]*(?:\\\n?[^\n\\]*)*", re.M)
_MACRO = re.compile(r"\A[ \t]?#[ \t]?define[ \t](\w+)(?:\(([^()]*)\))?(.*)\Z", re.S)
_JOINED = re.compile(r"\s?##\s?")
_WORD = re.compile(r"\w+")
MOST_EXPANDED = 1 << 20
"""Characters that macros may expand to, in one file."""


@frozen
class Macro:
    """``parameters`` None: it is used by its name alone. ``begin``: where it is defined."""

    name: str
    begin: int
    parameters: Sequence[str] | None
    body: str
    names: int
    """Words of the body, each of which may be a parameter."""

    def expanded(self, arguments: Sequence[str]) -> str:
        """The text of a use with these arguments; "" where it would be too long."""
        values = dict(zip(self.parameters or (), map(str.strip, arguments), strict=False))
        if self.parameters and self.parameters[-1] == "...":
            values["__VA_ARGS__"] = ",".join(arguments[len(self.parameters) - 1 :])
        longest = max(map(len, values.values()), default=0)
        if self.names * longest > MOST_EXPANDED:
            return ""
        text = _WORD.sub(lambda word: values.get(word[0], word[0]), self.body)
        return _JOINED.sub("", text)

    def is_like(self, other: Macro) -> bool:
        """Whether a use of either expands to the same."""
        return (self.parameters, self.body) == (other.parameters, other.body)


Macros = Mapping[str, Sequence[Macro]]
"""By name, each as often as it is defined, in order."""


def macros_of(plain: str) -> Macros:
    """All that a text (with no two characters of white space in a row) defines."""
    found: dict[str, list[Macro]] = {}
    if "define" not in plain:
        return found
    for directive in DIRECTIVE.finditer(plain):
        match = _MACRO.match(directive[0])
        if match is not None:
            body = match[3].replace("\\\n", " ")
            names = None if match[2] is None else [p.strip() for p in match[2].split(",")]
            macro = Macro(match[1], directive.start(), names, body, len(_WORD.findall(body)))
            found.setdefault(match[1], []).append(macro)
    return found
