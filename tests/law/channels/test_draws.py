"""Public draws: the core's against the same in NumPy, from the keystream and from keyed randomness."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from bitldp import _core
from bitldp._core import CHUNK, KeyedRandomness, keystream
from bitldp.release import draws
from numpy.typing import NDArray

KEY = bytes(range(32))
IDS = np.arange(700, dtype=np.uint64) * 3


def plain(first_chunk: int, count: int, chunk: int = CHUNK) -> NDArray[np.uint64]:
    """Return words of the keystream, chunk by chunk."""
    parts = [
        keystream(KEY, first_chunk + c, 8 * min(chunk, count - c * chunk)) for c in range(-(-count // chunk))
    ]
    return np.frombuffer(b"".join(parts), "<u8")


def floyd(words: NDArray[np.uint64], features: int) -> list[list[int]]:
    """Return different coordinates of every row of words, in integers of Python."""
    rows = []
    for row in words.tolist():
        chosen: list[int] = []
        for last, word in zip(range(features - len(row), features), row, strict=True):
            drawn = word * (last + 1) >> 64
            chosen.append(last if drawn in chosen else drawn)
        rows.append(chosen)
    return rows


@pytest.mark.parametrize(
    ("features", "k"), [(1, 1), (2, 2), (7, 3), (256, 4), (257, 66), (300, 10), (70_000, 5)]
)
def test_coordinates_are_floyds(features: int, k: int) -> None:
    words = plain(2, 700 * k).reshape(700, k)
    drawn = draws.coordinates(KEY, 700, features, k, 2)
    assert drawn.dtype == np.min_scalar_type(features - 1)
    assert drawn.tolist() == floyd(words, features)
    assert draws.distinct(words, features).tolist() == drawn.tolist()
    assert draws.distinct(np.asfortranarray(words), features).tolist() == drawn.tolist()
    randomness = KeyedRandomness(KEY, b"draws", IDS)
    keyed = draws.coordinates(randomness, len(IDS), features, k, 0)
    assert keyed.tolist() == floyd(randomness.words(k, 0).reshape(-1, k), features)


def test_batches_of_whole_chunks_concatenate() -> None:
    both = draws.coordinates(KEY, 2 * CHUNK, 100, 3, 6)
    parts = [draws.coordinates(KEY, CHUNK, 100, 3, first) for first in (6, 9)]
    np.testing.assert_array_equal(both, np.concatenate(parts))


def test_words_are_the_keystreams() -> None:
    np.testing.assert_array_equal(_core.words(KEY, 3000, 3, 5), plain(5, 9000))
    np.testing.assert_array_equal(_core.words(KEY, 3000, 3, 2**64 - 1, 9000), plain(2**64 - 1, 9000, 9000))
    by_record = draws.words_by_record(KEY, 100, 7, 16, 4)
    np.testing.assert_array_equal(by_record.reshape(-1), plain(4, 700, 16 * 7))
    randomness = KeyedRandomness(KEY, b"draws", IDS)
    np.testing.assert_array_equal(
        draws.words_by_record(randomness, len(IDS), 2, 16, 4), randomness.words(2, 0).reshape(-1, 2)
    )
    first = CHUNK // 2 - 1
    numbers = draws.words_of_numbers(KEY, first, 5, 2)
    np.testing.assert_array_equal(numbers.reshape(-1), plain(0, 2 * (first + 5))[2 * first :])
    assert len(_core.words(None, 0, 4, 0)) == 0
    assert len(set(_core.words(None, 2, 2, 0).tolist())) == 4


def test_numbers_are_scaled_words() -> None:
    words = plain(1, 600)
    for count in (1, 7, 2**31, 2**32 - 1):
        expected = [word * count >> 64 for word in words.tolist()]
        assert draws.whole_numbers(KEY, 600, count, 1).tolist() == expected
    counts = np.arange(1, 601)
    expected = [word * count >> 64 for word, count in zip(words.tolist(), counts.tolist(), strict=True)]
    assert draws.whole_numbers(KEY, 600, counts, 1).tolist() == expected
    assert draws.seeds(KEY, 600, 1).tolist() == [word >> 32 for word in words.tolist()]


def test_functions_are_those_of_two_words() -> None:
    prime, values = 1009, 8
    words = plain(4, 1400).reshape(700, 2).tolist()
    expected = [[1 + (a * (prime - 1) >> 64), b * prime >> 64] for a, b in words]
    own = draws.functions(KEY, 700, prime, 2)
    assert own.tolist() == expected
    assert draws.functions_of_numbers(KEY, 0, 3, prime).tolist() == draws.functions(KEY, 3, prime, 0).tolist()
    inputs = np.arange(700, dtype=np.uint32)
    hashed = [(a * x + b) % prime * values // prime for x, (a, b) in enumerate(expected)]
    assert _core.function_values(own, inputs, prime, values).tolist() == hashed
    most = 2**31 - 1  # the largest prime and the largest inputs
    edge = np.array([[most - 1, most - 1]], np.uint32)
    value = _core.function_values(edge, np.array([2**32 - 1], np.uint32), most, most)
    assert value.tolist() == [((most - 1) * (2**32 - 1) + most - 1) % most]


def test_draws_that_do_not_fit_are_refused() -> None:
    words = plain(0, 6).reshape(2, 3)
    randomness = KeyedRandomness(KEY, b"draws", IDS)
    for call, match in (
        (lambda: _core.coordinates(KEY, 2, 3, 4, 0), "k: "),
        (lambda: _core.coordinates(KEY, 2, 0, 0, 0), "k: "),
        (lambda: _core.coordinates(KEY, 2, 1 << 32, 1, 0), "features: "),
        (lambda: _core.coordinates(KEY, -1, 3, 1, 0), "records: "),
        (lambda: _core.coordinates(KEY[1:], 2, 3, 1, 0), "key: "),
        (lambda: _core.coordinates(randomness, 2, 3, 1, 0), "ids: "),
        (lambda: _core.distinct(words, 2), "k: "),
        (lambda: _core.words(KEY, 2, 3, 0, 0), "chunk: "),
        (lambda: _core.words(KEY, 2, 3, -1), "first_chunk: "),
        (lambda: _core.scaled(words[0], -1), "counts: "),
        (lambda: _core.scaled(words[0], np.array([1, 2, -3])), "counts: "),
        (lambda: _core.scaled(words[0], np.array([1, 2])), "counts: "),
        (lambda: _core.functions(words, 7), "draws: "),
        (lambda: _core.functions(words[:, :2], 2), "prime: "),
        (
            lambda: _core.function_values(np.ones((3, 2), np.uint32), np.ones(2, np.uint32), 7, 2),
            "functions: ",
        ),
    ):
        with pytest.raises(ValueError, match=match):
            call()


def test_coordinates_are_uniform() -> None:
    """Of 3,000 records with 3 of 20 coordinates, at alpha 1e-6: a seeded chi-square of 19 degrees."""
    counts = np.bincount(draws.coordinates(KEY, 3000, 20, 3, 0).reshape(-1), minlength=20)
    expected = 450.0
    statistic: Any = ((counts - expected) ** 2 / expected).sum() / (1 - 3 / 20)
    assert statistic < 65.4
    assert math.isclose(counts.sum(), 9000)
