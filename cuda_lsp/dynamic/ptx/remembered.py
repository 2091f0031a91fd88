"""What was found out about a PTX module stays known while the same module is asked about again.

A click that repeats the last one reads the same module (``read_module`` keeps it) and asks it the same.
Modules are told apart as objects: to compare two takes longer than most answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import TypeVar

from attrs import field, frozen

from cuda_lsp.dynamic.ptx.module import PtxModule

About = TypeVar("About", bound=Hashable)
Answer = TypeVar("Answer")
_KEPT = 32  # answers of one question: a file's kernels at two levels


@frozen
class _Same:
    """A module that is no other's equal; who keeps it keeps its number."""

    module: PtxModule = field(eq=id)


def remembered(function: Callable[[PtxModule, About], Answer]) -> Callable[[PtxModule, About], Answer]:
    """``function``, which answers from its arguments alone, asked once for the same ones."""

    @lru_cache(_KEPT)
    def answered(same: _Same, about: About) -> Answer:
        return function(same.module, about)

    @wraps(function)
    def asked(module: PtxModule, about: About) -> Answer:
        return answered(_Same(module), about)

    return asked
