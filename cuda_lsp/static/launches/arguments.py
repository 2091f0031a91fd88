"""The scalars that a launch leaves open, and natural values for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cuda_lsp.ir.program import Kernel
from cuda_lsp.ir.types import Int
from cuda_lsp.model import LaunchConfig


def free_scalars(kernel: Kernel, launch: LaunchConfig) -> tuple[str, ...]:
    """Integer parameters that the launch leaves open."""
    return tuple(
        p.name for p in kernel.params if isinstance(p.type, Int) and p.name and p.name not in launch.arguments
    )


def sample(kernel: Kernel, launch: LaunchConfig) -> Mapping[str, int] | None:
    """Natural values for the free scalars; None when there are none.

    Different powers of two beyond the block: extents cover all threads, pitches are wide enough, and no
    accidental equality hides or makes a race.
    """
    free = free_scalars(kernel, launch)
    if not free:
        return None
    base = 1 << (2 * launch.threads - 1).bit_length()
    values = {name: base << min(i, 8) for i, name in enumerate(free)}
    return {**launch.arguments, **values, **enumerators(kernel, free, 0)}


def enumerators(kernel: Kernel, free: Iterable[str], turn: int) -> dict[str, int]:
    """Values for those of the free scalars that are of an enumeration, others each turn."""
    named = ((name, kernel.enumerated[name]) for name in free if name in kernel.enumerated)
    return {name: values[turn % len(values)] for name, values in named}
