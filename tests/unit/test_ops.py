"""The operation table: its evaluators agree with one another."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import examples

from cuda_lsp.ir.ops import BINARY, INTRINSICS, UNARY, dtype_of, intrinsic_lanes
from cuda_lsp.ir.pretty import pretty
from cuda_lsp.ir.program import Axis, Binary, BinaryOp, Builtin, UnaryOp, Var, const
from cuda_lsp.ir.types import INT32, UINT32, Int

TYPES = [Int(8), Int(8, False), Int(16), INT32, UINT32, Int(64), Int(64, False)]


@st.composite
def operands(draw: st.DrawFn) -> tuple[Int, int, int]:
    type = draw(st.sampled_from(TYPES))
    small = st.integers(max(type.minimum, -9), 9)
    value = st.one_of(small, st.integers(type.minimum, type.maximum))
    return type, draw(value), draw(value)


@pytest.mark.parametrize("op", list(BinaryOp))
@examples(60)
@given(case=operands())
def test_numpy_and_python_agree(op: BinaryOp, case: tuple[Int, int, int]) -> None:
    type, a, b = case
    row = BINARY[op]
    lanes = [np.array([v, v], dtype_of(type)) for v in (a, b)]
    exact = row.exact(a, b, type)
    assert (exact is not None) == (row.defined is None or bool(row.defined(b, type)))
    assert (exact is not None) == (row.defined is None or bool(np.all(row.defined(lanes[1], type))))
    if exact is not None:
        assert type.wrap(exact) == exact
        assert row.numpy(lanes[0], lanes[1], type).tolist() == [exact] * 2
        assert row.numpy(lanes[0], b, type).tolist() == [exact] * 2


@pytest.mark.parametrize("op", [UnaryOp.NEG, UnaryOp.INV])
@examples(40)
@given(case=operands())
def test_unary_evaluators_agree(op: UnaryOp, case: tuple[Int, int, int]) -> None:
    type, a, _ = case
    expected = UNARY[op].python(a, type)
    assert UNARY[op].numpy(np.array([a], dtype_of(type)), type).tolist() == [expected]


@pytest.mark.parametrize(
    ("op", "b"), [(BinaryOp.DIV, 0), (BinaryOp.REM, 0), (BinaryOp.SHL, 32), (BinaryOp.SHR, -1)]
)
def test_what_cpp_leaves_undefined_is_not_known(op: BinaryOp, b: int) -> None:
    assert BINARY[op].exact(7, b, INT32) is None


def test_division_truncates_towards_zero() -> None:
    assert BINARY[BinaryOp.DIV].python(-7, 2, INT32) == -3
    assert BINARY[BinaryOp.REM].python(-7, 2, INT32) == -1


@pytest.mark.parametrize(
    ("name", "args", "type", "expected"),
    [
        ("__popc", (0xF0,), UINT32, 4),
        ("__clz", (1,), INT32, 31),
        ("__ffs", (8,), INT32, 4),
        ("__brev", (1,), UINT32, 1 << 31),
        ("__mul24", (3, 5), INT32, 15),
        ("__umulhi", (1 << 31, 4), UINT32, 2),
        ("abs", (-3,), INT32, 3),
    ],
)
def test_intrinsics(name: str, args: tuple[int, ...], type: Int, expected: int) -> None:
    assert INTRINSICS[name](args, type) == expected
    lanes = [np.array([a], dtype_of(type)) for a in args]
    assert intrinsic_lanes(name, lanes, type, type).tolist() == [expected]


def test_pretty_uses_only_needed_parentheses() -> None:
    tid, n = Builtin(Axis.TID_X), Var("n", UINT32, 1)
    one = const(1, UINT32)
    inner = Binary(BinaryOp.ADD, tid, one, UINT32)
    assert pretty(Binary(BinaryOp.REM, inner, n, UINT32)) == "(threadIdx.x + 1) % n"
    product = Binary(BinaryOp.MUL, tid, n, UINT32)
    assert pretty(Binary(BinaryOp.ADD, product, one, UINT32)) == "threadIdx.x * n + 1"
    assert pretty(Binary(BinaryOp.SUB, n, Binary(BinaryOp.SUB, n, one, UINT32), UINT32)) == "n - (n - 1)"


def test_a_number_of_64_bits_divides() -> None:
    unsigned = Int(64, signed=False)
    lanes = np.array([0, (1 << 64) - 1], dtype_of(unsigned))
    assert BINARY[BinaryOp.DIV].numpy(lanes, 1 << 63, unsigned).tolist() == [0, 1]
