"""Plans as forms: what clients send becomes a released table, which the command line answers from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bitldp.base.errors import PlanError
from bitldp.base.keys import keys
from bitldp.client import ClientDocument, DocumentError, open_document
from bitldp.tables import Column, ReleaseKey, TablePlan
from support.client_library import ABSENT, LibraryClient, LibraryRefusedError, library_path
from support.clients import changed
from support.command import invoke

PLAN = TablePlan(
    [
        Column(bitldp.Piecewise(epsilon=2.0, interval=(120.0, 220.0)), "height"),
        Column(bitldp.GRR(3, epsilon=3.0), "city", categories=["Paris", "Rome", "Oslo"]),
        Column(bitldp.OUE(4, epsilon=3.0), "food", categories=["a", "b", "c"], nulls="category"),
        Column(bitldp.BlockDesign(40, epsilon=2.0), "age", categories=[str(each) for each in range(40)]),
        Column(bitldp.FRR(2, epsilon=6.0, integer_bits=3), ["u", "v"]),
        Column(bitldp.FRR(1, epsilon=6.0, integer_bits=3, bits=6), "w", output="bits"),
        Column(bitldp.Duchi(epsilon=2.0, features=3, spend="sample", k=1), ["p", "q", "r"]),
        Column(bitldp.LabelLaplace(3, epsilon=2.0), "shade", categories=["x", "y", "z"]),
    ]
)


def answers(rng: np.random.Generator) -> tuple[Any, ...]:
    """Return what one person answers."""
    city = str(rng.choice(["Paris", "Rome", "Oslo"], p=[0.5, 0.3, 0.2]))
    return (rng.normal(170.0, 8.0), city, "", 7, [0.5, -0.5], 1.0, [0.5, 0.2, -0.3], "y")


@pytest.fixture(scope="module")
def reports() -> list[bytes]:
    """Return the reports of 400 people, seeded."""
    form, rng = open_document(PLAN.client_document()), np.random.default_rng(4)
    return [form.randomize(*answers(rng), rng=index) for index in range(400)]


def test_a_form_says_what_it_asks() -> None:
    form = open_document(PLAN.client_document(spends=("survey", 1)))
    assert form.epsilon == pytest.approx(PLAN.guarantee.record, rel=1e-12)
    assert form.fingerprint == PLAN.digest[:32]
    assert [record.names for record in form.program.records] == [codec.columns for codec in PLAN.codecs]
    assert form.program.records[1].labels == ("Paris", "Rome", "Oslo")
    assert form.program.records[2].labels == ("a", "b", "c", "")
    assert form.program.records[0].interval == (120.0, 220.0)


def test_what_clients_send_is_a_released_table(reports: list[bytes]) -> None:
    table = PLAN.from_clients(reports)
    people = PLAN.release()(
        {
            "height": [170.0],
            "city": ["Rome"],
            "food": ["a"],
            "age": ["7"],
            **{name: [0.5] for name in "uvwpqr"},
            "shade": ["y"],
        }
    )
    assert table.column_names == list(people)
    assert table.schema.metadata[b"bitldp.plan"].decode() == PLAN.digest
    estimates = (
        PLAN.aggregate().update(PLAN.from_clients(reports[:150])).update(PLAN.from_clients(reports[150:]))
    )
    rows = estimates.estimate().to_pylist()
    assert rows == PLAN.aggregate().update(table).estimate().to_pylist()
    wanted = {
        ("height", None): 170.0,
        ("city", "Paris"): 0.5,
        ("food", None): 1.0,
        ("age", "7"): 1.0,
        ("u", None): 0.5,
        ("w", None): 1.0,
        ("q", None): 0.2,
        ("shade", "y"): 1.0,
    }
    found = {(row["column"], row["category"]): row for row in rows}
    for key, truth in wanted.items():
        assert abs(found[key]["estimate"] - truth) < 5.0 * found[key]["stderr"], key


def test_the_command_line_answers_from_the_collectors_file(reports: list[bytes], tmp_path: Path) -> None:
    PLAN.write(tmp_path / "plan.toml")
    with pq.ParquetWriter(tmp_path / "reports.parquet", PLAN.from_clients(reports[:1]).schema) as file:
        for start in range(0, 400, 100):
            file.write_table(PLAN.from_clients(reports[start : start + 100]))
    result = invoke(
        "estimate", tmp_path / "reports.parquet", "--plan", tmp_path / "plan.toml", "--format", "json"
    )
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)
    (height,) = [row for row in rows if row["column"] == "height"]
    assert height["records"] == 400
    assert abs(height["estimate"] - 170.0) < 5.0 * height["stderr"]
    other = TablePlan([Column(bitldp.Piecewise(epsilon=1.0, interval=(120.0, 220.0)), "height")])
    other.write(tmp_path / "other.toml")
    for plan, message in (("other.toml", "plan"), ("reports.parquet", "--plan: is for a TOML file")):
        refused = invoke("estimate", tmp_path / "reports.parquet", "--plan", tmp_path / plan)
        assert refused.exit_code != 0
        assert message in refused.stderr


def test_reports_of_another_length_are_refused() -> None:
    whole = bytes(open_document(PLAN.client_document()).report_bytes())
    with pytest.raises(ValueError, match=r"at index 1$"):
        PLAN.from_clients([whole, b"\x00"])


def test_a_code_that_is_none_is_refused() -> None:
    plan = TablePlan([Column(bitldp.GRR(3, epsilon=1.0), "city", categories=["a", "b", "c"])])
    with pytest.raises(ValueError, match=r"reports: the integer at index \(1,\) is outside"):
        plan.from_clients([b"\x80", b"\xc0"])


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (
            Column(bitldp.GRR(2, epsilon=1.0), "x", categories=["a", ""], nulls="fill", fill="a"),
            "must not hold '', which a client passes for a missing value",
        ),
        (
            Column(bitldp.HeavyHitters(epsilon=1.0, alphabet="ab", length=3), "x"),
            "a client takes categories, numbers",
        ),
        (Column(bitldp.Gaussian(epsilon=1.0, delta=1e-6, features=2), ["x", "y"]), "adds up the deltas"),
    ],
)
def test_a_column_that_no_client_can_release_is_refused(column: Column, reason: str) -> None:
    with pytest.raises(PlanError, match=reason):
        TablePlan([column]).client_document()


def test_a_form_keeps_nothing() -> None:
    plan = TablePlan([Column(bitldp.WarnerRR(epsilon=1.0), "x", categories=["a", "b"])], keep=["id"])
    with pytest.raises(PlanError, match="keep columns as they are"):
        plan.client_document()


GAPS = TablePlan(
    [
        Column(bitldp.Piecewise(epsilon=2.0, interval=(0.0, 10.0)), "hours", nulls="report"),
        Column(bitldp.Duchi(epsilon=2.0, features=2), ["a", "b"], nulls="fill", fill=0.25),
        Column(bitldp.Piecewise(epsilon=4.0, features=2), ["height", "age"], interval=[(120, 220), (18, 90)]),
        Column(bitldp.GRR(4, epsilon=1.0), "city", categories=["x", "y", "z"], nulls="category"),
    ]
)
ANSWERS = [
    (4.5, 0.5, -0.5, 171.0, 40.0, "x"),
    (None, None, 0.75, 230.0, 17.0, None),
    (11.0, 1.0, None, 120.0, 90.0, "z"),
]


def given(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what a form gives its client of a row of answers."""
    hours, a, b, height, age, city = row
    numbers = [np.nan if each is None else each for each in (hours, a, b)]
    return (
        numbers[0],
        "missing" if hours is None else "present",
        numbers[1:],
        [height, age],
        city or "",
    )


