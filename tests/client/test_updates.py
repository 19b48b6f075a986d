"""Updates of models as data: a client's message is the plan's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp.base.keys import keys
from bitldp.client import DocumentError, NoDocumentError, open_document
from bitldp.client.notation import canonical, digest, double
from support.client_library import ABSENT, LibraryClient, LibraryRefusedError, library_path

pytest.importorskip("flwr", reason="Flower needs Python 3.11")

from bitldp.federated.wire.codec import UpdateCodec

MECHANISMS = [
    bitldp.Duchi(epsilon=1.0),
    bitldp.Piecewise(epsilon=2.0, features=20, spend="sample", k=3),
    bitldp.CrossPolytope(40, epsilon=3.0),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_a_client_sends_what_the_plan_sends(mechanism: Any, norm: Any) -> None:
    codec = UpdateCodec(mechanism, clip=2.0, norm=norm)
    plan = codec.plan(codec.layout({"w": np.zeros((4, 10), np.float32)})).at(3)
    document = open_document(plan.client_document(spends=("rounds", 10)))
    assert document.epsilon == pytest.approx(plan.records * mechanism.guarantee.record, rel=1e-12)
    for scale in (0.01, 3.0):
        vector = np.random.default_rng(1).normal(0.0, scale, 40)
        message = document.randomize_update(vector, rng=7)
        assert message == plan.perturb(vector, rng=7).tobytes()
        assert len(message) == document.report_bytes()
        assert plan.decode(message).shape == (40,)


def test_an_update_that_does_not_fit_is_refused() -> None:
    codec = UpdateCodec(bitldp.Duchi(epsilon=1.0), clip=1.0, norm="linf")
    layout = codec.layout({"w": np.zeros(4, np.float32)})
    document = open_document(codec.plan(layout).client_document())
    assert document.randomize_update([9.0, -9.0, 0.0, 1.0], rng=1)[-1:] is not None
    with pytest.raises(ValueError, match="4 coordinates are needed"):
        document.randomize_update(np.zeros(5))
    with pytest.raises(ValueError, match="not finite"):
        document.randomize_update([np.nan, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="describes records"):
        open_document(bitldp.Duchi(epsilon=1.0).client_document()).randomize_update([0.0])
    rows = UpdateCodec(bitldp.Duchi(epsilon=1.0), clip=1.0, rows=2)
    several = open_document(rows.plan(layout).client_document())
    with pytest.raises(ValueError, match="2 rows of 4 coordinates are needed"):
        several.randomize_update(np.zeros(8))
    noise = UpdateCodec(bitldp.LaplaceBall(4, epsilon=1.0), clip=1.0, norm="l1")
    with pytest.raises(NoDocumentError, match="has no client document"):
        noise.plan(layout).client_document()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_a_message_of_several_rows_is_the_plans(mechanism: Any, norm: Any) -> None:
    codec = UpdateCodec(mechanism, clip=2.0, norm=norm, rows=3)
    plan = codec.plan(codec.layout({"w": np.zeros((4, 10), np.float32)})).at(3)
    text = plan.client_document()
    document = open_document(text)
    assert document.epsilon == pytest.approx(plan.records * mechanism.guarantee.record, rel=1e-12)
    vector = np.random.default_rng(1).normal(size=(3, 40)) * np.array([[0.01], [3.0], [0.0]])
    message = document.randomize_update(vector, rng=7)
    assert message == plan.perturb(vector, rng=7).tobytes()
    assert len(message) == document.report_bytes()
    path = library_path()
    if path is None:
        pytest.skip(ABSENT)
    with LibraryClient(text, path) as client:
        for seed in range(5):
            own = b"".join(key for key in keys(seed, document.program.streams) if key is not None)
            assert client.with_key(own, vector.tobytes()) == plan.perturb(vector, rng=seed).tobytes()
        with pytest.raises(LibraryRefusedError):
            client.randomize(np.zeros(40).tobytes())
    fields = json.loads(text)
    for rows in (1, 2, 4, 1 << 21, "3", ...):
        changed = {name: each for name, each in fields["update"].items() if name != "rows"}
        if rows is not ...:
            changed["rows"] = rows
        other = fields | {"update": changed}
        refused = canonical(other | {"sha256": digest(other)})
        with pytest.raises(DocumentError):
            open_document(refused)
        with pytest.raises(LibraryRefusedError):
            LibraryClient(refused, path)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_the_library_sends_what_the_plan_sends(mechanism: Any, norm: Any) -> None:
    """A vector that is clipped may differ in its last bit, and a report then with a chance of 2^-40."""
    path = library_path()
    if path is None:
        pytest.skip(ABSENT)
    if norm == "linf" and isinstance(mechanism, bitldp.CrossPolytope):
        norm = "l2"  # that of its ball
    codec = UpdateCodec(mechanism, clip=2.0, norm=norm)
    plan = codec.plan(codec.layout({"w": np.zeros((4, 10), np.float32)})).at(3)
    text = plan.client_document()
    document, rng = open_document(text), np.random.default_rng(8)
    with LibraryClient(text, path) as client:
        assert client.epsilon == pytest.approx(document.epsilon, rel=1e-12)
        assert client.report_bytes() == document.report_bytes()
        for seed, scale in enumerate((0.0, 1e-300, 0.01, 3.0, 1e300)):
            vector = scale * rng.normal(size=40)
            own = b"".join(key for key in keys(seed, document.program.streams) if key is not None)
            message = client.with_key(own, vector.tobytes())
            assert message == plan.perturb(vector, rng=seed).tobytes(), scale
        assert plan.decode(client.randomize(vector.tobytes())).shape == (40,)
        for wrong in (np.zeros(39), np.zeros(80), np.full(40, np.nan), np.full(40, np.inf)):
            with pytest.raises(LibraryRefusedError):
                client.randomize(wrong.tobytes())


def test_the_example_is_the_document_of_today() -> None:
    codec = UpdateCodec(bitldp.CrossPolytope(40, epsilon=3.0), clip=2.0)
    plan = codec.plan(codec.layout({"w": np.zeros((8, 10), np.float32)})).at(3)
    path = Path(__file__).parent / "documents" / "update.json"
    assert path.read_text(encoding="utf-8") == plan.client_document(spends=("rounds", 10)) + "\n"


def test_a_library_refuses_an_update_that_its_header_does_not_state() -> None:
    path = library_path()
    if path is None:
        pytest.skip(ABSENT)
    codec = UpdateCodec(bitldp.Duchi(epsilon=1.0), clip=1.0)
    text = codec.plan(codec.layout({"w": np.zeros(4, np.float32)})).client_document()
    fields = json.loads(text)
    kept = dict(fields["update"])
    head = open_document(text).update
    assert head is not None
    changes: list[tuple[str, Any]] = [
        ("clip", double(2.0)),
        ("low", double(-2.0)),
        ("high", double(2.0)),
        ("norm", "l1"),
        ("records", 3),
        ("records", 1 << 32),
        ("clip", double(0.0)),
    ]
    for name, value in changes:
        fields["update"] = kept | {name: value}
        refused = canonical(fields | {"sha256": digest(fields)})
        with pytest.raises(DocumentError):
            open_document(refused)
        with pytest.raises(LibraryRefusedError):
            LibraryClient(refused, path)
    fields["update"], fields["keyed"] = kept, {"column": 0, "context": "00", "id": "u64"}
    refused = canonical(fields | {"sha256": digest(fields)})
    with pytest.raises(DocumentError, match="no keyed answers"):
        open_document(refused)
    with pytest.raises(LibraryRefusedError):
        LibraryClient(refused, path)
