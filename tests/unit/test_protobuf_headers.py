"""Headers that the compiler of Protocol Buffers writes: miniature projects of which no build was made."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.surroundings.made_headers import made_headers
from cuda_lsp.frontend.surroundings.protobuf_headers import written
from cuda_lsp.model import FileReport, Verdict
from cuda_lsp.static.analyze import check_text

PROTO = """
syntax = "proto3"; // a comment: enum Not { NO = 0; }
package mine.kinds;
import "mine/base.proto";
enum Order {
  ROWS = 0;
  COLUMNS = 1 [deprecated = true];
  option allow_alias = true;
  TILES = -2;
}
message Layout {
  enum Unit { BYTE = 0; WORD = 4; }
  message Part { repeated int64 size = 1; map<string, Part> named = 2; }
  required Order order = 1 [default = ROWS];
  oneof of { Unit unit = 2; string text = 3; }
  optional Part part = 5; repeated Part others = 6; optional base.Extent extent = 7;
  reserved 9, 10;
  extensions 100 to 200;
}
service None { rpc Call(Layout) returns (Layout) { option x = {a: 1}; } }
"""
KERNEL = """#include "mine/order.pb.h"
namespace mine {
template <kinds::Order> struct Place;
template <> struct Place<kinds::ROWS> { static __device__ int of(int i, int n) { return i; } };
template <> struct Place<kinds::COLUMNS> { static __device__ int of(int i, int n) { return COLUMN; } };
template <kinds::Order order> __global__ void fill(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[Place<order>::of(i, n)] = i;
}
void go(float* out, int n) { fill<kinds::COLUMNS><<<n / 256 + 1, 256>>>(out, n); }
}
"""


def project(root: Path, files: dict[str, str]) -> Path:
    (root / ".git").mkdir()
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def checked(path: Path) -> FileReport:
    return check_text(path, path.read_text())


@pytest.mark.parametrize(("place", "wanted"), [("i", Verdict.RACE_FREE), ("i / 2", Verdict.RACY)])
def test_an_enumeration_that_kernels_are_made_for_is_read(
    tmp_path: Path, place: str, wanted: Verdict
) -> None:
    root = project(
        tmp_path,
        {"src/mine/order.proto": PROTO, "src/k.cu": KERNEL.replace("return COLUMN", f"return {place}")},
    )
    report = checked(root / "src/k.cu")
    assert [(k.name, k.verdict) for k in report.kernels] == [("fill<1>", wanted)]
    assert any("the build makes mine/order.pb.h" in error.message for error in report.errors)


def test_a_name_that_no_proto_file_declares_stays_unknown(tmp_path: Path) -> None:
    files = {"src/mine/other.proto": PROTO, "src/k.cu": KERNEL.replace("COLUMN;", "i;")}
    report = checked(project(tmp_path, files) / "src/k.cu")
    assert {k.verdict for k in report.kernels} == {Verdict.UNDECIDED}


def test_what_a_header_declares() -> None:
    text = written(PROTO)
    assert '#include "mine/base.pb.h"' in text
    assert "namespace mine {\nnamespace kinds {" in text
    assert "enum Order : int { ROWS = 0, COLUMNS = 1, TILES = -2 };" in text
    assert "enum Layout_Unit : int { Layout_Unit_BYTE = 0, Layout_Unit_WORD = 4 };" in text
    assert "static constexpr Layout_Unit WORD = Layout_Unit_WORD;" in text
    assert "typedef Layout_Part Part;" in text
    assert "const Layout_Part& others(int index) const;" in text
    assert "const base::Extent& extent() const;" in text
    assert "::int64_t size(int index) const;" in text
    assert "const ::std::string& text() const;" in text
    assert "Not" not in text
    assert "None" not in text


@pytest.mark.parametrize(
    "text", ["message M {", "enum E { A = ", "}}}", 'option a = "', "message M { = 1; }"]
)
def test_half_a_file_is_read_as_far_as_it_goes(text: str) -> None:
    assert written(text).startswith("#pragma once")


def test_the_nearest_of_several_counts_and_none_above_the_project(tmp_path: Path) -> None:
    files = {
        "a/mine/order.proto": "enum Order { NEAR = 0; }",
        "b/mine/order.proto": "enum Order { FAR = 0; }",
        "a/k.cu": "",
    }
    root = project(tmp_path, files)
    (made,) = made_headers(root / "a/k.cu", ["mine/order.pb.h"])
    assert "NEAR" in made.text
    assert made_headers(root / "a/k.cu", ["../mine/order.pb.h"]) == ()
