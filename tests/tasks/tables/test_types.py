"""Types that a plan states: one record has one report, whatever table it comes from, or is refused."""

from __future__ import annotations

import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
from bitldp.ledger import Ledger
from bitldp.tables import Column, DataError, PlanError, ReleaseKey, TablePlan
from bitldp.tables.ids import SeenIds, ids_of
from support.plans import people, plan

KEY = ReleaseKey(b"k" * 32)
HEIGHT = Column(bitldp.Piecewise(epsilon=1.0, interval=(120.0, 220.0)), "height")
CITY = Column(bitldp.GRR(3, epsilon=1.0), "city", categories=["1", "2", "3"])
RNG = np.random.default_rng(4)
HEIGHTS = np.round(RNG.normal(170.0, 8.0, 500), 1)


def table(ids: Any = None, heights: Any = None, cities: Any = None) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(np.arange(500)) if ids is None else ids,
            "height": pa.array(HEIGHTS) if heights is None else heights,
            "city": pa.array(["1", "2"] * 250) if cities is None else cities,
        }
    )


PLAN = TablePlan([HEIGHT, CITY]).typed(table(), "id")


def released(frame: Any, given: TablePlan = PLAN) -> dict[str, Any]:
    return given.release(KEY, record="id")(frame).to_pydict()


def test_a_plan_states_the_types_of_a_table() -> None:
    assert PLAN.types == {"id": "integer", "height": "float32", "city": "text"}
    assert PLAN.typed(table().schema, "id") == PLAN
    assert TablePlan([HEIGHT, CITY]).typed(table().to_pandas(), "id") == PLAN
    assert TablePlan([HEIGHT, CITY]) != PLAN
    for again in (
        TablePlan.from_toml(PLAN.to_toml()),
        TablePlan.from_json(PLAN.to_json()),
        pickle.loads(pickle.dumps(PLAN)),
    ):
        assert again == PLAN
        assert again.digest == PLAN.digest
    assert '[types]\nid = "integer"' in PLAN.to_toml() or "[types]\nheight" in PLAN.to_toml()
    assert "types" in repr(PLAN)
    assert "types" not in plan().to_json() + repr(plan())


def test_types_are_in_the_name_of_the_release() -> None:
    texts = TablePlan([HEIGHT, CITY]).typed(table(pa.array(list(map(str, range(500))))), "id")
    double = TablePlan([HEIGHT, CITY], types={**PLAN.types, "height": "float64"})
    names = {each.release(KEY, record="id").id for each in (TablePlan([HEIGHT, CITY]), PLAN, texts, double)}
    assert len(names) == 4


@pytest.mark.parametrize("type_", [pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64(), pa.uint64()])
def test_all_integers_are_one_type(type_: pa.DataType) -> None:
    small = table().slice(0, 100)
    ids = small.set_column(0, "id", small.column("id").cast(type_))
    assert released(ids) == released(small)


@pytest.mark.parametrize(
    "heights",
    [
        pa.array(HEIGHTS.astype(np.float32)),
        pa.array([Decimal(str(height)) for height in HEIGHTS]),
        pa.array([str(height) for height in HEIGHTS]),
        pa.array(HEIGHTS).dictionary_encode(),
    ],
    ids=["float32", "decimal", "text", "dictionary"],
)
def test_a_number_has_one_report_in_any_precision(heights: pa.Array) -> None:
    assert released(table(heights=heights)) == released(table())


def test_a_plan_that_says_so_takes_numbers_in_double_precision() -> None:
    double = TablePlan([HEIGHT, CITY], types={**PLAN.types, "height": "float64"})
    single = released(table(heights=pa.array(HEIGHTS.astype(np.float32))), double)
    assert np.mean(np.equal(single["height"], released(table(), double)["height"])) < 0.5


def test_the_ends_of_a_range_stay_within_it() -> None:
    """The nearest single of .1 is above .1; where nothing moves to the ends, it would be refused."""
    mechanism = bitldp.Duchi(epsilon=1.0, interval=(-0.1, 0.1), clip=False)
    ends = TablePlan([Column(mechanism, "x")], types={"x": "float32", "id": "integer"})
    frame = pa.table({"id": range(2), "x": [-0.1, 0.1]})
    assert ends.release(KEY, record="id")(frame).num_rows == 2
    with pytest.raises(DataError, match="row 2, column 'x': outside the range"):
        ends.release(KEY, record="id")(pa.table({"id": range(2), "x": [0.0, 0.1000001]}))
    wide = TablePlan([Column(bitldp.Duchi(epsilon=1.0), "x")], types={"x": "float32"})
    assert wide.release()(pa.table({"x": [1e300, -1e300]})).num_rows == 2


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (
            table(pa.array(list(map(str, range(500))))),
            "column 'id': holds text, where the plan states integer",
        ),
        (table(pa.array([b"%d" % i for i in range(500)])), "column 'id': holds bytes, where the plan states"),
        (
            table(heights=pa.array(np.arange(500) % 50 + 150)),
            "column 'height': holds integer, where the plan",
        ),
        (table(cities=pa.array([1, 2] * 250)), "column 'city': holds integer, where the plan states text"),
        (table(heights=pa.array([True] * 500)), "column 'height': holds boolean, where"),
    ],
    ids=["text ids", "ids of bytes", "whole numbers", "numbered categories", "booleans"],
)
def test_another_type_is_refused_wherever_a_partition_is_released(frame: pa.Table, words: str) -> None:
    made = PLAN.release(KEY, record="id")
    calls = (
        made,
        lambda given: made.schema(given.schema),
        lambda given: list(made.batches(given.to_batches())),
    )
    for call in calls:
        with pytest.raises(PlanError, match=words):
            call(frame)


