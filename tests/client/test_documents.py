"""Documents of every mechanism: their schema, their epsilon, and the reports that a client makes by them."""

from __future__ import annotations

import ast
import json
import re
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp.client import ModelUpdate, NoDocumentError, client_reports, open_document
from bitldp.client.mechanisms import NO_DOCUMENT, document_of, fingerprint_digest
from bitldp.client.message import Field, Header
from bitldp.mechanism.base import Mechanism
from bitldp.points.base import CandidateRelease
from bitldp.tables import Column, TablePlan
from support.cases import CASES, FAMILIES, MIXED, ORDERED, Case
from support.clients import DOCUMENTED, SCHEMA, WITHOUT, packed_reports, values_of

EVERY = CASES + FAMILIES + ORDERED + MIXED


@pytest.fixture(scope="module")
def schema() -> Any:
    """Return a validator of the schema that the docs hold."""
    jsonschema = pytest.importorskip("jsonschema", reason='needs pip install "bitldp[dev]"')
    contents = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(contents)
    return jsonschema.Draft202012Validator(contents)


def test_every_case_has_a_document_or_a_reason() -> None:
    assert {case.name for case in EVERY} == {*(case.name for case in DOCUMENTED), *WITHOUT}


@pytest.mark.parametrize("case", [each for each in EVERY if each.name in WITHOUT], ids=lambda each: each.name)
def test_a_mechanism_without_a_document_says_why(case: Case) -> None:
    mechanism = case.make()
    with pytest.raises(
        NoDocumentError, match=f"{type(mechanism).__name__}: has no client .*{WITHOUT[case.name]}"
    ):
        mechanism.client_document()


@pytest.mark.parametrize("case", DOCUMENTED, ids=lambda each: each.name)
def test_a_document_is_of_the_schema_and_is_read_back(case: Case, schema: Any) -> None:
    mechanism = case.make()
    text = mechanism.client_document(spends=("home", 3))
    schema.validate(json.loads(text))
    document = open_document(text)
    assert document.epsilon == mechanism.guarantee.record == document.promise.epsilon
    assert document.delta == mechanism.guarantee.delta
    assert document.spends == ("home", 3)
    assert document.report_bytes() * 8 < mechanism.report_bits + 8 * len(mechanism._report_parts)
    assert document.program.streams == mechanism._streams
    assert text == mechanism.client_document(spends=("home", 3))
    assert open_document(text + "\n").text == text


@pytest.mark.parametrize("case", DOCUMENTED, ids=lambda each: each.name)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_client_makes_the_mechanisms_reports(case: Case, dtype: Any) -> None:
    """Twenty records, one at a time under a key each, and all at once."""
    mechanism, rng = case.make(), np.random.default_rng(3)
    document = open_document(mechanism.client_document(dtype=dtype))
    inputs = [each.astype(dtype) if each.dtype.kind == "f" else each for each in case.inputs(rng, 20)]
    values = values_of(document, inputs)
    for index in range(20):
        own = [each[index : index + 1] for each in values]
        expected = packed_reports(mechanism, [each[index : index + 1] for each in inputs], index)
        assert document.randomize(*own, rng=index) == expected
    assert document.randomize(*values, rng=77) == packed_reports(mechanism, inputs, 77)


EXPORTED = [
    kind
    for name in bitldp.__all__
    if isinstance(kind := getattr(bitldp, name), type) and issubclass(kind, Mechanism)
]


SOLVED = ("MVU", "OptimalUtility", "MinimaxVariance", "InterpolatedMVU", "VectorMVU", "MetricMVU")
UNDOCUMENTED = {
    *("CLDP", "BallGaussian", "BallWindow", "InterpolatedMVU", "LaplaceBall", "RandomCodebook", "SignSGD"),
    *("Skellam", "VectorMVU", "HeavyHitters", "MixedCap"),
    *("RecordCap", "TwoStage"),
}


def test_the_guide_names_every_mechanism_without_a_document_and_its_reason() -> None:
    page = (SCHEMA.parents[1] / "guides" / "documents.md").read_text(encoding="utf-8")
    head, _, rows = page.partition("| mechanism | why it has no document |\n|---|---|\n")
    assert head != page
    named: dict[str, str] = {}
    for row in rows.partition("\n\n")[0].splitlines():
        kinds, reason = row.strip("| ").split(" | ")
        named |= dict.fromkeys((each for each in re.findall("`(\\w+)`", kinds) if each != "regions"), reason)
    refused = [case.make() for case in EVERY if case.name in WITHOUT]
    refused += [
        bitldp.CrossPolytope(5, epsilon=1.0, clip=False),
        bitldp.Gaussian(epsilon=1.0, delta=1e-6, features=2),
    ]
    reasons: dict[str, str] = {}
    for mechanism in refused:
        with pytest.raises(NoDocumentError) as caught:
            mechanism.client_document()
        reasons[type(mechanism).__name__] = re.split(", since |document: ", str(caught.value))[1]
    reasons |= {name: getattr(bitldp, name)._no_document for name in UNDOCUMENTED if name not in reasons}
    # All of points that have a list of regions refuse it at the same place.
    points = [kind for kind in EXPORTED if issubclass(kind, CandidateRelease)]
    keep_apart = [kind for kind in points if "regions" in {each.name for each in fields(kind)}]
    reasons |= {kind.__name__: reasons["BRR"] for kind in keep_apart}
    assert named == reasons


