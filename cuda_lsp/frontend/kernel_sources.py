"""Which kernels a parsed file holds, and what each one's translation depends on.

A template counts once per instantiation (grouped with its template by where the text ends, because clang
gives their starts differently). A digest covers everything the translation of a kernel can depend on:
its own text, all text outside other kernels and host functions, preprocessor lines inside them, and the
headers. Equal digests mean equal kernel programs, up to the line shift between the two ranges.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from attrs import evolve, frozen

from cuda_lsp.frontend import budgets
from cuda_lsp.frontend.libclang import RawCursor
from cuda_lsp.frontend.source_text import SourceText, resolved_name
from cuda_lsp.frontend.tree import Ast, distinct
from cuda_lsp.model import SourceRange

# CXCursorKind numbers (clang-c/Index.h).
_STRUCT, _CLASS, _FUNCTION, _PARAMETER, _METHOD, _NAMESPACE, _LINKAGE, _TEMPLATE = 2, 4, 8, 10, 21, 22, 23, 30
_UNEXPOSED = 1
_BODY, _DEVICE_ATTRIBUTE, _GLOBAL_ATTRIBUTE = 202, 413, 414
_TEMPLATE_PARAMETERS = (27, 28, 29)
_ENUMERATION = 106  # CXType_Enum
_SCOPES = (_NAMESPACE, _LINKAGE, _STRUCT, _CLASS, _UNEXPOSED)

Instance = TypeVar("Instance")
MAX_INSTANTIATIONS = 4  # walked per template; the rest is said, not dropped
# All but those that concern the statement behind them only.
DIRECTIVE_LINE = re.compile(rb"^[ \t]*#(?![ \t]*pragma[ \t]+(?:(?i:(?:no)?unroll)|omp)\b)[^\n]*", re.M)
_WORD = re.compile(rb"[A-Za-z_]\w*")
_LAUNCHES = re.compile(rb"<<\s{0,8}<|\bcudaLaunch")
_OF_HOST = re.compile(rb"\b(?:__host__|constexpr|consteval|auto|decltype)\b")
_DEVICE_ENTITY = re.compile(rb"__device__|__constant__|__managed__")


@frozen(eq=False)
class KernelSource:
    """One kernel (or instantiation) of one parse; ``cursor`` lives until the next reparse.

    ``offsets``: bytes of the function's text, template header included. ``dependent``: a template that
    could not be instantiated, so its types are not known.
    """

    name: str
    base_name: str
    range: SourceRange
    name_range: SourceRange
    offsets: tuple[int, int]
    parameters: tuple[str, ...]
    cursor: RawCursor
    digest: str = ""
    template_arguments: tuple[str, ...] = ()
    template_parameters: tuple[str, ...] = ()  # names; of the template it came from
    template: bool = False
    dependent: bool = False
    scope: str = ""  # enclosing namespaces and classes, "a::b::"
    mangled: str = ""  # of an instantiation: which of the entries that nvcc makes it is
    parameter_types: tuple[str, ...] = ()  # without the names that they have in the text
    truth_values: tuple[bool, ...] = ()  # of a template: which of its parameters are of type bool
    enumerations: tuple[str, ...] = ()  # of a template: of which enumeration each parameter is, "" of none
    overload: str = ""  # which of several kernels of this name
    rivals: tuple[SourceRange, ...] = ()  # of those the others whose parameters differ in `const` alone

    @property
    def identity(self) -> str:
        """Which of its file's kernels it is, whatever its body says."""
        return self.mangled or f"{self.scope}{self.name}{self.overload}"


class Body(NamedTuple):
    """Byte offsets of a function of the main file: where it begins, and from ``{`` to behind ``}``."""

    name: bytes
    kernel: bool
    function: int
    start: int
    end: int


