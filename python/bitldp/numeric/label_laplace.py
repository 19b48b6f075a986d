"""Label-Laplace: Laplace noise on every entry of the one-hot vector of a label."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Shift
from bitldp.base import checks
from bitldp.base.arrays import zeros_if_refused
from bitldp.client.codec import OneHot
from bitldp.client.program import ClientProgram
from bitldp.client.record import ClientRecord, Type
from bitldp.estimate.estimates import Estimate, project_simplex
from bitldp.estimate.intervals import LetterLaw, Table
from bitldp.estimate.means import MeanAccumulator
from bitldp.estimate.statistics import of_letters
from bitldp.letters.reach import Reach
from bitldp.letters.spread import Mixed
from bitldp.mechanism.base import Part, Takes
from bitldp.mechanism.frequencies import Labelled, LabelledMeans
from bitldp.mechanism.law import Block, Experiment, Pair, Symbols
from bitldp.mechanism.parameters import Budget, Categories, FieldId
from bitldp.numeric.laplace import noisy
from bitldp.privacy import Guarantee, composed, share
from bitldp.release.base import Call, Release

__all__ = ["LabelLaplace"]


@dataclass(frozen=True, eq=False, repr=False)
class LabelLaplace(Labelled):
    """Label-Laplace: adds Laplace noise to each entry of a label's one-hot vector.

    The noise has the scale 2/eps.

    Parameters
    ----------
    categories : int, sequence or Categories
        Classes C, at least 2: how many, or their labels, as in `GRR`.
    epsilon : float
        Exact epsilon of a label, finite, zero or more.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records hold any two labels. Their one-hot vectors differ in two entries, by 1 each: the L1
    sensitivity is 2, so every entry is released by `Laplace` on [0, 1] at epsilon/2, and the exact epsilon of
    the whole vector is twice that of an entry. The other entries are noisy, too, but reveal nothing.

    The report is the noisy vector, not its largest entry: the baseline of BitRand adds "Laplace noise across
    C classes", and a loss takes the vector as a soft label. `classify` gives the class of the largest entry,
    which is post-processing and costs nothing. If you only need one class, Label-RR (`bitldp.LabelRR`) is the
    better mechanism. Sources: BitRand, section 7 and its baseline (8); Phan et al., "Scalable differential
    privacy with certified robustness in adversarial learning", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp.numeric import LabelLaplace
    >>> mechanism = LabelLaplace(4, epsilon=2.0)
    >>> mechanism.report_bits, round(mechanism.guarantee.record, 6)
    (28, 2.0)
    >>> reports = mechanism.randomize(np.arange(20_000) % 4, rng=7)
    >>> reports.shape, bool(abs(mechanism.estimate_frequencies(reports).value - 0.25).max() < 0.06)
    ((20000, 4), True)
    """

    categories: Annotated[Categories, FieldId("classes")]
    _: KW_ONLY
    epsilon: Budget

    _takes: ClassVar[Takes | None] = "categories"
    _sized_by: ClassVar[str | None] = "categories"
    _usual_size: ClassVar[int] = 10
    outputs: ClassVar[tuple[str, ...]] = ("codes", "values", "packed")
    _release: Release = field(init=False, repr=False, compare=False)
    _no_mean: ClassVar[str] = "its reports are labels; use estimate_frequencies"

    def _build(self) -> None:
        self._name(self.categories)
        release = noisy(share(self.epsilon, 2), (0.0, 1.0))
        both = composed(release.epsilon, 2)
        guarantee = Guarantee.judge(self.epsilon, (release.epsilon, both, both), given="one-hot input")
        self._set(_release=release, _guarantee=guarantee)

    @property
    def channel(self) -> Shift:
        """The channel of one entry: its inputs are 0 and the last one."""
        return self._release.channel

    @property
    def alphabet(self) -> int:
        """How many codes an entry's report can be."""
        return self._release.alphabet

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: one entry a class."""
        return ((self._size, self._release.bits),)

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channel of an entry, twice: two labels differ in two entries."""
        laws = self._release.laws
        return (Symbols(laws, 2),) if laws else ()

    def extremes(self, pair: Pair | None = None) -> Experiment:
        """Return two labels and the law of their entries; see `Mechanism.extremes`."""
        labels = [0, self._size - 1]
        if pair is not None:
            labels = [int(each) for each in checks.codes("pair", list(pair), self._size)]
        entries = np.array(labels)[:, None] == np.arange(self._size)
        table = self.probabilities()[entries.astype(np.intp)]
        block = Block(table, lambda position, value: f"the entry of class {position} is reported as {value}")
        names = [f"class {label}" for label in labels]
        return Experiment(labels, names, [block], [(0, 1)], {"output": "codes"})

    @property
    def letters(self) -> NDArray[np.float64]:
        """Decoded value of each code of an entry, shape (alphabet,); read-only. Its mean is the entry.

        Raises
        ------
        ValueError
            If the reports are uninformative (epsilon 0).
        """
        if self._release.letters is None:
            raise self._uninformative("labels")
        return self._release.letters

    def _program(self, numbers: Type) -> ClientProgram:
        record = ClientRecord.of_codes(self._size, labels=self.labels)
        return ClientProgram(
            record, self._report_parts, self.channel, OneHot(self._size, self.channel.inputs - 1)
        )

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        if np.ndim(x) > 1:
            raise ValueError(f"x: shape must be (n,) or (), got {np.shape(x)}")
        with zeros_if_refused(call.out):
            labels = checks.codes("x", x, self._size)
        if call.output == "values":
            self._check_informative()
        entries = (labels[..., None] == np.arange(self._size)).astype(np.uint16)
        entries *= np.uint16(self.channel.inputs - 1)
        return replace(self._release, codec=None).randomize(entries, call)

    def _codes(self, reports: ArrayLike) -> NDArray[Any]:
        codes = checks.codes("reports", reports, self.alphabet)
        if codes.ndim not in (1, 2) or codes.shape[-1] != self._size:
            allowed = f"(n, {self._size}) or ({self._size},)"
            raise ValueError(f"reports: shape must be {allowed}, got {codes.shape}")
        return codes

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return the noisy vectors: numbers whose mean over the random bits is the one-hot vector.

        Raises
        ------
        ValueError, TypeError
            If the reports are uninformative (epsilon 0), or for a code out of range.
        """
        return self.letters[self._codes(reports)]

    def _indicators(self, reports: Any) -> NDArray[np.float64]:
        """Return what each report says of every class; see `GRR`."""
        return self.decode(reports)

    def classify(self, reports: ArrayLike) -> NDArray[Any]:
        """Return the class of the largest entry of each report, the first of equal ones; its label, if any.

        Raises
        ------
        ValueError, TypeError
            For a code out of range, or another shape than `randomize` returns.
        """
        classes: NDArray[np.intp] = self._codes(reports).argmax(axis=-1)  # letters rise with the codes
        return self._by_label(classes)

    def estimate_frequencies(self, reports: ArrayLike, *, project: bool = False) -> Estimate:
        """Estimate the frequency of every class; see `GRR.estimate_frequencies`.

        The standard error needs n >= 2 and is NaN for one record.
        """
        result = self.accumulator()._filled(reports).estimate()
        return replace(result, value=project_simplex(result.value), projected=True) if project else result

    def accumulator(self) -> MeanAccumulator:
        """Return an empty accumulator of the frequencies; see `Mechanism.accumulator`."""
        self._check_informative()
        kind = MeanAccumulator if self.labels is None else LabelledMeans
        counted = of_letters(self._size, self.letters)
        return kind(self, self._size, lambda x: self.decode(x).reshape(-1, self._size), counted)

    @cached_property
    def _letter_law(self) -> LetterLaw | None:
        """Law of the letter of an entry, which is 0 or 1, for intervals."""
        release = self._release
        if release.spread is None:
            return None
        moments = release.spread.moments[[0, -1]]
        mixed = Mixed(np.array([0.0, 1.0]), moments, moments)
        return LetterLaw(mixed, float(np.ptp(self.letters)), table=self._letter_table)

    def _letter_table(self) -> Table:
        """Return the law of an entry's letters."""
        return Table(np.array([0.0, 1.0]), self.probabilities(), self.letters)

    def _check_informative(self) -> None:
        _ = self.letters

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of one entry: P[v, y] = P(code y | entry v) for v = 0, 1; shape (2, alphabet)."""
        return self._release.probabilities()[[0, -1]]

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of one report's letter for every class, all the same; see `GRR.variance`."""
        entry = self.worst_variance()
        truth = checks.codes("x", x, self._size)
        return np.full((*truth.shape, self._size), entry)

    def _reach(self, total: bool = False) -> tuple[Reach]:
        """Return the least and the largest entry that a report may have, each by itself."""
        low, high = float(self.letters.min()), float(self.letters.max())
        return (replace(Reach.of_numbers(low, high, (0.0, 1.0), self._size), total=1),)

    def mean_variance(self) -> float:
        """Return the variance of an entry's letter, the same for all entries and labels.

        See `Mechanism.mean_variance`.
        """
        self._check_informative()
        spread = self._release.spread
        return 0.0 if spread is None else float(spread.at(1.0))

    def worst_variance(self) -> float:
        """Return the same as `mean_variance`: no entry is worse than another."""
        return self.mean_variance()
