"""The words of findings: what two threads do, where, when, what would order them, what is in doubt.

Nothing decides by reading them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve

from cuda_lsp.ir.program import STRETCH, Array, Incomplete
from cuda_lsp.ir.types import Float, Int
from cuda_lsp.model import BankReport, Dim3, LaunchSource, Mode, RaceKind, Site
from cuda_lsp.static.findings import conditions as c
from cuda_lsp.static.findings.conditions import Condition, Conditions, Doubt, Open
from cuda_lsp.static.findings.steps import Remedy, of_doubt
from cuda_lsp.wavefronts import Touch

LONGEST = 159
"""Characters of a message."""
_WIDTHS = (48, 32, 20, 12)  # of the source's expressions in messages that are too long
_SINGULAR = re.compile(r"\b(read|write|update|execute)s\b")
_SECOND_NAME = re.compile(r" on \S+ \((\S+)\):")
_NAMED = re.compile(r" race on ([\w.]+):")
_VERBS = r"\b(?:reads?|writes?|updates?|executes?)"
_NUMBER = r"-?\d+(?:\.\d+)?"
_VALUE = re.compile(rf"`[^`]+` == {_NUMBER}|\b[\w.\[\]]+ = {_NUMBER}(?=[,)])|`[^`]+` holds only {_NUMBER}")
_LEFT_OUT = re.compile(r" and (?:\d+ )?more\b|…\Z")
_SAMPLES = re.compile(r"(?:(?<=\(for example when )|(?<=\(as when ))[^()]*(?=\))")
_DETAILS = (
    re.compile(r"; lanes? \d+ .* words apart"),
    re.compile(r"; its lanes are \d+ bytes apart(?= \((?:for|as))"),
    re.compile(r" \((?:for example|as) when [^()]*\)"),
)
_LAST = (
    (re.compile(r", (?:as )?when .*(?= \((?:depends on|blocks of) )"), ""),
    (re.compile(r"the floating-point comparison `[^`]*`?"), "a floating-point comparison"),
    (re.compile(r"thread \S+ of block \S+ and thread \S+ of block \S+ both"), "threads of two blocks both"),
    (re.compile(r"thread \S+ of block \S+ (\w+(?: it)?) (?:while|and) thread \S+ of block \S+ (\w+)"),
     r"a thread of one block \1 and one of another \2"),
    (re.compile(r"(`[^`]+`)(?:(?:,| and) `[^`]+`)+ (?=(?:hold|take)s? )"), r"\1 and others "),
    (re.compile(r"(the arguments `[^`]+`)(?: and `[^`]+`)+"), r"\1 and others"),
)  # fmt: skip
"""What is told beside a doubt, and in fewer words, where a message would be cut off otherwise."""
_LONG_NAME = re.compile(r"(?<= race on )[^\s\[:;]{25,}|(?<=`)[^`]{25,}(?=`)")
_TIGHTER = (
    (re.compile(r": (?:one thread|two threads) (?:reads?|writes?) it(?: while another (?:reads|writes) it)?;"
                r" whether they meet"), "; whether two threads meet"),
    (re.compile(r"(?<=contents of )(`[^`]+`) and `[^`]+` and others"), r"\1 and others"),
    (re.compile(r"\(depends on the launch: (?=blocks of)"), "("),
    (re.compile(r", which is read from memory"), ""),
    (re.compile(r" and the floating-point comparison `[^`]*`"), " and floats"),
)  # fmt: skip
"""The same in fewer words."""
"""What goes last of what is told beside the story."""
_MOST_OF_TEMPLATE = 16  # characters of its arguments
_SHOWN = 4  # cells named in a condition
_VERB = {Mode.READ: "reads", Mode.WRITE: "writes", Mode.ATOMIC: "atomically updates",
         Mode.ATOMIC_READ: "atomically reads"}  # fmt: skip


def element(array: Array, byte: int) -> tuple[int, ...]:
    """The indices of the element that holds ``byte``; the flat element index when the shape is unknown."""
    flat = _in_object(byte) // max(array.element.size, 1)
    inner = array.shape[1:]
    if not array.shape or any(n is None or n <= 0 for n in inner):
        return (flat,)
    result: list[int] = []
    for extent in reversed([n for n in inner if n is not None]):
        flat, rest = divmod(flat, extent)
        result.append(rest)
    return (flat, *reversed(result))


def _in_object(byte: int) -> int:
    """Where in the one object that is meant, of those that are ``STRETCH`` apart: also just before it."""
    return (byte + STRETCH // 2) % STRETCH - STRETCH // 2


def subscript(array: Array, byte: int) -> str:
    return array.name + "".join(f"[{i}]" for i in element(array, byte))


def place(array: Array, byte: int) -> str:
    """``subscript``, and where in a record: an array of one object has no other place to tell."""
    inside = _in_object(byte) % max(array.element.size, 1)
    if isinstance(array.element, Int | Float):
        return subscript(array, byte)
    field = _field(array, inside)
    if field is not None:
        return f"{_record(array, byte)}.{field}"
    return f"{subscript(array, byte)} at byte {inside}" if inside else subscript(array, byte)


def _record(array: Array, byte: int) -> str:
    """The record, which is an object of its own or an element."""
    return array.name if array.shape == (1,) else subscript(array, byte)


def _field(array: Array, inside: int) -> str | None:
    """The field of the array's records that begins at this byte, or the element of one that is an array."""
    for part in array.parts:
        index, rest = divmod(inside - part.offset, max(part.size, 1))
        if rest == 0 and 0 <= index < (1 if part.count is None else part.count):
            return part.name if part.count is None else f"{part.name}[{index}]"
    return None


