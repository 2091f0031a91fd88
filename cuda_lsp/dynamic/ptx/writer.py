"""Print a PTX module so that ptxas accepts it and the reader reads the same module again."""

from __future__ import annotations

from cuda_lsp.dynamic.ptx.module import (
    Declaration,
    Instruction,
    Label,
    PtxFunction,
    PtxModule,
    PtxVariable,
    ScopeClose,
    ScopeOpen,
    Statement,
    Verbatim,
)


def write_module(module: PtxModule) -> str:
    """The text of a module, items in their order."""
    lines = [
        f".version {module.version}",
        f".target {module.target}",
        f".address_size {module.address_size}",
        "",
    ]
    lines.extend(item.text if isinstance(item, Verbatim) else _item(item) for item in module.items)
    lines.extend(f'.file {number} "{path}"' for number, path in module.files.items())
    return "\n".join(lines) + "\n"


def write_statement(statement: Statement) -> str:
    """One line (or more, for verbatim text) of a function body."""
    match statement:
        case Instruction(opcode, operands, guard):
            prefix = f"@{guard} " if guard else ""
            return f"\t{prefix}{opcode} {operands};" if operands else f"\t{prefix}{opcode};"
        case Label(name):
            return f"{name}:"
        case Declaration(variable):
            return f"\t{variable.text};"
        case ScopeOpen():
            return "\t{"
        case ScopeClose():
            return "\t}"
        case _:
            return f"\t{statement.text}"


def _item(item: PtxFunction | PtxVariable) -> str:
    if isinstance(item, PtxVariable):
        return f"{item.text};"
    linkage = f".{item.linkage} " if item.linkage else ""
    returns = f"({_params(item.returns)}) " if item.returns else ""
    kind = ".entry " if item.entry else ".func "
    params = f"({_params(item.params)})" if item.params or not item.entry else "()"
    head = "\n".join((f"{linkage}{kind}{returns}{item.name}{params}", *item.directives))
    if item.body is None:
        return f"{head};"
    return "\n".join((head, "{", *map(write_statement, item.body), "}", ""))


def _params(params: tuple[PtxVariable, ...]) -> str:
    return ", ".join(param.text for param in params)
