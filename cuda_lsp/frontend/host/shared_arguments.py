"""Pointer arguments of one launch that point into one buffer: ``k<<<…>>>(d, d + n, n)``.

Read from the text of the arguments: a place, ``place + offset``, ``place - offset`` or ``&place[offset]``. An
offset is understood when it is made of constants and of other arguments of the same launch.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from cuda_lsp.frontend.host.cursors import name_of
from cuda_lsp.frontend.host.expressions import MOVED
from cuda_lsp.frontend.host.host_pointers import Held
from cuda_lsp.frontend.host.pointer_lists import ONE_OF_MANY
from cuda_lsp.frontend.host.polynomials import Formula, Polynomial, added, formula, multiplied, named, parsed
from cuda_lsp.frontend.host.same_element import is_one_element
from cuda_lsp.frontend.host.text import closings

_NO_GETTER = r"(?:(?:get_?)?[Nn]ext|take|pop|alloc|make|create|acquire|new|fresh|clone|copy|release|request)"
_GETTER = rf"(?:\.|->)(?!{_NO_GETTER})\w+\(\)"
"""A member function without arguments, which tells what is there: each time the same. (Of ``at("a")`` the
text has ``at( )``.)"""
_PLACE = (
    r"(?!(?:NULL|nullptr|this)\b)[A-Za-z_]\w*"
    rf"(?:{_GETTER}|\s?(?:\.|->)\s?\w+(?!\w|\s?\()|\s?\[(?!\s?\])[^\[\]]*\])*"
)
_WHOLE = re.compile(rf"\A{_PLACE}\Z")
_POINTED = r"(?:(?:const|unsigned|struct)\s)*([A-Za-z_][\w:]*)(?:\sconst)?\s?\*+(?:\s?const)?\s?"
_CAST = re.compile(rf"\A\(\s?{_POINTED}\)\s?|\A(?:reinterpret|static|const)_cast\s?<\s?{_POINTED}>\s?(?=\()")
_NAMED_CAST = re.compile(
    rf"\b(?:reinterpret|static|const)_cast\s?<\s?({_POINTED})>\s?\(\s?({_PLACE}|\({_POINTED}\)\s?{_PLACE})\s?\)"
)
_MOVED = re.compile(rf"\A({_PLACE})\s?([-+])\s?(?![-+>])(.+)\Z", re.S)
_CHOICE = re.compile(r"\A[^?:]+\?([^?:]+):([^?:]+)\Z", re.S)
_SIZE_OF = "sizeof"
_MOST_STEPS = 8
"""Variables of the host looked through."""

TypeOf = Callable[[str], str | None]
SizeOf = Callable[[str], int | None]
Computed = Callable[[Polynomial], Formula | None]
"""A distance in names of the host by arguments and extents of the launch."""


def nobody_computes(apart: Polynomial) -> Formula | None:
    """Where no launch tells what sizes are."""
    del apart
    return None


_LEADING_CALL = re.compile(r"\A[A-Za-z_][\w:.>\[\]-]*(?:<[^<>]*>)?\s?\(")
_ARROW = re.compile(r"\s?(\.|->)\s?")
_CALLED = re.compile(r"(\.|->)(?:template )?(?:const_|mut_|mutable_)?(\w+)\s?(?:<[^<>()]*>)?\s?\(\)")
_COUNTED = re.compile(r"(?<![\w.>])(?:\w+\s?::\s?){0,3}numel\s?\(\s?([A-Za-z_]\w*)\s?\)")
_ALL_OF_IT = ".numel()"
"""How many elements a tensor has, the product of all its sizes."""
_BYTES = re.compile(r"(?<=[(<])(?:std\s?::\s?)?u?intptr_t\s?([)>])")
_GOT = re.compile(r"(?:\bstd\s?::\s?)?\bget\s?<\s?(\d)\s?>\s?\(\s?(\w+)\s?\)")
_AT = re.compile(r"\.at\s?\((?!\s?\))([^()]{1,100})\)")
_RAW = re.compile(r"\b(?:thrust\s?::\s?)?raw_pointer_cast\s?(?=\()")
_RAW_PLACE = re.compile(rf"\b(?:thrust\s?::\s?)?raw_pointer_cast\s?\(\s?({_PLACE})\s?\)")
_RAW_ELEMENT = re.compile(rf"\braw_pointer_cast\s?\(\s?&\s?({_PLACE})\[([^\[\]]*)\]\s?\)")


@frozen
class SharedBuffer:
    """A pointer argument that begins ``offset`` elements behind the earlier one at ``first``; None: unknown.

    ``pieces``: unknown, but made of products of sizes, as of arrays that share one allocation; or of sizes,
    where the elements are of another type than those of the earlier one. ``unit``: what is counted, in
    bytes; None: elements of the pointer's own. ``by_launch``: other launches point elsewhere.
    In ``LaunchSite``, parameters stand by position (``first``, and ``#2`` in offsets; ``#2.n``: a field of a
    record), later by name.
    """

    first: int | str
    offset: Formula | None = 0
    pieces: bool = False
    unit: int | None = None
    by_launch: bool = False

    def named(self, names: Sequence[str]) -> SharedBuffer:
        """The same with the kernel's parameter names; an offset by an argument it lacks is unknown."""
        called = named(self.first if isinstance(self.first, str) else f"#{self.first}", names)
        first = called if isinstance(called, str) else self.first
        return evolve(self, first=first, offset=None if self.offset is None else named(self.offset, names))


