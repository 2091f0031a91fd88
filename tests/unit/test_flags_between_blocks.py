"""Flags that blocks post and others test, where a loop waits for them elsewhere: what they may order."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Status
from cuda_lsp.static.analyze import check_text

POSTED = """
__global__ void k(unsigned* flag, volatile int* sum, int* other) {{
  volatile unsigned* posted = flag;
  __shared__ unsigned ready;
  int b = blockIdx.x;
  {first}
  if (threadIdx.x == 0) ready = b ? posted[b - 1] : 0;
  __syncthreads();
  if (threadIdx.x == 0) {{
    {work}
    __threadfence();
    posted[b] = 1;
    {last}
  }}
}}
void run(unsigned* f, int* s, int* o) {{ k<<<64, 128>>>(f, s, o); }}
"""
ADD = "sum[b] = b ? sum[b - 1] + 1 : 1;"
WAIT = "if (b) while (posted[b - 1] == 0) {}"


@pytest.mark.parametrize(
    ("first", "work", "last", "accused"),
    [
        ("", f"if (ready) {{ {ADD} }} else {{ {WAIT} {ADD} }}", "", set[str]()),
        ("other[b / 2] = b;", f"if (ready) {{ {ADD} }} else {{ {WAIT} {ADD} }}", "", {"other"}),
        ("", ADD, WAIT, {"sum"}),  # nobody asks the flag before
        ("", f"if (ready) {{ {ADD} }}", "", {"flag"}),  # nobody waits
    ],
)
def test_what_a_flag_tells_that_is_waited_for_elsewhere_may_order_blocks(
    first: str, work: str, last: str, accused: set[str]
) -> None:
    report = check_text(Path("k.cu"), POSTED.format(first=first, work=work, last=last))
    certain = {f.witness.array for f in report.findings if f.kind and f.witness and f.status is Status.PROVED}
    assert certain == accused
