"""Texts that nobody should write, through the first tier: nothing crashes, raises, hangs or swells.

    python tests/fuzz/sources.py --count 10000 [--first 0] [--jobs 2] [--seconds 60] [--save FOLDER]
    python tests/fuzz/sources.py --only NUMBER

Each text has a number (``mutation.text_of``). They run in processes of their own, several texts a process, so
that a crash costs one text. A failure is a death, an exception, an "internal error" in the report, more than
``MOST_SECONDS`` of CPU or ``MOST_BYTES`` of memory. Prints counts and the numbers that failed; exits with 1
if there are any. A failure that was mended is kept as a file in ``seeds``, which ``test_fuzz`` reads.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from mutation import text_of

MOST_SECONDS = 10.0  # of CPU
MOST_BYTES = 1 << 30  # resident
_HANGS = 90.0  # seconds of the clock after which a text is taken to hang
_TOGETHER = 2000  # texts of one process
SEEDS = Path(__file__).resolve().parent / "seeds"


def analysed(text: str) -> str | None:
    """What is wrong with how a text was analysed; None: nothing."""
    from cuda_lsp.config import Settings
    from cuda_lsp.static.analyze import Analyzer

    analyzer = Analyzer(Settings(solver=False), quick=True)
    started = time.process_time()
    try:
        report = analyzer.update(Path("/fuzz/k.cu"), text, 1)
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"{type(error).__name__}: {error}"
    finally:
        analyzer.shutdown()
    said = [error.message for error in report.errors]
    said += [reason for kernel in report.kernels for reason in kernel.reasons]
    seconds = time.process_time() - started
    internal = next((words for words in said if "internal error" in words), None)
    return internal or (f"{seconds:.1f} s of CPU" if seconds > MOST_SECONDS else None)


def _serve(pipe: Connection, check: Callable[[Any], str | None]) -> None:
    while True:
        problem = check(pipe.recv())
        pipe.send((problem, _most_resident()))


def _most_resident() -> int:
    """Bytes. (What ``getrusage`` tells of a process includes its parent until it runs its own program.)"""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


class Child:
    """A process that checks texts, or whatever ``check`` takes; started again when one was its last."""

    def __init__(self, check: Callable[[Any], str | None] = analysed) -> None:
        self.check = check
        self.process: Any = None
        self.done = 0

    def ask(self, text: Any) -> str | None:
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, theirs = context.Pipe()
            self.process = context.Process(target=_serve, args=(theirs, self.check), daemon=True)
            self.process.start()
            theirs.close()
            self.done = 0
        try:
            self.pipe.send(text)
            if not self.pipe.poll(_HANGS):
                self.end()
                return f"it hangs: no answer in {_HANGS:.0f} s"
            problem, used = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            status = self.process.exitcode
            self.end()
            return f"the process died (status {status})"
        self.done += 1
        if used > MOST_BYTES or self.done >= _TOGETHER:
            self.end()
        return problem or (f"{used >> 20} MiB" if used > MOST_BYTES else None)

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.process = None


def failures(numbers: Iterable[int]) -> Iterator[tuple[int, str]]:
    """The texts that fail, and how."""
    child = Child()
    for number in numbers:
        problem = child.ask(text_of(number))
        if problem is not None:
            yield number, problem
    child.end()


def _part(first: int, count: int, step: int, until: float, told: Any) -> None:
    done = 0

    def numbers() -> Iterator[int]:
        nonlocal done
        for done, number in enumerate(range(first, first + count, step), 1):
            if time.monotonic() > until:
                done -= 1
                return
            yield number

    for failure in failures(numbers()):
        told.put(failure)
    told.put(done)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many")
    parser.add_argument("--only", type=int, help="one text, printed")
    parser.add_argument("--save", type=Path, help="where failing texts are written")
    arguments = parser.parse_args()
    if arguments.only is not None:
        text = text_of(arguments.only)
        print(text)
        print("//", Child().ask(text) or "nothing wrong")
        return
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    started = time.monotonic()
    until = started + arguments.seconds
    jobs = [
        context.Process(
            target=_part, args=(arguments.first + i, arguments.count - i, arguments.jobs, until, told)
        )
        for i in range(arguments.jobs)
    ]
    for job in jobs:
        job.start()
    failed: list[int] = []
    running, done = len(jobs), 0
    while running:
        failure = told.get()
        if isinstance(failure, int):
            running, done = running - 1, done + failure
            continue
        failed.append(failure[0])
        print(f"{failure[0]}: {failure[1]}", flush=True)
        if arguments.save:
            arguments.save.mkdir(parents=True, exist_ok=True)
            (arguments.save / f"{failure[0]}.cu").write_bytes(
                text_of(failure[0]).encode("utf-8", "surrogatepass")
            )
    seconds = time.monotonic() - started
    print(f"{done} texts from {arguments.first}, {len(failed)} failed, {seconds:.0f} s")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
