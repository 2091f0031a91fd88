"""Where the program of a text starts: what offers to run it and what runs it agree."""

from __future__ import annotations

import pytest

from cuda_lsp.main_function import main_line


@pytest.mark.parametrize(
    "text",
    [
        "int main() {}\n",
        "int main(int n, char** a)\n{}\n",
        "auto main() -> int {}\n",
        'extern "C" int main() {}\n',
    ],
)
def test_a_definition_is_found_on_its_line(text: str) -> None:
    assert main_line(text) == 1
    assert main_line(f"/* int main() {{}} */\n// main() {{\n{text}") == 3
    assert main_line(f"int main();\n{text}") == 2


def test_the_line_is_that_of_the_name() -> None:
    assert main_line("static int\nmain(void) {\n  return 0;\n}\n") == 2


@pytest.mark.parametrize(
    "text", ["", "int main();\n", "/* int main() {} */\n", 'auto s = "int main() {}";\n', "int domain() {}\n"]
)
def test_no_program_starts_elsewhere(text: str) -> None:
    assert main_line(text) is None
