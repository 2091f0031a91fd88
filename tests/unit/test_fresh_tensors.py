"""Tensors that the host makes itself: their strides are those of what it made, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.model import Code, KernelReport, Status, Verdict
from cuda_lsp.static.analyze import check_text

KERNEL = """
#include <torch/extension.h>
__global__ void k(at::PackedTensorAccessor64<float, 3, at::RestrictPtrTraits> t, int h, int w) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < h * w; i += gridDim.x * blockDim.x)
    t[blockIdx.y][i / w][i % w] = i;
}
void f(const at::Tensor& in) {
  const int n = in.size(0), h = in.size(1), w = in.size(2);
  MADE
  k<<<dim3(80, n), 256>>>(t.packed_accessor64<float, 3, at::RestrictPtrTraits>(), h, w);
}
"""
VIEW = "packed_accessor32<float, 2, at::RestrictPtrTraits>()"


def report_of(made: str) -> KernelReport:
    return check_text(Path("k.cu"), KERNEL.replace("MADE", made)).kernels[0]


@pytest.mark.parametrize(
    "made",
    [
        "at::Tensor t = at::zeros({n, h, w}, in.options());",
        "auto t = torch::empty({n, h, w}, at::kFloat).to(in.device());",
        "torch::Tensor t = in.new_zeros({n, h, w}); t.fill_(1);",
    ],
)
def test_rows_of_a_tensor_that_the_host_makes_are_packed(made: str) -> None:
    report = report_of(made)
    assert report.verdict is Verdict.RACE_FREE
    assert not any("overlap" in each for each in report.assumptions)


@pytest.mark.parametrize(
    "made",
    [
        "at::Tensor t = at::zeros({n, w}, in.options()).unsqueeze(1).expand({n, h, w});",
        "at::Tensor t = in;",
        "at::Tensor t = at::zeros({n, h, w}); t = in;",
        "at::Tensor t = at::zeros({n, w, h}); t.transpose_(1, 2);",
        "at::Tensor t = at::zeros({n, h, w}), s; std::swap(t, s);",
        "at::Tensor t = at::zeros({n, h, w}); std::tie(t, h2) = g(in);",
        "at::Tensor t = at::empty({n, h, w}, in.options().memory_format(at::MemoryFormat::ChannelsLast));",
    ],
)
def test_of_others_nothing_is_told(made: str) -> None:
    (site,) = find_launches(Path("k.cu"), KERNEL.replace("MADE", made))
    assert not site.fields and not site.computed_fields


def test_rows_that_are_mixed_up_race_by_the_sizes_that_the_host_passes() -> None:
    text = KERNEL.replace("[i / w][i % w]", "[i / w][0]").replace(
        "MADE", "auto t = at::zeros({n, h, w}, in.options());"
    )
    (report,) = check_text(Path("k.cu"), text).kernels
    races = [f for f in report.findings if f.kind]
    assert races and all(f.status is Status.CONDITIONAL for f in races)
    assert not any("strides_" in f.message for f in races)


def fields(body: str) -> tuple[dict[tuple[int, str], int], dict[tuple[int, str], object]]:
    site = find_launches(Path("a.cu"), f"void f(at::Tensor in, int n, int m) {{ {body} }}")[-1]
    return dict(site.fields), dict(site.computed_fields)


def test_sizes_and_strides_of_it_are_fields_of_its_view() -> None:
    constants, computed = fields(f"auto t = at::zeros({{n, 4}}); k<<<1, 32>>>(t.{VIEW}, n);")
    assert constants == {(0, "strides_[1]"): 1, (0, "sizes_[1]"): 4, (0, "strides_[0]"): 4}
    assert computed == {(0, "sizes_[0]"): "#1"}
    constants, computed = fields(f"auto t = at::zeros({{n, m + 1}}); auto v = t.{VIEW}; k<<<1, 32>>>(v, n);")
    assert constants == {(0, "strides_[1]"): 1}
    assert computed == {(0, "sizes_[0]"): "#1"}  # nothing tells m
    constants, computed = fields(f"auto t = in.contiguous(); k<<<1, 32>>>(t.{VIEW}, n);")
    assert (constants, computed) == ({(0, "strides_[1]"): 1}, {})


def test_template_arguments_of_an_argument_are_no_arguments() -> None:
    (site,) = find_launches(Path("a.cu"), "void f() { k<<<1, 32>>>(g<float, 4, A<int, 5>>(), 7); }")
    assert (site.arguments, site.passed) == ({1: 7}, 2)


PITCHED = """
#include <torch/extension.h>
__global__ void k(
    at::PackedTensorAccessor32<float, 4, at::RestrictPtrTraits> some_long_name, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = some_long_name[blockIdx.y][blockIdx.z][i][0];
}
void f(at::Tensor t, float* out, int n) {
  k<<<dim3(80, 2, 2), 256>>>(t.packed_accessor32<float, 4, at::RestrictPtrTraits>(), out, n);
}
"""


def test_a_cost_of_a_stride_that_nobody_told_names_it() -> None:
    (report,) = check_text(Path("k.cu"), PITCHED).kernels
    (found,) = [f for f in report.findings if f.code is Code.UNCOALESCED_ACCESS]
    assert "(for example when some_long_name.strides_[2] = " in found.message
    assert "strides_[0]" not in found.message
