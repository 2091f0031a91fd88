"""Each test that the table of docs/editors names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/editors/README.md").read_text(encoding="utf-8")
TABLE, _, IN_EDITORS = PAGE[PAGE.index("| feature | test |") :].partition("## In the editors themselves")
EDITORS = {
    "VS Code": ("test_vscode.py", "test_vscode_story.py", "test_vscode_install.py"),
    "Neovim": ("test_neovim.py",),
    "Helix": ("test_helix_emacs.py",),
    "Emacs": ("test_helix_emacs.py",),
}


def test_files_and_tests_that_are_named_exist() -> None:
    named = re.findall(r"`((?:[\w-]+/)*[\w.-]+\.(?:py|ts))(?: --\w+)?`((?:[:,]? ?`test_\w+`)*)", TABLE)
    assert len(named) > 25
    for file, tests in named:
        path = ROOT / (file if "/" in file else f"tests/protocol/{file}")
        text = path.read_text(encoding="utf-8")
        for test in re.findall(r"`(test_\w+)`", tests):
            assert f"def {test}(" in text, f"{file} has no {test}"


def test_each_named_test_is_behind_a_file() -> None:
    """So that none is passed over by the test above."""
    row_tests = re.findall(r"`(test_\w+)`", TABLE)
    behind = "".join(re.findall(r"\.py`:((?: ?`test_\w+`,?)+)", TABLE))
    assert sorted(row_tests) == sorted(re.findall(r"`(test_\w+)`", behind))


def in_editor(editor: str) -> set[str]:
    """The tests in one real editor."""
    texts = ((ROOT / "tests/e2e" / name).read_text(encoding="utf-8") for name in EDITORS[editor])
    found = {test for text in texts for test in re.findall(r"^def (test_\w+)\(", text, re.M)}
    both = editor in ("Helix", "Emacs")
    return {test for test in found if not both or test.startswith(f"test_{editor.lower()}_")}


def test_the_table_of_real_editors_names_each_test_in_them_and_no_other() -> None:
    head, _, *rows = (line.strip("| ").split(" | ") for line in re.findall(r"^\|.*\|$", IN_EDITORS, re.M))
    assert head[1:] == list(EDITORS) and len(rows) > 12
    for column, editor in enumerate(EDITORS, 1):
        assert all(len(row) == len(head) and row[column] for row in rows)
        named = {test for row in rows for test in re.findall(r"`(test_\w+)`", row[column])}
        assert named == in_editor(editor), editor
