"""Names of host code that hold one known value: what launch configurations and arguments are made of.

A name has the value of what reaches its use (``reaching``). A wrong constant could hide a bug, so whatever is
in doubt is "not constant". ``Given`` tells values besides: of parameters, as one caller passes them, of what
a branch has compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache

from cuda_lsp.frontend.host.called_macros import (
    Macro,
    by_its_name,
    called_macros,
    expanded,
    is_one_parenthesis,
)
from cuda_lsp.frontend.host.class_types import Alias, ClassTemplate, ClassTypes, instance
from cuda_lsp.frontend.host.constants import SIZES, Lookup, NotConstant, NotRead, evaluate, known_value
from cuda_lsp.frontend.host.definitions import (
    Definition,
    in_namespaces_only,
    is_in_class,
    is_integer,
    scope_begin,
    scope_of,
    with_integers,
)
from cuda_lsp.frontend.host.host_functions import HostFunction
from cuda_lsp.frontend.host.host_run import Budget, left, returned, returned_axes, state_at
from cuda_lsp.frontend.host.known_values import (
    NOTHING_GIVEN,
    UNKNOWN,
    Given,
    Key,
    all_known,
    size_of,
    sized_type,
)
from cuda_lsp.frontend.host.reaching import Reaching
from cuda_lsp.frontend.host.run_values import Axes, State, Unknown, Value
from cuda_lsp.frontend.host.tables import Tables
from cuda_lsp.frontend.host.text import HostText, split_arguments
from cuda_lsp.model import MAX_BLOCK_THREADS, WARP_SIZE, Dim3, Extents

_DEFINE = re.compile(r"^[ \t]?#[ \t]?define[ \t](\w+)[ \t]([^\n]{1,120})$", re.M)
_DIM3_CALL = re.compile(r"\A(?:dim3\s?[({]|make_u?int3\s?\(|\{)(.*)[)}]\Z", re.S)
_RETURNS = re.compile(r"\A\{\s?return\s?([^;{}]{1,200});\s?\}\Z")
_WHOLE_CALL = re.compile(r"\A(?:\w{1,80}::){0,6}(\w{1,80})\s?\((.*)\)\Z", re.S)
_ARITHMETIC = re.compile(r"[\w)]\s?[-+*/]\s?[\w(]")
_TAKES = re.compile(r"\b([A-Za-z_]\w*)\s?(?:<[\w\s,:]*>)?\s?\(")
_READ_ONLY = frozenset({"if", "while", "for", "switch", "return", "sizeof", "dim3", "min", "max"})
_CONSTANT = re.compile(r"\b(?:constexpr|const)\b")
_OF_DEVICES = {"warpSize": WARP_SIZE, "maxThreadsPerBlock": MAX_BLOCK_THREADS}  # of ``cudaDeviceProp``
_DEPTH = 12  # definitions followed
_MOST_WORK = 4_000_000  # characters of definitions read for one file: each level may multiply names


Members = Callable[[str, str, int], tuple[str, int] | None]
"""Of a variable, a field and a place: what the field holds there as text, and where that is read."""


def _no_members(variable: str, field: str, at: int) -> None:
    del variable, field, at


def _macros_of(text: HostText) -> dict[str, set[str]]:
    """What the text says that names stand for."""
    found: dict[str, set[str]] = {}
    for match in _DEFINE.finditer(text.plain):
        found.setdefault(match[1], set()).add(match[2].strip())
    return found


def _called_macros_of(text: HostText) -> dict[str, set[Macro]]:
    return called_macros(text.plain)


class HostConstants(Reaching):
    """Constants of one file, what the preprocessor leaves out being blank.

    ``headers``: the constants of files that it includes, for names that it does not define itself.
    ``doubtful``: stretches of the text that the preprocessor may leave out.
    """

    def __init__(
        self, text: HostText, headers: Sequence[HostConstants] = (), doubtful: Sequence[tuple[int, int]] = ()
    ) -> None:
        super().__init__(text, headers, doubtful)
        self._headers = headers
        self._missed: set[Key] = set()
        self._values: dict[tuple[str, int], tuple[int | None, int]] = {}  # here, and how deep it was sought
        self._work = 0
        self._state: State | None = None  # of the run that is under way
        self._states: dict[int, State | None] = {}  # by place, on this way; None: it is not come by
        self._running: set[int] = set()  # bodies of functions
        self._fields: dict[str, Sequence[tuple[HostConstants, Definition]]] = {}  # of classes, by name
        self.budget = Budget()
        self.members: Members = _no_members
        self.tables = text.kept(Tables)
        self.types = text.kept(ClassTypes)
        self._definitions = with_integers(self._definitions, cache(self._is_integer_type))
        self._macros = text.kept(_macros_of)
        self._called = text.kept(_called_macros_of)

    # ---------------------------------------------------------------------------------- what is asked

    def integer(self, text: str, before: int, given: Given = NOTHING_GIVEN) -> int | None:
        """The value of an expression at a position; None: not constant."""
        with self.knowing(given):
            return self._integer(text, before, _DEPTH)

    def extents(self, text: str, before: int, given: Given = NOTHING_GIVEN) -> Dim3 | None:
        """A launch extent, all axes known: an integer, ``dim3(…)``, ``{…}`` or a dim3 variable."""
        return all_known(self.known_extents(text, before, given))

    def known_extents(self, text: str, before: int, given: Given = NOTHING_GIVEN) -> Extents:
        """``extents`` by axis, None where an axis is not constant."""
        with self.knowing(given):
            return self._extents(text, before, _DEPTH)

    def missing(self, text: str, before: int, given: Given = NOTHING_GIVEN) -> frozenset[Key]:
        """What an extent, or an integer, hangs on that is not known."""
        with self.knowing(given), self._on_a_way(self._given):
            self._missed = set()
            self._extents(text, before, _DEPTH)
            return frozenset(self._missed)

    def extents_given(self, text: str, before: int, given: Mapping[str, int]) -> Dim3 | None:
        """``extents`` where some names (template parameters of the host function) have these values."""
        keys = {name: self.key(name, before) for name in given}
        known = Given({key: given[name] for name, key in keys.items() if key is not None})
        return self.extents(text, before, known)

    def has_extents(self, member: str) -> bool:
        """Whether some class that is read has a ``dim3`` of this name."""
        declared = re.compile(
            rf"\b(?:dim3|u?int3)\s(?:\w{{1,80}}\s?,\s?){{0,8}}{re.escape(member)}\s?[;,={{]"
        )
        return any(declared.search(file._plain) for file in (self, *self._headers))

    @contextmanager
    def knowing(self, given: Given) -> Generator[None]:
        """What is asked inside without anything else given is asked on this way."""
        if given == NOTHING_GIVEN:
            yield
            return
        work, self._work = self._work, 0
        try:
            with self._on_a_way(given):
                yield
        finally:
            self._work = work

    @contextmanager
    def _on_a_way(self, given: Given) -> Generator[None]:
        outer = self._given, self._values, self._state, self._states
        self._given, self._values, self._state, self._states = given, {}, None, {}
        try:
            yield
        finally:
            self._given, self._values, self._state, self._states = outer

    # ------------------------------------------------------------------------------------ integers

    def _integer(self, text: str, before: int, depth: int) -> int | None:
        known, sought = self._values.get((text, before), (None, -1))
        if known is not None or sought >= depth:
            return known
        missed = frozenset(self._missed)
        try:
            value = self._evaluated(text, before, depth)
        except NotRead:  # whatever is given for the names in it
            self._missed &= missed
            value = None
        except (NotConstant, ValueError, RecursionError):
            value = None
        self._values[text, before] = value, depth
        return value

    def _evaluated(self, text: str, before: int, depth: int) -> int:
        self._work += len(text)
        if self._work > _MOST_WORK or not depth:
            raise NotConstant(text)
        lookup: Lookup = lambda name: self._lookup(name, before, depth - 1)  # noqa: E731
        return evaluate(text, lookup, lambda name, values: self._returned(name, values, before, depth - 1))

    def _lookup(self, name: str, before: int, depth: int) -> int:
        if "." in name:
            variable, _, axis = (part.strip() for part in name.partition("."))
            if axis not in ("x", "y", "z"):
                return self._member(variable, axis, before, depth)
            return known_value(self._axis(variable, axis, before, depth), name)
        macros = self._macros.get(name)
        if macros:
            if len(macros) > 1:  # which one holds is the preprocessor's business
                raise NotConstant(name)
            return self._evaluated(next(iter(macros)), before, depth)
        if "::" in name:
            return self._in_scope(name, before, depth)
        visible = self._visible(name, before)
        fields = self._fields_named(name, before) if visible is None or visible.text is None else ()
        if visible is None and fields:
            return self._of_this(name, before, fields, depth)
        if visible is None and not self._is_written(name):
            return self._from_headers(name, depth)
        held = self._held(name, before)
        value = self.reached(name, before) or self._counter(name, before) if held is None else None
        if value is None and held is None and fields and visible is fields[0][1]:
            return self._of_this(name, before, fields, depth)
        if value is None:
            return self._known(self._by_running(name, before) if held is None else held, name)
        given = self._given.values.get((name, value.position))
        if isinstance(given, int):
            return given
        found = None if value.text is None else self._integer(value.text, value.position, depth)
        if found is None:
            self._missed.add((name, value.position))
        return known_value(found, name)

    def _fields_named(self, name: str, before: int) -> Sequence[tuple[HostConstants, Definition]]:
        """Where classes declare an integer that a member function names; none where it has written to it."""
        function = self.functions.around(before)
        if function is None or not function.member or self.writes({name}, function.body, before):
            return ()
        if name not in self._fields:
            files = [file for file in (self, *self._headers) if name in file._definitions]
            every = [(file, definition) for file in files for definition in file._definitions[name].all]
            fields = [(file, each) for file, each in every if is_in_class(file.text, each.position)]
            self._fields[name] = fields if all(each.scalar for _, each in fields) else ()
        return self._fields[name]

    def _of_this(
        self, name: str, before: int, fields: Sequence[tuple[HostConstants, Definition]], depth: int
    ) -> int:
        """A field of the object that a member function is called for: a constant, or unknown unless given."""
        function, (file, definition) = self.functions.around(before), fields[0]
        if definition.text is not None and len(fields) == 1 and _CONSTANT.search(file.words_of(definition)):
            return file._evaluated(definition.text, definition.position, depth)
        if function is None or any(each.text is not None for _, each in fields):
            raise NotConstant(name)
        given = self._given.values.get((name, function.body))
        if not isinstance(given, int):
            self._missed.add((name, function.body))
            raise NotConstant(name)
        return given

    def _is_written(self, name: str) -> bool:
        """Whether the file writes to a variable of that name that others define."""
        return any(self._visible(name, write.position + 1) is None for write in self._writes.get(name, ()))

    def _member(self, variable: str, member: str, before: int, depth: int) -> int:
        """``p.n`` of an object: what it was made of, or, where nothing writes to it, unknown unless given."""
        made = self.members(variable, member, before)
        if made is not None:
            return known_value(self._integer(*made, depth), f"{variable}.{member}")
        if member in _OF_DEVICES and not self.writes_member(variable, member, before):
            return _OF_DEVICES[member]
        value = self.reached(variable, before)
        if value is None or self.writes_member(variable, member, before):
            raise NotConstant(variable)
        key = (f"{variable}.{member}", value.position)
        given = self._given.values.get(key)
        if not isinstance(given, int):
            self._missed.add(key)
            raise NotConstant(variable)
        return given

    def _from_headers(self, name: str, depth: int) -> int:
        """A name that only included files define, with one value for all that do."""
        values: set[int] = set()
        for header in self._headers:
            header._work = self._work
            try:
                values |= header._exported(name, depth)
            finally:
                self._work = header._work
        if len(values) != 1:
            raise NotConstant(name)
        return values.pop()

    def _exported(self, name: str, depth: int) -> set[int]:
        """The values of a name outside of functions and classes. Raises NotConstant if one is not known."""
        if name in self._macros:
            return {self._lookup(name, len(self._plain), depth)}
        known = self._definitions.get(name)
        if known is None:
            return set()
        if known.visible(len(self._plain)) is not None:
            return {self._lookup(name, len(self._plain), depth)}
        return {
            self._lookup(name, definition.end, depth)
            for definition in known.all
            if definition.text is not None and in_namespaces_only(self.text, definition.position)
        }

    def _in_scope(self, qualified: str, before: int, depth: int) -> int:
        """``Scope::name``: of the only definition there, or else of the only one of this name."""
        scope, _, name = (part.strip() for part in qualified.rpartition("::"))
        if "<" in scope or self._stands_for(scope):
            return self._of_instance(scope, name, before, depth)
        every = [
            (file, definition)
            for file in (self, *self._headers)
            if name in file._definitions
            for definition in file._definitions[name].all
            if definition.text is not None
        ]
        scopes = [f"::{scope_of(file.text, definition.position)}" for file, definition in every]
        there = [each for each, own in zip(every, scopes, strict=True) if own == f"::{scope}"]
        ending = [each for each, own in zip(every, scopes, strict=True) if own.endswith(f"::{scope}")]
        found = there or ending or every
        if len(found) != 1:
            raise NotConstant(name)
        file, definition = found[0]
        if file._others(name, definition) != []:
            raise NotConstant(name)
        return file._evaluated(definition.text or "", definition.position, depth)

    def _stands_for(self, name: str) -> Sequence[tuple[HostConstants, Alias]]:
        """What the files say that a name of a type stands for."""
        return [(file, alias) for file in (self, *self._headers) for alias in file.types.aliases(name)]

    def _is_integer_type(self, name: str, depth: int = _DEPTH) -> bool:
        """Whether all that a name stands for are integers, whichever of them the build chooses."""
        known = self._stands_for(name) if depth else ()
        return bool(known) and all(
            is_integer(alias.target) or file._is_integer_type(alias.target, depth - 1)
            for file, alias in known
        )

    def _of_instance(self, type: str, name: str, before: int, depth: int) -> int:
        """``Type::name`` of what is, or stands for, an instance of a class template. Raises NotConstant."""
        made = instance(type)
        known = self._stands_for(type)
        if made is None or not depth or len({alias.target for _, alias in known}) > 1:
            raise NotConstant(type)
        if known:
            file, alias = known[0]
            return file._of_instance(alias.target, name, alias.position, depth - 1)
        template, arguments = made[0].rpartition("::")[2], made[1]
        files = (self, *self._headers)
        classes = [(file, found) for file in files for found in file.types.classes(template)]
        if len(classes) != 1 or classes[0][1].special:
            raise NotConstant(type)
        file, of = classes[0]
        given = self._given_to(file, of, arguments, before, depth)
        for definition in file._definitions[name].all if name in file._definitions else ():
            inside = definition.text is not None and scope_begin(file.text, definition.position) == of.body
            if inside and file._others(name, definition) == []:
                with file._on_a_way(given):
                    return file._evaluated(definition.text or "", definition.position, depth - 1)
        raise NotConstant(name)

    def _given_to(
        self, file: HostConstants, of: ClassTemplate, arguments: Sequence[str], before: int, depth: int
    ) -> Given:
        """What is known of a class template's parameters for these arguments."""
        told: dict[Key, int | Extents] = {}
        for parameter, argument in zip(of.parameters, arguments, strict=False):
            size = self._integer(f"sizeof({argument})", before, depth - 1)
            key = file.declared(parameter, of.body + 1)
            value = self._integer(argument, before, depth - 1) if key is not None else None
            told |= {(size_of(parameter), of.body): size} if size is not None else {}
            told |= {key: value} if key is not None and value is not None else {}
        return Given(told)

    def _of_table(self, name: str, values: Sequence[int | None], before: int, depth: int) -> int:
        """``sizes[1]``, ``sizeof sizes`` or ``sizeof sizes[0]``."""
        name, bracket, _ = (sized_type(name) or name).partition("[")
        table, index = self.tables.visible(name, before), values[0] if values else 0
        if table is None and not values:
            return self._size_of_parameter(name, before, depth)
        if table is None or index is None or not 0 <= index < len(table.elements):
            raise NotConstant(name)
        if values:
            return self._evaluated(table.elements[index], table.position, depth)
        return SIZES[table.type] * (1 if bracket else len(table.elements))

    def _size_of_parameter(self, name: str, before: int, depth: int) -> int:
        """``sizeof(T)`` in a template: unknown unless given; of a name for a type that of the type."""
        function = self.functions.around(before)
        around = self._braces.begin(before)
        of_class = (size_of(name), around)
        if function is None or name not in function.template:
            if of_class not in self._given.values:
                return self._size_of_alias(name, depth)
            key = of_class
        else:
            key = (size_of(name), function.begin)
        given = self._given.values.get(key)
        if not isinstance(given, int):
            self._missed.add(key)
            raise NotConstant(name)
        return given

    def _size_of_alias(self, name: str, depth: int) -> int:
        """``sizeof`` of a name that stands for one type. Raises NotConstant."""
        known = self._stands_for(name)
        if not depth or len({alias.target for _, alias in known}) != 1:
            raise NotConstant(name)
        file, alias = known[0]
        return known_value(file._integer(f"sizeof({alias.target})", alias.position, depth - 1), name)

    def _returned(self, name: str, values: Sequence[int | None], before: int, depth: int) -> int:
        """What a call gives of a function that has one body, and that is one ``return``, or of a macro."""
        if name.endswith("[]") or name.startswith("sizeof"):
            return self._of_table(name, values, before, depth)
        name, _, typed = name.partition("<")
        name = name.rpartition("::")[2]
        macros = [(f, macro) for f in (self, *self._headers) for macro in f._called.get(name, ())]
        if len({macro for _, macro in macros}) == 1:
            file, macro = macros[0]
            if not depth:
                raise NotConstant(name)
            return expanded(
                macro,
                values,
                lambda name: file._lookup(name, len(file._plain), depth - 1),
                lambda name, values: file._returned(name, values, 0, depth - 1),
            )
        if not macros and not any(any(f.functions.named(name)) for f in (self, *self._headers)):
            return by_its_name(name, values)
        file, function = self._one_function(name, len(values))
        left_out = function.parameters[len(values) :]
        values = [*values, *(file._integer(text, function.opening, depth - 1) for _, text in left_out)]
        body = _RETURNS.match(file._plain[function.body : function.end + 1])
        named = zip((name for name, _ in function.parameters), values, strict=True)
        keys = {file.declared(parameter, function.body + 1): value for parameter, value in named}
        told = {key: value for key, value in keys.items() if key is not None and value is not None}
        for parameter, type in zip(function.template, typed.removesuffix(">").split(","), strict=False):
            size = self._integer(f"sizeof({type})", before, depth)
            told |= {(size_of(parameter), function.begin): size} if size is not None else {}
            number, key = self._integer(type, before, depth), file.declared(parameter, function.body + 1)
            told |= {key: number} if key is not None and number is not None else {}
        with file._on_a_way(Given(told)):
            if body is not None:
                return file._evaluated(body[1], function.body + 1, depth)
            with suppress(NotConstant, RecursionError), file._runs(function):
                value = returned(file, function, file._given)
                if isinstance(value, int):
                    return value
        return by_its_name(name, values)

    # ----------------------------------------------------------------------------------- running

    def number(self, text: str, place: int, state: State) -> int | Unknown:
        """The value of an expression where names hold what ``state`` says."""
        with self._in(state):
            value = self._integer(text, place, _DEPTH)
            return Unknown(frozenset(self._missed)) if value is None else value

    def axes(self, text: str, place: int, state: State) -> Axes:
        """The extents that an expression makes where names hold what ``state`` says."""
        with self._in(state):
            extents = self._extents(text, place, _DEPTH)
            unknown = Unknown(frozenset(self._missed))
        x, y, z = (unknown if axis is None else axis for axis in extents)
        return x, y, z

    def left_by(self, name: str, values: Sequence[Value]) -> Mapping[int, Value]:
        """What a function leaves in variables that it is given by reference, by position; none: not known."""
        found = [(f, function) for f in (self, *self._headers) for function in f.functions.named(name)]
        if len({f._plain[function.begin : function.end] for f, function in found}) != 1:
            return {}
        file, function = found[0]
        if not function.references or len(function.parameters) != len(values):
            return {}
        told: dict[Key, int | Extents] = {}
        for (parameter, _), value in zip(function.parameters, values, strict=True):
            key = file.declared(parameter, function.body + 1)
            if key is not None and isinstance(value, int):
                told[key] = value
            elif key is not None and isinstance(value, tuple):
                x, y, z = (axis if isinstance(axis, int) else None for axis in value)
                told[key] = (x, y, z)
        with suppress(NotConstant, RecursionError), file._on_a_way(Given(told)), file._runs(function):
            found_there = left(file, function, file._given)
            return {i: value for i, value in found_there.items() if not self._is_handed_on(i, file, function)}
        return {}

    def _is_handed_on(self, position: int, file: HostConstants, function: HostFunction) -> bool:
        """Whether the function hands a parameter to others that nobody can read, which may write to it."""
        name, files = function.parameters[position][0], (self, *self._headers)
        for call in _TAKES.finditer(file._plain, function.body, function.end):
            if call[1] in _READ_ONLY or any(any(f.functions.named(call[1])) for f in files):
                continue
            closing = file.text.closing(call.end() - 1)
            arguments = split_arguments(file._plain[call.end() : closing]) if closing > 0 else [name]
            if any(argument.strip() == name for argument in arguments):
                return True
        return False

    @contextmanager
    def _in(self, state: State) -> Generator[None]:
        outer = self._state, self._values, self._missed
        self._state, self._values, self._missed = state, {}, set()
        try:
            yield
        finally:
            self._state, self._values, self._missed = outer

    def _held(self, name: str, before: int) -> Value | None:
        """What a run that is under way has left in a name; None: nothing, or there is no run."""
        definition = self._visible(name, before) if self._state is not None else None
        return (self._state or {}).get((name, definition.position)) if definition is not None else None

    def _by_running(self, name: str, before: int) -> Value:
        """What the function around leaves in a name. Raises NotConstant."""
        function, definition = self.functions.around(before), self.visible(name, before)
        if self._state is not None or function is None or definition is None:
            raise NotConstant(name)
        if before not in self._states:
            with self._runs(function):
                self._states[before] = None
                with suppress(NotConstant, RecursionError):
                    self._states[before] = state_at(self, function, before, self._given)
        value = (self._states[before] or {}).get((name, definition.position))
        if value is None:
            raise NotConstant(name)
        return value

    def _known(self, value: Value, name: str) -> int:
        """What a run has left, as a number. Raises NotConstant."""
        number = value[0] if isinstance(value, tuple) and value[1:] == (1, 1) else value
        if isinstance(number, Unknown):
            self._missed |= number.keys
        if not isinstance(number, int):
            raise NotConstant(name)
        return number

    @contextmanager
    def _runs(self, function: HostFunction) -> Generator[None]:
        """While a function is run. Raises NotConstant where that would have no end."""
        self._work += function.end - function.body
        if function.body in self._running or self._work > _MOST_WORK:
            raise NotConstant(function.name)
        self._running.add(function.body)
        try:
            yield
        finally:
            self._running.discard(function.body)

    # ------------------------------------------------------------------------------------- extents

    def _extents(self, text: str, before: int, depth: int) -> Extents:
        text = text.strip()
        while is_one_parenthesis(text):
            text = text[1:-1].strip()
        made = _DIM3_CALL.match(text)
        if made:
            return self._components(made[1], before, depth)
        if text.isidentifier() and text not in self._macros:
            return self._named(text, before, depth)
        value = _extent(self._integer(text, before, depth))
        if value is None and depth:
            with suppress(NotConstant, RecursionError):
                return self._extents_of_call(text, before, depth - 1)
        flat = value is not None or _ARITHMETIC.search(text) is not None  # dim3 has no arithmetic
        return (value, 1, 1) if flat else UNKNOWN

    def _extents_of_call(self, text: str, before: int, depth: int) -> Extents:
        """Those that a function with one body returns: of ``dim3 g(blocks(n)); return g;`` two are known.

        Raises NotConstant.
        """
        call = _WHOLE_CALL.match(text)
        if call is None or not is_one_parenthesis(text[call.start(2) - 1 :]):
            raise NotConstant(text)
        arguments = split_arguments(call[2]) if call[2].strip() else []
        file, function = self._one_function(call[1], len(arguments))
        told: dict[Key, int | Extents] = {}
        for (parameter, _), argument in zip(function.parameters, arguments, strict=False):
            key, is_dim = file.declared(parameter, function.body + 1), self.is_dim(argument.strip(), before)
            told_here = (self._extents if is_dim else self._integer)(argument, before, depth)
            if key is not None and told_here is not None:
                told[key] = told_here
        with file._on_a_way(Given(told)), file._runs(function):
            made = returned_axes(file, function, file._given)
        x, y, z = (_extent(axis) if isinstance(axis, int) else None for axis in made)
        return x, y, z

    def _one_function(self, name: str, count: int) -> tuple[HostConstants, HostFunction]:
        """The one that takes so many arguments, and where it is. Raises NotConstant."""
        found = [(f, function) for f in (self, *self._headers) for function in f.functions.named(name)]
        found = [(f, function) for f, function in found if function.takes(count)]
        # a unit that is read from one of its headers is among what is around it, too
        if len({f._plain[function.begin : function.end] for f, function in found}) != 1:
            raise NotConstant(name)
        return found[0]

    def _named(self, name: str, before: int, depth: int) -> Extents:
        definition = self._visible(name, before)
        if depth and definition is not None and not definition.scalar:
            x, y, z = (self._axis(name, axis, before, depth - 1) for axis in "xyz")
            return (x, y, z)
        value = _extent(self._integer(name, before, depth))
        if value is not None or definition is not None:
            return (value, 1, 1)
        found = {
            h._named(name, len(h._plain), depth - 1)
            for h in self._headers
            if name in h._definitions and depth
        }
        return found.pop() if len(found) == 1 else UNKNOWN

    def _axis(self, name: str, axis: str, before: int, depth: int) -> int | None:
        """``block.x`` of a dim3 variable."""
        index = "xyz".index(axis)
        held = self._held(name, before)
        value = self.reached(name, before, axis) if depth and held is None else None
        if value is None:
            with suppress(NotConstant):
                return self._axis_of(self._by_running(name, before) if held is None else held, index)
            return None
        given = self._given.values.get((name, value.position))
        if given is not None:
            return (given if not isinstance(given, int) else (given, 1, 1))[index]
        if value.text is None:
            self._missed.add((name, value.position))
            return None
        if self.is_component(name, value.position):
            return _extent(self._integer(value.text, value.position, depth - 1))
        found = self._extents(value.text, value.position, depth - 1)[index]
        if found is None:
            self._missed.add((name, value.position))
        return found

    def _axis_of(self, value: Value, index: int) -> int | None:
        alone = value if isinstance(value, Unknown) else 1
        axis = value[index] if isinstance(value, tuple) else (value, alone, alone)[index]
        if isinstance(axis, Unknown):
            self._missed |= axis.keys
            return None
        return _extent(axis)

    def is_dim(self, text: str, before: int) -> bool:
        """Whether it is a dim3, as one argument of another may be."""
        definition = self._visible(text, before)
        return text.startswith("dim3") or (definition is not None and not definition.scalar)

    def _components(self, text: str, before: int, depth: int) -> Extents:
        parts = split_arguments(text)
        if len(parts) > 3:
            return UNKNOWN
        if len(parts) == 1 and self.is_dim(parts[0].strip(), before):
            return self._extents(parts[0], before, depth)
        values = [_extent(self._integer(part, before, depth)) for part in parts]
        x, y, z = [*values, 1, 1, 1][:3]
        return (x, y, z)


def _extent(value: int | None) -> int | None:
    """None: unknown, or no extent."""
    return value if value is not None and value > 0 else None
