"""CUDA's built-in functions as a table: name → what a call of it becomes.

Source: CUDA C++ Programming Guide, "C++ language extensions", and the CUDA Math API.  Library classes
(cooperative groups, cub, libcu++, wmma) are in ``groups`` and ``library``.  A function of the user's
own with a built-in's name is not looked up here.
"""

from __future__ import annotations

from collections.abc import Mapping

from cuda_lsp.frontend.lowering import conversions, expressions, lvalues
from cuda_lsp.frontend.lowering.build import binary, cast, element, linear_thread, zero
from cuda_lsp.frontend.lowering.cursor_kinds import METHOD
from cuda_lsp.frontend.lowering.operators import arithmetic
from cuda_lsp.frontend.lowering.places import (
    EXPR_TYPES,
    Address,
    MemoryPlace,
    Place,
    RecordValue,
    Value,
    is_expr,
)
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.syntax import is_default, strip
from cuda_lsp.frontend.lowering.types import VOID, TypeInfo, common, type_of
from cuda_lsp.frontend.lowering.whole_floats import of_both
from cuda_lsp.frontend.tree import Declaration, Node
from cuda_lsp.frontend.vocabulary import clusters, groups
from cuda_lsp.frontend.vocabulary import library as libraries
from cuda_lsp.frontend.vocabulary.builtin_call import Call, Handler
from cuda_lsp.frontend.vocabulary.builtin_memory import (
    access_node,
    atomic,
    copy,
    fill,
    load_through,
    pointee_of,
    store_through,
)
from cuda_lsp.frontend.vocabulary.native_atomics import native_atomics
from cuda_lsp.frontend.vocabulary.registers import FUNCTIONS
from cuda_lsp.frontend.vocabulary.surfaces import surface
from cuda_lsp.ir.atomics import ATOMICS
from cuda_lsp.ir.exchanges import EXCHANGES, Reach
from cuda_lsp.ir.ops import INTRINSICS
from cuda_lsp.ir.program import (
    FALSE,
    AddressOf,
    Assign,
    Assume,
    AwaitCopies,
    Barrier,
    BarrierScope,
    BinaryOp,
    CommitCopies,
    Const,
    Expr,
    Fence,
    Intrinsic,
    Load,
    Store,
    Unknown,
    Var,
)
from cuda_lsp.ir.types import INT32, INT64, UINT32, Float, Int, Pointer
from cuda_lsp.model import Scope, Space

FULL_MASK = Const(0xFFFFFFFF, UINT32)


# -------------------------------------------------------------------------------- synchronisation


def _block_barrier(call: Call) -> Value:
    values = call.values()
    call.low.emit(Barrier(BarrierScope.BLOCK, call.low.site(call.node)))
    return _lanes(call, values) if call.name in EXCHANGES else call.nothing()


def _named_barrier(call: Call) -> Value:
    identity = call.scalar(0)
    count = call.scalar(1) if len(call.arguments) > 1 else None
    scope = BarrierScope.NAMED
    if isinstance(identity, Const) and identity.value == 0 and count is None:
        call.low.emit(Barrier(BarrierScope.BLOCK, call.low.site(call.node)))
    else:
        call.low.emit(Barrier(scope, call.low.site(call.node), id=identity, count=count))
    return call.nothing()


def _warp_barrier(call: Call) -> Value:
    mask = call.scalar(0) if call.arguments else FULL_MASK
    if isinstance(mask, Unknown) and is_default(call.arguments[0]):
        mask = FULL_MASK
    call.low.emit(Barrier(BarrierScope.WARP, call.low.site(call.node), mask=cast(mask, UINT32)))
    return call.nothing()


def _exchange(call: Call) -> Value:
    """Shuffles, votes, match, redux: lane synchronisation, then a pure function of all lanes."""
    values = call.values()
    mask = cast(values[0], UINT32) if isinstance(values[0], EXPR_TYPES) else FULL_MASK  # type: ignore[arg-type]
    call.low.emit(Barrier(BarrierScope.WARP, call.low.site(call.node), mask=mask, implied=True))
    return _lanes(call, values)


def _legacy_exchange(call: Call) -> Value:
    return _lanes(call, call.values())


def _lanes(call: Call, values: list[Value]) -> Value:
    row = EXCHANGES[call.name]
    kinds = (Int, Float) if call.low.valued else Int
    operands = [
        v for v in values[: -1 if row.predicate else None] if is_expr(v) and isinstance(v.type, kinds)
    ]
    known = len(operands) == len(values) - row.predicate
    result: Value = call.unknown(f"the result of {call.name}", varies=True)
    if known and isinstance(call.info.ir, kinds) and call.info is not VOID:
        exchanged = Intrinsic(call.name, tuple(operands), call.info.ir)
        result = call.low.var("", call.info.ir)
        call.low.emit(Assign(result, exchanged, call.low.site(call.node)))
    if row.predicate:
        _predicate(call, values[-1], result)
    return result


