"""Kernels broken on purpose: which of them the engine notices.

    .venv/bin/python benchmarks/mutants.py PATH/cuda-samples PATH/rodinia … [--files N] [--seed N] [--report]

Every file that holds a kernel told race-free is mutated (``mutation.py``), one change at a time, and read
again under the same launches. What a change does to the kernels whose program it alters is one row each,
appended to ``--rows`` (JSON lines). A mutant that stays race-free is no failure by itself: the barrier may be
redundant. ``mutants_judged.json`` holds what reading them told. ``--report`` writes ``mutants.json`` and
``mutants.md``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "unit")]

from kernel_text import kernel_text  # noqa: E402
from mutation import KINDS, Mutant, mutants  # noqa: E402
from wild_report import shape  # noqa: E402

from cuda_lsp.frontend.surroundings.units import kernel_files  # noqa: E402

Row = dict[str, Any]
SPEED = ("bank-conflict", "uncoalesced-access")
RACES = ("shared-race", "global-race", "warp-race", "warp-synchronous")


def study(path: Path, root: Path, seed: int, share: dict[str, int], seconds: float, rows: Path) -> None:
    """The mutants of one file; a row for each kernel that a change touches, and one when the file is done."""
    from cuda_lsp.config import Settings
    from cuda_lsp.model import Code, Severity
    from cuda_lsp.static.analyze import Analyzer

    sys.setrecursionlimit(20_000)
    name = f"{root.name}/{path.relative_to(root)}"
    deadline = time.monotonic() + seconds
    settings = Settings(severity={Code.REDUNDANT_BARRIER: Severity.HINT})
    analyzer = Analyzer(settings)
    text = path.read_text("utf-8", "replace")
    analyzer.update(path, text)
    before = {kernel.name: kernel for kernel in analyzer.settle(path).kernels}
    free = {n for n, k in before.items() if k.verdict.value == "race-free"}
    texts = {n: kernel_text(k) for n in free if (k := analyzer.kernel(path, n))}
    errors = len(analyzer.update(path, text).errors)
    left = [] if not free else _chosen(list(mutants(text)), random.Random(f"{seed} {name}"), share)
    with rows.open("a", encoding="utf-8") as store:
        while left and time.monotonic() < deadline:
            mutant = left.pop(0)
            started = time.perf_counter()
            report = analyzer.update(path, mutant.apply(text))
            broken = len(report.errors) > errors
            report = report if broken else analyzer.settle(path)
            for kernel in report.kernels:
                changed = analyzer.kernel(path, kernel.name)
                if (
                    not broken
                    and changed
                    and kernel_text(changed) != texts.get(kernel.name, kernel_text(changed))
                ):
                    row = _row(mutant, before[kernel.name], kernel, time.perf_counter() - started)
                    store.write(json.dumps({"file": name, **row}) + "\n")
            store.flush()
        store.write(json.dumps({"file": name, "done": True, "left": len(left), "free": len(free)}) + "\n")
    analyzer.shutdown()


def _chosen(found: list[Mutant], chance: random.Random, share: dict[str, int]) -> list[Mutant]:
    chosen: list[Mutant] = []
    for kind in KINDS:
        some = [m for m in found if m.kind == kind]
        chance.shuffle(some)
        chosen += some[: share[kind]]
    return chosen


def _row(mutant: Mutant, original: Any, kernel: Any, seconds: float) -> Row:
    told = {f.site.range.start.line for f in original.findings if f.code.value == "redundant-barrier"}
    launch = kernel.launches[0] if kernel.launches else None
    return {
        "kind": mutant.kind,
        "line": mutant.line,
        "old": mutant.old[:120],
        "kernel": kernel.name,
        "verdict": kernel.verdict.value,
        "redundant": mutant.line in told,
        "launch": f"{launch.block} x {launch.grid or 'any grid'}, {launch.source.value}" if launch else None,
        "races": [_race(f) for f in kernel.findings if f.code.value in RACES][:8],
        "other": sorted(
            {f.code.value for f in kernel.findings} - {*RACES, "bank-conflict", "uncoalesced-access"}
        ),
        "reasons": list(kernel.reasons)[:6],
        "seconds": round(seconds, 3),
    }


def _race(finding: Any) -> str:
    lines = [finding.site.range.start.line, *(r.site.range.start.line for r in finding.related[:1])]
    return f"{finding.status.value} {finding.kind.value if finding.kind else ''} {min(lines)}-{max(lines)}"


def outcome(row: Row) -> str:
    """The verdict; ``diverges`` and ``doubted`` (races are possible) are kinds of undecided."""
    if row["verdict"] == "undecided":
        if "barrier-divergence" in row["other"]:
            return "diverges"
        return "doubted" if row["races"] else "undecided"
    return row["verdict"]


def known(rows: Path) -> list[Row]:
    return [json.loads(line) for line in rows.read_text("utf-8").splitlines()] if rows.exists() else []


def run(arguments: argparse.Namespace) -> None:
    """Files in a seeded order, each in a process of its own that ``--limit`` ends."""
    files = [(path, root) for root in arguments.folders for path in kernel_files(root)]
    random.Random(arguments.seed).shuffle(files)
    done = {row["file"] for row in known(arguments.rows) if row.get("done")}
    share = dict(zip(KINDS, arguments.share, strict=True))
    context = multiprocessing.get_context("spawn")
    deadline = time.monotonic() + arguments.total
    for path, root in files[: arguments.files]:
        name = f"{root.name}/{path.relative_to(root)}"
        if name in done or arguments.only not in name or time.monotonic() > deadline:
            continue
        started = time.monotonic()
        what = (path, root, arguments.seed, share, arguments.limit, arguments.rows)
        process = context.Process(target=study, args=what, daemon=False)
        process.start()
        process.join(arguments.limit * 1.5)
        if process.is_alive():
            process.kill()
            process.join()
        print(f"{time.monotonic() - started:6.1f} {name} {process.exitcode}", flush=True)


def judgements() -> dict[str, str]:
    """File, kind and line of a surviving mutant → what reading it told."""
    path = HERE / "mutants_judged.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def place(row: Row) -> str:
    return f"{row['file']}:{row['line']} {row['kind']}"


def table(rows: Iterable[Row]) -> str:
    """Outcomes by kind of mutant, counted by kernel instance."""
    columns = ("racy", "diverges", "doubted", "undecided", "race-free")
    lines = ["| mutants | " + " | ".join(columns) + " | all |", "| --- " * (len(columns) + 2) + "|"]
    found = list(rows)
    for kind in KINDS:
        of_kind = [outcome(r) for r in found if r["kind"] == kind]
        counts = [str(of_kind.count(c)) for c in columns]
        lines.append(f"| {kind} | " + " | ".join(counts) + f" | {len(of_kind)} |")
    return "\n".join(lines)


def recall(rows: Iterable[Row]) -> str:
    """Of the barrier and atomic mutants that are not harmless, how many are told; one kernel counts once."""
    texts: list[str] = []
    found = list(rows)
    for kind in ("barrier", "atomic"):
        broken = [outcome(r) for r in found if r["kind"] == kind and outcome(r) != "race-free"]
        told = sum(o in ("racy", "diverges") for o in broken)
        hinted = told + broken.count("doubted")
        shares = [f"{n} of {len(broken)} ({n / max(1, len(broken)):.0%})" for n in (told, hinted)]
        texts.append(f"{kind}: {shares[0]} told as certain or conditional, {shares[1]} at least as possible")
    return "\n".join(f"- {text}" for text in texts)


def survivors(rows: Iterable[Row]) -> str:
    """Barrier and atomic mutants that stay race-free, with what tool or reader say of the original."""
    judged = judgements()
    told: dict[str, str] = {}
    for row in rows:
        if row["kind"] in ("barrier", "atomic") and outcome(row) == "race-free":
            hint = "the original's `redundant-barrier` says so" if row["redundant"] else "not read"
            told[place(row)] = judged.get(place(row), hint)
    lines = ["| mutant | why it is still race-free |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {p} | {why} |" for p, why in sorted(told.items()))])


def causes(rows: Iterable[Row]) -> str:
    """Why barrier and atomic mutants stay undecided."""
    counted = Counter(
        shape(row["reasons"][0]) if row["reasons"] else "(no reason)"
        for row in rows
        if row["kind"] in ("barrier", "atomic") and row["verdict"] == "undecided"
    )
    lines = ["| first reason | kernels |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {why} | {n} |" for why, n in counted.most_common(14))])


def write(rows: list[Row], files: int) -> None:
    """``mutants.json`` and ``mutants.md`` beside this script."""
    kept = [{k: v[:2] if k in ("reasons", "races") else v for k, v in row.items()} for row in rows]
    (HERE / "mutants.json").write_text(
        "[\n" + ",\n".join(json.dumps(r, ensure_ascii=False) for r in kept) + "\n]\n"
    )
    parts = [
        "# Kernels broken on purpose",
        "Written by `mutants.py`. One change at a time to a file with kernels that were told race-free; each "
        "kernel whose program it alters is one row. `diverges` and `doubted` are undecided: with a barrier "
        "that not all threads reach, and with the race among the doubts. Guards, shifts and bounds need not "
        "break anything: they are there to show that nothing certain is said of what stays right.",
        f"{files} files read, {len({(r['file'], r['kernel']) for r in rows})} kernels altered.",
        table(rows),
        "## Recall",
        recall(rows),
        "## Why some stay undecided",
        causes(rows),
        "## Barriers and atomics that nothing needs",
        "Each was read in the source (`mutants_judged.json`), or is told as redundant on the original.",
        survivors(rows),
    ]
    (HERE / "mutants.md").write_text("\n\n".join(parts) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--only", default="", help="files whose name holds this word")
    parser.add_argument("--files", type=int, default=10_000, help="how many files, in seeded order")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--share", type=int, nargs=5, default=[12, 6, 3, 3, 3], help="mutants a file, by kind"
    )
    parser.add_argument("--limit", type=float, default=120, help="seconds a file")
    parser.add_argument("--total", type=float, default=3600, help="seconds altogether")
    parser.add_argument("--report", action="store_true", help="write mutants.json and mutants.md")
    parser.add_argument("--rows", type=Path, default=Path(tempfile.gettempdir()) / "cuda-lsp-mutants.jsonl")
    arguments = parser.parse_args()
    arguments.folders = [folder.resolve() for folder in arguments.folders]
    run(arguments)
    rows = known(arguments.rows)
    found = [row for row in rows if "kind" in row]
    print(table(found))
    if arguments.report:
        write(found, sum(1 for row in rows if row.get("done")))


if __name__ == "__main__":
    main()
