"""One libclang translation unit: made, read again with each text, and made anew where libclang gave up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuda_lsp.frontend import toolchain
from cuda_lsp.frontend.around import Around


def read(
    unit: Any, around: Around, arguments: Sequence[str], buffers: Sequence[tuple[str, str]], options: int
) -> Any:
    """The unit that holds the texts ``buffers`` (path, text), with ``arguments`` besides the file's flags.

    ``unit``: the one of an earlier text, which is dead when this raises; None: there is none. A precompiled
    shim that clang cannot use is removed, and ``around`` does without. Raises LoadError, ValueError or
    TypeError when libclang takes nothing of it.
    """
    while True:
        before = unit
        try:
            if unit is None:
                unit = toolchain.index().parse(
                    str(around.main),
                    args=[*around.flags, *arguments],
                    unsaved_files=buffers,
                    options=options,
                )
            else:
                unit.reparse(buffers, options=options)
            if toolchain.shim_is_damaged(around.flags, unit):
                raise toolchain.LoadError("the precompiled header is damaged")
            return unit
        except (toolchain.LoadError, ValueError, TypeError):
            unit = None
            if before is not None:
                continue  # what failed may be what the unit keeps of older texts
            if "-include-pch" not in around.flags:
                raise
            around.flags = toolchain.without_damaged_shim(around.flags)
