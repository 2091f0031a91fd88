"""Kernels of one file that bear one name: a run knows them by their names, so it could take another one."""

from __future__ import annotations

from cuda_lsp.model import FileReport, KernelReport


def why_not_run(kernel: KernelReport, report: FileReport) -> str:
    """Why a kernel of this file cannot be run alone, and what to do; "": it can."""
    count = sum(other.name == kernel.name for other in report.kernels)
    if count < 2:
        return ""
    return f"{kernel.name} was not run: {count} kernels of this file are called so; rename it to check it"
