"""A translated kernel: basic blocks as Python functions, and what threads wait for between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from attrs import define, field, frozen

from cuda_lsp.dynamic.ptx.flatten import FlatKernel
from cuda_lsp.dynamic.ptx.module import PtxModule

Run = Callable[[Any, list[Any], Any], Any]
"""A block: (the services, the registers that outlive it, the threads that execute it or None for all) → its
condition, the number of its target in a table, or None."""


@frozen
class Wait:
    """Lanes wait at the start of a block: ``mask`` names them (constant, or a register's number).

    ``anywhere``: any other such wait of the warp will do (``bar.warp.sync``), not only this one.
    """

    mask: int | None
    register: int = -1
    anywhere: bool = False


@frozen
class BarrierOp:
    """A block barrier: operands as PTX texts of constants or register numbers. ``arrive``: does not wait.

    ``reduce``: ``popc``, ``and`` or ``or`` over a predicate, its result register in ``result``. ``cluster``:
    of all blocks of a cluster; ``relaxed``: what its threads did before is not told to others.
    """

    id: int | str
    count: int | str | None
    arrive: bool = False
    reduce: str | None = None
    predicate: str | None = None
    result: str | None = None
    cluster: bool = False
    relaxed: bool = False


@frozen
class Block:
    """``kind``: how it ends: next, jump, branch, table, exit, barrier. ``last``: its last instruction.

    ``leads_back``: to itself or to an earlier block. ``source``: the text of ``run``, a function ``name``;
    ``names``: what is known in it.
    """

    kind: str
    targets: tuple[int, ...]
    wait: Wait | None
    barrier: BarrierOp | None
    last: int
    leads_back: bool
    source: str
    name: str
    names: dict[str, Any]

    @cached_property
    def run(self) -> Run:
        """Made when a launch first comes to the block: of large kernels to few of them."""
        exec(compile(self.source, f"<{self.name}>", "exec"), self.names)  # our own, of parsed instructions
        return self.names[self.name]


@define
class Program:
    """A translated kernel. ``sites``: instruction number → (function, index) of the module, and its calls.

    ``grid_wide``: its blocks wait for one another as those of a cooperative launch may: all run together.
    ``polls``: threads may wait for one another in a loop. ``fetches``: it reads textures. ``constants``: what
    names in the text of its blocks stand for. ``tables``: the program as the C engine reads it.
    """

    kernel: FlatKernel
    module: PtxModule
    blocks: list[Block]
    registers: list[str]  # how each register that outlives its block is stored
    numbers: Mapping[str, int]
    sites: list[tuple[str, int, tuple[tuple[str, int], ...]]] = field(
        factory=list[tuple[str, int, tuple[tuple[str, int], ...]]]
    )
    grid_wide: bool = False
    polls: bool = False
    fetches: bool = False
    constants: Mapping[str, Any] = field(factory=dict[str, Any], repr=False)
    tables: Any = field(default=None, repr=False)