def _contents(cells: tuple[tuple[tuple[Array, int], float], ...]) -> str:
    """A few cells one by one, else by array."""
    ordered = sorted(cells, key=lambda cell: (cell[0][0].id, cell[0][1]))
    if len(ordered) <= _SHOWN:
        return "for example " + " and ".join(_cell(array, byte, value) for (array, byte), value in ordered)
    values: dict[str, set[float]] = {}
    for (array, _), value in ordered:
        values.setdefault(array.name, set()).add(value)
    alike = [
        f"`{name}` holds only {_number(found.pop())}" for name, found in values.items() if len(found) == 1
    ]
    others = tuple(name for name, found in values.items() if len(found) > 1)
    told = [f"for example {' and '.join(alike)}"] if alike else []
    return " and ".join([*told, *([_condition(c.SomeContents(others))] if others else [])])


def _cell(array: Array, byte: int, value: float) -> str:
    told, inside = _number(value), byte % max(array.element.size, 1)
    if isinstance(array.element, Int | Float):
        return f"`{subscript(array, byte)}` == {told}"
    field = _field(array, inside)
    if field is not None:
        return f"`{_record(array, byte)}.{field}` == {told}"
    name = f"`{subscript(array, byte)}`"
    return f"{name} holds {told} at byte {inside}" if inside else f"{name} begins with {told}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def thread(index: Dim3, block: Dim3 | None = None) -> str:
    text = f"thread {_coordinates(index)}"
    return text if block is None else f"{text} of block {_coordinates(block)}"


def _coordinates(index: Dim3) -> str:
    """``3`` of a row, ``(3,1)`` of a plane."""
    x, y, z = index
    return f"({x},{y},{z})" if z else f"({x},{y})" if y else str(x)


