"""EXP, PS and PE: private selection of a large coordinate.

Source: Liu, Cao, Yoshikawa and Chen, "FedSel: Federated SGD under Local Differential Privacy with Top-k
Dimension Selection", DASFAA 2020, Section 4.1 and Algorithms 2 to 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from decimal import Context, Decimal, localcontext
from functools import lru_cache
from typing import Annotated, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Select
from bitldp.base import checks
from bitldp.channels.ranks import ROOM as _ROOM
from bitldp.channels.ranks import top_weights
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.means import countable
from bitldp.estimate.statistics import counts_of
from bitldp.letters.reach import Reach
from bitldp.mechanism.parameters import Budget, Calibration, FieldId, at_least
from bitldp.privacy import calibrated
from bitldp.selection.base import MOST, Selection

__all__ = ["EXP", "PE", "PS", "chances_of_bit", "log", "mean_shares", "product_of_powers"]


class TopAccumulator(CountAccumulator):
    """Counts of selected coordinates, for the share of vectors that have each among their top k."""

    def estimate(self, *, project: bool = False) -> Estimate:
        """Estimate the shares; they sum to k, so that there is no simplex to project to.

        Raises
        ------
        ValueError
            If nothing has been accumulated, or for ``project=True``.
        """
        if project:
            raise ValueError("project: must be False; the shares of a top k sum to k, not to 1")
        return super().estimate()


class TopSelection(Selection):
    """Base of PS and PE: each of the k largest is reported with one probability, each other with another."""

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example: the 10 largest coordinates, or all but one."""
        parameters = super()._usual(epsilon, size)
        return parameters | {"k": max(1, min(10, parameters["features"] - 1))}

    def _chances(self) -> tuple[float, float]:
        """Return P(a given top coordinate) and P(a given other one), which must differ."""
        weights, total = self._channel.weights(), self._channel.total
        high, low = int(weights[-1]), int(weights[0])
        if high == low:
            self._refuse_uninformative()
        return high / total, low / total

    def _refuse_uninformative(self) -> NoReturn:
        raise ValueError(
            f"{type(self).__name__}: no unbiased decode exists at epsilon 0, all coordinates are alike"
        )

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return unbiased letters of "coordinate j is among the k largest", for every j.

        Parameters
        ----------
        reports : array_like of int, shape (n,)
            Selected coordinates.

        Returns
        -------
        ndarray of float64, shape (n, features)
            ``(indicator - b)/(a - b)``, a and b being the chances of a top coordinate and of another one.
            Ties at the k-th place count with the chance to be in the top k.

        Raises
        ------
        ValueError
            At epsilon 0, or for anything but such reports.
        """
        high, low = self._chances()
        codes = self._check_reports(reports)
        own = codes[:, None] == np.arange(self._channel.dimensions)
        return np.where(own, 1.0 - low, -low) / (high - low)

    def estimate_frequencies(self, reports: ArrayLike, *, project: bool = False) -> Estimate:
        """Estimate, without bias, the share of vectors that have each coordinate among their k largest.

        Parameters
        ----------
        reports : array_like of int, shape (n,)
            Selected coordinates of n >= 1 vectors.
        project : bool
            Must be False: the shares sum to k.

        Returns
        -------
        Estimate
            Shape (features,).

        Raises
        ------
        ValueError
            At epsilon 0, for no reports, or for ``project=True``.
        """
        return self.accumulator()._filled(reports).estimate(project=project)

    def accumulator(self) -> TopAccumulator:
        """Return an empty accumulator of the counts; see `Mechanism.accumulator`."""
        shape = (self._channel.dimensions,)
        return TopAccumulator(self, shape, self._count, self._chances(), exclusive=False)

    def _count(
        self, reports: Any, records: int | None = None, threads: int | None = None
    ) -> tuple[int, NDArray[np.int64]]:
        form, array = "packed", reports
        if records is None:
            form, array = "codes", countable("reports", reports)
            if array.ndim != 1:
                raise ValueError(f"reports: shape must be (n,), got {array.shape}")
            records = len(array)
        cells = self._channel.outputs
        result = counts_of(array, 1, cells, form, records, threads)
        return records, result[0, : self._channel.dimensions]

    def variance(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of the letters that `decode` gives, in closed form.

        Parameters
        ----------
        scores : array_like of float, shape (n, features)
            Vectors.

        Returns
        -------
        ndarray of float64, shape (n, features)
            P (1 - P)/(a - b)^2, P the probability to report the coordinate.

        Raises
        ------
        ValueError
            At epsilon 0, or for scores of another shape or not finite.
        """
        high, low = self._chances()
        chance = self.law(scores)[:, : self._channel.dimensions]
        return chance * (1.0 - chance) / (high - low) ** 2

    def _reach(self, total: bool = False) -> tuple[Reach]:
        """Return the letters of the coordinate that is reported, if any, and of the others."""
        count, none = self._channel.dimensions, self._channel.outputs > self._channel.dimensions
        reach = Reach.of_counts(*self._chances(), count, (0 if none else 1, 1))
        return (replace(reach, total=self.parameters["k"]),)

    def mean_variance(self) -> float:
        """Return the mean of `variance` over the coordinates of a vector without equal magnitudes.

        See `Mechanism.mean_variance`.
        """
        return float(self._by_rank().mean())

    def worst_variance(self) -> float:
        """Return the largest `variance` of a coordinate of a vector without equal magnitudes.

        See `Mechanism.worst_variance`.
        """
        return float(self._by_rank().max())

    def _by_rank(self) -> NDArray[np.float64]:
        ranks = np.arange(1.0, self._channel.dimensions + 1.0)
        return self.variance(ranks[None, :])[0]


