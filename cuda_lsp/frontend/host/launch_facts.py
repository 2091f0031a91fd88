"""Which launches belong to a kernel: directives, launch sites of the file, ``__launch_bounds__``.

Order of trust as in ``docs/semantics.md``: a directive first, then the file's own launches.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import partial

from attrs import evolve, field, frozen

from cuda_lsp.frontend.assumptions import BadAssumption, parse_assumption, parse_assumptions
from cuda_lsp.frontend.directives import KernelDirective
from cuda_lsp.frontend.host.constants import number
from cuda_lsp.frontend.host.guards import in_common
from cuda_lsp.frontend.host.host_constants import HostConstants
from cuda_lsp.frontend.host.launch_site import Buffers, Called, LaunchSite
from cuda_lsp.frontend.host.passed_types import known_type, may_be_together
from cuda_lsp.frontend.host.pointed import Pointed
from cuda_lsp.frontend.host.polynomials import Formula, named
from cuda_lsp.frontend.host.shared_arguments import SharedBuffer
from cuda_lsp.frontend.host.text import HostText, whole_arguments
from cuda_lsp.frontend.kernel_sources import KernelSource
from cuda_lsp.frontend.source_text import SourceText
from cuda_lsp.ir.program import Directives, Expr, Kernel, LaunchBounds, RunningSum
from cuda_lsp.ir.types import Int, Type
from cuda_lsp.model import Dim3, LaunchConfig, LaunchSource, Site, ToolError, apart

_CLUSTER = re.compile(rb"__cluster_dims__\s*\(((?:[^()]|\([^()]*\)){0,400})\)")
_BOUNDS = re.compile(rb"__launch_bounds__\s*\(((?:[^()]|\([^()]*\)){0,400})\)")
_THREADS = re.compile(
    r"\Ak?_{0,3}(?:n|num|numberof)?_{0,3}(?:threads?|block|cta|tb|b)_{0,3}"
    r"(?:size|dim|dimx|threads?|_?x|per_?block|count)?_{0,3}\Z|\A(?:bs|n_?threads|blk_?size)\Z",
    re.I,
)
_ARGUMENT = re.compile(r"#(u?)(\d+)")
_NO_SIGN = "__no_sign_"
_WORD = 32
"""Before a parameter whose argument has no sign on the host either."""
_NOT_NEGATIVE = re.compile(r"\A(\w+) (?:>=?|==) \d+\Z")
_LITERAL_TYPES = ("int", "float", "double")
_PACK = "…"
_TRUTH = {"true": "1", "false": "0"}


def without_known(here: Sequence[LaunchSite], elsewhere: Sequence[LaunchSite]) -> tuple[LaunchSite, ...]:
    """Launches of a file, but for those whose block callers ``elsewhere`` tell: these are among theirs.

    They are told apart by their text: lines move while somebody types.
    """
    told = {s.written for s in elsewhere if s.written is not None and s.block is not None}
    known = Counter(written.text for written in told)
    open_ones = Counter(s.site.text for s in here if s.block is None and s.site is not None)
    resolved = {text for text, number in open_ones.items() if number <= known[text]}
    return tuple(s for s in here if s.block is not None or s.site is None or s.site.text not in resolved)


def as_others_call(sites: Sequence[LaunchSite], called: Sequence[Called]) -> tuple[LaunchSite, ...]:
    """Launches with the buffers of those of them that are ``called`` by other files.

    They are told apart by their text: lines move while somebody types.
    """
    buffers = {(c.kernel, c.site.range.path, c.site.text): c.buffers for c in called}
    places = ((site.kernel, site.written or site.site) for site in sites)
    told = [buffers.get((k, at.range.path, at.text)) if at is not None else None for k, at in places]
    return tuple(evolve(s, buffers=partial(_same, b)) if b else s for s, b in zip(sites, told, strict=True))


def _same(buffers: Buffers) -> Buffers:
    return buffers


def launches_for(
    kernel: KernelSource, sites: Iterable[LaunchSite], directive: KernelDirective | None
) -> tuple[LaunchConfig, ...]:
    """The launches of one kernel (one instantiation), best first; where blocks follow sizes, some of them."""
    own = sites_of(kernel, sites)
    read = [s for s in own if not s.left_out] or own
    found = [c for s in read if (c := s.configuration(kernel.parameters, kernel.template_arguments))]
    found += [c for s in read for c in s.by_sizes(kernel.parameters, kernel.template_arguments)]
    if directive is None:
        return tuple(found)
    written = directive_launch(directive)
    completed = [evolve(c, arguments={**c.arguments, **directive.arguments}) for c in found]
    return (*([written] if written else []), *completed)


def unread_launch(kernel: KernelSource, sites: Iterable[LaunchSite]) -> Site | None:
    """The first launch of a kernel that is compiled and of which no block is known, for any sizes."""
    for site in sites_of(kernel, sites):
        told = site.configuration(kernel.parameters, kernel.template_arguments)
        if told or site.left_out or any(site.by_sizes(kernel.parameters, kernel.template_arguments)):
            continue
        return site.site
    return None


def common_facts(kernel: KernelSource, sites: Iterable[LaunchSite]) -> tuple[Dim3 | None, Mapping[str, int]]:
    """Grid and constant arguments (by name) that all launches of a kernel agree on, blocks left out."""
    own = sites_of(kernel, sites)
    if all(s.left_out for s in own):
        return None, {}
    grid = own[0].grid if all(s.grid == own[0].grid for s in own) else None
    first, *others = (s.named_constants(kernel.parameters, s.arguments) for s in own)
    return grid, {name: value for name, value in first.items() if all(o.get(name) == value for o in others)}


def _shared_arguments(kernel: KernelSource, sites: Iterable[LaunchSite]) -> dict[str, SharedBuffer]:
    """Parameters that some launch points into the buffer of an earlier one.

    Where launches disagree, how far behind is unknown; where some point elsewhere, each has its own word.
    """
    found: dict[str, SharedBuffer] = {}
    own = sites_of(kernel, sites)
    told = [_shared_at(kernel, site) for site in own]
    for name, here in (pair for shared in told for pair in shared.items()):
        known = found.setdefault(name, here)
        if known != here:
            found[name] = evolve(known, offset=None, pieces=known.pieces and here.pieces)
    return {
        name: evolve(shared, by_launch=shared.offset is not None and any(name not in here for here in told))
        for name, shared in found.items()
    }


def _shared_at(kernel: KernelSource, site: LaunchSite) -> dict[str, SharedBuffer]:
    """The same of one launch."""
    names = kernel.parameters
    if any(p >= len(names) for p in site.arguments):
        return {}
    told = [(f"#{position}", shared) for position, shared in site.leads.shared.items()]
    told += [(f"#{i}.{name}", shared) for (i, name), shared in site.leads.shared_fields.items()]
    placed = ((named(place, names), shared.named(names)) for place, shared in told)
    return {name: shared for name, shared in placed if isinstance(name, str)}


def with_own_buffers(
    kernel: KernelSource, sites: Iterable[LaunchSite], launches: Sequence[LaunchConfig], names: Iterable[str]
) -> tuple[LaunchConfig, ...]:
    """What ``names``, pointers that some launches point into an earlier one's buffer, are at each launch.

    As the argument ``apart``: 0 in that buffer, as where nothing tells; 1 in one of their own.
    """
    told = [(site.site, _shared_at(kernel, site)) for site in sites_of(kernel, sites)]
    found: list[LaunchConfig] = []
    for launch in launches:
        here = [shared for place, shared in told if place is not None and place == launch.site]
        own = {apart(name): int(bool(here) and not any(_is_told(name, s) for s in here)) for name in names}
        found.append(evolve(launch, arguments={**launch.arguments, **own}))
    return tuple(found)


def _is_told(name: str, shared: Mapping[str, SharedBuffer]) -> bool:
    """Of the pointer, or of a record that it is a field of."""
    return any(name == known or name.startswith(f"{known}.") for known in shared)


PassedPlace = tuple[str, str | int | None]
"""A parameter, or a field of one (by name, or by its place)."""


@frozen
class Passed:
    """What launches pass of a kernel's parameters that belongs together.

    ``shared``: pointers into an earlier one's buffer. ``one_buffer``: places that may point to one.
    ``perhaps``: two pointers that may come from one thing in a way that nobody follows.
    ``told``: of records, by parameter, the fields of which every launch's text tells what they hold.
    ``computed``: integers that every launch computes from others. ``cluster``: blocks of a cluster, as the
    kernel's own attribute says.
    """

    shared: Mapping[str, SharedBuffer] = field(factory=dict[str, SharedBuffer])
    one_buffer: tuple[tuple[PassedPlace, PassedPlace], ...] = ()
    told: Mapping[str, Set[str]] = field(factory=dict[str, Set[str]])
    computed: Mapping[str, Formula] = field(factory=dict[str, Formula])
    cluster: Dim3 | None = None
    perhaps: tuple[tuple[str, str], ...] = ()


NOTHING_PASSED = Passed()


def passed(kernel: KernelSource, sites: Sequence[LaunchSite], directive: KernelDirective | None) -> Passed:
    """What launches pass of a kernel's parameters that belongs together."""
    buffers = _shared_arguments(kernel, sites), _one_buffer(kernel, sites), _told_fields(kernel, sites)
    computed = _computed_arguments(kernel, sites, directive)
    return Passed(*buffers, computed, perhaps=_perhaps_one(kernel, sites))


