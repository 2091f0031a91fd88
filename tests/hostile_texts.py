"""Texts that no budget of ours knows and that clang does not come to an end with."""

from __future__ import annotations

ENDLESS = (
    "int f0();\n"
    + "".join(f"int f{n + 1}(int a = f{n}(), int b = f{n}());\n" for n in range(60))
    + "int all = f60();\n"
)
"""Default arguments that call each other: 2^60 calls."""

LARGE = (
    "#define M0 1 +\n"
    + "".join(f"#define C{n}(a, b) a##b\n#define M{n + 1} C{n}(M, {n}) C{n}(M, {n})\n" for n in range(28))
    + "int large() { return M28 1; }\n"
)
"""Macros whose names others put together: gigabytes of tokens."""