@frozen(eq=False)
class _Begin:
    """Where an argument begins in its buffer.

    ``own_units``: the offset counts elements of the buffer; ``unit``: elements of so many bytes, where that
    is known, and what is pointed to is as large. ``exact``: the sizes are those of the launch.
    """

    position: int
    offset: Polynomial | None
    casts: tuple[str, ...]
    own_units: bool
    exact: bool
    unit: int | None = None


def shared_buffers(
    arguments: Sequence[str],
    integer: Callable[[str], int | None],
    held: Callable[[str], Held | None] = lambda name: None,
    type_of: TypeOf = lambda name: None,
    computed: Computed = nobody_computes,
    returned: Callable[[str], Sequence[str]] = lambda text: [text],
    size_of: SizeOf = lambda type_: None,
    made_of: Callable[[str], str | None] = lambda name: None,
) -> Mapping[int, SharedBuffer]:
    """Positions of arguments that point into the buffer of an earlier one.

    ``integer``: of constant text. ``held``: what a variable of the host may hold. ``type_of``: to what it
    points. ``computed``: of what the host has made sizes between two places. ``returned``: by a call.
    ``size_of``: a type, in bytes. ``made_of``: the text of what an integer of the host is set to.
    """

    def product(name: str) -> Polynomial:
        text = made_of(name)
        made = _offset(text, (), integer) if text is not None else None
        return made if made and all(names for names in made) else {(name,): 1}

    found: dict[int, SharedBuffer] = {}
    begun: dict[str, _Begin] = {}
    several: dict[int, list[str]] = {}
    written: dict[int, tuple[str, str]] = {}
    texts = [_plain(a) for a in arguments]
    for position, text in enumerate(texts):
        made = _made(text, returned)
        parts = parts_of_pointer(made[0], type_of) if len(made) == 1 else None
        if parts is None:
            several[position] = [c for value in made for c in choices(value)]
            continue
        base, moved, casts = parts
        written[position] = (base, moved) if moved == "0" or not casts else (text, "")
        exact = True
        offset, own_units = _offset(moved, texts, integer), not casts or moved == "0"
        unit = _unit(base, casts, type_of, size_of)
        for _ in range(_MOST_STEPS):
            known = held(base)
            inner = [parts_of_pointer(v, type_of) for v in known.values] if known is not None else []
            if _tables(known):
                break  # it is a place of its own in the buffer that a table's loop cuts
            if known is None or len(inner) != 1 or inner[0] is None:
                several[position] = [c for v in known.values for c in choices(v)] if known else []
                break
            untyped = not casts and type_of(base) is None  # as its value is
            base, step, before = inner[0]
            within = _unit(base, before, type_of, size_of)
            unit = within if untyped else unit if step == "0" or unit == within else None
            casts, own_units = (*before, *casts), own_units and (not before or step == "0")
            behind = _offset(step, texts, integer) if known.lessened or not known.moved else None
            exact = exact and (not known.moved or step == "0")
            offset = None if offset is None or behind is None else added(offset, behind, 1)
        base, certain = _known_as(base, begun)
        here = _Begin(position, offset, casts, own_units, exact, unit)
        first = begun.setdefault(base, here)
        if first is not here and not certain:
            found[position] = SharedBuffer(first.position, None)
        elif first is not here and MOVED not in made[0] and written[first.position] == written[position]:
            found[position] = SharedBuffer(first.position, 0)  # whatever it holds, and is cast to
        elif first is not here:
            found[position] = _behind(here, first, computed, product)
    leads = {position: _led_to(chosen, held) for position, chosen in several.items()}
    own = {begin.position: base for base, begin in begun.items()}
    for position, bases in leads.items():
        for base in bases:
            first = begun[base].position if base in begun else position
            # Who changes places with another holds what that held.
            turns = own.get(position) in leads.get(first, ())
            if first != position and not turns:
                found.setdefault(max(first, position), SharedBuffer(min(first, position), None))
    for position, first in (*_cut_alike(several), *_told_alike(several)):
        found.setdefault(position, SharedBuffer(first, None))
    places = {begin.position: [base] for base, begin in begun.items()}
    places |= {at: [p[0] for c in chosen if (p := parts_of_pointer(c))] for at, chosen in several.items()}
    tables = {at: {t for base in bases for t in _tables(held(base))} for at, bases in places.items()}
    for first, position in itertools.combinations(sorted(tables), 2):
        if tables[first] & tables[position]:
            found.setdefault(position, SharedBuffer(first, None, pieces=True))
    return found


