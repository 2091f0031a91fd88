"""What values come from: for each access, which arrays' contents and which parameters decide it.

Flow-insensitive: a variable comes from all that is ever assigned to it, and from what chose between that.
A value that was loaded comes from the array it was loaded from, not from what led there: in ``d[list[j]]``
the list decides the address, and ``first[v]``, where ``j`` began, does not. Shared arrays pass on what was
stored in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

from attrs import define, field, frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import Array, Axis, BinaryOp, Const, Expr, Stmt, Var
from cuda_lsp.ir.types import Float, Int
from cuda_lsp.ir.walk import (
    accesses,
    assigned,
    children,
    expressions,
    inside,
    labels,
    operands,
    stripped,
    subexpressions,
    used,
    variables,
    walk,
)
from cuda_lsp.model import Mode, Site, SourceRange, Space
from cuda_lsp.static import budgets
from cuda_lsp.static.facts import facts_of
from cuda_lsp.static.slicing import Slice, givers

Source = Array | Var | Axis
"""An array whose contents, a parameter whose value, or a coordinate that a value is made of."""

Sources = dict[Var | Array, frozenset[Source]]

Named = tuple[Const | Var, int]
"""A number in the source or a parameter, and a distance from it."""

_ORDER = (BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE)
_FULFILLED = dict.fromkeys((*_ORDER, BinaryOp.EQ, BinaryOp.NE), 0) | {BinaryOp.LT: -1, BinaryOp.GT: 1}
"""How far on the left a number is from what it is compared with, to fulfil the comparison or its opposite."""
_FLAGS = _FULFILLED | {BinaryOp.BAND: 1, BinaryOp.REM: 2}
"""Operations that make a flag of a number; of the last two, with this one."""
MERGING = frozenset({BinaryOp.DIV, BinaryOp.REM, BinaryOp.SHR, BinaryOp.BAND})
"""Operations that make one number of several."""
_NOTHING: frozenset[Source] = frozenset()
_MOST_COPIES = 4
"""Variables that are looked through for the element that one of them was loaded as."""


@frozen(eq=False)
class Accessed:
    """An access: what its address and the conditions around it come from; ``choices``: how many
    ``if`` on data. ``told``: what the address comes from, flags left out. ``pointer``: the address itself.
    """

    site: Site
    mode: Mode
    arrays: frozenset[Array]
    address: frozenset[Source]
    guard: frozenset[Source]
    choices: int = 0
    told: frozenset[Source] = frozenset()
    pointer: Expr = field(kw_only=True)


@define(eq=False)
class DataFlow:
    """``known``: what variables, and arrays of threads, come from; ``told``: the same, flags left out.

    A flag is what one comparison says of an element (``in[i] > 0``) or of two elements of one array
    (``key[j] < key[i]``), or an element's last bit: positions among elements that have it, and ranks, are
    made of conditions, and not of what the host wrote.
    ``rows``: arrays that say where ranges of a loop begin and end. ``drawn``: arrays with atomics, but
    ``forests``, that are exchanged and lead somewhere. ``named``: what elements are compared with.
    ``cells``: ids of unknown integers that are made of floating-point data and of nothing else.
    ``counters``: single numbers that are only ever raised, and that addresses are sums with: what one holds
    at the start moves all that is drawn from it alike. ``lowered``: arrays with no other atomics than minima.
    ``single``: arrays that are only read, where all threads read one place, as they do sizes.
    """

    slice: Slice
    params: frozenset[Var] = frozenset()
    known: Sources = field(factory=dict[Var | Array, frozenset[Source]])
    told: Sources = field(factory=dict[Var | Array, frozenset[Source]])
    accesses: list[Accessed] = field(factory=list[Accessed])
    rows: frozenset[Array] = frozenset()
    begins: frozenset[Array] = frozenset()
    drawn: frozenset[Array] = frozenset()
    forests: frozenset[Array] = frozenset()
    awaited: frozenset[Array] = frozenset()
    cells: frozenset[int] = frozenset()
    counters: frozenset[Array] = frozenset()
    lowered: frozenset[Array] = frozenset()
    single: frozenset[Array] = frozenset()
    named: dict[Array, tuple[Named, ...]] = field(factory=dict[Array, "tuple[Named, ...]"])

    def of(self, e: Expr) -> frozenset[Source]:
        return self._of(e, self.known, lambda _: False)

    def told_by(self, e: Expr) -> frozenset[Source]:
        """What a value comes from, flags left out."""
        return self._of(e, self.told, self._is_flag)

    def _is_flag(self, e: Expr) -> bool:
        if not isinstance(e, ir.Binary) or e.op not in _FLAGS:
            return False
        data = [any(isinstance(x, Array) for x in self.of(side)) for side in (e.left, e.right)]
        if all(data):
            return self.ranked(e) is not None
        last_bit = e.op in _FULFILLED or (isinstance(e.right, Const) and e.right.value == _FLAGS[e.op])
        return last_bit and any(data)

    def ranked(self, e: Expr) -> Array | None:
        """The array of which a comparison holds two elements against each other."""
        if not isinstance(e, ir.Binary) or e.op not in _FULFILLED:
            return None
        left, right = (self._array_of(stripped(side)) for side in (e.left, e.right))
        return next(iter(left)) if left == right and len(left) == 1 else None

    def _array_of(self, e: Expr, steps: int = _MOST_COPIES) -> frozenset[Array]:
        """The array of which a value is an element, as it was loaded."""
        given = self._givers.get(e, ()) if isinstance(e, Var) else ()
        loaded = [s for s in given if isinstance(s, ir.Load)]
        if given and len(loaded) == len(given):
            return self.arrays_in(frozenset(a for s in loaded for a in self.slice.roots(s.pointer)))
        once = given[0] if len(given) == 1 and steps else None
        return self._array_of(stripped(once.value), steps - 1) if isinstance(once, ir.Assign) else frozenset()

    def read_for(self, var: Var) -> frozenset[Array]:
        """The arrays that a variable is made of elements of as its own statements are written."""
        found: set[Array] = set()
        pending, seen = [var], {var}
        while pending:
            for s in self._givers.get(pending.pop(), ()):
                if isinstance(s, ir.Load):
                    found |= self.slice.roots(s.pointer)
                elif isinstance(s, ir.Assign):
                    new = [v for v in variables(s.value) if v not in seen and not v.name]
                    seen.update(new)
                    pending += new
        return self.arrays_in(frozenset(found))

    @cached_property
    def _givers(self) -> Mapping[Var, Sequence[Stmt]]:
        return givers(self.slice.statements)

    @cached_property
    def ranking(self) -> frozenset[Array]:
        """Arrays whose elements are compared with one another."""
        found = (self.ranked(e) for e in subexpressions(expressions(self.slice.kernel.body)))
        return frozenset(array for array in found if array is not None)

    def stores_what_ranks(self, a: Accessed) -> bool:
        """Threads store what their ranks come of, and nothing else: who has an equal rank stores the same."""
        reached = self.arrays_in(a.address)
        ranking = reached & self.ranking if reached else reached
        if not ranking:
            return False
        stores = (s for s in self.slice.statements if isinstance(s, ir.Store))
        values = [self.of(s.value) for s in stores if s.site.range == a.site.range]
        read = [value for value in values if value and all(isinstance(x, Array) for x in value)]
        return bool(read) and len(read) == len(values) and all(self.arrays_in(x) <= ranking for x in read)

    def _of(self, e: Expr, known: Sources, left_out: Callable[[Expr], bool]) -> frozenset[Source]:
        found: set[Source] = set()
        stack: list[Expr] = [e]
        while stack:
            node = stack.pop()
            if left_out(node):
                continue
            if isinstance(node, Var):
                found |= known.get(node, {node} if node in self.params else _NOTHING)
            elif isinstance(node, ir.Builtin):
                found.add(node.axis)
            else:
                stack.extend(operands(node))
        return frozenset(found)

    @property
    def deciding(self) -> frozenset[Array]:
        """Arrays whose contents reach some address or condition."""
        return frozenset(x for a in self.accesses for x in a.address | a.guard if isinstance(x, Array))

    @property
    def indices(self) -> frozenset[Array]:
        """Arrays whose contents reach some address."""
        return frozenset(x for a in self.accesses for x in a.address if isinstance(x, Array))

    @property
    def leading(self) -> frozenset[Array]:
        """Arrays whose elements say which of their elements comes next: lists, trees."""
        return frozenset(array for x in self.accesses for array in x.arrays & x.address)

    def at(self, place: SourceRange) -> list[Accessed]:
        return [a for a in self.accesses if a.site.range == place]

    def is_update(self, a: Accessed, b: Accessed) -> bool:
        """The same place is read and written without an atomic."""
        if a.site.range != b.site.range and a.address != b.address:
            return False
        if a.site.range == b.site.range and {a.mode, b.mode} == {Mode.READ, Mode.WRITE}:
            return True  # ``next[v]++``, whatever an interval before did
        same = [x for x in self.accesses if x.arrays & a.arrays and x.address == a.address]
        modes = {x.mode for x in same}
        return {Mode.READ, Mode.WRITE} <= modes and not any(mode.atomic for mode in modes)

    def follows_itself(self, a: Accessed, b: Accessed) -> bool:
        """One of them writes an array, plainly, where its own contents say, which change meanwhile.

        Not where other arrays lead there, and its own only choose how far to go: a list that a thread
        shortens in place (``if (list[first[i] + k] != x) list[first[i] + m++] = …``).
        """
        return any(x.mode is Mode.WRITE and self._follows(x) for x in (a, b))

    def _follows(self, x: Accessed) -> bool:
        own = x.arrays & x.told
        if not own or not self.arrays_in(x.told, self.told) - own:
            return bool(own)
        return bool(own & self.carried_by(x.pointer))

    def carried_by(self, e: Expr) -> frozenset[Source]:
        """What a value is made of: not what chose it, nor how often a loop changed it."""
        return self._of(e, self._carried, lambda _: False)

    @cached_property
    def _carried(self) -> Sources:
        table: dict[Var | Array, frozenset[Source]] = {}
        _values(self, table, lambda e: self._of(e, table, lambda _: False), choices=False)
        return table

    def into_cells(self, a: Accessed, b: Accessed) -> bool:
        """Floating-point data alone say where both are."""
        data = [self.arrays_in(x.address) for x in (a, b)]
        return bool(self.cells) and not any(isinstance(x.element, Int) for arrays in data for x in arrays)

    def through_memory(self, sources: frozenset[Source]) -> frozenset[Source]:
        """The sources, shared arrays with what is stored in them and what chooses among that."""
        found, pending = set[Source](), set(sources)
        while pending:
            source = pending.pop()
            found.add(source)
            if isinstance(source, Array) and source.space is Space.SHARED:
                pending |= self.known.get(source, _NOTHING) | self._choosing.get(source, _NOTHING)
                pending -= found
        return frozenset(found)

    @cached_property
    def _choosing(self) -> dict[Array, frozenset[Source]]:
        """What is around stores to arrays, and says which element each is of."""
        found: dict[Array, frozenset[Source]] = {}
        for a in self.accesses:
            for array in a.arrays if a.mode.writes else ():
                found[array] = found.get(array, _NOTHING) | a.address | a.guard
        return found

    def arrays_in(self, sources: frozenset[Source], known: Sources | None = None) -> frozenset[Array]:
        """The arrays among the sources, shared ones replaced by what is stored in them (as ``known``)."""
        known = self.known if known is None else known
        found: set[Array] = set()
        pending = [x for x in sources if isinstance(x, Array)]
        seen: set[Array] = set()
        while pending:
            array = pending.pop()
            if array in seen:
                continue
            seen.add(array)
            if array.space is Space.SHARED:
                pending += [x for x in known.get(array, _NOTHING) if isinstance(x, Array)]
            else:
                found.add(array)
        return frozenset(found)


@lru_cache(maxsize=budgets.KEPT_FACTS)
def data_flow(kernel: ir.Kernel) -> DataFlow:
    """What the kernel's accesses depend on."""
    facts = facts_of(kernel)
    flow = DataFlow(facts, frozenset(p for p in kernel.params if isinstance(p.type, Int)))
    _values(flow, flow.known, flow.of)
    _values(flow, flow.told, flow.told_by)
    _accesses(flow, kernel.body, _NOTHING)
    _roles(flow)
    return flow


