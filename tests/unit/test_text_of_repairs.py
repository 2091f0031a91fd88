"""What repairs know of text: statements, places before and behind edits; and that odd text costs no time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_lsp.model import Code, FileReport, Finding, Position, RaceKind, Related, Site, SourceRange, Status
from cuda_lsp.repairs.candidate import Edit, Places, edited
from cuda_lsp.repairs.difference import difference
from cuda_lsp.repairs.kinds import candidates
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Statement

PATH = Path("/k.cu")


def outline(text: str, mark: str) -> list[str]:
    """The statements around a mark, outermost first, each by its form and first line."""
    source = Source(PATH, text)
    found = source.statements.path(text.index(mark))
    return [f"{s.form.value} {source.text[s.start : s.end].splitlines()[0]}" for s in found]


@pytest.mark.parametrize(
    ("body", "around"),
    [
        ("a = 1; x(); b;", ["simple x();"]),
        ("if (c) x(); else y();", ["if if (c) x(); else y();", "simple x();"]),
        ("if (c) y(); else if (d) { x(); }", ["if", "if if (d) { x(); }", "block { x(); }", "simple x();"]),
        ("for (int i = 0; i < n; i++) x();", ["loop for (int i = 0; i < n; i++) x();", "simple x();"]),
        (
            "do { x(); } while (a(b)); y();",
            ["loop do { x(); } while (a(b));", "block { x(); }", "simple x();"],
        ),
        ("switch (a) { case A::b: x(); break; default: y(); }", ["switch", "block", "simple x();"]),
        ("auto f = [&](int i) { return i; }; x();", ["simple x();"]),
        ("int a[] = {1, 2}; x();", ["simple x();"]),
        ("if constexpr (N > 2) x();", ["if if constexpr (N > 2) x();", "simple x();"]),
        ("/* if ( */ x(); // {", ["simple x();"]),
        ("#pragma unroll\n#define F(a) if (a) { \\\n x\nx();", ["simple x();"]),
        ("done: x();", ["simple x();"]),
    ],
)
def test_statements_are_read_as_the_grammar_has_them(body: str, around: list[str]) -> None:
    text = f"namespace n {{ template <int N> __global__ void k(int c) {{\n{body}\n}} }}"
    first, *found = outline(text, "x();")
    assert first.startswith("block") and len(found) == len(around)
    assert all(told.startswith(wanted) for told, wanted in zip(found, around, strict=True))


def test_what_is_in_no_function_has_no_statements() -> None:
    assert Source(PATH, "struct s { int x; }; int x();").statements.path(12) == []


TEXTS = st.text("ab\n", max_size=12)


@given(TEXTS, TEXTS)
def test_differences_make_one_text_of_another(old: str, new: str) -> None:
    assert edited(old, difference(old, new)) == new


@given(TEXTS, st.data())
def test_places_that_are_not_edited_are_found_again(old: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(old)), min_size=4, max_size=4)))
    edits = (Edit(cuts[0], cuts[1], "xx"), Edit(cuts[2], cuts[3], "y"))
    new = edited(old, edits)
    places = Places(edits)
    kept = [places.after(at) for at in range(len(new)) if new[at] not in "xy"]
    whole = [(at, False) for at in range(len(old)) if not places.before(at)[1]]
    assert kept == whole


@pytest.mark.parametrize(
    "middle",
    [
        "{" * 20_000,
        "a<b> " * 3_000,
        " " * 100_000,
        "if (c) x(); else " * 5_000,
        "(" * 20_000,
        "s[0] " * 20_000,
    ],
    ids=["braces", "templates", "spaces", "elses", "parentheses", "subscripts"],
)
def test_odd_text_costs_no_time(middle: str) -> None:
    text = f"__global__ void k(int* s) {{\n__shared__ int t[4][4];\ns[0] = {middle} s[1]++;\n}}\n"
    extent = SourceRange(PATH, Position(3, 1), Position(3, 5))
    started = time.process_time()
    for code in Code:
        site = Site(extent, "s[0]")
        race = Finding(
            code, Status.PROVED, "", "k", site, (Related(site, ""),), kind=RaceKind.WAW, same_value=True
        )
        for candidate in candidates(Source(PATH, text), FileReport(PATH), race):
            edited(text, candidate.edits)
    assert time.process_time() - started < 5


def test_a_statement_knows_what_it_is_around() -> None:
    source = Source(PATH, "void f() { a; }")
    (body, inner) = source.statements.path(11)
    assert isinstance(body, Statement) and inner.around(11) and not inner.around(13)
