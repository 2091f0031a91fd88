"""The card that a benchmark runs on, and results that outlive an interruption.

With ``CUDA_LSP_CARD=emulated`` in the environment it is the emulated card of the tests, and each benchmark
does a little of everything: so that what needs a GPU can be tried without one.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from attrs import define
from device_session import AGAIN, EMULATED

from cuda_lsp.dynamic.check import Engines
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.gpu import engine as gpu
from cuda_lsp.dynamic.gpu.engine import GpuEngine
from cuda_lsp.dynamic.job import EngineKind
from cuda_lsp.dynamic.runs import Engine

T = TypeVar("T")


def open_engine() -> GpuEngine:
    """The GPU of this machine, or the emulated card. Raises EngineUnavailable."""
    if not EMULATED:
        return gpu.open_engine()
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    from emulated_card import emulated_engine

    return emulated_engine(find_toolkit())


def few(items: Sequence[T], count: int = 1) -> Sequence[T]:
    """All of them; on the emulated card the first."""
    return items[:count] if EMULATED else items


class CardEngines(Engines):
    """For ``check``: every GPU job runs in this process on ``open_engine()``."""

    def __init__(self) -> None:
        super().__init__()
        self.card = open_engine()

    def choose(self, kind: EngineKind, nvcc: Path | None = None) -> tuple[Engine, tuple[str, ...]]:
        return super().choose(kind, nvcc) if kind is EngineKind.EMULATOR else (self.card, ())


@define
class Kept:
    """Rows of one part of a result file, written after each of them. ``head``: what stands beside them.

    A row is known by its ``key``; with ``resume`` those of an earlier run stay, others begin anew.
    """

    path: Path
    part: str
    key: str
    head: dict[str, Any]
    rows: list[dict[str, Any]]

    @classmethod
    def at(cls, path: Path, part: str, key: str, resume: bool, **head: Any) -> Kept:
        rows = json.loads(path.read_text()).get(part, []) if resume and path.exists() else []
        return cls(path, part, key, head, rows)

    def add(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
        """One more row, unless there is one; what went wrong is a row, too (``problem``)."""
        if any(row[self.key] == name for row in self.rows):
            return None
        try:
            row = {self.key: name, **make()}
        except Exception as error:  # noqa: BLE001  whatever it is, the next can be measured
            row = {self.key: name, "problem": f"{type(error).__name__}: {error}"[:500]}
        self.rows.append(row)
        self.write()
        print(json.dumps(row)[:1000], flush=True)
        return row

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        scratch = self.path.with_suffix(".part")
        scratch.write_text(json.dumps(self.head | {self.part: self.rows}, indent=1) + "\n")
        scratch.replace(self.path)

    @property
    def good(self) -> list[dict[str, Any]]:
        """The rows without a problem."""
        return [row for row in self.rows if not row.get("problem")]


def begin_again(usable: bool) -> None:
    """Leave at once where a kernel hung or faulted: the rest needs a new process."""
    if not usable:
        print("the GPU is spent for this process", flush=True)
        sys.stdout.flush()
        os._exit(AGAIN)
