"""What of a module is instrumented, and what is known of it before: its variables, how fine accesses are."""

from __future__ import annotations

import re

from attrs import evolve

from cuda_lsp.dynamic.instrumentation.matrix_probes import narrowest_part
from cuda_lsp.dynamic.ptx.module import Declaration, PtxFunction, PtxModule, PtxVariable, Verbatim
from cuda_lsp.dynamic.runs import PtxSite, SiteKind
from cuda_lsp.model import Space


def alone(module: PtxModule, entry: str) -> PtxModule:
    """The module without the other kernels, which would only take the assembler's time.

    One that something else names stays: it may be launched from the device.
    """
    kept = [item for item in module.items if not _is_other_entry(item, entry)]
    functions = (item for item in kept if isinstance(item, PtxFunction))
    words = {word for f in functions for i in f.instructions() for word in re.findall(r"[\w$]+", i.operands)}
    words |= {word for v in kept if isinstance(v, PtxVariable) for word in re.findall(r"[\w$]+", v.text)}
    items = (i for i in module.items if not _is_other_entry(i, entry) or getattr(i, "name", "") in words)
    return evolve(module, items=tuple(items))


def _is_other_entry(item: PtxFunction | PtxVariable | Verbatim, entry: str) -> bool:
    return isinstance(item, PtxFunction) and item.entry and item.name != entry


def hoisted(module: PtxModule) -> PtxModule:
    """The module with all its shared variables, and what functions keep in global memory, in front."""
    front: list[PtxFunction | PtxVariable | Verbatim] = []
    items: list[PtxFunction | PtxVariable | Verbatim] = []
    for item in module.items:
        if isinstance(item, PtxVariable) and item.space == "shared":
            front.append(item)
            continue
        if (
            isinstance(item, PtxVariable) and item.space == "global" and not item.linkage
        ):  # ranges are asked for
            item = evolve(item, linkage="visible", text=f".visible {item.text}")
        if isinstance(item, PtxFunction) and item.body is not None:
            moved = [*item.variables("shared"), *item.variables("global")]
            front.extend(moved)
            kept = (s for s in item.body if not (isinstance(s, Declaration) and s.variable in moved))
            item = item.with_body(tuple(kept))
        items.append(item)
    return evolve(module, items=(*front, *items))


def finest_granule(sites: tuple[PtxSite, ...], spaces: tuple[Space | None, ...]) -> int:
    """log2 of the narrowest access to these spaces (at most 16 bytes): no access covers part of a granule."""
    widths = [s.bytes for s in sites if s.kind is SiteKind.ACCESS and s.space in spaces and s.bytes]
    tiles = [narrowest_part(s) for s in sites if s.kind is SiteKind.MATRIX and s.space in (*spaces, None)]
    narrowest = min(widths + tiles, default=4)
    return min(4, max(0, narrowest.bit_length() - 1))


def shared_variables(module: PtxModule, entry: str) -> tuple[PtxVariable, ...]:
    """Those with a size that the entry or a function it may call names."""
    functions = [module.functions[entry], *(f for f in module.functions.values() if not f.entry)]
    text = " ".join(i.operands for f in functions for i in f.instructions())
    named = set(re.findall(r"[\w$]+", text))
    own = [v for f in functions for v in f.variables("shared")]
    shared = [v for v in module.variables.values() if v.space == "shared"]
    return tuple(v for v in (*own, *shared) if v.name in named and v.size)
