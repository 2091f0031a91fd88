"""What launches name, said only where a macro is defined: the build that compiles the file has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.static.analyze import check_text

KERNELS = """
#include "config.h"
__global__ void k(int* out, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = i; }
void f(Context* context, int* out, int n) {
  k<<<blocks_for(n), kThreads, 0, context->as<Stream>()->stream()>>>(out, n);
}
"""
SAID = "const int kThreads = 384;\ninline int blocks_for(int n) { return (n + kThreads - 1) / kThreads; }"
SWITCHED = f"#pragma once\n#ifdef WITH_DEVICE\n{SAID}\n#endif\n"


@pytest.mark.parametrize(
    ("config", "more", "block"),
    [
        (SWITCHED, "", 384),
        (f"#pragma once\n#if defined(WITH_DEVICE)\n{SAID}\n#endif\n", "", 384),
        (SWITCHED.replace("const int kThreads = 384;", "#define kThreads 384"), "", 384),
        (
            SWITCHED.replace(
                "const int kThreads =", "constexpr int kWidth = 96;\nconstexpr int kThreads = 4 * kWidth; //"
            ),
            "",
            384,
        ),
        (SWITCHED.replace("#endif", f"#else\n{SAID.replace('384', '64')}\n#endif"), "", 64),
        (f"#ifndef WITH_DEVICE\n{SAID}\n#endif\n", "", 384),
        (f"#undef WITH_DEVICE\n{SWITCHED}", "", None),  # the text has decided
        (SWITCHED.replace("#ifdef WITH_DEVICE", "#if WITH_DEVICE && OTHER > 3"), "", None),
        (SWITCHED, "const int kThreads = 128;\n", 128),
    ],
)
def test_a_macro_is_taken_for_what_the_build_defines(
    tmp_path: Path, config: str, more: str, block: int | None
) -> None:
    (tmp_path / "config.h").write_text(config, "utf-8")
    file = tmp_path / "a.cu"
    file.write_text(more + KERNELS, "utf-8")
    (kernel,) = check_text(file, file.read_text("utf-8")).kernels
    launch = kernel.launches[0]
    assert (None if launch.assumed else launch.block[0]) == block
