"""Statements of host code, executed: declarations, branches that are joined, loops."""

from __future__ import annotations

import re

from attrs import evolve

from cuda_lsp.frontend.host.macros import Macro
from cuda_lsp.frontend.host.pieces import calls, objects
from cuda_lsp.frontend.host.pieces.evaluation import cell_of, evaluated
from cuda_lsp.frontend.host.pieces.forgetting import WRITES, forgotten
from cuda_lsp.frontend.host.pieces.machine import Machine, NotUnderstood
from cuda_lsp.frontend.host.pieces.nodes import LambdaText, Node, Type
from cuda_lsp.frontend.host.pieces.syntax import NotRead, Reader, arguments, expression, is_built_in
from cuda_lsp.frontend.host.pieces.values import (
    Cell,
    Nobody,
    Object,
    Place,
    Size,
    Value,
    constant,
    copied,
)
from cuda_lsp.frontend.host.statements import NoStatement, Statements
from cuda_lsp.frontend.host.text import closings, whole_arguments

_LAUNCH = re.compile(
    r"(?:(?<![\w:])[A-Za-z_][\w:]*\s?(?:<(?:[^<>;]|<[^<>;]{0,200}>){0,200}>\s?)?)<<<(?:[^;]{0,1000}?)>>>\s?(?=\()"
)
_BOUND = re.compile(r"\A(?:const\s)?auto\s?&{0,2}\s?\[([\w\s,]{1,200})\]\s?=\s?(.+)\Z", re.S)
_ALIAS = re.compile(r"\Ausing\s(\w+)\s?=\s?(.+)\Z", re.S)
_WORD = re.compile(r"[A-Za-z_]\w*")
_LEAVES = re.compile(r"(?:throw\b|(?:std\s?::\s?)?(?:exit|abort|_exit|terminate)\s?\()")
_NO_EXPRESSION = re.compile(r"[;{#]")
_NO_STATEMENT = frozenset({"case", "default", "goto", "else", "catch", "asm"})
_MOST_PASSES = 3


class Returned(Exception):
    """A function ends, with a value, and the variable that it refers to; ``nothing``: with a null pointer."""

    def __init__(self, value: Value, cell: Cell | None, nothing: bool = False) -> None:
        super().__init__()
        self.value, self.cell, self.nothing = value, cell, nothing


class Arrived(Exception):
    """The launch is reached."""


class Left(Exception):
    """Nobody comes to the launch this way, or not in this round of a loop."""


def block(m: Machine, place: int, end: int) -> None:
    """The statements between two places of the innermost function's text."""
    read = Statements(m.frame.unit.text)
    scope: dict[str, Cell] = {}
    m.frame.scopes.append(scope)
    try:
        while (place := read.skipped(place)) < end:
            place = _guarded(m, place, end)
        m.end_of(scope)
    except (Left, Returned):
        m.end_of(scope)
        raise
    except NoStatement as error:
        raise NotUnderstood("statement") from error
    finally:
        m.frame.scopes.pop()


def _guarded(m: Machine, place: int, limit: int) -> int:
    """A statement; where it is not understood, all that it names is unknown from then on."""
    if len(m.frames) > 1:
        return statement(m, place, limit)
    read = Statements(m.frame.unit.text)
    end = _end(m, place, limit, read)
    depth, changed = len(m.frame.scopes), len(m.changed)
    try:
        return statement(m, place, limit)
    except (NotUnderstood, NoStatement, NotRead) as error:
        if place <= m.at < end:
            raise Left from error
        del m.frame.scopes[depth:], m.frames[1:]
        m.undone(changed)
        m.guard(forgotten(m, place, end))
        return end


def _end(m: Machine, place: int, limit: int, read: Statements) -> int:
    if m.frame.unit.text.plain[place] == "#":
        return read.line_end(place)
    return read.end(place, limit)