@frozen
class KernelSources:
    """Kernels in source order, every kernel template, and how many instantiations the cap left out.

    ``device_functions``: name and byte offsets of functions of the main file that kernels may call.
    ``bodies``: of kernels, and of functions outside classes that no kernel may call, in order.
    ``templates_of_host``: of function templates that no kernel may call.
    ``more``: kernels that are too many for one file.
    """

    kernels: tuple[KernelSource, ...] = ()
    templates: tuple[KernelSource, ...] = ()
    skipped: tuple[tuple[KernelSource, int], ...] = ()
    device_functions: tuple[tuple[str, int, int], ...] = ()
    bodies: tuple[Body, ...] = ()
    templates_of_host: tuple[Body, ...] = ()
    more: int = 0


def find_kernels(
    ast: Ast, root: RawCursor, source: SourceText, around: frozenset[Path] = frozenset(), only: str = ""
) -> KernelSources:
    """Every kernel with a body in the file ``source``, which ``ast`` has read, without digests.

    ``around``: files (resolved) whose scopes may be open where they include it.
    ``only``: look at functions of this name.
    """
    finder = _Finder(ast, source, around, only)
    finder.walk(root, "")
    return finder.result()


class _Finder:
    def __init__(self, ast: Ast, source: SourceText, around: frozenset[Path], only: str) -> None:
        self.ast = ast
        self.source = source
        self.path = str(source.path)
        self.around = around
        self.only = only
        self.by_end: dict[int, list[KernelSource]] = {}
        self.templates: dict[int, KernelSource] = {}
        self.device_functions: set[tuple[str, int, int]] = set()
        self.bodies: dict[int, Body] = {}
        self.template_ends: set[int] = set()  # of function templates, whose instances look like functions

    def walk(self, cursor: RawCursor, scope: str) -> None:
        for child in self.ast.children(cursor):
            kind = child.kind
            if kind in (_FUNCTION, _TEMPLATE, _METHOD):
                if not self.only or self.ast.spelling(child) == self.only:
                    self._function(child, scope)
            elif kind in _SCOPES and (self._offsets(child) or self._opened_around(child)):
                name = self.ast.spelling(child) if kind != _LINKAGE else ""
                self.walk(child, f"{scope}{name}::" if name and "(" not in name else scope)

    def _offsets(self, cursor: RawCursor) -> tuple[int, int] | None:
        """Byte offsets in the file; None: elsewhere."""
        lib = self.ast.lib
        extent = lib.clang_getCursorExtent(cursor)
        file, _, _, start = self.ast.place(lib.clang_getRangeStart(extent))
        if not file or str(self.ast.path(file)) != self.path or start >= len(self.source.data):
            return None
        end_file, _, _, end = self.ast.place(lib.clang_getRangeEnd(extent))
        return (start, min(end, len(self.source.data))) if end_file == file and end > start else None

    def _opened_around(self, cursor: RawCursor) -> bool:
        """A scope in which an ``#include`` of the file may stand (``extern "C" {``)."""
        if not self.around:
            return False
        extent = self.ast.lib.clang_getCursorExtent(cursor)
        file = self.ast.place(self.ast.lib.clang_getRangeStart(extent))[0]
        return bool(file) and resolved_name(str(self.ast.path(file))) in self.around

    def _function(self, cursor: RawCursor, scope: str) -> None:
        offsets = self._offsets(cursor)
        if offsets is None:
            return
        children = self.ast.children(cursor)
        kinds = {child.kind: child for child in children}
        if _BODY not in kinds:
            return
        if _GLOBAL_ATTRIBUTE not in kinds:
            text = self.source.data[slice(*offsets)]
            if _DEVICE_ATTRIBUTE in kinds or callable_on_device(self.ast, cursor, text):
                self.device_functions.add((self.ast.spelling(cursor), *offsets))
            elif cursor.kind == _TEMPLATE:
                self.template_ends.add(offsets[1])
                self._body(cursor, kinds[_BODY], offsets, kernel=False)
            elif cursor.kind == _FUNCTION:
                self._body(cursor, kinds[_BODY], offsets, kernel=False)
            return
        self._body(cursor, kinds[_BODY], offsets, kernel=True)
        found = self._describe(cursor, children, offsets, scope)
        if found.template:
            self.templates[offsets[1]] = found
        else:
            self.by_end.setdefault(offsets[1], []).append(found)

    def _body(self, cursor: RawCursor, body: RawCursor, offsets: tuple[int, int], *, kernel: bool) -> None:
        inside = self._offsets(body)
        if inside is not None and offsets[0] < inside[0] and inside[1] == offsets[1]:
            name = self.ast.spelling(cursor).encode()
            known = self.bodies.get(inside[0])
            start = min(offsets[0], known.function) if known else offsets[0]  # of a template, not an instance
            self.bodies[inside[0]] = Body(name, kernel, start, *inside)

    def _describe(
        self, cursor: RawCursor, children: Sequence[RawCursor], offsets: tuple[int, int], scope: str
    ) -> KernelSource:
        ast = self.ast
        base = ast.spelling(cursor)
        place = ast.place(ast.lib.clang_getCursorLocation(cursor))[3]
        arguments = _template_arguments(ast, cursor)
        return KernelSource(
            name=f"{base}<{', '.join(arguments)}>" if arguments else base,
            base_name=base,
            range=self.source.range(*offsets),
            name_range=self.source.range(place, place + len(base.encode())),
            offsets=offsets,
            parameters=tuple(distinct(ast.spelling(c) for c in children if c.kind == _PARAMETER)),
            parameter_types=tuple(_canonical_type(ast, c) for c in children if c.kind == _PARAMETER),
            cursor=cursor,
            template_arguments=arguments,
            template_parameters=tuple(ast.spelling(c) for c in children if c.kind in _TEMPLATE_PARAMETERS),
            truth_values=tuple(_is_bool(ast, c) for c in children if c.kind in _TEMPLATE_PARAMETERS),
            enumerations=tuple(_enumeration(ast, c) for c in children if c.kind in _TEMPLATE_PARAMETERS),
            template=cursor.kind == _TEMPLATE,
            scope=scope,
            mangled=ast.string(ast.lib.clang_Cursor_getMangling(cursor)) if arguments else "",
        )

    def result(self) -> KernelSources:
        kernels: list[KernelSource] = []
        skipped: list[tuple[KernelSource, int]] = []
        for end, group in self.by_end.items():
            template = self.templates.get(end)
            first = template or group[0]
            unique = list({k.name: k for k in group}.values())
            if len(unique) > MAX_INSTANTIATIONS:
                skipped.append((first, len(unique) - MAX_INSTANTIATIONS))
            kernels += (_as_instance(k, first) for k in spread(unique))
        for end, template in self.templates.items():
            if end not in self.by_end:
                kernels.append(evolve(template, dependent=True))
        kernels = _told_apart(sorted(kernels, key=lambda k: k.offsets))
        bodies = [body for _, body in sorted(self.bodies.items())]
        return KernelSources(
            tuple(kernels[: budgets.MOST_KERNELS]),
            tuple(self.templates.values()),
            tuple(skipped),
            tuple(sorted(self.device_functions)),
            tuple(b for b in bodies if b.end not in self.template_ends),
            tuple(b for b in bodies if b.end in self.template_ends),
            max(0, len(kernels) - budgets.MOST_KERNELS),
        )


