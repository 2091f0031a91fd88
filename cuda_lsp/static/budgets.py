"""Shares, times and counts that bound the static analyses, each with its reason: what tuning may change.

The unit stands in the name: ``S`` and ``MS``, seconds and milliseconds of a thread's own time unless said
otherwise, and ``SHARE`` of a budget; ``MOST_…`` and ``KEPT_…`` count. The rates of the solver's clock
are in ``work``, lengths of messages in ``findings.words``, the launches that are tried in ``launches``; what
CUDA fixes (lanes of a warp, threads of a block) is in ``model``. It is one table, so it may be a long file.
"""

# ---------------------------------------------------------------------------- while somebody types

OPENING_S = 0.25
"""From the text of a file that was just opened to what is published of it."""

TYPING_S = 0.024
"""The same after a keystroke: with what is on its way when it comes and with publishing, within 40 ms. What
takes longer is told by the background some tenths of a second later, and what is known of the text before is
shown until then (``carried``)."""

EARLY_S = 0.25
"""Of processor time, from one report of a file that was just opened to the next: something is told soon."""

FIRST_S = 0.04
"""The same to the first one: what is visible, a few kernels."""

LEAST_EXECUTION_S = 0.02
"""A kernel is executed for as long even when there is no time left: most need no more."""

EXECUTION_SHARE = 0.7
"""Of the time until somebody waits, for executing; the rest is for comparing accesses."""

BROKEN_TEXT_S = 8e-3
"""What comparing accesses of text that does not compile is worth to who types it."""

# ------------------------------------------------------------------------------- in the background

COMPARING_S = 2.0
"""Of counted work, for comparing the accesses of a kernel's executions: enough for nearly all real code."""

COMPARING_AGAIN_S = 0.3
"""The same for one execution: when others took all of it, where a barrier is thought away, and where it
serves the solver."""

HANGING_S = 60.0
"""Of the clock: an execution that takes longer is taken to hang, on a busy machine too."""

QUERY_S = 0.4
"""Of ``work``, for one question to the solver; a kernel has many."""

HARD_QUERY_S = 0.16
"""The same where unknowns are multiplied: of 700 models of such formulas that Z3 found in kernels of public
projects nine in ten took less than it."""

REFUTATION_S = 0.04
"""Of ``work``, for a question of which only a refutation matters: of 130 refutations of such formulas one
took longer, and questions that end without an answer were two thirds of all that the solver did."""

KERNEL_S = 2.0
"""Of ``work``, for one kernel, where no setting tells."""

KEPT_REPORTS = 64
"""Of texts that no open file has any more, so that undoing an edit is free."""

KEPT_FACTS = 8
"""Kernels whose facts, of each kind, are remembered: the analyses of one kernel follow one another. Facts
hold their kernel: a weak dictionary would keep every text ever typed."""

# ------------------------------------------------------------------------------- assumed launches

MOST_LAUNCHES = 8
"""Different launches of one kernel that are analysed, best first."""

SECOND_OPINION_SHARE = 0.3
"""Of the solver's budget, for all other launches together when the assumed one took all of it."""

SECOND_OPINION_RUNNING_SHARE = 0.1
"""Of the solver's budget, at least, for schedules of each of them, which cost less than to ask the solver."""

MOST_CONDITION_EXAMPLES = 8
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

LAUNCH_SHARE = 0.5
"""Of the solver's budget, for each further launch of a kernel that is decided for those before."""

GLANCE_SHARE = 0.05
"""Of the solver's budget, for schedules before the solver is asked: they show most races that data decide."""

RUNNING_SHARE = 0.2
"""Of the solver's budget, for schedules of a launch when the solver took all of it."""

UNROLLED_ROUNDS = 12
"""Rounds of a loop with barriers walked one by one when its closed form leaves a doubt."""

REPLAY_GRACE_S = 0.05
"""Behind the deadline, for the replay of a model that is there."""

BRIEF_REPLAY_S = 0.03
"""Of ``work``, for a replay while other pairs may still be decided: most models that happen show it sooner,
and one of long loops takes all that a kernel has."""

BRIEF_ROUNDS = 1000
"""Of a loop in a model; with more, a replay is not brief."""

MANY_PAIRS = 16
"""Open pairs of a kernel; more may not all be decided in time."""

FEW_PAIRS = 4
"""Open pairs of a kernel for whose models the solver may look longer."""

EARLY_ROUNDS = 3
"""Of loops, that are replayed at once."""

MOST_ROUNDS_TOLD = 256
"""Rounds of loops that a conflict's round is compared with."""

MOST_CONDITIONS = 2
"""Comparisons of one condition: people read no more."""

MOST_ARGUMENTS = 5
"""Arguments of an example that is told as a condition: of 150 accused kernels of public projects two took
more, both wrongly."""

