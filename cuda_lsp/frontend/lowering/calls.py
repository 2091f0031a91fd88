"""Calls: everything with a body is inlined; everything else is a row of the table of built-ins.

A call gives a value, or a place when the function returns a reference.  Recursion is followed to a
fixed depth, then said to be incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cuda_lsp.frontend import budgets
from cuda_lsp.frontend.lowering import (
    closures,
    conversions,
    expressions,
    lifetimes,
    lvalues,
    objects,
    statements,
)
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering.build import pointer_inside, zero
from cuda_lsp.frontend.lowering.functions import Function, argument_nodes, defined, function_of
from cuda_lsp.frontend.lowering.output import Frame, Untranslatable, unclear
from cuda_lsp.frontend.lowering.places import (
    EXPR_TYPES,
    PLACE_TYPES,
    Address,
    FunctionValue,
    MemoryPlace,
    MemoryRecord,
    Place,
    RecordValue,
    StaticPlace,
    Value,
    VarPlace,
    is_expr,
)
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.syntax import is_default, strip
from cuda_lsp.frontend.lowering.types import VOID, TypeInfo, type_of, type_of_declaration
from cuda_lsp.frontend.tree import Declaration, Node
from cuda_lsp.frontend.vocabulary import builtins
from cuda_lsp.ir.program import AddressOf, Binary, Block, Builtin, Cast, Const, NextStep, Offset, Var
from cuda_lsp.ir.types import INT64, Float, Pointer

_LONGEST_CALL = 60  # characters of its text
_TEMPLATE_NAME = re.compile(rb"\A\s*(?:template\s+)?[\w:]+\s*<")


def call_value(low: Lowering, node: Node) -> Value:
    """A call as a value (a returned reference is read)."""
    result = call(low, node)
    if isinstance(result, PLACE_TYPES):
        return low.read(result, node)
    return result


def call(low: Lowering, node: Node) -> Value | Place:
    """Evaluate a call expression."""
    result = _call(low, node)
    if not isinstance(result, PLACE_TYPES) and lifetimes.ends(low, type_of(low.ast, node)):
        low.temporaries += 1
    return result


def _call(low: Lowering, node: Node) -> Value | Place:
    declaration = low.ast.referenced(node)
    if declaration is None or (not declaration.name and declaration.kind != K.CONSTRUCTOR):
        declaration = _named_function(low, node)
    if declaration is None:
        return _indirect(low, node)
    if declaration.kind in (K.VAR, K.PARAMETER, K.FIELD):
        return _indirect(low, node)
    if declaration.kind == K.CONSTRUCTOR:
        return objects.construct(low, node, declaration, None)
    arguments = argument_nodes(low, node)
    this: Place | None = None
    callee = strip(node.children[0]) if node.children else None
    member = declaration.kind in (
        K.METHOD,
        K.CONVERSION,
        K.DESTRUCTOR,
    ) and not low.ast.lib.clang_CXXMethod_isStatic(declaration.cursor)
    if not member:
        built_in = builtins.lower(low, node, declaration, arguments, None)
        if built_in is not None:
            return built_in
        return _inline_or_say(low, node, declaration, arguments, None)
    if callee is not None and callee.kind == K.MEMBER_EXPR and not _is_operand(low, callee, declaration):
        this = _object(low, callee)
    elif declaration.name.startswith("operator") and arguments:
        this = lvalues.place(low, arguments[0])
        arguments = arguments[1:]
    elif node.children:
        this = lvalues.place(low, node.children[0])
    built_in = builtins.lower(low, node, declaration, arguments, this)
    if built_in is not None:
        return built_in
    return _inline_or_say(low, node, declaration, arguments, this)


def _is_operand(low: Lowering, callee: Node, declaration: Declaration) -> bool:
    """``object.member += x``: libclang's first child of an operator's call is its left operand."""
    named = low.ast.referenced(callee)
    return declaration.name.startswith("operator") and named is not None and named.kind == K.FIELD


def _object(low: Lowering, callee: Node) -> Place | None:
    bases = [c for c in callee.children if c.kind >= 100 and not _is_template_argument(low, c, callee)]
    if not bases:
        return low.frame.this
    info = type_of(low.ast, bases[0])
    if info.is_pointer:
        return lvalues.pointed(low, expressions.value(low, bases[0]), info.target or info, bases[0])
    return lvalues.place(low, bases[0])


def _is_template_argument(low: Lowering, part: Node, callee: Node) -> bool:
    """It stands in ``fold<WIDTH>``, which is called without an object: of the one at hand."""
    _, file, begin, _ = low.ast.extent(callee)
    _, there, at, _ = low.ast.extent(part)
    return there == file and _TEMPLATE_NAME.match(low.ast.contents(file)[begin:at]) is not None


def _named_function(low: Lowering, node: Node) -> Declaration | None:
    """The function that the callee names in parentheses or as a template's argument (``reduce(x)`` for
    ``template <Function reduce>``), where clang's call itself refers to nothing."""
    callee = strip(node.children[0]) if node.children else None
    while callee is not None and callee.children and callee.kind in (K.DECL_REF, K.UNARY):
        if callee.kind == K.UNARY and low.ast.operator(callee) not in (K.ADDRESS_OF, K.DEREF):
            return None
        callee = strip(callee.children[-1])
    named = low.ast.referenced(callee) if callee is not None and callee.kind == K.DECL_REF else None
    return named if named is not None and named.kind == K.FUNCTION else None


