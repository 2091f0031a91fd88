"""What only the first tier has spoken of is told as such, what the second speaks against is not told."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import define, evolve
from lsprotocol import types as lsp
from pygls.workspace import PositionCodec, TextDocument

from cuda_lsp.model import FileReport, Verdict
from cuda_lsp.server.actions import Wanted, actions
from cuda_lsp.static.analyze import check_text

PATH = Path("/k.cu")
TEXT = """__global__ void k(int *out) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  out[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];
}
void launch(int *out) { k<<<4, 64>>>(out); }
"""


@define
class Slow:
    """Trials whose proofs come too late, or say what they are told to say."""

    weaker: bool | None = None
    asked: int = 0

    def first(self, text: str) -> FileReport | None:
        return check_text(PATH, text, solver=False)

    def finished(self, text: str) -> FileReport | None:
        self.asked += 1
        if self.weaker is None:
            return None
        report = check_text(PATH, text)
        verdict = Verdict.UNDECIDED if self.weaker else Verdict.RACE_FREE
        reasons = ("something else",) if self.weaker else ()
        kernels = tuple(evolve(k, verdict=verdict, reasons=reasons) for k in report.kernels)
        return evolve(report, kernels=kernels)


def fixes(trials: Slow) -> list[lsp.CodeAction]:
    codec = PositionCodec(lsp.PositionEncodingKind.Utf32)
    document = TextDocument(PATH.as_uri(), TEXT, position_codec=codec)
    found = actions(check_text(PATH, TEXT), document, Wanted(3, 3, ("quickfix",)), trials)
    return [action for action in found if action.title.startswith("Insert")]


def test_a_repair_whose_proof_is_late_says_so_and_is_not_preferred() -> None:
    (action,) = fixes(Slow())
    assert action.title == "Insert __syncthreads(); before line 4 (1 barrier more, not verified)"
    assert not action.is_preferred


def test_a_verified_one_is_preferred() -> None:
    (action,) = fixes(Slow(weaker=False))
    assert action.title == "Insert __syncthreads(); before line 4 (1 barrier more)" and action.is_preferred


def test_a_repair_that_leaves_a_weaker_verdict_is_not_offered() -> None:
    trials = Slow(weaker=True)
    assert fixes(trials) == [] and 0 < trials.asked <= 4


@pytest.mark.parametrize("only", [("refactor",), ("source",)])
def test_who_asks_for_other_actions_has_nothing_analysed(only: tuple[str, ...]) -> None:
    class Never(Slow):
        def first(self, text: str) -> FileReport | None:
            raise AssertionError

    codec = PositionCodec(lsp.PositionEncodingKind.Utf32)
    document = TextDocument(PATH.as_uri(), TEXT, position_codec=codec)
    report = evolve(check_text(PATH, TEXT.replace("  out", "  __syncthreads();\n  out")))
    kinds = {a.kind for a in actions(report, document, Wanted(0, 0, only), Never())}
    assert all(str(getattr(kind, "value", kind)).startswith(only[0]) for kind in kinds) and kinds
