"""Keys with values: one pair of the padded record is sampled in secret, and released as key and sign."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.base.arrays import first
from bitldp.categorical.responses import GRR
from bitldp.client.record import ClientRecord
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.estimates import Estimate, frequencies
from bitldp.estimate.intervals import FEW, Both, Limits
from bitldp.letters.reach import Reach
from bitldp.mechanism.base import Mechanism
from bitldp.mechanism.frequencies import checked_share, labelled
from bitldp.mechanism.law import Block, Experiment, Pair
from bitldp.mechanism.parameters import Budget, Flag, Interval
from bitldp.privacy import Guarantee
from bitldp.record.item_set import Items, Padded, Padding, amplified, exact_amplified
from bitldp.release.base import Call
from bitldp.release.draws import sampled_items, signed_items

__all__ = ["KeyValue", "KeyValueEstimates"]

_ABSENT = 2.0  # of a key in a row of values on [-1, 1]


class KeyValueEstimates(NamedTuple):
    """Estimates of every key.

    Attributes
    ----------
    frequencies : Estimate
        Unbiased share of the records that hold the key.
    means : Estimate
        Mean value over the records that hold the key: a ratio, or NaN if the estimated frequency is 0 or
        below.
    """

    frequencies: Estimate
    means: Estimate


@dataclass(frozen=True, eq=False, repr=False)
class KeyValue(Padded, Mechanism):
    """Key-value pairs (PCKV-GRR): for the number of records with each key, and the mean of its values.

    A record's keys are padded with dummies. One key is drawn in secret, its value is dithered to a sign, and
    the pair of key and sign is released by randomized response.

    Parameters
    ----------
    categories : int, sequence or Categories
        Keys d, 2 to 2**20: how many, or their labels.
    epsilon : float
        Exact epsilon of a record, finite, zero or more.
    padding : int
        Keys l that a record is padded to, 1 to 65,536, as in `ItemSet`.
    interval : (float, float)
        Range that contains the values.
    clip : bool
        Whether values outside the interval are moved to its nearer end, or refused.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    A record is a row of d numbers, with NaN for keys that it does not hold. Neighbouring records are any two
    records with any keys and values, including the empty one.

    Randomized response on the 2(d + l) pairs of key and sign has the epsilon ln(l (e^epsilon - 1) + 1), which
    the secret draw reduces to epsilon: exactly, by the integers of response and draw. This is PCKV-GRR at the
    paper's optimal split. It keeps the key with probability a and its sign with probability p, such that the
    other sign of the key is as likely as any other pair: a (1 - p) = (1 - a)/(2 (d + l - 1)).

    Let n+ and n- be the reports of a key's two signs, and q the probability of another pair. Then n+ + n- - 2
    n q is proportional to the key's frequency, without bias, and n+ - n- to the sum of its values. The mean
    is their ratio, whose bias vanishes as n grows. Its interval is Fieller's: it holds the means for which n+
    - n- less mean times (n+ + n- - 2 n q), which is unbiased, lies within its own standard deviations of 0.
    If the frequency cannot be distinguished from 0, the interval is the whole `interval`. A record of m > l
    keys counts l/m in both.

    The probability of a sign has a resolution of 2**-31. Sources: Gu, Li, Cheng, Xiong and Cao, "PCKV:
    locally differentially private correlated key-value data collection with optimized utility", USENIX
    Security 2020; Fieller, "Some problems in interval estimation", JRSS B 16 (1954).

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.KeyValue(["film", "book", "song"], epsilon=3.0, padding=1, interval=(0.0, 5.0))
    >>> ratings = np.full((30_000, 3), np.nan)
    >>> ratings[:20_000, 0], ratings[20_000:, 2] = 4.0, 1.0
    >>> reports = mechanism.randomize(ratings, rng=1)
    >>> shares, means = mechanism.estimate_frequencies(reports), mechanism.estimate_means(reports)
    >>> bool(abs(shares["film"].value - 2 / 3) < 0.05), bool(abs(means["film"].value - 4.0) < 0.2)
    (True, True)
    """

    categories: Items
    _: KW_ONLY
    epsilon: Budget
    padding: Padding
    interval: Interval = (-1.0, 1.0)
    clip: Flag = True

    _no_mean: ClassVar[str] = "its reports are keys with a sign; use estimate_means"

    # Derived of the parameters while the mechanism is built.
    _inner: GRR = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        symbols = 2 * (self._name(self.categories) + self.padding)
        release = amplified(symbols, self.padding, self.epsilon)
        inner = GRR(symbols, epsilon=release.epsilon)
        exact = exact_amplified(inner._release, self.padding)
        self._set(_inner=inner, _guarantee=Guarantee.judge(self.epsilon, (exact, exact, exact)))

    @property
    def drawn(self) -> GRR:
        """The mechanism of the drawn pair; its own guarantee is not amplified."""
        return self._inner

    @property
    def _streams(self) -> int:
        return 3

    def _client_record(self) -> ClientRecord:
        """Return what a client gives of a record: the value of each key, and NaN where there is none."""
        return ClientRecord(
            "f64",
            self._size,
            outside="clip" if self.clip else "refuse",
            intervals=(self.interval,) * self._size,
            span=(-1.0, 1.0),
            gaps=True,
        )

    def _admit(self, x: Any) -> NDArray[Any]:
        """Return records with values on [-1, 1], and what is absent outside it."""
        values = checks.numbers("x", x)
        if values.dtype.kind != "f":
            raise TypeError(f"x: must be numbers, not {values.dtype}")
        checks.records("x", values, self._size)
        low, high = self.interval
        table = values.astype(np.float64)
        absent = np.isnan(table)
        if not self.clip and (outside := ~absent & ~((table >= low) & (table <= high))).any():
            raise ValueError(f"x: the value at index {first(outside)} is outside {self.interval}")
        scaled = (np.clip(table, low, high) - low) / (high - low) * 2.0 - 1.0
        return np.where(absent, _ABSENT, np.clip(scaled, -1.0, 1.0))

    def _perturb(self, x: NDArray[Any], call: Call) -> Any:
        table = x.reshape(-1, self._size)
        codes = sampled_items(table < _ABSENT, self.padding, call.keys[2], call.first_chunk)
        pairs = signed_items(codes, table, call.keys[1], call.first_chunk)
        return self._inner._perturb(pairs, call._replace(keys=call.keys[:1]))

    def _check_informative(self) -> tuple[float, float]:
        """Return the chances of a pair that is drawn for sure, and of another one."""
        if self.guarantee.record == 0.0:
            raise self._uninformative("records")
        return self._inner._release.chances()

    def _of_key(self) -> tuple[float, float]:
        """Return the chances that a report is of a key that a record holds, and of another."""
        p, q = self._check_informative()
        return 2.0 * q + (p - q) / self.padding, 2.0 * q

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return unbiased letters of reports, one pair per key.

        Parameters
        ----------
        reports : array_like of int, shape (n,) or ()
            As `randomize` gives them.

        Returns
        -------
        ndarray of float64, shape (n, categories, 2)
            Over the random bits, their means are 1 and the value for a key that a record holds (of at most
            `padding` keys), and 0 and 0 for another key.

        Raises
        ------
        ValueError, TypeError
            If the reports are uninformative (epsilon 0), or for anything but reports.
        """
        p, q = self._check_informative()
        codes = np.asarray(self._inner.decode(reports))
        own = codes[..., None] // 2 == np.arange(self._size)
        scale, (low, high) = self.padding / (p - q), self.interval
        held = scale * (own - 2.0 * q)
        signs = scale * np.where(codes[..., None] % 2 == 1, 1.0, -1.0) * own
        return np.stack([held, (low + high) / 2.0 * held + (high - low) / 2.0 * signs], axis=-1)

    def accumulator(self) -> KeyValueAccumulator:
        """Return an empty accumulator: it counts both signs of every key; see `Mechanism.accumulator`."""
        return KeyValueAccumulator(self, (self._size, 2), self._count, self._of_key(), exclusive=False)

    def _count(
        self, reports: Any, records: int | None = None, threads: int | None = None
    ) -> tuple[int, NDArray[np.int64]]:
        n, counts = self._inner._count(reports, records, threads)
        return n, counts[: 2 * self._size].reshape(-1, 2)

    def estimate_frequencies(self, reports: ArrayLike, *, project: bool = False) -> Estimate:
        """Estimate the share of the records that hold each key, without bias.

        Parameters
        ----------
        reports : array_like of int
            Reports of n >= 1 records, as `randomize` gives them.
        project : bool
            Not available: the shares do not sum to 1.

        Returns
        -------
        Estimate
            Shape (categories,), with their labels where there are any.

        Raises
        ------
        ValueError, TypeError
            If no unbiased decode exists (epsilon 0), for no reports, or for a report out of range.
        """
        if project:
            raise ValueError("project: not supported, for frequencies of keys do not sum to 1")
        return self.accumulator()._filled(reports).estimate().frequencies

    def estimate_means(self, reports: ArrayLike) -> Estimate:
        """Estimate the mean value of each key over the records that hold it.

        Parameters
        ----------
        reports : array_like of int
            As for `estimate_frequencies`.

        Returns
        -------
        Estimate
            Shape (categories,): NaN where the frequency is estimated at 0 or below.

        Raises
        ------
        ValueError, TypeError
            If no unbiased decode exists (epsilon 0), for no reports, or for a report out of range.
        """
        return self.accumulator()._filled(reports).estimate().means

    def frequency_variance(self, frequency: float = 0.0) -> float:
        """Return the variance of an estimated frequency by the randomness of n reports, times n.

        See `ItemSet.frequency_variance`.
        """
        share = checked_share(frequency)
        p, q = self._of_key()
        return (share * p * (1.0 - p) + (1.0 - share) * q * (1.0 - q)) / (p - q) ** 2

    def _reach(self, total: bool = False) -> tuple[Reach]:
        """Return what a report adds to the frequency of its key, and to the others."""
        return (Reach.of_counts(*self._of_key(), self._size, (0, 1)),)

    def extremes(self, pair: Pair | None = None) -> Experiment:
        """Return records of the first keys with the highest value and of the last key, and their law.

        See `Mechanism.extremes`.
        """
        rows = np.full((2, self._size), np.nan)
        if pair is None:
            rows[0, : self.padding], rows[1, -1] = self.interval[1], self.interval[0]
        else:
            rows[:] = [np.asarray(each, np.float64) for each in pair]
        p, q = self._inner._release.chances()
        table = np.full((2, 1, 2 * (self._size + self.padding)), q)
        for row, values in zip(table[:, 0], self._admit(rows), strict=True):
            held = values < _ABSENT
            number = int(held.sum())
            ups = np.zeros((self._size + self.padding, 2))
            ups[: self._size][held] = 0.5 + np.stack([-values[held], values[held]], axis=-1) / 2.0
            ups[self._size : self._size + max(0, self.padding - number)] = 0.5
            np.add(row, (p - q) * ups.ravel() / max(number, self.padding), out=row)
        block = Block(table, lambda _, value: f"key {value // 2} is reported with sign {value % 2 * 2 - 1}")
        return Experiment([*rows], ["one record", "another"], [block], [(0, 1)], {"output": "codes"})

    def _facts(self, users: int | None = None) -> dict[str, Any]:
        """Return the chances of a report, and the variance of a frequency; see `Mechanism._facts`."""
        try:
            p, q = self._of_key()
        except ValueError as error:
            return {"errors": {"unbiased": str(error)}}
        law = {"a_report_is_of_a_key_one_has": p, "and_of_another": q}
        errors = {"frequency_variance": self.frequency_variance()}
        if users is not None:
            errors["a_frequency_that_nobody_has"] = (errors["frequency_variance"] / users) ** 0.5
        return {"probabilities": law, "errors": errors}