def _values(
    flow: DataFlow, table: Sources, of: Callable[[Expr], frozenset[Source]], *, choices: bool = True
) -> None:
    """``choices``: what decides which of several values a variable has, and how often it changed, too.

    Of a thread's own array those are the arguments that choose between its stores, and among its elements.
    """
    rounds = {id(s): loop for loop in _loops(flow) for s in inside(loop)} if choices else {}
    ways = _ways(flow) if choices else {}
    changed = True
    while changed:
        changed = False
        for s in flow.slice.statements:
            if isinstance(s, ir.Store | ir.Atomic):
                stored = (s.value,) if isinstance(s, ir.Store) else s.operands
                kept = [a for a in flow.slice.roots(s.pointer) if a.space in (Space.SHARED, Space.LOCAL)]
                changed |= any(_grow(table, a, of(e)) for a in kept for e in stored)
                own = [a for a in kept if a.space is Space.LOCAL and choices]
                chosen = (s.pointer, *ways.get(id(s), ()))
                changed |= any(_grow(table, a, of(e) & flow.params) for a in own for e in chosen)
            if isinstance(s, ir.Assign):
                found = of(s.value)
                loop = rounds.get(id(s))
                if loop is not None and any(v is s.var for v in variables(s.value)):
                    found |= of(loop.condition)  # how many rounds there are decides it too
                found |= frozenset(x for e in ways.get(id(s), ()) for x in of(e))
                changed |= _grow(table, s.var, found)
            elif isinstance(s, ir.Load | ir.Atomic) and s.var is not None:
                changed |= _grow(table, s.var, _loaded(flow, table, s.pointer, of))


