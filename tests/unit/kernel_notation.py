"""Kernel programs written by hand, as briefly as CUDA: operators on ``E`` build IR expressions.

Each statement gets the next line number, so tests name accesses by line.
"""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import Array, Axis, BarrierScope, BinaryOp, Var
from cuda_lsp.ir.types import BOOL, FLOAT32, INT32, INT64, UINT32, Pointer, Type
from cuda_lsp.model import Position, Scope, Site, SourceRange, Space

_COMPARE = {BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE, BinaryOp.EQ, BinaryOp.NE}


class E:
    """An int32 or uint32 expression (or a condition)."""

    def __init__(self, node: ir.Expr) -> None:
        self.node = node

    def _op(self, op: BinaryOp, other: object, flip: bool = False) -> E:
        a, b = self.node, wrap(other).node
        if flip:
            a, b = b, a
        if a.type != b.type:  # C's usual conversions among int, unsigned and bool
            either = UINT32 if UINT32 in (a.type, b.type) else INT32
            a, b = (x if x.type == either else ir.Cast(x, either) for x in (a, b))
        return E(ir.Binary(op, a, b, BOOL if op in _COMPARE or op in (BinaryOp.AND, BinaryOp.OR) else a.type))

    def __add__(self, o: object) -> E:
        return self._op(BinaryOp.ADD, o)

    def __radd__(self, o: object) -> E:
        return self._op(BinaryOp.ADD, o, True)

    def __sub__(self, o: object) -> E:
        return self._op(BinaryOp.SUB, o)

    def __rsub__(self, o: object) -> E:
        return self._op(BinaryOp.SUB, o, True)

    def __mul__(self, o: object) -> E:
        return self._op(BinaryOp.MUL, o)

    def __rmul__(self, o: object) -> E:
        return self._op(BinaryOp.MUL, o, True)

    def __floordiv__(self, o: object) -> E:
        return self._op(BinaryOp.DIV, o)

    def __mod__(self, o: object) -> E:
        return self._op(BinaryOp.REM, o)

    def __lshift__(self, o: object) -> E:
        return self._op(BinaryOp.SHL, o)

    def __rshift__(self, o: object) -> E:
        return self._op(BinaryOp.SHR, o)

    def __and__(self, o: object) -> E:
        return self._op(BinaryOp.BAND, o)

    def __or__(self, o: object) -> E:
        return self._op(BinaryOp.BOR, o)

    def __xor__(self, o: object) -> E:
        return self._op(BinaryOp.BXOR, o)

    def __lt__(self, o: object) -> E:
        return self._op(BinaryOp.LT, o)

    def __le__(self, o: object) -> E:
        return self._op(BinaryOp.LE, o)

    def __gt__(self, o: object) -> E:
        return self._op(BinaryOp.GT, o)

    def __ge__(self, o: object) -> E:
        return self._op(BinaryOp.GE, o)

    def eq(self, o: object) -> E:
        return self._op(BinaryOp.EQ, o)

    def ne(self, o: object) -> E:
        return self._op(BinaryOp.NE, o)

    def and_(self, o: object) -> E:
        return self._op(BinaryOp.AND, o)


def wrap(value: object) -> E:
    if isinstance(value, E):
        return value
    if isinstance(value, Var):
        return E(value)
    assert isinstance(value, int)
    return E(ir.const(value))


def builtin(axis: Axis) -> E:
    return E(ir.Cast(ir.Builtin(axis), INT32))


UTID = E(ir.Builtin(Axis.TID_X))
"""threadIdx.x as it is: unsigned."""

TID, TIDY, BID, BIDY = map(builtin, (Axis.TID_X, Axis.TID_Y, Axis.BID_X, Axis.BID_Y))
BDIM, GDIM, LANE = map(builtin, (Axis.BDIM_X, Axis.GDIM_X, Axis.LANE))

_PATH = Path("kernel.cu")


