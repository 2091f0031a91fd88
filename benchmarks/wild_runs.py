"""Programs of public projects, each run once under check as its makefile runs it, and by racecheck beside it.

    python benchmarks/wild_projects.py pack FOLDER …            # anywhere, before
    python benchmarks/wild_runs.py run FOLDER [--engine gpu] [--seconds 20] [--processes 12] [--limit 550]
                                      [--racecheck] [--only NAME,…]
    python benchmarks/wild_runs.py report FOLDER wild.md

``run`` needs no libclang. It writes FOLDER/results.jsonl, a row for each program as soon as it is done, and
goes on where it ended; ``--limit`` ends it. Each program has ``--seconds`` for its run, and three times that
for its build. ``report`` writes the section *Confirmed on a GPU* of a page.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attrs import evolve
from wild_projects import Program

from cuda_lsp.dynamic.job import CheckResult, EngineKind
from cuda_lsp.dynamic.programs.job import KernelRuns, ProgramJob, ProgramResult
from cuda_lsp.dynamic.runner import CheckCancelled, Runner
from cuda_lsp.dynamic.runs import SeenRace

Row = dict[str, Any]

RESULTS = "results.jsonl"
TITLE = "## Confirmed on a GPU"
CAUSES = Path(__file__).with_name("wild_causes.json")
"""What the source says of the races of a program, one sentence each, written by who has read it."""
_SAME = "(same value)"
_LATE = "IT DID NOT END IN TIME"
_BUILD = 3.0  # times the seconds of a run: for its build
_TOLD = 12  # races of a program in the page


def run(folder: Path, options: argparse.Namespace) -> None:
    """Run what has no row yet, several programs at once."""
    _at_its_place(folder)
    programs: list[Program] = pickle.loads((folder / "programs.pkl").read_bytes())
    wanted = frozenset(filter(None, options.only.split(",")))
    known = {row["name"] for row in rows_of(folder)}
    left = [p for p in programs if p.name not in known and (not wanted or p.name in wanted)]
    end, writing = time.monotonic() + options.limit, threading.Lock()

    def take(program: Program) -> None:
        if program.job is not None and time.monotonic() > end - options.seconds:
            return  # in the next call
        row = _row(program, program.job, folder, end, options) if program.job else _unbuilt(program)
        if row is None:
            return
        with writing, (folder / RESULTS).open("a") as out:
            out.write(json.dumps(row) + "\n")
        told = {k: row.get(k) for k in ("status", "launches", "seconds", "problem")}
        print(program.name, json.dumps(told), f"{len(row.get('races', ()))} races", flush=True)

    with ThreadPoolExecutor(options.processes) as pool:
        for done in [pool.submit(take, program) for program in left]:
            done.result()
    print(f"{len(rows_of(folder))} of {len(programs)} programs have a row", flush=True)


def _at_its_place(folder: Path) -> None:
    """Jobs name files where they were packed: make those names lead here."""
    for there in map(Path, json.loads((folder / "places.json").read_text())):
        if there != folder and not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            there.symlink_to(folder)


def _unbuilt(program: Program) -> Row:
    return {"name": program.name, "problem": program.problem, "built": False}


def _row(
    program: Program, job: ProgramJob, folder: Path, end: float, options: argparse.Namespace
) -> Row | None:
    """What came of a program; None: the time for all was over before."""
    runner, begun, cache = Runner(), time.monotonic(), folder / "cache"
    due = min(end, begun + (1 + _BUILD) * options.seconds + 5)
    whole, engine = (1 + _BUILD) * options.seconds, EngineKind(options.engine)
    job = evolve(job, engine=engine, cache=cache, deadline=whole, running=options.seconds)
    try:
        result = runner.run_program(job, cancelled=lambda: time.monotonic() > due)
    except CheckCancelled:
        if due == end:
            return None
        result = ProgramResult(problem="its build did not end in time")
    except Exception as error:  # noqa: BLE001 - the next program may run
        result = ProgramResult(problem=f"{type(error).__name__}: {error}"[:300])
    finally:
        runner.close()
    row = {"name": program.name, "built": result.status is not None, **row_of(result)}
    row["accused"] = program.accused
    row["wall"] = round(time.monotonic() - begun, 1)
    if options.racecheck and row["built"] and time.monotonic() < end:
        row["racecheck"] = _racecheck(job, min(options.seconds, end - time.monotonic()))
    return row


def row_of(result: ProgramResult) -> Row:
    """A program's run as plain data."""
    return {
        "status": result.status,
        "launches": result.launches,
        "kernels": [_kernel(run) for run in result.runs],
        "races": [race for run in result.runs for check in run.checks for race in _races(run.name, check)],
        "seconds": round(result.seconds, 1),
        "problem": result.problem,
        "errors": [error.message[:200] for error in result.errors][:3],
        "notes": [note[:300] for note in result.notes],
        "output": result.output[-300:],
    }


