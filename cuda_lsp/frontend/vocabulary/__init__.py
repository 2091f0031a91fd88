"""CUDA's and its libraries' words: what a call of each becomes in the kernel program."""

import cuda_lsp.frontend.lowering.kernel  # noqa: F401  (one recursion with it, loaded in its order)
