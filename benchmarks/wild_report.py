"""The tables of ``wild.py``: verdicts by project, why kernels are undecided, and times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
RACES = ("shared-race", "global-race", "warp-race", "warp-synchronous")
CLASSES = (
    ("compile error", r"compile error|not made out|not understood"),
    ("template that nothing instantiates", r"template that nothing|no guess of its arguments"),
    ("solver's time", r"ran out of time|solver's time|solver gave up|too many pairs|for the solver|took all"),
    ("the file's time or memory", r"its analysis (?:took|ran|needed|was|needs)|its analysis"),
    ("contents of memory", r"contents of|what memory holds|result of an? atomic|results? of .*atomic"),
    ("where a pointer points", r"points is not known|pointer"),
    ("launch or arguments", r"^the arguments|launch|which are only assumed|number of blocks|grid"),
    ("candidate not replayed", r"replayed"),
    ("no body in this unit", r"has no body"),
    ("ranges of helper classes", r"range that is not an array"),
    ("barriers of some threads", r"barrier"),
    ("how a variable changes", r"changes from round to round"),
    ("construct that is not analysed", r"is not analysed"),
)
"""Reasons by their words, the first that matches."""


def shape(reason: str) -> str:
    """A reason without its names and numbers, for counting."""
    reason = re.sub(r"`[^`]*`|'[^']*'", "…", reason)
    return re.sub(r"\d+", "#", reason)[:110]


def why(kernel: Row) -> str:
    """The class of a kernel's first reason."""
    first = kernel["reasons"][0] if kernel["reasons"] else ""
    return next((name for name, words in CLASSES if re.search(words, first)), "other")


def launch_unknown(kernel: Row) -> bool:
    """Whether the project launches it, and the analysis does not know how."""
    return kernel["launched"] and kernel.get("assumed", True)


def _kernels(rows: Iterable[Row]) -> list[Row]:
    return [kernel for row in rows for kernel in row["kernels"]]


def _certainty(kernel: Row) -> str:
    races = [f for f in kernel["findings"] if f["code"] in RACES]
    told = {f["status"] for f in races if not f["same_value"]}
    return next(
        (s for s in ("proved", "conditional", "possible") if s in told), "same value" if races else ""
    )


def _percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values) or [0.0]
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def _share(count: int, of: int) -> str:
    return f"{count} ({100 * count / max(1, of):.1f} %)"


def _project(name: str, rows: Sequence[Row]) -> str:
    found = _kernels(rows)
    verdicts = Counter(kernel["verdict"] for kernel in found)
    racy = Counter(_certainty(kernel) for kernel in found if kernel["verdict"] == "racy")
    possible = sum(k["verdict"] == "undecided" and _certainty(k) == "possible" for k in found)
    launched = [kernel for kernel in found if kernel["launched"]]
    cells = (
        name,
        len(rows),
        sum(row["failure"] is not None for row in rows),
        len(found),
        verdicts["race-free"],
        f"{verdicts['racy']} ({racy['proved']} / {racy['conditional']} / {racy['same value']})",
        possible,
        _share(verdicts["undecided"], len(found)),
        _share(sum(map(launch_unknown, found)), len(launched)),
        *(f"{_percentile([row['seconds'] for row in rows], share):.1f}" for share in (0.5, 0.95)),
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def _classes(groups: dict[str, Sequence[Row]]) -> Iterable[str]:
    counted = {
        name: Counter(why(k) for k in _kernels(rows) if k["verdict"] == "undecided")
        for name, rows in groups.items()
    }
    total = Counter[str]()
    for counter in counted.values():
        total += counter
    whole = sum(len(_kernels(rows)) for rows in groups.values())
    yield "| first reason | " + " | ".join(groups) + " | all |"
    yield "| --- " * (len(groups) + 2) + "|"
    for name, count in total.most_common():
        cells = [str(counter[name] or "") for counter in counted.values()]
        yield f"| {name} | " + " | ".join(cells) + f" | {_share(count, whole)} |"


def write(rows: Sequence[Row], target: Path) -> None:
    """The tables, before what ``wild_runs`` wrote into ``target``; they are printed as well."""
    groups: dict[str, Sequence[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["project"], row["file"])):
        groups[row["project"]] = [*groups.get(row["project"], ()), row]
    undecided = [k for k in _kernels(rows) if k["verdict"] == "undecided"]
    shapes = Counter(shape(k["reasons"][0]) if k["reasons"] else "(no reason)" for k in undecided)
    lines = [
        "# Verdicts on projects that nobody tuned for",
        "",
        "Made by `benchmarks/wild.py`: every file with kernels, as `cuda-lsp check FOLDER` reads it, without",
        "third-party headers. Racy: proved / conditional / of one value alone. Possible: undecided ones with",
        "a possible race. Launch unknown: of the kernels that some text of the project launches, those whose",
        "launch is assumed. Times are wall times of a file's process while all cores had files to read.",
        "",
        "| project | files | not ended | kernels | race-free | racy | possible | undecided | launch unknown"
        " | median s | p95 s |",
        "| --- " * 11 + "|",
        *(_project(name, group) for name, group in [*groups.items(), ("all", list(rows))]),
        "",
        "## Why kernels are undecided: the class of the first reason",
        "",
        *_classes(groups),
        "",
        "## First reasons, as worded",
        "",
        "| kernels | reason |",
        "| --- | --- |",
        *(f"| {count} | {reason.replace('|', chr(92) + '|')} |" for reason, count in shapes.most_common(60)),
    ]
    text = "\n".join(lines) + "\n"
    _, title, runs = (target.read_text("utf-8") if target.exists() else "").partition(
        "\n## Confirmed on a GPU"
    )
    target.write_text(text + title + runs, "utf-8")
    print(text)
