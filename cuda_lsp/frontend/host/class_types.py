"""Class templates of host code, and the names that it gives to types: whose member ``x128::size`` is.

Read from text, as everything here. A name that stands for two types, and a template that is specialised
somewhere, mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from attrs import frozen

from cuda_lsp.frontend.host.text import HostText

_ALIAS = re.compile(
    r"\btypedef\s([\w:][\w:\s<>,*]{0,120}?)\s?\b(\w{1,60})\s?;|\busing\s(\w{1,60})\s?=\s?([^;{}=()]{1,160});"
)
_INSTANCE = re.compile(r"\A(?:typename\s)?([A-Za-z_][\w:]*?)\s?(?:<([\w:\s,<>*]*)>)?\Z")
_TEMPLATE = re.compile(r"\btemplate\s?<([^<>;{}]{1,200})>\s?\Z")
_PARAMETER = re.compile(r"(?<!\w)(\w+)\s?(?:=.*)?\Z", re.S)
_HEAD = (
    r"\b(?:struct|class)\s(?:(?:alignas|__align__)\s?\([^();{{}}]{{0,60}}\)\s?)?{name}\b"
    r"(?P<arguments>\s?<[^;{{}}()]{{0,80}}>)?(?:\s?:[^;{{}}()]{{0,120}})?\s?\{{"
)


@frozen
class Alias:
    """What a name stands for, and where that is written."""

    target: str
    position: int


@frozen
class ClassTemplate:
    """``body``: its brace; ``parameters``: names in order. ``special``: for some arguments only."""

    body: int
    parameters: Sequence[str]
    special: bool


class ClassTypes:
    """The classes and the aliases of one text."""

    def __init__(self, host: HostText) -> None:
        self._host = host
        self._classes: dict[str, Sequence[ClassTemplate]] = {}

    @cached_property
    def _aliases(self) -> Mapping[str, Sequence[Alias]]:
        found: dict[str, list[Alias]] = {}
        for match in _ALIAS.finditer(self._host.plain):
            alias = Alias((match[1] or match[4]).strip(), match.start())
            found.setdefault(match[2] or match[3], []).append(alias)
        return found

    def aliases(self, name: str) -> Sequence[Alias]:
        """What the text says that a name stands for."""
        return self._aliases.get(name, ())

    def classes(self, name: str) -> Sequence[ClassTemplate]:
        """The classes of a name."""
        if name not in self._classes:
            head = re.compile(_HEAD.format(name=re.escape(name)))
            found = head.finditer(self._host.plain)
            self._classes[name] = [self._class(m.start(), m.end() - 1, m["arguments"]) for m in found]
        return self._classes[name]

    def _class(self, begin: int, body: int, arguments: str | None) -> ClassTemplate:
        template = _TEMPLATE.search(self._host.plain, max(0, begin - 240), begin)
        parts = template[1].split(",") if template is not None else []
        names = [match[1] for part in parts if (match := _PARAMETER.search(part.strip())) is not None]
        return ClassTemplate(body, names, arguments is not None)


def instance(type: str) -> tuple[str, Sequence[str]] | None:
    """``Packed<float, 4>`` → its name and its arguments; None: it is no type that is read here."""
    match = _INSTANCE.match(type.strip())
    if match is None or "<" in (match[2] or ""):
        return None
    return match[1], [part.strip() for part in (match[2] or "").split(",") if part.strip()]
