"""The C library against Python: the same bytes under the same keys, the same epsilon, the same estimates."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp.base.keys import keys
from bitldp.client import DocumentError, client_reports, open_document
from bitldp.tables import Column, TablePlan
from support.cases import Case
from support.client_library import ABSENT, UNKNOWN, LibraryClient, LibraryRefusedError, library_path
from support.clients import AMPLIFIED, DOCUMENTED, packed_reports, values_of

pytestmark = pytest.mark.skipif(library_path() is None, reason=ABSENT)

ONCE, MANY = 20, 1000


@pytest.fixture
def path() -> Path:
    """Return the library."""
    found = library_path()
    assert found is not None
    return found


def opened(text: str, path: Path) -> LibraryClient:
    """Return a client; skip where the library does not know the kind, and says so."""
    try:
        return LibraryClient(text, path)
    except LibraryRefusedError as refused:
        if refused.kind == UNKNOWN:
            pytest.skip("the library does not know this kind of mechanism yet, and refuses it as that")
        raise


def raw(document: Any, values: list[Any]) -> bytes:
    """Return the bytes of records."""
    both = zip(values, document.program.records, strict=True)
    return b"".join(np.ascontiguousarray(each, record.dtype).tobytes() for each, record in both)


def compared(case: Case, dtype: Any, count: int, path: Path) -> None:
    """Compare reports of so many records, one at a time under keys of their own, and of all at once."""
    mechanism = case.make()
    text = mechanism.client_document(dtype=dtype)
    document = open_document(text)
    drawn = case.inputs(np.random.default_rng(2026), count)
    inputs = [each.astype(dtype) if each.dtype.kind == "f" else each for each in drawn]
    values = values_of(document, inputs)
    with opened(text, path) as client:
        assert mechanism.guarantee.record == document.epsilon
        if case.name in AMPLIFIED:
            assert client.epsilon == pytest.approx(document.epsilon, rel=1e-12)
        else:
            assert client.epsilon == document.epsilon
        for index in range(count):
            own = b"".join(key for key in keys(index, document.program.streams) if key is not None)
            x = raw(document, [each[index : index + 1] for each in values])
            expected = packed_reports(mechanism, [each[index : index + 1] for each in inputs], index)
            assert client.with_key(own, x) == expected, index
        own = b"".join(key for key in keys(count, document.program.streams) if key is not None)
        expected = packed_reports(mechanism, inputs, count)
        assert client.with_key(own, raw(document, values), count) == expected


@pytest.mark.parametrize("case", DOCUMENTED, ids=lambda each: each.name)
def test_the_library_makes_the_reports_of_python(case: Case, path: Path) -> None:
    compared(case, "float64", ONCE, path)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", DOCUMENTED, ids=lambda each: each.name)
def test_the_library_makes_a_thousand_reports_of_python(case: Case, dtype: str, path: Path) -> None:
    compared(case, dtype, MANY, path)


def test_a_form_is_released_by_the_library_and_read_by_its_plan(path: Path) -> None:
    plan = TablePlan(
        [
            Column(bitldp.Piecewise(epsilon=2.0, interval=(120.0, 220.0)), "height"),
            Column(bitldp.GRR(3, epsilon=1.0), "city", categories=["Paris", "Rome", "Oslo"]),
            Column(bitldp.OUE(4, epsilon=2.0), "food", categories=["a", "b", "c"], nulls="category"),
        ]
    )
    text = plan.client_document()
    document = open_document(text)
    with opened(text, path) as client:
        assert client.epsilon == pytest.approx(plan.guarantee.record, rel=1e-12)
        x = raw(document, [np.array([[171.0]]), np.array([[2]]), np.array([[3]])])
        own = b"".join(key for key in keys(9, document.program.streams) if key is not None)
        report = client.with_key(own, x)
        assert report == document.randomize(171.0, "Oslo", "", rng=9)
        table = plan.from_clients([report, client.randomize(x)])
    assert table.column_names == ["height", "city", "food=a", "food=b", "food=c", "food missing"]
    assert table.num_rows == 2


@pytest.mark.parametrize("kind", ["GRR", "Piecewise", "OUE", "FRR"])
def test_keyed_reports_are_those_of_python(kind: str, path: Path) -> None:
    mechanism: Any = {
        "GRR": bitldp.GRR(50, epsilon=1.0),
        "Piecewise": bitldp.Piecewise(epsilon=2.0, features=3),
        "OUE": bitldp.OUE(9, epsilon=2.0),
        "FRR": bitldp.FRR(3, epsilon=6.0),
    }[kind]
    secret = bytes(range(1, 33))
    daily = bitldp.Memoized(mechanism, secret, question="browser")
    text = daily.client_document()
    document = open_document(text)
    rng = np.random.default_rng(5)
    categories = document.program.records[0].below is not None
    x: Any = rng.integers(0, 9, 20) if categories else rng.normal(0.0, 0.5, (20, 3))
    names = np.arange(20, dtype=np.uint64) * 977
    with opened(text, path) as client:
        for index in range(20):
            part = x[index : index + 1]
            form = mechanism._wire_output
            codes = daily.randomize(part, ids=names[index : index + 1], output=form)
            ((_, bits),) = mechanism._report_parts
            expected = bitldp.pack(np.ascontiguousarray(codes).ravel(), bits).tobytes()
            own = raw(document, [np.reshape(part, (1, -1))])
            assert client.keyed(secret, names[index].tobytes(), own) == expected


ESTIMATED: dict[str, Any] = {
    "GRR": bitldp.GRR(4, epsilon=1.0),
    "OUE": bitldp.OUE(4, epsilon=1.0),
    "Piecewise": bitldp.Piecewise(epsilon=2.0),
    "Duchi": bitldp.Duchi(epsilon=2.0, features=3, spend="sample", k=1),
}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ESTIMATED)
def test_fresh_reports_of_the_library_are_estimated_to_the_truth(kind: str, path: Path) -> None:
    """N = 10,000 reports with keys of the operating system; within 7 standard errors, alpha 3e-12 each."""
    mechanism, rng = ESTIMATED[kind], np.random.default_rng(11)
    document = open_document(mechanism.client_document())
    record = document.program.records[0]
    if record.below is not None:
        x: Any = rng.choice(4, 10_000, p=[0.4, 0.3, 0.2, 0.1])[:, None]
        truth = np.bincount(x[:, 0], minlength=4) / len(x)
    else:
        x = rng.uniform(-0.5, 0.9, (10_000, record.columns))
        truth = x.mean(axis=0)
    with opened(mechanism.client_document(), path) as client:
        reports = [client.randomize(raw(document, [own[None]])) for own in x]
    received = client_reports(mechanism, reports)
    estimate = (
        mechanism.estimate_frequencies(received)
        if record.below is not None
        else mechanism.estimate_mean(received)
    )
    assert (np.abs(estimate.value - truth) < 7.0 * estimate.stderr).all()
    assert len(set(reports)) > 1


def mutations(text: str) -> Iterator[str]:
    """Yield 300 texts with a byte changed or two swapped, seeded; sums are as they were."""
    rng = random.Random(3)
    for _ in range(300):
        at, other = rng.randrange(len(text)), rng.randrange(len(text))
        letters = list(text)
        letters[at], letters[other] = letters[other], rng.choice('{}[]",:019af')
        yield "".join(letters)


def test_both_readers_refuse_the_same(path: Path) -> None:
    text = bitldp.GRR(["a", "b", "c"], epsilon=1.0).client_document()
    for other in mutations(text):
        try:
            read = open_document(other)
        except DocumentError:
            with pytest.raises(LibraryRefusedError):
                LibraryClient(other, path)
        else:
            assert json.loads(read.text) == json.loads(text)


def test_the_library_refuses_what_python_refuses(path: Path) -> None:
    mechanism = bitldp.Duchi(epsilon=1.0, clip=False)
    with opened(mechanism.client_document(), path) as client:
        for x in (np.nan, 1.5):
            with pytest.raises(LibraryRefusedError):
                client.randomize(np.array([x]).tobytes())
        assert len(client.randomize(np.array([0.5]).tobytes())) == 1
    with opened(bitldp.OUE(4, epsilon=1.0).client_document(), path) as client:
        with pytest.raises(LibraryRefusedError):
            client.randomize(b"\x04")
        with pytest.raises(LibraryRefusedError):
            client.randomize(b"")
