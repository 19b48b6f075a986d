"""Keyed coins: a report depends on its record, column, value and law, and on nothing else."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import bitldp
import numpy as np
import pytest
from bitldp import _core
from bitldp.release.keyed import keyed
from bitldp.release.window import window, windowed

KEY = bytes(range(32))
NUMBERS = windowed(64, 17, 1.0, (-1.0, 1.0))
CODES = window(50, 1, 2.0)
IDS = np.arange(5000, dtype=np.uint64) * np.uint64(977)
X = np.linspace(-1.0, 1.0, 10_000).reshape(5000, 2)

GOLDEN = """
import numpy as np
from bitldp.release.keyed import keyed
from bitldp.release.window import window, windowed
key, ids = bytes(range(32)), np.arange(2000, dtype=np.uint64)
codes = keyed(window(50, 1, 2.0), (ids % 50), key=key, ids=ids, context=b"golden")
x = np.linspace(-1.0, 1.0, 4000).reshape(2000, 2)
numbers = keyed(windowed(64, 17, 1.0, (-1.0, 1.0)), x, key=key, ids=ids, context=b"golden", column=7)
print(codes[:12].tolist(), numbers[:6].ravel().tolist(), int(codes.sum()), int(numbers.sum()))
"""


def test_batches_order_and_threads_do_not_matter() -> None:
    whole = keyed(NUMBERS, X, key=KEY, ids=IDS)
    halves = [keyed(NUMBERS, X[s], key=KEY, ids=IDS[s]) for s in (slice(0, 1234), slice(1234, None))]
    assert np.array_equal(np.vstack(halves), whole)
    shuffled = np.random.default_rng(1).permutation(5000)
    assert np.array_equal(keyed(NUMBERS, X[shuffled], key=KEY, ids=IDS[shuffled], threads=2), whole[shuffled])
    second = keyed(NUMBERS, X[:, 1], key=KEY, ids=IDS, column=1)
    assert np.array_equal(second, whole[:, 1])
    assert NUMBERS.letters is not None
    assert np.array_equal(keyed(NUMBERS, X, key=KEY, ids=IDS, output="values"), NUMBERS.letters[whole])
    packed = keyed(NUMBERS, X, key=KEY, ids=IDS, output="packed")
    assert np.array_equal(_core.unpack(packed, 6, X.size), whole.ravel())


@pytest.mark.slow
@pytest.mark.parametrize("isa", _core.available_isas())
def test_every_instruction_set_gives_the_golden_reports(isa: str) -> None:
    environment = {**os.environ, "BITLDP_ISA": isa}
    command = [sys.executable, "-c", GOLDEN]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == EXPECTED


EXPECTED = (
    "[9, 9, 35, 21, 7, 20, 21, 49, 14, 12, 43, 29] "
    "[31, 31, 2, 51, 33, 62, 4, 10, 55, 11, 19, 26] 49268 125298"
)


RECORDS = """
import hashlib
import bitldp, numpy as np
key, ids = bytes(range(32)), np.arange(500, dtype=np.uint64)
x = np.linspace(-1.0, 1.0, 2500).reshape(500, 5)
for mechanism, *records in (
    (bitldp.OUE(21, epsilon=1.0), ids % 21),
    (bitldp.SubsetSelection(21, epsilon=1.0), ids % 21),
    (bitldp.BlockDesign(21, epsilon=1.0), ids % 21),
    (bitldp.FRR(5, epsilon=4.0), x),
    (bitldp.HypercubePrivUnit(5, epsilon=2.0), x),
    (bitldp.PE(5, k=2, epsilon=2.0), x),
    (bitldp.BitRand(5, categories=3, epsilon_x=4.0, epsilon_y=1.0), x, ids % 3),
    (bitldp.Duchi(epsilon=1.0, features=5, spend="sample", k=2), x),
):
    reports = mechanism.randomize_keyed(*records, key=key, ids=ids, context=b"golden")
    parts = reports if isinstance(reports, tuple) else (reports,)
    print(hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:12])
