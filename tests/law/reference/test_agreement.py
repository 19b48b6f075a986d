"""The samplers of the extension against the NumPy reference: the same codec, the same laws, the same epsilon.

Two-sample tests compare N = 2**20 reports of each; goodness-of-fit tests compare N reports with the law of
the channel's own integers. All are seeded, and each fails right samplers with a probability of at most ALPHA.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from bitldp import reference
from bitldp._core import Bits, FixedPoint, Grid, Matrix, Unary, Window
from scipy import stats
from support import oracle

N = 1 << 20
ALPHA = 1e-6
ONE = 1 << 64


@pytest.fixture
def rng(request):
    """Return a generator that is seeded by the name of the test."""
    return np.random.default_rng(list(request.node.name.encode()))


def cells(x, y, shape):
    """Count how often each report goes with each input."""
    return np.bincount(x.astype(np.intp) * shape[1] + y, minlength=shape[0] * shape[1])


def agree(ours, theirs, x, law):
    """Say whether two samples of reports on the same inputs agree, and ours with the law, zeros included."""
    first, second = cells(x, ours, law.shape), cells(x, theirs, law.shape)
    possible = (law > 0.0).ravel()
    if first[~possible].any() or second[~possible].any():
        return False
    together = np.stack([first, second])[:, possible]
    joint = ((np.bincount(x, minlength=len(law)) / len(x))[:, None] * law).ravel()[possible]
    two_samples = stats.chi2_contingency(together[:, together.any(axis=0)]).pvalue
    return two_samples > ALPHA and oracle.p_value(first[possible], joint) > ALPHA


def rounds_up(exact, enumerated):
    """Say whether an epsilon is the enumerated one, or above it by rounding."""
    return exact == enumerated or 0.0 <= exact - enumerated * (1 - 1e-15) <= 1e-12 * exact


def floats(channel):
    """Return p and q of a channel with one law."""
    return np.array(channel.thresholds()[0], dtype=object).T.astype(np.float64) / ONE


# Codec


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sign", ["bitrand", "ldpfl"])
@pytest.mark.parametrize(
    ("bits", "integer_bits"), [(2, 0), (2, 1), (8, 7), (10, 5), (17, 0), (25, 3), (32, 31), (32, 4)]
)
def test_codes_and_values_are_the_same(bits, integer_bits, sign, dtype, rng):
    codec = FixedPoint(bits, integer_bits=integer_bits, sign=sign)
    step = 2.0 ** (integer_bits + 1 - bits)
    ties = np.arange(-6, 7) * step
    x = np.concatenate(
        [
            rng.normal(0.0, 2.0**integer_bits, 10_000),
            rng.normal(0.0, step, 1000),
            [*ties, *np.nextafter(ties, 1.0), *np.nextafter(ties, -1.0)],
            [0.0, -0.0, 5e-324, -5e-324, codec.limit, -codec.limit, 1e38, -1e38],
        ]
    ).astype(dtype)
    codes = reference.encode(x, bits, integer_bits, sign=sign)
    assert np.array_equal(codec.encode(x), codes)
    assert codec.encode(x).dtype == codes.dtype
    for to in (np.float32, np.float64):
        ours = codec.decode(codes, to)
        theirs = reference.decode(codes, bits, integer_bits, sign=sign, dtype=to)
        assert np.array_equal(ours, theirs)
        assert np.array_equal(np.signbit(ours), np.signbit(theirs))


# Bits


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ([0.7, 0.6, 0.52], [0.3, 0.4, 0.48]),  # symmetric
        ([0.5, 0.9, 0.05], [0.2, 0.9, 0.6]),
        ([1.0, 0.75, 0.0], [0.5, 0.0, 0.25]),  # certain answers
        ([1e-4, 0.9999, 0.5], [2e-4, 0.999, 0.5]),
    ],
)
def test_bits_sample_their_law(p, q, rng):
    channel = Bits([p], [q], 1)
    codes = rng.integers(0, 8, N, dtype=np.uint8)
    law = reference.bits_law(channel.thresholds()[0])
    ours = channel.randomize(codes, None, rng.bytes(32), "codes", None, None, 0)
    theirs = reference.randomize_bits(codes, *floats(channel), rng)
    assert agree(ours, theirs, codes, reference.probabilities(law))
    assert all(rounds_up(exact, reference.exact_epsilon(law)) for exact in channel.epsilon[1:])


@pytest.mark.parametrize("bits", [2, 8, 9, 10, 12])
def test_flip_masks_are_a_product(bits, rng):
    q = np.linspace(0.29, 0.52, bits)
    channel = Bits([1.0 - q], [q], 4)
    codes = rng.integers(0, 1 << bits, (N // 4, 4), dtype=np.min_scalar_type((1 << bits) - 1))
    ours = channel.randomize(codes, None, rng.bytes(32), "codes", None, None, 0) ^ codes
    _, chances = floats(channel)
    theirs = reference.flip_bits(codes, chances, rng) ^ codes
    law = functools.reduce(np.kron, [[1.0 - chance, chance] for chance in chances])
    assert agree(ours.ravel(), theirs.ravel(), np.zeros(N, dtype=np.intp), law[None])


def test_a_record_of_several_laws_samples_each(rng):
    p, q = [[0.8, 0.6], [0.3, 0.55]], [[0.2, 0.4], [0.1, 0.95]]
    channel = Bits(p, q, 3, [1, 0, 1])
    of_feature = [channel.thresholds()[law] for law in (1, 0, 1)]
    codes = rng.integers(0, 4, (N, 3), dtype=np.uint8)
    ours = channel.randomize(codes, None, rng.bytes(32), "codes", None, None, 0)
    chances = np.array(of_feature, dtype=object).astype(np.float64) / ONE
    theirs = reference.randomize_bits(codes, chances[..., 0], chances[..., 1], rng)
    law = reference.bits_law([pair for feature in of_feature for pair in feature])
    x, y, z = (array.astype(np.intp) @ [16, 4, 1] for array in (codes, ours, theirs))
    assert agree(y, z, x, reference.probabilities(law))
    bit, feature, record = channel.epsilon
    singles = [reference.exact_epsilon(reference.bits_law([pair])) for pairs in of_feature for pair in pairs]
    features = [reference.exact_epsilon(reference.bits_law(pairs)) for pairs in of_feature]
    assert rounds_up(bit, max(singles))
    assert rounds_up(feature, max(features))
    assert rounds_up(record, reference.exact_epsilon(law))


# One-hot strings


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.12), (0.73, 0.27), (1.0, 0.4), (0.2, 0.6)])
def test_unary_encodings_sample_their_law(p, q, rng):
    channel = Unary(5, p, q)
    x = rng.integers(0, 5, N, dtype=np.uint8)
    law = reference.unary_law(5, channel.thresholds())
    ours = channel.randomize(x, rng.bytes(32), "bits", None, None, 0)
    theirs = reference.unary(x, 5, *(threshold / ONE for threshold in channel.thresholds()), rng)
    words = [reference.codes_of(strings, 5).ravel() for strings in (ours, theirs)]
    assert agree(*words, x, reference.probabilities(law))
    assert rounds_up(channel.epsilon[1], reference.exact_epsilon(law))


# Windows


@pytest.mark.parametrize(
    ("count", "width", "high"),
    [
        (2, 1, 0.7),
        (6, 1, 0.4),
        (12, 5, 0.8),
        (12, 6, 0.3),
        (7, 6, 0.9),
        (11, 4, 1.0),
        (11, 4, 0.0),
    ],
)
def test_windows_sample_their_law(count, width, high, rng):
    channel = Window(count, width, high)
    x = rng.integers(0, count, N, dtype=np.uint16)
    law = reference.window_law(count, width, channel.high)
    ours = channel.randomize(x, None, None, rng.bytes(32), "codes", None, None, 0)
    theirs = reference.window(x, count, width, channel.high / ONE, rng)
    assert agree(ours, theirs, x, reference.probabilities(law))
    np.testing.assert_allclose(channel.probabilities(), reference.probabilities(law), rtol=1e-15, atol=0.0)
    assert [channel.start(cell) for cell in range(count)] == reference.window_starts(
        np.arange(count), count, width
    ).tolist()
    assert rounds_up(channel.epsilon, reference.exact_epsilon(law))


@pytest.mark.slow
def test_large_windows_sample_their_law(rng):
    channel = Window(1000, 268, 0.73)
    x = np.full(N, 20, dtype=np.uint16)
    ours = channel.randomize(x, None, None, rng.bytes(32), "codes", None, None, 0)
    theirs = reference.window(x, 1000, 268, channel.high / ONE, rng)
    law = reference.probabilities(reference.window_law(1000, 268, channel.high))
    assert agree(ours, theirs, np.zeros(N, dtype=np.intp), law[20:21])


def test_windows_by_order_sample_their_law(rng):
    order = np.stack([rng.permutation(8) for _ in range(8)]).astype(np.uint16)
    channel = Window(8, 3, 0.6, order)
    x = rng.integers(0, 8, N, dtype=np.uint8)
    law = reference.window_law(8, 3, channel.high, order)
    ours = channel.randomize(x, None, None, rng.bytes(32), "codes", None, None, 0)
    theirs = reference.ordered_window(x, order, 3, channel.high / ONE, rng)
    assert agree(ours, theirs, x, reference.probabilities(law))
    assert rounds_up(channel.epsilon, reference.exact_epsilon(law))


# Tables


@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (4, 6), (8, 32), (20, 40)])
def test_matrices_sample_their_law(rows, columns, rng):
    table = rng.dirichlet(np.full(columns, 2.0), rows)
    channel = Matrix(table)
    law = reference.matrix_law(channel.weights())
    x = rng.integers(0, rows, N, dtype=np.uint16)
    ours = channel.randomize(x, None, None, rng.bytes(32), "codes", None, None, 0)
    for theirs in (
        reference.matrix_alias(x.astype(np.intp), reference.alias_table(table), rng),
        reference.matrix_inversion(x.astype(np.intp), table, rng),
    ):
        assert agree(ours, theirs, x, reference.probabilities(law))
    np.testing.assert_allclose(channel.probabilities(), table, atol=1e-15)
    assert rounds_up(channel.epsilon, reference.exact_epsilon(law))


def test_a_matrix_with_zeros_never_reports_them(rng):
    channel = Matrix(np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [0.0, 1.0, 0.0]]))
    x = rng.integers(0, 3, N, dtype=np.uint8)
    law = reference.matrix_law(channel.weights())
    ours = channel.randomize(x, None, None, rng.bytes(32), "codes", None, None, 0)
    theirs = reference.matrix_inversion(x.astype(np.intp), channel.probabilities(), rng)
    assert agree(ours, theirs, x, reference.probabilities(law))
    assert channel.epsilon == reference.exact_epsilon(law) == math.inf


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dithered_inputs_sample_the_mixture_of_two_rows(dtype, rng):
    table = rng.dirichlet(np.full(6, 2.0), 5)
    channel, grid = Matrix(table), Grid(5, low=-1.0, high=3.0)
    values = np.array([-1.0, -0.6, 0.0, 0.25, 1.5, 2.999, 3.0], dtype)
    x = rng.integers(0, len(values), N)
    ours = channel.randomize(values[x], grid, None, rng.bytes(32), "codes", None, None, 0)
    rows = reference.dither(values[x], 5, -1.0, 3.0, rng)
    theirs = reference.matrix_alias(rows, reference.alias_table(table), rng)
    place = values.astype(np.float64) + 1.0
    below = np.minimum(np.floor(place).astype(np.intp), 3)
    up = (place - below)[:, None]
    mixture = (1.0 - up) * channel.probabilities()[below] + up * channel.probabilities()[below + 1]
    assert agree(ours, theirs, x, mixture)