@dataclass(frozen=True, eq=False, repr=False)
class EXP(Selection):
    """Exponential selection (EXP): selects a coordinate by the rank of its magnitude.

    The coordinate of rank z = 1..d has the weight e^(eps z/(d - 1)).

    Parameters
    ----------
    features : int
        Coordinates d of a vector, 2 to 2**24.
    epsilon : float
        Privacy budget of a vector, finite, zero or more; the exact epsilon is at most that (see Notes).

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbours are any two vectors. The law depends on ranks only: the ratio of the last to the first is
    e^eps, whatever the numbers are, so Lemma 1 of the paper holds with equality. Weights are integers of 64
    bits, which bounds the exact epsilon, however large the budget: 43 at d = 2, 34 at d = 10^6.

    The paper's Algorithm 2 takes O(d^2); here a rank is drawn by one 64-bit number and its coordinate
    found in O(d). The search is not constant-time.

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp.selection import EXP
    >>> EXP(5, epsilon=2.0).probabilities().round(3)
    array([0.058, 0.096, 0.158, 0.26 , 0.429])
    >>> EXP(3, epsilon=30.0).randomize(np.array([[0.5, -4.0, 1.0]]))
    array([1], dtype=uint8)
    """

    features: Annotated[int, at_least(2, MOST), FieldId("dimensions")]
    _: KW_ONLY
    epsilon: Budget

    def _build(self) -> None:
        self._finish(exp_channel(self.features, self.epsilon))


@dataclass(frozen=True, eq=False, repr=False)
class PS(TopSelection):
    """Perturbed sampling (PS): selects one of the k largest coordinates, or one of the rest.

    One of the k largest is selected with probability p = e^eps k/(d - k + e^eps k).

    Parameters
    ----------
    features, epsilon
        As of `EXP`.
    k : int
        How many coordinates count as large, 1 to d - 1.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbours are any two vectors. Lemma 3 of the paper holds with equality. Prefer it to the other two
    selections: at equal exact epsilon `PE` was never better, and `EXP` spreads its weight over all ranks.
    Weights are integers of 64 bits, which bounds the exact epsilon, however large the budget, at 44.3 -
    ln(k).

    `estimate_frequencies` estimates the share of vectors that have each coordinate among their k largest.

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp.selection import PS
    >>> mechanism = PS(100, k=10, epsilon=1.0)
    >>> mechanism.probabilities()[[0, -1]].round(6)
    array([0.008534, 0.023197])
    >>> mechanism.randomize(np.zeros((4, 100)), rng=1).shape
    (4,)
    """

    features: Annotated[int, at_least(2, MOST), FieldId("dimensions")]
    _: KW_ONLY
    k: int
    epsilon: Budget

    def _build(self) -> None:
        self._set(k=checks.integer("k", self.k, 1, self.features - 1))
        self._finish(ps_channel(self.features, self.k, self.epsilon))