def _perhaps_one(kernel: KernelSource, sites: Iterable[LaunchSite]) -> tuple[tuple[str, str], ...]:
    """Pairs of parameters that some launch may point into one buffer, as far as anybody knows."""
    names = kernel.parameters
    every = {pair for site in sites_of(kernel, sites) for pair in site.leads.perhaps}
    return tuple((names[first], names[second]) for first, second in sorted(every) if second < len(names))


def _told_fields(kernel: KernelSource, sites: Iterable[LaunchSite]) -> dict[str, Set[str]]:
    """By parameter the fields of which each launch tells what they hold; nothing where there is no launch."""
    found: dict[str, Set[str]] = {}
    for site in sites_of(kernel, sites):
        for position, name in enumerate(kernel.parameters):
            here = {field for at, field in site.leads.told_fields if at == position}
            found[name] = found.get(name, here) & here
    return found


def _one_buffer(
    kernel: KernelSource, sites: Iterable[LaunchSite]
) -> tuple[tuple[PassedPlace, PassedPlace], ...]:
    """Places of parameters that some launch may point to one buffer, or to what has a name on the device.

    Of plain pointers ``_shared_arguments`` tells more. A name on the device is a place without a parameter.
    """
    names = kernel.parameters
    found: dict[tuple[PassedPlace, PassedPlace], None] = {}
    for site in sites_of(kernel, sites):
        placed = [(p, (names[p.position], p.field)) for p in site.pointed if p.position < len(names)]
        for (one, here), (other, there) in itertools.combinations(placed, 2):
            if one.buffer == other.buffer and here != there and (one.field, other.field) != (None, None):
                found[here, there] = None
            for record, place, pointer, at in ((one, here, other, there), (other, there, one, here)):
                field = _field_of_record(record, pointer)
                if field is not None:
                    found[(place[0], field), at] = None
        found.update(((here, ("", p.buffer)), None) for p, here in placed if p.buffer.isidentifier())
    return tuple(found)


