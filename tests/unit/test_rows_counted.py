"""Kernels of rows and columns whose sizes are arguments, compared with counting.

The text has addresses like ``(y * n + r) * m + x`` behind guards and in loops of rounds ``r``. For small
sizes every access of every thread is listed: what is called race-free without an assumption never meets
there, and what is called racy meets for some of the sizes. ``CUDA_LSP_EXAMPLES`` sets how many are tried;
without it the same few are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from attrs import frozen
from hypothesis import event, given, settings
from hypothesis import strategies as st
from property_settings import examples

from cuda_lsp.model import Verdict
from cuda_lsp.static.analyze import check_text

SIZES = (1, 2, 3, 4, 8, 16, 33, 64, 100, 300)
MOST_ROUNDS, MOST_BLOCKS, MOST_ELEMENTS = 100, 3, 20_000
EVERY_ROUND = "by the grid"

FLAT = (
    "i * {p} + r", "r * {p} + i", "i / {p} * {p} * {q} + r * {p} + i % {p}",
    "i + r * {p} * {q}",
    "i * 4 + r", "(i / {p} * {q} + r) * {p} + i % {p}", "i * {c} + r", "r * 256 + i", "i % {p} * {q} + r",
    "i + r", "i % {p} + r * {p}", "i / {p} * {q} + r", "(i + r) % {p}", "i / 32 * {p} + i % 32 + 32 * r", "r",
    "i / 32 * {p} + i % 32", "r / {p} * {q} + r % {p}", "r + {p}", "i * ({p} + {c}) + r",
    "(i * {p} + r) * {q} + {c}",
)  # fmt: skip
PLANE = (
    "(y * {p} + r) * {q} + x", "(r * {p} + y) * {q} + x", "(y * {p} + x) * {q} + r", "(y * {p} + x) * 4 + r",
    "y * {p} + x * 4 + r", "y * {p} + x + r * {q}", "r * {p} * {q} + y * {p} + x", "(y + r) * {p} + x",
    "(x * {p} + y) * {q} + r", "y * 4 * {p} + r * {p} + x", "(r * {p} + x) * {q} + y", "x * {p} + y",
    "y * {p} + r",
)  # fmt: skip
FLAT_GUARDS = (
    "", "i < {p}", "i < {p} * {q}", "i / {p} < {q}", "i + r < {p}", "i % 32 + 32 * r < {p}",
    "r % 2 == 0", "i % 2 == 0", "i * {p} + r < {q}", "i / 32 < {p}", "4 * i < {p}", "4 * i + r < {p}",
)  # fmt: skip
PLANE_GUARDS = (
    "", "x < {p} && y < {q}", "x < {p}", "y < {p} && x < {q}", "x * 4 < {p} && y < {q}",
    "x < {p} / 4 && y < {q}", "x + r < {p} && y < {q}",
)  # fmt: skip


@frozen
class Rows:
    """One kernel: where it writes, and reads before that; who does, in which rounds, in which grid."""

    plane: bool
    writes: tuple[str, ...]
    read: str | None
    guard: str
    rounds: str
    told: bool  # the grid is computed from the sizes, not passed


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    plane = draw(st.booleans())
    sizes = {"p": draw(st.sampled_from("nm")), "q": draw(st.sampled_from("nm")), "c": draw(st.integers(1, 3))}

    def one(texts: tuple[str, ...]) -> str:
        return draw(st.sampled_from(texts)).format(**sizes)

    places = PLANE if plane else FLAT
    write = one(places)
    beside = f"{write} + {draw(st.sampled_from(('n', 'm', '1')))}"
    more = draw(st.sampled_from((None, None, one(places), beside)))
    ends = ("r < m", "r < n", "r < 4") if plane else ("r < m", "r < n", "r < 4", EVERY_ROUND)
    return Rows(
        plane,
        (write,) if more is None else (write, more),
        draw(st.sampled_from((None, write, one(places), beside))),
        one(PLANE_GUARDS if plane else FLAT_GUARDS),
        draw(st.sampled_from(ends)),
        draw(st.booleans()),
    )


def text_of(k: Rows) -> str:
    flat = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
    plane = f"{flat.replace('int i', 'int x')} int y = blockIdx.y * blockDim.y + threadIdx.y;"
    steps = [f"v = a[{k.read}] + 1.0f;"] if k.read is not None else []
    steps += [f"a[{place}] = v + {number};" for number, place in enumerate(k.writes)]
    guarded = " ".join(steps) if not k.guard else f"if ({k.guard}) {{ {' '.join(steps)} }}"
    loop = f"for (int r = 0; {k.rounds}; r++)"
    if k.rounds == EVERY_ROUND:
        loop = "for (int r = i; r < n * m; r += gridDim.x * blockDim.x)"
    own = "x + 3 * y" if k.plane else "i"
    grid = "dim3((n + 15) / 16, (m + 15) / 16)" if k.plane else "(n + 255) / 256"
    return (
        f"__global__ void k(float* a, int n, int m) {{ {plane if k.plane else flat}\n"
        f"  float v = {own};\n  {loop} {{ {guarded} }} }}\n"
        f"void go(float* a, int n, int m, {'dim3' if k.plane else 'int'} grid) {{\n"
        f"  k<<<{grid if k.told else 'grid'}, {'dim3(16, 16)' if k.plane else '256'}>>>(a, n, m); }}\n"
    )


# ---------------------------------------------------------------------------------------------- counting

Numbers = dict[str, np.ndarray]


def threads_of(k: Rows, n: int, m: int) -> Numbers:
    if not k.plane:
        blocks = min(MOST_BLOCKS, (n + 255) // 256) if k.told else 2
        return {"i": np.arange(blocks * 256)}
    across, down = ((n + 15) // 16, (m + 15) // 16) if k.told else (2, 3)
    width = 16 * min(MOST_BLOCKS, across)
    y, x = np.divmod(np.arange(width * 16 * min(MOST_BLOCKS, down)), width)
    return {"x": x, "y": y}


def rounds_of(k: Rows, n: int, m: int, threads: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The number of each round, by thread, and whose round it is."""
    if k.rounds == EVERY_ROUND:
        for start in range(0, n * m, len(threads)):
            yield threads + start, threads + start < n * m
        return
    for r in range(min(MOST_ROUNDS, {"r < m": m, "r < n": n, "r < 4": 4}[k.rounds])):
        yield np.full(len(threads), r), np.ones(len(threads), bool)