def _ways(flow: DataFlow) -> dict[int, tuple[Expr, ...]]:
    """For assignments to variables that have several, and stores to a thread's own array: the conditions
    that choose between them."""
    around: dict[int | Array, list[tuple[Stmt, tuple[Expr, ...]]]] = {}

    def visit(statements: Sequence[Stmt], conditions: tuple[Expr, ...], loops: tuple[Expr, ...]) -> None:
        for s in statements:
            var = assigned(s)
            if var is not None:
                around.setdefault(var.id, []).append((s, conditions))
            if isinstance(s, ir.Store | ir.Atomic):
                for array in flow.slice.roots(s.pointer):
                    if array.space is Space.LOCAL:
                        around.setdefault(array, []).append((s, (*conditions, *loops)))
            more = (*conditions, s.condition) if isinstance(s, ir.If) else conditions
            rounds = (*loops, s.condition) if isinstance(s, ir.Loop) else loops
            for part in children(s):
                visit(part, more, rounds)

    visit(flow.slice.kernel.body, (), ())
    found: dict[int, tuple[Expr, ...]] = {}
    for assignments in around.values():
        common = {id(e) for e in assignments[0][1]}
        for _, conditions in assignments[1:]:
            common &= {id(e) for e in conditions}
        for s, conditions in assignments:
            found[id(s)] = (*found.get(id(s), ()), *(e for e in conditions if id(e) not in common))
    return found


