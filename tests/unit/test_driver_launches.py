"""Launches through the driver: ``cuModuleGetFunction`` names the kernel, ``cuLaunchKernel`` the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.frontend.host.launches import find_launches
from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import Analyzer

HOST = """
void run(CUmodule module, CUdeviceptr out, int n) {{
    int threads = 48;
    dim3 grid(n, 2);
    CUfunction f, g;
    {looked_up}
    void* arguments[] = {{ &out, &n }};
    check(cuLaunchKernel({launched}));
}}
"""
FOUND = 'check(cuModuleGetFunction(&f, module, "fill"));'
LAUNCHED = "f, grid.x, grid.y, grid.z, threads, 2, 1, 0, stream, arguments, nullptr"


@pytest.mark.parametrize(
    ("looked_up", "launched"),
    [
        (FOUND, LAUNCHED),
        (FOUND, LAUNCHED.replace("arguments", "&arguments[0]")),
        (FOUND.replace("fill", "_Z4fillPii"), LAUNCHED),
        (FOUND.replace("fill", "_ZN5tools4fillEPii"), LAUNCHED),
        (FOUND.replace("cuModuleGetFunction(&f", "cuModuleGetFunction((CUfunction*)&f"), LAUNCHED),
        (f'cuModuleGetFunction(&f, module, "other"); {FOUND}', LAUNCHED),
        (f'{FOUND} cuModuleGetFunction(&g, module, "other");', LAUNCHED),
        (FOUND.replace("&f", "&this->f"), LAUNCHED.replace("f,", "f,", 1)),
    ],
)
def test_the_kernel_that_was_looked_up_last_is_launched(looked_up: str, launched: str) -> None:
    (site,) = find_launches(Path("a.cpp"), HOST.format(looked_up=looked_up, launched=launched))
    assert (site.kernel, site.block, site.passed) == ("fill", (48, 2, 1), 2)


@pytest.mark.parametrize(
    ("looked_up", "launched"),
    [
        ("", LAUNCHED),
        (FOUND.replace("&f", "&g"), LAUNCHED),
        (FOUND.replace('"fill"', "name"), LAUNCHED),
        (FOUND, "f, 1, 2"),
    ],
)
def test_a_kernel_that_nothing_names_is_not_told(looked_up: str, launched: str) -> None:
    assert find_launches(Path("a.cpp"), HOST.format(looked_up=looked_up, launched=launched)) == ()


@pytest.mark.parametrize(("size", "verdict"), [("64", Verdict.RACE_FREE), ("128", Verdict.RACY)])
def test_a_kernel_in_a_file_of_its_own_has_its_launch(tmp_path: Path, size: str, verdict: Verdict) -> None:
    (tmp_path / ".git").mkdir()
    host = HOST.format(looked_up=FOUND, launched=LAUNCHED.replace("threads, 2, 1", f"{size}, 1, 1"))
    (tmp_path / "host.cpp").write_text(host, "utf-8")
    file = tmp_path / "fill.cu"
    file.write_text(
        'extern "C" __global__ void fill(int* out, int n) {\n  __shared__ int s[64];\n'
        "  s[threadIdx.x % 64] = threadIdx.x;\n}\n",
        "utf-8",
    )
    analyzer = Analyzer()
    try:
        analyzer.update(file, file.read_text("utf-8"))
        (kernel,) = analyzer.settle(file).kernels
    finally:
        analyzer.shutdown()
    assert kernel.launches[0].block == (int(size), 1, 1)
    assert kernel.verdict is verdict
