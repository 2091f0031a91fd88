"""Launches whose block follows sizes that nobody knows: ``k<<<m, min(n, 1024)>>>()``, ``k<<<m, n / 4>>>()``.

What the host computes is not taken apart but tried, with some sizes: each gives a launch that the program
makes for this size. Arguments that follow the same size are then as large as this block needs them: one
number, or a range, which is told as a condition (``guards``) of launches with this block.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import evolve, field, frozen

from cuda_lsp.frontend.host.constants import SIZE_OF
from cuda_lsp.frontend.host.host_constants import Given, HostConstants, Key, all_known
from cuda_lsp.frontend.host.known_values import sized_type
from cuda_lsp.frontend.host.passed_fields import PassedField
from cuda_lsp.model import Dim3, Extents

_PLAIN = re.compile(r"(?<![\w.>])[A-Za-z_]\w*(?:\s?::\s?\w+)*\b(?!\s?[(<.\[]|\s?->)")
_EXTENTS = re.compile(r"\b(?:dim3|uint3|int3)\b")
_WORDS = frozenset(["int", "unsigned", "long", "size_t", "uint32_t", "int64_t", "const", "true", "false"])
_MOST_THREADS = 1024
_ALONE: Dim3 = (1, 1, 1)
_MOST_SIZES = 4
_MOST_EXAMPLES = 2
_LARGE = 1 << 20
_ONE_SIZE = (
    4096, 1024, 256, 128, 64, 32, 2048, 3072, 8192, 6144, 16384, 12288, 32768, 24576, 4, 8, 2, 16, 0,
    1, 3, 5, 6, 7, 49152, 65536, 40960, 98304, 81920, 131072,
)  # fmt: skip
"""Large ones last: for sites that ask how often a block goes over a row (``if (rounds == 12) k<<<…>>>``)."""
_SEVERAL_SIZES = (
    (64, 8, 4, 2),
    (8, 64, 2, 4),
    (16, 8, 4, 2),
    (4, 8, 16, 2),
    (1024, 64, 16, 8),
    (256, 8, 3, 2),
    (8, 256, 3, 2),
    (32, 8, 4, 2),
    (8, 32, 4, 2),
    (128, 8, 4, 2),
    (8, 128, 4, 2),
)
"""Each size another: where two are taken to be alike, rows and columns that are mixed up look right."""
_LARGE_SIZES = (
    8192, 4096, 3072, 2048, 1536, 16384, 12288, 32768, 49152, 65536, 98304, 24576, 40960, 81920,
)  # fmt: skip
"""For one of several, where the host refuses small ones; the others are those of ``_SEVERAL_SIZES``."""
_TRIED = (
    0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 96, 100, 127, 128, 129, 192, 255, 256, 257,
    384, 511, 512, 513, 640, 767, 768, 1000, 1023, 1024, 1025, 1536, 2047, 2048, 3072, 4096, 4097, 6144, 8192,
    12288, 16384, 24576, 32768, 99_999, _LARGE,
)  # fmt: skip


NO_FIELDS: Mapping[tuple[int, str], int] = {}


@frozen
class SizedLaunch:
    """One of the launches that a site makes. ``arguments`` by position; ``conditions`` as of ``guards``.

    ``instance``: template arguments that are numbers for these sizes, by position. ``fields``: numbers in
    records, by position and name.
    """

    block: Dim3
    grid_axes: Extents
    dynamic_shared: int | None
    arguments: Mapping[int, int] = field(factory=dict[int, int])
    conditions: tuple[str, ...] = ()
    instance: Mapping[int, int] = field(factory=dict[int, int])
    fields: Mapping[tuple[int, str], int] = NO_FIELDS

    def is_of(self, template_arguments: Sequence[str]) -> bool:
        """Whether it may be one of the instantiation with these arguments."""
        told = {i: text for i, text in enumerate(template_arguments) if text.removeprefix("-").isdigit()}
        return all(int(text) == self.instance.get(i, int(text)) for i, text in told.items())


def sized_launches(
    constants: HostConstants,
    configuration: Sequence[str],
    at: int,
    arguments: Sequence[str],
    given: Given,
    refused: Callable[[Given], bool],
    template_arguments: Sequence[str] = (),
    fields: Sequence[PassedField] = (),
) -> tuple[SizedLaunch, ...]:
    """Launches with different blocks that sizes make of a site whose block is not known; few, or none.

    ``refused``: whether the host launches nothing with these values.
    """
    site = _Site(constants, configuration, at, arguments, given, refused, template_arguments, fields)
    return tuple(site.launches())


@frozen
class _Site:
    constants: HostConstants
    configuration: Sequence[str]
    at: int
    arguments: Sequence[str]
    given: Given
    refused: Callable[[Given], bool]
    template_arguments: Sequence[str]
    fields: Sequence[PassedField]
    computed: dict[object, Dim3 | None] = field(factory=dict[object, Dim3 | None])
    """Blocks by sizes: each is asked for by every block that some size makes."""

    def launches(self) -> list[SizedLaunch]:
        sizes = self._sizes()
        if not sizes or len(sizes) > _MOST_SIZES:
            return []
        found: dict[Dim3, dict[Key, int]] = {}
        for values in _rows(len(sizes)):
            chosen = dict(zip(sizes, values, strict=False))
            block = self._block(Given(chosen))
            if block is not None:
                found.setdefault(block, chosen)
            if len(found) - (_ALONE in found) == _MOST_EXAMPLES:
                break
        found.pop(_ALONE, None)  # of which threads meet nobody: that tells nothing of other sizes
        return [
            evolve(self._of(block, chosen), instance=self._instance(Given(chosen)))
            for block, chosen in itertools.islice(found.items(), _MOST_EXAMPLES)
        ]

    def _instance(self, sizes: Given) -> dict[int, int]:
        """Template arguments that these sizes make numbers."""
        found = ((i, self._integer(text, sizes)) for i, text in enumerate(self.template_arguments))
        return {i: value for i, value in found if value is not None}

    def _sizes(self) -> list[Key]:
        """What the block hangs on in the end: what no text tells."""
        missing = self.constants.missing(self.configuration[1], self.at, self.given)
        made = {key for key in missing if self.constants.missing(key[0], key[1] + 1, self.given) - {key}}
        sizes = sorted(missing - made)
        return sizes if all(self._may_be_size(name) for name, _ in sizes) else []

    def _may_be_size(self, name: str) -> bool:
        """Not a ``dim3``, nor what is made of names that nobody knows, as of constants of a missing file."""
        if sized_type(name) is not None:
            return False
        _, dot, member = name.rpartition(".")
        if dot:
            return not self.constants.has_extents(member)
        value = self.constants.reached(name, self.at)
        if value is None:  # others may have written it
            declared = self.constants.visible(name, self.at)
            return declared is None or _EXTENTS.search(self.constants.words_of(declared)) is None
        words = self.constants.words_of(value.definition)
        if value.text is None:
            return _EXTENTS.search(words) is None
        plain = {match[0] for match in _PLAIN.finditer(SIZE_OF.sub("1", value.text))} - _WORDS
        known = all(self.constants.key(word, value.position) is not None for word in plain)
        return known and _EXTENTS.search(words) is None

    def _block(self, sizes: Given) -> Dim3 | None:
        block = self._computed(sizes)
        return block if block is not None and not self.refused(self.given.and_those(sizes)) else None

    def _computed(self, sizes: Given) -> Dim3 | None:
        """What the configuration says, whether or not the host launches it."""
        key = tuple(sizes.values.values())  # always of the same names, in one order
        if key not in self.computed:
            given = self.given.and_those(sizes)
            block = all_known(self.constants.known_extents(self.configuration[1], self.at, given))
            fits = block is not None and min(block) > 0 and block[0] * block[1] * block[2] <= _MOST_THREADS
            self.computed[key] = block if fits else None
        return self.computed[key]

    def _of(self, block: Dim3, sizes: Mapping[Key, int]) -> SizedLaunch:
        lower = upper = Given(sizes)
        most = 0
        if len(sizes) == 1:
            (size,) = sizes
            found = self._range(block, size)
            if found is None:  # not an only one
                return SizedLaunch(block, (None, None, None), None)
            least, most = found
            lower, upper = Given({size: least}), Given({size: most})
        known: dict[int, int] = {}
        conditions: list[str] = []
        for number, argument in enumerate(self.arguments):
            low, high = (self._integer(argument, size) for size in (lower, upper))
            if low is None or high is None or self._integer(argument, Given({})) is not None:
                continue
            if low == high:
                known[number] = low
            else:
                conditions += self._between(block, f"#{number}", low, high, most)
        fields: dict[tuple[int, str], int] = {}
        for held in self.fields:
            low, high = (self._integer(held.text, size, held.place) for size in (lower, upper))
            if low is None or high is None or self._integer(held.text, Given({}), held.place) is not None:
                continue
            if low == high:
                fields[held.position, held.name] = low
            elif held.name.isidentifier():
                conditions += self._between(block, f"#u{held.position}.{held.name}", low, high, most)
        for name, text in self._fields(sizes):
            low, high = (self._integer(text, size) for size in (lower, upper))
            if low is not None and high is not None:
                conditions += self._between(block, name, low, high, most if low < high else 0)
        alone = lower.values == upper.values
        shared = self.configuration[2] if len(self.configuration) > 2 else "0"
        return SizedLaunch(
            block,
            self.constants.known_extents(self.configuration[0], self.at, self.given.and_those(lower))
            if alone
            else (None, None, None),
            self._integer(shared, lower) if alone else None,
            known,
            tuple(conditions),
            fields=fields,
        )

    def _fields(self, sizes: Mapping[Key, int]) -> Iterator[tuple[str, str]]:
        """Sizes that are members of arguments: as conditions name them, and as the host does."""
        for number, argument in enumerate(self.arguments):
            name = argument.strip()
            key = self.constants.key(name, self.at) if name.isidentifier() else None
            for size, position in sizes:
                record, _, member = size.partition(".")
                if member and key == (record, position):
                    yield f"#u{number}.{member}", size

    def _between(self, block: Dim3, name: str, low: int, high: int, most: int) -> list[str]:
        """Comparisons of an argument that grows with the size; what is without limit has none."""
        others = " || ".join(f"blockDim.{axis} != {n}" for axis, n in zip("xyz", block, strict=True))
        if low > high:
            return []
        limits = [f"{name} >= {low}"] + ([f"{name} <= {high}"] if most < _LARGE else [])
        return [f"{others} || {limit}" for limit in limits]

    def _range(self, block: Dim3, size: Key) -> tuple[int, int] | None:
        """The least and largest size that give this block, as far as trying tells; None: there are gaps."""

        def makes(value: int) -> bool:
            sizes = Given({size: value})
            return self._computed(sizes) == block and self._block(sizes) is not None

        made = [makes(value) for value in _TRIED]
        if not any(made):
            return None
        first = made.index(True)
        last = len(made) - 1 - made[::-1].index(True)
        if not all(made[first : last + 1]):
            return None
        least = _boundary(_TRIED[first - 1], _TRIED[first], makes) if first else _TRIED[0]
        if last == len(made) - 1:
            return least, _LARGE
        return least, _boundary(_TRIED[last + 1], _TRIED[last], makes)

    def _integer(self, text: str, sizes: Given, at: int | None = None) -> int | None:
        return self.constants.integer(text, self.at if at is None else at, self.given.and_those(sizes))


def _rows(number: int) -> Iterator[tuple[int, ...]]:
    """Values for so many sizes, in the order in which they are tried."""
    if number == 1:
        yield from ((value,) for value in _ONE_SIZE)
        return
    yield from (values[:number] for values in _SEVERAL_SIZES)
    for large, place in itertools.product(_LARGE_SIZES, range(number)):
        small = _SEVERAL_SIZES[3]
        yield (*small[:place], large, *small[place + 1 : number])


def _boundary(outside: int, inside: int, makes: Callable[[int], bool]) -> int:
    """The number next to ``outside`` that still does, where it changes once between the two."""
    while abs(inside - outside) > 1:
        middle = (inside + outside) // 2
        if makes(middle):
            inside = middle
        else:
            outside = middle
    return inside