def test_minus_one_and_the_largest_integer_are_two_ids() -> None:
    signed, unsigned = pa.array([-1, 5]), pa.array([(1 << 64) - 1, 5], pa.uint64())
    rows = [pa.table({"id": ids, "height": [150.0] * 2, "city": ["1"] * 2}) for ids in (signed, unsigned)]
    made = PLAN.release(KEY, record="id")
    first, second = (made(each).to_pydict() for each in rows)
    assert first["height"][0] != second["height"][0]
    assert first["height"][1] == second["height"][1]
    only = [each.slice(0, 1) for each in rows]
    assert made.check_ids(only) == 2
    assert made.check_ids([made.ids(each)["ids"][0].as_py() for each in only]) == 2
    with pytest.raises(DataError, match="an id comes up twice"):
        made.check_ids(rows)


def test_ids_without_a_sign_that_are_large_are_looked_for_across_batches() -> None:
    seen = SeenIds("id")
    large = pa.array(np.arange(1 << 63, (1 << 63) + 1000, dtype=np.uint64))
    seen.add(ids_of(large, "id", 1, typed=True))
    seen.add(ids_of(pa.array(np.arange(-(1 << 63), -(1 << 63) + 1000)), "id", 1, typed=True))
    seen.check()
    assert len(seen) == 2000
    seen.add(ids_of(large[7:8], "id", 1, typed=True))
    with pytest.raises(DataError, match="an id comes up twice"):
        seen.check()


def test_the_types_of_what_leaves_are_known_on_the_driver() -> None:
    made = PLAN.release(KEY, record="id")
    assert made.schema(table().schema) == made(table()).schema
    assert list(made.meta(table().to_pandas())) == ["height", "city"]


@pytest.mark.slow
def test_a_file_of_texts_is_read_by_a_typed_plan(tmp_path: Path) -> None:
    """Its ids are texts, its numbers and categories those that the plan states."""
    from support.command import invoke

    (tmp_path / "key").write_text("5eed" * 16)
    (tmp_path / "key").chmod(0o600)
    source = tmp_path / "people.csv"
    source.write_text("id,height,city\n" + "".join(f"a{i},{HEIGHTS[i]},{i % 3 + 1}\n" for i in range(50)))
    command = ("--record", "id", "--key-file", tmp_path / "key", "-q", "--plan", tmp_path / "plan.toml", "-o")
    for kind, code in (("text", 0), ("integer", 2)):
        TablePlan(
            [Column(HEIGHT.mechanism, "height", nulls="report"), CITY],
            types={"id": kind, "height": "float32", "city": "integer"},
        ).write(tmp_path / "plan.toml")
        result = invoke("perturb", source, *command, tmp_path / f"{kind}.parquet")
        assert result.exit_code == code, result.stderr
    assert "column 'id': holds text, where the plan states integer" in " ".join(result.stderr.split())
    assert invoke("estimate", tmp_path / "text.parquet").exit_code == 0


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ({"height": "float32"}, "column 'city' has no type"),
        ({"height": "double", "city": "text"}, "types: 'height' must be one of integer, float32"),
        ({"height": "float32", "city": "text", "id": "text", "other": "text"}, "'other' is not a column"),
        (["text"], "a type for each name"),
    ],
)
def test_types_that_do_not_fit_the_plan_are_refused(types: Any, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        TablePlan([HEIGHT, CITY], types=types)


def test_a_typed_plan_needs_the_type_of_the_ids_that_it_is_released_by() -> None:
    with pytest.raises(PlanError, match=r"not that of 'number'; plan\.typed adds it"):
        PLAN.release(KEY, record="number")
    with pytest.raises(PlanError, match="column 'height': has no values that would show its type"):
        TablePlan([HEIGHT]).typed(pa.table({"height": pa.nulls(3)}))
    with pytest.raises(PlanError, match=r"column 'id': holds timestamp\[s\]; a plan states integer"):
        PLAN.typed(table(pa.array(np.arange(500), pa.timestamp("s"))), "id")


# -- plans that state no types: their reports are those of before, and one release is of one kind of table


def test_a_release_without_types_keeps_to_those_of_its_first_table() -> None:
    frame = people(50)
    given = plan().release(KEY, record="id")
    given(frame)
    texts = frame.set_column(1, "id", frame.column("id").cast(pa.string()))
    single = frame.set_column(2, "height", frame.column("height").cast(pa.float32()))
    for other in (texts, single):
        for made in (given, plan().release(KEY, record="id")):
            if made is not given:
                made.meta(frame.to_pandas())  # on the driver, before any partition
            with pytest.raises(PlanError, match="where the first table held"):
                made(other)
    assert plan().release()(texts).num_rows == plan().release()(frame).num_rows == 50  # fresh ones are of any


def test_a_release_that_was_charged_for_one_kind_of_table_is_refused_for_another() -> None:
    frame, ledger = people(50), Ledger(20.0)
    texts = frame.set_column(1, "id", frame.column("id").cast(pa.string()))
    first, again, other, unseen = (plan().release(KEY, record="id") for _ in range(4))
    for made, shown in ((first, frame), (again, frame), (other, texts)):
        made.schema(shown.schema)
    assert first.charge(ledger) is not None
    assert again.charge(ledger) is None
    assert unseen.charge(ledger) is None
    with pytest.raises(PlanError, match="was released of a table of other types"):
        other.charge(ledger)
