"""What ``kernel<<<grid, block, shared>>>(arguments)`` and ``cudaLaunchKernel`` sites tell, read from text.

Works on any state of the text, host code included. A site whose block extents are not constants gives
no configuration; its constant arguments still count. ``dim3`` variables and integers are followed to
their definition (``host_constants``).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

from attrs import evolve, frozen

from cuda_lsp.frontend.host.caller_arguments import HandingOn, as_called, as_set
from cuda_lsp.frontend.host.computed_arguments import (
    component,
    computed_arguments,
    computed_fields,
    distance,
    extents_as_written,
    grids,
    multiples,
    quotients,
    ties,
)
from cuda_lsp.frontend.host.configured_launches import configured_launches
from cuda_lsp.frontend.host.constants import NO_POINTERS
from cuda_lsp.frontend.host.contexts import (
    Callers,
    Context,
    Texts,
    Ways,
    changes_for_itself,
    is_cut,
    local_facts,
    no_callers,
)
from cuda_lsp.frontend.host.driver_launches import driver_launches
from cuda_lsp.frontend.host.graph_nodes import graph_launches, listed_arguments
from cuda_lsp.frontend.host.grids import followed
from cuda_lsp.frontend.host.guards import Comparison, comparisons, excluded, guards
from cuda_lsp.frontend.host.handed_twice import hands_on_twice, pointers_of
from cuda_lsp.frontend.host.host_constants import (
    NOTHING_GIVEN,
    UNKNOWN,
    Given,
    HostConstants,
    all_known,
)
from cuda_lsp.frontend.host.host_file import HostFile
from cuda_lsp.frontend.host.host_functions import HostFunction
from cuda_lsp.frontend.host.kernel_variables import KernelVariables, Names
from cuda_lsp.frontend.host.kernels_by_name import BY_NAME, launches_by_name
from cuda_lsp.frontend.host.known_values import Taken
from cuda_lsp.frontend.host.launch_site import Buffers, Called, LaunchSite
from cuda_lsp.frontend.host.launcher_objects import object_launches
from cuda_lsp.frontend.host.passed_fields import PassedField, constants_of
from cuda_lsp.frontend.host.passed_types import passed_type, renamed, unknown_name
from cuda_lsp.frontend.host.perhaps_one import perhaps_one
from cuda_lsp.frontend.host.pieces.apart import followed as pieces_of
from cuda_lsp.frontend.host.pieces.apart import is_doubtful, refined
from cuda_lsp.frontend.host.pointed import Pointed, pointed
from cuda_lsp.frontend.host.polynomials import Formula
from cuda_lsp.frontend.host.preprocessor import EVERYTHING, Regions
from cuda_lsp.frontend.host.running_sums import PassedSum, passed_sums, summing_functions
from cuda_lsp.frontend.host.shared_arguments import (
    Computed,
    SharedBuffer,
    nobody_computes,
    shared_buffers,
    together,
)
from cuda_lsp.frontend.host.shared_fields import by_field, record_fields
from cuda_lsp.frontend.host.sized_launches import SizedLaunch, sized_launches
from cuda_lsp.frontend.host.template_values import TemplateValues
from cuda_lsp.frontend.host.text import split_arguments, whole_arguments
from cuda_lsp.frontend.host.told_extents import filled
from cuda_lsp.frontend.host.wrapped_launches import (
    launches_by_macros_of,
    uses_of_functions,
    uses_of_macros,
)
from cuda_lsp.frontend.host.written_launches import Written, every_launch
from cuda_lsp.model import Dim3, Extents, Site

_T = TypeVar("_T")
_Buffers = Mapping[int, SharedBuffer]
_ANGLES = re.compile(r"<<\s{0,8}<")
_LAUNCH = re.compile(
    rf"{_ANGLES.pattern}|cudaLaunch|cudaGraph(?:Add|Exec)?KernelNode|[Ll]aunch_?[Kk]ernel|[Kk]ernel_?[Ll]aunch"
    rf"|{BY_NAME.pattern}"
)
_IN_CALLS = ("aunch", "KernelNode")
_BY_WORDS = re.compile(r"et_?(?:[Kk]ernel|[Ff]unction)")
"""One of these stands in all that the pattern finds, but for angles and ``.kernel(``, and in few texts."""
_OF_A_FIELD = re.compile(r"kernel\s?\(")
_OPENING = re.compile(r"\((?:(?<=[A-Z\d_]\()|(?<=[A-Z\d_]\s\())")
"""Behind what may be a macro's name. It begins with the sign itself, which is found fast."""
_MACRO = re.compile(r"(?<!\w)[A-Z][A-Z\d_]{2,}\s?\Z")
_LONGEST_MACRO = 120
_API_CALL = re.compile(r"\bcudaLaunch(?:Cooperative)?Kernel\s?\(")
_API_FUNCTION = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s?(?:<([^<>()]*)>)?\s?\)*\s?\Z")
_EXTENT = re.compile(r"\A(\w+)(?:\s?\.\s?([xyz]))?\Z")
_TEMPLATE = re.compile(r"template\s?<")
_END = re.compile(r"[;{}]")
_WORD = re.compile(r"\w+")
_FIELD = re.compile(r"\A\s?\w+\s?(?:\.|->)\s?(?![xyzw]\b)(\w+)\s?\Z")
_SET = r"\s?(?:(\.\s?[xyz]\s?[-+*/]?=(?!=))|=(?!=)\s?([^;]{1,200});)"
_MOST_HELD = 8
"""Blocks that a field of a record may hold."""


