"""The wavefront rule on patterns whose cost was read from an H200's counters."""

import numpy as np
import pytest

from cuda_lsp.wavefronts import warp_wavefronts

LANES = np.arange(32, dtype=np.int64)


@pytest.mark.parametrize(
    ("addresses", "size", "load", "wavefronts", "ideal"),
    [
        (LANES * 4, 4, True, 1, 1),  # one word a bank
        (LANES * 0, 4, True, 1, 1),  # broadcast
        (LANES * 128, 4, True, 32, 1),  # a column of a 32-wide tile
        (LANES * 132, 4, True, 1, 1),  # the same column, padded
        (LANES, 1, True, 1, 1),  # four lanes share a word
        (LANES * 8, 8, True, 2, 2),  # two half-warps
        (LANES // 2 * 8, 8, True, 1, 1),  # equal lane pairs merge the halves
        (LANES // 2 * 8, 8, False, 2, 2),  # a store does not merge
        (LANES * 16, 16, True, 4, 4),
    ],
)
def test_wavefronts_of_one_warp(addresses, size, load, wavefronts, ideal):
    cost = warp_wavefronts(addresses[None], np.ones((1, 32), bool), size, load=load)
    assert (cost.wavefronts[0], cost.ideal[0]) == (wavefronts, ideal)


def test_inactive_lanes_cost_nothing():
    active = (LANES < 4)[None]
    cost = warp_wavefronts((LANES * 128)[None], active, 4, load=True)
    assert cost.wavefronts[0] == 4 and cost.histogram[0].sum() == 4
