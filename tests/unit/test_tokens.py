"""One token a line, and from a token back to the expression that accesses memory."""

from pathlib import Path

import pytest

from cuda_lsp.dynamic.compilation.expressions import Expressions
from cuda_lsp.dynamic.compilation.tokens import Token, TokenTable, rewriter_for

PATH = Path("/src/k.cu")


def rewritten(text: str, source: str | None = None) -> tuple[str, TokenTable]:
    """``text`` preprocessed from ``source`` (the same, unless macros made a difference)."""
    rewriter = rewriter_for(("/usr/",), PATH, source if source is not None else text)
    return rewriter.rewrite(f'# 1 "{PATH}"\n{text}')


def test_every_token_gets_a_number_and_its_place():
    out, table = rewritten("int a;\n  a = b[i];")
    assert out == '# 1 "/src/k.cu"\nint\na\n;\na\n=\nb\n[\ni\n]\n;'
    assert table[7] == Token(PATH, 2, 8, "[")
    assert table[0] is None
    assert table[11] is None


def test_system_text_stays_as_it_is():
    text = '# 1 "/usr/include/x.h" 1\nint x ;\n# 3 "/src/k.cu" 2\ny = 1;'
    out, table = rewriter_for(("/usr/",), PATH, "").rewrite(text)
    assert "int x ;" in out
    assert [t.text for t in table.tokens] == ["y", "=", "1", ";"]
    assert table[1].line == 3


def test_flags_of_the_preprocessor_mark_system_headers_too():
    _, table = rewriter_for((), PATH, "").rewrite('# 1 "/opt/lib/y.h" 1 3\nint z;')
    assert len(table) == 0


@pytest.mark.parametrize(
    "literal", ['"a;b \\" c"', 'R"x(a "quoted" )b)x"', "'\\''", "0x1p-3f", "1'000'000", 'u8"é"', "<<<"]
)
def test_literals_are_one_token(literal):
    _, table = rewritten(f"f({literal}, 1);")
    assert table[3].text == literal


def test_a_raw_string_over_lines_keeps_the_numbers_right():
    out, table = rewritten('a = R"(x\ny)"; b = 1;')
    assert 'R"(x\ny)"' in out
    number = next(k for k, t in enumerate(table.tokens, 1) if t.text == "b")
    lines = out.split("\n")
    marked = 0
    for row in lines:  # replay the markers: the compiler's view of the numbers
        if row.startswith("# "):
            marked = int(row.split()[1]) - 1
            continue
        marked += 1
        if row == "b":
            break
    assert marked == number


def test_a_macro_of_a_system_header_stands_where_it_is_used():
    text = "    g(a); assert(a[1] != 5);\n}"
    rows = (
        "    g(a);",
        "bool(",
        "a[1] != 5",
        ") ? void(0) : fail())",
        ";\n}",
    )  # now ours, now the macro's
    made = "\n".join(f'# 1 "{PATH}"{" 3 4" * (k % 2)}\n{row}' for k, row in enumerate(rows))
    _, table = rewritten(made.partition("\n")[2], text)
    places = {token.text: (token.line, token.column, token.exact) for token in table.tokens}
    assert places["fail"] == (1, 11, False)
    assert places["5"] == (1, 26, True)
    assert places["}"] == (2, 1, True)


def test_pragmas_stay_whole():
    out, table = rewritten("#pragma unroll 4\nx;")
    assert "#pragma unroll 4" in out.split("\n")
    assert table[1].text == "#pragma unroll 4"
    assert table[2].text == "x"


def test_a_macro_leaves_the_tokens_around_it_exact():
    _, table = rewritten(
        "__attribute__((device)) float f(int *p) { return p[i]; }",
        "__device__ float f(int *p) { return p[i]; }",
    )
    token = next(t for t in table.tokens if t.text == "[")
    assert (token.column, token.exact) == (38, True)


@pytest.mark.parametrize(
    ("source", "made", "at", "place"),
    [
        ("int s[2]; BODY }", "int s[2]; s[t] = 1; o[t] = s[0]; }", "o", (11, 15)),
        ("x = LOAD(s, i + 1) + LOAD(s, j);", "x = (s)[(i + 1)] + (s)[(j)];", "[", (5, 19)),
        ("ADD(1) ADD(2)", "s[t] += s[t + 1]; s[t] += s[t + 2];", "+=", (1, 7)),
        ("o[t] = s[INC(t)];", "o[t] = s[((t) + 1)];", "1", (10, 16)),
        ("KERNEL(k, int)", "void k(int *o) { o[0] = 1; }", "=", (1, 15)),
    ],
)
def test_what_a_macro_makes_stands_where_it_is_used(source, made, at, place):
    _, table = rewritten(made, source)
    token = next(t for t in table.tokens if t.text == at and not t.exact)
    assert (token.column, token.stop) == place


def test_an_access_that_a_macro_makes_is_the_macros_use():
    _, table = rewritten("x = (s)[(i + 1)] + (s)[(j)];", "x = LOAD(s, i + 1) + LOAD(s, j);")
    index = next(k for k, t in enumerate(table.tokens) if t.text == "1")
    extent = Expressions(table.tokens).site(Expressions(table.tokens).around(index)[0]).range
    assert (extent.start.column, extent.end.column) == (5, 19)


def texts(text: str, at: str, after: str = "") -> list[str]:
    """The expressions around the token ``at`` (the first one behind ``after``)."""
    _, table = rewritten(text)
    start = text.index(after) + len(after)
    index = next(k for k, t in enumerate(table.tokens) if t.text == at and t.column > start)
    expressions = Expressions(table.tokens)
    return [expressions.site(stretch).text for stretch in expressions.around(index)]


@pytest.mark.parametrize(
    ("text", "at", "after", "expected"),
    [
        ("s[i + 1] = 2;", "1", "", ["s[i + 1]"]),
        ("out[idx[i]] = 1;", "i", "[idx", ["idx[i]", "out[idx[i]]"]),
        ("t[i / 8][i % 8] = 0;", "8", "%", ["t[i / 8][i % 8]"]),
        ("p[i + 1].x = 0;", "1", "", ["p[i + 1].x"]),
        ("a.b->c[k] = 0;", "k", "", ["a.b->c[k]"]),
        ("*(q + i) = 0;", "i", "", ["*(q + i)"]),
        ("*q = 0;", "q", "", ["*q"]),
        ("x = a * s[j - 1];", "1", "", ["s[j - 1]"]),
        ("x = s[a * (b + c)];", "c", "", ["s[a * (b + c)]"]),
        ("x = f(s, i)[k];", "k", "", ["f(s, i)[k]"]),
        ("total += 1;", "total", "", ["total"]),
        ("x = s[threadIdx.x + 1];", "threadIdx", "", ["s[threadIdx.x + 1]"]),
    ],
)
def test_the_expression_around_a_token(text, at, after, expected):
    assert texts(f" {text}", at, after) == expected


def test_what_is_assigned_is_known():
    _, table = rewritten("out[idx[i]] += 1;")
    inner, outer = Expressions(table.tokens).around(4)
    assert (inner.assigned, outer.assigned) == (False, True)


def test_a_call_spans_its_arguments():
    _, table = rewritten("atomicAdd(&s[i], 1);")
    expressions = Expressions(table.tokens)
    assert expressions.site(expressions.call(0)).text == "atomicAdd(&s[i], 1)"
