"""What the reports of a mechanism on a ball are worth: letters, their variance, the mean of records."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, Matrix, Shift
from bitldp.base import checks
from bitldp.base.arrays import place
from bitldp.compression.ball._records import check_shape
from bitldp.estimate.accumulators import MeanAccumulator
from bitldp.estimate.estimates import Estimate
from bitldp.letters.spread import Spread
from bitldp.mechanism.base import Mechanism

__all__ = ["Spelled"]


@dataclass(frozen=True, eq=False, repr=False)
class Spelled(Mechanism):
    """Base of the mechanisms on a ball: everything that is computed from the letters of a coordinate."""

    features: int
    _: KW_ONLY
    epsilon: float
    delta: float = 0.0
    radius: float = 1.0
    clip: bool = True

    # Set on the instance, by Ball; ClassVar keeps them out of the dataclass' fields.
    _channel: ClassVar[Matrix | Shift]
    _grid: ClassVar[Grid]
    _conditional: ClassVar[bool]
    _spread: ClassVar[Spread | None]
    _letters: ClassVar[NDArray[np.float64] | None]
    _no_frequencies: ClassVar[str] = "its reports are numbers; use estimate_mean"

    @property
    def letters(self) -> NDArray[np.float64]:
        """What each code is worth, in units of `x`; read-only.

        Raises
        ------
        ValueError
            If the mechanism has no letters that are right on average.
        """
        return self._refuse() if self._letters is None else self._letters

    @property
    def report_bits(self) -> int:
        """Bits of one record's packed report."""
        return self.features * self._coordinate_bits

    @property
    def _coordinate_bits(self) -> int:
        return (self._channel.outputs - 1).bit_length()

    def _refuse(self) -> NoReturn:
        raise ValueError(f"{type(self).__name__} has no mean to estimate: {self._no_mean}")

    def _check_axis(self, name: str, shape: tuple[int, ...]) -> None:
        check_shape(name, shape, self.features)

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return the letters of reports: numbers whose mean over the coins is the (clipped) record.

        With conditional dither the mean is off by at most `bias_bound`.

        Parameters
        ----------
        reports : array_like of int
            Codes as `randomize` gives them, shape (n, features) or (features,).

        Returns
        -------
        ndarray of float64
            Same shape.

        Raises
        ------
        ValueError, TypeError
            For a code out of range or another shape.
        """
        letters = self.letters
        codes = checks.codes("reports", reports, self._channel.outputs)
        self._check_axis("reports", codes.shape)
        values: NDArray[np.float64] = letters[codes]
        return values

    def estimate_mean(self, reports: ArrayLike) -> Estimate:
        """Estimate the mean of the (clipped) records, without bias where the dither has none.

        Parameters
        ----------
        reports : array_like of int
            Codes of n >= 1 records, shape (n, features) or (features,).

        Returns
        -------
        Estimate
            `value` and `stderr` of shape (features,). With conditional dither, `value` is off by at most
            `bias_bound` in the l2 norm, which `stderr` does not show.

        Raises
        ------
        ValueError, TypeError
            If there are no letters, for no reports, or for a report out of range.
        """
        accumulator = self.accumulator()
        accumulator.update(reports)
        return accumulator.estimate()

    def accumulator(self) -> MeanAccumulator:
        """Return an empty accumulator of the mean: streams, merges and serialises.

        Raises
        ------
        ValueError
            If there are no letters.
        """
        if self._letters is None:
            return self._refuse()
        return MeanAccumulator(
            self, self.features, lambda reports: self.decode(reports).reshape(-1, self.features)
        )

    def _check_spread(self) -> Spread:
        if self._spread is None:
            return self._refuse()
        if self._conditional:
            raise ValueError("dither: the variance has no closed form where it is conditional")
        return self._spread

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of a coordinate's letter for true values in [-radius, radius], any shape.

        Raises
        ------
        ValueError
            If there are no letters, for NaN, or with conditional dither, which has no closed form.
        """
        spread = self._check_spread()
        values = np.asarray(x, dtype=np.float64)
        if np.isnan(values).any():
            raise ValueError(f"x: {place(np.isnan(values))} is NaN")
        return spread.at(values)

    def mean_variance(self) -> float:
        """Return the mean of `variance` over a coordinate that is uniform on [-radius, radius]."""
        return self._check_spread().mean()

    def worst_variance(self) -> float:
        """Return the largest `variance` of any coordinate."""
        return self._check_spread().worst()
