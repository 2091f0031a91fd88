"""A replay that takes long has its turn when all that can be decided soon is decided."""

from __future__ import annotations

from extract_kernels import lowered

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, LaunchSource, Verdict
from cuda_lsp.static.solver.solve import Budget, SolverResult, refine_kernel

LAUNCH = LaunchConfig((64, 1, 1), source=LaunchSource.FILE)
KERNEL = """
__global__ void k(float* a, float* b, int w, int h, int n) {{
    int x = blockIdx.x * 64 + threadIdx.x;
    float sum = 0;
    if (threadIdx.x < 32) {{
        for (int i = 0; i < 300000; i++) sum += i;
        for (int r = 0; r < h; r++) a[r * w * n + x / 2 + r * h * n] = sum;
    }} else {{
        for (int r = 0; r < h; r++) b[{index}] = r;
    }}
}}
"""


def decided(index: str) -> SolverResult:
    kernel = lowered(KERNEL.format(index=index))
    return refine_kernel(kernel, [LAUNCH], GpuModel("test", (9, 0)), Budget(kernel=0.4))


def test_a_race_that_is_shown_soon_does_not_wait_for_a_long_replay() -> None:
    result = decided("r * w * h + x / 2 + r * n * h")
    assert result.verdict is Verdict.RACY, result.reasons
    assert "b" in {f.array for f in result.findings if f.certain}


def test_beside_a_long_replay_nothing_free_is_accused() -> None:
    assert not any(f.array == "b" for f in decided("r * 64 * gridDim.x + x").findings)
    assert not any(f.array == "b" for f in decided("x * h + r").findings)


LONG = """
__global__ void k(float* a, float* b, float* c, int w, int h, int n) {{
    int x = blockIdx.x * 64 + threadIdx.x;
    float sum = 0;
    for (int i = 0; i < {rounds}; i++) sum += i;
    for (int r = 0; r < h; r++) a[r * w * n + x / 2 + r * h * n] = sum;
    for (int r = 0; r < h; r++) b[r * w * n + x / 2 + r * h * n] = sum;
    for (int r = 0; r < h; r++) c[r * w * n + x / 2 + r * h * n] = sum;
}}
"""


def long(rounds: int) -> SolverResult:
    kernel = lowered(LONG.format(rounds=rounds))
    return refine_kernel(kernel, [LAUNCH], GpuModel("test", (9, 0)), Budget(kernel=1.0))


def test_a_replay_takes_no_time_of_the_pairs_that_wait() -> None:
    result = long(1_000_000)
    assert {f.array for f in result.findings} == {"a", "b", "c"}
    assert not any("ran out of time" in reason for reason in result.reasons), result.reasons


def test_one_that_ends_in_its_share_still_tells() -> None:
    result = long(3_000)
    assert {f.array for f in result.findings if f.certain} == {"a", "b", "c"}, result.reasons
