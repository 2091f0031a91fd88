"""Which thread's range holds a key: neighbouring elements, which as a rule ascend, keep threads apart."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

TEXT = """
struct Node { int count; int keys[9]; };
__global__ void in_a_record(const Node* nodes, const int* at, const int* wanted, int* found) {
    int key = wanted[blockIdx.x];
    if (nodes[at[blockIdx.x]].keys[threadIdx.x] <= key && key < nodes[at[blockIdx.x]].keys[threadIdx.x + 1])
        found[blockIdx.x] = threadIdx.x;
}
__global__ void in_an_array(const int* first, const int* wanted, int* found) {
    int key = wanted[blockIdx.x];
    if (first[threadIdx.x] <= key && key < first[threadIdx.x + 1]) found[blockIdx.x] = threadIdx.x;
}
__global__ void any_match(const int* keys, const int* wanted, int* found) {
    if (keys[threadIdx.x] == wanted[blockIdx.x]) found[blockIdx.x] = threadIdx.x;
}
void go(Node* n, int* a, int* b, int* c) {
    in_a_record<<<4, 8>>>(n, a, b, c); in_an_array<<<4, 8>>>(a, b, c); any_match<<<4, 8>>>(a, b, c);
}
"""


def test_only_what_nothing_keeps_apart_is_accused() -> None:
    report = check_text(Path("k.cu"), TEXT, PATIENT)
    verdicts = {kernel.name: kernel.verdict for kernel in report.kernels}
    assert verdicts == {
        "in_a_record": Verdict.UNDECIDED,
        "in_an_array": Verdict.RACE_FREE,  # where `first` ascends
        "any_match": Verdict.RACY,
    }
