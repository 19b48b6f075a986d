"""CLDP for the l1 ball: one random Hadamard coefficient of a record, as one bit by randomized response."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Window, pack
from bitldp.base import checks
from bitldp.base.keys import RandomSource, keys
from bitldp.compression.ball._records import check_finite
from bitldp.estimate.accumulators import MeanAccumulator
from bitldp.estimate.estimates import Estimate
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import Guarantee
from bitldp.release.draws import coordinates
from bitldp.release.window import WindowScalar, windowed

__all__ = ["CLDP"]

_MOST = 1 << 20
_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class CLDP(Mechanism):
    """Communication-limited LDP mechanism for the l1 ball: log2(d) + 1 bits a record.

    Parameters
    ----------
    features : int
        Coordinates of a record, d, 1 to 2**20; padded with zeros to D, the next power of two.
    epsilon : float
        Exact epsilon of a record, finite, zero or more.
    radius : float
        Radius of the l1 ball, above zero, in units of `x`.
    clip : bool
        Whether records outside the ball are scaled to it, or refused.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way, also outside the ball: the privacy does not rest on the clipping.
    A row j of the D x D Hadamard matrix H (entries +-1) is drawn without looking at the record, and the
    coefficient (H x)_j, a number of [-R, R], is released by Duchi's mechanism as +-C,
    C = R (e^eps + 1)/(e^eps - 1). The report is the code 2 j + sign; it is worth the vector +-C H_j, whose
    mean is x since H H = D I. The sum of its coordinates' variances is d C^2 - |x|^2.

    Source: Girgis, Data, Diggavi, Kairouz and Suresh, "Shuffled model of differential privacy in federated
    learning", AISTATS 2021, the mechanism for p = 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp.compression import CLDP
    >>> mechanism = CLDP(6, epsilon=2.0)
    >>> x = np.array([0.5, -0.25, 0.0, 0.0, 0.25, 0.0])
    >>> reports = mechanism.randomize(np.tile(x, (100_000, 1)), rng=1)
    >>> bool(np.abs(mechanism.estimate_mean(reports).value - x).max() < 0.02)
    True
    >>> mechanism.report_bits
    4
    """

    features: int
    epsilon: float
    radius: float = 1.0
    clip: bool = True

    # Set on the instance, by _build; ClassVar keeps them out of the dataclass' fields.
    _scalar: ClassVar[WindowScalar]
    _rows: ClassVar[int]
    _no_frequencies: ClassVar[str] = "its reports are numbers; use estimate_mean"

    def _build(self) -> None:
        features = checks.count("features", self.features, 1, _MOST)
        epsilon = checks.budget("epsilon", self.epsilon)
        radius = checks.positive("radius", self.radius)
        if not isinstance(self.clip, (bool, np.bool_)):
            raise TypeError(f"clip: must be True or False, not {type(self.clip).__name__}")
        if not 1e-100 <= radius <= 1e100:
            raise ValueError(f"radius: must be between 1e-100 and 1e100, got {radius}")
        scalar = windowed(2, 1, epsilon, (-radius, radius))
        self._set(
            features=features,
            epsilon=epsilon,
            radius=radius,
            clip=bool(self.clip),
            _scalar=scalar,
            _rows=1 << (features - 1).bit_length(),
            _guarantee=Guarantee.judge(epsilon, (scalar.epsilon,) * 3),
        )

    @property
    def channel(self) -> Window:
        """The channel of the sign. At epsilon 0 it is given zeros in place of the input."""
        return self._scalar.law.channel

    @property
    def report_bits(self) -> int:
        """Bits of one record's packed report: log2(D) + 1."""
        return self._rows.bit_length()

    @property
    def letters(self) -> NDArray[np.float64]:
        """What the signs 0 and 1 are worth: -C and C.

        Raises
        ------
        ValueError
            If the reports say nothing (epsilon 0).
        """
        if self._scalar.letters is None:
            raise ValueError(
                "CLDP: no unbiased decode exists at epsilon 0, where all records are reported alike"
            )
        return self._scalar.letters

    def _check_speaks(self) -> None:
        if self._scalar.letters is None:
            raise ValueError("CLDP: no unbiased decode exists at epsilon 0, where all records are alike")

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of the sign, given the drawn row: P[i, s] for a coefficient at -R, and at R."""
        return self._scalar.probabilities()

    def _records(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return checked records in the ball, float64, shape (n, features)."""
        values = check_finite(x, self.features)
        records = values.astype(np.float64).reshape(-1, self.features)
        # scaled first, so that no sum leaves the range of doubles
        top = np.maximum(np.abs(records).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        sums = np.abs(records / top).sum(axis=1, keepdims=True)
        with np.errstate(over="ignore"):  # an infinite norm is one beyond the ball
            norms = sums * top
        beyond = norms[:, 0] > self.radius * (1.0 if self.clip else 1.0 + 2.0**-20)
        if beyond.any() and not self.clip:
            raise ValueError(
                f"x: the record at index {int(np.argmax(beyond))} is outside the ball of radius "
                f"{self.radius}, which clip=False refuses"
            )
        scaled = records / top * (self.radius / np.maximum(sums, 1.0))
        return np.asarray(np.where(norms > self.radius, scaled, records))

    def randomize(
        self,
        x: ArrayLike,
        *,
        rng: RandomSource = None,
        output: Literal["codes", "packed"] = "codes",
        threads: int | None = None,
        first_chunk: int = 0,
    ) -> NDArray[Any]:
        """Randomize records of the ball.

        Parameters
        ----------
        x : array_like of float32 or float64
            Shape (n, features) or (features,), finite.
        rng : None, int, SeedSequence or Generator
            None: fresh 256-bit keys of the operating system. The others reproduce, for tests and experiments
            only: a key that is used on two inputs reveals where they differ.
        output : {"codes", "packed"}
            Codes 2 j + sign (smallest unsigned dtype), or bytes with `report_bits` a record.
        threads : int, optional
            Number of threads; the result does not depend on it.
        first_chunk : int
            How many chunks (``bitldp._core.CHUNK`` records) of the keys' streams to skip.

        Returns
        -------
        ndarray
            One report a record, safe to release at `guarantee`: shape (n,) or (); "packed" is flat.

        Raises
        ------
        ValueError, TypeError
            NaN or infinity, a record outside with ``clip=False``, wrong shape or dtype. An error gives an
            index, never a value.
        """
        threads, first_chunk = checks.stream(threads, first_chunk)
        checks.choice("output", output, ("codes", "packed"))
        records = self._records(x)
        key, drawn = keys(rng, 2)
        rows = coordinates(drawn, len(records), self._rows, 1, first_chunk)[:, 0].astype(np.int64)
        coefficients = np.empty(len(records))
        step = max(1, _BLOCK // self.features)
        for start in range(0, len(records), step):
            part = slice(start, start + step)
            coefficients[part] = (signs(rows[part], self.features) * records[part]).sum(axis=1)
        # the sum's rounding may pass an end by a unit in the last place; the grid clips
        said = self._scalar.randomize(coefficients, [key], "codes", None, threads, first_chunk)
        codes = (2 * rows + said).astype(np.min_scalar_type(2 * self._rows - 1))
        if output == "packed":
            return pack(codes, self.report_bits)
        reports: NDArray[Any] = codes.reshape(np.shape(x)[:-1])
        return reports

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return the vectors that reports are worth, whose mean over the coins is the (clipped) record.

        Parameters
        ----------
        reports : array_like of int, shape (n,) or ()
            Codes as `randomize` gives them.

        Returns
        -------
        ndarray of float64, shape (n, features) or (features,)

        Raises
        ------
        ValueError, TypeError
            If the reports say nothing (epsilon 0), or for a code out of range or another shape.
        """
        letters = self.letters
        codes = checks.codes("reports", reports, 2 * self._rows)
        if codes.ndim > 1:
            raise ValueError(f"reports: shape must be (n,) or (), got {codes.shape}")
        flat = codes.reshape(-1).astype(np.int64)
        vectors: NDArray[np.float64] = signs(flat >> 1, self.features) * letters[flat & 1][:, None]
        return vectors.reshape(*codes.shape, self.features)

    def estimate_mean(self, reports: ArrayLike) -> Estimate:
        """Estimate the mean of the (clipped) records, without bias.

        Parameters
        ----------
        reports : array_like of int, shape (n,)
            Codes of n >= 1 records.

        Returns
        -------
        Estimate
            `value` and `stderr` of shape (features,).

        Raises
        ------
        ValueError, TypeError
            As of `decode`, or for no reports.
        """
        accumulator = self.accumulator()
        step = max(1, _BLOCK // self.features)
        codes = np.atleast_1d(np.asarray(reports))
        for start in range(0, max(1, len(codes)), step):
            accumulator.update(codes[start : start + step])
        return accumulator.estimate()

    def accumulator(self) -> MeanAccumulator:
        """Return an empty accumulator of the mean: streams, merges and serialises.

        Raises
        ------
        ValueError
            If the reports say nothing (epsilon 0).
        """
        self._check_speaks()
        return MeanAccumulator(
            self, self.features, lambda reports: self.decode(reports).reshape(-1, self.features)
        )

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of a coordinate's letter, C^2 - x^2, for true values of any shape.

        Raises
        ------
        ValueError
            If the reports say nothing (epsilon 0), or for NaN.
        """
        values = np.clip(np.asarray(x, dtype=np.float64), -self.radius, self.radius)
        if np.isnan(values).any():
            raise ValueError("x: must not be NaN")
        spread: NDArray[np.float64] = np.square(self.letters[1]) - np.square(values)
        return spread

    def mean_variance(self) -> float:
        """Return the mean of `variance` over a coordinate that is uniform on [-radius, radius]."""
        return float(np.square(self.letters[1]) - self.radius**2 / 3.0)

    def worst_variance(self) -> float:
        """Return the largest `variance` of any coordinate, that at 0."""
        return float(np.square(self.letters[1]))


def signs(rows: NDArray[np.int64], columns: int) -> NDArray[np.float64]:
    """Return rows of a Hadamard matrix, (-1)^popcount(j & l) for l < columns, shape (len(rows), columns)."""
    parity = rows[:, None] & np.arange(columns)
    shift = 1 << max(0, math.ceil(math.log2(max(1, columns.bit_length()))))
    while shift:
        parity ^= parity >> shift
        shift >>= 1
    return np.asarray(1.0 - 2.0 * (parity & 1), dtype=np.float64)