def statement(m: Machine, place: int, limit: int) -> int:
    """Executes the statement that begins here; gives where it ends. Raises NotUnderstood."""
    m.left -= 1
    if m.left < 0:
        raise Left
    text = m.frame.unit.text
    read = Statements(text)
    end = _end(m, place, limit, read)
    here = len(m.frames) == 1 and place <= m.at < end
    word = read.word(place)
    if text.plain[place] == "#":
        return end
    if text.plain[place] == "{":
        block(m, place + 1, end - 1)
    elif word in _NO_STATEMENT:
        raise NotUnderstood(word)
    elif word == "if":
        _branch(m, place, limit, read)
    elif word in ("for", "while", "do"):
        _loop(m, place, end, limit, read)
    elif word == "switch":
        raise NotUnderstood(word)
    elif word == "return":
        if here:
            m.arrive()
            raise Arrived
        _return(m, text.plain[place + len(word) : end - 1].strip())
    elif word in ("break", "continue") or _LEAVES.match(text.plain, place):
        raise Left
    elif word == "try":
        return _guarded(m, read.skipped(place + len(word)), limit)
    elif here:
        _into(m, place, end, read)
    else:
        m.frame.origin = place
        simple(m, text.plain[place:end].rstrip("; "))
    return end


def _into(m: Machine, place: int, end: int, read: Statements) -> None:
    """To the launch, which is in this statement, or in a block that it hands to a macro or a function."""
    text = m.frame.unit.text
    for begin, close in read.braces(place, end):
        if begin < m.at < close:
            opening = text.plain.find("(", place, begin)
            if opening < 0 or text.parentheses.get(opening, -1) < close:
                raise Left  # a lambda that is called somewhere else
            block(m, begin + 1, close)
            raise Left
    m.arrive()
    raise Arrived


def _return(m: Machine, text: str) -> None:
    if len(m.frames) == 1:
        raise Left
    if not text:
        raise Returned(None, None)
    node = expression(_expanded(m, text))
    cell = cell_of(m, node) if m.frame.reference else None
    value = cell.value if cell is not None else copied(evaluated(m, node))
    raise Returned(value, cell, value is None)


# -------------------------------------------------------------------------------------- branches, loops


def _branch(m: Machine, place: int, limit: int, read: Statements) -> None:
    plain = m.frame.unit.text.plain
    behind = read.behind_header(place)
    first = read.skipped(behind)
    middle = read.end(first, limit)
    second = read.otherwise(middle)
    end = read.end(second, limit) if second is not None else middle
    opening = plain.find("(", place, behind)
    known = _asked(m, plain[opening + 1 : behind - 1], opening)
    if len(m.frames) == 1 and first <= m.at < middle:
        _guarded(m, first, limit)
    elif len(m.frames) == 1 and second is not None and second <= m.at < end:
        _guarded(m, second, limit)
    elif known is not None:
        way = first if known else second
        if way is not None:
            _guarded(m, way, limit)
    else:
        _either(m, (first, second), limit)


def _asked(m: Machine, text: str, place: int) -> bool | None:
    """A condition, as far as it is known."""
    m.frame.origin = place + 1
    try:
        value = evaluated(m, expression(_expanded(m, text)))
    except NotRead:
        if WRITES.search(text):
            raise
        return None
    whole = constant(value.value) if isinstance(value, Size) else None
    return None if whole is None else bool(whole)


def _either(m: Machine, ways: tuple[int | None, int | None], limit: int) -> None:
    """One of two ways, nobody knows which."""
    ends: list[dict[int, tuple[Cell, Value]]] = []
    for way in ways:
        mark = len(m.changed)
        try:
            if way is not None:
                _guarded(m, way, limit)
            ends.append(m.undone(mark))
        except Left:
            m.undone(mark)
        except Returned as result:
            if not m.undone(mark) and result.nothing:
                continue  # what is not there is not used
            raise NotUnderstood("return") from result
    if not ends:
        raise Left
    one, other = ends[0], ends[-1]
    for key in {**one, **other}:
        cell = (one.get(key) or other[key])[0]
        first = one[key][1] if key in one else cell.value
        second = other[key][1] if key in other else cell.value
        m.put(cell, m.joined(first, second))


