"""The language server: findings → editor."""

from __future__ import annotations

import gc
import logging
import sys
from pathlib import Path

__all__ = ["serve"]


def _is_no_late_cancel(record: logging.LogRecord) -> bool:
    """A request that was answered before its cancellation came is nobody's fault."""
    return not record.getMessage().startswith("Cancel notification for unknown message id")


def serve(*, log_file: Path | None = None, log_level: str = "warning") -> int:
    """Speak LSP over stdio until the client leaves. Logs never go to stdout."""
    handler = (
        logging.FileHandler(log_file, encoding="utf-8") if log_file else logging.StreamHandler(sys.stderr)
    )
    logging.basicConfig(
        handlers=[handler],
        level=log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("pygls.protocol.json_rpc").addFilter(_is_no_late_cancel)
    # The loop writes what the analysis found while that goes on: it must not wait 5 ms for its turn.
    sys.setswitchinterval(0.001)
    from cuda_lsp.server.analysis.process import AnalysisProcess

    process = AnalysisProcess()  # it gets ready while we do
    from cuda_lsp.server.wiring import create_server

    server = create_server(process)
    gc.freeze()  # what was imported is not looked through again
    server.run()
    return 0
