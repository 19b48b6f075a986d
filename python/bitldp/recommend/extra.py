"""Anybody's mechanisms among the rows: instances, what makes one for an epsilon, and bare tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix
from bitldp.mechanism.base import Mechanism
from bitldp.ordered.ranges import typical_ends
from bitldp.points.candidates import checked_candidates
from bitldp.recommend.measure import Measured, least_letters, measured, table_spread
from bitldp.recommend.question import Question

__all__ = ["Extra", "added"]

Extra = Mechanism | Matrix | Callable[..., Mechanism | Matrix]

_TABLES = ("frequency", "top", "range", "label", "point")  # whose measure a table alone tells
_MOST = 1 << 22  # entries of a table


def added(extra: Sequence[Extra]) -> list[tuple[str, Callable[[Question], Any]]]:
    """Return what somebody brings as candidates, named by its class.

    Raises
    ------
    TypeError
        For anything else.
    """
    if isinstance(extra, (str, bytes)) or not np.iterable(extra):
        raise TypeError("extra: must be a sequence of mechanisms, or of functions of epsilon= for one")
    result: list[tuple[str, Callable[[Question], Any]]] = []
    for position, each in enumerate(extra):
        if not isinstance(each, (Mechanism, Matrix)) and not callable(each):
            raise TypeError(
                f"extra[{position}]: must be a mechanism, a Matrix, or a function that makes one of "
                f"epsilon=, not {type(each).__name__}"
            )
        one = isinstance(each, (Mechanism, Matrix))
        name = type(each).__name__ if one else getattr(each, "__name__", type(each).__name__)
        result.append((f"extra[{position}], {name}", _maker(each)))
    return result


def _maker(each: Any) -> Callable[[Question], Any]:
    def make(question: Question) -> Any:
        try:
            made = each if isinstance(each, (Mechanism, Matrix)) else each(epsilon=question.epsilon)
        except TypeError as error:
            raise ValueError(f"is not made from epsilon= alone; give a mechanism ({error})") from None
        if not isinstance(made, (Mechanism, Matrix)):
            raise ValueError(f"makes no mechanism and no Matrix, but a {type(made).__name__}")
        exact = made.epsilon if isinstance(made, Matrix) else made.guarantee.record
        if isinstance(made, Mechanism) and made.guarantee.delta:
            raise ValueError("has a delta, and the comparison is of pure epsilon")
        if exact > question.epsilon * (1.0 + 1e-12):
            raise ValueError(f"has the exact epsilon {exact:.4g}, above {question.epsilon:.4g}")
        return made

    return make


def measured_extra(task: str, mechanism: Any, question: Question) -> Measured:
    """Return mean and worst of the task's measure of somebody's mechanism.

    By its own variance where it says one; else by its table of probabilities, decoded with the least
    variance that is unbiased.

    Raises
    ------
    ValueError
        Where it is of other records, or neither is known.
    """
    _check_fit(task, mechanism, question)
    if isinstance(mechanism, Matrix):
        return _of_table(task, mechanism.probabilities(), question)
    try:
        return measured(task, mechanism, question.norm, question.users)
    except (ValueError, TypeError, AttributeError, NotImplementedError) as error:
        law = _table(mechanism)
        if law is None or task not in _TABLES:
            raise ValueError(f"{type(mechanism).__name__} has no measure of this task: {error}") from None
        return _of_table(task, law, question)


def _check_fit(task: str, mechanism: Any, question: Question) -> None:
    """Refuse a mechanism whose own sizes show that it is for other records."""
    if isinstance(mechanism, Matrix):
        if task not in _TABLES or question.features > 1:
            raise ValueError(f"a table is compared for one value of task {' or '.join(map(repr, _TABLES))}")
        return
    if mechanism.columns != question.features + (len(question.sizes) if task == "record" else 0) and (
        task in ("mean", "vector", "frequency", "point")
    ):
        raise ValueError(f"is for records of {mechanism.columns}, not of {question.features}")
    size = question.size if task in ("range", "top") else question.sizes[0] if question.sizes else 0
    count = getattr(mechanism, "categories", size)
    count = count if isinstance(count, int) else len(count)
    if size and len(question.sizes) <= 1 and count != size:
        raise ValueError(f"is for {count:,} categories, not for {size:,}")


def _table(mechanism: Any) -> NDArray[np.float64] | None:
    """Return the law of a mechanism, one row an input, where it says one."""
    try:
        law = np.asarray(mechanism.probabilities(), np.float64)
    except (AttributeError, ValueError, TypeError):
        return None
    return law if law.ndim == 2 and law.size <= _MOST else None


def _of_table(task: str, law: NDArray[np.float64], question: Question) -> Measured:
    inputs = law.shape[0]
    if task == "label":
        if law.shape != (question.sizes[0],) * 2:
            raise ValueError(f"a table of {question.sizes[0]} rows and columns is needed, not {law.shape}")
        wrong = 1.0 - np.diagonal(law)
        return float(wrong.mean()), float(wrong.max())
    if task == "point":
        return _of_points(law, question)
    size = question.size if task in ("range", "top") else question.sizes[0]
    if inputs != size:
        raise ValueError(f"a table of {size:,} rows is needed, one a category, not of {inputs:,}")
    if task == "range":
        spread = table_spread(law, *typical_ends(size))
        return float(spread.mean()), float(spread.max())
    letters = least_letters(law)
    spread = law @ np.square(letters) - np.eye(size)
    return float(spread.mean()), float(spread.max())


def _of_points(law: NDArray[np.float64], question: Question) -> Measured:
    points = checked_candidates(question.candidates, None, None)[2]
    points = np.asarray(points, np.float64).reshape(len(points), -1)
    if law.shape != (len(points),) * 2:
        raise ValueError(f"a table of {len(points)} rows and columns is needed, not {law.shape}")
    if question.metric != "euclidean":
        raise ValueError("tables are compared by the euclidean loss alone")
    losses = np.sqrt(np.square(points[:, None] - points).sum(axis=2))
    errors = np.sum(law * losses, axis=1)
    return float(errors.mean()), float(errors.max())
