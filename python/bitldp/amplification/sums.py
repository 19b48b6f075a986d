"""Sums of many independent numbers on a lattice, and what they hide of one user's."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Shift
from bitldp.channels.noise import is_log_concave
from bitldp.channels.tails import _power, _tilt, _tilted
from bitldp.privacy import ONE

__all__ = ["Clamped", "Sum", "clamped", "more_than", "noised", "summed"]

ROUND = 2.0**-53  # unit roundoff of doubles
WIDTH = 9.0  # standard deviations of the tilted sum that are looked at, to either side
UP = 1.0 + 1e-9
_RELATIVE = 1e-9  # more than a sum of some thousand products loses
_RARE = 1e-30  # chance of more users whose noise is told, where no more of them are looked at
_SPARED = 200  # at most one of so many users counts as told for want of time: 0.25 % of epsilon
_SELDOM = 1e-15  # chance of more such users that is no matter
_WINDOW = float(1 << 24)  # sums whose chances are computed
_STEEPEST = 700.0  # exponents of doubles


class Sum:
    """The law of a sum of n independent numbers on a lattice, precise where the sum is about `target`."""

    def __init__(self, law: NDArray[Any], first: int, n: int, target: float, margin: int = 0) -> None:
        places = first + np.arange(len(law))
        self.tilt = _tilt(law, places, target / n)
        tilted, self.log_mass = _tilted(law, places, self.tilt)
        mean = float(tilted @ places)
        deviation = math.sqrt(n * max(float(tilted @ np.square(places - mean)), 1e-300))
        reach = math.ceil(WIDTH * deviation) + len(law) + margin + 2
        self.length = 1 << (2 * reach + 1).bit_length()
        self.sums: NDArray[Any] = math.floor(n * mean) - reach + np.arange(self.length)
        self.n, self.law, self.places, self.deviation = n, law, places, deviation
        self.chances = _power(tilted, first, n, self.length)[self.sums % self.length]
        # As in `channels.tails`, a coefficient of the transform is off by this, and its power n by n + 1
        # times as much, times the power n - 1 of its size. An entry is off by the mean over them at most.
        self.transform = ROUND * (6.0 * math.log2(self.length) + 4.0)
        folded = np.bincount(places % self.length, weights=tilted, minlength=self.length)
        sizes = np.abs(np.fft.rfft(folded)) + 2.0 * self.transform
        mean_power = 2.0 * float(np.power(sizes, n - 1).sum()) / self.length
        self.error = 2.0 * (n + 1) * self.transform * min(mean_power, 0.5)

    def logs(self) -> NDArray[Any]:
        """Return by how much the logarithm of a chance is above that of the tilted law."""
        result: NDArray[Any] = self.n * self.log_mass - self.tilt * self.sums
        return result

    def beyond(self, margin: int = 0) -> float:
        """Return a bound of the chance of a sum above the window, or so far below its end."""
        end = float(self.sums[-1]) - margin
        tilts = [self.tilt + part * WIDTH / max(self.deviation, 1.0) for part in (0.25, 0.5, 1.0)]
        exponent = min(self.n * _tilted(self.law, self.places, each)[1] - each * end for each in tilts)
        return math.exp(min(0.0, exponent))


def noised(noise: NDArray[np.float64], steps: int, n: int, epsilon: float) -> float:
    """Return the central delta of a sum of n numbers with log-concave noise each, rounded up.

    Parameters
    ----------
    noise : ndarray of float64, shape (2 K + 1,)
        Chances of -K to K; no sum is clamped.
    steps : int
        How far two inputs are apart at most.
    n : int
        Users.
    epsilon : float
        Zero or more.

    Notes
    -----
    The others' records only move the sum, so this is exact but for rounding. A sum of log-concave noise is
    log-concave, so the ratio of the chances of a sum under two inputs rises with it, and where the terms of
    delta = sum over y of (P(N = y - S) - e^eps P(N = y))_+ are above zero, so are all after them.
    """
    reach = len(noise) // 2
    variance = n * float(noise @ np.square(np.arange(-reach, reach + 1.0)))
    target = min(max(epsilon * variance / steps - steps / 2.0, 0.0), 0.999 * n * reach)
    total = Sum(noise, -reach, n, target)
    weights = np.exp(np.minimum(total.logs(), 700.0))
    upper = (np.maximum(total.chances, 0.0) + total.error) * weights
    lower = np.maximum(total.chances - total.error, 0.0) * weights
    gains = upper[:-steps] - math.exp(min(epsilon, _STEEPEST)) * lower[steps:]
    # The true gain rises with the sum from below zero; a bound of it that is not above settles all before.
    settled = np.flatnonzero(gains <= 0.0)
    if not len(settled):
        return 1.0
    return min(1.0, (float(gains[settled[-1] + 1 :].sum()) + total.beyond()) * UP)


class Clamped(NamedTuple):
    """Log-concave noise that is added to an input, and clamped where a report would be too far.

    Attributes
    ----------
    rows : ndarray of float64, shape (2, reports)
        Chances of every report of the lowest and of the highest input.
    free : ndarray of float64
        Noise that no input's report is clamped at, from `first` on, of sum 1.
    first : int
        Where it begins.
    told : float
        Chance of other noise, which is taken as told.
    lost : float
        Chance that `rows` lack: what the weights are above log-concave ones.
    """

    rows: NDArray[np.float64]
    free: NDArray[np.float64]
    first: int
    told: float
    lost: float


def clamped(channel: Shift) -> Clamped | None:
    """Return the clamped noise of a channel, or None if it is not nearly log-concave and symmetric.

    Weights that are rounded to integers may be log-concave no more where they are few units, and an end holds
    all that is beyond. So weights are lowered until they are, by some 2**-64 each, and an end until it is a
    tail that may go on.
    """
    weights, inputs, outputs = channel.weights(), channel.inputs, channel.outputs
    reach, offset = channel.reach, channel.offset
    if channel.mute or weights != weights[::-1] or reach < 3:
        return None
    if reach + offset < outputs - 1 or inputs - 1 - reach + offset > 0:
        return None  # the ends of the noise are no ends of the reports
    half = weights[reach:]
    for k in range(2, reach):
        half[k] = min(half[k], half[k - 1] * half[k - 1] // half[k - 2] if half[k - 2] else 0)
    last, before = half[-2], half[-3]
    half[-1] = min(half[-1], last * last // (before - last)) if before > last else half[-1] * (last > 0)
    low, high = -offset, outputs - inputs - offset  # noise that no input is clamped at
    if half[1] > half[0] or not low < high:
        return None
    kept = half[:0:-1] + half
    lost = (ONE - sum(kept)) / ONE
    rows = np.zeros((2, outputs))
    for index, x in enumerate((0, inputs - 1)):
        places = np.clip(np.arange(-reach, reach + 1) + x + offset, 0, outputs - 1)
        rows[index] = np.bincount(places, weights=np.array(kept, dtype=np.float64) / ONE, minlength=outputs)
    inside = kept[low + reach : high + reach + 1]
    if not is_log_concave(inside):
        return None
    total = sum(inside)
    free = np.array(inside, dtype=np.float64) / total
    return Clamped(rows, free, low, (ONE - total) / ONE, lost)


def summed(noise: Clamped, n: int, epsilon: float) -> float:
    """Return an upper bound of the central delta of a sum of n inputs with clamped noise each.

    Parameters
    ----------
    noise : Clamped
        The law of a report.
    n : int
        Users.
    epsilon : float
        Zero or more.

    Notes
    -----
    Of the others, the noise of those whose report may be clamped is told; they are more than j with the
    binomial chance of their number. The rest move the sum by their inputs and add log-concave noise. Its sum
    R with the user's own clamped report is told apart best between the two ends of the inputs, by a
    threshold, since likelihood ratios are monotone; and a sum of more such noise tells less. So delta is at
    most that of n - 1 - j others, and the chance of more. The least over j is taken.
    """
    best, others = 1.0, n - 1
    mirrored = np.array_equal(noise.rows[0], noise.rows[1][::-1])  # as the noise is
    both = (False,) if mirrored else (False, True)
    _check_window(noise, n)
    first = 0
    while first < others // _SPARED and more_than(others, noise.told, first) > _SELDOM:
        first += 1
    for told in range(first, others + 1):
        more = more_than(others, noise.told, told)
        if more < best:
            reached = max(_summed(noise, others - told, epsilon, turned) for turned in both)
            best = min(best, reached + more)
        if more <= _RARE or more <= 1e-3 * best:
            break
        if (
            first and told == first
        ):  # of so many users one evaluation takes seconds, and each told user little
            last = _last(others, noise.told, told)
            reached = max(_summed(noise, others - last, epsilon, turned) for turned in both)
            best = min(best, reached + more_than(others, noise.told, last))
            break
    return min(1.0, (best + noise.lost) * UP)


def _last(users: int, chance: float, first: int) -> int:
    """Return the number of told users that is rarely exceeded."""
    told = first
    while told < users and more_than(users, chance, told) > _RARE:
        told += 1
    return told


def _check_window(noise: Clamped, n: int) -> None:
    """Refuse more users than whose sum's law is computed in seconds."""
    places = noise.first + np.arange(len(noise.free))
    deviation = math.sqrt(float(noise.free @ np.square(places)) - float(noise.free @ places) ** 2)
    most = math.floor((_WINDOW / (2.0 * WIDTH * deviation)) ** 2)
    if n > most:
        raise ValueError(
            f"n: at most {most} for noise of {deviation:.0f} steps, got {n}; fewer output_bits allow more, "
            f"and the bound for {most} users also holds for more"
        )


