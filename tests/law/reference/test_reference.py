"""The NumPy reference against closed forms: its codec, its samplers, its laws and their epsilon.

Every goodness-of-fit test draws N = 2**20 samples, is seeded, and fails a right sampler with a probability of
at most ALPHA.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from bitldp import reference
from support import oracle

N = 1 << 20
ALPHA = 1e-6
ONE = 1 << 64


@pytest.fixture
def rng(request):
    """Return a generator that is seeded by the name of the test."""
    return np.random.default_rng(list(request.node.name.encode()))


def fits(x, y, law):
    """Say whether inputs `x` and reports `y` together follow a law: a row of probabilities an input."""
    rows, columns = law.shape
    counts = np.bincount(x * columns + y, minlength=rows * columns)
    shares = np.bincount(x, minlength=rows) / len(x)
    joint = (shares[:, None] * law).ravel()
    possible = joint > 0.0
    return not counts[~possible].any() and oracle.p_value(counts[possible], joint[possible]) > ALPHA


def thresholds(*pairs):
    """Turn probabilities that are multiples of 2**-53 into integers over 2**64, exactly."""
    return [(int(p * ONE), int(q * ONE)) for p, q in pairs]


# Codec


@pytest.mark.parametrize("number", [9, 10])
def test_code_words_are_those_of_the_vectors(vectors, number):
    case = vectors[number]
    given, sign = case["inputs"], "bitrand" if number == 9 else "ldpfl"
    bits, integer_bits = given.get("l", given["m"] + given.get("n", 0) + 1), given["m"]
    for dtype in (np.float32, np.float64):
        codes = reference.encode(np.array(given["x"], dtype), bits, integer_bits, sign=sign)
        assert [f"{code:0{bits}b}" for code in codes] == case["expected"]["bits"]
        decoded = reference.decode(codes, bits, integer_bits, sign=sign, dtype=dtype)
        assert decoded.dtype == dtype
        assert decoded.tolist() == case["expected"]["decoded"]
        assert np.signbit(decoded).tolist() == [value < 0 for value in given["x"]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bits", [2, 8, 9, 16, 17, 24, 25, 32])
def test_encoding_saturates_in_every_width(bits, dtype):
    x = np.array([np.inf, 1e30, -1e30, -np.inf, 0.0, -0.0], dtype)
    largest = (1 << bits - 1) - 1
    positive = 1 << bits - 1
    codes = reference.encode(x, bits, 1)
    assert codes.dtype.itemsize * 8 >= bits
    assert codes.tolist() == [positive | largest, positive | largest, largest, largest, positive, positive]


def test_nan_has_no_code():
    with pytest.raises(ValueError, match="x: has a NaN"):
        reference.encode(np.array([1.0, np.nan]), 10, 5)


@pytest.mark.parametrize("bits", [2, 8, 13, 16, 31, 32])
def test_bits_spell_code_words(bits, rng):
    codes = rng.integers(0, 1 << bits, (5, 3), dtype=np.uint64).astype(np.min_scalar_type((1 << bits) - 1))
    strings = reference.bits_of(codes, bits)
    assert strings.dtype == np.uint8
    assert "".join(map(str, strings[1])) == "".join(f"{code:0{bits}b}" for code in codes[1])
    assert np.array_equal(reference.codes_of(strings, bits), codes)


# Laws


def test_a_law_of_bits_is_what_the_oracle_multiplies_out():
    pairs = thresholds((0.75, 0.5), (0.125, 0.375), (0.5, 0.5))
    law = reference.bits_law(pairs)
    expected = oracle.bits_law(pairs)
    assert [[int(entry) for entry in row] for row in law] == [
        [entry * ONE**3 for entry in row] for row in expected
    ]
    assert reference.exact_epsilon(law) == pytest.approx(oracle.epsilon_of(expected), rel=1e-14)


def test_epsilon_of_bits_is_the_sum_of_their_losses():
    pairs = [(0.75, 0.5), (0.125, 0.375), (0.25, 0.75)]
    losses = [max(abs(math.log(p / q)), abs(math.log((1 - p) / (1 - q)))) for p, q in pairs]
    assert reference.exact_epsilon(reference.bits_law(thresholds(*pairs))) == pytest.approx(
        sum(losses), rel=1e-14
    )


def test_epsilon_on_one_hot_strings_is_that_of_two_bits():
    p, q = 0.5, 0.125
    law = reference.unary_law(4, *thresholds((p, q)))
    assert law.shape == (4, 16)
    assert reference.exact_epsilon(law) == pytest.approx(math.log(p * (1 - q) / ((1 - p) * q)), rel=1e-14)


@pytest.mark.parametrize(("cells", "width"), [(2, 1), (7, 3), (12, 4), (12, 11)])
def test_epsilon_of_a_window_is_the_ratio_of_its_two_heights(cells, width):
    high = 0.875
    law = reference.window_law(cells, width, int(high * ONE))
    ratio = high / width * (cells - width) / (1 - high)
    assert reference.exact_epsilon(law) == pytest.approx(abs(math.log(ratio)), rel=1e-14)
    assert {sum(row) for row in law} == {ONE * width * (cells - width)}


def test_a_window_that_is_everything_says_nothing():
    law = reference.window_law(5, 5, ONE)
    assert reference.exact_epsilon(law) == 0.0
    assert reference.probabilities(law).tolist() == [[0.2] * 5] * 5


def test_what_one_input_excludes_costs_everything():
    assert reference.exact_epsilon(reference.bits_law([(ONE, ONE // 2)])) == math.inf
    assert reference.exact_epsilon(reference.window_law(5, 2, ONE)) == math.inf
    # A report that no input allows costs nothing.
    assert reference.exact_epsilon(reference.matrix_law([[0, ONE], [0, ONE]])) == 0.0


def test_a_huge_ratio_has_a_logarithm():
    law = reference.bits_law([(ONE - 1, 1)] * 9)
    assert reference.exact_epsilon(law) == pytest.approx(9 * 64 * math.log(2.0), rel=1e-14)


def test_rows_must_be_distributions():
    with pytest.raises(ValueError, match="row 1"):
        reference.matrix_law([[ONE, 0], [ONE, 1]])
    with pytest.raises(ValueError, match="law"):
        reference.exact_epsilon(np.array([[1, 1], [1, 2]], dtype=object))


# Samplers


def test_flips_follow_their_law(rng):
    flip = [0.125, 0.25, 0.5]
    codes = rng.integers(0, 8, N, dtype=np.uint8)
    law = reference.bits_law(thresholds(*[(1 - chance, chance) for chance in flip]))
    assert fits(codes, reference.flip_bits(codes, flip, rng), reference.probabilities(law))


def test_any_bits_follow_their_law(rng):
    p, q = [0.125, 0.25, 0.5], [0.25, 0.75, 0.125]
    codes = rng.integers(0, 8, N, dtype=np.uint16)
    law = reference.bits_law(thresholds(*zip(p, q, strict=True)))
    assert fits(codes, reference.randomize_bits(codes, p, q, rng), reference.probabilities(law))


def test_features_have_laws_of_their_own(rng):
    p, q = np.array([[0.75, 0.5], [0.25, 1.0]]), np.array([[0.125, 0.25], [0.5, 0.0]])
    codes = rng.integers(0, 4, (N // 2, 2), dtype=np.uint8)
    reports = reference.randomize_bits(codes, p, q, rng)
    flips = reference.flip_bits(codes, q, rng)
    for feature in range(2):
        law = reference.bits_law(thresholds(*zip(p[feature], q[feature], strict=True)))
        assert fits(codes[:, feature], reports[:, feature], reference.probabilities(law))
        law = reference.bits_law(thresholds(*[(1 - chance, chance) for chance in q[feature]]))
        assert fits(codes[:, feature], flips[:, feature], reference.probabilities(law))


def test_one_hot_strings_follow_their_law(rng):
    x = rng.integers(0, 4, N)
    strings = reference.unary(x, 4, 0.5, 0.125, rng)
    assert strings.shape == (N, 4)
    law = reference.probabilities(reference.unary_law(4, *thresholds((0.5, 0.125))))
    assert fits(x, reference.codes_of(strings, 4).ravel(), law)


def test_grr_follows_its_law(rng):
    x = rng.integers(0, 6, N, dtype=np.uint8)
    law = reference.window_law(6, 1, int(0.375 * ONE))
    assert fits(x, reference.grr(x, 6, 0.375, rng), reference.probabilities(law))


def test_joint_windows_follow_their_law(rng):
    """Two numbers of 3 points, of which a report is near in 3 of 5 cells each."""
    x = rng.integers(0, 3, (N, 2))
    reports = reference.joint_window(x, 3, 1, 0.625, rng)
    near = np.abs(np.arange(5) - np.arange(1, 4)[:, None]) <= 1
    law = 0.625 / 9 * np.kron(near, near) + 0.375 / 25
    assert fits(x @ [3, 1], reports @ [5, 1], law)


@pytest.mark.parametrize(("cells", "width"), [(9, 3), (9, 4), (10, 9)])
def test_windows_follow_their_law(cells, width, rng):
    x = rng.integers(0, cells, N, dtype=np.uint16)
    law = reference.probabilities(reference.window_law(cells, width, int(0.75 * ONE)))
    assert fits(x, reference.window(x, cells, width, 0.75, rng), law)


def test_windows_by_order_follow_their_law(rng):
    order = np.stack([rng.permutation(7) for _ in range(7)]).astype(np.uint16)
    x = rng.integers(0, 7, N, dtype=np.uint16)
    law = reference.probabilities(reference.window_law(7, 3, int(0.75 * ONE), order))
    assert fits(x, reference.ordered_window(x, order, 3, 0.75, rng), law)


@pytest.mark.parametrize("way", ["alias", "inversion"])
def test_tables_follow_their_law(way, rng):
    law = rng.random((5, 9))
    law[1, 3] = law[4, 0] = 0.0
    law /= law.sum(axis=1, keepdims=True)
    x = rng.integers(0, 5, N)
    if way == "alias":
        y = reference.matrix_alias(x, reference.alias_table(law), rng)
    else:
        y = reference.matrix_inversion(x, law, rng)
    assert not np.any((x == 1) & (y == 3))
    assert fits(x, y, law)


def test_an_alias_table_adds_up_to_its_law(rng):
    law = rng.dirichlet(np.full(12, 0.3), 8)
    threshold, alias = reference.alias_table(law)
    rebuilt = threshold / 12
    for row in range(8):
        np.add.at(rebuilt[row], alias[row], (1.0 - threshold[row]) / 12)
    np.testing.assert_allclose(rebuilt, law, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dither_keeps_the_mean(dtype, rng):
    values = np.array([-3.0, -1.0, -0.9, 0.3, 0.998, 1.0, 5.0], dtype)
    x = np.repeat(values, N // 8)
    index = reference.dither(x, 5, -1.0, 1.0, rng).reshape(len(values), -1)
    position = (np.clip(values.astype(np.float64), -1.0, 1.0) + 1.0) * 2.0
    below = np.floor(position)
    assert index.min() == 0
    assert index.max() == 4
    for row, at, low in zip(index, position, below, strict=True):
        assert set(np.unique(row)) <= {low, low + 1}
        up = at - low
        assert abs(np.mean(row) - at) <= 6.0 * math.sqrt(up * (1 - up) / row.size) + 1e-6