def doing(mode: Mode, site: Site, array: Array | None = None) -> str:
    """``array``: of which a function that is called may have a name of its own."""
    if mode.atomic and "(" in site.text:
        return f"executes {site.text}"
    if site.text and array is not None and site.calls and not _mentions(site.text, array.name):
        return f"{_VERB[mode]} it as {site.text}"
    return f"{_VERB[mode]} {site.text}" if site.text else f"{_VERB[mode]} it"


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def _to_it(deed: re.Match[str]) -> str:
    """What is done, with no more words for where: who executes a call accesses what it is about."""
    many = "es" if deed[1].endswith("s") else ""
    return f"access{many} it atomically" if deed[1].startswith("execute") else f"{deed[1]} it"


def race(
    kind: RaceKind, where: str, threads: tuple[str, str], actions: tuple[str, str], values: Mapping[str, int],
    remedy: str,
) -> str:  # fmt: skip
    """``RAW race on s[1]: thread 0 reads s[(id + 1) % nt] while thread 1 writes s[id]; …``."""
    when = f" ({', '.join(f'{n} = {v}' for n, v in values.items())})" if values else ""
    first, found, block = threads[0].partition(" of block ")
    if found and threads[1].endswith(f"{found}{block}"):  # one block, which is told once
        threads = (f"in block {block} {first}", threads[1].partition(found)[0])
    if actions[0] == actions[1]:
        together = _SINGULAR.sub(r"\1", actions[0], count=1)
        story = f"{threads[0]} and {threads[1]} both {together}{when}"
    elif (text := _same_text(actions)) is not None:
        verbs = [action.removesuffix(f" {text}") for action in actions]
        story = f"{threads[0]} {verbs[0]} and {threads[1]} {verbs[1]} {text}{when}"
    else:
        story = f"{threads[0]} {actions[0]} while {threads[1]} {actions[1]}{when}"
    return f"{kind.value} race on {where}: {story}; {remedy}"


def _same_text(actions: tuple[str, str]) -> str | None:
    """The expression that both are about, which is told once; None: there are two, or none."""
    texts = [action.partition(" ")[2] for action in actions]
    verbs = [action.partition(" ")[0] for action in actions]
    plain = texts[0] == texts[1] not in ("", "it") and {*verbs} <= {"reads", "writes"}
    return texts[0] if plain else None


def suspicion(kind: RaceKind, array: str, actions: tuple[str, str]) -> str:
    """A race of which nobody has seen two threads meet."""
    if actions[0] == actions[1]:
        together = _SINGULAR.sub(r"\1", actions[0], count=1)
        return f"possible {kind.value} race on {array}: two threads {together}"
    return f"possible {kind.value} race on {array}: one thread {actions[0]} while another {actions[1]}"


def fitted(message: str, expressions: Iterable[str]) -> str:
    """The message within its length: what it needs is told before what can be seen in the source.

    The source's expressions are shortened in their middle, then what is said twice goes: a second name, long
    words for what is missing, the expressions that the squiggle is under, at last what is missing.
    """
    texts = sorted(set(expressions), key=len, reverse=True)
    shortened = message
    if len(shortened) > LONGEST:
        message = message.replace(_SAME, _SAME_BRIEFLY)
        if (named := _NAMED.search(message)) is not None and named[1] in texts:  # it is told already
            message = _deeds([named[1]]).sub(_to_it, message)
            texts.remove(named[1])
        shortened = message
    for width in _WIDTHS:
        if len(shortened) <= LONGEST:
            return shortened
        shortened = _cut_in_middle(message, texts, width)
    unnamed = _SECOND_NAME.sub(r" on \1:", message)
    deeds = _deeds(texts)
    narrow = _WIDTHS[-1]
    for brief, tight, width in ((False, False, narrow), (True, False, narrow), (True, True, narrow),
                                (True, False, 0), (True, True, 0)):  # fmt: skip
        if len(shortened) <= LONGEST:
            return shortened
        shortened = _cut_in_middle(unnamed, texts, width) if width else deeds.sub(_to_it, unnamed)
        for long, short in _BRIEFLY.items() if brief else ():
            shortened = shortened.replace(long, short)
        for long, short in _TIGHTER if tight else ():
            shortened = long.sub(short, shortened)
    shortened = _as_when(shortened, r"\(for example")
    shortened = _SAMPLES.sub(lambda told: _fewer(told[0], LONGEST - len(shortened)), shortened, count=1)
    for missing in _BRIEFLY.values():
        if len(shortened) > LONGEST:
            shortened = shortened.replace(f"; {missing}", "", 1)
    shortened = _as_when(shortened, ", when for example")
    if len(shortened) > LONGEST:
        shortened = _as_when(shortened.replace(_SECTORS, _SECTORS_BRIEFLY), r"\(for example")
    if (fitting := _with_short_texts(shortened, texts)) is not None:
        return fitting
    shortened = _with_fewer_values(shortened)
    for detail in (None, *_DETAILS):
        shortened = shortened if detail is None else detail.sub("", shortened)
        if (fitting := _with_short_texts(shortened, texts)) is not None:
            return fitting
    for long, short in _LAST:
        shortened = shortened if len(shortened) <= LONGEST else long.sub(short, shortened)
    shortened = _with_fewer_conditions(shortened)
    if len(shortened) > LONGEST:
        shortened = _cut_in_middle(shortened, _LONG_NAME.findall(shortened), 24)
    return shortened if len(shortened) <= LONGEST else f"{shortened[: LONGEST - 1]}…"


