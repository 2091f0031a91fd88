"""Cursors → kernel program: a whole kernel, everything it calls inlined.

``lower_kernel`` is this room's one public function. Here are also a kernel's parameters, bound in its
environment, and the buffers that launches let them share.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import TypeGuard

from attrs import evolve

from cuda_lsp.frontend import budgets
from cuda_lsp.frontend.compile_errors import CompileError, in_order
from cuda_lsp.frontend.host.launch_facts import NOTHING_PASSED, Passed, PassedPlace
from cuda_lsp.frontend.host.shared_arguments import SharedBuffer
from cuda_lsp.frontend.libclang import RawCursor
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering import functions
from cuda_lsp.frontend.lowering.build import binary, offset_by
from cuda_lsp.frontend.lowering.deciding_floats import floats_decide
from cuda_lsp.frontend.lowering.followed import without_sums
from cuda_lsp.frontend.lowering.formulas import expression_of, with_formulas
from cuda_lsp.frontend.lowering.members_read import with_members
from cuda_lsp.frontend.lowering.output import MemberAssigned, Restart, Steps
from cuda_lsp.frontend.lowering.parameter_layout import layout_of
from cuda_lsp.frontend.lowering.parameters import place_of_parameter
from cuda_lsp.frontend.lowering.places import Place, RecordPlace, StaticPlace
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.statements import not_compiled, statement
from cuda_lsp.frontend.lowering.types import TypeInfo, type_of_declaration
from cuda_lsp.frontend.tree import Ast, Declaration, Node, distinct
from cuda_lsp.ir.program import (
    STRETCH,
    AddressOf,
    Array,
    Assign,
    Atomic,
    BinaryOp,
    Block,
    Copy,
    Expr,
    Incomplete,
    Kernel,
    NextStep,
    ParameterLayout,
    Store,
    Var,
    const,
)
from cuda_lsp.ir.types import INT64, Int, Pointer
from cuda_lsp.ir.walk import (
    destinations,
    pointers,
    root,
    root_array,
    subexpressions,
    walk,
    written_arrays,
)
from cuda_lsp.model import Site, SourceRange, Space, apart


def lower_kernel(
    ast: Ast,
    cursor: RawCursor,
    name: str,
    errors: Sequence[CompileError] = (),
    passed: Passed = NOTHING_PASSED,
    valued: bool = False,
    computed: bool = False,
) -> Kernel:
    """The kernel program of a ``__global__`` function definition (or instantiation).

    ``ast``: lookups shared by the kernels of one parse. ``errors``: of clang, in functions that the kernel
    may call as far as names tell; those count that stand in it, or in what it turns out to call. ``passed``:
    what launches pass together. ``valued``: follow floating-point values too; ``computed``: leave nothing of
    them out, as they are to be computed. What cannot be translated becomes ``Incomplete``; nothing is raised
    for user code. Raises ValueError for a cursor of no function.
    """
    declaration = ast.declaration(cursor)
    if declaration is None:
        raise ValueError("not the cursor of a function")
    attempts = _Attempts(ast, declaration, name, passed, valued, computed)
    own = [error for error in errors if attempts.reaches(error)]
    kernel = attempts.lowered(own)
    reached = [error for error in errors if attempts.reaches(error)]
    return attempts.lowered(reached) if len(reached) > len(own) else kernel


class _Attempts:
    """A kernel that is lowered until what was taken for granted of its variables proves right."""

    def __init__(
        self, ast: Ast, declaration: Declaration, name: str, passed: Passed, valued: bool, computed: bool
    ) -> None:
        self.ast, self.declaration, self.name = ast, declaration, name
        self.passed, self.valued, self.computed = passed, valued or computed, computed
        self.memory: set[int] = set()
        self.assigned: set[int] = set()
        self.members: dict[str, TypeInfo] = {}
        self.written_out: set[tuple[int, int]] = set()  # loops
        self.met: dict[int, Declaration] = {declaration.key: declaration}
        self.hopeless, self.keeps_floats = False, self.valued

    def reaches(self, error: CompileError) -> bool:
        """Whether an error stands in the kernel, in a function that something in it asked for so far, or in
        an alias that one of these names."""
        if self.hopeless or error.of_alias:
            return True
        return any(_holds(self.ast.extent(_node(found))[0], error.range) for found in self.met.values())

    def lowered(self, errors: Sequence[CompileError]) -> Kernel:
        """The kernel, with these errors told where they stand."""
        home, steps = self.ast.extent(_node(self.declaration))[0], Steps()
        for _ in range(budgets.MOST_ATTEMPTS):
            low = Lowering(self.ast, home, self.memory, self.assigned, steps)
            low.launched, low.valued = self.passed, self.valued
            low.own_members = self.members
            low.keeps_floats, low.computed = self.keeps_floats, self.computed
            low.errors = in_order(errors)
            try:
                low.written_out = self.written_out
                kernel = _lower(low, self.ast.body(self.declaration), self.name)
                if not low.walked <= self.written_out:
                    self.written_out |= low.walked
                    continue
                if self.keeps_floats or not floats_decide(kernel.body):
                    return kernel
                self.keeps_floats = True
            except budgets.TooMuch as much:
                return self._hopeless(home, much.reason)
            except MemberAssigned as found:
                self.members[found.name] = found.info
            except Restart as restart:
                if restart.key in (known := self.memory if restart.memory else self.assigned):
                    return self._hopeless(home, "a variable's storage could not be decided")
                known.add(restart.key)
            finally:
                self.met.update(low.met)
        return self._hopeless(home, "too many address-taken variables")

    def _hopeless(self, home: SourceRange, reason: str) -> Kernel:
        self.hopeless = True
        missing = Incomplete("kernel", reason, Site(home), synchronises=True)
        return Kernel(self.name, home, (), (), (missing,))


def _node(declaration: Declaration) -> Node:
    return Node(declaration.cursor, (0, 0))


def _holds(function: SourceRange, error: SourceRange) -> bool:
    return function.path == error.path and function.start <= error.start < function.end


def _lower(low: Lowering, root: Node, name: str) -> Kernel:
    found = tuple(error.range for error in low.errors)
    body = next((c for c in root.children if c.kind == K.COMPOUND), None)
    if body is not None:
        low.assigned |= functions.written(low, body)
    params, layout = _parameters(low, root)
    if body is not None:
        statement(low, body)
    _unwritten(low)
    _say_overlapping(low)
    low.kept_pointers.say_choices()
    for error in low.errors:
        low.emit(not_compiled(error, Site(error.range)))
    low.out[:] = with_members(low, low.out)
    if low.valued and not low.computed:
        low.out[:] = without_sums(low, low.out)
    params, made = with_formulas(low, (*params, *low.late_parameters))
    statements = (*made, *low.out)
    if low.frames[0].left:
        statements = (Block(0, statements, Site(low.home)),)
    return Kernel(
        name,
        low.home,
        tuple(params),
        tuple(dict.fromkeys(low.arrays.values())),
        statements,
        errors=found,
        required=dict(low.required),
        layout=layout,
        behind=dict(low.behind),
        granted=_granted(low),
        enumerated=dict(low.enumerated),
        valued=low.valued and not low.computed,
        judges_floats=low.judges_floats,
        cluster=low.launched.cluster,
    )


def _parameters(low: Lowering, root: Node) -> tuple[list[Var], tuple[ParameterLayout, ...]]:
    """Bind every parameter in the environment; the variables in order, and how they are passed."""
    found: list[Var] = []
    layout: list[ParameterLayout] = []
    places: list[tuple[Declaration, TypeInfo, Place]] = []
    told = [low.ast.declaration(node.cursor) for node in root.children if node.kind == K.PARAMETER]
    declared = [declaration for declaration in told if declaration is not None]
    names = distinct(declaration.name for declaration in declared)
    for declaration, name in zip(declared, names, strict=True):
        info = type_of_declaration(low.ast, declaration)
        if info.kind == "array":
            info = TypeInfo("pointer", info.name, Pointer(), 8, 8, target=info.target)
        layout.append(layout_of(name, info))
        low.record_fields[name] = tuple(f.name for f in info.fields)
        place = place_of_parameter(low, name, info, found, declaration.key)
        places.append((declaration, info, place))
    for (declaration, info, place), name in zip(places, names, strict=True):
        moved = _in_shared_buffer(low, name, info, place, found)
        low.env[declaration.key] = _owned_copy(low, declaration, info, moved)
    _own_members(low)
    return found, tuple(layout)


def _own_members(low: Lowering) -> None:
    """Scalars of parameters in memory that the body assigns to are variables, which begin as passed."""
    for key, layout in low.passed.items():
        named = [m.name for m in layout.members if m.name in low.own_members]
        for name in named if low.owners[key] not in low.assigned else ():
            info = low.own_members[name]
            passed = place_of_parameter(low, name, info, low.late_parameters, 0)
            low.members[name] = low.local(name, info)
            low.write(low.members[name], low.read(passed, None), None)


def _unwritten(low: Lowering) -> None:
    """No parameter in memory is written, directly or through variables that point to it.

    What is read of one is what was passed. Raises Restart where that is not so: it lives in a copy then.
    """
    holds: dict[Var, int] = {}

    def pointed(pointer: Expr) -> int | None:
        parts = tuple(subexpressions([root(pointer)]))
        arrays = (x.array.id for x in parts if isinstance(x, AddressOf) and x.array.id in low.passed)
        return next(arrays, next((holds[x] for x in parts if isinstance(x, Var) and x in holds), None))

    pointing = [s for s in walk(low.out) if isinstance(s, Assign) and isinstance(s.var.type, Pointer)]
    for _ in pointing if low.passed else ():
        known = len(holds)
        found = ((s.var, pointed(s.value)) for s in pointing if s.var not in holds)
        holds |= {var: key for var, key in found if key is not None}
        if len(holds) == known:
            break
    for s in walk(low.out) if low.passed else ():
        written = destinations(s) if isinstance(s, Store | Atomic | Copy) else ()
        key = next((key for pointer in written if (key := pointed(pointer)) is not None), None)
        if key is not None:
            raise Restart(low.owners[key], memory=False)


def _in_shared_buffer(
    low: Lowering,
    name: str,
    info: TypeInfo,
    place: Place,
    found: list[Var],
    within: SharedBuffer | None = None,
) -> Place:
    """A pointer parameter that launches point into an earlier one's buffer, so many elements behind.

    Of a record the fields; ``within``: what is told of one as of a field of a record that is passed twice.
    Launches that point it elsewhere say so by a parameter of its own.
    """
    shared = low.launched.shared.get(name, within)
    if isinstance(place, RecordPlace):
        same = shared is not None and shared.offset == 0 and _is_one_class(low, info, str(shared.first))
        for field in info.fields:
            again = (
                evolve(shared, first=f"{shared.first}.{field.name}") if shared is not None and same else None
            )
            inner = place.fields[field.key]
            inner = _in_shared_buffer(low, f"{name}.{field.name}", field.type, inner, found, again)
            place.fields[field.key] = inner
        return place
    anchor = low.arrays.get(f"parameter {shared.first}") if shared is not None else None
    if shared is None or anchor is None or not isinstance(place, StaticPlace) or not info.is_pointer:
        return place
    size = info.target.size if info.target is not None else 0
    scalars = {v.name: v for v in found if isinstance(v.type, Int) and v.type.bits >= 32}
    elements = expression_of(shared.offset, scalars, INT64) if shared.offset is not None else None
    if elements is None or (not (shared.unit or size) and shared.offset != 0):
        (low.pieces if shared.pieces else low.overlapping)[name] = str(shared.first)
        return place
    low.arrays[f"parameter {name}"] = anchor
    moved = binary(BinaryOp.MUL, elements, const(shared.unit or max(1, size), INT64))
    if shared.by_launch:
        elsewhere = low.var(apart(name), INT64)
        low.late_parameters.append(elsewhere)
        moved = binary(BinaryOp.ADD, moved, binary(BinaryOp.MUL, elsewhere, const(STRETCH, INT64)))
    low.behind[name] = str(shared.first), moved
    start = offset_by(AddressOf(anchor, info.ir), moved)
    return StaticPlace(info, start, place.owner)


def _is_one_class(low: Lowering, info: TypeInfo, name: str) -> bool:
    """Whether the parameter, or field of one, of that name is of the same class."""
    other = low.passed_records.get(name)
    return other is not None and other.declaration is not None and other.declaration is info.declaration


def _say_overlapping(low: Lowering) -> None:
    """Says which parameters may point into one buffer where one of them is written."""
    reason = "a launch points both into one buffer, and how far apart they are is not known"
    pairs = {**low.overlapping, **_fields_passed_again(low)}
    for what in dict.fromkeys((*_written_pairs(low, pairs.items()), *_written_together(low))):
        low.emit(Incomplete(what, reason, Site(low.home), step=NextStep.PROGRAM))


def _fields_passed_again(low: Lowering) -> dict[str, str]:
    """Pointers in records that are passed twice: each may be what it is in the first."""
    found: dict[str, str] = {}
    for name, shared in low.launched.shared.items():
        for key in low.arrays:
            if _is_field_of(key, name):
                field = key.removeprefix(f"parameter {name}")
                found[f"{name}{field}"] = f"{shared.first}{field}"
    return found


def _written_together(low: Lowering) -> Iterator[str]:
    """Places of parameters that a launch may point to one buffer, of which one is written, for people."""
    written = written_arrays(low.out)
    touched = _touched(low)
    for pair in low.launched.one_buffer:
        if _are_pieces(low, pair):
            continue  # taken for granted, and told
        here, there = (list(_arrays_at(low, place)) for place in pair)
        for (field, one), (same, other) in itertools.product(here, there):
            if field != same:
                continue
            met = None in touched or {one, other} <= touched
            if one is not other and met and not written.isdisjoint({one, other, None}):
                yield f"`{one.name}` and `{other.name}`"


def _are_pieces(low: Lowering, pair: tuple[PassedPlace, PassedPlace]) -> bool:
    """Whether both are said to be pieces of one buffer."""
    one, other = (_name_of(low, place) for place in pair)
    return low.pieces.get(one, one) == low.pieces.get(other, other)


def _name_of(low: Lowering, place: PassedPlace) -> str:
    name, field = place
    fields = low.record_fields.get(name, ())
    if isinstance(field, int):
        field = fields[field] if field < len(fields) else "?"
    return name if field is None else f"{name}.{field}"


def _arrays_at(low: Lowering, place: PassedPlace) -> Iterator[tuple[str, Array]]:
    """What a place of a parameter points to; without a parameter, what has this name on the device.

    Behind the field, where it is a record's.
    """
    name, field = place
    if not name:
        globals_ = (a for key, a in low.arrays.items() if isinstance(key, int) and a.space is Space.GLOBAL)
        yield from (("", array) for array in globals_ if array.name == field)
        return
    fields = low.record_fields.get(name, ())
    if isinstance(field, int):
        field = fields[field] if field < len(fields) else "?"
    whole = name if field is None else f"{name}.{field}"
    for key, array in low.arrays.items():
        if isinstance(key, str) and _is_of(key, whole):
            yield key.removeprefix(f"parameter {whole}"), array


def _granted(low: Lowering) -> tuple[str, ...]:
    pieces = (f"{what} point to pieces of one buffer that do not overlap"
              for what in _written_pairs(low, low.pieces.items()))  # fmt: skip
    more = {frozenset(pair) for known in (low.pieces, low.overlapping) for pair in known.items()}  # is told
    open_ = [(name, first) for first, name in low.launched.perhaps if frozenset((first, name)) not in more]
    perhaps = (f"{what}, which the host may take from one buffer, do not overlap"
               for what in _written_pairs(low, open_))  # fmt: skip
    named = (f"`{name}` is one of its type's enumerators" for name in low.enumerated)
    shuffled = (f"`{name}` works by shuffles, and not in its storage" for name in low.shuffled)
    apart = (*_captured_apart(low), *_fields_apart(low), *low.kept_pointers.granted())
    return (*pieces, *perhaps, *apart, *named, *shuffled)


def _fields_apart(low: Lowering) -> Iterator[str]:
    """Of pointers in a record of which no launch's text tells where they lead, as of a record in memory."""
    written = written_arrays(low.out)
    for name, told in low.launched.told.items():
        inside = {key: array for key, array in low.arrays.items() if _is_field_of(key, name)}
        untold = any(key.split(".")[1].partition("[")[0] not in told for key in inside)
        apart = len({array.id for array in inside.values()}) > 1
        if apart and untold and not written.isdisjoint({*inside.values(), None}):
            yield f"the pointers in `{name}` point to objects of their own"


