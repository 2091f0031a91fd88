"""Plausible arguments for kernel templates that the file never instantiates.

A template that no launch of the file fixes is still worth checking: a line that names
``kernel<float, 256>`` is appended behind the last line of the buffer (no position moves), so clang
instantiates it. Values come from launches, as far as these tell (``told_instances``), else from the
template's own hints: launch bounds, parameter names, small defaults. The arguments that were assumed are part
of the kernel's name, so they are shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence, Set

from attrs import evolve

from cuda_lsp.blanked import blanked
from cuda_lsp.frontend.host.launch_site import LaunchSite
from cuda_lsp.frontend.host.text import split_arguments, whole_arguments
from cuda_lsp.frontend.kernel_sources import KernelSource, KernelSources, spread
from cuda_lsp.frontend.libclang import RawCursor, raw_cursor
from cuda_lsp.frontend.parse_problems import Problems
from cuda_lsp.frontend.source_text import SourceText
from cuda_lsp.frontend.specialisations import specialised_for
from cuda_lsp.frontend.stand_ins import StandIns, parameters_of_template
from cuda_lsp.frontend.told_instances import TemplateParameter, told
from cuda_lsp.frontend.tree import Ast
from cuda_lsp.model import Severity, ToolError

_TYPE_PARAMETER, _VALUE_PARAMETER, _TEMPLATE_PARAMETER = 27, 28, 29
_BOUNDS = re.compile(rb"__launch_bounds__\s*\(\s*(\d+)")
_ENUM, _ENUM_CONSTANT = 5, 7
_DEFAULT_TYPES = ("float", "int", "double")
_VECTOR_TYPES = ("float", "int", "float2")  # for templates that name a vector's members
# The first guesses keep to what parameters are called; later ones have one type for all parameters, or a
# vector for one of them (its number, from -1 down). Numbers whose names tell nothing are small in the last:
# dimensions and orders of methods, of which there are few. What all fail with may be that numbers are of
# warps, or that one type is of values and the next ones of places: in the very last, which fill packs, too.
_ATTEMPTS: tuple[tuple[int | tuple[str, ...], bool, str], ...] = (
    (0, True, "16"),
    (1, True, "16"),
    (2, True, "16"),
    (-1, False, "16"),
    (-2, False, "16"),
    (1, False, "16"),
    (0, True, "1"),
    (0, True, "2"),
    (("float", "int"), True, "32"),
    (("unsigned", "float"), False, "32"),
)
# Guesses with classes of the project: which of those that fit, and which attempt says the other arguments.
_WITH_CLASSES = ((0, 0), (1, 0), (2, 0), (0, 1), (0, 6), (0, 7), (3, 0), (0, 8))
_WORD = re.compile(r"(?<![\w:])[A-Za-z_]\w*")
_SCOPE = re.compile(r"\(&((?:\w+::)*\w+)::\w+<")  # of a template among others of its name
_BEFORE_NAME = re.compile(r"(->|\S)\s*\b\w+\s*\Z")
_NEAR = 200  # characters
_IN_EXPRESSIONS = frozenset(("->", *".=(+-/{};!?:[|<"))  # no type stands there
_MEMBER = re.compile(rb"(?<!Idx)(?<!Dim)\.[xy]\b")

# What a type parameter is called → a usual type, for the first guess; first match wins.
_TYPES: tuple[tuple[str, str], ...] = (
    (r"bits?_|.*_bits?(?:_|$)|.*mask|u_?int|unsigned|word", "unsigned"),
    (r"ind(?:ex|ice)|idx|.*_(?:index|idx)_?t?$|offset|size_?t?$|int(?:eger)?_?t?$|count|label", "int"),
    (r".*(?:stride|pitch|step)s?(?:_?t(?:ype)?)?$", "int"),
)

# What a template parameter is called → a usual value; first match wins.
_VALUES: tuple[tuple[str, str], ...] = (
    (r"warps?(?:_?per.*)?$|num_?warps", "4"),
    (r"warp_?size|lanes", "32"),
    (r"(?:block|bm|bn|tile|bk).*(?:dim|size|width|height|_?[xymnk])?$", "16"),
    (r"thread_?group|group_?(?:size|width)", "32"),
    (r"thread|nthreads|block_?size|bs$|bdim", "256"),
    (r"unroll|items|per_?thread|ipt|vec|stages?", "4"),
    (r"radius|halo", "3"),
)

_IN_A_PACK = 2  # arguments, where there are some
_UNTOLD = "…"  # among a kernel's template arguments
_INDEX = "1"  # of what is the number of an element, of which there may be few: of an axis, a channel, a stage

_MOST_ATTEMPTS = len(_WITH_CLASSES) + len(_ATTEMPTS)
_TOLD = 0  # the first attempt, before the guesses: what launches tell
_LAST_ATTEMPT = 1000  # no guess compiles: the first one stays, with its errors
_MOST_TEMPLATES = 64

Launches = Callable[[str], Sequence[LaunchSite]]
"""The launches of the project that are known, of a kernel by its name."""


class Guesses:
    """What is asked for, for every template that needs it; kept from one text to the next."""

    def __init__(self) -> None:
        # Template header → attempt, and ``&kernel<float, 16>``, of which launches tell several.
        self._requests: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._refused: dict[str, tuple[str, ...]] = {}  # what launches tell, where that does not compile
        self._enumerators: dict[str, int] = {}  # the value that stands for each enumeration
        self._classes: dict[str, tuple[tuple[str, ...], ...]] = {}  # guesses with classes of the unit
        self._several: set[tuple[str, str]] = set()  # scopes and names that headers may give others, too
        self._numbers: set[str] = set()  # what launches tell but for numbers, which are guessed

    @property
    def count(self) -> int:
        """Templates that need it."""
        return sum(bool(asked) for _, asked in self._requests.values())

    @property
    def text(self) -> str:
        """The line for all of them."""
        return appended([each for _, asked in self._requests.values() for each in asked])

    def text_for(self, templates: Sequence[KernelSource], source: SourceText) -> str:
        """The line for these templates only; "" when the file itself says their arguments."""
        return appended([each for template in templates for each in self._request(template, source)])

    def asked_for(self, templates: Sequence[KernelSource], source: SourceText) -> bool:
        """Whether any of the templates has arguments that were guessed."""
        return any(self._request(template, source) for template in templates)

    def made_up(self, templates: Sequence[KernelSource], source: SourceText) -> bool:
        """Whether no launch tells anything of the arguments of these templates."""
        requests = (self._requests.get(_header(template, source), (_TOLD, ())) for template in templates)
        return any(asked and attempt != _TOLD for attempt, asked in requests)

    def numbers_made_up(self, templates: Sequence[KernelSource], source: SourceText) -> bool:
        """Whether launches tell some of the arguments of these templates, and not their numbers."""
        return any(a in self._numbers for template in templates for a in self._request(template, source))

    def _request(self, template: KernelSource, source: SourceText) -> tuple[str, ...]:
        return self._requests.get(_header(template, source), (_TOLD, ()))[1]

    def revise(
        self, ast: Ast, sources: KernelSources, problems: Problems, source: SourceText, launches: Launches
    ) -> bool:
        """Ask for, change or withdraw instantiations. True: the text must be parsed again."""
        before = {key: asked for key, (_, asked) in self._requests.items()}
        made = _Requests(
            ast, source.data, launches, sources.templates, self._enumerators, self._several, self._numbers
        )
        failed = self._failed(problems.of_requests)
        for template in sources.templates:
            key = _header(template, source)
            instances = [k for k in sources.kernels if k.offsets == template.offsets and not k.dependent]
            attempt, asked = self._requests.get(key, (-1, ()))
            broken = problems.within(*template.offsets)
            if attempt < 0:
                if not instances:
                    self._ask(made, key, template, _TOLD, broken)
            elif len(instances) > len(asked) and asked:
                del self._requests[key]  # the file itself fixes the arguments now
            elif not failed.isdisjoint(asked) or (
                asked and (problems.hang_on_arguments(*template.offsets) if broken else not instances)
            ):
                nothing = not broken and failed.isdisjoint(asked)
                if nothing and (named := (template.scope, template.base_name)) not in self._several:
                    # The name alone may mean others of the unit, which clang does not say: with its type.
                    self._several.add(named)
                    self._classes.pop(key, None)
                    self._ask(made, key, template, attempt, broken)
                    continue
                if attempt == _TOLD:
                    self._refused[key] = asked
                self._ask(made, key, template, attempt + 1, not nothing)
            elif asked and (new := made.told(template)) not in ((), asked, self._refused.get(key)):
                self._requests[key] = (_TOLD, new)
        for key in list(self._requests)[:-_MOST_TEMPLATES]:
            del self._requests[key]
        for key in list(self._classes)[:-_MOST_TEMPLATES]:
            del self._classes[key]
        return before != {key: asked for key, (_, asked) in self._requests.items()}

    def named(self, sources: KernelSources, source: SourceText) -> KernelSources:
        """With the templates among the arguments of guessed instances, whose names clang does not tell."""
        if not any(_UNTOLD in kernel.template_arguments for kernel in sources.kernels):
            return sources
        asked = {t.offsets: self._request(t, source) for t in sources.templates}
        return evolve(
            sources, kernels=tuple(_with_names(k, asked.get(k.offsets, ())) for k in sources.kernels)
        )

    def _failed(self, places: Sequence[int]) -> set[str]:
        """What was asked for where ``places`` of the line are; errors hang on it, wherever they stand."""
        line, found = self.text.encode(), set[str]()
        for _, asked in self._requests.values() if places else ():
            for each in asked:
                start = line.find(_use(each).encode())
                if any(start <= place < start + len(_use(each).encode()) for place in places):
                    found.add(each)
        return found

    def _ask(self, made: _Requests, key: str, template: KernelSource, attempt: int, broken: bool) -> None:
        asked = made.told(template) if attempt == _TOLD else ()
        if key not in self._classes:  # once: what headers declare, clang shows when it reads a unit first
            self._classes[key] = made.with_classes(template)
        if not asked and attempt <= _MOST_ATTEMPTS:
            attempt = max(attempt, _TOLD + 1)
            every = [*self._classes[key], *(made.guessed(template, n) for n in range(len(_ATTEMPTS)))]
            tried = [(), *every[: attempt - 1]]
            attempt = next(
                (n + 1 for n, each in enumerate(every) if n >= attempt - 1 and each not in tried), 0
            )
            asked, attempt = (every[attempt - 1], attempt) if attempt else ((), _MOST_ATTEMPTS + 1)
        if not asked and broken:
            # No guess compiles. The first one at least gives the types names; its errors are shown.
            asked, attempt = made.told(template) or made.guessed(template, 0), _LAST_ATTEMPT
        if attempt <= _LAST_ATTEMPT:
            self._requests[key] = (attempt, asked)


class _Requests:
    """What can be asked for of the templates of one text."""

    def __init__(
        self,
        ast: Ast,
        data: bytes,
        launches: Launches,
        templates: Sequence[KernelSource],
        enumerators: dict[str, int],
        several: Set[tuple[str, str]],
        numbers: set[str],
    ) -> None:
        self._ast = ast
        self._root = raw_cursor(ast.tu.cursor)
        self._enumerators = enumerators
        self._data = data
        self._launches = launches
        self._stand_ins = StandIns(ast, self._root, data)
        self._overloaded = Counter((template.scope, template.base_name) for template in templates)
        self._several = several
        self._numbers = numbers

    def _parameters(self, template: KernelSource, attempt: int) -> tuple[TemplateParameter, ...] | None:
        return parameters_of(self._ast, template, self._data, attempt, self._enumerator)

    def told(self, template: KernelSource) -> tuple[str, ...]:
        """``&ns::kernel<float, 256>``, as launches write it; none: they do not tell."""
        parameters = self._parameters(template, 0)
        if parameters is None:
            return ()
        sites = [s for s in self._launches(template.base_name) if s.kernel == template.base_name]
        read = [s for s in sites if not s.left_out] or sites
        every = told(parameters, read, self._data.decode("utf-8", "replace"))
        asked = {self._named(template, arguments): every[arguments] for arguments in spread(tuple(every))}
        self._numbers.difference_update(asked)
        self._numbers.update(each for each, numbers in asked.items() if not numbers)
        return tuple(asked)

    def guessed(self, template: KernelSource, attempt: int) -> tuple[str, ...]:
        """Guess number ``attempt`` (from 0), the first with its defaults; none: that one says nothing."""
        return self._asked(template, self._parameters(template, attempt), with_defaults=attempt == 0)

    def with_classes(self, template: KernelSource) -> tuple[tuple[str, ...], ...]:
        """The guesses with classes of the unit, of which there are none for most templates."""
        return tuple(
            self._asked(template, self._with_classes(template, *numbers)) for numbers in _WITH_CLASSES
        )

    def _asked(
        self,
        template: KernelSource,
        parameters: Sequence[TemplateParameter] | None,
        *,
        with_defaults: bool = False,
    ) -> tuple[str, ...]:
        if parameters is None:
            return ()
        while with_defaults and len(parameters) > 1 and parameters[-1].has_default and parameters[-1].guess:
            parameters = parameters[:-1]
        if any(not parameter.guess for parameter in parameters):
            return ()
        return (self._named(template, ", ".join(parameter.guess for parameter in parameters)),)

    def _with_classes(
        self, template: KernelSource, which: int, attempt: int
    ) -> tuple[TemplateParameter, ...] | None:
        """With the classes of the unit that parameters may be; None: there is none for any."""
        plain = self._parameters(template, attempt)
        if plain is None:
            return None
        names = template.template_parameters
        usual = {name: told.guess for name, told in zip(names, plain, strict=False)}

        def guess(parameter: RawCursor) -> str:
            return usual.get(self._ast.spelling(parameter)) or self._one(parameter, attempt)

        found = list(plain)
        chosen = False
        for parameter in parameters_of_template(self._ast, template.cursor):
            if parameter.number < len(found):
                classes = self._stand_ins.of(template.cursor, parameter, guess)
                if classes:
                    found[parameter.number] = evolve(
                        found[parameter.number], guess=classes[which % len(classes)]
                    )
                    chosen = chosen or which < len(classes)
        return tuple(found) if chosen else None

    def _one(self, parameter: RawCursor, attempt: int) -> str:
        """What stands for a parameter of another template."""
        if parameter.kind == _TYPE_PARAMETER:
            return _type(self._ast.spelling(parameter).lower(), _DEFAULT_TYPES[0], named=True)
        return _value(self._ast, parameter, None, _ATTEMPTS[attempt][2], self._enumerator)

    def _enumerator(self, parameter: RawCursor) -> str | None:
        return _enumerator(self._ast, parameter, self._root, self._enumerators)

    def _named(self, template: KernelSource, arguments: str) -> str:
        address = f"&{template.scope}{template.base_name}<{arguments}>"
        named = (template.scope, template.base_name)
        if self._overloaded[named] == 1 and named not in self._several:
            return address
        # Which one of its name is meant, its type tells.
        lib = self._ast.lib
        whole = self._ast.string(lib.clang_getTypeSpelling(lib.clang_getCursorType(template.cursor)))
        stands_for = dict(zip(template.template_parameters, split_arguments(arguments), strict=False))
        takes = _WORD.sub(lambda word: stands_for.get(word[0], word[0]).strip(), _taken(whole))
        return f"static_cast<void (*)({takes}>({address})"


def _taken(type: str) -> str:
    """What stands in the last brackets of a function's type, and ``)``; others are of what it returns."""
    depth = 0
    for place in range(len(type) - 1, -1, -1):
        depth += (type[place] == ")") - (type[place] == "(")
        if type[place] == "(" and not depth:
            return type[place + 1 :]
    return ")"