def _field_of_record(record: Pointed, pointer: Pointed) -> str | None:
    """The field of a record, passed as it is, that another argument names (``k<<<…>>>(v, v.data)``)."""
    field = pointer.buffer.removeprefix(f"{record.buffer}.")
    if field == pointer.buffer or isinstance(record.field, int):
        return None
    return field if record.field is None else f"{record.field}.{field}"


def _computed_arguments(
    kernel: KernelSource, sites: Iterable[LaunchSite], directive: KernelDirective | None
) -> dict[str, Formula]:
    """Parameters for which every launch passes what it computes from others, in one way.

    None where a directive speaks of launches: it may mean others.
    """
    own = sites_of(kernel, sites)
    own = own if directive is None else []
    read = [s for s in own if not s.left_out] or own
    names = kernel.parameters
    found = {
        named(f"#{position}", names): named(formula, names)
        for position, formula in (read[0].computed.items() if read else ())
        if all(site.computed.get(position) == formula for site in read)
    }
    found |= {
        named(f"#{position}.{field}", names): named(formula, names)
        for (position, field), formula in (read[0].computed_fields.items() if read else ())
        if all(site.computed_fields.get((position, field)) == formula for site in read)
    }
    return {name: here for name, here in found.items() if isinstance(name, str) and here is not None}