def _pointed_function(low: Lowering, callee: Node) -> Declaration | None:
    """The function that a pointer, known while lowering, points to."""
    while callee.kind in (K.UNEXPOSED, K.PAREN) or (callee.kind == K.DECL_REF and callee.children):
        inner = [c for c in callee.children if c.kind >= 100]
        if not inner:
            return None
        callee = inner[-1]
    if callee.kind == K.UNARY and callee.children:  # (*f)(…)
        return _pointed_function(low, callee.children[-1])
    if callee.kind not in (K.DECL_REF, K.MEMBER_EXPR):
        return None
    declaration = low.ast.referenced(callee)
    if declaration is not None and declaration.kind == K.FUNCTION:
        return declaration
    if declaration is None or declaration.key not in low.env:
        return None
    place = low.env[declaration.key]
    value = place.value if isinstance(place, StaticPlace) else None
    return value.declaration if isinstance(value, FunctionValue) else None


def _indirect(low: Lowering, node: Node) -> Value | Place:
    """A call through a pointer, or one that clang could not resolve."""
    function = _pointed_function(low, node.children[0]) if node.children else None
    if function is not None:
        return _inline_or_say(low, node, function, argument_nodes(low, node), None)
    text = low.ast.text(node)
    named = text if len(text) <= _LONGEST_CALL else f"{text[: _LONGEST_CALL - 1]}…"
    held = low.ast.lib.clang_getCursorReferenced(node.cursor).kind in (K.VAR, K.PARAMETER, K.FIELD)
    if held or (node.children and _is_followed(low, node.children[0])):
        raise Untranslatable(named, "calls a function through a pointer", node, NextStep.PROGRAM)
    raise unclear(named, "clang could not resolve the call", node)


def _is_followed(low: Lowering, callee: Node) -> bool:
    """``(*f)``, ``table[i]``: a pointer that a variable or a field holds."""
    followed = False
    while callee.kind not in (K.DECL_REF, K.MEMBER_EXPR):
        followed = followed or callee.kind in (K.UNARY, K.SUBSCRIPT)
        if not callee.children:
            return False
        callee = callee.children[0]
    declaration = low.ast.referenced(callee) if followed else None
    return declaration is not None and declaration.kind in (K.VAR, K.PARAMETER, K.FIELD)


def _inline_or_say(
    low: Lowering, node: Node, declaration: Declaration, arguments: list[Node], this: Place | None
) -> Value | Place:
    function = defined(low, declaration)
    if low.ast.lib.clang_CXXMethod_isVirtual(declaration.cursor) and declaration.kind == K.METHOD:
        final = _overrider(low, declaration, object) if (object := _class_of_object(low, this)) else None
        if final is None:
            raise Untranslatable(low.ast.text(node)[:60], "calls a virtual function", node, NextStep.PROGRAM)
        function = defined(low, final)
    if declaration.name == "operator=" and objects.copies(low, function) and this is not None and arguments:
        return assign_record(low, node, this, arguments[0])
    if function.body is None:
        if declaration.name == "operator=" and this is not None and arguments:
            return assign_record(low, node, this, arguments[0])
        return without_body(low, node, declaration, arguments, this)
    return inline(low, node, function, arguments, this)


def _class_of_object(low: Lowering, this: Place | None) -> TypeInfo | None:
    """The class that an object was made as, for a local one (seen whole or as its first base)."""
    if not isinstance(this, MemoryPlace):
        return None
    pointer = this.pointer
    while isinstance(pointer, Cast) or (isinstance(pointer, Offset) and pointer.bytes == zero(INT64)):
        pointer = pointer.operand if isinstance(pointer, Cast) else pointer.pointer
    return low.classes.get(pointer.array.id) if isinstance(pointer, AddressOf) else None


