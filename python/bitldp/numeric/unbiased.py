"""What the numeric mechanisms give back: unbiased letters, their variance, and the mean of the records."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Bits, Cube, Grid, Matrix, Shift, Window
from bitldp.base import checks
from bitldp.base.arrays import place
from bitldp.base.keys import RandomSource, keys
from bitldp.estimate.accumulators import MeanAccumulator
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.sampled import SampledMeanAccumulator, SampledReports, checked
from bitldp.letters.spread import Spread
from bitldp.mechanism.base import Mechanism
from bitldp.release.base import Interval, Scalar
from bitldp.release.sampled import sampled


class Unbiased(Mechanism):
    """Base of the mechanisms whose reports are worth numbers that are right on average.

    No dataclass itself: a subclass chooses which of these are its parameters, and in which order.
    """

    epsilon: float
    features: int
    clip: bool
    k: int | None  # coordinates of a record that are sampled; None where all are released

    # Set on the instance, by _build; ClassVar keeps them out of the dataclass' fields.
    _scalar: ClassVar[Scalar]
    _ends: ClassVar[Interval]
    _spread: ClassVar[Spread | None]
    _no_frequencies: ClassVar[str] = "its reports are numbers; use estimate_mean"

    @property
    def channels(self) -> tuple[Window | Matrix | Bits | Shift | Cube, ...]:
        """The channels that release one number; more than one where a coin chooses between them."""
        return self._scalar.channels

    @property
    def points(self) -> NDArray[np.float64]:
        """The points of the interval that an input is dithered to, ascending; read-only."""
        return self._scalar.points

    @property
    def alphabet(self) -> int:
        """How many codes a number's report can be; packed, it takes ``(alphabet - 1).bit_length()`` bits."""
        return self._scalar.alphabet

    @property
    def report_bits(self) -> int:
        """Bits of one record's report in its packed form; of sampled features with their indices."""
        code = (self.alphabet - 1).bit_length()
        if self.k is None:
            return self.features * code
        return self.k * (code + max(1, (self.features - 1).bit_length()))

    @property
    def letters(self) -> NDArray[np.float64]:
        """What each code is worth, shape (alphabet,); read-only. Their mean over the coins is the input.

        Raises
        ------
        ValueError
            If the reports say nothing (epsilon 0).
        """
        letters = self._scalar.letters
        return self._refuse_silence() if letters is None else letters

    def _check_axis(self, name: str, shape: tuple[int, ...]) -> None:
        features = self.features
        if len(shape) not in (1, 2) or (shape[-1] != features and (features > 1 or len(shape) == 2)):
            allowed = "(n,) or (n, 1)" if features == 1 else f"(n, {features}) or ({features},)"
            raise ValueError(f"{name}: shape must be {allowed}, got {shape}")

    def _refuse_silence(self) -> NoReturn:
        raise ValueError(
            f"{type(self).__name__}: no unbiased decode exists at epsilon 0, where all values are reported "
            "alike"
        )

    def _check_speaks(self) -> Spread:
        return self._refuse_silence() if self._spread is None else self._spread

    def _check_pair(self, reports: Any) -> SampledReports:
        return checked(reports, self.features, self.k or self.features, self.alphabet)

    def _check_codes(self, reports: Any) -> NDArray[Any]:
        codes = checks.codes("reports", reports, self.alphabet)
        self._check_axis("reports", codes.shape)
        return codes

    def decode(self, reports: ArrayLike | SampledReports) -> NDArray[np.float64]:
        """Return the letters of reports: numbers whose mean over the coins is the (clipped) input.

        Parameters
        ----------
        reports : array_like of int, or SampledReports
            Codes as `randomize` gives them; with ``spend="sample"`` the pair (indices, codes).

        Returns
        -------
        ndarray of float64
            Same shape; shape (n, features) with ``spend="sample"``, where a letter's deviation from the
            middle of the interval is scaled by features/k and the middle stands for what was not sampled.

        Raises
        ------
        ValueError, TypeError
            If the reports say nothing (epsilon 0), or for a code out of range.
        """
        letters = self.letters
        if self.k is not None:
            return self._pairs().dense(reports)
        values: NDArray[np.float64] = letters[self._check_codes(reports)]
        return values

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
            If the reports say nothing (epsilon 0), for no reports, or for a report out of range.
        """
        accumulator = self.accumulator()
        accumulator.update(reports)
        return accumulator.estimate()

    def accumulator(self) -> MeanAccumulator:
        """Return an empty accumulator of the mean: streams, merges and serialises.

        Raises
        ------
        ValueError
            If the reports say nothing (epsilon 0).
        """
        self._check_speaks()
        return MeanAccumulator(self, self.features, self._records) if self.k is None else self._pairs()

    def _records(self, reports: ArrayLike) -> NDArray[np.float64]:
        return self.decode(reports).reshape(-1, self.features)

    def _pairs(self) -> SampledMeanAccumulator:
        middle = self._check_speaks().middle
        scale = self.features / (self.k or self.features)
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
            Same shape, in squared units of `x`. The dither is included, and so is, with ``spend="sample"``,
            the choice of the coordinates.

        Raises
        ------
        ValueError
            If the reports say nothing (epsilon 0), or for NaN.
        """
        spread = self._check_speaks()
        values = np.asarray(x, dtype=np.float64)
        if np.isnan(values).any():
            raise ValueError(f"x: {place(np.isnan(values))} is NaN")
        return spread.at(values)

    def mean_variance(self) -> float:
        """Return the mean of `variance` over inputs that are uniform on the interval.

        Raises
        ------
        ValueError
            If the reports say nothing (epsilon 0).
        """
        return self._check_speaks().mean()

    def worst_variance(self) -> float:
        """Return the largest `variance` of any input.

        Raises
        ------
        ValueError
            If the reports say nothing (epsilon 0).
        """
        return self._check_speaks().worst()


