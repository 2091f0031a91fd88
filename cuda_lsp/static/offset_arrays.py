"""Arrays whose neighbouring elements bound a stretch: offsets of rows, buckets, segments.

A kernel that reads ``row[v]`` and ``row[v + 1]`` takes them to ascend, as far as it does not itself ask which
of the two is larger, other than to pass over what is empty, or whether they are equal, as those of a run.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache

from attrs import frozen

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Array, BinaryOp, Const, Expr, Kernel, Load, Var
from cuda_lsp.ir.types import Float, Int
from cuda_lsp.ir.walk import mapped, stripped, subexpressions, used, variables, walk
from cuda_lsp.model import Space
from cuda_lsp.static import budgets
from cuda_lsp.static.facts import facts_of
from cuda_lsp.static.linear import combined, linear
from cuda_lsp.static.slicing import givers

_BELOW, _ABOVE = {BinaryOp.LT, BinaryOp.LE}, {BinaryOp.GT, BinaryOp.GE}
_CHOOSING = {*_BELOW, *_ABOVE, BinaryOp.MIN, BinaryOp.MAX, BinaryOp.EQ, BinaryOp.NE}
_VALUES = {BinaryOp.EQ, BinaryOp.NE}
_ABSOLUTE = frozenset({"abs", "labs", "llabs"})


@frozen
class _Element:
    """Of an array: where it stands, in bytes as a sum, and how long it is."""

    array: Array
    place: tuple[tuple[Expr | None, int], ...]
    size: int


@lru_cache(maxsize=budgets.KEPT_FACTS)  # as ``facts_of``
def offset_arrays(kernel: Kernel) -> frozenset[str]:
    """Pointer parameters to integers that a kernel reads at neighbouring places and never writes."""
    return frozenset(a.param.name for a in _with_neighbours(kernel) if a.param is not None)


@lru_cache(maxsize=budgets.KEPT_FACTS)
def bounding_arrays(kernel: Kernel) -> frozenset[Array]:
    """Arrays, also of records with keys, whose neighbouring integers the kernel does not hold against others.

    Whether they ascend nobody knows; a race that needs them not to is none that anybody has.
    """
    found = _with_neighbours(kernel)
    return found - frozenset(_compared(kernel)) if found else found


@lru_cache(maxsize=budgets.KEPT_FACTS)
def ascending_arrays(kernel: Kernel) -> frozenset[Array]:
    """Arrays of integers that the kernel reads at neighbouring places, never writes, and takes to ascend."""
    found = frozenset(a for a in bounding_arrays(kernel) if isinstance(a.element, Int))
    return found - {x.array for x in _read(kernel).values() if x.size != x.array.element.size}


@lru_cache(maxsize=budgets.KEPT_FACTS)
def enclosing_arrays(kernel: Kernel) -> frozenset[str]:
    """Pointer parameters to floats of which a kernel seeks the two neighbours that enclose a number.

    ``d[i] <= x && x < d[i + 1]``: of sums and of sorted values there is one such place.
    """
    judged = kernel.computed or kernel  # what floats are compared with is known there alone
    names = {a.param.name for a in _with_neighbours(judged, Float) if a.param is not None}
    return frozenset(names & {array.name for array in _enclosing(judged)}) if names else frozenset()


def _enclosing(kernel: Kernel) -> Iterator[Array]:
    held, below, above = _held(kernel, Float), dict[_Element, list[Expr]](), dict[_Element, list[Expr]]()
    for s in walk(kernel.body):
        for e in subexpressions(used(s)):
            if isinstance(e, ir.Binary) and e.op in _BELOW | _ABOVE:
                for one, other, lesser in ((e.left, e.right, _BELOW), (e.right, e.left, _ABOVE)):
                    for element in _elements(one, held):
                        (below if e.op in lesser else above).setdefault(element, []).append(stripped(other))
    for low, limits in below.items():
        for high, others in above.items():
            if low.array is high.array and _distance(low, high) == 1 and any(x in others for x in limits):
                yield low.array


@lru_cache(maxsize=budgets.KEPT_FACTS)
def _with_neighbours(kernel: Kernel, of: type[Int] | type[Float] = Int) -> frozenset[Array]:
    reads: dict[Array, list[_Element]] = defaultdict(list)
    for element in _read(kernel, of).values():
        reads[element.array].append(element)
    found: set[Array] = set()
    for array, read in reads.items():
        pairs = itertools.combinations(read[: budgets.MOST_NEIGHBOURS], 2)
        untouched = array.space in (Space.GLOBAL, Space.CONSTANT) and array not in facts_of(kernel).written
        counts = array.element.size > 1  # bytes are characters, and count to 255
        if untouched and counts and any(_distance(one, other) for one, other in pairs):
            found.add(array)
    return frozenset(found)


def _distance(one: _Element, other: _Element) -> int:
    """1: ``other`` is the next element, -1: the one before; 0: neither."""
    apart = combined(dict(other.place), dict(one.place), -1)
    return 1 if apart == {None: one.size} else -1 if apart == {None: -one.size} else 0


def _read(kernel: Kernel, of: type[Int] | type[Float] = Int) -> Mapping[int, _Element]:
    """The elements that loads of integers read, by the statement's id, where the array is known."""
    facts = facts_of(kernel)
    found: dict[int, _Element] = {}
    alike: dict[Var, Var] = {}  # what was read at one place is one number, however often it is read
    first: dict[frozenset[tuple[Expr | None, int]], Var] = {}
    for s in walk(kernel.body):
        if isinstance(s, Load) and s.var is not None:
            place = linear(_renamed(s.pointer, alike))
            alike[s.var] = first.setdefault(frozenset(place.items()), s.var)
            roots = facts.roots(s.pointer)
            if isinstance(s.type, of) and len(roots) == 1:
                found[id(s)] = _Element(next(iter(roots)), tuple(place.items()), s.type.size)
    return found