def _predicate(call: Call, pointer: Value, word: Value) -> None:
    """Whether all lanes offer one value, through the last operand."""
    met: Expr = call.low.unknown("predicate", INT32)
    if isinstance(word, Var):
        met = cast(binary(BinaryOp.NE, word, Const(0, UINT32)), INT32)
    if isinstance(pointer, Address):
        call.low.write(pointer.place, met, None)
    elif is_expr(pointer):
        call.low.emit(Store(call.low.pointer(pointer), met, INT32, call.low.site(call.arguments[-1])))


def _fence(scope: Scope) -> Handler:
    def lower(call: Call) -> Value:
        call.low.emit(Fence(scope, call.low.site(call.node)))
        return call.nothing()

    return lower


# -------------------------------------------------------------------------------------- arithmetic


_COMPARISONS = {
    BinaryOp.EQ: "__heq", BinaryOp.NE: "__hne", BinaryOp.LT: "__hlt", BinaryOp.LE: "__hle",
    BinaryOp.GT: "__hgt", BinaryOp.GE: "__hge",
}  # fmt: skip


def _minmax(op: BinaryOp) -> Handler:
    def lower(call: Call) -> Value:
        a, b = call.scalar(0), call.scalar(1)
        if isinstance(a.type, Int) and isinstance(b.type, Int):
            wide = common(a.type, b.type)
            result = binary(op, cast(a, wide), cast(b, wide))
            return conversions.converted(call.low, result, call.info.ir) if call.info.scalar else result
        target = call.info if call.info.scalar else type_of(call.low.ast, call.arguments[0])
        made = call.low.floating(op, target.ir, a, b)
        return of_both(call.low, op, made, a, b) if a.type == b.type == target.ir else made

    return lower


def _narrow_comparison(op: BinaryOp) -> Handler:
    """Of two halves, which are classes for C++ and numbers here: as of floats."""

    def lower(call: Call) -> Value | None:
        infos = [type_of(call.low.ast, node) for node in call.arguments]
        if len(infos) != 2 or not all(info.is_float for info in infos):
            return None
        left, right = infos
        return arithmetic(call.low, op, call.scalar(0), call.scalar(1), left, right, call.info)

    return lower


def _intrinsic(name: str | None = None) -> Handler:
    """A pure function of integers that evaluators know."""

    def lower(call: Call) -> Value:
        operands = [call.scalar(i) for i in range(len(call.arguments))]
        if not isinstance(call.info.ir, Int) or any(not isinstance(o.type, Int) for o in operands):
            return call.result(operands)
        return Intrinsic(name or call.name, tuple(operands), call.info.ir)

    return lower


def _pure(call: Call) -> Value:
    return call.result(call.values())


def _number(call: Call) -> Value:
    """One number for all threads: it is made of nothing but what the text says."""
    call.values()
    return call.result([zero(INT64)])


def _register(call: Call) -> Value:
    return conversions.converted(call.low, FUNCTIONS[call.name], call.info.ir)


def _reads_clock(call: Call) -> Value:
    return call.unknown(f"the result of {call.name}", varies=True)


def _effects_only(call: Call) -> Value:
    for node in call.arguments:
        if not type_of(call.low.ast, node).is_pointer or type_of(call.low.ast, node).target is VOID:
            expressions.discard(call.low, node)
    return call.unknown(f"the result of {call.name}")


def _writes_results(call: Call) -> Value:
    """sincos, modf, frexp, remquo: results through pointers."""
    values = call.values()
    for value, node in zip(values, call.arguments, strict=True):
        info = type_of(call.low.ast, node)
        if info.is_pointer and info.target is not None and (isinstance(value, Address) or is_expr(value)):
            place = lvalues.pointed(call.low, value, info.target, node)
            call.low.write(
                place,
                call.low.unknown(f"the result of {call.name}", info.target.ir),
                access_node(call.low, node),
            )
    return call.unknown(f"the result of {call.name}", [v for v in values if isinstance(v, EXPR_TYPES)])


def _assume(call: Call) -> Value:
    fact = expressions.condition(call.low, call.arguments[0])
    holds = isinstance(fact, Const) and bool(fact.value)
    if not holds and not isinstance(fact, Unknown):
        call.low.emit(Assume(fact, call.low.site(call.node)))
    return call.nothing()


def _trap(call: Call) -> Value:
    call.low.emit(Assume(FALSE, call.low.site(call.node)))
    return call.nothing()


def _identity(call: Call) -> Value:
    return call.value(0)