class Notation:
    """Builds one kernel; every statement method returns an IR statement with its own line."""

    def __init__(self) -> None:
        self.line = 0
        self.ids = 0
        self.arrays: list[Array] = []
        self.params: list[Var] = []

    def _id(self) -> int:
        self.ids += 1
        return self.ids

    def site(self, text: str = "") -> Site:
        self.line += 1
        return Site(SourceRange(_PATH, Position(self.line, 1), Position(self.line, 20)), text)

    def var(self, name: str = "", type: Type = INT32) -> Var:
        return Var(name, type, self._id())

    def param(self, name: str) -> E:
        var = self.var(name)
        self.params.append(var)
        return E(var)

    def shared(self, name: str, *shape: int, element: Type = FLOAT32) -> Array:
        size = element.size
        for extent in shape:
            size *= extent
        array = Array(name, Space.SHARED, element, shape, self._id(), size)
        self.arrays.append(array)
        return array

    def globals(self, name: str, element: Type = FLOAT32) -> Array:
        var = Var(name, Pointer(element.size), self._id())
        self.params.append(var)
        array = Array(name, Space.GLOBAL, element, (), self._id(), param=var)
        self.arrays.append(array)
        return array

    def at(self, array: Array | Var, index: object, size: int = 4) -> ir.Expr:
        base: ir.Expr = ir.AddressOf(array) if isinstance(array, Array) else array
        wide = ir.Cast(wrap(index).node, INT64)
        return ir.Offset(base, ir.Binary(BinaryOp.MUL, wide, ir.const(size, INT64), INT64))

    def let(self, var: Var, value: object) -> ir.Assign:
        node = wrap(value).node  # C converts what is assigned
        return ir.Assign(var, node if node.type == var.type else ir.Cast(node, var.type), self.site())

    def read(self, array: Array | Var, index: object, into: Var | None = None) -> ir.Load:
        type = into.type if into is not None else FLOAT32
        return ir.Load(into, self.at(array, index), type, self.site())

    def write(self, array: Array | Var, index: object, value: object = None) -> ir.Store:
        data = ir.Unknown("data", FLOAT32, self._id()) if value is None else wrap(value).node
        return ir.Store(self.at(array, index), data, data.type, self.site())

    def atomic_add(self, array: Array, index: object, into: Var | None = None) -> ir.Atomic:
        return ir.Atomic(
            into, AtomicOp.ADD, self.at(array, index), (ir.const(1),), INT32, Scope.DEVICE, self.site()
        )

    def sync(self) -> ir.Barrier:
        return ir.Barrier(BarrierScope.BLOCK, self.site("__syncthreads()"))

    def syncwarp(self, mask: int = 0xFFFFFFFF) -> ir.Barrier:
        return ir.Barrier(BarrierScope.WARP, self.site("__syncwarp()"), mask=ir.const(mask))

    def when(self, condition: E, *then: ir.Stmt, otherwise: tuple[ir.Stmt, ...] = ()) -> ir.If:
        return ir.If(condition.node, then, otherwise, self.site())

    def leave_if(self, condition: E) -> ir.If:
        return self.when(condition, ir.Leave(0, self.site()))

    def loop(self, condition: E, step: list[ir.Stmt], *body: ir.Stmt) -> ir.Loop:
        label, again = self._id() + 1000, self._id() + 1000
        return ir.Loop(label, again, (), condition.node, body, tuple(step), self.site())

    def kernel(self, *body: ir.Stmt) -> ir.Kernel:
        where = SourceRange(_PATH, Position(1, 1), Position(self.line + 1, 1))
        block = ir.Block(0, body)
        return ir.Kernel("k", where, tuple(self.params), tuple(self.arrays), (block,))


def listing(statements: tuple[ir.Stmt, ...], indent: str = "") -> str:
    """The program as text, one statement a line with its line number, for failure messages."""
    from cuda_lsp.ir.pretty import pretty

    text = ""
    for s in statements:
        site = getattr(s, "site", None)
        head = f"{site.range.start.line if site else '':>3} {indent}"
        match s:
            case ir.Assign():
                text += f"{head}{s.var!r} = {pretty(s.value, repr)}\n"
            case ir.Load():
                text += f"{head}read {pretty(s.pointer, repr)}\n"
            case ir.Store():
                text += f"{head}write {pretty(s.pointer, repr)}\n"
            case ir.If():
                text += f"{head}if {pretty(s.condition, repr)}\n{listing(s.then, indent + '  ')}"
                if s.otherwise:
                    text += f"{head}else\n{listing(s.otherwise, indent + '  ')}"
            case ir.Loop():
                text += f"{head}loop {pretty(s.condition, repr)}\n"
                text += listing((*s.body, *s.step), indent + "  ")
            case ir.Block():
                text += listing(s.body, indent)
            case ir.Barrier():
                text += f"{head}{s.site.text}\n"
            case _:
                text += f"{head}{type(s).__name__}\n"
    return text
