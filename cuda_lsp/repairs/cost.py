"""What a change costs the kernel, or saves it: the operations that it brings in and takes out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from cuda_lsp.repairs.candidate import Edit
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form

_DEAR = (
    ("barrier of a group", re.compile(r"\b\w+\.sync\s*\(")),
    ("barrier", re.compile(r"\b__syncthreads\s*\(")),
    ("barrier of a warp", re.compile(r"\b__syncwarp\s*\(")),
    ("atomic", re.compile(r"\batomic[A-Z]\w*\s*\(")),
    ("fence", re.compile(r"\b__threadfence\w*\s*\(")),
    ("wait for copies", re.compile(r"\b(?:__pipeline_wait_prior|consumer_wait|wait)\s*\(")),
)


def cost(source: Source, edits: Sequence[Edit]) -> str:
    """``1 barrier more a round``; empty where nothing that is dear comes or goes."""
    changes: Counter[str] = Counter()
    in_loop = False
    for edit in edits:
        before = source.plain[edit.start : edit.end]
        for name, pattern in _DEAR:
            difference = len(pattern.findall(edit.text)) - len(pattern.findall(before))
            changes[name] += difference
            in_loop |= difference != 0 and any(
                s.form is Form.LOOP for s in source.statements.path(edit.start)
            )
    told = [_words(name, change) for name, change in changes.items() if change]
    return f"{', '.join(told)}{' a round' if in_loop else ''}" if told else ""


def _words(name: str, change: int) -> str:
    first, *rest = name.split(" ")
    many = f"{first}s" if abs(change) > 1 else first
    return f"{abs(change)} {' '.join((many, *rest))} {'more' if change > 0 else 'less'}"
