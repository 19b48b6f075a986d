"""The channels by themselves: Matrix with and without a grid, and what all four have in common."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from bitldp import Bits, Cube, FixedPoint, Grid, Matrix, Select, Shift, Unary, Window, pack, unpack
from bitldp._core import log_ratio
from support import oracle

ALPHA = 1e-6  # of each goodness-of-fit test; the keys are fixed
N = 1 << 20
KEY = bytes(range(32))
TABLE = np.array([[0.5, 0.25, 0.125, 0.125], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]])


def run(channel, x, grid=None, letters=None, output="codes", threads=None, first_chunk=0):
    return channel.randomize(x, grid, letters, KEY, output, None, threads, first_chunk)


@pytest.mark.parametrize("columns", [2, 5, 40, 256])
def test_goodness_of_fit_of_matrix(columns):
    """Chi-squared over all reports of an input, n = 2^20, alpha = 1e-6."""
    table = np.random.default_rng(columns).random((7, columns)) + 0.1
    channel = Matrix(table / table.sum(axis=1, keepdims=True))
    law = np.array(channel.weights(), dtype=np.float64) / oracle.ONE
    np.testing.assert_allclose(channel.probabilities(), law, rtol=1e-15)
    for x in (0, 6):
        counts = np.bincount(run(channel, np.full(N, x)), minlength=columns)
        assert oracle.p_value(counts, law[x]) > ALPHA


def test_goodness_of_fit_of_dither():
    """Chi-squared of a real input between two rows, n = 2^20, alpha = 1e-6."""
    grid = Grid(3, low=-1.0, high=1.0, rounding="dither")
    channel = Matrix(TABLE)
    for value, mixed in ((-0.25, 0.25 * TABLE[0] + 0.75 * TABLE[1]), (0.9, 0.1 * TABLE[1] + 0.9 * TABLE[2])):
        counts = np.bincount(run(channel, np.full(N, value), grid), minlength=4)
        assert oracle.p_value(counts, mixed) > ALPHA
    assert oracle.p_value(np.bincount(run(channel, np.full(N, 0.0), grid), minlength=4), TABLE[1]) > ALPHA


def test_goodness_of_fit_of_a_dithered_window():
    """Chi-squared of a real input between two windows, n = 2^20, alpha = 1e-6."""
    grid = Grid(9, low=0.0, high=8.0, rounding="dither")
    channel = Window(9, 3, 0.7)
    law = channel.probabilities()
    counts = np.bincount(run(channel, np.full(N, 4.25), grid), minlength=9)
    assert oracle.p_value(counts, 0.75 * law[4] + 0.25 * law[5]) > ALPHA


def test_matrix_by_enumeration():
    rng = np.random.default_rng(1)
    for rows, columns in ((2, 2), (3, 5), (12, 12)):
        table = rng.random((rows, columns)) + 0.01
        channel = Matrix(table / table.sum(axis=1, keepdims=True))
        weights = channel.weights()
        assert all(sum(row) == oracle.ONE for row in weights)
        exact = oracle.epsilon_of([[Fraction(weight, oracle.ONE) for weight in row] for row in weights])
        assert exact <= channel.epsilon <= exact * (1 + 1e-12)
    assert Matrix(np.array([[1.0, 0.0], [0.5, 0.5]])).epsilon == math.inf
    assert Matrix(np.array([[0.0, 1.0], [0.0, 1.0]])).epsilon == 0.0


def test_letters():
    letters = np.array([-2.5, 0.0, 1.0, 7.25])
    codes = run(Matrix(TABLE), np.arange(300) % 3)
    np.testing.assert_array_equal(
        run(Matrix(TABLE), np.arange(300) % 3, None, letters, "values"), letters[codes]
    )
    packed = run(Matrix(TABLE), np.arange(300) % 3, output="packed")
    assert len(packed) == 75


@pytest.mark.parametrize(
    "table",
    [
        np.array([[0.5, 0.4]]),
        np.array([[0.5, -0.1, 0.6]]),
        np.array([[np.nan, 1.0]]),
        np.array([0.5, 0.5]),
        np.zeros((0, 2)),
    ],
    ids=["sum", "negative", "nan", "flat", "empty"],
)
def test_bad_tables(table):
    with pytest.raises((ValueError, TypeError)):
        Matrix(table)


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf])
def test_bad_probabilities(bad):
    for build in (
        lambda: Bits([[bad]], [[0.5]], 1),
        lambda: Bits([[0.5]], [[bad]], 1),
        lambda: Unary(3, bad, 0.5),
        lambda: Unary(3, 0.5, bad),
        lambda: Window(3, 1, bad),
    ):
        with pytest.raises(ValueError, match=r"p|q|high"):
            build()


def test_probabilities_are_rounded_toward_privacy():
    """Toward each other (p and q) or width/cells (the window): never a larger epsilon than asked for."""
    tiny = 2.0**-70
    ((p, q),) = Bits([[0.5]], [[tiny]], 1).thresholds()[0]
    assert (p, q) == (oracle.ONE // 2, 1)
    p, q = Unary(3, tiny, 0.25).thresholds()
    assert (p, q) == (1, oracle.ONE // 4)
    assert Window(4, 1, tiny).high == 1
    assert Window(4, 1, 0.3).high == int(Fraction(0.3) * oracle.ONE)


def test_channels_are_pickled_by_their_law():
    for channel in (
        Bits([[0.75, 0.6]], [[0.25, 0.3]], 3),
        Bits([[0.75], [0.6]], [[0.25], [0.3]], 3, [0, 1, 0]),
        Unary(5, 0.5, 0.2),
        Window(7, 3, 0.8),
        Window(3, 1, 0.8, np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]], np.uint16)),
        Matrix(TABLE),
    ):
        again = pickle.loads(pickle.dumps(channel))
        assert again.epsilon == channel.epsilon
        x = np.zeros((5, 3), np.uint8) if isinstance(channel, Bits) else np.zeros(5, np.uint8)
        if isinstance(channel, Unary):
            arguments = (x, KEY, "bits", None, None, 0)
        else:
            arguments = (
                x,
                None,
                *([None] if not isinstance(channel, Bits) else []),
                KEY,
                "codes",
                None,
                None,
                0,
            )
        np.testing.assert_array_equal(again.randomize(*arguments), channel.randomize(*arguments))


def test_log_ratio_is_rounded_up():
    for numerator, denominator in ((3, 2), (oracle.ONE, 1), (oracle.ONE // 2 + 1, oracle.ONE // 2), (7, 7)):
        exact = oracle.log_ratio(Fraction(numerator, denominator))
        assert exact <= log_ratio(numerator, denominator) <= exact * (1 + 1e-14)
    assert log_ratio(1, 0) == math.inf


HUGE = 1 << 70
SHIFT = (3, 3, [oracle.ONE // 4, oracle.ONE // 2, oracle.ONE // 4])


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("cells", lambda n: Window(n, 1, 0.5)),
        ("width", lambda n: Window(3, n, 0.5)),
        ("categories", lambda n: Unary(n, 0.5, 0.5)),
        ("features", lambda n: Bits([[0.5]], [[0.5]], n)),
        ("pattern", lambda n: Bits([[0.5]], [[0.5]], 1, [n])),
        ("inputs", lambda n: Shift(n, *SHIFT[1:])),
        ("outputs", lambda n: Shift(3, n, SHIFT[2])),
        ("offset", lambda n: Shift(*SHIFT, offset=n)),
        ("bits", lambda n: Cube(n, 1, 0, 1)),
        ("points", lambda n: Grid(n, low=0.0, high=1.0)),
        ("bits", lambda n: FixedPoint(bits=n, integer_bits=0)),
        ("bits", lambda n: pack(np.zeros(3, np.uint8), n)),
        ("count", lambda n: unpack(np.zeros(3, np.uint8), 8, n)),
        ("x", lambda n: Window(3, 1, 0.5).start(n)),
        ("threads", lambda n: run(Window(3, 1, 0.5), np.zeros(3, np.uint8), threads=n)),
        ("first_chunk", lambda n: run(Window(3, 1, 0.5), np.zeros(3, np.uint8), first_chunk=n)),
    ],
)
@pytest.mark.parametrize("number", [HUGE, -HUGE])
def test_integers_beyond_64_bits_are_refused_by_name(name, call, number):
    with pytest.raises(ValueError, match=f"^{name}: an integer below -2\\*\\*63 or above"):
        call(number)


@pytest.mark.parametrize("number", [1 << 128, -1, -HUGE])
def test_weights_that_are_none_are_refused_by_name(number):
    for name, call in [
        ("weights", lambda: Shift(3, 3, [number, 1, 1])),
        ("weights", lambda: Matrix.from_weights([[oracle.ONE, number]])),
        ("high", lambda: Cube(5, 3, 2, number)),
        ("high", lambda: Cube(5, 3, 2, 1).with_high(number)),
        ("nothing", lambda: Select(np.ones(1, np.uint32), np.ones(1, np.uint64), number)),
    ]:
        with pytest.raises(ValueError, match=f"^{name}: "):
            call()


def test_what_64_bits_hold_and_an_argument_does_not_is_refused_with_its_range():
    with pytest.raises(ValueError, match=r"^cells: -1 is not allowed; it is a number from 0 up$"):
        Window(-1, 1, 0.5)
    with pytest.raises(ValueError, match=r"^cells: 4294967296 is not allowed; it is a number of 32 bits$"):
        Window(1 << 32, 1, 0.5)
    with pytest.raises(
        ValueError, match=r"^offset: -1099511627776 is not allowed; it is a number of 32 bits$"
    ):
        Shift(*SHIFT, offset=-(1 << 40))
    with pytest.raises(TypeError, match=r"cells"):
        Window(3.0, 1, 0.5)