def more_than(users: int, chance: float, most: int) -> float:
    """Return Chernoff's bound of the chance that more than `most` users have what each has with a chance."""
    share = (most + 1) / max(users, 1)
    if share > 1.0 or chance == 0.0:
        return 0.0
    if share <= chance:
        return 1.0
    exponent = share * math.log(share / chance)
    if share < 1.0:
        exponent += (1.0 - share) * math.log((1.0 - share) / (1.0 - chance))
    # the union bound may be less, for the first of them
    return min(math.exp(-users * exponent) * UP, users * chance * UP if most == 0 else 1.0)


def _summed(noise: Clamped, others: int, epsilon: float, turned: bool) -> float:
    """Return the delta of the user's report and so many others' free noise, rounded up."""
    lowest, highest = noise.rows
    free, first = noise.free, noise.first
    if turned:  # small sums speak for the lowest input
        lowest, highest = highest[::-1], lowest[::-1]
        free, first = free[::-1], -(first + len(free) - 1)
    factor = math.exp(min(epsilon, _STEEPEST))
    if others == 0:
        return float(np.maximum(highest - factor * lowest, 0.0).sum()) * UP
    places = first + np.arange(len(free))
    mean = float(free @ places)
    variance = others * float(free @ np.square(places - mean)) + 1.0
    middle, reports = others * mean, np.arange(len(lowest))
    steps = float((highest - lowest) @ reports)
    # where the ratio of two normal laws that are so far apart is e^epsilon
    target = middle + (epsilon * variance / steps if steps > 0.0 else 0.0)
    margin = len(lowest)
    total = Sum(free, first, others, min(target, middle + 0.999 * others * (places[-1] - mean)), margin)
    powers = np.exp(np.minimum(total.tilt * (reports - reports[-1]), 0.0))
    held = np.maximum(total.chances, 0.0)
    laws = []
    # cyclic, of which the sums that are kept are those that nothing wraps to
    length = len(held)
    factors = np.fft.rfft(held, length)
    for row in (highest, lowest):
        tilted = row * powers
        # three transforms follow
        error = float(tilted.sum()) * (total.error + 4.0 * total.transform)
        law = np.fft.irfft(factors * np.fft.rfft(tilted, length), length)[len(powers) - 1 : len(held)]
        law = np.maximum(law, 0.0)
        laws.append((law * (1.0 + _RELATIVE) + error, np.maximum(law * (1.0 - _RELATIVE) - error, 0.0)))
    ends = total.sums[margin - 1 :]
    logs = others * total.log_mass - total.tilt * (ends - float(reports[-1]))
    weights = np.exp(np.minimum(logs, _STEEPEST))
    gains = (laws[0][0] - factor * laws[1][1]) * weights
    # The true gain rises with the sum from below zero; a bound of it that is not above settles all before.
    settled = np.flatnonzero(gains <= 0.0)
    if not len(settled):
        return 1.0
    return min(1.0, (float(gains[settled[-1] + 1 :].sum()) + total.beyond(margin)) * UP)