def _kernel(run: KernelRuns) -> Row:
    outcomes = [trial.races for check in run.checks for trial in check.results]
    return {
        "name": run.name,
        "own": run.kernel is not None,
        "launches": run.counts.launches,
        "checked": run.counts.checked,
        "watched": len(outcomes),
        "reasons": run.counts.reasons,
        "failure": next((o.failure for o in outcomes if o.failure), None),
        "faults": sum(len(o.faults) for o in outcomes),
        "not covered": sorted({text for o in outcomes for text in o.not_covered}),
    }


def _races(name: str, check: CheckResult) -> Iterator[Row]:
    """One for each pair of places: of all launches the one with most thread pairs."""
    found: dict[tuple[str, ...], SeenRace] = {}
    launches: Counter[tuple[str, ...]] = Counter()
    for trial in check.results:
        here = set[tuple[str, ...]]()
        for race in trial.races.races:
            key = tuple(sorted(_place(check, k) for k in race.sites))
            here.add(key)
            if key not in found or found[key].pairs < race.pairs:
                found[key] = race
        launches.update(here)
    for key, race in found.items():
        yield {
            "kernel": name,
            "places": list(key),
            "texts": [site.text if (site := check.sites[k].site) else "" for k in race.sites],
            "modes": [mode.value for mode in race.modes],
            "space": race.place.space.value,
            "threads": list(race.threads),
            "blocks": list(race.blocks),
            "pairs": race.pairs,
            "words": race.words,
            "same value": race.same_value,
            "warp only": race.warp_only,
            "launches": launches[key],
        }


def _place(check: CheckResult, number: int) -> str:
    site = check.sites[number].site
    return f"{site.range.path.name}:{site.range.start.line}" if site else "elsewhere"


# -------------------------------------------------------------------------------------------- racecheck


def _racecheck(job: ProgramJob, seconds: float) -> Row:
    """The same program as nvcc links it, under ``compute-sanitizer --tool racecheck`` for the same time."""
    tool, nvcc = shutil.which("compute-sanitizer"), shutil.which("nvcc")
    made = _objects(job)
    if tool is None or nvcc is None or made is None:
        return {"problem": "compute-sanitizer, nvcc or the program's objects are not there"}
    plain = made / "plain"
    objects = sorted(str(path) for path in made.glob("part*.o"))
    link = [f"-Xlinker={o[4:]}" if o.startswith("-Wl,") else o for o in job.link]
    linked = subprocess.run(
        [nvcc, *objects, "-o", str(plain), *link, "-lpthread", "-ldl"], capture_output=True
    )
    if linked.returncode:
        return {"problem": "it does not link"}
    begun = time.monotonic()
    command = [tool, "--tool", "racecheck", "--print-limit", "1000", str(plain), *job.arguments]
    with open(job.input or os.devnull, "rb") as given:
        said = _limited(command, job.folder, given, seconds)
    return {**racecheck_said(said), "seconds": round(time.monotonic() - begun, 1)}


def _objects(job: ProgramJob) -> Path | None:
    """Where the check's build left them: the program of this job."""
    names = {f"part{number}.o" for number in range(len(job.units))}
    for folder in (job.cache / "programs").glob("*"):
        if (folder / job.path.name).exists() and names <= {path.name for path in folder.glob("part*.o")}:
            copy = (folder / job.path.name).read_text(errors="replace")
            if copy.startswith(f'#line 1 "{job.path.absolute()}"'):
                return folder
    return None


def _limited(command: Sequence[str], folder: Path, given: Any, seconds: float) -> str:
    """What a command says until it ends or its time is over; all that it started ends with it."""
    child = subprocess.Popen(
        command, cwd=folder, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True,
    )  # fmt: skip
    try:
        return child.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return f"{child.communicate()[0]}\n{_LATE}\n"


def racecheck_said(output: str) -> Row:
    """Kernels and pairs of lines that racecheck names, and its summary."""
    pairs = Counter[str]()
    for block in re.split(r"(?m)^=========\s*$", output):
        if "Race reported" in block or "hazard" in block.lower():
            lines = re.findall(r"in ([^\s:()]+\.\w+):(\d+)", block)
            if lines:
                pairs["/".join(sorted({f"{Path(name).name}:{line}" for name, line in lines}))] += 1
    summary = re.findall(r"RACECHECK SUMMARY: (.*)", output)
    return {
        "pairs": dict(pairs),
        "summary": summary[-1] if summary else None,
        "ended": _LATE not in output,
    }


# ------------------------------------------------------------------------------------------------- page


def rows_of(folder: Path) -> list[Row]:
    """All rows, the last of each program."""
    path = folder / RESULTS
    lines = path.read_text().splitlines() if path.exists() else []
    return list({row["name"]: row for row in map(json.loads, lines)}.values())


def report(folder: Path, page: Path) -> None:
    """Write the section, in place of the one that was there."""
    text = page.read_text() if page.exists() else "# Programs that nobody tuned for\n"
    before, _, rest = text.partition(TITLE)
    after = rest[rest.index("\n## ") + 1 :] if "\n## " in rest else ""
    page.write_text(f"{before.rstrip()}\n\n{section(rows_of(folder))}\n{after}".rstrip() + "\n")