def leaves_out(message: str) -> bool:
    """It had no room for all that it was to say of conditions."""
    return _LEFT_OUT.search(message) is not None


def _with_fewer_conditions(message: str) -> str:
    """The first of the conditions at the message's end, where there is no room for all."""
    story, when, told = message.partition(", when ")
    conditions = told.split(" and ")
    while len(message) > LONGEST and len(conditions) > 1 and told[-1:] != ")":
        conditions.pop()
        while len(conditions) > 1 and conditions[-1].endswith(" more"):
            conditions.pop()
        message = f"{story}{when}{' and '.join(conditions)} and more"
    return message


def _deeds(texts: Iterable[str]) -> re.Pattern[str]:
    """What is done to one of these expressions."""
    return re.compile(rf"({_VERBS})(?: it as)? (?:{'|'.join(map(re.escape, filter(None, texts))) or '(?!)'})")


def _as_when(message: str, long: str) -> str:
    """The message with fewer words before an example, where it fits then."""
    shorter = re.sub(
        rf"{long}(?= when | `)", lambda told: "(as" if told[0][0] == "(" else ", as when", message
    )
    return shorter if len(message) > LONGEST >= len(shorter) else message


def _with_short_texts(message: str, texts: Sequence[str]) -> str | None:
    """The message with expressions as long as there is room for; None: there is none for the shortest."""
    for width in (LONGEST, *_WIDTHS):
        fitting = _cut_in_middle(message, texts, width)
        if len(fitting) <= LONGEST:
            return fitting
    return None


def _fewer(samples: str, room: int) -> str:
    """So many of the values of an example as make the message fit (``room`` is below 0); else all of them."""
    values = samples.split(", ") if room < 0 else []
    for left in range(len(values) - 1, 0, -1):
        fewer = f"{', '.join(values[:left])} and {len(values) - left} more"
        if len(fewer) - len(samples) <= room:
            return fewer
    return samples


def _with_fewer_values(message: str) -> str:
    """As many of an example's values as there is room for, and how many there are besides."""
    values = list(_VALUE.finditer(message))
    for left in range(len(values) - 1, 0, -1):
        if len(message) <= LONGEST:
            break
        begun, ended = values[left - 1].end(), values[-1].end()
        more = f" and {len(values) - left} more"
        shorter = message[:begun] + more + message[ended:]
        if len(shorter) <= LONGEST or left == 1:
            return shorter
    return message


def _cut_in_middle(message: str, texts: Iterable[str], width: int) -> str:
    for text in texts:
        if len(text) > width:
            half = (width - 1) // 2
            message = message.replace(text, f"{text[: width - 1 - half]}…{text[len(text) - half :]}")
    return message


