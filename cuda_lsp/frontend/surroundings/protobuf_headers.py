"""What ``protoc`` writes of a project's ``.proto`` files: ``device.pb.h`` of ``device.proto``.

Kernels and the classes around them name the enumerations (``template <DataType type>``), host code that
makes instances the messages. Enumerations are as the compiler of Protocol Buffers writes them, messages have
the functions that tell and set their fields, and nothing else. Looked for when a file is opened, never while
typing.

Source: "C++ Generated Code Guide" of Protocol Buffers (protobuf.dev/reference/cpp/cpp-generated).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath

from attrs import define, field, frozen

from cuda_lsp import files
from cuda_lsp.frontend.surroundings.nearby_headers import in_common

_SUFFIX = ".pb.h"
_SOURCE = ".proto"
_MAX_BYTES = 1 << 20
_MAX_FOLDERS = 20_000
_MOST_NESTED = 20
_COMMENT = re.compile(r"//|/\*")
"""Where one begins."""
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|[\w.]+|[^\s\w]')
_NUMBER = re.compile(r"\A-?(?:0[xX][0-9a-fA-F]{1,16}|\d{1,20})\Z")
_IDENTIFIER = re.compile(r"\A[A-Za-z_]\w{0,200}\Z")
_SCALARS = {
    "double": "double", "float": "float", "bool": "bool", "int32": "::int32_t", "sint32": "::int32_t",
    "sfixed32": "::int32_t", "int64": "::int64_t", "sint64": "::int64_t", "sfixed64": "::int64_t",
    "uint32": "::uint32_t", "fixed32": "::uint32_t", "uint64": "::uint64_t", "fixed64": "::uint64_t",
}  # fmt: skip
_TEXTS = frozenset({"string", "bytes"})
_LABELS = frozenset({"optional", "required", "repeated"})
_INCLUDES = "#pragma once\n#include <stdint.h>\n#include <string>\n"


def header_of(path: Path, root: Path, name: str) -> str | None:
    """The text of the header ``name``, which the file ``path`` of the project ``root`` includes; None: no
    ``.proto`` file tells it."""
    source = _source_of(path, root, name) if name.endswith(_SUFFIX) else None
    if source is None:
        return None
    try:
        return written(files.read_text(source, _MAX_BYTES))
    except OSError:  # gone, or too large
        return None


def forget() -> None:
    """Look again: files may have come or gone."""
    _sources.cache_clear()


def _source_of(path: Path, root: Path, name: str) -> Path | None:
    """The ``.proto`` file of that name that stands nearest to ``path``."""
    wanted = PurePosixPath(name.removesuffix(_SUFFIX) + _SOURCE).parts
    if ".." in wanted:
        return None
    here = path.absolute().parts
    seen = [p for p in _sources(root).get(wanted[-1], ()) if p.parts[-len(wanted) :] == wanted]
    return min(seen, key=lambda p: (len(p.parts) - 2 * in_common(p.parts, here), p), default=None)


@lru_cache(maxsize=4)
def _sources(root: Path) -> dict[str, tuple[Path, ...]]:
    """The ``.proto`` files of a project by their names."""
    found: dict[str, tuple[Path, ...]] = {}
    for count, (folder, below, names) in enumerate(files.walk(root, (_SOURCE,))):
        if count >= _MAX_FOLDERS:
            break
        below[:] = sorted(each for each in below if not each.startswith("."))
        for each in names:
            if each.endswith(_SOURCE):
                found[each] = (*found.get(each, ()), Path(folder, each))
    return found


# ------------------------------------------------------------------------------- the text of a header


@frozen
class _Field:
    label: str
    type: str
    name: str


@define
class _Scope:
    """A message, or the file (``name`` ""); ``flat``: what its class is called, ``Outer_Inner``."""

    name: str = ""
    flat: str = ""
    outer: _Scope | None = None
    fields: list[_Field] = field(factory=list[_Field])
    messages: list[_Scope] = field(factory=list["_Scope"])
    enumerations: dict[str, list[tuple[str, str]]] = field(factory=dict[str, list[tuple[str, str]]])

    def named(self, name: str) -> str:
        return f"{self.flat}_{name}" if self.flat else name


def written(text: str) -> str:
    """What the header of a ``.proto`` file declares."""
    reader = _Reader(_TOKEN.findall(_without_comments(text)))
    file = _Scope()
    reader.body(file, 0)
    spaces = [part for part in reader.package.split(".") if part]
    imports = (f'#include "{p.removesuffix(_SOURCE)}{_SUFFIX}"\n' for p in reader.imports)
    every = list(_with_nested(file))
    return "".join(
        (
            _INCLUDES,
            *imports,
            *(f"namespace {space} {{\n" for space in spaces),
            *(f"class {scope.flat};\n" for scope in every if scope.name),
            *(line for scope in every for line in _enumerations(scope)),
            *(line for scope in every if scope.name for line in _message(scope)),
            "}\n" * len(spaces),
        )
    )


def _without_comments(text: str) -> str:
    pieces: list[str] = []
    done = 0
    for match in _COMMENT.finditer(text):
        if match.start() < done:
            continue
        closed = "\n" if match[0] == "//" else "*/"
        end = text.find(closed, match.end())
        pieces += text[done : match.start()], " "
        done = len(text) if end < 0 else end + len(closed) - (closed == "\n")
    return "".join((*pieces, text[done:]))


class _Reader:
    """Reads the words of a ``.proto`` file; what it does not know it passes over."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.place = 0
        self.package = ""
        self.imports: list[str] = []

    def body(self, scope: _Scope, depth: int) -> None:
        """Statements up to the end, or behind the ``}`` that closes this scope."""
        while (statement := self._statement()) is not None:
            words, opens = statement
            if words == ["}"]:
                return
            kind = words[0] if words else ""
            if opens and kind == "message" and len(words) == 2 and depth < _MOST_NESTED:
                inner = _Scope(words[1], scope.named(words[1]), scope)
                scope.messages.append(inner)
                self.body(inner, depth + 1)
            elif opens and kind == "enum" and len(words) == 2:
                scope.enumerations[words[1]] = list(self._enumerators())
            elif opens and kind == "oneof" and depth < _MOST_NESTED:
                self.body(scope, depth + 1)
            elif opens:
                self._pass_over()
            elif kind == "package" and len(words) == 2:
                self.package = words[1]
            elif kind == "import":
                self.imports.append(words[-1].strip("\"'"))
            elif scope.name and (read := _field(words)) is not None:
                scope.fields.append(read)

    def _statement(self) -> tuple[list[str], bool] | None:
        """Words up to ``;`` or ``{`` (True: that one), or a lone ``}``; None: the text ends."""
        words: list[str] = []
        while self.place < len(self.tokens):
            token = self.tokens[self.place]
            self.place += 1
            if token == "[":  # options of a field, which may hold braces
                self._pass_over("[", "]")
            elif token in (";", "{"):
                return words, token == "{"
            elif token == "}":
                return ["}"], False
            else:
                words.append(token)
        return None

    def _enumerators(self) -> Iterator[tuple[str, str]]:
        while (statement := self._statement()) is not None and statement[0] != ["}"]:
            words, opens = statement
            if opens:
                self._pass_over()
            value = "".join(words[2:])
            if len(words) > 2 and words[1] == "=" and _IDENTIFIER.match(words[0]) and _NUMBER.match(value):
                yield words[0], value

    def _pass_over(self, opening: str = "{", closing: str = "}") -> None:
        depth = 1
        while self.place < len(self.tokens) and depth:
            depth += (self.tokens[self.place] == opening) - (self.tokens[self.place] == closing)
            self.place += 1


