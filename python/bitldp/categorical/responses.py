"""Categorical mechanisms: GRR, label-RR and Warner's randomized response.

Each is a window of width one: the true category with probability p, every other one with the same q.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Window
from bitldp.base import checks
from bitldp.client.program import ClientProgram
from bitldp.client.record import ClientRecord, Type
from bitldp.estimate.intervals import LetterLaw
from bitldp.letters.spread import Mixed
from bitldp.mechanism.base import Part, Takes
from bitldp.mechanism.frequencies import Labelled, TwoChances
from bitldp.mechanism.law import Experiment, Pair, Symbols, codes_of, of_rows
from bitldp.mechanism.parameters import Budget, Categories, Features, FieldId, Unit, optional
from bitldp.privacy import Guarantee, composed, rounding, share
from bitldp.release.base import Call, Direct
from bitldp.release.window import WindowRelease, window

__all__ = ["GRR", "LabelRR", "WarnerRR"]

_UNIT_IN_LAST_PLACE = 2.0**-53


class CategoricalWindow(Labelled, TwoChances):
    """Base of the mechanisms that report the true category with p, any other with q."""

    _takes: ClassVar[Takes | None] = "categories"
    _sized_by: ClassVar[str | None] = "categories"
    _usual_size: ClassVar[int] = 10

    # Derived of the parameters while the mechanism is built.
    _release: WindowRelease

    @property
    def channel(self) -> Window:
        """The channel: its `high` is the law; uninformative at epsilon 0."""
        return self._release.channel

    @property
    def _cells(self) -> int:
        return self._release.alphabet

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: as few bits a feature as tell its reports apart."""
        return ((self.columns, self._release.bits),)

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channels behind a report: one a feature."""
        laws = self._release.laws
        return (Symbols(laws, self.columns),) if laws else ()

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return categories to compare and the law of their reports; see `Mechanism.extremes`."""
        chosen = codes_of(pair, self._cells, None, self.columns)
        if chosen is None:  # a record with different categories: its rows differ by feature
            return None
        return of_rows(self._release.row, self._cells, self._cells, chosen, self.columns)

    @property
    def _bound(self) -> bool:
        return type(self)._perturb is not CategoricalWindow._perturb

    def _shortcut(self) -> Direct | None:
        plain = type(self)._perturb is CategoricalWindow._perturb and self.labels is None
        return self._release.direct(self.columns) if plain else None

    def _program(self, numbers: Type) -> ClientProgram:
        record = ClientRecord.of_codes(self._cells, self.columns, self.labels)
        return ClientProgram(record, self._report_parts, self.channel)

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        checks.records("x", x, self.columns)
        return self._release.randomize(x, call)

    def decode(self, reports: ArrayLike) -> NDArray[Any]:
        """Return the reported categories, checked to be in range: their labels, where there are any."""
        return self._by_label(checks.codes("reports", reports, self._cells))

    def _indicators(self, reports: Any) -> NDArray[np.float64]:
        p, q = self._check_informative()
        own = checks.codes("reports", reports, self._cells)[..., None] == np.arange(self._cells)
        return (own - q) / (p - q)

    def _check_informative(self) -> tuple[float, float]:
        """Return P(report v | v) and P(report v | another), from the integers of the channel."""
        if self._release.epsilon == 0.0:
            raise self._uninformative("categories")
        return self._release.chances()

    def letters_on(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return the decoded value of each report where the categories are points, shape (categories,).

        Raises
        ------
        ValueError
            If no unbiased decode exists.
        """
        self._check_informative()
        return self._release.letters_on(np.asarray(points, dtype=np.float64))

    def _law_on(self, points: NDArray[np.float64]) -> LetterLaw:
        """Return the law of the letter of a report where the categories are points, for intervals."""
        letters, (p, q) = self.letters_on(points), self._check_informative()
        squares = np.square(letters - (points.min() + points.max()) / 2.0)
        return LetterLaw(
            Mixed.of_points(points, q * squares.sum() + (p - q) * squares), float(np.ptp(letters))
        )

    def bias_on(self, points: ArrayLike) -> float:
        """Return how far the mean of a reported point may be from the true one."""
        return self._release.bias_on(np.asarray(points, dtype=np.float64))

    def _facts(self, users: int | None = None) -> dict[str, Any]:
        """Return the two probabilities and the errors of a frequency; see `Mechanism._facts`."""
        truth, other = self._release.chances()
        law = {"the_true_category": truth, "each_other_category": other}
        return {"probabilities": law, **super()._facts(users)}

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of one category: P[x, y] = P(report y | x), shape (categories, categories)."""
        return self._release.probabilities()


@dataclass(frozen=True, eq=False, repr=False)
class GRR(CategoricalWindow):
    """k-ary randomized response (GRR): reports the true category, or any other with equal probability.

    The true one has the probability p = e^eps/(e^eps + C - 1).

    Parameters
    ----------
    categories : int, sequence or Categories
        Categories C, 2 or more: how many, or their labels, public and in order (see `bitldp.Categories`).
        With labels, `randomize` takes labels, `decode` returns them, and estimates carry them.
    epsilon : float
        Privacy budget of one `unit`, finite, zero or more; the exact epsilon is at most that (see Notes).
    features : int
        Categorical features of a record, each released by itself.
    unit : {"record", "feature"}
        What `epsilon` covers; a record's is split evenly over its features.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way. No probability is nearer to 1 than 1 - 2**-53, so the exact
    epsilon of a feature is at most 36.74 + ln(C - 1), however large the budget. Source: Kairouz, Oh and
    Viswanath, "Extremal mechanisms for local differential privacy", JMLR 17 (2016).

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.GRR(4, epsilon=2.0)
    >>> reports = mechanism.randomize(np.full(10_000, 3), rng=1)
    >>> bool(abs(mechanism.estimate_frequencies(reports).value[3] - 1.0) < 0.05)
    True
    >>> cities = bitldp.GRR(["Paris", "Rome", "Oslo"], epsilon=6.0)
    >>> cities.decode(cities.randomize(["Rome", "Rome", "Paris"], rng=1)).tolist()
    ['Rome', 'Rome', 'Paris']
    """

    categories: Categories
    _: KW_ONLY
    epsilon: Budget
    features: Features = 1
    unit: Unit = "record"

    _on_points: ClassVar[bool] = True

    def _build(self) -> None:
        epsilon, features = self.epsilon, self.features
        count = self._name(self.categories)
        release = window(count, 1, share(epsilon, features) if self.unit == "record" else epsilon)
        exact = release.epsilon
        self._set(
            _release=release,
            _guarantee=Guarantee.judge(epsilon, (exact, exact, composed(exact, features)), unit=self.unit),
        )

    @property
    def columns(self) -> int:
        """Categories of a record."""
        return self.features


@dataclass(frozen=True, eq=False, repr=False)
class LabelRR(CategoricalWindow):
    """label-RR of BitRand: k-ary randomized response for class labels.

    The true class has the probability p = e^beta/(1 + e^beta); the others share the rest evenly.

    Parameters
    ----------
    categories : int, sequence or Categories
        Classes C, 2 or more: how many, or their labels, as in `GRR`.
    epsilon : float
        Privacy budget, finite, zero or more.
    beta : float, optional
        The paper's parameter. None: beta = epsilon - ln(C - 1), where the mechanism equals `GRR` and its
        exact epsilon is at most `epsilon`. Any other beta has the exact epsilon abs(beta + ln(C - 1)), up to
        the maximum (see Notes). Theorem 3 of the paper claims `epsilon` for every beta <= epsilon - ln(C -
        1). This does not hold for those far below, and a `PrivacyClaimWarning` is issued.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring labels differ in any way. The true class has a probability of at least 2**-53 and at most
    1 - 2**-53, so the exact epsilon is at most 36.74 + ln(C - 1). Source: "Bit-aware randomized response for
    local differential privacy in federated learning" (submitted to ICLR 2022), Eq. 3 and Theorem 3.
    """

    categories: Annotated[Categories, FieldId("classes")]
    _: KW_ONLY
    epsilon: Budget
    beta: Annotated[float | None, optional(checks.real)] = None

    _sized_by: ClassVar[str | None] = "categories"

    def _build(self) -> None:
        epsilon, beta, count = self.epsilon, self.beta, self._name(self.categories)
        release = window(count, 1, epsilon) if beta is None else _beta(count, epsilon, beta)
        exact = release.epsilon
        self._set(_release=release, _guarantee=Guarantee.judge(epsilon, (exact, exact, exact)))


def _beta(classes: int, epsilon: float, beta: float) -> WindowRelease:
    loss = beta + math.log(classes - 1)
    tolerance = rounding(epsilon)  # beta at the bound of Theorem 3 may have been rounded by the caller
    if -tolerance <= loss <= epsilon + tolerance:
        return window(classes, 1, min(max(loss, 0.0), epsilon))
    chance = 1.0 / (1.0 + math.exp(-beta)) if beta > -700.0 else 0.0
    # no finite beta makes an answer certain or impossible; either would cost an infinite epsilon
    chance = min(max(chance, _UNIT_IN_LAST_PLACE), 1.0 - _UNIT_IN_LAST_PLACE)
    channel = Window(classes, 1, chance)
    return WindowRelease(channel, channel.epsilon, classes)


@dataclass(frozen=True, eq=False, repr=False)
class WarnerRR(CategoricalWindow):
    """Warner's randomized response: answers yes or no truthfully, or reports the opposite.

    The truth has the probability e^eps/(1 + e^eps).

    Parameters
    ----------
    epsilon : float
        Privacy budget of the answer, finite, zero or more; the exact epsilon is at most that (see Notes).

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring answers differ. No probability is nearer to 1 than 1 - 2**-53, so the exact epsilon is at
    most 36.74, however large the budget. Source: Warner, "Randomized response: a survey technique for
    eliminating evasive answer bias", JASA 60 (1965).

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.WarnerRR(epsilon=1.0)
    >>> answers = mechanism.randomize(np.array([True, False, True]), rng=3)
    >>> answers.dtype, answers.shape
    (dtype('uint8'), (3,))
    """

    _: KW_ONLY
    epsilon: Budget

    _sized_by: ClassVar[str | None] = None
    _usual_size: ClassVar[int] = 2  # and no other

    def _hint(self) -> str:
        return (
            "answers are True and False, or 1 and 0; for two labels take "
            'bitldp.GRR(["no", "yes"], epsilon=...)'
        )

    def _build(self) -> None:
        release = window(2, 1, self.epsilon)
        exact = release.epsilon
        self._set(_release=release, _guarantee=Guarantee.judge(self.epsilon, (exact, exact, exact)))
