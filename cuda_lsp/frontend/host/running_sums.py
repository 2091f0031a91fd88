"""Arguments of a launch that hold the running sums of another one: where each element has its place.

``cub::DeviceScan::ExclusiveSum(t, bytes, keep, place, n); compact<<<…>>>(keep, place, …, n);`` makes
``place[i]`` the sum of the first ``i`` elements of ``keep``. That is believed where the scan is a statement
of a block around the launch, so that whoever comes to this has come by it, where both arrays are variables of
the function, and where nothing on the way from one to the other may write to them, under any name that the
function has for them. How many elements were summed must be an argument, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from cuda_lsp.frontend.host.expressions import declaration
from cuda_lsp.frontend.host.host_functions import HostFunction, HostFunctions
from cuda_lsp.frontend.host.reaching import Reaching
from cuda_lsp.frontend.host.same_memory import Way, names_for
from cuda_lsp.frontend.host.text import HostText, whole_arguments
from cuda_lsp.frontend.host.written_launches import Written

_SCAN = re.compile(
    r"\bDeviceScan\s?::\s?(?P<cub>Ex|In)clusiveSum\s?\(|\bthrust\s?::\s?(?P<thrust>ex|in)clusive_scan\s?\("
)
_BEFORE_SCAN = re.compile(
    r"\A\s?(?:(?:[\w:]+\s?\(|(?:[\w:]+\s)?\w+\s?=)\s?)?(?:::\s?)?(?:\w+\s?::\s?){0,3}\Z"
)
_LEAVES = re.compile(r"\b(?:return|throw|goto|break|continue)\b|\+\+|--|^\s?#", re.M)
_BRANCHING = re.compile(r"\b(?:if|else|for|while|do|switch|case|default|return)\b")
_OTHER_WAYS = re.compile(r"\b(?:case|default|goto)\b|^\s?#", re.M)
_LOOP = re.compile(r"\b(?:for|while|do)\b")
_ENDS = re.compile(r"[;{}]")
_WRAPPED = re.compile(r"\bthrust::device_(?:ptr<[^<>()]*>|pointer_cast)\(([^()]*)\)")
_FURTHER_ON = re.compile(r"\A([^?]+?)\+(\d{1,6})\Z")
_NOTHING = re.compile(r"\A(?:NULL|nullptr|0)?\Z")
_CAST = r"(?:(?:reinterpret|static|const)_cast<[^<>()]*>\(|\([\w:]+\*\)\(?)"
_VARIABLE = re.compile(
    rf"\A{_CAST}{{0,4}}([A-Za-z_]\w*)(?:(?:\.|->)(?:data|data_ptr|get)(?:<[^<>()]*>)?\(\))?\)*\Z"
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_LONGEST_STATEMENT = 400


@frozen
class PassedSum:
    """``argument[i]`` is the sum of the first ``i + behind`` elements of the argument at ``of``.

    As far as these are no more than ``more`` above the argument at ``last``. ``of`` None: of an array that is
    not passed, or was summed in place.
    """

    of: int | None
    behind: int
    last: int
    more: int


@frozen
class _Scan:
    """``begin`` to ``end``: the call. The texts are arguments, without white space."""

    begin: int
    end: int
    inclusive: bool
    summands: str
    sums: str
    count: str


@frozen
class Summing:
    """Functions of the host that sum what they are passed, by name: how many arguments, and which of them."""

    by_name: Mapping[str, tuple[HostFunction, _Scan]]


def summing_functions(files: Iterable[tuple[HostText, HostFunctions]]) -> Summing:
    """Those of some files, each the only one of its name."""
    found: dict[str, list[tuple[HostFunction, _Scan]]] = {}
    for host, functions in files:
        for function in functions.every() if host.kept(_has_scans) else ():
            scan = _of_parameters(host, function)
            if scan is not None and len(list(functions.named(function.name))) == 1:
                found.setdefault(function.name, []).append((function, scan))
    return Summing({name: each[0] for name, each in found.items() if len(each) == 1})


def passed_sums(constants: Reaching, launch: Written, at: int, summing: Summing) -> Mapping[int, PassedSum]:
    """By position, of a launch whose ``<<<`` stands ``at`` a place."""
    host, function = constants.text, constants.functions.around(at)
    scanned = summing.by_name or host.kept(_has_scans)
    if function is None or not scanned or not host.plain.startswith("<<<", at):
        return {}
    texts = [_plain(argument) for argument in launch.arguments]
    found: dict[int, PassedSum] = {}
    scans = (*_scans(host, function, at), *_called(constants, summing, function, at))
    for scan in sorted(scans, key=lambda scan: scan.begin, reverse=True):
        passed = _passed(scan, texts)
        if passed is not None and _lasts(scan, constants, function, launch, at):
            found.setdefault(*passed)
    return found


def _has_scans(host: HostText) -> bool:
    return _SCAN.search(host.plain) is not None


def _passed(scan: _Scan, texts: Sequence[str]) -> tuple[int, PassedSum] | None:
    """The sums that a launch passes with what they were made of: at which position, and what they are."""
    sums, begin = _moved(scan.sums)
    total, above = _moved(scan.count)
    places = [i for i, text in enumerate(texts) if _moved(text)[0] == sums]
    summands = [i for i, text in enumerate(texts) if text == scan.summands]
    last = [i for i, text in enumerate(texts) if text in (scan.count, total)]
    if len(places) != 1 or len(summands) > 1 or not last:
        return None
    of = summands[0] if summands and scan.summands != scan.sums else None
    behind = _moved(texts[places[0]])[1] - begin + scan.inclusive
    more = (above if texts[last[0]] != scan.count else 0) - (not scan.inclusive)
    return places[0], PassedSum(of, behind, last[0], more)


def _scans(host: HostText, function: HostFunction, at: int) -> Iterator[_Scan]:
    """The scans of a function that whoever comes to a place has come by."""
    for match in _SCAN.finditer(host.plain, function.body, at):
        closing = host.closing(match.end() - 1)
        if not 0 < closing < at or not _comes_by(host, match.start(), at):
            continue
        arguments = [_plain(text) for text in whole_arguments(host.plain[match.end() : closing])]
        inclusive = (match["cub"] or match["thrust"]).lower() == "in"
        read = _by_cub(arguments) if match["cub"] else _by_thrust(arguments, inclusive)
        if read is not None and not _asks_for_size(host, function, match, arguments):
            yield _Scan(match.start(), closing + 1, inclusive, *read)


def _called(constants: Reaching, summing: Summing, function: HostFunction, at: int) -> Iterator[_Scan]:
    """The same of scans that functions make of their arguments."""
    for name, (called, scan) in summing.by_name.items():
        for call in constants.functions.calls(name):
            inside = function.body < call.begin and call.end <= at and called.takes(len(call.arguments))
            if not inside or call.explicit or not _comes_by(constants.text, call.begin, at):
                continue
            names = (parameter for parameter, _ in called.parameters)
            passed = dict(zip(names, map(_plain, call.arguments), strict=False))
            texts = [passed.get(text, "") for text in (scan.summands, scan.sums, scan.count)]
            if all(texts):
                yield _Scan(call.begin, call.end, scan.inclusive, *texts)


def _of_parameters(host: HostText, function: HostFunction) -> _Scan | None:
    """What a function sums that does so whatever it is passed, and does nothing more to it."""
    scans = list(_scans(host, function, function.end - 1))
    if len(scans) != 1:
        return None
    (scan,) = scans
    names = {scan.summands, scan.sums, scan.count}
    before, behind = host.plain[function.body : scan.begin], host.plain[scan.end : function.end]
    used = {word for word in _WORD.findall(behind) if word in names}
    told = (
        names <= {name for name, _ in function.parameters} and host.braces.begin(scan.begin) == function.body
    )
    changed = re.search(
        rf"(?<![\w.>])(?:{'|'.join(map(re.escape, names))})\s?(?:[-+*/%&|^]|<<|>>)?=(?!=)", before
    )
    return scan if told and not used and changed is None and _LEAVES.search(before) is None else None


def _comes_by(host: HostText, begin: int, at: int) -> bool:
    """Whether a call is a statement by itself, in a block around a later place, with one way between them."""
    plain = host.plain
    first = max(plain.rfind(c, max(0, begin - _LONGEST_STATEMENT), begin) for c in ";{}") + 1
    before = plain[first:begin]
    alone = _BEFORE_SCAN.match(before) is not None and _BRANCHING.search(before) is None
    return alone and host.braces.end(begin) > at and _OTHER_WAYS.search(plain, begin, at) is None


def _by_cub(arguments: Sequence[str]) -> tuple[str, str, str] | None:
    return (arguments[2], arguments[3], arguments[4]) if 5 <= len(arguments) <= 7 else None


def _by_thrust(arguments: Sequence[str], inclusive: bool) -> tuple[str, str, str] | None:
    """``thrust::exclusive_scan(policy, d, d + n, sums)``, without the policy, or with a first value of 0."""
    plain = [_WRAPPED.sub(r"\1", text) for text in arguments]
    for first in (0, 1):
        if len(plain) < first + 3 or not plain[first + 1].startswith(f"{plain[first]}+"):
            continue
        rest = plain[first + 3 :]
        if not rest or (rest == ["0"] and not inclusive):
            return plain[first], plain[first + 2], plain[first + 1][len(plain[first]) + 1 :]
    return None


def _asks_for_size(
    host: HostText, function: HostFunction, match: re.Match[str], arguments: Sequence[str]
) -> bool:
    """A call without memory to work in sums nothing, and says how much that takes."""
    if not match["cub"]:
        return False
    if _NOTHING.match(arguments[0]):
        return True
    name = _WORD.fullmatch(arguments[0])
    if name is None:
        return False
    given = re.compile(rf"&\s?{name[0]}\b|(?<![\w.>]){name[0]}\s?(?:=(?!=)|[({{])\s?([^;,(){{}}]{{0,80}})")
    values = [found[1] for found in given.finditer(host.plain, function.opening, match.start())]
    return bool(values) and values[-1] is not None and _NOTHING.match(values[-1].strip()) is not None


def _lasts(scan: _Scan, constants: Reaching, function: HostFunction, launch: Written, at: int) -> bool:
    """Whether both arrays still hold at the launch what they held behind the scan."""
    host = constants.text
    begin = max(host.plain.rfind(c, scan.end, at) for c in ";{}")
    if begin < 0 or _LOOP.search(host.plain, begin, at) is not None:
        return False
    end = _end_of_loops(host, constants.functions, scan.end, at)
    way = Way(constants, scan.end, end, at, launch)
    variables = [_variable(_moved(text)[0]) for text in (scan.summands, scan.sums)]
    names = {word for text in (scan.summands, scan.sums, scan.count) for word in _WORD.findall(text)}
    if way.writes(names) or constants.functions.jumps(function):
        return False
    own = host.plain[function.body : at]
    for variable in variables:
        if variable is None or not _is_own(variable, function, own):
            return False
        if way.may_write_behind(names_for(host, function.opening, end, variable)):
            return False
    return True


def _end_of_loops(host: HostText, functions: HostFunctions, begin: int, at: int) -> int:
    """Up to where code may run between two places: behind the loops (and lambdas) that only one is in."""
    end, brace = at, host.braces.begin(at)
    while brace >= begin:
        if not functions.is_branch(brace):
            end = host.braces.closing.get(brace, end)
        brace = host.braces.begin(brace - 1)
    return end


def _is_own(variable: str, function: HostFunction, own: str) -> bool:
    """It is a parameter of the function or a variable of its own: nobody else may assign to it."""
    if any(name == variable for name, _ in function.parameters):
        return True
    declared = declaration(variable, own)
    return declared is not None and declared["static"] is None


def _variable(text: str) -> str | None:
    """The variable that a pointer is, or that owns what it points to."""
    match = _VARIABLE.match(text)
    return match[1] if match is not None else None


def _moved(text: str) -> tuple[str, int]:
    """``p+2`` → ``p``, 2."""
    match = _FURTHER_ON.match(text)
    return (match[1], int(match[2])) if match is not None else (text, 0)


def _plain(text: str) -> str:
    return re.sub(r"\s", "", text)