@dataclass(frozen=True, eq=False, repr=False)
class PE(TopSelection):
    """Perturbed encoding (PE): flips which coordinates are among the k largest, then selects one of those.

    Parameters
    ----------
    features, k
        As of `PS`.
    epsilon : float
        Privacy budget of a vector, finite, zero or more.
    calibration : {"exact", "paper"}
        "exact": a bit is kept with the `p` at which the exact epsilon of the selection is `epsilon`. "paper":
        p = e^eps/(1 + e^eps), for which Lemma 2 of the paper claims `epsilon`; the exact one is larger, by
        less than ln 2, and a `PrivacyClaimWarning` says so.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbours are any two vectors. Only one index is released, so the d bits are not drawn one by one: by
    symmetry the index is each of the k largest with one probability, p E 1/(1 + Bin(k - 1, p) + Bin(d - k, 1
    - p)), each other one with another, (1 - p) E 1/(1 + Bin(k, p) + Bin(d - k - 1, 1 - p)), and none
    (reported as `features`) with (1 - p)^k p^(d - k), whatever the vector is. The integers that are sampled
    are those.

    The proof of Lemma 2 assumes the same number of ones for both vectors. This is not the case, which
    explains the larger exact epsilon. With "exact" calibration, `PE` was never better than `PS`.

    Examples
    --------
    >>> from bitldp.selection import PE
    >>> round(PE(100, k=10, epsilon=4.0).p, 7)
    0.9805119
    """

    features: Annotated[int, at_least(2, MOST), FieldId("dimensions")]
    _: KW_ONLY
    k: int
    epsilon: Budget
    calibration: Calibration = "exact"

    _p: float = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        self._set(k=checks.integer("k", self.k, 1, self.features - 1))
        channel, p = pe_channel(self.features, self.k, self.epsilon, self.calibration)
        self._finish(channel)
        self._set(_p=p)

    @property
    def p(self) -> float:
        """Probability that a status bit of the paper's algorithm is kept."""
        return self._p


_FINE = 0.5  # gaps up to it are formed by 1 - e^-y, which keeps their digits
_LARGEST = 44.0  # above, the largest weight would pass 2^64
_STEEPEST = 700.0  # log-odds of a status bit; doubles end at e^709
_HALVINGS = 80  # of an interval of log-odds: past the last place of a double


@lru_cache(maxsize=64)
def exp_channel(dimensions: int, epsilon: float) -> Select:
    """Return EXP: rank z = 1..d with weight e^(eps z/(d-1))."""

    def build(target: float) -> Select:
        gaps = min(target, _LARGEST) * (np.arange(dimensions - 1, -1, -1) / (dimensions - 1))
        falling = _exp(-gaps)
        top = math.floor(_ROOM / float(falling.sum()))
        # T e^-y, rounded up but for the largest: T less T (1 - e^-y) where y is small, to keep its digits
        small = np.maximum(np.ceil(top * falling), 1.0)
        weights = small.astype(np.uint64)
        fine = gaps <= _FINE
        weights[fine] = np.uint64(top) - np.floor(top * _fallen(gaps[fine])).astype(np.uint64)
        return Select(np.ones(dimensions, np.uint32), weights)

    return calibrated(build, epsilon, lambda channel: channel.epsilon)


@lru_cache(maxsize=64)
def ps_channel(dimensions: int, k: int, epsilon: float) -> Select:
    """Return PS: each of the k largest e^eps times as likely as each other coordinate."""

    def build(target: float) -> Select:
        return _two(dimensions, k, *top_weights(dimensions, k, target), None)

    return calibrated(build, epsilon, lambda channel: channel.epsilon)


