"""What was found out about a PTX module stays known while the same module is asked about again.

A click that repeats the last one reads the same module (``read_module`` keeps it) and asks it the same.
Modules are told apart as objects: to compare two takes longer than most answers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from cuda_lsp.dynamic.ptx.module import PtxModule

Rest = ParamSpec("Rest")
Answer = TypeVar("Answer")
_KEPT = 32  # answers of one question: a file's kernels at two levels


def remembered(
    function: Callable[Concatenate[PtxModule, Rest], Answer],
) -> Callable[Concatenate[PtxModule, Rest], Answer]:
    """``function``, which answers from its arguments alone, asked once for the same ones."""
    known: OrderedDict[object, tuple[PtxModule, Answer]] = OrderedDict()

    @wraps(function)
    def asked(module: PtxModule, *args: Rest.args, **kwargs: Rest.kwargs) -> Answer:
        key = id(module), args, tuple(kwargs.items())
        found = known.get(key)
        if found is None:  # a module that is kept here keeps its number
            found = known[key] = module, function(module, *args, **kwargs)
            while len(known) > _KEPT:
                known.popitem(last=False)
        return found[1]

    return asked
