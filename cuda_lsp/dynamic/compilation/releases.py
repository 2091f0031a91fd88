"""Plain stores that give a lock back, made as strong as their author means them.

``while (atomicCAS(lock, 0, 1) != 0); …; __threadfence(); *lock = 0;`` is accepted as order by the analysis
(``docs/semantics.md``). CUDA calls the last store weak, so to whoever watches a run it would race with each
atomic that tries the lock, and would publish nothing. The instruction becomes a relaxed one, which PTX lets
synchronise behind a fence (PTX ISA, 8.8 "Release and Acquire Patterns").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from attrs import evolve

from cuda_lsp.dynamic.compilation.compile import CompiledModule
from cuda_lsp.dynamic.ptx.module import Instruction, PtxFunction, Statement
from cuda_lsp.dynamic.ptx.opcodes import STRONG
from cuda_lsp.dynamic.ptx.writer import write_module
from cuda_lsp.dynamic.runs import PtxSite
from cuda_lsp.model import Mode, SourceRange


def with_releases(
    compiled: CompiledModule, sites: tuple[PtxSite, ...], places: Collection[SourceRange]
) -> tuple[CompiledModule, tuple[PtxSite, ...]]:
    """A kernel's code and its sites, the stores at ``places`` being relaxed ones of the device's scope.

    The new code says no more where it stands in the source: the sites know it.
    """
    chosen: dict[str, set[int]] = defaultdict(set)
    for site in sites:
        if _stands_at(site, places):
            chosen[site.function].add(site.index)
    if not chosen:
        return compiled, sites
    items = tuple(
        evolve(item, body=_relaxed(item.body, chosen[item.name]))
        if isinstance(item, PtxFunction) and item.body is not None and item.name in chosen
        else item
        for item in compiled.module.items
    )
    told = tuple(
        evolve(site, mode=Mode.ATOMIC, opcode=_strong(site.opcode)) if _stands_at(site, places) else site
        for site in sites
    )
    return evolve(compiled, ptx=write_module(evolve(compiled.module, items=items))), told


def _stands_at(site: PtxSite, places: Collection[SourceRange]) -> bool:
    """Whether it is a plain store of one word there: PTX has no strong one of several."""
    plain = site.mode is Mode.WRITE and _strong(site.opcode) != site.opcode
    return plain and site.site is not None and site.site.range in places


def _relaxed(body: Sequence[Statement], chosen: Collection[int]) -> tuple[Statement, ...]:
    return tuple(
        evolve(s, opcode=_strong(s.opcode)) if isinstance(s, Instruction) and s.index in chosen else s
        for s in body
    )


def _strong(opcode: str) -> str:
    """``st.global.u32`` and ``st.volatile.global.u32`` become ``st.relaxed.gpu.global.u32``."""
    name, *words = opcode.split(".")
    if name != "st" or {"v2", "v4", "v8", *STRONG} & set(words):
        return opcode
    return ".".join((name, "relaxed", "gpu", *(word for word in words if word not in ("weak", "volatile"))))
