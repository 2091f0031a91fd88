"""Values of host variables that only running the function tells."""

from __future__ import annotations

import pytest

from cuda_lsp.frontend.host.host_constants import HostConstants
from cuda_lsp.frontend.host.known_values import Given
from cuda_lsp.frontend.host.text import HostText

HALVED = "int lanes(int n, int most = 512) { int r = most; while (r > n) { r >>= 1; } return r; }\n"

ROUNDED = """
template <int P> int rounded(int n) { return (((n - 1) >> P) + 1) << P; }
template <int P> int part(int n) { int r = n; r >>= P; return r; }
int bits_of(int v) { int r = v; r |= r >> 1; r |= r >> 2; r |= r >> 4; r |= r >> 8; return r; }
"""


def block_of(body: str, n: int | None = None, before: str = "") -> tuple[int | None, ...]:
    """The block of ``k`` in ``void f(int n) { body }``, where ``n`` has a value."""
    text = HostText(f"{before}void f(int n) {{ {body} k<<<1, block>>>(); more(); }}")
    constants = HostConstants(text)
    at = text.plain.index("k<<<")
    key = constants.declared("n", at)
    assert key is not None
    return constants.known_extents("block", at, Given({} if n is None else {key: n}))


LOOPS = {
    "while": "dim3 block(256, 1); while (block.x >= 2 * n) { block.x /= 2; block.y *= 2; }",
    "while without braces": "int b = 256; int r = 1; while (b >= 2 * n) b /= 2, r *= 2; dim3 block(b, r);",
    "for": "int b = 256, r = 1; for (; b >= 2 * n; b >>= 1) { r <<= 1; } dim3 block(b, r);",
    "do": "int b = 512, r = 0; do { b /= 2; r = r ? 2 * r : 1; } while (b >= 2 * n); dim3 block(b, r);",
    "break": "int b = 256, r = 1; while (true) { if (b < 2 * n) break; b /= 2; r *= 2; } dim3 block(b, r);",
    "continue": (
        "int b = 256, r = 1; for (int i = 0; i < 99; ++i) { if (b < 2 * n) { continue; } b /= 2; r += r; } "
        "dim3 block(b, r);"
    ),
    "branches": (
        "int b; if (n > 200) { b = 256; } else if (n > 30) { b = 32; } else b = 4; dim3 block(b, 256 / b);"
    ),
    "a function with a loop": "int b = lanes(n, 256); dim3 block(b, 256 / b);",
    "a function with a default": "int b = lanes(n) / 1; if (b > 256) b = 256; dim3 block(b, 256 / b);",
    "steps": "int b = 30; b++; ++b; dim3 block(b); block.y = 7; block.y++; if (n == 256) block = dim3(n);",
    "bits that are set": "int b = bits_of(n - 1) + 1; dim3 block(b, 256 / b);",
    "bits that are kept": "int b = 1023; b &= n; b ^= 0; dim3 block(b, 256 / b);",
    "a function's template argument": "int b = rounded<5>(n - 3); dim3 block(b, 256 / b);",
    "a template argument with a name": "constexpr int P = 2; int b = part<P>(4 * n); dim3 block(b, 256 / b);",
    "a block of a macro": "dim3 block(1); DISPATCH(n, [&] { block = dim3(n, 256 / n); k<<<1, block>>>(); });",
}


