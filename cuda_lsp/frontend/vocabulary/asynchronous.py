"""Asynchronous copies, barrier objects and pipelines of libcu++ and cooperative groups.

Source: CUDA C++ Programming Guide, "Asynchronous Barrier", "Asynchronous Data Copies", and libcu++'s
``<cuda/pipeline>``.  A pipeline of one thread is its groups of copies; one with shared state is two barrier
objects a stage, for what is produced and what is consumed, and each thread counts the stages it has passed.
Bulk copies (``cuda::device::memcpy_async_tx``) and what only tests a barrier are named, not followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from cuda_lsp.frontend.lowering import expressions, lvalues
from cuda_lsp.frontend.lowering.build import binary, cast, element, offset_by
from cuda_lsp.frontend.lowering.places import (
    Group,
    Handle,
    MemoryPlace,
    Place,
    RecordValue,
    StaticPlace,
    Value,
    is_expr,
)
from cuda_lsp.frontend.lowering.types import type_of
from cuda_lsp.frontend.tree import Declaration, Node
from cuda_lsp.frontend.vocabulary.attempts import attempt
from cuda_lsp.frontend.vocabulary.collectives import template_arguments
from cuda_lsp.frontend.vocabulary.groups import group_of, rank, size, synchronise
from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import (
    Assign,
    Atomic,
    AwaitCopies,
    Barrier,
    BarrierPhase,
    BarrierScope,
    BinaryOp,
    CommitCopies,
    Const,
    Copy,
    Expr,
    If,
    Intrinsic,
    Store,
    Var,
)
from cuda_lsp.ir.types import INT32, INT64, Int
from cuda_lsp.model import Scope

if TYPE_CHECKING:
    from cuda_lsp.frontend.vocabulary.builtin_call import Call

_OBJECT = 8  # bytes of a barrier
_STAGE = 2 * _OBJECT  # of a pipeline's stage: produced, consumed
_WORD = Int(64, signed=False)


@frozen(eq=False)
class OwnStages:
    """A pipeline of one thread. ``ahead``: stages that it has committed and not waited for."""

    ahead: Var


@frozen(eq=False)
class SharedStages:
    """A pipeline with shared state at ``state``.

    ``head``: the stage that the thread produces next, ``tail``: consumes next, both modulo twice the number
    of ``stages``, so that they tell the parity of the stage's phase too.
    """

    state: Expr
    stages: int
    head: Var
    tail: Var


# -------------------------------------------------------------------------------- barrier objects


def barrier_member(call: Call, this: Place) -> Value:
    """``bar.arrive()`` and the like."""
    construct = f"cuda::barrier::{call.name}"
    if not isinstance(this, MemoryPlace):
        return _named(call, construct, "the barrier has no address")
    at = this.pointer
    given = [n for n in call.arguments if type_of(call.low.ast, n).is_int]
    if call.name == "arrive":
        count = expressions.scalar(call.low, given[0]) if given and call.low.ast.text(given[0]) else None
        _object(call, at, BarrierPhase.ARRIVE, count=count)
        return call.unknown("arrival token")
    for node in call.arguments:
        expressions.value(call.low, node)
    if call.name == "arrive_and_wait":
        _object(call, at, BarrierPhase.SYNC)
    elif call.name == "arrive_and_drop":
        _object(call, at, BarrierPhase.DROP)
    elif call.name == "wait":
        _object(call, at, BarrierPhase.WAIT)
    elif call.name == "wait_parity":
        _object(call, at, BarrierPhase.WAIT, parity=expressions.scalar(call.low, given[0]))
    elif call.name in ("try_wait", "try_wait_parity"):
        parity = expressions.scalar(call.low, given[0]) if given else None
        return attempt(call.low, call.node, construct, at, parity)
    else:
        return _named(call, construct, "this operation is not modelled")
    return call.nothing()


def init(call: Call) -> Value:
    """``init(&bar, count)``."""
    at, count = call.low.pointer(call.value(0)), call.scalar(1)
    _initialise(call, at, count)
    return call.nothing()


def _initialise(call: Call, at: Expr, count: Expr) -> None:
    low, site = call.low, call.low.site(call.node)
    low.emit(Store(at, low.unknown("a barrier's state", _WORD), _WORD, site))
    low.emit(Barrier(BarrierScope.OBJECT, site, BarrierPhase.INIT, count=count, object=at))


def _object(
    call: Call, at: Expr, phase: BarrierPhase, count: Expr | None = None, parity: Expr | None = None
) -> None:
    """One operation on a barrier object: it reads and writes its state atomically."""
    low, site = call.low, call.low.site(call.node)
    low.emit(Atomic(None, AtomicOp.LOAD, at, (), _WORD, Scope.BLOCK, site, rewrites=True))
    low.emit(Barrier(BarrierScope.OBJECT, site, phase, count=count, object=at, parity=parity))


def _bind(call: Call, at: Expr) -> None:
    low = call.low
    low.emit(Barrier(BarrierScope.OBJECT, low.site(call.node), BarrierPhase.BIND, object=at))


def _named(call: Call, construct: str, reason: str) -> Value:
    call.low.incomplete(construct, reason, call.node, synchronises=True)
    return call.unknown(f"the result of {call.name}")


# --------------------------------------------------------------------------------------- pipelines


def make_pipeline(call: Call) -> Value:
    """``cuda::make_pipeline``: of this thread, or of a group with shared state and maybe roles."""
    low = call.low
    if not call.arguments:
        ahead = low.var("", INT32)
        low.emit(Assign(ahead, Const(0, INT32)))
        return Handle("cuda::pipeline", OwnStages(ahead))
    group = group_of(call, call.arguments[0])
    shared = type_of(low.ast, call.arguments[1])
    stages = template_arguments(shared.target.name if shared.target is not None else "")[-1:]
    if group is None or not stages or not stages[0].isdigit():
        return _unfollowed(call, "its group or the number of its stages is not known")
    state = low.pointer(call.value(1))
    everybody = size(call, group)
    if not is_expr(everybody):
        return _unfollowed(call, "the size of its group is not known")
    producers = consumers = cast(everybody, INT32)
    if len(call.arguments) > 2:
        chosen = type_of(low.ast, call.arguments[2])
        if "role" in chosen.name:
            return _roles(call, group, SharedStages(state, int(stages[0]), *_counters(call)))
        producers = cast(call.scalar(2), INT32)
        consumers = binary(BinaryOp.SUB, consumers, producers)
    made = SharedStages(state, int(stages[0]), *_counters(call))
    _make(call, group, made, producers, consumers)
    return Handle("cuda::pipeline", made)


def _roles(call: Call, group: Group, made: SharedStages) -> Value:
    """Each thread says whether it produces or consumes: they count themselves."""
    role = cast(call.scalar(2), INT32)
    produces = cast(binary(BinaryOp.EQ, role, Const(0, INT32)), INT32)
    counted = [call.low.var("", INT32) for _ in range(2)]
    low = call.low
    for var, mine in zip(counted, (produces, binary(BinaryOp.SUB, Const(1, INT32), produces)), strict=True):
        low.emit(Barrier(BarrierScope.BLOCK, low.site(call.node)))
        low.emit(Assign(var, Intrinsic("__syncthreads_count", (mine,), INT32)))
    if group.scope is not BarrierScope.BLOCK:
        return _unfollowed(call, "roles in a group that is not the block are not followed")
    _make(call, group, made, *counted)
    return Handle("cuda::pipeline", made)


def _counters(call: Call) -> tuple[Var, Var]:
    head, tail = call.low.var("", INT32), call.low.var("", INT32)
    for var in (head, tail):
        call.low.emit(Assign(var, Const(0, INT32)))
    return head, tail


def _make(call: Call, group: Group, made: SharedStages, producers: Expr, consumers: Expr) -> None:
    """One thread initialises the stages, and the group synchronises."""
    low = call.low
    with low.nested() as statements:
        for stage in range(made.stages):
            at = offset_by(made.state, _STAGE * stage)
            _initialise(call, at, producers)
            _initialise(call, offset_by(at, _OBJECT), consumers)
    first = rank(call, group)
    assert is_expr(first)
    condition = binary(BinaryOp.EQ, cast(first, INT32), Const(0, INT32))
    low.emit(If(condition, tuple(statements), (), low.site(call.node)))
    synchronise(call, group)


def _unfollowed(call: Call, reason: str) -> Value:
    _named(call, f"cuda::{call.name}", reason)
    return Handle("cuda::pipeline")


def pipeline_member(call: Call, this: Place) -> Value:
    """``pipe.producer_commit()`` and the like."""
    low = call.low
    handle = this.value if isinstance(this, StaticPlace) else None
    stages = handle.storage if isinstance(handle, Handle) else None
    name = call.name
    known = name in ("producer_acquire", "producer_commit", "consumer_wait", "consumer_release")
    if not known or not isinstance(stages, OwnStages | SharedStages):
        if "wait" in name:
            low.emit(AwaitCopies(None, low.site(call.node)))
        reason = "which pipeline this is could not be followed" if known else "it is not modelled"
        return _named(call, f"cuda::pipeline::{name}", reason)
    if isinstance(stages, OwnStages):
        _own(call, stages)
    else:
        _shared(call, stages)
    return call.nothing()


def _own(call: Call, stages: OwnStages) -> None:
    low, site, ahead = call.low, call.low.site(call.node), stages.ahead
    if call.name == "producer_commit":
        low.emit(CommitCopies(site))
        low.emit(Assign(ahead, binary(BinaryOp.ADD, ahead, Const(1, INT32))))
    elif call.name == "consumer_wait":
        low.emit(Assign(ahead, binary(BinaryOp.SUB, ahead, Const(1, INT32))))
        low.emit(AwaitCopies(ahead, site))


def _shared(call: Call, stages: SharedStages) -> None:
    counter = stages.head if call.name.startswith("producer") else stages.tail
    number = Const(stages.stages, INT32)
    at = element(stages.state, binary(BinaryOp.REM, counter, number), _STAGE)
    consumed = offset_by(at, _OBJECT)
    parity = binary(BinaryOp.DIV, counter, number)
    if call.name == "producer_acquire":
        _object(call, consumed, BarrierPhase.WAIT, parity=binary(BinaryOp.SUB, Const(1, INT32), parity))
    elif call.name == "consumer_wait":
        _object(call, at, BarrierPhase.WAIT, parity=parity)
    else:
        produces = call.name == "producer_commit"
        if produces:
            _bind(call, at)
        _object(call, at if produces else consumed, BarrierPhase.ARRIVE)
        following = binary(BinaryOp.ADD, counter, Const(1, INT32))
        wrapped = binary(BinaryOp.REM, following, Const(2 * stages.stages, INT32))
        call.low.emit(Assign(counter, wrapped))


def wait_prior(call: Call, declaration: Declaration) -> Value:
    """``pipeline_consumer_wait_prior<N>(pipe)``."""
    low = call.low
    value = expressions.value(low, call.arguments[0])
    stages = value.storage if isinstance(value, Handle) else None
    prior = Const(_template_argument(call, declaration), INT32)
    if not isinstance(stages, OwnStages):
        low.emit(AwaitCopies(None, low.site(call.node)))
        return _named(call, f"cuda::{call.name}", "which pipeline this is could not be followed")
    low.emit(AwaitCopies(prior, low.site(call.node)))
    low.emit(Assign(stages.ahead, prior))
    return call.nothing()


def commit_to(call: Call) -> Value:
    """``pipeline_producer_commit(pipe, bar)``: the copies so far belong to the barrier's phase."""
    expressions.value(call.low, call.arguments[0])
    place = _barrier_of(call, call.arguments[1])
    if place is None:
        return _named(call, f"cuda::{call.name}", "the barrier has no address")
    _bind(call, place)
    return call.nothing()


