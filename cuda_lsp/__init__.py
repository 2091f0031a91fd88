"""cuda-lsp: CUDA data races and shared-memory bank conflicts, as you type."""

__version__ = "0.1.0"
