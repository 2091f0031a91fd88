"""Texts that are followed: their classes, with the types of fields, and how parameters are declared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from attrs import define, evolve, field

from cuda_lsp.frontend.host.host_classes import HostClass, HostClasses
from cuda_lsp.frontend.host.host_functions import HostFunction, HostFunctions, parameter_of
from cuda_lsp.frontend.host.lambdas import lambdas_of
from cuda_lsp.frontend.host.pieces.nodes import Type
from cuda_lsp.frontend.host.pieces.syntax import NotRead, Reader
from cuda_lsp.frontend.host.text import HostText, split_arguments, whole_arguments

_WORD = re.compile(r"[A-Za-z_]\w*")
_NESTED = re.compile(r"\{[^{}]*\}|\([^()]*\)")
_ACCESS = re.compile(r"\b(?:public|private|protected)\s?:(?!:)")
_INHERITED = re.compile(r"\b(?:public|private|protected|virtual)\b")
_NAMESPACE = re.compile(r"\b(?:namespace|extern)\b[^;{}()]{0,90}\Z")
_MOST_IN_A_FILE = 6000
_LONGEST_DECLARATION, _MOST_DECLARED = 400, 16
_DIRECTIVE = re.compile(r"^[ \t]?#[^\n]*", re.M)
_LONGEST_HEAD = 400
_DEEPEST = 64  # braces and parentheses in each other


@define(eq=False)
class Unit:
    """A text, and what it defines."""

    text: HostText
    functions: HostFunctions
    classes: HostClasses
    left: int = _MOST_IN_A_FILE
    """Statements that may still be executed."""
    _types: dict[str, Mapping[str, Type]] = field(factory=dict[str, Mapping[str, Type]])
    _variables: dict[str, Type] | None = None
    _lambdas: Mapping[str, Sequence[HostFunction]] | None = None
    _alone: dict[str, bool] = field(factory=dict[str, bool])
    _parameters: dict[str, tuple[str, ...]] = field(factory=dict[str, tuple[str, ...]])

    @property
    def lambdas(self) -> Mapping[str, Sequence[HostFunction]]:
        """Those that have names."""
        if self._lambdas is None:
            self._lambdas = lambdas_of(self.text)
        return self._lambdas

    def field_types(self, owner: HostClass) -> Mapping[str, Type]:
        """The fields of a class, and their types."""
        if owner.name not in self._types:
            self._types[owner.name] = dict(self._fields(owner))
        return self._types[owner.name]

    def is_alone(self, owner: HostClass) -> bool:
        """Whether no other class of the text has its name."""
        if owner.name not in self._alone:
            head = rf"\b(?:class|struct)\s(?:alignas\s?\([^()]*\)\s?)?{owner.name}\b[^;{{}}()]{{0,200}}\{{"
            self._alone[owner.name] = len(re.compile(head).findall(self.text.plain)) <= 1
        return self._alone[owner.name]

    def parameters(self, owner: HostClass) -> tuple[str, ...]:
        """The parameters of a class template."""
        if owner.name not in self._parameters:
            head = self.text.plain[max(0, owner.begin - _LONGEST_HEAD) : owner.begin]
            pattern = rf"\btemplate\s?<([^<>;{{}}]*)>\s?(?:class|struct)\s{owner.name}\b[^;{{}}]{{0,200}}\Z"
            made = re.search(pattern, head)
            parts = whole_arguments(made[1]) if made is not None else ()
            self._parameters[owner.name] = tuple(parameter_of(part)[0] for part in parts)
        return self._parameters[owner.name]

    def is_destroyed(self, owner: HostClass) -> bool:
        """Whether the class says what is done when an object of it ends."""
        return f"~{owner.name}" in self.text.plain.replace("~ ", "~")

    def bases(self, owner: HostClass) -> list[str]:
        """The names of the classes that a class is made of."""
        head = self.text.plain[max(0, owner.begin - _LONGEST_HEAD) : owner.begin]
        made = re.search(rf"\b{owner.name}\b(?:\s?final)?\s?:(?!:)([^;{{}}]*)\Z", head)
        parts = whole_arguments(made[1]) if made is not None else []
        return [_INHERITED.sub("", part).strip() for part in parts]

    def head_of(self, function: HostFunction) -> str:
        """What a function returns and takes, as it is declared."""
        first = max(0, function.opening - _LONGEST_HEAD)
        begin = max(first, *(self.text.plain.rfind(c, first, function.opening) + 1 for c in ";}{"))
        return self.text.plain[begin : function.closing]

    def variables(self) -> Mapping[str, Type]:
        """The variables of the file itself, and their types."""
        if self._variables is None:
            self._variables = {}
            for piece in self._outside().split(";"):
                self._variables.update(_declared_in(piece))
        return self._variables

    def _outside(self) -> str:
        """What stands in no function and no class."""
        text, pieces, at = self.text.plain, list[str](), 0
        for opening, closing in sorted(self.text.braces.closing.items()):
            if opening < at:
                continue
            inside = _NAMESPACE.search(text, max(0, opening - 100), opening) is not None
            pieces += text[at:opening], ";"
            at = (opening if inside else closing) + 1
        return _DIRECTIVE.sub(";", "".join((*pieces, text[at:])).replace("}", ";"))

    def leaves_alone(self, owner: HostClass, name: str) -> bool:
        """Whether a member function is declared to change nothing."""
        own = self.text.plain[owner.begin : owner.end]
        return re.search(rf"\b{name}\s?\([^()]*\)\s?const\b", own) is not None

    def is_virtual(self, owner: HostClass, name: str) -> bool:
        """Whether another class may have another function in place of one."""
        own = self.text.plain[owner.begin : owner.end]
        return re.search(rf"\bvirtual\b[^;{{}}()]{{0,200}}\b{name}\s?\(", own) is not None

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
        for _ in range(_DEEPEST):
            less = _NESTED.sub(lambda m: ";" if m[0][0] == "{" else "\0", inside)
            if less == inside:
                break
            inside = less
        else:
            return  # no class that people write
        for piece in inside.split(";"):
            if piece.strip() and "\0" not in piece.partition("=")[0]:
                yield piece.strip()


def _declared_in(text: str) -> Iterator[tuple[str, Type]]:
    """The variables that a statement declares, the first of which has a type before it."""
    if "(" in text.partition("=")[0] or len(text) > _LONGEST_DECLARATION:
        return
    first, *others = split_arguments(text)[:_MOST_DECLARED] or [""]
    try:
        reader = Reader(first.partition("=")[0])
    except NotRead:
        return
    type_ = reader.type()
    if type_ is None or not re.match(r"[A-Za-z_]", reader.here()) or reader.here(1) not in ("", "["):
        return
    yield reader.here(), type_
    for other in others:
        declared = other.partition("=")[0]
        if words := _WORD.findall(declared):
            yield words[0], evolve(type_, pointers=declared.count("*"))


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