def _with_names(kernel: KernelSource, asked: Sequence[str]) -> KernelSource:
    if len(asked) != 1 or _UNTOLD not in kernel.template_arguments:
        return kernel
    written = whole_arguments(asked[0].partition("<")[2].rpartition(">")[0])
    told = tuple(
        written[i].strip() if each == _UNTOLD and i < len(written) else each
        for i, each in enumerate(kernel.template_arguments)
    )
    return evolve(kernel, template_arguments=told, name=f"{kernel.base_name}<{', '.join(told)}>")


def _header(template: KernelSource, source: SourceText) -> str:
    """What tells a template from others while the text changes: name, what it takes, what stands before."""
    start, _ = template.offsets
    name = template.name_range.start
    line = source.line_starts[name.line - 1]
    before = source.data[start : line + name.column - 1].decode("utf-8", "replace")
    takes = zip(template.parameter_types, template.parameters, strict=True)  # overloads name them alike
    return f"{template.scope}{template.base_name}({', '.join(map(' '.join, takes))}):{before}"


def left_out(sources: KernelSources) -> list[ToolError]:
    """What the user should know of files and templates with more kernels than are looked at."""
    told: list[ToolError] = []
    if sources.more:
        shown = len(sources.kernels)
        what = f"{shown:,} of its {shown + sources.more:,} kernels are analysed: those at its beginning"
        told.append(ToolError(what, severity=Severity.ERROR))
    for template, more in sources.skipped:
        shown = sum(k.offsets == template.offsets for k in sources.kernels)
        told.append(
            ToolError(
                f"kernel template '{template.base_name}' has {shown + more} instantiations;"
                f" {shown} of them are analysed: a file that instantiates others alone shows these",
                template.name_range,
            )
        )
    return told


