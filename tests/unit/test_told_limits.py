"""Sampled arguments keep to what the host says; so do those of launches that macros of macros make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import Code, KernelReport, Verdict
from cuda_lsp.static.analyze import Analyzer, check_text
from cuda_lsp.static.launches.arguments import sample

KERNEL = """
template <int B, int Q> __global__ void pick(float* out, const float* in, int k, int n) {
  __shared__ float s[Q];
  for (int j = threadIdx.x; j < Q; j += B) s[j] = in[j];
  __syncthreads();
  for (int j = threadIdx.x; j < k; j += B) out[j] = s[j];
  __syncthreads();
  for (int j = threadIdx.x; j < Q; j += B) s[j] = in[j + n];
}
#define RUN(B, Q) do { pick<B, Q><<<1, B>>>(out, in, k, n); return; } while (0)
void run(float* out, float* in, int k, int n) {
LADDER
}
"""
STEPS = (
    "if (k == 1) { RUN(128, 1); } else if (k <= 32) { RUN(128, 32); } else if (k <= LAST) { RUN(128, 64); }"
)
NESTED = "#define STEPS() do { BEFORE" + STEPS + " } while (0)\n  STEPS();"


def kernels(ladder: str) -> tuple[KernelReport, ...]:
    report = check_text(Path("k.cu"), KERNEL.replace("LADDER", ladder))
    assert not report.errors
    return report.kernels


def reaches_too_far(found: tuple[KernelReport, ...]) -> list[str]:
    return [k.name for k in found if any(f.code is Code.SHARED_OUT_OF_BOUNDS for f in k.findings)]


@pytest.mark.parametrize(
    "ladder", [STEPS, NESTED.replace("BEFORE", ""), NESTED.replace("BEFORE", "int m = n;")]
)
def test_a_step_of_a_ladder_is_asked_for_the_sizes_that_take_it(ladder: str) -> None:
    found = kernels(ladder.replace("LAST", "64"))
    assert {k.name: k.verdict for k in found} == {f"pick<128, {q}>": Verdict.RACE_FREE for q in (1, 32, 64)}
    assert not reaches_too_far(found)


@pytest.mark.parametrize("ladder", [STEPS, NESTED.replace("BEFORE", "")])
def test_a_step_for_more_than_it_holds_is_told(ladder: str) -> None:
    assert reaches_too_far(kernels(ladder.replace("LAST", "65"))) == ["pick<128, 64>"]


def test_a_name_of_the_macros_own_is_not_the_hosts() -> None:
    shadowed = NESTED.replace("BEFORE", "int k = n;").replace("LAST", "64")
    assert "pick<128, 64>" in reaches_too_far(kernels(shadowed))


@pytest.mark.parametrize(
    ("guard", "told"),
    [
        ("if (n > 64) return;", False),
        ("if (n >= 65) return;", False),
        ("if (m > 64 || n > m) return;", False),
        ("if (n != 64) return;", False),
        ("if (n > 65) return;", True),
        ("if (n < 16) return;", True),
        ("if (n == 512) return;", True),
        ("if (m > 64 && n > m) return;", True),
    ],
)
def test_guards_bound_what_is_tried(guard: str, told: bool) -> None:
    text = f"""
__global__ void fill(float* out, int n, int m) {{
  __shared__ float s[64];
  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = out[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = s[n - 1 - i] + m;
}}
void run(float* out, int n, int m) {{ {guard} fill<<<1, 128>>>(out, n, m); }}
"""
    report = check_text(Path("k.cu"), text)
    assert not report.errors
    assert any(f.code is Code.SHARED_OUT_OF_BOUNDS for f in report.findings) is told


@pytest.mark.parametrize(
    ("host", "holds"),
    [
        ("if (n % 4 == 0) return; LAUNCH", lambda n, m: n % 4 != 0),
        ("if (n % 4 == 0 && m % 2 == 0) return; LAUNCH", lambda n, m: n % 4 != 0 or m % 2 != 0),
        ("if (n % 4 == 0 && (m > 0 || n > 9)) return; LAUNCH", lambda n, m: True),
        ("if (n % 32 != 0) return; LAUNCH", lambda n, m: n % 32 == 0),
        ("if (n % 4 == 2 && n < 100) LAUNCH", lambda n, m: n % 4 == 2 and n < 100),
        (
            "if (n % 8 == 0 && m == 64) {} else if (n % 2 == 0) LAUNCH",
            lambda n, m: n % 8 or (m != 64 and n % 2 == 0),
        ),
    ],
)
def test_remainders_are_kept_to(host: str, holds: Callable[[int, int], bool]) -> None:
    text = f"""
__global__ void rows(float* out, int n, int m) {{ out[threadIdx.x * n] = m; }}
void run(float* out, int n, int m) {{ {host.replace("LAUNCH", "rows<<<m, 128>>>(out, n, m);")} }}
"""
    analyzer = Analyzer(Settings())
    analyzer.update(Path("k.cu"), text)
    kernel = analyzer.kernel(Path("k.cu"), "rows")
    analyzer.shutdown()
    assert kernel is not None
    values = sample(kernel, kernel.launches[0])
    assert values is not None
    assert holds(values["n"], values["m"])
