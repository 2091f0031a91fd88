"""Which thread's range holds a key: neighbouring elements, which as a rule ascend, keep threads apart."""

from __future__ import annotations

from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("if (i < n && sum[i] <= x && x < sum[i + 1]) at[0] = i;", Verdict.UNDECIDED),
        (
            "if (i >= n) return; float low = sum[i]; if (sum[i + 1] > x && x >= low) at[0] = i;",
            Verdict.UNDECIDED,
        ),
        # Without two neighbours on both sides of one number, many find it:
        ("if (i < n && sum[i] <= x) at[0] = i;", Verdict.RACY),
        ("if (i < n && sum[i] <= x && x < sum[i + 2]) at[0] = i;", Verdict.RACY),
        ("if (i < n && sum[i] <= x && y < sum[i + 1]) at[0] = i;", Verdict.RACY),
        ("if (i < n && sum[i] <= x && sum[i + 1] <= x) at[0] = i;", Verdict.RACY),
        ("if (i < n && sum[i + 1] - sum[i] > x) at[0] = i;", Verdict.RACY),
        # Who counts expects many, and who writes the row keeps none in order.
        ("if (i < n && sum[i] <= x && x < sum[i + 1]) at[0] += 1;", Verdict.RACY),
        ("if (i < n && sum[i] <= x && x < sum[i + 1]) { at[0] = i; sum[i] = x; }", Verdict.RACY),
        # Others find nothing:
        ("if (i < n && sum[i] <= x && x < sum[i + 1]) at[0] = i; at[1] = i;", Verdict.RACY),
    ],
)
def test_one_place_of_a_row_of_floats_encloses_a_number_where_it_ascends(body: str, verdict: Verdict) -> None:
    text = f"""
__global__ void find(float* sum, float x, float y, int n, int* at) {{
    int i = blockIdx.x * 256 + threadIdx.x;
    {body}
}}
void go(float* s, float x, float y, int n, int* at) {{ find<<<(n + 255) / 256, 256>>>(s, x, y, n, at); }}
"""
    (kernel,) = check_text(Path("k.cu"), text, PATIENT).kernels
    assert kernel.verdict is verdict
    if verdict is Verdict.UNDECIDED:
        assert ["whether `sum` ascends;" in reason for reason in kernel.reasons] == [True]
