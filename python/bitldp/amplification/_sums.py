"""Upper bounds of central delta from sums of independent numbers, by tilted Fourier transforms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.channels.tails import _power, _tilt, _tilted

__all__ = ["blanketed", "noised"]

_ROUND = 2.0**-53  # unit roundoff of doubles
_WIDTH = 9.0  # standard deviations of the tilted sum that are looked at, to either side
_FINE = 64.0  # steps of the lattice for one deviation of a number
_MOST = 1 << 22  # steps of the window
_UP = 1.0 + 1e-9


class _Sum:
    """The law of a sum of n independent numbers on a lattice, precise where the sum is about `target`."""

    def __init__(self, law: NDArray[Any], first: int, n: int, target: float) -> None:
        places = first + np.arange(len(law))
        self.tilt = _tilt(law, places, target / n)
        tilted, self.log_mass = _tilted(law, places, self.tilt)
        mean = float(tilted @ places)
        deviation = math.sqrt(n * max(float(tilted @ np.square(places - mean)), 1e-300))
        reach = math.ceil(_WIDTH * deviation) + len(law) + 2
        self.length = 1 << (2 * reach + 1).bit_length()
        self.sums: NDArray[Any] = math.floor(n * mean) - reach + np.arange(self.length)
        self.n, self.law, self.places, self.deviation = n, law, places, deviation
        self.chances = _power(tilted, first, n, self.length)[self.sums % self.length]
        # as in `channels.tails`: every entry is off by no more than this
        self.error = _ROUND * (n + 1) * (6.0 * math.log2(self.length) + 4.0)

    def logs(self) -> NDArray[Any]:
        """Return by how much the logarithm of a chance is above that of the tilted law."""
        found: NDArray[Any] = self.n * self.log_mass - self.tilt * self.sums
        return found

    def beyond(self) -> float:
        """Return a bound of the chance of a sum above the window."""
        end = float(self.sums[-1])
        tilts = [self.tilt + part * _WIDTH / max(self.deviation, 1.0) for part in (0.25, 0.5, 1.0)]
        exponent = min(self.n * _tilted(self.law, self.places, each)[1] - each * end for each in tilts)
        return math.exp(min(0.0, exponent))


def blanketed(rows: NDArray[np.float64], n: int, epsilon: float) -> float:
    """Return an upper bound of the central delta of shuffled reports, whatever the others' records.

    Parameters
    ----------
    rows : ndarray of float64, shape (inputs, values)
        P(report | input) of every user.
    n : int
        Users.
    epsilon : float
        Zero or more.

    Notes
    -----
    Let g(y) be the least chance of a report y under any input, and G their sum. Every report of the others is
    one of g/G with probability G whatever their record, which hides the user among them. If the rest are
    told, delta is E[(Z_1 + ... + Z_n)_+]/n, each Z being (P(y) - e^eps P'(y))/g(y) with probability g(y),
    else 0 (Balle, Bell, Gascon and Nissim, "The privacy blanket of the shuffle model", CRYPTO 2019, Lemmas
    5.1 to 5.3). Values between two points of the lattice are split among them with the same mean: by Jensen's
    inequality that only raises the expectation.
    """
    least = rows.min(axis=0)
    said = least > 0.0
    if not said.any():
        return 1.0
    lost = rows[:, ~said].sum(axis=1)  # reports that no blanket hides are told
    worst, seen = 0.0, set()
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            if i == j:
                continue
            told = np.stack([least[said], one[said], other[said]])
            told = told[:, np.lexsort(told)]
            if (key := told.tobytes()) in seen:
                continue  # by symmetry
            seen.add(key)
            found = _expected(told[1] - math.exp(epsilon) * told[2], told[0], n)
            worst = max(worst, found + float(lost[i]))
    return min(1.0, worst * _UP)


def _expected(gains: NDArray[np.float64], least: NDArray[np.float64], n: int) -> float:
    """Return an upper bound of E[(sum of Z)_+]/n, with Z = gains/least at the chances `least`, else 0."""
    values = np.append(gains / least, 0.0)
    chances = np.append(least, max(0.0, 1.0 - float(least.sum())))
    mean = float(chances @ values)
    if values.max() <= 0.0:
        return 0.0
    deviation = math.sqrt(float(chances @ np.square(values - mean)))
    step = max(deviation / _FINE, 4.0 * _WIDTH * deviation * math.sqrt(n) / _MOST)
    step = max(step, (float(values.max()) - float(values.min())) / (_MOST / 8.0))
    low = np.floor(values / step).astype(np.int64)
    share = values / step - low
    first = int(low.min())
    law: NDArray[Any] = np.bincount(
        low - first, weights=chances * (1.0 - share), minlength=int(low.max()) - first + 2
    )
    law = law + np.bincount(low + 1 - first, weights=chances * share, minlength=len(law))
    total = _Sum(law, first, n, 0.0)
    above = total.sums > 0
    sums = total.sums[above]
    weight = np.exp(np.minimum(total.logs()[above], 700.0)) * sums
    expected = float(np.maximum(total.chances[above], 0.0) @ weight) + total.error * float(weight.sum())
    # a sum beyond the window is at most n times the largest number
    expected += total.beyond() * n * (float(low.max()) + 1.0)
    return expected * step / n


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
    total = _Sum(noise, -reach, n, target)
    weights = np.exp(np.minimum(total.logs(), 700.0))
    upper = (np.maximum(total.chances, 0.0) + total.error) * weights
    lower = np.maximum(total.chances - total.error, 0.0) * weights
    gains = upper[:-steps] - math.exp(epsilon) * lower[steps:]
    # The true gain rises with the sum from below zero; a bound of it that is not above settles all before.
    settled = np.flatnonzero(gains <= 0.0)
    if not len(settled):
        return 1.0
    return min(1.0, (float(gains[settled[-1] + 1 :].sum()) + total.beyond()) * _UP)
