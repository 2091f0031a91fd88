"""Classes of the project that a template's parameter may stand for: functors, policies, loaders.

``template <class F> kernel(F f, …)`` that calls ``f(a, b)`` compiles with no number. What its text does with
such a parameter (calls it with so many arguments, names members of it, passes it on to another template that
does) is compared with the classes that the unit declares. Of one that nothing is done with but to choose
among specialisations (``Apply<Op>::of(x)``), it is what these are for. A class that holds pointers, or is
passed some that it may write to, counts only where the kernel's own file names it: what one writes is its
own affair. Nor is what is called for what it does (``f(i, j);``) one that only computes something.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set

from attrs import define, field, frozen

from cuda_lsp.blanked import blanked
from cuda_lsp.frontend.host.text import whole_arguments
from cuda_lsp.frontend.libclang import RawCursor
from cuda_lsp.frontend.tree import Ast

# CXCursorKind numbers.
_STRUCT, _CLASS, _ENUM, _FIELD, _ENUM_CONSTANT, _PARAMETER = 2, 4, 5, 6, 7, 10
_METHOD, _NAMESPACE, _LINKAGE, _FUNCTION_TEMPLATE, _CLASS_TEMPLATE, _BASE = 21, 22, 23, 30, 31, 44
_TYPE_PARAMETER, _VALUE_PARAMETER, _TEMPLATE_PARAMETER = 27, 28, 29
_PARTIAL = 32
_RECORDS = frozenset({_STRUCT, _CLASS, _CLASS_TEMPLATE, _PARTIAL})
_FUNCTIONS = frozenset({_METHOD, _FUNCTION_TEMPLATE})
_TEMPLATES = frozenset({_FUNCTION_TEMPLATE, _CLASS_TEMPLATE})
_TEMPLATE_PARAMETERS = (_TYPE_PARAMETER, _VALUE_PARAMETER, _TEMPLATE_PARAMETER)
_POINTER, _REFERENCE = 101, 103  # CXTypeKind numbers
_TYPE_ARGUMENT = 1  # a CXTemplateArgumentKind number
_CALL = "operator()"
_SAY_NOTHING = frozenset({"type", "value", "value_type"})
"""Members that classes of all kinds have."""
_ANY = -1
_MOST_PASSED_ON = 3
_WINDOW = 200  # characters before a call that say whether it is a statement
MOST_CANDIDATES = 4


@frozen
class Wanted:
    """What a text asks of a type: ``members`` by name, numbers of arguments that objects are called with.

    ``acts``: it is called for what it does, as nobody looks at what it returns.
    """

    members: frozenset[str] = frozenset()
    calls: frozenset[int] = frozenset()
    acts: bool = False

    def __bool__(self) -> bool:
        return bool(self.members or self.calls)

    def __or__(self, other: Wanted) -> Wanted:
        acts = self.acts or other.acts
        return Wanted(self.members | other.members, self.calls | other.calls, acts)


@frozen
class Parameter:
    """A template's parameter: its name, ``number`` from 0; ``takes``: how many parameters it has itself."""

    name: str
    number: int
    takes: int = 0


@define(eq=False)
class _Class:
    """A class of the unit; ``calls``: numbers of arguments of its call operators."""

    cursor: RawCursor
    name: str
    members: set[str] = field(factory=set[str])
    calls: set[int] = field(factory=set[int])
    functions: list[RawCursor] = field(factory=list[RawCursor])
    fields: list[RawCursor] = field(factory=list[RawCursor])

    def has(self, wanted: Wanted) -> bool:
        called = all(number in self.calls or _ANY in self.calls for number in wanted.calls)
        return called and wanted.members <= self.members


