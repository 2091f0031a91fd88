"""Which races are of code that relies on lock step: before Volta, a warp executed each instruction as one.

CUDA C++ Programming Guide, independent thread scheduling. The signs of such code: lanes of one warp alone
meet, at different instructions, the kernel orders lanes nowhere itself, and either the accesses are volatile
(else compilers kept values in registers) or the block has other warps, which the kernel orders by barriers.
"""

from __future__ import annotations

from attrs import evolve

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import BarrierScope, Kernel
from cuda_lsp.ir.walk import walk
from cuda_lsp.model import Code, LaunchConfig
from cuda_lsp.static.findings.conditions import Open
from cuda_lsp.static.findings.diagnosis import Diagnosis


def told_as_such(kernel: Kernel, launch: LaunchConfig, gpu: GpuModel, found: Diagnosis) -> Diagnosis:
    """The race as ``warp-synchronous`` if it is one; on GPUs that kept lock step it is only possible."""
    if not found.lanes_only:
        return found
    if not gpu.independent_threads:
        return evolve(found.doubted(Open.LOCK_STEP), code=Code.WARP_SYNCHRONOUS)
    return evolve(found, code=Code.WARP_SYNCHRONOUS) if _relies(kernel, launch, gpu, found) else found


def _relies(kernel: Kernel, launch: LaunchConfig, gpu: GpuModel, found: Diagnosis) -> bool:
    statements = list(walk(kernel.body))
    scopes = {s.scope for s in statements if isinstance(s, ir.Barrier) and not s.implied}
    if any(scope.of_lanes for scope in scopes):
        return False
    places = {found.site.range, *(r.site.range for r in found.related[:1])}
    accesses = (s for s in statements if isinstance(s, ir.Load | ir.Store) and s.site.range in places)
    meant = BarrierScope.BLOCK in scopes and launch.threads > gpu.warp_size
    return meant or any(s.volatile for s in accesses)