def section(rows: Sequence[Row]) -> str:
    """The section for these rows."""
    ran = [row for row in rows if row.get("launches")]
    own = [kernel for row in ran for kernel in row["kernels"] if kernel["own"]]
    checked = [kernel for kernel in own if kernel["checked"]]
    reasons = Counter(
        reason for kernel in own if not kernel["checked"] for reason in kernel["reasons"] or ("unknown",)
    )
    racy = [row for row in ran if row["races"]]
    causes: dict[str, str] = json.loads(CAUSES.read_text()) if CAUSES.exists() else {}
    harmless = {name for name, cause in causes.items() if cause.endswith(_SAME)}
    apart = [
        (row, r) for row in ran for r in row["races"] if not (r["same value"] or row["name"] in harmless)
    ]
    pairs = {(row["name"], *race["places"]) for row, race in apart}
    share = f"{100 * len(checked) / len(own):.0f} %" if own else "–"
    head = [
        TITLE,
        "",
        f"{len(rows)} programs: {sum(bool(row['built']) for row in rows)} built and started,"
        f" {len(ran)} launched kernels. {len(own)} kernels of their sources were launched, {len(checked)}"
        f" ({share}) checked. Races were seen in {len(racy)} programs; {len(pairs)} pairs of places in"
        f" {len({row['name'] for row, _ in apart})} of them are more than stores of one value.",
        "",
        "Exit status -9: its time was over before the program ended; 71: a checked kernel hung or faulted.",
        "",
        *_beside(racy),
        *(f"- not checked, {count}: {reason}" for reason, count in reasons.most_common()),
        *(f"- no kernel launched, {count}: {why}" for why, count in _idle(rows)),
        "",
        "| program | status | kernels launched | checked | seconds | races | cause | racecheck | remark |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    named = sorted(ran, key=lambda row: (not row["races"], row["name"]))
    return "\n".join([*head, *(_line(row, causes.get(row["name"], "")) for row in named), ""])


def _beside(racy: Sequence[Row]) -> list[str]:
    """What racecheck, which watches shared memory, made of the programs with races."""
    said = [row["racecheck"] for row in racy if row.get("racecheck")]
    if not said:
        return []
    ended, told = sum(row["ended"] for row in said), sum(bool(row["pairs"]) for row in said)
    return [
        f"Racecheck, as long as the check ran at most, on {len(said)} programs with races: {ended} ended, a"
        f" hazard was told in {told}. It watches shared memory only.",
        "",
    ]


def _idle(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """Why programs launched nothing, and how many did not for that reason; rare ones together."""
    whys = Counter(
        "it does not build" if "does not build" in (why := row.get("problem") or "it ended before") else
        "its makefile wants files that are not there" if "No rule" in why or "No such" in why else why
        for row in rows
        if not row.get("launches")
    )  # fmt: skip
    common = [(why, count) for why, count in whys.most_common() if count > 1]
    rest = sum(whys.values()) - sum(count for _, count in common)
    return [*common, ("other reasons", rest)] if rest else common


def _line(row: Row, cause: str) -> str:
    kernels = [kernel for kernel in row.get("kernels", ()) if kernel["own"]]
    checked = sum(bool(kernel["checked"]) for kernel in kernels)
    cells = (
        row["name"], "–" if row.get("status") is None else row["status"], len(kernels) or "", checked or "",
        row.get("wall", ""), _told(row.get("races", ())), cause, _said(row.get("racecheck")),
        _remark(row, kernels),
    )  # fmt: skip
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _told(races: Sequence[Mapping[str, Any]]) -> str:
    pairs: dict[str, None] = {}
    for race in races:
        mark = " (same value)" if race["same value"] else ""
        pairs[f"{race['kernel'].split('<')[0]} {' and '.join(dict.fromkeys(race['places']))}{mark}"] = None
    more = f"; {len(pairs) - _TOLD} more" if len(pairs) > _TOLD else ""
    return "; ".join(list(pairs)[:_TOLD]) + more


def _said(seen: Mapping[str, Any] | None) -> str:
    if seen is None:
        return ""
    if seen.get("problem"):
        return str(seen["problem"])
    late = "" if seen["ended"] else ", out of time"
    return f"{len(seen['pairs'])} pairs{late}"


def _remark(row: Row, kernels: Sequence[Mapping[str, Any]]) -> str:
    failures = [f"{k['name']}: {k['failure']}" for k in kernels if k["failure"]]
    said = [row.get("problem"), *row.get("errors", ())[:1], *failures[:2]]
    return "; ".join(dict.fromkeys(text for text in said if text))[:300]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=["run", "report"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("page", type=Path, nargs="?", default=Path(__file__).with_name("wild.md"))
    parser.add_argument("--engine", choices=[kind.value for kind in EngineKind], default="gpu")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--limit", type=float, default=550.0)
    parser.add_argument("--racecheck", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if options.step == "run":
        run(options.folder.resolve(), options)
    else:
        report(options.folder, options.page)


if __name__ == "__main__":
    sys.exit(main())
