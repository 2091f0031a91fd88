"""The tables of ``corpora.py``: verdicts, reasons, times, and every accusation with its judgement."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

Row = dict[str, Any]
RACES = ("shared-race", "global-race", "warp-race", "warp-synchronous")


def project(row: Row) -> str:
    return row["file"].split("/")[0]


def kernels(rows: Iterable[Row]) -> list[Row]:
    return [kernel for row in rows for kernel in row.get("kernels", ())]


def accusations(kernel: Row) -> list[Row]:
    """Races that are said to be certain."""
    return [f for f in kernel["findings"] if f["code"] in RACES and f["status"] in ("proved", "conditional")]


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values) or [0.0]
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def shape(reason: str) -> str:
    """A reason without its names and numbers, for counting."""
    reason = re.sub(r"`[^`]*`|'[^']*'", "…", reason)
    return re.sub(r"\d+", "#", reason)[:110]


def reasons(rows: Iterable[Row]) -> Counter[str]:
    """Shapes of reasons → undecided kernels that have one."""
    counted: Counter[str] = Counter()
    for kernel in kernels(rows):
        if kernel["verdict"] == "undecided":
            counted.update({shape(reason) for reason in kernel["reasons"]} or {"(no reason)"})
    return counted


def summary(rows: Sequence[Row]) -> str:
    lines = [
        "| project | files | failed | kernels | race-free | racy | undecided | refine p95 s | file p95 s |"
    ]
    lines.append("| --- " * 9 + "|")
    groups = {project(row): [r for r in rows if project(r) == project(row)] for row in rows}
    for name, group in [*groups.items(), ("all", list(rows))]:
        found = kernels(group)
        verdicts = Counter(kernel["verdict"] for kernel in found)
        undecided = verdicts["undecided"]
        share = f"{undecided} ({100 * undecided / max(1, len(found)):.1f} %)"
        failed = sum("failure" in row for row in group)
        refine = percentile([kernel["seconds"] for kernel in found], 0.95)
        whole = percentile([row["seconds"] for row in group], 0.95)
        lines.append(
            f"| {name} | {len(group)} | {failed} | {len(found)} | {verdicts['race-free']}"
            f" | {verdicts['racy']} | {share} | {refine:.2f} | {whole:.2f} |"
        )
    return "\n".join(lines)


@frozen
class Accusation:
    """All reports of one kernel on one array; ``kernel`` without its template arguments."""

    file: str
    kernel: str
    array: str
    findings: tuple[Row, ...]

    @property
    def key(self) -> str:
        return f"{self.file}|{self.kernel}|{self.array}"

    @property
    def lines(self) -> str:
        pairs = sorted({tuple(sorted(set(f["lines"]))) for f in self.findings})
        told = ["/".join(map(str, pair)) for pair in pairs]
        return ", ".join(told[:3]) + (f" and {len(told) - 3} more" if len(told) > 3 else "")

    @property
    def status(self) -> str:
        found = {f["status"] + (", same value" if f["same_value"] else "") for f in self.findings}
        return "; ".join(sorted(found))


def accused(rows: Iterable[Row]) -> list[Accusation]:
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        for kernel in row.get("kernels", ()):
            for finding in accusations(kernel):
                name = kernel["name"].split("<")[0]
                found.setdefault((row["file"], name, finding["array"] or "?"), []).append(finding)
    return [Accusation(*key, tuple(findings)) for key, findings in found.items()]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def write(rows: Sequence[Row], folder: Path) -> None:
    """``corpora.json`` and ``corpora.md`` in ``folder``."""
    judged_path = folder / "corpora_judged.json"
    judged: dict[str, list[str]] = json.loads(judged_path.read_text("utf-8")) if judged_path.exists() else {}
    (folder / "corpora.json").write_text(
        "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", "utf-8"
    )
    found = accused(rows)
    false = sum(judged.get(one.key, ["?"])[0] == "false" for one in found)
    text = [
        "# Verdicts on real code",
        "",
        "Made by `benchmarks/corpora.py`; every kernel with its reasons and time is in `corpora.json`.",
        "Refinement is the solver's wall time for a kernel, 0 where the first tier decided it; both are of a",
        "machine with two cores that others used at the same time; files where time alone left a kernel",
        "undecided were read once more (`--late`), and that counts. Launches are those that the sources",
        "tell, other files of the project",
        "included; where none does, the launch is assumed, and a report stands only if others as plausible",
        "show it too. Headers outside the project are not looked for, files are read with no build flags.",
        "",
        "A race is judged *true* when the source has it under the launch and the condition that the report",
        "names, also where it does no harm; *false* when the rest of the program excludes that condition.",
        "",
        summary(rows),
        "",
        "## Every `proved` or `conditional` race, read in the source",
        "",
        f"{len(found)} arrays of {len(kernels(rows))} kernels accused, {false} of them falsely.",
        "",
        "| file | kernel | lines | status | report | judged | why |",
        "| --- " * 7 + "|",
    ]
    for one in found:
        verdict, why = judged.get(one.key, ["not read", ""])
        cells = (one.file, one.kernel, one.lines, one.status, one.findings[0]["message"], verdict, why)
        text.append("| " + " | ".join(map(_cell, cells)) + " |")
    text += ["", "## Why kernels are undecided", "", "| kernels | reason |", "| --- | --- |"]
    text += [f"| {count} | {_cell(reason)} |" for reason, count in reasons(rows).most_common(40)]
    (folder / "corpora.md").write_text("\n".join(text) + "\n", "utf-8")