@pytest.mark.slow
@pytest.mark.parametrize("kind", EXPORTED, ids=lambda each: each.__name__)
def test_every_exported_mechanism_has_a_document_or_a_reason(kind: Any, schema: Any) -> None:
    if kind.__name__ in SOLVED:
        pytest.importorskip("scipy", reason="the extra design is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        mechanism = kind._for_record(**kind._usual(2.0))
    if kind.__name__ in UNDOCUMENTED:
        with pytest.raises(NoDocumentError, match=f"^{kind.__name__}: has no client document, ") as caught:
            mechanism.client_document()
        assert NO_DOCUMENT not in str(caught.value)  # each has a reason of its own
        return
    text = mechanism.client_document()
    schema.validate(json.loads(text))
    assert open_document(text).epsilon == mechanism.guarantee.record


def test_documents_of_updates_forms_and_questions_are_of_the_schema(schema: Any) -> None:
    key = bytes(range(1, 33))
    schema.validate(json.loads(bitldp.Memoized(bitldp.GRR(5, epsilon=1.0), key).client_document()))
    plan = TablePlan(
        [
            Column(bitldp.Duchi(epsilon=2.0, features=3, spend="sample", k=1), ["p", "q", "r"]),
            Column(bitldp.OUE(3, epsilon=1.0), "food", categories=["a", "b"], nulls="category"),
        ]
    )
    schema.validate(json.loads(plan.client_document()))
    duchi = bitldp.Duchi(epsilon=1.0)
    own, fields = fingerprint_digest(duchi), (Field(1, 1),)
    head = Header("Duchi", own, bytes(16), "difference", "l2", 1.0, -1.0, 1.0, 4, 4, fields)
    update = ModelUpdate(1.0, "l2", -1.0, 1.0, 4, head.encoded())
    text = document_of(duchi, update=update)
    schema.validate(json.loads(text))
    assert open_document(text).update == update
    for broken in ({}, {**json.loads(text), "more": 1}, {**json.loads(text), "bitldp": 2}):
        assert not schema.is_valid(broken)


def test_the_reports_of_clients_are_read_by_the_mechanism() -> None:
    for mechanism, x in (
        (bitldp.GRR(["a", "b", "c"], epsilon=4.0), np.array(["b", "c", "b"])),
        (bitldp.OUE(9, epsilon=4.0), np.array([1, 8, 3])),
        (bitldp.Piecewise(epsilon=4.0, features=3, spend="sample", k=2), np.zeros((3, 3))),
        (bitldp.OLH(30, epsilon=2.0), np.array([1, 29, 3])),
    ):
        document = open_document(mechanism.client_document())
        reports = [document.randomize(own, rng=index) for index, own in enumerate(x)]
        read = client_reports(mechanism, reports)
        alone = [mechanism.randomize(x[i : i + 1], rng=i, output=mechanism._wire_output) for i in range(3)]
        parts = zip(*alone, strict=True) if isinstance(alone[0], tuple) else [alone]
        expected = [np.concatenate(part) for part in parts]
        for part, wanted in zip(read if isinstance(read, tuple) else (read,), expected, strict=True):
            np.testing.assert_array_equal(part, wanted)


def test_reports_that_are_none_are_refused() -> None:
    mechanism = bitldp.GRR(9, epsilon=1.0)
    with pytest.raises(ValueError, match=r"reports: 1 bytes each are needed, not 2, at index 1"):
        client_reports(mechanism, [b"\x10", b"\x10\x00"])
    with pytest.raises(ValueError, match=r"reports: bits are set after the codes, at index 0"):
        client_reports(mechanism, [b"\x11"])
    with pytest.raises(TypeError, match=r"reports: must be bytes, not str"):
        client_reports(mechanism, ["\x11"])  # type: ignore[list-item]


def test_labels_are_texts_of_the_document() -> None:
    mechanism = bitldp.GRR(["Paris", "Łódź", "Oslo"], epsilon=3.0)
    text = mechanism.client_document()
    document = open_document(text)
    assert "Łódź" in text
    assert document.randomize("Łódź", rng=5) == document.randomize(1, rng=5)
    with pytest.raises(ValueError, match="a label is not one of the document's") as caught:
        document.randomize("Roma")
    assert "Roma" not in str(caught.value)


def test_a_memoized_mechanism_tells_its_question_and_no_key() -> None:
    key = bytes(range(32))
    daily = bitldp.Memoized(bitldp.GRR(50, epsilon=1.0), key, question="browser")
    document = open_document(daily.client_document(ids="text"))
    assert document.keyed is not None
    assert (document.keyed.context, document.keyed.id) == (b"memoized browser", "text")
    assert key.hex() not in document.text
    assert "the same" not in document.sentence() or "alike for ever" in document.sentence()
    assert "alike for ever" in document.sentence()


def test_the_sentence_states_what_epsilon_allows() -> None:
    document = open_document(bitldp.WarnerRR(epsilon=np.log(3.0)).client_document())
    assert "1 byte." in document.sentence()
    assert "at most 3 times as likely" in document.sentence()
    gaussian = open_document(bitldp.Gaussian(epsilon=1.0, delta=1e-6).client_document())
    assert "but for a chance of 1e-06" in gaussian.sentence()


def test_the_examples_are_the_documents_of_today() -> None:
    """Other clients are tested with them, too."""
    record = bitldp.CategoricalRecord([3, 3], epsilon=2.0)
    plan = TablePlan(
        [
            Column(bitldp.GRR(5, epsilon=1.0), "n", interval=(0, 1)),
            Column(record, ["p", "q"], categories=[["a", "b", "c"], ["x", "y", "z"]]),
            Column(bitldp.Hierarchy(16, epsilon=1.0), "age"),
        ]
    )
    made = {
        "grr": bitldp.GRR(["Paris", "Rome", "Oslo", "Łódź"], epsilon=1.0).client_document(
            spends=("survey", 30)
        ),
        "frr": bitldp.FRR(100, bits=10, integer_bits=5, epsilon=8.0).client_document(dtype="float32"),
        "piecewise": bitldp.Piecewise(epsilon=2.0, features=5, spend="sample", k=2).client_document(),
        "oue": bitldp.OUE(20, epsilon=2.0).client_document(),
        "subset": bitldp.SubsetSelection(50, epsilon=1.0).client_document(),
        "message": bitldp.OUE(9, epsilon=2.0).client_document(header=True),
        "basket": bitldp.ItemSet(["tea", "milk", "bread"], epsilon=2.0, padding=2).client_document(),
        "ratings": bitldp.KeyValue(3, epsilon=2.0, padding=1, clip=False).client_document(),
        "levels": bitldp.Hierarchy(60, epsilon=2.0).client_document(),
        "form": plan.client_document(),
    }
    folder = Path(__file__).parent / "documents"
    assert {path.stem for path in folder.glob("*.json")} == {*made, "update"}  # see test_updates.py
    for name, text in made.items():
        assert (folder / f"{name}.json").read_text(encoding="utf-8") == text + "\n", name


def test_documents_are_short() -> None:
    """Less than 2 kB but for tables."""
    assert len(bitldp.GRR(1000, epsilon=1.0).client_document()) < 1000
    assert len(bitldp.SubsetSelection(1000, epsilon=1.0).client_document()) < 1200
    assert len(bitldp.FRR(100, epsilon=8.0).client_document()) < 3000  # a golden record of 100 numbers


def test_a_program_that_differs_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = bitldp.GRR
    honest = kind._program

    def other(self: Any, numbers: Any) -> Any:
        wider = bitldp.GRR(16, epsilon=3.0)
        return honest(wider, numbers)

    monkeypatch.setattr(kind, "_program", other)
    with pytest.raises(ArithmeticError, match="a client would not"):
        bitldp.GRR(16, epsilon=1.0).client_document()


def test_a_client_refuses_what_the_mechanism_refuses() -> None:
    number = open_document(bitldp.Duchi(epsilon=1.0, clip=False).client_document())
    for x in (float("nan"), 1.5):
        with pytest.raises(ValueError, match="x: ") as caught:
            number.randomize(x)
        assert "1.5" not in str(caught.value)
    drawn = bitldp.Duchi(epsilon=1.0, features=5, spend="sample", k=1)
    sampled = open_document(drawn.client_document())
    for index in range(5):  # whichever is drawn
        with pytest.raises(ValueError, match="is NaN"):
            sampled.randomize([0.0, 0.0, 0.0, 0.0, np.nan], rng=index)
    category = open_document(bitldp.OUE(4, epsilon=1.0).client_document())
    for wrong in (4, -1):
        with pytest.raises(ValueError, match="not below 4"):
            category.randomize(wrong)
    with pytest.raises(TypeError, match="must be whole numbers"):
        category.randomize(1.0)
    both = bitldp.BitRand(2, categories=3, epsilon_x=3.0, epsilon_y=1.0)
    pair = open_document(both.client_document())
    with pytest.raises(ValueError, match="2 arrays are needed, got 1"):
        pair.randomize(np.zeros(2))


def test_the_reference_of_the_schema_names_every_kind() -> None:
    """Whatever a reader takes stands in the schema, and nothing else does."""
    from bitldp.client import laws

    contents = json.loads(SCHEMA.read_text(encoding="utf-8"))
    kinds = {each["properties"]["kind"]["const"] for each in contents["$defs"]["channel"]["oneOf"]}
    assert kinds == set(laws._READERS)
    source = Path(laws.__file__).with_name("opening.py").read_text(encoding="utf-8")
    draws = {each["properties"]["draw"]["const"] for each in contents["$defs"]["draw"]["oneOf"]}
    (table,) = [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "_DRAWS"
    ]
    assert isinstance(table, ast.Dict)
    assert {ast.literal_eval(key) for key in table.keys if key is not None} == draws
