"""``python -m cuda_lsp`` is ``cuda-lsp``."""

from cuda_lsp.cli import main

main()
