"""A kernel under one launch, walked for one generic thread: ``summarise`` is the way in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Var
from cuda_lsp.ir.walk import variables
from cuda_lsp.model import Mode, Space
from cuda_lsp.static.distributed import lifetimes, unfollowed
from cuda_lsp.static.facts import facts_of
from cuda_lsp.static.points_to import points_to
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import Drawing, Summary, accesses
from cuda_lsp.static.symbolic.loops import walk_loop
from cuda_lsp.static.symbolic.objects import WholeObjects, regular
from cuda_lsp.static.symbolic.terms import Term
from cuda_lsp.static.symbolic.values import Value
from cuda_lsp.static.symbolic.walk import EVERY_ARRAY, Walker, written_arrays


def summarise(
    kernel: ir.Kernel,
    axes: Mapping[ir.Axis, Term],
    arguments: Mapping[Var, Value],
    unroll: int = 0,
    deadline: float = math.inf,
) -> Summary:
    """The kernel under the launch that ``axes`` and ``arguments`` describe.

    ``deadline``: of ``work.now``. Raises ``TooLarge``.
    """
    pointers = points_to(kernel)
    written = written_arrays(kernel.body, pointers)
    if written >= EVERY_ARRAY:
        written = frozenset(a for a in kernel.arrays if a.space is not Space.CONSTANT)
    facts = facts_of(kernel)
    counters = frozenset(a for a in written if a.space is Space.GLOBAL)
    while True:
        walker = Walker(
            axes, arguments, unroll, written=written, waiting=frozenset(facts.waiting), arrives=facts.arrives,
            named_apart=facts.named_apart, reached=frozenset(facts.reached),
            deadline=deadline, counters=counters, walk_loop=walk_loop, pointers=pointers,
            acquiring=frozenset(facts.acquiring), claimed=facts.claimed - facts.reached,
            cleared=facts.cleared,
        )  # fmt: skip
        computed = _computed(kernel, walker)
        walker.objects = WholeObjects(walker.block_threads, regular(kernel.body))
        walker.walk(kernel.body)
        # A counter that something sets back hands out a number twice, and negative ones.
        stored = frozenset(e.array for e in accesses(walker.events) if e.mode is Mode.WRITE)
        taken = {slot.array for slot in walker.slots.values()} & counters
        kept = {slot.array for slot in walker.slots.values() if steady(slot, stored, walker.unsteady)}
        if taken <= kept:
            break
        counters &= kept
    assumption = t.and_(*(walker.evaluator().condition(a) for a in kernel.directives.assumptions))
    return Summary(
        tuple(walker.events),
        walker.facts,
        walker.unknowns,
        {name: slot for name, slot in walker.slots.items() if steady(slot, stored, walker.unsteady)},
        frozenset(walker.tainted),
        (*walker.reasons, *lifetimes(facts), *unfollowed(facts)),
        assumption,
        walker.locks,
        walker.assumed,
        frozenset(walker.loaded),
        walker.sizes,
        walker.places,
        walker.limits,
        walker.invariants,
        stored,
        walker.unrolled,
        frozenset(facts.reached),
        walker.claims,
        computed,
        walker.changed,
        tuple(walker.cut),
    )


def _computed(kernel: ir.Kernel, walker: Walker) -> dict[str, Term]:
    """Parameters that every launch computes from others, which the kernel's program begins with."""
    params = {var.name: var for var in kernel.params}
    found: dict[str, Term] = {}
    for s in kernel.body:
        if not isinstance(s, ir.Assign) or params.get(s.var.name, s.var) is s.var:
            break
        if all(params.get(var.name) is var for var in variables(s.value)):  # of no other that is computed
            value = walker.evaluator().value(s.value)
            if isinstance(value, Term):
                found[s.var.name] = value
    return found


def steady(drawing: Drawing, reset: frozenset[Array], wavering: Set[Array]) -> bool:
    """The counter never hands out a number twice, but for resets within the block."""
    array = drawing.array
    aliases = array.may_alias is not None and any(a.may_alias == array.may_alias for a in reset | wavering)
    if aliases or array in wavering:
        return False
    return array not in reset or array.space is Space.SHARED