def answered() -> pa.Table:
    names = ("hours", "a", "b", "height", "age", "city")
    return pa.table(dict(zip(names, (list(each) for each in zip(*ANSWERS, strict=True)), strict=True)))


def raw(document: ClientDocument, row: tuple[Any, ...]) -> bytes:
    """Return the bytes of a record of what is asked of people with gaps."""
    return spelled(document, given(row))


def spelled(document: ClientDocument, values: tuple[Any, ...]) -> bytes:
    """Return the bytes of the values of a record, by their labels."""
    parts = []
    for each, record in zip(values, document.program.records, strict=True):
        value = record.labels.index(each) if record.labels is not None else each
        parts.append(np.atleast_1d(np.asarray(value, record.dtype)).tobytes())
    return b"".join(parts)


DAY = np.datetime64("2001-02-03T18:00", "s")
KINDS = TablePlan(
    [
        Column(
            bitldp.GRR(4, epsilon=3.0),
            "city",
            categories=["Paris", "Rome", "Oslo", "Bern"],
            nulls="fill",
            fill="Rome",
        ),
        Column(
            bitldp.Piecewise(epsilon=4.0, features=2, clip=False),
            ["height", "age"],
            interval=[(120, 220), (18, 90)],
        ),
        Column(
            bitldp.Piecewise(epsilon=2.0, interval=(0.0, 20_000.0)),
            "born",
            unit="days",
            nulls="fill",
            fill=9_000.0,
        ),
        Column(bitldp.BRR(16, epsilon=2.0, interval=(0.0, 1.0)), "part", nulls="fill", fill=0.5),
        Column(
            bitldp.OUE(256, epsilon=2.0),
            "code",
            categories=[str(i) for i in range(256)],
            nulls="fill",
            fill="255",
        ),
    ]
)
#: Rows of a table, and what a form gives of them.
PEOPLE: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = [
    (("Oslo", 171.0, 40.0, DAY, 0.3, "7"), ("Oslo", [171.0, 40.0], 11_356.75, 0.3, "7")),
    ((None, 220.0, 18.0, None, None, None), ("", [220.0, 18.0], np.nan, np.nan, "")),
    (("Rome", 120.0, 90.0, None, 1.5, "255"), ("Rome", [120.0, 90.0], 9_000.0, 1.5, "255")),
]


