"""Called functions as parts of their caller, each once: a call jumps there, and back by a table.

What inlines every call would make of an instrumented kernel the detector once per probe. A function's
parameters and results become variables of the entry, which caller and function assign; so a function must
not be called again while it runs. Their text comes before the entry's: threads that are in a function go
first on a machine that runs those furthest back, so callers meet again behind the call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from attrs import define, evolve, field

from cuda_lsp.dynamic.ptx.flatten import distinct_labels, element_types
from cuda_lsp.dynamic.ptx.functions import callees
from cuda_lsp.dynamic.ptx.module import (
    Declaration,
    Instruction,
    Label,
    PtxFunction,
    PtxModule,
    PtxVariable,
    Registers,
    ScopeClose,
    ScopeOpen,
    Statement,
    TargetList,
    type_size,
)

_LABEL = re.compile(r"[\w$]+")


def with_subroutines(module: PtxModule, entry: str) -> PtxModule:
    """The module with the functions that the entry calls, unless they are recursive, put into it."""
    return _Folder(module, entry).folded()


def _pieces(function: PtxFunction) -> dict[str, list[tuple[int, int]]]:
    """Offset and bytes of the parts in which a function reads its parameters, and writes its results."""
    seen: dict[str, set[tuple[int, int]]] = {p.name: set() for p in (*function.params, *function.returns)}
    for code in function.instructions():
        if ".param." not in code.opcode:
            continue
        place = next(part for part in code.arguments if part.startswith("["))
        name, _, offset = place.strip("[]").partition("+")
        kind, count = element_types(code)
        size = type_size(kind)
        seen.setdefault(name, set()).update((int(offset or 0) + k * size, size) for k in range(count))
    return {name: sorted(parts) for name, parts in seen.items()}


def _moved(target: str, source: str, pieces: Iterable[tuple[int, int]], register: str) -> Iterator[Statement]:
    for offset, size in pieces:
        name, bits = f"{register}_{offset}", size * 8
        yield Registers(f"b{bits}", (name,), f".reg .b{bits} {name};")
        yield Instruction(f"ld.param.b{bits}", f"{name}, [{source}+{offset}]")
        yield Instruction(f"st.param.b{bits}", f"[{target}+{offset}], {name}")


@define
class _Folder:
    module: PtxModule
    entry: str
    returns: dict[str, list[str]] = field(factory=dict[str, list[str]])  # function → labels behind its calls
    pieces: dict[str, dict[str, list[tuple[int, int]]]] = field(
        factory=dict[str, dict[str, list[tuple[int, int]]]]
    )
    made: int = 0

    def folded(self) -> PtxModule:
        entry = self.module.entries[self.entry]
        order: list[str] = []
        self._visit(entry, order, ())
        bodies = {name: list(self._body(self.module.functions[name])) for name in order}
        own = list(self._calls(distinct_labels(entry.body or ())))
        text: list[Statement] = []
        for name in order:
            function = self.module.functions[name]
            text.append(Registers("b32", (f"%back_{name}",), f".reg .b32 %back_{name};"))
            text.extend(Declaration(self._place(name, p)) for p in (*function.params, *function.returns))
        text.append(Instruction("bra", "$begin"))
        for name in order:  # callees first: they lie in front of their callers
            labels = tuple(self.returns[name])
            table = TargetList(f"{name}_back", "branchtargets", labels, "")
            text.append(evolve(table, text=f"{table.name}: .branchtargets {', '.join(labels)};"))
            text += [ScopeOpen(), *bodies[name], ScopeClose()]
        text += [Label("$begin"), ScopeOpen(), *own, ScopeClose()]
        folded = evolve(entry, body=tuple(text))
        return evolve(self.module, items=tuple(folded if i is entry else i for i in self.module.items))

    def _called(self, call: Instruction) -> str | None:
        if call.base != "call":
            return None
        return next((part for part in call.arguments if part in self.returns), None)

    def _visit(self, function: PtxFunction, order: list[str], above: tuple[str, ...]) -> bool:
        """Callees before callers; False: the function is recursive, or what it calls is."""
        fine = True
        for name in dict.fromkeys(callees(function)):
            callee = self.module.functions.get(name)
            if callee is None or callee.body is None or name in self.returns:
                continue
            if name in (*above, function.name) or not self._visit(callee, order, (*above, function.name)):
                fine = False
                continue
            order.append(name)
            self.returns[name], self.pieces[name] = [], _pieces(callee)
        return fine

    def _place(self, function: str, parameter: PtxVariable) -> PtxVariable:
        name = f"{function}_at_{parameter.name}"
        size = parameter.size * 8
        return evolve(parameter, name=name, text=f".param .b{size} {name}")

    def _body(self, function: PtxFunction) -> Iterator[Statement]:
        tag = f"$in_{function.name}_"
        names = {p.name: self._place(function.name, p).name for p in (*function.params, *function.returns)}
        labels = {s.name for s in distinct_labels(function.body or ()) if isinstance(s, Label)}
        yield Label(tag)
        for statement in self._calls(distinct_labels(function.body or ())):
            match statement:
                case Label(name) if name in labels:
                    yield Label(tag + name)
                case TargetList(name, kind, targets):
                    inside = tuple(tag + t for t in targets)
                    yield TargetList(tag + name, kind, inside, f"{tag}{name}: .{kind} {', '.join(inside)};")
                case Instruction(base="ret"):
                    back = evolve(
                        statement, opcode="brx.idx", operands=f"%back_{function.name}, {function.name}_back"
                    )
                    yield from self._around(back)
                case Instruction():
                    jumps = statement.base in ("bra", "brx")
                    renamed = {name: tag + name for name in labels} if jumps else names
                    yield evolve(
                        statement,
                        operands=_LABEL.sub(lambda m, r=renamed: r.get(m[0], m[0]), statement.operands),
                    )
                case _:
                    yield statement

    def _calls(self, body: Sequence[Statement]) -> Iterator[Statement]:
        for statement in body:
            if isinstance(statement, Instruction) and (name := self._called(statement)) is not None:
                yield from self._call(statement, name)
            else:
                yield statement

    def _around(self, code: Instruction) -> Iterator[Statement]:
        """A guarded instruction as a branch around it."""
        if not code.guard:
            yield code
            return
        self.made += 1
        yield Instruction("bra", f"$not{self.made}", _opposite(code.guard))
        yield evolve(code, guard=None)
        yield Label(f"$not{self.made}")

    def _call(self, call: Instruction, name: str) -> Iterator[Statement]:
        function, parts = self.module.functions[name], list(call.arguments)
        at = parts.index(name)
        self.made += 1
        number = self.made
        if call.guard:
            yield Instruction("bra", f"$not{number}", _opposite(call.guard))
        for k, argument in enumerate(_listed(parts[at + 1]) if function.params else ()):
            parameter = function.params[k]
            place, pieces = self._place(name, parameter).name, self.pieces[name][parameter.name]
            yield from _moved(place, argument, pieces, f"%pass{number}_{k}")
        yield Instruction("mov.u32", f"%back_{name}, {len(self.returns[name])}")
        yield Instruction("bra", f"$in_{name}_")
        self.returns[name].append(f"$back{number}")
        yield Label(f"$back{number}")
        for k, target in enumerate(_listed(parts[at - 1]) if function.returns else ()):
            result = function.returns[k]
            place, pieces = self._place(name, result).name, self.pieces[name][result.name]
            yield from _moved(target, place, pieces, f"%take{number}_{k}")
        if call.guard:
            yield Label(f"$not{number}")


def _opposite(guard: str) -> str:
    return guard[1:] if guard.startswith("!") else f"!{guard}"


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.strip("() ").split(",")]
