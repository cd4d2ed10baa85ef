"""FP8: every number E4M3 has, rounding, and scales a block."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.errors import RoundelayError
from roundelay.moe import BLOCK, from_fp8, to_fp8
from roundelay.moe.fp8 import decode, encode


def value(byte):
    """By the format's definition: sign, four bits of exponent with bias 7, three of mantissa."""
    exponent, mantissa = byte >> 3 & 15, byte & 7
    size = Fraction(8 + mantissa, 8) * Fraction(2) ** (exponent - 7)
    if exponent == 0:
        size = Fraction(mantissa, 8) / 64
    return -size if byte & 128 else size


NUMBERS = [b for b in range(256) if b & 127 != 127]
POSITIVE = sorted(value(b) for b in NUMBERS if b < 128)


def test_every_number():
    every = np.arange(256, dtype=np.uint8)
    assert [Fraction(float(v)) for v in decode(every[NUMBERS])] == [value(b) for b in NUMBERS]
    assert np.isnan(decode(np.array([127, 255], np.uint8))).all()
    assert encode(decode(every[NUMBERS])).tolist() == NUMBERS
    assert encode(np.array([np.nan], np.float32)) & 127 == 127
    assert max(POSITIVE) == 448


@given(st.floats(-1000, 1000, width=32))
def test_the_nearest_with_ties_to_even(x):
    found = Fraction(float(decode(encode(np.array([x], np.float32)))[0]))
    size = abs(Fraction(x))
    nearest = min(POSITIVE, key=lambda v: (abs(v - size), POSITIVE.index(v) % 2))
    assert abs(found) == nearest


@given(st.integers(0, 4), st.integers(1, 300), st.integers(0, 99))
def test_rows_come_back_as_near_as_three_bits_allow(rows, columns, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns)) * 10.0 ** rng.integers(-6, 6, (rows, 1))
    codes, scales = to_fp8(x)
    assert (codes.dtype, codes.shape) == (np.uint8, x.shape)
    assert scales.shape == (rows, -(-columns // BLOCK))
    assert scales.dtype == np.float32
    back = from_fp8(codes, scales)
    step = np.repeat(scales, BLOCK, axis=1)[:, :columns]
    # Half a step of three bits, or half the smallest number.
    assert (np.abs(back - x) <= np.maximum(np.abs(x) / 16, step / 1024) * (1 + 1e-5)).all()


def test_zeros_and_tiny_numbers():
    assert (from_fp8(*to_fp8(np.zeros((2, 130)))) == 0).all()
    tiny = np.full((1, 128), 1e-42, np.float32)
    assert np.isfinite(from_fp8(*to_fp8(tiny))).all()


@pytest.mark.parametrize("x", [np.zeros(3), np.zeros((2, 2), int)], ids=["flat", "whole"])
def test_what_is_no_rows_of_floats(x):
    with pytest.raises(RoundelayError, match="expected rows of floats"):
        to_fp8(x)
