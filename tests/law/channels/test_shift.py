"""The channel of added noise, and the laws of noise as integers."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from bitldp._core import Shift
from bitldp.channels.noise import gaussian_weights, geometric_weights, is_log_concave, skellam_weights
from bitldp.channels.tails import delta_of_sum
from hypothesis import given, settings
from hypothesis import strategies as st

ONE = 1 << 64
KEY = bytes(range(32))


def table(channel):
    """Return the law of a shift by its definition, as integers."""
    law = [[0] * channel.outputs for _ in range(channel.inputs)]
    for x, row in enumerate(law):
        for k, weight in enumerate(channel.weights(), start=-channel.reach):
            row[min(max(x + k + channel.offset, 0), channel.outputs - 1)] += weight
    return law


@st.composite
def shifts(draw):
    reach = draw(st.integers(0, 5))
    weights = draw(
        st.lists(st.integers(0, 1 << 60) | st.just(0), min_size=2 * reach + 1, max_size=2 * reach + 1)
    )
    weights[reach] += ONE - sum(weights)
    size = st.integers(1, 7)
    return Shift(draw(size), draw(size), weights, draw(st.integers(-8, 8)))


@settings(deadline=None, max_examples=50)
@given(shifts(), st.floats(0.0, 50.0))
def test_epsilon_and_delta_are_those_of_all_pairs(channel, epsilon):
    law = table(channel)
    assert np.array_equal(channel.probabilities(), np.array(law, dtype=np.float64) / ONE)
    worst = 0.0
    for column in zip(*law, strict=True):
        if max(column):
            worst = max(worst, math.log(max(column) / min(column)) if min(column) else math.inf)
    assert channel.epsilon == worst or worst <= channel.epsilon * (1 + 1e-15) <= worst * (1 + 1e-12)
    # e^epsilon between two fractions: what is computed is at least delta, and hardly more.
    with_more, with_less = (
        Fraction(Decimal(epsilon).exp() * (1 + sign * Decimal(10) ** -25)) for sign in (1, -1)
    )

    def delta(factor):
        pairs = ((a, b) for a in law for b in law)
        return max(sum(max(0, p - factor * q) for p, q in zip(a, b, strict=True)) for a, b in pairs) / ONE

    found = Fraction(channel.delta(epsilon))
    assert delta(with_more) <= found <= delta(with_less) + Fraction(1, 1 << 49)


def test_what_is_no_shift_is_refused():
    good = [ONE // 4, ONE // 2, ONE // 4]
    for name, arguments in [
        ("inputs", (0, 3, good)),
        ("inputs", (-1, 3, good)),
        ("outputs", (3, 65_537, good)),
        ("weights", (3, 3, good[:2])),
        ("weights", (3, 3, [ONE, 1, 1])),
        ("weights", (3, 3, [0, ONE - 1, 0])),
        ("offset", (3, 3, good, 1 << 18)),
    ]:
        with pytest.raises(ValueError, match=f"^{name}"):
            Shift(*arguments)
    channel = Shift(3, 3, good)
    for wrong in (math.nan, -1.0):
        with pytest.raises(ValueError, match=r"^epsilon"):
            channel.delta(wrong)
    with pytest.raises(ValueError, match=r"^x"):
        channel.randomize(np.array([0, 3]), None, None, KEY, "codes", None, None, 0)


def test_pickled_it_is_the_same():
    channel = Shift(9, 20, geometric_weights(0.3, 11), 4)
    again = pickle.loads(pickle.dumps(channel))
    assert (again.inputs, again.outputs, again.offset, again.reach) == (9, 20, 4, 11)
    assert again.weights() == channel.weights()
    x = np.arange(9)
    reports = channel.randomize(x, None, None, KEY, "codes", None, None, 0)
    assert np.array_equal(again.randomize(x, None, None, KEY, "codes", None, None, 0), reports)
    assert repr(channel).startswith("<Shift: 9 inputs, 20 reports")


LAWS = {
    "geometric": (geometric_weights, lambda a, k: np.exp(-a * np.abs(k)) * math.tanh(a / 2)),
    "gaussian": (
        gaussian_weights,
        lambda a, k: (
            np.exp(-(k**2) / (2 * a * a)) / np.exp(-(np.arange(-999, 1000) ** 2) / (2 * a * a)).sum()
        ),
    ),
}


@pytest.mark.parametrize(
    ("name", "parameter", "reach"),
    [("geometric", 0.125, 60), ("geometric", 2.0, 9), ("gaussian", 8.0, 70), ("gaussian", 0.4, 5)],
)
def test_weights_are_the_law(name, parameter, reach):
    weights, law = LAWS[name]
    found = weights(parameter, reach)
    assert (sum(found), min(found) >= 0) == (ONE, True)
    assert found == found[::-1]
    k = np.arange(-reach, reach + 1)
    expected = law(parameter, k)
    if name == "geometric":  # the ends take the tails
        expected[[0, -1]] = math.exp(-parameter * reach) / (1 + math.exp(-parameter))
    assert np.array(found, dtype=np.float64) / ONE == pytest.approx(expected, rel=1e-9, abs=1e-17)


@pytest.mark.parametrize(("mu", "reach"), [(0.01, 8), (3.0, 30), (200.0, 180)])
def test_skellam_is_the_difference_of_two_poisson_numbers(mu, reach):
    counts = np.arange(int(mu + 60 + 12 * math.sqrt(mu)))
    logs = counts * math.log(mu) - mu - np.array([math.lgamma(n + 1.0) for n in counts])
    poisson = np.exp(logs)
    difference = np.convolve(poisson, poisson[::-1])
    middle = len(counts) - 1
    expected = np.zeros(2 * reach + 1)
    kept = min(reach, middle)
    expected[reach - kept : reach + kept + 1] = difference[middle - kept : middle + kept + 1]
    found = skellam_weights(mu, reach)
    assert sum(found) == ONE
    assert found == found[::-1]
    assert np.array(found, dtype=np.float64) / ONE == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_bell_shaped_laws_are_log_concave():
    for weights in [
        gaussian_weights(5.0, 60),
        gaussian_weights(3000.0, 20_000),
        skellam_weights(12.5, 60),
        skellam_weights(1e6, 9000),
    ]:
        assert is_log_concave(weights)
    assert not is_log_concave([1, 0, 1])
    assert not is_log_concave([4, 1, 4])
    with pytest.raises(ValueError, match=r"^sigma"):
        gaussian_weights(1e12, 9)
    with pytest.raises(ValueError, match=r"^reach"):
        gaussian_weights(1.0, 1 << 15)


def test_the_same_weights_on_every_platform():
    assert geometric_weights(0.5, 2)[:3] == GEOMETRIC
    assert gaussian_weights(1.5, 2)[:3] == GAUSSIAN
    assert skellam_weights(0.75, 2)[:3] == SKELLAM


GEOMETRIC = [4224119757840635366, 2740276336895894570, 4517951884236491744]
GAUSSIAN = [2215055222919116590, 4314338460495516814, 5387956706880284808]
SKELLAM = [1454117642006844898, 4225317344306705077, 7087874101082451666]


@pytest.mark.parametrize(("sigma", "steps", "parts"), [(3.0, 1, 2), (6.0, 2, 3), (2.0, 3, 2)])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
def test_delta_of_several_numbers_is_that_of_their_product(sigma, steps, parts, epsilon):
    weights = gaussian_weights(sigma, math.ceil(8.5 * sigma) + steps)
    law = np.array(weights, dtype=np.float64) / ONE
    p, q = np.append(law, np.zeros(steps)), np.append(np.zeros(steps), law)
    both, other = p, q
    for _ in range(parts - 1):
        both, other = np.multiply.outer(both, p), np.multiply.outer(other, q)
    expected = np.maximum(both - math.exp(epsilon) * other, 0.0).sum()
    found = delta_of_sum(weights, steps, parts, epsilon, steps / sigma**2, 1e-12)
    assert expected * (1 - 1e-12) <= found <= expected * (1 + 1e-5) + 1e-11


def test_reports_that_exclude_an_input_count_in_full():
    weights = gaussian_weights(3.0, 6)  # cut at two standard deviations
    law = np.array(weights, dtype=np.float64) / ONE
    p, q = np.append(law, 0.0), np.append(0.0, law)
    expected = np.maximum(np.multiply.outer(p, p) - math.e * np.multiply.outer(q, q), 0.0).sum()
    found = delta_of_sum(weights, 1, 2, 1.0, 1.0 / 9.0, 1e-12)
    # Two infinite losses at once are counted twice.
    assert expected <= found <= expected + law[0] ** 2 + 1e-8
    assert expected > law[0]


@pytest.mark.slow
def test_delta_of_a_skellam_sum_is_a_bound():
    weights = skellam_weights(40.0, 90)
    law = np.array(weights, dtype=np.float64) / ONE
    p, q = np.append(law, 0.0), np.append(0.0, law)
    expected = np.maximum(np.multiply.outer(p, p) - math.exp(0.5) * np.multiply.outer(q, q), 0.0).sum()
    found = delta_of_sum(weights, 1, 2, 0.5, 1.0 / 8000.0, 1e-12)
    assert expected <= found <= 1.01 * expected