def _loaded(
    flow: DataFlow, table: Sources, pointer: Expr, of: Callable[[Expr], frozenset[Source]]
) -> frozenset[Source]:
    found: set[Source] = set()
    for array in flow.slice.roots(pointer):
        own = array.space is Space.LOCAL
        found |= table.get(array, _NOTHING) | (of(pointer) & flow.params) if own else {array}
    return frozenset(found)


def _grow(table: Sources, key: Var | Array, more: frozenset[Source]) -> bool:
    known = table.get(key)
    table[key] = more if known is None else known | more
    return known is None or not more <= known


def _loops(flow: DataFlow) -> Iterator[ir.Loop]:
    return (s for s in flow.slice.statements if isinstance(s, ir.Loop))


def _accesses(
    flow: DataFlow, statements: Sequence[Stmt], guard: frozenset[Source], choices: int = 0
) -> frozenset[Source]:
    """Lists the accesses; returns what decides whether what follows is reached."""
    for s in statements:
        for pointer, mode, site in accesses(s):
            arrays = frozenset(a for a in flow.slice.roots(pointer) if a.space is not Space.LOCAL)
            told = flow.told_by(pointer)
            address = flow.of(pointer)
            flow.accesses.append(Accessed(site, mode, arrays, address, guard, choices, told, pointer=pointer))
        match s:
            case ir.If():
                within, by_data = guard | flow.of(s.condition), _on_data(flow, s.condition)
                _accesses(flow, s.then, within, choices + by_data)
                _accesses(flow, s.otherwise, within, choices + by_data)
                if any(isinstance(x, ir.Leave) for x in inside(s)):
                    guard = within
            case ir.Loop():
                within = guard | flow.of(s.condition)
                _accesses(flow, (*s.test, *s.body, *s.step), within, choices)
                if _leaves(s):
                    guard = within
            case ir.Block():
                within = _accesses(flow, s.body, guard, choices)
                if _leaves(s):
                    guard = within
            case _:
                pass
    return guard


