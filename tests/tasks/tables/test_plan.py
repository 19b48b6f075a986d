"""Plans: what they promise, what they refuse, and their files."""

from __future__ import annotations

import pickle
from typing import Any

import bitldp
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

from bitldp.tables import Column, PlanError, TablePlan
from support.plans import columns_of_every_mechanism, plan

EVERY = columns_of_every_mechanism()


def test_a_plan_nested_too_deeply_is_refused() -> None:
    with pytest.raises(PlanError, match=r"^line 1: lists or tables are nested too deeply"):
        TablePlan.from_toml("keep = " + "[" * 100_000)


def test_a_record_costs_what_its_columns_cost_together() -> None:
    found = plan().guarantee
    assert found.record == pytest.approx(9.0, abs=1e-9)
    assert found.record >= sum(codec.mechanism.guarantee.record for codec in plan().codecs) - 1e-15
    assert found.holds


def test_a_claim_that_fails_fails_for_the_plan() -> None:
    with pytest.warns(bitldp.PrivacyClaimWarning):
        broken = bitldp.FRR(features=1, epsilon=1.0, calibration="paper")
    assert not TablePlan([Column(broken, "x")]).guarantee.holds


def test_nearly_every_mechanism_takes_columns() -> None:
    assert len(EVERY) > 25
    assert {"GRR", "OUE", "Piecewise", "FRR", "BitRand", "BRR", "HypercubePrivUnit"} <= set(EVERY)


@pytest.mark.filterwarnings("ignore::bitldp.PrivacyClaimWarning")
@pytest.mark.parametrize("name", EVERY)
def test_a_plan_of_every_mechanism_comes_back_from_its_files(name: str) -> None:
    given = TablePlan([EVERY[name]], keep=["survey", 'a "quoted"\nname'])
    for found in (
        TablePlan.from_toml(given.to_toml()),
        TablePlan.from_json(given.to_json()),
        pickle.loads(pickle.dumps(given)),
    ):
        assert found == given
        assert found.digest == given.digest
        assert found.guarantee == given.guarantee


def test_plans_that_differ_have_other_digests() -> None:
    one = TablePlan([Column(bitldp.GRR(3, epsilon=1.0), "x", categories=["a", "c", "b"])])
    other = TablePlan([Column(bitldp.GRR(3, epsilon=1.0), "x", categories=["c", "a", "b"])])
    assert one.digest != other.digest
    assert one != other


GRR = bitldp.GRR(2, epsilon=1.0)
NUMBER = bitldp.Piecewise(epsilon=1.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Column(GRR, "x"), "needs categories="),
        (lambda: Column(GRR, "x", categories=["a", "b", "c"]), "has 2 categories, the list 3"),
        (lambda: Column(GRR, "x", categories=["a", "b", "c"], nulls="category"), "one of missing"),
        (lambda: Column(GRR, "x", categories=["a", "a"]), "two are the same"),
        (lambda: Column(GRR, "x", categories="ab"), "not one text"),
        (
            lambda: Column(GRR, "x", categories=["a", "b"], nulls="fill", fill="c"),
            "must be one of the categories",
        ),
        (lambda: Column(GRR, ["x", "y"], categories=["a", "b"]), "takes 1 columns, got 2"),
        (lambda: Column(NUMBER, "x", categories=["a", "b"]), "takes numbers"),
        (lambda: Column(NUMBER, "x", nulls="category"), "is for categories"),
        (lambda: Column(NUMBER, "x", nulls="fill"), "need each other"),
        (lambda: Column(NUMBER, "x", nulls="fill", fill="a"), "must be a finite number"),
        (lambda: Column(NUMBER, "x", nulls="maybe"), "nulls"),
        (lambda: Column(NUMBER, "x", label="y"), "label"),
        (lambda: Column(NUMBER, "x", output="bits"), "reports one symbol"),
        (
            lambda: Column(NUMBER, "x", interval=(0, 1), categories=None, output="values", fill=1.0),
            "need each other",
        ),
        (lambda: Column(NUMBER, []), "one or more names"),
        (lambda: Column("GRR", "x"), "must be one of bitldp's"),
        (lambda: Column(bitldp.EXP(5, epsilon=1.0), "x"), "takes no columns"),
        (lambda: TablePlan([]), "one or more"),
        (lambda: TablePlan([Column(NUMBER, "x"), Column(NUMBER, "x")]), "named twice"),
        (lambda: TablePlan([Column(NUMBER, "x")], keep=["x"]), "named twice"),
        (
            lambda: TablePlan([Column(bitldp.OUE(2, epsilon=1.0), "x", categories=["a", "b"])], keep=["x=a"]),
            "released twice",
        ),
        (lambda: plan().release(record="id"), "need each other"),
        (lambda: plan().release(snapshot="now"), "snapshot"),
        (lambda: plan().aggregate(["height"]), "keeps"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, words: str) -> None:
    with pytest.raises((PlanError, ValueError), match=words):
        make()


GOOD = """keep = ["survey"]

[[column]]
mechanism = "GRR"
parameters = { categories = 2, epsilon = 1.0 }
columns = ["x"]
categories = ["a", "b"]

[[column]]
mechanism = "Piecewise"
parameters = { epsilon = 1.0 }
columns = "z"
"""


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('mechanism = "Piecewise"', 'mechanism = "Picewise"', 10),
        ('mechanism = "Piecewise"', 'mechanism = "Mechanism"', 10),
        ('epsilon = 1.0 }\ncolumns = "z"', 'epsilon = -1.0 }\ncolumns = "z"', 9),
        ("{ categories = 2, epsilon", "{ categories = 2, epsilom", 3),
        ('categories = ["a", "b"]', 'categories = ["a", "b", "c"]', 3),
        ('categories = ["a", "b"]', 'categorys = ["a", "b"]', 7),
        ('columns = "z"', "columns = 3", 12),
        ('columns = "z"', 'columns = "z', 12),
        ('keep = ["survey"]', "keep = 3", 1),
        ('keep = ["survey"]', 'kept = ["survey"]', 1),
    ],
)
def test_a_bad_file_is_refused_by_its_line(old: str, new: str, line: int) -> None:
    assert TablePlan.from_toml(GOOD).keep == ("survey",)
    assert old in GOOD
    with pytest.raises(PlanError, match=rf"^line {line}: "):
        TablePlan.from_toml(GOOD.replace(old, new))


def test_a_function_is_no_part_of_a_file() -> None:
    own = bitldp.BRR(5, epsilon=1.0, metric=lambda a, b: abs(a - b.T), interval=(0.0, 1.0))
    with pytest.raises(PlanError, match="which a plan's file does not hold"):
        TablePlan([Column(own, "x")]).to_toml()


def test_labels_of_a_mechanism_are_its_categories() -> None:
    column = Column(bitldp.GRR(["no", "yes"], epsilon=1.0), "x")
    assert column.codecs[0].categories == ("no", "yes")
    assert TablePlan.from_toml(TablePlan([column]).to_toml()).digest == TablePlan([column]).digest