def common_conditions(kernel: KernelSource, sites: Iterable[LaunchSite]) -> tuple[str, ...]:
    """Comparisons of parameters and of the block's extents that hold at all launches of a kernel."""
    own = sites_of(kernel, sites)
    names = kernel.parameters
    shared = list(in_common([s.conditions for s in own]))
    # Where one launch has a sign and another none, it holds of numbers with a sign.
    told = [dict.fromkeys(c.replace("#u", "#") for c in s.conditions) for s in own]
    plain = [c for c in (told[0] if told else ()) if all(c in conditions for conditions in told)]
    shared += [c for c in plain if not any(c == known.replace("#u", "#") for known in shared)]

    return tuple(_named(condition, names) for condition in shared)


def _named(condition: str, names: Sequence[str]) -> str:
    """A condition with the kernel's names for positions."""

    def name(match: re.Match[str]) -> str:
        position = int(match[2])
        return (_NO_SIGN if match[1] else "") + names[position] if position < len(names) else "?"

    return _ARGUMENT.sub(name, condition)


def conditions_by_launch(
    kernel: KernelSource, sites: Iterable[LaunchSite], launches: Iterable[LaunchConfig]
) -> dict[tuple[Site | None, Dim3], tuple[str, ...]]:
    """What holds at single ``launches``, by their place and block; nothing where they stand for others too.

    Launches that are analysed as one have in common what holds at all of them.
    """
    own = sites_of(kernel, sites)
    looked_at = {(launch.site, launch.block) for launch in launches}
    alike: dict[object, list[tuple[LaunchConfig, LaunchSite]]] = {}
    for site in [s for s in own if not s.left_out] or own:
        told = site.configuration(kernel.parameters, kernel.template_arguments)
        made = (
            [told] if told is not None else list(site.by_sizes(kernel.parameters, kernel.template_arguments))
        )
        if not made or any((launch.site, launch.block) not in looked_at for launch in made):
            return {}
        for launch in made:
            alike.setdefault(launch.facts, []).append((launch, site))
    found: dict[tuple[Site | None, Dim3], tuple[str, ...]] = {}
    for group in alike.values():
        shared = in_common([site.conditions for _, site in group])
        named = [_named(condition, kernel.parameters) for condition in shared]
        for launch, _ in group:
            key = (launch.site, launch.block)
            found[key] = tuple(c for c in named if key not in found or c in found[key])
    return found


def conditions_of(
    texts: Iterable[str], kernel: Kernel, formulas: Mapping[str, Expr] | None = None
) -> tuple[Expr, ...]:
    """What comparisons of the host say of a kernel's parameters, where both mean the same numbers.

    ``formulas``: of parameters that the kernel computes from others instead of reading them.

    Not of unsigned parameters, unless the host's variable has no sign either, or is compared: it may be below
    zero. Nor of numbers of few bits, of which the host's may be cut down.
    """
    texts = tuple(texts)
    found: list[Expr] = []
    integers: dict[str, Expr] = {var.name: var for var in kernel.params if _holds_sizes(var.type)}
    integers |= {name: e for name, e in (formulas or {}).items() if _holds_sizes(e.type)}
    known = {name: e for name, e in integers.items() if isinstance(e.type, Int) and e.type.signed}
    known |= {_NO_SIGN + name: e for name, e in integers.items()}
    counted = {match[1] for text in texts if (match := _NOT_NEGATIVE.match(text))}
    known |= {name: e for name, e in integers.items() if name in counted}
    for text in texts:
        try:
            found.append(parse_assumption(text, known))
        except BadAssumption:  # it names something that the kernel has no number for
            continue
    return tuple(found)


def _holds_sizes(type: Type) -> bool:
    return isinstance(type, Int) and (type.bits >= _WORD or type.boolean)


def common_extents(kernel: KernelSource, sites: Iterable[LaunchSite]) -> dict[str, int]:
    """Parameters by which all launches of a kernel pass the block's extent: name → axis."""
    own = sites_of(kernel, sites)
    names = kernel.parameters
    return {
        names[i]: axis
        for i, axis in (() if all(s.left_out for s in own) else own[0].extents.items())
        if i < len(names) and all(s.extents.get(i) == axis for s in own)
    }


