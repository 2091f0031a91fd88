"""What lanes of a warp tell one another, for the symbolic walk: votes, places in a vote, one lane's value.

A vote is a word that all lanes of a warp see, when they vote together. A lane that voted for it has as its
place the number of voters below it: places of one vote differ, and are less than its count of bits. The value
that a lane hands to all lanes of its warp is what that lane's own expression comes to (CUDA C++ Programming
Guide, "Warp Vote Functions", "Warp Shuffle Functions"). ``__activemask``, ``__match_any_sync`` and groups of
coalesced threads cut a warp into parts: two lanes are in one part when they see the same mask.

Only lanes of one source that every lane of the part names are followed; other shuffles stay unknown.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, frozen

from cuda_lsp.ir.exchanges import EXCHANGES, Alike
from cuda_lsp.ir.program import Axis, Const, Intrinsic
from cuda_lsp.ir.types import UINT32, Int
from cuda_lsp.model import WARP_SIZE
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.evaluate import Evaluator
from cuda_lsp.static.symbolic.events import Drawing, Fact, Place
from cuda_lsp.static.symbolic.scene import Scene, Vote
from cuda_lsp.static.symbolic.terms import Level, Op, Term
from cuda_lsp.static.symbolic.values import PointerValue, Value, settle, type_range

_FULL = (1 << WARP_SIZE) - 1
_PARTS = ("__activemask", "__match_any_sync")
_COUNTS = ("__popc", "__popcll")
_OF_OLD = ("__ballot", "__shfl")
"""Without a mask: of all lanes, where the whole warp comes by."""


_Operand = Callable[[int], Term | None]
"""An operand of the exchange by its number; None: a pointer."""


def exchanged(scene: Scene, e: Intrinsic, evaluator: Evaluator) -> Value | None:
    """The value of a vote, of a count of bits below one's own, of a shuffle from one lane, or of what all
    lanes offer alike; else None."""

    if e.name in _OF_OLD and of_warp(scene, scene.guard):
        e = evolve(e, name=f"{e.name}_sync", operands=(Const(_FULL, UINT32), *e.operands))

    def operand(index: int) -> Term | None:
        value = evaluator.value(e.operands[index])
        return None if isinstance(value, PointerValue) else settle(value, e.operands[index].type)

    row = EXCHANGES.get(e.name)
    if row is not None and row.alike is not None and isinstance(e.type, Int):
        offered = operand(row.offered or 0)
        if offered is not None and t.level_of(offered) <= Level.WARP:  # one value, whoever takes part
            return offered if row.alike is Alike.VALUE else t.number(t.truth(offered))
    if e.name in _PARTS or e.name == "__ballot_sync":
        return _vote(scene, e, operand)
    if e.name in _COUNTS:
        return _place(scene, e, operand)
    if e.name == "__shfl_sync":
        return _handed_round(scene, e, operand)
    return None


def _part(operand: _Operand) -> tuple[Term, ...] | None:
    """What tells parts of the warp apart that exchange under the mask of ``e``; None: not understood."""
    mask = operand(0)
    if mask is None:
        return None
    if mask.is_const:
        return () if mask.value % (1 << WARP_SIZE) == _FULL else None
    return (mask,)


def _vote(scene: Scene, e: Intrinsic, operand: _Operand) -> Value | None:
    if e.name in _PARTS:
        level, operands, voter = Level.THREAD, scene.iterators, scene.guard
    else:
        part, value = _part(operand), operand(1)
        if part is None or value is None:
            return None
        level, operands, voter = Level.WARP, (*part, *scene.iterators), t.truth(value)
    name = f"vote{scene.number()}"
    scene.unknowns[name] = f"the result of `{e.name}`"
    word = t.apply(name, level, operands, *type_range(e.type))
    label = None
    if e.name == "__match_any_sync":
        label = (operand(1) if _among_all(scene, _part(operand)) else None) or word
    scene.votes[name] = Vote(word, voter, label)
    return word


def _among_all(scene: Scene, part: tuple[Term, ...] | None) -> bool:
    """All lanes that come by take part."""
    vote = members(scene, part[0]) if part else None
    return part == () or (vote is not None and vote[1] is None)


def members(scene: Scene, mask: Term) -> tuple[Term, Term | None] | None:
    """Of a vote that is a mask: whether the generic thread is in it, and its label; None: it is no vote."""
    vote = scene.votes.get(mask.args[0]) if mask.op is Op.APPLY else None
    return (vote.voter, vote.label) if vote is not None and vote.word is mask else None


def _place(scene: Scene, e: Intrinsic, operand: _Operand) -> Value | None:
    """How many lanes of a vote are below one's own: ``__popc(votes & lanemask_lt)``."""
    word = operand(0)
    if word is None or word.op is not Op.BAND:
        return None
    below = t.sub(t.shift_left(t.ONE, scene.axes[Axis.LANE]), t.ONE)
    a, b = word.args
    votes = b if a is below else a if b is below else None
    vote = scene.votes.get(votes.args[0]) if votes is not None and votes.op is Op.APPLY else None
    if votes is None or vote is None or vote.word is not votes:
        return None  # not this round's vote
    name = f"place in {votes.args[0]}"
    count = _count(votes, e)
    place = t.apply(name, Level.THREAD, votes.args[2], 0, WARP_SIZE - 1)
    scene.unknowns.setdefault(name, f"the result of `{e.name}`")
    scene.places[name] = Place(votes.args[2], votes, vote.voter, scene.axes[Axis.LANE])
    counted = t.and_(t.le(t.add(place, t.ONE), count), t.not_(t.eq(votes, t.ZERO)))
    fact = t.or_(t.not_(vote.voter), counted)
    scene.limits[name] = Fact(votes.args[2], fact)
    return place


