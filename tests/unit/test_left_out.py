"""Code that the preprocessor leaves out of a kernel: the verdict says that it was not looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.config import Settings
from cuda_lsp.static.analyze import Analyzer, check_text

PATH = Path("k.cu")


def taken(body: str) -> tuple[str, ...]:
    text = f"__global__ void k(int* a, int n) {{\n{body}\n}}\nvoid f(int* a) {{ k<<<1, 64>>>(a, 4); }}\n"
    (kernel,) = check_text(PATH, text, solver=False).kernels
    assert kernel.verdict.value == "race-free", kernel.reasons
    return kernel.assumptions


LAUNCH = "\nvoid f(int* a) { k<<<1, 64>>>(a); }\n"
RACE = "a[threadIdx.x / 2] = threadIdx.x;"
FREE = "a[threadIdx.x] = 1;"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (f"#ifdef CHECKS\n{RACE}\n#endif", "line 3 (`#ifdef CHECKS`), and nobody looks at it"),
        (f"#if __CUDA_ARCH__ == 750\n{RACE}\n{RACE}\n#endif", "lines 3 to 4 (`#if __CUDA_ARCH__ == 750`)"),
        (f"#ifndef CHECKS\n{FREE}\n#else\n{RACE}\n#endif", "line 5 (`#else`)"),
        (f"#if 0\n{RACE}\n#elif 1\n{FREE}\n#endif", "line 3 (`#if 0`)"),
        (f"#if 0\nn++;\n#if 1\n{RACE}\n#endif\n#endif", "lines 3 to 6 (`#if 0`)"),
        (f"#if 1\n{FREE}\n# ifdef INNER  // why\n{RACE}\n# endif\n#endif", "line 5 (`# ifdef INNER`)"),
        ("#ifdef CHECKS\natomicAdd(a, 1);\n#endif", "line 3"),
        ("#ifdef CHECKS\n*a = n;\n#endif", "line 3"),
        ("#ifdef CHECKS\n__syncthreads();\n#endif", "line 3"),
    ],
)
def test_what_touches_memory_and_is_left_out_is_told(body: str, lines: str) -> None:
    (told,) = taken(body)
    assert told.startswith(f"the preprocessor leaves out {lines}")


@pytest.mark.parametrize(
    "body",
    [
        FREE,
        f"#ifndef CHECKS\n{FREE}\n#endif",
        f"#pragma unroll\nfor (int i = 0; i < n; i++) {FREE}",
        '#ifdef CHECKS\nprintf("here\\n");\n#endif\n' + FREE,
        f"#ifdef CHECKS\n// {RACE}\n#endif",
        f"#if 1\n{FREE}\n#else\n#endif",
    ],
)
def test_what_is_compiled_or_touches_nothing_is_not_told(body: str) -> None:
    assert taken(body) == ()


def test_templates_and_macros() -> None:
    assert taken(f"#ifdef CHECKS\n{RACE}\n#endif\n#define PUT {FREE}\n#if 1\nPUT\n#endif") == (
        "the preprocessor leaves out line 3 (`#ifdef CHECKS`), and nobody looks at it",
    )
    text = f"template <int N> __global__ void k(int* a) {{\n#if N\n{RACE}\n#endif\n{FREE}\n}}\n"
    text += "void f(int* a) { k<4><<<1, 64>>>(a); }\n"
    (kernel,) = check_text(PATH, text, solver=False).kernels
    assert len(kernel.assumptions) == 1


def test_lines_move_with_the_kernel() -> None:
    text = f"__global__ void k(int* a) {{\n#ifdef CHECKS\n{RACE}\n#endif\n}}{LAUNCH}"
    editor = Analyzer(Settings(solver=False), quick=True)
    editor.update(PATH, text)
    (kernel,) = editor.update(PATH, f"\n\n{text}").kernels
    editor.shutdown()
    assert kernel.assumptions == (
        "the preprocessor leaves out line 5 (`#ifdef CHECKS`), and nobody looks at it",
    )


def test_a_definition_of_the_build_has_it_looked_at() -> None:
    text = f"__global__ void k(int* a) {{\n#ifdef CHECKS\n{RACE}\n#endif\n}}{LAUNCH}"
    (kernel,) = check_text(PATH, text, Settings(defines=("CHECKS",))).kernels
    assert kernel.verdict.value == "racy" and not kernel.assumptions