def _passed(kernel: KernelSource) -> list[str]:
    """The types of its parameters, as far as arguments that are no constants tell kernels apart."""
    return [re.sub(r"\bconst\b|\s", "", type) for type in kernel.parameter_types]


def _told_apart(kernels: Sequence[KernelSource]) -> list[KernelSource]:
    """Kernels of one name differ in the types of their parameters."""
    many: dict[tuple[str, str], list[KernelSource]] = defaultdict(list)
    for k in kernels:
        many[k.scope, k.name].append(k)

    def told(k: KernelSource) -> KernelSource:
        others = [other for other in many[k.scope, k.name] if other is not k]
        rivals = tuple(other.range for other in others if _passed(other) == _passed(k))
        return evolve(k, overload=f"({','.join(k.parameter_types)})", rivals=rivals) if others else k

    return [told(k) for k in kernels]


def spread(instances: Sequence[Instance]) -> Sequence[Instance]:
    """At most ``MAX_INSTANTIATIONS``, evenly from the first to the last: a ladder's ends differ most."""
    last, most = len(instances) - 1, MAX_INSTANTIATIONS
    if last < most:
        return instances
    return [instances[last * number // (most - 1)] for number in range(most)]


def _as_instance(kernel: KernelSource, of: KernelSource) -> KernelSource:
    if kernel is of:
        return kernel
    arguments = _with_truth_values(kernel.template_arguments, of.truth_values)
    return evolve(
        kernel,
        name=f"{kernel.base_name}<{', '.join(arguments)}>" if arguments else kernel.name,
        range=of.range,
        offsets=of.offsets,
        template_arguments=arguments,
        template_parameters=of.template_parameters,
    )


def _with_truth_values(arguments: tuple[str, ...], truth: tuple[bool, ...]) -> tuple[str, ...]:
    """libclang tells ``true`` as the signed number of one bit, -1."""
    known = (*truth, *(False for _ in arguments[len(truth) :]))
    return tuple(
        ("false" if text == "0" else "true") if is_truth and text in ("0", "1", "-1") else text
        for text, is_truth in zip(arguments, known, strict=False)
    )


def _canonical_type(ast: Ast, parameter: RawCursor) -> str:
    lib = ast.lib
    return ast.string(
        lib.clang_getTypeSpelling(lib.clang_getCanonicalType(lib.clang_getCursorType(parameter)))
    )


def _enumeration(ast: Ast, parameter: RawCursor) -> str:
    lib = ast.lib
    canonical = lib.clang_getCanonicalType(lib.clang_getCursorType(parameter))
    return ast.string(lib.clang_getTypeSpelling(canonical)) if canonical.kind == _ENUMERATION else ""


def _is_bool(ast: Ast, parameter: RawCursor) -> bool:
    return ast.string(ast.lib.clang_getTypeSpelling(ast.lib.clang_getCursorType(parameter))) == "bool"


def _template_arguments(ast: Ast, cursor: RawCursor) -> tuple[str, ...]:
    lib = ast.lib
    count: int = lib.clang_Cursor_getNumTemplateArguments(cursor) if cursor.kind != _TEMPLATE else -1
    return tuple(_template_argument(ast, cursor, i) for i in range(max(0, count)))


def _template_argument(ast: Ast, cursor: RawCursor, index: int) -> str:
    lib = ast.lib
    kind: int = lib.clang_Cursor_getTemplateArgumentKind(cursor, index)
    if kind == 1:  # CXTemplateArgumentKind_Type
        return ast.string(lib.clang_getTypeSpelling(lib.clang_Cursor_getTemplateArgumentType(cursor, index)))
    if kind == 4:  # CXTemplateArgumentKind_Integral
        return str(lib.clang_Cursor_getTemplateArgumentValue(cursor, index))
    return "…"


def callable_on_device(ast: Ast, function: RawCursor, text: bytes) -> bool:
    """Whether kernels may call a function: ``__device__`` on any declaration of it, or constexpr."""
    declarations = (function, ast.lib.clang_getCanonicalCursor(function))
    if any(child.kind == _DEVICE_ATTRIBUTE for d in declarations for child in ast.children(d)):
        return True
    return b"constexpr" in text.partition(b"{")[0]


def text_outside(sources: KernelSources, source: SourceText) -> tuple[int, int]:
    """Changes whenever text that may tell of launches, or the line of any of it, may have changed.

    That is all text outside kernels and functions that the device alone may call, preprocessor lines inside
    these, and such as launch kernels themselves.
    """
    data = source.data
    pieces: list[bytes] = []
    position = 0
    of_device = (extent for _, *extent in sources.device_functions if _is_of_device(data, *extent))
    for start, end in sorted({*(k.offsets for k in sources.kernels), *((s, e) for s, e in of_device)}):
        if end <= position or _may_launch(data, start, end):
            continue
        pieces.append(data[position:start])
        pieces.append(b"%d" % data.count(b"\n", start, end))
        pieces += DIRECTIVE_LINE.findall(data, start, end)
        position = end
    pieces.append(data[position:])
    return hash(b"\0".join(pieces)), len(pieces)


def _may_launch(data: bytes, start: int, end: int) -> bool:
    marked = data.find(b"<<", start, end) >= 0 or data.find(b"cudaLaunch", start, end) >= 0
    return marked and _LAUNCHES.search(data, start, end) is not None


def _is_of_device(data: bytes, start: int, end: int) -> bool:
    """Whether a function says that the device alone calls it."""
    head = data[start : data.find(b"{", start, end)]
    return b"__device__" in head and not _OF_HOST.search(head)


def called_stretches(sources: KernelSources, kernel: KernelSource, data: bytes) -> list[tuple[int, int]]:
    """Byte stretches of the kernel and of functions of the file that it may reach, by name."""
    found = [kernel.offsets]
    pending = [kernel.offsets]
    remaining = list(sources.device_functions)
    while pending:
        start, end = pending.pop()
        words = set(_WORD.findall(data, start, end))
        for function in [f for f in remaining if f[0].encode() in words or f[0].startswith("operator")]:
            remaining.remove(function)
            found.append(function[1:])
            pending.append(function[1:])
    return found


@frozen
class Environment:
    """What the kernels of a text have around them: digests of it, and the lines of device entities.

    ``whole``: with the bodies of host functions. Those count for kernels that launches there instantiate, for
    constants of launch bounds, and for kernels that name such a function (``host``).
    """

    plain: bytes
    whole: bytes
    device_lines: tuple[int, ...]
    host: frozenset[bytes]

    def digest(self, kernel: KernelSource, text: bytes) -> bytes:
        """Of what this kernel may depend on."""
        if kernel.template or kernel.template_arguments or b"__launch_bounds__" in text:
            return self.whole
        return self.plain if self.host.isdisjoint(_WORD.findall(text)) else self.whole


def environment_of(
    sources: KernelSources, source: SourceText, context: bytes, host: Sequence[Body] = ()
) -> Environment:
    """Of a text whose kernels are known; ``context``: flags and headers, all that is not in the file.

    ``host``: host functions whose bodies mean nothing to text outside them.
    """
    extents = sorted({k.offsets for k in sources.kernels} | {k.offsets for k in sources.templates})
    outside, device_lines = _environment(source, extents)
    whole = hashlib.sha256(context + b"\0" + outside).digest()
    hidden = [(body.start + 1, body.end - 1) for body in host]
    plain = hashlib.sha256(context + b"\0" + _environment(source, sorted([*extents, *hidden]))[0]).digest()
    return Environment(plain, whole, tuple(device_lines), frozenset(body.name for body in host))


def with_digests(
    sources: KernelSources,
    source: SourceText,
    environment: Environment,
    only: tuple[int, int] | None = None,
) -> KernelSources:
    """``sources`` with digests; ``only``: of the kernel with these offsets, the others have theirs."""
    kernels = (
        k if only is not None and k.offsets != only else _with_digest(k, source, environment)
        for k in sources.kernels
    )
    return evolve(sources, kernels=tuple(kernels))


def _with_digest(kernel: KernelSource, source: SourceText, environment: Environment) -> KernelSource:
    start, end = kernel.offsets
    line = kernel.range.start.line
    # Sites inside inlined device functions do not move with the kernel: their distance is part of the result.
    distances = ",".join(str(other - line) for other in environment.device_lines)
    sha = hashlib.sha256(environment.digest(kernel, source.data[start:end]))
    sha.update(f"\0{kernel.name}\0{kernel.range.start.column}\0{distances}\0".encode())
    sha.update(source.data[start:end])
    return evolve(kernel, digest=sha.hexdigest())


def _environment(source: SourceText, extents: Sequence[tuple[int, int]]) -> tuple[bytes, list[int]]:
    """All text outside kernels with the preprocessor lines inside them, and lines of device entities."""
    pieces: list[bytes] = []
    lines: list[int] = []
    position = 0
    for start, end in (*extents, (len(source.data), len(source.data))):
        if start > position:
            pieces.append(source.data[position:start])
            lines += (
                source.position(position + match.start()).line
                for match in _DEVICE_ENTITY.finditer(pieces[-1])
            )
        if end > position:
            pieces.append(b"\0".join(DIRECTIVE_LINE.findall(source.data, max(start, position), end)))
        position = max(position, end)
    return b"\0".join(pieces), lines
