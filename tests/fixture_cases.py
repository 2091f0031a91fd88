"""The fixtures as test cases: each kernel file as written, and with each of its barriers removed.

Expectations stand in the files, in comments beside the line they concern:

    s[id] = id;                  // @store                  names the line
    __syncthreads();             // barrier A: why          may be removed; the line keeps its number
    out[id] = s[(id + 1) % nt];  //~ -A: RAW @store         without A: a RAW race with the line @store

A ``//~`` comment holds several expectations separated by ``;``, each ``[condition:] RAW|WAR|WAW @name`` or
``[condition:] N-way``. Conditions: ``-A`` (barrier A removed), ``banks=N``, ``name=value`` (an argument);
without one it holds in every variant. ``@self`` is the line itself. What is not expected must not be found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"

_BARRIER = re.compile(r"__sync(?:threads|warp)\(\);(?=\s*// barrier (\w+))")
_LABEL = re.compile(r"//\s*@(\w+)")
_EXPECT = re.compile(r"//~\s*(.*)$")


@frozen(order=True)
class Race:
    """A race between two lines; ``lines`` ascending."""

    kind: str
    lines: tuple[int, int]


@frozen
class Case:
    """One text to check and exactly what must be found in it.

    ``conflicts``: line → ways of the worst conflict on it. ``arguments``: scalar arguments the case fixes.
    """

    name: str
    path: Path
    text: str
    removed: str | None
    banks: int
    arguments: tuple[tuple[str, int], ...]
    races: frozenset[Race]
    conflicts: tuple[tuple[int, int], ...]


def cases() -> Iterator[Case]:
    """Every fixture as written, then once per removed barrier; figure 2 under each flag and bank count."""
    for path in sorted(FIXTURES.glob("*.cu")):
        text = path.read_text()
        for removed in (None, *_BARRIER.findall(text)):
            for banks, arguments in _settings(path):
                yield _case(path, text, removed, banks, arguments)


def _settings(path: Path) -> list[tuple[int, tuple[tuple[str, int], ...]]]:
    if path.stem == "figure2":
        return [(banks, (("consecutive", flag),)) for banks in (16, 32) for flag in (0, 1)]
    return [(32, ())]


def without_barrier(text: str, name: str) -> str:
    """``text`` with one barrier replaced by nothing; every line keeps its number."""
    return re.sub(rf"__sync(?:threads|warp)\(\);(?=\s*// barrier {name}\b)", ";", text)


def _with_arguments(text: str, arguments: tuple[tuple[str, int], ...]) -> str:
    """A directive with the arguments in place of the empty line above the kernel."""
    if not arguments:
        return text
    directive = " ".join(f"{name}={value}" for name, value in arguments)
    return text.replace("\n\n__global__", f"\n// cuda-lsp: args {directive}\n__global__", 1)


def _case(
    path: Path, text: str, removed: str | None, banks: int, arguments: tuple[tuple[str, int], ...]
) -> Case:
    facts = {f"banks={banks}", *(f"{name}={value}" for name, value in arguments)}
    if removed:
        facts.add(f"-{removed}")
    lines = text.splitlines()
    labels = {m[1]: number for number, line in enumerate(lines, 1) for m in _LABEL.finditer(line)}
    races: set[Race] = set()
    conflicts: dict[int, int] = {}
    for number, line in enumerate(lines, 1):
        match = _EXPECT.search(line)
        for part in match[1].split(";") if match else ():
            condition, _, outcome = part.rpartition(":")
            if not set(condition.split()) <= facts:
                continue
            if way := re.fullmatch(r"(\d+)-way", outcome.strip()):
                conflicts[number] = int(way[1])
            else:
                kind, _, label = outcome.strip().partition(" @")
                other = number if label == "self" else labels[label]
                races.add(Race(kind, (min(number, other), max(number, other))))
    name = path.stem + (f"-without-{removed}" if removed else "") + ("".join(f",{f}" for f in sorted(facts)))
    return Case(
        name=name.replace(",banks=32", "").replace(f",-{removed}", ""),
        path=path,
        text=_with_arguments(without_barrier(text, removed) if removed else text, arguments),
        removed=removed,
        banks=banks,
        arguments=arguments,
        races=frozenset(races),
        conflicts=tuple(sorted(conflicts.items())),
    )
