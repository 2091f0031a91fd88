"""A kernel program as linear code: statements with jumps, expressions as Python functions.

What a thread has done is then one number and its variables, so that many threads can be run in turns,
stopped before an access and looked at (``run``), or one alone (``replay``). A condition that nobody knows may
be passed over when neither arm holds a barrier or a jump: what the arms change is forgotten.

Two ways to write it: for a schedule of threads, without what decides neither addresses nor ways; and whole,
with what is told of each access of a thread alone: finished rounds, held locks, chosen conditions are
variables too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from attrs import define, evolve, field, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.atomics import AtomicRow
from cuda_lsp.ir.program import Array, Stmt
from cuda_lsp.ir.types import Float, Opaque, Type
from cuda_lsp.ir.walk import accesses, assigned, inside, pointers, root, stored, used, variables, walk
from cuda_lsp.model import Mode, Scope, Site, Space
from cuda_lsp.static import budgets
from cuda_lsp.static.exact.on_the_way import on_the_way
from cuda_lsp.static.exact.values import Evaluate, evaluator, exchanges
from cuda_lsp.static.slicing import Slice, tracked


@frozen(eq=False)
class Inside:
    """Variables that tell where in its way a thread is: of loops, their finished rounds, outermost first; of
    locks, their addresses; of conditions, the outcome that was chosen, innermost first."""

    rounds: tuple[int, ...] = ()
    locks: tuple[tuple[int, Scope | None], ...] = ()
    choices: tuple[tuple[int, Site], ...] = ()


@frozen(eq=False)
class Passed:
    """An access that may have happened. ``arrays``: where, when its ``root`` is not known; empty:
    anywhere."""

    root: Evaluate | None
    arrays: frozenset[Array]
    writes: bool


@frozen(eq=False)
class Region:
    """What a condition decides over: where it ends, and what is not known behind it when nobody knows it."""

    end: list[int]
    slots: tuple[int, ...]
    accesses: tuple[Passed, ...]
    passable: bool
    site: Site


@frozen(eq=False)
class Assign:
    slot: int
    value: Evaluate


@frozen(eq=False)
class Touch:
    """One access; ``value``: what a store writes; ``parts``: of a record, the byte, the size and the value of
    each field. ``constant``: the same in every thread. ``part``: of what the access before it reads."""

    pointer: Evaluate
    size: int | Evaluate
    mode: Mode
    site: Site
    type: Type | None = None
    slot: int | None = None
    value: Evaluate | None = None
    atomic: AtomicRow | None = None
    operands: tuple[Evaluate, ...] = ()
    scope: Scope | None = None
    elementwise: bool = False
    constant: bool = False
    part: bool = False
    parts: tuple[tuple[int, int, Evaluate], ...] = ()
    inside: Inside = Inside()


@frozen(eq=False)
class Wait:
    barrier: ir.Barrier
    mask: Evaluate | None
    offered: tuple[Evaluate, ...]


@frozen(eq=False)
class Branch:
    """Goes on when true, jumps when false. ``choice``: where an outcome that was chosen is noted."""

    condition: Evaluate
    target: list[int]
    region: Region
    chosen: bool  # an ``if``, whose outcome may be chosen when nobody knows it
    choice: int | None = None


@frozen(eq=False)
class Jump:
    """``rounds``: the variable that counts a loop's finished rounds."""

    target: list[int]
    rounds: int | None = None


@frozen(eq=False)
class Close:
    region: Region


@frozen(eq=False)
class Demand:
    condition: Evaluate


@frozen(eq=False)
class Keep:
    """Element ``index`` of the ``extent`` from ``pointer`` on is meant: who leaves them goes no further."""

    pointer: Evaluate
    index: Evaluate
    extent: int


@frozen(eq=False)
class Stuck:
    """What is not translated, or not modelled."""


Instruction = Assign | Touch | Wait | Branch | Jump | Close | Demand | Keep | Stuck


@frozen(eq=False)
class Code:
    """``slots``: how many variables a thread has. ``params``: slots of the kernel's parameters. ``floats``:
    they are computed."""

    kernel: ir.Kernel
    instructions: tuple[Instruction, ...]
    slots: int
    params: tuple[tuple[ir.Var, int], ...]
    demands: tuple[Evaluate, ...]
    floats: bool = False

    @property
    def barriers(self) -> tuple[ir.Barrier, ...]:
        return tuple(i.barrier for i in self.instructions if isinstance(i, Wait))


