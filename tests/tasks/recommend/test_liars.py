"""Recommendations that count on liars: what they move is an error that more records do not average out."""

from __future__ import annotations

from typing import Any

import bitldp
import pytest
from bitldp.recommend.measure import influence


def test_liars_count_with_the_square_of_what_they_move() -> None:
    honest = bitldp.recommend("frequency", epsilon=1.0, categories=64)
    lied_to = bitldp.recommend("frequency", epsilon=1.0, categories=64, liars=0.01, users=5000)
    rows = {row.name: row for row in lied_to.rows}
    for row in honest.rows:
        if row.mechanism is None:
            assert rows[row.name].why == row.why
            continue
        moved = row.mechanism.influence(0.01)
        assert rows[row.name].influence == moved
        assert rows[row.name].mean == pytest.approx(row.mean + 5000 * moved**2)
        assert rows[row.name].worst == pytest.approx(row.worst + 5000 * moved**2)
    assert "how far 1 % of liars move an entry" in lied_to.measure
    assert "n = 5,000" in lied_to.measure
    assert "liars" not in str(honest)
    assert " liars  why" in str(lied_to)
    assert "<th>liars</th><th>why</th>" in lied_to._repr_html_()


def test_another_mechanism_is_best_where_liars_are_what_counts() -> None:
    """Of many records the variance is nothing: then SUE, whose letters are the smallest."""
    assert isinstance(bitldp.recommend("frequency", epsilon=1.0, categories=64).mechanism, bitldp.BlockDesign)
    advice = bitldp.recommend("frequency", epsilon=1.0, categories=64, liars=0.01)
    assert isinstance(advice.mechanism, bitldp.SUE)
    most = {row.name: row.influence for row in advice.rows if row.mechanism is not None}
    assert min(most, key=lambda name: most[name]) == "SUE"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "given", "honest", "lied_to"),
    [
        ("mean", {"epsilon": 4.0}, bitldp.PiecewiseSub, bitldp.Duchi),
        ("frequency", {"epsilon": 4.0, "categories": 64}, bitldp.GRR, bitldp.SUE),
        ("top", {"epsilon": 6.0, "size": 5000}, bitldp.BlockDesign, bitldp.SUE),
    ],
)
def test_liars_change_the_first_row_of_every_task(
    task: Any, given: dict[str, Any], honest: type, lied_to: type
) -> None:
    """What decodes to less far is better by more than what it costs in variance."""
    first = bitldp.recommend(task, **given).rows[0]
    second = bitldp.recommend(task, **given, liars=0.01).rows[0]
    assert type(first.mechanism) is honest
    assert type(second.mechanism) is lied_to
    assert first.mechanism is not None
    assert second.influence <= first.mechanism.influence(0.01)


def test_a_range_of_an_oracle_is_a_set_of_categories() -> None:
    oue, tree = bitldp.OUE(16, epsilon=1.0), bitldp.Hierarchy(16, epsilon=1.0)
    assert influence("range", oue, 0.01) == oue.influence(0.01, total=True)
    assert influence("range", tree, 0.01) == tree.influence(0.01)
    assert influence("range", oue, 0.0) == 0.0


def test_collections_with_liars() -> None:
    advice = bitldp.recommend("frequency", epsilon=1.0, categories=16, liars=0.01, collections=4)
    rappor = next(row for row in advice.rows if row.name == "RAPPOR, two steps")
    assert rappor.influence == bitldp.RAPPOR(16, epsilon=1.0).influence(0.01)


@pytest.mark.parametrize(
    ("task", "named", "message"),
    [
        ("label", {"categories": 4, "liars": 0.1}, r"^liars: has no effect on task 'label', only on 'mean'"),
        ("mean", {"liars": 1.5}, r"^liars: must be from 0 to 1"),
        ("record", {"categories": [3, 4], "users": 10}, r"^users: has no effect on task 'record'"),
        ("mean", {"features": 2, "users": 10}, r"^users: without liars it is for a secure sum"),
    ],
)
def test_what_is_refused(task: str, named: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bitldp.recommend(task, epsilon=1.0, **named)  # type: ignore[arg-type]