_BRIEFLY = {remedy.told: remedy.briefly for remedy in Remedy}
"""What is missing, in few words, for messages that are too long."""
_SECTORS = " sectors of 32 bytes "
_SECTORS_BRIEFLY = " sectors "
_SAME = " (both write the same value)"
_SAME_BRIEFLY = " (the same value)"


def remedy(
    between_blocks: bool, warp: bool, same_instruction: bool, loop_carried: bool, in_cluster: bool = False
) -> Remedy:
    """What is missing between the two accesses. ``in_cluster``: the blocks are of one cluster."""
    if in_cluster:
        return Remedy.AT_ONCE if same_instruction else Remedy.IN_A_CLUSTER
    if between_blocks:
        return Remedy.BETWEEN_BLOCKS
    if same_instruction:
        return Remedy.AT_ONCE
    if warp:
        return Remedy.IN_A_WARP
    return Remedy.BETWEEN_ROUNDS if loop_carried else Remedy.IN_A_BLOCK


def accessed(site: Site, array: str) -> str:
    """The expression, and the array where that names another one, as in functions."""
    place = site.text or "this access"
    return place if _mentions(place, array) else f"{place} (in {array})"


def bank_conflict(
    site: Site, array: str, report: BankReport, sharing: tuple[Touch, Touch] | None, round: Mapping[str, int]
) -> str:
    """``sharing``: two lanes that come for words of one bank.

    ``round``: loop counters of one that is as bad, where others are not.
    """
    cost = f"takes {report.wavefronts} wavefronts instead of {report.ideal}"
    if round:
        cost += f" in rounds like {' and '.join(f'`{name}` == {value}' for name, value in round.items())}"
    if sharing is not None:
        one, other = sharing
        who = f"lanes {one.lane} and {other.lane} share" if one.lane != other.lane else f"lane {one.lane} has"
        cost += f"; {who} bank {one.bank}, {abs(other.word - one.word)} words apart"
    message = f"{report.ways}-way bank conflict: {accessed(site, array)} {cost}"
    if report.atomic_ways > 1:
        message += f"; up to {report.atomic_ways} lanes of a warp update one address"
    return message


def incomplete(statement: Incomplete) -> str:
    """What was not translated, why, and what to do; a reason that is too long is cut behind its beginning."""
    begins, ends = f"{statement.said}: ", f"; {statement.step.value}"
    room = LONGEST - len(begins) - len(ends)
    why = statement.reason if len(statement.reason) <= room else f"{statement.reason[: room - 1]}…"
    return f"{begins}{why}{ends}"


# ------------------------------------------------------------------------- conditions and doubts


def conditions(all_: Conditions, block: Dim3 | None = None, shown: Mapping[str, int] | None = None) -> str:
    """All of them, as one clause after *when*; ``block``: that of the launch.

    ``shown``: the values under which the threads were seen that are told of, where these are.
    """
    return " and ".join(_condition(condition, block, shown or {}) for condition in all_)


