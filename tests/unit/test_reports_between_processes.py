"""Reports between the analysis process and the server: what stayed is not sent, and is the same object."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

from attrs import evolve

from cuda_lsp.config import Settings
from cuda_lsp.model import FileReport
from cuda_lsp.server.analysis.reports import Receiver, Sender, Sent
from cuda_lsp.static.analyze import Analyzer

PATH, URI = Path("/nowhere/a.cu"), "file:///nowhere/a.cu"
KERNEL = """__global__ void {name}(int* a) {{
    __shared__ int s[64];
    s[threadIdx.x] = a[threadIdx.x];
    a[threadIdx.x] = s[63 - threadIdx.x];
}}
"""
TWO = KERNEL.format(name="first") + KERNEL.format(name="second")


class Line:
    """Both ends, and what went between them."""

    def __init__(self) -> None:
        self.analyzer = Analyzer(Settings(solver=False), quick=True)
        self.sender, self.receiver = Sender(), Receiver()
        self.sent: list[Sent] = []

    def read(self, text: str) -> FileReport:
        made = self.analyzer.update(PATH, text)
        self.sent.append(self.sender.sent(URI, made, self.analyzer.origins(PATH)))
        came = self.receiver.report(pickle.loads(pickle.dumps(self.sent[-1])))
        assert came == made
        return came


def test_an_unchanged_kernel_is_a_number_and_stays_the_object_that_it_was() -> None:
    line = Line()
    before = line.read(TWO)
    after = line.read(TWO.replace("63 -", "62 -", 1))
    assert line.sent[-1].kernels[1] == 1
    assert after.kernels[1] is before.kernels[1]
    assert after.kernels[0] != before.kernels[0]


def test_a_kernel_that_moved_is_a_distance() -> None:
    line = Line()
    line.read(TWO)
    line.read(TWO.replace("{\n", "{\n\n\n\n", 1))
    assert line.sent[-1].kernels[1] == (1, 3)
    line.read(TWO.replace("{\n", "{\n\n", 1))
    assert line.sent[-1].kernels[1] == (1, -2)


def test_kernels_that_come_go_and_change_places_arrive() -> None:
    line = Line()
    for text in (TWO, KERNEL.format(name="second"), KERNEL.format(name="second") + TWO, "", TWO, "\n" + TWO):
        line.read(text)
    silenced = "// cuda-lsp: ignore-file[shared-race]\n" + TWO
    assert len(line.read(silenced).findings) < len(line.read(TWO).findings)


def test_after_closing_everything_is_sent_again() -> None:
    line = Line()
    first = line.read(TWO)
    line.sender.forget(URI)
    assert line.read(TWO) == evolve(first, seconds=line.sent[-1].rest.seconds)
    assert line.sent[-1].first


def test_the_server_imports_nothing_of_the_analyses() -> None:
    code = "import cuda_lsp.server.wiring, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "clang", "z3", "cuda_lsp.static", "cuda_lsp.frontend", "cuda_lsp.dynamic"}
    assert not heavy & set(done.stdout.split())
