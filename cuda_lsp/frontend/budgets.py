"""What one text may ask of clang and of the lowering, each with its reason: short texts can ask for 2^30.

All count what the text asks for, not time, so that a verdict does not depend on the machine. Whatever meets
one is undecided, and the reason names the count; the other kernels of the file are analysed as ever. Counts
are far above what real code needs, and such that meeting one takes a second or two and some 200 MB at most.
"""


class TooMuch(Exception):
    """A kernel asks for more than a budget allows; ``reason`` says of what, and how much that is."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


# ------------------------------------------------------------------------------------ the kernel program

MOST_STATEMENTS = 20_000
"""Of one kernel program, calls inlined. The symbolic analysis walks as many."""

MOST_STEPS = 150_000
"""Expressions and statements looked at for one kernel, calls inlined, over all attempts at it."""

MOST_NODES = 250_000
"""Of clang's tree, for one function."""

MOST_KERNELS = 2_000
"""Of one file: each takes 3 ms, and an editor waits ten seconds."""

MOST_FIELDS = 1024
"""Numbers and pointers in one record, through the records in it: each becomes a variable."""

MOST_CASES = 2_000
"""Of one ``switch``: each is a block around those before it."""

MOST_RECURSION = 3
"""Times one function may be inside itself."""

MOST_CALLS = 60
"""Calls that are inlined one inside the other."""

SHORT_ROUNDS = 8
"""Of a loop that is written out round by round: there are few arrays of more dimensions."""

SHORT_BODY = 400
"""Parts of such a loop's body."""

MOST_ATTEMPTS = 64
"""At one kernel: each learns of one more variable that it is assigned to, or that its address is taken."""

# ------------------------------------------------------------------------------------- what clang reads

MOST_BYTES = 8 << 20
"""Of one text."""

MOST_PARSES = 22
"""Of one text: one with what launches tell of its templates, and guesses while that does not compile."""

PATIENCE = 3
"""Readings of the whole text after one of a single kernel could not be believed, before the next is tried."""

MOST_TOKENS = 6_000
"""Between two ends of statements: each may nest in the one before, and clang's stack ends at ten thousand."""

MOST_PREFIXES = 1_000
"""Operators before one operand."""

MOST_UNCLOSED = 10
"""Names in a row with ``<`` behind each: where clang does not know them, twelve take it a quarter of a
second, and each further one twice as long. Real code nests few in a row, with no ``::`` in between."""

MOST_SEMICOLONS = 40_000
"""In one block of a text: clang takes a second for as many statements."""

MOST_BLOCKS = 200
"""In each other: clang reads on nowhere behind its own limit of 256."""

MOST_MACRO_TOKENS = 200_000
"""That one use of a macro becomes, and a tenth of what all uses of large macros in a text become."""

MOST_DEFAULTS = 10_000
"""Calls that one function's default arguments come to, those of the functions in them twice as often, as
clang looks at them: each takes it 40 ns."""

MOST_MEMBERS = 20_000
"""Of a record, with those of its members: clang takes 8 µs for each where one is initialised."""

MOST_INCLUSIONS = 5_000
"""Files that are read for one text, each as often as it is included."""

MOST_PARENTHESES = 2_000
"""In one function that is read alone: more are looked at together with the file's macros."""

CONSTANT_STEPS = ((16, 60_000), (128, 8_000), (1024, 1_000), (1 << 62, 250))
"""In a text with so many ``constexpr`` and calls of such functions at most, each evaluation may take so many
steps: all of them together take two seconds or three. A table of 256 checksums takes 8,000."""

BRANCHING_DEPTH = 12
"""Instances inside each other where a template names itself twice: each level may double their number."""