class StandIns:
    """The classes and templates of one parse, found when they are asked for."""

    def __init__(self, ast: Ast, root: RawCursor, text: bytes) -> None:
        """``text``: of the file whose kernels are looked at."""
        self._ast = ast
        self._root = root
        self._own_text = text
        self._classes: dict[str, _Class] | None = None
        self._templates: dict[str, list[RawCursor]] = {}
        self._specialised: dict[str, list[RawCursor]] = {}  # class templates, by their names
        self._asked: dict[tuple[int, int], list[_Class]] = {}

    def of(
        self, template: RawCursor, parameter: Parameter, guess: Callable[[RawCursor], str]
    ) -> tuple[str, ...]:
        """Classes that ``parameter`` of the template may be, those of the kernel's file first.

        ``guess``: what stands for a parameter of theirs.
        """
        key = (template.data[0], parameter.number)
        if key not in self._asked:
            self._asked[key] = self._classes_for(template, parameter)
        spelled = (self._spelled(each, parameter, guess) for each in self._asked[key])
        found = [name for name in spelled if name is not None] or self._specialised_for(template, parameter)
        return tuple(found)[:MOST_CANDIDATES]

    def _specialised_for(self, template: RawCursor, parameter: Parameter) -> list[str]:
        """Classes that a template is specialised for to which the parameter is passed."""
        if parameter.takes:
            return []
        self._every()
        lib, found = self._ast.lib, dict[str, None]()
        for name, position, by_value in passed_on(blanked(self._text(template)), parameter, set()):
            for each in self._specialised.get(name, ()) if not by_value else ():
                count = lib.clang_Cursor_getNumTemplateArguments(each)
                kind = lib.clang_Cursor_getTemplateArgumentKind(each, position) if position < count else 0
                if kind != _TYPE_ARGUMENT:
                    continue
                type = lib.clang_Cursor_getTemplateArgumentType(each, position)
                if lib.clang_getTypeDeclaration(type).kind in (_STRUCT, _CLASS):
                    found[self._ast.string(lib.clang_getTypeSpelling(lib.clang_getCanonicalType(type)))] = (
                        None
                    )
        return list(found)

    def _classes_for(self, template: RawCursor, parameter: Parameter) -> list[_Class]:
        wanted = self._wanted(template, parameter, _MOST_PASSED_ON)
        fit = [each for each in self._every().values() if each.has(wanted)] if wanted else []
        fit = [each for each in fit if not wanted.acts or self._acts(each, wanted)]
        words = frozenset(re.findall(rb"[A-Za-z_]\w*", self._own_text)) if fit else frozenset[bytes]()
        here = [each for each in fit if each.name.rpartition("::")[2].encode() in words]
        return here + [each for each in fit if each not in here and self._only_computes(each, wanted)]

    # --------------------------------------------------------------------------------- what is wanted

    def _wanted(self, template: RawCursor, parameter: Parameter, steps: int) -> Wanted:
        text = blanked(self._text(template))
        objects = self._objects(template, parameter)
        objects |= set(re.findall(rf"\b{parameter.name}\s+(\w+)\s*[;({{=]", text))
        wanted = asked_of(text, parameter, objects)
        if steps and not wanted:
            for name, position, by_value in passed_on(text, parameter, objects):
                for other in self._named(name):
                    wanted |= self._wanted_by(other, position, by_value, steps - 1)
        return wanted

    def _wanted_by(self, template: RawCursor, position: int, by_value: bool, steps: int) -> Wanted:
        """What the template asks of the type at a place of its parameters, or of that of an argument."""
        own = parameters_of_template(self._ast, template)
        if by_value:
            known = self._type_of_argument(template, position, own)
        else:
            known = next((p for p in own if p.number == position), None)
        return self._wanted(template, known, steps) if known is not None else Wanted()

    def _type_of_argument(
        self, template: RawCursor, position: int, own: Sequence[Parameter]
    ) -> Parameter | None:
        arguments = [c for c in self._ast.children(template) if c.kind == _PARAMETER]
        if position >= len(arguments):
            return None
        words = re.findall(r"\w+", self._type(arguments[position]))
        return next((p for p in own if p.name in words), None)

    def _objects(self, template: RawCursor, parameter: Parameter) -> set[str]:
        """Parameters of the function that are of the type."""
        ast = self._ast
        taken = rf"(?:const\s+)?{re.escape(parameter.name)}(?:<.*>)?(?:\s+const)?(?:\s*[&*]+)?"
        every = [c for c in ast.children(template) if c.kind == _PARAMETER]
        return {ast.spelling(c) for c in every if re.fullmatch(taken, self._type(c))}

    def _type(self, cursor: RawCursor) -> str:
        lib = self._ast.lib
        return self._ast.string(lib.clang_getTypeSpelling(lib.clang_getCursorType(cursor)))

    def _text(self, cursor: RawCursor) -> str:
        ast = self._ast
        extent = ast.lib.clang_getCursorExtent(cursor)
        file, _, _, start = ast.place(ast.lib.clang_getRangeStart(extent))
        end = ast.place(ast.lib.clang_getRangeEnd(extent))[3]
        return ast.contents(file)[start:end].decode("utf-8", "replace") if file else ""

    # ----------------------------------------------------------------------------- what the unit declares

    def _every(self) -> dict[str, _Class]:
        """By their whole names; a template has what its specialisations have, too."""
        if self._classes is None:
            self._classes = {}
            self._walk(self._root, "")
        return self._classes

    def _named(self, name: str) -> list[RawCursor]:
        self._every()
        return self._templates.get(name, [])

    def _walk(self, cursor: RawCursor, scope: str) -> None:
        ast = self._ast
        for child in ast.children(cursor):
            kind, name = child.kind, ""
            if kind in _RECORDS or kind in _TEMPLATES or kind in (_NAMESPACE, _LINKAGE):
                if ast.is_provided(child):
                    continue
                name = ast.spelling(child)
            if kind == _LINKAGE:
                self._walk(child, scope)
            elif kind == _NAMESPACE:
                self._walk(child, f"{scope}{name}::" if name and "(" not in name else scope)
            elif kind in _TEMPLATES or kind in _RECORDS:
                if kind in _TEMPLATES:
                    self._templates.setdefault(name, []).append(child)
                elif ast.lib.clang_Cursor_getNumTemplateArguments(child) > 0:
                    self._specialised.setdefault(name, []).append(child)
                if kind in _RECORDS and name and "(" not in name:
                    self._record(child, f"{scope}{name}", nested=kind in (_STRUCT, _CLASS))

    def _record(self, cursor: RawCursor, name: str, *, nested: bool) -> None:
        assert self._classes is not None
        made = self._classes.get(name)
        if made is None or (made.cursor.kind != _CLASS_TEMPLATE and cursor.kind == _CLASS_TEMPLATE):
            made = self._classes[name] = _Class(cursor, name)
        self._take_members(made, cursor)
        if nested:
            self._walk(cursor, f"{name}::")

    def _take_members(self, made: _Class, cursor: RawCursor) -> None:
        ast = self._ast
        for child in ast.children(cursor):
            kind = child.kind
            if kind == _BASE:
                base = ast.lib.clang_getCursorReferenced(child)
                if base.kind in (_STRUCT, _CLASS):
                    self._take_members(made, base)
                continue
            name = ast.spelling(child) if kind not in _TEMPLATE_PARAMETERS else ""
            if name == _CALL and kind in _FUNCTIONS:
                made.calls |= self._arities(child)
            if kind in _FUNCTIONS:
                made.functions.append(child)
            elif kind == _FIELD:
                made.fields.append(child)
            elif kind == _ENUM:
                made.members |= {ast.spelling(c) for c in ast.children(child) if c.kind == _ENUM_CONSTANT}
            if name:
                made.members.add(name)

    def _arities(self, function: RawCursor) -> set[int]:
        arguments = [c for c in self._ast.children(function) if c.kind == _PARAMETER]
        texts = [self._text(c) for c in arguments]
        if any("..." in text for text in texts):
            return {_ANY}
        needed = sum("=" not in text for text in texts)
        return set(range(needed, len(texts) + 1))

    def _acts(self, each: _Class, wanted: Wanted) -> bool:
        """Whether it is called for what it does: it returns nothing, and may write somewhere."""
        calls = (f for f in each.functions if self._ast.spelling(f) == _CALL)
        returns = any(not self._type(f).startswith("void (") for f in calls)
        return not returns and not self._only_computes(each, wanted)

    def _only_computes(self, each: _Class, wanted: Wanted) -> bool:
        """Whether what is called of it can write to nothing but what it returns."""
        kinds = [self._kind(f) for f in each.fields]
        asked = {*wanted.members, *([_CALL] if wanted.calls else [])}
        called = [f for f in each.functions if self._ast.spelling(f) in asked]
        arguments = [c for f in called for c in self._ast.children(f) if c.kind == _PARAMETER]
        writes = (
            re.search(r"[*&]", text) and not re.match(r"const\b[^*&]*[&*](?!.*[*&])", text)
            for text in map(self._type, arguments)
        )
        return not {_POINTER, _REFERENCE} & set(kinds) and not any(writes)

    def _kind(self, cursor: RawCursor) -> int:
        lib = self._ast.lib
        kind: int = lib.clang_getCanonicalType(lib.clang_getCursorType(cursor)).kind
        return kind

    def _spelled(self, each: _Class, parameter: Parameter, guess: Callable[[RawCursor], str]) -> str | None:
        """The class as an argument for the parameter; None: it cannot be one."""
        is_template = each.cursor.kind == _CLASS_TEMPLATE
        own = [c for c in self._ast.children(each.cursor) if c.kind in _TEMPLATE_PARAMETERS]
        if parameter.takes:
            types = all(c.kind == _TYPE_PARAMETER and "..." not in self._text(c) for c in own)
            return each.name if is_template and types and len(own) == parameter.takes else None
        arguments: list[str] = []
        for taken in own:
            text = self._text(taken)
            if "=" in text or "..." in text:
                break
            if taken.kind == _TEMPLATE_PARAMETER:
                return None
            arguments.append(guess(taken))
        return f"{each.name}<{', '.join(arguments)}>" if is_template else each.name


