"""Every kernel that a program launches from its sources is checked, whichever instance it is, and counted."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.cli import main
from cuda_lsp.dynamic.ptx.names import comparable, kernel_name, stable

pytestmark = [needs_nvcc, pytest.mark.usefixtures("own_cache")]


def run(folder: Path, text: str, *options: str) -> dict[str, Any]:
    """The report of a program's run as JSON."""
    source = folder / "program.cu"
    source.write_text(text)
    given = ["run", str(source), "--program", "--engine", "emulator", "--format", "json", *options]
    done = CliRunner().invoke(main, given)
    assert done.stdout, done.output
    return json.loads(done.stdout)


def kernels(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {kernel["name"]: kernel for kernel in report["files"][0]["kernels"]}


def races(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [f for f in report["files"][0]["findings"] if f["code"] == "shared-race"]


SIZES = """template <int N> __global__ void shift(int* p) {
    __shared__ int s[N];
    s[threadIdx.x] = p[threadIdx.x];
    p[threadIdx.x] = s[(threadIdx.x + 1) % N];
}
template <int N> void each(int* p) {
    for (int k = 0; k < 3; ++k) shift<N><<<1, N>>>(p);
    if constexpr (N < 64) each<2 * N>(p);
}
int main() { int* p; cudaMalloc(&p, 4096); each<2>(p); return cudaDeviceSynchronize(); }
"""


def test_instances_beyond_those_that_were_analysed_are_checked_and_each_tells_its_launches(tmp_path):
    report = run(tmp_path, SIZES)
    analysed = kernels(report)
    assert len(analysed) == 4  # of six: the test would prove nothing otherwise
    told = " ".join(reason for kernel in analysed.values() for reason in kernel["reasons"])
    for size in (2, 4, 8, 16, 32, 64):
        launched = (
            f"shift<{size}> was launched 3 times by the program, 2 checked; 1 was not: only launches 1,"
        )
        assert launched in told
    confirmed = [f for f in races(report) if f["status"] == "confirmed"]
    assert {f["range"]["start"]["line"] for f in confirmed} == {4}


def test_of_an_instance_that_did_not_run_nothing_is_said_to_be_unobserved(tmp_path):
    text = """template <int N> __global__ void k(int* p, const int* at) {
    __shared__ int s[256];
    s[at[threadIdx.x]] = threadIdx.x;
    p[threadIdx.x] = s[threadIdx.x % N];
}
template __global__ void k<8>(int*, const int*);
typedef void (*Kernel)(int*, const int*);
int main() {
    int *p, *at;
    cudaMalloc(&p, 4096);
    cudaMalloc(&at, 4096);
    Kernel all[] = {k<16>}, hidden;
    *(&hidden) = all[0];
    hidden<<<1, 1>>>(p, at);
    return cudaDeviceSynchronize();
}
"""
    report = run(tmp_path, text)
    assert "k<8>" in kernels(report)
    assert any("did not launch k<8>" in reason for reason in kernels(report)["k<8>"]["reasons"])
    mine = [f for f in report["files"][0]["findings"] if f["kernel"] == "k<8>" and "race" in f["code"]]
    assert mine
    assert not [f for f in mine if f["status"] == "not observed"]


def test_kernels_of_unnamed_namespaces_have_one_name_in_all_builds(tmp_path):
    text = """namespace { __device__ int seen;
__global__ void hidden(int* p) { p[0] = threadIdx.x; seen = threadIdx.x; } }
int main() {
    int *p, last = -1;
    cudaMalloc(&p, 4);
    for (int k = 0; k < 2; ++k) hidden<<<1, 64>>>(p);
    cudaMemcpyFromSymbol(&last, seen, 4);
    return last < 0;
}
"""
    report = run(tmp_path, text)
    reasons = kernels(report)["hidden"]["reasons"]
    assert any("launched 2 times by the program, 2 checked" in reason for reason in reasons), reasons
    assert {f["status"] for f in report["files"][0]["findings"] if f["code"] == "global-race"} == {
        "confirmed"
    }


def test_kernels_of_one_name_are_told_apart_by_their_parameters(tmp_path):
    text = """__global__ void k(int* p) { p[threadIdx.x] = 1; }
__global__ void k(float* p) { p[0] = threadIdx.x; }
int main() { int* p; cudaMalloc(&p, 256); k<<<1, 64>>>(p); k<<<1, 64>>>((float*)p); return 0; }
"""
    found = run(tmp_path, text)["files"][0]
    racy = [kernel for kernel in found["kernels"] if kernel["verdict"] == "racy"]
    assert len(racy) == 1
    assert any("k(float*) was launched once" in reason for reason in racy[0]["reasons"])


def test_a_kernel_of_a_library_is_named_and_counted(tmp_path, monkeypatch):
    (tmp_path / "library").mkdir()
    (tmp_path / "library/own.h").write_text("__global__ void theirs(int* p) { p[threadIdx.x] = 1; }\n")
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", str(tmp_path / "library"))  # headers of the system
    text = """#include <own.h>
int main() { int* p; cudaMalloc(&p, 4096); theirs<<<1, 64>>>(p); return cudaDeviceSynchronize(); }
"""
    (error,) = run(tmp_path, text)["files"][0]["errors"]
    assert (
        "theirs was launched once by the program, 0 checked; 1 was not: it stands in no" in error["message"]
    )


def test_only_the_kernels_that_were_asked_for_are_checked_and_the_others_say_so(tmp_path):
    text = """__global__ void a(int* p) { p[0] = threadIdx.x; }
__global__ void b(int* p) { p[0] = threadIdx.x; }
int main() { int* p; cudaMalloc(&p, 256); a<<<1, 64>>>(p); b<<<1, 64>>>(p); return 0; }
"""
    found = kernels(run(tmp_path, text, "--kernel", "a"))
    assert any("1 checked" in reason for reason in found["a"]["reasons"])
    assert not [f for f in found["b"]["reasons"] if "1 checked" in f]


def test_names_lose_what_differs_between_builds_and_become_those_of_the_source():
    hidden = "_ZN36_GLOBAL__N__5afe0deb_4_a_cu_19ff7e903hidEPi"
    assert stable(hidden) == stable(hidden.replace("5afe0deb", "aa47c1f1"))
    assert len(stable(hidden)) == len(hidden)
    assert comparable(hidden) == "_ZN12_GLOBAL__N_13hidEPi"
    tile = "_ZN2ns4tileIfLi256ELb1ELNS_1EE1EEEvPT_NS_1XE"
    assert [kernel_name(name) for name in (hidden, tile, "_Z4overPf", "plain")] == [
        "hid", "tile<float, 256, true, (ns::E)1>", "over", "plain",
    ]  # fmt: skip
