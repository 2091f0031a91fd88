"""Memory, for one generic thread: loads, stores, atomics and copies as events, and what a read gives.

What memory holds is an unknown function of array, offset and *version*; a version changes with every store
of this thread and at every barrier, so that a value read twice is one value only when nothing can have
changed it.
"""

from __future__ import annotations

from functools import partial

from attrs import define, evolve

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import Array, BarrierScope
from cuda_lsp.ir.types import Int, Opaque, Pointer, Type, is_word
from cuda_lsp.model import Mode, Scope, Site, Space
from cuda_lsp.static import budgets
from cuda_lsp.static.symbolic import cells as memory_cells
from cuda_lsp.static.symbolic import terms as t
from cuda_lsp.static.symbolic.evaluate import Evaluator
from cuda_lsp.static.symbolic.events import Access, Claim, CopyEvent, Drawing, Member, TicketEvent
from cuda_lsp.static.symbolic.lanes import exchanged, of_warp
from cuda_lsp.static.symbolic.scene import WAITING, Cells, Scene, memory_name
from cuda_lsp.static.symbolic.terms import Level, Op, Term
from cuda_lsp.static.symbolic.values import (
    NOTHING,
    NOWHERE,
    Object,
    PointerValue,
    Target,
    Value,
    choose,
    type_range,
)

_ALL_ONES = (1 << 32) - 1


