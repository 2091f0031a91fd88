"""The scalars that a launch leaves open, and natural values for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from cuda_lsp.ir.program import Kernel
from cuda_lsp.ir.types import Int
from cuda_lsp.model import LaunchConfig
from cuda_lsp.static.launches.told_limits import as_told

_STRIDE = re.compile(r"\A(.*strides?_?)\[(\d+)\]\Z")


def free_scalars(kernel: Kernel, launch: LaunchConfig) -> tuple[str, ...]:
    """Integer parameters that the launch leaves open."""
    return tuple(
        p.name for p in kernel.params if isinstance(p.type, Int) and p.name and p.name not in launch.arguments
    )


def sample(kernel: Kernel, launch: LaunchConfig) -> Mapping[str, int] | None:
    """Natural values for the free scalars; None when there are none.

    Different powers of two beyond the block: extents cover all threads, pitches are wide enough, and no
    accidental equality hides or makes a race. What the host says of them is kept to, where that is simple.
    """
    free = free_scalars(kernel, launch)
    if not free:
        return None
    base = 1 << (2 * launch.threads - 1).bit_length()
    values = {name: base << min(i, 8) for i, name in enumerate(free)}
    values = as_told(kernel, launch, {**launch.arguments, **values, **enumerators(kernel, free, 0)})
    return laid_out(kernel, free, values)


def laid_out(kernel: Kernel, free: Iterable[str], values: Mapping[str, int]) -> Mapping[str, int]:
    """The values, with such for all strides of one array (``t.strides_[2]``) as a packed tensor has.

    The last axis is the innermost, or the first where that is the one which takes no stride. What is true or
    false is 1 or 0.
    """
    groups: dict[str, list[int]] = {}
    for name in free:
        match = _STRIDE.match(name)
        if match is not None:
            groups.setdefault(match[1], []).append(int(match[2]))
    extent = max((values[name] for name in free if not _STRIDE.match(name)), default=0)
    types = {var.name: var.type for var in kernel.params}
    strides: dict[str, int] = {}
    for array, axes in groups.items():
        outwards = {axis: axis if 0 not in axes else max(axes) - axis for axis in axes}
        made = {f"{array}[{axis}]": max(1, extent) ** n for axis, n in outwards.items()}
        whole = all(isinstance(t := types[name], Int) and n <= t.maximum for name, n in made.items())
        strides |= made if whole and len(axes) > 1 else {}
    return {**values, **strides, **_truths(kernel, values)}


def _truths(kernel: Kernel, values: Mapping[str, int]) -> dict[str, int]:
    """The values that ``bool`` parameters have of these numbers."""
    types = ((p.name, p.type) for p in kernel.params if p.name in values)
    return {name: type.wrap(values[name]) for name, type in types if isinstance(type, Int) and type.boolean}


def enumerators(kernel: Kernel, free: Iterable[str], turn: int) -> dict[str, int]:
    """Values for those of the free scalars that are of an enumeration, others each turn."""
    named = ((name, kernel.enumerated[name]) for name in free if name in kernel.enumerated)
    return {name: values[turn % len(values)] for name, values in named}
