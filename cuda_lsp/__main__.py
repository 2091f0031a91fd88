"""``python -m cuda_lsp`` is ``cuda-lsp``, whose module path does not begin with the working folder either."""

import sys
from os.path import abspath, dirname

if not getattr(sys.flags, "safe_path", False) and sys.path[0] != dirname(dirname(abspath(__file__))):
    del sys.path[0]

from cuda_lsp.cli import main

main()