def _led_to(chosen: Sequence[str], held: Callable[[str], Held | None]) -> Sequence[str]:
    """The buffers that one of several places may be in, those of the variables that they begin with too."""
    found: list[str] = []
    pending = list(chosen)
    while pending and len(found) < _MOST_STEPS:
        parts = parts_of_pointer(pending.pop(0))
        if parts is not None and parts[0] not in found:
            found += [parts[0], name_of(parts[0])]
            known = held(parts[0])
            pending += [c for value in known.values for c in choices(value)] if known is not None else []
    return found


def _tables(known: Held | None) -> set[str]:
    """The tables whose loop has told a place where in a buffer it begins: each apart from the others."""
    parts = [parts_of_pointer(value) for value in known.values] if known is not None else []
    told = {part[0] for part in parts if part is not None and ONE_OF_MANY in part[1]}
    return told if len(told) == len(parts) else set()


def _cut_alike(several: Mapping[int, Sequence[str]]) -> Iterator[tuple[int, int]]:
    """Those that may each be one of several places, of which two are cut out of one buffer."""
    parts = {
        position: [p for c in chosen if (p := parts_of_pointer(c))] for position, chosen in several.items()
    }
    for (first, here), (position, there) in itertools.combinations(sorted(parts.items()), 2):
        if any(a[0] == b[0] and a[1] != b[1] for a in here for b in there):
            yield position, first


def _told_alike(several: Mapping[int, Sequence[str]]) -> Iterator[tuple[int, int]]:
    """Those of which the one place that they may be in, as far as anything tells, is in one buffer."""
    told: dict[int, str] = {}
    for position, chosen in several.items():
        known = [choice for choice in chosen if choice]
        part = parts_of_pointer(known[0]) if len(known) == 1 else None
        if part is not None:
            told[position] = part[0]
    for (first, here), (position, there) in itertools.combinations(sorted(told.items()), 2):
        if here == there:
            yield position, first


def together(
    found: Mapping[int, SharedBuffer], others: Iterable[Mapping[int, SharedBuffer]]
) -> Mapping[int, SharedBuffer]:
    """What a launch passes as it stands, else as callers make it; unknown how far where these disagree."""
    called: dict[int, SharedBuffer] = {}
    for other in others:
        for position, buffer in other.items():
            known = called.setdefault(position, buffer)
            if known != buffer:
                called[position] = evolve(known, offset=None, pieces=known.pieces and buffer.pieces)
    return {**called, **found}


