"""Which assumed launches a kernel's shared arrays are made for.

A block whose threads surely leave a shared array is not the one that its author had in mind: a smaller one
is assumed instead (``assumed.smaller``). Neither it nor one whose threads read what none of them has written
has a say in what other plausible launches show. Launches that the source fixes are never doubted here.
"""

from __future__ import annotations

from collections.abc import Callable

from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import LaunchConfig, Status
from cuda_lsp.static.assumed import smaller
from cuda_lsp.static.diagnostics.bounds import bounds_findings, uninitialised_findings
from cuda_lsp.static.execution.trace import Trace


def leaves_arrays(trace: Trace) -> bool:
    """Some thread surely accesses shared memory outside the array."""
    return any(finding.status is Status.PROVED for finding in bounds_findings(trace))


def misuses_arrays(trace: Trace) -> bool:
    """Some thread surely leaves a shared array, or reads what no thread has written there."""
    return leaves_arrays(trace) or any(f.status is Status.PROVED for f in uninitialised_findings(trace))


def fitted(
    kernel: Kernel, launch: LaunchConfig, trace: Trace, run: Callable[[LaunchConfig], Trace]
) -> tuple[LaunchConfig, Trace]:
    """The launch and its execution, or a smaller block's when this one's threads leave shared arrays."""
    if not launch.assumed or not leaves_arrays(trace):
        return launch, trace
    for other in smaller(kernel, launch):
        there = run(other)
        if not there.late and not leaves_arrays(there):
            return other, there
    return launch, trace