"""


@pytest.mark.slow
@pytest.mark.parametrize("isa", _core.available_isas())
def test_every_instruction_set_gives_the_golden_records(isa: str) -> None:
    environment = {**os.environ, "BITLDP_ISA": isa}
    command = [sys.executable, "-W", "ignore", "-c", RECORDS]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.split() == EXPECTED_RECORDS


EXPECTED_RECORDS = [
    *("e7a4f60313bd", "c2a69f999e9c", "8d7e91787227", "c83202c3b88d"),
    *("92d3ea4f6d2b", "e4faca9ff4f0", "54f77479c302", "97e641dc75b8"),
]


def test_a_release_of_more_than_one_draw_has_the_record_for_its_value() -> None:
    """Codes that are equal for two values have independent bits: n = 5000, five standard errors."""
    release = bitldp.BitBudgets(epsilon=4.0, bits=3)._release
    points = release.points
    assert points is not None
    one = keyed(release, np.full(5000, points[2]), key=KEY, ids=IDS)
    near = keyed(release, np.full(5000, points[2] + 1e-9), key=KEY, ids=IDS)
    other = keyed(release, np.full(5000, points[2]), key=KEY, ids=IDS + np.uint64(1))
    agree, apart = (one == near).mean(), (one == other).mean()
    assert abs(agree - apart) < 5.0 * np.sqrt(2.0 * apart * (1.0 - apart) / 5000)
    assert np.array_equal(keyed(release, np.full(5000, points[2]), key=KEY, ids=IDS), one)


def test_numbers_of_any_type_are_one_value() -> None:
    ones = keyed(NUMBERS, np.ones(5000), key=KEY, ids=IDS)
    for dtype in (np.float32, np.int64, np.uint8):
        assert np.array_equal(keyed(NUMBERS, np.ones(5000, dtype), key=KEY, ids=IDS), ones)
    zeros = keyed(NUMBERS, np.zeros(5000), key=KEY, ids=IDS)
    assert np.array_equal(keyed(NUMBERS, np.full(5000, -0.0), key=KEY, ids=IDS), zeros)
    assert not np.array_equal(zeros, ones)


def test_names_are_digests_and_repeated_ids_are_refused() -> None:
    names = [b"anna", b"bert"]
    digests = np.array([list(hashlib.sha256(name).digest()) for name in names], np.uint8)
    assert np.array_equal(
        keyed(CODES, np.array([3, 4]), key=KEY, ids=names),
        keyed(CODES, np.array([3, 4]), key=KEY, ids=digests),
    )
    for ids in ([b"anna", b"anna"], np.array([7, 7], np.uint64)):
        with pytest.raises(ValueError, match="ids: each may come up once"):
            keyed(CODES, np.array([3, 3]), key=KEY, ids=ids)
        same = keyed(CODES, np.array([3, 3]), key=KEY, ids=ids, duplicates=True)
        assert same[0] == same[1]


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"key": b"short"}, ValueError, "key: 5 bytes are not allowed; 32 are"),
        ({"ids": np.arange(2, dtype=np.uint64)}, ValueError, "ids: 2 of them do not fit 3 records"),
        ({"ids": np.arange(3.0)}, TypeError, "ids: dtype float64 is not allowed"),
        ({"ids": np.arange(3) - 1}, ValueError, "ids: whole numbers must be zero or more"),
        ({"ids": np.eye(3, dtype=np.uint8)}, ValueError, "ids: shape"),
        ({"ids": ["a", "b", "c"]}, TypeError, "ids: an array"),
        ({"column": -1}, ValueError, "column: -1"),
        ({"x": np.array([1, 2, 50])}, ValueError, "x"),
        ({"output": "bits"}, ValueError, "output"),
    ],
)
def test_what_does_not_fit_is_named(changed: dict[str, object], error: type[Exception], message: str) -> None:
    arguments = {"x": np.array([1, 2, 3]), "key": KEY, "ids": np.arange(3, dtype=np.uint64), **changed}
    with pytest.raises(error, match=message) as refused:
        keyed(CODES, arguments.pop("x"), **arguments)  # type: ignore[arg-type]
    assert KEY.hex() not in str(refused.value)
    assert repr(KEY) not in str(refused.value)
