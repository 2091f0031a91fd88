"""Classes of libcu++ that kernels use: atomics are modelled, the rest is named.

cub's collectives, wmma, and barriers, pipelines and asynchronous copies have rooms of their own
(``collectives``, ``matrices``, ``asynchronous``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_lsp.frontend.lowering import conversions, expressions, lvalues
from cuda_lsp.frontend.lowering.build import binary
from cuda_lsp.frontend.lowering.places import (
    EXPR_TYPES,
    Address,
    AtomicRef,
    Handle,
    MemoryPlace,
    Place,
    StaticPlace,
    Value,
)
from cuda_lsp.frontend.tree import Declaration
from cuda_lsp.frontend.vocabulary import asynchronous
from cuda_lsp.frontend.vocabulary.builtin_memory import emit_atomic
from cuda_lsp.frontend.vocabulary.collectives import PLAIN, collective
from cuda_lsp.frontend.vocabulary.matrices import lower_matrix
from cuda_lsp.ir.atomics import ATOMICS, AtomicOp
from cuda_lsp.ir.program import BinaryOp, Const, Expr, Fence, Store, Var
from cuda_lsp.ir.types import INT32
from cuda_lsp.model import Scope

if TYPE_CHECKING:
    from cuda_lsp.frontend.vocabulary.builtin_call import Call

_ATOMIC = {
    name: row.op
    for row in ATOMICS.values()
    for name in (*row.members, *([f"fetch_{row.op.value}"] if row.fetch else []))
}
_FLAG = {"test_and_set": 1, "clear": 0}  # of ``atomic_flag``: what they store
_NO_VALUE = ("operator&=", "operator|=", "operator^=")
_STRONGEST = 5
_RELEASING = (3, 4, 5)  # std::memory_order: release, acq_rel, seq_cst
_ASYNCHRONOUS = (
    "memcpy_async",
    "pipeline_consumer_wait_prior",
    "pipeline_producer_commit",
    "init",
    "make_pipeline",
)
_SCOPES = ((3, Scope.BLOCK), (2, Scope.BLOCK), (1, Scope.DEVICE), (0, Scope.SYSTEM))


def _class_of(declaration: Declaration) -> str:
    parent = declaration.ast.parent(declaration)
    return parent.name if parent is not None else ""


def _scope(name: str) -> Scope:
    """The scope in an atomic's template arguments (an enumerator's number or name)."""
    for number, scope in _SCOPES:
        if f"(cuda::thread_scope){number}" in name or f", {number}>" in name:
            return scope
    if "thread_scope_block" in name:
        return Scope.BLOCK
    return Scope.DEVICE if "thread_scope_device" in name else Scope.SYSTEM


def construct(call: Call) -> Value | None:
    """A library object being made."""
    name = call.info.name.removeprefix("const ")
    if name.startswith("cuda::atomic_ref<"):
        return AtomicRef(lvalues.place(call.low, call.arguments[0]), _scope(name)) if call.arguments else None
    if name.startswith("cub::") and "TempStorage" not in name and not name.startswith(PLAIN):
        storage = None
        for node in call.arguments:
            storage = lvalues.place(call.low, node)
        return Handle(name.split("<")[0], storage)
    if name.startswith("cuda::pipeline<"):
        given = expressions.value(call.low, call.arguments[0]) if call.arguments else None
        return given if isinstance(given, Handle) else Handle("cuda::pipeline")
    return None


def lower(call: Call, declaration: Declaration, this: Place | None) -> Value | None:
    """A member or free function of a library class; None when it is something else."""
    owner = _class_of(declaration)
    if this is not None:
        name = this.info.name.removeprefix("const ")
        if isinstance(this, StaticPlace) and isinstance(this.value, AtomicRef):
            return _atomic(call, this.value)
        if name.startswith(("cuda::atomic<", "cuda::std::atomic_flag")):
            return _atomic(call, AtomicRef(this, _scope(name)))
        if name.startswith("cub::") and not name.startswith(PLAIN):
            return collective(call, this)
        if name.startswith("cuda::barrier"):
            return asynchronous.barrier_member(call, this)
        if name.startswith("cuda::pipeline"):
            return asynchronous.pipeline_member(call, this)
        return None
    if owner == "wmma":
        return lower_matrix(call)
    if call.name == "atomic_thread_fence":
        call.low.emit(Fence(Scope.DEVICE, call.low.site(call.node)))
        return call.nothing()
    if owner == "cuda" and call.name in _ASYNCHRONOUS:
        return _asynchronous(call, declaration)
    if owner == "cooperative_groups" and call.name in ("memcpy_async", "wait", "wait_prior"):
        return asynchronous.of_group(call, declaration)
    if owner == "device":
        name = f"cuda::device::{call.name}"
        call.low.incomplete(name, "bulk copies are not modelled", call.node, synchronises=True)
        return call.unknown(f"the result of {call.name}")
    return None


def _atomic(call: Call, ref: AtomicRef) -> Value | None:
    low, op = call.low, _ATOMIC.get(call.name)
    if op is None and call.name.startswith("operator"):
        op = AtomicOp.LOAD
    if op is None:
        return None
    place = ref.place
    info = place.info
    if place.info.is_record and place.info.fields:
        info = place.info.fields[0].type
    values, order = _operands_and_order(call, op)
    if not isinstance(place, MemoryPlace):
        low.write(place, low.unknown("atomic value", info.ir), None)
        return call.unknown("value of a local atomic")
    operands = tuple(conversions.converted(low, v, info.ir) for v in values)
    old = emit_atomic(low, op, ref.scope, place.pointer, operands, info, call.node, order in _RELEASING)
    new_value = call.name in ("operator+=", "operator-=") or (
        call.name in ("operator++", "operator--") and not call.arguments
    )
    if new_value and isinstance(old, Var):
        return binary(BinaryOp.ADD if op is AtomicOp.ADD else BinaryOp.SUB, old, operands[0])
    no_value = op in (AtomicOp.CAS, AtomicOp.STORE) or call.name in _NO_VALUE
    return call.unknown(f"the result of {call.name}", varies=True) if no_value else old


def _operands_and_order(call: Call, op: AtomicOp) -> tuple[list[Expr], int | None]:
    """What the operation takes, and its memory order (of an exchange that succeeds); None: not known."""
    given, count = call.arguments, ATOMICS[op].operands
    if call.name in ("operator++", "operator--"):
        return [Const(1, INT32)], _STRONGEST
    if call.name.startswith("operator"):  # the object may come first
        return [expressions.scalar(call.low, node) for node in given[-count:] if count], _STRONGEST
    if call.name in _FLAG:
        operands, rest = list[Expr]([Const(_FLAG[call.name], INT32)]), given
    else:
        operands, rest = [expressions.scalar(call.low, node) for node in given[:count]], given[count:]
    order = expressions.scalar(call.low, rest[0]) if rest else Const(_STRONGEST, INT32)
    return operands, int(order.value) if isinstance(order, Const) else None


def _asynchronous(call: Call, declaration: Declaration) -> Value:
    if call.name == "memcpy_async":
        return asynchronous.memcpy_async(call)
    if call.name == "init":
        return asynchronous.init(call)
    if call.name == "make_pipeline":
        return asynchronous.make_pipeline(call)
    if call.name == "pipeline_producer_commit":
        return asynchronous.commit_to(call)
    return asynchronous.wait_prior(call, declaration)


__all__ = ["EXPR_TYPES", "Address", "Store", "construct", "lower"]