def _pointer_integer(call: Call) -> Value:
    return conversions.convert(call.low, call.value(0), call.info)


def _malloc(call: Call) -> Value:
    call.values()
    low = call.low
    array = low.array(
        f"malloc {low.fresh()}",
        "malloc",
        Space.LOCAL,
        TypeInfo("array", "", Int(8), 0, target=TypeInfo("scalar", "char", Int(8), 1)),
    )
    return AddressOf(array, Pointer())


_OF_BLOCK = "curandStateMtgp32"
"""The generator whose state a block shares."""


def _random(call: Call) -> Value:
    """curand: reads and writes the generator's state."""
    low = call.low
    if call.arguments and _is_shared_generator(call):
        return _random_of_block(call)
    for node in call.arguments:
        info = type_of(low.ast, node)
        if info.is_pointer and info.target is not None:
            place, _ = pointee_of(low, node)
            if isinstance(place, MemoryPlace):
                shown = access_node(low, node)
                site = low.site(shown)
                direction = isinstance(info.target.ir, Int)  # vectors of a quasi-random sequence are read
                if call.name != "curand_init" or direction:
                    low.emit(Load(None, place.pointer, info.target.ir, site))
                if not direction:
                    state = low.unknown("generator state", info.target.ir)
                    low.emit(Store(place.pointer, state, info.target.ir, site))
        else:
            expressions.discard(low, node)
    return call.unknown(f"the result of {call.name}", varies=True)


def _is_shared_generator(call: Call) -> bool:
    info = type_of(call.low.ast, strip(call.arguments[0]))
    return info.target is not None and _OF_BLOCK in info.target.name


def _random_of_block(call: Call) -> Value:
    """A block's threads draw from one state together: each changes a word of its own, then all meet.

    Source: cuRAND's ``curand(curandStateMtgp32_t*)``, which ends with ``__syncthreads()``.
    """
    low = call.low
    place, _ = pointee_of(low, call.arguments[0])
    for node in call.arguments[1:]:
        expressions.discard(low, node)
    site = low.site(call.node)
    if isinstance(place, MemoryPlace):
        word = element(place.pointer, cast(linear_thread(), INT64), UINT32.size)
        low.emit(Load(None, word, UINT32, site))
        low.emit(Store(word, low.unknown("generator state", UINT32), UINT32, site))
    low.emit(Barrier(BarrierScope.BLOCK, site))
    return call.unknown(f"the result of {call.name}", varies=True)


def _pipeline_wait(call: Call) -> Value:
    call.low.emit(AwaitCopies(call.scalar(0), call.low.site(call.node)))
    return call.nothing()


def _pipeline_commit(call: Call) -> Value:
    call.low.emit(CommitCopies(call.low.site(call.node)))
    return call.nothing()


def _make(call: Call) -> Value:
    values = call.values()
    if call.info.kind == "record" and len(call.info.fields) == len(values):
        parts = {
            f.key: conversions.convert(call.low, v, f.type)
            for f, v in zip(call.info.fields, values, strict=True)
        }
        return RecordValue(call.info, parts)
    return call.unknown(f"the result of {call.name}", values)


# --------------------------------------------------------------------------------------- the table