class KeyValueAccumulator(CountAccumulator):
    """Counts of both signs of every key: shape (keys, 2), the lower sign first."""

    kind = "keys"
    mechanism: KeyValue

    def estimate(self, *, project: bool = False) -> KeyValueEstimates:  # type: ignore[override]
        """Estimate frequencies and means; `labels` are those of the mechanism.

        Raises
        ------
        ValueError
            If nothing has been accumulated, or to project, which is not supported.
        """
        if project:
            raise ValueError("project: not supported, for frequencies of keys do not sum to 1")
        p, q = self._law
        shares = frequencies(self.counts.sum(axis=1), self.n, p, q)
        low, high = self.mechanism.interval
        limits = RatioOfSigns(self.counts, self.n, q / 2.0, (low, high))
        with np.errstate(invalid="ignore", divide="ignore"):
            mean, spread = limits.ratio()
        means = Estimate(
            np.where(shares.value > 0.0, (low + high) / 2.0 + (high - low) / 2.0 * mean, np.nan),
            np.where(shares.value > 0.0, (high - low) / 2.0 * spread, np.nan),
            self.n,
            limits=limits,
        )
        return KeyValueEstimates(
            labelled(self.mechanism, self._judged(shares)), labelled(self.mechanism, means)
        )


@dataclass(frozen=True, eq=False)
class RatioOfSigns(Limits):
    """Limits of the mean of signs, from the counts of both: Fieller's, within the interval.

    With s the share of a sign in the reports, a = s+ - s-, c = s+ + s- and b = c - 2q, a - m b has the mean 0
    at the true mean m, and n times its variance is c - a^2 - 2 m a (1 - c) + m^2 c (1 - c).

    Attributes
    ----------
    counts : ndarray of int, shape (..., 2)
        Reports of the lower and of the upper sign.
    n : int
        Reports.
    other : float
        Chance q that a report is a given pair by chance alone.
    interval : (float, float)
        What the signs stand for.
    """

    counts: NDArray[np.int64]
    n: int
    other: float
    interval: tuple[float, float]

    @property
    def method(self) -> str:
        """Name of the method."""
        return "Fieller"

    def at(self, index: Any) -> RatioOfSigns:
        """Return those of some entries."""
        return RatioOfSigns(self.counts[index], self.n, self.other, self.interval)

    def _parts(self) -> tuple[NDArray[np.float64], ...]:
        """Return a, b, c of the shares, and those of a and c that variances are of."""
        shares = self.counts / self.n
        held = np.maximum(shares, self.other)  # none is rarer, so that few reports have a variance, too
        a, c = (shares[..., 1] - shares[..., 0]), shares.sum(axis=-1)
        return a, c - 2.0 * self.other, held[..., 1] - held[..., 0], held.sum(axis=-1)

    def ratio(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean on [-1, 1] and its standard error, wherever b is above 0."""
        a, b, u, c = self._parts()
        mean = np.asarray(a / b)
        m = np.clip(mean, -1.0, 1.0)
        spread = np.maximum(c - u * u - 2.0 * m * u * (1.0 - c) + m * m * c * (1.0 - c), 0.0)
        return mean, np.asarray(np.sqrt(spread / self.n) / np.abs(b))

    def limits(self, value: NDArray[np.float64], stderr: NDArray[np.float64], tail: float) -> Both:
        """Return limits, each wrong with probability `tail`; the whole interval where b may be 0."""
        a, b, u, c = self._parts()
        factor = -NormalDist().inv_cdf(tail) if self.n >= FEW else (2.0 * tail) ** -0.5
        g = factor * factor / self.n
        # (a - m b)^2 <= g (c - u^2 - 2 m u (1 - c) + m^2 c (1 - c)), as a quadratic inequality of m
        square, half, rest = b * b - g * c * (1.0 - c), a * b - g * u * (1.0 - c), a * a - g * (c - u * u)
        bounded = (square > 0.0) & (b > 0.0)
        root = np.sqrt(np.maximum(half * half - square * rest, 0.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            ends = [np.where(bounded, (half + sign * root) / square, sign) for sign in (-1.0, 1.0)]
        low, high = self.interval
        return tuple((low + high) / 2.0 + (high - low) / 2.0 * np.clip(end, -1.0, 1.0) for end in ends)  # type: ignore[return-value]
