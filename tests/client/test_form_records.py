"""Forms of records of several attributes, of hierarchies, and of numbers on the points of an interval."""

from __future__ import annotations

import json
from typing import Any

import bitldp
import numpy as np
import pyarrow as pa
import pytest
from bitldp.base.errors import PlanError
from bitldp.base.keys import keys
from bitldp.client import DocumentError, open_document
from bitldp.client.notation import canonical, digest
from bitldp.tables import Column, TablePlan
from support.client_library import ABSENT, LibraryClient, LibraryRefusedError, library_path
from support.clients import SCHEMA, changed

TWO = [["a", "b"], ["x", "y", "z"]]
ALIKE = [["a", "b", "c"], ["x", "y", "z"]]
MANY = [["a", "b"], [str(each) for each in range(40)]]

#: Columns, and records of them.
KINDS: dict[str, tuple[Column, list[tuple[Any, ...]]]] = {
    "a record of which one attribute is drawn": (
        Column(bitldp.CategoricalRecord([2, 3], epsilon=2.0), ["p", "q"], categories=TWO),
        [("a", "y"), ("b", "z")],
    ),
    "attributes that are alike, with other labels": (
        Column(bitldp.CategoricalRecord([3, 3], epsilon=2.0), ["p", "q"], categories=ALIKE),
        [("a", "z"), ("c", "x")],
    ),
    "attributes whose missing values are a category": (
        Column(bitldp.CategoricalRecord([4, 4], epsilon=2.0), ["p", "q"], categories=ALIKE, nulls="category"),
        [("a", None), (None, "y")],
    ),
    "attributes of which some are reported as bits": (
        Column(
            bitldp.CategoricalRecord([2, 40], epsilon=2.0, oracle=("GRR", "OUE")),
            ["p", "q"],
            categories=MANY,
        ),
        [("a", "39"), ("b", "0")],
    ),
    "a record of which all attributes are released": (
        Column(bitldp.CategoricalRecord([2, 3], epsilon=2.0, spend="split"), ["p", "q"], categories=TWO),
        [("a", "y"), ("b", "z")],
    ),
    "a cap over all attributes": (
        Column(bitldp.RecordCap([2, 3], epsilon=2.0), ["p", "q"], categories=TWO),
        [("a", "y"), ("b", "z")],
    ),
    "numbers and categories": (
        Column(bitldp.MixedRecord([2, 3], features=2, epsilon=4.0), ["u", "v", "p", "q"], categories=TWO),
        [(0.5, -1.5, "a", "y"), (0.0, 1.0, "b", "z")],
    ),
    "numbers of their own intervals and categories": (
        Column(
            bitldp.MixedRecord([2, 3], features=2, epsilon=4.0),
            ["u", "v", "p", "q"],
            categories=TWO,
            interval=[(0, 10), (5, 6)],
        ),
        [(4.0, 5.25, "a", "y"), (11.0, 6.0, "b", "z")],
    ),
    "numbers of their own intervals that are drawn": (
        Column(
            bitldp.Duchi(epsilon=2.0, features=2, spend="sample", k=1), ["u", "v"], interval=[(0, 1), (4, 9)]
        ),
        [(0.5, 4.0), (0.1, 8.5)],
    ),
    "a hierarchy": (
        Column(bitldp.Hierarchy(40, epsilon=2.0), "age", interval=(18, 57)),
        [(18.0,), (33.5,), (99.0,)],
    ),
    "a hierarchy of numbers from 0, of which some are missing": (
        Column(bitldp.Hierarchy(16, epsilon=2.0), "age", nulls="fill", fill=2.0),
        [(None,), (14.5,), (-3.0,)],
    ),
    "points": (
        Column(bitldp.GRR(5, epsilon=2.0), "n", interval=(0, 1)),
        [(0.3,), (0.375,), (7.0,)],
    ),
    "points as codes, of dates": (
        Column(bitldp.GRR(11, epsilon=2.0), "n", interval=(0, 10_000), unit="days", output="codes"),
        [(2_500.0,), (9_999.0,)],
    ),
}


def given(column: Column, row: tuple[Any, ...]) -> list[Any]:
    """Return what a form gives its client of a record: an array for each of the document's records."""
    document = open_document(TablePlan([column]).client_document())
    texts = any(record.labels for record in document.program.records)
    values = [each if each is not None else "" if texts else np.nan for each in row]
    result, start = [], 0
    for record in document.program.records:
        result.append(values[start : start + record.columns])
        start += record.columns
    return result


