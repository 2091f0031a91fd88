"""A search through numbered cases for a while: its arguments, its counts, its exit status."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn


def arguments(doc: str | None) -> argparse.Namespace:
    """Of the command line; ``doc``: of its module."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0] if doc else None)
    parser.add_argument("--seconds", type=float, default=60.0, help="begin no case after so many")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int, help="one case")
    return parser.parse_args()


def search(
    given: argparse.Namespace,
    cases: str,
    failures: Callable[[Iterable[int]], Iterator[tuple[int, str]]],
    shown: int,
) -> NoReturn:
    """Print what fails (``shown`` letters of each) and how many ``cases`` there were; exit with 1 for any."""
    until, done, failed = time.monotonic() + given.seconds, 0, 0

    def numbers() -> Iterator[int]:
        nonlocal done
        while (time.monotonic() < until) if given.only is None else not done:
            done += 1
            yield given.first + done - 1 if given.only is None else given.only

    for number, problem in failures(numbers()):
        failed += 1
        print(f"{number}: {problem[:shown]}", flush=True)
    print(f"{done} {cases} from {given.first}, {failed} failed, {given.seconds:.0f} s")
    sys.exit(bool(failed))
