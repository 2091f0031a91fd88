"""``cuda-lsp explain --picture FILE:LINE``: the banks of the shared-memory accesses on a line, as SVG."""

from __future__ import annotations

import re
import time
from pathlib import Path

from cuda_lsp import settings_file
from cuda_lsp.cli.common import Failure
from cuda_lsp.files import read_text
from cuda_lsp.model import FileReport, KernelReport
from cuda_lsp.repairs.plan import InProcess
from cuda_lsp.repairs.search import conflict_free
from cuda_lsp.repairs.source import Source
from cuda_lsp.report.bank_picture import panels, svg
from cuda_lsp.static.analyze import Analyzer
from cuda_lsp.static.close_looks import pictures
from cuda_lsp.wavefronts import WarpPicture

_REPAIR_S = 20.0  # seconds for a repair to be verified


def picture(place: str) -> str:
    """The picture; with that of the mended text beside it where a repair is verified. Raises Failure."""
    named = re.fullmatch(r"(?P<path>.+?):(?P<line>\d+)(?::\d+)?", place)
    if named is None:
        raise Failure(f"--picture wants FILE:LINE, not {place!r}")
    path, line = Path(named["path"]), int(named["line"])
    try:
        text = read_text(path)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    settings, _ = settings_file.load(path.absolute().parent)
    analyzer = Analyzer(settings)
    try:
        report = analyzer.check(path, text, solver=False)
        kernel = _kernel(report, line)
        before = pictures(path, kernel, line, analyzer)
        if not before:
            raise Failure(f"{path}:{line}: no access to shared memory whose addresses are known")
        after = _after(analyzer, path, text, report, kernel, line)
        return svg(panels(before, after))
    finally:
        analyzer.shutdown()


def _kernel(report: FileReport, line: int) -> KernelReport:
    found = next((kernel for kernel in report.kernels if kernel.range.has_line(line)), None)
    if found is None:
        raise Failure(f"{report.path}:{line}: no kernel stands there")
    return found


def _after(
    analyzer: Analyzer, path: Path, text: str, report: FileReport, kernel: KernelReport, line: int
) -> tuple[WarpPicture, ...]:
    """The same of the text that a verified repair leads to; none: there is no such."""
    trials = InProcess(analyzer, path, time.process_time() + _REPAIR_S)
    mended = conflict_free(Source(path, text), report, kernel, line, trials)
    if mended is None:
        return ()
    again = analyzer.check(path, mended, solver=False)
    return pictures(path, _kernel(again, line), line, analyzer)
