"""Drafts of plans: what is public is asked for, questions decide what is released apart, errors are met."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
from bitldp.tables import PlanError, PlannedQuestion, ReleasedTable, draft_plan, questions_of

SCHEMA = pa.schema(
    [
        ("height", pa.float64()),
        ("sex", pa.string()),
        ("city", pa.string()),
        ("smoker", pa.bool_()),
        ("survey", pa.string()),
    ]
)
PUBLIC = {
    "columns": ["height", "sex", "city", "smoker"],
    "intervals": {"height": (120.0, 220.0)},
    "categories": {"sex": ["f", "m"], "city": ["Paris", "Rome", "Oslo"]},
    "keep": ["survey"],
}


def uniform(rng, rows):
    """Return people whose columns are uniform and independent."""
    return pa.table(
        {
            "height": rng.uniform(120.0, 220.0, rows),
            "sex": np.array(["f", "m"])[rng.integers(0, 2, rows)],
            "city": np.array(["Paris", "Rome", "Oslo"])[rng.integers(0, 3, rows)],
            "smoker": rng.random(rows) < 0.5,
            "survey": ["spring"] * rows,
        }
    )


def drafted(questions="", epsilon=4.0, **changed):
    return draft_plan(SCHEMA, epsilon=epsilon, questions=questions_of(questions), **{**PUBLIC, **changed})


def test_columns_that_no_question_joins_share_a_record():
    draft = drafted()
    (column,) = draft.plan.columns
    assert column.columns == ("height", "sex", "city", "smoker")
    assert [str(each.question) for each in draft.errors] == [
        "mean(height)",
        "share(sex)",
        "share(city)",
        "share(smoker)",
    ]


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 8.0])
def test_the_budget_is_kept_and_nearly_spent(epsilon):
    for text in ("", "table(sex, city)", "mean(height) by sex; share(city) by survey"):
        record = drafted(text, epsilon).plan.guarantee.record
        assert 0.98 * epsilon < record <= epsilon


@pytest.mark.parametrize(
    "question",
    ["table(sex, city)", "mean(height) by sex", "mean(height) by sex, city", "table(sex, city, smoker)"],
)
def test_columns_that_a_question_joins_are_told_together(question):
    """By one report whose law tells them, or by reports of their own: never by one that draws some."""
    draft = drafted(question)
    (asked,) = questions_of(question)
    for column in draft.plan.columns:
        both = [name for name in asked.columns if name in column.columns]
        if len(both) > 1:
            assert column.codecs[0].together(both)[1] == 1.0
    assert draft.errors[0].error < 0.3 * DRAWN_APART[question]


# Expected errors of a plan with a mechanism for each column on an even share of epsilon 4.
DRAWN_APART = {
    "table(sex, city)": 0.0154,
    "mean(height) by sex": 2.49,
    "mean(height) by sex, city": 10.1,
    "table(sex, city, smoker)": 0.0187,
}


@pytest.mark.slow
@pytest.mark.statistical
def test_expected_errors_of_columns_together_are_met():
    """Spread of 300 releases of 2,000 uniform records: a chi of 300, within 5 of its deviations and 8 %."""
    rng, n, releases = np.random.default_rng(2), 2_000, 300
    table = uniform(rng, n)
    draft = drafted("mean(height) by sex; table(sex, city)", epsilon=6.0, records=n)
    women = np.array(table["sex"]) == "f"
    mean = np.array(table["height"])[women].mean()
    cell = np.mean(women & (np.array(table["city"]) == "Rome"))
    found = []
    for _ in range(releases):
        asked = ReleasedTable(draft.plan, draft.plan.release()(table))
        height, both = asked.mean("height", by="sex"), asked.table("sex", "city")
        found.append(
            [height.value[height.row({"sex": "f"})], both.value[both.row({"sex": "f", "city": "Rome"})]]
        )
    spread = np.sqrt(np.mean(np.square(np.array(found) - [mean, cell]), axis=0))
    expected = np.array([each.error for each in draft.errors])
    assert np.all(np.abs(spread / expected - 1.0) < 0.08 + 5.0 / np.sqrt(2.0 * releases))


def test_a_kept_column_joins_nothing():
    by_kept = drafted("mean(height) by survey; share(sex) by survey")
    assert len(by_kept.plan.columns) == 1  # a kept column is known
    assert by_kept.plan.columns[0].columns[0] == "height"


def test_what_is_public_is_asked_for_all_at_once():
    with pytest.raises(PlanError, match=r"'height' its range, 'sex' its list of values, 'city' its list"):
        draft_plan(SCHEMA, epsilon=1.0, columns=PUBLIC["columns"])
    with pytest.raises(PlanError, match="'age': the table has no such column; it has height"):
        drafted(columns=["age"], intervals={}, categories={})
    with pytest.raises(PlanError, match="column 'height': is not among"):
        drafted(columns=["sex"], categories={"sex": ["f", "m"]})
    with pytest.raises(ValueError, match="epsilon"):
        drafted(epsilon=0.0)


def test_questions_are_read():
    asked = questions_of('mean(height) by sex, city ;share( "sex" ); table(sex,city, smoker)')
    assert asked == (
        PlannedQuestion("mean", ("height", "sex", "city")),
        PlannedQuestion("share", ("sex",)),
        PlannedQuestion("table", ("sex", "city", "smoker")),
    )
    assert str(asked[0]) == "mean(height) by sex, city"
    for wrong in ("median(height)", "mean()", "table(sex)", "mean(height", "table(sex, city) by smoker"):
        with pytest.raises(PlanError, match="questions: "):
            questions_of(wrong)
    with pytest.raises(PlanError, match="names a column twice"):
        questions_of("table(sex, sex)")
    for text, message in [
        ("mean(sex)", "column 'sex' must be of numbers"),
        ("share(height)", "column 'height' must be of categories"),
        ("share(survey)", "column 'survey' is not released"),
    ]:
        with pytest.raises(PlanError, match=message):
            drafted(text)


@pytest.mark.slow
@pytest.mark.statistical
def test_expected_errors_are_met():
    """Spread of 400 releases of 500 records about their truth: a chi of 400, within 5 of its deviations."""
    rng, n, releases = np.random.default_rng(1), 500, 400
    table = uniform(rng, n)
    truth = float(np.mean(table["height"]))
    draft = drafted("mean(height); share(sex); share(city)", epsilon=2.0, records=n)
    plan, found = draft.plan, []
    for _ in range(releases):
        answers = plan.aggregate().update(plan.release()(table)).estimate().to_pylist()
        by = {(each["column"], each["category"]): each["estimate"] for each in answers}
        found.append([by["height", None], by["sex", "m"], by["city", "Rome"]])
    shares = [np.mean(np.array(table[name]) == value) for name, value in (("sex", "m"), ("city", "Rome"))]
    spread = np.sqrt(np.mean(np.square(np.array(found) - [truth, *shares]), axis=0))
    expected = np.array([each.error for each in draft.errors])
    # The draft is for uniform columns, and a sampled column's share of the records varies, too.
    assert np.all(np.abs(spread / expected - 1.0) < 0.05 + 5.0 / np.sqrt(2.0 * releases))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("mean(wait (min)) by ward", ("wait (min)", "ward")),
        ("mean(age) by wait (min), ward", ("age", "wait (min)", "ward")),
        ('table("city, country", "by (a)")', ("city, country", "by (a)")),
        ('share("open ( alone; or two")', ("open ( alone; or two",)),
    ],
)
def test_a_name_with_brackets_or_a_comma_can_be_asked_for(text, columns):
    (question,) = questions_of(text)
    assert question.columns == columns


@pytest.mark.parametrize(
    "text", ["mean(age", "mean(age))", "mean(age) ward", "table(a) by b", "mean()", "mean(a) by "]
)
def test_brackets_that_do_not_fit_are_no_question(text):
    with pytest.raises(PlanError, match="is not a question"):
        questions_of(text)
