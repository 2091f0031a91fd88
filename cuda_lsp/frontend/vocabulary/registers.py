"""PTX's special registers that say where a thread is, in assembly and by the names that libraries have."""

from __future__ import annotations

from collections.abc import Mapping

from cuda_lsp.frontend.lowering.build import binary, cast, unary
from cuda_lsp.ir.program import BDIM, BID, GDIM, TID, Axis, BinaryOp, Builtin, Const, Expr, UnaryOp
from cuda_lsp.ir.types import UINT32

_BIT = binary(BinaryOp.SHL, Const(1, UINT32), cast(Builtin(Axis.LANE), UINT32))
_BELOW = binary(BinaryOp.SUB, _BIT, Const(1, UINT32))
_UP_TO = binary(BinaryOp.BOR, _BELOW, _BIT)
REGISTERS: Mapping[str, Expr] = {
    "%laneid": Builtin(Axis.LANE),
    "%lanemask_lt": _BELOW,
    "%lanemask_le": _UP_TO,
    "%lanemask_eq": _BIT,
    "%lanemask_ge": unary(UnaryOp.INV, _BELOW),
    "%lanemask_gt": unary(UnaryOp.INV, _UP_TO),
    **{
        f"%{name}.{axis}": Builtin(part)
        for name, parts in (("tid", TID), ("ntid", BDIM), ("ctaid", BID), ("nctaid", GDIM))
        for axis, part in zip("xyz", parts, strict=True)
    },
}
FUNCTIONS: Mapping[str, Expr] = {
    **{f"get_sreg_{name[1:].replace('.', '_')}": value for name, value in REGISTERS.items()},
    "LaneId": REGISTERS["%laneid"],
    **{f"LaneMask{way.title()}": REGISTERS[f"%lanemask_{way}"] for way in ("lt", "le", "ge", "gt")},
}
"""Functions of libcu++ (``cuda::ptx``) and cub that read one."""
