"""What is told beside the cost of an access: rounds that have it, sizes that make it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.model import Code, Severity
from cuda_lsp.static.analyze import check_text


def messages(text: str, code: Code) -> list[str]:
    (kernel,) = check_text(Path("k.cu"), text, Settings(solver_budget=0)).kernels
    return [f.message for f in kernel.findings if f.code is code]


STRIDED = """
// cuda-lsp: launch block=256 grid=1
__global__ void k(int* d) {
    __shared__ int s[1024];
    for (int offset = 1; offset <= 4; offset *= 2) {
        s[threadIdx.x * INDEX] = d[threadIdx.x];
        __syncthreads();
    }
}
"""


def test_a_conflict_of_some_rounds_names_one():
    (found,) = messages(STRIDED.replace("INDEX", "offset"), Code.BANK_CONFLICT)
    assert "takes 4 wavefronts instead of 1 in rounds like `offset` == 4" in found


def test_a_conflict_of_all_rounds_names_none():
    (found,) = messages(STRIDED.replace("INDEX", "2 + offset - offset"), Code.BANK_CONFLICT)
    assert "takes 2 wavefronts instead of 1; lanes 0 and 16 share bank 0, 32 words apart" in found
    assert "rounds" not in found


def test_rounds_that_are_executed_at_once_are_told_apart():
    text = """
// cuda-lsp: launch block=64 grid=1
__global__ void k(int* d) {
    __shared__ int s[256];
    int v = 0;
    for (int i = 0; i < 3; i++) v += s[threadIdx.x * i];
    d[threadIdx.x] = v;
}
"""
    (found,) = messages(text, Code.BANK_CONFLICT)
    assert "2-way" in found and "`i` == 2" in found


PITCH = """
// cuda-lsp: launch block=64 grid=1
__global__ void k(int* d, const int* c, int pitch, int n) {
    if (n > 3) d[threadIdx.x] = c[threadIdx.x * STRIDE];
}
"""


def test_sizes_that_were_made_up_are_told_where_the_address_has_them():
    (found,) = messages(PITCH.replace("STRIDE", "pitch"), Code.UNCOALESCED_ACCESS)
    assert "(for example when pitch = " in found and "n = " not in found


def test_what_every_size_shows_needs_none():
    (found,) = messages(PITCH.replace("STRIDE", "8"), Code.UNCOALESCED_ACCESS)
    assert found.endswith("instead of 4; its lanes are 32 bytes apart")


ROWS = """
// cuda-lsp: launch block=(16,16) grid=1
__global__ void k(int* d, const int* first) { d[threadIdx.y * 16 + threadIdx.x] = first[threadIdx.y * ROW]; }
"""


def test_rows_of_threads_that_read_one_element_each_are_cheap():
    assert not messages(ROWS.replace("ROW", "100"), Code.UNCOALESCED_ACCESS)
    (found,) = messages(
        ROWS.replace("(16,16)", "(2,16)").replace("ROW", "100").replace("y * 16", "y * 2"),
        Code.UNCOALESCED_ACCESS,
    )
    assert "16 sectors" in found


FOLDED = """
__global__ void k(int* d) {
    __shared__ int s[33 * 64];
    s[threadIdx.y * 33 + threadIdx.x * FACTOR] = d[threadIdx.x];
}
"""


def severities(text: str) -> list[Severity]:
    (kernel,) = check_text(Path("k.cu"), text, Settings(solver_budget=0)).kernels
    return [f.effective_severity for f in kernel.findings if f.code is Code.BANK_CONFLICT]


def test_a_conflict_of_an_assumed_block_that_others_do_not_have_is_only_possible():
    assert severities(FOLDED.replace("FACTOR", "1")) == [Severity.INFORMATION]
    told = "// cuda-lsp: launch block=(16,16)" + FOLDED.replace("FACTOR", "1")
    assert severities(told) == [Severity.WARNING]


def test_a_conflict_of_every_block_is_a_warning():
    text = FOLDED.replace("threadIdx.y * 33 + threadIdx.x * FACTOR", "threadIdx.x * 2")
    assert severities(text) == [Severity.WARNING]


def test_sizes_that_move_all_lanes_alike_are_not_told():
    (found,) = messages(
        PITCH.replace("threadIdx.x * STRIDE", "(blockIdx.x * n + threadIdx.x) * 8"), Code.UNCOALESCED_ACCESS
    )
    assert found.endswith("instead of 4; its lanes are 32 bytes apart")
    (found,) = messages(
        PITCH.replace("threadIdx.x * STRIDE", "blockIdx.x * n + threadIdx.x / 2 * pitch"),
        Code.UNCOALESCED_ACCESS,
    )
    assert "pitch = " in found and "n = " not in found


ROUNDS = """
// cuda-lsp: launch block=64 grid=1
__global__ void k(int* d, const int* c, int n) {
    __shared__ int s[4096];
    int v = 0, mask = 0, last = 0;
    for (int tile = 0; tile < n; tile++) {
        mask |= 1 << tile;
        if (c[tile] != -1) d[tile] = mask;
        s[threadIdx.x] = s[threadIdx.x + 64] = s[threadIdx.x + 128] = s[threadIdx.x + 192] = 0;
        __syncthreads();
        for (int j = 0; j < 4; j++) {
            int twice = j * 2;
            BODY
        }
        __syncthreads();
    }
    d[threadIdx.x] = v;
}
"""


@pytest.mark.parametrize(
    ("body", "rounds"),
    [
        ("v += s[threadIdx.x * 8 + j];", ""),
        ("v += s[threadIdx.x * 8 + j + tile];", ""),
        ("v += s[threadIdx.x * j + tile];", "in rounds like `j` == 2;"),
        ("v += s[threadIdx.x * twice];", "in rounds like `j` == 2;"),
        ("if (threadIdx.x < twice * 4) v += s[threadIdx.x * 8];", "in rounds like `j` == 3;"),
        ("if (j == 2) continue; v += s[threadIdx.x * 8];", ""),
        ("int at = 0; if (j == 1) at = 8; v += s[threadIdx.x * at];", "in rounds like `j` == 1;"),
    ],
)
def test_only_rounds_that_tell_conflicts_from_none_are_named(body: str, rounds: str):
    (found,) = messages(ROUNDS.replace("BODY", body), Code.BANK_CONFLICT)
    assert rounds in found if rounds else "rounds" not in found


def test_a_counter_that_data_bound_is_named_where_the_address_hangs_on_it():
    text = """
