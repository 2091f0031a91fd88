"""Instances of a template that differ in data only are decided once, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static import kept_reports
from cuda_lsp.static.analyze import Analyzer
from cuda_lsp.static.likeness import likeness

TEXT = """
template <typename T> struct Pair {{ T x, y; }};
template <typename T> __global__ void k(T* out, const T* in, const T* bias, int n, int width) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {body}
}}
template <typename T> void run(T* out, const T* in, int n, int width) {{
    k<T><<<n, 64>>>(out, in, in, n, width);
}}
template void run<{one}>({one}*, const {one}*, int, int);
template void run<{other}>({other}*, const {other}*, int, int);
"""
COPY = "if (i < n) out[i] = in[i];"


def texts(body: str, one: str, other: str) -> tuple[str, str]:
    analyzer, path = Analyzer(), Path("/nowhere/alike.cu")
    try:
        report = analyzer.update(path, TEXT.format(body=body, one=one, other=other))
        names = [kernel.name for kernel in report.kernels]
        kernels = [analyzer.kernel(path, name) for name in names]
        first, second = (likeness(k, r.launches) for k, r in zip(kernels, report.kernels, strict=True) if k)
        return first, second
    finally:
        analyzer.shutdown()


@pytest.mark.parametrize(
    ("body", "one", "other"),
    [
        (COPY, "float", "double"),
        (COPY, "float", "__half"),
        ("if (i < n) out[i] = T(float(in[i]) * 2.0f + (bias ? float(bias[i]) : 0.0f));", "float", "__half"),
        ("__shared__ T s[64]; s[threadIdx.x] = in[i]; __syncthreads(); out[i] = s[63 - threadIdx.x];",
         "float", "double"),
    ],
)  # fmt: skip
def test_what_differs_in_data_only_is_alike(body: str, one: str, other: str) -> None:

    first, second = texts(body, one, other)
    assert first == second


@pytest.mark.parametrize(
    ("body", "one", "other"),
    [
        ("if (i < n) out[i] = T(i);", "int", "float"),  # which integers are stored is known
        ("if (i < n && sizeof(T) == 4) out[i] = in[i]; else out[0] = in[i];", "float", "double"),
        ("if (i * sizeof(T) < n) out[i] = in[i];", "float", "double"),
        ("if (4 * i < n) *(float4*)&out[4 * i] = make_float4(0, 0, 0, 0);", "float", "__half"),
        ("if (i < n) ((char*)out)[4 * i] = 1; if (i < n) out[i + 1] = in[i];", "float", "double"),
        ("if (i < n) out[i + ((size_t)in & 4)] = in[i];", "float", "double"),
        ("if (i < n) out[i + (out - (T*)in)] = in[i];", "float", "double"),
    ],
)
def test_what_sizes_of_elements_decide_is_not_alike(body: str, one: str, other: str) -> None:
    first, second = texts(body, one, other)
    assert first != second


def settled(body: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Verdict], int]:
    """The verdicts of two instances, and how often the solver was asked."""
    asked = [0]
    proof = kept_reports.proof

    def counted(*arguments: object) -> object:
        asked[0] += 1
        return proof(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(kept_reports, "proof", counted)
    analyzer, path = Analyzer(), Path("/nowhere/alike.cu")
    try:
        analyzer.update(path, TEXT.format(body=body, one="float", other="double"))
        report = analyzer.settle(path)
        return [kernel.verdict for kernel in report.kernels], asked[0]
    finally:
        analyzer.shutdown()


def test_a_proof_holds_for_all_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settled("if (i < n) out[i] = in[i + n];", monkeypatch) == ([Verdict.RACE_FREE] * 2, 1)


def test_each_accused_kernel_has_its_own_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts, asked = settled("if (i < n) out[i / width] = in[i];", monkeypatch)
    assert verdicts == [Verdict.RACY] * 2 and asked >= 2
