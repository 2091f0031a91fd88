"""The diagnostics of a whole workspace for a client that pulls them: checked files, and those that are open.

A file whose diagnostics the client has already is answered as unchanged; one that is gone has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from cuda_lsp.server.client_progress import UserCancelled
from cuda_lsp.server.cuda_server import CudaServer
from cuda_lsp.server.diagnostics import identity
from cuda_lsp.server.workspace_check import NotChecked, folders_of

PULL_WAIT = 5.0  # seconds a pull request waits for the analysis of its version
_Report = lsp.WorkspaceFullDocumentDiagnosticReport | lsp.WorkspaceUnchangedDocumentDiagnosticReport


async def workspace_report(
    ls: CudaServer, params: lsp.WorkspaceDiagnosticParams
) -> lsp.WorkspaceDiagnosticReport:
    """Of all files where the workspace is trusted, else of those that are open."""
    closed = await _of_closed(ls, params.work_done_token)
    before = {previous.uri: previous.value for previous in params.previous_result_ids}
    reports: dict[str, _Report] = {}
    for uri, items in closed.items():
        reports[unquote(uri)] = _report(uri, None, items, identity(items, None), before)
    for document in list(ls.workspace.text_documents.values()):
        await ls.settled(document, PULL_WAIT)
        items, result = ls.pulled(document)
        reports[unquote(document.uri)] = _report(document.uri, document.version, items, result, before)
    gone = [uri for uri in before if unquote(uri) not in reports]
    nothing = [lsp.WorkspaceFullDocumentDiagnosticReport(uri=uri, items=[]) for uri in gone]
    return lsp.WorkspaceDiagnosticReport([*reports.values(), *nothing])


async def _of_closed(ls: CudaServer, token: int | str | None) -> Mapping[str, list[lsp.Diagnostic]]:
    folders = folders_of(ls.roots)
    if not ls.trusted or not folders:
        return {}
    try:
        base = ls.settings.documentation
        return await ls.workspace_check.pull(ls, folders, base, token, ls.hears_of_files)
    except UserCancelled:
        why = {"retriggerRequest": False}
        raise JsonRpcException("cancelled by the user", lsp.LSPErrorCodes.ServerCancelled, why) from None
    except NotChecked as problem:
        raise JsonRpcException(str(problem), lsp.LSPErrorCodes.RequestFailed) from None


def _report(
    uri: str, version: int | None, items: Sequence[lsp.Diagnostic], result: str, before: Mapping[str, str]
) -> _Report:
    if before.get(uri) == result:
        return lsp.WorkspaceUnchangedDocumentDiagnosticReport(uri=uri, result_id=result, version=version)
    return lsp.WorkspaceFullDocumentDiagnosticReport(uri, items, version=version, result_id=result)
