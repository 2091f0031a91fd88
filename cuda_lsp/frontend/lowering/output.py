"""What lowering one kernel has made so far: statements, variables, arrays, and where it is in the source.

``Untranslatable`` and ``Restart`` are how lowering gives up: a statement, or everything made so far. A kernel
is given up by ``budgets.TooMuch``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from contextlib import contextmanager

from cuda_lsp.frontend import budgets
from cuda_lsp.frontend.lowering.places import Place, Value, is_expr
from cuda_lsp.frontend.lowering.types import TypeInfo, parts_of
from cuda_lsp.frontend.toolchain import is_ours
from cuda_lsp.frontend.tree import Ast, Node
from cuda_lsp.ir.ops import INTRINSICS
from cuda_lsp.ir.program import (
    TID,
    AddressOf,
    Array,
    Axis,
    Binary,
    BinaryOp,
    Builtin,
    Const,
    Expr,
    Incomplete,
    Intrinsic,
    NextStep,
    ParameterLayout,
    Stmt,
    Unknown,
    Var,
)
from cuda_lsp.ir.reals import FUNCTIONS
from cuda_lsp.ir.types import Float, Int, Opaque, Type
from cuda_lsp.ir.walk import operands
from cuda_lsp.model import Site, SourceRange, Space

_OF_THREADS = frozenset({*TID, Axis.LANE})
"""What differs between the threads of a block."""
_OF_BLOCKS = frozenset({Axis.BID_X, Axis.BID_Y, Axis.BID_Z})
"""What differs between blocks."""


class Restart(Exception):
    """An optimistic assumption failed for declaration ``key``: it needs ``memory`` or is assigned."""

    def __init__(self, key: int, memory: bool) -> None:
        self.key, self.memory = key, memory


class MemberAssigned(Exception):
    """The kernel assigns to this scalar of a parameter in memory."""

    def __init__(self, name: str, info: TypeInfo) -> None:
        self.name, self.info = name, info


class Untranslatable(Exception):
    """A construct that the lowering does not cover; becomes an ``Incomplete`` at its statement."""

    def __init__(
        self, construct: str, reason: str, node: Node | None = None, step: NextStep = NextStep.RUN
    ) -> None:
        super().__init__(construct)
        self.construct, self.reason, self.node, self.step = construct, reason, node, step


def unclear(construct: str, reason: str, node: Node | None = None) -> Untranslatable:
    """What clang itself does not know: a header may be missing."""
    return Untranslatable(construct, reason, node, NextStep.HEADER)


class Steps:
    """How often anything was looked at for one kernel, over all attempts at it."""

    def __init__(self) -> None:
        self.taken = 0


class Frame:
    """One function being inlined: where ``return`` goes, what ``this`` is."""

    def __init__(self, label: int, result: Place | None, this: Place | None) -> None:
        self.label = label
        self.result = result
        self.this = this
        self.returned: Place | Value | None = None  # of a single return in tail position
        self.tails: set[tuple[int, int]] = set()  # returns after which the function ends anyway
        self.by_reference = False
        self.left = False
        self.labels: dict[str, int] = {}
        self.breaks: list[int] = []
        self.continues: list[int] = []
        self.depths: dict[int, int] = {}  # of scopes, where the loop or switch of a label began
        self.scopes: list[list[Place]] = []  # objects to end with each scope that is open


class Output:
    """The kernel program as far as it is made; ``ast`` is what it is made from."""

    def __init__(self, ast: Ast, home: SourceRange, steps: Steps) -> None:
        self.ast = ast
        self.steps = steps
        self.home = home  # the kernel's extent: where what no expression says happens
        self.out: list[Stmt] = []
        self.arrays: dict[int | str, Array] = {}  # by declaration, or by what they were made for
        self.calls: tuple[SourceRange, ...] = ()  # that are being inlined, outermost first
        self.called: Site | None = None  # the innermost of them
        self._ours: dict[int, bool] = {}  # whether a file is one of our headers
        self.frames: list[Frame] = [Frame(0, None, None)]
        self.static_shared = 0  # bytes
        self.required: dict[str, int] = {}  # of a launch: extents of the block, threads of a tile
        self.record_names: dict[int, str] = {}  # of parameters, by their places (id)
        self.passed_records: dict[str, TypeInfo] = {}  # parameters, and fields of them, by name
        self.hidden_names: set[str] = set()  # of their fields that libclang does not tell of
        self.passed: dict[int, ParameterLayout] = {}  # of parameters in memory, by the array's id
        self.passed_types: dict[int, TypeInfo] = {}  # theirs
        self.owners: dict[int, int] = {}  # the declarations of these
        self.members: dict[str, Place] = {}  # of these, that are parameters of their own
        self.own_members: Mapping[str, TypeInfo] = {}  # … that the kernel assigns to: variables
        self.late_parameters: list[Var] = []  # fields that only their use told of
        self.short_loops: list[tuple[int, int]] = []  # around what is lowered, innermost last
        self.walked: set[tuple[int, int]] = set()  # … in which such an object is read at no known place
        self.written_out: Set[tuple[int, int]] = frozenset()  # … that are written out round by round
        self.parameters: set[int] = set()  # ids of variables that are kernel parameters
        self.enumerated: dict[str, tuple[int, ...]] = {}  # what parameters of enumerations may be
        self.shuffled: dict[str, None] = {}  # classes that work without their storage
        self.even: dict[int, Expr] = {}  # by variable: set once, to this value, the same in all the block
        self.keeps_floats = False  # floating-point variables are followed: by whom their values are shared
        self.integers: dict[int, Expr] = {}  # of which such values are made by rounding, by their identity
        self.data: set[int] = set()  # ids of such variables that hold what was in memory
        self.readonly: set[int] = set()  # ids of arrays behind ``const … __restrict__`` parameters
        self.valued = False  # floating-point values are followed, as expressions
        self.computed = False  # … that are computed: nothing of them is left out
        self.judges_floats = False  # integers and truth values are made of them
        self._ids = 0
        self._statements = 0

    # -------------------------------------------------------------------------------- building

    def fresh(self) -> int:
        """An identity that nothing of the program has yet."""
        self._ids += 1
        return self._ids

    def var(self, name: str, type: Type) -> Var:
        """A new variable; one without a name is a temporary, set once."""
        return Var(name, type, self.fresh())

    def emit(self, statement: Stmt) -> None:
        """Append a statement to the innermost list that is open."""
        self._statements += 1
        if self._statements > budgets.MOST_STATEMENTS:
            raise budgets.TooMuch(f"{self._what} more than {budgets.MOST_STATEMENTS:,} statements")
        self.out.append(statement)

    def step(self) -> None:
        """Count that something is looked at. Raises TooMuch."""
        self.steps.taken += 1
        if self.steps.taken > budgets.MOST_STEPS:
            raise budgets.TooMuch(f"{self._what} more than {budgets.MOST_STEPS:,} steps")

    @property
    def _what(self) -> str:
        return "inlining its calls takes" if self.calls else "translating it takes"

    @contextmanager
    def nested(self) -> Generator[list[Stmt]]:
        """Statements emitted inside go to the list yielded."""
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    @property
    def frame(self) -> Frame:
        """The function whose statements are being lowered."""
        return self.frames[-1]

    def site(self, node: Node) -> Site:
        """Where a node stands, and through which calls it was reached; for our own: where it is called."""
        found, file, _, _ = self.ast.extent(node)
        if self.called is not None and self._is_ours(file):
            return self.called
        return Site(found, self.ast.text(node), self.calls)

    def _is_ours(self, file: int) -> bool:
        """Whether a file is one of our headers, which nobody can look into."""
        known = self._ours.get(file)
        if known is None:
            known = self._ours[file] = is_ours(self.ast.path(file))
        return known

    def enter(self, call: Node) -> None:
        """From here on, what is made is reached through this call."""
        found, file, _, _ = self.ast.extent(call)
        if not self._is_ours(file):
            self.called = Site(found, self.ast.text(call), self.calls)
            self.calls = (*self.calls, found)

    def unknown(self, reason: str, type: Type, inputs: Sequence[Value] = (), varies: bool = False) -> Expr:
        """A value that is not expressed; uniform when everything it is computed from is.

        Of floating-point values that are followed, what is computed from them is told: an unknown function.
        """
        if (
            self.valued
            and isinstance(type, Float | Opaque)
            and inputs
            and not varies
            and all(map(is_expr, inputs))
        ):
            return Intrinsic(f"{reason} {self.fresh()}", tuple(v for v in inputs if is_expr(v)), type)
        uniform = not varies and bool(inputs) and all(self.uniform(value) for value in inputs)
        loaded = any(self.loaded(value) for value in inputs)
        per_block = not all(self.same_in_grid(value) for value in inputs)
        made_of = () if uniform or varies or not self.keeps_floats else self._made_of(inputs)
        known = uniform or bool(made_of)
        return Unknown(reason, type, self.fresh(), uniform, loaded, known and per_block, made_of)

    def _made_of(self, inputs: Sequence[Value]) -> tuple[Expr, ...]:
        """What may differ of the values that something is computed from; none where that is not known."""
        found: dict[int, Expr] = {}
        for value in inputs:
            if self.uniform(value):
                continue
            parts = value.inputs if isinstance(value, Unknown) else (value,)
            if not parts or not all(map(is_expr, parts)):
                return ()
            found.update((id(part), part) for part in parts if is_expr(part))
        return tuple(found.values())

    def floating(self, op: BinaryOp, type: Type, x: Expr, y: Expr) -> Expr:
        """``x op y`` of floating-point numbers, which is expressed where their values are followed."""
        if self.valued and isinstance(type, Float) and x.type == y.type == type:
            return Binary(op, x, y, type)
        return self.real(lambda: Binary(op, x, y, type), "floating-point value", type, [x, y])

    def real(self, made: Callable[[], Expr], reason: str, type: Type, inputs: Sequence[Expr]) -> Expr:
        """What is ``made`` of floating-point numbers, where these are computed; else unknown."""
        self.judges_floats |= isinstance(type, Int)
        alike = all(x.type == y.type for x, y in itertools.pairwise(inputs))
        if self.valued and not self.computed and isinstance(type, Int):
            return Intrinsic(f"{reason} {self.fresh()}", tuple(inputs), type)
        return made() if self.computed and alike else self.unknown(reason, type, inputs)

    def result_of(self, name: str, type: Type, inputs: Sequence[Value]) -> Expr:
        """What a pure function gives, expressed where floating-point numbers are computed and it is known."""
        known = name in FUNCTIONS and bool(inputs) and all(map(is_expr, inputs))
        self.judges_floats |= known and isinstance(type, Int)
        if known and self.computed:
            return Intrinsic(name, tuple(v for v in inputs if is_expr(v)), type)
        return self.unknown(f"the result of {name}", type, inputs)

    def loaded(self, value: Value) -> bool:
        """Whether data from memory is part of a value that is not expressed."""
        if isinstance(value, Unknown):
            return value.loaded
        if isinstance(value, Var):
            return value.id in self.data
        return is_expr(value) and any(map(self.loaded, operands(value)))

    def same_in_grid(self, value: Value) -> bool:
        """Whether a value that is the same in every thread of a block is so in all blocks."""
        if isinstance(value, Unknown):
            return not value.per_block
        if isinstance(value, Builtin):
            return value.axis not in _OF_BLOCKS
        if isinstance(value, Var) and value.id in self.even:
            return self.same_in_grid(self.even[value.id])
        return is_expr(value) and all(map(self.same_in_grid, operands(value)))

    def uniform(self, value: Value) -> bool:
        """Whether a value is evidently the same in every thread of a block."""
        if isinstance(value, Const | AddressOf):
            return True
        if isinstance(value, Unknown):
            return value.uniform
        if isinstance(value, Builtin):
            return value.axis not in _OF_THREADS
        if isinstance(value, Var):
            return value.id in self.parameters or value.id in self.even
        if isinstance(value, Intrinsic) and value.name not in INTRINSICS:  # what other lanes offer
            return False
        return is_expr(value) and all(map(self.uniform, operands(value)))

    def incomplete(
        self,
        construct: str,
        reason: str,
        node: Node,
        pointers: Sequence[Expr] = (),
        synchronises: bool = False,
        harmless: bool = False,
        step: NextStep = NextStep.RUN,
    ) -> None:
        """Say that a construct is not followed; ``pointers``: what it may read and write."""
        site = self.site(node)
        self.emit(Incomplete(construct, reason, site, tuple(pointers), synchronises, harmless, step=step))

    def missing(self, missing: Untranslatable, node: Node, synchronises: bool = False) -> None:
        """Say what is not covered, of all that ``node`` holds."""
        where = node if missing.node is None else missing.node
        self.incomplete(
            missing.construct, missing.reason, where, synchronises=synchronises, step=missing.step
        )

    def array(self, key: int | str, name: str, space: Space, info: TypeInfo, **more: object) -> Array:
        """The memory object of a declaration (one per key)."""
        known = self.arrays.get(key)
        if known is None:
            element, shape = info.element()
            known = Array(
                name,
                space,
                element.ir,
                shape if info.kind == "array" else (1,),
                self.fresh(),
                volatile=info.volatile or element.volatile,
                size=info.size or None,
                parts=parts_of(element),
                **more,  # type: ignore[arg-type]
            )
            self.arrays[key] = known
        return known