def _on_data(flow: DataFlow, condition: Expr) -> bool:
    """A condition may look at memory."""
    memory = any(isinstance(x, Array) for x in flow.of(condition))
    return memory or any(isinstance(e, ir.Unknown) for e in subexpressions((condition,)))


def _leaves(s: Stmt) -> bool:
    """Something inside goes beyond the end of the loop or block."""
    return bool({x.label for x in inside(s) if isinstance(x, ir.Leave)} - labels(s))


def _roles(flow: DataFlow) -> None:
    rows: set[Array] = set()
    begins: set[Array] = set()
    for loop in _loops(flow):
        condition = loop.condition
        if not isinstance(condition, ir.Binary) or condition.op not in _ORDER:
            continue
        changed = {v.id for s in walk((*loop.body, *loop.step)) if (v := assigned(s)) is not None}
        for side in (condition.left, condition.right):
            arrays = flow.arrays_in(flow.of(side))
            rows |= arrays
            counters = [v for v in variables(side) if v.id in changed]
            if counters:
                begins |= _initial(flow, counters, loop)
    # what the kernel writes is no offsets: ``while (parent[v] < v)`` follows a path
    flow.rows, flow.begins = frozenset(rows - flow.slice.written), frozenset(begins)
    atomics = [s for s in flow.slice.statements if isinstance(s, ir.Atomic)]
    swapped = {a for s in atomics if s.row.selects for a in flow.slice.roots(s.pointer)}
    drawn = {a for s in atomics for a in flow.slice.roots(s.pointer)}
    flow.forests = frozenset(swapped & flow.indices)
    flow.drawn = frozenset(drawn - flow.forests)
    raised = {a for s in atomics if s.op is not AtomicOp.MIN for a in flow.slice.roots(s.pointer)}
    flow.lowered = frozenset(drawn - raised)
    flow.counters = frozenset(_counters(flow))
    flow.named = _named(flow)
    flow.cells = frozenset(_cells(flow))
    flow.single = _single(flow)
    waiting = (s for s in _loops(flow) if id(s) in flow.slice.waiting)
    flow.awaited = frozenset(
        a
        for loop in waiting
        for s in inside(loop)
        if isinstance(s, ir.Load)
        for a in flow.slice.roots(s.pointer)
    )


