"""Nodes of Z3's terms, made by its C functions: what its Python makes of ``a + b`` takes three times as long.

It asks both sides for their sorts, the result for its kind, and each of these for errors, and most of a
question was such. Here the sorts are known. What comes out is of the library's own classes, in the context of
what it is made of, and the same as the library makes.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

Z3 = Any
"""A Z3 expression; the library ships no types."""


@functools.cache
def z3() -> Any:
    """The library, which takes a while to load."""
    return importlib.import_module("z3")


@functools.cache
def _core() -> Any:
    return importlib.import_module("z3.z3core")


def plus(a: Z3, b: Z3) -> Z3:
    """The sum of two integers."""
    return z3().ArithRef(_core().Z3_mk_add(a.ctx.ctx, 2, _several(a, b)), a.ctx)


def times(a: Z3, b: Z3) -> Z3:
    """The product of two integers."""
    return z3().ArithRef(_core().Z3_mk_mul(a.ctx.ctx, 2, _several(a, b)), a.ctx)


def at_most(a: Z3, b: Z3) -> Z3:
    """``a <= b`` of integers."""
    return z3().BoolRef(_core().Z3_mk_le(a.ctx.ctx, a.ast, b.ast), a.ctx)


def equal(a: Z3, b: Z3) -> Z3:
    """``a == b``, both of one sort."""
    return z3().BoolRef(_core().Z3_mk_eq(a.ctx.ctx, a.ast, b.ast), a.ctx)


def both(*parts: Z3) -> Z3:
    """All of these conditions; there is one at least."""
    context = parts[0].ctx
    return z3().BoolRef(_core().Z3_mk_and(context.ctx, len(parts), _several(*parts)), context)


def either(*parts: Z3) -> Z3:
    """One of these conditions; there is one at least."""
    context = parts[0].ctx
    return z3().BoolRef(_core().Z3_mk_or(context.ctx, len(parts), _several(*parts)), context)


def negated(a: Z3) -> Z3:
    """Not this condition."""
    return z3().BoolRef(_core().Z3_mk_not(a.ctx.ctx, a.ast), a.ctx)


def implied(a: Z3, b: Z3) -> Z3:
    """Where the one condition holds the other does."""
    return z3().BoolRef(_core().Z3_mk_implies(a.ctx.ctx, a.ast, b.ast), a.ctx)


def _several(*parts: Z3) -> Any:
    return (_core().Ast * len(parts))(*(part.ast for part in parts))
