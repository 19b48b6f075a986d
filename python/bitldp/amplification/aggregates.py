"""Central privacy of a sum or a histogram of reports, from the integers of the local law."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix, Shift, Window
from bitldp.base import checks
from bitldp.channels.noise import is_log_concave
from bitldp.channels.tails import _power, _tilt, _tilted
from bitldp.release.shift import law_of

__all__ = [
    "shuffled_histogram_central_delta",
    "shuffled_histogram_central_epsilon",
    "summed_central_delta",
    "summed_central_epsilon",
]

_WORK = float(1 << 25)  # chances of all data sets that are looked at one by one
_FEW = 1000  # users of whom all data sets of two records are looked at; of more, some at a time
_ROUNDED = 1e-2  # of delta, that rounding may be
_USERS = 1 << 24
_HALVINGS = 40
_CLOSE = 1e-4  # relative, of an epsilon that is searched
_CLOSE_OF_BITS = 1e-6  # the same, of sums of bits

_ROUND = 2.0**-53  # unit roundoff of doubles
_WIDTH = 9.0  # standard deviations of the tilted sum that are looked at, to either side
_FINE = 64.0  # steps of the lattice for one deviation of a number
_MOST = 1 << 22  # steps of the window
_UP = 1.0 + 1e-9

_PARTS = 512  # of the others' records: within one of them 1/512 of the users are told, 0.1 % of epsilon
_MORE = 60.0  # steps of a binomial law beyond `_WIDTH` deviations that are looked at, to either side
_MISSED = 1e-13  # Bernstein's bound of what is not: 4 exp(-t^2/2(v + t/3)) at t = 9 sqrt(v) + 60 is below
_RELATIVE = 1e-9  # more than a running product of 2^24 factors loses
_STEEPEST = 600.0  # tilt; any is right, and this one still a double


def summed_central_epsilon(mechanism: Any, n: int, delta: float) -> float:
    """Return the central epsilon of the sum of n reports, if nothing but the sum is seen.

    Parameters
    ----------
    mechanism : Mechanism or channel
        What every user reports one number or category with: a mechanism of one column whose law is a
        `Window`, a `Matrix` or a `Shift`, or such a channel.
    n : int
        Users, each of whom sends one report, 1 to 2**24.
    delta : float
        Delta of the central guarantee, in (0, 1).

    Returns
    -------
    float
        Epsilon, rounded up and never above the local one: the sum of the codes is (epsilon,
        delta)-differentially private between data sets that differ in the record of one user.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, or a mechanism of several columns or of another law.

    Notes
    -----
    Assumptions, none of which this package can check: whoever adds up the reports (a secure aggregation)
    shows nothing but the sum; all n users report, with the same mechanism, each with fresh randomness, and do
    not tell. Users who collude or drop out must be subtracted from n. Against all others only the local
    epsilon holds. Do not charge this to a ledger of local releases.

    For noise that is added and never clamped (`Shift`, log-concave), the others' records only move the sum,
    and delta is that of the n-fold convolution of the integers. Otherwise the largest delta of every pair of
    neighbouring data sets is found, where they are not too many; of reports of two values by two inputs for
    any n, within 0.2 % of epsilon (data sets are bounded some at a time); else the bound of
    `shuffled_histogram_central_epsilon`, of which a sum is a function.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.amplification import summed_central_epsilon
    >>> round(summed_central_epsilon(bitldp.WarnerRR(epsilon=1.0), 100, 1e-6), 3)
    0.484
    """
    return _epsilon(mechanism, n, delta, True)


def summed_central_delta(mechanism: Any, n: int, epsilon: float) -> float:
    """Return the central delta of the sum of n reports at an epsilon; see `summed_central_epsilon`.

    Parameters
    ----------
    mechanism, n
        As of `summed_central_epsilon`.
    epsilon : float
        Finite, zero or more.
    """
    return _delta(mechanism, n, epsilon, True)


def shuffled_histogram_central_epsilon(mechanism: Any, n: int, delta: float) -> float:
    """Return the central epsilon of n reports of which an honest shuffler shows how often there is each.

    Parameters
    ----------
    mechanism, n, delta
        As of `summed_central_epsilon`.

    Returns
    -------
    float
        Epsilon, rounded up and never above the local one.

    Raises
    ------
    ValueError, TypeError
        As of `summed_central_epsilon`.

    Notes
    -----
    Assumptions: those of `bitldp.amplification.shuffled_central_epsilon`. That bound is a formula for any
    mechanism of a local epsilon; this one knows the law. It is the exact delta of the worst pair of
    neighbouring data sets where there are not too many (a few users, or few reports). Else the blanket of the
    law is accounted: what every record reports with the same chance, which hides a user (Balle, Bell, Gascon
    and Nissim, "The privacy blanket of the shuffle model", CRYPTO 2019). That is an upper bound, tight but
    for what the others' own records hide.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.amplification import shuffled_central_epsilon, shuffled_histogram_central_epsilon
    >>> round(shuffled_histogram_central_epsilon(bitldp.GRR(10, epsilon=1.0), 100_000, 1e-6), 4)
    0.0066
    >>> round(shuffled_central_epsilon(1.0, 100_000, 1e-6), 4)
    0.0726
    """
    return _epsilon(mechanism, n, delta, False)


def shuffled_histogram_central_delta(mechanism: Any, n: int, epsilon: float) -> float:
    """Return the central delta at an epsilon; see `shuffled_histogram_central_epsilon`.

    Parameters
    ----------
    mechanism, n
        As of `summed_central_epsilon`.
    epsilon : float
        Finite, zero or more.
    """
    return _delta(mechanism, n, epsilon, False)


def _law(mechanism: Any) -> Any:
    """Return the channel of one report."""
    channel: Any = mechanism
    if not isinstance(mechanism, (Matrix, Shift, Window)):
        if getattr(mechanism, "columns", 1) != 1:
            raise ValueError("mechanism: must report one number or category, not several columns")
        channel = getattr(mechanism, "channel", None)
        if channel is None:
            channels = list(getattr(mechanism, "channels", ()))
            channel = channels[0] if len(channels) == 1 else None
    if not isinstance(channel, (Matrix, Shift, Window)):
        name = type(mechanism).__name__
        raise TypeError(f"mechanism: its law must be one Matrix, Shift or Window, not {name}")
    return channel


def _is_free(channel: Any) -> bool:
    """Return whether noise is added that is never clamped."""
    return (
        isinstance(channel, Shift)
        and not channel.mute
        and channel.offset == channel.reach
        and channel.outputs == channel.inputs + 2 * channel.reach
        and is_log_concave(channel.weights())
    )


def _rows(channel: Any) -> NDArray[np.float64]:
    """Return the different rows of the law."""
    rows: NDArray[np.float64] = np.unique(channel.probabilities(), axis=0)
    return rows


def _exact(channel: Any, n: int, summed: bool, delta: float) -> Datasets | None:
    """Return all data sets, if they are not too many."""
    rows = _rows(channel)
    inputs, values = rows.shape
    grid = float(n * (values - 1) + 1) if summed else float(n + 1) ** (values - 1)
    work = grid * math.comb(n + inputs - 2, inputs - 1) * inputs * (inputs - 1)
    if work > _WORK or (rows.shape == (2, 2) and n > _FEW):
        return None
    every = Datasets(rows, n, summed)
    # of many users, what the rounding of a transform may be is more than a small delta
    return every if every.slack * math.exp(min(channel.epsilon, 700.0)) <= _ROUNDED * delta else None


def _bound(channel: Any, n: int, summed: bool) -> Callable[[float], float]:
    """Return delta as a function of epsilon, for many users."""
    if summed and _is_free(channel):
        noise, steps = law_of(channel), channel.inputs - 1
        return lambda epsilon: noised(noise, steps, n, epsilon)
    rows = _rows(channel)
    if rows.shape == (2, 2):
        return Binary(rows, n).delta
    return lambda epsilon: blanketed(rows, n, epsilon)


def _delta(mechanism: Any, n: Any, epsilon: Any, summed: bool) -> float:
    channel, n = _law(mechanism), checks.integer("n", n, 1, _USERS)
    epsilon = checks.budget("epsilon", epsilon)
    if epsilon >= channel.epsilon:
        return 0.0
    exact = None if summed and _is_free(channel) else _exact(channel, n, summed, math.inf)
    if exact is None:
        return _bound(channel, n, summed)(epsilon)
    worst = exact.delta(epsilon)
    return worst if exact.slack <= _ROUNDED * worst else min(worst, _bound(channel, n, summed)(epsilon))


def _epsilon(mechanism: Any, n: Any, delta: Any, summed: bool) -> float:
    channel, n = _law(mechanism), checks.integer("n", n, 1, _USERS)
    delta = checks.chance("delta", delta)
    local = float(channel.epsilon)
    if local == 0.0:
        return 0.0
    exact = None if summed and _is_free(channel) else _exact(channel, n, summed, delta)
    if exact is not None:
        return exact.epsilon(delta, local)
    rows = _rows(channel)
    if rows.shape == (2, 2) and not (summed and _is_free(channel)):
        return Binary(rows, n).epsilon(delta, local)
    return _least(_bound(channel, n, summed), delta, 0.0, local, close=_CLOSE)


def _least(
    reached: Callable[[float], float],
    delta: float,
    low: float,
    local: float,
    *,
    close: float,
    halvings: int = _HALVINGS,
) -> float:
    """Return about the least epsilon from `low` to `local` whose delta is small enough, rounded up."""
    high = local
    if math.isinf(local):  # noise that is cut off
        high = max(1.0, low)
        while reached(high) > delta:
            low, high = high, 2.0 * high
            if high > 700.0:
                return math.inf
    for _ in range(halvings):
        if high - low <= close * high:
            break
        middle = (low + high) / 2.0
        low, high = (low, middle) if reached(middle) <= delta else (middle, high)
    return high


class Datasets:
    """All pairs of neighbouring data sets of n users, and the laws of what is seen of them.

    Parameters
    ----------
    rows : ndarray of float64, shape (inputs, values)
        P(report | input) of every user.
    n : int
        Users.
    summed : bool
        Whether the sum of the codes is seen, or how often there is each.

    Notes
    -----
    What is seen has the characteristic function that is the product of the users'. It is taken on a grid that
    holds all outcomes, so nothing wraps around. A value of a law is off by at most ``n (6 log2 N + 4)`` unit
    roundoffs, for N outcomes; delta is rounded up by what all of them may be off.
    """

    def __init__(self, rows: NDArray[np.float64], n: int, summed: bool) -> None:
        inputs, values = rows.shape
        self.n, self.inputs = n, inputs
        shape = (n * (values - 1) + 1,) if summed else (n + 1,) * (values - 1)
        self.shape = shape
        points = np.zeros((inputs, *shape))
        for value in range(values):
            # of a histogram, the last count is what the others leave
            index = (value,) if summed else tuple(int(axis == value) for axis in range(values - 1))
            points.reshape(inputs, -1)[:, np.ravel_multi_index(index, shape)] += rows[:, value]
        axes = tuple(range(1, len(shape) + 1))
        self.factors = np.fft.rfftn(points, axes=axes)
        size = math.prod(shape)
        self.slack = size * _ROUND * (n + 1) * (6.0 * math.log2(max(size, 2)) + 4.0)

    def _laws(self) -> Iterator[NDArray[np.float64]]:
        """Yield, for all records of the others, the laws for every input of the one user."""
        axes = tuple(range(len(self.shape)))
        for counts in _compositions(self.n - 1, self.inputs):
            powers = [factor**count for factor, count in zip(self.factors, counts, strict=True)]
            others = np.prod(powers, axis=0)
            laws = [np.fft.irfftn(others * factor, self.shape, axes).ravel() for factor in self.factors]
            yield np.maximum(np.stack(laws), 0.0)

    def delta(self, epsilon: float) -> float:
        """Return the delta of the worst pair at an epsilon, rounded up."""
        worst = max(_delta_of_laws(laws, epsilon) for laws in self._laws())
        return min(1.0, worst + self._slack(epsilon))

    def _slack(self, epsilon: float) -> float:
        return self.slack * (1.0 + math.exp(min(epsilon, 700.0)))

    def epsilon(self, delta: float, local: float) -> float:
        """Return the epsilon of the worst pair at a delta, rounded up and never above the local one."""
        worst = 0.0
        for laws in self._laws():

            def reached(epsilon: float, laws: NDArray[np.float64] = laws) -> float:
                return _delta_of_laws(laws, epsilon) + self._slack(epsilon)

            if worst >= local:
                break
            if reached(worst) > delta:
                worst = _least(reached, delta, worst, local, close=0.0, halvings=60)
        return worst


def _delta_of_laws(laws: NDArray[np.float64], epsilon: float) -> float:
    """Return the largest hockey-stick divergence of any ordered pair of laws."""
    factor = math.exp(epsilon)
    return max(float(np.maximum(one - factor * laws, 0.0).sum(axis=1).max()) for one in laws)


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to share `total` among so many parts, in order."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)


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
        result: NDArray[Any] = self.n * self.log_mass - self.tilt * self.sums
        return result

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
    rows, n
        As of `Datasets`.
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
            result = _expected(told[1] - math.exp(epsilon) * told[2], told[0], n)
            worst = max(worst, result + float(lost[i]))
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


class _Others(NamedTuple):
    """Others of known records: how many, and the chance of a 1, of each; and the one user's two chances."""

    many: tuple[tuple[int, float], tuple[int, float]]
    one: float
    other: float


