"""Addresses as numbers of mixed radix (``symbolic.digits``): two threads with one address are one thread."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cuda_lsp.ir.program import BID
from cuda_lsp.static.solver.query import is_linear
from cuda_lsp.static.solver.rows.apart import not_negative
from cuda_lsp.static.solver.rows.stated import speaks_against_sizes
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.digits import digits_of
from cuda_lsp.static.symbolic.encode import base_name
from cuda_lsp.static.symbolic.rounds import ROUND
from cuda_lsp.static.symbolic.sizes import FIRST, side
from cuda_lsp.static.symbolic.terms import Op, Term
from cuda_lsp.static.symbolic.wraps import UNTOLD_BLOCKS


def differ(pair: OpenPair) -> Proved | None:
    """The digits agree in one thread only; parameters that are bases are taken to be positive for it."""
    return _differ(pair, ())


def differ_when_turned(pair: OpenPair) -> Proved | None:
    """The same where parameters that turn rows, ``(i + shift) % n``, are not negative."""
    remainders = (x.args[0] for x in t.subterms(pair.p.overlap) if x.op is Op.REM)
    turned = any(x.op is Op.SUM and x.lo < 0 for x in remainders)
    return _differ(pair, (), shifted=True) if turned else None


def differ_in_rows(pair: OpenPair) -> Proved | None:
    """The same where columns that nothing bounds in the source stay within their rows.

    That are blocks of a grid that nothing tells, where no condition is about the index or the row, and what
    memory alone bounds: who owns a row knows what it holds. So does who counts the elements of all rows.
    """
    if pair.launch is None:
        return None
    columns = (*_blocks(pair), *_bounded_by_memory(pair), *_counted(pair))
    return _differ(pair, columns) if columns else None


def _blocks(pair: OpenPair) -> list[Term]:
    """Indices of the first thread's block that no condition is about."""
    if pair.p.pair.relation.same_block:
        return []
    told = {x for condition in t.conjuncts(pair.p.guards) for x in t.subterms(condition)}
    indices = (pair.query.where.axes[axis] for axis in BID)
    copies = (_copies(x) for x in indices if x.hi >= UNTOLD_BLOCKS)
    return [first for first, second in copies if first not in told and second not in told]


def _bounded_by_memory(pair: OpenPair) -> list[Term]:
    """``k`` of the first thread where ``k < count[row]``, and no other condition is about it.

    Of what is taken out of a counter (``c % chunks * 256 + t``) other conditions may be about the counter.
    """
    guards = [c for c in t.conjuncts(pair.p.guards) if side(c) == FIRST and c.op is Op.LE]
    found: list[Term] = []
    for guard in guards:
        sums = t.monomials(guard.args[0])
        limit = [m for m, c in sums.items() if c < 0 and m]
        column = t.from_monomials({m: c for m, c in sums.items() if c > 0 and m})
        if len(limit) == 1 and _is_memory(limit[0], pair) and column.lo >= 0:
            counted = {x for m in t.monomials(column) for x in m if _counters_in(x)}
            others = (other for other in guards if other is not guard)
            if counted and not any(counted & _compared(other, counted) for other in others):
                found.append(column)
    return found


def _counters_in(term: Term) -> bool:
    return any(x.op is Op.SYMBOL and ROUND.fullmatch(x.args[0]) for x in t.subterms(term))


def _compared(condition: Term, parts: Collection[Term]) -> set[Term]:
    """What the condition is about; where the ``parts`` are no counters themselves, memory at them is not."""
    if any(x.op is Op.SYMBOL for x in parts):
        return set(t.subterms(condition))
    found, waiting = set[Term](), [condition]
    while waiting:
        part = waiting.pop()
        if part not in found and part.op not in (Op.APPLY, Op.TEST):
            found.add(part)
            waiting += part.parts
    return found


def _counted(pair: OpenPair) -> list[Term]:
    """``i`` of the first thread where ``i / rows`` is a digit and ``i < count``, of which no row is made."""
    p, free = pair.p, pair.query.where.free
    divided = dict.fromkeys(x.args[0] for x in t.subterms(p.offsets[0]) if x.op in (Op.DIV, Op.FLOOR_DIV))
    of_rows = _parameters(p.overlap, free)
    guards = [c for c in t.conjuncts(p.guards) if side(c) == FIRST]

    def is_counted(index: Term) -> bool:
        parts = {x for x in t.subterms(index) if side(x) == FIRST and x.op is Op.SYMBOL}
        limits = [_parameters(c, free) for c in guards if parts & set(t.subterms(c))]
        return bool(parts and limits) and all(names and not names & of_rows for names in limits)

    return [index for index in divided if side(index) == FIRST and is_counted(index)]


def _parameters(term: Term, free: Collection[str]) -> set[str]:
    return {x.args[0] for x in t.subterms(term) if x.op is Op.SYMBOL and x.args[0] in free}


def _is_memory(atoms: t.Monomial, pair: OpenPair) -> bool:
    summary = pair.query.summary
    known = summary.facts.keys() | summary.invariants.keys()
    return len(atoms) == 1 and atoms[0].op is Op.APPLY and base_name(atoms[0].args[0]) not in known


def _copies(symbol: Term) -> tuple[Term, Term]:
    def of(thread: int) -> Term:
        name, level = symbol.args
        return t.symbol(f"{name}#{thread}", level, symbol.lo, symbol.hi)

    return of(1), of(2)


def _differ(pair: OpenPair, unbounded: Sequence[Term], *, shifted: bool = False) -> Proved | None:
    p, facts, query = pair.p, pair.facts, pair.query
    digits = digits_of(p, facts, query.where.axes, query.where.free, unbounded, shifted=shifted)
    if digits is not None and shifted and not digits.natural:
        return None
    if digits is None or speaks_against_sizes(p, facts, digits.positive, 1, query):
        return None
    if speaks_against_sizes(p, facts, digits.natural, 0, query):
        return None
    stated = set(t.subterms(*query.stated(p)))
    if (unbounded and not digits.rows) or any(stated & _names(row) for row in digits.rows):
        return None
    if not digits.refuted and (digits.equal is p.overlap or _is_plain(p.overlap)):
        return None
    if digits.refuted or query.ask_case(p, facts, t.and_(p.guards, digits.equal)):
        rows = (f"rows of `{t.show(row)}` elements do not overlap" for row in digits.rows)
        shifts = not_negative(t.show(size) for size in digits.natural)
        return Proved((*rows, *(f"`{t.show(size)}` is positive" for size in digits.positive), *shifts))
    return None


def _is_plain(term: Term) -> bool:
    """Linear, and without quotients, of which nests are hard even for linear arithmetic."""
    return is_linear(term) and all(x.op not in (Op.FLOOR_DIV, Op.FLOOR_MOD) for x in t.subterms(term))


def _names(row: Term) -> set[Term]:
    return {x for x in t.subterms(row) if x.op is Op.SYMBOL}
