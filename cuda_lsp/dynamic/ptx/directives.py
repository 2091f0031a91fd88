"""What the directives between a kernel's parameters and its body say of its launches.

Source: PTX ISA 9.0, chapter 11.4.5 "Cluster dimension directives".
"""

from __future__ import annotations

from cuda_lsp.dynamic.ptx.module import PtxFunction
from cuda_lsp.model import Dim3


def cluster_of(kernel: PtxFunction) -> Dim3 | None:
    """The blocks of a cluster that the kernel itself demands; None: its launch says how many."""
    for directive in kernel.directives:
        name, _, extents = directive.partition(" ")
        if name == ".reqnctapercluster":
            x, y, z = (*(int(extent) for extent in extents.split(",")), 1, 1)[:3]
            return x, y, z
    return None


def counts_clusters(kernel: PtxFunction) -> bool:
    """Whether its grids are given in clusters, not in blocks."""
    return any(directive.startswith(".blocksareclusters") for directive in kernel.directives)
