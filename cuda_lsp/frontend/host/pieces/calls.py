"""Calls of host code: functions, member functions and lambdas whose text is known are executed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import evolve

from cuda_lsp.frontend.host.host_classes import HostClass
from cuda_lsp.frontend.host.host_functions import HostFunction
from cuda_lsp.frontend.host.pieces import evaluation, objects, statements
from cuda_lsp.frontend.host.pieces.machine import Frame, Known, Machine, NotUnderstood
from cuda_lsp.frontend.host.pieces.nodes import Called, Member, Name, Node, Number, Type
from cuda_lsp.frontend.host.pieces.operators import size
from cuda_lsp.frontend.host.pieces.syntax import NotRead, Reader
from cuda_lsp.frontend.host.pieces.units import Unit, declared_type
from cuda_lsp.frontend.host.pieces.values import (
    Address,
    Cell,
    Lambda,
    Nobody,
    Object,
    Place,
    Value,
    alike,
    copied,
)
from cuda_lsp.frontend.host.statements import NoStatement
from cuda_lsp.frontend.host.text import whole_arguments

LAUNCH = "launched__"
_ALLOCATES = re.compile(r"\A(?:cu|cuda|hip)Malloc\w*\Z|\AcudaMallocAsync\Z")
_ALIGNED_TO = 256
_SAME = frozenset({"std::move", "move", "std::forward", "forward", "std::as_const"})
_MADE = frozenset({"std::make_unique", "make_unique", "std::make_shared", "make_shared"})
_TUPLES = frozenset(
    {"std::make_pair", "make_pair", "std::make_tuple", "make_tuple", "std::pair", "std::tuple"}
)
_HARMLESS = re.compile(
    r"\A(?:cuda\w*|cu[A-Z]\w*|std::(?:max|min|printf|to_string|cout|cerr)|printf|fprintf|assert|min|max|malloc|free|memset"
    r"|memcpy|dim3|launched__|[A-Z][A-Z0-9_]{3,})\Z"
)
_NO_GETTER = re.compile(
    r"\A(?:(?:get_?)?[Nn]ext|take|pop|alloc|make|create|acquire|new|fresh|clone|copy|release|request|push|draw)"
)
_CHANGEABLE = re.compile(r"\A(?:const|mut|mutable)_(?=\w)")
_DEEPEST = 8
_LITERAL = re.compile(r"\A(?:\d\w*|nullptr|NULL|true|false)\Z")
_REFERENCE = re.compile(r"&\s?(?:\w+(?:<[^<>]*>)?\s?::\s?){0,3}\Z")

Result = tuple[Value, Cell | None]


def called(m: Machine, node: Called) -> Result:
    """What a call is worth, and the variable that it refers to, if any. Raises NotUnderstood."""
    function = node.function
    if isinstance(function, Member):
        return _of_member(m, function, node.arguments)
    if not isinstance(function, Name):
        return _called_value(m, evaluation.evaluated(m, function), node.arguments)
    name = function.text
    if name == ",":
        evaluation.evaluated(m, node.arguments[0])
        return evaluation.evaluated(m, node.arguments[1]), None
    if name in _SAME and len(node.arguments) == 1:
        return evaluation.evaluated(m, node.arguments[0]), evaluation.cell_of(m, node.arguments[0])
    if name in ("std::ref", "ref", "std::addressof") and len(node.arguments) == 1:
        of = evaluation.cell_of(m, node.arguments[0])
        return Address(of) if of is not None else Nobody(m.fresh(name)), None
    if name in _MADE:
        type_ = Reader(function.template).type()
        if type_ is None:
            raise NotUnderstood(name)
        return Address(Cell(objects.constructed(m, type_, node.arguments))), None
    if name in _TUPLES:
        return objects.record(m, "std::tuple", [(None, part) for part in node.arguments]), None
    if name in ("std::get", "get") and function.template.isdigit() and len(node.arguments) == 1:
        of = evaluation.cell_of(m, node.arguments[0])
        of = of or Cell(evaluation.evaluated(m, node.arguments[0]))
        cell = m.field(of, f"[{function.template}]")
        return cell.value, cell
    if name in ("std::swap", "swap") and len(node.arguments) == 2:
        return _swapped(m, node.arguments), None
    if name in ("std::exchange", "exchange") and len(node.arguments) == 2:
        return _exchanged(m, node.arguments), None
    return _by_name(m, function, node.arguments)


def _by_name(m: Machine, function: Name, given: Sequence[Node]) -> Result:
    name = function.text
    held = m.lookup(name) if "::" not in name else None
    if held is not None and isinstance(held.value, Lambda):
        return _called_value(m, held.value, given)
    last = name.split("::")[-1]
    this, owner = m.frame.this, m.frame.owner
    if this is not None and owner is not None and (own := m.functions(last, len(given), owner)):
        return _executed(m, own, function.template, given, this)
    if known := m.functions(last, len(given), None):
        return _executed(m, known, function.template, given, None)
    made = m.class_of(Type(last))
    if made is not None and made[1].name == last:
        return objects.constructed(m, Type(name), given), None
    if this is not None and owner is not None and not given and _tells_where(owner, m.frame.unit, name):
        return _got(this.value.name if isinstance(this.value, Object) else "", name), None
    values = valued(m, given)
    if _ALLOCATES.match(name) and values:
        return _allocated(m, values[0]), None
    if not _HARMLESS.match(name):
        if (
            this is not None
            and owner is not None
            and name == last
            and f"{name}(" in objects.declared_in(owner, m.frame.unit)
        ):
            m.forget(this)  # a member function whose text is somewhere else
        lend(m, given, values)
        m.forget_globals()
    elif not name.startswith(LAUNCH):
        for value in values:
            if isinstance(value, Address):
                m.forget(value.cell)
    return Nobody(m.fresh(f"{name}()")), None


def _tells_where(owner: HostClass, unit: Unit, name: str) -> bool:
    """Whether a member function of no arguments, whose text is elsewhere, is declared to return a pointer."""
    declared = rf"\*\s?{re.escape(name)}\(\s?\)"
    return not _NO_GETTER.match(name) and re.search(declared, objects.declared_in(owner, unit)) is not None


def _got(object: str, getter: str, points_to: Type | None = None) -> Nobody:
    """What a getter of an object tells, each time the same, whether it may be written to or not."""
    return Nobody(f"{object}.{_CHANGEABLE.sub('', getter)}()", points_to)


def _allocated(m: Machine, value: Value) -> Value:
    """A buffer of its own for the pointer whose address is passed."""
    if isinstance(value, Address):
        name = m.fresh("allocated")
        m.alignment[name] = _ALIGNED_TO
        of = value.cell.type
        m.write(
            value.cell, Place(name, {}, name, of.pointee if of is not None and of.pointers else Type("void"))
        )
    return Nobody(m.fresh("status"))


def lend(m: Machine, given: Sequence[Node], values: Sequence[Value]) -> None:
    """What a function that nobody knows may write to: what it gets the address of, and objects."""
    for node, value in zip(given, values, strict=False):
        if isinstance(value, Address):
            m.lend(value.cell)
        elif isinstance(value, Object):
            cell = evaluation.cell_of(m, node) if not isinstance(node, Called) else None
            m.lend(cell if cell is not None else Cell(value))
        elif isinstance(value, Lambda):
            raise NotUnderstood("a lambda that is handed on")


def valued(m: Machine, given: Sequence[Node]) -> list[Value]:
    """The arguments of a call, in whatever order these are evaluated. Raises NotUnderstood."""
    mark = len(m.changed)
    values = [evaluation.evaluated(m, node) for node in given]
    if len(m.changed) == mark or len([n for n in given if not isinstance(n, Number)]) < 2:
        return values
    last = m.undone(mark)
    others = [evaluation.evaluated(m, node) for node in reversed(given)][::-1]
    same = all(alike(one, other) for one, other in zip(values, others, strict=True))
    if not same or any(id(c) in last and not alike(c.value, last[id(c)][1]) for c, _ in m.changed[mark:]):
        raise NotUnderstood("the order of arguments")
    return others


def _swapped(m: Machine, given: Sequence[Node]) -> Value:
    one, other = (evaluation.cell_of(m, node) for node in given)
    if one is None or other is None:
        raise NotUnderstood("swap")
    first, second = copied(one.value), copied(other.value)
    m.write(one, second)
    m.write(other, first)
    return None


def _exchanged(m: Machine, given: Sequence[Node]) -> Value:
    cell = evaluation.cell_of(m, given[0])
    value = evaluation.evaluated(m, given[1])
    if cell is None:
        raise NotUnderstood("exchange")
    before = cell.value
    m.write(cell, value)
    return before


# ---------------------------------------------------------------------------------------------- members


def _of_member(m: Machine, function: Member, given: Sequence[Node]) -> Result:
    name, this = function.field, None
    if not (isinstance(function.object, Name) and function.object.text == "this"):
        this = evaluation.cell_of(m, function.object)
        value = this.value if this is not None else evaluation.evaluated(m, function.object)
        if isinstance(value, Address):
            if name == "get" and not given and not function.arrow:
                return value, None
            this = value.cell
        elif isinstance(value, Place) and function.arrow:
            this = m.pointed(value)
    else:
        this, value = m.frame.this, None
    this = this if this is not None else Cell(value)
    if isinstance(this.value, Lambda):
        raise NotUnderstood(name)
    if isinstance(this.value, Nobody):
        this.value = Object(this.value.name, "")
    if not isinstance(this.value, Object):
        raise NotUnderstood(name)
    known = m.class_of(Type(this.value.type)) if this.value.type else None
    own = m.functions(name, len(given), known[1]) if known is not None else m.methods(name, len(given))
    if own:
        return _executed(m, own, function.template, given, this)
    held = this.value.fields.get(name)
    if held is not None and isinstance(held.value, Lambda):
        return _called_value(m, held.value, given)
    return _of_nobody(m, this, this.value, function, valued(m, given), given)


def _of_nobody(
    m: Machine, this: Cell, of: Object, function: Member, values: Sequence[Value], given: Sequence[Node]
) -> Result:
    """A member function of whose text nothing is known: one without arguments tells what is there."""
    name = function.field
    known = m.class_of(Type(of.type)) if of.type else None
    if known is not None and not known[0].leaves_alone(known[1], name):
        m.lend(this)  # its text is somewhere else
        lend(m, given, values)
        return Nobody(m.fresh(f"{name}()")), None
    if not values and not of.fields and not _NO_GETTER.match(name):
        type_ = Reader(function.template).type() if function.template else None
        return _got(of.name, name, m.resolved(type_) if type_ else None), None
    lend(m, given, values)
    sizes = [size(value) for value in values]
    if (
        of.type
        or _NO_GETTER.match(name)
        or None in sizes
        or len(this.value.fields if isinstance(this.value, Object) else ())
    ):
        m.forget(this)
        return Nobody(m.fresh(f"{name}()")), None
    told = ", ".join(str(sorted(s.items())) for s in sizes if s is not None)
    return Nobody(f"{of.name}.{name}({told})"), None


# -------------------------------------------------------------------------------------------- functions


def _executed(
    m: Machine, known: Sequence[Known], template: str, given: Sequence[Node], this: Cell | None
) -> Result:
    """What a function returns; one not understood that is declared to change nothing changes nothing."""
    mark = len(m.changed)
    try:
        return _followed(m, known, template, given, this)
    except (NotUnderstood, NoStatement, NotRead):
        if given or not all(k.owner and k.unit.leaves_alone(k.owner, k.function.name) for k in known):
            raise
        m.undone(mark)
        return Nobody(m.fresh(f"{known[0].function.name}()")), None


def _followed(
    m: Machine, known: Sequence[Known], template: str, given: Sequence[Node], this: Cell | None
) -> Result:
    chosen = list(known)
    if len(chosen) > 1 and template:
        chosen = [k for k in chosen if k.function.template]
    if len(chosen) != 1 or len(m.frames) > _DEEPEST:
        raise NotUnderstood("which function")
    (one,) = chosen
    plain, function = one.unit.text.plain, one.function
    at = plain.rfind(function.name, 0, function.opening)
    virtual = one.owner is not None and one.unit.is_virtual(one.owner, function.name)
    if virtual or one.unit.functions.jumps(function):
        raise NotUnderstood(function.name)
    declared = whole_arguments(plain[function.opening + 1 : function.closing])
    frame = Frame(one.unit, [{}], this, one.owner)
    frame.reference = _REFERENCE.search(plain, max(0, at - 60), at) is not None
    if one.owner is not None and this is not None and isinstance(this.value, Object):
        frame.templates.update(m.bindings(one.unit, one.owner, this.value.type))
    _bind_types(m, frame, function, template)
    bind(m, frame, declared, given, function.template)
    return _run(m, frame, function.body, function.end)


def _bind_types(m: Machine, frame: Frame, function: HostFunction, template: str) -> None:
    for name, text in zip(function.template, whole_arguments(template), strict=False):
        type_ = Reader(text).type()
        if type_ is not None:
            frame.templates[name] = m.resolved(type_)
        elif text.strip().isdigit():
            frame.scopes[0][name] = Cell(evaluation.text_value(m, text))
    for name in function.template:
        if name not in frame.templates and name not in frame.scopes[0]:
            frame.templates[name] = Type(m.fresh(name))


def bind(
    m: Machine, frame: Frame, declared: Sequence[str], given: Sequence[Node], template: Sequence[str] = ()
) -> None:
    """Gives a function's parameters what its caller passes. Raises NotUnderstood."""
    values = valued(m, given)
    for position, text in enumerate(declared):
        made = declared_type(text)
        if made is None or "..." in text:
            if position < len(given):
                raise NotUnderstood(text)
            continue
        type_, name = made
        if position >= len(given):
            default = text.partition("=")[2].strip()
            known = evaluation.text_value(m, default) if _LITERAL.match(default) else Nobody(m.fresh(name))
            value, cell = known, None
        else:
            value, node = values[position], given[position]
            cell = evaluation.cell_of(m, node) if type_.reference and not isinstance(node, Called) else None
        if type_.name in template and "@" in frame.templates.get(type_.name, type_).name:
            _deduce(frame, type_, value)
        held = frame.templates.get(type_.name)
        type_ = type_ if held is None else evolve(held, pointers=held.pointers + type_.pointers)
        if cell is None:
            cell = Cell(None, type_)
            cell.value = copied(m.converted(value, type_))
        frame.scopes[0][name] = cell


def _deduce(frame: Frame, type_: Type, value: Value) -> None:
    """What a template's parameter is, where an argument tells."""
    if isinstance(value, Place) and value.type is not None and type_.pointers == 1:
        frame.templates[type_.name] = value.type


def _called_value(m: Machine, value: Value, given: Sequence[Node]) -> Result:
    if not isinstance(value, Lambda) or len(m.frames) > _DEEPEST:
        raise NotUnderstood("what is called")
    unit = value.unit
    frame = Frame(unit, [*value.scopes, {}], value.this, value.owner)
    frame.templates = dict(m.frame.templates)
    own = Frame(unit, [{}])
    bind(m, own, whole_arguments(value.parameters), given)
    frame.scopes[-1].update(own.scopes[0])
    end = unit.text.braces.closing.get(value.body, -1)
    if end < 0:
        raise NotUnderstood("lambda")
    return _run(m, frame, value.body, end)


def _run(m: Machine, frame: Frame, body: int, end: int) -> Result:
    m.frames.append(frame)
    try:
        statements.block(m, body + 1, end)
    except statements.Returned as result:
        return result.value, result.cell
    finally:
        m.frames.pop()
    return None, None