def parameters_of_template(ast: Ast, template: RawCursor) -> tuple[Parameter, ...]:
    """Those of its parameters that are types or templates of types."""
    every = [c for c in ast.children(template) if c.kind in _TEMPLATE_PARAMETERS]
    return tuple(
        Parameter(ast.spelling(c), number, _taken_by(ast, c) if c.kind == _TEMPLATE_PARAMETER else 0)
        for number, c in enumerate(every)
        if c.kind != _VALUE_PARAMETER and ast.spelling(c)
    )


def _taken_by(ast: Ast, parameter: RawCursor) -> int:
    """How many types a template takes that is an argument itself."""
    return sum(c.kind in _TEMPLATE_PARAMETERS for c in ast.children(parameter))


def asked_of(text: str, parameter: Parameter, objects: Set[str]) -> Wanted:
    """What a text asks of the parameter and of ``objects`` of that type."""
    type = rf"\b{parameter.name}\b\s*" + (
        r"<[^<>;(){}]*(?:<[^<>;(){}]*>[^<>;(){}]*)*>\s*" if parameter.takes else ""
    )
    members = {m[1] for m in re.finditer(rf"{type}::\s*(?:template\s+)?(\w+)", text)}
    called = [m.end() for m in re.finditer(rf"{type}(?:\(\s*\)|{{\s*}})\s*\(", text)]
    acts = False
    for name in objects:
        element = rf"(?<![\w.>]){re.escape(name)}\s*(?:\[[^\[\]]*\]\s*)?"
        members |= {m[1] for m in re.finditer(rf"{element}(?:\.|->)\s*(?:template\s+)?(\w+)", text)}
        own = [m for m in re.finditer(rf"{element}\(", text) if not _declares(text, m.start())]
        called += [m.end() for m in own]
        acts = acts or any(_is_statement(text, m.start(), m.end()) for m in own)
    calls = {len(_arguments(text, place)) for place in called}
    return Wanted(frozenset(members - _SAY_NOTHING), frozenset(calls), acts)


