"""Tensors that the host makes itself and hands to a kernel: their sizes and strides are what it made them of.

``auto t = torch::zeros({n, h, w}, options); k<<<…>>>(t.packed_accessor32<float, 3>())``: the last axis has
stride 1, the one before it ``w``, then ``h * w``. Read from text, as PyTorch lays out what it makes anew. A
tensor that anything else may be assigned to, or that may be laid out anew where it is, tells nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from attrs import frozen

from cuda_lsp.frontend.host.host_constants import HostConstants
from cuda_lsp.frontend.host.text import by_name, split_arguments, whole_arguments

_NAME = r"[A-Za-z_]\w*"
_VIEW = re.compile(
    rf"\A({_NAME})\s?\.\s?(?:generic_)?packed_accessor(?:32|64)?\s?<([^<>;]{{1,200}})>\s?\(\s?\)\Z"
)
_DECLARED = re.compile(
    rf"(?<=[;{{}}])\s?(?:const\s)?(?:{_NAME}\s?::\s?)?{_NAME}\s({_NAME})\s?=\s?([^;]{{1,600}});"
)
_MADE = re.compile(
    rf"(?<!\w)(?:(?:at|torch)\s?::\s?(?:zeros|empty|ones|full|rand|randn)|{_NAME}\s?\.\s?new_(?:zeros|empty|ones|full))\s?\("
)
_PACKED = re.compile(rf"(?<!\w){_NAME}\s?\.\s?contiguous\s?\(\s?\)\Z")
_MOVED = re.compile(r"\s?\.\s?(?:to|cuda)\s?\(")
_LAYOUT = re.compile(r"memory_?format|channels_?last|strid|layout|sparse", re.I)
_SHAPE = re.compile(r"\A(?:(?:(?:at|torch|c10)\s?::\s?)?IntArrayRef\s?\(?\s?)?\{([^{}]*)\}\s?\)?\Z")
_HANDED_OVER = re.compile(r"(?:\btie|\bswap|\bmove|_out)\s?\([^;(]{0,200}\Z")
_IN_PLACE = re.compile(r"\s?\.\s?(?!(?:zero|fill|copy|add|sub|mul|div|normal|uniform)_\b)\w+_\s?\(")
_LONGEST = 200
_MOST_AXES = 8


@frozen
class _Shape:
    """Where a tensor is made, and its sizes as they are written, none where they are not told."""

    place: int
    sizes: Sequence[str] = ()


class FreshTensors:
    """The tensors of one file that are made where they are declared."""

    def __init__(self, constants: HostConstants) -> None:
        self._constants = constants
        self._plain = plain = constants.text.plain
        self._declared = by_name(_DECLARED, plain) if "packed_accessor" in plain else {}

    def fields(self, argument: str, at: int) -> Iterator[tuple[str, str, int]]:
        """What the fields of a view hold that is passed at a place: name, text, and where that is read."""
        if argument in self._declared:
            made = self._declaration(argument, at)
            argument = made[2].strip() if made is not None else ""
        view = _VIEW.match(argument)
        shape = self._shape(view[1], at) if view is not None else None
        parts = whole_arguments(view[2]) if view is not None else []
        axes = self._constants.integer(parts[1], at) if len(parts) > 1 else None
        if shape is None or axes is None or not 1 <= axes <= _MOST_AXES:
            return
        yield f"strides_[{axes - 1}]", "1", shape.place
        for axis, size in enumerate(shape.sizes if len(shape.sizes) == axes else ()):
            yield f"sizes_[{axis}]", size, shape.place
            inner = " * ".join(f"({size})" for size in shape.sizes[axis + 1 :])
            if inner:
                yield f"strides_[{axis}]", inner, shape.place

    def _declaration(self, name: str, at: int) -> re.Match[str] | None:
        """The only declaration of a variable in the function around a place, where nothing else writes it."""
        functions = self._constants.functions
        function = functions.around(at)
        if function is None or functions.jumps(function):
            return None
        own = [d for d in self._declared.get(name, ()) if function.body <= d.start() < function.end]
        visible = len(own) == 1 and own[0].end() <= at <= self._constants.text.braces.end(own[0].start(1))
        if not visible or self._constants.writes({name}, own[0].end(), function.end):
            return None
        uses = re.compile(rf"(?<![\w.>:]){name}\b").finditer(self._plain, own[0].end(), function.end)
        return None if any(map(self._is_changed, uses)) else own[0]

    def _is_changed(self, use: re.Match[str]) -> bool:
        """Whether a tensor may be another one, or laid out in another way, behind a use of its name."""
        begin = max(0, use.start() - _LONGEST)
        handed_over = _HANDED_OVER.search(self._plain, begin, use.start()) is not None
        return handed_over or _IN_PLACE.match(self._plain, use.end()) is not None

    def _shape(self, name: str, at: int) -> _Shape | None:
        made = self._declaration(name, at)
        if made is None or _LAYOUT.search(made[2]) is not None:
            return None
        plain, (begin, end) = self._plain, made.span(2)
        if _PACKED.match(plain, begin, end):
            return _Shape(made.start(1))
        call = _MADE.match(plain, begin, end)
        closing = self._constants.text.closing(call.end() - 1) if call is not None else -1
        if call is None or closing < 0 or not self._is_moved(closing + 1, end):
            return None
        arguments = split_arguments(plain[call.end() : closing])
        listed = _SHAPE.match(arguments[0].strip()) if arguments else None
        sizes = split_arguments(listed[1]) if listed is not None else []
        return _Shape(made.start(1), [size.strip() for size in sizes])

    def _is_moved(self, at: int, end: int) -> bool:
        """Whether nothing but calls stand there that make the same tensor on another device."""
        while (call := _MOVED.match(self._plain, at, end)) is not None:
            at = self._constants.text.closing(call.end() - 1) + 1 or end + 1
        return at == end
