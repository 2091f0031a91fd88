"""Kernels and programs that hang, fault, flood and fork, under check: each ends with a message.

    python benchmarks/hostile_runs.py [--engine emulator|gpu] [--jobs N] [--only PATTERN] [--json FILE]
    python benchmarks/hostile_runs.py --prepare FILE      # analyse here …
    python benchmarks/hostile_runs.py --prepared FILE …   # … and run where libclang is not installed

Of each case (``hostile_cases``) is asked: it ended at most ``SPARE`` seconds after
its deadline (building apart); the report says what happened, without an exception of ours; no process,
temporary file or file of ours outside the cache is left; the checking process has not grown; an ordinary
check that follows finds its race. Prints a row a case and writes all of it as JSON; exits with 1 if a case
failed.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any

from attrs import asdict, evolve, field, frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hostile_cases import Case, cases

from cuda_lsp.children.sweep import adopt_orphans, descendants
from cuda_lsp.dynamic.job import CheckJob, EngineKind
from cuda_lsp.dynamic.observations.merge import merged
from cuda_lsp.dynamic.programs.job import ProgramJob
from cuda_lsp.dynamic.runner import Runner
from cuda_lsp.model import FileReport, Status

SPARE = 2.0  # seconds after its deadline in which a run has to have ended
GROWTH = 64 << 20  # bytes that the checking process may be larger after a case
DEADLINES = {"emulator": (1.0, 6.0), "gpu": (1.0, 8.0)}  # of a kernel, of a program: its start counts there
BUILDING = 100.0  # seconds, apart from those
MEMORY = 1 << 30  # bytes of the host that a program may use
GPU_MEMORY = 4 << 30
_HANGS = 150.0  # seconds after which a case, with its build, is given up
_INTERNAL = re.compile(r"Traceback|internal error|please report")
ORDINARY = Case(
    "ordinary",
    "__global__ void k(int* o) { __shared__ int s[64]; int t = threadIdx.x; s[t] = t; o[t] = s[63 - t]; }\n"
    "void run(int* o) { k<<<1, 64>>>(o); }\n",
    "racy",
)  # fmt: skip
CASES = tuple(cases())
ANYWHERE = Path("/hostile")
"""Where the sources lie when they are analysed."""


@frozen
class Outcome:
    """What came of a case. ``failures``: what was not as it should be; ``ran``: seconds of its longest run.

    ``seconds``: all of it, with builds and the check after it; ``grown``: bytes.
    """

    name: str
    failures: tuple[str, ...]
    said: str
    ran: float = 0.0
    seconds: float = 0.0
    grown: int = 0


@frozen
class Prepared:
    """A case and what the static side made of it. ``said``: what a reader is told before anything runs."""

    case: Case
    job: CheckJob | ProgramJob | None
    report: FileReport
    said: str = ""


# ------------------------------------------------------------------------------------- preparing


def prepared(case: Case) -> Prepared:
    """Analyse a case. Needs libclang."""
    from cuda_lsp.config import Settings
    from cuda_lsp.confirm import CheckOptions, job_for
    from cuda_lsp.confirm_program import ProgramOptions, file_jobs
    from cuda_lsp.static.analyze import Analyzer

    path = ANYWHERE / "k.cu"
    analyzer = Analyzer(Settings(solver=False, arch="sm_90"))
    try:
        report = analyzer.update(path, case.source)
        options = CheckOptions(watch_all=True)
        said = "\n".join(error.message for error in report.errors)
        if case.program:
            (job,) = file_jobs([(report, case.source)], options, ProgramOptions(folder=path.parent), analyzer)
            return Prepared(case, job, report, said)
        found = next((one for one in report.kernels if one.name.split("<")[0] == "k"), None)
        kernel = found and analyzer.kernel(path, found.name)
        if found is None or kernel is None:
            return Prepared(case, None, report, said + "".join(r for k in report.kernels for r in k.reasons))
        job = job_for(path, case.source, kernel, found, analyzer.settings, options)
        return Prepared(case, evolve(job, kernel=found.name), report, said)
    finally:
        analyzer.shutdown()


class Moved(pickle.Unpickler):
    """Reads what lay ``ANYWHERE`` as what lies in ``folder``."""

    def __init__(self, file: IO[bytes], folder: Path) -> None:
        super().__init__(file)
        self._folder = folder

    def find_class(self, module: str, name: str) -> Any:
        return self._path if name in ("Path", "PosixPath") else super().find_class(module, name)

    def _path(self, *parts: str) -> Path:
        path = Path(*parts)
        return self._folder / path.relative_to(ANYWHERE) if path.is_relative_to(ANYWHERE) else path


def placed(one: Prepared, folder: Path, engine: str) -> CheckJob | ProgramJob | None:
    """The job where it runs: its source lies in ``folder``/work, its cache in ``folder``/cache."""
    if one.job is None:
        return None
    work = folder / "work"
    (work / "k.cu").write_text(one.case.source)
    short, long = DEADLINES[engine]
    where = {"path": work / "k.cu", "cache": folder / "cache", "engine": EngineKind(engine), "nvcc": None}
    if isinstance(one.job, ProgramJob):
        times = {"deadline": BUILDING + long, "running": long}
        limits = {"host_memory": MEMORY, "gpu_memory": GPU_MEMORY}
        return evolve(one.job, **where, **times, **limits, folder=work)
    return evolve(one.job, **where, deadline=BUILDING + short, running=short)


# --------------------------------------------------------------------------------------- running


class Clock:
    """The seconds of each run, from the progress that is told."""

    def __init__(self) -> None:
        self.longest, self._since = 0.0, 0.0

    def __call__(self, stage: str) -> None:
        if stage == "running" or not stage.startswith("running"):
            self.end()
            self._since = time.monotonic() if stage.startswith("running") else 0.0

    def end(self) -> None:
        if self._since:
            self.longest = max(self.longest, time.monotonic() - self._since)
        self._since = 0.0


def told(one: Prepared, job: CheckJob | ProgramJob, clock: Clock, runner: Runner) -> str:
    """Run it; everything that a reader of the report sees."""
    lines = [one.said]
    if isinstance(job, ProgramJob):
        result = runner.run_program(job, clock)
        clock.end()
        lines += [f"exit status {result.status}", result.output[-2000:], *result.notes]
        reports = [
            merged(k, result.checks[k.name], {}) for k in one.report.kernels if k.name in result.checks
        ]
    else:
        result = runner.run(job, clock)
        clock.end()
        report = next(k for k in one.report.kernels if k.name == job.kernel)
        reports = [merged(report, result, job.shapes)]
        lines += [r.races.output[-200:] for r in result.results]
    lines += [result.problem or "", *(error.message for error in result.errors)]
    for report in reports:
        lines += [report.verdict.value, *report.reasons, *report.notes]
        lines += [f"{finding.status.value}: {finding.message}" for finding in report.findings]
    return "\n".join(dict.fromkeys(line for line in lines if line))


def tried(one: Prepared, folder: Path, engine: str) -> Outcome:
    """One case from its beginning to an ordinary check after it."""
    began, clock, runner = time.monotonic(), Clock(), Runner()
    before = _resident()
    job = placed(one, folder, engine)
    failures: list[str] = []
    files = _files(folder)
    try:
        said = told(one, job, clock, runner) if job is not None else one.said
    finally:
        runner.close()
    deadline = DEADLINES[engine][one.case.program] if job is not None else 0.0
    if clock.longest > deadline + SPARE:
        failures.append(f"a run of {clock.longest:.1f} s, with a deadline of {deadline:g} s")
    if not re.search(one.case.expected(engine), said):
        failures.append(f"does not say {one.case.expected(engine)!r}")
    if wrong := _INTERNAL.search(said):
        failures.append(f"says {wrong[0]!r}")
    failures += _left(folder, files)
    gc.collect()
    grown = _resident() - before
    if grown > GROWTH:
        failures.append(f"{grown >> 20} MiB more are used than before")
    failures += _ordinary(folder, engine)
    return Outcome(
        one.case.name,
        tuple(failures),
        said,
        round(clock.longest, 2),
        round(time.monotonic() - began, 1),
        grown,
    )


def _ordinary(folder: Path, engine: str) -> Iterator[str]:
    """What is wrong with an ordinary check."""
    with (folder / "ordinary.pkl").open("rb") as file:
        one: Prepared = Moved(file, folder / "work").load()
    job, runner = placed(one, folder, engine), Runner()
    assert isinstance(job, CheckJob)
    try:
        result = runner.run(evolve(job, deadline=20.0))
    finally:
        runner.close()
    (report,) = one.report.kernels
    after = merged(report, result, job.shapes)
    if not any(finding.status is Status.CONFIRMED for finding in after.findings):
        yield f"the check after it found nothing: {result.problem or after.reasons}"


def _left(folder: Path, before: set[Path]) -> Iterator[str]:
    """Processes and files that should not be there any more. This process adopts orphans."""
    until = time.monotonic() + 0.5
    while (processes := descendants(os.getpid())) and time.monotonic() < until:
        time.sleep(0.01)
    for process in processes:
        with suppress(OSError):
            line = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            yield f"process {process} is left: {line[:80]}"
            os.kill(process, signal.SIGKILL)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    for path in sorted(_files(folder) - before):
        yield f"{path.relative_to(folder)} is left"
    for path in (folder / "work").iterdir():
        if path.name.startswith("written-"):
            path.unlink()  # the program's own


def _files(folder: Path) -> set[Path]:
    """What lies where nothing of ours should stay: temporary files, the folder of the source, half work."""
    found = {*(folder / "tmp").rglob("*"), *(folder / "cache").rglob("work-*")}
    return found | {path for path in (folder / "work").rglob("*") if not path.name.startswith("written-")}


def _resident() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) << 10


def serve(folder: Path, engine: str) -> None:
    """The process that checks: cases in, outcomes out, a pickle each."""
    adopt_orphans()  # so that nothing that is left can hide
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            one: Prepared = Moved(sys.stdin.buffer, folder / "work").load()
        except EOFError:
            return
        try:
            outcome = tried(one, folder, engine)
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            outcome = Outcome(one.case.name, (f"{type(error).__name__}: {error}",), "")
        pickle.dump(asdict(outcome), answers)
        answers.flush()


# ------------------------------------------------------------------------------------- all of them


@frozen
class Slot:
    """A process that checks, in a folder of its own."""

    folder: Path
    engine: str
    process: list[subprocess.Popen[bytes]] = field(factory=list)

    def ask(self, one: Prepared) -> Outcome:
        """What comes of a case, whatever happens."""
        if not self.process:
            self.process.append(self._started())
        child, timer = self.process[0], threading.Timer(_HANGS, self._give_up)
        assert child.stdin is not None
        assert child.stdout is not None
        timer.start()
        try:
            pickle.dump(one, child.stdin)
            child.stdin.flush()
            return Outcome(**pickle.load(child.stdout))
        except (OSError, EOFError, pickle.UnpicklingError):
            self.end()
            return Outcome(one.case.name, ("the checking process died or hung",), "", seconds=_HANGS)
        finally:
            timer.cancel()

    def _started(self) -> subprocess.Popen[bytes]:
        for name in ("work", "tmp", "cache"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        own = {"CUDA_LSP_CACHE": str(self.folder / "cache"), "TMPDIR": str(self.folder / "tmp")}
        command = [
            sys.executable,
            str(Path(__file__).resolve()),
            "--serve",
            str(self.folder),
            "--engine",
            self.engine,
        ]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **own},
            start_new_session=True,
        )  # fmt: skip

    def _give_up(self) -> None:
        for process in reversed(descendants(self.process[0].pid)):
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        self.process[0].kill()

    def end(self) -> None:
        while self.process:
            child = self.process.pop()
            for stream in (child.stdin, child.stdout):
                with suppress(OSError):
                    stream.close()  # type: ignore[union-attr]
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def run_all(
    cases: Sequence[Prepared], engine: str, jobs: int, folder: Path, heard: Callable[[Outcome], None]
) -> list[Outcome]:
    """All cases, several at once; ``heard`` of each as it ends."""
    waiting: Queue[Prepared] = Queue()
    for case in cases:
        waiting.put(case)
    outcomes: list[Outcome] = []

    def work(number: int) -> None:
        slot = Slot(folder / str(number), engine)
        slot.folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "ordinary.pkl", slot.folder)
        while True:
            try:
                case = waiting.get_nowait()
            except Empty:
                break
            outcome = slot.ask(case)
            outcomes.append(outcome)
            heard(outcome)
        slot.end()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def select(engine: str, pattern: str = "", quick: bool = False) -> list[Case]:
    """The cases of an engine whose names have a pattern; ``quick``: a few of each kind."""
    fits = [c for c in CASES if c.only in ("", engine) and re.search(pattern, c.name)]
    return [case for case in fits if case.quick] if quick else fits


def _row(outcome: Outcome) -> str:
    mark = "failed" if outcome.failures else "ok"
    line = f"{mark:6} {outcome.ran:6.2f} s of {outcome.seconds:5.1f} s  {outcome.name}"
    return "\n".join([line, *(f"         {failure}" for failure in outcome.failures)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--engine", choices=[*DEADLINES], default="emulator")
    parser.add_argument("--jobs", type=int, default=0, help="checks at once; by default by cores")
    parser.add_argument("--only", default="", metavar="PATTERN", help="cases whose name has it")
    parser.add_argument("--quick", action="store_true", help="a few of each kind")
    parser.add_argument("--json", type=Path, help="where outcomes are written")
    parser.add_argument("--prepare", type=Path, metavar="FILE", help="only analyse, into FILE")
    parser.add_argument("--prepared", type=Path, metavar="FILE", help="what --prepare made")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.engine)
        return
    if given.prepare:
        given.prepare.write_bytes(pickle.dumps([prepared(case) for case in (ORDINARY, *CASES)]))
        return
    wanted = {case.name for case in select(given.engine, given.only, given.quick)}
    if given.prepared:
        known: list[Prepared] = pickle.loads(given.prepared.read_bytes())
        ordinary, cases = known[0], [one for one in known[1:] if one.case.name in wanted]
    else:
        ordinary = prepared(ORDINARY)
        cases = [prepared(case) for case in CASES if case.name in wanted]
    jobs = given.jobs or max(1, (os.cpu_count() or 2) - (2 if given.engine == "gpu" else 1))
    shared, began = _shared_memory(), time.monotonic()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="hostile-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "ordinary.pkl").write_bytes(pickle.dumps(ordinary))

        def heard(outcome: Outcome) -> None:
            print(_row(outcome), flush=True)
            outcomes.append(outcome)
            if given.json:
                _write(given.json, given.engine, outcomes, time.monotonic() - began)

        run_all(cases, given.engine, jobs, folder, heard)
    failed = [outcome for outcome in outcomes if outcome.failures]
    for path in sorted(_shared_memory() - shared):
        print(f"{path} is left")
        failed.append(Outcome("shared memory", (path,), ""))
    seconds = time.monotonic() - began
    print(f"{len(outcomes)} on the {given.engine}, {len(failed)} failed, {seconds:.0f} s")
    sys.exit(bool(failed))


def _shared_memory() -> set[str]:
    if not os.path.isdir("/dev/shm"):
        return set()
    # Python names semaphores of anybody's so; a check makes none.
    return {entry.path for entry in os.scandir("/dev/shm") if not entry.name.startswith("sem.mp-")}


def _write(target: Path, engine: str, outcomes: Sequence[Outcome], seconds: float) -> None:
    rows: list[dict[str, Any]] = [asdict(outcome) for outcome in outcomes]
    failed = sum(bool(outcome.failures) for outcome in outcomes)
    text = json.dumps(
        {"engine": engine, "cases": len(rows), "failed": failed, "seconds": round(seconds), "rows": rows},
        indent=1,
    )
    part = target.with_suffix(".part")
    part.write_text(text + "\n")
    part.replace(target)


if __name__ == "__main__":
    main()
