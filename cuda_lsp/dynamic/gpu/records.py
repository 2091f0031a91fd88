"""What the detector leaves in device memory, as NumPy records, and what they mean.

The records are the structs of ``detector/detector.cu``, field by field. Pure: bytes in, ``runs`` words out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from cuda_lsp.dynamic.runs import (
    WARP,
    Place,
    PtxSite,
    SeenBanks,
    SeenFault,
    SeenFlag,
    SeenRace,
    SiteKind,
    Stuck,
)
from cuda_lsp.model import Mode, Space

Records = np.ndarray[Any, Any]

GUARD = 1 << 24  # bytes of nothing behind every buffer, so that what overruns one misses the next
RANGES, RACES, FLAGS, BANK_COPIES, OLDER, OBJECTS = 64, 4096, 65536, 128, 65536, 256
OLDER_BYTES, COPIES_BYTES, KNOWN_BYTES, DEALINGS_BYTES = 16, 72, 16, 112  # of one
OBJECT_BYTES, TOLD_BYTES = 32, 32
CLOCK_BYTES, THREAD_BYTES, PLACES = 16, 32, 128 + 16  # places where threads hand over, and barriers
WRITERS = 1  # added to the address of a range's cells: each is a writer's stamp alone
RANGE = np.dtype([("start", "u8"), ("size", "u8"), ("cells", "u8")])
CONTROL = np.dtype(
    [
        *((name, "u8") for name in ("executed", "ordinal", "where", "races", "faults", "banks")),
        *((name, "u8") for name in ("bank_sums", "patterns", "hits", "flags")),
        *((name, "u8") for name in ("notes", "knowledge", "names", "older", "copies", "objects")),
        *((name, "u8") for name in ("told", "known", "dealings", "widths", "clocks", "clocks_stride")),
        *((name, "u8") for name in ("reports", "cells", "cells_stride")),
        *((name, "u4") for name in ("threads", "granule_shift", "global_shift", "range_count")),
        *((name, "u4") for name in ("detail_flags", "cross_block", "knowledge_stride", "lock_step")),
        *((name, "u4") for name in ("checked", "plane")),
        ("ranges", RANGE, (RANGES,)),
    ]
)
RACE = np.dtype(
    [
        ("key", "u8"),
        ("address", "u8"),
        ("threads", "u4", (2,)),
        ("blocks", "u4", (2,)),
        *((name, "u4") for name in ("different", "ready", "space", "pad")),
        ("pairs", "u4", (32,)),
        ("words", "u4", (32,)),
    ]
)
FAULT = np.dtype([("address", "u8"), *((name, "u4") for name in ("count", "thread", "block", "space"))])
BANK = np.dtype(
    [
        *((name, "u4") for name in ("lock", "worst", "worst_ways", "worst_ideal")),
        ("histogram", "u4", (32,)),
    ]
)
PATTERN = np.dtype(
    [
        *((name, "u4") for name in ("lanes", "taken")),
        *((name, "u2") for name in ("wavefronts", "ideal")),
        ("pad", "u4"),
        ("steps", "u4", (32,)),
    ]
)
BANK_SUM = np.dtype([("executions", "u4"), ("ideal", "u4"), ("wavefronts", "u8")])
FLAG = np.dtype([("address", "u8"), ("warps", "u4", (2,)), ("block", "u4"), ("pad", "u4")])
NOTES = (
    "races inside a block after 4,094 warp synchronisations or releases of a thread without a block barrier",
    "more races than the report has room for",
    "races inside a block in global memory after 16,382 block barriers",
    "races between blocks: they synchronise through more than 256 addresses",
    "races inside a block in global memory after 63 warp synchronisations or releases without a barrier",
    "63 of 64 racing accesses of a block that had reported 16,384 races",
)


def control_offsets() -> dict[str, int]:
    """Byte offset of each field of the control block."""
    control: Any = CONTROL
    fields = control.fields
    return {str(name): int(entry[1]) for name, entry in fields.items()}


def clocks_bytes(threads: int) -> int:
    """What the threads of a block know of each other where locks and flags order them (``detector.cu``)."""
    warps = -(-threads // WARP)
    return threads * THREAD_BYTES + CLOCK_BYTES * (warps * (threads + warps) + PLACES * (warps + 1))


@frozen
class Extent:
    """A named stretch of device memory: ``start`` ≤ address < ``end``."""

    name: str
    start: int
    end: int


@frozen
class AddressBook:
    """Names of addresses. ``shared`` holds the dynamic part under the name ``dynamic``, if it has one."""

    shared: tuple[Extent, ...]
    device: tuple[Extent, ...]

    def place(self, in_global: bool, address: int) -> Place:
        """What an address is, for people. ``in_global``: it is of global memory, else of shared."""
        space = Space.GLOBAL if in_global else Space.SHARED
        extents = self.device if in_global else self.shared
        for extent in extents:
            if extent.start <= address < extent.end:
                return Place(space, extent.name, address - extent.start)
        below = [e for e in extents if in_global and e.end <= address < e.end + GUARD]
        if below:  # what the address was meant for
            nearest = max(below, key=lambda e: e.end)
            return Place(space, nearest.name, address - nearest.start)
        return Place(space, None, address)


def seen_races(records: Records, sites: Sequence[PtxSite], book: AddressBook) -> tuple[SeenRace, ...]:
    """``records``: RACE, ``(RACES,)``."""
    races: list[SeenRace] = []
    for record in records[records["ready"] != 0]:
        key = int(record["key"]) - 1
        pair = key >> 32, key & 0xFFFFFFFF
        if max(pair) >= len(sites):
            continue  # damaged: see ``damaged_races``
        first, second = (sites[number].mode or Mode.READ for number in pair)
        if not (first.writes or second.writes):
            continue  # the detector takes atomic loads for updates
        races.append(
            SeenRace(
                sites=pair,
                modes=(first, second),
                threads=(int(record["threads"][0]), int(record["threads"][1])),
                blocks=(int(record["blocks"][0]), int(record["blocks"][1])),
                place=book.place(bool(record["space"]), int(record["address"])),
                pairs=_bits(record["pairs"]),
                words=_bits(record["words"]),
                same_value=not record["different"],
            )
        )
    return tuple(sorted(races, key=lambda race: race.sites))


def damaged_races(records: Records, sites: Sequence[PtxSite]) -> int:
    """Race records that name no site: something wrote over the detector's memory."""
    keys = [int(record["key"]) - 1 for record in records[records["ready"] != 0]]
    return sum(max(key >> 32, key & 0xFFFFFFFF) >= len(sites) for key in keys)


