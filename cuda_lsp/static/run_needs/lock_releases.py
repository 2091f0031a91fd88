"""Stores by which a kernel gives a lock back, as ``rewrites.locks`` reads it: a run takes them so too."""

from __future__ import annotations

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.walk import walk
from cuda_lsp.model import SourceRange


def lock_releases(kernel: ir.Kernel) -> frozenset[SourceRange]:
    """Where the stores stand that end regions in which a lock is held, behind a fence."""
    locked = (s for s in walk(kernel.body) if isinstance(s, ir.Block) and s.lock is not None)
    last = (s.body[-1] for s in locked if s.lock is not None and s.lock.scope is not None)
    return frozenset(s.site.range for s in last if isinstance(s, ir.Store))