MOST_CONDITION_QUERIES = 24
"""Questions that wording one condition may cost."""

MODELS_BESIDE = 2
"""Of one that is known, with another number for one parameter, that are looked for before a condition is
asked of all of them: a tenth of the work, where unknowns are multiplied."""

MOST_THRESHOLDS = 3
"""Numbers of the formula that a parameter is compared with, besides 0, 1 and the launch's extents."""

ORDINARY_VALUES = (0, 1, 2, 3, 7, 32, 100, 255, 1000)
LARGE_VALUES = (4096, 1 << 16)
"""Of parameters: a condition is one if the race happens for those that fulfil it. Large: of all at once."""

OTHER_VALUES = (1, 100, 4096)
"""Of a parameter that an example names: it has no part if the race happens for these as well."""

ROUND_SIZES = (256, 32)
"""Of which sizes of hosts are mostly multiples: threads that part at a barrier are told for such."""

LEAST_GIVEN_SIZE = 3
"""From here on sizes are numbered, where a race is looked for among known ones."""

SMALL_WITNESSES = (64, 4096)
"""Witnesses with parameters and block indices from 0 up to these are preferred: they replay quickly."""

LINEAR_SHARE = 0.25
"""Of the time of a question, for asking it in linear arithmetic first."""

LEAST_WATCH_S = 0.12
"""Of ``work``, that a question is taken to have when the processor's time is to end it: products of unknowns
take two or three times the seconds that their units stand for."""

LEAST_QUERY_S = 0.005
"""A question with less time is not asked."""

MOST_DIVISORS = 3
"""Vector lengths that are tried for one parameter."""

MOST_OFFSETS = 6
"""Elements of an array of offsets that one pair may mention."""

MOST_DOUBTS = 4
"""Undecided pairs told one by one; the rest is counted."""

PAIRS_NOT_LOOKED_AT = 250
"""Pairs of one relation beyond which those that one look decides are not kept."""

MOST_PAIRS = 4000
"""Pairs kept for one relation of two threads; beyond it the kernel is undecided."""

MOST_STATEMENTS = 20_000
"""Statements walked for one kernel; beyond it the analysis gives up and says so."""

PLAUSIBLE_SIZE = 1024
"""Parameters up to this size must not make unsigned arithmetic wrap: larger ones need not be tried."""

NARROW_RANGE = 4 * PLAUSIBLE_SIZE
"""What takes no more values than this counts whole: an index in a block, a small array's element."""

HASH_FACTOR = 1 << 16
"""Unsigned products with a constant this large are hashes: they wrap."""

MOST_EXPONENT = 31
"""Of a power of which the value is known; of larger ones only how far from 0 it is, or how close."""

MOST_BITS = 66
"""Of a bit-vector: a number of 64 bits, its sign, and one for sums."""

AMPLE_PITCH = 1 << 15
"""Elements of a row that is wide enough for whatever ordinary blocks and loops cover."""

AMPLE_TIMES = 4
"""Times what blocks and other sizes reach, for a row that is wide enough for it."""

AMPLE_SCALES = (1, 64, 1 / 8, 1 / 64, 1 / 512, 1 / 4096)
"""Of wide rows and of what is beside them, where the source allows no such numbers."""

NARROW_SCALES = (1 / 8192, 1 / 16384, 1 / 32768)
"""Where rows in rows of 32-bit pitches are that many; too narrow for blocks to say that they leave one."""

LEAST_KNOWN_WIDTH = 4
"""``(n - 1)*i`` is rows of a parameter less a border; from here on, of a number less a parameter."""

MOST_LEVELS = 6
"""Of rows, of rows of rows, …: no array has more dimensions."""

MOST_READINGS = 3
"""Parameters that are tried as the first pitch."""

MOST_SIZE_BESIDE = 1 << 8
"""What sizes are taken to be at most, beside pitches that are wide enough."""

UNBOUNDED = 1 << 20
"""What the source lets be larger than this is as good as not bounded by it."""

SILENT_CONTENTS = (0, 1, -UNBOUNDED, UNBOUNDED)
"""What arrays hold where the model is silent; the extremes satisfy most comparisons."""

FILE_SHARES = (3.0, 1.5)
"""Of a kernel's budget, on the command line: what the kernels of a file share in each of two rounds. Most
take less than a tenth of a second, and files of real code have up to a hundred kernels; of those that are
looked at a second time few are decided."""

LEAST_KERNEL_SHARES = (0.12, 0.04)
"""Of a kernel's budget, what each has in the first round at least, and when the file has had twice its
share."""

HOPELESS_SHARE = 0.12
"""Of a kernel's budget, for an instance of a template of which another one took all that it had and stayed
open: they mostly lack the same, and the template is undecided whatever comes of this one."""

