"""Tiles of a size that a parameter tells: ``x / tile`` beside ``x % tile``, with ``w / tile`` tiles in a row.

Where rows are no multiple of the tile, the last one reaches into what begins behind them: who counts tiles
by a quotient that drops the rest has none. What is proved for sizes that are multiples takes that for
granted. So it does of rows that are turned by a parameter, ``(x - shift + w) % w``, which is no more than
they are long. Where the source looks after a rest, or names a size, it is the doubt that is told, before much
time goes into looking for such a race.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from cuda_lsp.static.findings.conditions import Untiled
from cuda_lsp.static.findings.words import that_it_is_even, that_tiles_fit
from cuda_lsp.static.solver.grains import aligned
from cuda_lsp.static.solver.rows.stated import names_numbers
from cuda_lsp.static.solver.tactics.cases import as_told, extents
from cuda_lsp.static.solver.tactics.pair import GaveUp, OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.events import Event, LoopEvent
from cuda_lsp.static.symbolic.sizes import FIRST, SHARED, remainder_of, side, upper_bounds
from cuda_lsp.static.symbolic.terms import Level, Op, Term

_MOST = (1 << 31) - 1


@frozen(eq=False)
class _Tiles:
    """``sizes`` that are so many tiles, by the symbols for how many."""

    tile: Term
    sizes: dict[Term, Term]


def that_fit(proof: Tactic) -> Tactic:
    """What ``proof`` shows of sizes that are multiples of a tile, unless the source says otherwise."""

    def where_they_fit(pair: OpenPair) -> Proved | GaveUp | None:
        if pair.launch is None:
            return None
        told = as_told(pair)
        for tiles in _tiles(told):
            shifts = dict[Term, None]()
            answer = proof(_fitting(told, tiles, shifts))
            if isinstance(answer, Proved):
                names = tuple(sorted(size.args[0] for size in tiles.sizes))
                needed = Untiled(names, tiles.tile.args[0], tuple(x.args[0] for x in shifts))
                if _speaks_of_rests(pair, tiles):
                    return GaveUp(needed)
                return Proved((that_tiles_fit(needed), *answer.assumptions))
        return None

    return where_they_fit


def of_aligned_rows(proofs: tuple[Tactic, ...]) -> Tactic:
    """What ``proofs`` show where rows that the kernel accesses in vectors are whole vectors."""

    def where_they_are(pair: OpenPair) -> Proved | None:
        for needed, p, facts, query in aligned(pair.p, pair.facts, pair.query) if pair.launch else ():
            answer = first_answer(proofs, evolve(pair, p=p, facts=facts, query=query))
            if isinstance(answer, Proved):
                return Proved((that_it_is_even(needed), *answer.assumptions))
        return None

    return where_they_are


def _speaks_of_rests(pair: OpenPair, tiles: _Tiles) -> bool:
    """The source looks after what such a quotient drops, names a size, or admits no whole tiles."""
    query, whole = pair.query, t.replacing({x: t.mul(tiles.tile, n) for x, n in tiles.sizes.items()})
    by_extents = t.replacing(extents(query)[0])
    if any(names_numbers(pair.p, size, query) for size in tiles.sizes):
        return True
    several = (t.le(t.ONE, count) for count in tiles.sizes.values())
    if query.satisfiable(t.and_(*(whole(by_extents(x)) for x in query.stated(pair.p)), *several)) is False:
        return True
    said = (pair.p.formula, *query.told, *_terms(query.summary.events))
    return any(_is_of_a_rest(x, tiles) for x in t.subterms(*query.told, *map(by_extents, said)))


def _terms(events: tuple[Event, ...]) -> Iterator[Term]:
    """What the kernel asks on its ways, and where it goes."""
    for event in events:
        if isinstance(event, LoopEvent):
            yield event.runs
            yield from _terms(event.events)
        else:
            offset = getattr(event, "offset", None)
            yield from (x for x in (getattr(event, "guard", None), offset) if isinstance(x, Term))


def _is_of_a_rest(part: Term, tiles: _Tiles) -> bool:
    """A size rounded up to tiles, what is beyond them, or a comparison with the end of the last whole one."""
    if part.op in (Op.DIV, Op.REM):
        number, by = part.args
        of_size = by is tiles.tile and t.level_of(number) is Level.GRID
        return of_size and any(x in tiles.sizes for x in t.subterms(number)) and not _is_count(part, tiles)
    if part.op in (Op.LE, Op.EQ):
        sums = t.monomials(part.args[0])
        return any(len(m) == 2 and tiles.tile in m and any(_is_count(x, tiles) for x in m) for m in sums)
    return False


def _is_count(part: Term, tiles: _Tiles) -> bool:
    """How many whole tiles there are in a size."""
    return part.op is Op.DIV and part.args[1] is tiles.tile and part.args[0] in tiles.sizes


def _tiles(pair: OpenPair) -> Iterator[_Tiles]:
    """Parameters by which a number of the first thread is divided and of which it has the remainder."""
    free = pair.query.where.free
    cut = [x for x in t.subterms(pair.p.overlap) if x.op in (Op.DIV, Op.REM)]
    quotients = {x.args for x in cut if x.op is Op.DIV and side(x) == FIRST}
    limits = upper_bounds(t.conjuncts(t.and_(pair.facts, pair.p.guards)))
    for tile in dict.fromkeys(x.args[1] for x in cut if x.op is Op.REM and x.args in quotients):
        if tile.op is not Op.SYMBOL or tile.args[0] not in free:
            continue
        numbers = [x for x, by in quotients if by is tile]
        bounds = (limit for x in t.subterms(*numbers) for limit in limits.get(x, ()))
        divided = [x.args[0] for x in cut if x.args[1] is tile and x.op is Op.DIV and side(x) == SHARED]
        sizes = (x for x in (*bounds, *divided) if x.op is Op.SYMBOL and x.args[0] in free and x is not tile)
        counts = {x: t.symbol(f"{x.args[0]}/{tile.args[0]}", Level.GRID, 0, _MOST) for x in sizes}
        if any(x in counts for x in divided):
            yield _Tiles(tile, counts)


def _fitting(pair: OpenPair, tiles: _Tiles, shifts: dict[Term, None]) -> OpenPair:
    """The pair where sizes are so many tiles; ``shifts`` gets what is taken to be no more than them."""
    free = pair.query.where.free
    whole = {size: t.mul(tiles.tile, count) for size, count in tiles.sizes.items()}
    counts = {t.divide(size, tiles.tile): count for size, count in tiles.sizes.items()}
    by_counts, by_tiles = t.replacing(counts), t.replacing(whole)

    def turned(part: Term) -> Term | None:
        """``(x + rest) % w`` of ``(x - shift + w) % w``, where the rest of the row is not negative."""
        index, width = remainder_of(part) or (part, part)
        number = index.args[0] if index.op is Op.WRAP and index.args[1] >= 32 else index
        sums = t.monomials(number)
        back = [m[0] for m, c in sums.items() if c == -1 and len(m) == 1 and m[0].op is Op.SYMBOL]
        if width not in tiles.sizes or sums.get((width,)) != 1 or len(back) != 1:
            return None
        if back[0].args[0] not in free:
            return None
        shifts[back[0]] = None
        rest = t.symbol(f"{width.args[0]} - {back[0].args[0]}", Level.GRID, 0, _MOST)
        return t.remainder(t.add(t.sub(number, t.sub(width, back[0])), rest), width)

    def fitted(term: Term) -> Term:
        return by_tiles(by_counts(t.replace(term, turned, {})))

    named = {count.args[0]: free[size.args[0]] for size, count in tiles.sizes.items()}
    return evolve(pair, p=pair.p.mapped(fitted), facts=fitted(pair.facts), query=pair.query.with_parts(named))