def _behind(
    here: _Begin, first: _Begin, computed: Computed, product: Callable[[str], Polynomial]
) -> SharedBuffer:
    """How far a pointer begins behind the earlier one.

    ``product``: what a size is made of, which is a name of its own where nothing tells.
    """
    if here.offset is None or first.offset is None:
        return SharedBuffer(first.position, None)
    exact = here.exact and first.exact
    sized = any(map(_is_size, (name for b in (here, first) for names in b.offset or () for name in names)))
    apart = added(here.offset, first.offset, -1)
    own_units = here.own_units and first.own_units
    one_unit = own_units and here.casts == first.casts
    if here.unit is not None and first.unit is not None:
        one_unit = here.unit == first.unit
    if exact and not sized and (one_unit or (own_units and not apart)):
        told = _of_arguments(apart)
        told = computed(apart) if told is None else told
        if told is not None:
            return SharedBuffer(first.position, told)
    pieces = _are_pieces(_in_sizes(apart, product), 2 if here.casts == first.casts else 1)
    return SharedBuffer(first.position, None, pieces and (exact or not here.offset or not first.offset))


def _made(text: str, returned: Callable[[str], Sequence[str]]) -> Sequence[str]:
    """What an argument that is, or begins with, a call may be."""
    call = _LEADING_CALL.match(text)
    if call is not None:
        end = closings(text, "()").get(call.end() - 1, -1) + 1
        rest = text[end:].strip()
        if 0 < end < len(text) and rest[0] in "+-":
            told = returned(text[:end])
            return [text] if list(told) == [text[:end]] else [f"{value} {rest}" for value in told]
    return returned(text)


def _unit(base: str, casts: tuple[str, ...], type_of: TypeOf, size_of: SizeOf) -> int | None:
    """The size of what a place, and all that it is cast to, are made of; None: it is not one size.

    Nothing is counted in elements of ``void``.
    """
    own = type_of(base)
    sizes = {size_of(type_) for type_ in (own or "", *casts) if type_ != "void"}
    return next(iter(sizes)) if len(sizes) == 1 else None


def _known_as(base: str, begun: Iterable[str]) -> tuple[str, bool]:
    """The place that it is, of those; and whether it always is."""
    for known in begun:
        alike = known == base or is_one_element(known, base)
        if alike is not False:
            return known, alike is True
    return base, True


def choices(value: str) -> list[str]:
    """``a`` and ``b`` of ``c ? a : b``; else the value alone."""
    chosen = _CHOICE.match(value.strip())
    return [chosen[1], chosen[2]] if chosen is not None else [value]


def _plain(argument: str) -> str:
    """Without what says the same in more words: template arguments of getters, casts of Thrust's pointers."""
    text = _ARROW.sub(r"\1", argument.strip())
    if "(" in text:
        text = _CALLED.sub(r"\1\2()", text)
        text = _GOT.sub(r"\2[\1]", text)
        text = _BYTES.sub(r"char*\1", text)
    if "numel" in text:
        text = _COUNTED.sub(rf"\1{_ALL_OF_IT}", text)
    if "raw_pointer_cast" in text:
        text = _RAW.sub(
            "", _RAW_PLACE.sub(r"\1", _RAW_ELEMENT.sub(r"raw_pointer_cast(\1.data() + (\2))", text))
        )
    return text


def parts_of_pointer(
    text: str, type_of: Callable[[str], str | None] = lambda name: None
) -> tuple[str, str, tuple[str, ...]] | None:
    """The buffer, the offset into it as text, and the types that it is cast to, the last one last.

    Casts to what it has anyway are left out: without any, the offset counts elements of the buffer.
    """
    text, cast = _without_casts(_NAMED_CAST.sub(r"(\1)\3", _AT.sub(r"[\1]", _plain(text))))
    if _WHOLE.match(text):
        return text, "0", _casts(text, type_of, cast)
    if text.startswith("&") and text.endswith("]"):
        opening = _opening(text)
        base = text[1:opening].strip()
        return (base, text[opening + 1 : -1], _casts(base, type_of, cast)) if _WHOLE.match(base) else None
    inner = _CAST.match(text)  # of what is moved only
    moved = _MOVED.match(text[inner.end() :] if inner is not None else text)
    if moved is None:
        return None
    base = moved[1].strip()
    counted = (inner[1] or inner[2]) if inner is not None else None
    return base, moved[3] if moved[2] == "+" else f"-{moved[3]}", _casts(base, type_of, counted, cast)


