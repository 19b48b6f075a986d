"""Accounting: closed forms, enumeration, and accountants that check each other."""

from __future__ import annotations

import itertools
import math

import bitldp
import numpy as np
import pytest
from bitldp.accounting import ORDERS, Account, account, pld, renyi
from bitldp.accounting.compose import concentration, from_renyi
from bitldp.accounting.laws import parts
from bitldp.accounting.losses import profile
from bitldp.channels import Bits, Cap, Cube, Matrix, Mixture, Select, Shift, Unary, Window
from bitldp.channels.noise import gaussian_weights
from hypothesis import given, settings
from hypothesis import strategies as st

ONE = 1 << 64
METHODS = ("basic", "renyi", "pld")


def divergence(p, q, alpha):
    """Return the Rényi divergence of two rows, by its definition."""
    return math.log(sum(a**alpha * b ** (1.0 - alpha) for a, b in zip(p, q, strict=True))) / (alpha - 1.0)


def hockey_stick(p, q, epsilon):
    return float(np.maximum(np.asarray(p) - math.exp(epsilon) * np.asarray(q), 0.0).sum())


def worst(rows, alpha):
    return max(divergence(p, q, alpha) for p, q in itertools.permutations(rows, 2))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
@pytest.mark.parametrize("alpha", [1.05, 2.0, 32.0])
def test_randomized_response_has_its_closed_form(epsilon, alpha):
    law = bitldp.WarnerRR(epsilon=epsilon)
    p = 1.0 / (1.0 + math.exp(-epsilon))
    q = 1.0 - p
    closed = math.log(p**alpha * q ** (1.0 - alpha) + q**alpha * p ** (1.0 - alpha)) / (alpha - 1.0)
    found = float(renyi(law, alpha))
    assert found == pytest.approx(closed, rel=1e-8, abs=1e-12)
    assert found <= epsilon


@pytest.mark.parametrize("sigma", [3.0, 8.0])
def test_gaussian_noise_has_nearly_the_curve_of_the_gaussian(sigma):
    reach = math.ceil(8.0 * sigma)
    channel = Shift(2, 2 * reach, gaussian_weights(sigma, reach), reach - 1)
    for alpha in (1.5, 2.0, 4.0):
        assert float(renyi(channel, alpha)) == pytest.approx(alpha / (2.0 * sigma**2), rel=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(2, 6), st.floats(1.01, 40.0))
def test_a_matrix_meets_its_enumeration(seed, inputs, outputs, alpha):
    channel = Matrix(np.random.default_rng(seed).dirichlet(np.full(outputs, 2.0), inputs))
    rows = [[weight / ONE for weight in row] for row in channel.weights()]
    exact = worst(rows, alpha)
    found = float(renyi(channel, alpha))
    assert found == pytest.approx(exact, rel=1e-7, abs=1e-12)
    assert found >= exact * (1.0 - 1e-12)
    assert found <= channel.epsilon * (1.0 + 1e-12)


def test_a_matrix_at_high_orders_is_summed_by_logarithms():
    channel = Matrix(np.random.default_rng(2).dirichlet(np.full(5, 0.4), 4) * 0.9 + 0.02)
    high = renyi(channel, [50.0, 400.0, 2000.0])
    assert np.isfinite(high).all()
    assert (np.diff(high) > 0.0).all()
    assert high[-1] == pytest.approx(channel.epsilon, rel=2e-2)


def test_a_window_and_ordered_windows_meet_their_enumeration():
    order = np.array([np.roll(np.arange(7), -2 * shift) for shift in range(7)], np.uint16)
    for channel in (Window(7, 3, 0.8), Window(7, 5, 0.9), Window(7, 3, 0.8, order)):
        rows = channel.probabilities()
        for alpha in (1.5, 8.0):
            assert float(renyi(channel, alpha)) == pytest.approx(worst(rows, alpha), rel=1e-9)
        (part,) = parts(channel)
        epsilons = np.linspace(-2.0, 2.0, 21)
        direct = [max(hockey_stick(p, q, e) for p, q in itertools.permutations(rows, 2)) for e in epsilons]
        np.testing.assert_allclose(profile(part, epsilons), direct, atol=1e-14)


def test_one_hot_bits_meet_their_enumeration():
    channel = Unary(4, 0.7, 0.2)
    p, q = (each / ONE for each in channel.thresholds())
    rows = [
        [
            math.prod(
                (p if i == x else q) if bit else 1.0 - (p if i == x else q) for i, bit in enumerate(bits)
            )
            for bits in itertools.product((0, 1), repeat=4)
        ]
        for x in range(4)
    ]
    assert float(renyi(channel, 3.0)) == pytest.approx(worst(rows, 3.0), rel=1e-12)


