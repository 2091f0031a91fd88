"""``asm`` whose strings macros make: what they make is read, or said not to be known; nothing is dropped."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Verdict
from cuda_lsp.static.analyze import check_text

I = "blockIdx.x * 64 + threadIdx.x"  # noqa: E741


def kernel_of(before: str, body: str, folder: Path | None = None) -> KernelReport:
    kernel = f"__global__ void k(int* p, int v) {{ __shared__ int s[64]; {body} }}"
    text = f"{before}\n{kernel}\nvoid f(int* p, int v) {{ k<<<8, 64>>>(p, v); }}\n"
    (found,) = check_text((folder or Path()) / "k.cu", text).kernels
    return found


EXCHANGE = f"s[threadIdx.x] = 1; {{}} p[{I}] = s[63 - threadIdx.x];"


@pytest.mark.parametrize(
    ("macro", "use", "orders"),
    [
        ('#define BAR asm volatile("bar.sync 0;")', "BAR;", True),
        ('#define BAR() do { asm volatile("bar.sync 0;" ::: "memory"); } while (0)', "BAR();", True),
        ('#define WAIT "bar.sync"', 'asm volatile(WAIT " 0;");', True),
        ('#define WAIT(kind) asm volatile("bar." #kind " 0;")', "WAIT(sync);", True),
        ('#define ASM asm volatile\n#define BAR ASM("bar.sync 0;")', "BAR;", True),
        ("#define NUMBER 0", 'asm volatile("bar.sync %0;" :: "n"(NUMBER));', True),
        ('#define BAR asm volatile("membar.cta;")', "BAR;", False),
        ('#define WAIT "membar"', 'asm volatile(WAIT ".cta;");', False),
        ('#define WAIT(kind) asm volatile("mov.u32 a, b; // bar." #kind " 0;")', "WAIT(sync);", False),
        ('#define bar "bar.sync 0;"', 'asm volatile("membar.cta; // bar");', False),
        ('#define BAR asm volatile("" ::: "memory")', "BAR;", False),
    ],
)
def test_barriers_of_macros_are_those_that_they_make(macro: str, use: str, orders: bool) -> None:
    kernel = kernel_of(macro, EXCHANGE.format(use))
    assert kernel.verdict is (Verdict.RACE_FREE if orders else Verdict.RACY), kernel.reasons


STORE = 'asm volatile({} :: "l"(p{}), "r"(v + (int)threadIdx.x));'


@pytest.mark.parametrize(
    ("macro", "template"),
    [
        ('#define ST "st.global.u32 [%0], %1;"', "ST"),
        ('#define SPACE "global"', '"st." SPACE ".u32 [%0], %1;"'),
        ("", 'R"(st.global.u32 [%0], %1;)"'),
        ("", '"st.global.u32"  /* "nothing" */ " [%0], %1;" // "more"\n'),
    ],
)
def test_stores_of_macros_meet_where_they_go(macro: str, template: str) -> None:
    apart = f" + {I}"
    assert kernel_of(macro, STORE.format(template, apart)).verdict is Verdict.RACE_FREE
    assert kernel_of(macro, STORE.format(template, "")).verdict is Verdict.RACY


def test_a_function_that_a_macro_makes_is_read(tmp_path: Path) -> None:
    (tmp_path / "ptx.h").write_text(
        '#define MAKE(name, op) __device__ void name(int* p, int v) \\\n'
        '  { asm volatile(#op ".global.u32 [%0], %1;" :: "l"(p), "r"(v)); }\n'
    )  # fmt: skip
    before = '#include "ptx.h"\nMAKE(put, st)\nMAKE(add, red.add)'
    assert kernel_of(before, "add(p, threadIdx.x);", tmp_path).verdict is Verdict.RACE_FREE
    assert kernel_of(before, "put(p, threadIdx.x);", tmp_path).verdict is Verdict.RACY
    assert kernel_of(before, f"put(p + {I}, 1);", tmp_path).verdict is Verdict.RACE_FREE


@pytest.mark.parametrize(
    ("macro", "use"),
    [
        (
            '#ifdef A\n#define W "bar.sync"\n#else\n#define W "membar.cta; //"\n#endif',
            'asm volatile(W " 0;");',
        ),
        ('#define TWO asm volatile("bar.sync 0;"); asm volatile("membar.cta;")', "TWO;"),
        ("", 'asm volatile("bar.sync"\n#ifdef OLD\n" 1;"\n#else\n" 0;"\n#endif\n);'),
    ],
)
def test_what_is_not_known_is_said(macro: str, use: str) -> None:
    kernel = kernel_of(macro, EXCHANGE.format(use))
    assert kernel.verdict is Verdict.UNDECIDED
    assert any("asm is not analysed" in reason for reason in kernel.reasons)


def test_a_text_that_the_preprocessor_chooses_is_said_to_be() -> None:
    chosen = '\n#ifdef OLD\n"ld.volatile.u32 %0, [%1];"\n#else\n"ld.u32 %0, [%1];"\n#endif\n'
    use = f'asm volatile({chosen} : "=r"(v) : "l"(p));'
    kernel = kernel_of("", f"int v; {use} p[{I}] = v;")
    assert any("the preprocessor chooses its text" in reason for reason in kernel.reasons)
