"""An argument that says what a thread's own array holds is a condition of the race that comes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import PATIENT
from cuda_lsp.model import Code, Finding, Status
from cuda_lsp.static.analyze import check_text

KERNEL = """
__global__ void k(int* out, int n) {{ int a[4] = {{0, 0, 0, 0}}, t = threadIdx.x; {body} out[a[{at}]] = t; }}
void h(int* out, int n) {{ k<<<1, 64>>>(out, n); }}
"""


def race(body: str, at: str = "0") -> Finding:
    report = check_text(Path("k.cu"), KERNEL.format(body=body, at=at), PATIENT).kernels[0]
    (found,) = [f for f in report.findings if f.code is Code.GLOBAL_RACE]
    return found


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ("if (n > 3) a[0] = t;", "0"),
        ("if (n > 3) a[n & 1] = t;", "0"),
        ("a[n & 3] = t;", "0"),
        ("a[0] = t;", "n & 3"),
        ("for (int i = 0; i < n; ++i) a[0] = t;", "0"),
    ],
)
def test_who_stores_there_is_a_condition(body: str, at: str) -> None:
    assert race(body, at).status in (Status.CONDITIONAL, Status.POSSIBLE)


def test_it_is_named() -> None:
    found = race("if (n > 3) a[0] = t;")
    assert found.status is Status.CONDITIONAL
    assert "when for example `n` == 0" in found.message


@pytest.mark.parametrize("body", ["", "a[0] = t & 1;", "if (n > 3) a[1] = t;"])
def test_what_no_argument_changes_is_proved(body: str) -> None:
    assert race(body).status is Status.PROVED
