"""Kernel programs as text, by which they are compared."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from functools import cache
from typing import Any

import attrs
from attrs import define, field

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.types import Float, Opaque, Pointer
from cuda_lsp.model import Site


@define(eq=False)
class Structure:
    """Nodes as text, each behind its parts, once; what has a number by the order in which it comes."""

    digest: Any = field(factory=hashlib.sha256)
    _numbers: dict[tuple[str, int], str] = field(factory=dict[tuple[str, int], str])
    _nodes: dict[int, tuple[object, str]] = field(factory=dict[int, tuple[object, str]])  # which keeps them
    _texts: dict[str, str] = field(factory=dict[str, str])

    def text(self, node: object) -> str:
        """A short name of a node, whose text the digest has."""
        if isinstance(node, Site):
            return self.place(node)
        if isinstance(node, Mapping):
            return self._once(sorted(f"{key}={self.text(value)}" for key, value in _items(node)))
        if isinstance(node, (tuple, list)):
            return self._once(self.text(part) for part in _parts(node) if not self.is_dropped(part))
        if isinstance(node, (set, frozenset)):
            return self.text(sorted(_parts(node), key=str))
        if isinstance(node, (Enum, Pointer)):
            return type(node).__name__ if isinstance(node, Pointer) else node.name
        if not attrs.has(type(node)):
            return repr(node)
        known = self._nodes.get(id(node))
        if known is None:
            known = self._nodes[id(node)] = (node, self._node(node))
        return known[1]

    def place(self, site: Site) -> str:
        """What of a place in the source counts."""
        return self.text(site.range)

    def data(self, type: Float | Opaque) -> str:
        """What counts of a type whose values nobody computes."""
        return repr(type)

    def values(self, node: Any) -> dict[str, Any]:
        """What of a node counts, by the names of its fields."""
        cls: Any = node.__class__
        values: dict[str, Any] = {name: getattr(node, name) for name in _fields(cls)}
        for name in ("label", "continue_label", "id"):
            if isinstance(values.get(name), int):
                kind = name.removeprefix("continue_") if "label" in name else type(node).__name__
                values[name] = self._number(kind, values[name])
        if isinstance(node, ir.Unknown):
            values["reason"] = ""
        return values

    def is_dropped(self, part: object) -> bool:
        """Whether a statement does not count."""
        del part
        return False

    def _node(self, node: Any) -> str:
        if isinstance(node, (Float, Opaque)):
            return self.data(node)
        return self._once((type(node).__name__, *(self.text(value) for value in self.values(node).values())))

    def _number(self, kind: str, number: int) -> str:
        return self._numbers.setdefault((kind, number), f"{kind}{len(self._numbers)}")

    def _once(self, parts: Iterable[str]) -> str:
        """A short name of the text, which the digest has."""
        text = " ".join(parts)
        known = self._texts.get(text)
        if known is None:
            known = self._texts[text] = f"@{len(self._texts)}"
            self.digest.update(f"{text}\n".encode())
        return known


@cache
def _fields(cls: Any) -> tuple[str, ...]:
    return tuple(a.name for a in attrs.fields(cls))


def _parts(nodes: Any) -> Collection[object]:
    return nodes


def _items(nodes: Any) -> Iterable[tuple[object, object]]:
    return nodes.items()
