"""Arithmetic that is rounded once, against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cuda_lsp.dynamic.emulator.rounding import fma

ULP = 2.0**-23
CASES = [
    (1.0 + ULP, 1.0 + ULP, 1.0),
    (1.0, 2.0**-24, 1.0),  # in the middle: to even
    (1.0 + ULP, 2.0**-24, 1.0),  # a little more
    (1.0 - ULP / 2, 2.0**-24, 1.0),  # a little less
    (1.0 + ULP, -(2.0**-24), 1.0 + ULP),
    (2.0**-70, 2.0**-70, 1.0 + ULP),  # nothing to double precision
    (2.0**-70, 2.0**-70, 2.0**-24 + 1.0),
    (2.0**-100, 2.0**-49, 2.0**-149),  # subnormal, in the middle
    (2.0**-100, 2.0**-50 * (1 + ULP), 0.0),
    (3.0, 2.0**-149, -(2.0**-148)),
]


def nearest(exact: Fraction) -> np.float32:
    """Of numbers in the range of ``f32``."""
    about = np.float32(float(exact))
    around = [np.nextafter(about, np.float32(-np.inf)), about, np.nextafter(about, np.float32(np.inf))]
    return min(around, key=lambda f: (abs(Fraction(float(f)) - exact), int(f.view(np.uint32)) & 1))


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(("x", "y", "z"), CASES)
def test_a_fused_multiplication_and_addition_is_rounded_once(x, y, z, alone) -> None:
    a, b, c = (np.float32(v) for v in (x, y, z))
    expected = nearest(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))
    given = (a, b, c) if alone else (np.array([a, 2, 3], np.float32), b, np.array([c, 4, 5], np.float32))
    found = np.asarray(fma(*given)).ravel()
    assert found[0] == expected
    assert found.dtype == np.float32
