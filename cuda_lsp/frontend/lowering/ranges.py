"""``for (T x : range)`` over an object with iterators: the loop that the standard says it stands for.

``begin()`` and ``end()`` are called once; each round compares with ``!=``, takes ``*it``, and ends with
``++it``. libclang shows none of these calls: they are looked up by their names among the classes' members.
"""

from __future__ import annotations

from cuda_lsp.frontend.lowering import calls, conversions, expressions, lvalues
from cuda_lsp.frontend.lowering.functions import Function, defined
from cuda_lsp.frontend.lowering.output import Untranslatable
from cuda_lsp.frontend.lowering.places import PLACE_TYPES, Place, Value
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import TypeInfo, type_of, type_of_declaration
from cuda_lsp.frontend.tree import Declaration, Node
from cuda_lsp.ir.program import Expr

_PREFIX = 0  # parameters of ``operator++()``


class Iterators:
    """The iterators of one loop, between the places where it begins and ends."""

    def __init__(self, low: Lowering, node: Node, source: Node) -> None:
        """Calls ``begin()`` and ``end()`` of what ``source`` gives. Raises ``Untranslatable``."""
        self._low, self._node = low, node
        info = type_of(low.ast, source)
        whole = lvalues.place(low, source)
        self._at, self._end = (self._made(info, name, whole) for name in ("begin", "end"))
        self._type = self._at.info

    def differ(self) -> Expr:
        """``it != end``."""
        found = self._called(self._type, "operator!=", 1, self._at, self._end)
        value = self._low.read(found, self._node) if isinstance(found, PLACE_TYPES) else found
        return expressions.truth(self._low, value)

    def give(self, declaration: Declaration) -> None:
        """``T x = *it``."""
        low = self._low
        found = self._called(self._type, "operator*", 0, self._at)
        info = type_of_declaration(low.ast, declaration)
        if info.kind == "reference" and isinstance(found, PLACE_TYPES):
            low.env[declaration.key] = found
            return
        value = low.read(found, self._node) if isinstance(found, PLACE_TYPES) else found
        target = (info.target or info) if info.kind == "reference" else info
        copy = low.local(declaration.name, target, declaration.key)
        low.env[declaration.key] = copy
        low.write(copy, conversions.convert(low, value, target), None)

    def advance(self) -> None:
        """``++it``."""
        self._called(self._type, "operator++", _PREFIX, self._at)

    def _made(self, info: TypeInfo, name: str, whole: Place) -> Place:
        function = self._method(info, name, 0)
        if function.result.kind != "record":
            raise self._not_known(name)
        made = self._low.local("", function.result)
        value = calls.inline(self._low, self._node, function, [], whole)
        self._low.write(made, self._low.read(value, None) if isinstance(value, PLACE_TYPES) else value, None)
        return made

    def _called(
        self, info: TypeInfo, name: str, parameters: int, this: Place, *others: Place
    ) -> Value | Place:
        return calls.inline(self._low, self._node, self._method(info, name, parameters), list(others), this)

    def _method(self, info: TypeInfo, name: str, parameters: int) -> Function:
        for found in self._low.ast.methods(info.declaration) if info.declaration is not None else ():
            if found.name == name:
                function = defined(self._low, found)
                if function.body is not None and len(function.parameters) == parameters:
                    return function
        raise self._not_known(name)

    def _not_known(self, name: str) -> Untranslatable:
        text = self._low.ast.text(self._node)[:60]
        return Untranslatable(text, f"a range whose {name} is not known", self._node)