def _is_field_of(key: object, name: str) -> TypeGuard[str]:
    """Whether an array is what a field of the parameter of this name points to."""
    return isinstance(key, str) and key.startswith(f"parameter {name}.")


def _captured_apart(low: Lowering) -> Iterator[str]:
    """Of pointers that a lambda holds nobody asks what else points into their buffers."""
    # What a lambda holds has no name in it: those fields are told of by what uses them (``closures``).
    every = ((str(key), array) for key, array in low.arrays.items() if array.space is Space.GLOBAL)
    buffers = {key: array for key, array in every if not key.endswith(".")}
    held = [name for name in low.captured if any(_is_of(key, name) for key in buffers)]
    if held and len(buffers) > 1 and not written_arrays(low.out).isdisjoint(buffers.values()):
        names = ", ".join(f"`{name}`" for name in held)
        yield f"no other pointer leads to the buffers of {names}, which a lambda holds"


def _is_of(key: str, name: str) -> bool:
    return key == f"parameter {name}" or key.startswith(f"parameter {name}.")


def _written_pairs(low: Lowering, pairs: Collection[tuple[str, str]]) -> Iterator[str]:
    """Those pairs of parameters that are used, and of which one is written, for people.

    ``pairs``: each the later parameter and the earlier one.
    """
    if not pairs:
        return
    written, touched = written_arrays(low.out), _touched(low)
    for name, first in pairs:
        one, other = (low.arrays.get(f"parameter {p}") for p in (first, name))
        met = one is not other and (None in touched or {one, other} <= touched)
        if one is not None and other is not None and met and {one, other, None} & written:
            yield f"`{first}` and `{name}`"


def _touched(low: Lowering) -> set[Array | None]:
    """The arrays that the kernel uses; None: one that nobody knows."""
    return {root_array(pointer) for s in walk(low.out) for pointer in pointers(s)}


def _owned_copy(low: Lowering, declaration: Declaration, info: TypeInfo, place: Place) -> Place:
    """A parameter that the body assigns to, or takes the address of, lives in a local copy."""
    key = declaration.key
    if key not in low.assigned and key not in low.memory:
        return place
    copy = low.local(declaration.name, info, key)
    low.write(copy, low.read(place, None), None)
    return copy
