"""What comes from the client: one message after another, however broken it comes.

A header without a length, JSON that is none, parameters that are not of their type: a request gets an
error for an answer, the rest a line in the log, and the next message is read. (pygls 2.1 answers none of
them, reads bodies of any length, and does not find its way back after a header without one.)
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, BinaryIO, cast

from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest, JsonRpcParseError

log = logging.getLogger(__name__)

_LONGEST_HEADER = 4096
_LONGEST_BODY = 256 << 20
# Searched for, not matched: what stands before it is the body of a message without a length.
_LENGTH = re.compile(rb"content-length:[ \t]*([0-9]{1,9})[ \t]*\r?\n\Z", re.IGNORECASE)


async def serve(
    stream: BinaryIO,
    executor: Executor,
    take: Callable[[dict[str, Any]], None],
    refuse: Callable[[Any, JsonRpcException], None],
) -> None:
    """Read messages until the stream ends. ``take``: one that is an object; ``refuse``: its id, and why not.

    The stream is read in the executor, so that the loop can do other things meanwhile.
    """
    loop = asyncio.get_running_loop()
    while (body := await loop.run_in_executor(executor, _body, stream)) is not None:
        try:
            message: Any = json.loads(body)
        except (ValueError, RecursionError) as error:
            refuse(None, JsonRpcParseError(f"not JSON: {error}"))
            continue
        if not isinstance(message, dict):
            refuse(None, JsonRpcInvalidRequest("a message is an object"))
            continue
        take(cast("dict[str, Any]", message))


def _body(stream: BinaryIO) -> bytes | None:
    """The body of the next message that has a length; None at the end of the stream."""
    length: int | None = None
    while line := stream.readline(_LONGEST_HEADER):
        found = _LENGTH.search(line)
        if found and int(found[1]) <= _LONGEST_BODY:
            length = int(found[1])
        elif found:
            log.warning("a message of %d bytes is not read", int(found[1]))
        elif line.strip():
            continue  # another header, or the rest of something
        elif length is None:
            log.warning("a header without a length")
        else:
            body = stream.read(length)
            return body if len(body) == length else None
    return None
