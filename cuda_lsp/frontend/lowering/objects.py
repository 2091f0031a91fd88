"""Objects come into being: constructors, their member initialisers, default members."""

from __future__ import annotations

from cuda_lsp.frontend.lowering import calls, conversions, expressions, initialisers, lvalues
from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.lowering.functions import Function, argument_nodes, defined
from cuda_lsp.frontend.lowering.places import Place, Value
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.lowering.types import type_of, type_of_declaration
from cuda_lsp.frontend.tree import Declaration, Node
from cuda_lsp.frontend.vocabulary import builtins


def construct(low: Lowering, node: Node, declaration: Declaration, target: Place | None) -> Value | Place:
    """A constructor call; ``target`` None makes a new object and gives its value."""
    info = type_of(low.ast, node)
    arguments = argument_nodes(low, node)
    if info.kind == "array":
        return low.read(low.local("", info), None)
    library = builtins.construct(low, node, declaration, info, arguments)
    if library is not None:
        return library
    function = defined(low, declaration)
    copied = len(arguments) == 1 and (function.body is None or copies(low, function))
    if copied and (info.scalar or type_of(low.ast, arguments[0]).is_record):
        # a narrow float (``__half``) is a class for C++ and a number here: its constructors only convert
        value = conversions.convert(low, expressions.value(low, arguments[0]), info)
        if target is not None:
            low.write(target, value, None)
        return value
    if function.body is None and arguments and not declaration.in_system_header:
        return calls.without_body(low, node, declaration, arguments, target)
    own = target is None
    object = low.local("", info) if target is None else target
    _default_members(low, object)
    if function.body is not None:
        calls.inline(low, node, function, arguments, object, constructs=True)
    elif arguments:
        return low.unknown_record(info, f"a {info.name}", [expressions.value(low, a) for a in arguments])
    return low.read(object, None) if own else object


def initialise_members(low: Lowering, function: Function, this: Place) -> None:
    """A constructor's initialisers of members and bases, in their order."""
    for member, expression in function.initialisers:
        if member.kind == K.MEMBER_REF:
            declaration = low.ast.referenced(member)
            if declaration is None:
                continue
            info = type_of_declaration(low.ast, declaration)
            field = lvalues.field_in(this, declaration, info)
            if info.kind == "reference":
                low.bind_reference(this, field, lvalues.place(low, expression))
            else:
                initialisers.initialise(low, low.member(this, field), expression)
        elif member.kind == K.TYPE_REF and expression.kind == K.INIT_LIST:
            base = lvalues.base_of(this, type_of(low.ast, expression))
            initialisers.initialise(low, base, expression)
        elif expression.kind == K.CALL:
            named = low.ast.referenced(expression)
            if named is not None and named.kind == K.CONSTRUCTOR:
                construct(low, expression, named, lvalues.as_class(this, type_of(low.ast, expression)))


def _default_members(low: Lowering, object: Place) -> None:
    """Default member initialisers (``int n = 0;``)."""
    declaration = object.info.declaration
    if declaration is None or object.info.kind != "record" or declaration.in_system_header:
        return
    for field in object.info.fields:
        cursor = low.ast.field_cursor(field.key)
        if cursor is None:
            continue
        root = low.ast.body(cursor)
        children = [c for c in root.children if 100 <= c.kind < 200]
        if children and not field.bitfield and field.type.kind != "array":
            initialisers.initialise(low, low.member(object, field), children[-1])


def is_copy(low: Lowering, node: Node, constructor: Declaration) -> bool:
    """Whether an initialiser only copies a record."""
    arguments = argument_nodes(low, node)
    one = len(arguments) == 1 and type_of(low.ast, arguments[0]).is_record
    return one and copies(low, defined(low, constructor))


def copies(low: Lowering, function: Function) -> bool:
    """A copy or move that nobody wrote or ``= default`` makes: memberwise, whatever clang synthesised."""
    implicit = not any(p.name for p in function.parameters)  # libclang shows none
    return implicit or bool(low.ast.lib.clang_CXXMethod_isDefaulted(function.declaration.cursor))