class Binary:
    """All pairs of neighbouring data sets of n users who report 0 or 1, some of them at a time.

    Parameters
    ----------
    rows, n
        As of `Datasets`; rows of shape (2, 2).

    Notes
    -----
    Of the others some c hold the one input. For all c from a to b delta is no more than where the reports of
    b - a of them are told besides, which leaves a sum of fewer users: one law bounds many data sets. With R
    the sum of the reports of those who are left, and p > p' the chances that the user reports 1,

        delta = sum over k of (x R(k - 1) - y R(k))_+,  x = p - e^eps p',  y = e^eps (1 - p') - (1 - p).

    R is log-concave (a sum of independent bits), so R(k - 1)/R(k) rises with k, and the terms above zero are
    the last ones. They begin where the ratio is y/x: where R tilted by t = ln(y/x) has its middle. So the
    chances of the tilted sum, a convolution of two binomial laws, are taken by a Fourier transform whose
    error is small beside them. Where p < p', 0 and 1 are exchanged.
    """

    def __init__(self, rows: NDArray[np.float64], n: int) -> None:
        self._chances, self._n = rows[:, 1].tolist(), n

    def _cases(self) -> Iterator[_Others]:
        """Yield what bounds all pairs of neighbouring data sets."""
        p, q = self._chances
        others = self._n - 1
        step = max(1, -(-others // _PARTS))
        for first in range(0, others + 1, step):
            last = min(first + step - 1, others)
            for one, other in ((p, q), (q, p)):
                known = ((first, p), (others - last, q))
                if one < other:
                    known = ((first, 1.0 - p), (others - last, 1.0 - q))
                    yield _Others(known, 1.0 - one, 1.0 - other)
                else:
                    yield _Others(known, one, other)

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of the delta of the worst pair at an epsilon."""
        return max(_delta_of_bits(case, epsilon) for case in self._cases())

    def epsilon(self, delta: float, local: float) -> float:
        """Return an upper bound of the epsilon of the worst pair at a delta, never above the local one."""
        worst = 0.0
        for case in self._cases():
            if worst >= local:
                break
            if _delta_of_bits(case, worst) > delta:
                worst = _least(partial(_delta_of_bits, case), delta, worst, local, close=_CLOSE_OF_BITS)
        return worst


def _delta_of_bits(case: _Others, epsilon: float) -> float:
    """Return an upper bound of delta for some users of known records and the one user."""
    factor = math.exp(epsilon)
    x = case.one - factor * case.other
    y = factor * (1.0 - case.other) - (1.0 - case.one)
    if x <= 0.0:
        return 0.0
    if y <= 0.0:
        return 1.0
    tilt = min(max(0.0, math.log(y) - math.log(x)), _STEEPEST)
    chances, first, log_mass = np.ones(1), 0, 0.0
    for users, chance in case.many:
        odds = chance * math.exp(tilt)
        mass = 1.0 - chance + odds
        law, start = _binomial(users, min(1.0, odds / mass))
        log_mass += users * math.log(mass)
        chances, first = _added(chances, law), first + start
    error = 4.0 * _ROUND * (6.0 * math.log2(len(chances) + 2) + 4.0) + _MISSED
    sums = first + np.arange(-1, len(chances) + 1)  # and the two beside the window
    weights = np.exp(np.minimum(log_mass - tilt * sums, 700.0))
    held = np.pad(np.maximum(chances, 0.0), 1)
    upper = (held * (1.0 + _RELATIVE) + error) * weights
    lower = np.maximum(held * (1.0 - _RELATIVE) - error, 0.0) * weights
    gains = x * upper[:-1] - y * lower[1:]
    # The true gain rises with the sum from below zero; a bound of it that is not above settles all before.
    settled = np.flatnonzero(gains <= 0.0)
    start = int(settled[-1]) + 1 if len(settled) else 0
    if not len(settled) and first > 0:
        return 1.0
    beyond = _MISSED * x * float(weights[start])  # the window, above
    return min(1.0, (float(gains[start:].sum()) + beyond) * _UP)


def _binomial(users: int, chance: float) -> tuple[NDArray[np.float64], int]:
    """Return the chances of a binomial law about its middle, of sum 1, and the first number they are of."""
    if users == 0 or chance in (0.0, 1.0):
        return np.ones(1), users if chance == 1.0 else 0
    middle = min(users, int((users + 1) * chance))
    reach = math.ceil(_WIDTH * math.sqrt(users * chance * (1.0 - chance)) + _MORE)
    low, high = max(0, middle - reach), min(users, middle + reach)
    odds = chance / (1.0 - chance)
    up = np.arange(middle, high)
    down = np.arange(middle, low, -1)
    above = np.cumprod((users - up) / (up + 1.0) * odds)
    below = np.cumprod(down / ((users - down + 1.0) * odds))
    law = np.concatenate([below[::-1], [1.0], above])
    return law / law.sum(), low


def _added(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the law of a sum."""
    size = len(one) + len(other) - 1
    if min(len(one), len(other)) == 1:
        return np.asarray(one * other)
    length = 1 << (size - 1).bit_length()
    return np.asarray(np.fft.irfft(np.fft.rfft(one, length) * np.fft.rfft(other, length), length)[:size])
