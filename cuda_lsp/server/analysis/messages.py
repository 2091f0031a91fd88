"""What goes between the server and the analysis process besides reports, pickled.

The server says ``(number, settings, log level)``, then ``(number, action, *arguments)``; numbers grow. What
it hears is a ``Sent`` report, ``Failed``, ``Closed``, ``Log``, or ``(number, answer)``.
"""

from __future__ import annotations

from attrs import frozen

MEMORY_LIMIT = 2 << 30
"""Bytes of data; a normal process has 150 to 400 MB."""


@frozen
class Failed:
    """There is no report of the text of message ``number``."""

    uri: str
    number: int
    reason: str


@frozen
class Closed:
    """Nothing more will come of this document, unless it is opened again."""

    uri: str


@frozen
class Failure:
    """Instead of an answer: work that somebody asked for has failed."""

    reason: str


@frozen
class Log:
    """A line for the server's log."""

    name: str
    level: int
    text: str
