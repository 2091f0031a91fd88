"""The text of a file around one edited kernel: what else it says and no kernel can depend on is blank.

A keystroke inside the body of one kernel leaves everything else as it was, and what that kernel means
does not depend on the bodies of other kernels or of host functions. So while a kernel is typed in, clang
reads the file with those bodies blank, lines and columns as they were: a sixth of the time for 3,000 lines.
What the last reading of the whole file said of the rest still holds, moved with the text. The instances
of a template that it found are asked for by name, so that nothing has to be read that asks for them.

``focus_on`` gives up (the whole file is read then) wherever text alone does not tell that an edit stays
inside its kernel: braces that do not close, preprocessor lines that change, launches inside kernels,
bodies that macros write. Whether clang saw the kernel end where it should is for the caller to check.
An edit inside a host function leaves all kernels as they were, and nothing needs to be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from attrs import evolve, frozen

from cuda_lsp.frontend.kernel_sources import DIRECTIVE_LINE, Body, KernelSource, KernelSources
from cuda_lsp.frontend.source_text import BLANK, differing

_WORD = re.compile(rb"[A-Za-z_]\w*")
_TOKEN = re.compile(
    rb"//[^\n]*|/\*.*?(?:\*/|(?P<comment>\Z))|(?P<raw>R\")|\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*(?:\"|(?P<string>))"
    rb"|'[^'\\\n]*(?:\\.[^'\\\n]*)*(?:'|(?P<character>))|\.?\d[\w.']*|[A-Za-z_]\w*|[{}]",
    re.S,
)
_UNCLEAR = frozenset({"comment", "raw", "string", "character"})
# What makes a body part of what the function means to others: a type to deduce, a value to compute.
_TELLING = re.compile(rb"\b(?:auto|decltype|constexpr|consteval|operator|__device__)\b")
_TEMPLATE = re.compile(rb"\btemplate\b")
# In the edited kernel. Where a line is spliced beside white space no word is hidden.
_NEVER = re.compile(rb"<<\s{0,8}<|\S\\\r?\n\S|\b(?:__COUNTER__|cudaLaunch\w*)\b")
_NEVER_IN_HOST = re.compile(rb"\\\r?\n|\b__COUNTER__\b")
_TELLS_TYPES = re.compile(
    rb"[<({:]|\b(?:auto|decltype|constexpr|typedef|using|struct|class|enum|template|namespace)\b"
)
_TYPES = frozenset({b"int", b"unsigned", b"float", b"double", b"char", b"long", b"short", b"bool", b"size_t"})
_ENDS = re.compile(rb"[;{}\n]")
_DIRECTIVE = re.compile(rb"(?<![ \t])[ \t]*#[ \t]*(\w+)")
_CONDITIONS = frozenset({b"if", b"ifdef", b"ifndef", b"elif", b"else", b"endif"})
_UNNAMED = re.compile(r"[(…]")  # of what has no name: a lambda, a class of a namespace without
_TOLD_ELSEWHERE = re.compile(rb"cuda-lsp:|__device__|__constant__|__managed__")
_MARKS = (b"<<", b"\\", b"__COUNTER__", b"cudaLaunch")  # one of them is in all that is never read alone
_RUN = 256  # bytes of the longest word, number or row of quotes before an edit
_IN_WORDS = bytes(c for c in range(128) if chr(c).isalnum() or chr(c) in "_.'\"")
_RUN_BEHIND = re.compile(rb"[\w.'\"]*")
_MAKES_TOKENS = re.compile(rb"[{}\"'/*\\\r\n]")
_LEVELS = 8  # of functions that name each other; beyond them all count


@frozen
class Edit:
    """Bytes ``[start, old_end)`` of a text became ``[start, new_end)``, ``lines`` more lines."""

    start: int
    old_end: int
    new_end: int
    lines: int

    @property
    def shift(self) -> int:
        """By how many bytes the text behind the edit moved."""
        return self.new_end - self.old_end

    def moved(self, offset: int) -> int:
        """Where a place is now that the edit does not contain."""
        return offset + self.shift if offset >= self.old_end else offset


def edit_between(before: bytes, after: bytes) -> Edit:
    """The one stretch in which two texts differ."""
    start, old_end, new_end = differing(before, after)
    lines = after.count(b"\n", start, new_end) - before.count(b"\n", start, old_end)
    return Edit(start, old_end, new_end, lines)


@frozen
class Surroundings:
    """What a reading of the whole file tells the readings of one kernel that follow.

    ``bodies``: those that may be blank, in order. ``templates``: names of the kernel templates.
    ``words``: what the text outside kernels and ordinary host functions names. ``asking``: bodies of function
    templates, which may be blank where nothing need ask for instances. ``closed``: where the body begins of
    which it is known that its braces close.
    """

    bodies: tuple[Body, ...]
    templates: frozenset[bytes]
    words: frozenset[bytes]
    asking: tuple[Body, ...] = ()
    closed: int = -1

    def moved(self, edit: Edit) -> Surroundings:
        """The same after an edit inside one of the bodies, or of white space and comments."""
        bodies, asking = (
            tuple(b if b.end <= edit.start else _moved(b, edit) for b in each)
            for each in (self.bodies, self.asking)
        )
        return evolve(self, bodies=bodies, asking=asking, closed=edit.moved(self.closed))

    def edited(self, edit: Edit) -> Surroundings:
        """The same after an edit that stays inside its body."""
        return evolve(self.moved(edit), closed=next(b.start for b in self.bodies if _holds(b, edit)))


def _place(body: Body) -> int:
    return body.start


def _holds(body: Body, edit: Edit) -> bool:
    return body.start < edit.start and edit.old_end < body.end


def _moved(body: Body, edit: Edit) -> Body:
    return Body(
        body.name, body.kernel, edit.moved(body.function), edit.moved(body.start), edit.moved(body.end)
    )


@frozen
class Focus:
    """One edited function. ``was``, ``offsets``: where it is before and after; ``text``: what clang reads.

    ``name``: of a kernel, "" of a host function. ``blank``: the stretches of ``text`` that were not blank.
    ``instance``: the first of a template, as it is asked for where blank text does; "": other text asks for
    all. ``only``: its name, of several: the others are not read.
    """

    name: str
    edit: Edit
    was: tuple[int, int]
    offsets: tuple[int, int]
    text: bytes
    blank: tuple[tuple[int, int], ...]
    instance: str = ""
    only: str = ""


def surroundings(sources: KernelSources, data: bytes) -> Surroundings:
    """What may be blank in a file when one of its kernels is looked at."""
    bodies = [
        body
        for body in sources.bodies
        if _stands_alone(body, data)
        and (body.kernel or not _TEMPLATE.search(data, body.function, body.start))
    ]
    outside = bytearray(data)
    for body in bodies:
        outside[body.function : body.end] = b" " * (body.end - body.function)
    words = frozenset(_WORD.findall(outside))  # a function that other text names may be needed there
    return Surroundings(
        tuple(body for body in bodies if body.kernel or body.name not in words),
        frozenset(template.base_name.encode() for template in sources.templates),
        words,
        tuple(body for body in sources.templates_of_host if _stands_alone(body, data)),
    )


def host_bodies(around: Surroundings, data: bytes) -> tuple[Body, ...]:
    """Host functions whose bodies tell nothing of what kernels mean, launches aside."""
    return tuple(
        body
        for body in around.bodies
        if not body.kernel and not _TOLD_ELSEWHERE.search(data, body.start, body.end)
    )


def _stands_alone(body: Body, data: bytes) -> bool:
    """Whether the text of a body is a body and nothing else: it defines nothing, and no macro wrote it."""
    if data[body.start : body.start + 1] != b"{" or data[body.end - 1 : body.end] != b"}":
        return False
    if not body.kernel and _TELLING.search(data, body.function, body.start):
        return False
    return not DIRECTIVE_LINE.search(data, body.start, body.end) or _conditions_alone(
        data, body.start, body.end
    )


def _conditions_alone(data: bytes, start: int, end: int) -> bool:
    """Whether all directives of a stretch are conditions that end in it: it can be left out whole."""
    depth = 0
    for line in DIRECTIVE_LINE.finditer(data, start, end):
        word = _DIRECTIVE.match(data, line.start(), end)
        kind = word[1] if word else b""
        depth += kind.startswith(b"if")
        if kind not in _CONDITIONS or not depth:
            return False
        depth -= kind == b"endif"
    return not depth


def _closes(data: bytes, start: int, end: int) -> bool:
    """Whether the brace at ``start`` closes right before ``end``, comments and strings left aside."""
    depth = 0
    for match in _TOKEN.finditer(data, start, end):
        token = match[0]
        if token == b"{":
            depth += 1
        elif token == b"}":
            depth -= 1
            if not depth:
                return match.end() == end
        elif match.lastgroup in _UNCLEAR or (token.startswith(b"//") and token.endswith((b"\\", b"\\\r"))):
            return False
    return False


def focus_on(
    around: Surroundings,
    sources: KernelSources,
    before: bytes,
    after: bytes,
    by_name: Callable[[str], bool],
) -> Focus | None:
    """The function whose body the edit between two texts is inside of; None: read the whole file.

    ``by_name``: whether the instances of a template may be asked for by the names that they have.
    """
    edit = edit_between(before, after)
    body = next((b for b in around.bodies if _holds(b, edit)), None)
    if body is None:
        return None
    if not body.kernel:
        if not _stays_inside(around, before, after, body, edit):
            return None
        if around.templates and not _instantiates_as_before(before, after, body, edit):
            return None
        end = body.end + edit.shift
        return Focus("", edit, (body.function, body.end), (body.function, end), after, ())
    own = next(
        (k for k in (*sources.templates, *sources.kernels) if k.offsets == (body.function, body.end)), None
    )
    end = body.end + edit.shift
    if own is None or not _stays_inside(around, before, after, body, edit):
        return None
    words = set(_WORD.findall(after, body.function, end)) | set(_WORD.findall(before, body.start, body.end))
    if (around.templates - {body.name}) & words:
        return None  # an instantiation may come or go
    kept = set(words)
    instances = _instances(sources, own) if by_name(own.base_name) else ()
    if not instances and (own.template or own.template_arguments):
        kept |= _naming(around, before, body.name)
    # Declarations of one name in several bodies must agree: clang compares them.
    external = b"extern" in words
    pieces: list[bytes] = []
    blank: list[tuple[int, int]] = []
    position = 0
    asking = around.asking if instances else ()
    for other in sorted((*around.bodies, *asking), key=_place):
        if other is body or other.end <= position or (not other.kernel and other.name in kept):
            continue
        start, stop = edit.moved(other.start) + 1, edit.moved(other.end) - 1
        if external and after.find(b"extern", start, stop) >= 0:
            continue
        pieces += after[position:start], after[start:stop].translate(BLANK)
        blank.append((start, stop))
        position = stop
    return Focus(
        body.name.decode(),
        edit,
        (body.function, body.end),
        (body.function, end),
        b"".join((*pieces, after[position:])),
        tuple(blank),
        _request(own, instances[0]) if instances else "",
        instances[0].name if len(instances) > 1 else "",
    )


def _instances(sources: KernelSources, template: KernelSource) -> Sequence[KernelSource]:
    """The instances of a template, where they can be asked for by what they are called; none: they cannot.

    What they are was told when the whole file was read, and no edit inside the template changes that.
    """
    named = [k for k in (*sources.templates, *sources.kernels) if k.base_name == template.base_name]
    found = [k for k in named if k.offsets == template.offsets and not k.template]
    if not template.template or len(named) != len(found) + 1 or any(k.dependent for k in found):
        return ()
    if any(_UNNAMED.search(argument) for k in found for argument in k.template_arguments):
        return ()
    return found


def _request(template: KernelSource, instance: KernelSource) -> str:
    """What an instance is called where that asks for it: the value of an enumeration is no number there."""
    types = (*template.enumerations, *("" for _ in instance.template_arguments))
    arguments = (
        f"({type}){value}" if type else value
        for type, value in zip(types, instance.template_arguments, strict=False)
    )
    return f"{template.scope}{template.base_name}<{', '.join(arguments)}>"


def _stays_inside(around: Surroundings, before: bytes, after: bytes, body: Body, edit: Edit) -> bool:
    """Whether the text around the edited body is read as before; conditions that end in it stay in it."""
    end = body.end + edit.shift
    line_end = after.find(b"\n", end)
    behind = after[end : line_end if line_end >= 0 else len(after)]
    return (
        not behind.strip()
        and DIRECTIVE_LINE.findall(after, body.start, end)
        == DIRECTIVE_LINE.findall(before, body.start, body.end)
        and not _asks_for_all(before, body.start, body.end, kernel=body.kernel)
        and not _asks_for_all(after, body.start, end, kernel=body.kernel)
        and (
            (around.closed == body.start and _leaves_tokens_around(before, after, edit))
            or _closes(after, body.start, end)
        )
    )


def _asks_for_all(data: bytes, start: int, end: int, *, kernel: bool) -> bool:
    """Whether the text of a body has what may change the rest of the file."""
    if all(data.find(mark, start, end) < 0 for mark in _MARKS):
        return False
    return (_NEVER if kernel else _NEVER_IN_HOST).search(data, start, end) is not None


def _leaves_tokens_around(before: bytes, after: bytes, edit: Edit) -> bool:
    """Whether an edit changes words, numbers and operators alone, with no brace, comment or string near."""
    for data, end in ((before, edit.old_end), (after, edit.new_end)):
        near = data[max(0, edit.start - _RUN) : edit.start]
        word = len(near) - len(near.rstrip(_IN_WORDS))
        last = _RUN_BEHIND.match(data, end)
        if word == _RUN or last is None:
            return False
        if _MAKES_TOKENS.search(data, max(0, edit.start - word - 1), last.end() + 1):
            return False
    return True


def _instantiates_as_before(before: bytes, after: bytes, body: Body, edit: Edit) -> bool:
    """Whether the statement that is edited in a host function calls nothing, and names no template, ever.

    Nor does it declare what stands elsewhere in the function, where that may be an argument of one.
    """
    for text, end, stop in ((before, edit.old_end, body.end), (after, edit.new_end, body.end + edit.shift)):
        start = max(text.rfind(mark, body.start, edit.start) for mark in (b";", b"{", b"}")) + 1
        ends = _ENDS.search(text, end, stop)
        last = ends.start() if ends else stop
        statement = text[start:last]
        words = set(_WORD.findall(statement))
        if _TELLS_TYPES.search(statement):
            return False
        if len(words) > 1:  # it may declare one of them
            elsewhere = set(_WORD.findall(text, body.function, start)) | set(_WORD.findall(text, last, stop))
            if not words.isdisjoint(elsewhere - _TYPES):
                return False
    return True


def _naming(around: Surroundings, data: bytes, kernel: bytes) -> set[bytes]:
    """The host functions that may decide how a kernel template is instantiated: those that reach its name."""
    if kernel in around.words:  # … by way of a function template, or of a class
        return {body.name for body in around.bodies}
    found: set[bytes] = set()
    names = {kernel}
    for _ in range(_LEVELS):
        if not names:
            return found
        pattern = re.compile(rb"\b(?:" + b"|".join(re.escape(name) for name in names) + rb")\b")
        names = {
            b.name
            for b in around.bodies
            if not b.kernel and b.name not in found and pattern.search(data, b.start, b.end)
        }
        found |= names
    return {body.name for body in around.bodies}
