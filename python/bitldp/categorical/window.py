"""What the categorical mechanisms share: a window of exact epsilon, and estimates where its width is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Window
from bitldp.base import checks
from bitldp.base.keys import RandomSource, keys
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.estimates import Estimate, indicator_spread, indicator_variance
from bitldp.mechanism.base import Mechanism
from bitldp.release.window import Law

Output = Literal["codes", "values", "packed"]
_ONE = 1 << 64


def check_axis(name: str, shape: tuple[int, ...], columns: int) -> None:
    """Refuse values that are not records of so many columns."""
    if len(shape) not in (1, 2) or (shape[-1] != columns and (columns > 1 or len(shape) == 2)):
        allowed = "(n,) or (n, 1)" if columns == 1 else f"(n, {columns}) or ({columns},)"
        raise ValueError(f"{name}: shape must be {allowed}, got {shape}")


@dataclass(frozen=True, eq=False, repr=False)
class CategoricalWindow(Mechanism):
    """Base of the mechanisms that report the true category with p, any other with q."""

    # Set on the instance, by _build; ClassVar keeps them out of the dataclass' fields.
    _law: ClassVar[Law]
    _columns: ClassVar[int] = 1
    _no_mean: ClassVar[str] = "its reports are categories; use estimate_frequencies"

    def _weights(self) -> tuple[float, float]:
        """Return P(report v | v) and P(report v | another), from the integers of the channel."""
        channel = self._law.channel
        return channel.high / _ONE, (_ONE - channel.high) / ((channel.cells - 1) * _ONE)

    @property
    def channel(self) -> Window:
        """The channel: its `high` is the law. At epsilon 0 it is given zeros in place of the input."""
        return self._law.channel

    @property
    def report_bits(self) -> int:
        """Bits of one record's report in its packed form: as few a feature as tell its reports apart."""
        return self._columns * (self._law.channel.cells - 1).bit_length()

    def _check_axis(self, name: str, x: ArrayLike) -> None:
        check_axis(name, checks.shape(name, x), self._columns)

    def randomize(
        self,
        x: ArrayLike,
        *,
        rng: RandomSource = None,
        output: Output = "codes",
        out: NDArray[Any] | None = None,
        threads: int | None = None,
        first_chunk: int = 0,
    ) -> NDArray[Any]:
        """Randomize categories.

        Parameters
        ----------
        x : array_like of int or bool
            Categories counted from 0. Shape (n,) or (n, 1) for one feature, else (n, features) or
            (features,).
        rng : None, int, SeedSequence or Generator
            None: a fresh 256-bit key of the operating system. The others reproduce, for tests and experiments
            only: a key that is used on two inputs reveals where they differ.
        output : {"codes", "packed"}
            Categories (same shape, smallest unsigned dtype), or bytes with as many bits a report as are
            needed.
        out : ndarray, optional
            C-contiguous array of the exact shape and dtype to fill; must not overlap `x`.
        threads : int, optional
            Number of threads; the result does not depend on it.
        first_chunk : int
            How many chunks (``bitldp._core.CHUNK`` values) of the key's stream to skip.

        Returns
        -------
        ndarray
            The reports, safe to release at `guarantee`.

        Raises
        ------
        ValueError, TypeError
            A category out of range (its index is given, never the value), wrong shape or dtype, unfit `out`.
            Nothing is written then.
        """
        self._check_axis("x", x)
        key = None if rng is None else keys(rng, 1)[0]
        codes = checks.plain("x", x)
        if codes.dtype == np.bool_:  # answers to a yes-or-no question
            codes = codes.view(np.uint8)
        return self._law.randomize(codes, None, None, key, output, out, threads, first_chunk)

    def decode(self, reports: ArrayLike) -> NDArray[Any]:
        """Return the reported categories, checked to be in range: a category stands for itself."""
        return checks.codes("reports", reports, self._law.channel.cells)

    def estimate_frequencies(self, reports: ArrayLike, *, project: bool = False) -> Estimate:
        """Estimate the frequency of every category among the records, without bias.

        Parameters
        ----------
        reports : array_like of int
            Reported categories of n >= 1 records, of the shapes that `randomize` takes.
        project : bool
            Whether to project the frequencies to the simplex (which makes them biased).

        Returns
        -------
        Estimate
            Shape (categories,), or (features, categories) for several features.

        Raises
        ------
        ValueError
            If the reports say nothing (epsilon 0), for no reports, or for a report out of range.
        """
        accumulator = self.accumulator()
        accumulator.update(reports)
        return accumulator.estimate(project=project)

    def accumulator(self) -> CountAccumulator:
        """Return an empty accumulator of the counts: streams, merges and serialises.

        Raises
        ------
        ValueError
            If the reports say nothing (epsilon 0).
        """
        p, q = self._check_speaks()
        cells = self._law.channel.cells
        shape = (cells,) if self._columns == 1 else (self._columns, cells)
        return CountAccumulator(self, shape, self._count, (p, q))

    def _check_speaks(self) -> tuple[float, float]:
        if self._law.epsilon == 0.0:
            raise ValueError(
                f"{type(self).__name__}: no unbiased decode exists at epsilon 0, where all categories are "
                "reported alike"
            )
        return self._weights()

    def _count(self, reports: ArrayLike) -> tuple[int, NDArray[np.int64]]:
        codes = checks.codes("reports", reports, self._law.channel.cells)
        self._check_axis("reports", codes)
        cells = self._law.channel.cells
        table = codes.reshape(-1, self._columns)
        counts = np.stack([np.bincount(column, minlength=cells) for column in table.T])
        return len(table), counts[0] if self._columns == 1 else counts

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of one category: P[x, y] = P(report y | x), shape (categories, categories)."""
        return self._law.channel.probabilities()

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of one report's unbiased indicator of every category, in closed form.

        Parameters
        ----------
        x : array_like of int
            True categories, any shape.

        Returns
        -------
        ndarray of float64
            Shape of `x` and one more axis of length `categories`: p(1 - p)/(p - q)^2 at the true category,
            q(1 - q)/(p - q)^2 at the others.

        Raises
        ------
        ValueError
            If the reports say nothing (epsilon 0), or for a category out of range.
        """
        p, q = self._check_speaks()
        truth = checks.codes("x", x, self._law.channel.cells)
        return indicator_variance(truth, self._law.channel.cells, p, q)

    def worst_variance(self) -> float:
        """Return the largest variance of an unbiased indicator of a category.

        Raises
        ------
        ValueError
            If no unbiased decode exists.
        """
        return indicator_spread(self._law.channel.cells, *self._check_speaks())[0]

    def mean_variance(self) -> float:
        """Return the variance of the unbiased indicators, averaged over categories and over uniform inputs.

        Raises
        ------
        ValueError
            If no unbiased decode exists.
        """
        return indicator_spread(self._law.channel.cells, *self._check_speaks())[1]
