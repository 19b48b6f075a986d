"""Columns of one report read together: products whose mean is right, though the report is about all of them.

What one report says of a column is right on average, and the product of what it says of two is not: the
columns are drawn together, or near the record together. How much too large or too small the product is on
average is known of each law, once it is of what differs from a fixed number.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base.errors import PlanError
from bitldp.estimate.intervals import LetterLaw
from bitldp.letters.spread import Mixed
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.joint import Read, Term
from bitldp.tables.reading import Reading

__all__ = ["cells_together", "joint", "known", "letters_together", "resolved", "shared"]


def shared(codecs: Sequence[ColumnCodec], reads: Sequence[Read]) -> bool:
    """Tell whether two of some readings are of one report that is about both."""
    every = [each.codec for each in reads if not codecs[each.codec].apart]
    return len(set(every)) < len(every)


def _refuse_same(reads: Sequence[Read]) -> None:
    for i, one in enumerate(reads):
        for other in reads[:i]:
            if one.source == other.source:
                names = f"columns {other.reading.column!r} and {one.reading.column!r}"
                raise PlanError(f"{names}: are one; a question names each column once")


def resolved(
    codecs: Sequence[ColumnCodec], reads: Sequence[Read], terms: Sequence[Term], *, once: bool = True
) -> tuple[list[Read], list[Term]]:
    """Return readings and terms with the means of some, of which no two in a term are of one report.

    Parameters
    ----------
    codecs : sequence of ColumnCodec
        Of the plan.
    reads, terms
        What is multiplied.
    once : bool
        Whether every reading must be of a column of its own.

    Raises
    ------
    PlanError
        For a column that is named twice, and for columns of one report that does not tell them together.
    """
    if once:
        _refuse_same(reads)
    if not shared(codecs, reads):
        return list(reads), list(terms)
    every, made = list(reads), dict[tuple[int, ...], int]()
    found: list[Term] = []
    for term in terms:
        by_report: dict[Any, list[tuple[int, int]]] = {}
        for i, j in term:
            own = reads[i]
            report = own.source if codecs[own.codec].apart else own.codec
            by_report.setdefault(report, []).append((i, j))
        factors = []
        for several in by_report.values():
            which = tuple(i for i, _ in several)
            if len(several) == 1:
                factors.append(several[0])
                continue
            if which not in made:
                made[which] = len(every)
                every.append(_read(codecs, [reads[i] for i in which]))
            sizes = [len(reads[i].reading.labels) for i in which]
            factors.append((made[which], int(np.ravel_multi_index([j for _, j in several], sizes))))
        found.append(tuple(factors))
    return every, found


def _read(codecs: Sequence[ColumnCodec], reads: Sequence[Read]) -> Read:
    number = reads[0].codec
    return Read(number, joint(codecs[number], [each.reading for each in reads]))


def joint(codec: ColumnCodec, readings: Sequence[Reading]) -> Reading:
    """Return the reading of products of entries of columns of one report.

    Notes
    -----
    Let y_j be what a report says of column j, less a fixed number m_j that it is where the report is about
    other columns. Then the mean of the product of the y_j of a set U is that of the truths less m_j, over a
    factor f_U of the law. So the sum over all U of f_U, the product of the y_j in U, and that of the m_j of
    the others has the product of the truths for its mean.
    """
    if len(readings) == 1:
        return readings[0]
    names = [each.column for each in readings]
    if len(set(names)) < len(names):
        raise PlanError(f"column {names[-1]!r}: is named twice")
    order = range(len(names))
    sets = [chosen for size in order for chosen in combinations(order, size + 1)]
    laws = {chosen: codec.together([names[j] for j in chosen]) for chosen in sets if len(chosen) > 1}
    factors = {chosen: law[0] for chosen, law in laws.items()}
    middles = [codec.middle(each) for each in readings]
    sizes = [len(each.labels) for each in readings]

    def multiplied(values: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the sum over the sets, of arrays of shape (n, entries) for each column."""
        rows = len(values[0])
        total = np.zeros((rows, *sizes))
        for chosen in [(), *sets]:
            part = np.full((1,) * (1 + len(sizes)), factors.get(chosen, 1.0))
            for j in order:
                own = values[j] - middles[j] if j in chosen else np.full((1, sizes[j]), middles[j])
                part = part * own.reshape(len(own), *(sizes[i] if i == j else 1 for i in order))
            total += part
        return total.reshape(rows, -1)

    corners = [
        multiplied([each.ends[[side]] for each, side in zip(readings, sides, strict=True)])[0]
        for sides in product((0, 1), repeat=len(readings))
    ]
    ends = np.stack([np.min(corners, axis=0), np.max(corners, axis=0)])
    spans = [np.prod(each) for each in product(*(each.span for each in readings))]
    bound = np.square(ends).max(axis=0)
    labels = tuple(product(*(each.labels for each in readings)))
    return Reading(
        *(
            ", ".join(names),
            labels,
            lambda reports: multiplied([each.read(reports) for each in readings]),
            ends,
        ),
        *((float(min(spans)), float(max(spans))), 0.0),
        moments=np.stack([bound, 0.0 * bound, bound]),
        rate=laws[sets[-1]][1],
        note="; ".join(dict.fromkeys(each.note for each in readings if each.note)),
    )


