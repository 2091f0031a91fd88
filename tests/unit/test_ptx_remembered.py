"""What is known of a PTX module is asked once of the same module, and never of another."""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.dynamic.ptx.module import PtxModule
from cuda_lsp.dynamic.ptx.remembered import remembered

MODULE = PtxModule("8.0", "sm_90", 64, ())


def test_the_same_module_is_asked_once_and_an_equal_one_anew() -> None:
    asked: list[tuple[PtxModule, str]] = []

    @remembered
    def named(module: PtxModule, entry: str) -> str:
        asked.append((module, entry))
        return f"{module.target} {entry}"

    other = evolve(MODULE)
    assert other == MODULE
    told = [named(MODULE, "a"), named(MODULE, "a"), named(MODULE, "b"), named(other, "a")]
    assert told == ["sm_90 a", "sm_90 a", "sm_90 b", "sm_90 a"]
    assert [(module is other, entry) for module, entry in asked] == [(False, "a"), (False, "b"), (True, "a")]


def test_what_was_asked_long_ago_is_asked_again() -> None:
    asked: list[int] = []

    @remembered
    def doubled(module: PtxModule, number: int) -> int:
        asked.append(number)
        return 2 * number

    assert [doubled(MODULE, k) for k in range(100)] == [2 * k for k in range(100)]
    assert doubled(MODULE, 99) == 198
    assert doubled(MODULE, 0) == 0
    assert asked == [*range(100), 0]
