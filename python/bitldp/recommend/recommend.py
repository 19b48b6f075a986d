"""Comparison of all mechanisms that fit a task, at the same exact epsilon, by variance and bits.

Every number is computed from the integers of a mechanism that was built, not from a rule of thumb. `REGISTRY`
lists the candidates.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bitldp._core import Matrix
from bitldp.base import checks
from bitldp.base.errors import MissingExtraError
from bitldp.categorical.loloha import LOLOHA
from bitldp.categorical.rappor import RAPPOR
from bitldp.design import DesignError
from bitldp.privacy import PrivacyClaimWarning, composed, share
from bitldp.recommend.answer import InSum, Recommendation, Row, ranked
from bitldp.recommend.bounds import bound
from bitldp.recommend.candidates import NOTES, REGISTRY, LeftOutError, Maker
from bitldp.recommend.extra import Extra, added, measured_extra
from bitldp.recommend.measure import MEASURES, Measured, closed_form, influence, measured
from bitldp.recommend.question import Criterion, Norm, Question, Task, asked
from bitldp.sums import Histogram, Number, SecureSum, SumKind, Vector

__all__ = ["Recommendation", "Row", "asked_again", "recommend"]


_MOST_CLIENTS = 1 << 24  # of a secure sum
_MOST_SUM = 1 << 30  # steps of a secure sum in all
_MOST_BITS = 1 << 15  # of a report, where nobody says how many: 4 kB


def recommend(
    task: Task,
    *,
    epsilon: float,
    features: int | None = None,
    categories: int | Sequence[int] | None = None,
    candidates: Any = None,
    interval: tuple[float, float] | None = None,
    norm: Norm | None = None,
    bits: int | None = None,
    metric: Any = None,
    criterion: Criterion = "mean",
    thorough: bool = False,
    size: int | None = None,
    users: int | None = None,
    liars: float | None = None,
    collections: int | None = None,
    extra: Sequence[Extra] = (),
) -> Recommendation:
    """Compare the mechanisms for a task at the same exact epsilon of a record, best first.

    Of those within 2 % of the least variance, the one with the shortest report is recommended.

    Parameters
    ----------
    task : {"mean", "vector", "frequency", "record", "point", "label", "distribution", "range", "top"}
        "mean": the mean of numbers, `features` of a record, in `interval`. "vector": the mean of vectors of
        `features` coordinates in the unit ball of `norm`. "frequency": how often each of `categories` occurs,
        in each of `features` of a record. "record": the same for attributes of different `categories`, with
        `features` numbers beside them. "point": one of the `candidates` for each of `features` of a record,
        reported with little loss. "label": one of `categories` classes, reported truly as often as possible.
        "distribution": how numbers in `interval` are distributed, their median and quantiles. "range": the
        share of any range of `size` ordered values. "top": the most frequent of `size` words, more than
        anyone could list.
    epsilon : float
        Privacy budget of a record, above zero.
    features : int, optional
        Numbers of a record, for "mean" and "record"; coordinates, for "vector"; categories of a record, for
        "frequency"; values of a record, for "point". None: one, or none for "record". `epsilon` is for all of
        them together.
    categories : int or sequence of int
        For "frequency", "record" and "label": 2 or more. A sequence has those of each attribute.
    candidates : int or array_like
        For "point": as `BRR` takes them.
    interval : (float, float), optional
        For "mean", "record" and "distribution": where the numbers lie. None: (-1, 1).
    norm : {"l1", "l2", "linf"}
        For "vector": the ball that vectors lie in, of radius 1.
    bits : int, optional
        The most bits of a record's report. None: 32,768, which are 4 kB. What takes more is listed last, and
        named in the first line where it would be better.
    metric : str, callable or array, optional
        For "point": the loss, as `BRR` takes it. None: "euclidean".
    criterion : {"mean", "worst", "variance"}
        Whether the average over uniform inputs counts, or the worst case; "variance": the average alone,
        however many bits its least takes.
    thorough : bool
        Whether that is compared, too, which takes longer than a second or two. For "mean": MVU in 5 bits,
        which is designed first; for "point": the optimum of more than 150 candidates; for "range": any
        branching of more than 65,536 values; for "top": what a server searches for minutes. Without it, only
        what is designed or kept already is compared, and the first line names the rest.
    size : int, optional
        For "range": ordered values 0 to size - 1, 2 to 1,000,000. For "top": words that there could be, 2 to
        2**64; of an alphabet of a letters and length l about a**l.
    users : int, optional
        For "distribution", and with `liars`: records that are estimated from. None: 100,000. The square
        wave's bias, and what liars move, count the more, the more there are. For "vector", and for "mean" and
        "frequency" of one number or category a record: clients of a secure sum, whose error is shown beside
        (`in_sum`).
    liars : float, optional
        For "mean", "frequency", "record", "range" and "top": the share of the records, 0 to 1, whose reports
        say what moves an estimate furthest. Variances count with n times the square of that move (`influence`
        of the mechanism), n being `users`: together n times the mean squared error. None: everybody is
        honest.
    collections : int, optional
        How often the same records are asked this, within `epsilon` for all of it. None: once. Reports that
        are kept (`Recommendation.memoized`) are compared with fresh ones at a share of the budget each, and
        for "frequency" with `RAPPOR` and `LOLOHA`; a kept report costs `epsilon` for every value that a
        record takes, one of `LOLOHA` for every hashed value, of which there are few.
    extra : sequence
        Mechanisms of yours to compare with: instances of `Mechanism`, a subclass of your own among them; a
        function that makes one of ``epsilon=``; or a `bitldp.channels.Matrix`, one row a category or
        candidate, which is decoded with the least unbiased variance.

    Returns
    -------
    Recommendation
        Printable as a table; its `mechanism` is the recommended one. Its first line (`answer`) says what is
        best, by how much, and what was left out that would be better; the second (`proof`) how far that is at
        most above all mechanisms that there could be, where a `bound` is known. What needs libraries that are
        not installed, or does not fit the setting, is listed last, with the reason.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, one that the task needs and that is missing, or one that has no
        effect on the task.

    Notes
    -----
    All mechanisms are pure: what has a delta is not compared. Vectors of the l1 or l2 ball are measured at
    one of length 1 with equal coordinates, and for the worst case at some shorter and lopsided ones, too.
    Distributions are compared by the expected Wasserstein-1 distance (the mean of abs(estimated - true
    distribution function)) at three public shapes (`bitldp.recommend.measure.SHAPES`), the worst of which is
    `worst`: by the closed form where an estimate has no bias but its bins', over drawn counts for
    `SquareWave`. Ranges have evenly spread ends, and all values are as frequent.

    Examples
    --------
    >>> import bitldp
    >>> advice = bitldp.recommend("frequency", epsilon=2.0, categories=65_536)
    >>> type(advice.mechanism).__name__, advice.mechanism.report_bits
    ('BlockDesign', 17)
    """
    question = asked(
        task,
        epsilon,
        features=features,
        categories=categories,
        candidates=candidates,
        interval=interval,
        norm=norm,
        metric=metric,
        criterion=criterion,
        thorough=thorough,
        size=size,
        users=users,
        liars=liars,
    )
    most = None if bits is None else checks.count("bits", bits, 1)
    times = 1 if collections is None else checks.count("collections", collections, 1)
    advice = _compared(task, question, most, extra)
    if times == 1:
        return replace(advice, in_sum=_in_sum(task, question, advice.rows[0], users, liars))
    fresh = _compared(task, replace(question, epsilon=share(question.epsilon, times)), most, extra)
    return asked_again(advice, fresh, question, times, most)


def _in_sum(task: Task, question: Question, first: Row, users: Any, liars: Any) -> InSum | None:
    """Return what a secure sum would give, where the clients were told, and it is for one value a record."""
    n = question.users
    if (
        users is None
        or liars is not None
        or task not in ("mean", "vector", "frequency")
        or not 1 < n <= _MOST_CLIENTS
        or first.mechanism is None
    ):
        return None
    try:
        secure = SecureSum(_summed(task, question), epsilon=question.epsilon, clients=n)
    except ValueError:
        return None
    kind, dither, unit = secure.kind, 0.0, 1.0
    if isinstance(kind, Number):
        low, high = kind.interval
        dither, unit = 0.25, (high - low) / kind.steps
    elif isinstance(kind, Vector):
        dither, unit = kind.dither, kind.step * math.sqrt(kind.features)
    error = math.sqrt(secure.stderr() ** 2 + n * dither) * unit / n
    central = secure.guarantee.central(method="certificate")
    return InSum(n, central.epsilon, central.delta, error, math.sqrt(first.mean / n))


def _summed(task: Task, question: Question) -> SumKind:
    """Return the kind of secure sum that answers a task; all balls lie in one of the l2 norm."""
    if task == "frequency":
        return Histogram(question.sizes[0])
    if task == "vector":
        longest = math.sqrt(question.features) if question.norm == "linf" else 1.0
        return Vector(question.features, longest)
    return Number(question.interval, min(1023, _MOST_SUM // question.users))


def _compared(
    task: Task, question: Question, most: int | None, extra: Sequence[Extra] = ()
) -> Recommendation:
    """Return the comparison for one collection."""
    result: list[Row] = []
    left: list[Row] = []
    own = added(extra)
    for name, make in (*REGISTRY[task], *own):
        if name.endswith((", sample", ", record", ", split")) and _alone(task, question.features, name):
            continue
        measure = measured_extra if (name, make) in own else _measured
        row = _candidate(task, question, most, name, make, measure)
        (left if row.mechanism is None else result).append(row)
    known = closed_form(task, question.norm, question.features, question.epsilon)
    rows = (*(_noted(row) for row in ranked(result, question.criterion, known)), *left)
    least = bound(task, question, [row.mechanism for row in result])
    return Recommendation(task, _measure(task, question), question.criterion, rows, least)


_Measure = Callable[[Task, Any, Question], Measured]


def _measured(task: Task, mechanism: Any, question: Question) -> Measured:
    return measured(task, mechanism, question.norm, question.users)


def _candidate(
    task: Task, question: Question, most: int | None, name: str, make: Maker, measure: _Measure
) -> Row:
    """Return the row of a candidate; without a mechanism where it does not fit or is left out."""
    nothing = Row(None, name, math.nan, 0, math.nan, math.nan, "", fits=False)
    why = ""
    mechanism: Any
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyClaimWarning)
            mechanism = make(question)
    except LeftOutError as error:
        why, mechanism = str(error), error.mechanism
    except (MissingExtraError, DesignError) as error:
        why, mechanism = str(error), None
    except ValueError as error:
        return replace(nothing, why=str(error))
    if mechanism is None:
        return replace(nothing, why=why, fits=True)
    try:
        mean, worst = measure(task, mechanism, question)
        moved = influence(task, mechanism, question.liars)
    except ValueError as error:
        return replace(nothing, why=str(error))
    row = _row(mechanism, name, mean, worst, moved, question.users)
    limit = _MOST_BITS if most is None else most
    if row.bits > limit:
        more = f"; bits={row.bits} allows it" if most is None else ""
        why = f"takes {row.bits:,} bits, more than {limit:,}{more}"
    return replace(nothing, why=why, fits=True, would=row) if why else row


def _noted(row: Row) -> Row:
    """Return a row with how its mechanism is used, where the class does not say it."""
    return replace(row, why=f"{row.why}; {NOTES[row.name]}") if row.name in NOTES else row


def _row(mechanism: Any, name: str, mean: float, worst: float, moved: float, users: int) -> Row:
    """Return the row of a mechanism; what liars move counts as an error that n records do not average out."""
    table = isinstance(mechanism, Matrix)
    exact = mechanism.epsilon if table else mechanism.guarantee.record
    size = (mechanism.outputs - 1).bit_length() if table else mechanism.report_bits
    attacked = users * moved**2
    return Row(mechanism, name, exact, size, mean + attacked, worst + attacked, "", influence=moved)


def _measure(task: Task, question: Question) -> str:
    """Return what mean and worst of a row are."""
    if not question.liars:
        return MEASURES[task]
    what = (
        "a range" if task == "range" else "a word that is given beforehand" if task == "top" else "an entry"
    )
    return (
        f"{MEASURES[task]}; and n = {question.users:,} times the square of how far "
        f"{100.0 * question.liars:g} % of liars move {what}"
    )


def _alone(task: str, features: int, name: str) -> bool:
    """Return whether a record has one number or category, so that there is nothing to sample or to share."""
    if features > 1 or task == "record":
        return False
    return task != "mean" or not name.endswith(", split")


_IS_KEPT = "kept: a new value shows, and costs as much again"
_IS_FRESH = "covers new values"


def asked_again(
    once: Recommendation, fresh: Recommendation, question: Question, collections: int, most: int | None
) -> Recommendation:
    """Return the comparison for records that are asked so many times, within one budget.

    Parameters
    ----------
    once : Recommendation
        For one collection at the whole budget: what may be kept (`Memoized`).
    fresh : Recommendation
        For one collection at its share of the budget.
    question : Question
        What was asked.
    collections : int
        How often, 2 or more.
    most : int or None
        The most bits of a report.
    """
    kept = [
        replace(row, name=f"{row.name}, memoized", kept=True)
        for row in once.rows
        if row.mechanism is not None
    ]
    rows = kept + _fresh_rows(fresh.rows[0], collections) + _two_step_rows(once.task, question, most)
    notes = {row.name: _IS_KEPT if row.kept else _IS_FRESH for row in rows} | {
        row.name: _of_two_steps(row.mechanism) for row in rows if isinstance(row.mechanism, (RAPPOR, LOLOHA))
    }
    result = [replace(row, why=f"{row.why}; {notes[row.name]}") for row in ranked(rows, once.criterion)]
    left = [row for row in once.rows if row.mechanism is None]
    measure = f"{once.measure}, at each of {collections:,} collections"
    return replace(once, measure=measure, rows=(*result, *left))


def _fresh_rows(best: Row, collections: int) -> list[Row]:
    """Return the best mechanism of one collection's share, at what all collections cost together."""
    if best.mechanism is None:
        return []
    whole = composed(best.epsilon, collections)
    return [replace(best, name=f"{best.name}, fresh each time", epsilon=whole)]


def _two_step_rows(task: str, question: Question, most: int | None) -> list[Row]:
    """Return the mechanisms of two steps, for one category."""
    if task != "frequency" or len(question.sizes) != 1:
        return []
    rows = []
    for kind in (RAPPOR, LOLOHA):
        try:
            mechanism = kind(question.sizes[0], epsilon=question.epsilon)
            if mechanism.report_bits > (_MOST_BITS if most is None else most):
                continue
            mean, worst = measured(task, mechanism)
            moved = influence(task, mechanism, question.liars)
        except ValueError:  # too many categories
            continue
        rows.append(_row(mechanism, f"{kind.__name__}, two steps", mean, worst, moved, question.users))
    return rows


def _of_two_steps(mechanism: RAPPOR | LOLOHA) -> str:
    """Return what one report costs, and what all do of values that go on changing."""
    once = f"one report alone has epsilon {mechanism.first_guarantee.record:.4g}"
    if isinstance(mechanism, RAPPOR):
        return once
    ever = mechanism.longitudinal_guarantee.record
    return f"{once}; values that change often cost {ever:.4g} for ever, but for when they change"
