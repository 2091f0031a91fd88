"""Verdicts as JUnit XML, which every CI system shows: a file is a suite, a kernel a test case.

A kernel with a finding of a warning or more has failed; one that is undecided is skipped, with the reasons:
it has not passed. What could not be analysed is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as Xml

from cuda_lsp.model import FileReport, Finding, KernelReport, Severity, ToolError, Verdict
from cuda_lsp.report.defects import defects

_CONTROLS = (c for c in range(32) if chr(c) not in "\t\n\r")
_REFUSED = dict.fromkeys((*_CONTROLS, *range(0xD800, 0xE000), 0xFFFE, 0xFFFF), "\N{REPLACEMENT CHARACTER}")
"""Characters that XML 1.0 cannot hold (its production 2, ``Char``)."""


def junit(reports: Iterable[FileReport]) -> str:
    """The whole run as one XML document."""
    suites = Xml.Element("testsuites", name="cuda-lsp")
    for report in reports:
        suites.append(_suite(report))
    for key in ("tests", "failures", "errors", "skipped"):
        suites.set(key, str(sum(int(suite.get(key, "0")) for suite in suites)))
    Xml.indent(suites)
    return Xml.tostring(suites, encoding="unicode", xml_declaration=True)


def _suite(report: FileReport) -> Xml.Element:
    cases = [_case(kernel, report) for kernel in report.kernels]
    cases += [_error(error, report) for error in report.errors]
    suite = Xml.Element("testsuite", name=_safe(str(report.path)), time=f"{report.seconds:.3f}")
    suite.extend(cases)
    suite.set("tests", str(len(cases)))
    for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(key, str(sum(case.find(tag) is not None for case in cases)))
    return suite


def _case(kernel: KernelReport, report: FileReport) -> Xml.Element:
    case = _named(kernel.name, report, kernel.range.start.line)
    told = [f for f in defects(kernel.findings) if f.effective_severity <= Severity.WARNING]
    if told:
        worst = min(told, key=lambda finding: finding.effective_severity)
        failure = Xml.SubElement(case, "failure", type=worst.code.value, message=_safe(worst.message))
        failure.text = _safe("\n".join(map(_line, told)))
    elif kernel.verdict is Verdict.UNDECIDED:
        Xml.SubElement(case, "skipped", message=_safe(f"undecided: {'; '.join(kernel.reasons)}"))
    return case


def _error(error: ToolError, report: FileReport) -> Xml.Element:
    """What the tool says of a file: an error when nothing came of the file, else a case that is skipped."""
    case = _named(error.kernel or "analysis", report, error.range.start.line if error.range else 1)
    failed = error.severity is Severity.ERROR or not report.kernels
    Xml.SubElement(case, "error" if failed else "skipped", message=_safe(error.message))
    return case


def _named(name: str, report: FileReport, line: int) -> Xml.Element:
    place = {"classname": _safe(str(report.path)), "file": _safe(str(report.path)), "line": str(line)}
    return Xml.Element("testcase", {"name": _safe(name), **place})


def _line(finding: Finding) -> str:
    return (
        f"{finding.site.range.beginning}: {finding.code.value}: {finding.message} (next: {finding.next_step})"
    )


def _safe(text: str) -> str:
    return text.translate(_REFUSED)
