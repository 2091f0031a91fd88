"""Read PTX text into ``ptx`` classes.

Source: PTX ISA, chapters 4 "Syntax" and 11 "Directives"; what nvcc 11–13 prints.  The reader understands
every statement's extent; directives it has no class for are kept as ``Verbatim`` text, so nothing is lost.
Debug sections (``.section``) are kept verbatim as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from attrs import define, field

from cuda_lsp.dynamic.ptx.module import (
    Declaration,
    Instruction,
    Label,
    Loc,
    Prototype,
    PtxFunction,
    PtxLocation,
    PtxModule,
    PtxVariable,
    Registers,
    ScopeClose,
    ScopeOpen,
    Statement,
    TargetList,
    Verbatim,
    split_operands,
)
from cuda_lsp.dynamic.ptx.operands import parse_integer


class PtxSyntaxError(ValueError):
    """The text is not PTX as we know it; the message names the statement."""


_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.S)
_SPACE = re.compile(r"\s*")
_LABEL = re.compile(r"(?<![\w$%])([A-Za-z_$%][\w$]*)[ \t]*:(?!:)")
_LINE_DIRECTIVE = re.compile(r"\.(?:loc|file|version|target|address_size)\b[^\n]*")
_SECTION = re.compile(r"\.section\b[^{}]{0,200}\{[^{}]*\}")
_STATEMENT = re.compile(r'(?:[^;"]|"[^"]*")*;')
_FUNCTION = re.compile(r"(?:\.(visible|extern|weak|common)\s+)?\.(entry|func)\b")
_NAME = re.compile(r"[\w$%]+")
_FUNCTION_HEAD_END = re.compile(r'(?:[^;{"]|"[^"]*";?)*([;{])')
_FUNCTION_DIRECTIVE = re.compile(r'\.[a-z][^.";]*(?:"[^"]*";?)?')
_INSTRUCTION = re.compile(r"(?:@\s*(?:(!)\s*)?([%\w$]+)\s+)?([a-z][\w.:]*)(?![\w.:])\s*((?:\S.*)?);$", re.S)
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:\s*,\s*(.*))?")
_INLINED = re.compile(r"inlined_at\s+(\d+)\s+(\d+)\s+(\d+)")
_INLINED_FUNCTION = re.compile(r"function_name\s+([\w$]+)")
_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"')
_REGISTER_RANGE = re.compile(r"([%\w$]+)<(\d+)>$")
_LIST_DIRECTIVE = re.compile(r"\.(branchtargets|calltargets)\s+((?:\S.*)?);$", re.S)
_PROTOTYPE = re.compile(r"\.callprototype\s*(?:\(([^()]*)\)\s*)?_(?:\s*\(([^()]*)\))?[^)]*;$", re.S)
_DECLARATION = re.compile(
    r"(?:\.(visible|extern|weak|common)\s+)?\.(reg|shared|global|const|local|param|tex)\b(.*)$", re.S
)
_ATTRIBUTE = re.compile(r"\.attribute\s*\([^()]*\)|\.ptr\b|\.managed\b|\.unified\b")
_SPACES_AFTER_PTR = frozenset({"global", "shared", "const", "local", "param", "generic"})


@lru_cache(maxsize=4)
def read_module(text: str) -> PtxModule:
    """Read a whole module. Raises PtxSyntaxError. Kept: a check reads one module for each of its kernels."""
    return _Reader(_COMMENT.sub(_blank, text)).module()


def _blank(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else " "


@define
class _Reader:
    """One pass over the text; ``position`` is where the next statement starts."""

    text: str
    position: int = 0
    files: dict[int, str] = field(factory=dict[int, str])
    # of the .loc lines so far
    places: dict[tuple[int, int, int], PtxLocation] = field(factory=dict[tuple[int, int, int], PtxLocation])

    def module(self) -> PtxModule:
        heads: dict[str, str] = {}
        items: list[PtxFunction | PtxVariable | Verbatim] = []
        while self._skip_space():
            if match := self._take(_LINE_DIRECTIVE):
                if file := _FILE.match(match[0]):
                    self.files[int(file[1])] = _unescaped(file[2])
                elif not match[0].startswith(".loc"):
                    word, _, rest = match[0][1:].partition(" ")
                    heads[word] = rest.strip()
            elif match := self._take(_SECTION):
                items.append(Verbatim(match[0]))
            elif match := self._take(_FUNCTION):
                items.append(self._function(match[1] or "", match[2] == "entry"))
            else:
                items.extend(self._top_level(self._statement()))
        return PtxModule(
            version=heads.get("version", ""),
            target=heads.get("target", ""),
            address_size=int(heads.get("address_size", "64")),
            items=tuple(items),
            files=self.files,
        )

    # ------------------------------------------------------------------------------- scanning

    def _skip_space(self) -> bool:
        match = _SPACE.match(self.text, self.position)
        assert match is not None
        self.position = match.end()
        return self.position < len(self.text)

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.position)
        if match:
            self.position = match.end()
        return match

    def _statement(self) -> str:
        match = _STATEMENT.match(self.text, self.position)
        if not match:
            shown = self.text[self.position : self.position + 60].split("\n")[0]
            raise PtxSyntaxError(f"PTX statement without an end: {shown!r}")
        self.position = match.end()
        return match[0]

    def _parenthesised(self) -> str | None:
        """The text inside ``(…)`` when that comes next."""
        if not self._skip_space() or self.text[self.position] != "(":
            return None
        depth, start = 0, self.position
        while self.position < len(self.text):
            char = self.text[self.position]
            depth += (char == "(") - (char == ")")
            self.position += 1
            if depth == 0:
                return self.text[start + 1 : self.position - 1]
        raise PtxSyntaxError("PTX parameter list without an end")

    # ------------------------------------------------------------------------------ top level

    def _top_level(self, statement: str) -> Iterator[PtxVariable | Verbatim]:
        if _DECLARATION.match(statement):
            yield from read_variables(statement[:-1])
        else:
            yield Verbatim(statement)

    def _function(self, linkage: str, entry: bool) -> PtxFunction:
        returns = self._parenthesised()
        self._skip_space()
        name = self._take(_NAME)
        if not name:
            raise PtxSyntaxError("PTX function without a name")
        params = self._parenthesised()
        directives, has_body = self._function_directives()
        return PtxFunction(
            name=name[0],
            entry=entry,
            params=_read_params(params),
            returns=_read_params(returns),
            linkage=linkage,
            directives=directives,
            body=tuple(self._body()) if has_body else None,
        )

    def _function_directives(self) -> tuple[tuple[str, ...], bool]:
        end = _FUNCTION_HEAD_END.match(self.text, self.position)
        if not end:
            raise PtxSyntaxError("PTX function without a body or semicolon")
        text = self.text[self.position : end.end() - 1]
        self.position = end.end()
        return tuple(part.strip() for part in _FUNCTION_DIRECTIVE.findall(text)), end[1] == "{"

    # ----------------------------------------------------------------------------------- body

    def _body(self) -> Iterator[Statement]:
        depth, index = 1, 0
        location: PtxLocation | None = None
        while self._skip_space():
            char = self.text[self.position]
            if char == "{":
                self.position += 1
                depth += 1
                yield ScopeOpen()
            elif char == "}":
                self.position += 1
                depth -= 1
                if depth == 0:
                    return
                yield ScopeClose()
            elif char == ".":
                for statement in self._directive():
                    if isinstance(statement, Loc):
                        location = statement.location if statement.location.line else location
                    yield statement
            elif label := self._take(_LABEL):
                yield self._labelled(label[1])
            else:
                yield self._instruction(self._statement(), location, index)
                index += 1
        raise PtxSyntaxError("PTX function body without an end")

    def _instruction(self, text: str, location: PtxLocation | None, index: int) -> Instruction:
        match = _INSTRUCTION.match(text)
        if not match:
            raise PtxSyntaxError(f"not a PTX instruction: {text!r}")
        negation, guard, opcode, operands = match.groups()
        return Instruction(
            opcode=opcode,
            operands=" ".join(operands.split()),
            guard=f"{negation or ''}{guard}" if guard else None,
            location=location,
            index=index,
        )

    def _labelled(self, name: str) -> Statement:
        """A label; or the list or prototype that it names."""
        self._skip_space()
        if not self.text.startswith((".branchtargets", ".calltargets", ".callprototype"), self.position):
            return Label(name)
        text = self._statement()
        if match := _LIST_DIRECTIVE.match(text):
            return TargetList(name, match[1], split_operands(match[2]), f"{name}: {text}")
        match = _PROTOTYPE.match(text)
        if not match:
            raise PtxSyntaxError(f"not a PTX call prototype: {text!r}")
        return Prototype(name, _read_params(match[1]), _read_params(match[2]), f"{name}: {text}")

    def _directive(self) -> Iterator[Statement]:
        if match := self._take(_LINE_DIRECTIVE):
            yield self._loc(match[0])
            return
        text = self._statement()
        if text.startswith(".reg"):
            yield _read_registers(text)
        elif _DECLARATION.match(text):
            for variable in read_variables(text[:-1]):
                yield Declaration(variable)
        else:
            yield Verbatim(text)

    def _loc(self, text: str) -> Statement:
        match = _LOC.match(text)
        if not match:
            return Verbatim(text)
        file, line, column = int(match[1]), int(match[2]), int(match[3])
        outer, function = None, None
        if match[4]:
            if at := _INLINED.search(match[4]):
                place = (int(at[1]), int(at[2]), int(at[3]))
                outer = self.places.get(place) or PtxLocation(*place)
            if named := _INLINED_FUNCTION.search(match[4]):
                function = named[1]
        location = PtxLocation(file, line, column, outer, function)
        self.places[file, line, column] = location
        return Loc(location, text.strip())


# ------------------------------------------------------------------------------------ declarations


def _read_registers(text: str) -> Registers:
    _, _, rest = text.rstrip(";").partition(".reg")
    words = rest.split(None, 1)
    if words[0] in (".v2", ".v4"):
        words = words[1].split(None, 1)
    names: list[str] = []
    for part in words[1].split(","):
        if match := _REGISTER_RANGE.match(part.strip()):
            names.extend(f"{match[1]}{i}" for i in range(int(match[2])))
        else:
            names.append(part.strip())
    return Registers(words[0].lstrip("."), tuple(names), " ".join(text.split()))


def _read_params(text: str | None) -> tuple[PtxVariable, ...]:
    if not text or not text.strip():
        return ()
    return tuple(v for part in split_operands(text) for v in read_variables(part))


def read_variables(text: str) -> Iterator[PtxVariable]:
    """``.shared .align 4 .b8 a[16], b[4]`` (no semicolon) → its variables. Raises PtxSyntaxError."""
    match = _DECLARATION.match(text.strip())
    if not match:
        raise PtxSyntaxError(f"not a PTX declaration: {text!r}")
    linkage, space, rest = match.groups()
    rest = _ATTRIBUTE.sub(" ", rest)
    align, type_name, lanes = 0, "", 1
    while word := re.match(r"\s*\.([\w]+)\s*", rest):
        rest = rest[word.end() :]
        if word[1] == "align":
            number = re.match(r"\d+", rest)
            assert number is not None
            align, rest = int(number[0]), rest[number.end() :]
        elif word[1] in ("v2", "v4", "v8"):
            lanes = int(word[1][1:])
        elif word[1] not in _SPACES_AFTER_PTR:
            type_name = word[1]
    declared = " ".join(text.split())
    names = split_operands(rest) if "=" not in rest else (rest.strip(),)
    prefix = text[: text.rfind(rest.strip())] if len(names) > 1 else ""
    for name in names:
        yield _variable(
            name, linkage or "", space, type_name, align, lanes, f"{prefix}{name}" if prefix else declared
        )


def _variable(
    declarator: str, linkage: str, space: str, type_name: str, align: int, lanes: int, text: str
) -> PtxVariable:
    name, _, initialiser = declarator.partition("=")
    name, *extents = (part.rstrip("] \t") for part in name.strip().split("["))
    count: int | None = lanes
    for extent in extents:
        count = count * parse_integer(extent) if extent.strip() and count is not None else None
    return PtxVariable(
        name=name.strip(),
        space=space,
        type=type_name,
        align=align,
        count=count,
        initialiser=initialiser.strip() or None,
        linkage=linkage,
        text=" ".join(text.split()),
    )


def _unescaped(name: str) -> str:
    """A file's name: the compiler writes bytes beyond ASCII as octal numbers."""
    plain = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), name)
    return plain.encode("latin-1").decode("utf-8", "surrogateescape") if plain != name else name