def _bits(words: Records) -> int:
    return max(1, sum(int(word).bit_count() for word in words.tolist()))


def seen_flags(records: Records, book: AddressBook) -> tuple[SeenFlag, ...]:
    """``records``: FLAG, ``(FLAGS,)``."""
    flags: list[SeenFlag] = []
    for record in records[records["address"] != 0]:
        key = int(record["address"]) - 1
        warps = int(record["warps"][0]), int(record["warps"][1])
        flags.append(SeenFlag(book.place(bool(key & 1), key >> 1), warps, int(record["block"])))
    return tuple(flags)


def seen_faults(records: Records, sites: Sequence[PtxSite], book: AddressBook) -> tuple[SeenFault, ...]:
    """``records``: FAULT, ``(sites,)``."""
    return tuple(
        SeenFault(
            site=site,
            thread=int(records[site]["thread"]),
            block=int(records[site]["block"]),
            place=book.place(bool(records[site]["space"]), int(records[site]["address"])),
            count=int(records[site]["count"]),
            misaligned=int(records[site]["address"]) % _aligned_to(sites[int(site)]) != 0,
        )
        for site in map(int, np.flatnonzero(records["count"]))
    )


def _aligned_to(site: PtxSite) -> int:
    """What addresses of an access have to be multiples of."""
    return site.bytes if site.kind is SiteKind.ACCESS and site.bytes in (2, 4, 8, 16) else 1


