"""Which of clang's diagnostics a user should hear about, in words with a next step.

Host code parsed for the device is full of errors that mean nothing, and so do toolkit headers that we
replace: those are dropped here on purpose. What counts is a header of the user's own that is missing, and
errors inside a kernel's text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from attrs import frozen

from cuda_lsp.frontend.clang_errors import Said, clang_errors
from cuda_lsp.frontend.compile_errors import (
    CompileError,
    Complaint,
    complaint,
    in_an_instance,
    missing_header,
    requested,
)
from cuda_lsp.frontend.header_problems import HeaderFunctions, HeaderProblem
from cuda_lsp.frontend.kernel_sources import KernelSource, KernelSources, called_stretches
from cuda_lsp.frontend.source_text import SourceText
from cuda_lsp.frontend.tree import Ast
from cuda_lsp.ir.program import NextStep
from cuda_lsp.model import Severity, SourceRange, ToolError

# Headers of the toolkit, of libraries beside it and of the C library, by their whole names: a project's own
# may begin alike (``cuda_helpers.h``, ``cv/cuda_tools/wrap.hpp``).
_NOBODYS = re.compile(
    r"\A(?:cub|thrust|crt|sys|bits|nv|nvtx3|cooperative_groups)/|\Acuda/(?!.*\.)"
    r"|\A(?:cuda(?:_runtime(?:_api)?|_(?:fp16|bf16|fp8|fp6|fp4)|_profiler_api|_device_runtime_api|_pipeline\w*"
    r"|_awbarrier\w*|_(?:texture|surface)_types|_(?:gl|egl|vdpau)_interop|GL|EGL|Profiler|Typedefs|rt_platform)?"
    r"|cu(?:blas(?:_v2|_api|Lt|Xt)?|fft(?:w|Xt)?|rand(?:_\w+)?|sparse(?:_v2|Lt)?|solver(?:Dn|Sp|Rf|Mg|_common)?"
    r"|dnn(?:_\w+)?|Complex|tensor|pti)|npp\w*|nv(?:ml|rtc|jpeg|functional|ToolsExt\w*|JitLink|PTXCompiler)|nccl"
    r"|device_(?:types|functions|atomic_functions|double_functions|launch_parameters)|driver_(?:types|functions)"
    r"|vector_(?:types|functions)|host_(?:config|defines)|math_(?:constants|functions)|(?:builtin|library)_types"
    r"|(?:texture|surface)_(?:types|functions|fetch_functions|indirect_functions)|channel_descriptor|sm_\d\d_\w+"
    r"|mma|mpi|omp|assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|memory|setjmp|signal"
    r"|std(?:align|arg|atomic|bool|def|int|io|lib|noreturn)|strings?|tgmath|threads|time|uchar|unistd|wchar|wctype"
    r"|pthread|getopt|malloc)(?:\.h(?:pp)?)?\Z"
)
_WORD = re.compile(rb"[A-Za-z_]\w*")
_PER_KERNEL = 3


@frozen
class Problem:
    """An error of clang in the file that is looked at; ``offset`` in bytes.

    ``syntax``: of its parser. ``instance``: of a template with some arguments; others may be without it.
    """

    message: str
    offset: int
    line: int
    syntax: bool = False
    instance: bool = False


@frozen
class Problems:
    """What clang complained of in one parse.

    ``missing``: (name, line) of headers; the line is 0 when another header includes it. Headers in
    ``<…>`` are the system's: absent on purpose, the shim declares what matters of them. ``unfound``: the
    names of all that a project may have. ``of_requests``: where the line of requests behind the unit's text
    asks for what errors hang on, in bytes from its beginning. ``refused``: that line itself has errors.
    """

    main: tuple[Problem, ...] = ()
    headers: tuple[HeaderProblem, ...] = ()
    missing: tuple[tuple[str, int], ...] = ()
    unfound: tuple[str, ...] = ()
    of_requests: tuple[int, ...] = ()
    refused: bool = False

    def within(self, start: int, end: int) -> bool:
        """Whether there are errors between two byte offsets of the main file."""
        return any(start <= p.offset < end for p in self.main)

    def hang_on_arguments(self, start: int, end: int) -> bool:
        """Whether the errors of a template there may be gone with other arguments.

        Those never are that were found when it was read, before any arguments were known. Of several in one
        instance clang tells for the first alone that they are of one: what comes behind that is, too, as a
        template is read to its end before.
        """
        first = next((p for p in self.main if start <= p.offset < end), None)
        return first is not None and first.instance


def read_problems(
    ast: Ast,
    path: Path,
    limit: int,
    reworded: Callable[[str, int, Iterator[str]], str],
    requests: tuple[Path, int] | None = None,
) -> Problems:
    """The errors of a parse; those beyond the first ``limit`` bytes of ``path`` are not the user's.

    ``reworded``: what to say of an error, by clang's words, its place, and the notes below it. ``requests``:
    where the line of requests begins, if there is one.
    """
    main: list[Problem] = []
    headers: list[HeaderProblem] = []
    missing: list[tuple[str, int]] = []
    unfound: dict[str, None] = {}
    asked: dict[int, None] = {}
    refused = False
    for (message, file, line, column, offset), syntax, notes in clang_errors(ast):
        if complaint(message) is Complaint.FORGIVEN:
            continue
        name = ast.path(file)
        here = name == path
        message = reworded(message, offset if here else -1, (note.message for note in notes))
        main += _requests(ast, notes, path, message)
        if requests is not None:
            asked.update(dict.fromkeys(_asked_behind(ast, notes, *requests)))
        absent = missing_header(message)
        if absent is not None:
            system = ast.contents(file)[offset : offset + 1] == b"<"
            if not system:
                missing.append((absent, line if here else 0))
            if _may_be_of_the_project(absent, system):
                unfound[absent] = None
        elif not here:
            headers.append(HeaderProblem(message, str(name), offset, line, column))
        elif offset < limit:
            instance = any(in_an_instance(note.message) for note in notes)
            main.append(Problem(message, offset, line, syntax, instance))
        else:
            refused = True
    return Problems(tuple(main), tuple(headers), tuple(missing), tuple(unfound), tuple(asked), refused)


def _asked_behind(ast: Ast, notes: Iterable[Said], path: Path, begin: int) -> Iterator[int]:
    """Where behind byte ``begin`` of the file an instance is asked for that an error is of."""
    for note in notes:
        if in_an_instance(note.message) and note.offset >= begin and _is_of(ast, note, path):
            yield note.offset - begin


def _may_be_of_the_project(header: str, system: bool) -> bool:
    return not _NOBODYS.search(header) and (not system or "/" in header or "." in header)


def _requests(ast: Ast, notes: Iterable[Said], path: Path, message: str) -> Iterator[Problem]:
    """The same problem of a template where the main file asks for an instance of it."""
    for note in notes:
        if requested(note.message) and _is_of(ast, note, path):
            yield Problem(message, note.offset, note.line, instance=True)


def _is_of(ast: Ast, note: Said, path: Path) -> bool:
    return bool(note.file) and ast.path(note.file) == path


_MOST_NAMED = 3
"""Headers named in one message."""


def missing_headers(
    missing: Sequence[tuple[str, int]], source: SourceText, includes: SourceRange | None = None
) -> list[ToolError]:
    """One message for the headers of the user's own that were not found on one line's behalf.

    ``includes``: where the text includes others, in which a header may be missing.
    """
    by_line: dict[int, list[str]] = {}
    seen: set[str] = set()
    for name, line in missing:
        if name in seen or _NOBODYS.search(name):
            continue
        seen.add(name)
        line = line if line <= len(source.line_starts) else 0  # else it stands behind the text
        by_line.setdefault(line, []).append(name)
    return [
        ToolError(_not_found(names), source.range(*_ends_of(source, line)) if line else includes)
        for line, names in by_line.items()
    ]


def _ends_of(source: SourceText, line: int) -> tuple[int, int]:
    start = source.line_starts[line - 1]
    return start, start + len(source.line(line))


def _not_found(names: Sequence[str]) -> str:
    """What to tell of headers that a line needs."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    listed = ", ".join(map(repr, names[:_MOST_NAMED])) + more
    if len(names) == 1:
        told = f"header {listed} was not found, so what it declares is unknown: add its folder"
    else:
        told = f"headers {listed} were not found, so what they declare is unknown: add their folders"
    return f"{told} to the setting include-dirs, pass -I, or provide a compile_commands.json"


