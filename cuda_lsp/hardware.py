"""What each architecture is and allows.

Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" (maximum dynamic
shared memory per block is what ``cudaFuncAttributeMaxDynamicSharedMemorySize`` may be set to).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import evolve, frozen

from cuda_lsp.model import MAX_BLOCK_THREADS, WARP_SIZE, LaunchConfig


@frozen
class GpuModel:
    """Hardware facts of one architecture. Sizes in bytes."""

    name: str
    compute_capability: tuple[int, int]
    banks: int = 32
    bank_bytes: int = 4
    warp_size: int = WARP_SIZE
    max_threads_per_block: int = MAX_BLOCK_THREADS
    max_block_dim: tuple[int, int, int] = (1024, 1024, 64)
    max_grid_dim: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    max_static_shared: int = 48 * 1024
    max_dynamic_shared: int = 99 * 1024

    @property
    def independent_threads(self) -> bool:
        """From Volta on the lanes of a warp are not in lock step."""
        return self.compute_capability >= (7, 0)


_KIB = 1024

# compute capability → dynamic shared memory a block may opt in to, in KiB
_DYNAMIC_SHARED: Mapping[tuple[int, int], int] = {
    (3, 0): 48, (3, 5): 48, (3, 7): 48, (5, 0): 48, (5, 2): 48, (5, 3): 48,
    (6, 0): 48, (6, 1): 48, (6, 2): 48, (7, 0): 96, (7, 2): 96, (7, 5): 64,
    (8, 0): 163, (8, 6): 99, (8, 7): 163, (8, 9): 99, (9, 0): 227,
    (10, 0): 227, (10, 1): 227, (10, 3): 227, (11, 0): 227, (12, 0): 99, (12, 1): 99,
}  # fmt: skip

MOST_SHARED = max(_DYNAMIC_SHARED.values()) * _KIB
"""Bytes of shared memory that a block may have on some target."""
DEFAULT_ARCH = "sm_80"
ARCHITECTURES = tuple(f"sm_{major}{minor}" for major, minor in _DYNAMIC_SHARED)
"""Those of this decade by name; older ones are known too."""


def architecture_number(arch: str) -> int | None:
    """90 of ``sm_90a``; None: it names none (``native``)."""
    digits = re.search(r"\d{1,4}", arch)
    return int(digits[0]) if digits else None


class UnknownArchitecture(ValueError):
    """The name is not one of ``sm_10`` … ``sm_121``."""


def accepts(gpu: GpuModel, launch: LaunchConfig) -> bool:
    """Whether the target carries out a launch of these extents; its shared memory is another matter."""
    extents = zip((*launch.block, *launch.least_grid), (*gpu.max_block_dim, *gpu.max_grid_dim), strict=True)
    return launch.threads <= gpu.max_threads_per_block and all(n <= most for n, most in extents)


def gpu_model(arch: str, banks: int | None = None) -> GpuModel:
    """The model of ``sm_NN`` (``compute_NN``, suffixes ``a``/``f`` accepted); ``banks`` overrides it.

    Raises UnknownArchitecture with a message for people.
    """
    match = re.fullmatch(r"(?:sm|compute)_(\d{1,2})(\d)[af]?", arch)
    if not match:
        raise UnknownArchitecture(f"architecture {arch!r} is not of the form sm_NN (like {DEFAULT_ARCH})")
    capability = (int(match[1]), int(match[2]))
    model = _of_capability(arch, capability)
    return evolve(model, banks=banks) if banks else model


def _of_capability(arch: str, capability: tuple[int, int]) -> GpuModel:
    if capability < (2, 0):
        return GpuModel(
            arch,
            capability,
            banks=16,
            max_threads_per_block=512,
            max_block_dim=(512, 512, 64),
            max_static_shared=16 * _KIB,
            max_dynamic_shared=16 * _KIB,
        )
    if capability < (3, 0):
        return GpuModel(arch, capability, max_dynamic_shared=48 * _KIB)
    if capability not in _DYNAMIC_SHARED:
        known = ", ".join(ARCHITECTURES)
        raise UnknownArchitecture(f"architecture {arch!r} is not known; known are {known}")
    return GpuModel(arch, capability, max_dynamic_shared=_DYNAMIC_SHARED[capability] * _KIB)
