"""Every mechanism that a family exports takes keyed randomness, and a report is its record's alone."""

from __future__ import annotations

import pickle
import re
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp._core import KeyedRandomness
from bitldp.mechanism.law import arguments
from bitldp.selection import Compressed
from support.cases import CASES, FAMILIES, ORDERED, Case

from .test_every_mechanism import EVERY, EXPORTED, example, records_of

KEY = bytes(range(100, 132))
RECORDS = 203

ALL = {case.name: case for case in (*CASES, *FAMILIES, *ORDERED)}
WALK = [*(f"example of {name}" for name in EXPORTED), *ALL]


def inputs_of(name: str, seed: int = 0) -> tuple[Any, tuple[np.ndarray, ...]]:
    """Return a mechanism, and records of it that differ from each other where its inputs do."""
    rng = np.random.default_rng(seed)
    if name in ALL:
        case: Case = ALL[name]
        return case.make(), case.inputs(rng, RECORDS)
    mechanism = example(name.removeprefix("example of "))
    far = [records_of_input(each, RECORDS) for each in mechanism.extremes().inputs[:2]]
    other = rng.integers(0, 2, RECORDS).astype(bool)
    mixed = []
    for one, two in zip(*far, strict=True):
        mixed.append(np.where(other.reshape(-1, *[1] * (one.ndim - 1)), one, two))
    return mechanism, tuple(mixed)


def records_of_input(each: Any, rows: int) -> tuple[np.ndarray, ...]:
    """Return copies of one input."""
    return arguments(each, rows)


def parts(reports: Any, rows: int) -> np.ndarray:
    """Return reports as one row a record."""
    arrays = reports if isinstance(reports, tuple) else (reports,)
    return np.hstack([np.asarray(array).reshape(rows, -1).astype(np.float64) for array in arrays])


IDS = np.random.default_rng(5).integers(0, 1 << 63, RECORDS).astype(np.uint64)


def drawn(mechanism: Any, records: tuple[np.ndarray, ...], **changed: Any) -> np.ndarray:
    """Return the keyed reports of records, one row each."""
    given = {"key": KEY, "ids": IDS[: len(records[0])], "context": b"test", **changed}
    return parts(mechanism.randomize_keyed(*records, **given), len(records[0]))


@pytest.mark.slow
@pytest.mark.parametrize("name", WALK)
def test_a_report_is_its_records_alone(name: str) -> None:
    """The same whatever batch, order and threads; others with another key, context, id or column."""
    mechanism, records = inputs_of(name)
    whole = drawn(mechanism, records)
    assert len(np.unique(whole)) > 1, "all reports are alike"
    assert np.array_equal(drawn(mechanism, records, threads=3), whole)
    order = np.random.default_rng(1).permutation(RECORDS)
    assert np.array_equal(drawn(mechanism, tuple(x[order] for x in records), ids=IDS[order]), whole[order])
    for cuts in ([1], [64, 65, 131]):
        halves = zip(*(np.split(x, cuts) for x in records), strict=True)
        pieces = [
            drawn(mechanism, half, ids=ids) for half, ids in zip(halves, np.split(IDS, cuts), strict=True)
        ]
        assert np.array_equal(np.vstack(pieces), whole)
    for changed in (
        {"key": b"z" * 32},
        {"context": b"other"},
        {"ids": IDS + np.uint64(1)},
        {"column": 10_000},
    ):
        assert not np.array_equal(drawn(mechanism, records, **changed), whole), changed
    assert np.array_equal(drawn(mechanism, records), whole)