def errors_within(
    kernel: KernelSource,
    sources: KernelSources,
    problems: Sequence[Problem],
    header_functions: HeaderFunctions | None,
    source: SourceText,
) -> tuple[tuple[CompileError, ...], set[bytes]]:
    """Where clang reports errors inside a kernel, or inside functions that it may call; and the words of
    all of these, its parameters' types among them."""
    stretches = called_stretches(sources, kernel, source.data)
    found = dict.fromkeys(
        (p.offset, p.message) for p in problems if any(start <= p.offset < end for start, end in stretches)
    )
    errors = [CompileError(source.range(offset, offset + 1), message) for offset, message in found]
    words = {word for start, end in stretches for word in _WORD.findall(source.data, start, end)}
    words.update(_WORD.findall(" ".join(kernel.parameter_types).encode()))
    if header_functions is not None:
        more, words = header_functions.reached(words)
        errors += more
    return tuple(errors), words


def outside_functions(
    problems: Problems, sources: KernelSources, source: SourceText
) -> list[tuple[str, int, CompileError]]:
    """Path, offset and error of what stands in headers, or here and in no function that is known."""
    inside = sorted({*(k.offsets for k in (*sources.kernels, *sources.templates)),
                     *((body.start, body.end) for body in sources.bodies),
                     *((start, end) for _, start, end in sources.device_functions)})  # fmt: skip
    found = [(p.path, p.offset, p.error) for p in problems.headers]
    found += (
        (str(source.path), p.offset, CompileError(source.range(p.offset, p.offset + 1), p.message))
        for p in problems.main
        if not any(start <= p.offset < end for start, end in inside)
    )
    return found


def kernel_errors(kernels: Sequence[KernelSource], problems: Problems, source: SourceText) -> list[ToolError]:
    """The first few errors inside each kernel's text, as clang words them.

    What is no C++ at all is an error, unless headers are missing whose macros would make it some.
    """
    errors: list[ToolError] = []
    guesswork = bool(problems.missing or problems.unfound)
    for start, end in sorted({k.offsets for k in kernels}):
        inside = [p for p in problems.main if start <= p.offset < end]
        found = list(dict.fromkeys((p.message, p.offset, p.syntax and not guesswork) for p in inside))
        name = next(k.base_name for k in kernels if k.offsets == (start, end)) if inside else ""
        for message, offset, certain in found[:_PER_KERNEL]:
            place = source.range(offset, offset + 1)
            hint = "" if certain else f"; {NextStep.HEADER.value}"
            said = f"in kernel '{name}', not understood: {message}{hint}"
            severity = Severity.ERROR if certain else Severity.INFORMATION
            errors.append(ToolError(said, place, severity, name if certain else ""))
    return errors
