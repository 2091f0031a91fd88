"""What the analysis process says of texts that a document does not have; remembered for its version."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from attrs import define, evolve, field

from cuda_lsp.model import FileReport
from cuda_lsp.server.session import Session

_LATE_S = 2.0  # behind ``until``, for first tiers: a repair may be told without its proof

_T = TypeVar("_T")


@define
class Trials:
    """Of one version of a document; for several threads. ``until``: when nobody waits for proofs any more.

    Proofs that came too late are known to the analysis process when they are asked for again.
    """

    _session: Session
    _uri: str
    _version: int | None
    _until: float = 0.0  # of ``time.monotonic``
    _first: dict[str, FileReport] = field(factory=dict[str, FileReport])
    _finished: dict[str, FileReport] = field(factory=dict[str, FileReport])
    _stopped: Future[None] = field(factory=Future[None])

    def lasting(self, seconds: float) -> Trials:
        """The same for somebody who waits so long from now on."""
        return evolve(self, until=time.monotonic() + seconds, stopped=Future[None]())

    async def used(self, work: Callable[..., _T], *arguments: Any) -> _T:
        """What work with these trials (its last argument) comes to; they end with who waits for it."""
        try:
            return await asyncio.to_thread(work, *arguments, self)
        finally:
            if not self._stopped.done():
                self._stopped.set_result(None)

    def first(self, text: str) -> FileReport | None:
        """What the first tier says."""
        known = self._finished.get(text) or self._first.get(text)
        left = self._left + _LATE_S
        if known is None and left > 0:
            known = self._tried(text, left, settled=False)
            if known is not None:
                self._first[text] = known
        return known

    def finished(self, text: str) -> FileReport | None:
        """What both tiers say."""
        known = self._finished.get(text)
        if known is None and self._left > 0:
            known = self._tried(text, self._left, settled=True)
            if known is not None:
                self._finished[text] = known
        return known

    def _tried(self, text: str, seconds: float, *, settled: bool) -> FileReport | None:
        if self._stopped.done():
            return None
        return self._session.tried(
            self._uri, self._version, text, settled=settled, seconds=seconds, stopped=self._stopped
        )

    @property
    def _left(self) -> float:
        return self._until - time.monotonic()