Output = Literal["codes", "values", "packed"]


class Released(Unbiased):
    """Base of the mechanisms that release numbers of an interval by one channel or a coin between some."""

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of one number: P[i, y] = P(code y | points[i]), shape (points, alphabet).

        Raises
        ------
        ValueError
            If the alphabet has more than 8192 codes, so that the table would take over half a gigabyte.
        """
        return self._scalar.probabilities()

    def outside(self, x: ArrayLike) -> int:
        """Return how many values of `x` (float32 or float64) lie outside the interval and are clipped."""
        return Grid(2, low=self._ends[0], high=self._ends[1]).outside(x)

    def randomize(
        self,
        x: ArrayLike,
        *,
        rng: RandomSource = None,
        output: Output = "codes",
        out: NDArray[Any] | None = None,
        threads: int | None = None,
        first_chunk: int = 0,
    ) -> Any:
        """Randomize numbers.

        Parameters
        ----------
        x : array_like of float32 or float64
            Shape (n,) or (n, 1) for one feature, else (n, features) or (features,). Values outside the
            interval are clipped to it (`outside` counts them), or refused with ``clip=False``.
        rng : None, int, SeedSequence or Generator
            None: fresh 256-bit keys of the operating system. The others reproduce, for tests and experiments
            only: a key that is used on two inputs reveals where they differ.
        output : {"codes", "values", "packed"}
            Codes (smallest unsigned dtype), letters (dtype of `x`; see `decode`), or bytes with as many bits
            a code as are needed.
        out : ndarray, optional
            C-contiguous array of the exact shape and dtype to fill; must not overlap `x`. Not with
            ``spend="sample"``.
        threads : int, optional
            Number of threads; the result does not depend on it.
        first_chunk : int
            How many chunks of the keys' streams to skip: of ``bitldp._core.CHUNK`` released values, or of
            ``channels[0].chunk`` records where whole records are released by a `Cube`.

        Returns
        -------
        ndarray or SampledReports
            The reports, safe to release at `guarantee`: of the shape of `x`, but that "packed" is flat. With
            ``spend="sample"``, codes and packed bytes come as a pair (indices, codes) of shape (n, k), or
            (k,) for a record by itself; indices are packed to ``(features - 1).bit_length()`` bits, at least
            1. Its "values" have the shape of `x`, the middle of the interval standing for what was not
            sampled.

        Raises
        ------
        ValueError
            NaN, a value outside with ``clip=False`` (an index is given, never the value), wrong shape, unfit
            `out`, or "values" where reports say nothing. Nothing is written then.
        TypeError
            Wrong dtype or kind of argument.
        """
        self._check_axis("x", checks.shape("x", x))
        threads, first_chunk = checks.stream(threads, first_chunk)
        checks.choice("output", output, ("codes", "values", "packed"))
        if output == "values":
            self._check_speaks()
        if not self.clip:
            refuse_outside(checks.plain("x", x), self._ends)
        scalar = self._scalar
        if self.k is None:
            return scalar.randomize(x, keys(rng, scalar.streams), output, out, threads, first_chunk)
        if out is not None:
            raise ValueError("out: not offered with spend='sample', where a report is a pair")
        values = checks.plain("x", x)
        streams = keys(rng, scalar.streams + 1)
        if output == "values":
            pairs = sampled(scalar, values, (self.features, self.k), streams, "codes", threads, first_chunk)
            return self.decode(pairs).reshape(values.shape).astype(values.dtype, copy=False)
        return sampled(scalar, values, (self.features, self.k), streams, output, threads, first_chunk)


def refuse_outside(x: NDArray[Any], ends: Interval) -> None:
    """Refuse numbers outside an interval, NaN too; other dtypes are left to the channel."""
    if x.dtype not in (np.float32, np.float64) or not x.size:
        return  # the channel says what it takes
    # In the dtype of x: an end that float32 cannot hold is still inside.
    low, high = (x.dtype.type(end) for end in ends)
    if not (x.min() >= low and x.max() <= high):
        # Written so that NaN fails.
        where = place(~((x >= low) & (x <= high)))
        raise ValueError(f"x: {where} is NaN or outside {ends}, which clip=False refuses")