def passed_on(text: str, parameter: Parameter, objects: Set[str]) -> Iterator[tuple[str, int, bool]]:
    """Templates that the parameter is passed to: name, position, and whether it is an object that is."""
    for match in re.finditer(r"\b(\w+)\s*<(?=[^<=])", text):
        for position, argument in enumerate(_arguments(text, match.end(), "<>")):
            if argument.strip() == parameter.name:
                yield match[1], position, False
    for match in re.finditer(r"\b(\w+)\s*(?:<[^<>;(){}]*>\s*)?\((?!\s*\))", text):
        for position, argument in enumerate(_arguments(text, match.end())):
            if argument.strip() in objects:
                yield match[1], position, True


def _declares(text: str, place: int) -> bool:
    """Whether a name at ``place`` is declared there, or said of a type."""
    return re.search(r"[\w>&*]\s+\Z", text[max(0, place - 40) : place]) is not None and not re.search(
        r"\b(?:return|else|case|do)\s+\Z", text[max(0, place - 40) : place]
    )


def _is_statement(text: str, start: int, place: int) -> bool:
    """Whether a call from ``start``, whose arguments begin at ``place``, is a statement by itself."""
    end = _closing(text, place)
    if end is None or text[end : end + _WINDOW].lstrip()[:1] != ";":
        return False
    before = text[max(0, start - _WINDOW) : start].rstrip()
    begin = max(before.rfind(mark) for mark in ";{}") + 1
    head = before[begin:].lstrip()
    headed = head.endswith(")") and (head.startswith(("if", "while")) or head.count(")") > head.count("("))
    return not head or headed or head in ("else", "do")


def _closing(text: str, place: int, brackets: str = "()") -> int | None:
    """Behind the bracket that closes the one that opens before ``place``; None: a statement ends first."""
    depth, end = 1, place
    while end < len(text) and depth and text[end] not in ";{":
        depth += (text[end] == brackets[0]) - (text[end] == brackets[1])
        end += 1
    return None if depth else end


def _arguments(text: str, place: int, brackets: str = "()") -> list[str]:
    """What stands in the brackets that open before ``place``."""
    end = _closing(text, place, brackets)
    inside = whole_arguments(text[place : end - 1]) if end is not None else ()
    return [part for part in inside if part.strip()]