def _loop(m: Machine, place: int, end: int, limit: int, read: Statements) -> None:
    """What any of its rounds writes is unknown at the beginning of each, and behind it."""
    plain = m.frame.unit.text.plain
    m.frame.scopes.append({})
    if plain.startswith("do", place):
        body, header = read.skipped(place + 2), ""
        opening = plain.find("(", read.end(body, limit), end)
        test, step = plain[opening + 1 : end - 1].rstrip("; )"), ""
    else:
        behind = read.behind_header(place)
        opening, body = plain.find("(", place, behind), read.skipped(behind)
        header = plain[opening + 1 : behind - 1]
        parts = header.split(";")
        test, step = (parts[1], parts[2]) if len(parts) == 3 else ("" if ":" in header else header, "")
        if plain.startswith("for", place):
            _first(m, parts[0] if len(parts) == 3 else header)
    there = m.at
    try:
        m.at = -1
        _settle(m, body, test, step, limit)
        m.at = there
        if len(m.frames) == 1 and body <= there < end:
            _asked(m, test or "1", body)
            _guarded(m, body, limit)
            raise Left
        if test.strip():
            _asked(m, test, body)
    finally:
        m.at = there
        m.frame.scopes.pop()


def _first(m: Machine, text: str) -> None:
    """What a ``for`` begins with; a range's variable is anything."""
    if ":" in text.replace("::", ""):
        made = text.replace("::", "\0").partition(":")[0].replace("\0", "::")
        words = _WORD.findall(made)
        if not words:
            raise NotUnderstood(text)
        m.frame.scopes[-1][words[-1]] = Cell(Nobody(m.fresh(words[-1])))
        return
    m.frame.origin = -1
    simple(m, text.strip())


def _settle(m: Machine, body: int, test: str, step: str, limit: int) -> None:
    """Makes unknown what a loop writes, until one more round writes nothing else."""
    done: dict[int, tuple[Cell, str | None]] = {}
    for _ in range(_MOST_PASSES):
        mark, touched = len(m.changed), len(m.touched)
        try:
            _asked(m, test or "1", body)
            _guarded(m, body, limit)
            if step.strip():
                for node in arguments(step):
                    evaluated(m, node)
        except Left:
            pass
        written = m.touched[touched:]
        m.undone(mark)
        before, kept = dict(done), m.everything()
        for cell, old, new in written:
            if id(cell) not in kept:
                continue  # of one round
            root = (
                old.root
                if isinstance(old, Place) and isinstance(new, Place) and old.root == new.root
                else None
            )
            known = done.get(id(cell))
            done[id(cell)] = cell, root if known is None or known[1] == root else None
        if done.keys() == before.keys() and done == before:
            return
        for cell, root in done.values():
            m.put(cell, m.unknown(cell, root))
    raise NotUnderstood("loop")


# -------------------------------------------------------------------------------------------- statements


def simple(m: Machine, text: str) -> None:
    """A declaration or an expression. Raises NotUnderstood."""
    written = text
    text = _expanded(m, _LAUNCH.sub(calls.LAUNCH, text).strip())
    if text != written:
        m.frame.origin = -1
    if not text or text.startswith(("typedef ", "static_assert", "using namespace", "using std")):
        return
    alias = _ALIAS.match(text)
    if alias is not None:
        type_ = Reader(alias[2]).type()
        if type_ is not None:
            m.frame.templates[alias[1]] = m.resolved(type_)
        return
    bound = _BOUND.match(text)
    if bound is not None:
        _bind(m, [name.strip() for name in bound[1].split(",")], bound[2])
        return
    reader = Reader(text)
    static = "static" in text.split()[:2]
    type_ = reader.type()
    named = type_ is not None and re.match(r"[A-Za-z_]", reader.here()) is not None
    if type_ is None or not named or reader.here(1) not in ("=", "(", "{", "[", "", ","):
        evaluated(m, expression(text))
        return
    _declarators(m, reader, type_, static)


