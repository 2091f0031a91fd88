"""Findings as annotated source in a terminal (rich).

The shape is that of a compiler's message: the line, the accessed expression underlined, the other
access the same way, then the witness and, for a bank conflict, its histogram.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from attrs import evolve
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cuda_lsp.model import (
    BankReport,
    Code,
    FileReport,
    Finding,
    KernelReport,
    LaunchConfig,
    Severity,
    Site,
    SourceRange,
    Status,
    Verdict,
    Witness,
)
from cuda_lsp.report.defects import defects
from cuda_lsp.report.explain import page

Source = Callable[[Path], Sequence[str]]

_STYLE = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.INFORMATION: "bold blue",
    Severity.HINT: "bold cyan",
}
_VERDICT_STYLE = {
    Verdict.RACY: "bold red",
    Verdict.RACE_FREE: "bold green",
    Verdict.UNDECIDED: "bold yellow",
}
_MISSING_ONE = "free of races but for threads that miss a barrier"
MISSED = "{} of the dynamic check had escaped the static analysis, our mistake: please report the kernel"
_BLOCKS = " ▁▂▃▄▅▆▇█"


def render(
    console: Console,
    files: Iterable[FileReport],
    source: Source,
    *,
    verbose: bool = False,
    quiet: bool = False,
) -> list[FileReport]:
    """Print every file's findings and verdicts as they come, then one line of totals.

    Returns the reports. ``source(path)`` gives the lines of a file. ``verbose`` lists race-free kernels with
    other findings too; ``quiet`` leaves out verdicts and totals.
    """
    reports: list[FileReport] = []
    for report in files:
        reports.append(report)
        _render_file(console, report, source, verbose=verbose, quiet=quiet)
    if not quiet:
        console.print(_totals(reports))
    missed = sum(finding.missed for report in reports for finding in report.findings)
    if missed:
        count = f"{missed} finding{'s' if missed != 1 else ''}"
        console.print(Text(MISSED.format(count)), soft_wrap=True)
    return reports


def _render_file(console: Console, report: FileReport, source: Source, *, verbose: bool, quiet: bool) -> None:
    for error in report.errors:
        place = (_place(report.path, error.range), "bold")
        console.print(Text.assemble(place, ": ", (error.message, "magenta")), soft_wrap=True)
    for finding in sorted(defects(report.findings), key=lambda f: (f.site.range, f.effective_severity)):
        console.print(finding_text(finding, source), soft_wrap=True)
    for kernel in () if quiet else report.kernels:
        unremarkable = kernel.verdict is Verdict.RACE_FREE and not (kernel.assumptions or kernel.notes)
        if verbose or not unremarkable or not kernel.findings:
            console.print(_verdict_line(report.path, kernel), soft_wrap=True)


def _place(path: Path, extent: SourceRange | None) -> str:
    """Where an error of a file stands: maybe in a header."""
    if extent is None:
        return str(path)
    here = extent.path.absolute() == path.absolute()
    return (evolve(extent, path=path) if here else extent).beginning


def finding_text(finding: Finding, source: Source) -> RenderableType:
    """One finding: headline, both places, what to do, witness, histogram."""
    style = _STYLE[finding.effective_severity]
    parts: list[RenderableType] = [
        Text.assemble(
            (f"{finding.site.range.beginning}: ", "bold"),
            (finding.code.value, style),
            (f" [{finding.status.value}] ", "dim"),
            finding.message,
        ),
        _excerpt(finding.site, source, style, ""),
    ]
    parts += [
        _excerpt(related.site, source, "cyan", related.message)
        for related in finding.related
        if related.site.range != finding.site.range
    ]
    parts.append(Padding(Text.assemble(("next: ", "dim"), finding.next_step), (0, 0, 0, 6)))
    if finding.witness:
        parts.append(Padding(_witness(finding.witness), (0, 0, 0, 6)))
    if finding.bank:
        parts.append(Padding(_histogram(finding.bank), (0, 0, 0, 6)))
    return Group(*parts, Text(""))


def _excerpt(site: Site, source: Source, style: str, message: str) -> Text:
    extent = site.range
    lines = source(extent.path)
    if not 0 < extent.start.line <= len(lines):
        return Text("")
    line = lines[extent.start.line - 1].rstrip("\r\n")
    # A tab counts one column but many cells: show it as one space so that the underline fits.
    shown = line.replace("\t", " ")
    first = extent.start.column - 1
    last = extent.end.column - 1 if extent.end.line == extent.start.line else len(shown)
    return Text.assemble(
        (f"{extent.start.line:5} │ ", "dim"),
        shown,
        "\n",
        ("      │ ", "dim"),
        " " * first,
        ("^" * max(1, last - first), style),
        (f" {message}" if message else "", style),
    )


def _witness(witness: Witness) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=True, header_style="dim")
    for title in ("thread", "block", "element", "values"):
        table.add_column(title)
    values = ", ".join(f"{name} = {value}" for name, value in witness.values.items())
    for i, thread in enumerate(witness.threads[:1] if witness.alone else witness.threads):
        block = str(witness.blocks[i]) if witness.blocks else "same"
        table.add_row(str(thread), block, str(witness) if i == 0 else "", values if i == 0 else "")
    return table


def _histogram(bank: BankReport) -> Text:
    top = max(bank.histogram, default=0) or 1
    bars = "".join(_BLOCKS[(count * 8 + top - 1) // top] for count in bank.histogram)
    return Text.assemble(
        (f"banks 0–{len(bank.histogram) - 1} ", "dim"),
        (bars, "yellow"),
        (f"\nworst bank {top} words, {bank.wavefronts} wavefronts, ideal {bank.ideal}", "dim"),
    )


def _verdict_line(path: Path, kernel: KernelReport) -> Text:
    place = Text(f"{path}:{kernel.range.start.line}: ", "bold")
    if kernel.verdict is Verdict.RACE_FREE and kernel.misses_barrier:
        line = Text.assemble(place, kernel.name, " is ", (_MISSING_ONE, "yellow"))
    else:
        line = Text.assemble(
            place, kernel.name, " is ", (kernel.verdict.value, _VERDICT_STYLE[kernel.verdict])
        )
    if kernel.launches:
        line.append(f"  {launch_text(kernel.launches[0])}", "dim")
    for reason in kernel.reasons if kernel.verdict is Verdict.UNDECIDED else kernel.notes:
        line.append(f"\n      {reason}", "yellow")
    for assumption in kernel.assumptions:
        line.append(f"\n      taken for granted: {assumption}", "dim")
    return line


def launch_text(launch: LaunchConfig) -> str:
    """A launch in a few words: ``block 16×16, grid 64×64 (launch in this file)``."""
    block = "×".join(str(extent) for extent in _trimmed(launch.block))
    grid = "×".join(str(extent) for extent in _trimmed(launch.grid)) if launch.grid else "any"
    return f"block {block}, grid {grid} ({launch.source.value})"


def _trimmed(extents: tuple[int, int, int]) -> tuple[int, ...]:
    x, y, z = extents
    return (x, y, z) if z != 1 else (x, y) if y != 1 else (x,)


def _totals(reports: list[FileReport]) -> Text:
    kernels = [kernel for report in reports for kernel in report.kernels]
    diverging = sum(k.verdict is Verdict.RACE_FREE and k.misses_barrier for k in kernels)
    counts = {verdict: sum(k.verdict is verdict for k in kernels) for verdict in Verdict}
    counts[Verdict.RACE_FREE] -= diverging
    findings = sum(len(defects(report.findings)) for report in reports)
    seconds = sum(report.seconds for report in reports)
    text = Text.assemble(
        (f"{_plural(len(kernels), 'kernel')} in {_plural(len(reports), 'file')}: ", "bold"),
    )
    for verdict, style in _VERDICT_STYLE.items():
        text.append(f"{counts[verdict]} {verdict.value}  ", style if counts[verdict] else "dim")
    if diverging:
        text.append(f"{diverging} {_MISSING_ONE}  ", "yellow")
    text.append(f"{_plural(findings, 'finding')}, {seconds:.2f} s")
    lost = sum(any(e.severity is Severity.ERROR and e.range is None for e in r.errors) for r in reports)
    if lost:
        text.append(f", {_plural(lost, 'file')} not analysed", "bold red")
    return text


def statistics(reports: Iterable[FileReport]) -> RenderableType:
    """Findings counted by code and status."""
    found = Counter((f.code, f.status) for report in reports for f in defects(report.findings))
    statuses = [status for status in Status if any(seen is status for _, seen in found)]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("code")
    for status in statuses:
        table.add_column(status.value, justify="right")
    table.add_column("all", justify="right", style="bold")
    for code in Code:
        counts = [found[code, status] for status in statuses]
        if any(counts):
            table.add_row(code.value, *(str(count or "") for count in counts), str(sum(counts)))
    return table


def explanations(reports: Iterable[FileReport]) -> RenderableType:
    """The pages of the codes that were found."""
    codes = {finding.code for report in reports for finding in report.findings}
    from rich.markdown import Markdown  # with all that reads Markdown

    return Group(*(Markdown(page(code)) for code in Code if code in codes))


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