def _rows() -> dict[str, Handler]:
    table: dict[str, Handler] = {}

    def add(names: str, handler: Handler) -> None:
        for name in names.split():
            table[name] = handler

    add(
        "__syncthreads __syncthreads_count __syncthreads_and __syncthreads_or __nvvm_bar0 __builtin_bar_sync",
        _block_barrier,
    )
    add("__barrier_sync __barrier_sync_count __nvvm_barrier_sync", _named_barrier)
    add("__syncwarp", _warp_barrier)
    for row in EXCHANGES.values():
        if row.reach is not Reach.BLOCK:
            add(row.name, _exchange if row.masked else _legacy_exchange)
    add(" ".join(clusters.INTRINSICS), clusters.intrinsic)
    add("__threadfence_block", _fence(Scope.BLOCK))
    add("__threadfence", _fence(Scope.DEVICE))
    add("__threadfence_system", _fence(Scope.SYSTEM))
    for row in ATOMICS.values():
        for suffix, scope in (("", Scope.DEVICE), ("_block", Scope.BLOCK), ("_system", Scope.SYSTEM)):
            if row.cuda:
                add(f"atomic{row.cuda}{suffix}", atomic(row.op, scope))
    for name, handler in native_atomics():
        add(name, handler)
    add("__ldg __ldcg __ldca __ldcs __ldlu __ldcv", load_through)
    add("__stwb __stcg __stcs __stwt", store_through)
    add("memcpy memmove __builtin_memcpy __builtin_memmove", copy())
    add("__pipeline_memcpy_async", copy("__pipeline_memcpy_async"))
    add("__pipeline_wait_prior", _pipeline_wait)
    add("__pipeline_commit", _pipeline_commit)
    add("__prof_trigger __nanosleep __brkpt free", _effects_only)
    add("memset __builtin_memset", fill)
    add("malloc", _malloc)
    add("min umin llmin ullmin", _minmax(BinaryOp.MIN))
    add("max umax llmax ullmax", _minmax(BinaryOp.MAX))
    add("fmin fminf", _minmax(BinaryOp.MIN))
    add("fmax fmaxf", _minmax(BinaryOp.MAX))
    add("abs labs llabs", _intrinsic("abs"))
    add(" ".join(name for name in INTRINSICS if name.startswith("__")), _intrinsic())
    add("mul24", _intrinsic("__mul24"))
    add("umul24", _intrinsic("__umul24"))
    add("mulhi", _intrinsic("__mulhi"))
    add("umulhi", _intrinsic("__umulhi"))
    add("ffs", _intrinsic("__ffs"))
    for op, name in _COMPARISONS.items():
        add(f"operator{op.value} {name}", _narrow_comparison(op))
    add("__builtin_popcount", _intrinsic("__popc"))
    add("__builtin_clz", _intrinsic("__clz"))
    add("__builtin_ffs", _intrinsic("__ffs"))
    add(
        "sincos sincosf sincospi sincospif __sincosf modf modff frexp frexpf remquo remquof lgamma_r "
        "__vibmax_s32 __vibmin_s32 __vibmax_u32 __vibmin_u32 "
        "__vibmax_s16x2 __vibmin_s16x2 __vibmax_u16x2 __vibmin_u16x2",
        _writes_results,
    )
    add("printf vprintf __assert_fail __assertfail puts", _effects_only)
    add("__cuda_lsp_assert __builtin_assume __assume __requires __global_requires", _assume)
    add("__ensures __global_ensures __assert __global_assert", _effects_only)
    add("__invariant __global_invariant __candidate_invariant __implies __enabled", _effects_only)
    add("__trap abort exit __builtin_trap __builtin_unreachable", _trap)
    add("clock clock64 globaltimer __globaltimer", _reads_clock)
    for name in FUNCTIONS:
        add(name, _register)
    add("__builtin_expect __builtin_assume_aligned forward move __builtin_nontemporal_load", _identity)
    add(
        "__cvta_generic_to_shared __cvta_generic_to_global __cvta_shared_to_generic __cvta_global_to_generic",
        _pointer_integer,
    )
    add(
        "nanf nan __builtin_nan __builtin_nanf __builtin_nans __builtin_nansf __builtin_inf __builtin_inff"
        " __builtin_huge_val __builtin_huge_valf",
        _number,
    )
    add("__isShared __isGlobal __isLocal __isConstant", _pure)
    add(
        "curand_init curand curand4 curand_uniform curand_uniform_double curand_normal curand_normal_double "
        "curand_log_normal curand_log_normal_double curand_poisson curand_normal2 curand_normal4 "
        "curand_uniform4 curand_uniform2_double curand_uniform4_double curand_normal2_double "
        "curand_normal4_double curand_log_normal2 curand_log_normal4 curand_log_normal2_double "
        "curand_log_normal4_double curand_poisson4 skipahead skipahead_sequence skipahead_subsequence",
        _random,
    )
    return table


TABLE: Mapping[str, Handler] = _rows()


def lower(
    low: Lowering, node: Node, declaration: Declaration, arguments: list[Node], this: Place | None
) -> Value | Place | None:
    """What a call of a built-in gives; None when it is no built-in."""
    name = declaration.name
    if (
        not declaration.in_system_header
        and not name.startswith("__builtin")
        and name not in ("__syncthreads", "__assert_fail")
    ):
        return None
    info = type_of(low.ast, node)
    call = Call(low, node, name, arguments, info)
    library = groups.lower(call, declaration, this) or libraries.lower(call, declaration, this)
    if library is not None:
        return library
    if declaration.kind == METHOD:  # a member, static or not (numeric_limits::max), is no built-in
        return None
    if name in ("forward", "move") and arguments:
        return lvalues.place(low, arguments[0])
    handler = TABLE.get(name)
    if handler is not None:
        return handler(call)
    if name.startswith("make_"):
        return _make(call)
    if name.startswith("tex"):
        return _pure(call)
    if name.startswith("surf"):
        return surface(call)
    return None


def construct(
    low: Lowering, node: Node, declaration: Declaration, info: TypeInfo, arguments: list[Node]
) -> Value | None:
    """A constructor of a library class; None for the user's classes."""
    if not declaration.in_system_header:
        return None
    call = Call(low, node, declaration.name, arguments, info)
    return groups.construct(call) or libraries.construct(call)