def without_arguments(sources: KernelSources) -> list[ToolError]:
    """What the user should know of templates that no arguments were found for."""
    return [
        ToolError(
            f"kernel template '{kernel.base_name}' is never instantiated in this file and no guess of its"
            " arguments compiles: instantiate it explicitly to have it analysed",
            kernel.name_range,
            kernel=kernel.base_name,
        )
        for kernel in sources.kernels
        if kernel.dependent
    ]


def parameters_of(
    ast: Ast, template: KernelSource, data: bytes, attempt: int, enumerator: Callable[[RawCursor], str | None]
) -> tuple[TemplateParameter, ...] | None:
    """A template's parameters with guess number ``attempt`` (from 0); None when there is no further guess."""
    start, end = template.offsets
    types = _VECTOR_TYPES if _MEMBER.search(data, start, end) is not None else _DEFAULT_TYPES
    if attempt >= len(_ATTEMPTS):
        return None
    kind, named, number = _ATTEMPTS[attempt]
    vectors = types is _VECTOR_TYPES
    bounds = _BOUNDS.search(data, start, end)
    found: list[TemplateParameter] = []
    count = 0  # of types
    for parameter in ast.children(template.cursor):
        if parameter.kind == _TEMPLATE_PARAMETER:
            found.append(TemplateParameter("", is_type=True, has_default=True))  # no plain guess is one
            continue
        if parameter.kind not in (_TYPE_PARAMETER, _VALUE_PARAMETER):
            continue
        text = _text(ast, parameter, data)
        if b"..." in text:
            if isinstance(kind, tuple) and parameter.kind == _TYPE_PARAMETER:
                found += [TemplateParameter(types[0], is_type=True)] * _IN_A_PACK
            break
        if parameter.kind == _TYPE_PARAMETER:
            count += 1
            if isinstance(kind, tuple):
                usual = kind[min(count, len(kind)) - 1]
            else:
                usual = types[kind] if kind >= 0 else types[-1] if vectors and count == -kind else types[0]
            guess = _type(ast.spelling(parameter).lower(), usual, named)
            found.append(TemplateParameter(guess, is_type=True, has_default=b"=" in text))
        else:
            usual = _INDEX if _is_index(ast.spelling(parameter), data[start:end]) else number
            guess = _value(ast, parameter, bounds[1].decode() if bounds else None, usual, enumerator)
            enumeration = guess.startswith("static_cast<")
            found.append(TemplateParameter(guess, is_enumeration=enumeration, has_default=b"=" in text))
    return tuple(found)


