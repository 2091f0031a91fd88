"""A kernel and all it calls as one list of instructions: calls inlined, every register name unique.

PTX passes arguments through ``.param`` variables; after inlining the callee's parameter *is* the caller's
variable, so loads and stores of parameters become moves between slots. Each instruction remembers the
function and index it came from, which is how sites are named. Source: PTX ISA, chapters 7.1 "Function
declarations" and 9.7.12.5 "call". A call through a pointer tries the functions whose address is taken.
A function that calls itself is inlined ``MAX_DEPTH`` times; a thread that goes deeper ends the launch.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from attrs import define, evolve, field, frozen

from cuda_lsp.dynamic.ptx.functions import pointed_to
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
from cuda_lsp.dynamic.ptx.names import kernel_name
from cuda_lsp.dynamic.ptx.operands import SymbolOperand, listed, parse_address

_MAX_NESTING = 100
MAX_DEPTH = 12  # calls of one function inside one another
_DEPTHS = (MAX_DEPTH, 6, 3)
TOO_DEEP = "trap.recursion"  # no PTX: the thread would call the function once more
MAX_INSTRUCTIONS = 100_000
SYSTEM_CALLS = frozenset({"vprintf", "__assertfail", "malloc", "free"})
DEVICE_RUNTIME = "__cudaCDP2"  # what functions by which kernels launch kernels begin with
_NAME = re.compile(r"%[\w$]+(?:\.[xyzw])?|[A-Za-z_$][\w$]*")


class Untranslatable(Exception):
    """The kernel holds something that the emulator does not know; the message names it.

    ``opcodes``: of the instructions that are meant, if it is instructions.
    """

    def __init__(self, what: str, opcodes: Iterable[str] = ()) -> None:
        super().__init__(what)
        self.opcodes = tuple(opcodes)


class UnknownInstruction(Untranslatable):
    """The emulator has no code for an instruction of this name."""

    def __init__(self, opcode: str) -> None:
        super().__init__(opcode, (opcode,))


class _TooLarge(Exception):
    """Inlining made more instructions than can be translated."""


@frozen
class FlatInstruction:
    """``code`` with unique names; ``function`` and ``index`` say where the module has it.

    ``calls``: the call instructions through which it was reached, outermost first.
    """

    code: Instruction
    function: str
    index: int
    calls: tuple[tuple[str, int], ...] = ()


@define
class FlatKernel:
    """One entry function, ready to be translated.

    ``labels``: name → index of the instruction that follows. ``registers``: name → PTX type.
    ``variables``: shared and local variables and memory-resident parameters by unique name.
    ``targets``: branch tables. ``params``: parameter name → (byte offset, bytes) in the argument block.
    ``reaches_peers``: addresses may lie in the shared memory of another block of its cluster.
    """

    name: str
    instructions: list[FlatInstruction] = field(factory=list[FlatInstruction])
    labels: dict[str, int] = field(factory=dict[str, int])
    registers: dict[str, str] = field(factory=dict[str, str])
    variables: dict[str, PtxVariable] = field(factory=dict[str, PtxVariable])
    targets: dict[str, tuple[str, ...]] = field(factory=dict[str, tuple[str, ...]])
    params: dict[str, tuple[int, int]] = field(factory=dict[str, tuple[int, int]])
    param_bytes: int = 0
    reaches_peers: bool = False


def flatten(module: PtxModule, entry: str) -> FlatKernel:
    """Inline everything that ``entry`` calls. Raises Untranslatable, KeyError for an unknown entry."""
    function = module.entries[entry]
    params, size = parameters_of(function)
    blank = kernel = FlatKernel(entry, params=params, param_bytes=size)
    for deepest in _DEPTHS:  # a function that calls itself twice doubles with every level
        kernel = evolve(blank, instructions=[], labels={}, registers={}, variables={}, targets={})
        try:
            _Inliner(module, kernel, deepest).body(function, {}, "", 0)
            break
        except _TooLarge as problem:
            if deepest == _DEPTHS[-1]:
                raise Untranslatable(str(problem)) from problem
    kernel.instructions = [_slots(kernel, flat) for flat in kernel.instructions]
    if any("cc" in flat.code.modifiers for flat in kernel.instructions):
        kernel.registers["%cc"] = "pred"
    kernel.reaches_peers = any(flat.code.base == "mapa" for flat in kernel.instructions)
    return kernel


def _slots(kernel: FlatKernel, flat: FlatInstruction) -> FlatInstruction:
    """Loads and stores of argument variables become moves: each piece of a variable is a register."""
    code = flat.code
    if code.base not in ("ld", "st") or "param" not in code.modifiers:
        return flat
    load = code.base == "ld"
    place = parse_address(code.arguments[1 if load else 0])
    base = place.base
    if not isinstance(base, SymbolOperand) or base.name not in kernel.variables:
        return flat
    kind, count = element_types(code)
    text = code.arguments[0 if load else 1]
    registers = [part.strip() for part in text.strip("{}").split(",")]
    size = type_size(kind)
    names = [f"%{base.name}.{place.offset + base.offset + k * size}" for k in range(count)]
    for name in names:
        kernel.registers.setdefault(name, f"b{size * 8}")
    target, source = (registers, names) if load else (names, registers)
    moved = Instruction(f"mov.{kind}", ", ".join([*target, *source]), code.guard, code.location, code.index)
    return evolve(flat, code=moved)


def parameters_of(function: PtxFunction) -> tuple[dict[str, tuple[int, int]], int]:
    """Each parameter of a kernel: its offset in the block of arguments, and its bytes; the bytes of all."""
    places: dict[str, tuple[int, int]] = {}
    end = 0
    for param in function.params:
        size = param.size or 8
        start = -(-end // param.alignment) * param.alignment
        places[param.name] = (start, size)
        end = start + size
    return places, end


@define
class _Inliner:
    module: PtxModule
    kernel: FlatKernel
    deepest: int
    copies: int = 0
    pointed: tuple[PtxFunction, ...] | None = None  # functions whose address is taken, once asked for
    calls: tuple[tuple[str, int], ...] = ()

    def body(self, function: PtxFunction, outer: Mapping[str, str], end: str, depth: int) -> None:
        """Append one body. ``outer``: names that mean something of the caller; ``end``: its ``ret`` label."""
        tag = f".i{self.copies}" if self.copies else ""
        self.copies += 1
        scopes: list[dict[str, str]] = [dict(outer)]
        index = 0
        for statement in distinct_labels(function.body or ()):
            match statement:
                case Registers(type_name, names):
                    self._registers(type_name, names, scopes, tag)
                case Declaration(variable):
                    self._variable(variable, scopes[-1], tag)
                case ScopeOpen():
                    scopes.append(dict(scopes[-1]))
                case ScopeClose():
                    scopes.pop()
                case Label(name):
                    self.kernel.labels[name + tag] = len(self.kernel.instructions)
                case TargetList(name, kind, targets):
                    if kind == "branchtargets":
                        self.kernel.targets[name + tag] = tuple(t + tag for t in targets)
                case Instruction():
                    self._instruction(statement, function.name, index, scopes[-1], tag, end, depth)
                    index += 1
                case _:
                    pass

    def _registers(
        self, type_name: str, names: tuple[str, ...], scopes: list[dict[str, str]], tag: str
    ) -> None:
        nested = f".s{len(self.kernel.registers)}" if len(scopes) > 1 else ""
        for name in names:
            unique = f"%{name.lstrip('%')}{tag}{nested}"
            scopes[-1][name] = unique
            self.kernel.registers[unique] = type_name

    def _variable(self, variable: PtxVariable, names: dict[str, str], tag: str) -> None:
        if variable.space == "reg":
            unique = names[variable.name] = f"%{variable.name.lstrip('%')}{tag}.s{len(self.kernel.registers)}"
            self.kernel.registers[unique] = variable.type
            return
        # A shared variable of an inlined function is one object however often it is inlined.
        unique = variable.name if variable.space == "shared" else f"{variable.name}{tag}.v{self.copies}"
        if variable.space == "param":
            unique = f"{unique}.{len(self.kernel.variables)}"
        names[variable.name] = unique
        self.kernel.variables[unique] = evolve(variable, name=unique)

    def _instruction(
        self,
        code: Instruction,
        function: str,
        index: int,
        names: Mapping[str, str],
        tag: str,
        end: str,
        depth: int,
    ) -> None:
        if len(self.kernel.instructions) > MAX_INSTRUCTIONS:
            raise _TooLarge(f"{self.kernel.name} is too large once its calls are inlined")
        if code.base == "call" and self._inline(code, function, index, names, tag, depth):
            return
        if code.base == "ret" and end:
            code = evolve(code, opcode="bra", operands=end)
            renamed = end
        else:
            renamed = self._renamed(code.operands, names, tag, code.base)
        guard = code.guard
        if guard:
            negated = "!" if guard.startswith("!") else ""
            guard = negated + names.get(guard.lstrip("!"), guard.lstrip("!"))
        flat = Instruction(code.opcode, renamed, guard, code.location, code.index)
        self.kernel.instructions.append(FlatInstruction(flat, function, index, self.calls))

    def _renamed(self, operands: str, names: Mapping[str, str], tag: str, base: str) -> str:
        def unique(match: re.Match[str]) -> str:
            name = match[0]
            if name in names:
                return names[name]
            return name + tag if name.startswith("$L") or base in ("bra", "brx") else name

        return _NAME.sub(unique, operands)

    def _inline(
        self,
        code: Instruction,
        function: str,
        index: int,
        names: Mapping[str, str],
        tag: str,
        depth: int,
    ) -> bool:
        arguments = list(code.arguments)
        returns: list[str] = []
        if arguments and arguments[0].startswith("("):
            returns = listed(arguments.pop(0))
        callee_name = arguments[0]
        given = listed(arguments[1]) if len(arguments) > 1 and arguments[1].startswith("(") else []
        callee = self.module.functions.get(callee_name)
        if callee_name in SYSTEM_CALLS or callee_name.startswith(DEVICE_RUNTIME):
            return False
        if callee_name.startswith("%"):
            pointer = names.get(callee_name, callee_name)
            self._dispatch(code, pointer, (returns, given), function, index, names, depth)
            return True
        if callee is None or callee.body is None:
            raise Untranslatable(f"call of {kernel_name(callee_name)}, which stands in another source")
        if depth >= _MAX_NESTING:
            raise Untranslatable(f"calls nested deeper than {_MAX_NESTING}")
        if sum(name == callee_name for name, _ in self.calls) >= self.deepest:
            guard = code.guard and ("!" if code.guard[0] == "!" else "") + names[code.guard.lstrip("!")]
            stop = Instruction(TOO_DEEP, f"{callee_name}, {self.deepest}", guard, code.location)
            self.kernel.instructions.append(FlatInstruction(stop, function, index, self.calls))
            return True
        after = f"$after{self.copies}"
        outer = _passed(callee, returns, given, names)
        if code.guard:
            guard = code.guard.lstrip("!")
            opposite = ("" if code.guard.startswith("!") else "!") + names.get(guard, guard)
            skip = Instruction("bra", after, opposite, code.location)
            self.kernel.instructions.append(FlatInstruction(skip, function, index, self.calls))
        outside, self.calls = self.calls, (*self.calls, (function, index))
        self.body(callee, outer, after, depth + 1)
        self.calls = outside
        self.kernel.labels[after] = len(self.kernel.instructions)
        return True

    def _dispatch(
        self,
        code: Instruction,
        pointer: str,
        arguments: tuple[list[str], list[str]],
        function: str,
        index: int,
        names: Mapping[str, str],
        depth: int,
    ) -> None:
        """A call through a pointer: the functions whose address the module takes are tried one by one."""
        returns, given = arguments
        sizes = [[self.kernel.variables[names[a]].size for a in part if a in names] for part in arguments]
        called = self.copies
        after = f"$called{called}"
        if depth >= MAX_DEPTH:  # each level tries every function
            raise Untranslatable(f"calls through pointers deeper than {MAX_DEPTH}")
        outside, self.calls = self.calls, (*self.calls, (function, index))

        def add(opcode: str, operands: str, guard: str = "") -> None:
            made = Instruction(opcode, operands, guard or None, code.location)
            self.kernel.instructions.append(FlatInstruction(made, function, index, outside))

        if self.pointed is None:
            taken = pointed_to(self.module)
            self.pointed = tuple(f for name, f in self.module.functions.items() if name in taken)
        for number, callee in enumerate(self.pointed):
            if [p.size for p in callee.returns] != sizes[0] or [p.size for p in callee.params] != sizes[1]:
                continue
            other, predicate = f"$not{called}.{number}", f"%is{called}.{number}"
            self.kernel.registers[predicate] = "pred"
            add("setp.ne.u64", f"{predicate}, {pointer}, {function_address(callee.name)}")
            add("bra", other, predicate)
            self.body(callee, _passed(callee, returns, given, names), after, depth + 1)
            add("bra", after)
            self.kernel.labels[other] = len(self.kernel.instructions)
        self.calls = outside
        add("trap", "")
        self.kernel.labels[after] = len(self.kernel.instructions)


def _passed(
    callee: PtxFunction, returns: Sequence[str], given: Sequence[str], names: Mapping[str, str]
) -> dict[str, str]:
    """The callee's parameters are the caller's variables."""
    outer = {p.name: names.get(a, a) for p, a in zip(callee.params, given, strict=False)}
    return outer | {p.name: names.get(a, a) for p, a in zip(callee.returns, returns, strict=False)}


def function_address(name: str) -> int:
    """The emulator's address of a function: the same in every build, where no memory is."""
    return 1 << 40 | zlib.crc32(name.encode()) << 3


