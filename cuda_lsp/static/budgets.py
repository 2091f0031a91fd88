"""Shares, times and counts that bound the static analyses, each with its reason: what tuning may change.

The unit stands in the name: ``S`` and ``MS``, seconds and milliseconds of a thread's own time unless said
otherwise, and ``SHARE`` of a budget; ``MOST_…`` and ``KEPT_…`` count. The rates of the solver's clock
are in ``work``; what CUDA fixes (lanes of a warp, threads of a block) is in ``model``.
"""

# ---------------------------------------------------------------------------- while somebody types

OPENING_S = 0.25
"""From the text of a file that was just opened to what is published of it."""

TYPING_S = 0.055
"""The same after a keystroke: with reading and publishing, within the 100 ms that people take for at once."""

LEAST_EXECUTION_S = 0.02
"""A kernel is executed for as long even when there is no time left: most need no more."""

EXECUTION_SHARE = 0.7
"""Of the time until somebody waits, for executing; the rest is for comparing accesses."""

BROKEN_TEXT_MS = 8.0
"""What comparing accesses of text that does not compile is worth to who types it."""

# ------------------------------------------------------------------------------- in the background

COMPARING_MS = 2000.0
"""For comparing the accesses of one execution: enough for every kernel of real code that was tried."""

HANGING_S = 60.0
"""Of the clock: an execution that takes longer is taken to hang, on a busy machine too."""

QUERY_S = 0.4
"""Of ``work``, for one question to the solver; a kernel has many."""

KEPT_REPORTS = 64
"""Of texts that no open file has any more, so that undoing an edit is free."""

# ------------------------------------------------------------------------------- assumed launches

MOST_LAUNCHES = 8
"""Different launches of one kernel that are analysed, best first."""

SECOND_OPINION_SHARE = 0.3
"""Of the solver's budget, for all other launches together when the assumed one took all of it."""

SECOND_OPINION_RUNNING_SHARE = 0.1
"""Of the solver's budget, at least, for schedules of each of them, which cost less than to ask the solver."""

MOST_INDIRECTIONS = 6
"""Sums in sums, and variables that hold variables, through which a block's stride is looked for."""

# ------------------------------------------------------------------------ what runs of a kernel need

SIZING_MS = 60.0
"""For the execution that tells how far buffers are reached: somebody waits for the run."""

MOST_CONTENTS_TRIED = 4000
"""Choices of one value an array, for the conditions of a race."""

MOST_CONTENTS_INSTRUCTIONS = 400_000
"""Of the replays that tell which contents fulfil the conditions: about a second, while somebody waits."""

MOST_CONTENTS_VALUES = 16
"""Of one array, near the numbers that the conditions name."""

MOST_NEIGHBOURS = 8
"""Reads of one array that are compared."""
