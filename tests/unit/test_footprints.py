"""The linear test flags exactly the bytes that two agents touch, one of them writing."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from kernel_notation import TID, Notation

from cuda_lsp.hardware import GpuModel
from cuda_lsp.model import LaunchConfig, Mode
from cuda_lsp.static.diagnostics.footprints import Group, apart, suspicious
from cuda_lsp.static.execution.enumerate import execute
from cuda_lsp.static.execution.trace import Access

THREADS = 8


def template() -> Access:
    n = Notation()
    s = n.shared("s", 64)
    trace = execute(n.kernel(n.write(s, TID)), LaunchConfig((THREADS, 1, 1)), {}, GpuModel("test", (9, 0)))
    return trace.paths[0].accesses[0]


def accesses(chance: random.Random, scale: int) -> list[Access]:
    from attrs import evolve

    shapes = [(THREADS,), (3, THREADS), (3, 1)]
    offsets = [np.array(chance.choices(range(12), k=int(np.prod(s)))).reshape(s) * scale for s in shapes]
    masks = [np.array(chance.choices([True, False], k=3 * THREADS)).reshape(3, THREADS) for _ in range(2)]
    masks.append(np.ones((3, THREADS), bool))
    found: list[Access] = []
    for _ in range(chance.randint(1, 4)):
        may = chance.choice(masks)
        offset = chance.choice([*offsets, chance.randrange(12) * scale])
        mode, size = chance.choice(list(Mode)), chance.choice([1, 2, 4, 16])
        found.append(evolve(template(), offset=offset, may=may, must=may, mode=mode, size=size))
    return found


def touched(group: list[Access]) -> dict[int, set[tuple[int, Mode, int]]]:
    """Byte → who touches it, how, and by how wide an access."""
    result: dict[int, set[tuple[int, Mode, int]]] = {}
    for a in group:
        offset = np.broadcast_to(a.offset, a.may.shape)
        for at in zip(*np.nonzero(a.may), strict=True):
            for byte in range(a.size):
                result.setdefault(int(offset[at]) + byte, set()).add((int(at[-1]), a.mode, a.size))
    return result


def conflicts(a: tuple[int, Mode, int], b: tuple[int, Mode, int]) -> bool:
    """Atomics are atomic to each other when they are of one width."""
    harmless = not (a[1].writes or b[1].writes) or (a[1].atomic and b[1].atomic and a[2] == b[2])
    return a[0] != b[0] and not harmless


@pytest.mark.parametrize("scale", [1, 4, 6, 1 << 30])
def test_flags_what_comparing_every_pair_flags(scale):
    chance = random.Random(scale)
    seen: set[bool] = set()
    for _ in range(300):
        members = accesses(chance, scale)
        group = Group(members, slice(0, THREADS), np.arange(THREADS), False, THREADS, False)
        by_byte = touched(members)
        expected = {
            byte
            for byte, who in by_byte.items()
            if any(conflicts(a, b) for a, b in itertools.combinations(who, 2))
        }
        found = suspicious(group)
        flagged: set[int] = set()
        if found is not None:
            units, bad = found
            for unit in units.unit(np.flatnonzero(bad)).tolist():
                flagged |= set(range(unit * units.size, (unit + 1) * units.size))
        assert flagged >= expected
        assert bool(flagged) == bool(expected) == (not apart(group))
        seen.add(bool(expected))
    assert seen == {True, False}