def seen_banks(
    worst: Records, sums: Records, patterns: Records, hits: Records, followers: Mapping[int, tuple[int, int]]
) -> tuple[SeenBanks, ...]:
    """``worst``: BANK, ``(sites,)``; ``sums``: BANK_SUM, ``(sites * BANK_COPIES,)``; ``patterns``: PATTERN,
    ``(sites, PATTERNS)``, and how often each was met: ``(sites, copies, PATTERNS)``.

    ``followers``: sites that cost what another one does, with how many bytes they lie behind it.
    """
    met = hits.sum(axis=1)  # (sites, PATTERNS)
    patterns, worst = _with_simple_ones(patterns, worst, met)
    totals: dict[str, Any] = {}
    for name, weight in (
        ("executions", 1),
        ("wavefronts", patterns["wavefronts"]),
        ("ideal", patterns["ideal"]),
    ):
        copies: Any = sums[name].astype(np.uint64)
        once: Any = copies.reshape(-1, BANK_COPIES).sum(axis=1)
        totals[name] = once + (met * weight).sum(axis=1).astype(np.uint64)
    counted = np.flatnonzero(totals["executions"])
    leaders = {int(site): (int(site), 0) for site in counted}
    followed = {site: place for site, place in followers.items() if place[0] in leaders}
    return tuple(
        SeenBanks(
            site=site,
            executions=int(totals["executions"][leader]),
            wavefronts=int(totals["wavefronts"][leader]),
            ideal=int(totals["ideal"][leader]),
            worst_ways=int(worst[leader]["worst_ways"]),
            worst_wavefronts=int(worst[leader]["worst"]),
            worst_ideal=int(worst[leader]["worst_ideal"]),
            histogram=tuple(int(n) for n in np.roll(worst[leader]["histogram"], behind // 4)),
        )
        for site, (leader, behind) in sorted((leaders | followed).items())
    )


def _with_simple_ones(given: Records, told: Records, met: Records) -> tuple[Records, Records]:
    """The first place of each site counts accesses of one wavefront, whatever their pattern."""
    patterns: Any = np.array(given)
    worst: Any = np.array(told)
    patterns["wavefronts"][:, 0] = patterns["ideal"][:, 0] = 1
    only = (worst["worst"] == 0) & (met[:, 0] > 0)
    for name in ("worst", "worst_ways", "worst_ideal"):
        worst[name][only] = 1
    return patterns, worst


def each_thread(where: bytes, blocks: int, threads: int) -> Records:
    """What threads said of where they wait, themselves or for all of their warp: ``(blocks, threads)``."""
    told: Any = np.frombuffer(where, np.uint32)
    words = told.reshape(blocks, -1, WARP + 1)
    newest: Any = np.maximum(words[:, :, :WARP], words[:, :, WARP:])
    return newest.reshape(blocks, -1)[:, :threads]


def stuck_blocks(where: Records, blocks: Sequence[int]) -> tuple[Stuck, ...]:
    """Who waits where. ``where``: ``(checked blocks, threads)``, epoch << 16 | site, ~0: left, 0: no barrier.

    Threads that reached the newest barrier of their block wait for the others, unless all are there.
    """
    stuck: list[Stuck] = []
    for row, block in zip(where, blocks, strict=True):
        left = row == 0xFFFFFFFF
        alive = row[~left]
        if not len(alive) or (alive == 0).all():
            continue
        newest = (alive >> 16).max()
        waits = alive[alive >> 16 == newest]
        if len(waits) == len(alive) and len(np.unique(waits & 0xFFFF)) == 1 and not left.any():
            continue  # all have come: the block was past it
        waiting: list[tuple[int, int, int]] = []
        for site in np.unique(waits & 0xFFFF).tolist():
            here = np.flatnonzero(~left & (row == (int(newest) << 16 | site)))
            waiting.append((site, len(here), int(here[0])))
        missing = len(alive) > len(waits)
        stuck.append(Stuck(block, tuple(waiting), exited=int(left.sum()), spinning=missing, late=missing))
    return tuple(stuck)


def trapped(where: Records, blocks: Sequence[int], traps: Sequence[int]) -> tuple[Stuck, ...]:
    """Who left at which of the sites ``traps``. ``where``: as of ``stuck_blocks``."""
    found: list[Stuck] = []
    for row, block in zip(where, blocks, strict=True):
        said: Any = np.where((row == 0) | (row == 0xFFFFFFFF), 0x10000, row & 0xFFFF)  # nothing, no site
        here = {site: np.flatnonzero(said == site) for site in traps}
        told = tuple((site, len(who), int(who[0])) for site, who in here.items() if len(who))
        if told:
            found.append(Stuck(block, told, exited=int((row == 0xFFFFFFFF).sum())))
    return tuple(found)


def notes_said(notes: Records) -> tuple[str, ...]:
    """What the detector could not follow."""
    return tuple(text for text, flag in zip(NOTES, notes.tolist(), strict=False) if flag)


def lost_order(notes: Records) -> bool:
    """Whether blocks synchronised in more ways than could be followed."""
    return bool(notes[3])


def executed_sites(marks: Records, meaning: Sequence[Sequence[int]]) -> frozenset[int]:
    """``marks``: a byte a mark, ``meaning``: its sites."""
    return frozenset(
        site for mark, sites in zip(marks.tolist(), meaning, strict=False) if mark for site in sites
    )


def with_fields(values: Mapping[str, int]) -> Records:
    """A control block, ``(1,)``."""
    control = np.zeros(1, CONTROL)
    for name, value in values.items():
        control[name] = value
    return control
