"""No pattern that repairs, runs, the server or reports apply to a text blows up.

Patterns are found where they are written, in the source, so that those inside functions count too. What is
only ever matched at one place is tried there, everything else at every place of the text.
(``test_linear_reading`` has those of the front end.)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from linear_time import blows_up, found_everywhere, outgrows

from cuda_lsp.dynamic.compilation.tokens import rewriter_for

ROOT = Path(__file__).resolve().parents[2] / "cuda_lsp"
_ROOMS = ("repairs", "dynamic", "server", "report", "cli", "batch")
_AT_ONE_PLACE = {"match", "fullmatch"}


def _files() -> Iterator[Path]:
    yield from sorted(ROOT.glob("*.py"))
    for room in _ROOMS:
        yield from sorted((ROOT / room).rglob("*.py"))


def _written(node: ast.expr) -> str | bytes | None:
    """The pattern of a literal; names put for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else "name" for v in node.values)
    return None


def _flags(call: ast.Call) -> int:
    given = [ast.unparse(a) for a in (*call.args[1:], *(k.value for k in call.keywords))]
    flags = [text for text in given if re.fullmatch(r"re\.[A-Z]+(?: \| re\.[A-Z]+)*", text)]
    return eval(flags[0], {"re": re}) if flags else 0


def _uses(tree: ast.Module) -> dict[str, set[str]]:
    """The methods that are called of each name."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
    return found


def _patterns() -> Iterator[tuple[str, re.Pattern[Any], set[str]]]:
    """Where each is written, it, and how it is used."""
    for path in _files():
        if "re." not in (text := path.read_text(encoding="utf-8")):
            continue
        tree = ast.parse(text)
        uses, named = _uses(tree), dict[int, str]()
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                named[id(node.value)] = node.targets[0].id
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):  # re.compile(…).match
                named[id(node.value)] = f" {node.attr}"
        for node in ast.walk(tree):
            is_ours = isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args
            written = _written(node.args[0]) if is_ours and isinstance(node, ast.Call) else None
            if written is not None and isinstance(node, ast.Call):
                name, method = named.get(id(node), ""), ast.unparse(node.func)[3:]
                methods = {name.strip()} if name.startswith(" ") else uses.get(name, set())
                yield (
                    f"{path.relative_to(ROOT)}:{node.lineno}",
                    re.compile(written, _flags(node)),  # type: ignore[arg-type]
                    methods if method == "compile" else {method},
                )


def _matched(pattern: re.Pattern[Any], text: Any) -> object:
    return pattern.match(text)


PATTERNS = {where: (pattern, methods) for where, pattern, methods in _patterns()}


def test_patterns_are_found() -> None:
    assert len(PATTERNS) > 100


@pytest.mark.parametrize("where", PATTERNS)
def test_a_pattern_takes_time_in_proportion_to_the_text(where: str) -> None:
    pattern, methods = PATTERNS[where]
    use: Callable[[re.Pattern[Any], Any], object] = found_everywhere
    if methods and methods <= _AT_ONE_PLACE:
        use = _matched
    slow = outgrows(pattern, use)
    assert slow is None, f"{pattern.pattern!r} over {slow}"


@pytest.mark.parametrize("opening", ['R"(', "/*", 'R"x(', '"', "a"])
def test_rows_that_belong_together_are_joined_in_proportion_to_their_number(opening: str) -> None:
    def work(length: int) -> Callable[[], object]:
        text = f'# 1 "/project/a.cu"\n{opening}\n' + "int x;\n" * (length // 7)
        return lambda: rewriter_for((), Path("/project/a.cu"), text).rewrite(text)

    assert not blows_up(work)