@define
class Memory(Scene):
    """The statements that touch memory."""

    def evaluator(self) -> Evaluator:
        """Of expressions, here and now."""
        return Evaluator(
            self.axes, self.lookup, self.fresh, self.sizes, partial(exchanged, self), partial(of_warp, self),
            lambda size: t.says_at_most_zero(self.conditions(), size), self.cut,
        )  # fmt: skip

    def _places(self, pointer: ir.Expr, site: Site) -> PointerValue:
        value = self.evaluator().value(pointer)
        if not isinstance(value, PointerValue):
            value = NOWHERE
        nothing = all(x.array is NOTHING for x in value.targets)
        if self.depth == 0 and (nothing or any(x.array is None for x in value.targets)):
            step = ir.NextStep.PROGRAM.value
            self.reasons[f"where `{site.text or 'a pointer'}` points is not known; {step}"] = None
        return value

    def _access(
        self, pointer: ir.Expr, size: Term | Type, mode: Mode, site: Site,
        scope: Scope | None = None, value: Term | None = None, word: bool = False,
    ) -> PointerValue:  # fmt: skip
        """``size``: in bytes; of statements that have one, the type. ``word``: it is one of the machine's."""
        type, size = (None, size) if isinstance(size, Term) else (size, t.const(size.size))
        places = self._places(pointer, site)
        for target in places.targets:
            array = target.array
            if not isinstance(array, Array):
                continue  # of nothing there is no access
            if array.space in (Space.LOCAL, Space.CONSTANT):
                continue
            guard = t.and_(self.guard, target.condition)
            if guard is not t.FALSE:
                guard, order = t.and_(guard, self.assumed), self.number()
                event = Access(
                    array, target.offset, size, mode, guard, site, order, scope, value, self.held,
                    members=self._members(target.offset),
                )  # fmt: skip
                wide = type is not None and _is_wide(type, array, word)
                self.events.append(evolve(event, word=True) if wide else event)
        return places

    def _within(self, s: ir.Within) -> None:
        """A member array of a record in global memory, where nothing else tells of what leaves it."""
        value, index = self.evaluator().value(s.pointer), self.evaluator().integer(s.index)
        arrays = [x.array for x in value.targets] if isinstance(value, PointerValue) else []
        if arrays and all(isinstance(a, Array) and a.space is Space.GLOBAL for a in arrays):
            inside = t.and_(t.le(t.ZERO, index), t.lt(index, t.const(s.extent)))
            text = f"subscripts of `{s.name}` stay within its {s.extent} elements"
            self.members += (Member(index, t.or_(t.not_(self.guard), inside), text),)

    def _members(self, offset: Term) -> tuple[Member, ...]:
        """The member arrays whose subscripts have part in an address."""
        atoms = set(t.subterms(offset)) if self.members else set[Term]()
        return tuple(
            member for member in self.members
            if (parts := {x for product in t.monomials(member.index) for x in product}) and parts <= atoms
        )  # fmt: skip

    def _content(self, places: PointerValue, type: Type) -> Value:
        """What memory holds there now."""
        if isinstance(type, Pointer):
            return self._pointer_held(places)
        total: Value | None = None
        for target in places.targets:
            value = self._cell(target.array, target.offset, type)
            total = value if total is None else choose(target.condition, value, total)
        return total if total is not None else self.fresh("a value read from memory", Level.THREAD, type)

    def _pointer_held(self, places: PointerValue) -> Value:
        """What a pointer in the thread's own memory points to; of a table, whichever element is asked for."""
        array, offset = places.targets[0].array, places.targets[0].offset
        if len(places.targets) != 1 or not isinstance(array, Array):
            return NOWHERE
        cells = self.state.local.get(array, {})
        if offset in cells:
            return cells[offset][1]
        known = ((at, value) for at, (_, value) in cells.items() if at.is_const)
        held = [(at, value) for at, value in known if isinstance(value, PointerValue)]
        if offset.is_const or len(held) < len(cells) or len(held) > budgets.MOST_POINTERS_OF_A_TABLE:
            return NOWHERE
        targets = [
            Target(t.and_(t.eq(offset, at), x.condition), x.array, x.offset)
            for at, value in held for x in value.targets
        ]  # fmt: skip
        if len(held) * Pointer().size != array.size:  # else no thread asks for what is behind the table
            others = t.and_(*(t.not_(t.eq(offset, at)) for at, _ in held))
            targets.append(Target(others, None, t.ZERO))
        return PointerValue(tuple(x for x in targets if x.condition is not t.FALSE)) if targets else NOWHERE

    def _cell(self, array: Object | None, offset: Term, type: Type) -> Value:
        if not isinstance(array, Array):
            operand = () if array is None else (offset,)
            name = f"?{self.number()}"
            self.unknowns[name] = "a value read through an unknown pointer"
            return t.apply(name, Level.THREAD, (*self.iterators, *operand), *type_range(type))
        if array.space is Space.LOCAL:
            known = self.state.local.get(array, {}).get(offset)
            if known is not None and known[0] == type.size:
                return known[1]
        if array not in self.written:
            name, level, operands = memory_name(array), Level.GRID, (offset,)
            level = Level.BLOCK if array.space is Space.SHARED else level
            level = Level.THREAD if array.space is Space.LOCAL else level
        else:
            number, level = self.state.versions.get(array, (0, Level.BLOCK))
            level = Level.THREAD if array.space is Space.LOCAL else level
            name, operands = f"{memory_name(array)}@{number}", (offset, *self.iterators)
        if not isinstance(type, Int):
            name += f":{type}"
        self.unknowns[name] = f"the contents of `{array.name}`"
        if array in self.tainted_arrays:
            self.tainted.add(name)
        held = self._filled(array, offset, type, t.apply(name, level, operands, *type_range(type)))
        cells = memory_cells.of_version(self, array, self.state.versions)
        return memory_cells.content(self, offset, type, held, cells)

    def _filled(self, array: Array, offset: Term, type: Type, otherwise: Term) -> Term:
        """What a loop left in an element of an array that it filled."""
        filled = self.state.filled.get(array) if array not in self.reached else None
        known = filled.at(offset, type.size) if filled is not None and isinstance(type, Int) else None
        if known is None:
            return otherwise
        within, value = known
        surely = all(
            t.says_at_most_zero(self.conditions(), c.args[0]) for c in t.conjuncts(within) if c.op is Op.LE
        )
        return value if surely else t.ite(within, value, otherwise)

    def _load(self, s: ir.Load) -> None:
        if s.part:
            places = self._places(s.pointer, s.site)
        else:
            places = self._access(s.pointer, s.type, Mode.READ, s.site, word=s.word)
        if s.var is not None:
            self.state.values[s.var] = self._content(places, s.type)

    def _store(self, s: ir.Store) -> None:
        value = self.evaluator().value(s.value)
        known = value if isinstance(value, Term) else None
        places = self._access(s.pointer, s.type, Mode.WRITE, s.site, value=known, word=s.word)
        before = self._cells(places)
        self.overwrite(places, s.type.size)
        for array, cells in before:
            memory_cells.store(self, array, places.targets[0].offset, s.type.size, known, cells)
        if known is not None and self._is_tainted(known):
            self.tainted_arrays.update(x.array for x in places.targets if isinstance(x.array, Array))
        if len(places.targets) == 1:
            target = places.targets[0]
            if isinstance(target.array, Array) and target.array.space is Space.LOCAL:
                self.state.local.setdefault(target.array, {})[target.offset] = (s.type.size, value)

    def _cells(self, places: PointerValue) -> list[tuple[Array, Cells | None]]:
        """What is known of the elements of the one array that a pointer points into."""
        if len(places.targets) != 1 or not isinstance(places.targets[0].array, Array):
            return []
        array = places.targets[0].array
        return [(array, memory_cells.of_version(self, array, self.state.versions))]

    def _is_tainted(self, value: Term) -> bool:
        return any(p.op is Op.APPLY and p.args[0] in self.tainted for p in t.subterms(value))

    def overwrite(self, places: PointerValue, size: int | None) -> None:
        """After a store of ``size`` bytes there, earlier reads of the arrays say nothing of later ones."""
        for target in places.targets:
            if not isinstance(target.array, Array):
                continue
            self.state.versions[target.array] = (self.number(), Level.THREAD)
            self.state.filled.pop(target.array, None)
            cells = self.state.local.get(target.array, {})
            for other, (width, _) in list(cells.items()):
                if size is None or not _apart(other, width, target.offset, size):
                    del cells[other]

    def _atomic(self, s: ir.Atomic) -> None:
        begun = len(self.events)
        places = self._access(s.pointer, s.type, s.mode, s.site, s.scope)
        if s.elementwise:
            self.events[begun:] = [
                evolve(e, elementwise=True) if isinstance(e, Access) else e for e in self.events[begun:]
            ]
        in_global = any(isinstance(x.array, Array) and x.array.space is Space.GLOBAL for x in places.targets)
        if self.fenced and in_global and s.row.reads and s.row.writes:
            self.events.append(TicketEvent())
        if id(s) in self.acquiring and self.iterators and not self.held:
            self.locks = self.locks or WAITING
        before = self._cells(places)
        if s.row.writes:
            self.overwrite(places, s.type.size)
        step = self._raises_by(s)
        if step is None:
            self.unsteady.update(x.array for x in places.targets if isinstance(x.array, Array))
        number = self._number_drawn(s, places, step) if s.var is not None else None
        if s.row.writes and step is not None:
            for array, cells in before:
                offset = places.targets[0].offset
                number = memory_cells.raised(self, array, offset, s.type.size, step, number, cells)
        if s.var is not None and number is not None:
            self.state.values[s.var] = number

    def _number_drawn(self, s: ir.Atomic, places: PointerValue, step: Term | None) -> Term:
        """What the atomic returns: for a counter, one of the numbers that it hands out."""
        name = f"atomic{self.number()}"
        self.unknowns[name] = (
            f"the result of `{s.site.text}`"
            if "(" in s.site.text
            else f"the result of an atomic on `{s.site.text}`"
        )
        self.tainted.add(name)
        target = places.targets[0] if len(places.targets) == 1 else None
        operands: tuple[Term, ...] = self.iterators
        if target is not None and isinstance(target.array, Array):
            operands = (target.offset, *self.iterators)
            if step is not None and step is not t.ZERO and target.array not in self.reached:
                self.slots[name] = Drawing(target.array, step, operands, name, len(self.iterators))
            if target.array in self.claimed and s.row.swaps:
                self._note_claim(name, s, target.array, operands)
        lo, hi = type_range(s.type)
        if target is not None and step is not None and target.array in self.counters:
            lo = max(lo, 0)
        return t.apply(name, Level.THREAD, operands, lo, hi)

    def _note_claim(self, name: str, s: ir.Atomic, array: Array, operands: tuple[Term, ...]) -> None:
        constant, left = (self.evaluator().value(e) for e in (s.operands[0], s.operands[-1]))
        lo, hi = type_range(s.type)
        if not isinstance(constant, Term) or not isinstance(left, Term) or not constant.is_const:
            return
        fits = lo <= constant.value <= hi and lo <= left.lo and left.hi <= hi
        if fits and s.scope is not Scope.BLOCK:
            drawing = Drawing(array, left, operands, name, len(self.iterators))
            free = constant.value if s.op is AtomicOp.CAS else None
            self.claims[name] = Claim(drawing, free, self.cleared.get(id(s)))

    def _raises_by(self, s: ir.Atomic) -> Term | None:
        """By how much the atomic raises its counter; None: it may set it back (``atomicInc``)."""
        if not s.row.writes:
            return t.ZERO
        operand = self.evaluator().value(s.operands[0]) if s.operands else None
        if not isinstance(operand, Term):
            return None
        if s.op is AtomicOp.INC:
            return t.ONE if operand.is_const and operand.value in (-1, _ALL_ONES) else None
        most = (1 << (8 * s.type.size - 1)) - 1  # beyond it, it lowers the counter
        return operand if s.op is AtomicOp.ADD and operand.lo >= 0 and operand.hi <= most else None

    def _copy(self, s: ir.Copy) -> None:
        size = self.evaluator().integer(s.size)
        by_block = s.team is BarrierScope.BLOCK
        if s.team is not None and not by_block and self.depth == 0:
            what = "which thread of a group copies what is not modelled by the solver"
            self.reasons[f"{s.mechanism}: {what}"] = None
            self.overwrite(self._places(s.destination, s.site), None)
            return
        begun = len(self.events)
        self._access(s.source, size, Mode.READ, s.where(Mode.READ))
        places = self._access(s.destination, size, Mode.WRITE, s.site)
        if s.asynchronous:
            issued = self.events[begun:]
            self.events[begun:] = [
                evolve(e, copying=True, team=by_block) if isinstance(e, Access) else e for e in issued
            ]
        self.overwrite(places, None)
        for target in places.targets:
            if isinstance(target.array, Array):
                self.state.forget(target.array)

    def _await(self, s: ir.AwaitCopies) -> None:
        pending = self.evaluator().integer(s.pending) if s.pending is not None else t.const(-1)
        if s.pending is None or (pending.is_const and pending.value >= 0):
            self.events.append(CopyEvent(self.guard, pending.value))
        elif pending.is_const and self.depth == 0:
            self.reasons[f"`{s.site.text}` waits for a stage that was not committed"] = None


def _is_wide(type: Type, array: Array, word: bool) -> bool:
    """It takes several elements as one word; over bytes a number may be the member of a packed record."""
    whole = word or isinstance(type, Opaque) or array.element.size > 1
    return whole and is_word(type) and type.size > array.element.size and not array.surface


def _apart(a: Term, size_a: int, b: Term, size_b: int) -> bool:
    gap = t.sub(b, a)
    return gap.lo >= size_a or gap.hi <= -size_b
