"""Verdicts on real code: every kernel of the given folders, with reasons, findings and time.

    .venv/bin/python benchmarks/corpora.py PATH/cuda-samples PATH/rodinia … [--only WORD] [--again] [--report]

One worker process takes one file at a time; a file that crashes it or outlasts ``--limit`` costs one row, not
the run. Rows are kept in ``--rows`` (JSON lines, one per file, outside the repository), so that a stopped run
goes on where it stopped; ``--again`` forgets the rows of the files asked for, ``--late`` those of files where
time ran out. ``--report`` writes ``corpora.json`` and ``corpora.md`` beside this script, with the hand-made
judgements of ``corpora_judged.json``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

SUFFIXES = (".cu", ".cuh", ".h", ".hpp")
INCLUDES = ("Common", "common", "include", "inc", "llmc")
Row = dict[str, Any]


def sources(folder: Path) -> Iterator[Path]:
    """The files of ``folder`` that define kernels, sorted."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file() and b"__global__" in path.read_bytes():
            yield path


def include_dirs(path: Path, root: Path) -> tuple[str, ...]:
    """Where a build of this project would look: its folders of shared headers, from the file upwards."""
    found: list[Path] = []
    folder = path.parent
    while folder.is_relative_to(root):
        found += [folder / name for name in INCLUDES if (folder / name).is_dir()]
        folder = folder.parent
    return tuple(map(str, found))


def analyse(path: Path, root: Path) -> Row:
    """Both tiers on one file: its kernels, findings, errors and seconds."""
    from cuda_lsp.config import Settings
    from cuda_lsp.static.analyze import Analyzer

    analyzer = Analyzer(Settings(include_dirs=include_dirs(path, root)))
    started = time.perf_counter()
    first = analyzer.update(path, path.read_text("utf-8", "replace"))
    opened = time.perf_counter()
    seconds: dict[int, float] = {}
    report = analyzer.settle(path, timed=seconds.__setitem__)
    kernels = [_kernel(kernel, seconds.get(i, 0.0), root) for i, kernel in enumerate(report.kernels)]
    analyzer.shutdown()
    return {
        "open_seconds": round(opened - started, 4),
        "undecided_first": sum(not k.refined for k in first.kernels),
        "kernels": kernels,
        "errors": [e.message for e in report.errors],
    }


def _kernel(kernel: Any, seconds: float, root: Path) -> Row:
    launch = kernel.launches[0] if kernel.launches else None
    return {
        "name": kernel.name,
        "line": kernel.range.start.line,
        "verdict": kernel.verdict.value,
        "seconds": round(seconds, 4),
        "launch": f"{launch.block} x {launch.grid or 'any grid'}, {launch.source.value}" if launch else None,
        "reasons": list(kernel.reasons),
        "assumptions": list(kernel.assumptions),
        "findings": [_finding(f, root) for f in kernel.findings if f.code.value not in _PERFORMANCE],
    }


_PERFORMANCE = ("bank-conflict", "uncoalesced-access")


def _finding(finding: Any, root: Path) -> Row:
    sites = [finding.site, *(related.site for related in finding.related[:1])]
    return {
        "code": finding.code.value,
        "status": finding.status.value,
        "same_value": finding.same_value,
        "array": finding.witness.array if finding.witness else None,
        "lines": sorted(site.range.start.line for site in sites),
        "message": finding.message.replace(str(root), root.name),
    }


# ----------------------------------------------------------------------------------------- the worker


def _serve(pipe: Connection) -> None:
    sys.setrecursionlimit(20_000)
    while True:
        path, root = pipe.recv()
        try:
            row = analyse(path, root)
        except Exception as error:  # noqa: BLE001 - one file's failure is its row
            row = {"failure": f"{type(error).__name__}: {error}"}
        pipe.send(row)


class Worker:
    """A process that can be killed; started again when a file was its last."""

    def __init__(self) -> None:
        self._process: Any = None
        self._pipe: Connection | None = None

    def run(self, path: Path, root: Path, limit: float) -> Row:
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        assert self._pipe is not None
        try:
            self._pipe.send((path, root))
            if self._pipe.poll(limit):
                return self._pipe.recv()
            failure = f"stopped after {limit:.0f} s"
        except (EOFError, OSError):
            failure = "the process died"
        self.close()
        return {"failure": failure}

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


# ------------------------------------------------------------------------------------------- the run


def known_rows(path: Path) -> dict[str, Row]:
    if not path.exists():
        return {}
    rows = (json.loads(line) for line in path.read_text("utf-8").splitlines() if line)
    return {row["file"]: row for row in rows}


_TIME = ("ran out of time", "solver's time", "were not decided", "too long to replay")


def ran_out(row: Row) -> bool:
    """Whether time alone left a kernel of the file undecided."""
    return any(
        k["verdict"] == "undecided"
        and all(any(words in reason for words in _TIME) for reason in k["reasons"])
        for k in row.get("kernels", ())
    )


def run(arguments: argparse.Namespace) -> dict[str, Row]:
    """Rows of all files of the folders; new ones are appended to the file of rows as they come."""
    rows = known_rows(arguments.rows)
    worker = Worker()
    deadline = time.monotonic() + arguments.total
    with arguments.rows.open("a", encoding="utf-8") as store:
        for root in arguments.folders:
            for path in sources(root):
                name = f"{root.name}/{path.relative_to(root)}"
                if arguments.only and arguments.only not in name:
                    continue
                if name in rows and not arguments.again and not (arguments.late and ran_out(rows[name])):
                    continue
                if time.monotonic() > deadline:
                    print("out of time: run again to go on", flush=True)
                    break
                started = time.perf_counter()
                row = worker.run(path, root, arguments.limit)
                rows[name] = {"file": name, "seconds": round(time.perf_counter() - started, 3), **row}
                store.write(json.dumps(rows[name]) + "\n")
                store.flush()
                _tell(rows[name], arguments.quiet)
    worker.close()
    return rows


def _tell(row: Row, quiet: bool) -> None:
    kernels = row.get("kernels", [])
    verdicts = " ".join(k["verdict"][:4] for k in kernels)
    print(f"{row['seconds']:7.2f} {row['file']} {row.get('failure', '')} {verdicts}", flush=True)
    for kernel in () if quiet else kernels:
        for reason in kernel["reasons"] if kernel["verdict"] == "undecided" else ():
            print(f"          {kernel['name']}: {reason}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--only", help="files whose name holds this word")
    parser.add_argument("--limit", type=float, default=60, help="seconds a file")
    parser.add_argument("--total", type=float, default=2400, help="seconds altogether")
    parser.add_argument("--again", action="store_true", help="do not reuse rows")
    parser.add_argument("--late", action="store_true", help="again where a kernel ran out of time only")
    parser.add_argument("--quiet", action="store_true", help="no reasons")
    parser.add_argument("--report", action="store_true", help="write corpora.json and corpora.md")
    parser.add_argument("--rows", type=Path, default=Path(tempfile.gettempdir()) / "cuda-lsp-corpora.jsonl")
    arguments = parser.parse_args()
    arguments.folders = [folder.resolve() for folder in arguments.folders]
    rows = run(arguments)
    names = {folder.name for folder in arguments.folders}
    wanted = [row for name, row in sorted(rows.items()) if name.split("/")[0] in names]
    from corpora_report import summary, write

    print(summary(wanted))
    if arguments.report:
        write(wanted, HERE)


if __name__ == "__main__":
    main()
