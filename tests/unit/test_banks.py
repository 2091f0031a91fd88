"""Bank conflicts: hardware measurements are reproduced, and a trace is cut into warps rightly."""

import json
from pathlib import Path

import numpy as np
import pytest
from kernel_notation import TID, TIDY, E, Notation

from cuda_lsp.config import Settings
from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import Code, LaunchConfig, Mode, Status
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.diagnostics.banks import bank_findings, bank_reports
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.wavefronts import warp_wavefronts

GPU = GpuModel("sm_90", (9, 0))
MEASURED = Path(__file__).parent.parent / "data/h200_shared_wavefronts.json"
RECORDS = json.loads(MEASURED.read_text())["records"]


def test_every_hardware_measurement_is_reproduced() -> None:
    assert len(RECORDS) == 148
    for r in RECORDS:
        mask = int(r["active_mask"], 16)
        active = np.array([mask >> lane & 1 for lane in range(32)], bool)
        addresses = np.array(r["byte_addresses"], np.int64)
        cost = warp_wavefronts(addresses[None], active[None], r["bytes"], load=r["op"] == "ld")
        got = (int(cost.wavefronts[0]), int(cost.wavefronts[0] - cost.ideal[0]))
        assert got == (r["wavefronts"], r["bank_conflicts"]), (r["op"], r["bytes"], r["pattern"])


def reports(kernel, block, gpu=GPU):
    return bank_reports(execute(kernel, LaunchConfig(block), {}, gpu))


@pytest.mark.parametrize(("stride", "ways"), [(1, 1), (2, 2), (3, 1), (8, 8), (32, 32), (33, 1)])
def test_a_stride_conflicts_by_its_common_divisor_with_the_banks(stride: int, ways: int) -> None:
    n = Notation()
    s = n.shared("s", 32 * 33)
    (banks,) = reports(n.kernel(n.write(s, TID * stride)), (32, 1, 1))
    assert (banks.report.ways, banks.report.wavefronts, banks.report.ideal) == (ways, ways, 1)
    assert sum(banks.report.histogram) == 32


def test_a_transposed_tile_conflicts_and_a_padded_one_does_not() -> None:
    for width, wavefronts in ((32, 32), (33, 1)):
        n = Notation()
        s = n.shared("tile", 32, width)
        kernel = n.kernel(n.write(s, TIDY * width + TID), n.sync(), n.read(s, TID * width + TIDY))
        store, load = reports(kernel, (32, 8, 1))
        assert (store.report.wavefronts, load.report.wavefronts) == (1, wavefronts)
        assert load.mode is Mode.READ


def test_a_conflict_in_the_last_warp_only_is_found() -> None:
    n = Notation()
    s = n.shared("s", 4096)
    kernel = n.kernel(n.when(TID < 96, n.write(s, TID), otherwise=(n.write(s, TID * 8 % 2048),)))
    clean, conflicting = reports(kernel, (128, 1, 1))
    assert clean.report.wavefronts == 1
    assert (conflicting.report.ways, conflicting.report.warp) == (8, 3)


def test_compute_capability_1_has_sixteen_banks_and_half_warps() -> None:
    n = Notation()
    s = n.shared("s", 1024)
    old = GpuModel("sm_10", (1, 0), banks=16)
    (banks,) = reports(n.kernel(n.write(s, TID * 16)), (32, 1, 1), old)
    assert (banks.report.ways, banks.report.wavefronts, banks.report.ideal) == (16, 32, 2)


def test_a_finding_says_how_many_ways() -> None:
    n = Notation()
    s = n.shared("s", 64)
    trace = execute(n.kernel(n.write(s, TID * 2)), LaunchConfig((32, 1, 1)), {}, GPU)
    (finding,) = bank_findings(trace)
    assert finding.code is Code.BANK_CONFLICT and finding.status is Status.PROVED
    assert "2-way" in finding.message


def test_rounds_of_a_loop_are_counted_one_by_one() -> None:
    n = Notation()
    s, k = n.shared("s", 64 * 32), n.var("k")
    loop = n.loop(E(k) < 16, [n.let(k, E(k) + 1)], n.write(s, TID * k))
    (banks,) = reports(n.kernel(n.let(k, 0), loop), (32, 1, 1))
    assert banks.report.wavefronts == 8  # k == 8; k == 0 is a broadcast
    assert banks.report.mean_wavefronts == pytest.approx((9 * 1 + 4 * 2 + 2 * 4 + 8) / 16)  # gcd(k, 32)


@pytest.mark.parametrize(("type", "conflicts"), [("float3", False), ("float2", False), ("float4", False)])
def test_what_takes_several_instructions_is_told_by_one_of_them(type: str, conflicts: bool) -> None:
    text = f"""__global__ void k({type}* out) {{ __shared__ {type} s[64]; int t = threadIdx.x;
    s[t] = out[t]; __syncthreads(); out[t] = s[63 - t]; }}
    void f({type}* p) {{ k<<<1, 64>>>(p); }}"""
    found = check_text(Path("k.cu"), text, Settings()).findings
    assert any(f.code is Code.BANK_CONFLICT for f in found) is conflicts


def test_triples_two_rows_apart_conflict_in_each_of_their_words() -> None:
    text = """__global__ void k(float3* out) { __shared__ float3 s[64 * 32]; int t = threadIdx.x;
    s[t * 32] = out[t]; __syncthreads(); out[t] = s[t * 32]; }
    void f(float3* p) { k<<<1, 64>>>(p); }"""
    found = [f for f in check_text(Path("k.cu"), text, Settings()).findings if f.code is Code.BANK_CONFLICT]
    assert all("32-way" in f.message and "32 wavefronts instead of 1" in f.message for f in found)
    assert found
