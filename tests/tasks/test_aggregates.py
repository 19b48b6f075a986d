"""Central epsilon of sums and histograms: against enumeration, dp_accounting and the local law."""

from __future__ import annotations

import itertools
import math

import bitldp
import numpy as np
import pytest
from bitldp.amplification import (
    shuffled_central_epsilon,
    shuffled_histogram_central_delta,
    shuffled_histogram_central_epsilon,
    summed_central_delta,
    summed_central_epsilon,
)
from bitldp.amplification.blankets import blanketed, of_rows
from bitldp.amplification.sums import clamped, noised
from bitldp.amplification.sums import summed as clamped_sum
from bitldp.channels import Matrix, Shift
from bitldp.channels.noise import gaussian_weights, geometric_weights
from scipy import signal


def seen(rows, records, summed):
    """Return the law of what is seen of some records, by enumeration of all reports."""
    found = {}
    for reports in itertools.product(range(rows.shape[1]), repeat=len(records)):
        key = sum(reports) if summed else tuple(sorted(reports))
        chance = math.prod(rows[record, report] for record, report in zip(records, reports, strict=True))
        found[key] = found.get(key, 0.0) + chance
    return found


def enumerated(rows, n, summed, epsilon):
    """Return delta at epsilon over all neighbouring data sets, by enumeration."""
    worst = 0.0
    for others in itertools.combinations_with_replacement(range(len(rows)), n - 1):
        laws = [seen(rows, (x, *others), summed) for x in range(len(rows))]
        for one, other in itertools.permutations(laws, 2):
            gap = sum(max(chance - math.exp(epsilon) * other[key], 0.0) for key, chance in one.items())
            worst = max(worst, gap)
    return worst


def epsilon_of(rows, n, summed, delta, high):
    low = 0.0
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (low, middle) if enumerated(rows, n, summed, middle) <= delta else (middle, high)
    return high


SMALL = [
    (bitldp.WarnerRR(epsilon=1.5), 5),
    (bitldp.GRR(3, epsilon=1.0), 4),
    (bitldp.Duchi(epsilon=2.0), 4),
    (bitldp.BRR(4, epsilon=1.0, m=2), 3),
    (Matrix(np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])), 4),
    (Shift(3, 3, geometric_weights(0.8, 2), 0), 3),
]


@pytest.mark.slow
@pytest.mark.parametrize("summed", [True, False], ids=["sum", "histogram"])
@pytest.mark.parametrize(("mechanism", "n"), SMALL)
def test_small_numbers_of_users_are_those_of_enumeration(mechanism, n, summed):
    rows = np.asarray(mechanism.probabilities())
    local = mechanism.epsilon if isinstance(mechanism, (Matrix, Shift)) else mechanism.guarantee.record
    of_delta = summed_central_epsilon if summed else shuffled_histogram_central_epsilon
    of_epsilon = summed_central_delta if summed else shuffled_histogram_central_delta
    for delta in (1e-2, 1e-4):
        exact = epsilon_of(rows, n, summed, delta, local)
        assert exact * (1.0 - 1e-9) <= of_delta(mechanism, n, delta) <= exact * 1.02
    for epsilon in (0.0, local / 3.0):
        exact = enumerated(rows, n, summed, epsilon)
        assert exact - 1e-15 <= of_epsilon(mechanism, n, epsilon) <= exact * (1.0 + 1e-6) + 1e-12
    assert of_delta(mechanism, 1, 1e-9) == pytest.approx(local, rel=1e-6)
    assert of_epsilon(mechanism, n, local) == 0.0


@pytest.mark.parametrize(("mechanism", "n"), SMALL[:4])
def test_the_blanket_is_a_bound(mechanism, n):
    rows = np.asarray(mechanism.probabilities())
    for epsilon in (0.0, 0.3, 0.8):
        exact = enumerated(rows, n, False, epsilon)
        assert exact <= blanketed(of_rows(rows), n, epsilon) <= 1.6 * exact + 1e-9


