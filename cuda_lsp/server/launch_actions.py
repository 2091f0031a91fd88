"""Actions that write a kernel's launch above it: what the source tells of others is offered.

A client that can ask its user (``asksLaunch``) gets one action with a command of its own; the others get one
for each launch that the open files have, nearest first, and then those that a check of the workspace found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lsprotocol import types as lsp
from pygls.workspace import TextDocument

from cuda_lsp.model import FileReport, KernelReport, LaunchConfig
from cuda_lsp.report.defects import template_of
from cuda_lsp.server.check_commands import SET_LAUNCH
from cuda_lsp.server.edits import indent_of, line_above
from cuda_lsp.server.verdicts import launch_words

ASK = "cuda-lsp.askLaunch"
_OFFERED = 4
_CHOICES = 40  # of a list to choose from


def known_launches(
    kernel: KernelReport, reports: Iterable[FileReport], elsewhere: Iterable[LaunchConfig] = ()
) -> list[LaunchConfig]:
    """Launches that sources and directives tell: of this kernel, of others, each block and grid once."""
    own = [launch for launch in kernel.launches if not launch.assumed]
    others = [la for report in reports for k in report.kernels for la in k.launches if not la.assumed]
    found = {(launch.block, launch.grid): launch for launch in reversed([*own, *others, *elsewhere])}
    return list(reversed(found.values()))


def launch_actions(
    kernel: KernelReport, document: TextDocument, offered: Sequence[LaunchConfig], asks: bool
) -> Iterator[lsp.CodeAction]:
    """What sets the launch of one kernel."""
    line = kernel.range.start.line - 1
    title = f"{SET_LAUNCH} of {template_of(kernel.name)}"
    assumed = kernel.launches[0] if kernel.launches else LaunchConfig((256, 1, 1))
    choices = list(offered) or [assumed]
    if asks:
        texts = [directive(launch) for launch in choices[:_CHOICES]]
        asked = [document.uri, line, indent_of(document, line), texts]
        command = lsp.Command(title, ASK, arguments=asked)
        yield lsp.CodeAction(f"{title}…", kind=lsp.CodeActionKind.RefactorRewrite, command=command)
        return
    for launch in choices[:_OFFERED]:
        yield lsp.CodeAction(
            title=f"{title}: {launch_words(launch)}",
            kind=lsp.CodeActionKind.RefactorRewrite,
            edit=line_above(document, line, directive(launch)),
        )


def directive(launch: LaunchConfig) -> str:
    """The comment that says so."""
    block = ",".join(map(str, launch.block))
    grid = f" grid=({','.join(map(str, launch.grid))})" if launch.grid else ""
    shared = f" shared={launch.dynamic_shared}" if launch.dynamic_shared else ""
    return f"// cuda-lsp: launch block=({block}){grid}{shared}"