def _condition(
    condition: Condition, block: Dim3 | None = None, shown: Mapping[str, int] | None = None
) -> str:
    match condition:
        case c.BeyondGrid(parameter, extent):
            return f"`{parameter}` > `{extent.value}`"
        case c.Compared(parameter, sign, other, extent):
            value = f"`{extent.value}` ({other})" if extent is not None else str(other)
            seen = "" if isinstance(other, str) else _beyond(sign, other, (shown or {}).get(parameter))
            return f"`{parameter}` {sign} " + (f"`{other}`" if isinstance(other, str) else value) + seen
        case c.SomeValues(parameters):
            return f"{_names(parameters)} {'takes' if len(parameters) == 1 else 'take'} certain values"
        case c.Example(values, sampled):
            if sampled:
                return ", ".join(f"{name} = {value}" for name, value in values)
            return "for example " + " and ".join(f"`{name}` == {value}" for name, value in values)
        case c.Contents(cells):
            return _contents(cells)
        case c.SomeContents((array,), one_place=True):
            return f"two elements of `{array}` give the same integer"
        case c.SomeContents(arrays, one_place=True):
            return f"elements of {_names(arrays)} give the same integers"
        case c.SomeContents(arrays):
            return f"{_names(arrays)} {'holds' if len(arrays) == 1 else 'hold'} certain values"
        case c.Branch(line, holds):
            return f"the condition on line {line} is {'true' if holds else 'false'}"
        case c.Overreach(extents):
            return f"a row of {' and '.join(extents)} elements reaches into the next"
        case c.Needs.SIZES if block is not None:
            return f"sizes make blocks of {dimensions(block)} threads"
        case c.Needs.LAUNCH if block is not None:
            return f"{condition.value}, like {dimensions(block)}"
        case c.Needs():
            return condition.value


_NEXT = {">": 1, ">=": 0, "<": -1, "<=": 0, "==": 0, "!=": 1}


def _beyond(sign: str, limit: int, seen: int | None) -> str:
    """`` (here 33)``: the value that two threads need who are not seen at the limit itself."""
    return "" if seen is None or seen == limit + _NEXT.get(sign, 0) else f" (here {seen})"


def dimensions(block: Dim3) -> str:
    """``256`` of a row, ``16x16`` of a plane."""
    x, y, z = block
    return f"{x}x{y}x{z}" if z > 1 else f"{x}x{y}" if y > 1 else str(x)


