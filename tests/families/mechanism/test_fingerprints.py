"""Fingerprints last: what was released, saved or planned before is known again, whatever has been renamed."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import bitldp
import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

from bitldp.client.mechanisms import fingerprint_digest
from bitldp.client.message import CHECKSUM, compare, parse
from bitldp.federated.wire.arrays import Layout
from bitldp.federated.wire.codec import UpdateCodec
from bitldp.ledger import Ledger
from bitldp.mechanism.parameters import stable_name
from support.cases import CASES, FAMILIES, MIXED, ORDERED, Case

VECTORS = Path(__file__).parents[2] / "vectors"
BEFORE = VECTORS / "before"
GOLDEN = json.loads((VECTORS / "fingerprints.json").read_text())
EVERY = [*CASES, *FAMILIES, *ORDERED, *MIXED]


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
def test_a_fingerprint_is_what_it_was(case: Case) -> None:
    mechanism, golden = case.make(), GOLDEN["cases"][case.name]
    assert json.loads(json.dumps(mechanism.fingerprint())) == golden["fingerprint"]
    assert list(mechanism.fingerprint()["parameters"]) == list(golden["fingerprint"]["parameters"])
    assert fingerprint_digest(mechanism).hex() == golden["digest"]


@pytest.mark.parametrize("name", GOLDEN["classes"])
def test_a_class_that_stands_as_a_parameter_keeps_its_name(name: str) -> None:
    assert stable_name(getattr(bitldp, name)) == GOLDEN["classes"][name]


def test_a_law_that_changes_raises_the_version() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Changed(bitldp.Duchi):
        _lasting: ClassVar[str] = "bitldp.numeric.duchi.Duchi"
        _fingerprint_version: ClassVar[int] = 2

    before = bitldp.Duchi(epsilon=1.0).fingerprint()
    assert Changed(epsilon=1.0).fingerprint() == {"version": 2, **before}


# -- documents of before


@pytest.fixture(scope="module")
def plan() -> Any:
    pytest.importorskip("pyarrow", reason="the extra tables is not installed")
    from bitldp.tables import TablePlan

    return TablePlan.read(BEFORE / "plan.toml")


def test_a_plan_of_before_is_read(plan: Any) -> None:
    from bitldp.tables import TablePlan

    release = json.loads((BEFORE / "release.json").read_text())
    assert plan == TablePlan.read(BEFORE / "plan.json")
    assert plan.digest == release["plan_sha256"]
    assert plan == TablePlan.from_toml(plan.to_toml()) == TablePlan.from_json(plan.to_json())
    assert TablePlan.from_toml(plan.to_toml()).digest == plan.digest


def test_a_keyed_release_of_before_is_retried_with_the_same_bytes(plan: Any) -> None:
    import pyarrow as pa
    from bitldp.tables import ReleaseKey

    before = json.loads((BEFORE / "release.json").read_text())
    release = plan.release(
        ReleaseKey(bytes.fromhex(before["key"])), record=before["record"], snapshot=before["snapshot"]
    )
    assert release.id == before["release"]
    released = release(pa.table(before["table"]))
    assert released.to_pydict() == before["columns"]


def test_a_release_that_was_charged_before_is_not_charged_again(plan: Any, tmp_path: Path) -> None:
    from bitldp.tables import ReleaseKey

    before = json.loads((BEFORE / "release.json").read_text())
    release = plan.release(
        ReleaseKey(bytes.fromhex(before["key"])), record=before["record"], snapshot=before["snapshot"]
    )
    path = Path(shutil.copy(BEFORE / "ledger.json", tmp_path))
    with Ledger.open(path) as ledger:
        assert release.charge(ledger, data=release.digest([b"people"])) is None


SAVED: dict[str, Any] = {
    "LabelRR": lambda: bitldp.LabelRR(["a", "b", "c"], epsilon=1.0),
    "LabelLaplace": lambda: bitldp.LabelLaplace(4, epsilon=2.0),
    "BlockDesign-public": lambda: bitldp.BlockDesign(37, epsilon=1.0, public=True, public_seed=9),
    "Hierarchy": lambda: bitldp.Hierarchy(100, epsilon=2.0),
    "CategoricalRecord": lambda: bitldp.CategoricalRecord([3, 4], epsilon=1.0, oracle="GRR"),
    "CrossPolytope": lambda: bitldp.CrossPolytope(6, epsilon=9.0, public_seed=3),
    "RandomCodebook": lambda: bitldp.RandomCodebook(6, epsilon=2.0, public_seed=4),
    "PS": lambda: bitldp.PS(6, k=2, epsilon=2.0),
    "TwoStage": lambda: bitldp.TwoStage(bitldp.PE(6, k=2, epsilon=2.0), bitldp.Duchi(epsilon=2.0)),
}


@pytest.mark.parametrize("name", SAVED)
def test_counts_of_before_are_read(name: str) -> None:
    mechanism, before = SAVED[name](), json.loads((BEFORE / "counts.json").read_text())[name]
    assert fingerprint_digest(mechanism).hex() == before["fingerprint_digest"]
    accumulator = type(mechanism.accumulator()).from_json(before["counts"], mechanism)
    assert accumulator.n == 50
    assert accumulator.to_json() == before["counts"]


HEADERS: dict[str, Any] = {
    "RandomCodebook": lambda: bitldp.RandomCodebook(6, epsilon=2.0, public_seed=4),
    "CrossPolytope": lambda: bitldp.CrossPolytope(6, epsilon=9.0, public_seed=3),
    "Duchi": lambda: bitldp.Duchi(epsilon=2.0, features=6),
    "CLDP": lambda: bitldp.CLDP(6, epsilon=2.0),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_is_what_it_was(name: str) -> None:
    before = json.loads((BEFORE / "headers.json").read_text())[name]
    layout = Layout.of({"weights": np.zeros((2, 3), np.float32)})
    plan = UpdateCodec(HEADERS[name](), clip=1.0, norm="l1", allow_biased=True).plan(layout)
    assert replace(plan.header, version=1).encoded().hex() == before
    assert plan.header.digest == hashlib.sha256(bytes.fromhex(before)).digest()
    compare(parse(bytes.fromhex(before) + bytes(CHECKSUM.size)), plan.header)