def _casts(base: str, type_of: Callable[[str], str | None], *casts: str | None) -> tuple[str, ...]:
    known = type_of(base)
    found: list[str] = []
    for cast in casts:
        if cast is not None and cast != (found[-1] if found else known):
            found.append(cast)
    return tuple(found)


def _without_casts(text: str) -> tuple[str, str | None]:
    """``(T*)(d + 1)`` → ``d + 1``, ``T``: without casts of the whole, and parentheses around it."""
    last: str | None = None
    while True:
        cast = _CAST.match(text)
        rest = text[cast.end() :].strip() if cast is not None else text
        if cast is not None and (_WHOLE.match(rest) or _is_enclosed(rest) or _CAST.match(rest)):
            last, text = last or cast[1] or cast[2], rest
        elif _is_enclosed(text):
            text = text[1:-1].strip()
        else:
            return text, last


def _is_enclosed(text: str) -> bool:
    return text.startswith("(") and closings(text, "()").get(0) == len(text) - 1


def _opening(text: str) -> int:
    depth = 0
    for i in range(len(text) - 1, 0, -1):
        depth += (text[i] == "]") - (text[i] == "[")
        if depth == 0:
            return i
    return 0


def _offset(text: str, arguments: Sequence[str], integer: Callable[[str], int | None]) -> Polynomial | None:
    value = integer(text)
    if value is not None:
        return {(): value} if value else {}
    tree = parsed(text.replace("->", "."))
    try:
        return tree and _polynomial(tree, [a.replace("->", ".") for a in arguments], integer)
    except RecursionError:  # unparsing takes several frames an operator
        return None


def _polynomial(
    node: ast.expr, arguments: Sequence[str], integer: Callable[[str], int | None]
) -> Polynomial | None:
    text = ast.unparse(node)
    value = integer(text)
    if value is not None:
        return {(): value}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _polynomial(node.operand, arguments, integer)
        return None if inner is None else {names: -factor for names, factor in inner.items()}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        left, right = (_polynomial(part, arguments, integer) for part in (node.left, node.right))
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Mult):
            return multiplied(left, right)
        return added(left, right, 1 if isinstance(node.op, ast.Add) else -1)
    getter = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args
    calls = (part for part in ast.walk(node) if isinstance(part, ast.Call))
    if not getter and not all(map(_is_size_of, calls)):
        return None  # twice the same call need not give the same
    return {(f"#{arguments.index(text)}" if text in arguments else text,): 1}


def _is_size_of(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == _SIZE_OF


def _is_size(name: str) -> bool:
    """Of an element that nobody knows: a template's parameter may be another one in another function."""
    return name.startswith(f"{_SIZE_OF}(")


def _in_sizes(apart: Polynomial, product: Callable[[str], Polynomial]) -> Polynomial:
    """``2 * part`` as ``2 * rows * columns``, where the host has named the product."""
    found: Polynomial = {}
    for names, factor in apart.items():
        term: Polynomial | None = {(): factor}
        for name in names:
            term = multiplied(term, product(name)) if term is not None else None
        found = added(found, {names: factor} if term is None else term, 1)
    return found


def _are_pieces(apart: Polynomial, least: int) -> bool:
    """Whether sizes are between the two, products of at least so many; their signs agree.

    How large an element is, is none.
    """
    ahead = {factor > 0 for factor in apart.values()}
    sizes = (sum(1 + name.endswith(_ALL_OF_IT) for name in names if not _is_size(name)) for names in apart)
    return all(count >= least for count in sizes) and len(ahead) == 1


def _of_arguments(apart: Polynomial) -> Formula | None:
    """The distance when only constants and arguments are left of it."""
    if any(not name.startswith("#") for names in apart for name in names):
        return None
    return formula(apart)
