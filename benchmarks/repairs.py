"""Verified repairs of fixtures without each of their barriers, and of labelled kernels that are racy.

    .venv/bin/python benchmarks/repairs.py [--only WORD] [--run emulator|gpu] [--jobs N] [--report]

Each text is mended as ``check --fix --unsafe-fixes`` mends it. A row for each kernel that is racy, or has
another finding that repairs are for: what was found, what was done, what both tiers say of it then, and, with
``--run``, what a run of the mended kernel shows; what the other engine showed is kept. Rows go to
``repairs.json``, ``--report`` writes ``repairs.md`` of them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests")]

from fixture_cases import FIXTURES, cases  # noqa: E402

Row = dict[str, Any]
Text = tuple[str, Path, str]
"""A name, a file, and what is read in its place."""
_DEADLINE = 20.0  # seconds of one run
_ENGINES = ("emulator", "gpu")


def texts() -> Iterator[Text]:
    """Fixtures with a barrier left out and as they are, the demo, labelled files and blind ones."""
    for case in cases():
        if case.banks == 32:
            yield case.name, case.path, case.text
    for path in (
        path for folder in ("demo", "labelled", "blind") for path in sorted((FIXTURES / folder).glob("*.cu"))
    ):
        yield f"{path.parent.name}/{path.stem}", path, path.read_text()


def study(text: Text) -> list[Row]:
    """The rows of one text."""
    from cuda_lsp.config import PATIENT
    from cuda_lsp.repairs.kinds import repairable
    from cuda_lsp.repairs.plan import InProcess
    from cuda_lsp.repairs.search import composed
    from cuda_lsp.static.analyze import Analyzer

    name, path, source = text
    analyzer = Analyzer(PATIENT)
    started = time.perf_counter()
    before = analyzer.check(path, source)
    read = time.perf_counter() - started
    made = composed(path, source, before, InProcess(analyzer, path))
    seconds = time.perf_counter() - started - read
    after = {kernel.name: kernel for kernel in made.report.kernels}
    rows: list[Row] = []
    for kernel in before.kernels:
        told = {f.code for f in kernel.findings if f.code in repairable()}
        if not told and kernel.verdict.value != "racy":
            continue
        done = [repair for repair in made.repairs if any(f.kernel == kernel.name for f in repair.findings)]
        rows.append(
            {
                "text": name,
                "kernel": kernel.name,
                "verdict": kernel.verdict.value,
                "codes": sorted(code.value for code in told),
                "repairs": [repair.kind.value for repair in done],
                "titles": [repair.title for repair in done],
                "after": after[kernel.name].verdict.value,
                "left": sorted({f.code.value for f in after[kernel.name].findings if f.code in repairable()}),
                "seconds": [round(read, 2), round(seconds, 2)],
            }
        )
    analyzer.shutdown()
    run = {row["kernel"] for row in rows if row["repairs"]}
    if run and _engine:
        seen = _seen(path, made.text, run, _engine)
        rows = [{**row, _engine: seen[row["kernel"]]} if row["kernel"] in seen else row for row in rows]
    return rows


_engine = ""  # for the runs; none: no runs


def _seen(path: Path, text: str, names: set[str], engine: str) -> dict[str, str]:
    """What a run of each mended kernel shows: ``clean``, or what is wrong."""
    from attrs import evolve

    from cuda_lsp.config import Settings
    from cuda_lsp.confirm import CheckOptions, job_for
    from cuda_lsp.dynamic.job import EngineKind
    from cuda_lsp.dynamic.observations.merge import merged
    from cuda_lsp.dynamic.runner import Runner
    from cuda_lsp.model import Status
    from cuda_lsp.static.analyze import Analyzer

    analyzer, runner, found = Analyzer(Settings()), Runner(), dict[str, str]()
    options = CheckOptions(EngineKind(engine), watch_all=True, all_blocks=False)
    report = analyzer.update(path, text)
    for kernel in report.kernels:
        program = analyzer.kernel(path, kernel.name)
        if kernel.name not in names or program is None:
            continue
        job = job_for(path, text, program, kernel, Settings(), options)
        result = runner.run(evolve(job, deadline=_DEADLINE))  # in a process: what hangs ends no other
        if result.problem is not None:
            why = "; ".join([result.problem, *(error.message for error in result.errors[:1])])
            found[kernel.name] = f"not run: {why}"[:300]
            continue
        failures = [str(trial.races.failure) for trial in result.results if trial.races.failure]
        seen = merged(kernel, result, job.shapes)
        races = [f.code.value for f in seen.findings if f.kind and f.status is Status.CONFIRMED]
        found[kernel.name] = "; ".join([*failures, *races])[:200] or "clean"
    analyzer.shutdown()
    runner.close()
    return found


def _runs(earlier: Row, row: Row) -> Row:
    """What runs of a kernel showed before, if it was mended in the same way."""
    if earlier.get("titles") != row["titles"]:
        return {}
    return {engine: earlier[engine] for engine in _ENGINES if engine in earlier}


_SPEED = ("pad a shared array", "permute the columns of a shared array", "remove a barrier")


def _counted(row: Row, *, of_race: bool = True) -> list[str]:
    """The repairs of a row; of a race: without those that only make it faster."""
    return [kind for kind in row["repairs"] if not of_race or kind not in _SPEED]


def _ran(row: Row, engine: str) -> bool:
    """Whether a mended kernel was run by ``engine`` of which nothing racy is left."""
    said = row.get(engine)
    return bool(said) and not said.startswith("not run") and row["after"] != "racy"


def table(rows: Sequence[Row]) -> str:
    """What the rows tell, as Markdown."""
    racy = [row for row in rows if row["verdict"] == "racy"]
    parts = ["| | kernels | a verified repair | nothing left | share |", "| --- | --- | --- | --- | --- |"]
    groups = {
        "racy": racy,
        "racy, fixtures without a barrier": [r for r in racy if "/" not in r["text"]],
        "racy, labelled": [r for r in racy if r["text"].startswith("labelled/")],
        "… in shared memory or between lanes": [
            r for r in racy if r["text"].startswith("labelled/") and "global-race" not in r["codes"]
        ],
        "… in global memory": [
            r for r in racy if r["text"].startswith("labelled/") and "global-race" in r["codes"]
        ],
        "racy, blind": [r for r in racy if r["text"].startswith("blind/")],
        "… in shared memory or between lanes ": [
            r for r in racy if r["text"].startswith("blind/") and "global-race" not in r["codes"]
        ],
        "barriers that not all reach": [r for r in rows if "barrier-divergence" in r["codes"]],
        "bank conflicts": [r for r in rows if "bank-conflict" in r["codes"]],
        "shared arrays overrun": [r for r in rows if "shared-out-of-bounds" in r["codes"]],
    }
    other = ("barriers that not all reach", "bank conflicts", "shared arrays overrun")
    for title, group in groups.items():
        mended = sum(bool(_counted(row, of_race=title not in other)) for row in group)
        whole = sum(not row["left"] for row in group)
        share = f"{mended / len(group):.0%}" if group else ""
        parts.append(f"| {title} | {len(group)} | {mended} | {whole} | {share} |")
    kinds = Counter(kind for row in rows for kind in row["repairs"])
    parts += ["", "| kind | repairs | emulator: ran | clean | card: ran | clean |", "| --- " * 6 + "|"]
    for kind, count in kinds.most_common():
        told = [kind, str(count)]
        for engine in _ENGINES:
            ran = [row for row in rows if kind in row["repairs"] and _ran(row, engine)]
            told += [str(len(ran)), str(sum(row[engine] == "clean" for row in ran))]
        parts.append(f"| {' | '.join(told)} |")
    return "\n".join(parts)


def unmended(rows: Sequence[Row]) -> str:
    """Where the racy kernels without a repair are, and runs that were not clean, by name."""
    left = Counter(row["text"] for row in rows if row["verdict"] == "racy" and not _counted(row))
    odd = [
        f"- `{r['text']}` `{r['kernel']}` ({', '.join(r['repairs'])}), {engine}: {r[engine]}"
        for engine in _ENGINES
        for r in rows
        if _ran(r, engine) and r[engine] != "clean"
    ]
    told = ", ".join(f"{name} {count}" for name, count in left.most_common())
    runs = ["Runs of mended kernels that were not clean:", "", *odd] if odd else ["All runs were clean."]
    return "\n".join([f"Racy kernels without a verified repair, by text: {told}.", "", *runs])


def write(rows: Sequence[Row]) -> None:
    """``repairs.md``."""
    parts = [
        "# Verified repairs",
        "Every fixture as it is and without each of its barriers, the demo, the labelled kernels and the"
        " blind ones, mended as `check --fix --unsafe-fixes` does (`benchmarks/repairs.py`). *A verified"
        " repair*: at least one; both tiers have analysed the edited text. *Nothing left*: no finding"
        " that repairs are for. Runs are of mended kernels, with all accesses watched.",
        table(rows),
        unmended(rows),
    ]
    (HERE / "repairs.md").write_text("\n\n".join(parts) + "\n")


def main() -> None:
    global _engine
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="texts whose name holds this word")
    parser.add_argument("--run", default="", choices=_ENGINES, help="run the mended kernels")
    parser.add_argument("--jobs", type=int, default=1, help="texts studied at once")
    parser.add_argument("--store", type=Path, default=HERE / "repairs.json", help="where rows are kept")
    parser.add_argument("--report", action="store_true", help="write repairs.md of repairs.json")
    arguments = parser.parse_args()
    _engine = arguments.run
    store: Path = arguments.store
    known: list[Row] = json.loads(store.read_text()) if store.exists() else []
    chosen = [text for text in texts() if arguments.only in text[0]]
    with multiprocessing.get_context("fork").Pool(arguments.jobs, maxtasksperchild=1) as pool:
        for (name, *_), rows in zip(chosen, pool.imap(study, chosen), strict=True):
            earlier = {row["kernel"]: row for row in known if row["text"] == name}
            rows = [{**_runs(earlier.get(row["kernel"], {}), row), **row} for row in rows]
            known = [row for row in known if row["text"] != name] + rows
            racy = [row for row in rows if row["verdict"] == "racy"]
            print(name, len(racy), "racy,", sum(bool(row["repairs"]) for row in racy), "mended", flush=True)
            store.write_text(
                json.dumps(sorted(known, key=lambda row: (row["text"], row["kernel"])), indent=1)
            )
    print(table(known))
    if arguments.report:
        write(known)


if __name__ == "__main__":
    main()