def known(codecs: Sequence[ColumnCodec], reads: Sequence[Read]) -> Reading:
    """Return what is known of products of entries of readings, the last one running fastest.

    Its ends, span, moments and rate count; what reads it is `resolved`.
    """
    by_report: dict[Any, list[int]] = {}
    for position, each in enumerate(reads):
        report = (position, each.source) if codecs[each.codec].apart else each.codec
        by_report.setdefault(report, []).append(position)
    parts = [
        reads[which[0]].reading if len(which) == 1 else _read(codecs, [reads[i] for i in which]).reading
        for which in by_report.values()
    ]
    order = [i for which in by_report.values() for i in which]
    sizes = [len(reads[i].reading.labels) for i in order]
    back = np.arange(int(np.prod(sizes))).reshape(sizes).transpose(np.argsort(order)).ravel()
    ends, spans = np.ones((2, 1)), [1.0]
    own, most = np.ones(1), np.ones(1)
    for part in parts:
        corners = [np.multiply.outer(one, other).ravel() for one in ends for other in part.ends]
        ends = np.stack([np.min(corners, axis=0), np.max(corners, axis=0)])
        spans = [one * other for one in spans for other in part.span]
        bound = np.square(part.ends).max(axis=0)
        inside, outside = (
            (bound, bound) if part.moments is None else (part.moments[0], part.moments[1:].max(axis=0))
        )
        most = np.maximum(
            np.multiply.outer(most, np.maximum(inside, outside)), np.multiply.outer(own, outside)
        ).ravel()
        own = np.multiply.outer(own, inside).ravel()
    labels = tuple(product(*(each.reading.labels for each in reads)))
    return Reading(
        *("", labels, parts[0].read, ends[:, back], (float(min(spans)), float(max(spans))), 0.0),
        np.stack([own, 0.0 * own, most])[:, back],
        rate=float(np.prod([part.rate for part in parts])),
    )


def cells_together(every: Reading, grouped: bool, times: int) -> LetterLaw:
    """Return the law of the cells of a table, by what is `known` of them; see `cell_law`.

    A record in a cell has a letter of mean 1, and so of second moment 1 or more.
    """
    assert every.moments is not None  # of categories
    own, _, most = every.moments
    ends = every.ends
    if grouped:  # whoever is in another group counts as 0
        ends = np.stack([np.minimum(ends[0], 0.0), np.maximum(ends[1], 0.0)])
    inside, outside, nothing = (np.tile(each, times) for each in (own - 0.75, most + 0.25, 0.0 * own + 0.25))
    reach = float((ends[1] - ends[0]).max())
    mixed = Mixed(np.array([0.0, 1.0]), np.stack([nothing, nothing]), np.stack([outside, inside]))
    return LetterLaw(mixed, reach, rate=every.rate, jump=reach / 2.0)


def letters_together(
    upper: Reading, lower: Reading | None, entries: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the letters of ratios, and their least variances; see `Ratio`.

    Parameters
    ----------
    upper : Reading
        What is known of the upper products.
    lower : Reading or None
        That of the lower ones, each of so many `entries` of the upper ones; None: they are 1.
    entries : int
    """
    ends = np.ones((2, 1)) if lower is None else lower.ends
    ones = np.ones_like(upper.ends)
    under = np.repeat(ends, upper.ends.shape[1] if lower is None else entries, axis=1)
    return np.concatenate([upper.ends, under, ones]), np.stack([0.0 * ones[0], 0.0 * ones[0], ones[0]])
