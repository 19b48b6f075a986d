"""Upper bound of the delta of several independent releases by the same noise, from its integers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bitldp.privacy import ONE

__all__ = ["delta_of_sum"]

_ROUND = 2.0**-53  # unit roundoff of doubles
_WIDTH = 9.0  # standard deviations of the sum, to either side, that are looked at one by one
_SLACK = 1e-7  # of epsilon: what all losses together may be rounded up by
_LEAST_SLACK = 1e-13  # of one loss: above the error of two logarithms below 45
_FARTHER = (0.25, 0.5, 1.0)  # of the width: tilts for the sums that are not looked at
_LOSS = 1.0 + 1e-9  # what the sums and exponentials below may lose
_HALVINGS = 60


def delta_of_sum(
    weights: Sequence[int], steps: int, parts: int, epsilon: float, scale: float, spare: float
) -> float:
    """Return an upper bound of the delta of `parts` numbers that each move by `steps`, at `epsilon`.

    Parameters
    ----------
    weights : sequence of int
        Log-concave symmetric noise -K..K over 2^64 (`bitldp.numeric._noise.is_log_concave`); no sum is
        clamped.
    steps : int
        S, how far two inputs of one number are apart at most; below 2 K.
    parts : int
        d, how many numbers change, each with noise of its own.
    epsilon : float
        Zero or more.
    scale : float
        A lattice that suits the losses, above zero: S/sigma^2 for Gaussian noise, whose losses lie on one.
    spare : float
        What may be given away: the unlikeliest losses of a record, in all of that chance, count as infinite.

    Returns
    -------
    float
        At least the true delta. Above it by no more than its change as epsilon falls by 1e-7 of itself,
        `spare`, the losses of unlikely noise that are rounded up to the lattice, and a bound of the rounding
        error of the Fourier transform: relative to delta, some 1e-7 for 1000 numbers.

    Notes
    -----
    As the noise is log-concave, the pair of inputs at distance S dominates every other one in each
    hockey-stick divergence, and so do d of them (Zhu, Dong and Wang, "Optimal accounting of differential
    privacy via characteristic function", AISTATS 2022, Theorem 10). Between them a report at place y, counted
    from the first input, has the loss L(y) = ln w(y) - ln w(y - S), infinite where w(y - S) is 0.

    Each loss is rounded up to a lattice of spacing `scale`, that begins S/2 steps from the middle; what is
    above a lattice point by a 1e-7 of epsilon/d or less counts as on it, and is added to all losses instead.
    The law p of the lattice point n then has a d-fold convolution P, and with l(m) the loss of a sum m,

        delta <= sum_m P(m) max(0, 1 - e^(epsilon - l(m))) + d P(L = inf).

    P is taken by a fast Fourier transform of the tilted law p(n) e^(t n)/M, whose mean is where l = epsilon:
    the absolute error of the transform is then one relative to delta, however small that is. With u = 2^-53,
    length n and d factors, an entry is off by at most u (d + 1)(6 log2 n + 4): every coefficient of the
    transform of a law is at most 1 and off by at most 6 u log2 n (a butterfly after the other), its d-th
    power by d times that and d multiplications. The transform is cyclic: sums beyond its window come back in
    it. From below they only add to the bound; for those from above, Chernoff's bound is added.
    """
    slack = max(_SLACK * epsilon / parts, _LEAST_SLACK)
    law, first, outside = _lattice(weights, steps, spare / parts, scale, slack)
    base = parts * (scale * steps / 2.0 + slack)
    target = (epsilon - base) / scale
    infinite = parts * outside
    places = first + np.arange(len(law))
    if target >= parts * float(places[-1]):
        return min(1.0, infinite * _LOSS)
    tilt = _tilt(law, places, target / parts)
    tilted, log_mass = _tilted(law, places, tilt)
    mean = float(tilted @ places)
    deviation = math.sqrt(parts * float(tilted @ np.square(places - mean)))
    reach = math.ceil(_WIDTH * deviation) + 2
    low = math.floor(parts * mean) - reach
    length = 1 << (2 * reach + 1).bit_length()
    window = low + np.arange(length)
    chances = _power(tilted, first, parts, length)[window % length]
    error = _ROUND * (parts + 1) * (6.0 * math.log2(length) + 4.0)
    telling = window > target
    sums = window[telling]
    weight = np.exp(parts * log_mass - tilt * sums) * -np.expm1((target - sums) * scale)
    total = float(np.maximum(chances[telling], 0.0) @ weight) + error * float(weight.sum())
    tilts = [tilt + part * _WIDTH / max(deviation, 1.0) for part in _FARTHER]
    exponent = min(parts * _tilted(law, places, each)[1] - each * (low + length) for each in tilts)
    beyond = math.exp(min(0.0, exponent))
    return min(1.0, (total + beyond + infinite) * _LOSS)


def _lattice(
    weights: Sequence[int], steps: int, spare: float, scale: float, slack: float
) -> tuple[NDArray[np.float64], int, float]:
    """Return the law of the finite losses on the lattice, its first point, and the chance of the others.

    Losses fall from the lowest report to the highest. The first ones, in all of a chance of `spare`, count as
    infinite, since integers of few units make them far larger than the rest. By symmetry the last ones are
    far smaller; they are raised to the opposite of the largest.
    """
    skipped, rare = steps, sum(weights[:steps])
    while rare + weights[skipped] <= ONE * spare or not weights[skipped - steps]:
        rare += weights[skipped]
        skipped += 1
    here = np.array(weights[skipped:], dtype=np.float64)  # w(y), for y from there on
    there = np.array(weights[skipped - steps : len(weights) - steps], dtype=np.float64)
    here, there = here[here > 0.0], there[here > 0.0]
    losses = np.log(here) - np.log(there)
    points = np.ceil((losses - slack) / scale - steps / 2.0)
    points = np.maximum(points, -points.max() - steps).astype(np.int64)
    first = int(points.min())
    law: NDArray[np.float64] = np.bincount(points - first, weights=here / ONE).astype(np.float64)
    return law, first, rare / ONE


def _tilted(
    law: NDArray[np.float64], places: NDArray[np.int64], tilt: float
) -> tuple[NDArray[np.float64], float]:
    """Return the law in proportion to p(n) e^(tilt n), and the logarithm of sum p(n) e^(tilt n)."""
    exponents = tilt * places
    highest = float(exponents.max())
    mass = law * np.exp(exponents - highest)
    total = float(mass.sum())
    return mass / total, math.log(total) + highest


def _tilt(law: NDArray[np.float64], places: NDArray[np.int64], mean: float) -> float:
    """Return the tilt, zero or more, with about that mean; it only sets how tight the bound is."""
    low, high = 0.0, 1.0 / len(law)
    while float(_tilted(law, places, high)[0] @ places) < mean and high < 1e3:
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if float(_tilted(law, places, middle)[0] @ places) < mean:
            low = middle
        else:
            high = middle
    return low


def _power(law: NDArray[np.float64], first: int, parts: int, length: int) -> NDArray[np.float64]:
    """Return the law of the sum of `parts`, cyclic: entry m mod length is that of the sum m."""
    folded = np.bincount((first + np.arange(len(law))) % length, weights=law, minlength=length)
    factor = np.fft.rfft(folded)
    product = np.ones_like(factor)
    while parts:
        if parts & 1:
            product = product * factor
        factor = factor * factor
        parts >>= 1
    return np.fft.irfft(product, length)
