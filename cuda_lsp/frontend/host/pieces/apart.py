"""How far the pointers that a launch passes lie apart, as following its function up to there tells."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from cuda_lsp.frontend.host.host_pointers import Held
from cuda_lsp.frontend.host.pieces import statements
from cuda_lsp.frontend.host.pieces.calls import valued
from cuda_lsp.frontend.host.pieces.machine import Frame, Machine, NotUnderstood
from cuda_lsp.frontend.host.pieces.nodes import Node
from cuda_lsp.frontend.host.pieces.operators import divided_evenly, size
from cuda_lsp.frontend.host.pieces.syntax import NotRead, expression
from cuda_lsp.frontend.host.pieces.units import Unit, declared_type
from cuda_lsp.frontend.host.pieces.values import Cell, Nobody, Object, Place, Size, Value, constant
from cuda_lsp.frontend.host.polynomials import Formula, Polynomial, added, formula
from cuda_lsp.frontend.host.shared_arguments import SharedBuffer
from cuda_lsp.frontend.host.statements import NoStatement
from cuda_lsp.frontend.host.terms import Term, product_of, sum_of, with_solved
from cuda_lsp.frontend.host.text import whole_arguments

_CALL = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s?(?:<[^<>;(){}]{0,200}>\s?)?[({]")
_CANNOT = (NotUnderstood, NoStatement, NotRead, RecursionError)
"""What ends a run without a result; long expressions nest deeply."""
_VARIABLE = re.compile(r"\A[A-Za-z_][\w.\[\]>-]*\Z")
_PLAIN_CALL = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s?\(")
_ALLOCATES = frozenset({"malloc", "calloc", "static_cast", "reinterpret_cast", "const_cast", "sizeof"})
_MOVES = frozenset({"exchange", "swap", "ref"})
_MOST_STEPS = 4
"""Variables looked through."""
_REACHES = re.compile(r"[*&](?!\s?(?:const\s?)?\()")


@frozen
class Followed:
    """What the arguments of a launch are worth, and what is known of the numbers in them.

    ``extents``: of grid and block, as far as they are told, by what a kernel calls them.
    """

    values: tuple[Value, ...]
    machine: Machine
    extents: Mapping[str, Value]


def followed(
    units: Sequence[Unit],
    integer: Callable[[str], int | None],
    arguments: Sequence[str],
    at: int,
    extents: Mapping[str, str],
) -> Followed | None:
    """What arguments are worth at a place of the first text; None: the way there is not understood.

    ``extents``: of grid and block, as text, by what a kernel calls them.
    """
    unit = units[0]
    function = unit.functions.around(at)
    if function is None or unit.functions.jumps(function):
        return None
    owner = unit.classes.of(function)
    this = Cell(Object("this", owner.name)) if owner is not None else None
    m = Machine(units, integer, at, Frame(unit, [{}], this, owner))
    m.left = min(m.left, unit.left)
    plain = unit.text.plain
    for text in whole_arguments(plain[function.opening + 1 : function.closing]):
        made = declared_type(text)
        if made is not None:
            m.frame.scopes[0][made[1]] = Cell(m.initial(made[1], made[0]), made[0])
            m.buffers.add(made[1])
    begun = m.left
    try:
        statements.block(m, function.body + 1, function.end)
    except statements.Arrived:
        m.frame.scopes[:] = m.there
        m.frame.origin = -1
        worth = dict(zip(extents, _worth(m, [*extents.values()]), strict=True))
        return Followed(tuple(_worth(m, arguments)), m, worth)
    except (statements.Left, statements.Returned, *_CANNOT):
        pass
    finally:
        unit.left -= begun - m.left
    return None


def is_doubtful(
    found: Mapping[int, SharedBuffer],
    units: Sequence[Unit],
    arguments: Sequence[str],
    held: Callable[[str], Held | None],
) -> bool:
    """Whether following the host may tell more than its variables do: a distance, or what a call returns."""
    if any(buffer.offset is None for buffer in found.values()):
        return True
    lambdas = units[0].lambdas
    texts = [*arguments]
    for _ in range(_MOST_STEPS):
        names = {match[1] for text in texts for match in _CALL.finditer(text)}
        if any(n in lambdas or n in _MOVES or any(_makes_pointers(u, n) for u in units) for n in names):
            return True
        known = [held(text.strip()) for text in texts if _VARIABLE.match(text.strip())]
        texts = [value for each in known if each is not None for value in each.values]
        if any(text.strip(" (").startswith("*") for text in texts):
            return True
        if any(match[1] not in _ALLOCATES for text in texts for match in _PLAIN_CALL.finditer(text)):
            return True
    return False


def _makes_pointers(unit: Unit, name: str) -> bool:
    """Whether it is a class with pointers, or a function that returns some, or moves its caller's."""
    if name in unit.classes.named:
        return bool(unit.classes.named[name].pointers)
    return any(
        owner.pointers
        if function.member and (owner := unit.classes.of(function)) is not None
        else _REACHES.search(unit.head_of(function)) is not None
        for function in unit.functions.named(name)
    )


