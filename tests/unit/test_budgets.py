"""Texts that ask for more than any machine has are undecided early, with the reason, and harm nobody else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

FUZZ = Path(__file__).resolve().parents[1] / "fuzz"
sys.path[:0] = [str(FUZZ), str(FUZZ.parent)]

from bombs import BOMBS  # noqa: E402
from slowness import slowness  # noqa: E402

from cuda_lsp.batch.asked import Asked  # noqa: E402
from cuda_lsp.batch.check import checking  # noqa: E402
from cuda_lsp.frontend import budgets  # noqa: E402
from cuda_lsp.frontend.excess.readable import readable  # noqa: E402
from cuda_lsp.frontend.translation import Translation  # noqa: E402
from cuda_lsp.model import Severity  # noqa: E402
from cuda_lsp.static.findings.conditions import Open  # noqa: E402

pytestmark = pytest.mark.xdist_group("bombs")  # they go off once, not in each process of the tests

MOST_SECONDS = 10.0  # of the processor (the bar of benchmarks/fuzz.md); 5 where nothing else runs
MOST_MEGABYTES = 300


EVERY = 3
"""For each change that number-th bomb goes off, for a release all of them."""


def _each(names: Iterable[str]) -> list[ParameterSet]:
    late = {name for number, name in enumerate(BOMBS) if number % EVERY}
    return [pytest.param(n, marks=[pytest.mark.thorough] if n in late else [], id=n) for n in names]


@pytest.fixture(scope="session")  # tests of other modules come between
def outcomes(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Of the bombs that this run asks for."""
    here = [item for item in request.session.items if item.path == Path(__file__)]
    asked = {item.callspec.params.get("name") for item in here if hasattr(item, "callspec")}
    names = [name for name in BOMBS if name in asked]
    before = slowness()
    done = subprocess.run(
        [sys.executable, str(FUZZ / "bombs.py"), "--json", *names],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(FUZZ.parents[1])},
    )
    told = dict(json.loads(line) for line in done.stdout.splitlines())
    slower = max(before, slowness())
    return {name: {**outcome, "seconds": outcome["seconds"] / slower} for name, outcome in told.items()}


@pytest.mark.parametrize("name", _each(BOMBS))
def test_what_asks_for_too_much_costs_little(outcomes: dict[str, Any], name: str):
    outcome = outcomes[name]
    assert outcome["status"] == 0
    assert outcome["seconds"] < MOST_SECONDS
    assert outcome["megabytes"] < MOST_MEGABYTES


@pytest.mark.parametrize("name", _each(name for name, bomb in BOMBS.items() if bomb.reason))
def test_its_reason_is_told(outcomes: dict[str, Any], name: str):
    outcome = outcomes[name]
    victim = outcome["kernels"].get("victim", ["absent"])
    assert victim[0] != "RACE_FREE"
    assert BOMBS[name].reason in "\n".join((*victim, *outcome["errors"]))


@pytest.mark.parametrize("name", _each(name for name, bomb in BOMBS.items() if not bomb.refuses_file))
def test_other_kernels_of_its_file_are_analysed(outcomes: dict[str, Any], name: str):
    verdict, *reasons = outcomes[name]["kernels"]["neighbour"]
    assert verdict == "RACE_FREE" or reasons == [Open.BACKGROUND.value]  # there was no time left


def test_templates_that_only_count_down_may_be_deep():
    text = """
template <int N> struct Unrolled {
  static __device__ int sum(int *p) { return p[N] + Unrolled<N - 1>::sum(p); }
};
template <> struct Unrolled<0> { static __device__ int sum(int *p) { return p[0]; } };
template <int N> __device__ int total(int *p) { return p[N] + total<N - 1>(p); }
template <> __device__ int total<0>(int *p) { return p[0]; }
__global__ void k(int *p, int *q) {
  q[threadIdx.x] = Unrolled<32>::sum(p) + Unrolled<16>::sum(p) + total<32>(p);
}
"""
    assert Translation(Path("/t.cu"), text).diagnostics == ()


def test_a_file_of_too_many_kernels_is_analysed_in_part_and_says_so(tmp_path: Path, monkeypatch: Any):
    monkeypatch.setattr(budgets, "MOST_KERNELS", 3)
    text = "".join(f"__global__ void k{n}(int *p) {{ p[threadIdx.x] = {n}; }}\n" for n in range(5))
    path = tmp_path / "many.cu"
    path.write_text(text)
    with checking([path], Asked(), 1, cache=False) as reports:
        (report,) = reports
    assert [kernel.name for kernel in report.kernels] == ["k0", "k1", "k2"]
    (error,) = report.errors
    assert error.message == "3 of its 5 kernels are analysed: those at its beginning"
    assert error.severity is Severity.ERROR


def test_records_and_default_arguments_of_real_code_are_not_too_much():
    records = "struct V0 { float x, y, z, w; };\n" + "".join(
        f"struct V{n} {{ V{n - 1} one; V0 few[64], *all; int size(int n = min(1, 2)); }};\n"
        for n in range(1, 40)
    )
    functions = "__device__ int f0(int n = warp(), int m = lanes());\n" + "".join(
        f"__device__ int f{n}(int a = lanes(), int b = f{n - 1}(1, 2), int c = (3));\n" for n in range(1, 10)
    )
    calls = "void h() { " + "int a = f(g(), h()), b = f(f(), f()); " * 500 + "}\n"
    assert readable((records + functions + calls).encode(), ()).whole