def value(text: str, numbers: Numbers, count: int) -> np.ndarray:
    return np.broadcast_to(np.asarray(eval(text.replace("/", "//"), {}, numbers)), (count,))


def meets(k: Rows, n: int, m: int) -> bool:
    """Whether a place that one thread writes is touched by another."""
    coordinates = threads_of(k, n, m)
    threads = np.arange(len(next(iter(coordinates.values()))))
    written: list[np.ndarray] = []
    read: list[np.ndarray] = []
    for r, active in rounds_of(k, n, m, threads):
        numbers = {**coordinates, "r": r, "n": np.asarray(n), "m": np.asarray(m)}
        for part in filter(None, k.guard.split("&&")):
            active = active & value(part.strip(), numbers, len(threads))
        at = [(written, place) for place in k.writes] + ([(read, k.read)] if k.read is not None else [])
        for found, place in at:
            found.append(np.stack([value(place, numbers, len(threads))[active], threads[active]]))
    places, whose = np.concatenate(written, axis=1) if written else np.zeros((2, 0), int)
    if not len(places):
        return False
    owner = np.full(max(x[0].max(initial=0) for x in written + read) + 1, -1)
    owner[places] = whose
    touched = np.concatenate(written + read, axis=1)
    held = owner[touched[0]]
    return bool(((held >= 0) & (held != touched[1])).any())


def sizes_that_meet(k: Rows) -> list[tuple[int, int]]:
    counted = [(n, m) for n in SIZES for m in SIZES if n * m <= MOST_ELEMENTS]
    return [(n, m) for n, m in counted if meets(k, n, m)]


# ------------------------------------------------------------------------------------------ the property


@given(rows())
@settings(examples(12), derandomize="CUDA_LSP_EXAMPLES" not in os.environ)
def test_what_is_decided_is_what_is_counted(k: Rows) -> None:
    report = check_text(Path("k.cu"), text_of(k)).kernels[0]
    event(f"{report.verdict.value}{' under assumptions' if report.assumptions else ''}")
    found = sizes_that_meet(k)
    if report.verdict is Verdict.RACE_FREE and not report.assumptions:
        assert not found
    if report.verdict is Verdict.RACY:
        assert found


def test_counting_sees_what_meets_and_what_does_not() -> None:
    apart = Rows(False, ("i * n + r",), None, "", "r < n", told=False)
    assert not sizes_that_meet(apart)
    assert (8, 16) in sizes_that_meet(Rows(False, ("i * n + r",), None, "", "r < m", told=False))
    neighbour = Rows(True, ("y * n + x",), "y * n + x + 1", "x < n && y < m", "r < 4", told=True)
    assert (2, 1) in sizes_that_meet(neighbour) and (1, 1) not in sizes_that_meet(neighbour)