def test_bits_are_sums_over_positions_and_features():
    channel = Bits([[0.8, 0.6], [0.7, 0.55]], [[0.3, 0.4], [0.1, 0.5]], 3, [0, 1, 1])
    total = 0.0
    for law, count in zip(channel.thresholds(), (1, 2), strict=True):
        for p, q in law:
            total += count * worst([[1 - p / ONE, p / ONE], [1 - q / ONE, q / ONE]], 2.5)
    assert float(renyi(channel, 2.5)) == pytest.approx(total, rel=1e-12)


def test_the_coin_of_the_hybrid_mechanism_is_public():
    mechanism = bitldp.Hybrid(epsilon=2.0)
    rows = mechanism.probabilities()
    exact = max(divergence(p, q, 2.0) for p, q in ((rows[0], rows[-1]), (rows[-1], rows[0])))
    assert float(renyi(mechanism, 2.0)) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("answers", [2, 3])
def test_a_mixture_meets_its_enumeration(answers):
    """Over all pairs of inputs, the matrix's independent of the window's; with three of its, from above."""
    window = Window(7, 3, 0.8)
    table = np.array([[0.4, 0.5, 0.1], [0.4, 0.1, 0.5], [0.4, 0.3, 0.3]])[:answers]
    mixture = Mixture(window, Matrix(table))
    rows = [
        np.concatenate([answer[0] * cell, answer[1:]])
        for cell in window.probabilities()
        for answer in mixture.matrix.probabilities()
    ]
    for alpha in (1.5, 8.0):
        exact, found = worst(rows, alpha), float(renyi(mixture, alpha))
        assert exact * (1.0 - 1e-12) <= found <= mixture.epsilon
        if answers == 2:
            assert found == pytest.approx(exact, rel=1e-9)


def test_every_channel_is_accounted_for():
    half = [ONE // 4, ONE // 2, ONE // 4]
    channels = {
        "Bits": Bits([[0.8]], [[0.3]], 2),
        "Cap": Cap([(5, 1)], [(4, 1), (3, 2)], 1, ONE // 3),
        "Cube": Cube(9, 5, 4, ONE // 4 * 3),
        "Matrix": Matrix(np.array([[0.7, 0.3], [0.3, 0.7]])),
        "Mixture": Mixture(Window(5, 2, 0.6), Matrix(np.array([[0.5, 0.3, 0.2], [0.5, 0.2, 0.3]]))),
        "Select": Select(np.array([2, 1], np.uint32), np.array([1, 3], np.uint64)),
        "Shift": Shift(3, 5, half, 1),
        "Unary": Unary(4, 0.7, 0.2),
        "Window": Window(5, 2, 0.6),
    }
    assert sorted(channels) == bitldp.channels.__all__
    for name, channel in channels.items():
        record = np.max(channel.epsilon)  # of a bit, a feature and a record, where it has several
        assert 0.0 < float(renyi(channel, 2.0)) <= record * (1.0 + 1e-12), name


RELEASES = [
    bitldp.WarnerRR(epsilon=0.5),
    bitldp.GRR(6, epsilon=1.0, features=2),
    bitldp.BRR(30, epsilon=0.7),
    bitldp.BRR(12, epsilon=0.7, regions=np.arange(12) % 2),
    bitldp.FRR(8, epsilon=2.0),
    bitldp.BitRand(6, categories=3, epsilon_x=1.0, epsilon_y=0.5),
    bitldp.SUE(5, epsilon=1.0),
    bitldp.Hybrid(epsilon=1.2),
    bitldp.ThreeOutputs(epsilon=1.5, features=3),
    bitldp.Piecewise(epsilon=1.0, features=4, spend="sample", k=2),
    bitldp.Guarantee(0.5, 0.5, 0.5, 0.5, delta=1e-9),
]


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES, ids=lambda release: type(release).__name__)
def test_the_accountants_are_ordered(release):
    rounds = [(release, 12)]
    basic, by_renyi, by_loss = (account(rounds, delta=1e-5, method=method) for method in METHODS)
    assert by_loss.epsilon <= by_renyi.epsilon * (1.0 + 1e-6) <= basic.epsilon * (1.0 + 2e-6)
    assert by_loss.epsilon > 0.0
    for method in METHODS:  # delta at that epsilon is no more than what it was found for
        back = account(rounds, epsilon=by_renyi.epsilon * (1.0 + 1e-6), method=method)
        if method != "basic":
            assert back.delta <= 1e-5 * (1.0 + 1e-6)


def test_losses_of_randomized_response_compose_as_a_binomial():
    epsilon, n, delta = 0.4, 40, 1e-4
    channel = bitldp.WarnerRR(epsilon=epsilon)
    p = math.exp(epsilon) / (1.0 + math.exp(epsilon))

    def exact_delta(total):
        return sum(
            math.comb(n, k)
            * max(0.0, p**k * (1 - p) ** (n - k) - math.exp(total) * (1 - p) ** k * p ** (n - k))
            for k in range(n + 1)
        )

    found = account([(channel, n)], delta=delta)
    assert exact_delta(found.epsilon) <= delta
    assert exact_delta(found.epsilon - 2e-3) > delta  # and not by much
    assert account([(channel, n)], epsilon=3.0).delta == pytest.approx(exact_delta(3.0), rel=1e-2)


def test_no_pair_of_inputs_need_be_the_worst():
    """Two pairs whose hockey-stick curves cross: the distribution must dominate both."""
    table = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.34, 0.33, 0.33], [0.02, 0.48, 0.5]])
    channel = Matrix(table)
    rows = channel.probabilities()
    loss = pld(channel)
    for epsilon in np.linspace(0.0, 3.5, 29):
        exact = max(hockey_stick(p, q, epsilon) for p, q in itertools.permutations(rows, 2))
        assert loss.get_delta_for_epsilon(epsilon) >= exact - 1e-12


