"""The documentation page of each diagnostic code, as shipped with the package.

In an installed package the pages lie in ``report/codes``; in a checkout they are ``docs/codes``.
"""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.model import Code

DOCUMENTATION = "https://cuda-lsp.dev/codes"


def page_url(code: Code) -> str:
    """Where the page of ``code`` is published (LSP ``codeDescription``, SARIF ``helpUri``)."""
    return f"{DOCUMENTATION}/{code.value}"


def page(code: Code) -> str:
    """The Markdown page of ``code``; FileNotFoundError when the installation is incomplete."""
    here = Path(__file__).resolve().parent
    for folder in (here / "codes", here.parents[1] / "docs" / "codes"):
        path = folder / f"{code.value}.md"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise FileNotFoundError(f"the page of {code.value} is missing: reinstall cuda-lsp")
