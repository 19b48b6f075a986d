"""What the numeric mechanisms give back: unbiased letters, their variance, and the mean of the records."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp import _checks
from bitldp._core import Bits, Cube, Matrix, Shift, Window
from bitldp._mechanism import Mechanism
from bitldp.accumulate import MeanAccumulator
from bitldp.estimate import Estimate
from bitldp.numeric._sampled import SampledMeanAccumulator, SampledReports, checked, place
from bitldp.numeric._scalar import Interval, Scalar
from bitldp.numeric._spread import Spread


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
        codes = _checks.codes("reports", reports, self.alphabet)
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
