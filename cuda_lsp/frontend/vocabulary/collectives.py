"""cub's block and warp collectives, by what their documentation promises.

A collective works in its temporary storage, which may be used again only behind a barrier; the call
itself is free of races. So one thread of the group, the same for all of them and otherwise unknown, stands
for everything that the group does there: it writes the whole storage. Two uses of one storage meet when no
barrier of the program separates them; one use does not meet itself. Whether a collective orders anything
else is up to the library: its barrier is not ``assured``.
``BlockLoad`` and ``BlockStore`` touch their tile of memory the same way, each element once; those that move
items directly, or as vectors, use no storage, and thread t moves those from t * items on.

A tile that is guarded (``Load(tile, items, valid)``) counts as a whole one where no thread is known to touch
it.

Reductions and scans of a warp, or of a power of two of its lanes, exchange values by shuffles, and leave
their storage alone: the documentation tells the one for such groups, and every version since then has the
other. That is taken for granted, and told. Other groups smaller than a warp, and storage outside shared
memory, are not modelled (``Incomplete``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering import expressions, lvalues
from cuda_lsp.frontend.lowering.build import binary, cast, element
from cuda_lsp.frontend.lowering.places import Handle, MemoryPlace, Place, StaticPlace, Value, is_expr
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.syntax import strip
from cuda_lsp.frontend.lowering.types import TypeInfo, type_of
from cuda_lsp.frontend.tree import Node
from cuda_lsp.ir.program import (
    Axis,
    Barrier,
    BarrierScope,
    BinaryOp,
    Builtin,
    Const,
    Expr,
    If,
    Load,
    Stmt,
    Store,
    Unknown,
)
from cuda_lsp.ir.types import INT64, UINT32, Int, Opaque
from cuda_lsp.ir.walk import root_array
from cuda_lsp.model import Space

if TYPE_CHECKING:
    from cuda_lsp.frontend.vocabulary.builtin_call import Call

PLAIN = ("cub::Uninitialized<", "cub::KeyValuePair<", "cub::Arg")
"""Starts of the names of classes of cub that are ordinary code."""
_READS_ONLY = frozenset({"cub::BlockReduce", "cub::WarpReduce"})
_TILES = {"cub::BlockLoad": "Load", "cub::BlockStore": "Store"}
_GUARDED = {
    "cub::BlockLoad": 4,
    "cub::BlockStore": 3,
}  # arguments, with a guard
_DIRECT = ("DIRECT", "VECTORIZE", ")0", ")2")
"""How the names of these algorithms end, or their numbers."""
_MOST_ITEMS = 32
_KNOWN = frozenset(
    {*_READS_ONLY, *_TILES, "cub::BlockScan", "cub::WarpScan", "cub::BlockAdjacentDifference",
     "cub::BlockDiscontinuity", "cub::BlockExchange", "cub::BlockRadixSort", "cub::BlockMergeSort"}
)  # fmt: skip
_BY_SHUFFLES = frozenset({"cub::WarpReduce", "cub::WarpScan"})
_WARP = 32
_EXTENTS = {
    "cub::BlockReduce": 3,
    "cub::BlockScan": 3,
    "cub::BlockAdjacentDifference": 2,
    "cub::BlockDiscontinuity": 2,
}
"""Where the template's extents along y and z stand; the others, as declared here, are for one dimension."""
_REASON = "what it does in its temporary storage is not analysed"


