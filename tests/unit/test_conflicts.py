"""When two accesses conflict: one table for every analysis, and the analyses agree with it."""

from __future__ import annotations

import pytest
from attrs import frozen
from extract_kernels import lowered
from test_schedules import GPU, every_pair

from cuda_lsp.ir.conflicts import conflicting, kind
from cuda_lsp.model import LaunchConfig, Mode, RaceKind, Scope
from cuda_lsp.static.exact.search import Search

TWO_WIDTHS = """
__global__ void k(unsigned long long* sum) {
  if (threadIdx.x < 32) atomicAdd(sum, 1ull);
  else atomicAdd((unsigned*)sum, 1u);
}"""


@frozen
class Touched:
    mode: Mode
    size: int = 4
    scope: Scope | None = None
    elementwise: bool = False


def shown(text: str) -> int:
    """How many pairs of places a schedule shows to race."""
    kernel = lowered(text)
    search = Search.of(kernel, LaunchConfig((64, 1, 1), (1, 1, 1)), GPU, float("inf"))
    return len(search.shown(every_pair(kernel)))


def test_a_schedule_shows_atomics_of_two_widths_on_one_word():
    assert shown(TWO_WIDTHS) == 1


@pytest.mark.parametrize("second", ["sum, 1ull", "(unsigned*)(sum + 1), 1u"])
def test_a_schedule_shows_no_race_of_atomics_of_one_width_or_on_two_words(second: str):
    assert shown(TWO_WIDTHS.replace("(unsigned*)sum, 1u", second)) == 0


ADD = Touched(Mode.ATOMIC, scope=Scope.DEVICE)
OWN = Touched(Mode.ATOMIC, scope=Scope.BLOCK)
CONFLICTS = [
    (Touched(Mode.READ), Touched(Mode.READ), False, False),
    (Touched(Mode.READ), Touched(Mode.WRITE), True, True),
    (Touched(Mode.WRITE), Touched(Mode.WRITE), True, True),
    (ADD, Touched(Mode.READ), True, True),
    (ADD, ADD, False, False),
    (ADD, OWN, False, True),
    (Touched(Mode.ATOMIC_READ), Touched(Mode.WRITE), True, True),
    (Touched(Mode.ATOMIC_READ), Touched(Mode.READ), False, False),
    (Touched(Mode.ATOMIC_READ, 8), ADD, True, True),
    (Touched(Mode.ATOMIC, 8), ADD, True, True),
    (Touched(Mode.ATOMIC, 16, Scope.DEVICE, elementwise=True), ADD, False, False),
]


@pytest.mark.parametrize(("a", "b", "in_a_block", "between_blocks"), CONFLICTS)
def test_what_conflicts_within_a_block_and_between_blocks(
    a: Touched, b: Touched, in_a_block: bool, between_blocks: bool
):
    assert conflicting(a, b, True) == conflicting(b, a, True) == in_a_block
    assert conflicting(a, b, False) == conflicting(b, a, False) == between_blocks


def test_the_kind_is_by_order_of_the_text():
    assert kind(Mode.WRITE, Mode.ATOMIC_READ) is RaceKind.RAW
    assert kind(Mode.READ, Mode.ATOMIC) is RaceKind.WAR
    assert kind(Mode.ATOMIC, Mode.WRITE) is RaceKind.WAW
