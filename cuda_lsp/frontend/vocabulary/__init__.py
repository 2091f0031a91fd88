"""CUDA's and its libraries' words: what a call of each becomes in the kernel program."""

from cuda_lsp.frontend.lowering import kernel as kernel
