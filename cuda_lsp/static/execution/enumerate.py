"""Concrete execution of a kernel for one launch: all threads of one or a few blocks at once, in NumPy.

``execute`` is the whole interface: a kernel, a launch and values for its scalar parameters in; a
``Trace`` of accesses, barriers and doubts out.  What the budget cuts is in ``Trace.undecided``.  Nothing
here judges the trace: see ``races``, ``banks``, ``barriers``, ``bounds``, ``coalescing``.
"""

from __future__ import annotations

from collections.abc import Mapping

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.clusters import whole
from cuda_lsp.ir.program import Kernel
from cuda_lsp.ir.types import Pointer
from cuda_lsp.model import Dim3, LaunchConfig
from cuda_lsp.static.distributed import lifetimes
from cuda_lsp.static.execution import tickets
from cuda_lsp.static.execution.evaluate import Evaluator
from cuda_lsp.static.execution.machine import Machine
from cuda_lsp.static.execution.representatives import (
    NOT_IN_CLUSTERS,
    grid_of,
    in_clusters,
    representative_blocks,
    stand_for_all,
)
from cuda_lsp.static.execution.trace import Budget, OutOfBudget, OutOfTime, Path, Trace
from cuda_lsp.static.execution.values import Address, Spread
from cuda_lsp.static.facts import facts_of
from cuda_lsp.static.slicing import Slice


def execute(
    kernel: Kernel,
    launch: LaunchConfig,
    arguments: Mapping[str, int],
    gpu: GpuModel,
    budget: Budget | None = None,
    *,
    blocks: tuple[Dim3, ...] | None = None,
) -> Trace:
    """Execute ``kernel`` under ``launch``.

    ``arguments``: parameter name → value; a scalar parameter without one is unknown data, the same in all
    threads. ``blocks``: the blockIdx triples to execute; by default those of ``representatives``.
    """
    limits = budget or Budget()
    facts = facts_of(kernel)
    executed = whole(blocks or representative_blocks(facts, launch), kernel.cluster or (1, 1, 1))
    trace = Trace(kernel, launch, gpu, executed)
    trace.warp_synchronous = kernel.directives.warp_synchronous
    trace.reached = frozenset(facts.reached)
    if not in_clusters(launch, kernel.cluster):
        trace.excluded = NOT_IN_CLUSTERS
        return trace
    for reason in lifetimes(facts):
        trace.not_decided(reason)
    pending: list[tuple[bool, ...]] = [()]
    while pending:
        if trace.late:
            break
        if len(trace.paths) >= limits.paths:
            trace.not_decided("too many conditions that depend on data decide which barriers are reached")
            break
        planned = pending.pop()
        path = _execute_path(facts, trace, arguments, limits, planned)
        trace.paths.append(path)
        taken = tuple(outcome for outcome, _ in path.choices)
        pending.extend((*taken[:i], False) for i in range(len(planned), len(taken)) if taken[i])
    trace.whole = stand_for_all(facts, launch, executed)
    return trace


def _execute_path(
    facts: Slice, trace: Trace, arguments: Mapping[str, int], limits: Budget, planned: tuple[bool, ...]
) -> Path:
    evaluator = Evaluator(
        facts, trace.launch, grid_of(trace.launch, trace.kernel.cluster), trace.blocks, trace.gpu.warp_size
    )
    owners = {a.param.id: a for a in trace.kernel.arrays if a.param is not None}
    for var in trace.kernel.params:
        if var.id in owners:
            evaluator.env[var.id] = Address(owners[var.id], 0)
        elif var.name in arguments and not isinstance(var.type, Pointer):
            evaluator.env[var.id] = arguments[var.name]
        else:
            reason = f"the argument {var.name}"
            key = ("parameter", var.id)
            evaluator.env[var.id] = evaluator.data(key, reason, Spread.GRID, made=(key, ()))
    machine = Machine(facts, trace, evaluator, limits, planned)
    try:
        machine.run(trace.kernel.body, machine.everyone)
    except OutOfBudget as limit:
        trace.late = trace.late or isinstance(limit, OutOfTime)
        trace.not_decided(f"the execution was cut: {limit}")
    else:
        tickets.settle(machine.path)
        machine.split.settle(machine)
    return machine.path
