"""Verdicts on projects that nobody tuned for: every file with kernels, as ``cuda-lsp check FOLDER`` reads it.

    wild.py pack WILD.tar.xz FOLDER…     what reading these projects looks at, for another machine
    wild.py read ROWS.jsonl FOLDER… [--jobs N] [--limit SECONDS] [--only WORD] [--sample N] [--again]
    wild.py report ROWS.jsonl            writes wild.md beside this script

A folder is one project. Each file is analysed by a process of its own, which ends after ``--limit`` seconds
of processor time. A project's rows (JSON lines, one a file) are appended when it is read; projects that ROWS
has already are not read again without ``--again``. ``--only`` and ``--sample`` read a part, for a look.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tarfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]

_SOURCES = frozenset(
    {".cu", ".cuh", ".h", ".hh", ".hpp", ".hxx", ".inl", ".inc", ".c", ".cc", ".cpp", ".cxx"}
)
_BUILDS = frozenset({".cmake", ".mk", ".py", ".bazel", ".rsp", ".proto"})
_BUILD = re.compile(
    r"CMakeLists\.txt|compile_commands\.json|[Mm]akefile.*|GNUmakefile|.*\.in|.*\.config|meson\.build|pyproject\.toml|BUILD"
)
_MOST_BYTES = 1 << 20
_MARK = ".git"  # tells where a project begins
_LAUNCHED = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[^;{}()]{0,300}>)?\s*<<<")
_BY_FUNCTION = re.compile(r"\b(?:cudaLaunch\w*|cuLaunchKernel\w*|cudaFuncSetAttribute)\s*\(([^;]{0,300});")
_SPEED = ("bank-conflict", "uncoalesced-access")


# --------------------------------------------------------------------------------------------- packing


def pack(target: Path, folders: Sequence[Path]) -> None:
    """One archive of what reading the projects looks at."""
    with tarfile.open(target, "w:xz", preset=6) as archive:
        for folder in folders:
            for path in _packed(folder):
                archive.add(path, f"{folder.name}/{path.relative_to(folder)}")
            mark = tarfile.TarInfo(f"{folder.name}/{_MARK}")
            mark.type, mark.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(mark)
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")


def _packed(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        wanted = path.suffix in _SOURCES | _BUILDS or _BUILD.fullmatch(path.name)
        if _MARK not in path.parts and wanted and path.is_file() and path.stat().st_size <= _MOST_BYTES:
            yield path


# --------------------------------------------------------------------------------------------- reading


def read(rows: Path, folders: Sequence[Path], options: argparse.Namespace) -> None:
    """Rows of all folders that are not there yet."""
    known = {row["project"] for row in known_rows(rows)}
    for folder in folders:
        if folder.name in known and not options.again:
            continue
        started = time.perf_counter()
        found = list(_rows(folder, options))
        if options.again:
            kept = [row for row in known_rows(rows) if row["project"] != folder.name]
            rows.write_text("".join(json.dumps(row) + "\n" for row in kept), "utf-8")
        with rows.open("a", encoding="utf-8") as store:
            store.writelines(json.dumps(row) + "\n" for row in found)
        kernels = sum(len(row["kernels"]) for row in found)
        took = time.perf_counter() - started
        print(f"{folder.name}: {len(found)} files, {kernels} kernels, {took:.0f} s", flush=True)


def known_rows(path: Path) -> list[Row]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


def _rows(folder: Path, options: argparse.Namespace) -> Iterator[Row]:
    from cuda_lsp.batch.asked import Asked
    from cuda_lsp.batch.check import checking
    from cuda_lsp.batch.limits import FileLimits
    from cuda_lsp.batch.sources import sources

    paths = [path for path in sources([folder.resolve()]) if options.only in str(path)]
    if options.sample:
        paths = paths[:: max(1, len(paths) // options.sample)][: options.sample]
    launched = launched_names(folder)
    limits = FileLimits(options.limit)
    with checking(paths, Asked(), options.jobs, limits, cache=False) as reports:
        for report in reports:
            row = _row(report, folder.resolve(), launched)
            if row["kernels"] or row["failure"]:
                yield row


def launched_names(folder: Path) -> frozenset[str]:
    """Names that some text of the project launches, as far as its words tell."""
    found: set[str] = set()
    for path in _packed(folder):
        if path.suffix in _SOURCES:
            text = path.read_text("utf-8", "replace")
            found.update(_LAUNCHED.findall(text))
            for arguments in _BY_FUNCTION.findall(text):
                found.update(re.findall(r"[A-Za-z_]\w*", arguments))
    return frozenset(found)


def _row(report: Any, folder: Path, launched: frozenset[str]) -> Row:
    kernels = [_kernel(kernel, launched) for kernel in report.kernels]
    known = {kernel["name"].partition("<")[0] for kernel in kernels}
    unread = {error.kernel: error for error in report.errors if error.kernel not in ("", *known)}
    kernels += [_unread(error, launched) for error in unread.values()]
    failures = [e.message for e in report.errors if "not analysed" in e.message]
    return {
        "project": folder.name,
        "file": str(Path(report.path).relative_to(folder)),
        "seconds": round(report.seconds, 3),
        "failure": failures[0] if failures else None,
        "kernels": kernels,
        "errors": [error.message for error in report.errors],
    }


def _unread(error: Any, launched: frozenset[str]) -> Row:
    """A kernel of the text that could not be made out counts like any other."""
    return {
        "name": error.kernel,
        "line": error.range.start.line if error.range else 0,
        "verdict": "undecided",
        "launch": None,
        "launched": error.kernel in launched,
        "reasons": [f"not made out: {error.message}"],
        "assumptions": [],
        "findings": [],
    }


def _kernel(kernel: Any, launched: frozenset[str]) -> Row:
    launch = kernel.launches[0] if kernel.launches else None
    return {
        "name": kernel.name,
        "line": kernel.range.start.line,
        "verdict": kernel.verdict.value,
        "launch": f"{launch.block} x {launch.grid or 'any grid'}, {launch.source.value}" if launch else None,
        "launched": kernel.name.partition("<")[0] in launched,
        "assumed": launch.assumed if launch else True,
        "reasons": list(kernel.reasons),
        "assumptions": list(kernel.assumptions),
        "findings": [_finding(f) for f in kernel.findings if f.code.value not in _SPEED],
    }


def _finding(finding: Any) -> Row:
    sites = [finding.site, *(related.site for related in finding.related[:1])]
    return {
        "code": finding.code.value,
        "status": finding.status.value,
        "severity": finding.effective_severity.name.lower(),
        "same_value": finding.same_value,
        "array": finding.witness.array if finding.witness else None,
        "lines": sorted(site.range.start.line for site in sites),
        "message": finding.message,
    }


def main(words: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["pack", "read", "report"])
    parser.add_argument("target", type=Path, help="the archive, or the file of rows")
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--limit", type=float, default=60, help="seconds of processor time a file")
    parser.add_argument("--only", default="", help="files whose path holds this word")
    parser.add_argument("--sample", type=int, help="so many files a project, spread evenly")
    parser.add_argument("--again", action="store_true", help="also projects that have rows")
    options = parser.parse_args(None if words is None else list(words))
    sys.setrecursionlimit(20_000)
    if options.what == "pack":
        pack(options.target, options.folders)
    elif options.what == "read":
        read(options.target, options.folders, options)
    else:
        from wild_report import write

        write(known_rows(options.target), Path(__file__).resolve().parent / "wild.md")


if __name__ == "__main__":
    main()