def _overrider(low: Lowering, declaration: Declaration, info: TypeInfo) -> Declaration | None:
    """What a virtual call does for a local object, whose class is known: the last override above it."""
    if info.declaration is None:
        return None
    for cursor in low.ast.children(info.declaration.cursor):
        found = low.ast.declaration(cursor) if cursor.kind == K.METHOD else None
        if found is None or found.name != declaration.name:
            continue
        lib = low.ast.lib
        types = (lib.clang_getCursorType(d.cursor) for d in (found, declaration))
        return found if found.key == declaration.key or lib.clang_equalTypes(*types) else None
    above = (_overrider(low, declaration, base) for _, base in info.bases)
    return next((found for found in above if found is not None), None)


def assign_record(low: Lowering, node: Node, target: Place, source: Node) -> Place:
    """``target = source`` for records without an operator of their own; gives ``target``."""
    new = expressions.value(low, source)
    left = node.children[0] if node.children else node
    low.write(target, new, left)
    return target


def without_body(
    low: Lowering, node: Node, declaration: Declaration, arguments: list[Node], this: Place | None
) -> Value:
    """A function declared only: pure when it gets values alone and belongs to the shim; else incomplete."""
    info = type_of(low.ast, node)
    values = [expressions.value(low, a) for a in arguments]
    by_reference = [a for a in arguments if type_of(low.ast, a).is_pointer]
    for parameter, argument in zip(function_of(low, declaration).parameters, arguments, strict=False):
        passed = type_of_declaration(low.ast, parameter)
        if passed.kind == "reference" and passed.target is not None and not passed.target.const:
            by_reference.append(argument)
            values.append(low.address(lvalues.place(low, argument)))
    provided = declaration.in_system_header or declaration.name.startswith("__builtin_")
    if provided and not by_reference:
        if this is not None:
            values = [*_touch(low, node, declaration, this, values), *values]
        if info is VOID:
            return zero(INT64)
        if info.kind != "record":
            return low.result_of(declaration.name, info.ir, values)
        return low.unknown_record(info, f"the result of {declaration.name}", values)
    pointers = [
        low.pointer(v)
        for v in values
        if isinstance(v, EXPR_TYPES) and isinstance(getattr(v, "type", None), Pointer)
    ]
    if isinstance(this, MemoryPlace):
        pointers.append(this.pointer)
    for value in values:
        if isinstance(value, Address):
            low.scramble(value.place)
    low.incomplete(
        declaration.name, "clang could read no body of it", node, pointers, synchronises=True,
        harmless=declaration.in_system_header and not pointers, step=NextStep.BODY,
    )  # fmt: skip
    return low.unknown_record(info, f"the result of {declaration.name}") if info is not VOID else zero(INT64)


def _touch(
    low: Lowering, node: Node, declaration: Declaration, this: Place, values: Sequence[Value]
) -> tuple[Value, ...]:
    """What a method of the shim does to its object: reads it, and writes it unless it is ``const``.

    A number (``__half``) is given, as one more operand: what its methods give and write is made of operands.
    """
    object = node.children[0] if node.children else node
    number = this.info.scalar and isinstance(this.info.ir, Float)
    changes = not low.ast.lib.clang_CXXMethod_isConst(declaration.cursor)
    if number or (isinstance(this, MemoryPlace) and (this.info.scalar or this.info.scalar_replaceable())):
        held = low.read(this, object)
        made_of = (held, *values) if number else ()
        if changes:
            low.write(this, low.unknown_record(this.info, f"written by {declaration.name}", made_of), object)
        return (held,) if number else ()
    low.scramble(this)
    return ()


# -------------------------------------------------------------------------------------- inlining


def inline(
    low: Lowering,
    node: Node,
    function: Function,
    arguments: Sequence[Node | Place],
    this: Place | None,
    constructs: bool = False,
) -> Value | Place:
    """The body of ``function`` in place of the call; what no text passes is passed as a place."""
    key = function.declaration.key
    name = function.declaration.name
    if low.active.count(key) >= budgets.MOST_RECURSION or len(low.active) >= budgets.MOST_CALLS:
        reason = f"recursion deeper than {budgets.MOST_RECURSION} calls is not followed"
        low.incomplete(name, reason, node, synchronises=True)
        return (
            low.unknown_record(function.result, "the result of a recursive call")
            if function.result is not VOID
            else zero(INT64)
        )
    low.assigned |= function.written
    bound = _bind_all(low, function, arguments)
    saved = dict(low.env) if key in low.active else None
    captured = closures.captures(low, function.declaration)
    shadowed = {k: low.env.get(k) for k in captured}
    for parameter, place in bound:
        low.env[parameter] = place
    low.env.update(captured)
    frame = Frame(low.fresh(), None, this)
    closure = closures.closure_of(low, function.declaration)
    if closure is not None:
        frame.this = closure.this
    frame.by_reference = function.result.kind == "reference"
    single = len(function.returns) == 1 and function.returns[0].key in function.tails
    if function.result is not VOID and not single and not constructs:
        info = function.result
        frame.result = (
            low.local("", info) if info.kind != "reference" else VarPlace(info, low.var("", info.ir))
        )
    frame.tails = function.tails
    outer = low.calls, low.called
    low.enter(node)
    low.frames.append(frame)
    low.active.append(key)
    try:
        with low.nested() as lowered:
            if constructs and this is not None:
                objects.initialise_members(low, function, this)
            assert function.body is not None
            statements.statement(low, function.body)
    finally:
        low.active.pop()
        low.frames.pop()
        low.calls, low.called = outer
    if frame.left:
        low.emit(Block(frame.label, tuple(lowered), low.site(node)))
    else:
        low.out.extend(lowered)
    for k, place in shadowed.items():
        if place is None:
            low.env.pop(k, None)
        else:
            low.env[k] = place
    if saved is not None:
        low.env = saved
    return _result_of(low, function, frame)


