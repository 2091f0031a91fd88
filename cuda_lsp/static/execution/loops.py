"""Loops: all rounds at once where rounds are independent, one by one otherwise.

A loop without barriers whose carried variables advance by constant steps is executed with one more
array axis (rounds first).  A loop of barriers is executed round by round until its state repeats; then
whole periods are skipped, which is exact: equal states give equal rounds.  A loop whose end depends on
data is followed a few rounds, the rest is said to be not decided or widened.
"""

from __future__ import annotations

import numpy as np
from attrs import evolve

from cuda_lsp.ir.program import Assign, BinaryOp, Loop, Var
from cuda_lsp.ir.types import Int
from cuda_lsp.static import budgets
from cuda_lsp.static.execution import alignment
from cuda_lsp.static.execution.masks import Mask
from cuda_lsp.static.execution.state import Execution
from cuda_lsp.static.execution.values import (
    UNALIGNED,
    Address,
    Aligned,
    Choice,
    Data,
    Flags,
    Lanes,
    Scalar,
    Spread,
    Value,
    identity,
)
from cuda_lsp.static.slicing import LoopShape


def execute_loop(machine: Execution, loop: Loop, mask: Mask) -> Mask | None:
    """Execute ``loop`` by the lanes of ``mask``; the lanes that go on after it."""
    shape = machine.facts.loops[id(loop)]
    outer, since = machine.loops, len(machine.leave_log)
    done = shape.straight and shape.affine and _vectorised(machine, loop, shape, mask)
    if not done:
        _round_by_round(machine, loop, shape, mask)
    machine.loops = outer
    if id(loop) in machine.facts.waiting:
        machine.path.waits.append((machine.sequence, loop.site.range.start.line))
    return machine.rejoin(mask, since, loop.label, loop.continue_label)


# ------------------------------------------------------------------------------- all rounds at once


