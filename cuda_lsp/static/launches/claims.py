"""What may be claimed of a kernel that nothing in the source launches or instantiates: nothing is proved.

Who assumes a launch, or guesses template arguments, has no program of which anything could be an error. What
every plausible launch shows (``second_opinion``) is conditional: it needs that the kernel is used like that.
A block whose threads leave shared arrays, or read what none has written there, is not what the author had in
mind, and neither are sizes with which they do, nor larger blocks than indices count on: all that is possible.
So is what guessed numbers of a template show under a launch that nobody told either, or whose block follows
sizes: these may be the numbers. Nor need numbers that are guessed fit the sizes of an example. And arguments
that are guessed, and with which clang finds errors, are not what the author had in mind.
"""

from __future__ import annotations

from collections.abc import Iterable

from cuda_lsp.hardware import GpuModel
from cuda_lsp.ir.program import Kernel
from cuda_lsp.model import Code, LaunchConfig, LaunchSource, Status
from cuda_lsp.static.findings.conditions import Compared, Example, Needs, Open, parameters_of
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.findings.lock_step import told_as_such
from cuda_lsp.static.launches import blocks
from cuda_lsp.static.launches.second_opinion import ADVICE
from cuda_lsp.static.launches.strides import block_strides

MISUSES = frozenset({Code.SHARED_OUT_OF_BOUNDS, Code.SHARED_UNINITIALISED})
"""Of shared arrays."""


def claimed(
    kernel: Kernel, launch: LaunchConfig, gpu: GpuModel, findings: Iterable[Diagnosis]
) -> tuple[Diagnosis, ...]:
    """The findings under a launch; what is proved under assumptions is conditional on them."""
    by_sizes = Needs.SIZES if launch.source is LaunchSource.SIZES else None
    needs = Needs.LAUNCH if launch.assumed else Needs.TEMPLATE if kernel.instantiated_by else by_sizes
    told = (told_as_such(kernel, launch, gpu, finding) for finding in findings)
    larger = needs is Needs.SIZES and blocks.capped(launch.block, block_strides(kernel)) != launch.block
    guessed = kernel.guessed or kernel.guessed_numbers
    untold = launch.assumed or (launch.source is LaunchSource.SIZES and guessed)
    if larger or (untold and _has_guessed_numbers(kernel)):
        return tuple(_doubted_by_launch(finding, guessed=not larger) for finding in told)
    if kernel.instantiated_by and kernel.errors:
        return tuple(_up_to_guess(f) if f.certain else f for f in told)
    fitting = guessed and _has_guessed_numbers(kernel)
    return tuple(_up_to_guess(f) if fitting and _by_example(f) else _claim(f, needs) for f in told)


def _has_guessed_numbers(kernel: Kernel) -> bool:
    """Numbers that nobody told are template arguments: extents and strides need not fit together."""
    written = kernel.name.partition("<")[2].rpartition(">")[0]
    return bool(kernel.instantiated_by) and any(part.strip().isdigit() for part in written.split(","))


def _by_example(finding: Diagnosis) -> bool:
    """It is a race for certain sizes, as far as is known."""
    return finding.certain and any(isinstance(condition, Example) for condition in finding.conditions)


def _up_to_guess(finding: Diagnosis) -> Diagnosis:
    """It shows with template arguments that were guessed, which need not fit sizes, or anything at all."""
    return finding.doubted(Open.TEMPLATE) if finding.code not in ADVICE else finding


def _claim(finding: Diagnosis, needs: Needs | None) -> Diagnosis:
    if finding.code in MISUSES and finding.certain:
        if needs is not None:
            return finding.doubted(Open.LAUNCH_UNTOLD)
        return finding if _holds_for_all_sizes(finding) else finding.doubted(Open.ARGUMENTS)
    told = finding.code not in ADVICE or (finding.code is Code.BANK_CONFLICT and needs is Needs.SIZES)
    hangs = needs is not None and finding.status is Status.PROVED and told
    return finding.needing(needs) if needs is not None and hangs else finding


def _holds_for_all_sizes(finding: Diagnosis) -> bool:
    """It needs no more of parameters than that they are not 0, as no size is."""
    needed = (c for c in finding.conditions if parameters_of((c,)))
    return all(isinstance(c, Compared) and c.sign == ">" and c.other == 0 for c in needed)


def _doubted_by_launch(finding: Diagnosis, *, guessed: bool) -> Diagnosis:
    """``guessed``: numbers of the template are, too, which say how rows of shared arrays lie."""
    accuses = finding.code not in ADVICE or (guessed and finding.code is Code.BANK_CONFLICT)
    doubt = Open.LAUNCH_AND_TEMPLATE if guessed else Open.LAUNCH_UNTOLD
    return finding.doubted(doubt) if accuses and finding.certain else finding