@lru_cache(maxsize=budgets.KEPT_FACTS)
def linear_code(
    kernel: ir.Kernel, facts: Slice, cells: frozenset[int] = frozenset(), floats: bool = False
) -> Code:
    """The kernel for a schedule of threads, without what decides neither addresses nor ways.

    ``cells``: ids of integers that floating-point data make, the same in all threads. ``floats``: they are
    computed (``values``). Raises ``RecursionError`` when expressions nest too deeply.
    """
    chosen = dict.fromkeys(cells, budgets.HUB)
    return _written(_Writer(facts, _needed(facts), floats, chosen), kernel)


@lru_cache(maxsize=budgets.KEPT_FACTS)
def barrier_code(kernel: ir.Kernel, facts: Slice, floats: bool = False) -> Code:
    """As ``linear_code``, without what does not decide which barriers are come to either."""
    way = on_the_way(facts)
    return _written(_Writer(facts, way.needed, floats, only=frozenset(way.statements)), kernel)


@lru_cache(maxsize=budgets.KEPT_FACTS)
def whole_code(kernel: ir.Kernel, floats: bool = False) -> Code:
    """The kernel for one thread alone; nothing is taken from any analysis.

    ``floats``: they are computed as well (``values``). Raises ``RecursionError`` as ``linear_code`` does.
    """
    return _written(_Writer(None, floats=floats), kernel)


def _written(writer: _Writer, kernel: ir.Kernel) -> Code:
    for param in kernel.params:
        writer.slot(param)
    writer.block(kernel.body)
    assumed = kernel.directives.assumptions if writer.facts is not None else ()
    demands = tuple(writer.expression(e) for e in assumed)
    params = tuple((param, writer.slot(param)) for param in kernel.params)
    return Code(kernel, tuple(writer.code), writer.slots, params, demands, writer.floats)


def _needed(facts: Slice) -> set[int]:
    """Variables that reach an address, a condition or a barrier, also by way of memory."""
    needed = {v.id for s in facts.statements if not isinstance(s, ir.Assign) for v in _decides(facts, s)}
    needed |= {v.id for e in facts.kernel.directives.assumptions for v in variables(e)}
    held: set[Array] = set()
    size = -1
    while size != len(needed) + len(held):
        size = len(needed) + len(held)
        for s in facts.statements:
            wanted = (var := assigned(s)) is not None and var.id in needed
            if isinstance(s, ir.Assign) and wanted:
                needed |= {v.id for v in variables(s.value)}
            elif isinstance(s, ir.Load | ir.Atomic) and wanted:
                held |= facts.roots(s.pointer)
                needed |= {v.id for v in variables(s.pointer)}
            if isinstance(s, ir.Store | ir.Atomic) and facts.roots(s.pointer) & held:
                values = stored(s) if isinstance(s, ir.Store) else s.operands
                needed |= {v.id for e in values for v in variables(e)}
    return needed


def _decides(facts: Slice, s: Stmt) -> Iterator[ir.Var]:
    """What a statement's addresses and conditions are made of; none of values, nor of what nobody writes."""
    if isinstance(s, ir.Load | ir.Store | ir.Atomic | ir.Copy):
        for pointer in pointers(s):
            if _matters(facts, pointer):
                yield from variables(pointer)
        if isinstance(s, ir.Copy):
            yield from variables(s.size)
        return
    for e in used(s):
        yield from variables(e)


def _matters(facts: Slice, pointer: ir.Expr) -> bool:
    """It may point to memory that races."""
    roots = facts.roots(pointer)
    return not roots or any(tracked(facts, a) or a.space is Space.LOCAL for a in roots)


