"""Writes the server's settings and version into the VS Code extension's package.json: there is one of each.

    python scripts/extension_settings.py

``tests/unit/test_extension_settings.py`` fails when the two differ.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cuda_lsp import __version__
from cuda_lsp.config import Reach, names_of, settings_schema

PACKAGE = Path(__file__).resolve().parents[1] / "vscode-extension/package.json"

#: What the extension itself reads; the server never sees them.
OF_THE_EXTENSION = (
    "cuda-lsp.server.command", "cuda-lsp.server.wheels", "cuda-lsp.trace.server", "cuda-lsp.headersAsCuda",
)  # fmt: skip
#: Not a project's to say.
MACHINE = names_of(Reach.MACHINE)
#: Names of programs, paths and compiler flags: not taken from a folder that is not trusted.
RESTRICTED = ("server.command", "server.wheels", *names_of(Reach.TRUSTED))


def contributed() -> dict[str, Any]:
    """The settings as VS Code wants them declared, by full name."""
    return {
        f"cuda-lsp.{name}": {**shape, "scope": "machine" if name in MACHINE else "resource"}
        for name, shape in settings_schema()["properties"].items()
    }


def main() -> None:
    package = json.loads(PACKAGE.read_text(encoding="utf-8"))
    configuration = package["contributes"]["configuration"]
    own = {name: configuration["properties"][name] for name in OF_THE_EXTENSION}
    configuration["properties"] = {**own, **contributed()}
    trust = package["capabilities"]["untrustedWorkspaces"]
    trust["restrictedConfigurations"] = [f"cuda-lsp.{name}" for name in RESTRICTED]
    package["version"] = __version__
    PACKAGE.write_text(json.dumps(package, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
