"""What racecheck prints is read: an access, then each that it races with."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from racecheck import chosen, reported

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


def test_each_access_below_races_with_the_first():
    assert reported(REPORT, "tile.cu") == {(9, 12), (12, 12)}
    assert (
        reported("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)", "a.cu") == set()
    )


def test_every_timed_kernel_has_a_racy_variant():
    racy = {launch.kernel for launch, case in chosen() if case.races and case.removed}
    assert racy == {launch.kernel for launch, case in chosen() if case.removed is None}
    assert len(racy) == 6
