"""Mechanisms of numbers: letters without bias, their variance, means; a record's budget on its numbers."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Cube, Shift
from bitldp.base import checks
from bitldp.base.arrays import position
from bitldp.client.program import ClientProgram, PublicDraw
from bitldp.client.record import ClientRecord, Type
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.intervals import LetterLaw, Table
from bitldp.estimate.means import MeanAccumulator, SampledMeanAccumulator, checked_pairs
from bitldp.estimate.statistics import Statistic, of_letters
from bitldp.letters.reach import Reach
from bitldp.letters.spread import Mixed, Spread
from bitldp.mechanism.base import Part, Takes
from bitldp.mechanism.law import (
    TABLE,
    Block,
    Coordinates,
    Experiment,
    Pair,
    Symbols,
    codes_of,
    of_rows,
)
from bitldp.mechanism.parameters import Budget, Features, Flag, Interval, Unit, one_of
from bitldp.mechanism.reports import ArrayOrPair
from bitldp.privacy import ONE, Guarantee, composed, share
from bitldp.release.base import Call, Direct, Release
from bitldp.release.base import Interval as Ends
from bitldp.release.sampled import SampledReports, drawn_together, index_bits, sampled

Spend = Annotated[Literal["split", "sample"], one_of("split", "sample")]

_BUDGET_OF_ONE = 2.5  # what a sampled coordinate is given, about: Wang et al., ICDE 2019


@dataclass(frozen=True, eq=False)
class _Agreements(Experiment):
    """Two opposite records; a report is one symbol: many ones, few ones, or neither.

    Attributes
    ----------
    edge : int
        A report has many ones from `edge` on, and few ones if so many places are 0.
    """

    edge: int = 0

    def split(self, reports: Any) -> list[NDArray[Any]]:
        bits = np.asarray(reports)
        ones = bits.reshape(len(bits), -1).sum(axis=1, dtype=np.int64)
        places = bits.size // max(1, len(bits))
        return [(np.where(ones >= self.edge, 2, 1) - (ones <= places - self.edge))[:, None]]


def _share(channel: Cube, edge: int) -> float:
    """Return the chance of `edge` agreements or more; they are in the likely set, and not in the other."""
    size, bits = channel.sizes()[0], channel.bits
    # C(r, a) over the set's size, downward from the edge of the set: float sums, as for any law of an audit.
    term, beyond = channel.edges()[0] * bits / (max(1, channel.near) * size), 0.0
    for a in range(channel.near, edge):
        beyond += term
        term *= (bits - a) / (a + 1)
    return channel.high / ONE * (1.0 - beyond)


def opposite_corners(channel: Cube, ends: Ends) -> Experiment | None:
    """Return the law of a release of whole records; None where its sets are not apart.

    The records are the two corners of the interval's cube. A report with kappa ones or more is in the
    likely set of one and in the unlikely set of the other, if kappa is above the middle: e^epsilon times as
    likely.
    """
    if channel.near <= channel.far:
        return None
    bits = channel.bits
    edge = max(channel.near, bits - channel.far)
    likely = _share(channel, edge)
    # The opposite record's agreements are the zeros: `edge` ones are at most `far` of them.
    strings = likely * ONE / channel.high * channel.sizes()[0] / channel.sizes()[1]
    unlikely = (ONE - channel.high) / ONE * strings
    middle = max(0.0, 1.0 - likely - unlikely)
    table = np.array([[[unlikely, middle, likely]], [[likely, middle, unlikely]]])
    low, high = ends
    corners: list[Any] = [np.full(bits, end) for end in (high, low)]
    inputs = [corner if bits > 1 else corner[0] for corner in corners]

    def describe(_: int, value: int) -> str:
        counts = (f"at most {bits - edge}", f"between {bits - edge} and {edge}", f"at least {edge}")
        return f"{counts[value]} of {bits} bits are 1"

    names = [f"every feature {end:g}" for end in (high, low)]
    options = {"output": "codes"}
    return _Agreements(inputs, names, [Block(table, describe)], [(0, 1)], options, edge=edge)


class Means(ArrayOrPair):
    """Base of the mechanisms whose reports are decoded as numbers without bias.

    Not a dataclass: a subclass chooses which of these are its parameters, and in which order.
    """

    epsilon: float
    features: int
    clip: bool
    k: int | None = None  # coordinates of a record that are sampled; None where all are released

    # Set on the instance by `_build`: no fields of a dataclass, which this class is not.
    _release: Release  # of numbers, whose points are known
    _ends: Ends
    _spread: Spread | None

    outputs: ClassVar[tuple[str, ...]] = ("codes", "values", "packed")
    _no_frequencies: ClassVar[str] = "its reports are numbers; use estimate_mean"

    @property
    def channels(self) -> tuple[Any, ...]:
        """The channels that release one number; more than one where a random bit chooses between them."""
        return self._release.channels

    @property
    def points(self) -> NDArray[np.float64]:
        """The points of the interval that an input is dithered to, ascending; read-only."""
        points = self._release.points
        assert points is not None  # a release of numbers
        return points

    @property
    def alphabet(self) -> int:
        """How many codes a number's report can be; packed, it takes ``(alphabet - 1).bit_length()`` bits."""
        return self._release.alphabet

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: a code a feature; of sampled features, their indices first."""
        code = self._release.bits
        if self._drawn is None:
            return ((self.features, code),)
        return ((self._drawn, index_bits(self.features)), (self._drawn, code))

    def _join(self, parts: Sequence[NDArray[Any]]) -> Any:
        """Return reports, as `decode` takes them, of the arrays of their parts."""
        return parts[0] if self._drawn is None else SampledReports(*parts)

    @property
    def _drawn(self) -> int | None:
        """Coordinates of a record that are drawn, and named in its report; None where all are released."""
        return self.k

    @property
    def _whole(self) -> bool:
        """True where all numbers of a record are released together, as one symbol."""
        return self._release.whole

    def _together(self, slots: Sequence[int]) -> tuple[float, float]:
        """Return the factor and the chance of `Attributes._together`; drawn numbers are independent."""
        if self._whole:
            raise ValueError("a report is one symbol of all numbers")
        return drawn_together(len(slots), self._drawn, self.features)

    @property
    def columns(self) -> int:
        """Numbers of a record."""
        return self.features

    @property
    def _span(self) -> Ends:
        """Where every number lies: (low, high)."""
        return self._ends

    @property
    def _streams(self) -> int:
        return self._release.streams + (self._drawn is not None)

    @property
    def _bound(self) -> bool:
        plain = type(self)._perturb is Means._perturb and self._drawn is None
        return not (plain and self._release.straight)

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channels behind a report: one a released number, or one for the whole record."""
        laws = self._release.laws
        times = 1 if self._release.whole else self._drawn or self.features
        return (Symbols(laws, times),) if laws else ()

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return inputs that are far apart and the law of their reports; see `Mechanism.extremes`."""
        release, features = self._release, self.features
        if release.whole and pair is None and isinstance(release.channel, Cube):
            result = opposite_corners(release.channel, self._ends) if release.laws else None
            return super().extremes() if result is None else result
        if (
            self._drawn is not None
            or release.whole
            or self._guarantee.delta
            or max(2 * features, len(self.points)) * release.alphabet > TABLE
        ):  # which features are reported is a part of the report, or the table would be too large
            return super().extremes(pair)
        chosen = codes_of(pair, len(self.points), self.points, features)
        if chosen is None:  # a number between the points: its law is a matter of the dither
            return None
        law = release.probabilities()
        return of_rows(lambda x: law[x], len(law), release.alphabet, chosen, features, self.points)

    @property
    def letters(self) -> NDArray[np.float64]:
        """Decoded value of each code, shape (alphabet,); read-only. Their mean is the input.

        Raises
        ------
        ValueError
            If the reports are uninformative (epsilon 0).
        """
        letters = self._release.letters
        return self._refuse_uninformative() if letters is None else letters

    def _refuse_uninformative(self) -> NoReturn:
        raise self._uninformative("values")

    def _check_informative(self) -> None:
        """Refuse where no unbiased decode exists."""
        if self._release.letters is None:
            self._refuse_uninformative()

    def _check_spread(self) -> Spread:
        """Return the variance of a letter as a function of the input, or raise where there is none."""
        return self._refuse_uninformative() if self._spread is None else self._spread

    def _check_pair(self, reports: Any) -> SampledReports:
        return checked_pairs(reports, self.features, self._drawn or self.features, self.alphabet)

    def _check_codes(self, reports: Any) -> NDArray[Any]:
        codes = checks.codes("reports", reports, self.alphabet)
        checks.records("reports", codes, self.features)
        return codes

    def decode(self, reports: ArrayLike | SampledReports) -> NDArray[np.float64]:
        """Return the letters of reports: numbers whose mean over the randomness is the (clipped) input.

        Parameters
        ----------
        reports : array_like of int, or SampledReports
            Codes as `randomize` gives them; with ``spend="sample"`` the pair (indices, codes).

        Returns
        -------
        ndarray of float64
            Same shape, or (n, features) with ``spend="sample"``. A letter's deviation from the middle of the
            interval is then scaled by features/k, and features that were not sampled have the middle.

        Raises
        ------
        ValueError, TypeError
            If the reports are uninformative (epsilon 0), or for a code out of range.
        """
        letters = self.letters
        if self._drawn is not None:
            return self._pairs().dense(reports)
        values: NDArray[np.float64] = letters[self._check_codes(reports)]
        return values

    def decode_bias(self) -> float:
        """Return the bias of `decode`, which is 0."""
        return 0.0

    def unbias(self, reports: ArrayLike | SampledReports) -> NDArray[np.float64]:
        """Return the same as `decode`: its numbers are unbiased."""
        return self.decode(reports)

    def estimate_mean(self, reports: ArrayLike | SampledReports) -> Estimate:
        """Estimate the mean of every feature over the records, without bias.

        Parameters
        ----------
        reports : array_like of int, or SampledReports
            Codes of n >= 1 records as `randomize` gives them; with ``spend="sample"`` the pair
            (indices, codes).

        Returns
        -------
        Estimate
            `value` and `stderr` of shape (features,); the standard error needs n >= 2 and is NaN for one
            record. The mean is that of the inputs, clipped to the interval.

        Raises
        ------
        ValueError, TypeError
            If the reports are uninformative (epsilon 0), for no reports, or for a report out of range.
        """
        return self.accumulator()._filled(reports).estimate()

    def accumulator(self) -> MeanAccumulator:
        """Return an empty accumulator of the mean; see `Mechanism.accumulator`."""
        self._check_informative()
        if self._drawn is not None:
            return self._pairs()
        return MeanAccumulator(self, self.features, self._records, self._statistic())

    def _statistic(self) -> Statistic | None:
        """Return what the core counts of the reports; None where they are summed as letters."""
        return of_letters(self.features, self.letters)

    def _records(self, reports: ArrayLike) -> NDArray[np.float64]:
        return self.decode(reports).reshape(-1, self.features)

    @cached_property
    def _letter_law(self) -> LetterLaw | None:
        """Law of a letter, for intervals; None where reports are uninformative."""
        if self._release.letters is None:
            return None
        letters, rate = self._all_letters(), 1.0 if self._drawn is None else self._drawn / self.features
        low, high = float(letters.min()), float(letters.max())
        both = (low, high) if len(letters) == 2 else None
        try:
            mixed = self._check_spread().mixed
        except ValueError:  # no closed form
            return LetterLaw(Mixed.of_range(low, high), high - low, both, rate)
        rows = len(self.points) * self._release.alphabet
        table = self._letter_table if rows <= TABLE else None
        return LetterLaw(mixed, high - low, both, rate, table=table)

    def _all_letters(self) -> NDArray[np.float64]:
        """Return the letters of a record's number; where it was not sampled, the last one, in the middle."""
        if self._drawn is None:
            return self.letters
        middle = self._check_spread().middle
        return middle + np.append((self.letters - middle) * (self.features / self._drawn), 0.0)

    def _letter_table(self) -> Table:
        """Return the law of `_all_letters` for a number at every point."""
        rows = self._release.probabilities()
        if self._drawn is not None:
            rate = self._drawn / self.features
            rows = np.concatenate([rate * rows, np.full((len(rows), 1), 1.0 - rate)], axis=1)
        return Table(self.points, rows, self._all_letters())

    def _pairs(self) -> SampledMeanAccumulator:
        middle = self._check_spread().middle
        scale = self.features / (self._drawn or self.features)
        return SampledMeanAccumulator(
            self, self.features, middle, scale * (self.letters - middle), self._check_pair
        )

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of a record's letter in each feature, in closed form from the integers.

        Parameters
        ----------
        x : array_like of float
            True values, any shape; clipped to the interval first.

        Returns
        -------
        ndarray of float64
            Same shape, in squared units of `x`. It includes the dither and, with ``spend="sample"``, the
            choice of the coordinates.

        Raises
        ------
        ValueError
            If the reports are uninformative (epsilon 0), or for NaN.
        """
        spread = self._check_spread()
        values = np.asarray(x, dtype=np.float64)
        if np.isnan(values).any():
            raise ValueError(f"x: {position(np.isnan(values))} is NaN")
        return spread.at(values)

    def mean_variance(self) -> float:
        """Return the mean of `variance` over inputs that are uniform on the interval.

        See `Mechanism.mean_variance`.
        """
        return self._check_spread().mean()

    def worst_variance(self) -> float:
        """Return the largest `variance` of any input; see `Mechanism.worst_variance`."""
        return self._check_spread().worst()

    def _reach(self, total: bool = False) -> tuple[Reach]:
        """Return the least and the largest letter; scaled where coordinates are sampled."""
        self._check_informative()
        low, high = float(self.letters.min()), float(self.letters.max())
        if self._drawn is None:
            return (Reach.of_numbers(low, high, self._ends, self.features),)
        middle, scale = self._ends[0] + (self._ends[1] - self._ends[0]) / 2.0, self.features / self._drawn
        ends = [[middle + scale * (each - middle), middle] for each in (low, high)]
        counts = np.tile([self._drawn, self.features - self._drawn], (2, 1))
        return (Reach(np.array(ends), counts, self._ends),)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of one number: P[i, y] = P(code y | points[i]), shape (points, alphabet).

        Raises
        ------
        ValueError
            If the alphabet has more than 8192 codes, so that the table would take over half a gigabyte.
        """
        return self._release.probabilities()

    def _shortcut(self) -> Direct | None:
        if type(self)._perturb is not Means._perturb or self.k is not None or not self.clip:
            return None
        return self._release.direct(self.features)

    def _program(self, numbers: Type) -> ClientProgram:
        if type(self)._perturb is not Means._perturb:
            return super()._program(numbers)
        release, drawn = self._release, self._drawn
        record = ClientRecord(
            numbers, self.features, interval=self._ends, outside="clip" if self.clip else "refuse"
        )
        draw = None if drawn is None else PublicDraw("coordinates", self.features, drawn)
        codec, ends = release.grids
        return ClientProgram(record, self._report_parts, release.channel, codec, ends, draw=draw)

    def _admit(self, x: Any) -> NDArray[Any]:
        return checks.numbers("x", x)

    def _perturb(self, x: NDArray[Any], call: Call) -> Any:
        checks.records("x", x, self.features)
        if call.output == "values":
            self._check_informative()
        if not self.clip:
            refuse_outside(x, self._ends)
        if self._drawn is None:
            return self._release.randomize(x, call)
        if call.out is not None:
            raise ValueError("out: not supported with spend='sample', where a report is a pair")
        reports = sampled(self._release, x, (self.features, self._drawn), call)
        if call.output != "values":
            return reports
        return self.decode(reports).reshape(x.shape).astype(x.dtype, copy=False)