def test_missing_categories_times_and_points_are_the_clients() -> None:
    text = KINDS.client_document()
    form = open_document(text)
    city, sizes, born, part, code = form.program.records
    assert (city.fill, city.labels, city.below) == (1, ("Paris", "Rome", "Oslo", "Bern", ""), 4)
    assert (sizes.outside, sizes.intervals) == ("refuse", ((120.0, 220.0), (18.0, 90.0)))
    assert (born.unit, born.fill, part.interval, part.fill) == ("days", 9_000.0, (0.0, 1.0), 0.5)
    assert (code.type, code.fill, len(code.labels or ())) == ("u16", 255, 257)
    (_, first), (_, second), _ = PEOPLE
    filled = ("Rome", second[1], 9_000.0, 0.5, "255")
    coded = (4, second[1], np.datetime64("NaT"), np.nan, 256)
    for seed in range(20):
        report = form.randomize(*filled, rng=seed)
        assert form.randomize(*second, rng=seed) == form.randomize(*coded, rng=seed) == report
        day = (*first[:2], DAY, *first[3:])
        assert form.randomize(*day, rng=seed) == form.randomize(*first, rng=seed)
    for wrong in ([171.0, 17.5], [230.0, 40.0], [np.nan, 40.0]):
        with pytest.raises(ValueError, match="is NaN or outside its interval"):
            form.randomize("Oslo", wrong, *first[2:])
    with pytest.raises(ValueError, match="not below 4"):
        form.randomize(5, *first[1:])
    table = KINDS.from_clients([form.randomize(*first, rng=index) for index in range(300)])
    found = {
        (row["column"], row["category"]): row
        for row in KINDS.aggregate().update(table).estimate().to_pylist()
    }
    for key, truth in {("city", "Oslo"): 1.0, ("age", None): 40.0, ("born", None): 11_356.75}.items():
        assert abs(found[key]["estimate"] - truth) < 5.0 * found[key]["stderr"], key


