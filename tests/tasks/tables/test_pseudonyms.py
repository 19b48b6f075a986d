"""Pseudonyms: one a person in all releases under a key, and two releases that are joined by them."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')

import pyarrow as pa
from bitldp.tables import Column, DataError, PlanError, ReleasedTable, ReleaseKey, TablePlan
from support.workers import CITIES, near, where, workers

KEY = ReleaseKey(hashlib.sha256(b"of a test").digest())
IDS = {"id": "pseudonym"}


def places(keep: tuple[str, ...] = ()) -> TablePlan:
    city = Column(bitldp.GRR(3, epsilon=4.0), "city", categories=CITIES)
    return TablePlan([city], keep, keep_as=IDS)


def hours() -> TablePlan:
    color = Column(bitldp.GRR(2, epsilon=4.0), "color", categories=["red", "green"])
    return TablePlan(
        [Column(bitldp.Piecewise(epsilon=6.0, interval=(0.0, 80.0)), "hours"), color],
        keep_as={"who": "pseudonym"},
    )


def names_of(table: Any, name: str = "id_pseudonym") -> list[str]:
    found: list[str] = pa.table(table)[name].to_pylist()
    return found


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8(), pa.string(), pa.large_string(), pa.binary()])
def test_a_pseudonym_is_the_hmac_of_the_id(kind: pa.DataType) -> None:
    ids = (
        pa.array([7, 70, 0]).cast(pa.string()).cast(kind)
        if not pa.types.is_integer(kind)
        else pa.array([7, 70, 0], kind)
    )
    table = pa.table({"id": ids, "city": ["Rome", "Oslo", "Rome"]})
    released = places().release(KEY, record="id")(table)
    assert released.column_names == ["city", "id_pseudonym"]
    key = KEY.derive(b"bitldp.tables", b"pseudonym")
    tag = b"i" if pa.types.is_integer(kind) else b"t"
    for text, found in zip((b"7", b"70", b"0"), names_of(released), strict=True):
        assert found == hmac.new(key, tag + text, hashlib.sha256).hexdigest()[:32]


def test_it_is_the_same_in_every_release_under_the_key_and_no_other() -> None:
    table = pa.table({"id": [1, 2], "city": ["Rome", "Oslo"]})
    first = names_of(places().release(KEY, record="id")(table))
    other = places().typed(table, "id").release(KEY, record="id", snapshot="2027")
    assert names_of(other(table)) == first
    renamed = table.rename_columns(["who", "hours"]).set_column(1, "hours", pa.array([1.0, 2.0]))
    assert (
        names_of(
            hours().release(KEY, record="who")(renamed.append_column("color", pa.array(["red"] * 2))),
            "who_pseudonym",
        )
        == first
    )
    assert len({*first, *names_of(places().release(ReleaseKey.generate(), record="id")(table))}) == 4


@pytest.mark.parametrize("library", ["pandas", "polars", "dict"])
def test_frames_have_it(library: str) -> None:
    columns: dict[str, Any] = {"id": np.array([1, 2]), "city": np.array(["Rome", "Oslo"])}
    frame: Any = columns if library == "dict" else pytest.importorskip(library).DataFrame(columns)
    release = places(("kept",)).release(KEY, record="id")
    if library == "dict":
        frame["kept"] = np.array([1, 2])
    else:
        frame = (
            frame.assign(kept=[1, 2])
            if library == "pandas"
            else frame.with_columns(kept=pytest.importorskip("polars").Series([1, 2]))
        )
    made = release(frame)
    assert list(made if library == "dict" else made.columns) == ["city", "kept", "id_pseudonym"]
    assert (
        release.schema(pa.schema([("id", pa.int64()), ("city", pa.string()), ("kept", pa.int64())])).names[-1]
        == "id_pseudonym"
    )


def test_it_is_part_of_the_plan() -> None:
    plan = places()
    assert plan.fingerprint()["keep_as"] == IDS
    assert plan.digest != TablePlan(plan.columns).digest
    assert "keep_as" not in TablePlan(plan.columns).fingerprint()
    assert TablePlan.from_json(plan.to_json()) == plan
    assert TablePlan.from_toml(plan.to_toml()) == plan
    assert plan != TablePlan(plan.columns)
    assert "keep_as={'id': 'pseudonym'}" in repr(plan)
    assert plan.charged == ("city", "id_pseudonym")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: places().release(), "a pseudonym of 'id' needs a key, and record='id'"),
        (lambda: places().release(KEY, record="name"), "a pseudonym of 'id' needs a key"),
        (lambda: TablePlan(places().columns, keep_as={"id": "hash"}), "keep_as: must be"),
        (lambda: TablePlan(places().columns, keep_as={**IDS, "b": "pseudonym"}), "one column has"),
        (lambda: TablePlan(places().columns, keep_as={"city": "pseudonym"}), "is named twice"),
        (lambda: TablePlan(places().columns, ["id_pseudonym"], keep_as=IDS), "is released twice"),
        (lambda: TablePlan.from_toml('keep_as = "id"\n[[column]]\n'), "line 1: keep_as: must be a form"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        make()


@pytest.fixture(scope="module")
def sides() -> tuple[pa.Table, ReleasedTable, ReleasedTable]:
    """N = 8,000 people, of whom 6,000 are in both releases, in another order."""
    people = workers(8_000).append_column("id", pa.array(np.arange(8_000)))
    first = places(("survey",)).release(KEY, record="id")(people.slice(0, 7_000))
    later = people.slice(1_000).take(np.random.default_rng(1).permutation(7_000))
    second = hours().release(KEY, record="who")(later.rename_columns([*later.column_names[:-1], "who"]))
    one, other = ReleasedTable(places(("survey",)), first), ReleasedTable(hours(), second)
    return people.slice(1_000, 6_000), one, other


def test_columns_of_two_releases_are_asked_together(sides: Any) -> None:
    people, one, other = sides
    both = one.join(other)
    assert both.plan.guarantee.record == pytest.approx(14.0)
    near(
        both.table("city", "color"),
        [where(people, city=c, color=d).mean() for c in CITIES for d in ("red", "green")],
    )
    means = both.mean("hours", by=["survey", "city"])
    own = people["hours"].to_numpy()
    near(means, [own[where(people, survey=s, city=c)].mean() for s in "ab" for c in CITIES])
    assert means.n.reshape(2, 3)[:, 0].sum() == 6_000
    assert both.share("city", where={"color": "red"}).n[0] == 6_000


def test_what_is_not_joined(sides: Any) -> None:
    _, one, other = sides
    with pytest.raises(PlanError, match="column 'city': is named twice"):
        one.join(one)
    with pytest.raises(PlanError, match="both plans must keep a pseudonym"):
        one.join(ReleasedTable(TablePlan(hours().columns), other._source))
    with pytest.raises(TypeError, match="must be a ReleasedTable"):
        one.join(other._source)
    twice = ReleasedTable(hours(), [other._source, other._source])
    with pytest.raises(DataError, match="'who_pseudonym': a pseudonym comes up twice"):
        one.join(twice).mean("hours", by="city")
    strangers = ReleasedTable(hours(), other._source.slice(0, 0))
    with pytest.raises(ValueError, match="no rows"):
        one.join(strangers).mean("hours", by="city")