def _two(dimensions: int, k: int, high: int, low: int, nothing: int | None) -> Select:
    """Return the channel of two runs: d - k ranks of weight `low`, then k of weight `high`."""
    counts = np.array([dimensions - k, k], np.uint32)
    return Select(counts, np.array([low, high], np.uint64), nothing)


def pe_channel(dimensions: int, k: int, epsilon: float, calibration: Calibration) -> tuple[Select, float]:
    """Return PE, and the p with which a status bit is kept.

    "paper": p = e^eps/(1 + e^eps), the budget of one bit. "exact": p such that the exact epsilon of the
    selection is `epsilon`.
    """
    if calibration == "paper":
        return _pe(dimensions, k, min(epsilon, _STEEPEST)), chances_of_bit(epsilon)[0]
    return _pe_exact(dimensions, k, epsilon)


@lru_cache(maxsize=64)
def _pe_exact(dimensions: int, k: int, epsilon: float) -> tuple[Select, float]:
    def build(target: float) -> tuple[Select, float]:
        odds = pe_odds(dimensions, k, target)
        return _pe(dimensions, k, odds), odds

    channel, odds = calibrated(build, epsilon, lambda built: built[0].epsilon)
    return channel, chances_of_bit(odds)[0]


@lru_cache(maxsize=64)
def _pe(dimensions: int, k: int, odds: float) -> Select:
    top, other, nothing = pe_chances(dimensions, k, odds)
    # Ranks beyond what 64 bits resolve keep a weight of 1; the top weight gives way.
    low = max(1, math.ceil(_ROOM * other))
    high = min(max(math.floor(_ROOM * top), low), (_ROOM - (dimensions - k) * low) // k)
    if odds == 0.0:  # the two chances are the same, and must not differ in their last digits
        high = low
    return _two(dimensions, k, high, low, math.floor(_ROOM * nothing))


def pe_chances(dimensions: int, k: int, odds: float) -> tuple[float, float, float]:
    """Return the output law of PE's algorithm: P(a given top coordinate), P(a given other one), P(none).

    Each status bit is kept with probability p = e^u/(1 + e^u), u = `odds`, and one of the ones is reported,
    uniformly. A given coordinate is reported with the probability of its bit times E 1/(1 + X), where X
    counts the ones among the others; nothing matters but whether the coordinate is one of the k largest.
    """
    keep, flip = chances_of_bit(odds)
    rest = dimensions - k
    of_top, of_other = mean_shares(keep, flip, [(k - 1, rest), (k, rest - 1)])
    return keep * of_top, flip * of_other, product_of_powers(flip, k, rest)


@lru_cache(maxsize=256)
def pe_odds(dimensions: int, k: int, epsilon: float) -> float:
    """Return the log-odds u of keeping a status bit at which PE's exact epsilon is `epsilon`.

    That epsilon is u plus a term between 0 and ln 2, so u lies between epsilon - ln 2 and epsilon.
    """
    if epsilon == 0.0:
        return 0.0
    low, high = max(0.0, epsilon - math.log(2.0)), min(epsilon, _STEEPEST)
    low = min(low, high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        top, other, _nothing = pe_chances(dimensions, k, middle)
        within = other > 0.0 and log(top / other) <= epsilon
        low, high = (middle, high) if within else (low, middle)
    return low


_PANELS = 30  # of [0, 1], halved again and again toward 0
_NODES = 48  # of each panel
_DECIMALS = Context(prec=40)  # whose exponentials and logarithms are rounded correctly
_NEWTON = 8  # steps from a first guess to all of the digits
_ODD = 19  # terms of the logarithm's series, at arguments up to 1/3
_TAYLOR = 14  # terms of the exponential's, at arguments up to ln(2)/2
_LN2 = math.ldexp(0x162E42FEFA39EF, -53)
_LN2_HIGH = math.ldexp(
    0x162E42FEF, -33
)  # its first 33 bits: products with whole numbers up to 2^20 are exact
_LN2_LOW = math.ldexp(0x1473DE6AF278ED, -86)  # and what is left
_LEAST = -800.0  # e to this is 0


def chances_of_bit(odds: float) -> tuple[float, float]:
    """Return p = e^u/(1 + e^u), with which a status bit is kept, and 1 - p, for the log-odds u."""
    with localcontext(_DECIMALS):
        flipped = Decimal(-odds).exp()  # 0 at the largest odds, where the other sign would overflow
        return float(1 / (1 + flipped)), float(flipped / (1 + flipped))


def log(x: float) -> float:
    """Return ln x, for x above zero."""
    with localcontext(_DECIMALS):
        return float(Decimal(x).ln())


def product_of_powers(x: float, n: int, m: int) -> float:
    """Return x^n (1 - x)^m, for x in (0, 1)."""
    with localcontext(_DECIMALS):
        return float((n * Decimal(x).ln() + m * (1 - Decimal(x)).ln()).exp())


def mean_shares(keep: float, flip: float, bits: Sequence[tuple[int, int]]) -> list[float]:
    """Return E 1/(1 + Bin(kept_bits, keep) + Bin(flipped_bits, flip)), to about 13 digits, for pairs of bits.

    It is the integral of the generating function E s^X over s in [0, 1]; with s = 1 - t,

        integral of (1 - keep t)^kept_bits (1 - flip t)^flipped_bits dt,

    a positive, decreasing polynomial. It may fall off within 1/(number of bits), so [0, 1] is cut into panels
    that halve toward t = 0, each with a Gauss-Legendre rule.
    """
    nodes, weights = _rule()
    of_kept, of_flipped = _log_of_rest(keep * nodes), _log_of_rest(flip * nodes)
    return [
        math.fsum((weights * _exp(kept_bits * of_kept + flipped_bits * of_flipped)).tolist())
        for kept_bits, flipped_bits in bits
    ]


def _log_of_rest(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ln(1 - x) for x in [0, 1): twice the inverse hyperbolic tangent of z, at |z| <= 1/3."""
    far = x >= 0.5  # where 1 - x is exact
    part, power = np.frexp(np.where(far, 1.0 - x, 0.5))
    z = np.where(far, (part - 1.0) / (part + 1.0), -x / (2.0 - x))
    square, series = z * z, np.zeros_like(z)
    for odd in range(2 * _ODD - 1, 0, -2):
        series = series * square + 1.0 / odd
    return 2.0 * z * series + power * _LN2


def _fallen(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 - e^-y for y in [0, 1/2]."""
    result = np.ones_like(y)
    for term in range(_TAYLOR + 2, 1, -1):
        result = 1.0 - y / term * result
    return y * result


def _exp(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return e^x for x up to 0."""
    x = np.maximum(x, _LEAST)
    power = np.rint(x / _LN2)
    rest = (x - power * _LN2_HIGH) - power * _LN2_LOW
    series = np.ones_like(x)
    for term in range(_TAYLOR, 0, -1):
        series = series * rest / term + 1.0
    return np.ldexp(series, power.astype(np.int32))


@lru_cache(maxsize=1)
def _rule() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights on [0, 1]."""
    points, weights = (np.array(each) for each in zip(*map(_node, range(_NODES)), strict=True))
    ends = np.concatenate([[0.0], np.ldexp(1.0, np.arange(-_PANELS, 1))])
    half = np.diff(ends)[:, None] / 2.0
    return (ends[:-1, None] + half * (1.0 + points)).ravel(), (half * weights).ravel()


def _node(position: int) -> tuple[float, float]:
    """Return a root of the Legendre polynomial on [-1, 1], and its weight, by Newton's steps in decimals."""
    with localcontext(_DECIMALS):
        x = Decimal(-math.cos(math.pi * (position + 0.75) / (_NODES + 0.5)))
        for _ in range(_NEWTON):
            before, value = Decimal(1), x
            for n in range(2, _NODES + 1):
                before, value = value, ((2 * n - 1) * x * value - (n - 1) * before) / n
            slope = _NODES * (x * value - before) / (x * x - 1)
            x -= value / slope
        return float(x), float(2 / ((1 - x * x) * slope * slope))