def _names(names: tuple[str, ...]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def doubt(of: Doubt) -> str:
    """What it depends on, or why a kernel is undecided."""
    match of:
        case c.OnData(what):
            return what
        case c.Uneven():
            return f"whether {that_it_is_even(of)}"
        case c.Untiled():
            return f"whether {that_tiles_fit(of)}"
        case c.Unordered(array):
            return f"whether `{array}` ascends"
        case c.Repeated(array):
            return f"whether `{array}` holds a number twice"
        case c.Overfull(array, room):
            return f"whether `{array}` counts more than {room}, what a row has room for"
        case c.Unconfirmed(made_up):
            return f"arguments that nothing in the file tells ({conditions(made_up)})"
        case c.UpToLibrary(call):
            return f"whether `{call}` is a barrier is up to the library"
        case Open():
            return of.value


def that_it_is_even(needed: c.Uneven) -> str:
    """A size that is a multiple of a number."""
    return f"`{needed.parameter}` is a multiple of {needed.divisor}"


def that_tiles_fit(needed: c.Untiled) -> str:
    """Sizes that are multiples of a tile, and shifts that are no more than they are."""
    several = "are multiples" if len(needed.sizes) > 1 else "is a multiple"
    shifts = "".join(f", and `{shift}` no more than that" for shift in needed.shifts)
    return f"{_names(needed.sizes)} {several} of `{needed.tile}`{shifts}"


def undecided(pair: c.Undecided) -> str:
    """A reason of a kernel's verdict."""
    lines = f"line{'s' if len(pair.lines) > 1 else ''} {' and '.join(map(str, pair.lines))}"
    return f"`{pair.array}` ({lines}): {reason(pair.why)}"


def reason(of: Doubt) -> str:
    """A reason of a kernel's verdict: what is in doubt, and what to do about it."""
    return doubt(of) if of in (Open.BACKGROUND, Open.BROKEN) else f"{doubt(of)}; {of_doubt(of)}"


_OF_THE_LAUNCH = {
    Open.LAUNCH: "the launch", Open.LAUNCH_ASSUMED: "the launch", Open.LAUNCH_UNTOLD: "the launch",
    Open.LAUNCH_AND_ARGUMENTS: "the launch and the arguments",
    Open.LAUNCH_AND_TEMPLATE: "the launch and template arguments",
}  # fmt: skip
_NO_CAUSE = (
    Open.REPLAY, Open.TIME, Open.NOT_REPLAYED, Open.BACKGROUND, Open.BROKEN, Open.OTHER_BLOCKS,
    Open.ENUMERATION,
)  # fmt: skip
"""Doubts that nothing hangs on: they say why nobody knows."""


def _hangs(of: Doubt) -> str:
    """What it depends on, or why that is open."""
    no_cause = of in _NO_CAUSE or isinstance(of, c.UpToLibrary)
    return f"not decided: {doubt(of)}" if no_cause else f"depends on {doubt(of)}"


def setting(of: c.Setting, needed: Conditions) -> list[str]:
    """Under which launch and template arguments numbers of a message hold: the one place that tells it.

    Nothing where the source has them, and no others.
    """
    told: list[str] = []
    if of.launch is not None:
        block = dimensions(of.launch.block)
        if of.launch.assumed and c.Needs.LAUNCH not in needed:
            told.append(f"blocks of {block} are assumed")
        elif of.launch.source is LaunchSource.SIZES and c.Needs.SIZES not in needed:
            told.append(f"blocks of {block} are made by sizes")
        elif of.several and not of.launch.assumed:
            told.append(f"in blocks of {block}")
    if of.guessed:
        named = f"`<{of.guessed}>`" if len(of.guessed) <= _MOST_OF_TEMPLATE else "the template's arguments"
        told.append(f"{named} {'is' if named[0] == '`' else 'are'} guessed")
    return told


def ending(
    needed: Conditions,
    of: Doubt | None,
    *,
    race: bool,
    met: bool,
    same: bool,
    under: c.Setting,
    numbers: bool = True,
    shown: Mapping[str, int] | None = None,
) -> str:
    """What a message says of conditions and doubts after its story.

    ``race``: it is one; ``met``: of two threads that were seen; ``same``: both write the same value;
    ``numbers``: the story has some, which hold ``under`` what it was found; ``shown``: the arguments.
    """
    alike = _SAME if same else ""
    if race and not met:
        hangs = "depends on data" if of is None else _hangs(of)
        return f"{alike}; whether they meet {hangs.replace('not decided', 'is not decided')}"
    in_story = isinstance(of, c.OnData) and of.in_story and not race
    exemplary = of is Open.ARGUMENTS and any(isinstance(n, c.Example) for n in needed)
    told = in_story or isinstance(of, c.Unconfirmed) or exemplary  # what is an example says as much
    beside = setting(under, needed) if numbers else []
    if under.guessed and numbers:
        needed = tuple(n for n in needed if n is not c.Needs.TEMPLATE)
    hangs = [] if of is None or told else [_hangs(of)]
    if of is Open.TEMPLATE:
        hangs = ["depends on the template's arguments, which are guessed"]
        beside = setting(evolve(under, guessed=""), needed) if numbers else []
    elif isinstance(of, Open) and of in _OF_THE_LAUNCH and under.launch is not None and under.launch.assumed:
        needed = tuple(n for n in needed if n is not c.Needs.LAUNCH)
        hangs = [f"depends on {_OF_THE_LAUNCH[of]}: blocks of {dimensions(under.launch.block)} are assumed"]
        beside = []
    conditional = of.conditions if isinstance(of, c.Unconfirmed) else needed
    when = "" if isinstance(of, c.OnData) else _when(conditional, under.block, shown)
    bracket = "; ".join((*hangs, *beside))
    return alike + when + (f" ({bracket})" if bracket else "")


def _when(needed: Conditions, block: Dim3 | None, shown: Mapping[str, int] | None) -> str:
    if not needed:
        return ""
    text = conditions(needed, block, shown)
    return (
        f" (for example when {text})"
        if isinstance(needed[0], c.Example) and needed[0].sampled
        else f", when {text}"
    )
