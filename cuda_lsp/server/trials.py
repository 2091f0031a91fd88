"""What the analysis process says of texts that a document does not have; remembered for its version."""

from __future__ import annotations

import time

from attrs import define, field

from cuda_lsp.model import FileReport
from cuda_lsp.server.session import Session

_LATE_S = 2.0  # behind ``until``, for first tiers: a repair may be told without its proof


@define
class Trials:
    """Of one version of a document; for several threads. ``until``: when nobody waits for proofs any more.

    Proofs that came too late are known to the analysis process when they are asked for again.
    """

    _session: Session
    _uri: str
    _version: int | None
    until: float = 0.0  # of ``time.monotonic``
    _first: dict[str, FileReport] = field(factory=dict[str, FileReport])
    _finished: dict[str, FileReport] = field(factory=dict[str, FileReport])

    def first(self, text: str) -> FileReport | None:
        """What the first tier says."""
        known = self._finished.get(text) or self._first.get(text)
        left = self._left + _LATE_S
        if known is None and left > 0:
            known = self._session.tried(self._uri, self._version, text, seconds=left)
            if known is not None:
                self._first[text] = known
        return known

    def finished(self, text: str) -> FileReport | None:
        """What both tiers say."""
        known = self._finished.get(text)
        if known is None and self._left > 0:
            known = self._session.tried(self._uri, self._version, text, settled=True, seconds=self._left)
            if known is not None:
                self._finished[text] = known
        return known

    @property
    def _left(self) -> float:
        return self.until - time.monotonic()