def _is_index(name: str, text: bytes) -> bool:
    """The template takes elements by the parameter (``p.strides[dim]``), and makes no array of that size."""
    taken = re.compile(rf"\[\s*{re.escape(name)}\s*\]")
    if not name or taken.search(whole := text.decode("utf-8", "replace")) is None:
        return False
    code = blanked(whole)
    before = [_BEFORE_NAME.search(code, max(0, m.start() - _NEAR), m.start()) for m in taken.finditer(code)]
    return bool(before) and all(m is not None and m[1] in _IN_EXPRESSIONS for m in before)


def _type(name: str, otherwise: str, named: bool) -> str:
    usual = next((kind for pattern, kind in _TYPES if re.match(pattern, name)), None)
    return usual if usual is not None and named else otherwise


def appended(requests: Sequence[str]) -> str:
    """The line that makes clang instantiate ``requests``; it goes behind the text of the file."""
    if not requests:
        return ""
    scopes = dict.fromkeys(scope for request in requests for scope in _SCOPE.findall(request))
    names = "".join(f"using namespace {scope};" for scope in scopes)
    uses = " ".join(map(_use, requests))
    return f"\nvoid __cuda_lsp_instantiate() {{ {names} {uses} }}\n"


def _use(request: str) -> str:
    return f"(void){request};"


