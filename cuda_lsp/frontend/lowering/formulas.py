"""Parameters that every launch computes from others, in the kernel's program: they get their formula's value.

``a[row * heads * size + i]`` and ``a[row * stride + i]`` are then the same to whoever reads the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cuda_lsp.frontend.host.polynomials import Formula, names_in
from cuda_lsp.frontend.lowering.build import binary, cast
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.ir.program import Assign, Axis, BinaryOp, Builtin, Expr, Kernel, Var, const
from cuda_lsp.ir.types import Int, Type
from cuda_lsp.ir.walk import expressions, subexpressions

_AXES = {axis.value: axis for axis in Axis}


def with_formulas(low: Lowering, params: Sequence[Var]) -> tuple[list[Var], list[Assign]]:
    """The parameters, and what is to be computed before the body that ``low`` has made.

    A parameter that is computed gives its variable away and is itself a new one, which nothing reads. Nothing
    is computed for a kernel that uses no part of the formula: it would only be longer.
    """
    if not low.launched.computed:
        return list(params), []
    scalars = {var.name: var for var in params if isinstance(var.type, Int)}
    parts = list(subexpressions(expressions(low.out)))
    used = {e.name for e in parts if isinstance(e, Var)}
    used |= {e.axis.value for e in parts if isinstance(e, Builtin)}
    left = {
        name: formula
        for name, formula in low.launched.computed.items()
        if name in scalars and name in used and _bits(scalars[name]) >= 32 and _is_met(formula, used)
    }
    made: list[Assign] = []
    for name in _in_order(left):
        value = expression_of(left[name], scalars, scalars[name].type)
        if value is not None:
            made.append(Assign(scalars[name], value))
    taken = {assign.var for assign in made}
    return [low.var(var.name, var.type) if var in taken else var for var in params], made


def formulas_in(kernel: Kernel, computed: Mapping[str, Formula]) -> dict[str, Expr]:
    """What parameters are, by name, that the kernel's body does not read: conditions speak of that."""
    used = set(map(id, subexpressions(expressions(kernel.body)))) if computed else set[int]()
    params = {var.name: var for var in kernel.params if isinstance(var.type, Int)}
    scalars: dict[str, Expr] = dict(params)
    found: dict[str, Expr] = {}
    for name in _in_order({n: f for n, f in computed.items() if n in params and id(params[n]) not in used}):
        value = expression_of(computed[name], scalars, params[name].type)
        if value is not None:
            scalars[name] = found[name] = value
    return found


def _in_order(computed: Mapping[str, Formula]) -> Iterator[str]:
    """Each name behind those that its formula speaks of; nothing of circles."""
    left = dict(computed)
    while ready := [name for name, formula in left.items() if not names_in(formula) & left.keys()]:
        yield from ready
        for name in ready:
            del left[name]


def _bits(var: Var) -> int:
    return var.type.bits if isinstance(var.type, Int) else 0


def _is_met(formula: Formula, used: set[str]) -> bool:
    """Whether the kernel sees some part of a formula besides."""
    names = names_in(formula)
    indices = {name.replace("gridDim", "blockIdx").replace("blockDim", "threadIdx") for name in names}
    return not used.isdisjoint(names | indices)


def expression_of(formula: Formula, scalars: Mapping[str, Expr], type: Type) -> Expr | None:
    """A formula as an expression of a type; None: it names something that is no integer parameter."""
    if isinstance(formula, int):
        return const(type.wrap(formula) if isinstance(type, Int) else formula, type)
    if isinstance(formula, str):
        axis, var = _AXES.get(formula), scalars.get(formula)
        if axis is not None:
            return cast(Builtin(axis), type)
        return cast(var, type) if var is not None else None
    left, right = (expression_of(part, scalars, type) for part in formula[1:])
    return binary(BinaryOp(formula[0]), left, right) if left is not None and right is not None else None