def asked(column: Column, row: tuple[Any, ...]) -> pa.Table:
    """Return a table of one record."""
    if column.unit is not None:
        return pa.table({"n": pa.array([int(row[0])], pa.date32())})
    names, text = column.codecs[0].inputs, column.categories is not None and len(row) == 2
    kind = pa.string() if text else None
    values = [pa.array([each], kind or pa.float64() if each is None else kind) for each in row]
    return pa.table(dict(zip(names, values, strict=True)))


@pytest.mark.parametrize("name", KINDS)
def test_a_clients_report_is_what_the_plan_writes(name: str) -> None:
    """Thirty reports of each record, under a key each: the columns that the release itself writes."""
    column, rows = KINDS[name]
    plan, (codec,) = TablePlan([column]), column.codecs
    form = open_document(plan.client_document())
    assert [each for record in form.program.records for each in record.names or ()] == list(codec.columns)
    for row in rows:
        values = given(column, row)
        table = asked(column, row)
        x = codec.read(table, 1)
        made = plan.from_clients([form.randomize(*values, rng=seed) for seed in range(30)])
        for seed in range(30):
            reports = codec.mechanism.randomize(*codec._inputs(x), rng=seed, **codec._options())
            kind = table.schema.field(codec.inputs[0]).type
            written = codec.written(codec._values(reports), kind)
            wanted = pa.table({each: codec.signed(values) for each, values in written})
            assert made.slice(seed, 1).replace_schema_metadata().equals(wanted), (row, seed)


@pytest.mark.parametrize("name", KINDS)
def test_the_library_makes_the_same_reports(name: str) -> None:
    """Forty reports of each record, under a key each, beside another column on both sides."""
    path = library_path()
    if path is None:
        pytest.skip(ABSENT)
    column, rows = KINDS[name]
    city = Column(bitldp.GRR(3, epsilon=1.0), "city", categories=["Paris", "Rome", "Oslo"])
    food = Column(bitldp.OUE(3, epsilon=1.0), "food", categories=["r", "s", "t"])
    plan = TablePlan([city, column, food])
    text = plan.client_document(header=True)
    form = open_document(text)
    assert form.epsilon == pytest.approx(plan.guarantee.record, rel=1e-12)
    with LibraryClient(text, path) as client:
        assert client.epsilon == pytest.approx(form.epsilon, rel=1e-12)
        for row in rows:
            values = ["Oslo", *given(column, row), "s"]
            raw = b"".join(
                coded(record, np.atleast_1d(np.asarray(each))).tobytes()
                for record, each in zip(form.program.records, values, strict=True)
            )
            for seed in range(40):
                own = b"".join(key for key in keys(seed, form.program.streams) if key is not None)
                assert client.with_key(own, raw) == form.randomize(*values, rng=seed)


def coded(record: Any, values: Any) -> Any:
    """Return values of a record in its own type, labels by their codes."""
    if record.labels is None:
        return values.astype(record.dtype)
    every = [record.texts[index % len(record.texts)].index(each) for index, each in enumerate(values)]
    return np.array(every, record.dtype)


@pytest.mark.statistical
def test_estimates_follow_the_answers() -> None:
    """Three thousand people, seeded: within five standard errors of six truths, alpha 4e-6."""
    columns = [KINDS[name][0] for name in ("a record of which one attribute is drawn", "a hierarchy")]
    record = bitldp.MixedRecord([2], features=1, epsilon=4.0)
    mixed = Column(record, ["u", "r"], categories=[["c", "d"]], interval=(0, 10))
    plan = TablePlan([*columns, mixed, Column(bitldp.GRR(5, epsilon=2.0), "n", interval=(0, 1))])
    form, rng = open_document(plan.client_document()), np.random.default_rng(8)
    reports = []
    for index in range(3000):
        p, q = rng.choice(["a", "b"], p=[0.7, 0.3]), rng.choice(["x", "y", "z"], p=[0.2, 0.3, 0.5])
        age, u = float(rng.integers(18, 58)), rng.uniform(2.0, 6.0)
        reports.append(form.randomize(p, q, age, u, "c", rng.choice([0.25, 0.75]), rng=index))
    rows = plan.aggregate().update(plan.from_clients(reports)).estimate().to_pylist()
    found = {(row["column"], row["category"]): row for row in rows if row["what"] in ("share", "mean")}
    wanted = {("p", "a"): 0.7, ("q", "z"): 0.5, ("u", None): 4.0, ("r", "c"): 1.0, ("n", None): 0.5}
    for key, truth in wanted.items():
        assert abs(found[key]["estimate"] - truth) < 5.0 * found[key]["stderr"], key
    (median,) = [row for row in rows if row["column"] == "age" and row["category"] == "0.5"]
    assert abs(median["estimate"] - 37.5) < 5.0 * median["stderr"]


