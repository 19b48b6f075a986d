"""Comparison of all mechanisms that fit a task, at the same exact epsilon, by variance.

Every number is computed from the integers of a mechanism that was built, not from a rule of thumb. What is
compared is one line each of `REGISTRY`.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Literal

from bitldp.base import checks
from bitldp.base.extras import MissingExtraError
from bitldp.design import DesignError
from bitldp.mechanism.base import Mechanism
from bitldp.numeric import Duchi
from bitldp.points import metrics, places
from bitldp.privacy import PrivacyClaimWarning
from bitldp.recommend.candidates import REGISTRY, Question

__all__ = ["Recommendation", "Row", "recommend"]

Task = Literal["mean", "frequency", "point", "label"]


@dataclass(frozen=True)
class Row:
    """One mechanism in the comparison.

    Attributes
    ----------
    mechanism : Mechanism or None
        The mechanism; None where it could not be built.
    name : str
        Its class, with what sets it apart from others of the class.
    epsilon : float
        Exact epsilon of a record.
    bits : int
        Bits of a record's report.
    mean, worst : float
        What `Recommendation.measure` says, on average and at worst; NaN where there is no mechanism.
    why : str
        Why it was chosen, or why not.
    """

    mechanism: Mechanism | None
    name: str
    epsilon: float
    bits: int
    mean: float
    worst: float
    why: str


@dataclass(frozen=True)
class Recommendation:
    """Mechanisms for a task, best first.

    Attributes
    ----------
    task : str
        The task.
    measure : str
        What `mean` and `worst` of a row are.
    criterion : {"mean", "worst"}
        What the rows are sorted by.
    rows : tuple of Row
        The comparison, best first; at the end what does not fit, with the reason.
    """

    task: str
    measure: str
    criterion: str
    rows: tuple[Row, ...]

    @property
    def mechanism(self) -> Mechanism:
        """The best mechanism, ready to use."""
        best = self.rows[0].mechanism
        if best is None:
            raise ValueError(f"task: no mechanism fits; {self.rows[0].name}: {self.rows[0].why}")
        return best

    def __str__(self) -> str:
        """Return the comparison as a table of plain text."""
        head = ("mechanism", "epsilon", "bits", "mean", "worst", "why")
        lines = [head] + [
            (
                row.name,
                *(("-",) * 4 if row.mechanism is None else _shown(row)),
                row.why,
            )
            for row in self.rows
        ]
        widths = [max(len(line[column]) for line in lines) for column in range(5)]
        text = [f"{self.task}: {self.measure}; best {self.criterion} first"]
        for name, *numbers, why in lines:
            cells = [name.ljust(widths[0])]
            cells += [each.rjust(width) for each, width in zip(numbers, widths[1:], strict=True)]
            text.append("  ".join([*cells, why]).rstrip())
        return "\n".join(text)


def _shown(row: Row) -> tuple[str, str, str, str]:
    return f"{row.epsilon:.4g}", str(row.bits), f"{row.mean:.4g}", f"{row.worst:.4g}"


_MEASURES = {
    "mean": "variance of a record's unbiased letter, per coordinate",
    "frequency": "variance of a record's unbiased indicator, per category of a feature",
    "point": "expected loss of a reported value",
    "label": "chance that a reported label is false",
}


# The arguments that a task has a use for; every other one is refused where it is given.
_USED = {
    "mean": ("features", "interval", "thorough"),
    "frequency": ("features", "categories"),
    "point": ("features", "candidates", "metric"),
    "label": ("categories",),
}


def _check_use(task: str, **given: Any) -> None:
    """Refuse arguments that a task has no use for, and miss those that it cannot do without."""
    for name, value in given.items():
        if value is not None and name not in _USED[task]:
            tasks = " or ".join(repr(other) for other, names in _USED.items() if name in names)
            raise ValueError(f"{name}: has no effect on task {task!r}, but on {tasks}; leave it out")
    for name in ("categories", "candidates"):
        if name in _USED[task] and given[name] is None:
            raise ValueError(f"{name}: are needed for task {task!r}")


def _measured(task: str, mechanism: Any) -> tuple[float, float]:
    """Return mean and worst of the task's measure, from the integers of the mechanism."""
    if task == "mean":
        return mechanism.mean_variance(), mechanism.worst_variance()
    if task == "frequency":
        variances = mechanism.variance([0])[0]  # all categories are alike
        return float(variances.mean()), float(variances.max())
    if task == "label":
        wrong = 1.0 - float(mechanism.probabilities()[0, 0])
        return wrong, wrong
    return mechanism.expected_error(), mechanism.worst_error()


