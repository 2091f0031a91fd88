"""Stretches of bytes that no two agents share, beside what comparing all of them tells; and what it saves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_lsp.config import Settings
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.diagnostics import races
from cuda_lsp.static.diagnostics.owned_stretches import owned

STRETCHES = st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 8), st.integers(0, 3)), max_size=12)


@given(STRETCHES)
def test_as_comparing_each_with_each_tells(stretches: list[tuple[int, int, int]]) -> None:
    low, size, agent = np.array(stretches, np.int64).reshape(-1, 3).T
    high = low + size
    shared = any(
        a != b and x < w and y < z
        for x, z, a in zip(low, high, agent, strict=True)
        for y, w, b in zip(low, high, agent, strict=True)
    )
    assert owned(low, high, agent) is not shared


MARKED = """
__device__ int inside(float p, const float* box, float& local) { local = p - box[0]; return local < box[1]; }
__global__ void k(int batches, int boxes, int points, const float* box, const float* point, int* marks) {
    int batch = blockIdx.y;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < points; i += blockDim.x * gridDim.x) {
        if (batch >= batches) return;
        box += batch * boxes * 7;
        point += batch * points * 3 + i * 3;
        marks += batch * points + i;
        float local = 0;
        for (int b = 0; b < boxes; b++) {
            int found = inside(point[0], box + b * 7, local);
            if (found) { marks[0] = b; break; }
        }
    }
}
void run(int batches, int boxes, int points, float* box, float* point, int* marks) {
    k<<<dim3((points + 511) / 512, batches), 512>>>(batches, boxes, points, box, point, marks);
}
"""


def _calls(source: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, Verdict]:
    """Pairs that were compared one by one, and the verdict of both tiers."""
    compared = [0]
    each = races.data_collision

    def counted(*words: object) -> object:
        compared[0] += 1
        return each(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(races, "data_collision", counted)
    report = check_text(Path("/nowhere/k.cu"), source, Settings())
    return compared[0], report.kernels[0].verdict


def test_rounds_of_a_loop_that_data_end_are_compared_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared, verdict = _calls(MARKED, monkeypatch)
    assert compared < 100 and verdict is Verdict.RACE_FREE


def test_rounds_that_meet_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    compared, verdict = _calls(MARKED.replace("points + i;", "points + i / 2;"), monkeypatch)
    assert compared and verdict is not Verdict.RACE_FREE
