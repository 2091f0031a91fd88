"""A kernel program as linear code: statements with jumps, expressions as Python functions.

What a thread has done is then one number and its variables, so that many threads can be run in turns,
stopped before an access and looked at (``run``). Integers are exact, as the operation table says;
what is not known (floating point, constructs that nobody models) is ``None`` and stays it. A condition that
is not known may be passed over when neither arm holds a barrier or a jump: what the arms change is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from attrs import define, evolve, field, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.atomics import AtomicRow
from cuda_lsp.ir.program import Array, Stmt
from cuda_lsp.ir.types import Type
from cuda_lsp.ir.walk import assigned, pointers, root, used, variables, walk
from cuda_lsp.model import Mode, Scope, Site, Space
from cuda_lsp.static.schedules.exact_values import Evaluate, evaluator, exchanges
from cuda_lsp.static.slicing import Slice, tracked


@frozen(eq=False)
class Region:
    """What a condition decides over: where it ends, and what is not known behind it when nobody knows it."""

    end: list[int]
    slots: tuple[int, ...]
    stores: tuple[Evaluate, ...]
    passable: bool
    site: Site


@frozen(eq=False)
class Assign:
    slot: int
    value: Evaluate


@frozen(eq=False)
class Touch:
    """One access; ``value``: what a store writes. ``constant``: the same in every thread."""

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


@frozen(eq=False)
class Wait:
    barrier: ir.Barrier
    mask: Evaluate | None
    offered: tuple[Evaluate, ...]


@frozen(eq=False)
class Branch:
    """Goes on when true, jumps when false."""

    condition: Evaluate
    target: list[int]
    region: Region
    chosen: bool  # an ``if``, whose outcome may be chosen when nobody knows it


@frozen(eq=False)
class Jump:
    target: list[int]


@frozen(eq=False)
class Close:
    region: Region


@frozen(eq=False)
class Demand:
    condition: Evaluate


@frozen(eq=False)
class Stuck:
    reason: str


Instruction = Assign | Touch | Wait | Branch | Jump | Close | Demand | Stuck


@frozen(eq=False)
class Code:
    """``slots``: how many variables a thread has. ``params``: slots of the kernel's parameters."""

    kernel: ir.Kernel
    instructions: tuple[Instruction, ...]
    slots: int
    params: tuple[tuple[ir.Var, int], ...]
    demands: tuple[Evaluate, ...]

    @property
    def barriers(self) -> tuple[ir.Barrier, ...]:
        return tuple(i.barrier for i in self.instructions if isinstance(i, Wait))