def recommend(
    task: Task,
    epsilon: float,
    *,
    features: int | None = None,
    categories: int | None = None,
    candidates: Any = None,
    interval: tuple[float, float] | None = None,
    metric: Any = None,
    criterion: Literal["mean", "worst"] = "mean",
    thorough: bool = False,
) -> Recommendation:
    """Compare the mechanisms that fit a task at the same exact epsilon of a record; the best is first.

    Parameters
    ----------
    task : {"mean", "frequency", "point", "label"}
        "mean": the mean of numbers, `features` of a record, in `interval`. "frequency": how often each of
        `categories` occurs, in each of `features` of a record. "point": one of the `candidates` for each of
        `features` of a record, reported with little loss. "label": one of `categories` classes, reported
        truly as often as possible.
    epsilon : float
        Privacy budget of a record, above zero.
    features : int, optional
        Numbers of a record, for "mean"; categories of a record, for "frequency"; values of a record, for
        "point". None: one. `epsilon` is for all of them together.
    categories : int
        For "frequency" and "label": 2 or more.
    candidates : int or array_like
        For "point": as `BRR` takes them.
    interval : (float, float), optional
        For "mean": where the numbers lie. None: (-1, 1).
    metric : str, callable or array, optional
        For "point": the loss, as `BRR` takes it. None: "euclidean".
    criterion : {"mean", "worst"}
        Whether the least average over uniform inputs counts, or the least worst case.
    thorough : bool
        For "mean": whether MVU in 5 bits is designed, too, which takes seconds.

    Returns
    -------
    Recommendation
        Printable as a table; its `mechanism` is the best one. What needs libraries that are not installed, or
        does not fit the setting, is listed last, with the reason.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, one that the task needs and that is missing, or one that has no
        effect on the task.

    Examples
    --------
    >>> import bitldp
    >>> advice = bitldp.recommend("frequency", 1.0, categories=64)
    >>> type(advice.mechanism).__name__
    'OUE'
    """
    checks.choice("task", task, tuple(REGISTRY))
    checks.choice("criterion", criterion, ("mean", "worst"))
    thorough = checks.flag("thorough", thorough)
    budget = checks.positive("epsilon", epsilon)
    _check_use(
        task,
        features=features,
        categories=categories,
        candidates=candidates,
        interval=interval,
        metric=metric,
        thorough=thorough or None,
    )
    setting = Question(
        epsilon=budget,
        features=1 if features is None else checks.count("features", features, 1),
        categories=2 if categories is None else checks.count("categories", categories, 2),
        candidates=candidates,
        interval=(-1.0, 1.0) if interval is None else interval,
        metric="euclidean" if metric is None else metric,
        criterion=criterion,
        thorough=thorough,
    )
    if task == "point":
        places.place(candidates, None, None)
        if isinstance(setting.metric, str):
            metrics.named("metric", setting.metric, metrics.METRICS)
    if task == "mean":  # refuses what no mechanism takes
        Duchi(budget, features=setting.features, interval=setting.interval)
    found: list[Row] = []
    left: list[Row] = []
    for name, make in REGISTRY[task]:
        if name.endswith((", sample", ", record")) and setting.features == 1:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyClaimWarning)
                mechanism = make(setting)
            mean, worst = _measured(task, mechanism)
        except (ValueError, MissingExtraError, DesignError) as error:
            left.append(Row(None, name, math.nan, 0, math.nan, math.nan, str(error)))
            continue
        exact = mechanism.guarantee.record
        found.append(Row(mechanism, name, exact, mechanism.report_bits, mean, worst, ""))
    found.sort(key=lambda row: (_cost(row, criterion), row.bits))
    rows = [_explained(row, found[0], criterion) for row in found]
    return Recommendation(task, _MEASURES[task], criterion, tuple(rows + left))


def _cost(row: Row, criterion: str) -> float:
    cost = row.worst if criterion == "worst" else row.mean
    return round(cost, 12 - math.floor(math.log10(cost))) if cost > 0.0 else 0.0


def _explained(row: Row, best: Row, criterion: str) -> Row:
    """Return a row with the reason for its place."""
    if row is best:
        why = f"the least {criterion} at this exact epsilon"
    else:
        ratio = _cost(row, criterion) / _cost(best, criterion) if _cost(best, criterion) > 0.0 else math.inf
        why = (
            f"{ratio:.4g} times the best" if ratio >= 2.0 else f"{100.0 * (ratio - 1.0):.3g} % above the best"
        )
        why = why if ratio > 1.0 + 1e-6 else "as good as the best"
    return Row(row.mechanism, row.name, row.epsilon, row.bits, row.mean, row.worst, why)
