"""The two branches of a condition that lanes differ in, or that nobody knows, and variables behind them.

In a branch a variable holds what was assigned there, whatever it holds in lanes that are not in it: a
counter that starts with ``i = 2`` is 2, and not 2 or what it was for others. Behind both, each lane has the
value of the branch that it was in.
"""

from __future__ import annotations

from cuda_lsp.ir.program import If, Stmt
from cuda_lsp.static.execution.masks import Mask
from cuda_lsp.static.execution.state import Execution
from cuda_lsp.static.execution.values import Data, Lanes, Value, identity

_Env = dict[int, Value]


def run(
    machine: Execution, s: If, condition: Lanes | Data, mask: Mask, then: Mask | None, otherwise: Mask | None
) -> None:
    """Execute both branches, by the lanes of ``mask`` that are, or may be, in each."""
    first = _branch(machine, s.then, then)
    second = _branch(machine, s.otherwise, otherwise)
    for var in first | second:
        before = machine.eval.env.get(var)
        value = _joined(machine, condition, first.get(var, before), second.get(var, before))
        if value is not None:
            machine.keep(var, value, mask)


def _branch(machine: Execution, statements: tuple[Stmt, ...], mask: Mask | None) -> _Env:
    """What variables hold at the end of a branch; the environment is as it was before."""
    if mask is None or not statements:
        return {}
    env, changed = machine.eval.env, machine.changed_in(statements)
    before = {var: env[var] for var in changed if var in env}
    outer, machine.base = machine.base, mask
    try:
        machine.run(statements, mask)
    finally:
        machine.base = outer
    behind = {var: env.pop(var) for var in sorted(changed) if var in env}
    env.update(before)
    return behind


def _joined(
    machine: Execution, condition: Lanes | Data, then: Value | None, otherwise: Value | None
) -> Value | None:
    if then is None or otherwise is None:
        return otherwise if then is None else then
    key = ("joined", identity(condition), identity(then), identity(otherwise))
    known = machine.eval.remembered(key)
    if known is None:
        value = machine.eval.select(condition, then, otherwise)
        known = machine.eval.remember(key, value, condition, then, otherwise)
    return known