WORTHWHILE_SHARE = 0.3
"""Of a kernel's budget: with less, one that took its share is not tried a second time."""

TOLD_S = 1.0
"""Of ``work``, from one report of a file that is not finished to the next: its process may have to end."""

MOST_LAYOUT_CHOICES = 5
"""Conditions of choices in the addresses of one pair, one after the other, that are looked at both ways."""

MOST_BASES = 4
"""Arrays between which a pointer moves in a loop."""

MOST_POINTERS_OF_A_TABLE = 16
"""Pointers in a table of the thread's own, from which one is taken by an index."""

MOST_WAYS = 8
"""Through one round of a loop, for what bounds a variable in all of them."""

MOST_CYCLE = 16
"""Rounds of a loop until a variable has its first value again."""

MOST_DIGITS = 8
"""Digits that an address is taken apart into."""

MOST_DIGIT_ROUNDS = 6
"""Times that equal digits are put into the rest of an address."""

MOST_SIZE_TERMS = 8
"""Terms of a sum whose sign is looked for."""

MOST_BOUNDS = 4
"""Bounds of bounds through which a limit is looked for."""

MOST_SUBSTITUTIONS = 4
"""Variables in variables that are put into an expression; twice as many into one that may take a lock."""

MOST_TABLE = 1 << 15
"""Threads of a block, times rounds of their loops, whose addresses are compared one by one."""

MOST_ROUNDS_IN_COMMON = 1 << 12
"""Of loops that both threads are in, until conditions leave fewer: two strides of 32 bits have 1,024."""

TABLE_INSTRUCTIONS = 60
"""What a table counts as, and how many of its lines count as one more: NumPy makes them at once."""

MOST_REMAINDERS = 8
"""Remainders put together in one sum."""

MOST_REDUCTIONS = 12
"""Times that equations are taken apart and put into the rest of a question, and numbers put in each time."""

MOST_COMPONENTS = 3
"""Parts of a question that are asked by themselves, which have nothing to do with each other."""

MOST_STEPS = 8
"""Pairs of numbers, one of each thread, of which it is said that they are whole divisors apart."""

KEPT_TERMS = 20_000
"""Terms whose values are remembered: what grows by one operation at a time is looked through once."""

# --------------------------------------------------------------------------------------- executions

WHOLE_GRID_LANES = 2048
"""A grid of at most so many threads is executed whole."""

LANES_OF_VALUES = 4096
"""Blocks of so many threads, around two that meet, are asked whether they store one value."""

EXECUTION_MS = 250.0
"""Of counted work, where no setting tells."""

STATEMENT_MS = 15e-3
LANE_MS = 2e-6
"""A statement, and each lane that executes it, as work: on a core of 2020."""

CLOCK_STATEMENTS = 8
"""Statements of few lanes from one look at the clock to the next."""

MOST_ROUNDS = 100_000
"""Of one loop: more than real loops have."""

MOST_EXECUTED = 60_000
"""Statements of one execution: a second of work."""

MOST_RECORDED_LANES = 600_000
"""Accesses of single threads that are written down: some ten megabytes."""

MOST_PATHS = 6
"""Ways through conditions on data that decide which barriers are reached: two such conditions, and some."""

DECIDED_ROUNDS = 3
"""Of a loop with barriers whose end depends on data: what one does to the next, and to the one behind it."""

VALUES_MB = 32
"""Of values that are remembered."""

FIRST_ROUNDS = 64
"""Of a vectorised loop: most have no more, and what is made for more is thrown away then."""

STRETCH_LANES = 1 << 18
"""Lanes of one vectorised stretch of rounds: what stays in a core's cache."""

ALIGNING_ROUNDS = 4
"""Of a loop, until what its variables leave beside powers of two stays: most do in the second."""

DATA_ROUNDS = 8
"""Rounds of a vectorised loop whose end depends on data."""

FEW_DATA_ROUNDS = 2
MOST_DATA_LANES = 1 << 16
"""So few where all of them would be more lanes than this, as in nests of such loops."""

MOST_ROUNDS_AHEAD = 1 << 17
"""For which a loop's condition is computed at once, to tell how many there are."""

MANY_LANES = 1 << 14
"""Lanes of a statement that is worth a look at the clock."""

MOST_SHARED_ELEMENTS = 1 << 16
"""Elements of a shared array whose contents are modelled."""

UNTOLD_SHARED_ELEMENTS = 4096
"""The same where nothing tells the array's size."""

MOST_PRIVATE_CELLS = 64
"""Places of a thread's own array that one access may reach, for its contents to be known behind it."""

MOST_READS = 4096
"""Samples of reads that one execution keeps."""