@pytest.mark.parametrize("body", LOOPS.values(), ids=LOOPS)
@pytest.mark.parametrize("n", [32, 256])
def test_the_function_is_run_up_to_the_launch(body: str, n: int) -> None:
    assert block_of(body, n, HALVED + ROUNDED) == (n, 256 // n, 1)


UNKNOWN = {
    "a condition that nobody knows": "int b = 64; if (n > 3) { b = 32; } int block = b;",
    "a loop that nobody knows": "int block = 512; while (block > n) block /= 2;",
    "a switch": "int block = 64; switch (n) { case 1: block = 32; }",
    "a lambda that writes": "int block = 64; auto g = [&] { block = 32; }; g(); block += other;",
    "a pointer": "int block = 64; int* p = &block; block *= 2; *p = 32;",
    "a reference": "int block = 64; int& r = block; block *= 2; r = 32;",
    "a function that is lent it": "int block = 64; set(block); block += 0 * n;",
    "a goto": "int block = 64; if (n) goto end; block *= 2; end: ;",
    "a condition that writes": "int block = 64; if ((block = read()) > 0) { } block *= 2;",
    "a macro in front of a branch": "int block = 64; CHECK(n) if (n) block = 32; block *= 2;",
    "a variable of all calls": "static int block = 64; block += 32;",
    "bits of what nobody knows": "int block = 64; block |= n;",
    "a template argument that nobody knows": "int block = part<Q>(64);",
    "another number of bits than that": "int block = 64; block &= read();",
    "a loop around": "int block = 64; while (n) { k<<<1, block>>>(); block *= 2; }",
}


@pytest.mark.parametrize("body", UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_in_doubt_is_not_known(body: str) -> None:
    before = f"void set(int& x) {{ x = 3; }}\nint read();\n{ROUNDED}"
    assert block_of(body, before=before)[0] is None


def test_a_block_that_nobody_comes_by_is_not_known() -> None:
    assert block_of("dim3 block(2); for (;;) { block.x *= 2; return; }") == (None, 1, 1)


def test_names_of_unnamed_namespaces_are_the_file_s() -> None:
    assert block_of("dim3 block(N);", before="namespace { constexpr int N = 96; }\n") == (96, 1, 1)
    assert block_of("dim3 block(N);", before="namespace a { constexpr int N = 96; }\n") == (None, 1, 1)


def test_sizes_may_be_of_any_type() -> None:
    text = HostText(
        f"{HALVED}void f(T a) {{ const Id n = a.b - 1; int block = lanes(n); k<<<1, block>>>(); }}"
    )
    assert "n" in {name for name, _ in HostConstants(text).missing("block", text.plain.index("k<<<"))}


def test_both_ways_may_leave_the_same() -> None:
    assert block_of("int block = 64; if (n > 3) { block *= 2; } else { block += 64; }") == (128, 1, 1)


def test_a_way_that_leaves_the_function_does_not_count() -> None:
    assert block_of("int block = 64; block *= 2; if (n > 3) { block = 32; return; }") == (128, 1, 1)


def test_a_function_that_calls_itself_ends() -> None:
    before = "int again(int n) { int r = 1; r += again(n); return r; }\n"
    assert block_of("int block = again(3);", before=before) == (None, 1, 1)


def test_what_runs_too_long_is_not_known() -> None:
    loops = "for (int i = 0; i < 100; ++i) { for (int j = 0; j < 100; ++j) { block += i; block -= i; } }"
    assert block_of(f"int block = 64; {loops}") == (None, 1, 1)
    assert block_of(f"int block = 64; {'{' * 3000} block *= 2; {'}' * 3000}")[0] in (None, 128)


def test_what_hangs_on_a_size_says_so() -> None:
    text = HostText(f"{HALVED}void f(T* a) {{ int n = a->size; int block = lanes(n); k<<<1, block>>>(); }}")
    constants, at = HostConstants(text), text.plain.index("k<<<")
    assert "n" in {name for name, _ in constants.missing("block", at)}


BY_REFERENCE = """
int part(int n, int by) { return (n + by - 1) / by; }
void shape(int n, int most, int& blocks, int &threads) { threads = min(n, most); blocks = part(n, threads); }
void fill(dim3& grid, dim3& block, int n) {
  grid.x = n;
  if (n > 64) { block.x = n / 4; block.y = 4; } else block = dim3(n, 2);
}
void early(int& out, int n) { out = n; if (n > 9) return; out = 2; }
void late(int& out, int n) { if (n < 4) return; out = n; }
void hands(int& a, int n) { a = n; tune(n, a); }
void twice(int& a, int& b) { a = 8; b = 16; }
void both(int& a, int n) { a = n; }
void both(float& a, int n) { a = n; }
"""


@pytest.mark.parametrize(
    ("body", "n", "block"),
    [
        ("int g, b; shape(n, 256, g, b); dim3 block(b, g);", 100, (100, 1, 1)),
        ("int g, b; shape(1000, 256, g, b); dim3 block(b, g);", None, (256, 4, 1)),
        ("int g, b; ns::shape(1000, n, g, b); b += 1; dim3 block(b, g);", 64, (65, 16, 1)),
        ("dim3 g, block; fill(g, block, 2 * n);", 64, (32, 4, 1)),
        ("dim3 g, block; fill(g, block, n);", 16, (16, 2, 1)),
        ("dim3 g, block(1, 1, 3); fill(g, block, n);", 128, (32, 4, 3)),
        ("int b; early(b, n); dim3 block(b);", 32, (32, 1, 1)),
        ("int b; early(b, n); dim3 block(b);", 7, (2, 1, 1)),
        ("int b = 64; late(b, n); dim3 block(b);", 3, (64, 1, 1)),
    ],
)
def test_what_a_function_leaves_in_its_references(
    body: str, n: int | None, block: tuple[int | None, ...]
) -> None:
    assert block_of(body, n, BY_REFERENCE) == block


@pytest.mark.parametrize(
    "body",
    [
        "int b = 4; twice(b, b); dim3 block(b);",  # one variable by two names
        "int b; hands(b, 32); dim3 block(b);",
        "int b; both(b, 32); dim3 block(b);",  # which of the two it is nobody knows
        "int b; unknown(b, 3); dim3 block(b); take(&b); k<<<2, 2>>>(); more(&b);",
        "int b; auto p = &b; both2(b); dim3 block(b);",
        "int b; shape(n, 256, b); dim3 block(b);",  # other arguments than it takes
        "int b = 4; other(shape(b, 3, b, b)); dim3 block(b);",
    ],
)
def test_what_is_not_known_to_be_left_is_not(body: str) -> None:
    assert block_of(body, None, BY_REFERENCE)[0] is None
