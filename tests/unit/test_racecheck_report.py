"""What racecheck prints is read: an access, then each that it races with."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from racecheck import Told, chosen

REPORT = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at tile(float *, const float *)+0x2d0 in tile.cu:12
=========     and Read access at tile(float *, const float *)+0x410 in tile.cu:9 [512 hazards]
=========     and Write access at tile(float *, const float *)+0x2d0 in tile.cu:12 [3 hazards]
=========
========= Warning: Race reported between Read access at helper(int)+0x10 in helper.h:3
=========     and Write access at tile(float *, const float *)+0x2d0 in tile.cu:12 [1 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""


HAZARDS = """\
========= Error: Potential WAR hazard detected at __shared__ 0x500 in block (0,0,0) :
=========     Read Thread (0,0,0) at file::tile(float *, const float *)+0x110 in tile.cu:40
=========     Write Thread (64,0,0) at file::tile(float *, const float *)+0x140 in tile.cu:37
=========     Current Value : 0, Incoming Value : 192
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x9649] in tile
=========
2.953504 no error
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def test_each_access_below_races_with_the_first():
    told = Told.read(REPORT.splitlines(), "tile.cu")
    assert told.pairs == {(9, 12), (12, 12)}
    assert told.summary == "2 hazards displayed (1 error, 1 warning)"


def test_hazards_told_one_by_one():
    told = Told.read(HAZARDS.splitlines(), "tile.cu")
    assert told.pairs == {(37, 40)}
    assert told.ms == 2.953504


def test_every_timed_kernel_has_a_racy_variant():
    racy = {launch.kernel for launch, case in chosen() if case.races and case.removed}
    assert racy == {launch.kernel for launch, case in chosen() if case.removed is None}
    assert len(racy) == 6