def collective(call: Call, this: Place) -> Value:
    """A member function of a cub collective."""
    low = call.low
    full_name = this.info.name.removeprefix("const ")
    name = full_name.split("<")[0]
    handle = this.value if isinstance(this, StaticPlace) and isinstance(this.value, Handle) else None
    storage = handle.storage if handle is not None else None
    tile = None if name not in _TILES else _tile(call, name, full_name)
    results = call.arguments
    valid: Value | None = None
    if name in _TILES and call.arguments:
        results = call.arguments[1:2]
        guards = [expressions.value(low, guard) for guard in call.arguments[2:]]
        valid = guards[0] if guards else None
    private = _read(call, results, _inputs(name, results))
    member = _member(low, full_name)
    known = name in _KNOWN and private and (tile is not None or name not in _TILES)
    if known and name in _BY_SHUFFLES and (lanes := _lanes(full_name)) & (lanes - 1) == 0 < lanes <= _WARP:
        low.shuffled[name] = None
        if lanes == _WARP:
            low.emit(_barrier(call, name))
    elif known and member is not None and tile is not None and _moves_directly(full_name):
        _move_own(call, name, member, tile, full_name, valid)
    elif known and member is not None and isinstance(storage, MemoryPlace) and _in_shared_memory(storage):
        _work(call, name, member, storage, tile)
    else:
        pointers: list[Expr] = [storage.pointer] if isinstance(storage, MemoryPlace) else []
        low.incomplete(f"{name}::{call.name}", _REASON, call.node, pointers, synchronises=True)
        low.emit(_barrier(call, name))
    if name not in _READS_ONLY:
        for node in results:
            _written(call, node)
    return call.unknown(f"the result of {call.name}", varies=True)


def _in_shared_memory(storage: MemoryPlace) -> bool:
    base = root_array(storage.pointer)
    return base is not None and base.space is Space.SHARED


def template_arguments(name: str) -> list[str]:
    """The arguments of a template's name: ``A<B<int>, 4>`` → ``["B<int>", "4"]``."""
    inner = name[name.index("<") + 1 : name.rindex(">")] if "<" in name else ""
    found: list[str] = []
    depth = start = 0
    for i, c in enumerate(inner):
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            found.append(inner[start:i].strip())
            start = i + 1
    return [*found, inner[start:].strip()] if inner.strip() else []


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d+", text) else None


def _lanes(full_name: str) -> int:
    """Of a group within a warp; 0: not known."""
    arguments = template_arguments(full_name)
    return (_number(arguments[1]) or 0) if len(arguments) > 1 else _WARP


def _member(low: Lowering, full_name: str) -> Expr | None:
    """The number of a thread in the collective's group, a whole block or warp; None: a smaller group."""
    arguments = template_arguments(full_name)
    name = full_name.split("<")[0]
    if name.startswith("cub::Warp"):
        return Builtin(Axis.LANE, UINT32) if _lanes(full_name) == _WARP else None
    member: Expr = Builtin(Axis.TID_X, UINT32)
    x = _number(arguments[1]) if len(arguments) > 1 else None
    y: int | None = 1
    z: int | None = 1
    if name in _EXTENTS:
        y, z = ([_number(a) for a in arguments[_EXTENTS[name] :]] + [1, 1])[:2]
        if x is None or y is None or z is None:
            return None
        for axis, extent, stride in ((Axis.TID_Y, y, x), (Axis.TID_Z, z, x * y)):
            if extent > 1:
                part = binary(BinaryOp.MUL, Builtin(axis, UINT32), Const(stride, UINT32))
                member = binary(BinaryOp.ADD, member, part)
    if x is not None:
        low.required.update(block_x=x, block_y=y or 1, block_z=z or 1)
    return member


def _tile(call: Call, name: str, full_name: str) -> tuple[Expr, int] | None:
    """Pointer and bytes of what a ``BlockLoad`` or ``BlockStore`` moves; None: not known."""
    arguments = template_arguments(full_name)
    if call.name != _TILES[name] or not 2 <= len(call.arguments) <= _GUARDED[name] or len(arguments) < 3:
        return None
    threads, items = _number(arguments[1]), _number(arguments[2])
    info = type_of(call.low.ast, call.arguments[0])
    if threads is None or items is None or info.target is None or not info.target.size:
        return None
    pointer = call.low.pointer(expressions.value(call.low, call.arguments[0]))
    return pointer, threads * items * info.target.size


def _inputs(name: str, nodes: list[Node]) -> int:
    """How many leading arguments are only read."""
    return len(nodes) if name in _READS_ONLY else int(name in ("cub::BlockScan", "cub::WarpScan"))


