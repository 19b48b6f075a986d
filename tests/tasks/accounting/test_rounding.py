"""Accountants never round down: their floats against exact rationals, and faults that are found.

Chances are quotients of integers, so sums of their powers are rational; logarithms, exponentials and the
normal law are taken in decimals of 60 digits.
"""

from __future__ import annotations

import decimal
import functools
import itertools
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import bitldp
import numpy as np
import pytest
from bitldp.accounting import account, compose, divergence, from_renyi, losses, renyi
from bitldp.accounting.laws import parts
from bitldp.channels import Matrix, normal
from bitldp.channels.normal import delta_of, epsilon_of
from bitldp.compression import BallGaussian, Skellam

ONE = 1 << 64
DIGITS = decimal.Context(prec=60)
_DENSITY = Decimal("0.398942280401432677939946059934381868475858631164934657665926")  # of the normal law at 0


def decimals(value: Fraction | float) -> Decimal:
    exact = Fraction(value)
    return DIGITS.divide(Decimal(exact.numerator), Decimal(exact.denominator))


def rows_of(matrix: Matrix) -> list[list[Fraction]]:
    return [[Fraction(weight, ONE) for weight in row] for row in matrix.weights()]


def exact_renyi(rows: list[list[Fraction]], alpha: int) -> Decimal:
    """Return the Rényi divergence of the worst pair, at an order that is an integer."""
    worst = max(
        sum((p**alpha / q ** (alpha - 1) for p, q in zip(one, other, strict=True)), Fraction(0))
        for one, other in itertools.permutations(rows, 2)
    )
    return DIGITS.divide(decimals(worst).ln(DIGITS), Decimal(alpha - 1))


def exact_delta(one: list[Fraction], other: list[Fraction], epsilon: float) -> Decimal:
    factor = Decimal(epsilon).exp(DIGITS)
    return sum(
        (
            max(Decimal(0), DIGITS.subtract(decimals(p), DIGITS.multiply(factor, decimals(q))))
            for p, q in zip(one, other, strict=True)
        ),
        Decimal(0),
    )


def worst_delta(rows: list[list[Fraction]], epsilon: float) -> Decimal:
    return max(exact_delta(one, other, epsilon) for one, other in itertools.permutations(rows, 2))


def tables(count: int, inputs: int, outputs: int) -> list[Matrix]:
    rng = np.random.default_rng(7)
    return [Matrix(rng.dirichlet(np.full(outputs, 2.0), inputs)) for _ in range(count)]


def below(value: Decimal) -> float:
    """Return the largest double that is no more."""
    near = float(value)
    return near if Decimal(near) <= value else math.nextafter(near, -math.inf)


def distribution(z: Decimal) -> Decimal:
    """Return the chance of a normal number below z, by its series; z from -12 to 12."""
    with decimal.localcontext(decimal.Context(prec=120)):
        term, total, k = z, z, 0
        while abs(term) > Decimal(10) ** -100:
            k += 1
            term *= -z * z / (2 * k)
            total += term / (2 * k + 1)
        # 1/sqrt(2 pi), to 60 digits
        return Decimal("0.5") + total * Decimal(
            "0.398942280401432677939946059934381868475858631164934657665926"
        )


def exact_normal(mu: float, epsilon: float) -> Decimal:
    with decimal.localcontext(decimal.Context(prec=120)):
        m, e = Decimal(mu), Decimal(epsilon)
        return distribution(m / 2 - e / m) - e.exp() * distribution(-m / 2 - e / m)


# -- each returns by how much the accountant's numbers lie below the truth, or above; none may lie below


def of_divergences() -> list[Decimal]:
    found = []
    for matrix in tables(25, 3, 4):
        rows = rows_of(matrix)
        for alpha in (2, 3, 9):
            found.append(Decimal(float(renyi(matrix, float(alpha)))) - exact_renyi(rows, alpha))
    for matrix in tables(1, 3, 4):
        table = parts(matrix)[0].tables[0]
        curve = divergence.divergences(table, 40.0)
        found.append(Decimal(float(curve.max())) - exact_renyi(rows_of(matrix), 40))
    return found


def of_conversions() -> list[Decimal]:
    """Of a curve at one order to epsilon: Canonne, Kamath and Steinke, Proposition 12."""
    found, rng = [], np.random.default_rng(3)
    for _ in range(80):
        alpha, value, delta = rng.uniform(1.5, 60.0), rng.uniform(0.5, 4.0), 10.0 ** -rng.uniform(2.0, 12.0)
        a = Decimal(alpha)
        logs = (1 - 1 / a).ln(DIGITS) - (Decimal(delta) * a).ln(DIGITS) / (a - 1)
        found.append(Decimal(from_renyi([value], [alpha], delta)) - max(Decimal(0), Decimal(value) + logs))
    return found


def of_losses() -> list[Decimal]:
    """Of compositions: delta at epsilon 0 is the distance of all reports, where the grid has a point."""
    found = []
    for matrix in tables(30, 1, 3):
        row = matrix.weights()[0]
        both = Matrix.from_weights([row, row[::-1]])
        one, other = rows_of(both)
        for count in (1, 2):
            several = [
                [math.prod(each, start=Fraction(1)) for each in itertools.product(row, repeat=count)]
                for row in (one, other)
            ]
            exact = worst_delta(several, 0.0)
            found.append(Decimal(account([(both, count)], epsilon=0.0).delta) - exact)
    return found


