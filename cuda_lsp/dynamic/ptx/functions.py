"""Which functions a kernel may reach, by name or by address, and what it does with their addresses.

Source: PTX ISA, "call" and ".callprototype". An address counts as taken where ``mov`` or ``cvta`` names it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from cuda_lsp.dynamic.ptx.module import (
    Instruction,
    Label,
    PtxFunction,
    PtxModule,
    Registers,
    type_size,
)
from cuda_lsp.dynamic.ptx.remembered import remembered

_REGISTER = re.compile(r"%[A-Za-z_]\w*")
_NAME = re.compile(r"(?<![%.\w$])[\w$]+")  # not of a register


@remembered
def reached_from(module: PtxModule, entry: str) -> Sequence[PtxFunction]:
    """The entry and the functions that it may call, also by an address that its code takes."""
    reached = [module.functions[entry]]
    for function in reached:
        names = sorted({*callees(function), *addressed(function)} & set(module.functions))
        reached.extend(f for name in names if (f := module.functions[name]) not in reached)
    return tuple(reached)


def names_of(module: PtxModule, entry: str) -> set[str]:
    """All that the code names which the entry may reach."""
    code = (i for f in reached_from(module, entry) for i in f.instructions())
    return {name for instruction in code for name in _NAME.findall(instruction.operands)}


def callees(function: PtxFunction) -> Iterator[str]:
    """What its calls name: functions, and their arguments among them."""
    for instruction in function.instructions():
        if instruction.base == "call":
            yield from instruction.arguments


def has_loops(function: PtxFunction) -> bool:
    """Whether some jump leads back in the text."""
    labels: set[str] = set()
    for statement in function.body or ():
        if isinstance(statement, Label):
            labels.add(statement.name)
        elif isinstance(statement, Instruction) and statement.base in ("bra", "brx"):
            backwards = statement.base == "brx" or statement.arguments[-1] in labels
            if backwards:
                return True
    return False


def most_held(function: PtxFunction) -> int:
    """Words of registers that the text holds at once, from their first mention to their last: an estimate."""
    words = {
        name: max(1, type_size(s.type) // 4)
        for s in function.body or ()
        if isinstance(s, Registers) and s.type != "pred"
        for name in s.names
    }
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for place, instruction in enumerate(function.instructions()):
        for name in _REGISTER.findall(instruction.operands):
            if name in words:
                first.setdefault(name, place)
                last[name] = place
    changes: Counter[int] = Counter()
    for name, place in first.items():
        changes[place] += words[name]
        changes[last[name]] -= words[name]
    return max(accumulate(changes[place] for place in sorted(changes)), default=0)


POLLS = frozenset({"cas", "exch", "volatile", "acquire"})
"""Words of opcodes with which threads look, in a loop, at what others change."""


def meets_in_grid(code: Iterable[Instruction]) -> bool:
    """Whether blocks wait for one another where a cooperative launch lets them meet (``grid.sync()``).

    Who only asks for the grid (``this_grid().size()``) reads where that is, and waits for nobody.
    """
    asks = waits = False
    for instruction in code:
        asks = asks or "%envreg" in instruction.operands
        waits = waits or not POLLS.isdisjoint(instruction.modifiers)
    return asks and waits


_DEVICE_LAUNCH = re.compile(r"(__)?cuda(CDP2)?(LaunchDevice|GetParameterBuffer)")


def launches_kernels(module: PtxModule, entry: str) -> bool:
    """Whether the kernel, or what it may call, launches kernels itself."""
    calls = (i for f in reached_from(module, entry) for i in f.instructions() if i.base == "call")
    return any(_DEVICE_LAUNCH.match(part) for call in calls for part in call.arguments)


def calls_stored_pointers(module: PtxModule, entry: str) -> bool:
    """Whether the kernel calls functions by addresses that variables, or other code, may keep in memory."""
    reached = reached_from(module, entry)
    calls = (i for f in reached for i in f.instructions() if i.base == "call")
    if all(any(part in module.functions for part in call.arguments) for call in calls):
        return False
    names = {f.name for f in reached}
    elsewhere = (addressed(f) for f in module.functions.values() if f.name not in names)
    words = set[str]().union(*_held(module).values(), *elsewhere)
    return any(f.body is not None and not f.entry for n, f in module.functions.items() if n in words)


def keeps_functions(module: PtxModule, entry: str) -> bool:
    """Whether the kernel may leave addresses of functions in memory: of tables (a class's virtual ones)
    that it names, or of functions that it stores.

    Who finds them there, in another module, would come to this one.
    """
    return bool(kept_names(module, entry))


def kept_names(module: PtxModule, entry: str) -> frozenset[str]:
    """The tables, or functions, whose addresses it may leave there."""
    functions = {n for n, f in module.functions.items() if f.body is not None}
    tables, found = tables_of_functions(module), set[str]()
    for function in reached_from(module, entry):
        found |= addressed(function) & tables | _stored(function, functions)
    return frozenset(found)


def tables_of_functions(module: PtxModule) -> frozenset[str]:
    """Variables that hold addresses of functions at first, or of such variables."""
    functions = {n for n, f in module.functions.items() if f.body is not None}
    held, tables = _held(module), set[str]()
    for _ in range(2):  # tables, and what points to tables
        tables |= {name for name, words in held.items() if words & (functions | tables)}
    return frozenset(tables)


def _stored(function: PtxFunction, names: set[str]) -> set[str]:
    """Those of the names whose addresses it takes and stores, also after a choice between several."""
    code = list(function.instructions())
    taken: dict[str, set[str]] = {}
    for _ in range(2):  # loops
        for i in code:
            if i.base in ("mov", "cvta", "selp"):
                known = (taken.get(part, names & {part}) for part in i.arguments[1:])
                taken.setdefault(i.arguments[0], set()).update(*known)
    stores = (part for i in code if i.base == "st" and "param" not in i.modifiers for part in i.arguments[1:])
    return set[str]().union(*(taken.get(part, set[str]()) for part in stores))


def addressed(function: PtxFunction) -> set[str]:
    """Names whose address the function's code may take."""
    moves = (i.operands for i in function.instructions() if i.base in ("mov", "cvta"))
    return {word for text in moves for word in _NAME.findall(text)}


def _held(module: PtxModule) -> dict[str, set[str]]:
    """Variables, and the names that they hold at first."""
    return {v.name: set(_NAME.findall(v.initialiser or "")) for v in module.variables.values()}


def pointed_to(module: PtxModule) -> frozenset[str]:
    """Functions with a body whose address is taken: in code, or by what a variable holds at first."""
    words = set[str]().union(*_held(module).values(), *map(addressed, module.functions.values()))
    return frozenset(
        n for n, f in module.functions.items() if n in words and f.body is not None and not f.entry
    )


def with_names(text: str, changed: Callable[[str], str]) -> str:
    """Operands with every name changed, registers as they are."""
    return _NAME.sub(lambda match: changed(match[0]), text)