def distinct_labels(body: Sequence[Statement]) -> Sequence[Statement]:
    """The body with names of its own for labels that several scopes define (inline assembler does)."""
    defined = Counter(s.name for s in body if isinstance(s, Label | TargetList))
    twice = {name for name, count in defined.items() if count > 1}
    if not twice:
        return body
    inside: list[int] = []  # the scope of each statement: the number of the statement that opens it
    outer: dict[int, int] = {-1: -1}
    scope = -1
    for number, statement in enumerate(body):
        if isinstance(statement, ScopeOpen):
            outer[number], scope = scope, number
        inside.append(scope)
        if isinstance(statement, ScopeClose):
            scope = outer[scope]
    homes = {(inside[n], s.name) for n, s in enumerate(body) if isinstance(s, Label | TargetList)}

    def named(name: str, at: int) -> str:
        while name in twice and (at, name) not in homes and at != -1:
            at = outer[at]
        return f"{name}$in{at}" if name in twice and at != -1 else name

    def renamed(statement: Statement, at: int) -> Statement:
        match statement:
            case Label(name):
                return Label(named(name, at))
            case TargetList(name, kind, targets, text):
                return TargetList(named(name, at), kind, tuple(named(t, at) for t in targets), text)
            case Instruction() if statement.base in ("bra", "brx"):
                return evolve(statement, operands=_NAME.sub(lambda m: named(m[0], at), statement.operands))
            case _:
                return statement

    return [renamed(statement, at) for statement, at in zip(body, inside, strict=True)]


def element_types(code: Instruction) -> tuple[str, int]:
    """The element type and vector length of a memory instruction (``ld.v2.f32`` → ``f32``, 2)."""
    words = code.modifiers
    count = next((int(w[1:]) for w in words if w in ("v2", "v4", "v8")), 1)
    return words[-1], count


def access_bytes(code: Instruction) -> int:
    """Bytes that one thread touches: all elements of a vector together."""
    kind, count = element_types(code)
    return type_size(kind) * count
