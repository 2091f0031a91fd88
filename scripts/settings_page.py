"""Writes docs/settings.md from the schema of the settings.

    python scripts/settings_page.py

``tests/unit/test_docs.py`` fails when the two differ.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cuda_lsp.config import Reach, names_of, settings_schema
from cuda_lsp.settings_file import kebab

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
HEAD = """# Settings

In `cuda-lsp.toml`, in `[tool.cuda-lsp]` of `pyproject.toml` (the nearest at or above a file), or in the
editor, where names are written `defaultBlock` for `default-block`. Later ones win: defaults, file, editor,
command line; a `// cuda-lsp:` comment above a kernel wins over all. In an editor each folder of a
workspace has its own. This page is made of the schema that
the server and the forms of editors use.

*Trust*: whether a folder that nobody trusts may set it in its file ([who trusts what](security.md)).

```toml
arch = "sm_90"
include-dirs = ["include"]
default-block = [256]

[severity]
uncoalesced-access = "off"
redundant-barrier = "hint"
```

`cuda-lsp schema --settings` prints the schema of `cuda-lsp.toml`. Editors whose language server for TOML is
Taplo (*Even Better TOML* in VS Code) complete and check the file by it, when it begins with
`#:schema ./cuda-lsp.schema.json`. VS Code completes its own settings (`cuda-lsp.arch`) without that.

| setting | values | default | | trust |
| --- | --- | --- | --- | --- |
"""


def page() -> str:
    """The text of the page."""
    rows = [
        f"| `{kebab(name)}` | {_values(shape)} | {_default(shape['default'])} | "
        f"{_cell(shape['description'])} | {_trust(name)} |"
        for name, shape in settings_schema()["properties"].items()
    ]
    return HEAD + "\n".join(rows) + "\n"


def _values(shape: dict[str, Any]) -> str:
    if "enum" in shape:
        return ", ".join(f"`{value}`" for value in shape["enum"])
    if "anyOf" in shape:
        return " or ".join(_values(one) for one in shape["anyOf"])
    kinds = shape.get("type", "any")
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)


def _default(value: Any) -> str:
    return f"`{json.dumps(value)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _trust(name: str) -> str:
    if name in names_of(Reach.MACHINE):
        return "no file at all"
    return "only where it is trusted" if name in names_of(Reach.TRUSTED) else "anybody"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
