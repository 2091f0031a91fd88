"""What an execution is asked besides races: a new diagnostic is a file beside this one, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from cuda_lsp.config import Settings
from cuda_lsp.model import CODES, Code
from cuda_lsp.static.diagnostics.alignment import alignment_findings
from cuda_lsp.static.diagnostics.banks import bank_findings
from cuda_lsp.static.diagnostics.barriers import redundant_barriers
from cuda_lsp.static.diagnostics.bounds import bounds_findings, uninitialised_findings
from cuda_lsp.static.diagnostics.coalescing import coalescing_findings
from cuda_lsp.static.execution.trace import Trace
from cuda_lsp.static.findings.diagnosis import Diagnosis

Diagnostic = Callable[[Trace], Iterable[Diagnosis]]

MISTAKES: Sequence[Diagnostic] = (bounds_findings, uninitialised_findings, alignment_findings)
"""They accuse the program, so that under an assumed launch others are asked as well."""


def advice(settings: Settings) -> Sequence[Diagnostic]:
    """Those that tell what the launch at hand costs; their codes are the ``ADVICE`` of ``second_opinion``."""
    banks = partial(bank_findings, extra_wavefronts=max(1, settings.min_bank_ways - 1))
    optional = (redundant_barriers,) if is_wanted(Code.REDUNDANT_BARRIER, settings) else ()
    return (banks, coalescing_findings, *optional)


def is_wanted(code: Code, settings: Settings) -> bool:
    """Whether findings of this code are shown."""
    return settings.severity[code] is not None if code in settings.severity else CODES[code].enabled
