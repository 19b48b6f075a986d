"""Kinds of secure sums: what a record is as integers, how far a record moves their sum, what the sum says."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, Shift
from bitldp.accounting.loss_table import Curve, Normal
from bitldp.accounting.search import least_epsilon
from bitldp.base import checks
from bitldp.channels.normal import continuous_sigma
from bitldp.codecs import Categories
from bitldp.estimate.estimates import Estimate
from bitldp.mechanism.parameters import categories as some_categories
from bitldp.privacy import ONE
from bitldp.release.base import Interval, Source
from bitldp.sums.convolution import SumLaw, exact_sum, work
from bitldp.sums.divergence import delta_of_moves, delta_of_two
from bitldp.sums.intervals import Rounded, Summed
from bitldp.sums.laws import PolyaShare, ShareLaw, SignShare, SkellamShare, rate_of

__all__ = ["Central", "Count", "Histogram", "Lattice", "Number", "Room", "SumKind"]

_CLOSE = 1e-8  # relative, of an epsilon that is searched
_SPARED = 2.0**-12  # of delta: what of the ideal law is not looked at
_QUICK = 3e7  # digits of products that take some tenths of a second
_FITTED = 1e-9  # relative, of a variance that is searched
_MARGIN = 2.0**-20  # of delta, that a fit leaves for what integers add
_MOST_STEPS = 65_535
_MOST_BITS = 32
_STEEPEST = 40.0  # an epsilon beyond which nothing is looked at
_WRAPPED = 2.0**-40  # chance that a sum wraps, but for the total variation of the table


class Central(NamedTuple):
    """Central guarantee of a sum for a number of survivors.

    Attributes
    ----------
    epsilon, delta : float
        The sum is (epsilon, delta)-differentially private between data sets in which one record is replaced.
    exact : bool
        Whether epsilon is that of the integers that are sampled; else it is an upper bound of it.
    method : str
        How it was computed.
    """

    epsilon: float
    delta: float
    exact: bool
    method: str


class Room(NamedTuple):
    """Where the integers of a total lie, modulo 2**bits.

    Attributes
    ----------
    bits : int
        Bits of an integer.
    low : int
        What a survivor's record adds to the least integer of a total that there is room for.
    margin : int
        What the noise subtracts from it.
    wraps : float
        Chance that any integer of a total is elsewhere, at most.
    """

    bits: int
    low: int
    margin: int
    wraps: float


class SumKind(ABC):
    """Kind of a secure sum: a record's integers, their noise, and what their sum says.

    A subclass says how many integers a record has, between which bounds they lie, and how a law of shares is
    fitted to a budget and accounted.
    """

    name: ClassVar[str]
    """Word for it, in terms and on the command line."""

    @property
    @abstractmethod
    def coordinates(self) -> int:
        """Integers of a record."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[int, int]:
        """Least and largest integer that a record can have."""

    @property
    @abstractmethod
    def streams(self) -> int:
        """Random streams that `encode` takes."""

    @abstractmethod
    def encode(
        self, x: ArrayLike, sources: list[Source], threads: int | None
    ) -> tuple[NDArray[np.int64], bool]:
        """Return the integers of records, shape (records, coordinates), and whether x is a single record."""

    def noised(
        self, x: ArrayLike, law: ShareLaw, sources: list[Source], threads: int | None
    ) -> tuple[NDArray[Any], bool]:
        """Return the integers of records with their shares of noise, and whether x is a single record."""
        integers, single = self.encode(x, sources[: self.streams], threads)
        shape = (len(integers), self.coordinates)
        return integers + law.sample(shape, sources[self.streams :], threads), single

    @property
    def neutral(self) -> int:
        """Integer of a client without a record, in each coordinate: as near to any record as records are."""
        return 0

    @property
    def dither(self) -> float:
        """Most variance that dither adds to a record's coordinate, where it counts beside the noise."""
        return 0.0

    def settled(self, epsilon: float, delta: float, clients: int, honest: int) -> SumKind:
        """Return the kind with what its parameters left open, for a budget and so many clients."""
        return self

    def room(self, law: ShareLaw, clients: int) -> Room | None:
        """Return where the totals of up to so many clients lie; None if 32 bits are too few."""
        low, high = self.bounds
        needed = law.reach(clients, _WRAPPED / self.coordinates)
        span = clients * (high - low)
        bits = (span + 2 * needed).bit_length()
        if bits > _MOST_BITS:
            return None
        margin = ((1 << bits) - 1 - span) // 2
        beyond = 2.0 * law.beyond(clients, margin)
        return Room(bits, low, margin, min(1.0, self.coordinates * (beyond + clients * law.distance)))

    @abstractmethod
    def fit(self, epsilon: float, delta: float, honest: int, noise: str) -> ShareLaw:
        """Return the law of a share such that `honest` of them keep (epsilon, delta)."""

    @abstractmethod
    def central(self, law: ShareLaw, shares: int, delta: float, method: str) -> Central:
        """Return the guarantee of the sum of records and so many shares."""

    @abstractmethod
    def accounted(
        self, law: ShareLaw, shares: int, delta: float, cost: float
    ) -> tuple[Curve | Normal, float]:
        """Return the law that rounds compose of, and how far a round's own is from it in total variation.

        Parameters
        ----------
        law : ShareLaw
            Of a share.
        shares : int
            Honest shares, 1 or more.
        delta : float
            What tails are compared with.
        cost : float
            How many times of delta that variation costs, about.
        """

    @abstractmethod
    def gaussian(self, epsilon: float, delta: float) -> float:
        """Return the standard deviation of central Gaussian noise on a coordinate, in steps."""

    @abstractmethod
    def estimate(
        self, sums: NDArray[np.int64], law: ShareLaw, survivors: int, shares: int | None = None
    ) -> Estimate:
        """Return what the decoded integers say, shape (coordinates,).

        Parameters
        ----------
        sums : ndarray of int64, shape (coordinates,)
            Sums of the records and the noise.
        law : ShareLaw
            Of a share.
        survivors : int
            Records in the sums.
        shares : int, optional
            Shares of noise in them. None: one a record.
        """

    @abstractmethod
    def terms(self) -> dict[str, int | str]:
        """Return the parameters as integers and decimal text."""

    @classmethod
    @abstractmethod
    def from_terms(cls, terms: Mapping[str, int | str]) -> SumKind:
        """Return the kind that such terms, among others, describe."""


