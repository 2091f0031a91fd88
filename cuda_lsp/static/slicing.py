"""What of a kernel matters: which variables reach addresses, guards and barriers, and who may point where.

A flow-insensitive backward slice, followed along definitions, and points-to sets over the variables of
one kernel, a fixpoint in a few passes.  Arithmetic on data (the actual computation of most kernels) is
not in the slice and is never executed.  Nothing here depends on a launch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache

from attrs import define, field, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.clusters import moved
from cuda_lsp.ir.program import Array, BarrierScope, Expr, Kernel, Stmt, Var
from cuda_lsp.ir.types import Int, Pointer
from cuda_lsp.ir.walk import (
    assigned,
    children,
    destinations,
    expressions,
    inside,
    labels,
    operands,
    stripped,
    used,
    variables,
    walk,
)
from cuda_lsp.model import Space
from cuda_lsp.static.needs import Needs

_ACCESSES = (ir.Load, ir.Store, ir.Atomic)


def pure(e: Expr) -> bool:
    """The same variables always give the same value (no fresh unknowns, no lane exchange)."""
    if isinstance(e, (ir.Unknown, ir.Intrinsic)):
        return False
    return all(pure(part) for part in operands(e))


@frozen(eq=False)
class LoopShape:
    """What the executor wants to know of one loop.

    ``carried``: relevant variables whose value one round hands to the next.  ``updates``: their
    assignments, in order, when each has exactly one, at the top level of body or step; else None.
    ``straight``: no barrier inside and no lane leaves the loop but by its condition. ``idle``: it only
    computes, of global memory that nobody writes. ``stepped``: assignments, in order, that all who stay
    come by in every round, the only ones of their variables, of what is carried or does not change.
    """

    carried: tuple[Var, ...]
    updates: tuple[ir.Assign, ...] | None
    affine: bool
    straight: bool
    has_barrier: bool
    steady: frozenset[int]  # carried variables that reach more than this loop's own condition
    idle: bool = False
    stepped: tuple[ir.Assign, ...] = ()


Dependencies = tuple[tuple[int, ...], bool]
"""Variable ids of an expression, and whether it is pure."""


@define(eq=False)
class Slice:
    """The facts of one kernel, computed once.

    ``relevant``: ids of variables worth computing.  ``targets``: array ids a pointer variable may hold.
    ``written``: arrays some access may write; ``wild``: some write goes through an unresolved pointer.
    ``modelled``: ids of arrays whose integer contents matter.  ``defining``: ``id()`` of assignments that
    need no merging with the lanes that do not execute them.
    """

    kernel: Kernel
    relevant: set[int] = field(factory=set[int])
    targets: dict[int, set[Array]] = field(factory=dict[int, set[Array]])
    written: set[Array] = field(factory=set[Array])
    wild: bool = False
    modelled: set[int] = field(factory=set[int])
    defining: set[int] = field(factory=set[int])
    loops: dict[int, LoopShape] = field(factory=dict[int, LoopShape])
    barrier_labels: set[int] = field(factory=set[int])
    with_barrier: set[int] = field(factory=set[int])  # id() of compound statements
    leaving: set[int] = field(factory=set[int])
    statements: list[Stmt] = field(factory=list[Stmt])
    leave_labels: dict[int, set[int]] = field(factory=dict[int, set[int]])  # by id() of the statement
    dependencies: dict[int, Dependencies] = field(factory=dict[int, Dependencies])
    warp_barriers: bool = False
    acquiring: set[int] = field(factory=set[int])  # id() of atomics that may take a lock, by ``waiting``
    lock_arrays: set[Array] = field(factory=set[Array])
    waiting: set[int] = field(factory=set[int])  # id() of loops
    claimed: frozenset[Array] = frozenset()  # no word of them is ever given back, by ``claimed_words``
    cleared: Mapping[int, int] = field(factory=dict[int, int])  # … but behind barriers, in so many loops
    reached: set[Array] = field(factory=set[Array])  # shared arrays that other blocks of a cluster may touch

    @property
    def arrives(self) -> bool:
        """Some threads arrive at a named barrier without waiting."""
        barriers = (s for s in self.statements if isinstance(s, ir.Barrier))
        return any(s.scope is BarrierScope.NAMED and s.phase is not ir.BarrierPhase.SYNC for s in barriers)

    @property
    def named_apart(self) -> bool:
        """A named barrier may be met at several places: each counts who comes, wherever that is."""
        return sum(isinstance(s, ir.Barrier) and s.scope is BarrierScope.NAMED for s in self.statements) > 1

    @property
    def splits(self) -> bool:
        """Barriers of some threads, or barrier objects, may order threads of a block."""
        barriers = (s for s in self.statements if isinstance(s, ir.Barrier))
        apart = (BarrierScope.NAMED, BarrierScope.OBJECT)
        return any(s.scope in apart or s.phase is not ir.BarrierPhase.SYNC for s in barriers)

    @property
    def outermost(self) -> int | None:
        """The label that leaves the kernel."""
        body = self.kernel.body
        return body[0].label if len(body) == 1 and isinstance(body[0], ir.Block) else None

    def roots(self, pointer: Expr) -> set[Array]:
        """The arrays that ``pointer`` may point into; empty: not resolved."""
        if isinstance(pointer, ir.AddressOf):
            return {pointer.array}
        if isinstance(pointer, Var):
            return self.targets.get(pointer.id, set())
        if isinstance(pointer, (ir.Offset, ir.Cast)):
            return self.roots(pointer.pointer if isinstance(pointer, ir.Offset) else pointer.operand)
        if isinstance(pointer, ir.Select):
            return self.roots(pointer.then) | self.roots(pointer.otherwise)
        return set()

    def depends(self, e: Expr) -> tuple[tuple[int, ...], bool]:
        """The variable ids of ``e`` and whether its value may be remembered for them."""
        known = self.dependencies.get(id(e))
        if known is None:
            known = (tuple(dict.fromkeys(v.id for v in variables(e))), pure(e))
            self.dependencies[id(e)] = known
        return known


def assigned_once(statements: Iterable[Stmt]) -> Mapping[Var, Expr]:
    """Variables that are assigned in one place, by a plain value, and that value."""
    values: dict[Var, Expr | None] = {}
    for s in statements:
        var = assigned(s)
        if var is not None:
            plain = isinstance(s, ir.Assign) and var not in values and pure(s.value)
            values[var] = s.value if plain and isinstance(s, ir.Assign) else None
    return {var: value for var, value in values.items() if value is not None}


def givers(statements: Iterable[Stmt]) -> Mapping[Var, Sequence[Stmt]]:
    """The statements that give variables their values, in program order."""
    found: dict[Var, list[Stmt]] = {}
    for s in statements:
        var = assigned(s)
        if var is not None:
            found.setdefault(var, []).append(s)
    return found


def slice_kernel(kernel: Kernel) -> Slice:
    """All facts of ``kernel``; a few passes over its statements."""
    result = Slice(kernel)
    result.statements = list(walk(kernel.body))
    _points_to(result)
    _written(result)
    _reached(result)
    needs = Needs.of(result.statements, result.roots, result.reached)
    result.relevant, result.modelled = _counting(result, needs, unwritten=True).closure()
    _structure(result, kernel.body)
    _defining(result)
    for_races = cache(lambda: _counting(result, needs, unwritten=False))
    for s in result.statements:
        if isinstance(s, ir.Loop):
            result.loops[id(s)] = _shape(result, for_races, s)
    return result


def _points_to(result: Slice) -> None:
    for array in result.kernel.arrays:
        if array.param is not None:
            result.targets.setdefault(array.param.id, set()).add(array)
    flows = [s for s in result.statements if isinstance(s, ir.Assign) and isinstance(s.var.type, Pointer)]
    changed = True
    while changed:
        changed = False
        for s in flows:
            known = result.targets.setdefault(s.var.id, set())
            size = len(known)
            known |= result.roots(s.value)
            changed |= len(known) != size


def _written(result: Slice) -> None:
    for s in result.statements:
        for pointer in destinations(s):
            roots = result.roots(pointer)
            result.wild |= not roots
            result.written |= roots
    groups = {a.may_alias for a in result.written} - {None}
    result.written |= {a for a in result.kernel.arrays if a.may_alias in groups}


def _reached(result: Slice) -> None:
    """Where nobody knows which array is meant, it is any of them."""
    if result.kernel.cluster is None:
        return
    shared = {a for a in result.kernel.arrays if a.space is Space.SHARED}
    for pointer in itertools.chain.from_iterable(map(moved, expressions(result.kernel.body))):
        result.reached |= (result.roots(pointer) or shared) & shared
    groups = {a.may_alias for a in result.reached} - {None}
    result.reached |= {a for a in shared if a.may_alias in groups}


@define(eq=False)
class _Counting:
    """What counts in a kernel: of each statement the variables in addresses, conditions and barriers.

    ``contents``: arrays whose contents count.
    """

    needs: Needs
    variables: list[tuple[Stmt, tuple[int, ...]]] = field(factory=list["tuple[Stmt, tuple[int, ...]]"])
    contents: list[Array] = field(factory=list[Array])

    def closure(self, without: ir.Loop | None = None) -> tuple[set[int], set[int]]:
        """Variables that reach what counts, the condition of ``without`` aside, and arrays."""
        own = (named for s, named in self.variables if s is not without)
        return self.needs.followed(itertools.chain.from_iterable(own), self.contents)


def _counting(result: Slice, needs: Needs, *, unwritten: bool) -> _Counting:
    """``unwritten``: addresses of memory that nobody writes, too; they matter for coalescing alone."""
    found = _Counting(needs)
    for s in result.statements:
        counting: list[Expr] = []
        if isinstance(s, _ACCESSES):
            roots = set[Array]() if unwritten else result.roots(s.pointer)
            if not roots or any(tracked(result, a) for a in roots):
                counting.append(s.pointer)
            if result.kernel.valued and isinstance(s, ir.Store):
                counting.append(s.value)
        elif not isinstance(s, ir.Assign):
            counting += used(s)
            if result.kernel.valued and isinstance(s, ir.Copy):
                found.contents += (a for a in result.roots(s.source) if a.space is Space.LOCAL)
        found.variables += ((s, named) for named in map(needs.named, counting) if named)
    return found


def tracked(result: Slice, array: Array) -> bool:
    """Races are possible on it: shared, or global and written by this kernel."""
    if array.space is Space.GLOBAL:
        return result.wild or array in result.written
    return array.space is Space.SHARED


def _structure(result: Slice, statements: tuple[Stmt, ...]) -> tuple[bool, set[int]]:
    """Fill barrier and leave facts; returns (contains a block-level barrier, labels left to)."""
    barrier, left = False, set[int]()
    for s in statements:
        if isinstance(s, ir.Barrier):
            if s.scope.of_lanes:
                result.warp_barriers = True
            else:
                barrier = True
        elif isinstance(s, ir.Leave):
            left.add(s.label)
        elif isinstance(s, (ir.If, ir.Loop, ir.Block)):
            parts = [_structure(result, inner) for inner in children(s)]
            has = any(b for b, _ in parts)
            out = set[int]().union(*(ls for _, ls in parts))
            if has:
                result.with_barrier.add(id(s))
                result.barrier_labels |= labels(s)
            out -= labels(s)
            if out:
                result.leaving.add(id(s))
                result.leave_labels[id(s)] = out
            barrier |= has
            left |= out
    return barrier, left


def _defining(result: Slice) -> None:
    """A variable whose occurrences all lie in one statement list that first assigns it is local to it."""
    paths: dict[int, tuple[int, ...]] = {}  # variable → common path of list ids
    first: dict[int, tuple[Stmt, tuple[int, ...]] | None] = {}

    def visit(statements: tuple[Stmt, ...], path: tuple[int, ...]) -> None:
        for s in statements:
            if isinstance(s, ir.Loop):
                visit_loop(s, (*path, id(s)))
                continue
            read(s, path)
            var = assigned(s)
            if var is not None:
                touch(var.id, path, s)
            for inner in children(s):
                visit(inner, (*path, id(inner)))

    def visit_loop(s: ir.Loop, path: tuple[int, ...]) -> None:
        # a loop's test, body and step share one list: what the body assigns the step may read
        visit(s.test, path)
        read(s, path)
        visit(s.body, path)
        visit(s.step, path)

    def read(s: Stmt, path: tuple[int, ...]) -> None:
        for e in used(s):
            for v in variables(e):
                touch(v.id, path, None)

    def touch(var: int, path: tuple[int, ...], s: Stmt | None) -> None:
        if var not in paths:
            paths[var] = path
            first[var] = None if s is None else (s, path)
            return
        common = 0
        for a, b in zip(paths[var], path, strict=False):
            if a != b:
                break
            common += 1
        paths[var] = path[:common]

    visit(result.kernel.body, ())
    for var, definition in first.items():
        if definition is not None and definition[1] == paths[var]:
            result.defining.add(id(definition[0]))


def _shape(result: Slice, counting: Callable[[], _Counting], loop: ir.Loop) -> LoopShape:
    within = list(inside(loop))
    local = {v.id for s in within if (v := assigned(s)) is not None and id(s) in result.defining}
    changed: dict[int, Var] = {}
    for s in within:
        var = assigned(s)
        if var is not None and var.id in result.relevant and var.id not in local:
            changed[var.id] = var
    carried = tuple(changed.values())
    top = [s for s in loop.body + loop.step if isinstance(s, ir.Assign) and s.var.id in changed]
    single = len(top) == len(carried) == sum(1 for s in within if (v := assigned(s)) and v.id in changed)
    continues = any(isinstance(s, ir.Leave) and s.label == loop.continue_label for s in within)
    in_body = any(isinstance(s, ir.Assign) and s.var.id in changed for s in loop.body)
    single = single and not (continues and in_body)
    skipped = {id(s) for s in loop.body} if continues else set[int]()
    affine = single and all(_affine(s, set(changed)) for s in top)
    known = {loop.continue_label}.union(*(labels(s) for s in within))
    escapes = any(isinstance(s, ir.Leave) and s.label not in known for s in within)
    barrier = any(isinstance(s, (ir.Barrier, ir.Fence, ir.CommitCopies, ir.AwaitCopies)) for s in within)
    beyond = counting().closure(loop)[0] if barrier and changed else set[int]()
    return LoopShape(
        carried=carried,
        updates=tuple(top) if single else None,
        affine=affine,
        straight=loop.tests_first
        and not (barrier or escapes or loop.test)
        and not _self_feeding(result, within),
        has_barrier=id(loop) in result.with_barrier,
        steady=frozenset(beyond & changed.keys()),
        idle=all(_idles(result, s) for s in within),
        stepped=tuple(s for s in top if id(s) not in skipped and _steps(s, within, set(changed))),
    )


def _steps(s: ir.Assign, within: Sequence[Stmt], carried: Set[int]) -> bool:
    """Nothing else in the loop assigns its variable, or what it is made of, unless that is carried."""
    assigning = [v.id for inner in within if (v := assigned(inner)) is not None]
    made_of = {v.id for v in variables(s.value)}
    return assigning.count(s.var.id) == 1 and not (made_of & set(assigning)) - carried


_COMPUTES = (ir.Assign, ir.If, ir.Block, ir.Loop, ir.Leave, ir.Within)


def _idles(result: Slice, s: Stmt) -> bool:
    """No other thread and no later access has anything to do with it."""
    if not isinstance(s, ir.Load):
        return isinstance(s, _COMPUTES)
    roots = result.roots(s.pointer)
    read_only = all(a.space is Space.GLOBAL and a not in result.written for a in roots)
    return bool(roots) and read_only and not result.wild


def _self_feeding(result: Slice, inside: list[Stmt]) -> bool:
    """Memory whose contents are modelled carries values from round to round."""
    stored, loaded = set[int](), set[int]()
    for s in inside:
        if isinstance(s, (ir.Store, ir.Atomic)):
            arrays = {a for a in result.roots(s.pointer) if a.id in result.modelled}
            if any(a.space is Space.LOCAL for a in arrays):
                return True
            stored |= {a.id for a in arrays}
        elif isinstance(s, ir.Load):
            loaded |= {a.id for a in result.roots(s.pointer)}
    return bool(stored & loaded)


def _affine(s: ir.Assign, changed: set[int]) -> bool:
    """``v = v ± invariant`` or ``p = p + invariant bytes``, through casts."""
    e: Expr = s.value
    while isinstance(e, ir.Cast) and isinstance(e.type, Int) and isinstance(s.var.type, Int):
        if e.type.bits < s.var.type.bits:
            return False
        e = e.operand
    if isinstance(e, ir.Offset):
        base, rest, right_only = e.pointer, e.bytes, True
    elif isinstance(e, ir.Binary) and e.op.value in "+-":
        base, rest, right_only = e.left, e.right, e.op.value == "-"
    else:
        return False
    for first, second in ((base, rest),) if right_only else ((base, rest), (rest, base)):
        if stripped(first) is s.var and not any(v.id in changed for v in variables(second)):
            return True
    return False