@define(eq=False)
class _Writer:
    """``facts``: None to write the whole kernel for one thread. ``only``: ids of statements to write."""

    facts: Slice | None
    needed: set[int] = field(factory=set[int])
    floats: bool = False
    chosen: Mapping[int, int] = field(factory=dict[int, int])
    only: frozenset[int] | None = None
    code: list[Instruction] = field(factory=list[Instruction])
    slots: int = 0
    of_vars: dict[ir.Var, int] = field(factory=dict[ir.Var, int])
    labels: dict[int, list[int]] = field(factory=dict[int, list[int]])
    inside: Inside = Inside()

    def slot(self, var: ir.Var) -> int:
        if var not in self.of_vars:
            self.of_vars[var] = self.fresh()
        return self.of_vars[var]

    def fresh(self) -> int:
        self.slots += 1
        return self.slots - 1

    def expression(self, e: ir.Expr) -> Evaluate:
        return evaluator(e, self.slot, self.floats, self.chosen)

    def wants(self, var: ir.Var) -> bool:
        """Its value may decide something."""
        if self.facts is None:
            return self.floats or not isinstance(var.type, Float | Opaque)
        return var.id in self.needed

    def here(self, label: list[int]) -> None:
        label[0] = len(self.code)

    def block(self, statements: Sequence[Stmt]) -> None:
        for i, s in enumerate(statements):
            self.statement(s, statements[i + 1] if i + 1 < len(statements) else None)

    def statement(self, s: Stmt, following: Stmt | None) -> None:
        if self.only is not None and id(s) not in self.only:
            return
        match s:
            case ir.Assign():
                if self.wants(s.var):
                    self.code.append(Assign(self.slot(s.var), self.expression(s.value)))
            case ir.Load() | ir.Store() | ir.Atomic():
                self.access(s)
            case ir.Copy():
                size = self.expression(s.size)
                for pointer, mode, site in accesses(s):
                    place = self.expression(pointer)
                    self.code.append(Touch(place, size, mode, site, inside=self.inside))
            case ir.Barrier():
                self.barrier(s, following)
            case ir.If():
                self.condition(s)
            case ir.Loop():
                if not self.computes_only(s):
                    self.loop(s)
            case ir.Block():
                self.enclosed(s)
            case ir.Leave():
                self.code.append(Jump(self.labels.get(s.label, [1 << 60])))
            case ir.Assume():
                if self.facts is not None:
                    self.code.append(Demand(self.expression(s.condition)))
            case ir.Within():
                if self.facts is not None:
                    where, index = self.expression(s.pointer), self.expression(s.index)
                    self.code.append(Keep(where, index, s.extent))
            case ir.Incomplete():
                if not s.harmless:
                    self.code.append(Stuck())
            case ir.Fence() | ir.CommitCopies() | ir.AwaitCopies():
                pass

    def barrier(self, s: ir.Barrier, following: Stmt | None) -> None:
        mask = self.expression(s.mask) if s.mask is not None else None
        waits = s.phase is ir.BarrierPhase.SYNC
        if self.facts is None:
            if waits or (s.scope is ir.BarrierScope.OBJECT and s.phase is ir.BarrierPhase.WAIT):
                self.code.append(Wait(s, mask, ()))
            return
        if not waits or (s.scope is ir.BarrierScope.NAMED and s.count is not None):
            self.code.append(Stuck())  # a barrier of some threads
            return
        lanes = exchanges(following.value) if isinstance(following, ir.Assign) else []
        if s.scope is ir.BarrierScope.TILE:
            lanes = [(e, row) for e, row in lanes if row.source is not None]  # votes count from its lane 0
        offered = tuple(self.expression(e.operands[row.offered or 0]) for e, row in lanes[:1])
        self.code.append(Wait(s, mask, offered))

    def access(self, s: ir.Load | ir.Store | ir.Atomic) -> None:
        var = assigned(s)
        slot = self.slot(var) if var is not None and self.wants(var) else None
        if isinstance(s, ir.Load) and slot is None and self.facts and not _matters(self.facts, s.pointer):
            return
        pointer = self.expression(s.pointer)
        touch = Touch(pointer, s.type.size, Mode.READ, s.site, s.type, slot, inside=self.inside)
        if isinstance(s, ir.Load):
            touch = evolve(touch, part=s.part)
        elif isinstance(s, ir.Store):
            value, constant = self.expression(s.value), isinstance(s.value, ir.Const)
            parts = tuple((at, e.type.size, self.expression(e)) for at, e in s.parts)
            touch = evolve(touch, mode=Mode.WRITE, value=value, constant=constant, parts=parts)
        else:
            operands = tuple(map(self.expression, s.operands))
            touch = evolve(touch, mode=s.mode, atomic=s.row, operands=operands)
            touch = evolve(touch, scope=s.scope, elementwise=s.elementwise)
        self.code.append(touch)

    def enclosed(self, s: ir.Block) -> None:
        outer, end = self.inside, [0]
        self.labels[s.label] = end
        if s.lock is not None:
            slot = self.fresh()
            self.code.append(Assign(slot, self.expression(s.lock.pointer)))
            self.inside = evolve(outer, locks=(*outer.locks, (slot, s.lock.scope)))
        self.block(s.body)
        self.inside = outer
        self.here(end)

    def computes_only(self, s: ir.Loop) -> bool:
        """The loop touches nothing that races, and nothing that it computes decides anything behind it."""
        facts = self.facts
        if facts is None or id(s) in facts.waiting:
            return False
        within = list(inside(s))
        for x in within:
            if isinstance(x, ir.Load) and not _matters(facts, x.pointer):
                continue
            if isinstance(x, ir.Leave) and x.label in (s.label, s.continue_label):
                continue
            if isinstance(x, ir.Incomplete) and x.harmless:
                continue
            if (
                not isinstance(x, ir.Assign | ir.If | ir.Loop | ir.Block | ir.Within)
                or id(x) in facts.waiting
            ):
                return False
        own = {id(s), *map(id, within)}
        changed = {var.id for x in within if (var := assigned(x)) is not None} & self.needed
        others = (x for x in facts.statements if id(x) not in own)
        return not changed or not any(v.id in changed for x in others for e in used(x) for v in variables(e))

    def region(self, statements: Sequence[Stmt], site: Site) -> Region:
        inside = list(walk(tuple(statements)))
        stops = (ir.Barrier, ir.Leave) if self.facts is None else (ir.Barrier, ir.Leave, ir.Assume)
        passable = not any(
            isinstance(s, stops) or (isinstance(s, ir.Incomplete) and not s.harmless) for s in inside
        )
        changed = {var: None for s in inside if (var := assigned(s)) is not None}
        lost = {
            var for s in inside if (var := assigned(s)) is not None
            if not isinstance(s, ir.Assign) or root(s.value) is not var
        }  # fmt: skip
        accesses = tuple(
            self.passed(s, pointer, lost)
            for s in inside
            for pointer in pointers(s)
            if self.facts is None or _may_write(s, pointer)
        )
        slots = tuple(self.slot(var) for var in changed if self.wants(var))
        return Region([0], slots, accesses, passable, site)

    def passed(self, s: Stmt, pointer: ir.Expr, lost: Collection[ir.Var]) -> Passed:
        """``lost``: variables that may point to something else by then."""
        base = root(pointer)
        where = None if base in lost else self.expression(base)
        arrays = self.facts.roots(pointer) if self.facts is not None else ()
        return Passed(where, frozenset(arrays), _may_write(s, pointer))

    def condition(self, s: ir.If) -> None:
        region = self.region((*s.then, *s.otherwise), s.site)
        outer, otherwise, choice = self.inside, [0], None
        if self.facts is None:
            choice = self.fresh()
            self.inside = evolve(outer, choices=((choice, s.site), *outer.choices))
        self.code.append(Branch(self.expression(s.condition), otherwise, region, True, choice))
        self.block(s.then)
        if s.otherwise:
            self.code.append(Jump(region.end))
        self.here(otherwise)
        self.block(s.otherwise)
        self.here(region.end)
        self.inside = outer
        if self.facts is not None:
            self.code.append(Close(region))

    def loop(self, s: ir.Loop) -> None:
        test, step, body, end = [0], [0], [0], [0]
        outer, rounds = self.inside, None
        region = evolve(self.region((*s.test, *s.body, *s.step), s.site), end=end)
        if self.facts is None:
            rounds = self.fresh()
            self.code.append(Assign(rounds, lambda t: 0))
            self.inside = evolve(outer, rounds=(*outer.rounds, rounds))
        elif id(s) in self.facts.waiting:  # it ends when another thread says so
            region = evolve(region, passable=False)
        self.labels[s.label], self.labels[s.continue_label] = end, step
        if not s.tests_first:
            self.code.append(Jump(body))
        self.here(test)
        self.block(s.test)
        self.code.append(Branch(self.expression(s.condition), end, region, chosen=False))
        self.here(body)
        self.block(s.body)
        self.here(step)
        self.block(s.step)
        self.code.append(Jump(test, rounds))
        self.here(end)
        self.inside = outer


def _may_write(s: Stmt, pointer: ir.Expr) -> bool:
    return not isinstance(s, ir.Load) and pointer is pointers(s)[0]
