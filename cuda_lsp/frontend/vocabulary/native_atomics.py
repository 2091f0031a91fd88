"""nvcc's own atomic functions, ``__nv_atomic_fetch_add(pointer, value, order, scope)`` and their kin.

Source: CUDA C++ Programming Guide, "Built-in atomic functions". The generic forms that work
through result pointers are not covered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from cuda_lsp.frontend.lowering import conversions, expressions
from cuda_lsp.frontend.lowering.places import EXPR_TYPES, MemoryPlace, Value
from cuda_lsp.frontend.vocabulary.builtin_call import Call, Handler
from cuda_lsp.frontend.vocabulary.builtin_memory import emit_atomic, pointee_of
from cuda_lsp.ir.atomics import ATOMICS, AtomicOp
from cuda_lsp.ir.program import Const, Expr
from cuda_lsp.model import Scope

_SCOPES = (Scope.BLOCK, Scope.BLOCK, Scope.DEVICE, Scope.DEVICE, Scope.SYSTEM)
"""Of ``__NV_THREAD_SCOPE_THREAD``, ``_BLOCK``, ``_CLUSTER``, ``_DEVICE``, ``_SYSTEM``."""


_RELEASING = (3, 4, 5)
"""``__NV_ATOMIC_RELEASE``, ``_ACQ_REL``, ``_SEQ_CST``."""


def native_atomics() -> Iterator[tuple[str, Handler]]:
    """The functions by name."""
    yield "__nv_atomic_load_n", _atomic(AtomicOp.LOAD)
    yield "__nv_atomic_store_n", _atomic(AtomicOp.STORE)
    yield "__nv_atomic_exchange_n", _atomic(AtomicOp.EXCH)
    yield "__nv_atomic_compare_exchange_n", _compare_exchange
    for row in ATOMICS.values():
        if row.fetch:
            yield f"__nv_atomic_fetch_{row.op.value}", _atomic(row.op)
            yield f"__nv_atomic_{row.op.value}", _atomic(row.op)


def _scope(call: Call, position: int) -> Scope:
    """Of the argument at ``position``; the whole system where there is none, or none that is known."""
    if len(call.arguments) <= position:
        return Scope.SYSTEM
    value = expressions.scalar(call.low, call.arguments[position])
    known = isinstance(value, Const) and 0 <= int(value.value) < len(_SCOPES)
    return _SCOPES[int(value.value)] if known and isinstance(value, Const) else Scope.BLOCK


def _atomic(op: AtomicOp) -> Handler:
    operands = ATOMICS[op].operands

    def lower(call: Call) -> Value:
        low = call.low
        place, target = pointee_of(low, call.arguments[0])
        values = [expressions.scalar(low, node) for node in call.arguments[1 : 1 + operands]]
        converted = tuple(conversions.converted(low, v, target.ir) if target.scalar else v for v in values)
        scope = _scope(call, operands + 2)
        if not isinstance(place, MemoryPlace):  # an atomic on a local: an ordinary update
            low.write(place, low.unknown(f"the result of {call.name}", target.ir), None)
            return call.unknown(f"the result of {call.name}")
        order = expressions.scalar(low, call.arguments[1 + operands])
        releases = isinstance(order, Const) and order.value in _RELEASING
        old = emit_atomic(low, op, scope, place.pointer, converted, target, call.node, releases)
        return old if ATOMICS[op].reads else call.nothing()

    return lower


def _compare_exchange(call: Call) -> Value:
    """``(pointer, &expected, desired, weak, success, failure, scope)``: whether it was exchanged."""
    low = call.low
    place, target = pointee_of(low, call.arguments[0])
    expected, _ = pointee_of(low, call.arguments[1])
    wanted = low.read(expected, None)
    desired = conversions.converted(low, expressions.scalar(low, call.arguments[2]), target.ir)
    scope = _scope(call, 6)
    if isinstance(place, MemoryPlace):
        known = isinstance(wanted, EXPR_TYPES)
        first = cast("Expr", wanted) if known else low.unknown("expected value", target.ir)
        operands = (conversions.converted(low, first, target.ir), desired)
        emit_atomic(low, AtomicOp.CAS, scope, place.pointer, operands, target, call.node)
    low.write(expected, low.unknown("what an atomic found", target.ir, varies=True), None)
    return call.unknown(f"the result of {call.name}", varies=True)
