"""What decides which barriers a thread comes to: the part of a kernel that a run for them has to execute.

A backward slice (Weiser 1981, "Program slicing") from all barriers: what leads to them, what its conditions
are made of, and, by way of memory, what was stored there. Loops that only compute results fall out of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from attrs import define, field

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, Stmt, Store
from cuda_lsp.ir.walk import assigned, children, labels, pointers, stored, used, variables
from cuda_lsp.static.slicing import Slice

_ALWAYS = (ir.Barrier, ir.Assume)


@define(eq=False)
class OnTheWay:
    """``statements``: by their ``id()``. ``needed``: ids of variables."""

    statements: set[int] = field(factory=set[int])
    needed: set[int] = field(factory=set[int])
    held: set[Array] = field(factory=set[Array])

    def add(self, s: Stmt) -> None:
        """A statement, and what it evaluates."""
        self.statements.add(id(s))
        fields = stored(s) if isinstance(s, Store) else ()
        self.needed |= {v.id for e in (*used(s), *fields) for v in variables(e)}

    @property
    def size(self) -> int:
        return len(self.statements) + len(self.needed) + len(self.held)


def on_the_way(facts: Slice) -> OnTheWay:
    """The slice of all barriers of a kernel."""
    found = OnTheWay()
    found.needed |= {v.id for e in facts.kernel.directives.assumptions for v in variables(e)}
    size = -1
    while size != found.size:
        size = found.size
        _mark(facts, facts.kernel.body, found)
    return found


def _mark(facts: Slice, statements: Sequence[Stmt], found: OnTheWay) -> bool:
    """Marks what belongs to the slice, as far as is known; whether anything does."""
    some = False
    for s in statements:
        inner = [_mark(facts, part, found) for part in children(s)]
        if any(inner) or _belongs(facts, s, found):
            some = True
            found.add(s)
            if isinstance(s, ir.Load | ir.Atomic):
                found.held |= facts.roots(s.pointer)
    for s in itertools.chain.from_iterable(_ways_out(statements)) if some else ():
        found.add(s)  # who leaves does not come to the rest
    return some


def _belongs(facts: Slice, s: Stmt, found: OnTheWay) -> bool:
    if isinstance(s, _ALWAYS) or id(s) in found.statements:  # who leaves past a way out does not take it
        return True
    if isinstance(s, ir.Incomplete):
        return not s.harmless
    var = assigned(s)
    if var is not None and var.id in found.needed:
        return True
    if isinstance(s, ir.Store | ir.Atomic | ir.Copy):
        into = facts.roots(pointers(s)[0])
        return bool(found.held) and (not into or bool(into & found.held))
    return False


def _ways_out(statements: Sequence[Stmt]) -> Iterator[list[Stmt]]:
    """Each statement that leaves the list, and those around it."""
    for s in statements:
        if isinstance(s, ir.Leave):
            yield [s]
        for part in children(s):
            own = labels(s)
            for way in _ways_out(part):
                leave = way[-1]
                if isinstance(leave, ir.Leave) and leave.label not in own:
                    yield [s, *way]