def _template_argument(call: Call, declaration: Declaration) -> int:
    lib = call.low.ast.lib
    if lib.clang_Cursor_getTemplateArgumentKind(declaration.cursor, 0) != 4:
        return 0  # CXTemplateArgumentKind_Integral is what it is
    return int(lib.clang_Cursor_getTemplateArgumentValue(declaration.cursor, 0))


# ------------------------------------------------------------------------------------------ copies


def memcpy_async(call: Call) -> Value:
    """``cuda::memcpy_async([group,] destination, source, size, barrier or pipeline)``."""
    low, nodes = call.low, list(call.arguments)
    group = None
    if len(nodes) == 5:
        group = group_of(call, nodes.pop(0))
        if group is None:
            return _named(call, "cuda::memcpy_async", "the group that copies is not known")
    pointers = len(nodes) == 4 and all(_points(call, n) for n in nodes[:2])
    amount = _bytes(call, nodes[2]) if pointers else None
    if amount is None:
        return _named(call, "cuda::memcpy_async", "asynchronous copies of this form are not modelled")
    _copy(call, group, nodes[0], nodes[1], amount, "cuda::memcpy_async")
    place = _barrier_of(call, nodes[3])
    if place is not None:
        _bind(call, place)
    else:
        expressions.value(low, nodes[3])
    return call.nothing()