def _value(
    ast: Ast,
    parameter: RawCursor,
    bounds: str | None,
    otherwise: str,
    enumerator: Callable[[RawCursor], str | None],
) -> str:
    name = ast.spelling(parameter).lower()
    kind = ast.string(ast.lib.clang_getTypeSpelling(ast.lib.clang_getCursorType(parameter)))
    if "bool" in kind:
        return "true"
    member = enumerator(parameter)
    if member is not None:
        return member
    for pattern, value in _VALUES:
        if re.match(pattern, name):
            return bounds if bounds and value == "256" else value
    return otherwise


def _enumerator(ast: Ast, parameter: RawCursor, root: RawCursor, known: dict[str, int]) -> str | None:
    """A value of the parameter's enumeration, by its full name; None when it is no enumeration.

    The one that most templates are specialised for (others may be declared only), else the first; ``known``:
    by the name of the enumeration, those that were chosen before.
    """
    lib = ast.lib
    type = lib.clang_getCanonicalType(lib.clang_getCursorType(parameter))
    declaration = lib.clang_getTypeDeclaration(type)
    if declaration.kind != _ENUM:
        return None
    name = ast.string(lib.clang_getTypeSpelling(type))
    if name not in known:
        constants = [c for c in ast.children(declaration) if c.kind == _ENUM_CONSTANT]
        values = [lib.clang_getEnumConstantDeclValue(constant) for constant in constants]
        used = specialised_for(ast, root, declaration)
        known[name] = max(values, key=lambda value: used[value], default=0)  # of several the first
    return f"static_cast<{name}>({known[name]})"


def _text(ast: Ast, parameter: RawCursor, data: bytes) -> bytes:
    lib = ast.lib
    extent = lib.clang_getCursorExtent(parameter)
    start = ast.place(lib.clang_getRangeStart(extent))[3]
    end = ast.place(lib.clang_getRangeEnd(extent))[3]
    return data[start:end]
