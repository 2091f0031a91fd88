"""Shares, times and counts that bound the static analyses, each with its reason: what tuning may change.

The unit stands in the name: ``S`` and ``MS``, seconds and milliseconds of a thread's own time unless said
otherwise, and ``SHARE`` of a budget; ``MOST_…`` and ``KEPT_…`` count. The rates of the solver's clock
are in ``work``; what CUDA fixes (lanes of a warp, threads of a block) is in ``model``.
"""

# ---------------------------------------------------------------------------- while somebody types

OPENING_S = 0.25
"""From the text of a file that was just opened to what is published of it."""

TYPING_S = 0.03
"""The same after a keystroke: with publishing, within 40 ms. What takes longer is told by the background some
tenths of a second later, and what is known of the text before is shown until then (``carried``)."""

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

MOST_CONDITION_EXAMPLES = 6
"""Values for which a condition is tried before it is told as enough."""

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

# -------------------------------------------------------------------------------- the solver's time

GLANCE_SHARE = 0.05
"""Of the solver's budget, for schedules before the solver is asked: they show most races that data decide."""

RUNNING_SHARE = 0.2
"""Of the solver's budget, for schedules of a launch when the solver took all of it."""

UNROLLED_ROUNDS = 12
"""Rounds of a loop with barriers walked one by one when its closed form leaves a doubt."""

REPLAY_GRACE_S = 0.05
"""Behind the deadline, for the replay of a model that is there."""

MANY_PAIRS = 16
"""Open pairs of a kernel; more may not all be decided in time."""

EARLY_ROUNDS = 3
"""Of loops, that are replayed at once."""

MOST_CONDITIONS = 2
"""Comparisons of one condition: people read no more."""

MOST_CONDITION_QUERIES = 24
"""Questions that wording one condition may cost."""

MOST_DIVISORS = 3
"""Vector lengths that are tried for one parameter."""

MOST_OFFSETS = 6
"""Elements of an array of offsets that one pair may mention."""

MOST_DOUBTS = 4
"""Undecided pairs told one by one; the rest is counted."""

MOST_PAIRS = 4000
"""Pairs kept for one relation of two threads; beyond it the kernel is undecided."""

MOST_STATEMENTS = 20_000
"""Statements walked for one kernel; beyond it the analysis gives up and says so."""

PLAUSIBLE_SIZE = 1024
"""Parameters up to this size must not make unsigned arithmetic wrap: larger ones need not be tried."""

AMPLE_PITCH = 1 << 15
"""Elements of a row that is wide enough for whatever ordinary blocks and loops cover."""

MOST_SIZE_BESIDE = 1 << 8
"""What sizes are taken to be at most, beside pitches that are wide enough."""

UNBOUNDED = 1 << 20
"""What the source lets be larger than this is as good as not bounded by it."""

MOST_CYCLE = 16
"""Rounds of a loop until a variable has its first value again."""

MOST_DIGITS = 8
"""Digits that an address is taken apart into."""

MOST_DIGIT_ROUNDS = 6
"""Times that equal digits are put into the rest of an address."""

MOST_SIZE_TERMS = 8
"""Terms of a sum whose sign is looked for."""

MOST_REMAINDERS = 8
"""Remainders put together in one sum."""

KEPT_TERMS = 20_000
"""Terms whose values are remembered: what grows by one operation at a time is looked through once."""

# --------------------------------------------------------------------------------------- executions

WHOLE_GRID_LANES = 2048
"""A grid of at most so many threads is executed whole."""

STRETCH_LANES = 1 << 18
"""Lanes of one vectorised stretch of rounds: what stays in a core's cache."""

DATA_ROUNDS = 8
"""Rounds of a vectorised loop whose end depends on data."""

MANY_LANES = 1 << 14
"""Lanes of a statement that is worth a look at the clock."""

MOST_SHARED_ELEMENTS = 1 << 16
"""Elements of a shared array whose contents are modelled."""

READ_SAMPLES = 4
"""Executions of one read-only access that are kept, for coalescing."""

MOST_ADDRESS = 1 << 50
"""Bytes behind an array's begin: 1,024 requests are told apart by one 64-bit number beside the address."""

MOST_COPIES = 1 << 31
"""Groups of copies that may be under way: no execution commits as many."""

MOST_AXES = 28
"""Of an execution's arrays, each loop of a nest takes one: NumPy spreads 32."""

MOST_SPAN = 1 << 22
"""Bytes of a stretch of memory that is marked byte by byte."""

MOST_COMPARED_LANES = 1024
"""Lanes that are compared one with another."""

MOST_WARPS = 1 << 15
"""Warp instructions of one site whose bank conflicts are counted."""

FIRST_JOINED_PAIRS = 4_000
"""Of accesses that touch the same bytes, looked at first: most races show among them."""

JOINED_PAIRS = 100_000
"""At a time after these: a look at the clock costs nothing beside them."""

MOST_JOINED_PAIRS = 400_000
"""Of one pair of places: some 20 ms."""

# ---------------------------------------------------------------------------- schedules and replays

ORDINARY_SIZES = (16, 40)
"""Of what no launch fixes: loops soon get over with them."""

FALLING_FROM = 4_000
"""Contents that every thread is to improve on fall from here: more than any result of ordinary inputs."""

RUN_INSTRUCTIONS = 1_500_000
"""Of one run, all threads together."""

TURN_INSTRUCTIONS = 4_000
"""Of one thread until others have their turn."""

MOST_TURNS = 3
"""Without a barrier: a thread that takes more is not waited for."""

REPLAY_INSTRUCTIONS = 80_000
"""Of one replay."""

REPLAY_TURN = 256
"""Instructions between two looks at the clock."""

RUN_S = 0.3
"""Of ``work``, for one run."""

GLANCE_INPUTS = 3
"""Inputs that a glance tries."""

SHOWN_CANDIDATES = 3
"""Pairs of accesses shown for one pair of places and one input."""

KEPT_ACCESSES = 6
"""Of one warp, for one place and one word of memory."""

MOST_TOUCHES = 60_000
"""Accesses that one run remembers."""

MOST_CHOICES = 2
"""Conditions that nobody knows, one inside the other."""

# ---------------------------------------------------------------------------------------- processes

STOP_GRACE_S = 1.5
"""Beyond its own budget, after which work is stopped."""

START_S = 120.0
"""That a process may take to import Z3 and answer a first question."""

NO_PROCESS_S = 1.0
"""Until the next attempt to start a process where the system has none left."""

SEND_S = 10
"""Until a process that takes nothing is given up; whole seconds."""

STACK_FRAMES = 20_000
"""Of Python: kernels nest deeply."""
