"""A kernel program as linear code: statements with jumps, expressions as Python functions.

What a thread has done is then one number and its variables, so that many threads can be run in turns,
stopped before an access and looked at (``schedules``). Integers are exact, as the operation table says;
what is not known (floating point, constructs that nobody models) is ``None`` and stays it. A condition that
is not known may be passed over when neither arm holds a barrier or a jump: what the arms change is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from attrs import define, evolve, field, frozen

from cuda_lsp.ir import ops
from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Axis, Stmt
from cuda_lsp.ir.types import INT64, Int, Pointer, Type
from cuda_lsp.model import Mode, Scope, Site, Space
from cuda_lsp.static.slicing import Slice, assigned, pointers, tracked, used, variables, walk

Where = tuple[Array, int | None]
"""An address: the object, and the byte in it when that is known."""

Value = int | Where | None
Evaluate = Callable[[Any], Value]
"""A value for one thread, which has ``held`` (variables by slot), ``axes``, and ``offers`` (of its warp)."""


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
    op: str = ""
    operands: tuple[Evaluate, ...] = ()
    scope: Scope | None = None
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
        exchanges = _exchanges(following.value) if isinstance(following, ir.Assign) else []
        if s.scope is ir.BarrierScope.TILE:
            exchanges = [e for e in exchanges if e.name.startswith("__shfl")]  # votes count from its lane 0
        offered = tuple(self.expression(e.operands[_OFFERED.get(e.name, 0)]) for e in exchanges[:1])
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
                    pointer, size, Mode.ATOMIC, s.site, s.type, slot, op=s.op, operands=operands,
                    scope=s.scope,
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
                    stores.append(self.expression(_root(s.destination)))
                case ir.Store():
                    stores.append(self.expression(_root(s.pointer)))
                case ir.Assign() | ir.Load() | ir.Atomic():
                    if s.var is not None:
                        slots.add(self.slot(s.var))
                    if isinstance(s, ir.Atomic):
                        stores.append(self.expression(_root(s.pointer)))
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

    # -- expressions

    def expression(self, e: ir.Expr) -> Evaluate:
        match e:
            case ir.Const():
                value = e.value if isinstance(e.value, int) and isinstance(e.type, Int) else None
                return lambda t: value
            case ir.Var():
                slot = self.slot(e)
                return lambda t: t.held[slot]
            case ir.Builtin():
                axis: Axis = e.axis
                return lambda t: t.axes[axis]
            case ir.AddressOf():
                where = (e.array, 0)
                return lambda t: where
            case ir.Offset():
                return _offset(self.expression(e.pointer), self.expression(e.bytes))
            case ir.Select():
                return _select(*(self.expression(x) for x in (e.condition, e.then, e.otherwise)))
            case ir.Cast():
                return _cast(self.expression(e.operand), e.type)
            case ir.Unary():
                return _unary(self.expression(e.operand), e)
            case ir.Binary():
                return _binary(self.expression(e.left), self.expression(e.right), e)
            case ir.Intrinsic():
                return _intrinsic(tuple(self.expression(o) for o in e.operands), e)
            case ir.Unknown():
                return lambda t: None


def _root(pointer: ir.Expr) -> ir.Expr:
    while isinstance(pointer, ir.Offset | ir.Cast):
        pointer = pointer.pointer if isinstance(pointer, ir.Offset) else pointer.operand
    return pointer


def _offset(pointer: Evaluate, bytes: Evaluate) -> Evaluate:
    def moved(t: Any) -> Value:
        base = pointer(t)
        if not isinstance(base, tuple):
            return None
        by = bytes(t)
        return (base[0], base[1] + by) if isinstance(by, int) and base[1] is not None else (base[0], None)

    return moved


def _select(condition: Evaluate, then: Evaluate, otherwise: Evaluate) -> Evaluate:
    def selected(t: Any) -> Value:
        which = condition(t)
        if which is None:
            return None
        return then(t) if which else otherwise(t)

    return selected


def _cast(operand: Evaluate, type: Type) -> Evaluate:
    def converted(t: Any) -> Value:
        value = operand(t)
        if isinstance(value, tuple):
            return value if isinstance(type, Pointer) else None
        return type.wrap(value) if value is not None and isinstance(type, Int) else None

    return converted


def _unary(operand: Evaluate, e: ir.Unary) -> Evaluate:
    python, type = ops.UNARY[e.op].python, e.operand.type

    def result(t: Any) -> Value:
        value = operand(t)
        return python(value, type) if isinstance(value, int) and isinstance(type, Int) else None

    return result


def _undefined(op: ir.BinaryOp, b: int, type: Int) -> bool:
    """C++ does not say what comes out."""
    if op in (ir.BinaryOp.DIV, ir.BinaryOp.REM):
        return b == 0
    return op in (ir.BinaryOp.SHL, ir.BinaryOp.SHR) and not 0 <= b < type.bits


def _binary(left: Evaluate, right: Evaluate, e: ir.Binary) -> Evaluate:
    python, type, op = ops.BINARY[e.op].python, e.left.type, e.op

    def result(t: Any) -> Value:
        a, b = left(t), right(t)
        if isinstance(a, int) and isinstance(b, int) and isinstance(type, Int):
            return None if _undefined(op, b, type) else python(a, b, type)
        if op is ir.BinaryOp.AND and (a == 0 or b == 0):
            return 0
        if op is ir.BinaryOp.OR and ((isinstance(a, int) and a) or (isinstance(b, int) and b)):
            return 1
        if not isinstance(a, tuple) or not isinstance(b, tuple) or a[0] is not b[0]:
            return None
        return python(a[1], b[1], INT64) if a[1] is not None and b[1] is not None else None

    return result


# Lane exchanges: which operand lanes offer to one another, and what comes out.

_OFFERED = {
    "__shfl_sync": 1, "__shfl_up_sync": 1, "__shfl_down_sync": 1, "__shfl_xor_sync": 1,
    "__ballot_sync": 1, "__any_sync": 1, "__all_sync": 1,
    "__syncthreads_count": 0, "__syncthreads_and": 0, "__syncthreads_or": 0,
}  # fmt: skip


def _exchanges(e: Any) -> list[ir.Intrinsic]:
    if isinstance(e, ir.Intrinsic):
        return [e] if e.name in _OFFERED else [x for o in e.operands for x in _exchanges(o)]
    parts = [
        getattr(e, name, None) for name in ("operand", "left", "right", "condition", "then", "otherwise")
    ]
    return [x for part in parts if part is not None for x in _exchanges(part)]


def _intrinsic(operands: tuple[Evaluate, ...], e: ir.Intrinsic) -> Evaluate:
    type = e.operands[0].type if e.operands else None
    if e.name in _OFFERED:
        return _exchange(operands, e)
    if not isinstance(type, Int):
        return lambda t: None
    extreme = {"min": min, "umin": min, "max": max, "umax": max}.get(e.name)
    function = ops.INTRINSICS.get(e.name)
    if function is None and extreme is None:
        return lambda t: None

    def result(t: Any) -> Value:
        values = tuple(operand(t) for operand in operands)
        known = [v for v in values if isinstance(v, int)]
        if len(known) != len(values):
            return None
        return extreme(known) if extreme is not None else function(known, type) if function else None

    return result


def _exchange(operands: tuple[Evaluate, ...], e: ir.Intrinsic) -> Evaluate:
    name = e.name

    def vote(t: Any) -> Value:
        offers: dict[int, Value] = t.offers
        if not offers or any(not isinstance(v, int) for v in offers.values()):
            return None
        if name == "__ballot_sync":
            return sum(1 << lane for lane, v in offers.items() if v)
        if name.endswith("count"):
            return sum(1 for v in offers.values() if v)
        return int((all if name in ("__all_sync", "__syncthreads_and") else any)(offers.values()))

    def shuffle(t: Any) -> Value:
        by = operands[2](t)
        width = operands[3](t) if len(operands) > 3 else 32
        if not isinstance(by, int) or not isinstance(width, int) or width not in (1, 2, 4, 8, 16, 32):
            return None
        lane: int = t.axes[Axis.LANE]
        first = lane // width * width
        source = {
            "__shfl_sync": first + by % width,
            "__shfl_up_sync": lane - by,
            "__shfl_down_sync": lane + by,
            "__shfl_xor_sync": lane ^ by,
        }[name]
        if not first <= source < first + width:
            source = lane
        return t.offers.get(source)

    return shuffle if name.startswith("__shfl") else vote
