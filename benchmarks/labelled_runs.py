"""Labelled and blind kernels under the dynamic check, as a click runs it.

    python benchmarks/labelled_runs.py emulator|gpu OUT.json [--only WORD] [--jobs N] [--resume]
    python benchmarks/labelled_runs.py table OUT.json…

A row for each kernel: its truth, the verdict of the static side, the line pairs that a run showed, what kept
a race from being seen, and by how much the answer was late. ``table`` prints Markdown of them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "unit"), str(HERE.parent / "tests")]

from test_blind import TRUTHS  # noqa: E402
from test_labelled import labelled  # noqa: E402

from cuda_lsp.config import Settings  # noqa: E402
from cuda_lsp.confirm import CheckOptions, job_for  # noqa: E402
from cuda_lsp.dynamic.job import EngineKind  # noqa: E402
from cuda_lsp.dynamic.observations.merge import merged  # noqa: E402
from cuda_lsp.dynamic.runner import Runner  # noqa: E402
from cuda_lsp.model import Code, KernelReport, Status, Verdict  # noqa: E402
from cuda_lsp.static.analyze import Analyzer  # noqa: E402

Row = dict[str, Any]
Truths = dict[str, str]
DEADLINE = 10.0  # seconds, from the click to the answer
FOLDER = HERE.parent / "fixtures"


def texts() -> dict[Path, Truths]:
    """Files, and the truth of each of their kernels, as the label has it."""
    found: dict[Path, Truths] = {}
    for case in labelled():
        found.setdefault(case.path, {})[case.kernel] = case.label
    for (file, kernel), truth in TRUTHS.items():
        found.setdefault(FOLDER / "blind" / file, {})[kernel] = truth.verdict.split("(")[0].strip()
    return found


def studied(work: tuple[Path, Truths, str]) -> list[Row]:
    """The rows of one file."""
    path, truths, engine = work
    text, analyzer, runner = path.read_text(), Analyzer(Settings()), Runner()
    options = CheckOptions(EngineKind(engine), deadline=DEADLINE)
    rows: list[Row] = []
    for report in analyzer.check(path, text).kernels:
        program = analyzer.kernel(path, report.name)
        truth = truths.get(re.sub(r"<.*", "", report.name).rpartition("::")[-1])
        if program is None or truth is None:
            continue
        job = job_for(path, text, program, report, Settings(), options)
        begun = time.monotonic()
        result = runner.run(job)
        late = time.monotonic() - begun - DEADLINE
        seen = merged(report, result, job.shapes)
        rows.append(
            {
                "text": f"{path.parent.name}/{path.stem}",
                "kernel": report.name,
                "truth": truth,
                "static": report.verdict.value,
                "confirmed": pairs(seen),
                "told": sorted({f.code.value for f in seen.findings if f.status is Status.CONFIRMED}),
                "why": reasons(seen, result),
                "findings": [
                    f"{f.status.value}, {f.effective_severity.name}: {f.message}" for f in seen.findings
                ],
                "seconds": round(late + DEADLINE, 2),
            }
        )
    analyzer.shutdown()
    runner.close()
    return rows


def pairs(kernel: KernelReport) -> list[list[Any]]:
    """Line pairs of races that a run showed, each with how grave it is said to be."""
    found = {
        (
            *sorted((f.site.range.start.line, f.related[0].site.range.start.line)),
            f.effective_severity.name.lower(),
        )
        for f in kernel.findings
        if f.kind and f.status is Status.CONFIRMED
    }
    return [list(pair) for pair in sorted(found)]


def reasons(kernel: KernelReport, result: Any) -> list[str]:
    """Everything that was said of what a run did not show."""
    said = [result.problem, *(e.message for e in result.errors)]
    for trial in result.results:
        for run in (trial.races,):
            said += [run.failure, *(f"not covered: {what}" for what in run.not_covered)]
    said += [
        one
        for one in kernel.reasons
        if "checked dynamically" in one or "sought in" in one or "was not seen on" in one
    ]
    said += [f"undecided: {one}" for one in kernel.reasons if kernel.verdict is Verdict.UNDECIDED]
    said += [f.message for f in kernel.findings if f.code is Code.BARRIER_DIVERGENCE]
    said += [f"{f.status.value}: {f.message}" for f in kernel.findings if f.status is Status.NOT_OBSERVED]
    return list(dict.fromkeys(str(one)[:160] for one in said if one))


def table(rows: list[Row]) -> str:
    """Markdown."""
    racy = [row for row in rows if row["truth"] == "racy"]
    correct = [row for row in rows if row["truth"].startswith("race-free")]
    silent = [row for row in racy if not row["confirmed"] and not row["told"] and not row["why"]]
    told = sum(not row["confirmed"] for row in racy) - len(silent)
    late = [row for row in rows if row["seconds"] > DEADLINE + 2]
    accused = [row for row in correct if any(pair[2] in ("error", "warning") for pair in row["confirmed"])]
    noted = sum(bool(row["confirmed"]) for row in correct) - len(accused)
    causes = Counter(
        re.sub(r"\d+", "n", row["why"][0])[:60] for row in racy if not row["confirmed"] and row["why"]
    )
    lines = [
        "| | kernels |", "| --- | ---: |",
        f"| racy | {len(racy)} |",
        f"| … confirmed | {sum(bool(row['confirmed']) for row in racy)} |",
        f"| … not confirmed, the reason told | {told} |",
        f"| … nothing said | {len(silent)} |",
        f"| correct | {len(correct)} |",
        f"| … accused by a run | {len(accused)} |",
        f"| … told as information: one value, or contents that were made up | {noted} |",
        f"| answers more than 2 s late | {len(late)} |",
        "", *(f"- {count}: {cause}" for cause, count in causes.most_common(20)), "",
        *(f"- accused: {r['text']} {r['kernel']} {r['confirmed']}" for r in accused),
        *(f"- nothing said: {r['text']} {r['kernel']} ({r['static']})" for r in silent),
        *(f"- late: {r['text']} {r['kernel']} {r['seconds']} s" for r in late),
    ]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("engine", choices=("emulator", "gpu", "table"))
    parser.add_argument("out", type=Path, nargs="+")
    parser.add_argument("--only", default="", help="files whose name holds this word")
    parser.add_argument("--jobs", type=int, default=1, help="files studied at once")
    parser.add_argument("--resume", action="store_true", help="only files that have no row yet")
    options = parser.parse_args()
    out: Path = options.out[0]
    if options.engine == "table":
        for one in options.out:
            print(one.name, table(json.loads(one.read_text())), sep="\n\n")
        return
    rows: list[Row] = json.loads(out.read_text()) if options.resume and out.exists() else []
    known = {row["text"] for row in rows}
    chosen = {path: truths for path, truths in texts().items() if options.only in str(path)}
    work = [
        (path, truths, options.engine)
        for path, truths in chosen.items()
        if f"{path.parent.name}/{path.stem}" not in known
    ]
    with multiprocessing.get_context("spawn").Pool(options.jobs, maxtasksperchild=4) as pool:
        for found in pool.imap_unordered(studied, work):
            rows += found
            out.write_text(json.dumps(rows, indent=1) + "\n")
            print(len(rows), flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