def _result_of(low: Lowering, function: Function, frame: Frame) -> Value | Place:
    if function.result is VOID:
        return zero(INT64)
    if frame.returned is not None:
        return frame.returned
    if frame.result is None:
        return low.unknown_record(function.result, f"what `{function.declaration.name}` returns")
    if frame.by_reference:
        assert isinstance(frame.result, VarPlace)
        return MemoryPlace(function.result.target or function.result, frame.result.var)
    return low.read(frame.result, None)


def _bind_all(
    low: Lowering, function: Function, arguments: Sequence[Node | Place]
) -> list[tuple[int, Place]]:
    bound: list[tuple[int, Place]] = []
    for index, parameter in enumerate(function.parameters):
        if index < len(arguments):
            argument = arguments[index]
            place = (
                bind(low, parameter, argument)
                if isinstance(argument, Node)
                else _bound_to(low, parameter, argument)
            )
            bound.append((parameter.key, place))
    return bound


def _bound_to(low: Lowering, parameter: Declaration, place: Place) -> Place:
    info = type_of_declaration(low.ast, parameter)
    return place if info.kind == "reference" else hold(low, parameter, info, low.read(place, None))


def bind(low: Lowering, parameter: Declaration, argument: Node) -> Place:
    """The object a parameter stands for: the argument itself for references, else a copy."""
    info = type_of_declaration(low.ast, parameter)
    argument = _given(low, parameter, argument)
    if info.kind == "reference":
        return lvalues.place(low, argument)
    if info.kind == "array":  # decays
        info = TypeInfo(
            "pointer", info.name, Pointer(info.target.size if info.target else 1), 8, 8, target=info.target
        )
    value = conversions.convert(low, expressions.value(low, argument), info)
    if lifetimes.ends(low, info):
        name = f"parameter {parameter.name}"
        low.incomplete(name, "its destructor is not followed", argument, synchronises=True)
    return hold(low, parameter, info, value)


def _given(low: Lowering, parameter: Declaration, argument: Node) -> Node:
    """The argument; for a default that clang cannot evaluate, what the parameter's declaration says."""
    if not is_default(argument) or low.ast.evaluate(argument.cursor) is not None:
        return argument
    own = [child for child in low.ast.body(parameter).children if child.kind >= 100]
    if not own:
        low.incomplete(f"the default of {parameter.name}", "it is written elsewhere", argument)
    return own[-1] if own else argument


def hold(low: Lowering, declaration: Declaration, info: TypeInfo, value: Value) -> Place:
    """A new object of a declaration with its initial value."""
    key = declaration.key
    if isinstance(value, FunctionValue):
        if key not in low.assigned and key not in low.memory:
            return StaticPlace(info, value, key)
        value = low.unknown("a function", Pointer())
    if not isinstance(value, EXPR_TYPES) and not isinstance(value, RecordValue | MemoryRecord | Address):
        return StaticPlace(info, value, 0)
    if key not in low.assigned and key not in low.memory and (info.scalar) and _immutable(low, value):
        return StaticPlace(info, value, key)
    if isinstance(value, MemoryRecord) and key not in low.assigned and low.share_parameter(value, key):
        return MemoryPlace(info, value.pointer)
    if info.is_int and isinstance(value, Cast | Binary) and key not in low.memory:
        pointer = pointer_inside(value)
        if pointer is not None:
            place = VarPlace(info, low.var(declaration.name, Pointer()), key, address=True)
            low.write(place, value, None)
            return place
    place = low.local(declaration.name, info, key)
    low.write(place, value, None)
    if isinstance(place, VarPlace) and key not in low.assigned:
        low.stable.add(place.var.id)
        if is_expr(value) and low.uniform(value):
            low.even[place.var.id] = value
    return place


def _immutable(low: Lowering, value: Value) -> bool:
    if isinstance(value, Var):
        return value.id in low.parameters
    return isinstance(value, Const | AddressOf | Builtin | Address)