def _vectorised(machine: Execution, loop: Loop, shape: LoopShape, mask: Mask) -> bool:
    """Execute an affine straight loop with an extra axis. False: it does not fit (nothing was done)."""
    steps = _steps(machine, shape)
    if steps is None or mask.may.ndim > budgets.MOST_AXES:
        return False
    start = {v.id: machine.eval.env[v.id] for v in shape.carried}
    rows = max(1, budgets.STRETCH_LANES // max(mask.may.size, 1))
    first, total = 0, 0
    outer_loops = machine.loops
    while True:
        size = min(rows, budgets.FIRST_ROUNDS if first == 0 else rows)
        stack = _stacked(machine, shape, start, steps, first, size, mask)
        machine.eval.env.update(stack)
        machine.eval.executed_by(mask.may[None], mask.sure)
        condition = machine.eval.scalar(loop.condition)
        if isinstance(condition, Data):
            _data_rounds(machine, loop, shape, condition, stack, mask)
            return True
        rounds, chunk, ended = _live_rounds(machine, condition, size, mask)
        if rounds and chunk is not None:
            cut = stack if rounds == size else _stacked(machine, shape, start, steps, first, rounds, mask)
            machine.eval.env.update(cut)
            names = {v.id: v.name for v in shape.carried if v.name}
            machine.loops = (*outer_loops, *((names[i], v) for i, v in cut.items() if i in names))
            machine.run(loop.body, chunk)
            machine.left.pop(loop.continue_label, None)
            machine.run(loop.step, chunk)
            total += rounds
        if ended:
            break
        if total >= machine.budget.rounds:
            line = loop.site.range.start.line
            machine.path.cut = True
            machine.trace.not_decided(f"line {line}: more than {machine.budget.rounds} rounds of a loop")
            break
        if shape.idle and first:  # many more rounds, and nobody has anything to do with them
            machine.eval.executed_by(mask.may, mask.sure)
            for var in shape.carried:
                machine.eval.env[var.id] = _behind(machine, loop, var)
            return True
        first += size
    machine.eval.executed_by(mask.may, mask.sure)
    _finish(machine, loop, shape, start, steps, total, mask)
    return True


def _steps(machine: Execution, shape: LoopShape) -> dict[int, tuple[Assign, Scalar]] | None:
    """By how much each carried variable advances in a round; None when one is unknown."""
    result: dict[int, tuple[Assign, Scalar]] = {}
    for update in shape.updates or ():
        before = machine.eval.env.get(update.var.id)
        after = machine.eval.value(update.value)
        if isinstance(before, Address) and isinstance(after, Address) and before.array is after.array:
            old, new, type = before.offset, after.offset, Int(64)
            if not isinstance(old, (int, np.ndarray)):  # a stride of 0 is known of an unknown place, too
                return None
        elif isinstance(before, (int, np.ndarray)) and isinstance(after, (int, np.ndarray)):
            if not isinstance(update.var.type, Int):
                return None
            old, new, type = before, after, update.var.type
        else:
            return None
        step = machine.eval.binary(BinaryOp.SUB, new, old, type, type)
        if not isinstance(step, (int, np.ndarray)):
            return None
        result[update.var.id] = (update, step)
    return result


def _stacked(
    machine: Execution, shape: LoopShape, start: dict[int, Value], steps: dict[int, tuple[Assign, Scalar]],
    first: int, rounds: int, mask: Mask,
) -> dict[int, Value]:  # fmt: skip
    """The carried variables at the beginning of rounds ``first``…, rounds on a new first axis."""
    result: dict[int, Value] = {}
    for var, (_, step) in steps.items():
        before = start[var]
        key = ("rounds", var, identity(before), identity(step), first, rounds, mask.may.ndim)
        known = machine.eval.remembered(key)
        if known is None:
            known = _progression(machine, shape, var, before, step, first, rounds, mask.may.ndim)
            machine.eval.remember(key, known, before, step)
        result[var] = known
    return result


def _progression(
    machine: Execution, shape: LoopShape, var: int, before: Value, step: Scalar,
    first: int, rounds: int, ndim: int,
) -> Value:  # fmt: skip
    counts = np.reshape(np.arange(first, first + rounds, dtype=np.int64), (rounds, *([1] * ndim)))
    start = before.offset if isinstance(before, Address) else before
    assert isinstance(start, (int, np.ndarray))
    assert isinstance(step, (int, np.ndarray))
    values: Lanes = np.asarray(start).astype(np.int64) + counts * np.asarray(step).astype(np.int64)
    if isinstance(before, Address):
        return Address(before.array, values)
    type = next(v.type for v in shape.carried if v.id == var)
    return machine.eval.cast(values, type)


def _live_rounds(
    machine: Execution, condition: int | Lanes, size: int, mask: Mask
) -> tuple[int, Mask | None, bool]:
    """How many of the stacked rounds some lane executes, their mask, and whether the loop ends there."""
    if isinstance(condition, int):
        if not condition:
            return 0, None, True
        lanes = np.ones((size, *([1] * mask.may.ndim)), bool)
    else:
        lanes = condition.astype(bool, copy=False)
    key = ("rounds of", id(condition) if not isinstance(condition, int) else condition, size, id(mask))
    cached = machine.round_masks.get(key)
    if cached is not None:
        return cached[0]
    if lanes.ndim <= mask.may.ndim or lanes.shape[0] != size:
        lanes = np.broadcast_to(lanes, (size, *np.broadcast_shapes(lanes.shape, mask.may.shape)))
    going = np.logical_and.accumulate(lanes, axis=0)
    may = going & mask.may
    alive = np.asarray(np.reshape(may, (size, -1)).any(axis=1))
    rounds = size if alive.all() else int(np.argmin(alive))
    chunk = None
    if rounds:
        may = may[:rounds]
        must = may if mask.sure else (going & mask.must)[:rounds]
        given = None if mask.given is None else (going & mask.given)[:rounds]
        chunk = Mask(must, may, mask.guards, mask.drawn, mask.doubt, given, not mask.sure)
    result = (rounds, chunk, rounds < size)
    machine.round_masks[key] = (result, mask, condition)
    return result


def _data_rounds(
    machine: Execution, loop: Loop, shape: LoopShape, condition: Data, stack: dict[int, Value], mask: Mask
) -> None:
    """The first rounds of a loop whose end is data: every lane may execute them."""
    _unfinished(machine, loop, condition)
    numbers = [v.offset if isinstance(v, Address) else v for v in stack.values()]
    wanted = budgets.DATA_ROUNDS
    if mask.may.size * wanted > budgets.MOST_DATA_LANES:
        wanted = budgets.FEW_DATA_ROUNDS
    rounds = min([wanted, *(len(n) for n in numbers if isinstance(n, np.ndarray))])
    cut = {var: _first_rounds(machine, v, rounds) for var, v in stack.items()}
    machine.eval.env.update(cut)
    possible = machine.unsure(mask, condition, True) or mask
    lanes = np.broadcast_to(possible.may, (rounds, *possible.may.shape))
    none = np.zeros(lanes.shape, bool)
    chunk = Mask(none, lanes, possible.guards, possible.drawn, possible.doubt, split=True)
    machine.run(loop.body, chunk)
    machine.left.pop(loop.continue_label, None)
    for var in shape.carried:
        machine.eval.env[var.id] = _behind(machine, loop, var)


def _behind(machine: Execution, loop: Loop, var: Var) -> Data:
    """What the loop leaves of a variable, when each lane may have its own last round."""
    reason = f"{var.name or 'a variable'} after the loop of line {loop.site.range.start.line}"
    return machine.eval.fresh(reason, weak=True)


def _first_rounds(machine: Execution, value: Value, rounds: int) -> Value:
    key = ("first", identity(value), rounds)
    known = machine.eval.remembered(key)
    if known is not None:
        return known
    if isinstance(value, Address) and isinstance(value.offset, np.ndarray):
        return machine.eval.remember(key, Address(value.array, value.offset[:rounds]), value)
    return machine.eval.remember(key, value[:rounds] if isinstance(value, np.ndarray) else value, value)


def _finish(
    machine: Execution, loop: Loop, shape: LoopShape, start: dict[int, Value],
    steps: dict[int, tuple[Assign, Scalar]], rounds: int, mask: Mask,
) -> None:  # fmt: skip
    """Leave the carried variables with their value after the loop (per lane its own last round)."""
    for var in shape.carried:
        before, (_, step) = start[var.id], steps[var.id]
        if rounds == 0:
            machine.eval.env[var.id] = before
            continue
        machine.eval.env[var.id] = _behind(machine, loop, var)
        if isinstance(before, int) and isinstance(step, int) and isinstance(var.type, Int):
            unanimous = len(shape.carried) == 1 and not _varying_end(
                machine, loop, before, step, rounds, var.id
            )
            if unanimous:
                machine.eval.env[var.id] = var.type.wrap(before + rounds * step)


def _varying_end(machine: Execution, loop: Loop, before: int, step: int, rounds: int, var: int) -> bool:
    """Whether lanes ended the loop in different rounds: the condition itself says so at the last one."""
    saved = machine.eval.env[var]
    machine.eval.env[var] = before + (rounds - 1) * step
    last = machine.eval.scalar(loop.condition)
    machine.eval.env[var] = saved
    return not (isinstance(last, int) and last)


# ------------------------------------------------------------------------------------ one by one


def _round_by_round(machine: Execution, loop: Loop, shape: LoopShape, mask: Mask) -> None:
    active: Mask | None = mask
    outer_loops = machine.loops
    seen: dict[object, int] = {}
    repeats = 0
    number = 0
    whole = parted = False
    changed = machine.changed_in((*loop.body, *loop.step))
    while active is not None:
        if number or loop.tests_first:
            active = machine.run(loop.test, active)
            active = None if active is None else _tested(machine, loop, shape, active, number, parted)
            if active is None:
                break
        whole = not active.split
        if shape.has_barrier and active.sure:
            state = _state(machine, shape, active)
            if state is None or state not in seen:
                repeats = 0
            else:
                repeats += 1
                period = number - seen[state]
                if repeats > period and _skip(machine, loop, shape, period):
                    repeats = 0
            if state is not None:
                seen[state] = number
        env = machine.eval.env
        named = ((v.name, env[v.id]) for v in shape.carried if v.name and v.id in env)
        machine.loops = (*outer_loops, *named)
        active = _round(machine, loop, active, changed)
        parted = whole and active is not None and active.split
        number += 1
        if number > machine.budget.rounds:
            line = loop.site.range.start.line
            machine.trace.not_decided(f"line {line}: more than {machine.budget.rounds} rounds of a loop")
            break


def _round(machine: Execution, loop: Loop, mask: Mask, changed: set[int]) -> Mask | None:
    """The lanes that come to the end of a round. In it a variable holds what was assigned in it."""
    env, since = machine.eval.env, len(machine.leave_log)
    before = {var: env[var] for var in changed if var in env}
    outer, machine.base = machine.base, mask
    try:
        machine.run(loop.body, mask)
        active = machine.run(loop.step, machine.rejoin(mask, since, loop.continue_label))
    finally:
        machine.base = outer
    for var, value in before.items():
        machine.keep_as_it_was(var, value, mask)
    return active


def _tested(
    machine: Execution, loop: Loop, shape: LoopShape, active: Mask, number: int, parted: bool
) -> Mask | None:
    """The lanes that execute round ``number``; None: the loop is over.

    ``parted``: the round before has parted warps.
    """
    machine.eval.executed_by(active.may, active.sure, active.split)
    condition = machine.eval.scalar(loop.condition)
    if isinstance(condition, int):
        return active if condition else None
    if not isinstance(condition, Data):
        return machine.narrowed(active, condition)
    if shape.has_barrier and condition.spread >= Spread.BLOCK:
        if number >= machine.budget.data_rounds:
            _unfinished(machine, loop, condition)
            return None
        where = f"line {loop.site.range.start.line} in round {number + 1}"
        text = f"what {where} makes of {condition.reason}"
        return active if machine.choose(loop, condition, text) else None
    machine.doubt = condition.reason
    if number >= (machine.budget.data_rounds if shape.has_barrier else 1 + parted):
        _unfinished(machine, loop, condition)
        return None
    possible = machine.unsure(active, condition, True)
    if shape.has_barrier or possible is None:
        return possible
    _widen(machine, loop, shape)
    return possible if _keeps_warps(machine, loop) else evolve(possible, split=True)


def _keeps_warps(machine: Execution, loop: Loop) -> bool:
    """In whichever round, as variables are now, all lanes of a warp that come to its test find the same."""
    if loop.test:
        return False  # what it computes is of the round before
    condition = machine.eval.scalar(loop.condition)
    return alignment.cell_of(condition, machine.blocks) == 1


def _widen(machine: Execution, loop: Loop, shape: LoopShape) -> None:
    """Any round of the loop: its carried variables hold anything that lies as it does in all rounds."""
    line, lying = loop.site.range.start.line, _lying(machine, shape)
    for var in shape.carried:
        reason = f"{var.name or 'a variable'}, which the loop of line {line} changes until data ends it"
        moved = machine.eval.fresh(reason, weak=True, aligned=lying.get(var.id, UNALIGNED))
        known = sorted(machine.facts.targets.get(var.id, ()), key=lambda a: a.id)
        targets = [Address(a, moved) for a in known]
        machine.eval.env[var.id] = Choice(tuple((None, a) for a in targets)) if targets else moved


def _lying(machine: Execution, shape: LoopShape) -> dict[int, Aligned]:
    """How variables lie in whichever round: as at first, and behind each step, until that changes no more."""
    env, blocks = machine.eval.env, machine.blocks
    before = {var.id: env[var.id] for var in shape.carried if var.id in env}
    steps = [s for s in shape.stepped if isinstance(env.get(s.var.id), (int, np.ndarray, Data))]
    lying = {s.var.id: alignment.of(machine.eval.scalar(s.var), blocks) for s in steps}
    for _ in range(budgets.ALIGNING_ROUNDS):
        known = dict(lying)
        for var in shape.carried:
            env[var.id] = machine.eval.fresh("any round", aligned=lying.get(var.id, UNALIGNED))
        for s in steps:
            value = env[s.var.id] = machine.eval.scalar(s.value)
            lying[s.var.id] = alignment.joined(lying[s.var.id], alignment.of(value, blocks))
        if lying == known:
            break
    else:
        lying = {}
    for var in shape.carried:
        env.pop(var.id, None)
    env.update(before)
    return lying


def _unfinished(machine: Execution, loop: Loop, condition: Data) -> None:
    line = loop.site.range.start.line
    machine.path.cut = True
    machine.trace.not_decided(f"line {line}: how often the loop runs depends on data ({condition.reason})")


def _state(machine: Execution, shape: LoopShape, active: Mask) -> object:
    """What the coming rounds depend on, but for the loop's own counter; None: holds unknowns."""
    env = machine.eval.env
    parts: list[object] = [id(active.may)]
    for var in shape.carried:
        if var.id in shape.steady:
            value = env.get(var.id)
            if isinstance(value, Data):
                return None
            parts.append(identity(value))
    return (*parts, machine.contents_state(active), tuple(sorted(machine.left)))


def _skip(machine: Execution, loop: Loop, shape: LoopShape, period: int) -> bool:
    """Jump over whole periods of a repeating loop, to the last one that still executes."""
    counters = [v for v in shape.carried if v.id not in shape.steady]
    updates = {u.var.id: u for u in shape.updates or ()}
    if not shape.affine and any(v.id not in updates for v in counters):
        return False
    steps: dict[int, tuple[Assign, int]] = {}
    for var in counters:
        value = machine.eval.env.get(var.id)
        update = updates.get(var.id)
        after = machine.eval.value(update.value) if update is not None else None
        if update is None or not isinstance(value, int) or not isinstance(after, int):
            return False
        steps[var.id] = (update, after - value)
    left = _rounds_left(machine, loop, steps)
    jump = 0 if left is None else (left - 1) // period * period
    for var, (update, step) in steps.items():
        value = machine.eval.env[var]
        if isinstance(value, int) and isinstance(update.var.type, Int):
            machine.eval.env[var] = update.var.type.wrap(value + jump * step)
    return jump > 0


def _rounds_left(machine: Execution, loop: Loop, steps: dict[int, tuple[Assign, int]]) -> int | None:
    """How many more rounds the condition admits, counting the one about to run; None: not in reach."""
    env = machine.eval.env
    start = {var: env[var] for var in steps}
    limit = min(machine.budget.rounds, budgets.MOST_ROUNDS_AHEAD)
    counts = np.reshape(np.arange(limit, dtype=np.int64), (limit, 1))
    for var, (update, step) in steps.items():
        begin = start[var]
        if not isinstance(begin, int) or loop.test:
            return None
        env[var] = machine.eval.cast(begin + counts * step, update.var.type)
    machine.eval.executed_by(np.ones(1, bool), sure=False)  # nobody knows yet who executes these rounds
    condition = machine.eval.scalar(loop.condition)
    env.update(start)
    if not isinstance(condition, np.ndarray) or condition.shape != (limit, 1):
        return None
    going: Flags = np.reshape(condition, limit).astype(bool)
    return None if going.all() else int(np.argmin(going))
