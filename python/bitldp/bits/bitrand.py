"""BitRand: f-RR on the features of a record, label-RR on its label.

"Bit-aware randomized response for local differential privacy in federated learning" (submitted to ICLR 2022),
Algorithm 1, lines 15 to 18.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bitldp.base import checks
from bitldp.base.keys import RandomSource
from bitldp.bits.fixed_point import Infinities, Sign
from bitldp.bits.frr import FRR
from bitldp.categorical.responses import LabelRR
from bitldp.client.program import ClientProgram
from bitldp.client.record import Type
from bitldp.estimate.accumulators import Accumulated, Accumulator, CountAccumulator
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.means import MeanAccumulator
from bitldp.letters.reach import Reach
from bitldp.mechanism.base import Mechanism, Output, Part, Takes
from bitldp.mechanism.law import Block, Experiment, Pair, Symbols
from bitldp.mechanism.parameters import (
    RANDOMIZE,
    Budget,
    Calibration,
    Categories,
    Features,
    FieldId,
    Option,
    Unit,
    refuse_unknown,
)
from bitldp.privacy import Guarantee, added
from bitldp.release.base import Call, called
from bitldp.release.keyed import Ids, fitting, keyed_randomness

__all__ = ["BitRand"]


@dataclass(frozen=True, eq=False, repr=False)
class BitRand(Mechanism):
    """BitRand: f-RR on the features of a record and label-RR on its label, independently.

    Parameters
    ----------
    features : int
        Features r of a record.
    categories : int, sequence or Categories
        Classes C of the label, 2 or more: how many, or their labels, as in `GRR`.
    epsilon_x : float
        Privacy budget of the features: `epsilon` of `FRR`.
    epsilon_y : float
        Privacy budget of the label: `epsilon` of `LabelRR`.
    bits, integer_bits, calibration, unit, sign, infinities
        As of `FRR`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Features and label are randomized independently, so the exact epsilon of a (features, label) record is the
    sum of both. In the guarantee, `bit` and `feature` are the worst single symbol and the worst single field.
    The label counts as one of each. With ``unit="feature"`` the claim is the larger of the two budgets.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> both = bitldp.BitRand(features=3, categories=4, epsilon_x=2.0, epsilon_y=1.0)
    >>> codes, labels = both.randomize(np.zeros((5, 3)), np.arange(5) % 4, rng=7)
    >>> codes.shape, labels.shape
    ((5, 3), (5,))
    """

    features: Features
    _: KW_ONLY
    categories: Annotated[Categories, FieldId("classes")]
    epsilon_x: Annotated[Budget, Option("epsilon")]
    epsilon_y: Annotated[Budget, Option("label_epsilon")]
    bits: int = 10
    integer_bits: int = 5
    calibration: Calibration = "exact"
    unit: Unit = "record"
    sign: Sign = "bitrand"
    infinities: Infinities = "refuse"

    _takes: ClassVar[Takes | None] = "numbers"
    _command: ClassVar[str] = "bitrand"
    outputs: ClassVar[tuple[str, ...]] = FRR.outputs
    _x: FRR = field(init=False, repr=False, compare=False)
    _y: LabelRR = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        epsilon_x, epsilon_y = self.epsilon_x, self.epsilon_y
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
        y = LabelRR._quiet(categories=self.categories, epsilon=epsilon_y)
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
            bits=x.bits,
            integer_bits=x.integer_bits,
            _x=x,
            _y=y,
            _guarantee=guarantee,
        )

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example: half of the budget for the features, half for the label."""
        parameters = FRR._usual(epsilon / 2.0, size)
        return parameters | {"categories": LabelRR._usual_size, "epsilon_y": epsilon / 2.0}

    @classmethod
    def _for_record(cls, **parameters: Any) -> Any:
        """Construct from a command line's options; `epsilon` is the budget of the features."""
        return cls(epsilon_x=parameters.pop("epsilon"), **parameters)

    @property
    def _members(self) -> tuple[Mechanism, ...]:
        """The f-RR of the features, and the label-RR of the label."""
        return self._x, self._y

    @property
    def features_mechanism(self) -> FRR:
        """The f-RR that answers for the features: its estimators take the first part of the reports."""
        return self._x

    @property
    def label_mechanism(self) -> LabelRR:
        """The label-RR that answers for the label: its estimators take the second part of the reports."""
        return self._y

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of the features' code words, and of the label."""
        return self._x._report_parts + self._y._report_parts

    def _join(self, parts: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return reports, as `decode` takes them, of the arrays of features and of labels."""
        return parts[0], parts[1].ravel()

    @property
    def columns(self) -> int:
        """Features of a record."""
        return self.features

    @property
    def labels(self) -> NDArray[Any] | None:
        """The labels of the classes by code, read-only; None where they are integers from 0."""
        return self._y.labels

    def outside(self, x: ArrayLike) -> int:
        """Return how many features saturate: `FRR.outside`; see `Mechanism.outside`."""
        return self._x.outside(x)

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channels of the features' bits and of the label."""
        return self._x._symbols() + self._y._symbols()

    def extremes(self, pair: Pair | None = None) -> Experiment:
        """Return records that differ in every bit and in the label; see `Mechanism.extremes`."""
        bits = self._x.extremes(None if pair is None else (pair[0][0], pair[1][0]))
        count = self._y._cells
        classes = [each % 2 * (count - 1) for each in range(len(bits.inputs))]
        if pair is not None:
            classes = [int(y) for y in checks.codes("pair", [y for _, y in pair], count)]
        names = [f"{name}, class {label}" for name, label in zip(bits.names, classes, strict=False)]
        rows = np.stack([self._y._release.row(each) for each in classes])[:, None, :]
        label = Block(rows, lambda _, value: f"class {value} is reported")
        inputs = [(np.reshape(x, -1), y) for x, y in zip(bits.inputs, classes, strict=True)]
        return Experiment(inputs, names, [*bits.blocks, label], bits.pairs, bits.options)

    def randomize(  # type: ignore[override]
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        rng: RandomSource = None,
        output: Output = "codes",
        out: NDArray[Any] | None = None,
        threads: int | None = None,
        first_chunk: int = 0,
        **unknown: Any,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Randomize features and labels.

        Parameters
        ----------
        x : array_like of float32 or float64, shape (n, features) or (features,)
            Features of the records, as in `FRR.randomize`.
        y : array_like, shape (n,) or ()
            Labels: integers in [0, categories), or labels where `categories` are labels.
        rng : None, int, SeedSequence or Generator
            None draws fresh 256-bit keys from the operating system, one for the features and one for the
            labels. The others give reproducible reports, for tests and experiments only.
        threads : int, optional
            Number of threads; the result does not depend on it.
        output : {"codes", "bits", "values", "packed"}
            Form of the features; labels are always codes.
        out : ndarray, optional
            Array for the features.
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
        ValueError
            For NaN, a value that is not allowed (the message gives its index, never the value), a wrong
            shape, an `out` that does not fit, or "values" where reports are uninformative. Nothing is
            returned in that case. Values are checked while they are randomized: if one is refused, `out` is
            filled with zeros. If the arguments do not fit each other, `out` is unchanged.
        TypeError
            For a wrong dtype or kind of argument.
            Also where `x` and `y` differ in length. `out` is zeros where a feature or a label is refused.
        """
        if unknown:
            refuse_unknown("randomize", unknown, RANDOMIZE)
        values = checks.numbers("x", x)
        call = called(rng, output, out, threads, first_chunk, self.outputs, 2)
        checks.integer("first_chunk", call.first_chunk, 0, ((1 << 63) - 1) // self.features)
        try:
            label = self._label(y)
        except ValueError:
            if out is not None:
                # The core knows whether it fits: a release of zeros asks, which depends on no record.
                self._x._release.randomize(np.atleast_1d(np.zeros_like(values)), self._of_x(call)).fill(0)
            raise
        self._check_pair(values, label)
        return self._perturb_pair(values, label, call)

    def randomize_keyed(  # type: ignore[override]
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        key: bytes,
        ids: Ids,
        context: bytes = b"",
        column: int = 0,
        output: str | None = None,
        threads: int | None = None,
        duplicates: bool = False,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Randomize features and labels with keyed randomness; see `Mechanism.randomize_keyed`.

        Features and label of a record together are the value.
        """
        randomness = keyed_randomness(key, ids, context, column, duplicates)
        values, label = checks.numbers("x", x), self._label(y)
        self._check_pair(values, label)
        fitting(randomness, values if label.ndim else label)
        return self._perturb_pair(values, label, self._keyed(randomness, [values, label], output, threads))

    @property
    def _streams(self) -> int:
        return 2

    def _program(self, numbers: Type) -> ClientProgram:
        return ClientProgram(
            None, self._report_parts, parts=(self._x._program(numbers), self._y._program(numbers))
        )

    def _label(self, y: ArrayLike) -> NDArray[Any]:
        """Return labels as checked codes."""
        return checks.codes("y", self._y._codes_of("y", y), self._y._cells)

    def _check_pair(self, values: NDArray[Any], label: NDArray[Any]) -> None:
        """Refuse features and labels that do not fit each other."""
        shape, many = values.shape, label.shape
        if shape[:-1] != many and not (self.features == 1 and shape == many):
            raise ValueError(f"y: shape must be {shape[:-1]}, one label for each record of x, got {many}")

    def _of_x(self, call: Call) -> Call:
        """Return the call of the features' release."""
        beyond = call.first_chunk * self.features
        return Call([call.keys[0]], call.output, call.out, call.threads, beyond)

    def _perturb_pair(
        self, values: NDArray[Any], label: NDArray[Any], call: Call
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Release features and labels that fit each other."""
        given = self._of_x(call)
        labels = self._y._release.randomize(np.atleast_1d(label), call.codes([call.keys[1]]))
        codes = self._x._release.randomize(np.atleast_1d(values), given)
        return codes, labels.reshape(label.shape)

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

    def _reach(self, total: bool = False) -> tuple[Reach]:
        """Return that of the features: `FRR.influence`."""
        return self._x._reach(total)

    def mean_variance(self) -> float:
        """Return the mean variance of the unbiased letter of a feature: `FRR.mean_variance`."""
        return self._x.mean_variance()

    def probabilities(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return `FRR.probabilities` of the bits and `LabelRR.probabilities` of the label."""
        return self._x.probabilities(), self._y.probabilities()


class PairAccumulator(Accumulator):
    """Accumulators of the features and of the label of a record, updated together.

    Parameters
    ----------
    mechanism : Mechanism
        The composite mechanism.
    features : MeanAccumulator
        Accumulator of the first part of its reports.
    labels : CountAccumulator
        Accumulator of the second part.
    """

    kind = "pair"

    def __init__(self, mechanism: Accumulated, features: MeanAccumulator, labels: CountAccumulator) -> None:
        super().__init__(mechanism)
        self.features = features
        self.labels = labels

    def update(
        self,
        features: ArrayLike,
        labels: ArrayLike,
        *,
        output: str = "codes",
        records: int | None = None,
        threads: int | None = None,
    ) -> None:
        """Add a batch of reported features and labels, of equal length; `output` is that of the features."""
        before, n = self.features.kept(), self.features.n
        self.features.update(features, output=output, records=records, threads=threads)
        try:
            if self.features.n - n != np.size(labels):
                raise ValueError("labels: must be as many as there are records of features")
            self.labels.update(labels, threads=threads)
        except (TypeError, ValueError):
            self.features.restore(before)
            raise
        self.n = self.labels.n

    def merge(self, other: PairAccumulator) -> None:
        """Add the contents of another accumulator of the same mechanism.

        Raises
        ------
        ValueError, TypeError
            For an accumulator of another mechanism or kind.
        """
        self._same(other)
        self.features.merge(other.features)
        self.labels.merge(other.labels)
        self.n = self.labels.n

    def estimate(self, *, project: bool = False) -> tuple[Estimate, Estimate]:
        """Estimate the means of the features and the frequencies of the labels.

        Raises
        ------
        ValueError
            If nothing has been accumulated.
        """
        return self.features.estimate(), self.labels.estimate(project=project)

    def _state(self) -> dict[str, Any]:
        return {"features": self.features._state(), "labels": self.labels._state()}

    def _restore(self, state: dict[str, Any]) -> None:
        features, labels = state.get("features"), state.get("labels")
        if (
            not isinstance(features, dict)
            or not isinstance(labels, dict)
            or features.get("n") != labels.get("n")
        ):
            raise ValueError("text: the contents are damaged")
        self.features._restore(features)
        self.labels._restore(labels)
        self.n = self.labels.n