def test_clients_know_the_units_of_plans() -> None:
    from bitldp.client.record import UNITS
    from bitldp.tables import values

    assert {unit: int(np.timedelta64(1, code) / np.timedelta64(1, "ns")) for unit, code in UNITS.items()} == (
        values.UNITS
    )


def test_the_library_takes_them_as_the_release_does() -> None:
    path = library_path()
    if path is None:
        pytest.skip(ABSENT)
    release = KINDS.release(key=ReleaseKey.generate(), record="person")
    names = ("city", "height", "age", "born", "part", "code")
    columns = zip(*(row for row, _ in PEOPLE), strict=True)
    table = pa.table(dict(zip(names, (pa.array(list(each)) for each in columns), strict=True)))
    wanted = release(table.append_column("person", pa.array([5, 6, 7])))
    text = KINDS.client_document(keyed="u64")
    document, secret = open_document(text), release.client_secret()
    with LibraryClient(text, path) as client:
        reports = [
            client.keyed(secret, np.uint64(5 + index).tobytes(), spelled(document, given))
            for index, (_, given) in enumerate(PEOPLE)
        ]
        assert KINDS.from_clients(reports).to_pydict() == wanted.to_pydict()
        for seed in range(30):
            own = b"".join(key for key in keys(seed, document.program.streams) if key is not None)
            given = PEOPLE[seed % 3][1]
            assert client.with_key(own, spelled(document, given)) == document.randomize(*given, rng=seed)
        first = PEOPLE[0][1]
        for wrong in ([171.0, 17.5], [230.0, 40.0], [np.nan, 40.0]):
            with pytest.raises(LibraryRefusedError, match="outside what the document allows"):
                client.randomize(spelled(document, (first[0], wrong, *first[2:])))
        record = spelled(document, first)
        with pytest.raises(LibraryRefusedError, match="outside what the document allows"):
            client.randomize(b"\x05" + record[1:])


def test_gaps_and_intervals_of_columns_are_the_clients() -> None:
    form = open_document(GAPS.client_document())
    hours, present, numbers, sizes, city = form.program.records
    assert (hours.fill, present.labels, present.names) == (5.0, ("missing", "present"), ("hours_present",))
    assert (numbers.fill, sizes.intervals) == (0.25, ((120.0, 220.0), (18.0, 90.0)))
    assert city.labels == ("x", "y", "z", "")
    rng, people = np.random.default_rng(6), 600
    rows = [
        (None if index % 3 == 0 else rng.normal(4.0, 1.0), None, 0.5, rng.normal(170.0, 8.0), 40.0, "y")
        for index in range(people)
    ]
    table = GAPS.from_clients([form.randomize(*given(row), rng=index) for index, row in enumerate(rows)])
    found = {
        (row["column"], row["category"], row["what"]): row
        for row in GAPS.aggregate().update(table).estimate().to_pylist()
    }
    truth = {"hours": float(np.mean([row[0] for row in rows if row[0]])), "a": 0.25, "b": 0.5, "age": 40.0}
    for (column, category, _), row in found.items():
        if category is None and column in truth and row["what"] == "mean":
            assert abs(row["estimate"] - truth.pop(column)) < 5.0 * row["stderr"], column
    assert not truth


@pytest.mark.parametrize("ids", ["u64", "text"])
def test_keyed_clients_make_the_reports_of_the_release(ids: Any) -> None:
    path = library_path()
    if path is None:
        pytest.skip(ABSENT)
    names: list[Any] = [7, 1 << 60, 3] if ids == "u64" else ["Ada", "Bo", "Cy"]
    key = ReleaseKey.generate()
    release = GAPS.release(key=key, record="person")
    wanted = release(answered().append_column("person", pa.array(names)))
    text = GAPS.client_document(keyed=ids)
    document, secret = open_document(text), release.client_secret()
    with LibraryClient(text, path) as client:
        reports = []
        for name, row in zip(names, ANSWERS, strict=True):
            spelled = np.uint64(name).tobytes() if ids == "u64" else name.encode()
            reports.append(client.keyed(secret, spelled, raw(document, row)))
            assert client.keyed(secret, spelled, raw(document, row)) == reports[-1]
    made = GAPS.from_clients(reports)
    assert made.to_pydict() == wanted.to_pydict()