def common_sums(
    kernel: KernelSource, sites: Iterable[LaunchSite], directive: KernelDirective | None
) -> dict[str, RunningSum]:
    """Parameters for which all launches of a kernel pass the running sums of another one.

    None where a directive speaks of launches: it may mean others.
    """
    own = sites_of(kernel, sites)
    names = dict(enumerate(kernel.parameters))
    found: dict[str, RunningSum] = {}
    for i, passed in own[0].sums.items() if own and directive is None else ():
        of = names.get(passed.of) if passed.of is not None else None
        known = (i if passed.of is None else passed.of) in names and i in names and passed.last in names
        if known and all(site.sums.get(i) == passed for site in own):
            found[names[i]] = RunningSum(of, passed.behind, names[passed.last], passed.more)
    return found


def common_ties(kernel: KernelSource, sites: Iterable[LaunchSite]) -> frozenset[tuple[str, str]]:
    """Parameters that every launch makes of other ones, nobody knows how, and these."""
    names = dict(enumerate(kernel.parameters))
    told = [{(names.get(i, ""), names.get(j, "")) for i, j in s.ties} for s in sites_of(kernel, sites)]
    return frozenset(told[0].intersection(*told)) if told else frozenset()


def launched_extents(kernel: KernelSource, sites: Iterable[LaunchSite]) -> dict[str, int]:
    """``{"launched_x": 32}``: extents of the block that all launches agree on, where others are not known."""
    own = sites_of(kernel, sites)
    known = zip(*(s.block_axes for s in own), strict=True)
    agreed = zip("xyz", known, strict=False)
    return {f"launched_{axis}": n[0] for axis, n in agreed if n[0] is not None and len(set(n)) == 1}


def block_of_template(kernel: KernelSource) -> dict[str, int]:
    """``{"block": threads}`` when a template argument like ``BLOCK_SIZE`` or ``nThreads`` names them."""
    for name, value in zip(kernel.template_parameters, kernel.template_arguments, strict=False):
        if _THREADS.match(name) and value.isdigit() and 32 <= int(value) <= 1024 and int(value) % 32 == 0:
            return {"block": int(value)}
    return {}


def launches_outside(
    kernel: KernelSource, sites: Iterable[LaunchSite], directive: KernelDirective | None
) -> tuple[LaunchConfig, ...]:
    """``launches_for`` with the sites of other files."""
    found = launches_for(kernel, sites, directive)
    there = {LaunchSource.FILE: LaunchSource.WORKSPACE, LaunchSource.SIZES: LaunchSource.SIZES}
    return tuple(evolve(c, source=there[c.source]) for c in found if c.source in there)


def directive_launch(directive: KernelDirective) -> LaunchConfig | None:
    """The launch that a directive states; None when it gives no block."""
    if directive.block is None:
        return None
    return LaunchConfig(
        directive.block, directive.grid, directive.dynamic_shared, LaunchSource.DIRECTIVE, directive.arguments
    )


def stated_by(
    directive: KernelDirective, kernel: Kernel, source: SourceText
) -> tuple[Directives, dict[int, ToolError]]:
    """What a directive says of a kernel, and by line what of it cannot be understood."""
    conditions, problems = parse_assumptions(directive.assumptions, kernel.params)
    misread: dict[int, ToolError] = {}
    for line, problem in problems.items():
        start = source.line_starts[line - 1]
        misread[line] = ToolError(problem, source.range(start, start + len(source.line(line))))
    stated = Directives(
        directive_launch(directive),
        conditions,
        arguments=directive.arguments,
        warp_synchronous=directive.warp_synchronous,
    )
    return stated, misread


def launch_bounds(kernel: KernelSource, source: SourceText) -> LaunchBounds | None:
    """``__launch_bounds__`` in front of the kernel's name, when its arguments are constants."""
    values = _attribute(_BOUNDS, kernel, source)
    most = values[0] if values else None
    if most is None or most < 1:
        return None
    return LaunchBounds(most, values[1] if len(values) > 1 else None)