def _count(votes: Term, e: Intrinsic) -> Term:
    return t.intrinsic(e.name, e.operands[0].type, (votes,), 0, 64)


# ------------------------------------------------------------------------------- one lane's value


def _handed_round(scene: Scene, e: Intrinsic, operand: _Operand) -> Value | None:
    """``__shfl_sync(mask, value, source)``: the value of lane ``source``, in all lanes of the part."""
    width = operand(3) if len(e.operands) > 3 else t.const(WARP_SIZE)
    part, value, source = _part(operand), operand(1), operand(2)
    if part is None or value is None or source is None or width is None or width is not t.const(WARP_SIZE):
        return None
    if not _agreed(source, part) or (source.is_const and not 0 <= source.value < WARP_SIZE):
        return None
    told, point = (source, *part), f".{scene.number()}"
    return _Elsewhere(scene, Level.WARP, _lane(scene, source), told, _leader(source), point).term(value)


def _lane(scene: Scene, source: Term) -> dict[Term, Term] | None:
    """The coordinates of lane ``source`` of the generic thread's warp; None: x does not run along warps."""
    x, lane = scene.axes[Axis.TID_X], scene.axes[Axis.LANE]
    if x.op is not Op.SYMBOL or lane is not t.floor_mod(x, WARP_SIZE):
        return None
    return {lane: source, x: t.add(t.scale(t.floor_div(x, WARP_SIZE), WARP_SIZE), source)}


def _agreed(term: Term, part: tuple[Term, ...]) -> bool:
    """All lanes of the part have one value of it."""
    if term in part:
        return True
    if term.op in (Op.SYMBOL, Op.APPLY, Op.TEST) and term.args[1] > Level.WARP:
        return False
    return all(_agreed(inner, part) for inner in term.parts)


def _leader(source: Term) -> Term | None:
    """The vote whose lowest lane ``source`` is: ``__ffs(votes) - 1``."""
    first = t.add(source, t.ONE)
    if first.op is Op.INTRINSIC and first.args[0] in ("__ffs", "__ffsll"):
        return first.args[2][0]
    return None


def of_thread(scene: Scene, coordinates: dict[Term, Term], value: Term) -> Term:
    """``value`` as the thread at these coordinates has it, for the whole block."""
    name = "".join(f".{c.value}" for c in coordinates.values())
    return _Elsewhere(scene, Level.BLOCK, coordinates, (), None, name).term(value)


def of_lane(scene: Scene, lane: Term, value: Term) -> Term:
    """``value`` as that lane has it, for its whole warp."""
    point = f".{scene.number()}"
    return _Elsewhere(scene, Level.WARP, _lane(scene, lane), (lane,), None, point).term(value)


def of_warp(scene: Scene, value: Term) -> bool:
    """All lanes of a warp surely have one value of it."""
    unknown = (x for x in t.subterms(value) if x.op in (Op.APPLY, Op.TEST))
    if any(x.args[1] > Level.WARP for x in unknown):
        return False
    coordinates = _lane(scene, t.ZERO)
    return coordinates is not None and t.substitute(value, coordinates) is value


@frozen(eq=False)
class _Elsewhere:
    """Terms as another thread has them: one per ``level``, ``told`` says which, ``suffix`` at what point.

    ``coordinates`` None: not to be told. ``leader``: the vote whose lowest lane that thread is.
    """

    scene: Scene
    level: Level
    coordinates: dict[Term, Term] | None
    told: tuple[Term, ...]
    leader: Term | None = None
    suffix: str = ""

    def term(self, value: Term) -> Term:
        return t.replace(value, self._leaf)

    def _leaf(self, part: Term) -> Term | None:
        if self.coordinates is not None and part in self.coordinates:
            return self.coordinates[part]
        if part.op not in (Op.SYMBOL, Op.APPLY, Op.TEST) or part.args[1] <= self.level:
            return None
        if part.op is Op.SYMBOL:
            return self._unknown(part, f"{part.args[0]}", ())
        place = self.scene.places.get(part.args[0])
        if place is not None and place.votes is self.leader and part.args[2] == place.formals:
            return t.ZERO  # nobody is below the lowest
        if part in self.told:
            return part  # the mask of the part
        return self._unknown(part, part.args[0], tuple(self.term(o) for o in part.args[2]))

    def _unknown(self, part: Term, name: str, operands: tuple[Term, ...]) -> Term:
        elsewhere = f"{name}@{self.level.name.lower()}{self.suffix}"
        scene = self.scene
        if name in scene.unknowns:
            scene.unknowns[elsewhere] = scene.unknowns[name]
        for names in (scene.tainted, scene.loaded):
            if name in names:
                names.add(elsewhere)
        whole = (*operands, *self.told)
        drawing = scene.slots.get(name)
        if drawing is not None and elsewhere not in scene.slots:
            amount = self.term(drawing.amount)
            formals = (*(self.term(o) for o in drawing.formals), *self.told)
            rounds = drawing.rounds + (self.level is Level.WARP)
            scene.slots[elsewhere] = Drawing(
                drawing.array, amount, formals, drawing.point, rounds, self.level
            )
        if part.op is Op.TEST:
            return t.test(elsewhere, self.level, whole)
        return t.apply(elsewhere, self.level, whole, part.lo, part.hi)


__all__ = ["Vote", "exchanged", "of_lane", "of_thread", "of_warp"]
