"""Question of a recommendation: a task, a record, a budget; every argument is checked, none is ignored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bitldp.base import checks
from bitldp.letters.reach import checked_part
from bitldp.numeric import Duchi
from bitldp.points.candidates import METRICS, checked_candidates, named_loss

__all__ = ["CRITERIA", "NORMS", "TASKS", "Criterion", "Norm", "Question", "Task", "asked"]

Task = Literal["mean", "vector", "frequency", "record", "point", "label", "distribution", "range", "top"]
Criterion = Literal["mean", "worst", "variance"]
Norm = Literal["l1", "l2", "linf"]

TASKS = ("mean", "vector", "frequency", "record", "point", "label", "distribution", "range", "top")
CRITERIA = ("mean", "worst", "variance")
NORMS = ("l1", "l2", "linf")

# The arguments that a task has a use for; every other one is refused where it is given.
_USED = {
    "mean": ("features", "interval", "thorough", "users"),
    "vector": ("features", "norm", "users"),
    "frequency": ("features", "categories", "users"),
    "record": ("features", "categories", "interval"),
    "point": ("features", "candidates", "metric", "thorough"),
    "label": ("categories",),
    "distribution": ("interval", "users"),
    "range": ("size", "thorough"),
    "top": ("size", "thorough"),
}
# Those that it cannot do without.
_NEEDED = {
    "vector": ("features", "norm"),
    "frequency": ("categories",),
    "record": ("categories",),
    "point": ("candidates",),
    "label": ("categories",),
    "range": ("size",),
    "top": ("size",),
}
_LIED_TO = ("mean", "frequency", "record", "range", "top")  # what liars move is known of each entry
_MOST_SIZE = {"range": 1_000_000, "top": 1 << 64}
_USERS = 100_000  # records behind an estimate, where it is not said


@dataclass(frozen=True)
class Question:
    """Setting of a comparison: a record, its budget, and what counts; checked, with the defaults filled in.

    Attributes
    ----------
    epsilon : float
        Of a record.
    features : int
        Numbers or categories of a record.
    numbers : int
        Numbers of a record that has categories, too.
    sizes : tuple of int
        Categories of each attribute; empty where there are none.
    candidates : int or array_like
        For "point".
    interval : (float, float)
        Where the numbers lie.
    norm : str
        Of the ball that vectors lie in.
    metric : str, callable or array
        For "point".
    criterion : str
        What counts.
    thorough : bool
        Whether what takes seconds is compared, too.
    size : int
        Ordered values, or words that there could be; 0 where there are none.
    users : int
        Records that an estimate is from, where it counts how many: of a distribution, with liars, and of a
        secure sum.
    liars : float
        Share of the records that lie; 0 where that is not asked.
    """

    epsilon: float
    features: int
    numbers: int
    sizes: tuple[int, ...]
    candidates: Any
    interval: tuple[float, float]
    norm: str
    metric: Any
    criterion: Criterion
    thorough: bool
    size: int
    users: int
    liars: float


def _check_use(task: str, given: dict[str, Any]) -> None:
    """Refuse arguments that a task has no use for, and miss those that it cannot do without."""
    used = {name: (*names, *(("liars",) if name in _LIED_TO else ())) for name, names in _USED.items()}
    if given["liars"] is not None and task in _LIED_TO:
        used[task] += ("users",)
    for name, value in given.items():
        if value is not None and name not in used[task]:
            tasks = " or ".join(repr(other) for other, names in used.items() if name in names)
            raise ValueError(f"{name}: has no effect on task {task!r}, only on {tasks}; leave it out")
    for name in _NEEDED.get(task, ()):
        if given[name] is None:
            verb = "is" if name in ("norm", "size") else "are"
            raise ValueError(f"{name}: {verb} needed for task {task!r}")


def _sizes(task: str, categories: Any, features: int) -> tuple[int, ...]:
    """Return the categories of each attribute."""
    if categories is None:
        return ()
    if isinstance(categories, str) or not np.iterable(categories):
        every = checks.count("categories", categories, 2)
        return (every,) * (features if task == "frequency" else 1)
    if task == "label":
        raise TypeError("categories: must be an int for task 'label', which is of one category")
    sizes = tuple(checks.count(f"categories[{i}]", each, 2) for i, each in enumerate(categories))
    if not sizes:
        raise ValueError("categories: must be of one attribute or more")
    if task == "frequency" and features not in (1, len(sizes)):
        raise ValueError(f"features: must be {len(sizes)}, one for each of `categories`, got {features}")
    return sizes


def asked(
    task: Any,
    epsilon: Any,
    *,
    features: Any,
    categories: Any,
    candidates: Any,
    interval: Any,
    norm: Any,
    metric: Any,
    criterion: Any,
    thorough: Any,
    size: Any,
    users: Any,
    liars: Any,
) -> Question:
    """Return the question that arguments of `recommend` ask, or raise."""
    checks.choice("task", task, TASKS)
    checks.choice("criterion", criterion, CRITERIA)
    thorough = checks.flag("thorough", thorough)
    budget = checks.positive("epsilon", epsilon)
    given = {
        "features": features,
        "categories": categories,
        "candidates": candidates,
        "interval": interval,
        "norm": norm,
        "metric": metric,
        "thorough": thorough or None,
        "size": size,
        "users": users,
        "liars": liars,
    }
    _check_use(task, given)
    least = 0 if task == "record" else 1
    count = least if features is None else checks.count("features", features, least)
    if norm is not None:
        checks.choice("norm", norm, NORMS)
    sizes = _sizes(task, categories, count)
    values = len(sizes) if task == "frequency" else max(1, count)
    if users is not None and liars is None and task in ("mean", "frequency") and values > 1:
        raise ValueError(
            "users: without liars it is for a secure sum, of one number, category or vector a record"
        )
    question = Question(
        epsilon=budget,
        features=values,
        numbers=count if task == "record" else 0,
        sizes=sizes,
        candidates=candidates,
        interval=(-1.0, 1.0) if interval is None else interval,
        norm="" if norm is None else norm,
        metric="euclidean" if metric is None else metric,
        criterion=criterion,
        thorough=thorough,
        size=0 if size is None else checks.integer("size", size, 2, _MOST_SIZE[task]),
        users=_USERS if users is None else checks.count("users", users, 1),
        liars=0.0 if liars is None else checked_part("liars", liars),
    )
    if task == "point":
        checked_candidates(candidates, None, None)
        if isinstance(question.metric, str):
            named_loss("metric", question.metric, METRICS)
    if interval is not None or task == "mean":  # refuses what no mechanism takes
        Duchi(epsilon=budget, features=question.features, interval=question.interval)
    return question
