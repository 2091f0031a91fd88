"""The variables of a run of host code: what they hold, where names are found, what has changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from attrs import define, evolve, field, frozen

from cuda_lsp.frontend.host.host_classes import HostClass
from cuda_lsp.frontend.host.host_functions import HostFunction
from cuda_lsp.frontend.host.pieces.nodes import Type
from cuda_lsp.frontend.host.pieces.syntax import Reader, is_built_in
from cuda_lsp.frontend.host.pieces.units import Unit
from cuda_lsp.frontend.host.pieces.values import (
    Address,
    Cell,
    Lambda,
    Nobody,
    Object,
    Place,
    Quotients,
    Size,
    Value,
    alike,
    number,
)
from cuda_lsp.frontend.host.polynomials import Polynomial
from cuda_lsp.frontend.host.text import whole_arguments

_WORD = re.compile(r"[A-Za-z_]\w*")
_OWNED = re.compile(r"\A(?:std::)?(?:unique|shared)_ptr<(.*)>\Z")
_NARROW = re.compile(r"\A(?:u?char|bool|u?short|u?int(?:8|16)_t|float|double|half|__half|byte)\Z")
_MOST_STATEMENTS = 1000
_MOST_BASES = 8


PlaceKey = tuple[str, tuple[tuple[tuple[str, ...], int], ...], int]
"""A place, and how often something was stored into its buffer."""


class NotUnderstood(Exception):
    """What stands there is not followed: all that it names may have changed."""


@define(eq=False)
class Frame:
    """A function that is being executed. ``templates``: what its type names stand for."""

    unit: Unit
    scopes: list[dict[str, Cell]]
    this: Cell | None = None
    owner: HostClass | None = None
    templates: dict[str, Type] = field(factory=dict[str, Type])
    origin: int = 0
    reference: bool = False


@frozen
class Known:
    """A function with its text."""

    unit: Unit
    function: HostFunction
    owner: HostClass | None


class Machine:
    """``integer``: of constant text. ``size_of``: a type, in bytes."""

    def __init__(
        self, units: Sequence[Unit], integer: Callable[[str], int | None], at: int, frame: Frame
    ) -> None:
        self.units = units
        self.integer = integer
        self.at = at
        self.frames = [frame]
        self.quotients = Quotients()
        self.alignment: dict[str, int] = {}
        self.buffers: set[str] = set()
        self.left = _MOST_STATEMENTS
        self.changed: list[tuple[Cell, Value]] = []
        self.lent: list[Cell] = []
        self.guards: dict[int, list[Cell]] = {}
        self.touched: list[tuple[Cell, Value, Value]] = []
        self._globals: dict[str, Cell] = {}
        self._pointed: dict[PlaceKey, Cell] = {}
        self._places: dict[int, Place] = {}
        self._epochs: dict[str, int] = {}
        self._classes: dict[str, tuple[Unit, HostClass] | None] = {}
        self._fresh = 0
        self.there: list[dict[str, Cell]] = []

    @property
    def frame(self) -> Frame:
        """The innermost function."""
        return self.frames[-1]

    # -------------------------------------------------------------------------------------- names

    def fresh(self, hint: str) -> str:
        """A name that nothing else has."""
        self._fresh += 1
        return f"{hint}@{self._fresh}"

    def lookup(self, name: str) -> Cell | None:
        """The variable that a name means here; None: nobody has declared it."""
        for scope in reversed(self.frame.scopes):
            if name in scope:
                return scope[name]
        this, owner = self.frame.this, self.frame.owner
        if this is not None and owner is not None:
            known = self.lineage(self.frame.unit, owner)
            if any(name in each.fields for _, each in known):
                return self.field(this, name)
            if None in self.bases(known) and self._global(name) is None:
                raise NotUnderstood(name)  # it may be a field of a class that nobody has read
        return self._global(name)

    def lineage(self, unit: Unit, owner: HostClass) -> list[tuple[Unit, HostClass]]:
        """A class, and those that it is made of, as far as these are known."""
        found = [(unit, owner)]
        for each in found:
            more = [base for base in self.bases([each]) if base is not None and base not in found]
            found += more[: _MOST_BASES - len(found)]
        return found

    def bases(self, of: Sequence[tuple[Unit, HostClass]]) -> list[tuple[Unit, HostClass] | None]:
        """What classes are made of; None for what is not known."""
        return [self.class_of(Type(name)) for unit, owner in of for name in unit.bases(owner)]

    def is_buffer(self, root: str) -> bool:
        """Whether a buffer is one of its own: a parameter's, or a fresh one."""
        return root in self.buffers or root in self.alignment

    def declare_unknown(self, name: str) -> Cell:
        """Of a name that nobody has read a declaration of: it may have changed."""
        self._globals[name] = Cell(Nobody(self.fresh(name)))
        return self._globals[name]

    def everything(self) -> set[int]:
        """The variables that there are outside of expressions, by identity."""
        cells = [cell for frame in self.frames for scope in frame.scopes for cell in scope.values()]
        cells += [frame.this for frame in self.frames if frame.this is not None]
        return {
            id(cell) for cell in self._reached([*cells, *self._globals.values(), *self._pointed.values()])
        }

    def roots_of(self, cells: Iterable[Cell]) -> set[str]:
        """The buffers that may be reached through variables."""
        return {cell.value.root for cell in self._reached(cells) if isinstance(cell.value, Place)}

    def _reached(self, cells: Iterable[Cell]) -> Iterator[Cell]:
        """Variables, and what they hold and point to."""
        left, done = [*cells], set[int]()
        while left:
            cell = left.pop()
            if id(cell) in done:
                continue
            done.add(id(cell))
            yield cell
            if isinstance(cell.value, Object):
                left += cell.value.fields.values()
            elif isinstance(cell.value, Address):
                left.append(cell.value.cell)

    def guard(self, cells: Iterable[Cell]) -> None:
        """What may change once more where the scope ends: destructors do such things."""
        self.guards.setdefault(id(self.frame.scopes[-1]), []).extend(cells)

    def end_of(self, scope: dict[str, Cell]) -> None:
        """Where a scope ends."""
        for cell in self.guards.pop(id(scope), ()):
            self.forget(cell)

    def forget_globals(self) -> None:
        """What a function that nobody knows may have changed of the file's variables."""
        for cell in list(self._globals.values()):
            self.forget(cell)

    def arrive(self) -> None:
        """Keeps the names of the place that the run has come to."""
        self.there = [*self.frame.scopes]

    def _global(self, name: str) -> Cell | None:
        if name not in self._globals:
            type_ = self._declared(name)
            if type_ is None:
                return None
            self._globals[name] = Cell(self.initial(name, type_), type_)
        return self._globals[name]

    def _declared(self, name: str) -> Type | None:
        """The type of a variable of the file."""
        return next((found for unit in self.units if (found := unit.variables().get(name))), None)

    def class_of(self, type_: Type | None) -> tuple[Unit, HostClass] | None:
        """The class that a type, or what it points to, is; None where several have its name."""
        name = type_.name.partition("<")[0].split("::")[-1].strip() if type_ is not None else ""
        if name not in self._classes:
            known = [(unit, unit.classes.named[name]) for unit in self.units if name in unit.classes.named]
            alone = len(known) == 1 and known[0][0].is_alone(known[0][1])
            self._classes[name] = known[0] if alone else None
        return self._classes[name]

    def bindings(self, unit: Unit, owner: HostClass, type_: str) -> dict[str, Type]:
        """What the parameters of a class template stand for in one of its types."""
        written = whole_arguments(type_.partition("<")[2].rpartition(">")[0])
        found: dict[str, Type] = {}
        for position, name in enumerate(unit.parameters(owner)):
            made = Reader(written[position]).type() if position < len(written) else None
            found[name] = self.resolved(made) if made is not None else Type(f"{name}@{type_}")
        return found

    def functions(self, name: str, count: int, owner: HostClass | None) -> list[Known]:
        """The functions of a name that take so many arguments, of a class or of none."""
        every = [
            Known(unit, function, unit.classes.of(function))
            for unit in self.units
            for function in unit.functions.named(name)
            if function.takes(count)
        ]
        if owner is None:
            return [known for known in every if not known.function.member]
        of = self.class_of(Type(owner.name))
        for _, each in self.lineage(*of) if of is not None else ():
            own = [known for known in every if known.owner is not None and known.owner.name == each.name]
            if own:
                return own
        return []

    def methods(self, name: str, count: int) -> list[Known]:
        """The member functions of a name, of whatever class."""
        found = [
            Known(unit, function, owner)
            for unit in self.units
            for function in unit.functions.named(name)
            if function.member and function.takes(count)
            and (owner := unit.classes.of(function)) is not None
        ]  # fmt: skip
        return found if len({known.owner.name for known in found if known.owner is not None}) == 1 else []

    # -------------------------------------------------------------------------------------- types

    def resolved(self, type_: Type) -> Type:
        """A type as it is where a template's parameters are known."""
        known = self.frame.templates.get(type_.name)
        return type_ if known is None else evolve(known, pointers=known.pointers + type_.pointers)

    def size_of(self, type_: Type | None) -> Polynomial | None:
        """The bytes of a type."""
        if type_ is None:
            return None
        type_ = self.resolved(type_)
        if type_.pointers:
            return number(8)
        if type_.name == "void":
            return number(1)
        known = self.integer(f"sizeof({type_.name})")
        return number(known) if known is not None else {(f"sizeof({type_.name})",): 1}

    def is_whole(self, type_: Type) -> bool:
        """Whether numbers of a type are wide enough for sizes."""
        return not any(map(_NARROW.match, type_.name.split()))

    def initial(self, name: str, type_: Type | None) -> Value:
        """What a variable holds that nothing is known of, in words of its own."""
        type_ = self.resolved(type_) if type_ is not None else None
        if type_ is None or type_.name == "auto":
            return Nobody(name)
        known = self.class_of(type_)
        if type_.pointers == 1 and known is not None:
            return Address(Cell(Object(f"*{name}", type_.name), type_.pointee))
        if type_.pointers:
            return Place(name, {}, name, type_.pointee)
        if known is not None:
            return Object(name, type_.name)
        held = _OWNED.match(type_.name)
        if held is not None and self.class_of(Type(held[1])) is not None:
            return Address(Cell(Object(f"*{name}", held[1]), Type(held[1])))
        if is_built_in(type_.name) and self.is_whole(type_):
            return Size({(name,): 1})
        return Nobody(name)

    # ------------------------------------------------------------------------------------- writing

    def write(self, cell: Cell, value: Value) -> None:
        """Stores a value, as the variable's type takes it."""
        self.put(cell, self.converted(value, cell.type))

    def put(self, cell: Cell, value: Value) -> None:
        """Stores a value, and keeps in mind what was there."""
        self.changed.append((cell, cell.value))
        self.touched.append((cell, cell.value, value))
        cell.value = value
        at = self._places.get(id(cell))
        if at is not None:  # whatever else stands in the buffer may have been meant
            self._epochs[at.root] = self._epochs.get(at.root, 0) + 1
            self._pointed[self._key(at)] = cell

    def converted(self, value: Value, type_: Type | None) -> Value:
        """A value as a variable of a type holds it."""
        if type_ is None or type_.name == "auto":
            return value
        type_ = self.resolved(type_)
        if type_.pointers:
            if isinstance(value, Place):
                return evolve(value, type=type_.pointee)
            if isinstance(value, Nobody):
                return Place(value.name, {}, value.name, type_.pointee)
            if isinstance(value, Size):
                return self.initial(self.fresh("number"), type_) if value.value else None
        elif not self.is_whole(type_) and isinstance(value, Size | Nobody):
            return Nobody(self.fresh("narrow"))
        elif isinstance(value, Nobody) and is_built_in(type_.name):
            return Size({(value.name,): 1})
        elif isinstance(value, Object) and value.type and value.type != type_.name and not type_.reference:
            return Nobody(self.fresh("converted"))
        return value

    def undone(self, mark: int) -> dict[int, tuple[Cell, Value]]:
        """Takes back what was stored since; gives what was there last."""
        last = {id(cell): (cell, cell.value) for cell, _ in self.changed[mark:]}
        for cell, value in reversed(self.changed[mark:]):
            cell.value = value
        del self.changed[mark:]
        return last

    def unknown(self, cell: Cell, root: str | None = None) -> Value:
        """Something that nobody knows, of the variable's type; ``root``: the buffer that it is in."""
        name = self.fresh("unknown")
        if isinstance(cell.value, Place) and (cell.type is None or cell.type.pointers):
            return Place(name, {}, root or name, cell.value.type)
        if isinstance(cell.value, Size):
            return Size({(name,): 1})
        return self.initial(name, cell.type)

    def lend(self, cell: Cell) -> None:
        """A function that nobody knows gets a variable."""
        self.lent.append(cell)
        self.forget(cell)

    def forget(self, cell: Cell, done: set[int] | None = None) -> None:
        """Whatever may be reached through a variable is not known any more."""
        done = set() if done is None else done
        if id(cell) in done:
            return
        done.add(id(cell))
        value = cell.value
        if isinstance(value, Object):
            value.name, value.root, value.begun = self.fresh(value.name), None, True
            for inner in list(value.fields.values()):
                self.forget(inner, done)
        elif isinstance(value, Address):
            self.forget(value.cell, done)
        elif isinstance(value, Lambda):
            return
        elif value is not None or cell.type is not None:
            self.put(cell, self.unknown(cell, value.root if isinstance(value, Place) else None))

    def joined(self, one: Value, other: Value) -> Value:
        """What is one or the other."""
        if alike(one, other):
            return one
        if None in (one, other) and isinstance(one or other, Place):
            return one or other  # what is not there is not used
        name = self.fresh("either")
        if isinstance(one, Place) and isinstance(other, Place):
            root = one.root if one.root == other.root else name
            return Place(name, {}, root, one.type)
        if isinstance(one, Size) and isinstance(other, Size):
            return Size({(name,): 1})
        if isinstance(one, Object) and isinstance(other, Object) and one.type == other.type:
            return Object(name, one.type)
        return Nobody(name)

    # ------------------------------------------------------------------------------------- reaching

    def field(self, of: Cell, name: str) -> Cell:
        """The field of a record. Raises NotUnderstood."""
        value = of.value
        if isinstance(value, Address):
            return self.field(value.cell, name)
        if isinstance(value, Nobody):
            value = of.value = Object(value.name, "")
        if isinstance(value, Place):
            return self.field(self.pointed(value), name)
        if not isinstance(value, Object):
            raise NotUnderstood(name)
        if name not in value.fields:
            known = self.class_of(Type(value.type))
            types = [unit.field_types(each) for unit, each in self.lineage(*known)] if known else []
            type_ = next((types_[name] for types_ in types if name in types_), None)
            if known is not None and type_ is not None:
                bound = self.bindings(*known, value.type).get(type_.name)
                type_ = type_ if bound is None else evolve(bound, pointers=bound.pointers + type_.pointers)
            value.fields[name] = Cell(self.initial(f"{value.name}.{name}", type_), type_)
        return value.fields[name]

    def pointed(self, place: Place) -> Cell:
        """What stands at a place of memory."""
        if place.type is not None and not place.type.pointers and not self.is_whole(place.type):
            return Cell(Nobody(self.fresh("data")))  # no size, and no pointer
        key = self._key(place)
        if key not in self._pointed:
            cell = self._pointed[key] = Cell(self.initial(f"*{key}", place.type), place.type)
            self._places[id(cell)] = place
        return self._pointed[key]

    def is_pointed(self, cell: Cell) -> bool:
        """Whether a variable is a place of memory that others may lead to, too."""
        return id(cell) in self._places

    def _key(self, place: Place) -> PlaceKey:
        return place.base, tuple(sorted(place.offset.items())), self._epochs.get(place.root, 0)
