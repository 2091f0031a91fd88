"""What is made of the bits of a number: the solver's words for it are the functions that are evaluated."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.ir.ops import INTRINSICS
from cuda_lsp.ir.types import Int
from cuda_lsp.model import Status, Verdict
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.encode import Encoder, z3
from cuda_lsp.static.symbolic.integers import intrinsic
from cuda_lsp.static.symbolic.terms import Level

_TYPES = {"__brev": 32, "__brevll": 64, "__popc": 32, "__popcll": 64}
_NUMBERS = (0, 1, 2, 3, 0x80000000, 0xFFFFFFFF, 0x12345678, 0xDEADBEEF, 1 << 63, (1 << 64) - 2)


@pytest.mark.parametrize(("name", "bits"), _TYPES.items())
def test_the_solver_computes_what_is_evaluated(name: str, bits: int) -> None:
    of = Int(bits, False)
    operand = t.symbol("x", Level.THREAD, 0, (1 << bits) - 1)
    value = intrinsic(name, of, (operand,), 0, (1 << bits) - 1)
    encoder = Encoder(bits + 2)
    x, y = encoder.encode(operand), encoder.encode(value)
    for number in (number for number in _NUMBERS if number < 1 << bits):
        solver = z3().SolverFor("QF_BV", ctx=encoder.context)
        solver.add(*encoder.constraints, x == number)
        assert solver.check() == z3().sat
        assert solver.model().eval(y).as_long() == INTRINSICS[name]((number,), of)


SWAP = """__global__ void swap(float2 *x, int bits) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 1u << bits) return;
  unsigned j = __brev(i) >> (32 - bits);
  if (%s) { float2 a = x[i], b = x[j]; x[i] = b; x[j] = a; }
}
void f(float2 *x, int bits) {
  if (bits < 1 || bits > 24) return;
  int n = 1 << bits;
  swap<<<(n + 255) / 256, 256>>>(x, bits);
}
"""


def test_both_threads_of_a_pair_of_reversed_numbers_must_not_swap_it() -> None:
    [kernel] = check_text(Path("/x/a.cu"), SWAP % "i != j").kernels
    assert kernel.verdict is Verdict.RACY
    assert {f.witness.arguments.keys() >= {"bits"} for f in kernel.findings if f.witness is not None} == {
        True
    }


def test_one_thread_of_a_pair_may() -> None:
    [kernel] = check_text(Path("/x/a.cu"), SWAP % "i < j").kernels
    assert not [f for f in kernel.findings if f.kind and f.status is not Status.POSSIBLE]
    assert kernel.verdict is not Verdict.RACY