def may_launch(text: str) -> bool:
    """Whether anything is launched in a text, at a glance."""
    if _ANGLES.search(text) is not None:
        return True
    words = any(part in text for part in _IN_CALLS)
    called = words or any(pattern.search(text) is not None for pattern in (_BY_WORDS, _OF_A_FIELD))
    return called and _LAUNCH.search(text) is not None


def may_launch_by_macros(text: str) -> bool:
    """Whether a text uses what looks like a macro, which may launch."""
    places = (opening.start() for opening in _OPENING.finditer(text))
    return any(_MACRO.search(text[max(0, at - _LONGEST_MACRO) : at]) for at in places)


def may_launch_kernel(text: str, kernel: str, launches: bool | None = None) -> bool:
    """Whether a text names the kernel, or puts names together; by a macro of a header: hands it on.

    ``launches``: whether the text ``may_launch``, if that is known.
    """
    if may_launch(text) if launches is None else launches:
        return kernel in text or "##" in text
    return kernel in text and re.search(rf"[(,]\s*{re.escape(kernel)}\s*[<,)]", text) is not None


def find_launches(
    path: Path,
    text: str,
    headers: Sequence[HostConstants] = (),
    read: Regions = EVERYTHING,
    elsewhere: Callers = no_callers,
    of: Set[str] | None = None,
) -> tuple[LaunchSite, ...]:
    """Every launch site of ``text``, in order, behind them those that the preprocessor leaves out.

    ``headers``: the constants of what it includes. ``read``: what the preprocessor reads of it.
    ``elsewhere``: other files that may call what launches here. ``of``: only of these kernels, if told.
    """
    if not (may_launch(text) or launches_by_macros_of([file.text for file in headers], text)):
        return ()
    found = launches_of(HostFile(path, read.active(text), text, headers, read), elsewhere, of)
    if not any(_LAUNCH.search(text, begin, end) for begin, end in read.inactive):
        return found
    known = {site.site for site in found}
    every = launches_of(HostFile(path, text, text, headers), elsewhere, of)
    return (*found, *(evolve(site, left_out=True) for site in every if site.site not in known))


def launches_of(
    file: HostFile, elsewhere: Callers = no_callers, of: Set[str] | None = None
) -> tuple[LaunchSite, ...]:
    """Every launch site of a file; ``of``: only of these kernels, which takes a fraction of the time."""
    reader, variables = _Reader(file, elsewhere), KernelVariables(file.host, file.constants.functions)
    sites: list[LaunchSite] = []
    through_variables: list[LaunchSite] = []
    for use in _written(file, reader):
        kernel, written = use.launch.kernel, use.launch.held or use.launch.kernel
        held: Names = {} if use.by_string else variables.held(written, use.at)
        if of is None or kernel in of or not of.isdisjoint(held):
            if use.by_string or not file.constants.functions.is_parameter(kernel, use.at):
                sites += reader.told(use.launch, use.at, use.begin, use.end)
            through_variables += _held_kernels(use, held, reader)
    return tuple(site for site in (*sites, *through_variables) if of is None or site.kernel in of)