MOST_DIVERGENCES = 64
"""Of one execution: what comes behind them has no defined order."""

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

MOST_STRETCHES_WAITED_FOR = 1 << 16
"""Of bytes that one lane may touch, put in order while somebody types: some five milliseconds."""

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

ORDINARY_REAL = 0.5
"""Of a floating-point parameter: limits and scales are mostly below 1. Contents lie on both sides of it."""

REAL_STEPS = 4
"""Of contents, to 1: sums, products and halves of such numbers are exact for a while."""

FALLING_FROM = 4_000
"""Contents that every thread is to improve on fall from here: more than any result of ordinary inputs."""

ROW_ELEMENTS = 2
"""Of each row, where an array of offsets says where rows begin."""

HUB = 13
"""An index that all elements hold: larger than most of the first threads' own."""

MIXED_BELOW = 61
"""Mixed contents: a prime, so that they do not repeat with the threads; small, so that they are indices."""

TWINS_ALIKE = 5
"""Of so many elements one may differ between arrays that are compared with each other."""

TREE_ELEMENTS = 4
"""Of an array that leads from place to place: those that lead on. Even: trees have two children."""

RUN_WARPS = 2
"""So many of a block and its last are run, where only lanes of a warp wait for one another."""

RUN_LANES = 10
"""Of each of these warps, where not even they wait."""

RUN_GRID_THREADS = 1024
"""Of a grid with barriers of its own that is run whole: where blocks are missing, none passes the first."""

BRIEF_RUN_S = 0.04
"""Of ``work``, for a first run with each contents: most threads that part do so in the first rounds."""

EXPECTED_THREADS = 8
"""At a place, for its races to be expected under other inputs too."""

RUN_INSTRUCTIONS = 1_500_000
"""Of one run, all threads together."""

TURN_INSTRUCTIONS = 4_000
"""Of one thread until others have their turn."""

MOST_TURNS = 3
"""Without a barrier: a thread that takes more is not waited for."""

REPLAY_INSTRUCTIONS = 600_000
"""Of one replay: the rounds of long loops. What the solver found late in one is worth a second."""

REPLAY_TURN = 256
"""Instructions between two looks at the clock."""

RUN_S = 0.3
"""Of ``work``, for one run."""

GLANCE_INPUTS = 3
"""Inputs that a glance tries."""

LONE_RUN_S = 1.0
"""The same where no contents change what is drawn: there is no other run to come."""

MISSED_SETS = 3
"""Values of the open scalars under each of which a barrier has to be missed, to be told."""

TRIED_SETS = 4
"""Values that are tried: with some of them no thread may come to the barrier."""

SHOWN_CANDIDATES = 3
"""Pairs of accesses shown for one pair of places and one input."""

KEPT_ACCESSES = 6
"""Of one warp, for one place and one word of memory."""

KEPT_TOUCHES = 48
"""Of one word, from all warps."""

MOST_WORDS = 16
"""Of four bytes that one access is noted under: whoever meets a larger one meets its begin."""

MOST_CANDIDATES = 200
"""Pairs of threads at one word that are told from each other by how telling they are."""

MOST_TOUCHES = 60_000
"""Accesses that one run remembers."""

KEPT_READS = 4_000
"""Numbers that a run read of what memory held at first, and that the next one is compared with."""

MOST_CHOICES = 2
"""Conditions that nobody knows, one inside the other."""

# ---------------------------------------------------------------------------------------- processes

STOP_GRACE_S = 1.5
"""Beyond its own budget, after which work is stopped."""

STOP_S = 5.0
"""That a process may take to stop its work before it is killed. On Linux a child of it does the work."""

STOP_ELSEWHERE_S = 0.5
"""The same where it does the work itself."""

WATCH_S = 0.01
"""How often it is looked whether a question has had its processor time: a hundredth of a second is seen by
nobody, and costs a thousandth of the processor."""

POLL_S = 0.02
"""From one look at whether an answer is still wanted to the next."""

SOLVER_BYTES = 2 << 30
"""Of data of a solver process: its own, whatever the process that starts it may use."""

LARGE_PIECE = 32 << 20
"""Of memory, that comes from the system by itself and goes back at once: as large as glibc lets it be."""

KEPT_FREE = 256 << 20
"""Bytes that a process of the solver keeps for its next question."""

Z3_MEBIBYTES = 1024
"""Beyond it Z3 gives up by itself, and says so."""

START_S = 120.0
"""That a process may take to import Z3 and answer a first question."""

NO_PROCESS_S = 1.0
"""Until the next attempt to start a process where the system has none left."""

SEND_S = 10
"""Until a process that takes nothing is given up; whole seconds."""

STACK_FRAMES = 20_000
"""Of Python: kernels nest deeply."""