@dataclass(frozen=True, eq=False, repr=False)
class Numeric(Means):
    """Base of the mechanisms that release numbers of an interval with letters whose mean is the number.

    Parameters
    ----------
    epsilon : float
        Exact epsilon of one `unit`, finite, zero or more.
    features : int
        Numbers of a record, d; each is released by itself.
    interval : (float, float)
        Range that contains every number.
    spend : {"split", "sample"}
        How a record's budget is spent: evenly on all features, or on `k` features that are drawn for each
        record without looking at it.
    k : int, optional
        Features that are sampled, 1 to d. None: max(1, min(d, floor(epsilon/2.5))). The attribute then holds
        the chosen number.
    clip : bool
        Whether values outside the interval are clipped to it, or refused.
    unit : {"record", "feature"}
        What `epsilon` covers; a record's is split evenly over the features that are released.
    """

    _: KW_ONLY
    epsilon: Budget
    features: Features = 1
    spend: Spend = "split"
    k: int | None = None
    clip: Flag = True
    unit: Unit = "record"
    interval: Interval = (-1.0, 1.0)

    _takes: ClassVar[Takes | None] = "reals"

    @abstractmethod
    def _released(self, epsilon: float, interval: tuple[float, float]) -> Release:
        """Return the release of one number at an exact epsilon."""

    def _build(self) -> None:
        k = None if self.spend != "sample" and self.k is None else self._sampled()
        release, guarantee = self._promise(self.epsilon, k or self.features, self.interval)
        spread = release.spread
        if k is not None and spread is not None:
            # A coordinate is sampled with probability k/d, its letter's deviation from the middle then scaled
            # by d/k: the second moment grows by (k/d) (d/k)^2.
            spread = spread.scaled(self.features / k)
        self._set(k=k, _release=release, _ends=self.interval, _spread=spread, _guarantee=guarantee)

    def _promise(
        self, epsilon: float, parts: int, interval: tuple[float, float]
    ) -> tuple[Release, Guarantee]:
        """Return the release of one of a record's `parts` numbers, and what it promises."""
        release = self._released(share(epsilon, parts) if self.unit == "record" else epsilon, interval)
        exact = release.epsilon
        return release, Guarantee.judge(epsilon, (exact, exact, composed(exact, parts)), unit=self.unit)

    def _coordinates(self) -> Coordinates | None:
        """Return the law of all numbers, where each has noise of its own: they may all move by all steps."""
        channel = self._release.channel
        if not isinstance(channel, Shift) or self._whole or self.k is not None:
            return None
        steps = channel.inputs - 1
        return Coordinates(channel, self.features, steps * math.sqrt(self.features) * (1.0 + 2.0**-50))

    def _sampled(self) -> int | None:
        """Return how many coordinates of a record are released; None where all are."""
        if self.spend != "sample":
            if self.k is not None:
                raise ValueError(
                    f"k: is for spend='sample'; with spend={self.spend!r} every feature is released"
                )
            return None
        if self.k is not None:
            return checks.integer("k", self.k, 1, self.features)
        if self.unit == "feature":
            raise ValueError(
                "k: must be given with unit='feature', which sets no budget of a record to derive it"
            )
        return sampled_features(self.epsilon, self.features)


def sampled_features(epsilon: float, features: int) -> int:
    """Return how many of a record's features are sampled by default: max(1, min(d, floor(epsilon/2.5)))."""
    return max(1, min(features, math.floor(epsilon / _BUDGET_OF_ONE)))


def refuse_outside(x: NDArray[Any], ends: Ends) -> None:
    """Refuse numbers outside an interval, NaN too; other dtypes are left to the channel."""
    if x.dtype not in (np.float32, np.float64) or not x.size:
        return  # the channel says what it takes
    # In the dtype of x: an end that float32 cannot hold is still inside.
    low, high = (x.dtype.type(end) for end in ends)
    if not (x.min() >= low and x.max() <= high):
        # Written so that NaN fails.
        where = position(~((x >= low) & (x <= high)))
        raise ValueError(f"x: {where} is NaN or outside {ends}, which clip=False refuses")
