"""What a repair costs is told, and loops over tiles may have two buffers for one barrier."""

from __future__ import annotations

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Verdict
from cuda_lsp.repair import Repair
from cuda_lsp.repairs.plan import InProcess
from cuda_lsp.repairs.search import suggested
from cuda_lsp.repairs.source import Source
from cuda_lsp.static.analyze import Analyzer
from tests.mending import PATH, mended
from tests.unit.test_repairs import kernel

TILES = """
    __shared__ int s[64];
    int t = threadIdx.x, sum = 0;
    for (int r = 0; r < %s; %s) {
        s[t] = in[r * 64 + t];
        __syncthreads();
        for (int j = 0; j < 64; j++) sum += s[j];
        __syncthreads();
    }
    out[blockIdx.x * 64 + t] = sum;"""


def at_last_barrier(text: str) -> tuple[Repair, str] | None:
    """What is suggested there, and the text that it makes; race-free."""
    analyzer = Analyzer(PATIENT)
    try:
        report = analyzer.check(PATH, text)
        place = text.rindex("__syncthreads")
        found = suggested(Source(PATH, text), report, place, InProcess(analyzer, PATH))
        if found is None:
            return None
        assert found.repair.verified and found.report.kernels[0].verdict is Verdict.RACE_FREE
        return found.repair, found.text
    finally:
        analyzer.shutdown()


def test_the_rounds_of_a_loop_take_turns_and_one_barrier_is_enough() -> None:
    found = at_last_barrier(kernel(TILES % ("8", "r++")))
    assert found is not None
    repair, text = found
    assert repair.title.startswith("Double-buffer s: one barrier a round is enough (256 bytes")
    assert repair.cost == "1 barrier less a round"
    assert "s[2][64]" in text and "s[r & 1][t] = in[" in text and "sum += s[r & 1][j];" in text
    assert text.count("__syncthreads") == 1


def test_other_steps_have_a_variable_of_their_own() -> None:
    found = at_last_barrier(kernel(TILES % ("16", "r += 2")))
    assert found is not None
    assert "int buffer = 0;\n    for" in found[1] and "buffer ^= 1;" in found[1]


@pytest.mark.parametrize(
    "body",
    [
        (TILES % ("8", "r++")).replace("sum;", "sum + s[t];"),  # what is behind the loop reads the last tile
        (TILES % ("8", "r++")).replace("        __syncthreads();\n        for", "        for"),  # racy
        (TILES % ("8", "r++")).replace("    s[t] = in", "    int* p = s; p[t] = in"),  # through a pointer
    ],
)
def test_it_is_not_suggested_where_the_buffers_would_be_missed(body: str) -> None:
    assert at_last_barrier(kernel(body)) is None


def test_a_repair_says_what_it_costs() -> None:
    body = "__shared__ int s[64]; int t = threadIdx.x;\ns[t] = t;\nout[blockIdx.x * 64 + t] = s[63 - t];"
    (repair,) = mended(kernel(body)).repairs
    assert repair.cost == "1 barrier more"
    (update,) = mended(kernel("out[in[threadIdx.x]] += 1;")).repairs
    assert update.cost == "1 atomic more"
