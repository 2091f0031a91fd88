"""Functions of cub and libcu++ that read a special register: what they give is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text


@pytest.mark.parametrize(
    ("place", "verdict"),
    [
        ("threadIdx.x / 32 * 32 + cub::LaneId()", Verdict.RACE_FREE),
        ("cub::LaneId()", Verdict.RACY),
        ("cuda::ptx::get_sreg_tid_x() + cuda::ptx::get_sreg_ctaid_x() * cuda::ptx::get_sreg_ntid_x()",
         Verdict.RACE_FREE),
        ("cuda::ptx::get_sreg_tid_x()", Verdict.RACY),
        ("threadIdx.x / 32 * 32 + __popc(cub::LaneMaskGt())", Verdict.RACE_FREE),
        ("__popc(cuda::ptx::get_sreg_lanemask_ge())", Verdict.RACY),
    ],
)  # fmt: skip
def test_places_by_special_registers(place: str, verdict: Verdict) -> None:
    grid = 2 if "ctaid" in place or "tid_x" in place else 1
    text = f"__global__ void k(int* a) {{ a[{place}] = threadIdx.x; }}\n"
    text += f"void go(int* a) {{ k<<<{grid}, 64>>>(a); }}\n"
    (kernel,) = check_text(Path("/x/a.cu"), text).kernels
    assert kernel.verdict is verdict
