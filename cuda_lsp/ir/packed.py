"""CUDA's integer functions of several operands, on Python integers: of words, and of numbers packed in them.

Source: CUDA Math API, "Integer Intrinsics", "SIMD Intrinsics", "DPX". Every name is made of what it does, so
that all of a family are there. What rounds a negative average (``__vavgs2``) is not told, and left out.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence

from cuda_lsp.ir.types import Int

Function = Callable[[Sequence[int], Int], int]
"""Operands in their types' ranges and the type of the first → a value in the result's range."""

_WORD = 0xFFFFFFFF
_Compared = Callable[[int, int], bool]
_Made = Callable[[Sequence[int]], int]


def _numbers(word: int, bits: int, signed: bool) -> list[int]:
    """The numbers of a word, the lowest first."""
    type = Int(bits, signed)
    return [type.wrap((word & _WORD) >> at) for at in range(0, 32, bits)]


def _packed(numbers: Sequence[int], bits: int) -> int:
    mask = (1 << bits) - 1
    return sum((number & mask) << at * bits for at, number in enumerate(numbers))


def _each(made: _Made, bits: int, signed: bool, saturated: bool = False) -> Function:
    """What ``made`` gives for the numbers in one place of each word; it wraps, or stays in range."""
    type = Int(bits, signed)

    def function(words: Sequence[int], _: Int) -> int:
        places = zip(*(_numbers(word, bits, signed) for word in words), strict=True)
        results = [made(place) for place in places]
        if saturated:
            results = [min(max(result, type.minimum), type.maximum) for result in results]
        return _packed(results, bits)

    return function


def _differences(bits: int, signed: bool) -> Function:
    def function(words: Sequence[int], _: Int) -> int:
        a, b = (_numbers(word, bits, signed) for word in words)
        return sum(abs(x - y) for x, y in zip(a, b, strict=True)) & _WORD

    return function


_COMPARISONS: Mapping[str, _Compared] = {
    "ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt,
}  # fmt: skip
_EITHER: Mapping[str, _Made] = {"max": max, "min": min, "absdiff": lambda x: abs(x[0] - x[1])}
_WRAPPED: Mapping[str, _Made] = {
    "add": sum, "sub": lambda x: x[0] - x[1], "abs": lambda x: abs(x[0]), "neg": lambda x: -x[0],
}  # fmt: skip


def _compared(compared: _Compared, bits: int, signed: bool) -> Iterator[tuple[str, Function]]:
    yield "cmp", _each(lambda x: -compared(*x), bits, signed)
    yield "set", _each(lambda x: int(compared(*x)), bits, signed)


def _of_packed(bits: int) -> Iterator[tuple[str, Function]]:
    """Names between ``__v`` and how many numbers a word holds."""
    for name, made in _WRAPPED.items():
        yield name, _each(made, bits, True)
        yield f"{name}ss", _each(made, bits, True, saturated=True)
    for name in ("add", "sub"):
        yield f"{name}us", _each(_WRAPPED[name], bits, False, saturated=True)
    for sign, signed in (("s", True), ("u", False)):
        yield f"sad{sign}", _differences(bits, signed)
        for name, made in _EITHER.items():
            yield f"{name}{sign}", _each(made, bits, signed)
        for name, compared in _COMPARISONS.items():
            yield from ((f"{kind}{name}{sign}", f) for kind, f in _compared(compared, bits, signed))
    for name, equal in (("eq", operator.eq), ("ne", operator.ne)):
        yield from ((f"{kind}{name}", f) for kind, f in _compared(equal, bits, False))
    yield "avgu", _each(lambda x: sum(x) + 1 >> 1, bits, False)
    yield "haddu", _each(lambda x: sum(x) >> 1, bits, False)


def _added(choose: _Made, type: Int) -> _Made:
    return lambda x: choose((type.wrap(x[0] + x[1]), x[2]))


def _dynamic_programming() -> Iterator[tuple[str, Function]]:
    """``__viaddmax_s32``, ``__vimin3_u16x2``, …; with ``_relu``, of signed numbers: 0 where it is less."""
    for shape in ("s32", "u32", "s16x2", "u16x2"):
        type = Int(32 if shape.endswith("32") else 16, shape.startswith("s"))
        for name in ("max", "min"):
            choose = _EITHER[name]
            yield f"__viadd{name}_{shape}", _shaped(_added(choose, type), type)
            yield f"__vi{name}3_{shape}", _shaped(choose, type)
            if type.signed:
                yield f"__viadd{name}_{shape}_relu", _shaped(_positive(_added(choose, type)), type)
                yield f"__vi{name}3_{shape}_relu", _shaped(_positive(choose), type)
                yield f"__vi{name}_{shape}_relu", _shaped(_positive(choose), type)


def _positive(made: _Made) -> _Made:
    return lambda x: max(made(x), 0)


def _shaped(made: _Made, type: Int) -> Function:
    """Of whole words, whose result has their type, or of each half of them."""
    return (lambda x, t: made(x)) if type.bits == 32 else _each(made, type.bits, type.signed)


# --------------------------------------------------------------------------------- of words


def _permuted(x: Sequence[int], _: Int) -> int:
    both = (x[1] & _WORD) << 32 | x[0] & _WORD
    return sum((both >> 8 * (x[2] >> 4 * i & 7) & 0xFF) << 8 * i for i in range(4))


def _funnel(left: bool, clamped: bool) -> Function:
    def function(x: Sequence[int], _: Int) -> int:
        both, by = (x[1] & _WORD) << 32 | x[0] & _WORD, x[2] & _WORD
        by = min(by, 32) if clamped else by & 31
        return both << by >> 32 & _WORD if left else both >> by & _WORD

    return function


def _nth_set(x: Sequence[int], _: Int) -> int:
    """Where the n-th set bit is from the base on, downwards for a negative n; 0 asks for the base itself."""
    mask, base, n = x[0], x[1], x[2]
    way = range(base, 32) if n > 0 else range(min(base, 31), -1, -1) if n < 0 else range(base, base + 1)
    found = [at for at in way if 0 <= at < 32 and mask >> at & 1]
    return found[max(abs(n), 1) - 1] if len(found) >= max(abs(n), 1) else _WORD


def _dot(bits: int, places: slice = slice(None)) -> Function:
    """Products of the numbers of one word with bytes of another, and a sum: signed as the first word is."""

    def function(x: Sequence[int], t: Int) -> int:
        pairs = zip(_numbers(x[0], bits, t.signed), _numbers(x[1], 8, t.signed)[places], strict=True)
        return t.wrap(x[2] + sum(a * b for a, b in pairs))

    return function


def _average(rounded: int) -> Function:
    return lambda x, t: t.wrap(x[0] + x[1] + rounded >> 1)


def _rows() -> Iterator[tuple[str, Function]]:
    for bits in (16, 8):
        yield from ((f"__v{name}{32 // bits}", f) for name, f in _of_packed(bits))
    yield from _dynamic_programming()
    yield "__byte_perm", _permuted
    for name, left in (("l", True), ("r", False)):
        yield f"__funnelshift_{name}", _funnel(left, clamped=False)
        yield f"__funnelshift_{name}c", _funnel(left, clamped=True)
    yield "__fns", _nth_set
    for sign in ("", "u"):
        yield f"__{sign}sad", lambda x, t: abs(x[0] - x[1]) + x[2] & _WORD
        yield f"__{sign}hadd", _average(0)
        yield f"__{sign}rhadd", _average(1)
    yield "__dp4a", _dot(8)
    yield "__dp2a_lo", _dot(16, slice(2))
    yield "__dp2a_hi", _dot(16, slice(2, None))


FUNCTIONS: Mapping[str, Function] = dict(_rows())
"""Pure integer functions by CUDA name."""
