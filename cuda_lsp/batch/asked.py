"""What a run asks of each file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen


@frozen
class Asked:
    """``overrides``: settings that come before those of ``settings_file``, or else of the file's folder.

    ``solver`` False: the first tier only, whatever the settings say.
    """

    overrides: Mapping[str, Any] = field(factory=dict[str, Any])
    settings_file: Path | None = None
    solver: bool = True
