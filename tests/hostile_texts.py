"""Texts that no budget of ours knows and that clang does not come to an end with."""

from __future__ import annotations

from pathlib import Path

ENDLESS = (
    "int f0();\n"
    + "".join(f"int f{n + 1}(int a = +f{n}(), int b = +f{n}());\n" for n in range(60))
    + "int all = f60();\n"
)
"""Default arguments that call each other: 4^60 calls. The sign hides them from ``excess/doubling.py``."""

_HANDED = "".join(f"#define H{{n}}{k + 1}(a, b) H{{n}}{k}(a, b)\n" for k in range(6))
_LEVEL = "#define H{n}0(a, b) a##b\n" + _HANDED + "#define M{m} H{n}6(M, {n}) H{n}6(M, {n})\n"
LARGE = (
    "#define M0 1 +\n"
    + "".join(_LEVEL.format(n=n, m=n + 1) for n in range(28))
    + "int large() { return M28 1; }\n"
)
"""Macros whose names others put together, handed on oftener than ``excess/pasted.py`` follows: gigabytes."""


def written(folder: Path, **texts: str) -> list[Path]:
    """Files of these names with these texts."""
    paths = [folder / f"{name}.cu" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text)
    return paths
