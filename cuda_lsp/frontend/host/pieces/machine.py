"""The variables of a run of host code: what they hold, where names are found, and what was changed since when."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import define, evolve, field, frozen

from cuda_lsp.frontend.host.host_classes import HostClass, HostClasses
from cuda_lsp.frontend.host.host_functions import HostFunction, HostFunctions
from cuda_lsp.frontend.host.pieces.syntax import NotRead, Reader, Type, is_built_in
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
from cuda_lsp.frontend.host.text import HostText, split_arguments

_NESTED = re.compile(r"\{[^{}]*\}|\([^()]*\)")
_ACCESS = re.compile(r"\b(?:public|private|protected)\s?:(?!:)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_DECLARED = r"(?<![\w.>])((?:const\s|static\s|unsigned\s)*[A-Za-z_][\w:]*(?:<[^<>;{{}}]{{0,100}}>)?(?:\sconst)?[\s*&]+){name}\s?[;=,\[{{]"
_NARROW = re.compile(r"\A(?:u?char|bool|u?short|u?int(?:8|16)_t|float|double|half|__half|byte)\Z")
_MOST_STATEMENTS = 3000


class NotUnderstood(Exception):
    """What stands there is not followed: all that it names may have changed."""


@define(eq=False)
class Unit:
    """A text, and what it defines."""

    text: HostText
    functions: HostFunctions
    classes: HostClasses
    _types: dict[str, Mapping[str, Type]] = field(factory=dict[str, Mapping[str, Type]])

    def field_types(self, owner: HostClass) -> Mapping[str, Type]:
        """The fields of a class, and their types."""
        if owner.name not in self._types:
            self._types[owner.name] = dict(self._fields(owner))
        return self._types[owner.name]

    def defaults(self, owner: HostClass) -> Iterator[tuple[str, str]]:
        """The fields that a class gives values, ``int n = 0;``, and these."""
        for piece in self._pieces(owner):
            name, equals, value = piece.partition("=")
            words = _WORD.findall(name)
            if equals and words and "," not in name and "static" not in words:
                yield words[-1], value.strip()

    def _fields(self, owner: HostClass) -> Iterator[tuple[str, Type]]:
        for piece in self._pieces(owner):
            first, *others = split_arguments(piece)
            reader = Reader(first)
            type_ = reader.type()
            if type_ is None or not _WORD.match(reader.here()):
                continue
            yield reader.here(), type_
            for other in others:
                words = _WORD.findall(other.partition("=")[0])
                if words:
                    yield words[0], evolve(type_, pointers=other.partition("=")[0].count("*"))

    def _pieces(self, owner: HostClass) -> Iterator[str]:
        inside = _ACCESS.sub(" ", self.text.plain[owner.begin + 1 : owner.end])
        while (less := _NESTED.sub(lambda m: ";" if m[0][0] == "{" else "\0", inside)) != inside:
            inside = less
        for piece in inside.split(";"):
            if piece.strip() and "\0" not in piece.partition("=")[0]:
                yield piece.strip()


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
        self.touched: list[tuple[Cell, Value, Value]] = []
        self._globals: dict[str, Cell] = {}
        self._pointed: dict[tuple[str, tuple[tuple[tuple[str, ...], int], ...]], Cell] = {}
        self._roots: dict[int, str] = {}
        self._epochs: dict[str, int] = {}
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
        if this is not None and owner is not None and name in owner.fields:
            return self.field(this, name)
        return self._global(name)

    def is_buffer(self, root: str) -> bool:
        """Whether a buffer is one of its own: a parameter's, or a fresh one."""
        return root in self.buffers or root in self.alignment

    def held_names(self) -> frozenset[str]:
        """Names of numbers that a variable has just now."""
        found: set[str] = set()
        done: set[int] = set()
        cells = [c for scope in self.frame.scopes for c in scope.values()]
        cells += [*self._globals.values(), *([self.frame.this] if self.frame.this is not None else ())]
        while cells:
            cell = cells.pop()
            value = cell.value
            if id(cell) in done:
                continue
            done.add(id(cell))
            if isinstance(value, Size) and len(value.value) == 1:
                ((names, factor),) = value.value.items()
                found |= set(names) if factor == 1 and len(names) == 1 else set()
            elif isinstance(value, Nobody):
                found.add(value.name)
            elif isinstance(value, Object):
                cells += value.fields.values()
            elif isinstance(value, Address):
                cells.append(value.cell)
        return frozenset(found)

    def declare_unknown(self, name: str) -> None:
        """Of a name that nobody has read a declaration of: it may have changed."""
        self._globals[name] = Cell(Nobody(self.fresh(name)))

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
        for unit in self.units:
            for match in re.compile(_DECLARED.format(name=re.escape(name))).finditer(unit.text.plain):
                if unit.functions.around(match.start()) is None:
                    found = Reader(match[1]).type()
                    if found is not None:
                        return found
        return None

    def class_of(self, type_: Type | None) -> tuple[Unit, HostClass] | None:
        """The class that a type, or what it points to, is."""
        for word in _WORD.findall(type_.name) if type_ is not None else ():
            for unit in self.units:
                if word in unit.classes.named:
                    return unit, unit.classes.named[word]
        return None

    def functions(self, name: str, count: int, owner: HostClass | None) -> list[Known]:
        """The functions of a name that take so many arguments, of a class or of none."""
        found: list[Known] = []
        for unit in self.units:
            for function in unit.functions.named(name):
                of = unit.classes.of(function)
                mine = of is not None and owner is not None and of.name == owner.name
                if function.takes(count) and (mine if owner is not None else not function.member):
                    found.append(Known(unit, function, of))
        return found

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
        return not _NARROW.match(type_.name)

    def initial(self, name: str, type_: Type | None) -> Value:
        """What a variable holds that nothing is known of, in words of its own."""
        type_ = self.resolved(type_) if type_ is not None else None
        if type_ is None or type_.name == "auto":
            return Nobody(name)
        known = self.class_of(type_)
        if type_.pointers == 1 and known is not None:
            return Address(Cell(Object(f"*{name}", known[1].name), type_.pointee))
        if type_.pointers:
            return Place(name, {}, name, type_.pointee)
        if known is not None and known[1].name == type_.name.split("<")[0].split("::")[-1]:
            return Object(name, known[1].name)
        if is_built_in(type_.name) and not _NARROW.match(type_.name):
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
        root = self._roots.get(id(cell))
        if root is not None:
            self._epochs[root] = self._epochs.get(root, 0) + 1
            for other in [c for c in self._pointed.values() if self._roots[id(c)] == root and c is not cell]:
                self.changed.append((other, other.value))
                self.touched.append((other, other.value, None))
                other.value = self.unknown(other)

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
        elif _NARROW.match(type_.name) and isinstance(value, Size | Nobody):
            return Nobody(self.fresh("narrow"))
        elif isinstance(value, Nobody) and is_built_in(type_.name):
            return Size({(value.name,): 1})
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

    def forget(self, cell: Cell, done: set[int] | None = None) -> None:
        """Whatever may be reached through a variable is not known any more."""
        done = set() if done is None else done
        if id(cell) in done:
            return
        done.add(id(cell))
        value = cell.value
        if isinstance(value, Object):
            value.name = self.fresh(value.name)
            for inner in list(value.fields.values()):
                self.forget(inner, done)
        elif isinstance(value, Address):
            self.forget(value.cell, done)
        elif isinstance(value, Lambda):
            return
        elif value is not None or cell.type is not None:
            self.put(cell, self.unknown(cell))

    def joined(self, one: Value, other: Value) -> Value:
        """What is one or the other."""
        if alike(one, other):
            return one
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
            type_ = known[0].field_types(known[1]).get(name) if known is not None else None
            value.fields[name] = Cell(self.initial(f"{value.name}.{name}", type_), type_)
        return value.fields[name]

    def pointed(self, place: Place) -> Cell:
        """What stands at a place of memory."""
        key = place.base, tuple(sorted(place.offset.items()))
        if key not in self._pointed:
            epoch = self._epochs.get(place.root, 0)
            name = f"*{place.base}[{key[1]}]#{epoch}"
            cell = self._pointed[key] = Cell(self.initial(name, place.type), place.type)
            self._roots[id(cell)] = place.root
        return self._pointed[key]


def declared_type(text: str) -> tuple[Type, str] | None:
    """The type and the name of a parameter; None: it is not read."""
    try:
        reader = Reader(text.partition("=")[0])
    except NotRead:
        return None
    type_ = reader.type()
    name = reader.here()
    if type_ is None or reader.here(1) not in ("", "[") or (name and not name.isidentifier()):
        return None
    return (evolve(type_, pointers=type_.pointers + 1) if reader.here(1) == "[" else type_), name
