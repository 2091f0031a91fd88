"""The ways to decide a pair that arithmetic leaves open, in the order in which they are tried.

A tactic is a file here: a function that is given an ``OpenPair`` and says that it is proved (and what that
takes for granted), shows a finding, gives up, or has nothing to say. Its place in a list is its priority:
what is cheap, and decides much, stands first. The solver's budget is counted in work, so another order gives
other verdicts where the budget ends.
"""

from __future__ import annotations

from cuda_lsp.static.solver.tactics import (
    alone,
    ascending,
    cases,
    common,
    counted,
    digits,
    divided,
    elements,
    extents,
    masks,
    meetings,
    members,
    models,
    one_to_one,
    overflow,
    plain,
    quotients,
    reached,
    rising,
    rows,
    steps,
    stretches,
    strided,
    strides,
    sums,
    threads,
    tiles,
    twins,
)
from cuda_lsp.static.solver.tactics.pair import Tactic

_OF_ADDRESSES: tuple[Tactic, ...] = (
    threads.apart,  # those of a block, where nothing else has a part in their addresses
    one_to_one.injective,  # rotations, xor, bit reversal: nothing is taken for granted
    digits.differ,  # threads with one address are one thread, by its digits
    digits.differ_when_turned,  # by a shift that is not negative
    digits.differ_in_rows,  # of blocks, in a grid that is no larger than their rows
    overflow.none,  # of an index that products of sizes may overflow
    rising.together,  # padded indices
    strides.differ,  # of tensors, whatever their order
    rows.apart,  # rows and columns, known, assumed, as stated
)

_OF_REMAINDERS: tuple[Tactic, ...] = (digits.differ,)

_IN_EACH_CASE = cases.in_each(_OF_ADDRESSES)

_CHEAP: tuple[Tactic, ...] = (
    masks.as_remainders(_OF_REMAINDERS),  # of sizes that are masks
    quotients.one_after_the_other(_OF_ADDRESSES),
    *_OF_ADDRESSES[:-1],
    sums.as_sizes(_OF_ADDRESSES),  # of others, by the host
    quotients.as_sizes(_OF_ADDRESSES),  # of pitches in bytes
    strided.as_one_index(_OF_ADDRESSES),  # of a block and its round
    _IN_EACH_CASE,  # where a condition chooses the address; what the host tells of sizes
    rows.apart,
    rising.with_gaps(_OF_ADDRESSES),  # behind parts of an index
    masks.powers_of_two,
)

PROOFS: tuple[Tactic, ...] = (*_CHEAP, steps.whole, plain.refuted)  # Z3 as it is

_WHAT_IS_CHEAP: tuple[Tactic, ...] = (
    models.already_shown,
    models.of_one_value(models.soon(meetings.in_a_row), _CHEAP),  # a race however wide rows are
    *_CHEAP,
    extents.of_loops(_CHEAP),
    models.of_one_value(models.soon(elements.read_by_both), _CHEAP),
    models.of_one_value(models.soon(models.of_given_sizes), _CHEAP),  # for numbers in place of sizes
    meetings.under_the_launch,
)

ROUNDS: tuple[tuple[Tactic, ...], ...] = (
    (threads.apart,),  # which asks nobody
    (alone.one_comes_by,),
    (models.of_one_value(twins.that_do_the_same, _CHEAP),),
    (counted.where_sums_tell(_OF_ADDRESSES),),  # of what the host has summed
    (common.for_group(_CHEAP),),  # pairs that differ in conditions on data only, at once
    (reached.wherever_reached,),  # without the conditions that both threads share
    (members.within_their_arrays(_OF_ADDRESSES),),
    _WHAT_IS_CHEAP,
    (
        models.already_shown,
        tiles.that_fit(_IN_EACH_CASE),  # what only sizes that are no multiples of a tile bring together
        common.for_group((plain.refuted, steps.whole)),
        plain.refuted,
        steps.whole,
        tiles.of_aligned_rows((_IN_EACH_CASE, plain.refuted)),  # sizes that misalign the kernel's vectors
        ascending.where_offsets_ascend(_OF_ADDRESSES),
        stretches.that_lists_tell(_OF_ADDRESSES),
        divided.by_something((*_CHEAP, steps.whole, plain.refuted)),
    ),
    (models.already_shown, models.of_one_value(models.soon_replayed_unless(_IN_EACH_CASE), _CHEAP)),
    (  # a long replay may take all that is left for its pair
        models.already_shown,
        models.of_one_value(models.in_turn(meetings.in_a_row), _CHEAP),
        models.of_one_value(models.in_turn(models.of_given_sizes), _CHEAP),
        # Z3's model, if it happens; else one of early rounds
        models.of_one_value(models.in_turn(models.replayed_unless(_IN_EACH_CASE)), _CHEAP),
    ),
)
"""Each round is tried on all pairs before the next one begins."""

FIRST_PROOFS = ROUNDS.index(_WHAT_IS_CHEAP)
"""The number of the round that decides most."""

FOR_EVERY_LAUNCH: tuple[Tactic, ...] = tuple(tactic for tactic in PROOFS if tactic is not masks.powers_of_two)
"""Proofs without a launch: those that take no parameter to be a power of two."""