// cuda-lsp: launch block=64 grid=1
__global__ void k(int* d, const int* c, int n) {
    __shared__ int s[4096];
    int v = 0, left = 9;
    for (int step = 1; step < n; step *= 2) { left -= 2; INDEX }
    d[threadIdx.x] = v;
}
"""
    (found,) = messages(text.replace("INDEX", "v += s[threadIdx.x * step * 2];"), Code.BANK_CONFLICT)
    assert "in rounds like `step` == " in found and "left" not in found
    (found,) = messages(text.replace("INDEX", "v += s[threadIdx.x * 2];"), Code.BANK_CONFLICT)
    assert "rounds" not in found


SPLIT = """
// cuda-lsp: launch block=64 grid=4
__global__ void k(int* d, int* e, int n, int parts, int rows) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int i = t INTO, part = t % parts;
    if (i >= rows) return;
    d[PLACE] = e[t];
}
"""


@pytest.mark.parametrize(
    ("into", "place", "named"),
    [
        ("/ parts", "part * n + i", {"n", "parts"}),
        ("/ parts", "part * n", {"n", "parts"}),
        ("& (parts - 1)", "i * n", {"n", "parts"}),
        ("+ parts", "t * n + i", {"n"}),
        ("/ parts", "t * n + rows", {"n"}),
    ],
)
def test_sizes_that_cut_the_index_of_a_thread_are_told(into: str, place: str, named: set[str]):
    text = SPLIT.replace("INTO", into).replace("PLACE", place)
    (found,) = messages(text, Code.UNCOALESCED_ACCESS)
    assert set(re.findall(r"(\w+) = \d", found)) == named


def test_sizes_that_cut_an_index_come_first_where_there_is_no_room_for_all():
    text = SPLIT.replace("INTO", "/ parts").replace("PLACE", "part * n + i")
    for name in ("d", "t", "n", "parts"):
        text = re.sub(rf"\b{name}\b", f"{name}_of_a_rather_long_name", text)
    (found,) = messages(text, Code.UNCOALESCED_ACCESS)
    assert "parts_of_a_rather_long_name = " in found and len(found) < 160