def _worth(m: Machine, arguments: Sequence[str]) -> list[Value]:
    nodes: list[Node | None] = []
    for text in arguments:
        try:
            nodes.append(expression(text))
        except (NotRead, RecursionError):
            nodes.append(None)
    known = [node for node in nodes if node is not None]
    mark = len(m.changed)
    found = [_one(m, node) if node is not None else Nobody("") for node in nodes]
    if len(m.changed) == mark:
        return found
    m.undone(mark)
    try:
        values = iter(valued(m, known))
    except (statements.Left, *_CANNOT):
        return [Nobody("") for _ in nodes]
    return [next(values) if node is not None else Nobody("") for node in nodes]


def _one(m: Machine, node: Node) -> Value:
    mark = len(m.changed)
    try:
        (value,) = valued(m, [node])
    except (statements.Left, *_CANNOT):
        m.undone(mark)
        return Nobody("")
    return value


def refined(found: Mapping[int, SharedBuffer], of: Followed) -> Mapping[int, SharedBuffer]:
    """``found`` with what following the host tells besides."""
    made = {
        position: buffer
        for position, buffer in found.items()
        if buffer.offset is not None
        or buffer.pieces
        or not isinstance(buffer.first, int)
        or not _are_two(of, buffer.first, position)
    }
    begun: dict[str, tuple[int, Place]] = {}
    terms = _terms(of)
    for position, value in enumerate(of.values):
        if not isinstance(value, Place) or (value.type is None and value.root not in begun):
            continue
        first, begin = begun.setdefault(value.root, (position, value))
        if first == position:
            continue
        told = _between(of.machine, begin, value, first, terms)
        known = found.get(position)
        if known is None and first in found:
            made[position] = SharedBuffer(found[first].first, None)
        elif known is None or (known.first == first and told.offset is not None):
            made[position] = told
    return made


def _are_two(of: Followed, one: int, other: int) -> bool:
    """Whether two arguments are followed to buffers of their own."""
    if max(one, other) >= len(of.values):
        return False
    first, second = of.values[one], of.values[other]
    if not isinstance(first, Place) or not isinstance(second, Place) or first.root == second.root:
        return False
    return all(v.base == v.root and of.machine.is_buffer(v.root) for v in (first, second))


def _terms(of: Followed) -> list[Term]:
    """The integers among the arguments, and the extents of grid and block."""
    found: list[Term] = []
    sums: list[tuple[str, Polynomial]] = []
    arguments = ((f"#{position}", value) for position, value in enumerate(of.values))
    for name, value in (*arguments, *of.extents.items()):
        whole = size(value) if isinstance(value, Size | Nobody) else None
        product = product_of(whole) if whole else None
        if product is not None and product[1] != ("",):
            found.append(Term(name, *product))
        elif whole:
            sums.append((name, whole))
    return with_solved(found, sums)


def _between(m: Machine, one: Place, other: Place, first: int, terms: Sequence[Term]) -> SharedBuffer:
    """How far a place begins behind another one of its buffer."""
    if one.base != other.base:
        return SharedBuffer(first, None)
    apart = added(other.offset, one.offset, -1)
    unit = m.size_of(other.type)
    elements = divided_evenly(apart, unit)
    if elements is not None:
        told = _formula(m, elements, terms)
        if told is not None:
            known = constant(unit) if unit is not None else None
            return SharedBuffer(first, told, unit=known)
    told = _formula(m, apart, terms)
    if told is not None:
        return SharedBuffer(first, told, unit=1)
    return SharedBuffer(first, None)


def _formula(m: Machine, value: Polynomial, terms: Sequence[Term]) -> Formula | None:
    alone = {term.names[0]: term.name for term in reversed(terms) if (term.factor, len(term.names)) == (1, 1)}
    if all(name in alone for names in value for name in names):
        renamed = {tuple(sorted(str(alone[n]) for n in names)): factor for names, factor in value.items()}
        return formula(renamed)
    inner: list[Term] = []
    for name in {name for names in value for name in names}:
        divided = m.quotients.known.get(name)
        part = _formula(m, divided[0], terms) if divided is not None else None
        if divided is not None and part is not None:
            inner.append(Term(("/", part, divided[1]), 1, (name,)))
    return sum_of(value, [*terms, *inner])