@lru_cache(maxsize=4)
def linear_code(kernel: ir.Kernel, facts: Slice) -> Code:
    """The kernel as instructions, without what decides neither addresses nor ways.

    Raises ``RecursionError`` when expressions nest too deeply.
    """
    writer = _Writer(facts, _needed(facts))
    for param in kernel.params:
        writer.slot(param)
    writer.block(kernel.body)
    demands = tuple(writer.expression(e) for e in kernel.directives.assumptions)
    params = tuple((param, writer.slot(param)) for param in kernel.params)
    return Code(kernel, tuple(writer.code), len(writer.slots), params, demands)


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
                values = (s.value,) if isinstance(s, ir.Store) else s.operands
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
    facts: Slice
    needed: set[int]
    code: list[Instruction] = field(factory=list[Instruction])
    slots: dict[ir.Var, int] = field(factory=dict[ir.Var, int])
    labels: dict[int, list[int]] = field(factory=dict[int, list[int]])

    def slot(self, var: ir.Var) -> int:
        return self.slots.setdefault(var, len(self.slots))

    def here(self, label: list[int]) -> None:
        label[0] = len(self.code)

    def block(self, statements: Sequence[Stmt]) -> None:
        for i, s in enumerate(statements):
            self.statement(s, statements[i + 1] if i + 1 < len(statements) else None)

    def statement(self, s: Stmt, following: Stmt | None) -> None:
        match s:
            case ir.Assign():
                if s.var.id in self.needed:
                    self.code.append(Assign(self.slot(s.var), self.expression(s.value)))
            case ir.Loop() if self.computes_only(s):
                pass
            case ir.Load() | ir.Store() | ir.Atomic() | ir.Copy():
                self.access(s)
            case ir.Barrier():
                self.barrier(s, following)
            case ir.If():
                self.condition(s)
            case ir.Loop():
                self.loop(s)
            case ir.Block():
                end = self.labels[s.label] = [0]
                self.block(s.body)
                self.here(end)
            case ir.Leave():
                target = self.labels.get(s.label)
                self.code.append(Jump(target) if target is not None else Jump([1 << 60]))
            case ir.Assume():
                self.code.append(Demand(self.expression(s.condition)))
            case ir.Incomplete():
                if not s.harmless:
                    self.code.append(Stuck(s.construct))
            case ir.Fence() | ir.CommitCopies() | ir.AwaitCopies():
                pass

    def barrier(self, s: ir.Barrier, following: Stmt | None) -> None:
        if s.phase is not ir.BarrierPhase.SYNC or (s.scope is ir.BarrierScope.NAMED and s.count is not None):
            self.code.append(Stuck("a barrier of some threads"))
            return
        lanes = exchanges(following.value) if isinstance(following, ir.Assign) else []
        if s.scope is ir.BarrierScope.TILE:
            lanes = [(e, row) for e, row in lanes if row.source is not None]  # votes count from its lane 0
        offered = tuple(self.expression(e.operands[row.offered or 0]) for e, row in lanes[:1])
        mask = self.expression(s.mask) if s.mask is not None else None
        self.code.append(Wait(s, mask, offered))

    def access(self, s: ir.Load | ir.Store | ir.Atomic | ir.Copy) -> None:
        if isinstance(s, ir.Copy):
            size = self.expression(s.size)
            self.code.append(Touch(self.expression(s.source), size, Mode.READ, s.site))
            self.code.append(Touch(self.expression(s.destination), size, Mode.WRITE, s.site))
            return
        wanted = isinstance(s, ir.Load | ir.Atomic) and s.var is not None and s.var.id in self.needed
        if isinstance(s, ir.Load) and not wanted and not _matters(self.facts, s.pointer):
            return
        pointer, size = self.expression(s.pointer), s.type.size
        if isinstance(s, ir.Load):
            slot = self.slot(s.var) if wanted and s.var is not None else None
            self.code.append(Touch(pointer, size, Mode.READ, s.site, s.type, slot))
        elif isinstance(s, ir.Store):
            value, constant = self.expression(s.value), isinstance(s.value, ir.Const)
            self.code.append(Touch(pointer, size, Mode.WRITE, s.site, s.type, value=value, constant=constant))
        else:
            slot = self.slot(s.var) if wanted and s.var is not None else None
            operands = tuple(self.expression(o) for o in s.operands)
            self.code.append(
                Touch(
                    pointer, size, s.mode, s.site, s.type, slot, atomic=s.row, operands=operands,
                    scope=s.scope, elementwise=s.elementwise,
                )
            )  # fmt: skip

    def computes_only(self, s: ir.Loop) -> bool:
        """The loop touches nothing that races, and nothing that it computes decides anything behind it."""
        inside = list(walk((*s.test, *s.body, *s.step)))
        if id(s) in self.facts.waiting:
            return False
        for x in inside:
            if isinstance(x, ir.Load) and not _matters(self.facts, x.pointer):
                continue
            if isinstance(x, ir.Leave) and x.label in (s.label, s.continue_label):
                continue
            if isinstance(x, ir.Incomplete) and x.harmless:
                continue
            if not isinstance(x, ir.Assign | ir.If | ir.Loop | ir.Block) or id(x) in self.facts.waiting:
                return False
        own = {id(s), *map(id, inside)}
        changed = {var.id for x in inside if (var := assigned(x)) is not None} & self.needed
        others = (x for x in self.facts.statements if id(x) not in own)
        return not changed or not any(v.id in changed for x in others for e in used(x) for v in variables(e))

    def region(self, statements: Sequence[Stmt], site: Site) -> Region:
        slots: set[int] = set()
        stores: list[Evaluate] = []
        passable = self._effects(statements, slots, stores)
        return Region([0], tuple(sorted(slots)), tuple(stores), passable, site)

    def _effects(self, statements: Sequence[Stmt], slots: set[int], stores: list[Evaluate]) -> bool:
        """Collects what may change; whether the statements may be passed over."""
        passable = True
        for s in statements:
            match s:
                case ir.Barrier() | ir.Leave() | ir.Assume():
                    passable = False
                case ir.Incomplete():
                    passable = passable and s.harmless
                case ir.If():
                    passable &= self._effects((*s.then, *s.otherwise), slots, stores)
                case ir.Loop():
                    passable &= self._effects((*s.test, *s.body, *s.step), slots, stores)
                case ir.Block():
                    passable &= self._effects(s.body, slots, stores)
                case ir.Copy():
                    stores.append(self.expression(root(s.destination)))
                case ir.Store():
                    stores.append(self.expression(root(s.pointer)))
                case ir.Assign() | ir.Load() | ir.Atomic():
                    if s.var is not None:
                        slots.add(self.slot(s.var))
                    if isinstance(s, ir.Atomic):
                        stores.append(self.expression(root(s.pointer)))
                case _:
                    pass
        return passable

    def condition(self, s: ir.If) -> None:
        region = self.region((*s.then, *s.otherwise), s.site)
        otherwise = [0]
        self.code.append(Branch(self.expression(s.condition), otherwise, region, chosen=True))
        self.block(s.then)
        if s.otherwise:
            self.code.append(Jump(region.end))
        self.here(otherwise)
        self.block(s.otherwise)
        self.here(region.end)
        self.code.append(Close(region))

    def loop(self, s: ir.Loop) -> None:
        test, step, body = [0], [0], [0]
        region = self.region((*s.test, *s.body, *s.step), s.site)
        if id(s) in self.facts.waiting:  # it ends when another thread says so
            region = evolve(region, passable=False)
        end = self.labels[s.label] = [0]
        self.labels[s.continue_label] = step
        if not s.tests_first:
            self.code.append(Jump(body))
        self.here(test)
        self.block(s.test)
        self.code.append(Branch(self.expression(s.condition), end, region, chosen=False))
        self.here(body)
        self.block(s.body)
        self.here(step)
        self.block(s.step)
        self.code.append(Jump(test))
        self.here(end)
        self.here(region.end)

    def expression(self, e: ir.Expr) -> Evaluate:
        return evaluator(e, self.slot)
