"""Saved documents and files that were changed: loaded as what they say, or refused by a ValueError."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import math
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp.ledger import Ledger
from bitldp.privacy import Guarantee
from hypothesis import strategies as st
from support.fuzz import answer, fuzz, mostly

pytestmark = pytest.mark.slow


def _ledger() -> str:
    ledger = Ledger(10.0, delta=1e-3)
    ledger.charge(Guarantee(1.0, 0.5, 1.0, 1.0, delta=1e-6), 3, note="first")
    ledger.charge(Guarantee(1.0, math.inf, math.inf, 2.0, holds=False, unit="feature", given="a region"))
    return ledger.to_json()


def _accumulators() -> list[tuple[Any, str]]:
    found = []
    for mechanism, x in (
        (bitldp.GRR(5, epsilon=1.0), np.arange(50) % 5),
        (bitldp.OUE(5, epsilon=1.0), np.arange(50) % 5),
        (bitldp.Duchi(epsilon=1.0, features=2), np.zeros((20, 2))),
        (bitldp.FRR(2, epsilon=20.0), np.zeros((20, 2), np.float32)),
        (bitldp.Duchi(epsilon=1.0, features=3, spend="sample", k=1), np.zeros((20, 3))),
    ):
        accumulator = mechanism.accumulator()
        accumulator.update(mechanism.randomize(x, rng=1))
        found.append((mechanism, accumulator.to_json()))
    return found


ODD = [
    None,
    True,
    0,
    -1,
    1.5,
    -0.5,
    1e308,
    1e-320,
    2**63,
    2**64,
    10**400,
    "",
    "2",
    "NaN",
    [],
    {},
    [[]],
    [1, 2],
]
ODD += [math.nan, math.inf, {"a": 1}, "\ud800", [0.5] * 1000]


@st.composite
def edited(draw: st.DrawFn, text: str) -> tuple[Any, bool]:
    """Draw a document with some of its values changed, and whether it is still to be sealed."""
    document = json.loads(text)
    for _ in range(draw(st.integers(0, 2))):
        parent, key = None, None
        place = document
        while isinstance(place, (dict, list)) and place and (parent is None or draw(st.integers(0, 4))):
            parent = place
            key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            place = parent[key]
        kind = draw(st.integers(0, 3))
        if kind == 0 and isinstance(parent, dict):
            del parent[key]
        elif kind == 1 and isinstance(parent, list):
            parent.append(copy.deepcopy(place))
        elif kind == 2 and isinstance(place, (int, float)) and not isinstance(place, bool):
            by = draw(st.sampled_from([1, -1, 0.25, 10**18]))
            parent[key] = place + (by if abs(place) < 1 << 60 else 1)
        elif parent is not None:
            parent[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
    return document, draw(st.integers(0, 3)) > 0


@st.composite
def texts(draw: st.DrawFn, text: str, key: str = "") -> Any:
    """Draw a changed text; under a checksum that fits, mostly, where its contents are at `key`."""
    document, seal = draw(edited(text))
    if key and seal and isinstance(document, dict) and key in document:
        digest = hashlib.sha256(json.dumps(document[key], sort_keys=True).encode()).hexdigest()
        document["sha256"] = digest
    changed = json.dumps(document)
    kind = draw(st.integers(0, 15))
    if kind == 15:
        return draw(
            st.sampled_from([None, b"{}", 3, "[" * 100_000, '{"a": ' * 50_000, "", "1" * 5000, "null"])
        )
    if kind == 14:
        place = draw(st.integers(0, len(changed) - 1))
        return (
            changed[:place]
            + draw(st.sampled_from(['"', "}", "e999", "\x00", "-", "é"]))
            + changed[place + 1 :]
        )
    if kind == 13:
        return changed[: draw(st.integers(0, len(changed)))]
    return changed


def test_changed_ledgers_are_read_or_refused() -> None:
    def call(text: Any) -> bool:
        loaded = answer(Ledger.from_json, text)
        if loaded is None:
            return False
        (ledger,) = loaded
        assert 0.0 <= ledger.spent <= ledger.budget < math.inf
        assert 0.0 <= ledger.spent_delta <= max(ledger.delta, 0.0)
        again = Ledger.from_json(ledger.to_json())
        assert (again.budget, again.delta, again.entries) == (ledger.budget, ledger.delta, ledger.entries)
        return True

    fuzz("ledgers", texts(_ledger(), "ledger"), call)


def test_changed_accumulators_are_read_or_refused() -> None:
    saved = _accumulators()
    drawn = st.integers(0, len(saved) - 1).flatmap(lambda i: st.tuples(st.just(i), texts(saved[i][1])))

    def call(one: tuple[int, Any]) -> bool:
        mechanism, text = saved[one[0]][0], one[1]
        loaded = answer(type(mechanism.accumulator()).from_json, text, mechanism)
        if loaded is None:
            return False
        (accumulator,) = loaded
        assert accumulator.n >= 0
        again = type(accumulator).from_json(accumulator.to_json(), mechanism)
        assert again.to_json() == accumulator.to_json()
        answer(accumulator.estimate)
        return True

    fuzz("accumulators", drawn, call)


def _file(about: dict[str, Any], **arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **arrays)
    return file.getvalue()


def _changes(whole: bytes) -> st.SearchStrategy[bytes]:
    """Draw the file with a byte or two changed, or cut."""
    place = st.integers(0, len(whole) - 1)

    def changed(changes: list[tuple[int, int]], end: int) -> bytes:
        data = bytearray(whole)
        for at, byte in changes:
            data[at] = byte
        return bytes(data[:end])

    ends = mostly(st.just(len(whole)), place)
    return st.builds(changed, st.lists(st.tuples(place, st.integers(0, 255)), max_size=2), ends)


def test_changed_copies_are_read_or_refused(tmp_path: Path) -> None:
    released = pytest.importorskip("bitldp.federated.client.data", reason="the extra fl is not installed")
    path = tmp_path / "copy.npz"
    arrays = {"features": np.zeros((3, 2), np.float32), "labels": np.arange(3)}
    about = {"format": released._FORMAT, "version": released._VERSION, "sha256": released._digest(arrays)}

    def call(data: bytes) -> bool:
        path.write_bytes(data)
        read = answer(released.read, path)
        if read is None:
            return False
        found = read[0][1]
        assert found.keys() == arrays.keys()
        assert all(np.array_equal(found[name], array) for name, array in arrays.items())
        return True

    fuzz("copies", _changes(_file(about, **arrays)), call)


def test_changed_answers_are_given_again_or_not(tmp_path: Path) -> None:
    repeat = pytest.importorskip("bitldp.federated.client.mod", reason="the extra fl is not installed")
    path, asked, report = tmp_path / "kept.npz", bytes(32), bytes(range(100))
    repeat.keep_report(path, asked, repeat.Kept(report, {"loss": 0.5}))

    def call(data: bytes) -> bool:
        path.write_bytes(data)
        found = repeat.find_kept(path, asked)
        assert found is None or found.report == report
        return found is not None

    fuzz("kept answers", _changes(path.read_bytes()), call)
