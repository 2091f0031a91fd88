"""``// cuda-lsp:`` comments."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import examples

from cuda_lsp.frontend.directives import FileDirectives, parse_directives
from cuda_lsp.model import Code, Verdict
from cuda_lsp.static.analyze import check_text


def parse(text: str) -> FileDirectives:
    return parse_directives(Path("a.cu"), text)


def test_directives_above_a_kernel_are_merged() -> None:
    directives = parse(
        "// cuda-lsp: launch block=(16,16) grid=(64) shared=4096\n// cuda-lsp: args n=1024 stride=2\n"
        "// cuda-lsp: assume n % 32 == 0\n// cuda-lsp: warp-synchronous\n__global__ void k();\n"
    )
    merged = directives.for_kernel(5, 0)
    assert merged is not None
    assert (merged.block, merged.grid, merged.dynamic_shared) == ((16, 16, 1), (64, 1, 1), 4096)
    assert merged.arguments == {"n": 1024, "stride": 2}
    assert merged.assumptions == ((3, "n % 32 == 0"),)
    assert merged.warp_synchronous
    assert directives.errors == ()


def test_a_directive_belongs_to_the_next_kernel_only() -> None:
    directives = parse("// cuda-lsp: launch block=32\n__global__ void a() {\n}\n__global__ void b() {}\n")
    assert directives.for_kernel(4, 3) is None


def test_ignore_beside_code_and_alone_on_a_line() -> None:
    directives = parse(
        "x(); // cuda-lsp: ignore[bank-conflict] measured\n// cuda-lsp: ignore[shared-race]\n\ny();\n"
    )
    assert [(s.line, s.codes) for s in directives.suppressions] == [
        (1, frozenset({Code.BANK_CONFLICT})),
        (4, frozenset({Code.SHARED_RACE})),
    ]
    assert directives.suppressions[0].reason == "measured"


def test_ignore_file_holds_everywhere() -> None:
    directives = parse("// cuda-lsp: ignore-file[uncoalesced-access, bank-conflict] legacy\n")
    assert directives.file_suppressions[0].codes == {Code.UNCOALESCED_ACCESS, Code.BANK_CONFLICT}


@pytest.mark.parametrize(
    ("comment", "part"),
    [
        ("launch blck=(1)", "block=(x,y,z)"),
        ("launch block=(0)", "positive numbers"),
        ("launch block=(1,2,3,4)", "positive numbers"),
        ("ignore[bank-conflit] x", "bank-conflit"),
        ("ignore bank-conflict", "ignore[code]"),
        ("args", "n=1024"),
        ("args n", "name=value"),
        ("args n=many", "expected a number"),
        ("lunch block=32", "unknown directive"),
    ],
)
def test_a_mistake_gives_one_message_that_says_what_is_expected(comment: str, part: str) -> None:
    errors = parse(f"// cuda-lsp: {comment}\n").errors
    assert len(errors) == 1
    assert part in errors[0].message
    assert errors[0].range is not None


@examples(100)
@given(st.text(alphabet="// cuda-lsp:ignorelaunchbk=[](),123\n\f\x85"))
def test_any_text_is_read_without_failing(text: str) -> None:
    parse(text + "// cuda-lsp: " + text)


def test_the_launch_that_a_verifier_is_told_holds_for_all_kernels_below() -> None:
    directives = parse(
        "//pass\n//--blockDim=[16,8] --gridDim=2 --no-inline\n__global__ void a();\n\n"
        "// cuda-lsp: args n=3\n__global__ void b();\n\n// cuda-lsp: launch block=32\n__global__ void c();\n"
    )
    a, b, c = directives.for_kernel(3, 0), directives.for_kernel(6, 3), directives.for_kernel(9, 6)
    assert a and b and c
    assert (a.block, a.grid) == ((16, 8, 1), (2, 1, 1))
    assert (b.block, b.grid, b.arguments) == ((16, 8, 1), (2, 1, 1), {"n": 3})
    assert (c.block, c.grid) == ((32, 1, 1), None)
    assert not directives.errors


def test_a_verifiers_preconditions_are_facts() -> None:
    text = """//--blockDim=64 --gridDim=1
    __global__ void k(int* out, int stride) {
      %s
      for (int i = 0; __invariant(i >= 0), i < 4; ++i)
        if (stride > 4) out[i] = threadIdx.x;
    }
    """
    verdicts = [
        check_text(Path("/k.cu"), text % fact).kernels[0].verdict
        for fact in ("__requires(stride == 4);", "__assume(stride == 4);", "__assert(stride == 4);")
    ]
    assert verdicts == [Verdict.RACE_FREE, Verdict.RACE_FREE, Verdict.RACY]