def test_the_blanket_is_near_what_all_data_sets_say():
    rows = bitldp.GRR(3, epsilon=1.0).probabilities()
    exact = shuffled_histogram_central_delta(bitldp.GRR(3, epsilon=1.0), 20, 0.2)
    assert exact <= blanketed(of_rows(rows), 20, 0.2) <= 1.2 * exact


@pytest.mark.parametrize(("n", "epsilon"), [(1, 1.0), (3, 0.4), (40, 0.2), (1000, 0.03)])
def test_sums_of_noise_are_those_of_dp_accounting(n, epsilon):
    """A sum of discrete Gaussian noise; the other accountant takes its law from the convolution."""
    accountant = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    steps, reach = 5, 60
    channel = Shift(steps + 1, steps + 1 + 2 * reach, gaussian_weights(8.0, reach), reach)
    noise = np.array(channel.weights(), dtype=np.float64) / 2.0**64
    total = noise if n == 1 else np.array([1.0])
    if n > 1:
        length = 1 << (2 * reach * n + 1).bit_length()
        total = np.fft.irfft(np.fft.rfft(noise, length) ** n, length)[: 2 * reach * n + 1]
    total = np.maximum(total, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        gaps = np.maximum(total[:-steps] - math.exp(epsilon) * total[steps:], 0.0)
    exact = float(gaps.sum() + total[-steps:].sum())
    found = summed_central_delta(channel, n, epsilon)
    assert exact * (1.0 - 1e-6) <= found <= exact * (1.0 + 1e-4) + 1e-15
    # the other accountant, of normal noise: the discrete law is near
    loss = accountant.from_gaussian_mechanism(8.0 * math.sqrt(n), sensitivity=steps, use_connect_dots=True)
    assert found == pytest.approx(loss.get_delta_for_epsilon(epsilon), rel=0.02)
    assert summed_central_epsilon(channel, n, found) == pytest.approx(epsilon, rel=1e-3)


def test_a_sum_of_noise_is_that_of_one_by_the_channel():
    channel = bitldp.Gaussian(epsilon=1.0, delta=1e-6).channels[0]
    noise = np.array(channel.weights(), dtype=np.float64) / 2.0**64
    for epsilon in (0.1, 0.7, 1.0):
        assert channel.delta(epsilon) <= noised(noise, channel.inputs - 1, 1, epsilon) * (1.0 + 1e-12)
        assert noised(noise, channel.inputs - 1, 1, epsilon) <= 1.001 * channel.delta(epsilon)


@pytest.mark.slow
def test_many_users():
    """It falls with n, as one over its root, and is far below the bound that knows only the local epsilon."""
    grr = bitldp.GRR(4, epsilon=1.0)
    found = [shuffled_histogram_central_epsilon(grr, n, 1e-6) for n in (1_000, 10_000)]
    assert found[1] < 0.4 * found[0] < 0.4
    assert 3.0 * found[1] < shuffled_central_epsilon(1.0, 10_000, 1e-6)
    noise = bitldp.Gaussian(epsilon=2.0, delta=1e-6)
    sums = [summed_central_epsilon(noise, n, 1e-6) for n in (1, 100, 10_000)]
    assert sums[0] == pytest.approx(2.0, rel=1e-3)
    assert sums[0] > 5.0 * sums[1] > 25.0 * sums[2]
    assert summed_central_epsilon(bitldp.WarnerRR(epsilon=0.0), 10, 1e-6) == 0.0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((bitldp.Duchi(epsilon=1.0, features=3), 10, 1e-6), ValueError, "mechanism"),
        ((bitldp.Hybrid(epsilon=1.0), 10, 1e-6), TypeError, "mechanism"),
        ((1.0, 10, 1e-6), TypeError, "mechanism"),
        ((bitldp.WarnerRR(epsilon=1.0), 0, 1e-6), ValueError, "n: "),
        ((bitldp.WarnerRR(epsilon=1.0), 2.0, 1e-6), TypeError, "n: "),
        ((bitldp.WarnerRR(epsilon=1.0), 10, 0.0), ValueError, "delta"),
        ((bitldp.WarnerRR(epsilon=1.0), 10, 1.0), ValueError, "delta"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, message):
    for function in (summed_central_epsilon, shuffled_histogram_central_epsilon):
        with pytest.raises(error, match=message):
            function(*arguments)


@pytest.mark.parametrize("n", [200, 1_500])
def test_sums_of_clamped_noise_are_near_those_of_normal_noise(n):
    """Never below the convolution of what one user adds, for records at the two ends; near the normal law."""
    mechanism = bitldp.compression.Skellam(1, epsilon=8.0, delta=1e-6, output_bits=7)
    found = summed_central_epsilon(mechanism, n, 1e-6)
    rows = mechanism.channel.probabilities()
    others = np.ones(1)
    for bit in bin(n - 1)[2:]:  # the plain convolution, whose rounding is far below delta
        others = signal.fftconvolve(others, others)
        others = signal.fftconvolve(others, rows[0]) if bit == "1" else others
    one, other = signal.fftconvolve(others, rows[-1]), signal.fftconvolve(others, rows[0])
    true = float(np.maximum(one - math.exp(found * 1.001) * other, 0.0).sum())
    assert 0.8e-6 < true <= 1e-6
    assert true <= summed_central_delta(mechanism, n, found * 1.001) <= 1.1 * true


def test_more_users_than_a_sum_is_computed_of_are_refused_by_their_number():
    mechanism = bitldp.compression.Skellam(1, epsilon=8.0, delta=1e-6, output_bits=12)
    with pytest.raises(
        ValueError, match=r"n: at most \d+ for noise of \d+ steps, got 16777216; fewer output_bits"
    ):
        summed_central_epsilon(mechanism, 1 << 24, 1e-6)


@pytest.mark.slow
def test_sums_of_thirteen_bits_of_many_users_take_seconds():
    mechanism = bitldp.compression.Skellam(1, epsilon=8.0, delta=1e-6, output_bits=13)
    assert summed_central_epsilon(mechanism, 100_000, 1e-6) == pytest.approx(0.01528, rel=1e-3)


_NEVER = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
"""A report that one input never gives: its local epsilon is infinite."""


@pytest.mark.parametrize("epsilon", [699.0, 710.0, 1e5, 1e300])
@pytest.mark.parametrize("summed", [True, False], ids=["sum", "histogram"])
@pytest.mark.parametrize(
    ("channel", "n"),
    [
        (Matrix(_NEVER), 4),  # all data sets
        (Matrix(np.array([[1.0, 0.0], [0.5, 0.5]])), 1200),  # bits of many users
        (Matrix(_NEVER), 3000),  # the blanket
        (Shift(3, 3 + 2 * 8, gaussian_weights(1.5, 8), 8), 50),  # noise that is never clamped
    ],
)
def test_no_epsilon_is_beyond_doubles(channel, n, summed, epsilon):
    function = summed_central_delta if summed else shuffled_histogram_central_delta
    near = function(channel, n, 600.0)
    assert 0.0 <= function(channel, n, epsilon) <= near * (1.0 + 1e-9)
    assert summed_central_epsilon(channel, n, 1e-3) > 0.0


@pytest.mark.parametrize("epsilon", [699.0, 710.0, 1e300])
def test_no_epsilon_of_clamped_noise_is_beyond_doubles(epsilon):
    law = clamped(Shift(3, 19, gaussian_weights(1.5, 10, lumped=True), 8))
    assert law is not None
    for n in (1, 40):
        assert 0.0 <= clamped_sum(law, n, epsilon) <= clamped_sum(law, n, 600.0) * (1.0 + 1e-9)
