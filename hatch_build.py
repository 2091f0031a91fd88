"""Where this package comes from, told when it is built: its URLs, and its README's links made absolute.

``CUDA_LSP_REPOSITORY=https://…/cuda-lsp`` names the repository; without it nothing is claimed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!https?:|#)(?P<target>[^)]+)\)")


def absolute(text: str, repository: str, folder: str = "") -> str:
    """Markdown whose links do not hang on where it lies; ``folder``: its own, with a slash at the end."""

    def link(match: re.Match[str]) -> str:
        kind = "raw" if match["picture"] else "blob"
        target = f"{repository}/{kind}/HEAD/{folder}{match['target']}"
        return f"{match['picture']}[{match['text']}]({target})"

    return _LINK.sub(link, text)


class Metadata(MetadataHookInterface):
    """Sets ``readme`` and ``urls``."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Raises OSError without a README."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = os.environ.get("CUDA_LSP_REPOSITORY", "").rstrip("/")
        if repository:
            text = absolute(text, repository)
            metadata["urls"] = {
                "Repository": repository,
                "Documentation": f"{repository}/blob/HEAD/docs/index.md",
                "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
