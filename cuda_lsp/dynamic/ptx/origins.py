"""Which memory the addresses of a kernel come from: parameters and variables, whatever the control flow.

A register has the origins of all that is ever computed into it. What is loaded from memory, or put together
from parts, may point anywhere. Integers have none; an address without any is nobody's.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field, frozen

from cuda_lsp.dynamic.ptx.functions import reached_from
from cuda_lsp.dynamic.ptx.module import (
    Declaration,
    Instruction,
    PtxFunction,
    PtxModule,
    Registers,
    ScopeClose,
    ScopeOpen,
    type_size,
)
from cuda_lsp.dynamic.ptx.opcodes import Role, results_of, row_of
from cuda_lsp.dynamic.ptx.remembered import remembered
from cuda_lsp.model import Space

_WORD = re.compile(r"%?[\w$]+(?:\.[\w$]+)?")
_PLACE = re.compile(r"\[\s{0,9}([%\w$]{1,200})\s{0,9}(?:\+\s{0,9}(\d{1,20}))?\s{0,9}\]")
_LOADS = ("ld", "ldu", "atom", "tex", "suld", "tld4")


@frozen
class Origin:
    """A parameter of the kernel (at a byte offset), or a variable of the module in a state space."""

    name: str
    offset: int = 0
    space: str = "param"


Origins = frozenset[Origin]
_Node = tuple[str, ...]  # a register, or a place that a call passes something in


@remembered
def origins(module: PtxModule, entry: str) -> Mapping[tuple[str, int], Origins]:
    """By function and instruction: where its address in brackets comes from; absent: from anywhere."""
    flow = _Flow(module, entry)
    for function in reached_from(module, entry):
        flow.add(function)
    flow.settle()
    known = {place: flow.at(node) for place, node in flow.addresses.items()}
    return {place: found for place, found in known.items() if found}


def space_of(found: Origins) -> Space | None:
    """The one space that all origins lie in; None: they differ, or it is neither shared nor global."""
    spaces = {"global" if origin.space == "param" else origin.space for origin in found}
    return {"shared": Space.SHARED, "global": Space.GLOBAL}.get(spaces.pop()) if len(spaces) == 1 else None


@define
class _Flow:
    """What flows where; ``lost``: nodes that may hold any address."""

    module: PtxModule
    entry: str
    into: dict[_Node, list[_Node]] = field(factory=lambda: defaultdict[_Node, list[_Node]](list))
    found: dict[_Node, set[Origin]] = field(factory=lambda: defaultdict[_Node, set[Origin]](set))
    lost: set[_Node] = field(factory=set[_Node])
    addresses: dict[tuple[str, int], _Node] = field(factory=dict[tuple[str, int], _Node])

    def add(self, function: PtxFunction) -> None:
        variables = self._variables(function)
        scopes: list[dict[str, _Node]] = [{}]
        number = 0
        for statement in function.body or ():
            match statement:
                case ScopeOpen():
                    scopes.append({})
                    number += 1
                case ScopeClose() if len(scopes) > 1:
                    scopes.pop()
                case Registers():
                    scopes[-1] |= {name: (function.name, name, str(number)) for name in statement.names}
                case Instruction():
                    _Reading(self, function, variables, scopes).take(statement)
                case _:
                    pass

    def _variables(self, function: PtxFunction) -> Mapping[str, str]:
        own = (s.variable for s in function.body or () if isinstance(s, Declaration))
        return {v.name: v.space for v in (*self.module.variables.values(), *own)}

    def settle(self) -> None:
        """Let everything flow on."""
        waiting = [*self.found, *self.lost]
        while waiting:
            node = waiting.pop()
            for target in self.into.get(node, ()):
                before = len(self.found[target]), target in self.lost
                self.found[target] |= self.found[node]
                if node in self.lost:
                    self.lost.add(target)
                if before != (len(self.found[target]), target in self.lost):
                    waiting.append(target)

    def at(self, node: _Node) -> Origins:
        return frozenset() if node in self.lost else frozenset(self.found.get(node, ()))


@frozen
class _Reading:
    """One instruction's part in it."""

    flow: _Flow
    function: PtxFunction
    variables: Mapping[str, str]
    scopes: Sequence[Mapping[str, _Node]]

    def _register(self, name: str) -> _Node | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def _passed(self, name: str, function: str = "") -> _Node:
        """A place for a parameter or result of a call. By name: one of them may be meant by several calls."""
        return (function or self.function.name, "passed", name)

    def take(self, code: Instruction) -> None:
        row, words = row_of(code), code.modifiers
        if match := next(filter(None, (_PLACE.fullmatch(a) for a in code.arguments)), None):
            self._address(code, match)
        results = [node for part in results_of(code) for node in self._registers(part)]
        if row.role is Role.CALL:
            self._call(code, results)
        elif code.base == "ld" and "param" in words:
            self._parameter(code, results)
        elif code.base == "st" and "param" in words:
            place = _PLACE.fullmatch(code.arguments[0])
            if place:
                self._join(self._sources(code.arguments[1:]), [self._passed(place[1])])
        elif code.base in _LOADS or (code.base == "mov" and code.arguments[-1].startswith("{")):
            if type_size(code.modifiers[-1]) >= 8 or code.base == "mov":
                self.flow.lost.update(results)
        else:
            self._join(self._sources(code.arguments[len(results_of(code)) :]), results)

    def _registers(self, text: str) -> Iterator[_Node]:
        for word in _WORD.findall(text):
            if (node := self._register(word)) is not None:
                yield node

    def _sources(self, parts: Sequence[str]) -> list[_Node]:
        """Registers and variables that operands name."""
        nodes: list[_Node] = []
        for word in (word for part in parts for word in _WORD.findall(part)):
            if (node := self._register(word)) is not None:
                nodes.append(node)
            elif word in self.variables:
                nodes.append(self._variable(word))
        return nodes

    def _variable(self, name: str) -> _Node:
        node = ("", "variable", name)
        self.flow.found[node].add(Origin(name, 0, self.variables[name]))
        return node

    def _join(self, sources: Sequence[_Node], targets: Sequence[_Node]) -> None:
        for source in sources:
            self.flow.into[source].extend(targets)

    def _address(self, code: Instruction, place: re.Match[str]) -> None:
        name = place[1]
        node = self._register(name) or (self._variable(name) if name in self.variables else None)
        if node is not None:
            self.flow.addresses[self.function.name, code.index] = node

    def _parameter(self, code: Instruction, results: Sequence[_Node]) -> None:
        place = _PLACE.fullmatch(code.arguments[1])
        if place is None or place[1].startswith("%"):  # by an address of the parameters
            self.flow.lost.update(results)
        elif self.function.name == self.flow.entry and any(p.name == place[1] for p in self.function.params):
            if type_size(code.modifiers[-1]) == 8:
                for number, node in enumerate(results):
                    self.flow.found[node].add(Origin(place[1], int(place[2] or 0) + 8 * number))
        else:
            self._join([self._passed(place[1])], results)

    def _call(self, code: Instruction, results: Sequence[_Node]) -> None:
        """Arguments go to the parameters of the callee, its results to the caller's."""
        del results  # what a call names first is a place, read by ``ld.param``
        parts = list(code.arguments)
        named = [k for k, part in enumerate(parts) if part in self.flow.module.functions]
        returned = [w for part in parts[: named[0] if named else 0] for w in _WORD.findall(part)]
        given = [w for part in parts[(named[0] if named else 0) + 1 :] for w in _WORD.findall(part)]
        callee = self.flow.module.functions[parts[named[0]]] if named else None
        if callee is None or callee.body is None:
            self.flow.lost.update(self._passed(name) for name in _WORD.findall(code.operands))
            if callee is None:  # one of those whose address is taken: they get anything
                for function in self.flow.module.functions.values():
                    self.flow.lost.update(self._passed(p.name, function.name) for p in function.params)
            return
        for name, parameter in zip(given, callee.params, strict=False):
            self._join([self._passed(name)], [self._passed(parameter.name, callee.name)])
        for name, result in zip(returned, callee.returns, strict=False):
            self._join([self._passed(result.name, callee.name)], [self._passed(name)])
