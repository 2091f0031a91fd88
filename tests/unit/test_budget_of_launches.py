"""What of the solver's budget the launches of one kernel have."""

from __future__ import annotations

from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static import work
from cuda_lsp.static.solver.solve import Budget, refine_kernel

GPU = GpuModel("test", (9, 0))
LAUNCHES = [LaunchConfig((32 * n, 1, 1), source=LaunchSource.FILE) for n in range(1, 7)]
FREE = """
__global__ void k(float* a, const float* b, int n, int m) {
    for (int r = blockIdx.x; r < n; r += gridDim.x)
        for (int c = threadIdx.x; c < m; c += blockDim.x) a[r * m + c] = b[r * m + c];
}
"""


def test_launches_behind_decided_ones_have_a_share_of_their_own() -> None:
    kernel = lowered(FREE)
    one = refine_kernel(kernel, LAUNCHES[:1], GPU, Budget(kernel=10.0))
    assert one.verdict is Verdict.RACE_FREE
    tight = Budget(kernel=2.0 * one.stats.seconds)  # the first launch takes half of it
    assert refine_kernel(kernel, LAUNCHES, GPU, tight).verdict is Verdict.RACE_FREE


def test_behind_one_that_is_open_the_rest_of_the_budget_is_all() -> None:
    scattered = FREE.replace("c < m", "c <= m").replace("a[r * m + c] =", "a[b[r] > 0 ? c : r * m + c] =")
    kernel = lowered(scattered)
    begun = work.done()
    result = refine_kernel(kernel, LAUNCHES, GPU, Budget(kernel=0.5))
    assert result.verdict is not Verdict.RACE_FREE
    assert work.done() - begun < 2 * 0.5
    assert not any("took all of the solver's time" in reason for reason in result.reasons)
