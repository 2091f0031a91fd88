"""Device code of several sources as one module, with the tokens of all of them (``ptx/linking.py``)."""

from __future__ import annotations

from collections.abc import Sequence

from cuda_lsp.dynamic.compilation.compile import CompiledModule, CompileError
from cuda_lsp.dynamic.compilation.tokens import TokenTable
from cuda_lsp.dynamic.ptx.linking import LinkError, in_library, linked
from cuda_lsp.dynamic.ptx.writer import write_module
from cuda_lsp.model import ToolError


def of_library(compiled: CompiledModule, number: int) -> CompiledModule:
    """A build of a shared library's code; 0: of the program's own, which stays as it is."""
    if not number:
        return compiled
    return CompiledModule(
        write_module(in_library(compiled.module, number)),
        compiled.tokens,
        compiled.level,
        compiled.arch,
        compiled.seconds,
        compiled.from_cache,
        compiled.text,
        compiled.headers,
    )


def link_modules(parts: Sequence[CompiledModule]) -> CompiledModule:
    """One module of several, all of one build. Raises CompileError."""
    first = parts[0]
    if len(parts) == 1:
        return first
    tokens = [part.tokens for part in parts]
    try:
        module = linked([part.module for part in parts], [len(table) for table in tokens])
    except LinkError as problem:
        raise CompileError([ToolError(f"the device code does not link: {problem}")]) from problem
    return CompiledModule(
        write_module(module),
        TokenTable(
            [token for table in tokens for token in table.tokens],
            frozenset(path for table in tokens for path in table.files),
        ),
        first.level,
        first.arch,
        sum(part.seconds for part in parts),
        all(part.from_cache for part in parts),
        headers={path: digest for part in parts for path, digest in part.headers.items()},
    )