@pytest.mark.slow
@pytest.mark.parametrize("name", WALK)
def test_every_form_says_the_same(name: str) -> None:
    """Packed, bits and values are of the codes, as without a key."""
    mechanism, records = inputs_of(name)
    rows = len(records[0])
    given: Any = {"key": KEY, "ids": IDS, "context": b"test"}
    first = mechanism.outputs[0]
    reports = mechanism.randomize_keyed(*records, **given, output=first)
    for output in mechanism.outputs[1:]:
        other = mechanism.randomize_keyed(*records, **given, output=output)
        plain = mechanism.randomize(*records, rng=3, output=output)
        for one, two in zip(*(x if isinstance(x, tuple) else (x,) for x in (other, plain)), strict=True):
            assert (one.dtype, one.shape) == (two.dtype, two.shape)
        if output == "packed" and isinstance(other, np.ndarray) and len(mechanism._report_parts) == 1:
            columns, bits = mechanism._report_parts[0]
            bits = 1 if first == "bits" else bits
            unpacked = bitldp.unpack(other, bits, other.size * 8 // bits)[: rows * columns]
            assert np.array_equal(unpacked, np.asarray(reports).ravel())


@pytest.mark.slow
@pytest.mark.parametrize("name", WALK)
def test_another_value_of_an_id_has_other_randomness(name: str) -> None:
    """Where the record is the value, one number that is another leaves nothing as it was.

    Two reports of one id whose records differ agree as often as those of two ids do: n = 203 records, five
    standard errors of the difference, fixed key.
    """
    mechanism, records = inputs_of(name)
    changed = [x.copy() for x in records]
    first = changed[0].reshape(RECORDS, -1)
    if first.dtype.kind == "f":
        half = np.nan_to_num(first[:, -1]) * 0.5  # NaN is a key that a record has not
        first[:, -1] = np.where(half > 0.0, half - 1e-3, half + 1e-3)
    else:
        first[:, -1] = (first[:, -1] + 1) % 2
    one, same = drawn(mechanism, records), drawn(mechanism, records)
    other = drawn(mechanism, tuple(changed))
    apart = drawn(mechanism, tuple(changed), ids=IDS + np.uint64(1))
    assert np.array_equal(one, same)
    columns = slice(-1, None) if not mechanism._bound and not whole_record(mechanism) else slice(None)
    told, expected = ((one == x)[:, columns].mean(axis=1) for x in (other, apart))
    spread = np.sqrt((told.var() + expected.var() + 1e-12) / RECORDS)
    assert abs(told.mean() - expected.mean()) <= 5.0 * spread + 1e-12


def whole_record(mechanism: Any) -> bool:
    """Return whether one report is of all values of a record."""
    return (
        mechanism.columns == 1
        or bool(mechanism._whole)
        or hasattr(mechanism, "selection")
        or (type(mechanism).__name__ in ("EXP", "PE", "PS"))
    )


@EVERY
@pytest.mark.slow
def test_the_key_is_shown_nowhere(name: str) -> None:
    """No repr, pickle or error of what a keyed call touches has it; a second use of an id is refused."""
    mechanism = example(name)
    records = records_of(mechanism, 3)
    ids = np.arange(3, dtype=np.uint64)
    with pytest.raises(ValueError, match="ids: each may come up once") as refused:
        mechanism.randomize_keyed(*records, key=KEY, ids=np.zeros(3, np.uint64))
    told = [str(refused.value)]
    mechanism.randomize_keyed(*records, key=KEY, ids=np.zeros(3, np.uint64), duplicates=True)
    for wrong in ({"ids": ids[:2]}, {"key": KEY[:31]}, {"output": "nothing"}, {"column": -1}):
        with pytest.raises(ValueError, match=f"^{next(iter(wrong))}") as failed:
            mechanism.randomize_keyed(*records, **{"key": KEY, "ids": ids, **wrong})
        told.append(str(failed.value))
    told += [repr(mechanism), repr(pickle.dumps(mechanism))]
    for text in told:
        assert KEY.hex() not in text
        assert re.escape(repr(KEY)[2:-1]) not in text
        assert repr(KEY)[2:-1] not in text


def test_keyed_randomness_holds_its_key_to_itself() -> None:
    randomness = KeyedRandomness(KEY, b"", IDS)
    assert repr(randomness) == f"<KeyedRandomness of {RECORDS} records>"
    with pytest.raises(TypeError, match="is not pickled"):
        pickle.dumps(randomness)
    assert not any("key" in name for name in dir(randomness))


def test_a_single_record_is_an_array_of_one() -> None:
    duchi = bitldp.Duchi(epsilon=1.0)
    with pytest.raises(ValueError, match="ids: 1 of them do not fit a single value"):
        duchi.randomize_keyed(0.5, key=KEY, ids=IDS[:1])
    assert duchi.randomize_keyed([0.5], key=KEY, ids=IDS[:1]).shape == (1,)
    with pytest.raises(ValueError, match=r"x: shape must be \(n, 3\)"):
        bitldp.Duchi(epsilon=1.0, features=3).randomize_keyed(np.zeros(3), key=KEY, ids=IDS[:3])


def test_a_projection_may_round_otherwise() -> None:
    """A matrix product of one row is not to the last bit that of many; bound randomness ignores it."""
    mechanism = Compressed(100, compressed=20, epsilon=2.0, public_seed=1)
    x = np.random.default_rng(2).normal(size=(RECORDS, 100))
    whole = drawn(mechanism, (x,))
    single = [drawn(mechanism, (x[i : i + 1],), ids=IDS[i : i + 1]) for i in range(RECORDS)]
    assert np.array_equal(np.vstack(single), whole)


def test_ids_are_whole_numbers_of_any_width() -> None:
    mechanism, x = bitldp.GRR(5, epsilon=1.0), np.arange(60) % 5
    wide = mechanism.randomize_keyed(x, key=KEY, ids=np.arange(60, dtype=np.uint64))
    for dtype in (np.int64, np.int32, np.uint32, np.int8):
        same = mechanism.randomize_keyed(x, key=KEY, ids=np.arange(60).astype(dtype))
        np.testing.assert_array_equal(same, wide)
    with pytest.raises(ValueError, match=r"^ids: whole numbers must be zero or more"):
        mechanism.randomize_keyed(x, key=KEY, ids=np.arange(60) - 1)
