"""The same question asked again and again: what is kept, against fresh coins that share the budget."""

from __future__ import annotations

from dataclasses import replace

from bitldp.categorical.rappor import RAPPOR
from bitldp.privacy import composed
from bitldp.recommend.answer import Recommendation, Row, ranked
from bitldp.recommend.measure import measured
from bitldp.recommend.question import Question

__all__ = ["asked_again"]

_KEPT = "kept: a new value shows, and costs as much again"
_FRESH = "covers new values"


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
    rows = kept + _fresh(fresh.rows[0], collections) + _rappor(once.task, question, most)
    notes = {row.name: _KEPT if row.kept else _FRESH for row in rows} | {
        row.name: f"one report alone has epsilon {row.mechanism.first_guarantee.record:.4g}"
        for row in rows
        if isinstance(row.mechanism, RAPPOR)
    }
    found = [replace(row, why=f"{row.why}; {notes[row.name]}") for row in ranked(rows, once.criterion)]
    left = [row for row in once.rows if row.mechanism is None]
    measure = f"{once.measure}, at each of {collections:,} collections"
    return replace(once, measure=measure, rows=(*found, *left))


def _fresh(best: Row, collections: int) -> list[Row]:
    """Return the best mechanism of one collection's share, at what all collections cost together."""
    if best.mechanism is None:
        return []
    whole = composed(best.epsilon, collections)
    return [replace(best, name=f"{best.name}, fresh each time", epsilon=whole)]


def _rappor(task: str, question: Question, most: int | None) -> list[Row]:
    """Return RAPPOR in its two steps, for one category."""
    if task != "frequency" or len(question.sizes) != 1:
        return []
    try:
        mechanism = RAPPOR(question.sizes[0], epsilon=question.epsilon)
        if most is not None and mechanism.report_bits > most:
            return []
        mean, worst = measured(task, mechanism)
    except ValueError:  # too many categories
        return []
    record = mechanism.guarantee.record
    return [Row(mechanism, "RAPPOR, two steps", record, mechanism.report_bits, mean, worst, "")]