def handed_on(file: HostFile, of: Set[str], handing_on: HandingOn) -> Iterator[Called]:
    """Launches of some kernels as other files come to them that hand on one buffer twice."""
    reader = _Reader(file, no_callers)
    for use in _written(file, reader):
        if use.launch.kernel in of and reader.is_handed_on(use.launch, use.at, handing_on):
            buffers = reader.buffers(use.launch, use.at, handing_on)
            yield Called(use.launch.kernel, file.site(use.begin, use.end), buffers)


def _held_kernels(use: _Use, held: Names, reader: _Reader) -> Iterator[LaunchSite]:
    """The launch of each kernel that may stand in the place of one, with its template arguments there."""
    by_template: dict[str | None, list[str]] = {}
    for name, templates in held.items():
        for text in templates if name != use.launch.kernel else ():
            by_template.setdefault(text, []).append(name)
    for text, names in by_template.items():
        launch = evolve(use.launch, template_arguments=text)
        told = tuple(reader.told(launch, use.at, use.begin, use.end))
        yield from (evolve(site, kernel=name) for name in names for site in told)


@frozen
class _Use:
    """A launch, the place ``at`` which its names are looked up, and what of the text makes it.

    ``by_string``: its kernel is named in a string, which no variable holds.
    """

    launch: Written
    at: int
    begin: int
    end: int
    by_string: bool = False


def _written(file: HostFile, reader: _Reader) -> Iterator[_Use]:
    """Every launch, whatever way it is written."""
    host = file.host
    launches: list[Written] = []
    by_macros, macros = uses_of_macros(host, file.headers)
    for start, launch in every_launch(host):
        if not any(begin < start < end for begin, end in macros):  # it is told where these are used
            launches.append(launch)
            yield _Use(launch, start, launch.begin, launch.end)
    for use in (*by_macros, *uses_of_functions(host, launches)):
        yield _Use(use.launch, use.begin, use.begin, use.end)
    by_string = (driver_launches, launches_by_name)
    for written in (configured_launches, graph_launches, object_launches, *by_string):
        for launch in written(host):
            yield _Use(launch, launch.begin, launch.begin, launch.end, written in by_string)
    for match in _API_CALL.finditer(host.plain):
        launch = reader.api_launch(match)
        if launch is not None:
            yield _Use(launch, launch.begin, launch.begin, launch.end)


