"""A call of a built-in function, as the rows of the table receive it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from cuda_lsp.frontend.lowering import expressions
from cuda_lsp.frontend.lowering.build import zero
from cuda_lsp.frontend.lowering.output import Untranslatable
from cuda_lsp.frontend.lowering.places import RecordValue, Value
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import VOID, TypeInfo
from cuda_lsp.frontend.tree import Node
from cuda_lsp.ir.program import (
    Expr,
)
from cuda_lsp.ir.types import INT64


@frozen
class Call:
    """A call of a built-in: expression, name, argument expressions, result type."""

    low: Lowering
    node: Node
    name: str
    arguments: list[Node]
    info: TypeInfo

    def value(self, index: int) -> Value:
        """Argument ``index``, evaluated. Raises ``Untranslatable`` when there are fewer."""
        self._present(index)
        return expressions.value(self.low, self.arguments[index])

    def _present(self, index: int) -> None:
        if index >= len(self.arguments):
            raise Untranslatable(
                self.low.ast.text(self.node)[:60], "called with too few arguments", self.node
            )

    def scalar(self, index: int) -> Expr:
        """Argument ``index`` as an expression. Raises ``Untranslatable`` when there are fewer."""
        self._present(index)
        return expressions.scalar(self.low, self.arguments[index])

    def values(self) -> list[Value]:
        """All arguments, evaluated from left to right."""
        return [self.value(i) for i in range(len(self.arguments))]

    def nothing(self) -> Value:
        """The result of a call that gives none."""
        return zero(INT64)

    def record(self, values: tuple[Expr, ...]) -> Value:
        """A ``dim3`` of these, or what else the call gives that has fields."""
        if self.info.kind != "record":
            return self.unknown(self.name)
        parts: dict[int, Value] = {f.key: v for f, v in zip(self.info.fields, values, strict=False)}
        return RecordValue(self.info, parts)

    def unknown(self, reason: str, inputs: Sequence[Value] = (), varies: bool = False) -> Value:
        """A result that is not expressed, of the type that the call has; uniform as its ``inputs`` are."""
        if self.info is VOID:
            return zero(INT64)
        if self.info.kind == "record":
            return self.low.unknown_record(self.info, reason, inputs)
        return self.low.unknown(reason, self.info.ir, inputs, varies)

    def result(self, inputs: Sequence[Value]) -> Value:
        """What the function gives: of pure ones that are known an expression, where floats are computed."""
        if self.info is VOID or self.info.kind == "record":
            return self.unknown(f"the result of {self.name}", inputs)
        return self.low.result_of(self.name, self.info.ir, inputs)


Handler = Callable[[Call], Value | None]
