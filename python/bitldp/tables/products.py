"""Laws of products of readings: of the cells of a table, and of a number where somebody is in a category."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from bitldp.base.errors import PlanError
from bitldp.estimate.intervals import LetterLaw
from bitldp.estimate.ratio import Ratio
from bitldp.letters.spread import Mixed
from bitldp.tables.joint import Read, Term
from bitldp.tables.reading import Reading

__all__ = [
    "cautions",
    "cell_law",
    "cells_of",
    "diagonal",
    "letters_of",
    "notes_of",
    "points_of",
    "quotient",
    "quotients",
    "together",
]


def cells_of(split: Sequence[Read]) -> list[Term]:
    """Return a term for each cell of a table of readings."""
    sizes = [range(len(each.reading.labels)) for each in split]
    return [tuple(enumerate(cell)) for cell in product(*sizes)]


def diagonal(blocks: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return one matrix with blocks on its diagonal."""
    result = np.zeros((sum(map(len, blocks)),) * 2)
    start = 0
    for each in blocks:
        result[start : start + len(each), start : start + len(each)] = each
        start += len(each)
    return result


def _products(columns: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the products of an entry of each array, the last one running fastest."""
    result = np.ones(1)
    for each in columns:
        result = np.multiply.outer(result, each).ravel()
    return result


def _ends(readings: Sequence[Reading]) -> NDArray[np.float64]:
    """Return the least and the largest product of the numbers of readings, shape (2, cells)."""
    corners = [_products([each.ends[i] for i, each in zip(sides, readings, strict=True)])
               for sides in product((0, 1), repeat=len(readings))]  # fmt: skip
    return np.stack([np.min(corners, axis=0), np.max(corners, axis=0)])


def _seconds(moments: Sequence[NDArray[np.float64]]) -> tuple[NDArray[np.float64], ...]:
    """Return second moments of products of entries: of records in all, and least and largest of others."""
    own = _products([each[0] for each in moments])
    least, most = np.full_like(own, np.inf), np.full_like(own, -np.inf)
    for sides in product((False, True), repeat=len(moments)):
        if all(sides):
            continue
        for rows, edge in ((1, least), (2, most)):
            value = _products(
                [each[0 if inside else rows] for inside, each in zip(sides, moments, strict=True)]
            )
            (np.minimum if rows == 1 else np.maximum)(edge, value, out=edge)
    return own, least, most


def cell_law(readings: Sequence[Reading], grouped: bool, times: int) -> LetterLaw:
    """Return the law of the cells of a table: a record is in one of them, or it is in others."""
    moments = [each.moments for each in readings if each.moments is not None]
    assert len(moments) == len(readings)  # of categories
    ends = _ends(readings)
    own, least, most = _seconds(moments)
    if grouped:  # whoever is in another group counts as 0
        least = np.zeros_like(least)
        ends = np.stack([np.minimum(ends[0], 0.0), np.maximum(ends[1], 0.0)])
    moved = [np.tile(each, times) for each in (least + 0.25, most + 0.25, own - 0.75)]
    reach = float((ends[1] - ends[0]).max())
    mixed = Mixed(np.array([0.0, 1.0]), np.stack([moved[0], moved[2]]), np.stack([moved[1], moved[2]]))
    return LetterLaw(mixed, reach, rate=min(each.rate for each in readings), jump=reach / 2.0)


def together(readings: Sequence[Reading]) -> Reading:
    """Return what is known of the products of entries of readings; what reads them are the readings."""
    if len(readings) == 1:
        return readings[0]
    ends = _ends(readings)
    moments = [each.moments for each in readings if each.moments is not None]
    floor = 0.0
    if len(moments) == len(readings):
        own, least, _ = _seconds(moments)
        floor = min(float(own.min()) - 1.0, float(least.min()))
    labels = tuple(product(*(each.labels for each in readings)))
    return Reading("", labels, readings[0].read, ends, (0.0, 1.0), floor)


def letters_of(
    upper: Reading, lower: Reading, weights: Sequence[Reading], everybody: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the letters of ratios, and their least variances; see `Ratio`."""
    size = len(upper.labels)
    moments = [each.moments for each in weights if each.moments is not None]
    least = _products([each[:2].min(axis=0) for each in moments])
    if everybody:
        ends = _ends([*weights, upper])
        ones = np.ones((4, ends.shape[1]))
        return np.concatenate([ends, ones]), np.stack(
            [upper.floor * np.repeat(least, size), 0.0 * ones[0], ones[0]]
        )
    weight = np.repeat(_ends(weights), size, axis=1)
    rows = weight.shape[1]
    own, under = np.tile(upper.ends, rows // size), np.repeat(lower.ends, rows, axis=1)
    floors = [np.full(rows, upper.floor), np.full(rows, lower.floor), np.repeat(least, size)]
    return np.concatenate([own, under, weight]), np.stack(floors)


def quotient(law: Ratio) -> NDArray[np.float64]:
    """Return a ratio of two means; NaN where the lower one is not above 0."""
    return law.top / np.where(law.bottom > 0.0, law.bottom, np.nan)


def quotients(upper: tuple[float, float], lower: tuple[float, float]) -> tuple[float, float]:
    """Return between which numbers a ratio lies."""
    with np.errstate(divide="ignore", invalid="ignore"):
        every = np.divide.outer(np.array(upper), np.array(lower))
    every = np.where(np.isnan(every), 0.0, every)
    return float(every.min()), float(every.max())


_DEVIATIONS = 2.0  # of the lower mean, within which it may be 0


def cautions(law: Ratio) -> list[str]:
    """Return what a reader of a ratio should know of it."""
    spread = np.sqrt(np.maximum(law.variances[2], 0.0) / law.n)
    near = law.bottom <= _DEVIATIONS * spread
    return ["too few records to distinguish the group from an empty one" if each else "" for each in near]


def points_of(own: Read) -> NDArray[np.float64]:
    """Return the points of a column, or refuse one of categories that are no numbers."""
    labels = own.reading.labels
    if not all(isinstance(each, float) for each in labels):
        raise PlanError(
            f"column {own.reading.column!r}: its categories have no order; a plan with GRR and interval= "
            "would put numbers on points"
        )
    return np.array(labels)


def notes_of(reads: Sequence[Read], rows: int) -> list[str]:
    """Return the note of the readings, once for every row."""
    note = "; ".join(dict.fromkeys(filter(None, [each.reading.note for each in reads])))
    return [note] * rows
