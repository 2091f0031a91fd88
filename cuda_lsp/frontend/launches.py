"""What ``kernel<<<grid, block, shared>>>(arguments)`` sites tell, read from text.

Works on any state of the text, host code included. A site whose block extents are not constants gives
no configuration; its constant arguments still count. ``dim3`` variables and integers are followed to
their definition when the name is defined once before the site.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from cuda_lsp.frontend.constants import NotConstant, evaluate
from cuda_lsp.model import Dim3, LaunchConfig, LaunchSource, Position, Site, SourceRange

_ASSIGNED = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s*(?:\.\s*[xyz]\s*)?=(?!=)")
_NAME = re.compile(r"([A-Za-z_]\w*)\s*$")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.S)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]{1,120})$", re.M)
_INTEGER = re.compile(
    r"\b(?:unsigned|int|size_t|long|short|uint|auto|uint32_t|int32_t|int64_t|uint64_t)\s+(\w+)\s*(?:=|\()([^;,{}]{1,120})[;,]"
)
_ENUMERATOR = re.compile(r"(?<=[{,])\s*(\w+)\s*=([^,{};]{1,80})(?=[,}])")
_DIM3 = re.compile(r"\bdim3\s+([A-Za-z_][^;]{0,300});")
_DIM3_ITEM = re.compile(r"(\w+)\s*(?:\((.*)\)|\{(.*)\}|=\s*(?:dim3\s*[({](.*)[)}]|\{(.*)\}|(.+)))\s*$", re.S)


@frozen
class LaunchSite:
    """One launch in the text. ``block`` None: not constant. ``arguments`` by position, constants only.

    ``template_arguments`` is the text between ``<`` and ``>`` of the kernel's name, None when deduced.
    """

    kernel: str
    template_arguments: str | None
    block: Dim3 | None
    grid: Dim3 | None
    dynamic_shared: int | None
    arguments: Mapping[int, int] = field(factory=dict[int, int])
    site: Site | None = None

    def configuration(self, parameters: tuple[str, ...]) -> LaunchConfig | None:
        """For a kernel with these parameter names; None when the block is not known."""
        if self.block is None:
            return None
        named = {parameters[i]: value for i, value in self.arguments.items() if i < len(parameters)}
        return LaunchConfig(self.block, self.grid, self.dynamic_shared, LaunchSource.FILE, named, self.site)


def find_launches(path: Path, text: str) -> tuple[LaunchSite, ...]:
    """Every launch site of ``text``, in order."""
    if "<<<" not in text:
        return ()
    plain = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    constants = HostConstants(plain)
    sites: list[LaunchSite] = []
    start = plain.find("<<<")
    while start >= 0:
        site = _launch(path, text, plain, start, constants)
        if site:
            sites.append(site)
        start = plain.find("<<<", start + 3)
    return tuple(sites)


def _launch(path: Path, text: str, plain: str, start: int, constants: HostConstants) -> LaunchSite | None:
    head, template_arguments = plain[:start].rstrip(), None
    if head.endswith(">"):
        opening = _opening(head)
        if opening < 0:
            return None
        head, template_arguments = head[:opening], head[opening + 1 : -1].strip()
    name = _NAME.search(head)
    end = plain.find(">>>", start)
    if not name or end < 0:
        return None
    opening = plain.find("(", end)
    closing = _matching(plain, opening) if opening >= 0 and not plain[end + 3 : opening].strip() else -1
    configuration = _split(plain[start + 3 : end])
    parameters = _split(plain[opening + 1 : closing]) if closing > 0 else []
    finish = closing + 1 if closing > 0 else end + 3
    extent = SourceRange(path, _position(text, name.start(1)), _position(text, finish))
    return LaunchSite(
        kernel=name[1],
        template_arguments=template_arguments,
        block=constants.extents(configuration[1], start) if len(configuration) > 1 else None,
        grid=constants.extents(configuration[0], start) if configuration else None,
        dynamic_shared=constants.integer(configuration[2], start) if len(configuration) > 2 else 0,
        arguments={
            i: value
            for i, argument in enumerate(parameters)
            if (value := constants.integer(argument, start)) is not None
        },
        site=Site(extent, text[name.start(1) : finish]),
    )


class HostConstants:
    """Names of one file with constant values; ``before`` positions pick the nearest definition."""

    def __init__(self, plain: str) -> None:
        self.integers: dict[str, list[tuple[int, str]]] = {}
        self.dims: dict[str, list[tuple[int, str]]] = {}
        self.assigned: set[str] = set(re.findall(r"\b(\w+)\s*(?:[-+*/%&|^]|<<|>>)=", plain))
        self.assigned |= set(re.findall(r"(?:\+\+|--)\s*(\w+)", plain))
        self.assigned |= set(re.findall(r"\b(\w+)\s*(?:\+\+|--)", plain))
        for pattern in (_DEFINE, _INTEGER, _ENUMERATOR):
            for match in pattern.finditer(plain):
                self.integers.setdefault(match[1], []).append((match.start(), _initialiser(match[2])))
        for match in _DIM3.finditer(plain):
            for item in _split(match[1]):
                parts = _DIM3_ITEM.match(item.strip())
                if parts:
                    arguments = next((part for part in parts.groups()[1:] if part is not None), "")
                    self.dims.setdefault(parts[1], []).append((match.start(), arguments))
        written = Counter(_ASSIGNED.findall(plain))
        self.reassigned = {
            name for name in (*self.integers, *self.dims) if written[name] > self._definitions(name)
        }

    def _definitions(self, name: str) -> int:
        return len(self.integers.get(name, [])) + len(self.dims.get(name, []))

    def integer(self, text: str, before: int) -> int | None:
        try:
            return evaluate(text, lambda name: self._lookup(name, before, 8))
        except NotConstant:
            return None

    def _lookup(self, name: str, before: int, depth: int) -> int:
        definitions = [d for d in self.integers.get(name, ()) if d[0] < before]
        if not definitions or not depth or name in self.assigned or name in self.reassigned:
            raise NotConstant(name)
        position, text = definitions[-1]
        return evaluate(text, lambda inner: self._lookup(inner, position, depth - 1))

    def extents(self, text: str, before: int) -> Dim3 | None:
        """A launch extent: an integer, ``dim3(…)``, ``{…}`` or a dim3 variable."""
        stripped = text.strip()
        call = re.fullmatch(r"(?:dim3\s*)?[({](.*)[)}]", stripped, re.S)
        if call and (stripped.startswith(("dim3", "{"))):
            return self._components(call[1], before)
        definitions = [d for d in self.dims.get(stripped, ()) if d[0] < before]
        if definitions and stripped not in self.reassigned:
            return self._components(definitions[-1][1], definitions[-1][0])
        value = self.integer(stripped, before)
        return (value, 1, 1) if value and value > 0 else None

    def _components(self, text: str, before: int) -> Dim3 | None:
        parts = [self.integer(part, before) for part in _split(text)] if text.strip() else []
        if len(parts) > 3 or any(part is None or part < 1 for part in parts):
            return None
        x, y, z = [*(part or 1 for part in parts), 1, 1, 1][:3]
        return (x, y, z)


def _initialiser(text: str) -> str:
    """Without the parenthesis that closes ``int n(5)``."""
    stripped = text.strip()
    return stripped[:-1] if stripped.count(")") > stripped.count("(") and stripped.endswith(")") else stripped


def _split(text: str) -> list[str]:
    """Top-level comma-separated parts."""
    parts: list[str] = []
    depth, first = 0, 0
    for i, c in enumerate(text):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[first:i])
            first = i + 1
    parts.append(text[first:])
    return parts if text.strip() else []


def _opening(head: str) -> int:
    depth = 0
    for i in range(len(head) - 1, -1, -1):
        if head[i] == ">":
            depth += 1
        elif head[i] == "<":
            depth -= 1
            if depth == 0:
                return i
        elif head[i] in ";{}":
            return -1
    return -1


def _matching(text: str, opening: int) -> int:
    depth = 0
    for i in range(opening, min(len(text), opening + 5000)):
        if text[i] == "(":
            depth += 1
        elif text[i] == ")":
            depth -= 1
            if depth == 0:
                return i
    return -1


def _position(text: str, offset: int) -> Position:
    line_start = text.rfind("\n", 0, offset) + 1
    return Position(text.count("\n", 0, offset) + 1, offset - line_start + 1)