def _cells(flow: DataFlow) -> Iterator[int]:
    """Integers that data make of every thread's own accord: no coordinate has part in them."""
    for e in subexpressions(expressions(flow.slice.kernel.body)):
        if not isinstance(e, ir.Unknown) or not e.loaded or not isinstance(e.type, Int):
            continue
        sources = frozenset(x for part in e.inputs for x in flow.of(part))
        data = [x for x in sources if isinstance(x, Array) and x.space is Space.GLOBAL]
        floats = all(isinstance(part.type, Float) for part in e.inputs)
        if data and floats and all(isinstance(x, Var) or x in data for x in sources):
            yield e.id


def _counters(flow: DataFlow) -> Iterator[Array]:
    kernel = flow.slice.kernel
    accessed = {a: [s for s in flow.slice.statements if _touches(flow, s, a)] for a in flow.drawn}
    merging = [
        e for e in subexpressions(expressions(kernel.body)) if isinstance(e, ir.Binary) and e.op in MERGING
    ]
    for array, statements in accessed.items():
        raised = all(isinstance(s, ir.Atomic) and s.row.moves > 0 for s in statements)
        places = [pointer for s in statements for pointer, _, _ in accesses(s)]
        one = all(not flow.of(p) and all(v in kernel.params for v in variables(p)) for p in places)
        if raised and one and not any(array in flow.of(e) for e in merging):
            yield array


def _touches(flow: DataFlow, s: Stmt, array: Array) -> bool:
    return any(array in flow.slice.roots(pointer) for pointer, _, _ in accesses(s))


def _single(flow: DataFlow) -> frozenset[Array]:
    params = {p.id for p in flow.slice.kernel.params}
    found: dict[Array, bool] = {}
    for s in flow.slice.statements:
        for pointer, _, _ in accesses(s):
            own = all(v.id in params for v in variables(pointer)) and not flow.of(pointer)
            for array in flow.slice.roots(pointer):
                found[array] = found.get(array, True) and own and array not in flow.slice.written
    return frozenset(array for array, own in found.items() if own and array.space is Space.GLOBAL)


def _named(flow: DataFlow) -> dict[Array, tuple[Named, ...]]:
    """For arrays: the constants and parameters that loaded elements are compared with, and how far
    from them an element makes the comparison true."""
    found: dict[Array, dict[Named, None]] = {}
    loaded = {
        s.var.id: flow.slice.roots(s.pointer)
        for s in flow.slice.statements
        if isinstance(s, ir.Load) and s.var is not None
    }
    for e in subexpressions(expressions(flow.slice.kernel.body)):
        if not isinstance(e, ir.Binary) or e.op not in _FULFILLED:
            continue
        left, right, away = stripped(e.left), stripped(e.right), _FULFILLED[e.op]
        for side, other, distance in ((left, right, away), (right, left, -away)):
            if isinstance(side, Var) and (isinstance(other, Const) or other in flow.params):
                for array in loaded.get(side.id) or _only_array(flow, side):
                    found.setdefault(array, {})[other, distance] = None
    return {array: tuple(others) for array, others in found.items()}


def _only_array(flow: DataFlow, var: Var) -> frozenset[Array]:
    """The array that a variable's value was loaded from and nothing else."""
    sources = flow.of(var)
    arrays = flow.arrays_in(sources)
    return arrays if len(arrays) == 1 and all(isinstance(x, Array) for x in sources) else frozenset()


def _initial(flow: DataFlow, counters: Sequence[Var], loop: ir.Loop) -> set[Array]:
    """The arrays that say where a counter begins: what it is given outside its loop."""
    ids = {v.id for v in counters}
    within = {id(s) for s in inside(loop)}
    found: set[Array] = set()
    for s in flow.slice.statements:
        var = assigned(s)
        if var is not None and var.id in ids and id(s) not in within:
            values = used(s) if isinstance(s, ir.Assign) else ()
            found |= {a for e in values for a in flow.arrays_in(flow.of(e))}
            if isinstance(s, ir.Load):
                found |= flow.slice.roots(s.pointer)
    return found
