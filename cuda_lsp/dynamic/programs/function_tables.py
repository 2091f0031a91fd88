"""Objects that tell where their functions lie on the GPU: the addresses that a program's memory may hold.

No call of CUDA tells them. So nvcc's stages are replayed for a source that takes addresses of functions:
behind the device compiler its PTX gets a variable that holds these, and the host's code registers it with the
runtime as it does the source's own variables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from cuda_lsp.dynamic.compilation.compile import CompileError, build_errors
from cuda_lsp.dynamic.compilation.stages import Cancelled, Done, plan, run
from cuda_lsp.dynamic.ptx.functions import pointed_to, tables_of_functions
from cuda_lsp.dynamic.ptx.module import PtxModule
from cuda_lsp.dynamic.ptx.reader import read_module

_PTX, _STUB = re.compile(r'-o "([^"]*\.ptx)"'), re.compile(r'--stub_file_name "([^"]*)"')
_REGISTERS = re.compile(r"static void __nv_cudaEntityRegisterCallback\(\s*void \*\*(\w+)\)\s*\{")
_REGISTER = 'static char clsp_told; __cudaRegisterVar({0}, &clsp_told, (char*)"{1}", "{1}", 0, {2}, 0, 0);'


def table_name(number: int) -> str:
    """The variable in which a program's source of this number tells."""
    return f"clsp_functions{number}"


def told_functions(module: PtxModule) -> tuple[str, ...]:
    """Functions whose addresses a module takes, and variables in global memory that hold some."""
    tables = (name for name in tables_of_functions(module) if module.variables[name].space == "global")
    return (*sorted(pointed_to(module)), *sorted(tables))


def compile_with_table(
    command: Sequence[str], number: int, source: Path, folder: Path, end: float, cancelled: Cancelled
) -> tuple[str, ...]:
    """Carry out a command of nvcc that makes an object; the names whose addresses its table holds.

    Without names the object is as it would be: nvcc's stages are not as we know them. ``folder``: for files
    in between. Raises CompileError, Interrupted, OSError.
    """
    stages = plan(command, folder, end, cancelled)
    if isinstance(stages, Done):
        raise CompileError(build_errors(stages.output, source))
    names: tuple[str, ...] = ()
    for line in stages.commands:
        if line.startswith("--"):  # nvcc's own work
            continue
        done = run(line, folder, stages.environment, end, cancelled)
        if done.status:
            raise CompileError(build_errors(done.output, source))
        ptx, stub = _PTX.search(line), _STUB.search(line)
        if "cicc" in line and ptx and stub:
            names = _told(folder / ptx[1], folder / stub[1], table_name(number))
    return names


def _told(ptx: Path, stub: Path, table: str) -> tuple[str, ...]:
    """Write the table, and who registers it."""
    text, host = ptx.read_text(), stub.read_text(errors="surrogateescape")
    module, place = read_module(text), _REGISTERS.search(host)
    names = told_functions(module)
    if not names or place is None:
        return ()
    values = ", ".join(f"generic({name})" if name in module.variables else name for name in names)
    ptx.write_text(f"{text}\n.visible .global .align 8 .u64 {table}[{len(names)}] = {{{values}}};\n")
    call = _REGISTER.format(place[1], table, 8 * len(names))
    stub.write_text(host[: place.end()] + call + host[place.end() :], errors="surrogateescape")
    return names
