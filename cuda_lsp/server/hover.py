"""What the pointer shows: the witness of a race, the banks of a conflict, a kernel's verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve
from lsprotocol import types as lsp

from cuda_lsp.barrier_intervals import meeting_of, race_on
from cuda_lsp.model import (
    BankReport,
    FileReport,
    Finding,
    KernelReport,
    LaunchConfig,
    Observation,
    Position,
    Witness,
)
from cuda_lsp.report.defects import defects, places_of
from cuda_lsp.server.check_commands import interval_action, picture_action
from cuda_lsp.server.positions import contains
from cuda_lsp.source_names import called

_BARS = " ▁▂▃▄▅▆▇█"


def hover_text(report: FileReport, position: Position, *, tables: bool = True) -> str | None:
    """Markdown for ``position``; None where there is nothing to say. ``tables``: the client draws them."""
    parts = [_finding(finding, instances, tables) for finding, instances in _meant(report, position)]
    if not parts:
        parts = [_kernel(k) for k in report.kernels if k.range.start.line == position.line]
    return "\n\n---\n\n".join(parts) or None


def pictures(report: FileReport, position: Position, uri: str) -> list[tuple[int, lsp.Command]]:
    """What shows the findings at a position as pictures, and of which line."""
    found: dict[str, tuple[int, lsp.Command]] = {}
    for finding, _ in _meant(report, position):
        if finding.bank is not None and finding.site.range.path == report.path:
            line, action = finding.site.range.start.line, picture_action
        elif meeting_of(finding) is not None and race_on(report, position.line) is not None:
            line, action = position.line, interval_action
        else:
            continue
        command = action(uri, line)
        found.setdefault(command.title, (line, command))
    return list(found.values())


def _meant(report: FileReport, position: Position) -> Iterator[tuple[Finding, Sequence[str]]]:
    """The findings at a position, the worst of a defect first, and the instances that they are of."""
    for defect in defects(report.findings):
        pairs: dict[object, list[Finding]] = {}
        for finding in (evolve(defect, related=defect.related[:1]), *defect.also):
            if _touches(finding, position):
                pairs.setdefault((finding.code, places_of(finding)), []).append(finding)
        for same in pairs.values():
            yield same[0], list(dict.fromkeys(finding.kernel for finding in same))


def _touches(finding: Finding, position: Position) -> bool:
    places = [finding.site.range, *(related.site.range for related in finding.related)]
    return any(contains(extent, position) for extent in places)


def _finding(finding: Finding, instances: Sequence[str], tables: bool) -> str:
    kind = f" ({finding.kind.value})" if finding.kind else ""
    lines = [f"**{finding.code.value}**{kind} · {finding.status.value}"]
    if (
        not finding.witness
    ):  # with one, its table says all that the message says, and brackets keep their meaning
        lines += ["", finding.message]
    if finding.condition:
        lines += ["", f"When {finding.condition}."]
    if finding.witness:
        lines += ["", *_witness(finding, finding.witness, tables)]
    lines += ["", f"Next: {finding.next_step}."]
    if finding.observation:
        lines += ["", _observation(finding.observation)]
    if finding.bank:
        lines += ["", *_bank(finding.bank)]
    if len(instances) > 1:
        lines += ["", f"In {', '.join(f'`{name}`' for name in instances)}."]
    if finding.launch:
        lines += ["", f"*{launch_text(finding.launch)}*"]
    if finding.earlier:
        lines += ["", "*As of the text before the last edit; it is being proved again.*"]
    return "\n".join(lines)


def _witness(finding: Finding, witness: Witness, tables: bool) -> Iterator[str]:
    places = [related.site for related in finding.related[:1]] + [finding.site]
    if len(places) == 1:
        places *= 2
    rows = [("", "thread", "block", "access", "line")]
    shown = 1 if witness.alone else 2
    for number, (thread, site) in enumerate(zip(witness.threads[:shown], places[:shown], strict=True), 1):
        block = str(witness.blocks[number - 1]) if witness.blocks else "same"
        rows.append((str(number), str(thread), block, site.text, str(site.range.start.line)))
    yield from _table(rows) if tables else _columns(rows)
    yield ""
    element = called(str(witness), witness.array, (site.text for site in places))
    yield f"{'It touches' if witness.alone else 'Both touch'} `{element}`."
    if witness.values:
        yield "With " + ", ".join(f"`{name} = {value}`" for name, value in witness.values.items()) + "."


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Markdown; the fourth column is code."""
    yield f"| {' | '.join(rows[0])} |".replace("|  |", "| |")
    yield "|---" * len(rows[0]) + "|"
    for *first, code, line in rows[1:]:
        yield f"| {' | '.join(first)} | `{code.replace('|', chr(92) + '|')}` | {line} |"


def _columns(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """For clients that show the bars of a table as they are."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield "```text"
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield "```"


def _observation(seen: Observation) -> str:
    share = f"{seen.blocks_checked} of {seen.blocks_total} blocks checked"
    return f"{seen.told[0].upper()}{seen.told[1:]}; {share}, {1e3 * seen.seconds:.1f} ms."


def _bank(bank: BankReport) -> Iterator[str]:
    top = max(bank.histogram, default=0) or 1
    bars = "".join(_BARS[(count * 8 + top - 1) // top] for count in bank.histogram)
    yield f"{bank.ways}-way: {bank.wavefronts} wavefronts a warp instruction, ideal {bank.ideal}."
    yield ""
    yield "```text"
    yield f"words per bank, 0 to {len(bank.histogram) - 1} (most {top})"
    yield bars
    yield "```"


def _kernel(kernel: KernelReport) -> str:
    lines = [f"**{kernel.name}** is **{kernel.verdict.value}**"]
    lines += [f"- {reason}" for reason in kernel.reasons]
    lines += [f"- taken for granted: {assumption}" for assumption in kernel.assumptions]
    lines += [f"*{launch_text(launch)}*" for launch in kernel.launches]
    return "\n\n".join(lines)


def launch_text(launch: LaunchConfig) -> str:
    """``block (256, 1, 1), any grid — default``."""
    grid = f"grid {launch.grid}" if launch.grid else "any grid"
    return f"block {launch.block}, {grid} — {launch.source.value}"