def _field(words: list[str]) -> _Field | None:
    told = words[: words.index("=")] if "=" in words else []
    if not told:
        return None
    label = told[0] if told[0] in _LABELS else ""
    kind, name = "".join(told[bool(label) : -1]), told[-1]
    if not kind or not _IDENTIFIER.match(name):
        return None
    return _Field("map" if kind.startswith("map<") else label, kind, name)


def _with_nested(scope: _Scope) -> Iterator[_Scope]:
    yield scope
    for inner in scope.messages:
        yield from _with_nested(inner)


def _enumerations(scope: _Scope) -> Iterator[str]:
    for name, values in scope.enumerations.items():
        flat = scope.named(name)
        prefix = f"{flat}_" if scope.name else ""
        listed = ", ".join(f"{prefix}{enumerator} = {value}" for enumerator, value in values)
        yield f"enum {flat} : int {{ {listed} }};\n"
        yield f"bool {flat}_IsValid(int value);\nconst ::std::string& {flat}_Name({flat} value);\n"
        yield f"bool {flat}_Parse(const ::std::string& name, {flat}* value);\n"


def _message(scope: _Scope) -> Iterator[str]:
    yield f"class {scope.flat} {{\n public:\n  {scope.flat}();\n"
    for inner in scope.messages:
        yield f"  typedef {inner.flat} {inner.name};\n"
    for name, values in scope.enumerations.items():
        flat = scope.named(name)
        yield f"  typedef {flat} {name};\n"
        yield from (f"  static constexpr {flat} {each} = {flat}_{each};\n" for each, _ in values)
    for each in scope.fields:
        yield from _functions(each, _type(each.type, scope))
    yield "};\n"


def _functions(told: _Field, type: str) -> Iterator[str]:
    """What a message has for one of its fields."""
    name, simple = told.name.lower(), type in _SCALARS.values()
    yield f"  void clear_{name}();\n"
    if told.label == "map":
        yield f"  int {name}_size() const;\n"
        return
    result = type if simple else f"const {type}&"
    if told.label == "repeated":
        yield f"  int {name}_size() const;\n  {result} {name}(int index) const;\n"
        yield f"  void add_{name}({result} value);\n  {type}* mutable_{name}(int index);\n"
        yield f"  {type}* add_{name}();\n"
        return
    yield f"  bool has_{name}() const;\n  {result} {name}() const;\n"
    yield f"  void set_{name}({result} value);\n  {type}* mutable_{name}();\n"


def _type(name: str, scope: _Scope) -> str:
    """A field's type as C++ has it: the nearest of that name around, else as it is written."""
    if name in _SCALARS:
        return _SCALARS[name]
    if name in _TEXTS:
        return "::std::string"
    first, *rest = name.strip(".").split(".")
    around: _Scope | None = scope
    while around is not None:
        known = {inner.name: inner.flat for inner in around.messages}
        known.update((each, around.named(each)) for each in around.enumerations)
        if first in known:
            return "::".join((known[first], *rest))
        around = around.outer
    return "::".join((first, *rest))
