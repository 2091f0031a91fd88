"""What the detector's records mean."""

from __future__ import annotations

import re

import numpy as np

from cuda_lsp.dynamic.gpu import records
from cuda_lsp.dynamic.gpu.records import AddressBook, Extent
from cuda_lsp.dynamic.instrumentation.detector import SOURCE
from cuda_lsp.dynamic.runs import Place, PtxSite, SiteKind
from cuda_lsp.model import Mode, Space

BOOK = AddressBook((Extent("tile", 1024, 2048),), (Extent("out", 1 << 40, (1 << 40) + 64),))


def test_an_address_is_named_by_the_array_that_holds_it() -> None:
    assert BOOK.place(False, 1028) == Place(Space.SHARED, "tile", 4)
    assert BOOK.place(True, (1 << 40) + 8) == Place(Space.GLOBAL, "out", 8)
    assert BOOK.place(False, 4096) == Place(Space.SHARED, None, 4096)


def test_a_race_record_becomes_a_race() -> None:
    table = np.zeros(4, records.RACE)
    table[2]["key"] = (1 << 32 | 3) + 1
    table[2]["address"] = 1032
    table[2]["threads"], table[2]["ready"], table[2]["different"] = (5, 6), 1, 0
    table[2]["pairs"][0], table[2]["words"][7] = 0b111, 1
    modes = (Mode.READ, Mode.WRITE, Mode.READ, Mode.READ)
    sites = [PtxSite("k", i, SiteKind.ACCESS, "", None, mode) for i, mode in enumerate(modes)]
    (race,) = records.seen_races(table, sites, BOOK)
    assert (race.sites, race.modes, race.threads) == ((1, 3), (Mode.WRITE, Mode.READ), (5, 6))
    assert (race.pairs, race.words, race.same_value) == (3, 1, True)
    assert race.place == Place(Space.SHARED, "tile", 8)


def test_who_waits_and_who_is_missing() -> None:
    waiting, gone, none = 3 << 16 | 7, 0xFFFFFFFF, 0
    where = np.array([[waiting, waiting, none, gone], [waiting] * 4, [gone] * 4], np.uint32)
    (stuck,) = records.stuck_blocks(where, (0, 1, 2))
    assert (stuck.block, stuck.waiting, stuck.exited, stuck.spinning) == (0, ((7, 2, 0),), 1, True)


def test_bank_sums_are_added_over_their_copies() -> None:
    sums = np.zeros(2 * records.BANK_COPIES, records.BANK_SUM)
    sums["executions"][records.BANK_COPIES :] = 1
    sums["wavefronts"][records.BANK_COPIES :] = 2
    patterns, hits = np.zeros((2, 8), records.PATTERN), np.zeros((2, 4, 8), np.uint64)
    (seen,) = records.seen_banks(np.zeros(2, records.BANK), sums, patterns, hits, {})
    assert (seen.site, seen.executions, seen.wavefronts) == (1, records.BANK_COPIES, 2 * records.BANK_COPIES)


def test_the_control_block_has_the_fields_of_the_cuda_source_in_order() -> None:
    text = SOURCE.read_text()
    body = text[text.index("struct Control {") : text.index("};", text.index("struct Control {"))]
    body = re.sub(r"//[^\n]*", "", body.split("{", 1)[1])
    declared = [
        re.sub(r"\[.*?\]", "", name).split()[-1].lstrip("*")
        for line in body.split(";")
        for name in line.split(",")
        if name.strip()
    ]
    assert declared == list(records.control_offsets())