def test_documents_of_records_are_of_the_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason='needs pip install "bitldp[dev]"')
    schema = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    for column, _ in KINDS.values():
        schema.validate(json.loads(TablePlan([column]).client_document()))


def test_a_missing_attribute_needs_a_label_of_its_own() -> None:
    mechanism = bitldp.CategoricalRecord([3, 3], epsilon=1.0)
    column = Column(mechanism, ["p", "q"], categories=[["a", ""], ["x", "y"]], nulls="category")
    with pytest.raises(PlanError, match="must not hold '', which a client passes"):
        TablePlan([column]).client_document()


def test_a_record_has_no_keyed_reports() -> None:
    for name in ("a record of which one attribute is drawn", "a cap over all attributes", "a hierarchy"):
        with pytest.raises(PlanError, match="draws its reports anew, with no key"):
            TablePlan([KINDS[name][0]]).client_document(keyed="u64")


ALIKE_PARTS = "attributes that are alike, with other labels"


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        (ALIKE_PARTS, "parts.0.parts.0.record.labels", [["a", "b", "c"]]),
        (ALIKE_PARTS, "parts.0.parts.0.record.labels", [["a", "b", "c"], ["x", "y"]]),
        (ALIKE_PARTS, "parts.0.parts.0.record.labels", [["a", "b", "c"], ["x", "x", "z"]]),
        (ALIKE_PARTS, "parts.0.parts.0.record.labels", [["a", "b", "c"], "xyz"]),
        ("a cap over all attributes", "parts.0.record.labels", ["a", "b"]),
        ("a cap over all attributes", "parts.0.record.labels", [["x", "y", "z"], ["a", "b"]]),
        (ALIKE_PARTS, "parts.0.chunked", ...),
        (ALIKE_PARTS, "parts.0.public.0.k", 2),
        (ALIKE_PARTS, "parts.0.public.0.of", 3),
        (ALIKE_PARTS, "parts.0.keys", 1),
        ("points", "parts.0.record.points", 6),
        ("points", "parts.0.record.points", ...),
        ("points", "parts.0.record.outside", "refuse"),
        ("points", "parts.0.record.intervals", ...),
        ("points", "parts.0.record.span", ["0000000000000000", "4010000000000000"]),
        ("points", "parts.0.record.type", "f32"),
        ("a hierarchy", "parts.0.record.points", 41),
        ("a hierarchy", "parts.0.cells", ...),
    ],
)
def test_a_form_that_does_not_hold_is_refused(name: str, path: str, value: Any) -> None:
    text = TablePlan([KINDS[name][0]]).client_document()
    refused(changed(text, {path: value}))


def test_a_draw_inside_a_draw_is_refused() -> None:
    fields = json.loads(TablePlan([KINDS[ALIKE_PARTS][0]]).client_document())
    (inner,) = fields["parts"]
    outer = {"chunked": True, "keys": inner["keys"] + 1, "parts": [inner], "public": inner["public"]}
    fields["parts"] = [outer | {"report": inner["report"]}]
    fields["keys"] += 1
    refused(canonical(fields | {"sha256": digest(fields)}))


def test_a_column_that_uses_its_channel_twice_costs_twice() -> None:
    """Otherwise a draw of labels with noise in each entry would state half of what it costs."""
    noise = json.loads(bitldp.LabelLaplace(3, epsilon=1.0).client_document())
    part = {name: noise[name] for name in ("record", "codec", "channel", "report", "keys")}
    record = json.loads(bitldp.CategoricalRecord([3, 3], epsilon=1.0).client_document())
    ((entries, bits),) = part["report"]["fields"]
    own = {
        "parts": [part, part],
        "keys": 1 + 2 * part["keys"],
        "report": {"form": "packed", "fields": [[1, 1], [entries * bits, 1]]},
    }
    for share, field in ((0.5, "epsilon"), (1.0, "golden")):
        fields = record | own | {"epsilon": np.float64(share).tobytes()[::-1].hex()}
        text = canonical(fields | {"sha256": digest(fields)})
        with pytest.raises(DocumentError, match=f"^{field}"):
            open_document(text)
        path = library_path()
        if path is not None:
            reason = "epsilon" if field == "epsilon" else "own test"
            with pytest.raises(LibraryRefusedError, match=reason):
                LibraryClient(text, path)


def refused(text: str) -> None:
    """Assert that Python and the library refuse a document."""
    with pytest.raises(DocumentError):
        open_document(text)
    path = library_path()
    if path is not None:
        with pytest.raises(LibraryRefusedError):
            LibraryClient(text, path)