class Lattice(SumKind):
    """Base of the kinds whose records move one sum by up to `steps`, or two sums by one each."""

    _moved = 1  # sums that a record that is replaced moves, each by up to `steps`

    @property
    def coordinates(self) -> int:
        """Integers of a record: one."""
        return 1

    @property
    def steps(self) -> int:
        """Steps that a record moves a sum, at most."""
        return 1

    @property
    def bounds(self) -> tuple[int, int]:
        """Least and largest integer that a record can have."""
        return 0, self.steps

    def gaussian(self, epsilon: float, delta: float) -> float:
        """Return the standard deviation of central Gaussian noise, by its exact (epsilon, delta)."""
        return continuous_sigma(epsilon, delta) * self.steps * math.sqrt(self._moved)

    def fit(self, epsilon: float, delta: float, honest: int, noise: str) -> ShareLaw:
        """Return the law of a share: Pólya unless another is asked for."""
        if noise in ("auto", "polya"):
            rate = rate_of(epsilon, self.steps * self._moved)
            return PolyaShare(rate, honest, delta * _SPARED / honest)
        return self._fitted(epsilon, delta, honest, noise == "signs")

    def _fitted(self, epsilon: float, delta: float, honest: int, thin: bool) -> ShareLaw:
        """Return Skellam shares or thinned signs of about the least variance that keeps a budget."""

        def law(variance: float) -> ShareLaw:
            if thin:
                weight = math.ceil(variance / honest / 2.0 * ONE)
                return SignShare(min(weight, ONE // 2), honest)
            return SkellamShare(rate_of(variance, 2 * honest), honest)

        def kept(variance: float) -> bool:
            reached = self._ideal(law(variance), honest, delta)
            return reached(epsilon) <= delta * (1.0 - _MARGIN)

        high = 2.0 * self.gaussian(epsilon, delta) ** 2 + 4.0 / epsilon**2
        if thin and high > honest:
            high = float(honest)
        if not kept(high):
            raise ValueError(
                "noise: thinned signs have a variance of one at the most, too little here; "
                "'polya' or 'skellam' is allowed"
                if thin
                else "noise: Skellam shares do not reach this budget; 'polya' is allowed"
            )
        low = 0.0
        while high - low > _FITTED * high:
            middle = (low + high) / 2.0
            low, high = (low, middle) if kept(middle) else (middle, high)
        return law(high)

    def _delta(self, law: SumLaw) -> Any:
        return delta_of_moves(law, self.steps) if self._moved == 1 else delta_of_two(law)

    def _ideal(self, law: ShareLaw, shares: int, delta: float) -> Any:
        """Return the delta of the law that the table stands for, as a function of epsilon."""
        reach = law.reach(shares, delta * _SPARED)
        half = np.array([float(each) for each in law.ideal(shares, reach)])
        lower = np.concatenate([half[:0:-1], half])
        missing = 2.0 * law.beyond(shares, reach)
        return self._delta(SumLaw(lower, missing, 2.0**-50, False))

    def central(self, law: ShareLaw, shares: int, delta: float, method: str = "auto") -> Central:
        """Return the guarantee of the sum of records and so many shares.

        Parameters
        ----------
        law : ShareLaw
            Of a share.
        shares : int
            Honest shares, 1 or more.
        delta : float
            In (0, 1).
        method : {"auto", "exact", "certificate"}
            "exact" convolves the integers. "certificate" takes the law that they stand for and adds the total
            variation. "auto": the first where it takes tenths of a second.
        """
        reached, exact = self._reached(law, shares, delta, method)
        epsilon = 0.0 if reached(0.0) <= delta else least_epsilon(reached, delta, 0.0, math.inf, close=_CLOSE)
        words = "convolution of the integers" if exact else "ideal law and total variation"
        return Central(epsilon, delta, exact, words)

    def accounted(self, law: ShareLaw, shares: int, delta: float, cost: float) -> tuple[Curve, float]:
        """Return the curve of delta of the integers, or of the ideal law and the total variation."""
        reached, _ = self._reached(law, shares, delta * _SPARED, "auto")
        least, farthest = reached(_STEEPEST), 1.0
        while farthest < _STEEPEST and reached(farthest) > least + delta * _SPARED:
            farthest *= 2.0
        low = farthest / 2.0  # delta hardly falls beyond: where, to a 64th
        for _ in range(6):
            middle = (low + farthest) / 2.0
            low, farthest = (
                (low, middle) if reached(middle) <= least + delta * _SPARED else (middle, farthest)
            )
        return Curve(reached, farthest), 0.0

    def _reached(
        self, law: ShareLaw, shares: int, delta: float, method: str
    ) -> tuple[Callable[[float], float], bool]:
        """Return delta as a function of epsilon, and whether it is by a convolution of the integers."""
        exact = method == "exact" or (
            method == "auto" and work(shares, law.reach(shares, delta * _SPARED)) <= _QUICK
        )
        if exact:
            return self._delta(exact_sum(law, shares, delta)), True
        ideal, apart = self._ideal(law, shares, delta), self._moved * shares * law.distance

        def reached(epsilon: float) -> float:
            return float(ideal(epsilon)) + (1.0 + math.exp(epsilon)) * apart

        return reached, False


@dataclass(frozen=True)
class Count(Lattice):
    """How many clients have something: every record is 0 or 1.

    Examples
    --------
    >>> from bitldp.sums import Count, SecureSum
    >>> total = SecureSum(Count(), epsilon=1.0, clients=1000)
    >>> total.share(True, rng=1).shape
    (1,)
    """

    name: ClassVar[str] = "count"
    streams: ClassVar[int] = 0

    def encode(
        self, x: ArrayLike, sources: list[Source], threads: int | None
    ) -> tuple[NDArray[np.int64], bool]:
        """Return the records as integers."""
        values = np.asarray(x)
        codes = checks.codes(
            "x", np.atleast_1d(values).astype(np.uint8) if values.dtype == bool else np.atleast_1d(values), 2
        )
        return codes.astype(np.int64).reshape(-1, 1), values.ndim == 0

    def estimate(
        self, sums: NDArray[np.int64], law: ShareLaw, survivors: int, shares: int | None = None
    ) -> Estimate:
        """Return the count."""
        return _counts(sums, law, survivors, shares, None)

    def terms(self) -> dict[str, int | str]:
        """Return the kind."""
        return {"kind": self.name}

    @classmethod
    def from_terms(cls, terms: Mapping[str, int | str]) -> Count:
        """Return the kind."""
        return cls()


@dataclass(frozen=True)
class Histogram(Lattice):
    """How many clients have each of some categories: every record is one category.

    Parameters
    ----------
    categories : int or sequence
        Number of categories, 2 to 2**20, or their labels, which are public.
    """

    name: ClassVar[str] = "histogram"
    streams: ClassVar[int] = 0
    _moved = 2

    categories: Annotated[int | Categories, some_categories(1 << 20)]

    def __post_init__(self) -> None:
        """Check the categories."""
        object.__setattr__(self, "categories", some_categories(1 << 20)("categories", self.categories))

    @property
    def coordinates(self) -> int:
        """Integers of a record: one a category."""
        return self.categories if isinstance(self.categories, int) else len(self.categories)

    def encode(
        self, x: ArrayLike, sources: list[Source], threads: int | None
    ) -> tuple[NDArray[np.int64], bool]:
        """Return the records, one-hot."""
        values = np.asarray(x)
        given = np.atleast_1d(values)
        if isinstance(self.categories, Categories):
            given = self.categories.encode(given)
        codes = checks.codes("x", given, self.coordinates)
        # compared with all, so that no address depends on the category
        marks = (codes[:, None] == np.arange(self.coordinates)).astype(np.int64)
        return marks, values.ndim == 0

    def estimate(
        self, sums: NDArray[np.int64], law: ShareLaw, survivors: int, shares: int | None = None
    ) -> Estimate:
        """Return the counts."""
        labels = None if isinstance(self.categories, int) else np.asarray(self.categories.labels)
        return _counts(sums, law, survivors, shares, labels)

    def terms(self) -> dict[str, int | str]:
        """Return the kind and the number of categories."""
        return {"kind": self.name, "categories": self.coordinates}

    @classmethod
    def from_terms(cls, terms: Mapping[str, int | str]) -> Histogram:
        """Return the kind, without labels."""
        return cls(int(terms["categories"]))


@dataclass(frozen=True)
class Number(Lattice):
    """Mean of numbers of an interval, which are dithered to a grid.

    Parameters
    ----------
    interval : (float, float)
        Where the numbers lie.
    steps : int
        Steps of the grid, 1 to 65,535. Dither adds about n epsilon**2/(8 steps**2) of the noise's variance
        for n clients, at the most: more steps cost bits, and make that less.
    clip : bool
        Whether numbers outside the interval are clipped to it, or refused.
    """

    name: ClassVar[str] = "number"
    streams: ClassVar[int] = 1

    interval: Interval = (0.0, 1.0)
    steps: int = 1023
    clip: bool = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        object.__setattr__(self, "interval", checks.interval("interval", self.interval))
        object.__setattr__(self, "steps", checks.integer("steps", self.steps, 1, _MOST_STEPS))
        object.__setattr__(self, "clip", checks.flag("clip", self.clip))

    @property
    def neutral(self) -> int:
        """Integer of a client that has no number: the middle of the interval, rounded down to a step."""
        return self.steps // 2

    def encode(
        self, x: ArrayLike, sources: list[Source], threads: int | None
    ) -> tuple[NDArray[np.int64], bool]:
        """Return the numbers in steps, each dithered to one of its two neighbours on the grid."""
        values = checks.numbers("x", x)
        low, high = self.interval
        grid = Grid(self.steps + 1, low=low, high=high, clip=self.clip)
        plain = Shift(self.steps + 1, self.steps + 1, [ONE], 0)
        given = np.atleast_1d(values).reshape(-1, 1)
        codes = plain.randomize(given, grid, None, sources[0], "codes", None, threads, 0)
        return codes.astype(np.int64), values.ndim == 0

    def estimate(
        self, sums: NDArray[np.int64], law: ShareLaw, survivors: int, shares: int | None = None
    ) -> Estimate:
        """Return the mean of the survivors' numbers."""
        shares = survivors if shares is None else shares
        low, high = self.interval
        step = (high - low) / self.steps / survivors
        variance = shares * law.variance + survivors / 4.0  # a dithered number has a quarter at the most
        value = low + sums[0] * step
        limits = Rounded(law, shares, step, survivors)
        return Estimate(
            np.float64(value)[()], np.float64(math.sqrt(variance) * step), survivors, limits=limits
        )

    def terms(self) -> dict[str, int | str]:
        """Return the kind, the interval and the steps."""
        low, high = self.interval
        ends: dict[str, int | str] = {"low": repr(low), "high": repr(high)}
        return {"kind": self.name, **ends, "steps": self.steps, "clip": int(self.clip)}

    @classmethod
    def from_terms(cls, terms: Mapping[str, int | str]) -> Number:
        """Return the kind."""
        return cls((float(terms["low"]), float(terms["high"])), int(terms["steps"]), bool(terms["clip"]))


def _counts(
    sums: NDArray[np.int64], law: ShareLaw, survivors: int, shares: int | None, labels: NDArray[Any] | None
) -> Estimate:
    shares = survivors if shares is None else shares
    value = sums.astype(np.float64)
    stderr = np.full(len(value), math.sqrt(shares * law.variance))
    return Estimate(value, stderr, survivors, labels, limits=Summed(law, shares, 1.0))