class _Reader:
    """One file whose launches are told."""

    def __init__(self, file: HostFile, elsewhere: Callers) -> None:
        self._file, self._elsewhere = file, elsewhere
        self._ways = Ways(elsewhere)
        self._values = TemplateValues(file, elsewhere)
        self._made: dict[object, object] = {}  # of each launch, on whichever way it is come by

    def told(self, launch: Written, at: int, begin: int, end: int) -> Iterator[LaunchSite]:
        """What a launch tells that stands from ``begin`` to ``end``, its names looked up at ``at``.

        One site for each way to it on which its block is known, else one.
        """
        place, held, constants = self._file.site(begin, end), self._held(launch, at), self._file.constants
        if any(text.strip() == "false" for text, _ in held):
            return  # behind CHECK(false): nobody comes here
        block = launch.configuration[1] if len(launch.configuration) > 1 else None
        facts = local_facts(self._file, at)
        plain = [self._site(launch, at, place, given, given) for given in facts]
        known = block is None or all(site.block is not None for site in plain)
        if not known and block is not None:
            told = local_facts(self._file, at, (block,))
            facts = tuple(way for way in told if not excluded(held, constants, way)) or told
            plain = [self._site(launch, at, place, given, given) for given in facts]
            known = all(site.block is not None for site in plain)
        template = tuple(whole_arguments(launch.template_arguments or ""))
        asked = (*template, *(text for text, _ in held))
        if known and not self._depends(asked, at):
            every = itertools.product(facts, self._values.of(launch.arguments, at))
            valued = [given.and_those(values) for given, values in every]
            yield from [self._site(launch, at, place, given, given) for given in valued] or plain
            return
        needed = template if known or block is None else (block, *template)
        texts = Texts(needed, (*launch.configuration, *launch.arguments), asked)
        every = self._ways.to(self._file, at, texts)
        ways = [way for way in every if not excluded(held, constants, way.given, way.types)]
        here = (
            way for way in every if not way.types or not excluded(held, constants, NOTHING_GIVEN, way.types)
        )
        if every and not is_cut(every) and not any(here):
            return  # no instance of the function around comes here
        if known:
            yield from self._instances(ways, launch, at, plain)
            yield from plain if is_cut(every) else ()  # of instances on other ways
            return
        found = [(way, self._on(way, launch, at, place)) for way in ways]
        if any(site.block is not None for _, site in found):
            untold = (
                w for w in self._ways.untold(self._file, at, texts) if not excluded(held, constants, w.given)
            )
            found += [(way, self._on(way, launch, at, place)) for way in untold]
        told = [site for _, site in found if site.block is not None]
        if told:
            told += [self._by_sizes(site, way.given, launch, at) for way, site in found if site.block is None]
        yield from (site for i, site in enumerate(told) if site not in told[:i])
        if told and block is not None and changes_for_itself(self._file, at, block):
            left = [(site, way) for site, way in zip(plain, facts, strict=True) if site.block is None]
            yield from self._some((), launch, at, left)
        if not told:
            yield from self._some(ways, launch, at, tuple(zip(plain, facts, strict=True)))
            if is_cut(every):  # instances on other ways
                yield from self._some((), launch, at, tuple(zip(plain, facts, strict=True)))

    def _some(
        self, ways: Sequence[Context], launch: Written, at: int, facts: Sequence[tuple[LaunchSite, Given]]
    ) -> Iterator[LaunchSite]:
        """A launch whose block is not known: some that it makes, for all sizes of types on the ways."""
        sizes = {tuple(way.given.of_types.values.items()): None for way in ways} or {(): None}
        for known in sizes:
            of_types = Given(dict(known))
            made = [self._by_sizes(site, given.and_those(of_types), launch, at) for site, given in facts]
            here = [way for way in ways if tuple(way.given.of_types.values.items()) == known]
            typed = [way for way in here if way.types]
            yield from self._instances(typed, launch, at, made) if typed else made

    def _by_sizes(self, site: LaunchSite, given: Given, launch: Written, at: int) -> LaunchSite:
        """With launches that it makes for some sizes, where its block is not known."""
        if site.block is not None:
            return site
        constants, held = self._file.constants, self._held(launch, at, given.taken)
        template = whole_arguments(launch.template_arguments or "")

        def made(named: Mapping[str, int]) -> tuple[SizedLaunch, ...]:
            keys = ((constants.key(name, at), value) for name, value in named.items())
            way = given.of_types.and_those(Given({key: value for key, value in keys if key is not None}))
            return self._once(
                (sized_launches, at, given.taken, *way.values.items(), *_written_as(launch), *template),
                lambda: sized_launches(
                    constants,
                    launch.configuration,
                    at,
                    launch.arguments,
                    way,
                    lambda sizes: excluded(held, constants, sizes),
                    template,
                    self._fields(launch, at),
                ),
            )

        sized = made({})
        conditions = (text for each in sized for text in each.conditions)
        return evolve(site, sized=sized, sized_given=made, conditions=(*site.conditions, *conditions))

    def _depends(self, template: Sequence[str], at: int) -> bool:
        """Whether template arguments hang on what the function around is given."""
        function = self._file.constants.functions.around(at) if template else None
        if function is None:
            return False
        words = {word for text in template for word in _WORD.findall(text)}
        return not words.isdisjoint(function.template)

    def _instances(
        self, ways: Iterable[Context], launch: Written, at: int, sites: Sequence[LaunchSite]
    ) -> Iterator[LaunchSite]:
        """The same launches, with template arguments as the ways to them tell these."""
        instances = ((self._instance(way, launch, at), self._types(launch, at, way.types)) for way in ways)
        written = {(text, tuple(types.items())): types for text, types in instances}
        for site in sites:
            for (text, _), types in written.items():
                yield evolve(site, template_arguments=text, types=types)
            yield from () if written else (site,)

    def _types(self, launch: Written, at: int, stand_for: Mapping[str, str]) -> Mapping[int, str]:
        """The types of arguments, by position, as far as they are told."""
        found = (
            (i, passed_type(text, lambda n: self._declared(n, at))) for i, text in enumerate(launch.arguments)
        )
        told = {i: type for i, type in found if type is not None and not _is_ambiguous(type, stand_for)}
        return {i: renamed(type, stand_for) for i, type in told.items()}

    def _declared(self, name: str, at: int) -> str | None:
        """The words before the name of a variable where it is declared."""
        constants = self._file.constants
        reached = constants.reached(name, at)
        return constants.words_of(reached.definition).rpartition(name)[0] if reached is not None else None

    def _instance(self, way: Context, launch: Written, at: int) -> str | None:
        written = self._evaluated(launch.template_arguments, at, way.given)
        return renamed(written, way.types) if written else written

    def _on(self, way: Context, launch: Written, at: int, place: Site) -> LaunchSite:
        """The launch as one way comes to it."""
        written = place
        if way.place is not None:
            file, begin, end = way.place
            place = file.site(begin, end)
        arguments = way.given if way.program or way.place is None else way.local
        site = self._site(launch, at, place, way.given, arguments)
        types = self._types(launch, at, way.types)
        instance = self._instance(way, launch, at)
        return evolve(site, template_arguments=instance, types=types, written=written)

    def _site(self, launch: Written, at: int, place: Site, given: Given, arguments: Given) -> LaunchSite:
        """``given``: for the configuration; ``arguments``: for the arguments."""
        constants = self._file.constants
        grid, block, shared = (*launch.configuration, None, None, None)[:3]
        block_axes = constants.known_extents(block, at, given) if block is not None else UNKNOWN
        grid_axes = constants.known_extents(grid, at, given) if grid is not None else UNKNOWN
        held = self._held(launch, at, given.taken)
        block_axes, grid_axes = (
            filled(known, text, at, self._file.host, constants, held) if text is not None else known
            for known, text in ((block_axes, block), (grid_axes, grid))
        )
        return LaunchSite(
            kernel=launch.kernel,
            template_arguments=self._evaluated(launch.template_arguments, at, given),
            block=all_known(block_axes),
            grid=all_known(grid_axes),
            dynamic_shared=constants.integer(shared, at, given) if shared is not None else 0,
            arguments={
                i: value
                for i, argument in enumerate(launch.arguments)
                if argument.strip() not in NO_POINTERS
                and (value := constants.integer(argument, at, arguments)) is not None
            },
            extents=_block_extents(block, launch.arguments) if block is not None else {},
            site=place,
            block_given=lambda given: constants.extents_given(block, at, given) if given and block else None,
            grid_axes=grid_axes,
            made_axes=self._made_axes(grid, grid_axes, at),
            block_axes=block_axes,
            held_blocks=() if all_known(block_axes) or block is None else self._held_blocks(block),
            conditions=self._conditions(launch, at, given.taken),
            buffers=lambda: self.buffers(launch, at),
            hands_on=self._hands_on(launch, at),
            computed=self._computed_from_others(launch, at, given.taken),
            pointed=self._pointed(launch, at),
            types=self._types(launch, at, {}),
            passed=_count(whole_arguments(",".join(launch.arguments))),
            fields=constants_of(self._fields(launch, at), constants, arguments),
            computed_fields=self._computed_fields(launch, at, given.taken),
            definitions=launch.definitions,
            scope=launch.scope,
            sums=self._sums(launch, at),
            ties=self._ties(launch, at, given.taken),
        )

    def _held_blocks(self, block: str) -> tuple[Dim3, ...]:
        """What the file makes fields of a name, where a block is one, if these are constants all."""
        field = _FIELD.match(block)
        if field is None:
            return ()
        plain, constants = self._file.host.plain, self._file.constants
        uses = re.finditer(rf"(&\s?)?\b\w+\s?(?:\.|->)\s?{field[1]}\b(?:{_SET})?", plain)
        made = [(use[1] or use[2], use[3], use.start()) for use in uses if use[1] or use[2] or use[3]]
        blocks = [None if whole else constants.extents(text, at) for whole, text, at in made]
        found = dict.fromkeys(block for block in blocks if block is not None)
        return tuple(found) if None not in blocks and len(found) <= _MOST_HELD else ()

    def _made_axes(self, grid: str | None, known: Extents, at: int) -> frozenset[int]:
        """Axes of the grid along which the source writes an extent that is not known."""
        constants = self._file.constants
        open_axes = [i for i in (1, 2) if known[i] is None and grid is not None]
        return frozenset(i for i in open_axes if component(constants, grid or "", i, at) is not None)

    def _comparisons(self, at: int, taken: Taken = NOTHING_GIVEN.taken) -> tuple[Comparison, ...]:
        """What holds at a launch, and in the branches that are taken before it."""
        file = self._file
        inside = [brace + 1 for brace in sorted(taken.braces) if file.host.plain[brace] == "{"]

        def held(place: int) -> tuple[Comparison, ...]:
            return self._once((comparisons, place), lambda: comparisons(file.host, file.constants, place))

        return tuple(itertools.chain.from_iterable(map(held, (at, *inside))))

    def _held(self, launch: Written, at: int, taken: Taken = NOTHING_GIVEN.taken) -> tuple[Comparison, ...]:
        """What holds at a launch, in the text of macros that make it too."""
        return (*self._comparisons(at, taken), *((text, at) for text in launch.conditions))

    def _comes_to(self, at: int, nothing: Set[str]) -> bool:
        """Whether what holds at a place lets pointers of these names be none."""
        constants = self._file.constants
        keys = (constants.key(name, at) for name in nothing)
        given = Given({key: 0 for key in keys if key is not None})
        return not excluded(self._comparisons(at), constants, given)

    def _conditions(self, launch: Written, at: int, taken: Taken) -> tuple[str, ...]:
        grid = launch.configuration[0] if launch.configuration else None
        constants, way = self._file.constants, Given({}, taken)
        held = self._held(launch, at, taken)

        def told() -> tuple[str, ...]:
            with constants.knowing(way):
                found = guards(held, constants, at, launch.configuration, launch.arguments)
                found += tuple(multiples(constants, launch.arguments, at))
                found += tuple(quotients(constants, launch.arguments, at))
                if grid is None:
                    return found
                axes = constants.known_extents(grid, at)
                found += followed(constants, grid, at, launch.arguments, axes, way)
                return found + tuple(grids(constants, launch.configuration, launch.arguments, at))

        return self._once((guards, at, taken, *_written_as(launch)), told)

    def _computed_from_others(self, launch: Written, at: int, taken: Taken) -> Mapping[int, Formula]:
        constants = self._file.constants

        def told() -> Mapping[int, Formula]:
            with constants.knowing(Given({}, taken)):
                return computed_arguments(constants, launch.configuration, launch.arguments, at)

        return self._once((computed_arguments, at, taken, *_written_as(launch)), told)

    def _ties(self, launch: Written, at: int, taken: Taken) -> frozenset[tuple[int, int]]:
        constants = self._file.constants

        def told() -> frozenset[tuple[int, int]]:
            with constants.knowing(Given({}, taken)):
                return ties(constants, launch.arguments, at)

        return self._once((ties, at, taken, *launch.arguments), told)

    def _pointed(self, launch: Written, at: int) -> tuple[Pointed, ...]:
        return self._once(
            (pointed, at, *launch.arguments), lambda: pointed(self._file.pointers, launch.arguments, at)
        )

    def _handing_on(self, function: HostFunction, positions: Sequence[int]) -> Iterator[HostFile]:
        name, others = function.name, self._elsewhere(function.name)
        return (file for file in others if hands_on_twice(file.host.plain, name, positions))

    def is_handed_on(self, launch: Written, at: int, handing_on: HandingOn) -> bool:
        """Whether calls of other files lead to a launch that hand on one thing twice."""
        called = as_called(self._file, handing_on, launch.arguments, at, self._comes_to)
        return any(file is not self._file for file, _, _ in called)

    def buffers(self, launch: Written, at: int, handing_on: HandingOn | None = None) -> Buffers:
        """What a launch passes that lies in one buffer, as the function around is called.

        ``handing_on``: in other files; None: in those of the unit.
        """
        file, constants = self._file, self._file.constants

        def buffers(where: HostFile, arguments: Sequence[str], at: int, computed: Computed) -> _Buffers:
            constants, pointers, units = where.constants, where.pointers, where.units
            found = shared_buffers(
                arguments,
                lambda text: constants.integer(text, at),
                lambda name: pointers.held(name, at),
                pointers.type_of,
                computed,
                pointers.returned,
                lambda type_: constants.integer(f"sizeof({type_})", at) if type_ else None,
                lambda name: reached.text if (reached := constants.reached(name, at)) else None,
            )
            if not is_doubtful(found, units, arguments, lambda name: pointers.held(name, at)):
                return found
            called = computed is nobody_computes  # of the callers' arguments
            extents = extents_as_written(constants, () if called else launch.configuration, at)
            way = pieces_of(units, lambda text: constants.integer(text, at), arguments, at, extents)
            return refined(found, way) if way is not None else found

        def buffers_told() -> Buffers:
            packed = _count(launch.arguments) is None
            fields = () if packed else record_fields(file.pointers, file.fields, launch.arguments, at)
            every = (*launch.arguments, *(field.text for field in fields))
            found = buffers(
                file,
                every,
                at,
                lambda apart: distance(constants, launch.configuration, launch.arguments, at, apart),
            )
            called = as_called(file, handing_on or self._handing_on, every, at, self._comes_to)
            set_ = ((file, *set_) for set_ in as_set(constants.functions, file.pointers, every, at))
            others = [*called, *set_]
            found = together(found, (buffers(*other, nobody_computes) for other in others))
            told = frozenset((field.position, field.name) for field in fields)
            perhaps = self._perhaps([(file, launch.arguments, at), *others], found)
            return Buffers(*by_field(found, fields, len(launch.arguments)), told, perhaps)

        return self._once((shared_buffers, at, handing_on, *_written_as(launch)), buffers_told)

    def _perhaps(
        self, ways: Iterable[tuple[HostFile, Sequence[str], int]], found: _Buffers
    ) -> frozenset[tuple[int, int]]:
        """Pairs of arguments that may come from one thing, of which nothing else is told."""
        every: set[tuple[int, int]] = set()
        for file, arguments, at in ways:
            every.update(perhaps_one(file.host, arguments, at, partial(file.constants.integer, before=at)))
        return frozenset(every - {(buffer.first, position) for position, buffer in found.items()})

    def _hands_on(self, launch: Written, at: int) -> bool:
        """Whether several pointers come from who calls the function around, as others may."""

        def told() -> bool:
            function = self._file.constants.functions.around(at)
            if function is None or function.member:
                return False
            words = {word for text in launch.arguments for word in _WORD.findall(text)}
            places = pointers_of(self._file.host, function)
            return sum(function.parameters[i][0] in words for i in places) > 1

        return self._once((pointers_of, at, *launch.arguments), told)

    def _sums(self, launch: Written, at: int) -> Mapping[int, PassedSum]:
        file, constants = self._file, self._file.constants
        files = [(file.host, constants.functions), *file.functions_of_headers]
        summing = self._once((summing_functions,), lambda: summing_functions(files))
        key = (passed_sums, at, *_written_as(launch))
        return self._once(key, lambda: passed_sums(constants, launch, at, summing))

    def _fields(self, launch: Written, at: int) -> tuple[PassedField, ...]:
        return self._once(
            (PassedField, at, *launch.arguments), lambda: self._file.fields.of(launch.arguments, at)
        )

    def _computed_fields(self, launch: Written, at: int, taken: Taken) -> Mapping[tuple[int, str], Formula]:
        constants, fields = self._file.constants, self._fields(launch, at)

        def told() -> Mapping[tuple[int, str], Formula]:
            with constants.knowing(Given({}, taken)):
                return computed_fields(constants, launch.configuration, launch.arguments, at, fields)

        return self._once((computed_fields, at, taken, *_written_as(launch)), told) if fields else {}

    def _once(self, key: tuple[object, ...], make: Callable[[], _T]) -> _T:
        """What is made of a launch, made once; ``key`` begins with who makes it."""
        if key not in self._made:
            self._made[key] = make()
        return cast("_T", self._made[key])

    def api_launch(self, match: re.Match[str]) -> Written | None:
        """``cudaLaunchKernel(function, grid, block, arguments, shared, stream)``."""
        host, start, opening = self._file.host, match.start(), match.end() - 1
        closing = host.closing(opening)
        parts = split_arguments(host.plain[opening + 1 : closing]) if closing > 0 else []
        function = _API_FUNCTION.search(parts[0]) if parts else None
        held = parts[0] if parts and "?" in parts[0] else ""
        if function is None or len(parts) < 3:
            return None
        configuration = [parts[1], parts[2], parts[4] if len(parts) > 4 else "0"]
        arguments = listed_arguments(host, parts[3], start) if len(parts) > 3 else []
        return Written(function[1], function[2], configuration, arguments, start, closing + 1, held=held)

    def _evaluated(self, arguments: str | None, at: int, given: Given) -> str | None:
        """Template arguments with constants of the host as numbers (``k<WARP_SIZE><<<…>>>``)."""
        if not arguments:
            return arguments
        found: list[str] = []
        for argument in split_arguments(arguments):
            text = argument.strip()
            words = _WORD.findall(text)
            plainly = all(self._template_words.get(w, at + 1) > at or self._is_local(w, at) for w in words)
            known = plainly or bool(given.values)
            literal = text.isdigit() or text in ("true", "false")
            value = self._file.constants.integer(text, at, given) if known and not literal else None
            found.append(text if value is None else str(value))
        return ", ".join(found)

    def _is_local(self, name: str, at: int) -> bool:
        """Whether the function around declares what a name means at a place, whatever templates call so."""
        function = self._file.constants.functions.around(at)
        declared = self._file.constants.declared(name, at)
        return function is not None and declared is not None and declared[1] > function.body

    @property
    def _template_words(self) -> Mapping[str, int]:
        """Words that stand behind ``template <`` in one declaration, and the first place where they do."""
        return self._once((_words_of_templates,), lambda: _words_of_templates(self._file.host.plain))