def cluster_dims(kernel: KernelSource, source: SourceText) -> Dim3 | None:
    """``__cluster_dims__`` in front of the kernel's name, when its arguments are constants."""
    written = _attribute(_CLUSTER, kernel, source)
    extents = [n for n in written if n is not None and n > 0]
    if not 1 <= len(written) <= 3 or len(extents) != len(written):
        return None
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


def _attribute(pattern: re.Pattern[bytes], kernel: KernelSource, source: SourceText) -> list[int | None]:
    """The arguments of an attribute in front of the kernel's name, those that are constants as numbers."""
    start = kernel.offsets[0]
    name = kernel.name_range.start
    match = pattern.search(source.data, start, source.line_starts[name.line - 1] + name.column - 1)
    if not match:
        return []
    named = dict(zip(kernel.template_parameters, kernel.template_arguments, strict=False))
    written = [_substituted(part, named).strip() for part in match[1].decode("utf-8", "replace").split(",")]
    values = [number(part) for part in written]
    if None in values:
        host = HostText(source.text)
        before = host.reduced(len(source.data[:start].decode("utf-8", "replace")))
        constants = HostConstants(host)
        values = [constants.integer(part, before) for part in written]
    return values


def sites_of(kernel: KernelSource, sites: Iterable[LaunchSite]) -> list[LaunchSite]:
    """The launches of a kernel: of its name, and with as many arguments as it takes if any has so many.

    Others are of another function of that name, as are those with more; without one that fits, defaults may
    fill the gap. So are those of another namespace, where some name the kernel's own, or it has none (a file
    may be included in one); else they may be aliases. Of several kernels whose parameters differ in `const`
    alone, the last before it is meant.
    """
    takes = len(kernel.parameters)
    named = [s for s in sites if s.kernel == kernel.base_name and (s.passed or 0) <= takes]
    own = [site for site in named if _may_instantiate(site, kernel)]
    in_scope = [site for site in own if f"::{kernel.scope}".endswith(f"::{site.scope}")]
    named_so = any(site.scope for site in in_scope) or (in_scope and not kernel.scope)
    own = in_scope if named_so else own
    own = [site for site in own if not _is_of_a_rival(site, kernel)]
    fits = any(site.passed == takes for site in own)
    return [site for site in own if site.passed in (None, takes)] if fits else own


def _is_of_a_rival(launch: LaunchSite, kernel: KernelSource) -> bool:
    """Another kernel that it may be of as well is defined between this one and the launch."""
    at = launch.site.range if launch.site is not None else None
    if at is None or at.path != kernel.range.path:
        return False
    before = [x for x in (kernel.range, *kernel.rivals) if x.start < at.start]
    return bool(before) and max(before, key=lambda x: x.start) != kernel.range


def _may_instantiate(site: LaunchSite, kernel: KernelSource) -> bool:
    """Whether a launch may be of this instantiation: types and literal template arguments must agree."""
    taken = kernel.parameter_types
    if not may_be_together((type, taken[i]) for i, type in site.types.items() if i < len(taken)):
        return False
    if not kernel.template_arguments or not site.template_arguments:
        return True
    written = [part.strip() for part in whole_arguments(site.template_arguments)]
    if len(written) > len(kernel.template_arguments) and _PACK not in kernel.template_arguments:
        return False  # another template of that name
    return all(map(_agree, written, kernel.template_arguments))


def _agree(text: str, actual: str) -> bool:
    """Whether a template argument, as a launch writes it, may be what an instantiation has."""
    types = known_type(text), known_type(actual)
    if None not in types and types[0] != types[1]:
        return False
    number, own = _TRUTH.get(text, text), _TRUTH.get(actual, actual)
    literal = number.isdigit() and not own.startswith("'")  # numbers of one byte are told as characters
    if (literal or text in _LITERAL_TYPES) and number != own:
        return False
    (name, _, inner), (other, _, its) = text.partition("<"), actual.partition("<")
    if not inner or not its or name.rpartition("::")[2].strip() != other.rpartition("::")[2].strip():
        return True
    parts = (whole_arguments(listed.rpartition(">")[0]) for listed in (inner, its))
    return all(map(_agree, *([part.strip() for part in listed] for listed in parts)))


def _substituted(text: str, named: Mapping[str, str]) -> str:
    return re.sub(r"[A-Za-z_]\w*", lambda m: named.get(m[0], m[0]), text)
