"""The verdicts of a file for a client that shows them: the notification ``cuda-lsp/fileStatus``.

Not part of the protocol: clients that do not know it ignore it. Described in ``docs/editors/README.md``.
"""

from __future__ import annotations

from typing import Any

from cuda_lsp.model import FileReport

METHOD = "cuda-lsp/fileStatus"


def file_status(uri: str, report: FileReport) -> dict[str, Any]:
    """Parameters of the notification. ``refined``: the solver has finished with every kernel."""
    return {
        "uri": uri,
        "version": report.version,
        "refined": all(kernel.refined for kernel in report.kernels),
        "kernels": [
            {"name": kernel.name, "verdict": kernel.verdict.value, "reasons": list(kernel.reasons)}
            for kernel in report.kernels
        ],
    }