def of_epsilons() -> list[Decimal]:
    """Of epsilon at a delta that a point of the grid has: delta there must not be above."""
    found = []
    for matrix in tables(12, 2, 3):
        symbols = losses.merged([(part, part.times) for part in parts(matrix)])
        rows, step = rows_of(matrix), losses._step(symbols)
        points, _ = losses._points(symbols[0][0], step)
        for point in points[points > 0][:-1].tolist():
            delta = below(worst_delta(rows, point * step))
            if delta > 1e-9:
                epsilon = account([(matrix, 1)], delta=delta).epsilon
                found.append(Decimal(delta) - worst_delta(rows, epsilon))
    return found


def of_normal_laws() -> list[Decimal]:
    found = []
    for mu in (0.1, 0.2367, 1.0, 3.0):
        for epsilon in (0.0, mu / 3.0, 2.0 * mu, 4.0 * mu):
            found.append(Decimal(delta_of(mu, epsilon)) - exact_normal(mu, epsilon))
        for delta in (1e-2, 1e-4, 1e-9):
            found.append(Decimal(delta) - exact_normal(mu, epsilon_of(mu, delta)))
    return found


def of_rounds() -> list[Decimal]:
    """Of many rounds of Gaussian noise: at the mu of all of them, by decimals."""
    mechanism, found = BallGaussian(2, epsilon=1.0, delta=1e-6, output_bits=9), []
    for count in range(1, 40):
        mu = DIGITS.multiply(Decimal(mechanism.gdp_mu), Decimal(count).sqrt(DIGITS))
        symbols = losses.merged([(part, count) for part in parts(mechanism)])
        found.append(Decimal(losses.normal(symbols) or 0.0) - mu)
    return found


CHECKS: list[Callable[[], list[Decimal]]] = [
    of_divergences,
    of_conversions,
    of_losses,
    of_epsilons,
    of_normal_laws,
    of_rounds,
]


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """Convolve on few points: what is rounded is the same."""
    monkeypatch.setattr(losses, "_step", functools.partial(losses._step, points=1 << 10))


@pytest.mark.parametrize("check", CHECKS)
def test_nothing_is_rounded_down(check):
    found = check()
    assert min(found) >= 0
    assert max(found) < Decimal("1e-2")


FAULTS = [
    (of_divergences, divergence, {"_UNIT": 0.0, "_UP": 1.0}),
    (of_conversions, compose, {"_UP": 1.0}),
    (of_losses, compose, {"_ROUNDING": 0.0}),
    (of_epsilons, compose, {"_ROUNDING": 0.0, "_UP": 1.0}),
    (of_normal_laws, normal, {"_ROUNDING": 0.0, "_UP": 1.0}),
    (of_rounds, losses, {"_UP": 1.0}),
]


@pytest.mark.parametrize(("check", "module", "fault"), FAULTS)
def test_rounding_that_is_left_out_is_found(monkeypatch, check, module, fault):
    for name, value in fault.items():
        monkeypatch.setattr(module, name, value)
    assert min(check()) < 0


def _least_epsilon(p, q, rounds: int, delta: float) -> float:
    """Return an epsilon that so many rounds of two laws cost at least: every loss is rounded down."""
    step = 1e-4
    losses = np.floor((np.log(p) - np.log(q)) / step).astype(int)
    least = losses.min()
    law = np.bincount(losses - least, weights=p)
    size = rounds * (len(law) - 1) + 1
    padded = 1 << (size - 1).bit_length()
    together = np.fft.irfft(np.fft.rfft(law, padded) ** rounds, padded)[:size].clip(0.0)
    totals = (np.arange(size) + rounds * least) * step

    def exceeds(epsilon: float) -> bool:
        above = totals > epsilon
        return float(together[above] @ -np.expm1(epsilon - totals[above])) > delta

    low, high = 0.0, float(totals[-1])
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return low


@pytest.mark.slow
def test_rounds_of_normal_noise_compose_as_normal_laws():
    """20 rounds: not 20 times epsilon, and no less than the noise of one coordinate costs by itself."""
    for mechanism in (
        BallGaussian(2, epsilon=1.0, delta=1e-6, output_bits=10),
        Skellam(2, epsilon=1.0, delta=1e-6, output_bits=10),
    ):
        delta = 2.001e-5
        found = account([(mechanism, 20)], delta=delta)
        assert found.epsilon == pytest.approx(epsilon_of(math.sqrt(20.0) * mechanism.gdp_mu, delta), rel=1e-9)
        by_renyi, basic = (account([(mechanism, 20)], delta=delta, method=m) for m in ("renyi", "basic"))
        assert found.epsilon < 0.93 * by_renyi.epsilon < 0.3 * basic.epsilon
        assert account([(mechanism, 20)], epsilon=found.epsilon).delta <= delta
        # beside another release, by its distribution, which is joined by chords
        both = account([(mechanism, 20), (bitldp.WarnerRR(epsilon=1e-6), 1)], delta=delta)
        assert found.epsilon <= both.epsilon <= found.epsilon + 1e-4
        # no less than two records that differ in one coordinate, by the integers of their laws
        ends = mechanism.probabilities()[[0, -1]]
        floor = _least_epsilon(*ends, 20, delta)
        assert floor <= found.epsilon <= 1.05 * floor  # of 10 bits: a coarse grid costs some
