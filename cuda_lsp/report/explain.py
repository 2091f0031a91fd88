"""The documentation page of each diagnostic code, as shipped with the package.

In an installed package the pages lie in ``report/codes``; in a checkout they are ``docs/codes``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cuda_lsp.model import Code


def page_url(code: Code, base: str = "") -> str | None:
    """Where the page of ``code`` is found (LSP ``codeDescription``): below ``base``, else on this machine.

    None: it is in neither place.
    """
    if base:
        return f"{base.rstrip('/')}/codes/{code.value}/"
    place = _page(code)
    return place.as_uri() if place else None


def page(code: Code) -> str:
    """The Markdown page of ``code``; FileNotFoundError when the installation is incomplete."""
    place = _page(code)
    if place is None:
        raise FileNotFoundError(f"the page of {code.value} is missing: reinstall cuda-lsp")
    return place.read_text(encoding="utf-8")


@cache
def _page(code: Code) -> Path | None:
    here = Path(__file__).resolve().parent
    for folder in (here / "codes", here.parents[1] / "docs" / "codes"):
        path = folder / f"{code.value}.md"
        if path.is_file():
            return path
    return None