def _renamed(e: Expr, alike: Mapping[Var, Var]) -> Expr:
    return alike.get(e, e) if isinstance(e, Var) else mapped(e, lambda part: _renamed(part, alike))


# ------------------------------------------------------------------------- what the kernel asks of them

_Held = Mapping[Var, frozenset["_Element"]]
"""Which elements a variable is a copy of."""


def _compared(kernel: Kernel) -> Iterator[Array]:
    """Arrays two of whose elements the kernel compares, as if the one behind might be the smaller one.

    Or as if they were values, of which runs or some are sought: ``key[i] != key[i + 1]``, ``text[i] == 'q'``.
    """
    held = _held(kernel)
    for s in walk(kernel.body):
        if isinstance(s, ir.Assume) or (isinstance(s, ir.If) and _passes_over(s, held)):
            continue
        for e in subexpressions(used(s)):
            if isinstance(e, ir.Binary) and e.op in _CHOOSING:
                left, right = _arrays(e.left, held), _arrays(e.right, held)
                yield from left & right
                if e.op in _VALUES and isinstance(stripped(e.right), Const):
                    yield from left
            elif isinstance(e, ir.Intrinsic) and e.name in _ABSOLUTE:
                yield from (x.array for v in variables(e) for x in held.get(v, ()))


def _passes_over(s: ir.If, held: _Held) -> bool:
    """It asks whether a stretch is empty, and does nothing, or leaves, where it is."""
    together = {BinaryOp.AND: s.otherwise, BinaryOp.OR: s.then}
    op = s.condition.op if isinstance(s.condition, ir.Binary) else None
    parts = _parts(s.condition, op) if op in together else [s.condition]
    upward = {_upward(e, held) for e in parts} - {None}
    if len(upward) != 1:
        return False
    (full,) = upward
    if op in together and full is not (op is BinaryOp.AND):
        return False
    return all(isinstance(x, ir.Leave) for x in (s.otherwise if full else s.then))


def _parts(e: Expr, op: BinaryOp | None) -> list[Expr]:
    if isinstance(e, ir.Binary) and e.op is op:
        return [*_parts(e.left, op), *_parts(e.right, op)]
    return [e]


def _upward(e: Expr, held: _Held) -> bool | None:
    """Whether a comparison says that an element is below the next, or is not; None: it says neither."""
    if not isinstance(e, ir.Binary) or e.op not in _BELOW | _ABOVE:
        return None
    left, right = _elements(e.left, held), _elements(e.right, held)
    if len(left) != 1 or len(right) != 1:
        return None
    (one,), (other,) = left, right
    apart = _distance(one, other) if one.array is other.array else 0
    return (apart > 0) is (e.op in _BELOW) if apart else None


def _elements(e: Expr, held: _Held) -> frozenset[_Element]:
    e = stripped(e)
    return held.get(e, frozenset()) if isinstance(e, Var) else frozenset()


def _arrays(e: Expr, held: _Held) -> set[Array]:
    return {x.array for x in _elements(e, held)}


def _held(kernel: Kernel, of_type: type[Int] | type[Float] = Int) -> _Held:
    """Of variables that are given nothing but elements of arrays: which."""
    read = _read(kernel, of_type)
    given = givers(walk(kernel.body))
    found: dict[Var, frozenset[_Element]] = {}

    def of(var: Var, within: frozenset[Var]) -> frozenset[_Element] | None:
        if var in within:
            return frozenset()
        elements = set[_Element]()
        for s in given.get(var, ()):
            value = stripped(s.value) if isinstance(s, ir.Assign) else None
            more = of(value, within | {var}) if isinstance(value, Var) else None
            if id(s) in read:
                more = frozenset({read[id(s)]})
            if more is None:
                return None
            elements |= more
        return frozenset(elements) if var in given else None

    for var in given:
        if (elements := of(var, frozenset())) is not None:
            found[var] = elements
    return found
