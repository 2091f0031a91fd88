"""Loops that step by the grid, over images: ``for (n = blockIdx.z; n < batch; n += gridDim.z) a[n * w * h]``.

Their address has products of four, ``gridDim.z * k * w * h``, and planes of rows are rows of the grid as
well. Here the number that block and round make together is one: no two blocks have one of them in any
rounds, as each is below the step. What is shown of such numbers holds of the blocks and rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from cuda_lsp.ir.program import BID, GDIM
from cuda_lsp.static.solver.tactics.pair import OpenPair, Proved, Tactic, first_answer
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.rounds import ROUND
from cuda_lsp.static.symbolic.terms import Level, Op, Term

_CUTS = (Op.DIV, Op.REM, Op.FLOOR_DIV, Op.FLOOR_MOD)
_PLANE = 2
"""Sizes of a plane. Of one size rows are read as they are, and of strides of a tensor by ``strides``."""


@frozen
class _Index:
    """``extent * counter + block``, which is ``number``; of the first or the second thread."""

    thread: str
    extent: Term
    counter: Term
    block: Term
    number: Term


def as_one_index(proofs: tuple[Tactic, ...]) -> Tactic:
    """What ``proofs`` show with one number in the place of a block and its round."""

    def numbered(pair: OpenPair) -> Proved | None:
        found = {(x.extent, x.counter): x for x in _indices(pair)}
        if not found or len({(x.thread, x.extent) for x in found.values()}) < len(found):
            return None  # none, or several loops one in the other
        cut = (x.args[0] for x in t.subterms(pair.p.formula) if x.op in _CUTS)
        if {x.counter for x in found.values()} & set(t.subterms(*cut)):
            return None  # who takes the number apart says more of its parts than the number does
        memo: dict[Term, Term] = {}

        def folded(term: Term) -> Term:
            return t.replace(term, lambda part: _folded(part, found), memo)

        p = pair.p.mapped(folded)
        if p.overlap is pair.p.overlap:
            return None
        facts = t.and_(*(_apart(c, list(found.values())) for c in t.conjuncts(pair.facts)))
        answer = first_answer(proofs, evolve(pair, p=p, facts=facts))
        return answer if isinstance(answer, Proved) else None

    return numbered


def _indices(pair: OpenPair) -> Iterator[_Index]:
    """Of products of a grid's extent, a loop's round and several parameters in the two addresses."""
    axes, free = pair.query.where.axes, pair.query.where.free
    same = pair.p.pair.relation.same_block
    products = dict.fromkeys(m for offset in pair.p.offsets for m in t.monomials(offset) if len(m) > 2)
    for atoms in products:
        counters = [x for x in atoms if x.op is Op.SYMBOL and ROUND.fullmatch(x.args[0])]
        sizes = sum(x.op is Op.SYMBOL and x.args[0] in free for x in atoms)
        if len(counters) != 1 or sizes < _PLANE:
            continue
        (counter,) = counters
        thread = counter.args[0][-2:]
        for axis, extent in zip(BID, (axes[x] for x in GDIM), strict=True):
            if extent in atoms and thread in ("#1", "#2") and counter.lo >= 0 and not axes[axis].is_const:
                name, level = axes[axis].args
                block = axes[axis] if same else t.symbol(name + thread, level, axes[axis].lo, axes[axis].hi)
                number = t.symbol(f"{name} + {extent.args[0]}*{counter.args[0]}", Level.THREAD, 0)
                yield _Index(thread, extent, counter, block, number)


def _folded(part: Term, found: Mapping[tuple[Term, Term], _Index]) -> Term | None:
    """A sum with the numbers in it, where they take the block's place altogether."""
    if part.op is not Op.SUM:
        return None
    sums = t.monomials(part)
    made = dict(sums)
    for atoms, factor in sums.items():
        for (extent, counter), index in found.items():
            rest = t.without(atoms, (extent, counter))
            if rest is not None:
                del made[atoms]
                for product, sign in t.monomials(t.mul(_product(rest), _beyond(index))).items():
                    made[product] = made.get(product, 0) + sign * factor
                break
    new = t.from_monomials(made)
    return new if new is not part and len(t.monomials(new)) <= len(sums) else None


def _product(atoms: t.Monomial) -> Term:
    return t.from_monomials({atoms: 1})


def _beyond(index: _Index) -> Term:
    """What is in the number besides the block."""
    return t.sub(index.number, index.block)


def _apart(condition: Term, found: list[_Index]) -> Term:
    """What relates the two threads; blocks that differ have numbers that differ, in whatever rounds."""
    parts = condition.args if condition.op is Op.OR else (condition,)
    return t.or_(*(_numbers_differ(part, found) for part in parts))


def _numbers_differ(part: Term, found: list[_Index]) -> Term:
    for one in found:
        for other in found:
            both = one.thread == "#1" and other.thread == "#2" and one.extent is other.extent
            if both and part is t.not_(t.eq(one.block, other.block)):
                return t.not_(t.eq(one.number, other.number))
    return part