def _expanded(m: Machine, text: str) -> str:
    """A text with the macros of its file, as far as these stand for expressions."""
    macros = m.frame.unit.text.macros
    for word in dict.fromkeys(_WORD.findall(text)) if macros else ():
        known = macros.get(word, ())
        if len(known) == 1 and not _NO_EXPRESSION.search(known[0].body):
            text = _one_expanded(text, word, known[0])
    return text


def _one_expanded(text: str, word: str, macro: Macro) -> str:
    for match in reversed(list(re.finditer(rf"\b{word}\b", text))):
        begin, end = match.end(), match.end()
        if macro.parameters is None:
            made = macro.body
        else:
            begin += text[begin : begin + 1].isspace()
            end = closings(text, "()").get(begin, -1) + 1
            if end <= 0:
                continue
            made = macro.expanded(whole_arguments(text[begin + 1 : end - 1]))
        text = f"{text[: match.start()]}({made}){text[end:]}"
    return text


def _declarators(m: Machine, reader: Reader, type_: Type, static: bool) -> None:
    base = evolve(type_, pointers=0, reference=False)
    while True:
        name = reader.here()
        reader.at += 1
        _declare(m, reader, name, type_, static)
        if not reader.takes(","):
            break
        pointers = 0
        while reader.here() in ("*", "&", "const", "__restrict__"):
            pointers += reader.takes("*") or 0
            if reader.here() != "*":
                reader.at += reader.here() in ("&", "const", "__restrict__")
        type_ = evolve(base, pointers=pointers)
    if reader.at != len(reader.tokens):
        raise NotUnderstood(reader.text)


def _declare(m: Machine, reader: Reader, name: str, type_: Type, static: bool) -> None:
    here = m.resolved(type_)
    cell, lent = Cell(None, here), len(m.lent)
    if reader.takes("["):
        while not reader.takes("]"):
            if not reader.here():
                raise NotUnderstood(name)
            reader.at += 1
        cell.value = Object(m.fresh(name), "[]")
        if reader.takes("="):
            value = evaluated(m, reader.whole())
            if not isinstance(value, Object):
                raise NotUnderstood(name)
            cell.value = value
        m.frame.scopes[-1][name] = cell
        return
    if reader.takes("="):
        node = reader.whole()
        of = cell_of(m, node) if here.reference else None
        if of is not None and m.is_pointed(of):
            raise NotUnderstood(name)
        if of is not None:
            m.frame.scopes[-1][name] = of
            return
        value = objects.record_as(m, here, evaluated(m, node))
        value = value if isinstance(node, LambdaText) else copied(value)
        cell.value = m.converted(value, here)
    elif reader.here() in ("(", "{"):
        closing = ")" if reader.takes("(") else "}" if reader.takes("{") else ""
        parts = reader.listed(closing)
        cell.value = _made(m, here, parts)
    else:
        cell.value = None if here.pointers else _made(m, here, ())
    if not here.pointers and not is_built_in(here.name):
        m.guard(m.lent[lent:])
    if static:
        cell.value = m.initial(m.fresh(f"{name}__static"), here)
    m.frame.scopes[-1][name] = cell


def _made(m: Machine, type_: Type, nodes: tuple[Node, ...]) -> Value:
    if m.class_of(type_) is not None and not type_.pointers:
        return objects.constructed(m, type_, nodes)
    if len(nodes) == 1 and (type_.pointers or is_built_in(type_.name)):
        return m.converted(copied(evaluated(m, nodes[0])), type_)
    calls.lend(m, nodes, calls.valued(m, nodes))
    return m.initial(m.fresh(type_.name), type_)


def _bind(m: Machine, names: list[str], text: str) -> None:
    """``auto [a, b] = …``."""
    of = Cell(evaluated(m, expression(text)))
    known = m.class_of(Type(of.value.type)) if isinstance(of.value, Object) and of.value.type else None
    fields = (
        list(known[0].field_types(known[1])) if known is not None else [f"[{i}]" for i in range(len(names))]
    )
    if len(fields) != len(names):
        raise NotUnderstood(text)
    for name, field in zip(names, fields, strict=True):
        m.frame.scopes[-1][name] = m.field(of, field)