def test_the_library_fills_and_maps_as_python_does() -> None:
    path = library_path()
    if path is None:
        pytest.skip(ABSENT)
    text = GAPS.client_document()
    document = open_document(text)
    with LibraryClient(text, path) as client:
        for seed in range(30):
            row = ANSWERS[seed % 3]
            own = b"".join(key for key in keys(seed, document.program.streams) if key is not None)
            assert client.with_key(own, raw(document, row)) == document.randomize(*given(row), rng=seed)
        missing = raw(document, (1.0, 0.0, 0.0, np.nan, 40.0, "x"))
        with pytest.raises(LibraryRefusedError, match="outside what the document allows"):
            client.randomize(missing)
    single = TablePlan([Column(bitldp.Duchi(epsilon=2.0), "a", nulls="fill", fill=0.25)])
    text = single.client_document(dtype="float32")
    with LibraryClient(text, path) as client:
        own = b"".join(key for key in keys(2, 1) if key is not None)
        report = client.with_key(own, np.float32(np.nan).tobytes())
        assert report == client.with_key(own, np.float32(0.25).tobytes())
        assert report == open_document(text).randomize(np.float32(np.nan), rng=2)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("parts.0.record.fill", "7ff8000000000000"),
        ("parts.0.record.fill", 1),
        ("parts.3.record.span", ...),
        ("parts.3.record.intervals", ...),
        ("parts.3.record.intervals", []),
        ("parts.3.record.intervals.0", ["3ff0000000000000", "3ff0000000000000"]),
        ("parts.3.record.type", "f32"),
        ("parts.1.record.fill", "3ff0000000000000"),
        ("parts.1.record.fill", 1),  # which has two labels
        ("parts.2.record.unit", "weeks"),
        ("parts.1.record.unit", "days"),
    ],
)
def test_numbers_that_cannot_be_prepared_are_refused(path: str, value: Any) -> None:
    refused(GAPS, path, value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("parts.0.record.fill", 4),
        ("parts.0.record.fill", -1),
        ("parts.0.record.fill", ...),
        ("parts.0.record.labels", ["Paris", "Rome", "Oslo", "Bern"]),
        ("parts.0.record.below", 5),
        ("parts.0.record.below", [4]),
        ("parts.1.record.span", ...),
        ("parts.2.record.unit", 1),
        ("parts.4.record.type", "u8"),
    ],
)
def test_values_that_cannot_be_missing_are_refused(path: str, value: Any) -> None:
    refused(KINDS, path, value)


def refused(plan: TablePlan, path: str, value: Any) -> None:
    """Assert that a document is refused with another value at a dotted path; ... takes it away."""
    text = changed(plan.client_document(), {path: value})
    with pytest.raises(DocumentError):
        open_document(text)
    library = library_path()
    if library is not None:
        with pytest.raises(LibraryRefusedError):
            LibraryClient(text, library)


def test_a_record_of_parts_that_is_one_value_has_no_keyed_reports_here() -> None:
    path = library_path()
    if path is None:
        pytest.skip(ABSENT)
    secret = bytes(range(1, 33))
    whole = bitldp.BitRand(3, categories=4, epsilon_x=3.0, epsilon_y=1.0)
    text = bitldp.Memoized(whole, secret, question="pair").client_document()
    record = np.zeros(3).tobytes() + b"\x02"
    with LibraryClient(text, path) as client, pytest.raises(LibraryRefusedError, match="no keyed release"):
        client.keyed(secret, bytes(8), record)


def test_a_key_needs_columns_that_it_can_release() -> None:
    plan = TablePlan([Column(bitldp.Duchi(epsilon=2.0, features=3, spend="sample", k=1), ["p", "q", "r"])])
    with pytest.raises(PlanError, match="draws its reports anew"):
        plan.client_document(keyed="u64")
    with pytest.raises(PlanError, match="has no key"):
        plan.release().client_secret()