def _read(call: Call, nodes: list[Node], inputs: int) -> bool:
    """Evaluates inputs. False when memory that other threads see may be read or written unseen."""
    plain = True
    for i, node in enumerate(nodes):
        is_array = type_of(call.low.ast, node).kind == "array"
        if not is_array:
            expressions.value(call.low, node)
        if _is_lvalue(node) and (is_array or i >= inputs):
            place = lvalues.place(call.low, node)
            plain = plain and not (isinstance(place, MemoryPlace) and _shared_with_others(place))
    return plain


def _is_lvalue(node: Node) -> bool:
    """Whether the expression may name an object that a reference parameter binds to."""
    kind = strip(node).kind
    return kind in K.CASTS or kind in (K.DECL_REF, K.MEMBER_EXPR, K.UNARY, K.SUBSCRIPT, K.CONDITIONAL)


def _shared_with_others(place: MemoryPlace) -> bool:
    base = root_array(place.pointer)
    return base is None or base.space is not Space.LOCAL


def _work(call: Call, name: str, member: Expr, storage: MemoryPlace, tile: tuple[Expr, int] | None) -> None:
    """The group's accesses, by one thread of it."""
    low = call.low
    site = low.site(call.node)
    whole = Opaque("temporary storage", _size(storage.info))
    content = Unknown(f"the temporary storage of {name}", whole, low.fresh())
    work: list[Stmt] = [Store(storage.pointer, content, whole, site)]
    if tile is not None:
        pointer, size = tile
        kind = Opaque("tile", size)
        if name == "cub::BlockLoad":
            work.append(Load(None, pointer, kind, site))
        else:
            work.append(Store(pointer, Unknown(f"what {name} stores", kind, low.fresh()), kind, site))
    elected = Unknown(f"which thread does the work of {name}", UINT32, low.fresh(), uniform=True)
    low.emit(If(binary(BinaryOp.EQ, member, elected), tuple(work), (), site))
    low.emit(_barrier(call, name))


def _moves_directly(full_name: str) -> bool:
    """Each thread moves its own items, one behind the other, without the others."""
    algorithm = template_arguments(full_name)[3:4]
    return not algorithm or algorithm[0].endswith(_DIRECT)


def _move_own(
    call: Call, name: str, member: Expr, tile: tuple[Expr, int], full_name: str, valid: Value | None
) -> None:
    """A thread's accesses to its own items; of a tile that is guarded, to each that is valid."""
    low, site = call.low, call.low.site(call.node)
    threads, items = (int(number) for number in template_arguments(full_name)[1:3])
    limit: Expr | None = None
    if is_expr(valid) and isinstance(valid.type, Int) and items <= _MOST_ITEMS:
        limit = cast(valid, INT64)
    parts = items if limit is not None else 1
    each = tile[1] // threads // parts
    kind = Opaque("tile", each)
    first = binary(BinaryOp.MUL, cast(member, INT64), Const(parts, INT64))
    for number in range(parts):
        index = binary(BinaryOp.ADD, first, Const(number, INT64))
        at = element(tile[0], index, each)
        content = Unknown(f"what {name} stores", kind, low.fresh())
        loads = name == "cub::BlockLoad"
        access: Stmt = Load(None, at, kind, site) if loads else Store(at, content, kind, site)
        if limit is not None:
            access = If(binary(BinaryOp.LT, index, limit), (access,), (), site)
        low.emit(access)


def _size(info: TypeInfo) -> int:
    return info.size or 4


def _barrier(call: Call, name: str) -> Barrier:
    scope = BarrierScope.BLOCK if name.startswith("cub::Block") else BarrierScope.WARP
    return Barrier(scope, call.low.site(call.node), implied=True, assured=False)


def _written(call: Call, node: Node) -> None:
    """Results come back through references to locals."""
    if not _is_lvalue(node):
        return
    low = call.low
    place = lvalues.place(low, node)
    if isinstance(place, MemoryPlace):
        base = root_array(place.pointer)
        if base is not None and base.space is Space.LOCAL:
            kind = Opaque("result", _size(place.info))
            low.emit(
                Store(
                    place.pointer, Unknown("a collective's result", kind, low.fresh()), kind, low.site(node)
                )
            )
    elif not isinstance(place, StaticPlace) and not getattr(place, "constant", False):
        low.scramble(place)