def _points(call: Call, node: Node) -> bool:
    info = type_of(call.low.ast, node)
    return info.is_pointer or info.kind == "array"


def _pointer(call: Call, node: Node) -> Expr:
    if type_of(call.low.ast, node).kind == "array":
        return call.low.pointer(call.low.address(lvalues.place(call.low, node)))
    return call.low.pointer(expressions.value(call.low, node))


def _bytes(call: Call, node: Node) -> Expr | None:
    """A size in bytes, plain or ``cuda::aligned_size_t``."""
    if type_of(call.low.ast, node).is_int:
        return cast(expressions.scalar(call.low, node), INT64)
    value = expressions.value(call.low, node)
    if isinstance(value, RecordValue):
        inner = next(iter(value.fields.values()), None)
        return cast(inner, INT64) if is_expr(inner) else None
    return None


def _barrier_of(call: Call, node: Node) -> Expr | None:
    if "cuda::barrier<" not in type_of(call.low.ast, node).name:
        return None
    place = lvalues.place(call.low, node)
    return place.pointer if isinstance(place, MemoryPlace) else None


def _copy(
    call: Call, group: Group | None, destination: Node, source: Node, amount: Expr, mechanism: str
) -> None:
    low = call.low
    to, come_from = (_pointer(call, n) for n in (destination, source))
    alone = group is None or (group.scope is BarrierScope.TILE and group.size == 1)
    team = None if alone or group is None else group.scope
    extent = None if alone or group is None else group.size
    low.emit(Copy(to, come_from, amount, low.site(call.node), True, mechanism, team, extent))


