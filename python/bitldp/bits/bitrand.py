"""BitRand: f-RR on the features of a record, label-RR on its label.

"Bit-aware randomized response for local differential privacy in federated learning" (submitted to ICLR 2022),
Algorithm 1, lines 15 to 18.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bitldp.base import checks
from bitldp.base.keys import RandomSource, keys
from bitldp.bits.frr import FRR
from bitldp.bits.words import Infinities, Output, Sign
from bitldp.categorical.responses import LabelRR
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.pairs import PairAccumulator
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import Calibration, Guarantee, Unit, added

__all__ = ["BitRand"]


@dataclass(frozen=True, eq=False, repr=False)
class BitRand(Mechanism):
    """BitRand: features by f-RR, the label by label-RR, with independent keys.

    Parameters
    ----------
    features : int
        Features r of a record.
    classes : int
        Classes C of the label, 2 or more.
    epsilon_x : float
        Budget of the features, as `epsilon` of `FRR`.
    epsilon_y : float
        Budget of the label, as `epsilon` of `LabelRR`.
    bits, integer_bits, calibration, unit, sign, infinities
        As of `FRR`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    The parts are independent, so the exact epsilon of a (features, label) record is the sum of both. In the
    guarantee, `bit` and `feature` are the worst single symbol and the worst single field, the label being one
    of each; with ``unit="feature"`` the claim is the larger of the two budgets.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> both = bitldp.BitRand(features=3, classes=4, epsilon_x=2.0, epsilon_y=1.0)
    >>> codes, labels = both.randomize(np.zeros((5, 3)), np.arange(5) % 4, rng=7)
    >>> codes.shape, labels.shape
    ((5, 3), (5,))
    """

    features: int
    _: KW_ONLY
    classes: int
    epsilon_x: float
    epsilon_y: float
    bits: int = 10
    integer_bits: int = 5
    calibration: Calibration = "exact"
    unit: Unit = "record"
    sign: Sign = "bitrand"
    infinities: Infinities = "refuse"

    _x: ClassVar[FRR]  # set on the instance, by _build; ClassVar keeps them out of the dataclass' fields
    _y: ClassVar[LabelRR]

    def _build(self) -> None:
        epsilon_x = checks.budget("epsilon_x", self.epsilon_x)
        epsilon_y = checks.budget("epsilon_y", self.epsilon_y)
        x = FRR._quiet(
            features=self.features,
            bits=self.bits,
            integer_bits=self.integer_bits,
            epsilon=epsilon_x,
            calibration=self.calibration,
            unit=self.unit,
            sign=self.sign,
            infinities=self.infinities,
        )
        y = LabelRR._quiet(classes=self.classes, epsilon=epsilon_y)
        label = y.guarantee.record
        guarantee = Guarantee(
            claimed=added(epsilon_x, epsilon_y) if self.unit == "record" else max(epsilon_x, epsilon_y),
            bit=max(x.guarantee.bit, label),
            feature=max(x.guarantee.feature, label),
            record=added(x.guarantee.record, label),
            holds=x.guarantee.holds and y.guarantee.holds,
            unit=self.unit,
        )
        self._set(
            features=x.features,
            classes=y.classes,
            epsilon_x=epsilon_x,
            epsilon_y=epsilon_y,
            bits=x.bits,
            integer_bits=x.integer_bits,
            _x=x,
            _y=y,
            _guarantee=guarantee,
        )

    @property
    def features_mechanism(self) -> FRR:
        """The f-RR that answers for the features: its estimators take the first part of the reports."""
        return self._x

    @property
    def label_mechanism(self) -> LabelRR:
        """The label-RR that answers for the label: its estimators take the second part of the reports."""
        return self._y

    @property
    def report_bits(self) -> int:
        """Bits of one record's report in its packed form, features and label."""
        return self._x.report_bits + self._y.report_bits

    def randomize(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        rng: RandomSource = None,
        output: Output = "codes",
        out: NDArray[Any] | None = None,
        threads: int | None = None,
        first_chunk: int = 0,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Randomize features and labels.

        Parameters
        ----------
        x : array_like of float32 or float64, shape (n, features) or (features,)
            Features of the records, as of `FRR.randomize`.
        y : array_like of int, shape (n,) or ()
            Labels in [0, classes).
        rng : None, int, SeedSequence or Generator
            As of `FRR.randomize`; features and labels get a key each.
        output : {"codes", "bits", "values", "packed"}
            Form of the features; labels are always codes.
        out : ndarray, optional
            Array for the features.
        threads : int, optional
            Number of threads; the result does not depend on it.
        first_chunk : int
            How many chunks of ``bitldp._core.CHUNK`` *records* of the stream to skip.

        Returns
        -------
        features : ndarray
            Reports of the features.
        labels : ndarray of unsigned int
            Reports of the labels, shape of `y`.

        Raises
        ------
        ValueError, TypeError
            As of the two mechanisms, and where `x` and `y` differ in length. Nothing is written to `out`
            then.
        """
        shape, many = checks.shape("x", x), checks.shape("y", y)
        if shape[:-1] != many and not (self.features == 1 and shape == many):
            raise ValueError(f"y: shape must be {shape[:-1]}, one label for each record of x, got {many}")
        threads, first_chunk = checks.stream(threads, first_chunk)
        checks.integer("first_chunk", first_chunk, 0, ((1 << 63) - 1) // self.features)
        checks.form(output)
        label = np.atleast_1d(checks.codes("y", y, self.classes))
        key_x, key_y = keys(rng, 2)
        labels = self._y._law.randomize(label, None, None, key_y, "codes", None, threads, first_chunk)
        codes = self._x.channel.randomize(
            x, self._x.codec, key_x, output, out, threads, first_chunk * self.features
        )
        return codes, labels.reshape(many)

    def decode(
        self, reports: tuple[ArrayLike, ArrayLike], *, dtype: DTypeLike = np.float32
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the values that the code words spell, and the labels.

        Parameters
        ----------
        reports : tuple of array_like
            Code words and labels, as `randomize` returns them.
        dtype : dtype
            float32 or float64, of the values.

        Returns
        -------
        values, labels : ndarray
        """
        codes, labels = reports
        return self._x.decode(codes, dtype=dtype), self._y.decode(labels)

    def estimate_mean(self, reports: ArrayLike) -> Estimate:
        """Estimate the mean of every feature from code words: `FRR.estimate_mean`."""
        return self._x.estimate_mean(reports)

    def estimate_frequencies(self, labels: ArrayLike, *, project: bool = False) -> Estimate:
        """Estimate the frequencies of the classes from reported labels: `LabelRR.estimate_frequencies`."""
        return self._y.estimate_frequencies(labels, project=project)

    def accumulator(self) -> PairAccumulator:
        """Return an empty accumulator of both: ``update(codes, labels)``."""
        return PairAccumulator(self, self._x.accumulator(), self._y.accumulator())

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of the unbiased letter of each feature: `FRR.variance`."""
        return self._x.variance(x)

    def worst_variance(self) -> float:
        """Return the largest variance of the unbiased letter of a feature: `FRR.worst_variance`."""
        return self._x.worst_variance()

    def mean_variance(self) -> float:
        """Return the mean variance of the unbiased letter of a feature: `FRR.mean_variance`."""
        return self._x.mean_variance()

    def probabilities(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return `FRR.probabilities` of the bits and `LabelRR.probabilities` of the label."""
        return self._x.probabilities(), self._y.probabilities()
