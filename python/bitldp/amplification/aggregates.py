"""Central privacy of a sum or a histogram of reports, from the integers of the local law."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Cap, Design, Matrix, Shift, Subset, Unary, Window
from bitldp.accounting.search import least_epsilon
from bitldp.amplification.binary import Binary
from bitldp.amplification.blankets import blanketed, pairs
from bitldp.amplification.datasets import Datasets
from bitldp.amplification.sums import clamped, noised, summed
from bitldp.amplification.vectors import SummedVectors
from bitldp.base import checks
from bitldp.channels.noise import is_log_concave
from bitldp.channels.normal import epsilon_of
from bitldp.mechanism.base import Mechanism
from bitldp.mechanism.law import Coordinates
from bitldp.privacy import Guarantee
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
_CLOSE = 1e-4  # relative, of an epsilon that is searched


def summed_central_epsilon(mechanism: Any, n: int, delta: float) -> float:
    """Return the central epsilon of the sum of n reports, if only the sum is visible.

    Parameters
    ----------
    mechanism : Mechanism or channel
        What every user reports one number or category with: a mechanism of one column whose law is a
        `Window`, a `Matrix` or a `Shift`, or such a channel. For sums, also a mechanism of several numbers
        or of a vector that adds symmetric noise to each (`BallGaussian`, `Gaussian`, `Laplace`); for shuffled
        reports, a `Design`, a `Subset` or a `Unary` (`BlockDesign`, `SubsetSelection`, `OUE`), too, and local
        hashing (`OLH`), whose functions are public.
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
        For a parameter out of its range, a mechanism of several columns or of another law, or a sum of so
        much noise that it would take minutes.

    Notes
    -----
    The result relies on assumptions that this package cannot check. The party that adds up the reports (a
    secure aggregation) reveals only the sum. All n users report with the same mechanism and fresh randomness,
    and do not disclose their reports. Subtract users who collude or drop out from n. Against anyone else,
    only the local epsilon holds. Do not charge this epsilon to a ledger of local releases.

    For noise that is added and never clamped (`Shift`, log-concave), the others' records only move the sum,
    and delta is that of the n-fold convolution of the integers. If it is clamped far out (`BallGaussian`,
    `Skellam`), the few others whose noise is that large count as disclosed. Otherwise, the largest delta over
    all pairs of neighbouring data sets is found, if they are not too many. For two inputs and two report
    values this works for any n, within 0.2 % of epsilon (data sets are bounded in groups). In the remaining
    cases the bound is that of `shuffled_histogram_central_epsilon`, since a sum is a function of the
    histogram.

    For vectors the result is a bound by normal laws that are at least as easy to distinguish as two records:
    the distance of the records in steps (within a ball, or with all numbers moved by the whole interval)
    times a slope that follows from the integers of the sum's noise (`bitldp.sums.normal.slope_of_sum`), as in
    `bitldp.sums.Vector`. The few reports that are clamped count as disclosed. The local epsilon, at `delta`,
    is then also that of normal laws.

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
    mechanism : Mechanism or channel
        What every user reports one number or category with: a mechanism of one column whose law is a
        `Window`, a `Matrix` or a `Shift`, or such a channel. For sums, also a mechanism of several numbers
        or of a vector that adds symmetric noise to each (`BallGaussian`, `Gaussian`, `Laplace`); for shuffled
        reports, a `Design`, a `Subset` or a `Unary` (`BlockDesign`, `SubsetSelection`, `OUE`), too, and local
        hashing (`OLH`), whose functions are public.
    n : int
        Users, each of whom sends one report, 1 to 2**24.
    epsilon : float
        Finite, zero or more.
    """
    return _delta(mechanism, n, epsilon, True)


def shuffled_histogram_central_epsilon(mechanism: Any, n: int, delta: float) -> float:
    """Return the central epsilon of n reports if an honest shuffler reveals only their histogram.

    Parameters
    ----------
    mechanism : Mechanism or channel
        What every user reports one number or category with: a mechanism of one column whose law is a
        `Window`, a `Matrix` or a `Shift`, or such a channel. For sums, also a mechanism of several numbers
        or of a vector that adds symmetric noise to each (`BallGaussian`, `Gaussian`, `Laplace`); for shuffled
        reports, a `Design`, a `Subset` or a `Unary` (`BlockDesign`, `SubsetSelection`, `OUE`), too, and local
        hashing (`OLH`), whose functions are public.
    n : int
        Users, each of whom sends one report, 1 to 2**24.
    delta : float
        Delta of the central guarantee, in (0, 1).

    Returns
    -------
    float
        Epsilon, rounded up and never above the local one.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, a mechanism of several columns or of another law, or a sum of so
        much noise that it would take minutes.
        Also for noise or tables of too many inputs and reports.

    Notes
    -----
    The assumptions are those of `bitldp.amplification.shuffled_central_epsilon`. That bound is a formula for
    any mechanism with a given local epsilon, while this one uses the law of the mechanism. If there are not
    too many neighbouring data sets (a few users, or few reports), it is the exact delta of the worst pair.
    Otherwise, it accounts for the privacy blanket of the law, the part of a report that has the same
    probability for every record and so hides a user (Balle, Bell, Gascon and Nissim, "The privacy blanket of
    the shuffle model", CRYPTO 2019). That is an upper bound, which is tight except for the protection that
    the others' own records add. For blocks of cells (`GRR`, `Piecewise`, `BlockDesign`) it needs one number
    only: the least number of cells that two blocks share.

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
    mechanism : Mechanism or channel
        What every user reports one number or category with: a mechanism of one column whose law is a
        `Window`, a `Matrix` or a `Shift`, or such a channel. For sums, also a mechanism of several numbers
        or of a vector that adds symmetric noise to each (`BallGaussian`, `Gaussian`, `Laplace`); for shuffled
        reports, a `Design`, a `Subset` or a `Unary` (`BlockDesign`, `SubsetSelection`, `OUE`), too, and local
        hashing (`OLH`), whose functions are public.
    n : int
        Users, each of whom sends one report, 1 to 2**24.
    epsilon : float
        Finite, zero or more.
    """
    return _delta(mechanism, n, epsilon, False)


class _Report(NamedTuple):
    """The law of one report: its channel, and whether a public number says what its codes mean."""

    channel: Any
    public: bool

    @property
    def epsilon(self) -> float:
        """Exact epsilon of a report, locally."""
        return float(np.max(self.channel.epsilon))


_TABLES = (Matrix, Shift, Window)  # laws that all data sets of are looked at, and whose codes may be added up
_KINDS = (*_TABLES, Cap, Design, Subset, Unary)


def _law(mechanism: Any, added: bool) -> _Report:
    """Return the law of one report, of which codes are added up or counted."""
    report = _stated(mechanism)
    if not isinstance(report.channel, _TABLES if added else _KINDS):
        kinds = "Matrix, Shift or Window" if added else "Matrix, Shift, Window, Cap, Design, Subset or Unary"
        raise TypeError(f"mechanism: its law must be one {kinds}, not {type(mechanism).__name__}")
    if report.public and (added or isinstance(report.channel, (Matrix, Shift))):
        raise TypeError(
            f"mechanism: the codes of {type(mechanism).__name__} depend on a public number, "
            "so a bound of codes alone does not cover its reports"
        )
    return report


def _stated(mechanism: Any) -> _Report:
    if isinstance(mechanism, _KINDS):
        return _Report(mechanism, False)
    if getattr(mechanism, "columns", 1) != 1 and not isinstance(getattr(mechanism, "channel", None), Cap):
        raise ValueError("mechanism: must report one number or category, not several columns")
    if not isinstance(mechanism, Mechanism):
        raise TypeError(f"mechanism: must be a mechanism or a channel, not {type(mechanism).__name__}")
    symbols = mechanism._symbols()
    laws = [law for each in symbols for law in each.laws]
    if len(laws) > 1:
        raise ValueError("mechanism: must have one law, not one for each region")
    if sum(each.times for each in symbols) > 1:
        raise ValueError("mechanism: must report one number or category, not several columns")
    codes = [columns for columns, _ in mechanism._report_parts]
    if not laws or isinstance(laws[0], Guarantee):  # the channel of a ball's coordinate, or a mute one
        if codes != [1]:
            raise ValueError("mechanism: must report one number or category, not several columns")
        channel = getattr(mechanism, "channel", None)
        laws = [*getattr(mechanism, "channels", ())] if channel is None else [channel]
    if len(laws) != 1:
        raise TypeError(f"mechanism: its law must be that of one channel, not {type(mechanism).__name__}")
    # one code is the report, or a string of bits is; else public numbers come with it
    plain = codes == [1] or isinstance(laws[0], (Subset, Unary))
    return _Report(laws[0], not plain)


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


def _values(channel: Any) -> int:
    return int(channel.cells if isinstance(channel, Window) else channel.outputs)


def _exact(report: _Report, n: int, added: bool, delta: float) -> Datasets | None:
    """Return all data sets, if they are not too many."""
    channel = report.channel
    if report.public or not isinstance(channel, _TABLES) or (added and _is_free(channel)):
        return None
    values = _values(channel)
    # in logarithms, since there may be more outcomes than any double
    outcomes = math.log(n * (values - 1) + 1) if added else (values - 1) * math.log(n + 1)
    if outcomes > math.log(_WORK) or values * values > _WORK:
        return None
    rows = _rows(channel)
    inputs = len(rows)
    ways = math.lgamma(n + inputs - 1) - math.lgamma(n) - math.lgamma(inputs)
    work = outcomes + ways + math.log(max(inputs * (inputs - 1), 1))
    if work > math.log(_WORK) or (rows.shape == (2, 2) and n > _FEW):
        return None
    every = Datasets(rows, n, added)
    # of many users, what the rounding of a transform may be is more than a small delta
    return every if every.slack * math.exp(min(channel.epsilon, 700.0)) <= _ROUNDED * delta else None


def _bits(report: _Report) -> NDArray[np.float64] | None:
    """Return the two rows of a report of two values by two inputs; None of another."""
    if report.public or not isinstance(report.channel, _TABLES) or _values(report.channel) != 2:
        return None
    rows = _rows(report.channel)
    return rows if rows.shape == (2, 2) else None


def _bound(report: _Report, n: int, added: bool) -> Callable[[float], float]:
    """Return delta as a function of epsilon, for many users."""
    channel = report.channel
    if added and _is_free(channel):
        noise, steps = law_of(channel), channel.inputs - 1
        return lambda epsilon: noised(noise, steps, n, epsilon)
    rows = _bits(report)
    if rows is not None:
        return Binary(rows, n).delta
    held = clamped(channel) if added and isinstance(channel, Shift) else None
    if held is not None:
        law = held
        return lambda epsilon: summed(law, n, epsilon)
    inputs = pairs(channel)
    return lambda epsilon: blanketed(inputs, n, epsilon)


def _vectors(mechanism: Any, added: bool) -> Coordinates | None:
    """Return the law of the coordinates of a vector whose reports are added up; None of one number."""
    if not added or not isinstance(mechanism, Mechanism) or mechanism.columns == 1:
        return None
    return mechanism._coordinates()


def _delta_of_vectors(mechanism: Any, law: Coordinates, n: int, epsilon: float) -> float:
    """Return the delta of a sum of vectors, never above that of one report."""
    local = mechanism.guarantee
    if not local.delta and epsilon >= local.record:
        return 0.0
    known = getattr(mechanism, "delta_at", None)  # of those that have a delta
    alone = 1.0 if known is None else float(known(epsilon))
    return min(SummedVectors(law, n).delta(epsilon), alone)


def _epsilon_of_vectors(mechanism: Any, law: Coordinates, n: int, delta: float) -> float:
    """Return the epsilon of a sum of vectors, never above that of one report."""
    local, apart = mechanism.guarantee, getattr(mechanism, "gdp_mu", math.inf)
    alone = min(epsilon_of(apart, delta), local.record if delta >= local.delta else math.inf)
    return min(SummedVectors(law, n).epsilon(delta), alone)


def _delta(mechanism: Any, n: Any, epsilon: Any, added: bool) -> float:
    vectors = _vectors(mechanism, added)
    if vectors is not None:
        n, epsilon = checks.integer("n", n, 1, _USERS), checks.budget("epsilon", epsilon)
        return _delta_of_vectors(mechanism, vectors, n, epsilon)
    report, n = _law(mechanism, added), checks.integer("n", n, 1, _USERS)
    epsilon = checks.budget("epsilon", epsilon)
    if epsilon >= report.epsilon:
        return 0.0
    exact = _exact(report, n, added, math.inf)
    if exact is None:
        return _bound(report, n, added)(epsilon)
    worst = exact.delta(epsilon)
    return worst if exact.slack <= _ROUNDED * worst else min(worst, _bound(report, n, added)(epsilon))


def _epsilon(mechanism: Any, n: Any, delta: Any, added: bool) -> float:
    vectors = _vectors(mechanism, added)
    if vectors is not None:
        n, delta = checks.integer("n", n, 1, _USERS), checks.chance("delta", delta)
        return _epsilon_of_vectors(mechanism, vectors, n, delta)
    report, n = _law(mechanism, added), checks.integer("n", n, 1, _USERS)
    delta = checks.chance("delta", delta)
    local = report.epsilon
    if local == 0.0:
        return 0.0
    exact = _exact(report, n, added, delta)
    if exact is not None:
        return exact.epsilon(delta, local)
    rows = None if added and _is_free(report.channel) else _bits(report)
    if rows is not None:
        return Binary(rows, n).epsilon(delta, local)
    near = _guess(report.channel, n, delta) if added and isinstance(report.channel, Shift) else math.inf
    return least_epsilon(_bound(report, n, added), delta, 0.0, local, close=_CLOSE, near=near)


def _guess(channel: Shift, n: int, delta: float) -> float:
    """Return the epsilon of normal noise of the variance of n users' noise."""
    noise = law_of(channel)
    variance = n * float(noise @ np.square(np.arange(len(noise)) - len(noise) // 2))
    return epsilon_of((channel.inputs - 1) / math.sqrt(variance), delta) if variance > 0.0 else math.inf