def of_group(call: Call, declaration: Declaration) -> Value | None:
    """``cg::memcpy_async(group, …)``, each call a stage of its own, and the waits for it."""
    group = group_of(call, call.arguments[0])
    if group is None:
        return _named(call, f"cooperative_groups::{call.name}", "the group is not known")
    if call.name == "memcpy_async":
        return _group_copy(call, group, call.arguments[1:])
    prior = _template_argument(call, declaration) if call.name == "wait_prior" else 0
    call.low.emit(AwaitCopies(Const(prior, INT32), call.low.site(call.node)))
    return synchronise(call, group)


def _group_copy(call: Call, group: Group, arguments: list[Node]) -> Value:
    low = call.low
    if len(arguments) == 3:
        amount = _bytes(call, arguments[2])
        ends = (arguments[0], arguments[1])
    else:  # counts of elements on both sides
        ends = (arguments[0], arguments[2])
        target = type_of(low.ast, ends[0]).target
        there, here = (cast(expressions.scalar(low, arguments[i]), INT64) for i in (1, 3))
        width = Const(target.size if target is not None else 1, INT64)
        amount = binary(BinaryOp.MUL, binary(BinaryOp.MIN, there, here), width)
    if amount is None:
        return _named(call, "cooperative_groups::memcpy_async", "how much it copies could not be read")
    _copy(call, group, *ends, amount, "cooperative_groups::memcpy_async")
    low.emit(CommitCopies(low.site(call.node)))
    return call.nothing()
