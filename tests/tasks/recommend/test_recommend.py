"""Recommendations: every row keeps the budget, the best one is first, and reasons are given."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise

import bitldp
import numpy as np
import pytest
from bitldp import recommend
from bitldp.letters.directions import least_spread
from bitldp.recommend import REGISTRY

# MVU looks for shipped designs and says so in the log where there are none
CASES = {
    "mean": (("mean", 2.0), {}),
    "records": (("mean", 5.0), {"features": 6, "criterion": "worst", "interval": (0.0, 10.0)}),
    "frequency": (("frequency", 1.0), {"categories": 50}),
    "line": (("point", 1.0), {"candidates": 20}),
    "plane": (("point", 2.0), {"candidates": np.random.default_rng(1).random((20, 2)), "criterion": "worst"}),
    "label": (("label", 1.0), {"categories": 5}),
    "categories": (("frequency", 3.0), {"categories": 16, "features": 3}),
    "points": (("point", 3.0), {"candidates": 20, "features": 3, "criterion": "worst"}),
    "vectors": (("vector", 4.0), {"features": 12, "norm": "l2"}),
    "cubes": (("vector", 4.0), {"features": 12, "norm": "linf", "criterion": "worst"}),
    "attributes": (("record", 2.0), {"categories": [2, 30, 5]}),
    "mixed": (("record", 2.0), {"categories": [2, 30, 5], "features": 3, "interval": (0.0, 9.0)}),
    "variance": (("frequency", 1.0), {"categories": 50, "criterion": "variance"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rows(case):
    (task, epsilon), options = case
    advice = recommend(task, epsilon=epsilon, **options)
    built = [row for row in advice.rows if row.mechanism is not None]
    assert advice.mechanism is built[0].mechanism is advice.rows[0].mechanism
    costs = [row.cost(advice.criterion) for row in built]
    assert all(a <= b * (1 + 1e-9) for a, b in pairwise(costs[1:]))
    assert costs[0] <= min(costs) * (1.0 if advice.criterion == "variance" else 1.02)
    if advice.criterion != "variance":
        most = 1.02 * min(costs)
        if options.get("norm") == "l2":
            most = min(most, max(min(costs), 1.02 * least_spread(options["features"], epsilon)))
        near = [row.bits for row, cost in zip(built, costs, strict=True) if cost <= most]
        assert built[0].bits == min(near)
    for row in built:
        assert row.epsilon == row.mechanism.guarantee.record <= epsilon
        assert row.epsilon == pytest.approx(epsilon, rel=1e-5)
        assert row.bits == row.mechanism.report_bits
        assert 0.0 < row.mean <= row.worst * (1 + 1e-9)
        assert row.why
    text = str(advice)
    assert len(text.splitlines()) == len(advice.rows) + 4
    assert text.splitlines()[:2] == [advice.answer, advice.proof]
    assert all(row.name in text for row in advice.rows)
    table = advice._repr_html_()
    assert table.count("<tr>") == len(advice.rows) + 1
    assert "&lt;" not in table
    assert built[0].why in table
    assert pickle.loads(pickle.dumps(advice.mechanism)) == advice.mechanism


def test_what_is_best():
    assert type(recommend("mean", epsilon=1.0, criterion="worst").mechanism) is bitldp.MinimaxVariance
    assert type(recommend("frequency", epsilon=1.0, categories=64).mechanism) is bitldp.BlockDesign
    exact = recommend("frequency", epsilon=1.0, categories=64, criterion="variance").mechanism
    assert type(exact) is bitldp.SubsetSelection
    assert type(recommend("frequency", epsilon=1.0, categories=3).mechanism) is bitldp.GRR
    assert type(recommend("point", epsilon=1.0, candidates=20).mechanism) is bitldp.OptimalUtility
    assert type(recommend("point", epsilon=1.0, candidates=400).mechanism) is bitldp.BRR


@pytest.mark.slow
def test_whole_records_win_where_there_is_much_to_spend():
    assert type(recommend("mean", epsilon=8.0, features=256).mechanism) is bitldp.JointWindow
    names = [row.name for row in recommend("mean", epsilon=1.0).rows]
    assert not any(name.endswith(("sample", "record")) for name in names)


@pytest.mark.slow
def test_what_takes_long_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("BITLDP_CACHE", str(tmp_path))  # where no test before has kept the design
    why = {row.name: row.why for row in recommend("mean", epsilon=4.0).rows}["MVU 6 -> 5 bits, split"]
    assert "thorough=True" in why
    best = recommend("mean", epsilon=4.0, thorough=True).mechanism
    assert isinstance(best, bitldp.MVU)
    assert best.output_bits == 5


def test_numbers_are_those_of_the_mechanisms():
    for row in recommend("frequency", epsilon=2.0, categories=9).rows[:3]:
        variances = row.mechanism.variance(np.arange(9))
        assert row.mean == pytest.approx(variances.mean())
        assert row.worst == pytest.approx(variances.max())
    row = recommend("label", epsilon=1.0, categories=5).rows[0]
    assert row.mean == pytest.approx(4.0 / (np.e + 4.0), rel=1e-9)
    losses = np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
    for row in recommend("point", epsilon=1.0, candidates=20).rows:
        rows = np.sum(row.mechanism.probabilities() * losses, axis=1)
        assert row.mean == pytest.approx(rows.mean(), rel=1e-9)
        assert row.worst == pytest.approx(rows.max(), rel=1e-9)


def test_answers_are_for_the_whole_record():
    """Three features share the budget: each is released at a third of it, and the report has three codes."""
    for task, options in (("point", {"candidates": 16}),):
        alone, whole = (
            recommend(task, epsilon=1.0, **options),
            recommend(task, epsilon=1.0, features=3, **options),
        )
        third = {row.name: row for row in recommend(task, epsilon=1.0 / 3.0, **options).rows}
        built = [row for row in whole.rows if row.mechanism is not None]
        assert whole.mechanism.columns == 3
        assert {row.mechanism.features for row in built} == {3}
        for row in built:
            assert row.epsilon == pytest.approx(1.0, rel=1e-5)
            assert row.bits == 3 * third[row.name].bits
            assert row.mean == pytest.approx(third[row.name].mean, rel=1e-6)
        assert built[0].mean > alone.rows[0].mean


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_records_of_categories(epsilon):
    """Epsilon is that of the record; sampling an attribute and splitting the budget are both compared."""
    advice = recommend("frequency", epsilon=epsilon, categories=16, features=5)
    assert type(advice.mechanism) is bitldp.CategoricalRecord
    assert advice.mechanism.columns == 5
    built = {row.name: row for row in advice.rows if row.mechanism is not None}
    assert {"GRR, split", "best oracle, sample", "best oracle, split", "OUE", "BlockDesign"} <= set(built)
    for row in built.values():
        assert row.mechanism.columns == 5
        assert row.epsilon == row.mechanism.guarantee.record <= epsilon
        assert row.epsilon == pytest.approx(epsilon, rel=1e-5)
    split = built["GRR, split"]
    assert split.mean == pytest.approx(bitldp.GRR(16, epsilon=epsilon / 5.0).mean_variance(), rel=1e-6)
    assert advice.rows[0].mean < split.mean / 8.0
    listed = recommend("record", epsilon=epsilon, categories=[16] * 5)
    assert listed.rows[0].mean == pytest.approx(advice.rows[0].mean, rel=1e-9)
    same = recommend("frequency", epsilon=epsilon, categories=[16] * 5)
    assert same.mechanism == advice.mechanism


def test_goals():
    assert recommend("frequency", epsilon=2.0, categories=65536).mechanism.report_bits <= 20
    record = recommend("record", epsilon=1.0, categories=[16] * 5).mechanism
    assert record.mean_variance() <= 19.0
    assert recommend("record", epsilon=4.0, categories=[16] * 10).mechanism.mean_variance() <= 0.96


def test_bits_are_a_limit():
    advice = recommend("frequency", epsilon=1.0, categories=64, bits=8)
    assert type(advice.mechanism) is bitldp.GRR
    left = {row.name: row.why for row in advice.rows if row.mechanism is None}
    assert left["OUE"] == "takes 64 bits, more than 8"
    assert left["BlockDesign"].endswith("bits, more than 8")
    nothing = recommend("frequency", epsilon=1.0, categories=64, bits=2)
    with pytest.raises(ValueError, match="no mechanism fits; GRR: takes 6 bits, more than 2"):
        _ = nothing.mechanism


def test_the_reason_says_what_was_given_up():
    advice = recommend("frequency", epsilon=2.0, categories=65536, bits=65536)
    first, second, *_ = advice.rows
    above = f"{100.0 * (first.mean / second.mean - 1.0):.3g} % above the least mean"
    assert first.why == f"{above}, in 17 bits for 65,536 of OUE"
    assert second.why == "the least mean; more bits"
    assert "first the fewest bits within 2% of the best mean" in str(advice)


def test_the_worst_case_counts_for_any_number_of_candidates():
    """By the law itself where it is small enough to print, and by the closed form above."""
    rng = np.random.default_rng(2)
    for candidates in (7, 100, rng.random(60), rng.random((60, 2)), np.append(rng.random(40), [0.5, 0.5])):
        for m in (1, 3, "best"):
            mechanism = bitldp.BRR(candidates, epsilon=1.5, m=m)
            points = mechanism.points.reshape(len(mechanism.points), -1)
            losses = np.sqrt(np.square(points[:, None] - points).sum(axis=2))
            errors = np.sum(mechanism.probabilities() * losses, axis=1)
            assert mechanism.worst_error() == pytest.approx(errors.max(), rel=1e-9)
            assert mechanism.expected_error() == pytest.approx(errors.mean(), rel=1e-9)
    rows = recommend("point", epsilon=1.0, candidates=5000, criterion="worst").rows
    best, other = rows[0], rows[1]
    assert not math.isnan(best.worst)
    assert best.worst <= other.worst
    assert best.mechanism.worst_error() == best.worst
    with pytest.raises(ValueError, match="utility: was given in place of a loss"):
        bitldp.BRR(9, epsilon=1.0, utility="jaccard").worst_error()


EXTRA = {
    "norm": "l2",
    "features": 2,
    "categories": 5,
    "candidates": 9,
    "interval": (0.0, 1.0),
    "metric": "euclidean",
    "thorough": True,
}
USED = {
    "mean": {"features", "interval", "thorough"},
    "vector": {"features", "norm"},
    "frequency": {"features", "categories"},
    "record": {"features", "categories", "interval"},
    "point": {"features", "candidates", "metric", "thorough"},
    "label": {"categories"},
}
NEEDED = {
    "frequency": {"categories": 5},
    "record": {"categories": 5},
    "vector": {"features": 2, "norm": "l2"},
    "point": {"candidates": 9},
    "label": {"categories": 5},
    "mean": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("task", USED)
@pytest.mark.parametrize("name", EXTRA)
def test_no_argument_is_ignored(task, name):
    """Every argument of every task either changes what is compared, or is refused by its name."""
    given = {**NEEDED[task], name: EXTRA[name]}
    if name not in USED[task]:
        with pytest.raises(ValueError, match=f"^{name}: has no effect on task '{task}'"):
            recommend(task, epsilon=2.0, **given)
        return
    if (task, name) == ("point", "thorough"):  # what is quick is compared without it
        assert "thorough=True" in str(recommend(task, epsilon=2.0, candidates=200))
        return
    if name == "metric":  # the default; another one makes another table
        given[name] = np.square(np.subtract.outer(np.arange(9.0), np.arange(9.0)))
    if name == "interval" and task == "record":
        given["features"] = 2
        plain = recommend(task, epsilon=2.0, categories=5, features=2)
    elif name in NEEDED[task]:
        other = "linf" if name == "norm" else 6
        plain = recommend(task, epsilon=2.0, **{**NEEDED[task], name: other})
    else:
        plain = recommend(task, epsilon=2.0, **NEEDED[task])
    asked = recommend(task, epsilon=2.0, **given)
    assert str(asked) != str(plain)


def test_the_criterion_is_not_ignored():
    for task in USED:
        given = {**NEEDED[task], "criterion": "worst"}
        assert "2% of the best worst" in str(recommend(task, epsilon=2.0, **given))
        given["criterion"] = "variance"
        assert "; the least mean first" in str(recommend(task, epsilon=2.0, **given))


def test_what_does_not_fit_is_last_with_its_reason():
    rows = recommend("frequency", epsilon=1.0, categories=5).rows
    assert rows[-1].name == "WarnerRR"
    assert rows[-1].why == "is for one answer of two categories"
    assert math.isnan(rows[-1].mean)
    assert rows[-1].mechanism is None
    rows = recommend("point", epsilon=1.0, candidates=400).rows
    assert "more than 150 candidates take seconds" in rows[-1].why


def test_without_the_extra(monkeypatch):
    monkeypatch.setattr("bitldp.base.errors.missing", list)
    rows = recommend("point", epsilon=1.2345, candidates=7).rows
    assert rows[0].mechanism is not None
    assert 'pip install "bitldp[design]"' in rows[-1].why


def test_every_task_has_candidates():
    ordered = {"distribution", "range", "top"}
    assert set(REGISTRY) == {"mean", "vector", "frequency", "record", "point", "label"} | ordered
    for rows in REGISTRY.values():
        assert len({name for name, _ in rows}) == len(rows) > 1


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("median", 1.0), {}, "task: must be one of"),
        (("mean", 0.0), {}, "epsilon: must be above zero"),
        (("mean", math.nan), {}, "epsilon: must be finite"),
        (("mean", 1.0), {"criterion": "best"}, "criterion: must be one of"),
        (("mean", 1.0), {"features": 0}, "features: must be at least 1"),
        (("mean", 1.0), {"interval": (1.0, 0.0)}, "interval"),
        (("frequency", 1.0), {}, "categories: are needed"),
        (("label", 1.0), {"categories": 1}, "categories: must be at least 2"),
        (("label", 1.0), {"categories": [2, 3]}, "categories: must be an int"),
        (("record", 1.0), {"categories": []}, "categories: must be of one attribute"),
        (("record", 1.0), {"categories": [2, 1]}, r"categories\[1\]: must be at least 2"),
        (("frequency", 1.0), {"categories": [2, 3], "features": 3}, "features: must be 2, one for each"),
        (("vector", 1.0), {"norm": "l2"}, "features: are needed"),
        (("vector", 1.0), {"features": 5}, "norm: is needed"),
        (("vector", 1.0), {"features": 5, "norm": "l3"}, "norm: must be one of"),
        (("mean", 1.0), {"bits": 0}, "bits: must be at least 1"),
        (("point", 1.0), {}, "candidates: are needed"),
        (("point", 1.0), {"candidates": 1}, "candidates: must be at least 2"),
        (("point", 1.0), {"candidates": 5, "metric": "taxi"}, "metric: must be one of"),
    ],
)
def test_bad_parameters(arguments, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        recommend(arguments[0], epsilon=arguments[1], **options)


@pytest.mark.parametrize("epsilon", [4.0, 8.0])
@pytest.mark.slow
def test_records_of_many_numbers_are_released_as_a_whole(epsilon):
    """Releases of whole records are far ahead of those of single numbers at larger budgets."""
    advice = recommend("mean", epsilon=epsilon, features=768)
    assert type(advice.mechanism) is bitldp.JointWindow
    assert advice.rows[0].mean <= advice.rows[1].mean / 1.2
    names = [row.name for row in advice.rows]
    assert {"HypercubePrivUnit, record", "SampledSigns, record"} <= set(names)
    single = [row.name for row in recommend("mean", epsilon=epsilon).rows]
    assert not {"HypercubePrivUnit, record", "SampledSigns, record"} & set(single)
    variances = {row.name: row.mean for row in advice.rows}
    assert variances["HypercubePrivUnit, record"] == pytest.approx(
        {4.0: 334.0, 8.0: 102.0}[epsilon], rel=0.01
    )
    assert variances["Piecewise, sample"] > variances["HypercubePrivUnit, record"]
