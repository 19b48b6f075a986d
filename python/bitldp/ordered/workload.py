"""The design for a workload: all answers of linear questions at the least total variance there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from math import prod, sqrt
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Matrix
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.client.program import ClientProgram
from bitldp.client.record import ClientRecord, Type
from bitldp.design.certificate import Certificate, certified
from bitldp.design.questions import MOST_ANSWERS, NAMES, gram_of, questions
from bitldp.design.workload import MOST_INPUTS
from bitldp.design.workload_cache import at_hand, load_or_solve
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.estimates import LIARS, Estimate, project_simplex
from bitldp.estimate.intervals import LetterLaw, Limits
from bitldp.estimate.means import mean_of
from bitldp.letters.reach import Reach
from bitldp.letters.spread import Mixed
from bitldp.mechanism.base import Part, Takes
from bitldp.mechanism.described import spreads
from bitldp.mechanism.designed import Designed, DesignTable
from bitldp.mechanism.frequencies import Frequencies, Labelled, labelled
from bitldp.mechanism.law import Experiment, Pair, Symbols, codes_of, of_rows
from bitldp.mechanism.parameters import Budget, CategoryNames, Option, categories
from bitldp.privacy import Guarantee
from bitldp.release.base import Call, Direct, Release
from bitldp.release.table import table, uninformative

__all__ = ["WorkloadAccumulator", "WorkloadDesign"]

_LEAST, _LARGEST = 1e-3, 20.0  # budgets that the solver resolves in double precision
_BLOCK = 1 << 21  # letters that are held at once: 16 MB
_ESTIMABLE = 1e-9  # relative: by how much the mean of letters may miss an answer

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class WorkloadDesign(Designed, Labelled, Frequencies):
    """Workload design: answers a set of linear questions with least total variance, with a proof.

    Parameters
    ----------
    workload : str or array_like of float, shape (answers, categories)
        Questions about one of k categories: what each category counts for in each answer, finite; a
        question's answer is the mean of that over the records. By name, for categories in order: "ranges"
        (the share from x to y, for all x <= y, ordered by x, then y), "cdf" (the share at most x, for all but
        the last), "moments" (the means of x/(k - 1) and of its square), "histogram" or "identity" (the share
        of each), and "marginals" of a table with `attributes` (the shares of the values of each, then of
        each two together).
    categories : int, sequence or Categories
        k, 2 to 512: how many, or their labels, as in `GRR`.
    epsilon : float
        Privacy budget of a record, 0 or from 1e-3 to 20. The exact epsilon is lower by at most a relative
        1e-13.
    attributes : sequence of int, optional
        Number of values of each attribute of a table, for "marginals". Their product is k, and a record is
        the category ``numpy.ravel_multi_index(record, attributes)``.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.
    DesignError
        If the solver fails.

    Notes
    -----
    Neighbouring records hold any two categories. A report is the code of a set of categories. It is e^epsilon
    times as likely from members of the set as from other categories. The sets and their probabilities have
    the least total variance: the sum over the answers, for uniform inputs. This is a convex program. Up to 20
    categories it is solved to 1e-8 over all sets, and by a search for more. `certificate` says how near the
    result is to a bound for every unbiased mechanism, whatever its reports are; it is checked from the law
    itself. `estimate` also answers other questions, since estimates do not affect privacy. An accumulator's
    own estimate, and `influence`, are about the frequencies, if the design can estimate them.

    A design takes a fifth of a second for up to 12 categories, some seconds for up to 20, about a minute for
    64, and minutes above that. It is kept in the cache of designs. Another machine may find a different table
    with as little variance. Share one mechanism between client and server as a pickle, which holds the table;
    `fingerprint` identifies it.

    The sampler reads the table row that the input selects. With more than 32 reports this is not
    constant-time.

    Sources: Kairouz, Oh and Viswanath, JMLR 17 (2016), for sets; McKenna, Maity, Mazumdar and Miklau, VLDB
    2020, for the workload factorization mechanism, which descends to a local optimum of the same.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> ages = np.random.default_rng(1).binomial(7, 0.4, 50_000)  # in 8 groups
    >>> mechanism = bitldp.WorkloadDesign("ranges", categories=8, epsilon=1.0)
    >>> reports = mechanism.randomize(ages, rng=2)
    >>> answers = mechanism.estimate(reports)
    >>> answers.value.shape
    (36,)
    >>> middle = mechanism.estimate(reports, [[0, 0, 1, 1, 1, 0, 0, 0]])
    >>> bool(abs(middle.value[0] - np.mean((ages >= 2) & (ages <= 4))) < 4.0 * middle.stderr[0])
    True
    >>> str(mechanism.certificate).partition(" (")[0]
    'proven within 0.001 % of every unbiased epsilon-LDP mechanism'
    """

    workload: Annotated[
        Any, Option(read=str, form="|".join(NAMES), short="Questions that are asked about the categories.")
    ]
    _: KW_ONLY
    categories: Annotated[CategoryNames, categories(MOST_INPUTS)]
    epsilon: Budget
    attributes: Annotated[Sequence[int] | None, Option(hidden=True)] = None

    _takes: ClassVar[Takes | None] = "categories"
    _sized_by: ClassVar[str | None] = "categories"
    _usual_size: ClassVar[int] = 8
    _alike: ClassVar[bool] = False
    _no_mean: ClassVar[str] = "its reports are sets of categories; use estimate"

    # Derived of the parameters while the mechanism is built.
    _release: Release = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        size, epsilon = self._name(self.categories), self.epsilon
        workload, attributes = _checked(self.workload, self.attributes, size)
        self._set(workload=workload, attributes=attributes)
        if epsilon == 0.0:
            release = replace(uninformative(size, 2, (0.0, 1.0)), codec=None, points=None)
        elif not _LEAST <= epsilon <= _LARGEST:
            raise ValueError(f"epsilon: 0, or {_LEAST} to {_LARGEST}, as the solver resolves, got {epsilon}")
        else:
            made = self._table(lambda: DesignTable(load_or_solve(self._gram, epsilon), None))
            if made.letters is not None or made.channel.inputs != size or made.channel.epsilon > epsilon:
                raise ValueError("workload: the stored table belongs to other parameters")
            release = table(made.channel)
        exact = release.epsilon
        self._set(_release=release, _guarantee=Guarantee.judge(epsilon, (exact, exact, exact)))

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example: ranges of eight values."""
        return {
            "workload": "ranges",
            "epsilon": epsilon,
            "categories": cls._usual_size if size is None else size,
        }

    @classmethod
    def solved(cls, workload: Any, *, categories: int, epsilon: float, attributes: Any = None) -> bool:
        """Tell whether the design of these parameters is shipped or cached, so that no solver is called.

        Parameters
        ----------
        workload : str or array_like of float, shape (answers, categories)
            Questions about one of k categories: what each category counts for in each answer, finite; a
            question's answer is the mean of that over the records. By name, for categories in order: "ranges"
            (the share from x to y, for all x <= y, ordered by x, then y), "cdf" (the share at most x, for all
            but the last), "moments" (the means of x/(k - 1) and of its square), "histogram" or "identity"
            (the share of each), and "marginals" of a table with `attributes` (the shares of the values of
            each, then of each two together).
        categories : int
            k, 2 to 512.
        epsilon : float
            Privacy budget of a record, 0 or from 1e-3 to 20; the exact epsilon is at most that, and less by a
            relative 1e-13.
        attributes : sequence of int, optional
            How many values each attribute of a table has, for "marginals": their product is k, and category
            ``numpy.ravel_multi_index(record, attributes)`` is a record.

        Returns
        -------
        bool
        """
        size = checks.count("categories", categories, 2, MOST_INPUTS)
        given, sizes = _checked(workload, attributes, size)
        gram = gram_of(given, size, sizes or ()) if isinstance(given, str) else given.T @ given
        budget = checks.budget("epsilon", epsilon)
        return budget == 0.0 or at_hand(gram, budget)

    @cached_property
    def _gram(self) -> Floats:
        if isinstance(self.workload, str):
            return gram_of(self.workload, self._size, self.attributes or ())
        return np.asarray(self.workload.T @ self.workload)

    @cached_property
    def questions(self) -> Floats:
        """The matrix of the workload: what each category counts for in each answer; read-only."""
        if isinstance(self.workload, str):
            return readonly(questions(self.workload, self._size, self.attributes or ()))
        return np.asarray(self.workload)

    @property
    def channel(self) -> Matrix:
        """The channel: its `weights()` are the law."""
        channel: Matrix = self._release.channel
        return channel

    def probabilities(self) -> Floats:
        """Return the law: P[x, y] = P(report y | category x), shape (categories, reports)."""
        return self._release.probabilities()

    @property
    def _cells(self) -> int:
        return self._release.alphabet

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: one code."""
        return ((1, self._release.bits),)

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channel of a report; none at epsilon 0."""
        laws = self._release.laws
        return (Symbols(laws, 1),) if laws else ()

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return categories to compare and the law of their reports; see `Mechanism.extremes`."""
        chosen = codes_of(pair, self._size, None)
        return None if chosen is None else of_rows(self._release.row, self._size, self._cells, chosen)

    @property
    def _bound(self) -> bool:
        return False  # one draw of a category, in which it is

    def _shortcut(self) -> Direct | None:
        return self._release.direct(1) if self.labels is None else None

    def _program(self, numbers: Type) -> ClientProgram:
        record = ClientRecord.of_codes(self._size, labels=self.labels)
        return ClientProgram(record, self._report_parts, self._release.channel)

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        checks.records("x", x, 1)
        return self._release.randomize(x, call)

    @cached_property
    def _category_letters(self) -> Floats:
        """Letters of least variance of the categories' indicators by report, shape (reports, categories).

        Where not all frequencies can be estimated, their part that can be.
        """
        if self._release.epsilon == 0.0:
            raise self._uninformative("categories")
        law = self.probabilities()
        mass = law.mean(axis=0)
        evidence = law / np.where(mass > 0.0, mass, 1.0)
        information = evidence @ law.T
        return np.asarray(evidence.T @ np.linalg.pinv(information, rcond=1e-11, hermitian=True))

    def _blocks(self, rows: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Yield questions and their letters, shape (reports, questions), some at a time; refuse others."""
        indicators, law = self._category_letters, self.probabilities()
        step = max(1, _BLOCK // max(len(indicators), self._size))
        for start in range(0, len(rows), step):
            block = np.asarray(rows[start : start + step], np.float64)
            letters = indicators @ block.T
            letters = letters + indicators @ (block.T - law @ letters)  # one step of refinement
            if np.abs(law @ letters - block.T).max() > _ESTIMABLE * max(1.0, float(np.abs(block).max())):
                reason = "no unbiased decode exists of a question that the design does not answer"
                raise ValueError(f"{type(self).__name__}: {reason}")
            yield block, letters

    def unbias(self, reports: ArrayLike) -> Floats:
        """Return the unbiased answers of each report: their mean over the random bits is the record's answer.

        Parameters
        ----------
        reports : array_like of int
            As `randomize` gives them.

        Returns
        -------
        ndarray of float64
            Shape of `reports`, and one more axis of the answers.

        Raises
        ------
        ValueError
            If the reports are uninformative (epsilon 0), or for a report out of range.
        """
        codes = checks.codes("reports", reports, self._cells)
        return np.concatenate([letters[codes] for _, letters in self._blocks(self.questions)], axis=-1)

    def decode(self, reports: ArrayLike) -> Floats:
        """Return the unbiased answers of each report; see `unbias`."""
        return self.unbias(reports)

    def estimate(self, reports: ArrayLike, questions: ArrayLike | None = None) -> Estimate:
        """Estimate all answers of the workload, or of other questions, without bias.

        Parameters
        ----------
        reports : array_like of int
            Reports of n >= 1 records, of the shapes that `randomize` returns.
        questions : array_like of float, shape (answers, categories), optional
            Weight of each category in each answer. None: the questions of the workload. Other questions have
            the variance that this design gives them.

        Returns
        -------
        Estimate
            Shape (answers,).

        Raises
        ------
        ValueError, TypeError
            If no unbiased decode exists (at epsilon 0, or for a question that the design tells nothing
            about), for no reports, or for a report out of range.
        """
        return self.accumulator()._filled(reports).estimate_answers(questions)

    def estimate_frequencies(self, reports: ArrayLike, *, project: bool = False) -> Estimate:
        """Estimate the frequency of every category, where the design tells it; see `GRR`.

        Designs for histograms, ranges and distribution functions can estimate them. Designs for few questions
        cannot.
        """
        return self.accumulator()._filled(reports).estimate(project=project)

    def accumulator(self) -> WorkloadAccumulator:
        """Return an empty accumulator of the counts; see `Mechanism.accumulator`."""
        self._category_letters  # noqa: B018  # refuses epsilon 0
        return WorkloadAccumulator(self, (self._cells,), self._count, (1.0, 0.0))

    def _indicators(self, reports: Any) -> Floats:
        letters = [each for _, each in self._blocks(np.eye(self._size))]
        return np.concatenate(letters, axis=1)[checks.codes("reports", reports, self._cells)]

    def _indicator_variances(self) -> Floats:
        """Return the variance of the indicator of each category (column) for each input (row)."""
        return np.concatenate([*self._variances(np.eye(self._size))], axis=1)

    def variance(self, x: ArrayLike) -> Floats:
        """Return the variance of one report's letter of every answer, by the random bits, in closed form.

        Parameters
        ----------
        x : array_like of int
            True categories, any shape.

        Returns
        -------
        ndarray of float64
            Shape of `x` and one more axis of the answers.

        Raises
        ------
        ValueError
            If no unbiased decode exists (epsilon 0), or for a category out of range.
        """
        codes = checks.codes("x", x, self._size)
        return np.concatenate([each[codes] for each in self._variances(self.questions)], axis=-1)

    def _variances(self, questions: Floats) -> Iterator[Floats]:
        """Yield the variance of each answer's letter (column) for each category (row), in blocks."""
        law = self.probabilities()
        for block, letters in self._blocks(questions):
            yield np.maximum(law @ np.square(letters) - np.square(block.T), 0.0)

    @cached_property
    def _spread(self) -> tuple[float, float]:
        """Mean and largest variance over answers and uniform inputs."""
        sums = [(float(each.sum()), float(each.max())) for each in self._variances(self.questions)]
        total, most = zip(*sums, strict=True)
        return sum(total) / (self._size * len(self.questions)), max(most)

    def mean_variance(self) -> float:
        """Return the mean `variance` over answers and uniform inputs; see `Mechanism.mean_variance`."""
        return self._spread[0]

    def worst_variance(self) -> float:
        """Return the largest `variance` of any answer, for any input; see `Mechanism.worst_variance`."""
        return self._spread[1]

    @property
    def total_variance(self) -> float:
        """Sum over the answers of one report's variance, inputs uniform: what the design minimises."""
        return self.mean_variance() * len(self.questions)

    @cached_property
    def certificate(self) -> Certificate | None:
        """Proof of how near `total_variance` is to a bound for unbiased mechanisms; None beyond factor 2.

        Up to 20 categories the bound compares all sets, which takes up to a second. For more it is the bound
        of eigenvalues (`bitldp.design.pricing`), which is tight as long as e^(epsilon/2) is well below the
        number of categories.
        """
        if self._release.epsilon == 0.0:
            return None
        shown = float(np.trace(self._gram)) / self._size
        return certified(self._gram, self.channel, self.epsilon, self.total_variance + shown)

    @property
    def bound(self) -> float | None:
        """Lower bound on the total variance at this epsilon, for uniform inputs; None if unknown."""
        return None if self.certificate is None else self.certificate.bound

    def _reach(self, total: bool = False) -> tuple[Reach]:
        """Return the indicators of every report; the letters of the answers, where it has none."""
        try:
            ((_, indicators),) = self._blocks(np.eye(self._size))
            return (Reach(indicators, total=1),)
        except ValueError:
            self._category_letters  # noqa: B018  # refuses epsilon 0
        letters = np.concatenate([letters for _, letters in self._blocks(self.questions)], axis=1)
        return (Reach(letters, ends=(float(self.questions.min()), float(self.questions.max()))),)

    def _facts(self, users: int | None = None) -> dict[str, Any]:
        """Return the errors of an answer, and the certificate; see `Mechanism._facts`."""
        try:
            deviations = {
                "of_the_worst_answer": sqrt(self.worst_variance()),
                "on_average": sqrt(self.mean_variance()),
            }
        except ValueError as error:
            return {"errors": {"unbiased": str(error)}}
        proof = {} if self.certificate is None else {"certificate": str(self.certificate)}
        return {
            "errors": {**spreads("an_answer", deviations, users), "answers": len(self.questions), **proof}
        }


class WorkloadAccumulator(CountAccumulator):
    """Counts of a design's reports, and the answers that they give."""

    mechanism: WorkloadDesign

    def estimate_answers(self, questions: ArrayLike | None = None) -> Estimate:
        """Estimate the answers of the workload, or of other questions; see `WorkloadDesign.estimate`."""
        mechanism = self.mechanism
        return self._answered(
            mechanism.questions if questions is None else _matrix("questions", questions, mechanism._size)
        )

    def estimate(self, *, project: bool = False) -> Estimate:
        """Estimate the frequencies of the categories, where the design can tell them.

        Parameters
        ----------
        project : bool
            Whether to project the frequencies to the simplex (which makes them biased).

        Raises
        ------
        ValueError
            If nothing has been accumulated, or for a design that cannot tell them.
        """
        made = labelled(self.mechanism, self._answered(np.eye(self.mechanism._size)))
        return replace(made, value=project_simplex(made.value), projected=True) if project else made

    def _answered(self, rows: Floats) -> Estimate:
        n = self.n
        if n < 1:
            raise ValueError("reports: at least one is needed for an estimate")
        law, shares = self.mechanism.probabilities(), self.counts / n
        parts, reach, influence = [], 0.0, 0.0
        for block, letters in self.mechanism._blocks(rows):
            low = block.min(axis=1)
            span = block.max(axis=1) - low
            span = np.where(span > 0.0, span, 1.0)
            scaled = (letters - low) / span  # each answer in units of its own range
            value, middle = shares @ scaled, scaled.mean(axis=0)
            spread = np.maximum(shares @ np.square(scaled - middle) - np.square(value - middle), 0.0)
            sides = _sides((block.T - low) / span, law @ np.square(scaled - 0.5))
            parts.append(np.stack([value, spread, low, span, *sides]))
            reach = max(reach, float(np.ptp(scaled, axis=0).max()))
            moved = np.maximum(scaled.max(axis=0), 1.0 - scaled.min(axis=0)) * span
            influence = max(influence, LIARS * float(moved.max()))
        value, spread, low, span, *ends = np.concatenate(parts, axis=1)
        variance = spread * (n / (n - 1)) if n > 1 else np.full_like(value, np.nan)
        mixed = Mixed(np.array([0.0, 1.0]), np.stack(ends[:2]), np.stack(ends[2:]))
        made = mean_of(value, variance, n, LetterLaw(mixed, reach, jump=reach / 2.0))
        limits = None if made.limits is None else _Scaled(made.limits, low, span)
        return Estimate(low + span * made.value, span * made.stderr, n, influence=influence, limits=limits)


def _sides(points: Floats, moments: Floats) -> list[Floats]:
    """Return bounds of second moments over records of a known mean answer, at 0 and at 1: least, then most.

    Parameters
    ----------
    points : ndarray of float64, shape (categories, answers)
        What each category counts for, from 0 to 1.
    moments : ndarray of float64, same shape
        E[(letter - 1/2)^2] of each.

    Notes
    -----
    Lines below and above all points: through the extremes at 0 and at 1, moved past what counts for something
    between.
    """
    sides: list[Floats] = []
    for sign in (-1.0, 1.0):
        high = sign * moments
        none, every = (np.where(points == end, high, -np.inf).max(axis=0) for end in (0.0, 1.0))
        every = np.where(np.isfinite(every), every, none)  # of an answer that all records share
        lifted = np.maximum((high - (none * (1.0 - points) + every * points)).max(axis=0), 0.0)
        sides += [sign * (none + lifted), sign * (every + lifted)]
    return sides


@dataclass(frozen=True, eq=False)
class _Scaled(Limits):
    """Limits of answers that were estimated in units of their own range.

    Attributes
    ----------
    inner : Limits
        In those units.
    low, span : ndarray of float64
        The least that a record counts for in each answer, and how far the largest is from it.
    """

    inner: Limits
    low: Floats
    span: Floats

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.inner.method

    def limits(self, value: Floats, stderr: Floats, tail: float) -> tuple[Floats, Floats]:
        """Return lower and upper limits, each wrong with probability `tail`."""
        low, high = self.inner.limits((value - self.low) / self.span, stderr / self.span, tail)
        return self.low + self.span * low, self.low + self.span * high

    def at(self, index: Any) -> Limits:
        """Return those of some entries."""
        return _Scaled(self.inner.at(index), np.asarray(self.low[index]), np.asarray(self.span[index]))


def _matrix(name: str, given: Any, size: int | None) -> Floats:
    """Return questions as a matrix of finite doubles, a row an answer."""
    rows = np.asarray(given)
    if rows.dtype.kind not in "biuf":
        raise TypeError(f"{name}: must be numbers, not {rows.dtype}")
    rows = rows.astype(np.float64)
    if rows.ndim != 2 or not len(rows) or len(rows) > MOST_ANSWERS or size not in (None, rows.shape[1]):
        width = "categories" if size is None else size
        raise ValueError(
            f"{name}: shape must be (answers, {width}) with 1 to {MOST_ANSWERS} answers, got {rows.shape}"
        )
    if not np.isfinite(np.square(rows).sum()):
        raise ValueError(f"{name}: must be finite, and so must their squares")
    return rows


def _checked(workload: Any, attributes: Any, count: int) -> tuple[Any, tuple[int, ...] | None]:
    """Return a workload about so many categories and the attributes of its table, both checked."""
    if attributes is not None and not (isinstance(workload, str) and workload == "marginals"):
        raise ValueError('attributes: is for workload="marginals"')
    if not isinstance(workload, str):
        rows = _matrix("workload", workload, count)
        if not np.ptp(rows, axis=1).any():
            raise ValueError("workload: every question has the same answer for all categories")
        return readonly(rows), None
    checks.choice("workload", workload, NAMES)
    if workload != "marginals":
        return workload, None
    if attributes is None:
        raise ValueError("attributes: are needed, the number of values of each")
    sizes = tuple(checks.integer("attributes", each, 2, MOST_INPUTS) for each in attributes)
    if prod(sizes) != count:
        raise ValueError(f"attributes: their product must be the number of categories, {count}")
    return workload, sizes
