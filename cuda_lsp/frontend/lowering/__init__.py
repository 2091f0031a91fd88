"""libclang's cursors become the kernel program, everything that a kernel calls inlined.

Most modules here and in ``vocabulary`` are one recursion. It is always entered by ``kernel``: they are
loaded in one order, whichever is imported first.
"""

from cuda_lsp.frontend.lowering import kernel as kernel