def _is_ambiguous(type: str, stand_for: Mapping[str, str]) -> bool:
    """Whether a type keeps a name that a caller has for something else."""
    name = unknown_name(type)
    others = (word for text in stand_for.values() for word in _WORD.findall(text))
    return name is not None and name not in stand_for and name in others


def _written_as(launch: Written) -> tuple[object, ...]:
    return tuple(launch.configuration), tuple(launch.arguments), launch.conditions


def _words_of_templates(plain: str) -> dict[str, int]:
    found: dict[str, int] = {}
    done = 0
    for start in _TEMPLATE.finditer(plain):
        if start.end() >= done:
            end = _END.search(plain, start.end())
            done = end.start() if end else len(plain)
            for word in _WORD.finditer(plain, start.end(), done):
                found.setdefault(word[0], word.end())
    return found


def _count(arguments: Sequence[str]) -> int | None:
    """How many there are; None: a pack of them, or none that could be read."""
    packed = any(argument.rstrip().endswith("...") for argument in arguments)
    return len(arguments) if arguments and not packed else None


def _block_extents(block: str, arguments: Sequence[str]) -> dict[int, int]:
    """``k<<<grid, block>>>(…, block.x)``, ``k<<<grid, threads>>>(…, threads)``: position → axis."""
    name = block.strip()
    found = ((i, _EXTENT.match(argument.strip())) for i, argument in enumerate(arguments))
    return {i: "xyz".index(match[2] or "x") for i, match in found if match and match[1] == name}