def test_an_infinite_epsilon_costs_infinitely_much_only_where_it_must():
    guarantee = bitldp.Guarantee(1.0, math.inf, math.inf, math.inf)
    assert all(math.isinf(account([(guarantee, 1)], delta=1e-3, method=method).epsilon) for method in METHODS)
    huge = bitldp.Guarantee.judge(900.0, (900.0, 900.0, 900.0))
    assert account([(huge, 2)], delta=1e-3, method="pld").epsilon <= 1800.0


def test_silence_costs_nothing():
    for method in METHODS:
        assert account([(bitldp.WarnerRR(epsilon=0.0), 10)], delta=1e-6, method=method).epsilon == 0.0


def test_concentration_inverts_the_conversion():
    rho = concentration(2.0, 1e-5)
    orders = np.array(ORDERS)
    assert from_renyi(rho * orders, orders, 1e-5) <= 2.0 < from_renyi(1.001 * rho * orders, orders, 1e-5)


def test_what_an_account_shows():
    half, one = (bitldp.Guarantee.judge(each, (each,) * 3) for each in (0.5, 1.0))
    result = account([(half, 3), (one, 1)], delta=0.0, method="basic")
    assert result == Account(2.5, 0.0, "basic", None, (("Guarantee", 3), ("Guarantee", 1)))
    assert str(result) == "4 releases: local epsilon 2.5 at delta 0 (basic)"


def test_a_ledger_reports_by_the_accountants():
    ledger = bitldp.Ledger(100.0)
    ledger.charge(bitldp.WarnerRR(epsilon=0.25), 60)
    totals = [ledger.account(1e-6, method).epsilon for method in METHODS]
    assert totals[0] == ledger.spent == pytest.approx(15.0)
    assert totals[2] < totals[1] < totals[0]


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-3, 2.0, math.nan])
@pytest.mark.parametrize("method", ["renyi", "pld"])
def test_delta_outside_its_range_is_refused(delta, method):
    with pytest.raises(ValueError, match="delta"):
        account([(bitldp.WarnerRR(epsilon=1.0), 1)], delta=delta, method=method)


@pytest.mark.parametrize("orders", [1.0, [2.0, 0.5], [], [math.inf], [math.nan], [[2.0]]])
def test_bad_orders_are_refused(orders):
    with pytest.raises(ValueError, match="orders"):
        renyi(bitldp.WarnerRR(epsilon=1.0), orders)


@pytest.mark.parametrize(
    ("releases", "options", "error", "message"),
    [
        ([], {"delta": 1e-6}, ValueError, "at least one"),
        ([(bitldp.WarnerRR(epsilon=1.0), 0)], {"delta": 1e-6}, ValueError, "count"),
        ([(bitldp.WarnerRR(epsilon=1.0), 1.5)], {"delta": 1e-6}, TypeError, "count"),
        ([bitldp.WarnerRR(epsilon=1.0)], {"delta": 1e-6}, TypeError, "pairs"),
        (bitldp.WarnerRR(epsilon=1.0), {"delta": 1e-6}, TypeError, "pairs"),
        ([("GRR", 1)], {"delta": 1e-6}, TypeError, "release"),
        ([(bitldp.WarnerRR(epsilon=1.0), 1)], {}, ValueError, "exactly one"),
        ([(bitldp.WarnerRR(epsilon=1.0), 1)], {"delta": 1e-6, "epsilon": 1.0}, ValueError, "exactly one"),
        ([(bitldp.WarnerRR(epsilon=1.0), 1)], {"delta": 1e-6, "method": "advanced"}, ValueError, "method"),
        ([(bitldp.WarnerRR(epsilon=1.0), 1)], {"delta": 1e-13}, ValueError, "delta"),
        ([(bitldp.WarnerRR(epsilon=1.0), 1)], {"epsilon": -1.0}, ValueError, "epsilon"),
        ([(RELEASES[-1], 2)], {"delta": 1e-9, "method": "basic"}, ValueError, "add up"),
    ],
)
def test_bad_calls_are_refused(releases, options, error, message):
    with pytest.raises(error, match=message):
        account(releases, **options)
